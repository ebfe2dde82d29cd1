"""Casts that are not functions: through text, by typmod, and the session values of CURRENT_USER and its kin.

``io_cast`` prints with the source type's codec and reads with the target's; reg* types go through the catalog
(``reg``). ``typmod_cast`` applies a length or precision; both return plain functions for generated code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pgwire.bounded import bounded
from pgwire.codecs import registry as codecs
from pgwire.codecs import typmod as typmods
from pgwire.codecs.domain import BIT, VECTORS
from pgwire.codecs.settings import DEFAULT
from planner.base.errors import SqlError, not_supported
from planner.base.large import foresee
from planner.facts import (
    BPCHAR,
    CSTRING,
    DATE,
    INT4,
    NAME,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNKNOWN,
    VARCHAR,
    facts,
)  # fmt: skip
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.reg_output import named_output
from planner.functions.text.strings import name_of
from planner.functions.values.acl_items import ACL_TYPES, acl_input
from planner.functions.values.reg import NAMED, REG_TYPES, named_input

_PADDED = frozenset((BPCHAR, BIT))  # to the length that their modifier says
_TEXTUAL = frozenset((TEXT, VARCHAR, UNKNOWN, CSTRING, BPCHAR))


def apply(oid: int, value: Any, typmod: int, explicit: bool) -> Any:
    """Return ``value`` coerced to ``typmod`` of scalar type ``oid`` (22001, 22003 where it does not fit)."""
    if typmod < 0:
        return value
    if oid in _PADDED:
        foresee(typmod)
    return typmods.apply_typmod(oid, value, typmod, explicit=explicit)


@functools.lru_cache(maxsize=1000)
def typmod_cast(oid: int, typmod: int, explicit: bool) -> Callable[[Any], Any]:
    """Return the coercion to ``typmod`` of type ``oid``; arrays are coerced element by element."""
    return typmods.typmod_function(oid, typmod, explicit=explicit) or (lambda value: value)


def to_text(oid: int, value: Any, session: EvalSession | None) -> str:
    """Return the text form of a value that is not NULL."""
    if oid in _TEXTUAL:
        return str(value)
    if oid in NAMED:
        return named_output(session, oid, value)
    return codecs.text_output(oid, value, settings(session))


def from_text(oid: int, text: str, session: EvalSession | None) -> Any:
    """Return the value that ``text`` denotes."""
    if oid in _TEXTUAL:
        return text
    if oid == NAME:
        return name_of(text)
    if oid in NAMED:
        return named_input(session, oid, text)
    if oid in ACL_TYPES and session is not None:
        return acl_input(session, oid, text)
    return codecs.text_input(oid, text, -1, settings(session))


def relabelled(value: Any, source: int, target: int) -> Any:
    """Return a value under a binary-coercible type: integer and oid read the same four bytes differently, a
    vector begins at 0.
    """
    if source in VECTORS and target not in VECTORS and value is not None:
        return bounded(value, (0,))
    if value is None or source == target or INT4 not in (source, target):
        return value
    if target == OID or target in REG_TYPES:
        return value & 0xFFFFFFFF
    if source == OID or source in REG_TYPES:
        return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    return value


def settings(session: EvalSession | None) -> Any:
    """Return the session's codec settings, PostgreSQL's defaults without a session."""
    return session.codec_settings if session is not None else DEFAULT


@functools.lru_cache(maxsize=1000)
def io_cast(source: int, target: int) -> Callable[[Any, EvalSession | None], Any]:
    """Return the cast through text from ``source`` to ``target``."""
    if source in _TEXTUAL and target in _TEXTUAL:
        return lambda value, session: value
    if source in _TEXTUAL:
        return lambda value, session: from_text(target, value, session)
    if target in _TEXTUAL:
        return lambda value, session: to_text(source, value, session)
    return lambda value, session: from_text(target, to_text(source, value, session), session)


def _form(signature: str) -> Callable[..., Any]:
    row = REGISTRY.functions.get(facts().proc_by_signature[signature])
    if row is None or row.python is None:
        raise not_supported(f"function {signature} in the row executor")
    return row.python


def _now_as(signature: str, result: int, typmod: int) -> Callable[[EvalSession], Any]:
    def current(session: EvalSession) -> Any:
        value = session.transaction_time_us
        if signature:
            value = _form(signature)(session, value)
        return apply(result, value, typmod, True)

    return current


def _current_schema(session: EvalSession) -> str | None:
    return next(iter(session.explicit_search_path), None)


def current_value(what: str, typmod: int) -> Callable[[EvalSession], Any]:
    """Return the function giving CURRENT_USER, CURRENT_DATE ... of a session."""
    name = what.lower()
    if name in ("current_user", "user", "current_role"):
        return lambda session: session.user
    if name == "session_user":
        return lambda session: session.session_user
    if name == "current_catalog":
        return lambda session: session.database
    if name == "current_schema":
        return _current_schema
    if name == "current_timestamp":
        return _now_as("", TIMESTAMPTZ, typmod)
    if name == "localtimestamp":
        return _now_as("timestamp(timestamptz)", TIMESTAMP, typmod)
    if name == "current_date":
        return _now_as("date(timestamptz)", DATE, -1)
    if name == "current_time":
        return _now_as("timetz(timestamptz)", TIMETZ, typmod)
    if name == "localtime":
        return _now_as("time(timestamptz)", TIME, typmod)
    raise SqlError("0A000", f"{what.upper()} is not supported")
