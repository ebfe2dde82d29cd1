"""By which collation texts are compared: how it is derived for every expression, and what is wrong about it.

    a COLLATE "C" < b COLLATE "POSIX"      42P21: two explicit ones differ
    c < p  (columns of "C" and "POSIX")    42P22: two implicit ones differ, and a comparison needs one
    c || p                                 fine: it needs none, and has none

Every collation that is supported here compares bytewise, so a derivation decides about errors, about
definitions and about what ``pg_collation_for`` says, never about the order of rows. It is made where a
statement writes COLLATE or reads columns of collations that can differ (``MIXING``), and for the columns of
views and tables made by queries; all other statements do without.

Source: PostgreSQL's manual, 24.2.2 "Managing Collations" (how collations are derived).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pgwire.give_way import give_way
from planner.base.errors import Span, SqlError
from planner.base.quoting import quote_identifier
from planner.catalog import Catalog, ColumnDef, RelationDef
from planner.catalog.collations import CollationDef
from planner.facts import RECORD, TEXT, UNKNOWN, facts, rows
from planner.query import (
    Aggregate,
    ArrayCoerce,
    CaseExpr,
    CoerceToDomain,
    CollateExpr,
    Const,
    Cte,
    CteRange,
    DecomposeRow,
    Delete,
    DistinctExpr,
    Expr,
    FieldSelect,
    FuncExpr,
    FunctionRange,
    Insert,
    Merge,
    MinMaxExpr,
    NullIf,
    OpExpr,
    QueryBase,
    QueryExpr,
    Range,
    RelationRange,
    RowCompare,
    RowExpr,
    ScalarArrayOp,
    Select,
    SetOp,
    SortBy,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Update,
    Values,
    Var,
    Window,
    WindowFunc,
)
from planner.query.location import location
from planner.query.rewrite import replace_children
from planner.query.walk import children
from planner.types import SqlType
from planner.types.domains import base_oid, is_domain, plain_type
from planner.types.facts import C_COLLATION, DEFAULT_COLLATION, FIRST_USER_OID, format_type, plain_collation

COLLATIONS: Final = "collations"
"""The flag (``planner.bind.context.BindContext.flags``) of what needs a derivation."""
COLLATION_FOR: Final = facts().proc_by_signature["pg_collation_for(any)"]

COLLATE_HINT: Final = "Use the COLLATE clause to set the collation explicitly."
_CHOOSE: Final = "You can choose the collation by applying the COLLATE clause to one or both expressions."

# How sure a collation is. Of two, the greater strength wins.
NONE, IMPLICIT, CONFLICT, EXPLICIT = range(4)


class State(NamedTuple):
    """What is known of an expression's collation; of a CONFLICT ``other`` is the one that contradicts."""

    strength: int = NONE
    collation: int = 0
    span: Span | None = None
    other: int = 0
    other_span: Span | None = None

    @property
    def settled(self) -> int:
        """The collation that counts, 0 for none."""
        return 0 if self.strength == CONFLICT else self.collation


_NOTHING: Final = State()


# --- collations of types and columns -----------------------------------------------------------------


@functools.cache
def collation_names() -> dict[int, str]:
    """Return the names of PostgreSQL's own collations by oid."""
    return {int(row["oid"]): str(row["collname"]) for row in rows("collations")}


def name_of(oid: int, catalog: Catalog) -> str:
    """Return a collation's name as messages tell it."""
    made = catalog.collation_by_oid(oid) if oid >= FIRST_USER_OID else None
    return collation_names().get(oid, "(null)") if made is None else made.name


def shown_collation(oid: int, catalog: Catalog, path: Sequence[str]) -> str:
    """Return a collation's name as it is written where the search path is ``path``."""
    made = catalog.collation_by_oid(oid) if oid >= FIRST_USER_OID else None
    if made is None:
        name = collation_names().get(oid)
        return str(oid) if name is None else quote_identifier(name)
    name = quote_identifier(made.name)
    return name if is_visible(made, catalog, path) else f"{quote_identifier(made.schema)}.{name}"


def is_visible(made: CollationDef, catalog: Catalog, path: Sequence[str]) -> bool:
    """Tell whether a user's collation is what its name means by itself."""
    for schema in path:
        if schema == made.schema:
            return not schema.startswith("pg_temp")
        if schema == "pg_catalog" and made.name in collation_names().values():
            return False
        if catalog.collation_named(schema, made.name) is not None:
            return False
    return False


def type_collation(type_: SqlType, catalog: Catalog) -> int:
    """Return the collation of a type that may be a domain, 0 where it has none."""
    if is_domain(type_.oid):
        made = catalog.type_by_oid(type_.oid)
        if made is not None:
            return made.collation
    return plain_collation(plain_type(type_).oid)


def collation_of(column: ColumnDef) -> int:
    """Return the collation of a relation's column, 0 where its type has none."""
    return column.collation or plain_collation(column.type.oid)


def _columns(relation: RelationDef) -> dict[int, int]:
    return {c.attnum: collation_of(c) for c in relation.columns}


def mixing(relation: RelationDef) -> bool:
    """Tell whether columns of a relation may contradict others: where all are "C" or the default one, no two
    ever do.
    """
    return any(c.collation not in (0, DEFAULT_COLLATION, C_COLLATION) for c in relation.columns)


# --- derivation ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Level:
    """A query that is being looked at: the collations of the columns (attnums) of its ranges, and those of
    its WITH items.
    """

    ranges: list[dict[int, int]] = field(default_factory=list)
    ctes: dict[str, Sequence[int]] = field(default_factory=dict)


class Derivation:
    """One look at a bound tree. ``names``: what ``pg_collation_for`` says, by the id of the call."""

    def __init__(self, catalog: Catalog, path: Sequence[str] = ()) -> None:
        """``catalog`` has the relations and types that the tree names; ``path``: where the reader of names
        finds them.
        """
        self.catalog = catalog
        self.path = path
        self.names: dict[int, str | None] = {}
        self.levels: list[_Level] = []

    # --- statements ---------------------------------------------------------------------------------

    def visit(self, node: object) -> None:
        """Look at a statement, or any part of one. Raises SqlError 42P21, 42P22, 42804."""
        if isinstance(node, Expr):
            self.expr(node)
        elif isinstance(node, QueryBase):
            self.query(node)  # type: ignore[arg-type]
        elif isinstance(node, Insert | Update | Delete | Merge):
            self._change(node)
        else:
            for child in children(node):
                self.visit(child)

    def over(self, ranges: Sequence[Range | RelationDef], expr: Expr) -> State:
        """Return the state of an expression of no query, over these ranges. Raises as ``visit``."""
        level = _Level()
        self.levels.append(level)
        for item in ranges:
            level.ranges.append(_columns(item) if isinstance(item, RelationDef) else self._range(item))
        state = self.expr(expr)
        self.levels.pop()
        return state

    def _change(self, node: Insert | Update | Delete | Merge) -> None:
        table = self.catalog.relation_by_oid(node.table)
        row = {} if table is None else _columns(table)
        level = _Level(ranges=[row, row])
        self.levels.append(level)
        for child in children(node):
            if isinstance(child, Cte):
                self._cte(level, child)
            else:
                self.visit(child)
        self.levels.pop()

    # --- queries --------------------------------------------------------------------------------------

    def query(self, query: QueryExpr) -> list[State]:
        """Return the states of a query's columns, having looked at all of it."""
        give_way()
        level = _Level()
        self.levels.append(level)
        for cte in query.ctes:
            self._cte(level, cte)
        if isinstance(query, Select):
            columns = self._select(level, query)
        elif isinstance(query, SetOp):
            columns = self._set_operation(query)
        else:
            columns = self._values(query)
        for bound in (query.limit, query.offset):
            if bound is not None:
                self.expr(bound)
        if not isinstance(query, Select):
            for key in query.order:
                self._ordered(columns[key.target], query.columns[key.target].type)
        self.levels.pop()
        return columns

    def _cte(self, level: _Level, cte: Cte) -> None:
        body = cte.query
        if not cte.recursive or not isinstance(body, SetOp):
            level.ctes[cte.name] = [state.settled for state in self.query(body)]
            return
        inner = _Level()  # the body's own
        self.levels.append(inner)
        for own in body.ctes:
            self._cte(inner, own)
        first = self.query(body.left)
        self.levels.pop()
        level.ctes[cte.name] = [state.settled for state in first]
        for number, (before, after) in enumerate(zip(first, self.query(body), strict=True), 1):
            if before.settled != after.settled:
                raise SqlError(
                    "42P21",
                    f'recursive query "{cte.name}" column {number} has collation "{name_of(before.settled, self.catalog)}" in '
                    f'non-recursive term but collation "{name_of(after.settled, self.catalog)}" overall',
                    hint="Use the COLLATE clause to set the collation of the non-recursive term.",
                    span=before.span,
                )

    def _select(self, level: _Level, query: Select) -> list[State]:
        for item in query.ranges:
            level.ranges.append(self._range(item))
        for part in (*query.from_, query.where, query.having):
            if part is not None:
                self.visit(part)
        targets = [self.expr(target.expr) for target in query.targets]
        sorted_by = {key.target for key in query.order}
        if isinstance(query.distinct, tuple):
            sorted_by.update(query.distinct)
        for number, (target, state) in enumerate(zip(query.targets, targets, strict=True)):
            if number in sorted_by or (query.distinct is True and not target.junk):
                self._ordered(state, target.expr.type)
        for expr in query.group:
            self._ordered(self.expr(expr), expr.type)
        for window in query.windows:
            self._window(window)
        return [
            state._replace(span=state.span or location(target.expr))
            for target, state in zip(query.targets, targets, strict=True)
            if not target.junk
        ]

    def _window(self, window: Window) -> None:
        for item in (*window.partition, *window.order):
            self._sorted(item)
        for bound in (window.start, window.end):
            if bound.offset is not None:
                self.expr(bound.offset)

    def _sorted(self, item: SortBy) -> State:
        state = self.expr(item.expr)
        self._ordered(state, item.expr.type)
        return state

    def _ordered(self, state: State, type_: SqlType) -> None:
        """Refuse to sort or group by what has no collation."""
        if state.strength == CONFLICT:
            raise self._implicit(state)
        if state.strength == NONE and type_collation(type_, self.catalog):
            raise _undetermined("string comparison")

    def _range(self, item: Range) -> dict[int, int]:
        """Return the collations of a range's columns by attnum."""
        if isinstance(item, RelationRange):
            relation = self.catalog.relation_by_oid(item.oid)
            if item.guard is not None:
                self.query(item.guard)
            if item.sample is not None:
                self.expr(item.sample.key)
            return {} if relation is None else _columns(relation)
        found: Sequence[int] = [type_collation(column.type, self.catalog) for column in item.columns]
        if isinstance(item, SubqueryRange):
            found = [state.settled for state in self.query(item.query)]
        elif isinstance(item, CteRange):
            found = self.levels[-1 - item.level].ctes[item.name]
        elif isinstance(item, FunctionRange):
            states = [self.expr(function) for function in item.functions]
            # a record's columns have the collations of their types
            if len(states) == 1 == item.widths[0] and item.functions[0].type.oid != RECORD:
                found = [states[0].settled, *found[1:]]
        return dict(zip((column.attnum for column in item.columns), found, strict=False))

    def _set_operation(self, query: SetOp) -> list[State]:
        columns: list[State] = []
        left, right = self.query(query.left), self.query(query.right)
        for first, second in zip(left, right, strict=True):
            state = self._merged(first, second)
            if state.strength == CONFLICT and not (query.op == "union" and query.all):
                raise self._implicit(state)
            columns.append(_implied(state.settled, first.span))
        return columns

    def _values(self, query: Values) -> list[State]:
        columns = [_NOTHING] * len(query.columns)
        for row in query.rows:
            for number, cell in enumerate(row):
                if cell is not None:  # DEFAULT
                    columns[number] = self._merged(columns[number], self.expr(cell))
        return [_implied(state.settled, state.span) for state in columns]

    # --- expressions ------------------------------------------------------------------------------------

    def expr(self, node: Expr) -> State:
        """Return what is known of an expression's collation, having looked at all of it."""
        special = _SPECIAL.get(type(node))
        if special is not None:
            found: State = special(self, node)
            return found
        below = _NOTHING
        for child in children(node):
            if isinstance(child, Expr):
                below = self._merged(below, self.expr(child))
            elif isinstance(child, SortBy):
                self._sorted(child)
            else:
                self.visit(child)
        self._check_use(node, below)
        return self._result(node, below)

    def _result(self, node: Expr, below: State) -> State:
        """Return the state of a node whose operands have ``below``: theirs, else that of its type."""
        own = type_collation(node.type, self.catalog)
        if not own or below.strength > NONE:
            return below if own else _NOTHING
        return _implied(own, location(node))

    def _check_use(self, node: Expr, below: State) -> None:
        """Raise 42P22 where an operator or function needs a collation that its operands do not settle."""
        if isinstance(node, FuncExpr) and node.proc == COLLATION_FOR:
            self.names[id(node)] = self._collation_for(node.args[0], below)
            return
        if below.settled or (use := _use(node)) is None:
            return
        if any(type_collation(e.type, self.catalog) for e in children(node) if isinstance(e, Expr)):
            raise _undetermined(use)

    def _collation_for(self, arg: Expr, state: State) -> str | None:
        if arg.type.oid != UNKNOWN and not type_collation(arg.type, self.catalog):
            raise SqlError("42804", f"collations are not supported by type {format_type(arg.type.oid)}")
        return shown_collation(state.settled, self.catalog, self.path) if state.settled else None

    def _var(self, node: Var) -> State:
        known: dict[int, int] = {}
        if node.level < len(self.levels) and 0 <= node.range < len(self.levels[-1 - node.level].ranges):
            known = self.levels[-1 - node.level].ranges[node.range]
        found = known.get(node.attnum)
        if found is None:
            found = type_collation(node.type, self.catalog)
        return _implied(found, node.span)

    def _leaf(self, node: Expr) -> State:
        return _implied(type_collation(node.type, self.catalog), node.span)

    def _collate(self, node: CollateExpr) -> State:
        self.expr(node.arg)
        return State(EXPLICIT, node.collation, node.span)

    def _field(self, node: FieldSelect) -> State:
        self.expr(node.arg)
        composed = node.arg.arg if isinstance(node.arg, DecomposeRow) else node.arg
        row = self.catalog.row_type(base_oid(composed.type.oid))
        if row is not None:
            return _implied(collation_of(row.live[node.index]), location(node))
        return _implied(type_collation(node.type, self.catalog), location(node))

    def _domain(self, node: CoerceToDomain) -> State:
        state = self.expr(node.arg)
        own = type_collation(SqlType(node.domain), self.catalog)
        if own in (0, DEFAULT_COLLATION):
            return self._result(node, state)
        return _implied(own, location(node))

    def _row(self, node: RowExpr) -> State:
        for item in node.fields:
            self.expr(item)
        return _NOTHING

    def _row_compare(self, node: RowCompare) -> State:
        for left, right in zip(node.lefts, node.rights, strict=True):
            self._compared(self._merged(self.expr(left), self.expr(right)), left.type)
        return _NOTHING

    def _compared(self, state: State, type_: SqlType) -> None:
        if not state.settled and type_collation(type_, self.catalog):
            raise _undetermined("string comparison")

    def _case(self, node: CaseExpr) -> State:
        below = _NOTHING
        for arm in node.whens:
            self.expr(arm.condition)
            below = self._merged(below, self.expr(arm.result))
        return self._result(node, self._merged(below, self.expr(node.default)))

    def _array_coerce(self, node: ArrayCoerce) -> State:
        return self._result(node, self.expr(node.arg))

    def _sub_select(self, node: SubLink) -> State:
        columns = self.query(node.query)
        for left, column in zip(node.lefts, columns, strict=False):
            self._compared(self._merged(self.expr(left), _implied(column.settled, column.span)), left.type)
        if node.kind in (SubLinkKind.SCALAR, SubLinkKind.ARRAY) and type_collation(node.type, self.catalog):
            return _implied(columns[0].settled, node.span)
        return _NOTHING

    def _merged(self, one: State, other: State) -> State:
        """Return what two operands say together. Raises SqlError 42P21 for explicit collations that differ."""
        if other.strength > one.strength:
            return other
        if other.strength < one.strength or one.collation == other.collation or one.strength == CONFLICT:
            return one
        if one.strength == EXPLICIT:
            raise self._mismatch("explicit", one.collation, other.collation, other.span)
        if DEFAULT_COLLATION in (one.collation, other.collation):
            return other if one.collation == DEFAULT_COLLATION else one
        return State(CONFLICT, one.collation, one.span, other.collation, other.span)

    def _implicit(self, state: State) -> SqlError:
        return self._mismatch("implicit", state.collation, state.other, state.other_span, _CHOOSE)

    def _mismatch(
        self, how: str, one: int, other: int, span: Span | None, hint: str | None = None
    ) -> SqlError:
        names = f'"{name_of(one, self.catalog)}" and "{name_of(other, self.catalog)}"'
        return SqlError("42P21", f"collation mismatch between {how} collations {names}", hint=hint, span=span)

    def _aggregate(self, node: Aggregate | WindowFunc) -> State:
        below = _NOTHING
        for arg in node.args:
            below = self._merged(below, self.expr(arg))
        if isinstance(node, Aggregate):
            for arg in node.direct:
                below = self._merged(below, self.expr(arg))
            for item in node.order:
                state = self._sorted(item)
                if not node.args:  # WITHIN GROUP: what is sorted is what it is called with
                    below = self._merged(below, state)
            if node.distinct and node.args:
                self._ordered(below, node.args[0].type)
        if node.filter is not None:
            self.expr(node.filter)
        return self._result(node, below)


_SPECIAL: Final[dict[type, Any]] = {
    Var: Derivation._var,
    Const: Derivation._leaf,
    CollateExpr: Derivation._collate,
    FieldSelect: Derivation._field,
    CoerceToDomain: Derivation._domain,
    RowExpr: Derivation._row,
    RowCompare: Derivation._row_compare,
    CaseExpr: Derivation._case,
    ArrayCoerce: Derivation._array_coerce,
    SubLink: Derivation._sub_select,
    Aggregate: Derivation._aggregate,
    WindowFunc: Derivation._aggregate,
}


def _implied(collation: int, span: Span | None) -> State:
    return State(IMPLICIT, collation, span) if collation else State(span=span)


def _undetermined(use: str) -> SqlError:
    return SqlError("42P22", f"could not determine which collation to use for {use}", hint=COLLATE_HINT)


# --- what needs a collation --------------------------------------------------------------------------

_COMPARISONS: Final = frozenset(("=", "<>", "<", "<=", ">", ">="))
_OPERATORS: Final = {
    **dict.fromkeys(_COMPARISONS, "string comparison"),
    **dict.fromkeys(("~", "!~", "~*", "!~*"), "regular expression"),
    **dict.fromkeys(("~~*", "!~~*"), "ILIKE"),
}
_FUNCTIONS: Final = {
    **{name: f"{name}() function" for name in ("upper", "lower", "initcap")},
    **dict.fromkeys(
        ("regexp_match", "regexp_matches", "regexp_replace", "regexp_split_to_array", "regexp_split_to_table",
         "regexp_count", "regexp_instr", "regexp_like", "regexp_substr"),
        "regular expression",
    ),
    **dict.fromkeys(
        ("position", "strpos", "replace", "split_part", "string_to_array", "string_to_table", "array_position",
         "array_positions", "array_remove", "array_replace"),
        "string comparison",
    ),
}  # fmt: skip


def _use(node: Expr) -> str | None:
    """Return what an expression needs a collation for, None for nothing."""
    if isinstance(node, OpExpr | ScalarArrayOp):
        return _OPERATORS.get(facts().operators[node.op].name)
    if isinstance(node, DistinctExpr | NullIf | MinMaxExpr):
        return "string comparison"
    if isinstance(node, FuncExpr) and node.proc in facts().procs:
        return _FUNCTIONS.get(facts().procs[node.proc].name)
    return None


# --- what is asked of a derivation -------------------------------------------------------------------


def query_collations(query: QueryExpr, catalog: Catalog) -> list[int]:
    """Return the collation of each column of a query, 0 for none. Raises SqlError 42P21, 42P22, 42804."""
    return [state.settled for state in Derivation(catalog).query(query)]


def expr_collation(expr: Expr, ranges: Sequence[Range | RelationDef], catalog: Catalog) -> int:
    """Return the collation of an expression of no query, over these ranges, 0 for none. Raises as
    ``query_collations``.
    """
    return Derivation(catalog).over(ranges, expr).settled


def without_collate(expr: Expr) -> Expr:
    """Return an expression without the COLLATE around it."""
    while isinstance(expr, CollateExpr):
        expr = expr.arg
    return expr


def without_collations(node: object) -> Any:
    """Return a tree without COLLATE: as executors see it, and as keys of indexes are compared with it."""
    node = replace_children(node, without_collations)
    return node.arg if isinstance(node, CollateExpr) else node


def settled(node: object, catalog: Catalog, path: Sequence[str]) -> Any:
    """Return a statement that is about to run without COLLATE, ``pg_collation_for`` answered for ``path``.
    Raises as ``query_collations``.
    """
    derivation = Derivation(catalog, path)
    derivation.visit(node)
    return _answered(node, derivation.names)


def _answered(node: Any, names: dict[int, str | None]) -> Any:
    if id(node) in names:
        return Const(type=SqlType(TEXT), value=names[id(node)], span=node.span)
    node = replace_children(node, lambda child: _answered(child, names))
    return node.arg if isinstance(node, CollateExpr) else node
