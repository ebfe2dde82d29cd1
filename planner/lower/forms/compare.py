"""Engine forms of the comparison operators of all types, by keys where the engines' own order differs."""

from __future__ import annotations

from collections.abc import Sequence

from planner import facts as f
from planner.base.errors import SqlError, not_supported
from planner.conversion.row_parts import can_equate, can_order
from planner.facts import facts
from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.forms.datetime import to_timestamp
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import Val, kind_of
from planner.lower.query import expr as expressions
from planner.types import SqlType
from planner.types.facts import format_type

_DAY_US = 86_400_000_000
# Pairs of different types that compare without a session setting.
_CROSS = (
    {f.INT2, f.INT4, f.INT8},
    {f.FLOAT4, f.FLOAT8},
    {f.DATE, f.TIMESTAMP},
    {f.TEXT, f.NAME},
)


def comparison(symbol: str) -> SqlForm:
    """Return the form of ``left symbol right``."""

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        left, right = args
        if {left.type.oid, right.type.oid} == {f.DATE, f.TIMESTAMP}:
            left, right = _as_dates(d, left, right)
        return expressions.compare(d, symbol, left, right)

    return form


def _of_arrays(symbol: str) -> SqlForm:
    """Return the form of a comparison of arrays, whose elements the engines compare whatever they are."""
    of_values = comparison(symbol)
    known = can_equate if symbol in ("=", "<>") else can_order

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        for arg in args:
            if arg.type.oid not in (f.UNKNOWN, f.ANYARRAY) and not known(arg.type.oid):
                raise not_supported(
                    f"comparison of values of type {format_type(arg.type.oid)} in this executor"
                )
        return of_values(d, args, result)

    return form


def _of_composites(symbol: str) -> SqlForm:
    """Return the form of a comparison of records, which is one of values of a composite type."""
    of_values = comparison(symbol)
    equality = symbol in ("=", "<>")

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        if any(arg.type.oid == f.RECORD for arg in args):
            raise not_supported("comparison of row values in this executor")
        if not all(can_equate(arg.type.oid) and (equality or can_order(arg.type.oid)) for arg in args):
            raise not_supported(
                f"comparison of values of type {format_type(args[0].type.oid)} in this executor"
            )
        return of_values(d, args, result)

    return form


def _as_dates(d: Dialect, left: Val, right: Val) -> tuple[Val, Val]:
    """Compare a date with a midnight constant as dates (the engines skip row groups then), else as timestamps."""
    stamp = left if left.type.oid == f.TIMESTAMP else right
    if isinstance(stamp.constant, int) and stamp.constant % _DAY_US == 0:
        days = stamp.constant // _DAY_US
        day = Val(d.literal(days, "date"), SqlType(f.DATE), None, days)
        return (day, right) if stamp is left else (left, day)

    def widen(value: Val) -> Val:
        if value.type.oid == f.TIMESTAMP:
            return value
        return Val(to_timestamp(d, value), SqlType(f.TIMESTAMP))

    return widen(left), widen(right)


def _register() -> None:
    known = facts()
    for symbol in ("=", "<>", "<", "<=", ">", ">="):
        for op in known.operators_by_name[symbol]:
            if not op.proc or not op.left:
                continue
            if op.left == f.ANYARRAY and op.right == f.ANYARRAY:
                form = _of_arrays(symbol)
                REGISTRY.sql(known.signature(op.proc), duckdb=form, spark=form)
                continue
            if op.left == f.RECORD and op.right == f.RECORD:
                form = _of_composites(symbol)
                REGISTRY.sql(known.signature(op.proc), duckdb=form, spark=form)
                continue
            try:
                kind_of(op.left)
                kind_of(op.right)
            except SqlError:
                continue
            if op.left != op.right and not any({op.left, op.right} <= pair for pair in _CROSS):
                continue
            if op.left == f.JSONB and symbol not in ("=", "<>"):
                continue
            form = comparison(symbol)
            REGISTRY.sql(known.signature(op.proc), duckdb=form, spark=form)


_register()
