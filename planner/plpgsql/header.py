"""What the body of a function is read with besides its text: its parameters and what it returns.

CREATE FUNCTION f(a anyelement, OUT b anyarray)     called with an integer    a i int4, b o int4[]; gives a value
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog import FunctionDef
from planner.conversion.polymorphic import POLYMORPHIC, enforce
from planner.facts import INT4, TRIGGER, VOID
from planner.plpgsql.declarations import Gives, Header, Parameter, RoutineKind
from planner.plpgsql.types import kind_of
from planner.types import SqlType

_INT4_ARRAY = 1007
_ARRAYS = (2277, 5078)


def header_for_call(
    function: FunctionDef, types: Sequence[int], kind: RoutineKind, new_type: SqlType | None = None
) -> Header:
    """Return the header of a function that is called with arguments of ``types``; ``new_type``: of a trigger
    function's NEW.
    """
    given = iter(types)
    declared = function.inputs
    actual = [
        next(given) if mode in "ibv" else enforce(types, declared, oid)[1]
        for mode, oid in zip(function.modes, function.types, strict=True)
    ]
    return _header(function, actual, kind, new_type)


def header_for_check(function: FunctionDef) -> Header:
    """Return a header for reading a body whose calls are not known: polymorphic types are integers and arrays
    of them.
    """
    actual = [
        oid if oid not in POLYMORPHIC else _INT4_ARRAY if oid in _ARRAYS else INT4 for oid in function.types
    ]
    kind: RoutineKind = (
        "trigger" if function.result == TRIGGER else "procedure" if function.kind == "p" else "function"
    )
    return _header(function, actual, kind, None)


def _header(
    function: FunctionDef, types: Sequence[int], kind: RoutineKind, new_type: SqlType | None
) -> Header:
    nothing = function.result == VOID or kind in ("procedure", "block")
    gives: Gives = "set" if function.returns_set else "nothing" if nothing else "value"
    made = map(SqlType, types)
    return Header(
        name=function.name,
        parameters=tuple(
            Parameter(name=name, mode=mode, type=type_, kind=kind_of(type_))
            for name, mode, type_ in zip(function.names, function.modes, made, strict=True)
        ),
        gives=gives,
        kind=kind,
        new_type=None if new_type is None else (new_type, kind_of(new_type)),
    )
