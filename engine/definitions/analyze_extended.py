"""ANALYZE of extended statistics: a sample of a table's rows is read by a query, and counted on the spot
(``engine.executors.statistics.extended``).

    SELECT a, b FROM ONLY t TABLESAMPLE …     the rows, whatever rights and policies say: who may ANALYZE a table may count all of it
    f(a + b)                                  computed from each, as the table's owner, who wrote it: a superuser's ANALYZE lends nobody rights

An expression that cannot be computed row by row (``planner.bind.stored.runnable``: its function reads tables)
leaves its object without figures, with a WARNING that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.base.statistics_records import ExtendedRecord
from engine.changes.writes.shape import table_layout
from engine.executors.statistics.extended import SAMPLE_ROWS, Column, extended
from engine.plans.unasked import unasked_rows
from engine.session.acting import acting_as
from pgwire.codecs.registry import text_output
from pgwire.give_way import openly, paced
from planner.base.errors import SqlError
from planner.base.quoting import quote_identifier
from planner.bind.define.statistics import columns_of, stored_expressions
from planner.bind.stored.runnable import runnable
from planner.catalog import RelationDef
from planner.catalog.statistics import StatisticsDef
from planner.evaluate import Env, RowFunction, Shared, compile_expr
from planner.facts import facts
from planner.functions.values.compare import hash_key, sort_key
from planner.rules.fold import fold
from planner.rules.plain import without_domains
from planner.types.domains import base_oid
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session
    from txn.base.types import Row


_HEADER: Final = 4
"""Bytes before a value of any length, as long as it is not stored."""


async def analyze_extended(session: Session, table: RelationDef) -> dict[int, ExtendedRecord]:
    """Return what is found by the statistics objects of a table, by oid; nothing of an empty table. Raises
    what their expressions raise.
    """
    found: dict[int, ExtendedRecord] = {}
    default = int(session.setting("default_statistics_target"))
    of_columns = [default if column.statistics < 0 else column.statistics for column in table.live]
    most = SAMPLE_ROWS * max(*of_columns, *(_target(session, table, one) for one in table.statistics), 0)
    session.block.enter(table.timeline, [ShardId(table.oid)])
    for one in table.statistics:
        target = _target(session, table, one)
        if not target:
            continue
        with acting_as(session, table.owner, restricted=True):
            computed = openly(_compiled, session, table, one)
        if computed is None:
            continue
        total, rows = await _sample(session, table, columns_of(one, table, session.catalog), most)
        if not rows:
            continue
        with acting_as(session, table.owner, restricted=True):
            values = openly(_values, session, table, one, [make for make, _ in computed], rows)
        types = [
            *(table.column(attnum).declared.oid for attnum in one.attnums),
            *(oid for _, oid in computed),
        ]
        over = [
            _column(session, number, oid) for number, oid in zip(_numbers(table, one), types, strict=True)
        ]
        found[one.oid] = openly(extended, one.kinds, over, values, total, target, inherited=table.kind == "p")
    return found


async def _sample(
    session: Session, table: RelationDef, attnums: Collection[int], most: int
) -> tuple[int, list[Row]]:
    """Return how many rows a table has, and about ``most`` of them as it stores them, of which only the
    columns ``attnums`` have values.
    """
    name = f"{quote_identifier(table.schema)}.{quote_identifier(table.name)}"
    source = name if table.kind == "p" else f"ONLY {name}"
    [(total,)] = await unasked_rows(session, f"SELECT pg_catalog.count(*) FROM {source}")
    if not total:
        return 0, []
    if total > most and table.kind in "rmp":
        source += f" TABLESAMPLE BERNOULLI ({100 * most / total})"
    # a row as a whole, or one of its system columns, is made of all columns
    read = [c for c in table.live if c.attnum in attnums or any(attnum <= 0 for attnum in attnums)]
    names = ", ".join(quote_identifier(column.name) for column in read)
    rows = await unasked_rows(session, f"SELECT {names} FROM {source}")
    return total, openly(_stored, rows, [column.attnum - 1 for column in read], len(table.columns))


def _stored(rows: Sequence[Row], places: Sequence[int], width: int) -> list[Row]:
    made: list[Row] = []
    for row in paced(rows, 16):
        cells: list[Any] = [None] * width
        for place, value in zip(places, row, strict=True):
            cells[place] = value
        made.append(tuple(cells))
    return made


def _compiled(
    session: Session, table: RelationDef, one: StatisticsDef
) -> list[tuple[RowFunction, int]] | None:
    """Return what computes each expression of statistics from a stored row, and its type; None, with a
    WARNING, where one cannot be. Raises SqlError 42501 for functions that the current user may not call.
    """
    layout, called = table_layout(table), set[int]()
    made: list[tuple[RowFunction, int]] = []
    try:
        for expr in stored_expressions(one, table, session.catalog):
            plain = without_domains(runnable(expr, session.catalog, called))
            made.append((compile_expr(fold(plain), layout), plain.type.oid))
    except SqlError as error:
        if error.sqlstate != "0A000" or error.ends_statement:
            raise
        session.notice(
            f'statistics object "{one.name}" could not be computed for relation "{table.schema}.{table.name}"',
            severity="WARNING",
            sqlstate="0A000",
            detail=error.message,
        )
        return None
    session.ask_calls(called)
    return made


def _values(
    session: Session,
    table: RelationDef,
    one: StatisticsDef,
    computed: Sequence[RowFunction],
    rows: Sequence[Row],
) -> list[Row]:
    """Return what statistics are over, of each row: columns, then expressions."""
    env = Env((), session, shared=Shared())
    places = [attnum - 1 for attnum in one.attnums]
    made: list[Row] = []
    for row in paced(rows, 16):
        whole = (*row, table.oid)
        made.append((*(row[place] for place in places), *(make(whole, env) for make in computed)))
    return made


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
