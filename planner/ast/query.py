"""AST of expressions and queries: what was written, before any name has a meaning.

Nodes keep PostgreSQL's raw-parse shape where that shape decides behaviour (an IN list is not yet a chain of
ORs), and drop it where it does not (INNER and CROSS joins are one kind). Read it as ``planner.ast``.

Spans: ``span`` is the token an error about the node points at, as PostgreSQL's parse locations do: the operator
of an operator expression, the first token of most other nodes. It never takes part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from planner.base.errors import Span
from planner.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Base of all nodes."""

    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementNode(Node):
    """Base of what is a statement by itself: each class has a row in ``planner.statements.parsed``."""


Name: TypeAlias = tuple[str, ...]  # a possibly qualified name, outermost part first


# --- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Node):
    """A constant. ``value``: int for "int" (fits 32 bits), bool for "bool", None for "null", else text.

    "float" is any other number as written (binder: int8 or numeric). "bits" carries ``b0101`` or ``xff``.
    """

    kind: Literal["int", "float", "string", "bool", "null", "bits"]
    value: int | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamRef(Node):
    """``$number``."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRef(Node):
    """``a``, ``t.a``, ``s.t.a`` ...; with ``star`` the names qualify a ``*``."""

    names: Name
    star: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator(Node):
    """An operator; ``left`` None for prefix ones. LIKE, ILIKE, SIMILAR TO are ``~~``, ``~~*``, ``~``.

    ``name`` may be qualified by a schema (OPERATOR(pg_catalog.+)).
    """

    name: Name
    left: Expression | None
    right: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAny(Node):
    """``left op ANY (right)`` or ``ALL`` with an array on the right (sub-selects are SubLinks)."""

    name: Name
    left: Expression
    right: Expression
    all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class In(Node):
    """``left [NOT] IN (items)``."""

    left: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Between(Node):
    """``arg [NOT] BETWEEN [SYMMETRIC] low AND high``."""

    arg: Expression
    low: Expression
    high: Expression
    negated: bool = False
    symmetric: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct(Node):
    """``left IS [NOT] DISTINCT FROM right``."""

    left: Expression
    right: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NullIf(Node):
    """``NULLIF(left, right)``."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class BoolOp(Node):
    """AND / OR of two or more, NOT of one."""

    kind: Literal["and", "or", "not"]
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NullTest(Node):
    """``IS [NOT] NULL``."""

    arg: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanTest(Node):
    """``IS [NOT] TRUE | FALSE | UNKNOWN``."""

    arg: Expression
    test: Literal["true", "false", "unknown"]
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedArg(Node):
    """``name => arg`` in a call."""

    name: str
    arg: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class FuncCall(Node):
    """A function call. ``sql_syntax``: written as EXTRACT(... FROM ...), TRIM, AT TIME ZONE ...

    ``order`` is ORDER BY inside an aggregate or, with ``within_group``, of WITHIN GROUP.
    """

    name: Name
    args: tuple[Expression, ...] = ()
    star: bool = False
    distinct: bool = False
    variadic: bool = False
    within_group: bool = False
    order: tuple[SortItem, ...] = ()
    filter: Expression | None = None
    over: WindowDef | None = None
    sql_syntax: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeName(Node):
    """A type as written. ``names``: PostgreSQL's spelling (``int`` arrives as pg_catalog.int4).

    ``typmods`` are expressions; ``dims`` has one entry per ``[]`` (its size, or -1). Interval fields come as
    PostgreSQL's mask, the first typmod.
    """

    names: Name
    typmods: tuple[Expression, ...] = ()
    dims: tuple[int, ...] = ()
    setof: bool = False
    percent_type: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCast(Node):
    """``arg::type``, ``CAST(arg AS type)``, ``type 'literal'``."""

    arg: Expression
    type: TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Collate(Node):
    """``arg COLLATE name``; ``arg`` None in column definitions."""

    arg: Expression | None
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class When(Node):
    """One arm of a CASE."""

    condition: Expression
    result: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Node):
    """CASE; ``arg`` is set for the simple form."""

    arg: Expression | None
    whens: tuple[When, ...]
    default: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalesce(Node):
    """``COALESCE(...)``."""

    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MinMax(Node):
    """``GREATEST`` / ``LEAST``."""

    greatest: bool
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLiteral(Node):
    """``ARRAY[...]``, nested ones included."""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Node):
    """``ROW(...)`` (``explicit``) or ``(a, b)``."""

    items: tuple[Expression, ...]
    explicit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Node):
    """A value for a part of a column that INSERT names: ``steps`` as in ``TargetColumn``."""

    steps: tuple[str | SubscriptStep | Node, ...]
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class OfParts(Node):
    """What INSERT stores in a column of which it names parts: NULL with these parts put in, one after another."""

    column: str
    type: SqlType
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubLink(Node):
    """A sub-select as an expression. ``op`` is empty for IN (= ANY) and the kinds without a test."""

    kind: Literal["exists", "any", "all", "scalar", "array"]
    query: QueryNode
    test: Expression | None = None
    op: Name = ()
    op_span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptStep(Node):
    """``[upper]`` or, as a slice, ``[lower:upper]`` with absent bounds None."""

    lower: Expression | None
    upper: Expression | None
    is_slice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Indirection(Node):
    """``arg.field``, ``arg[1]``, ``arg.*``: steps are field names, subscripts, or ``"*"`` as Star."""

    arg: Expression
    steps: tuple[str | SubscriptStep | Star, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Star(Node):
    """The ``*`` of ``(row).*``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlValue(Node):
    """CURRENT_DATE and its kin: ``what`` is the lower-case SQL name, ``precision`` -1 where none."""

    what: str
    precision: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping(Node):
    """``GROUPING(...)``."""

    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Default(Node):
    """DEFAULT as an INSERT or UPDATE value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentOf(Node):
    """``WHERE CURRENT OF cursor``."""

    cursor: str


Expression: TypeAlias = (
    Constant | ParamRef | ColumnRef | Operator | OperatorAny | In | Between | Distinct | NullIf | BoolOp
    | NullTest | BooleanTest | NamedArg | FuncCall | TypeCast | Collate | Case | Coalesce | MinMax
    | ArrayLiteral | Row | OfParts | SubLink | Indirection | SqlValue | Grouping | Default | CurrentOf
)  # fmt: skip


# --- parts of queries ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias(Node):
    """``AS name (columns)``."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SortItem(Node):
    """An ORDER BY item; ``using`` is the operator of ORDER BY ... USING, ``nulls`` "" where not written."""

    expr: Expression
    direction: Literal["", "asc", "desc", "using"] = ""
    nulls: Literal["", "first", "last"] = ""
    using: Name = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame(Node):
    """A frame clause as written; an omitted end is "current"."""

    mode: Literal["range", "rows", "groups"]
    start: Literal["unbounded_preceding", "preceding", "current", "following", "unbounded_following"]
    end: Literal["unbounded_preceding", "preceding", "current", "following", "unbounded_following"]
    start_offset: Expression | None = None
    end_offset: Expression | None = None
    exclude: Literal["none", "current", "group", "ties"] = "none"
    between: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowDef(Node):
    """A window: ``name`` in a WINDOW clause or as ``OVER name``; ``base`` is ``OVER (base ...)``."""

    name: str = ""
    base: str = ""
    partition: tuple[Expression, ...] = ()
    order: tuple[SortItem, ...] = ()
    frame: Frame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetItem(Node):
    """An entry of a select list or RETURNING; ``name`` is the written alias, "" where none."""

    expr: Expression
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingSet(Node):
    """``()``, ROLLUP, CUBE or GROUPING SETS in GROUP BY; ``items`` may nest."""

    kind: Literal["empty", "rollup", "cube", "sets"]
    items: tuple[Expression | GroupingSet, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSample(Node):
    """``TABLESAMPLE method (args) [REPEATABLE (seed)]``; its span is the method's."""

    method: Name
    args: tuple[Expression, ...]
    seed: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef(Node):
    """A relation by name. ``only`` is ONLY; ``persistence`` matters in CREATE alone, ``sample`` in FROM."""

    name: str
    schema: str = ""
    catalog: str = ""
    alias: Alias | None = None
    only: bool = False
    persistence: Literal["p", "t", "u"] = "p"
    sample: TableSample | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubqueryRef(Node):
    """``[LATERAL] (query) alias``."""

    query: QueryNode
    alias: Alias | None = None
    lateral: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition(Node):
    """``name type`` of a function range's column definition list."""

    name: str
    type: TypeName
    collation: Name = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRef(Node):
    """A function in FROM. Each entry of ``functions`` has its own column definitions (ROWS FROM)."""

    functions: tuple[tuple[Expression, tuple[ColumnDefinition, ...]], ...]
    alias: Alias | None = None
    definitions: tuple[ColumnDefinition, ...] = ()
    ordinality: bool = False
    lateral: bool = False
    rows_from: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRef(Node):
    """A join; CROSS is "inner" with neither ``on`` nor ``using``."""

    kind: Literal["inner", "left", "right", "full"]
    left: FromNode
    right: FromNode
    natural: bool = False
    using: tuple[str, ...] = ()
    using_alias: Alias | None = None
    on: Expression | None = None
    alias: Alias | None = None


FromNode: TypeAlias = TableRef | SubqueryRef | FunctionRef | JoinRef


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchClause(Node):
    """SEARCH DEPTH | BREADTH FIRST BY columns SET sequence."""

    columns: tuple[str, ...]
    breadth: bool
    sequence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleClause(Node):
    """CYCLE columns SET mark [TO value DEFAULT default] USING path."""

    columns: tuple[str, ...]
    mark: str
    value: Expression
    default: Expression
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cte(Node):
    """One WITH item; ``query`` may be a data-modifying statement (``planner.ast.session``)."""

    name: str
    query: Node
    columns: tuple[str, ...] = ()
    materialized: bool | None = None
    search: SearchClause | None = None
    cycle: CycleClause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class With(Node):
    """A WITH clause."""

    ctes: tuple[Cte, ...]
    recursive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Locking(Node):
    """FOR UPDATE / NO KEY UPDATE / SHARE / KEY SHARE; ``tables`` (of OF) empty = all."""

    strength: Literal["update", "no key update", "share", "key share"]
    tables: tuple[TableRef, ...] = ()
    wait: Literal["block", "skip", "nowait"] = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTail(StatementNode):
    """What any query may carry: WITH, ORDER BY, LIMIT (ALL is a null literal), OFFSET, locking."""

    with_: With | None = None
    order: tuple[SortItem, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    with_ties: bool = False
    locking: tuple[Locking, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(QueryTail):
    """A SELECT block. ``distinct``: None, () for DISTINCT, or the DISTINCT ON expressions.

    ``into`` is the table of SELECT ... INTO.
    """

    targets: tuple[TargetItem, ...] = ()
    from_: tuple[FromNode, ...] = ()
    where: Expression | None = None
    group: tuple[Expression | GroupingSet, ...] = ()
    group_distinct: bool = False
    having: Expression | None = None
    windows: tuple[WindowDef, ...] = ()
    distinct: tuple[Expression, ...] | None = None
    into: TableRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOp(QueryTail):
    """UNION / INTERSECT / EXCEPT."""

    op: Literal["union", "intersect", "except"]
    all: bool
    left: QueryNode
    right: QueryNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(QueryTail):
    """``VALUES (...), (...)``; cells may be Default as the source of an INSERT."""

    rows: tuple[tuple[Expression, ...], ...]


QueryNode: TypeAlias = Select | SetOp | Values
