"""``SET verify_executors = on``: a read runs on two executors, and fails where their answers differ (N2, P3).

    rows of the route of choice ──┐
                                  ├── as SQL fixes them: equal ──> answered
    rows of another route ────────┘                  differ ──> XX000, DETAIL says in what

What SQL fixes: the multiset of rows; their order as far as leading ORDER BY columns are among the output;
digits and scale of numerics (floats: twelve digits). Where it leaves a choice (LIMIT, DISTINCT ON, windows,
aggregates that depend on the order of their input) rows may differ rightly, and so may errors in what the
other route never evaluated: a WARNING.

The second route is the row executor below ``ROW_EXECUTOR_ROWS``, DuckDB or Spark above, whichever can. Not
compared: what one executor alone can run, catalog relations, volatile functions, FOR UPDATE, and transactions
that have written (what they read may be newer the second time). Both answers are held in memory, at most
``MAX_ROWS``; nothing is sent before they are equal.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import settle
from engine.base.executor import READS, ExecContext, Result
from engine.base.rows import ReadyRows
from engine.plans.query import bound_files, choose_route, collect, compile_for, compiled_query, run_query
from pgwire.codecs.errors import DataError
from pgwire.codecs.numeric import CONTEXT
from pgwire.codecs.registry import text_output
from pgwire.codecs.settings import DEFAULT
from planner.base.errors import SqlError
from planner.facts import FLOAT4, FLOAT8, NUMERIC
from planner.query import Aggregate, OutputColumn, QueryBase, QueryExpr, Select, SetOp, WindowFunc
from planner.query.exprs import aggregate_name
from planner.query.walk import queries_of, walk

if TYPE_CHECKING:
    from engine.plans.query import CompiledQuery
    from engine.session.plans.plan import Plan
    from engine.session.session import Session

log = logging.getLogger("holdfast.verify")

MAX_ROWS: Final = 1_000_000
ROW_EXECUTOR_ROWS: Final = 100_000
_SHOWN: Final = 2  # differing rows of each side in DETAIL
_SHOWN_CHARS: Final = 200
_BY_ORDER: Final = frozenset(
    ("array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg")
)
_CHOOSING: Final = frozenset(("min", "max"))
_UNFIXED: Final = ("22", "21")  # SQLSTATE classes of errors that depend on what is evaluated


@dataclass(frozen=True, slots=True)
class Terms:
    """What SQL fixes of an answer.

    Attributes:
        open: whether it leaves open which rows there are.
        keys: output columns (from 0) that the leading items of ORDER BY are.
        any_scale: per column, whether 1.0 may stand for 1.00: one of several equal values was chosen.
    """

    open: bool
    keys: tuple[int, ...]
    any_scale: tuple[bool, ...]


def terms_of(query: QueryExpr) -> Terms:
    """Return what SQL fixes of a query's answer."""
    chosen = open_ = False
    for block in queries_of(query):
        open_ |= block.limit is not None or block.offset is not None
        if isinstance(block, Select):
            open_ |= isinstance(block.distinct, tuple) or bool(block.windows)
            chosen |= bool(block.distinct) or bool(block.group)
        chosen |= isinstance(block, SetOp) and not block.all
    for node in walk(query):
        if isinstance(node, Aggregate):
            name = aggregate_name(node)
            open_ |= node.own is not None or (name in _BY_ORDER and not node.order)
            chosen |= name in _CHOOSING
        open_ |= isinstance(node, WindowFunc)
    return Terms(open_, _keys(query), tuple(chosen and _may_be_chosen(query, c) for c in query.columns))


def _may_be_chosen(query: QueryBase, column: OutputColumn) -> bool:
    if column.type.oid != NUMERIC:
        return False
    if not isinstance(query, Select):
        return True
    outputs = [target.expr for target in query.targets if not target.junk]
    expr = outputs[[c is column for c in query.columns].index(True)]
    return not (isinstance(expr, Aggregate) and aggregate_name(expr) not in _CHOOSING)


def _keys(query: QueryBase) -> tuple[int, ...]:
    """Return the output columns of the leading sort keys; a key that is not output ends them."""
    found: list[int] = []
    for key in query.order:
        at = key.target
        if isinstance(query, Select):
            if query.targets[at].junk:
                break
            at = sum(not target.junk for target in query.targets[:at])
        found.append(at)
    return tuple(found)


def difference(
    columns: Sequence[OutputColumn],
    terms: Terms,
    first: tuple[str, Sequence[tuple[Any, ...]]],
    second: tuple[str, Sequence[tuple[Any, ...]]],
) -> str | None:
    """Return in what two answers, each with its route's name, differ; None if they agree."""
    (name, rows), (other_name, others) = first, second
    mine, theirs = (_comparable(columns, terms, r) for r in (rows, others))
    mine_count, their_count = Counter(mine), Counter(theirs)
    if mine_count != their_count:
        text = f"{name} answers {len(rows)} rows, {other_name} {len(others)}."
        for label, extra, keyed, shown in (
            (name, mine_count - their_count, mine, rows),
            (other_name, their_count - mine_count, theirs, others),
        ):
            some = [row for key, row in zip(keyed, shown, strict=True) if key in extra][:_SHOWN]
            if some:
                text += f" Only {label}: {', '.join(_shown(columns, row) for row in some)}."
        return text
    for number, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if any(a[key] != b[key] for key in terms.keys):
            return (
                f"The rows are the same, their order is not: row {number + 1} is {_shown(columns, rows[number])} "
                f"of {name}, {_shown(columns, others[number])} of {other_name}."
            )
    return None


def _comparable(
    columns: Sequence[OutputColumn], terms: Terms, rows: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    floats = [c.type.oid in (FLOAT4, FLOAT8) for c in columns]
    ways = list(zip(floats, terms.any_scale, strict=True))
    return [tuple(_cell(v, *way) for v, way in zip(row, ways, strict=True)) for row in rows]


def _cell(value: Any, is_float: bool, any_scale: bool) -> Any:
    """Return what equals another cell's just if the values are one in SQL's eyes."""
    if value is None:
        return None
    if isinstance(value, float):
        return f"{value + 0.0:.6g}" if is_float and abs(value) < 1e-30 else f"{value + 0.0:.12g}"
    if isinstance(value, Decimal):
        return str(value.normalize(CONTEXT) if any_scale and value.is_finite() else value)
    if isinstance(value, list | tuple):
        return tuple(_cell(v, is_float, any_scale) for v in value)
    return value


def _shown(columns: Sequence[OutputColumn], row: Sequence[Any]) -> str:
    words = []
    for column, value in zip(columns, row, strict=True):
        try:
            words.append("" if value is None else str(text_output(column.type.oid, value, DEFAULT)))
        except (DataError, LookupError, TypeError, ValueError):
            words.append(repr(value))
    text = ", ".join(words)
    return f"({text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + '...'})"


def comparable(plan: Plan, query: CompiledQuery, ctx: ExecContext) -> bool:
    """Tell whether a query's answer can be compared at all."""
    return (
        plan.only_reads
        and not plan.locking
        and ctx.for_update == READS
        and not query.virtual
        and not ctx.txn.writing
    )


async def run_twice(session: Session, plan: Plan, query: QueryExpr, ctx: ExecContext) -> Result:
    """Run a read on two routes and answer it if they agree; on one if nothing can be compared.

    Raises:
        SqlError: XX000 where the answers differ; 54000 past ``MAX_ROWS`` rows; whatever the query raises.
    """
    result = await run_query(session, plan, "query", query, ctx)
    compiled = compiled_query(plan, "query", query)
    if not comparable(plan, compiled, ctx):
        return result
    rows = await collect(session, result, max_rows=MAX_ROWS)
    chosen = choose_route(session, compiled, ctx.params)[
        0
    ].executor  # the one that could, if the first could not
    for name in _others(session, compiled, chosen, ctx):
        try:
            executable = compile_for(session, compiled, name)
            again = replace(ctx)
            bound_files(session, again, name)
            other: Result = await settle(session.db.executors[name].run(executable, again))
            others = await collect(session, other, max_rows=MAX_ROWS)
        except SqlError as error:
            if error.sqlstate == "0A000":
                continue
            if not error.sqlstate.startswith(_UNFIXED):
                raise
            session.warning(f"{chosen} answers the query, {name} fails: {error.message}")
            break
        _check(session, query, (chosen, rows), (name, others))
        break
    return ReadyRows(query.columns, rows)


def _check(
    session: Session,
    query: QueryExpr,
    first: tuple[str, Sequence[tuple[Any, ...]]],
    second: tuple[str, Sequence[tuple[Any, ...]]],
) -> None:
    """Raise XX000, or warn, if two answers differ."""
    terms = terms_of(query)
    found = difference(query.columns, terms, first, second)
    if found is None:
        return
    if terms.open:
        session.notice(
            f"executors {first[0]} and {second[0]} answer differently where SQL leaves a choice",
            severity="WARNING", sqlstate="01000", detail=found,
        )  # fmt: skip
        return
    log.error("executors %s and %s disagree: %s", first[0], second[0], found)
    raise SqlError("XX000", f"executors {first[0]} and {second[0]} disagree", detail=found)


def _others(session: Session, query: CompiledQuery, chosen: str, ctx: ExecContext) -> list[str]:
    """Return the other routes in the order in which they are tried."""
    few = sum(ctx.txn.stats(shard).rows for shard in query.tables) <= ROW_EXECUTOR_ROWS
    names = ["index", "local"] if few else ["local"]
    if session.db.spark_available and not session.derived.temp_limited:
        names.append("spark")
    if not few:
        names.append("index")
    return [name for name in names if name != chosen]
