"""The Query tree: what a bound statement is.

SQL-shaped like PostgreSQL's analysed Query. Everything is frozen; every expression has a type (oid,
typmod) and, where it stands in the text, a span. Spans never take part in equality, so two expressions
are equal when they mean the same: that is how a grouped target is matched with its GROUP BY expression.

    SELECT d.name, count(*) FROM emp e JOIN dept d ON d.id = e.dept GROUP BY d.name

    Select
      ranges   [0] Relation emp e   [1] Relation dept d
      from_    Join(INNER, RangeRef 0, RangeRef 1, on = OpExpr(=, Var 1.1, Var 0.2))
      group    [Var 1.2]
      targets  [Var 1.2 "name", Aggregate count(*) "count"]

Words: a *range* is one entry of the FROM list (PostgreSQL's range table entry); ``Var.level`` counts
query levels outwards (0 = this query): every Select, SetOp and Values is a level, so a side of a SetOp sees
the SetOp's own WITH items at level 1 and what encloses the SetOp at level 2. ``attnum`` is 1-based, negative
for system columns, 0 for a whole row. Executors and the lowering read this module and nothing else of the binder.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from planner.errors import Span
from planner.types import SqlType

# System columns. ROW_ID is ours: the int that names a row inside its shard for UPDATE and DELETE.
CTID, XMIN, CMIN, XMAX, CMAX, TABLEOID = -1, -2, -3, -4, -5, -6
# ROW_VERSION, ours too: the timestamp at which the row got the values read (0: by this transaction).
ROW_ID = -100
ROW_VERSION = -101
# VALUE in the CHECK of a domain
DOMAIN_VALUE = -102
WHOLE_ROW = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """Base of all bound expressions."""

    type: SqlType
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Const(Expr):
    """A value in the domain of ``planner.types``; None is NULL."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Param(Expr):
    """``$number``, numbered from 1.

    Also how stable functions (now(), current_user, settings) reach an executor: the engine gives them
    numbers above the client's (see ``planner.bind``), fixed per statement or transaction.
    """

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Var(Expr):
    """A column of range ``range`` of the query ``level`` levels out."""

    range: int
    attnum: int
    level: int = 0
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FuncExpr(Expr):
    """A call of pg_proc row ``proc``; arguments already have the declared (or resolved) types.

    Defaults are filled in. ``variadic``: the last argument is an array holding the variadic ones.
    Casts that PostgreSQL does by a function are FuncExprs too. ``cast`` says how the call was written, for
    printing only: as a call, a cast (implicit ones do not print), or in SQL's own syntax (EXTRACT, TRIM ...).
    ``returns_set``: the function yields rows; allowed in FROM and at the top of a target.
    """

    proc: int
    args: tuple[Expr, ...]
    variadic: bool = False
    returns_set: bool = False
    cast: Literal["call", "explicit", "implicit", "sql"] = field(default="call", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCall(FuncExpr):
    """A call of a user's function, whose oid ``proc`` is; mostly its body takes its place before anything runs (``planner.bind.inline``).

    ``outputs``: the columns of what it returns, where that is a row (then ``type`` is record) or it names its one column.
    ``defaulted``: so many of the last arguments were not written. ``stays``: the body cannot take its place, so it is called.
    ``volatility``: i(mmutable), s(table), v(olatile), as declared. ``now``: it is run on the spot, by what cannot wait for it.
    """

    schema: str = field(compare=False)
    name: str = field(compare=False)
    outputs: tuple[OutputColumn, ...] = ()
    defaulted: int = field(default=0, compare=False)
    stays: bool = field(default=False, compare=False)
    volatility: str = field(default="v", compare=False)
    now: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpExpr(Expr):
    """Operator ``op`` (pg_operator oid) implemented by ``proc``; one argument for prefix operators."""

    op: int
    proc: int
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelabelType(Expr):
    """A binary-coercible cast: the same value under another type (or typmod -1)."""

    arg: Expr
    explicit: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoerceViaIO(Expr):
    """A cast by printing ``arg`` as text and reading it as the target type."""

    arg: Expr
    explicit: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoerceTypmod(Expr):
    """Length or precision coercion to ``type.typmod`` (varchar(n), numeric(p,s), timestamp(p) ...).

    ``explicit`` decides truncation against 22001, as for PostgreSQL's length-coercion functions.
    """

    arg: Expr
    explicit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayCoerce(Expr):
    """Element-wise cast of an array; ``element`` is the cast of a Var(range=-1, attnum=1) placeholder."""

    arg: Expr
    element: Expr
    explicit: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoerceToDomain(Expr):
    """A value of the type under a domain as one of the domain: what that demands is checked (23502, 23514).

    ``domain`` is its oid; ``type`` is the domain while a statement is bound, and the plain type in what executors see.
    """

    arg: Expr
    domain: int
    explicit: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoolExpr(Expr):
    """AND / OR of two or more, NOT of one; three-valued."""

    kind: Literal["and", "or", "not"]
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NullTest(Expr):
    """``IS [NOT] NULL``; on a row value it looks at every field."""

    arg: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanTest(Expr):
    """``IS [NOT] TRUE | FALSE | UNKNOWN``; never NULL."""

    arg: Expr
    test: Literal["true", "false", "unknown"]
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctExpr(Expr):
    """``IS [NOT] DISTINCT FROM``, by the equality operator's ``proc``."""

    proc: int
    left: Expr
    right: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NullIf(Expr):
    """``NULLIF(left, right)`` by the equality operator's ``proc``."""

    proc: int
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArrayOp(Expr):
    """``scalar op ANY/ALL (array)``; also ``x IN (a, b)`` with an ArrayExpr on the right."""

    op: int
    proc: int
    use_any: bool
    scalar: Expr
    array: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseWhen:
    """One arm: ``condition`` is boolean (a simple CASE is already rewritten to comparisons)."""

    condition: Expr
    result: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseExpr(Expr):
    """Searched CASE; guards evaluation (P3). ``default`` is a NULL Const where there is no ELSE.

    ``simple``: it was written CASE x WHEN y, so every condition is ``x = y``; for printing only.
    """

    whens: tuple[CaseWhen, ...]
    default: Expr
    simple: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoalesceExpr(Expr):
    """``COALESCE``; guards evaluation."""

    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MinMaxExpr(Expr):
    """``GREATEST`` / ``LEAST``: NULLs are ignored. ``lt`` is the type's ``<`` proc."""

    greatest: bool
    args: tuple[Expr, ...]
    lt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayExpr(Expr):
    """``ARRAY[...]``; with ``nested`` the elements are arrays of one more dimension."""

    elements: tuple[Expr, ...]
    nested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowExpr(Expr):
    """``ROW(...)``; ``names`` are the field names (f1, f2 ... when anonymous)."""

    fields: tuple[Expr, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeRow(Expr):
    """A row as a value of the composite type ``type``.

    ``slots``: the places of its fields among the type's attributes, of which there are ``width`` with the dropped ones;
    ``types`` and ``names``: those of the attributes, without domains.
    """

    arg: Expr
    slots: tuple[int, ...]
    types: tuple[int, ...]
    names: tuple[str, ...]
    width: int
    explicit: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecomposeRow(Expr):
    """A value of a composite type as an anonymous row of its attributes; ``slots`` ... as in ComposeRow."""

    arg: Expr
    slots: tuple[int, ...]
    types: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCompare(Expr):
    """``(a, b) < (c, d)`` for < <= > >=: lexicographic, by each column's (lt, eq) procs."""

    kind: Literal["<", "<=", ">", ">="]
    lefts: tuple[Expr, ...]
    rights: tuple[Expr, ...]
    lt_procs: tuple[int, ...]
    eq_procs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSelect(Expr):
    """Field ``index`` (0-based) of a row value."""

    arg: Expr
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscript(Expr):
    """``array[i][j]`` or, with any slice, ``array[lo:hi]``; absent slice bounds are None."""

    arg: Expr
    # one (lower, upper) pair per dimension; a plain subscript has lower = None and is_slice False
    indexes: tuple[tuple[Expr | None, Expr | None], ...]
    is_slice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayAssign(Expr):
    """``SET arg[indexes] = value``: the array with a part replaced; ``indexes`` as in Subscript."""

    arg: Expr
    indexes: tuple[tuple[Expr | None, Expr | None], ...]
    value: Expr
    is_slice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentSetting(Expr):
    """CURRENT_USER, CURRENT_DATE, CURRENT_SCHEMA and their kin: a stable value of the session.

    ``what`` is the lower-case SQL name; ``type.typmod`` carries a precision.
    """

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorValue(Expr):
    """Column ``attnum`` of the row of ``table`` that a cursor stands on (WHERE CURRENT OF): fixed for a statement."""

    cursor: str
    table: int
    table_name: str
    attnum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SortBy:
    """An ordering inside an aggregate or a window; ``lt`` is the type's ``<`` proc, ``eq`` its ``=``."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False
    lt: int = 0
    eq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Expr):
    """A call of aggregate ``proc`` of the query ``level`` levels out.

    ``star`` is count(*). ``direct`` holds the direct arguments of ordered-set aggregates (then
    ``order`` is WITHIN GROUP). ``filter`` keeps rows for which it is true.
    """

    proc: int
    args: tuple[Expr, ...]
    star: bool = False
    distinct: bool = False
    order: tuple[SortBy, ...] = ()
    filter: Expr | None = None
    direct: tuple[Expr, ...] = ()
    level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingFunc(Expr):
    """``GROUPING(...)``: indexes into ``Select.group``."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFunc(Expr):
    """A window function or windowed aggregate over ``Select.windows[window]``."""

    proc: int
    args: tuple[Expr, ...]
    window: int
    star: bool = False
    is_aggregate: bool = False
    filter: Expr | None = None


class SubLinkKind(enum.Enum):
    """How a sub-select is used inside an expression."""

    EXISTS = "exists"
    SCALAR = "scalar"  # one column; NULL for no row, 21000 for more than one
    ARRAY = "array"
    ANY = "any"  # lefts op ANY (subselect): IN is = ANY
    ALL = "all"
    ROW = "row"  # (a, b) op (SELECT x, y): at most one row


@dataclass(frozen=True, slots=True, kw_only=True)
class SubLink(Expr):
    """A sub-select as an expression; correlated when its body has Vars of level >= 1.

    For ANY/ALL/ROW, ``lefts[i]`` is compared with output column i of the sub-select by ``procs[i]``; the
    comparisons are joined by AND (by OR for ``<>``), or lexicographically when ``row_kind`` is set (then
    ``procs`` are the < procs and ``eq_procs`` the = procs).
    ``casts[i]`` converts output column i first: an expression over Var(range=-1, attnum=i+1); a bare
    placeholder Var where no conversion is needed.
    """

    kind: SubLinkKind
    query: QueryExpr
    lefts: tuple[Expr, ...] = ()
    procs: tuple[int, ...] = ()
    ops: tuple[int, ...] = ()
    casts: tuple[Expr, ...] = ()
    join_or: bool = False
    row_kind: Literal["", "<", "<=", ">", ">="] = ""
    eq_procs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """One result column; ``table_oid``/``attnum`` name its origin for RowDescription, or are 0."""

    name: str
    type: SqlType
    table_oid: int = 0
    attnum: int = 0


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


# --- ranges -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeColumn:
    """A visible column of a range; ``attnum`` is what Vars use (dropped columns leave gaps)."""

    name: str
    type: SqlType
    attnum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Base of FROM entries."""

    alias: str
    columns: tuple[RangeColumn, ...]
    # of a relation or view in a function's body: whoever runs the statement needs the rights to it
    invoker: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRange(Range):
    """A table (or virtual catalog relation) by oid; views are already expanded to SubqueryRange.

    ``columns`` lists all live columns in table order; ``used`` the attnums that the statement refers
    to (system ones included), so that executors read no more. ``guard``: row-level security; a row for which its WHERE, over
    range 0, is not TRUE does not exist for this query, and nothing else may look at it before that is known.
    to (system ones included), so that executors read no more. ``only``: of a partitioned table none of its partitions.
    ``parent``, ``asked``: of a partition that stands in its parent's place, that and what was ``used`` of it.
    """

    oid: int
    schema: str
    name: str
    virtual: bool = False
    materialized: bool = False
    used: frozenset[int] = frozenset()
    guard: Select | None = None
    only: bool = False
    parent: int = field(default=0, compare=False)
    asked: frozenset[int] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubqueryRange(Range):
    """``(SELECT ...) alias``; with ``lateral`` its body may use Vars (level 1) of earlier ranges.

    ``view``: (oid, schema, name) of the view whose expansion this is, for printing; None for a sub-query.
    ``parent``: the partitioned table whose partitions these are, 0 for none, and ``asked``, what is used of it.
    """

    query: QueryExpr
    lateral: bool = False
    view: tuple[int, str, str] | None = field(default=None, compare=False)
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

    Each function's columns follow each other; a scalar function gives one row of one column. The
    ordinality column (bigint) is last. ``slots``: of functions whose values are of a composite type the places of its attributes, which
    are the columns; None for others; empty where there are none such. ``defined``: the columns that a column definition list gives
    each function, whatever an alias calls them, of types as declared; () for functions without one; empty where there are no lists.
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
class Join:
    """A join; USING and NATURAL are already an ON condition, merged columns already expressions.

    ``using``: the names of the merged columns, for printing only.
    """

    kind: JoinKind
    left: FromItem
    right: FromItem
    on: Expr | None
    using: tuple[str, ...] = field(default=(), compare=False)


FromItem: TypeAlias = RangeRef | Join


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameBound:
    """One end of a window frame; ``offset`` for the two offset kinds (already non-volatile)."""

    kind: Literal["unbounded_preceding", "preceding", "current", "following", "unbounded_following"]
    offset: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window definition with inheritance resolved. Default frame: RANGE UNBOUNDED PRECEDING .. CURRENT.

    ``in_range`` is the pg_proc oid of the in_range support function for RANGE with an offset, else 0.
    """

    partition: tuple[SortBy, ...]
    order: tuple[SortBy, ...]
    mode: Literal["range", "rows", "groups"] = "range"
    start: FrameBound = FrameBound(kind="unbounded_preceding")
    end: FrameBound = FrameBound(kind="current")
    exclude: Literal["none", "current", "group", "ties"] = "none"
    in_range: int = 0


# --- queries ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Cte:
    """One WITH item. A recursive one has a SetOp(UNION) body whose right side refers to itself.

    ``materialized`` None means the default. Data-modifying items are statements, see DataModifyingCte.
    """

    name: str
    query: QueryExpr
    columns: tuple[OutputColumn, ...]
    recursive: bool = False
    materialized: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBase:
    """What every query has: output columns, WITH items, ordering and limits.

    Order of application: body, ORDER BY, OFFSET, LIMIT (with ties: LIMIT keeps peers of the last row).
    """

    columns: tuple[OutputColumn, ...]
    ctes: tuple[Cte, ...] = ()
    order: tuple[SortKey, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    with_ties: bool = False


LockStrength: TypeAlias = Literal["key share", "share", "no key update", "update"]
LockWait: TypeAlias = Literal["block", "skip", "nowait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMark:
    """FOR UPDATE and its kin for one range: a relation's rows are locked; at a sub-query's it stands for printing.

    ``pushed``: it comes from the clause of a query around this one. Where a sub-query stands for a partitioned table, ``row`` are the
    attnums of its columns that tell which row it is (table, id, version); inside, the marks are ``above``: rows are
    read as those to be locked, and locked by the query around.
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
    before LIMIT.
    """

    targets: tuple[Target, ...]
    ranges: tuple[Range, ...] = ()
    from_: tuple[FromItem, ...] = ()
    where: Expr | None = None
    grouped: bool = False
    group: tuple[Expr, ...] = ()
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    group_distinct: bool = False
    having: Expr | None = None
    windows: tuple[Window, ...] = ()
    distinct: bool | tuple[int, ...] = False
    row_marks: tuple[RowMark, ...] = ()


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


# --- data-modifying statements ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OnConflict:
    """ON CONFLICT. ``arbiters``: index oids that may arbitrate; empty = any unique index (DO NOTHING).

    DO UPDATE expressions see range 0 = the existing row, range 1 = the proposed one (EXCLUDED); both
    have the table's columns.
    """

    action: Literal["nothing", "update"]
    arbiters: tuple[int, ...]
    assignments: tuple[tuple[int, Expr], ...] = ()
    where: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewUse:
    """What a statement does to a view: the view's columns that it assigns, and reads."""

    oid: int
    assigned: frozenset[int]
    read: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughViews:
    """DML through views: those on the way, outermost first, and what new rows must be TRUE for (view, over range 0)."""

    views: tuple[ViewUse, ...]
    checks: tuple[tuple[str, Expr], ...]


RowCheckKind: TypeAlias = Literal["insert", "update", "conflict", "merge update", "merge delete"]
"""When a row is looked at: before it is stored, by an insert or an update; or the row that is there already, before ON CONFLICT or MERGE
changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    """What row-level security asks of a row (range 0), else 42501; ``policy``: of the restrictive one of this name."""

    kind: RowCheckKind
    policy: str
    condition: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """INSERT. ``source`` yields one column per entry of ``attnums``, already of the column's type.

    ``defaults``: (attnum, expression) for live columns not in ``attnums`` that have a default.
    ``source`` None is DEFAULT VALUES. A ``Const``-free VALUES cell that was DEFAULT is already replaced
    by the default expression (or NULL). ``returning`` uses Var(range=0) for the row as stored.
    ``ctes`` are those of the statement's WITH (``source`` refers to them at level 1).
    """

    table: int
    attnums: tuple[int, ...]
    source: QueryExpr | None
    defaults: tuple[tuple[int, Expr], ...] = ()
    on_conflict: OnConflict | None = None
    returning: tuple[Target, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    overriding: str = ""
    through: ThroughViews | None = None
    row_checks: tuple[RowCheck, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """UPDATE.

    ``source`` is a Select that finds rows and computes values; its output columns are

        [0]            the row id (Var attnum ROW_ID of range 0, the target)
        [1 .. n]       the old values of all n live columns of the target, in table order
        [n+1 .. n+k]   the new values, in the order of ``assigned`` (attnums), already coerced
        [n+k+1 ..]     whatever RETURNING needs beside the row: columns of other ranges, sub-selects
        [-1]           of a partitioned table: the table that has the row, one of ``leaves``

    A target row joined with several source rows is updated once, by the first. ``returning`` sees
    range 0 = the new row, range 1 = the extra outputs (attnum 1 = column n+k+1).
    """

    table: int
    source: Select
    assigned: tuple[int, ...]
    returning: tuple[Target, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    through: ThroughViews | None = None
    row_checks: tuple[RowCheck, ...] = ()
    leaves: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """DELETE. ``source`` outputs [0] row id, [1..n] old values, [n+1..] extras, as for Update.

    ``returning`` sees range 0 = the old row, range 1 = the extras.
    """

    table: int
    source: Select
    returning: tuple[Target, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    through: ThroughViews | None = None
    leaves: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAction:
    """One WHEN clause of MERGE over range 0 = the target's row and range 1 = the source's extras.

    ``values`` of the columns ``assigned`` (attnums), already coerced; an INSERT's other columns are NULL.
    """

    matched: bool
    action: Literal["update", "delete", "insert", "nothing"]
    condition: Expr | None
    assigned: tuple[int, ...] = ()
    values: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """MERGE: of the actions that fit a row of ``source``, the first whose condition holds is done.

    ``source`` outputs [0] the row id, NULL where nothing matches, [1..n] the old values of the target's live columns,
    [n+1..] the extras: what the actions ask of other ranges, and of the target beside its columns.
    """

    table: int
    source: Select
    actions: tuple[MergeAction, ...]
    row_checks: tuple[RowCheck, ...] = ()
    leaves: tuple[int, ...] = ()


ParameterTypes: TypeAlias = Mapping[int, int]
