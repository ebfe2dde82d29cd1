"""Bound expressions: what a value in a statement is computed from.

Every node has a type, with domains where the statement names them, and a span where it stands in the text.
Sub-selects are expressions too (``SubLink``); what they select is in ``planner.query.blocks``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from planner.base.errors import Span
from planner.query.sampling import Method
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.query.blocks import QueryExpr

# System columns. ROW_ID is ours: the int that names a row inside its shard for UPDATE and DELETE.
CTID, XMIN, CMIN, XMAX, CMAX, TABLEOID = -1, -2, -3, -4, -5, -6
# ROW_VERSION, ours too: the timestamp at which the row got the values read (0: by this transaction).
ROW_ID = -100
ROW_VERSION = -101
# VALUE in the CHECK of a domain
DOMAIN_VALUE = -102
# The range of Vars in AggregateSteps: 1 is the state, 2 ... are what a step gets besides.
STEP_INPUT = -2
WHOLE_ROW = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """Base of all bound expressions."""

    type: SqlType
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Const(Expr):
    """A value in the domain of ``planner.types``; None is NULL. ``untyped``: of a literal that is text as
    nothing decided its type.
    """

    value: object
    untyped: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Param(Expr):
    """``$number``, numbered from 1.

    Also how stable functions (now(), current_user, settings) reach an executor: the engine gives them
    numbers above the client's (see ``planner.bind``), fixed per statement or transaction.
    """

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Var(Expr):
    """A column of range ``range`` of the query ``level`` levels out.

    ``rest``: the present value of a column that a part of is assigned (``SET a[1] = x``), which is not read
    in the sense of rights and policies.
    """

    range: int
    attnum: int
    level: int = 0
    name: str = field(default="", compare=False)
    rest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FuncExpr(Expr):
    """A call of pg_proc row ``proc``; arguments already have the declared (or resolved) types.

    Defaults are filled in. ``variadic``: the last argument is an array holding the variadic ones. Casts that
    PostgreSQL does by a function are FuncExprs too. ``cast`` says how the call was written, for printing
    only: as a call, a cast (implicit ones do not print), or in SQL's own syntax (EXTRACT, TRIM ...).
    ``returns_set``: the function yields rows; allowed in FROM and at the top of a target. ``occurrence``:
    tells equal ones apart (``planner.rules.occurrences``), as in Aggregate and WindowFunc; 0 where equal ones
    are one. ``named``: of a call with named arguments, or of a function with defaults, the place of each that
    was written, in that order, with its name, "" for those without.
    """

    proc: int
    args: tuple[Expr, ...]
    variadic: bool = False
    returns_set: bool = False
    occurrence: int = 0
    cast: Literal["call", "explicit", "implicit", "sql"] = field(default="call", compare=False)
    named: tuple[tuple[int, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCall(FuncExpr):
    """A call of a user's function, whose oid ``proc`` is; mostly its body takes its place before anything
    runs (``planner.bind.stored.inline``).

    ``outputs``: the columns of what it returns, where that is a row (then ``type`` is record) or it names its
    one column. ``defaulted``: so many of the last arguments were not written. ``stays``: the body cannot take
    its place, so it is called. ``volatility``: i(mmutable), s(table), v(olatile), as declared. ``now``: it is
    run on the spot, by what cannot wait for it. ``domains``: the types of its arguments where executors see
    others, those that domains are over (``planner.rules.plain``).
    """

    schema: str = field(compare=False)
    name: str = field(compare=False)
    outputs: tuple[OutputColumn, ...] = ()
    defaulted: int = field(default=0, compare=False)
    stays: bool = field(default=False, compare=False)
    volatility: str = field(default="v", compare=False)
    now: bool = field(default=False, compare=False)
    domains: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpExpr(Expr):
    """Operator ``op`` (pg_operator oid) implemented by ``proc``; one argument for prefix operators.

    ``keys``: written as subscripts, ``args[0][key]...``, of which all but the last stand for operators below this one.
    """

    op: int
    proc: int
    args: tuple[Expr, ...]
    keys: tuple[Expr, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelabelType(Expr):
    """A binary-coercible cast: the same value under another type (or typmod -1)."""

    arg: Expr
    explicit: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollateExpr(Expr):
    """``arg COLLATE collation`` (an oid): the same value. Definitions keep it; what runs has none
    (``planner.conversion.collations``).
    """

    arg: Expr
    collation: int


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
    """Element-wise cast of an array; ``element`` is the cast of a Var(range=-1, attnum=1) placeholder.

    ``literal``: what is cast was written as a literal of the type, one of an array of domains.
    """

    arg: Expr
    element: Expr
    explicit: bool = field(default=False, compare=False)
    literal: bool = field(default=False, compare=False)


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
    """``IS [NOT] NULL``; on a row value it looks at every field, unless that counts as one value (``whole``:
    IS DISTINCT FROM NULL).
    """

    arg: Expr
    negated: bool = False
    whole: bool = False


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

    ``slots``: the places of its fields among the type's attributes, of which there are ``width`` with the
    dropped ones; ``types`` and ``names``: those of the attributes, without domains. ``named``: what is made
    of the value calls its fields so, whatever ``arg`` calls them.
    """

    arg: Expr
    slots: tuple[int, ...]
    types: tuple[int, ...]
    names: tuple[str, ...]
    width: int
    explicit: bool = field(default=False, compare=False)
    named: bool = field(default=False, compare=False)


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
    """Field ``index`` (0-based) of a row value. ``name``: of a record's, what it was selected as."""

    arg: Expr
    index: int
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscript(Expr):
    """``array[i][j]`` or, with any slice, ``array[lo:hi]``; absent slice bounds are None."""

    arg: Expr
    # one (lower, upper) pair per dimension; a plain subscript has lower = None and is_slice False
    indexes: tuple[tuple[Expr | None, Expr | None], ...]
    is_slice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayAssign(Expr):
    """``SET arg[indexes] = value``: the array, jsonb or hstore with a part replaced; ``indexes`` as in Subscript."""

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
class SampleKey(Expr):
    """What TABLESAMPLE chooses rows by (``planner.query.sampling.sample_key``): a bigint, made anew for each
    scan, fixed for a statement if it can be.

    ``seed``: REPEATABLE's argument; None: a random number.
    """

    percent: Expr
    seed: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTest(Expr):
    """Whether a row is in the sample of ``key``: how engines are told of TABLESAMPLE, made as they are
    (``planner.lower``).
    """

    method: Method
    key: Expr
    row_id: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorValue(Expr):
    """Column ``attnum`` of the row of ``table`` that a cursor stands on (WHERE CURRENT OF): fixed for a statement.

    ``variable`` gives the cursor's name in the place of ``cursor``: a variable of PL/pgSQL.
    """

    cursor: str
    variable: Expr | None = None
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
class AggregateSteps:
    """How a user's aggregate is computed: expressions over Var(range=STEP_INPUT).

    ``initial``: the first state, None for NULL. ``transition``: the next one, of the state and a row's
    values; ``strict``: rows with a NULL are passed over, and where the first state is NULL the first value of
    the first other row becomes it. ``inverse``: the state without a row again, for frames whose start moves.
    ``final``: the result, of the state and the direct arguments; None: the state. ``within``: the SQL
    functions whose bodies the transition, the final function and the inverse are, for CONTEXT; "" for others.
    ``modify``: what the final function does to the state, as in AggregateDef.
    """

    initial: Expr | None
    transition: Expr
    strict: bool
    final: Expr | None
    inverse: Expr | None = None
    modify: Literal["r", "s", "w"] = "r"
    within: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAggregate:
    """Which user's aggregate a call is of; ``kind`` as in AggregateDef, ``array``: the last argument is an
    array of the variadic ones.

    What is about to run has ``steps``, and ``moving``, the steps for frames whose start moves
    (``planner.bind.expression.aggregate_steps``). An aggregate over a state that only built-in functions can
    read runs as the built-in one that is made of them (``stands_for``). ``signature``: what messages call it.
    """

    schema: str
    name: str
    kind: Literal["n", "o", "h"]
    array: bool = False
    steps: AggregateSteps | None = None
    moving: AggregateSteps | None = None
    stands_for: int = 0
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Expr):
    """A call of aggregate ``proc`` of the query ``level`` levels out.

    ``star`` is count(*). ``direct`` holds the direct arguments of ordered-set aggregates (then
    ``order`` is WITHIN GROUP). ``filter`` keeps rows for which it is true. ``own``: the aggregate is a user's.
    """

    proc: int
    args: tuple[Expr, ...]
    star: bool = False
    distinct: bool = False
    order: tuple[SortBy, ...] = ()
    filter: Expr | None = None
    direct: tuple[Expr, ...] = ()
    level: int = 0
    occurrence: int = 0
    own: OwnAggregate | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingFunc(Expr):
    """``GROUPING(...)`` of the query ``level`` levels out: indexes into its ``Select.group``."""

    indexes: tuple[int, ...]
    level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFunc(Expr):
    """A window function or windowed aggregate over ``Select.windows[window]``; ``own``: it is a user's."""

    proc: int
    args: tuple[Expr, ...]
    window: int
    star: bool = False
    is_aggregate: bool = False
    filter: Expr | None = None
    occurrence: int = 0
    own: OwnAggregate | None = field(default=None, compare=False)


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
