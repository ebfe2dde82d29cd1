"""Input and output functions of types, called by their names: ``int4in('1')``, ``textout(t)``,
``numeric_in(c, 0, -1)``.

They do what a cast between the type and text does. Those of types without values of their own are not here,
nor input that asks its second argument what to read (``array_in``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pgwire.codecs.registry import has_codec
from planner.facts import CSTRING, INT4, OID, facts
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values import casts

_NAMED_ONE: Final = (CSTRING,)
_WITH_LENGTH: Final = (CSTRING, OID, INT4)
_REFUSED: Final = ("pg_node_tree_in", "pg_ndistinct_in", "pg_dependencies_in", "pg_mcv_list_in")
_OF_MANY: Final = (
    "array_out(anyarray)", "anyarray_out(anyarray)", "enum_out(anyenum)", "anyenum_out(anyenum)", "range_out(anyrange)",
    "anyrange_out(anyrange)", "multirange_out(anymultirange)", "anymultirange_out(anymultirange)", "record_out(record)",
)  # fmt: skip
"""Output functions that are told the type of their argument."""


def _reader(oid: int) -> Callable[..., Any]:
    return lambda session, text: casts.from_text(oid, text, session)


def _reader_to_length(oid: int) -> Callable[..., Any]:
    def read(session: EvalSession, text: str, _: int, typmod: int) -> Any:
        return casts.apply(oid, casts.from_text(oid, text, session), typmod, False)

    return read


def _printer(oid: int) -> Callable[..., Any]:
    return lambda session, value: casts.to_text(oid, value, session)


def _print_any(session: EvalSession, value: Any, *, types: tuple[int, ...]) -> str:
    return casts.to_text(types[0], value, session)


def _register() -> None:
    known = facts()
    for proc in list(known.procs.values()):
        signature = known.signature(proc.oid)
        row = REGISTRY.functions.get(proc.oid)
        if (
            "." in signature
            or not proc.strict
            or proc.returns_set
            or proc.name in _REFUSED
            or proc.name.endswith("typmodout")  # of a modifier, not of a value
            or (row is not None and row.python is not None)
        ):
            continue
        if (
            proc.name.endswith("in")
            and _has_values(proc.result)
            and proc.arg_types in (_NAMED_ONE, _WITH_LENGTH)
        ):
            make = _reader if proc.arg_types == _NAMED_ONE else _reader_to_length
            REGISTRY.python(signature, make(proc.result), needs_session=True)
        elif (
            proc.name.endswith("out")
            and proc.result == CSTRING
            and len(proc.arg_types) == 1
            and _has_values(proc.arg_types[0])
        ):
            REGISTRY.python(signature, _printer(proc.arg_types[0]), needs_session=True)
    for signature in _OF_MANY:
        REGISTRY.python(signature, _print_any, needs_session=True, needs_types=True)


def _has_values(oid: int) -> bool:
    """Tell whether a type is no pseudo-type and has a form in text."""
    made = facts().types.get(oid)
    return made is not None and has_codec(oid) and (made.kind != "p" or oid == CSTRING)


_register()
