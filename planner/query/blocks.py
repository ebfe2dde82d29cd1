"""Queries: SELECT blocks, set operations and VALUES, with what they have in common: WITH, ORDER BY, LIMIT."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from planner.query.expressions import Expr, OutputColumn, SortBy
from planner.query.ranges import FromItem, Range

if TYPE_CHECKING:
    from planner.query.changes import Insert, KeptChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One target; ``junk`` ones serve ORDER BY / DISTINCT ON only and are not output."""

    expr: Expr
    name: str
    junk: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """ORDER BY item: an index into ``targets`` (Select) or ``columns`` (SetOp, Values)."""

    target: int
    descending: bool = False
    nulls_first: bool = False
    lt: int = 0
    eq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameBound:
    """One end of a window frame; ``offset`` for the two offset kinds (already non-volatile)."""

    kind: Literal["unbounded_preceding", "preceding", "current", "following", "unbounded_following"]
    offset: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window definition with inheritance resolved. Default frame: RANGE UNBOUNDED PRECEDING .. CURRENT.

    ``in_range`` is the pg_proc oid of the in_range support function for RANGE with an offset, else 0. For
    printing only: ``name`` in the WINDOW clause, ``base`` that it builds on, how the frame is ``written``
    ("": not).
    """

    partition: tuple[SortBy, ...]
    order: tuple[SortBy, ...]
    mode: Literal["range", "rows", "groups"] = "range"
    start: FrameBound = FrameBound(kind="unbounded_preceding")
    end: FrameBound = FrameBound(kind="current")
    exclude: Literal["none", "current", "group", "ties"] = "none"
    in_range: int = 0
    name: str = field(default="", compare=False)
    base: str = field(default="", compare=False)
    written: Literal["", "start", "between"] = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingItem:
    """An entry of GROUP BY with grouping sets as it was written; ``members``: the indexes in ``group`` of a
    simple one.
    """

    kind: Literal["empty", "simple", "rollup", "cube", "sets"]
    members: tuple[int, ...] = ()
    items: tuple[GroupingItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchColumns:
    """What SEARCH names: the columns it goes by, and the one it adds."""

    columns: tuple[str, ...]
    breadth: bool
    sequence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleColumns:
    """What CYCLE names: the columns it compares, and the two it adds."""

    columns: tuple[str, ...]
    mark: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cte:
    """One WITH item. A recursive one has a SetOp(UNION) body whose right side refers to itself.

    ``materialized`` None means the default. Items that change data are steps of a statement
    (``planner.bind.change.with_items``); what is kept to be printed has them as ``change``, whose ``query``
    tells the columns alone. ``in_recursive``: WITH RECURSIVE was written, which is printed. ``named``: how
    many of the columns, from the first, the item itself gives names. What ``search`` and ``cycle`` say is
    part of the query already (``planner.bind.query.search_cycle``); definitions show it as it was written.
    """

    name: str
    query: QueryExpr
    columns: tuple[OutputColumn, ...]
    recursive: bool = False
    materialized: bool | None = None
    named: int = 0
    search: SearchColumns | None = None
    cycle: CycleColumns | None = None
    change: Insert | KeptChange | None = None
    in_recursive: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBase:
    """What every query has: output columns, WITH items, ordering and limits.

    ``limit_all``: LIMIT ALL or LIMIT NULL was written, which is printed. Order of application: body, ORDER
    BY, OFFSET, LIMIT (with ties: LIMIT keeps peers of the last row). ``in_turn``: each row is computed when
    it is asked for: "found", they are all found before, of the source of a change whose functions see what it
    has changed so far; "asked", they are found so, too, of what may be stopped behind any of them; "fetched":
    as many at a time as somebody fetches (``planner.bind.query.fetched``).
    """

    columns: tuple[OutputColumn, ...]
    ctes: tuple[Cte, ...] = ()
    order: tuple[SortKey, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    with_ties: bool = False
    limit_all: bool = field(default=False, compare=False)
    in_turn: Literal["", "found", "asked", "fetched"] = ""


LockStrength: TypeAlias = Literal["key share", "share", "no key update", "update"]
LockWait: TypeAlias = Literal["block", "skip", "nowait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMark:
    """FOR UPDATE and its kin for one range: a relation's rows are locked; at a sub-query's it stands for printing.

    ``pushed``: it comes from the clause of a query around this one. Where a sub-query stands for a
    partitioned table, ``row`` are the attnums of its columns that tell which row it is (table, id, version);
    inside, the marks are ``above``: rows are read as those to be locked, and locked by the query around.
    """

    range: int
    strength: LockStrength
    wait: LockWait
    pushed: bool = False
    row: tuple[int, int, int] | None = None
    above: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(QueryBase):
    """A SELECT block. ``from_`` items are cross-joined; () means one empty row.

    ``group``: the distinct grouping expressions. ``grouping_sets``: tuples of indexes into ``group``,
    None for a plain GROUP BY. ``grouped`` is True when rows are aggregated at all (GROUP BY, HAVING or
    an aggregate): with no ``group`` that yields exactly one row (before HAVING).
    ``distinct``: False, True, or target indexes of DISTINCT ON. ``group_eqs`` / ``distinct_eqs`` are not
    kept: equality is the type's default. ``row_marks``: ranges whose rows are locked (one each), after ORDER BY and
    before LIMIT. ``grouping``: what ``grouping_sets`` were written as, for printing only.
    """

    targets: tuple[Target, ...]
    ranges: tuple[Range, ...] = ()
    from_: tuple[FromItem, ...] = ()
    where: Expr | None = None
    grouped: bool = False
    group: tuple[Expr, ...] = ()
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    grouping: tuple[GroupingItem, ...] = field(default=(), compare=False)
    group_distinct: bool = False
    having: Expr | None = None
    windows: tuple[Window, ...] = ()
    distinct: bool | tuple[int, ...] = False
    row_marks: tuple[RowMark, ...] = ()

    @property
    def row_order(self) -> tuple[SortKey, ...]:
        """ORDER BY; of DISTINCT ON without one its expressions, by which PostgreSQL sorts to find the rows."""
        if self.order or not isinstance(self.distinct, tuple):
            return self.order
        return tuple(SortKey(target=target) for target in self.distinct)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOp(QueryBase):
    """UNION / INTERSECT / EXCEPT; both sides already give ``columns``' types."""

    op: Literal["union", "intersect", "except"]
    all: bool
    left: QueryExpr
    right: QueryExpr


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(QueryBase):
    """``VALUES (...), (...)``: every row as long as ``columns``, cells already of their types.

    As the source of an INSERT a cell may be None: the column's default.
    """

    rows: tuple[tuple[Expr, ...], ...]


QueryExpr: TypeAlias = Select | SetOp | Values
