"""Queries and what FROM lists: SELECT blocks, set operations and VALUES, with what they have in common, WITH, ORDER BY
and LIMIT; relations, sub-queries, functions, and how they are joined.

    FROM a JOIN b ON a.x = b.x, c      ranges [a, b, c]     from_ (Join(RangeRef 0, RangeRef 1), RangeRef 2)

A range stands in the flat list ``Select.ranges``, which is what Vars count; the tree of joins refers to it by number.
One module, as a range may be a query. Expressions are below (``planner.query.expressions``): only a sub-select knows
of queries there.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from planner.query.expressions import Expr, OutputColumn, SortBy
from planner.query.sampling import Method
from planner.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeColumn:
    """A visible column of a range; ``attnum`` is what Vars use (dropped columns leave gaps)."""

    name: str
    type: SqlType
    attnum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How an entry of FROM was written, for printing it.

    ``aliased``: with an alias, whose list of columns had ``named`` names; ``own``: what the columns are
    called without it, () if they are called the same, "" for one that is gone. ``fresh``: how many of the
    last columns came after the query. ``only``: ONLY stood before it. ``order``: the places of the columns as
    the text has them, where fresh ones are not its last (ROWS FROM); else (). ``unnamed``: how many columns
    before these the list of a stored text does not name: they came to the row type of a function since it was
    written.
    """

    aliased: bool = False
    named: int = 0
    own: tuple[str, ...] = ()
    fresh: int = 0
    only: bool = False
    order: tuple[int, ...] = ()
    unnamed: int = 0


PLAIN: Final = Written()
ALIASED: Final = Written(aliased=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Base of FROM entries."""

    alias: str
    columns: tuple[RangeColumn, ...]
    written: Written = field(default=PLAIN, compare=False)
    # of a relation or view in a function's body: whoever runs the statement needs the rights to it
    invoker: bool = field(default=False, compare=False)
    # of such a body by BEGIN ATOMIC or RETURN: its names were looked up when it was made, so nobody needs
    # USAGE of its schema
    looked_up: bool = field(default=False, compare=False)
    # in a view's condition, of a change through it: the view, as which it is read (``planner.bind.stored.readers``)
    within: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """TABLESAMPLE: the rows that ``method`` chooses by ``key``, a ``SampleKey`` or, where that is fixed for a
    statement, its value.
    """

    method: Method
    key: Expr


class Leaf(NamedTuple):
    """A table that holds rows of a partitioned one."""

    oid: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRange(Range):
    """A table (or virtual catalog relation) by oid; views are already expanded to SubqueryRange.

    ``columns`` lists all live columns in table order; ``used`` the attnums that the statement refers to
    (system ones included), so that executors read no more. ``guard``: row-level security; a row for which its
    WHERE, over range 0, is not TRUE does not exist for this query, and nothing else may look at it before
    that is known. ``sample``: the rows that are read. ``only``: of a partitioned table none of its
    partitions. ``parent``, ``asked``: of a partition that stands in its parent's place, that and what was
    ``used`` of it. ``leaves``: partitions with the same columns, this one the first, that the SELECT of which
    it is all of FROM reads one after the other (``planner.rules.arms``).
    """

    oid: int
    schema: str
    name: str
    virtual: bool = False
    materialized: bool = False
    used: frozenset[int] = frozenset()
    guard: Select | None = None
    sample: Sample | None = None
    only: bool = False
    parent: int = field(default=0, compare=False)
    asked: frozenset[int] = field(default=frozenset(), compare=False)
    leaves: tuple[Leaf, ...] = ()

    @property
    def tables(self) -> tuple[int, ...]:
        """The tables that are read, by oid."""
        return tuple([leaf.oid for leaf in self.leaves]) or (self.oid,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubqueryRange(Range):
    """``(SELECT ...) alias``; with ``lateral`` its body may use Vars (level 1) of earlier ranges.

    ``view``: (oid, schema, name) of the view whose expansion this is, for printing; None for a sub-query.
    ``barrier``: no condition from outside may look at a row before ``query`` has chosen it (a security_barrier view).
    ``parent``: the partitioned table whose partitions these are, 0 for none, and ``asked``, what is used of it.
    """

    query: QueryExpr
    lateral: bool = False
    view: tuple[int, str, str] | None = field(default=None, compare=False)
    barrier: bool = field(default=False, compare=False)
    parent: int = field(default=0, compare=False)
    asked: frozenset[int] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CteRange(Range):
    """A reference to ``ctes[name]`` of the query ``level`` levels out (0 = this query's own WITH).

    ``recursive_ref``: the self-reference inside the recursive term (the working table).
    """

    name: str
    level: int
    recursive_ref: bool = False


OLD_ROWS: Final = -1
NEW_ROWS: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRange(Range):
    """The rows of part ``step`` of a statement whose WITH changes data (``planner.statements.WithChanges``).

    ``OLD_ROWS`` and ``NEW_ROWS`` stand for the transition tables of the trigger whose function runs.
    """

    step: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRange(Range):
    """``function(...) [WITH ORDINALITY]``, or ROWS FROM of several; implicitly lateral.

    Each function's columns follow each other; a scalar function gives one row of one column. The ordinality
    column (bigint) is last. ``slots``: of functions whose values are of a composite type the places of its
    attributes, which are the columns; None for others; empty where there are none such. ``defined``: the
    columns that a column definition list gives each function, whatever an alias calls them, of types as
    declared; () for functions without one; empty where there are no lists.
    """

    functions: tuple[Expr, ...]
    widths: tuple[int, ...]  # columns each function contributes
    slots: tuple[tuple[int, ...] | None, ...] = ()
    defined: tuple[tuple[tuple[str, SqlType], ...], ...] = ()
    ordinality: bool = False
    lateral: bool = False


class JoinKind(enum.Enum):
    """Join kinds; CROSS is INNER without a condition."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRef:
    """A leaf of the FROM tree: index into ``Select.ranges``."""

    range: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWritten:
    """How a join was written, for printing it: its number among those of its query, which ``JoinSpan`` refers
    to, and its names.

    ``using``: the columns that it merges, which are its first; ``merged``: where they are among the columns
    of the left and the right side; ``computed``: whether each is something else than one of the two.
    ``called``: the alias after USING.
    """

    number: int = 0
    using: tuple[str, ...] = ()
    merged: tuple[tuple[int, int], ...] = ()
    computed: tuple[bool, ...] = ()
    called: str = ""
    alias: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A join; USING and NATURAL are already an ON condition, merged columns already expressions."""

    kind: JoinKind
    left: FromItem
    right: FromItem
    on: Expr | None
    written: JoinWritten = field(default=JoinWritten(), compare=False)


FromItem: TypeAlias = RangeRef | Join


# --- query blocks --------------------------------------------------------------------------------


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


class ItemChange:
    """A change of rows that an item of WITH may be, where it is kept to be printed; ``planner.query.changes``
    says which there are.
    """

    __slots__ = ()


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
    change: ItemChange | None = None
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
