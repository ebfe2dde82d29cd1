"""Sequences (manual 9.17): nextval and its kin, over the session's ``SequenceSystem``."""

from __future__ import annotations

from pgwire.codecs.system import RecordValue
from planner.facts import BOOL, INT8, OID
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession


def _setval(session: EvalSession, oid: int, value: int, called: bool = True) -> int:
    session.system.sequences.set(oid, value, called)
    return value


def _last_value(session: EvalSession, oid: int) -> int | None:
    """SQL's ``pg_sequence_last_value``: NULL as long as nothing was drawn."""
    value, _left, called = session.system.sequences.state(oid)
    return value if called else None


def _parameters(session: EvalSession, oid: int) -> RecordValue:
    """SQL's ``pg_sequence_parameters``: what a sequence counts; 42P01, 42809, 42501."""
    made = session.system.sequences.definition(oid)
    values = (made.start, made.minimum, made.maximum, made.increment, made.cycle, made.cache, made.type_oid)
    return RecordValue(values, (INT8, INT8, INT8, INT8, BOOL, INT8, OID), _PARAMETERS)


_PARAMETERS = (
    "start_value", "minimum_value", "maximum_value", "increment", "cycle_option", "cache_size", "data_type",
)  # fmt: skip


def _register() -> None:
    python = REGISTRY.python
    python("nextval(regclass)", lambda session, oid: session.system.sequences.next(oid), needs_session=True)
    python(
        "currval(regclass)", lambda session, oid: session.system.sequences.current(oid), needs_session=True
    )
    python("lastval()", lambda session: session.system.sequences.last(), needs_session=True)
    python("setval(regclass,int8)", _setval, needs_session=True)
    python("setval(regclass,int8,bool)", _setval, needs_session=True)
    python("pg_sequence_last_value(regclass)", _last_value, needs_session=True)
    python("pg_sequence_parameters(oid)", _parameters, needs_session=True)


_register()
