"""ANALYZE of extended statistics: a sample of a table's rows is read by a query, and counted on the spot (``engine.statistics.extended``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from engine.statistics.extended import SAMPLE_ROWS, Column, ExtendedRecord, extended
from pgwire.codecs.registry import text_output
from pgwire.give_way import openly
from planner.builtins.compare import hash_key, sort_key
from planner.builtins.system_statistics import shown_expressions
from planner.catalog import RelationDef
from planner.catalog.statistics import StatisticsDef
from planner.deparse_expr import quote_identifier
from planner.domains import base_oid
from planner.facts import facts

if TYPE_CHECKING:
    from engine.connection.session import Session


_HEADER: Final = 4
"""Bytes before a value of any length, as long as it is not stored."""


async def analyze_extended(session: Session, table: RelationDef) -> dict[int, ExtendedRecord]:
    """Return what is found by the statistics objects of a table, by oid; nothing of an empty table. Raises what their expressions raise."""
    found: dict[int, ExtendedRecord] = {}
    default = int(session.setting("default_statistics_target"))
    of_columns = [default if column.statistics < 0 else column.statistics for column in table.live]
    most = SAMPLE_ROWS * max(*of_columns, *(_target(session, table, one) for one in table.statistics), 0)
    for one in table.statistics:
        target = _target(session, table, one)
        if not target:
            continue
        name = f"{quote_identifier(table.schema)}.{quote_identifier(table.name)}"
        only = "" if table.kind == "p" else "ONLY "
        _, counted = await session.system.routines.query(f"SELECT count(*) FROM {only}{name}")
        total = counted[0][0]
        if not total:
            continue
        parts = [quote_identifier(table.column(attnum).name) for attnum in one.attnums]
        parts += [f"({text})" for text in shown_expressions(session, table, one)]
        share = (
            f" TABLESAMPLE BERNOULLI ({100 * most / total})" if total > most and table.kind in "rmp" else ""
        )
        columns, rows = await session.system.routines.query(
            f"SELECT {', '.join(parts)} FROM {only}{name}{share}"
        )
        if not rows:
            continue
        over = [
            _column(session, number, column.type.oid)
            for number, column in zip(_numbers(table, one), columns, strict=True)
        ]
        found[one.oid] = openly(
            extended,
            one.kinds,
            over,
            [tuple(row) for row in rows],
            total,
            target,
            inherited=table.kind == "p",
        )
    return found


def _numbers(table: RelationDef, one: StatisticsDef) -> list[int]:
    """Return what texts of statistics call what they are over: attribute numbers, and negative ones for expressions."""
    return [table.number(attnum) for attnum in one.attnums] + [-1 - n for n in range(len(one.expressions))]


def _target(session: Session, table: RelationDef, one: StatisticsDef) -> int:
    """Return how closely is looked: as the object says, or the most of what its columns say."""
    if one.target >= 0:
        return one.target
    default = int(session.setting("default_statistics_target"))
    own = [table.column(attnum).statistics for attnum in one.attnums]
    return max([default if target < 0 else target for target in own] or [default])


def _column(session: Session, number: int, oid: int) -> Column:
    plain = base_oid(oid)
    key = sort_key(plain) or hash_key(plain) or _itself
    settings = session.output_settings
    fact = facts().types.get(plain)
    fixed = 0 if fact is None or fact.length < 0 else fact.length
    return Column(
        number=number,
        oid=oid,
        key=_hashable(key),
        text=lambda value: text_output(plain, value, settings),
        width=(lambda value: fixed) if fixed else (lambda value: _length(plain, value, settings)),
    )


def _itself(value: Any) -> Any:
    return value


def _hashable(key: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def made(value: Any) -> Any:
        found = key(value)
        return tuple(found) if isinstance(found, list) else found

    return made


def _length(oid: int, value: Any, settings: Any) -> int:
    """Return about how many bytes PostgreSQL's form of a value takes."""
    size = len(value) if isinstance(value, bytes) else len(text_output(oid, value, settings).encode())
    return size + _HEADER
