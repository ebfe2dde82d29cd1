"""Name resolution: what a column or table name means at one place of one query.

A ``Scope`` is one query level. Its ``ranges`` become the query's ranges; its ``namespace`` says what names can
see right now, which is not the same: a JOIN with USING hides its inputs' columns behind merged ones, an
aliased JOIN hides its inputs altogether, and FROM items to the left are visible to LATERAL ones only.

    SELECT x FROM a JOIN b USING (x) WHERE ...        scope.ranges     [a, b]
                                                      scope.namespace  [join x,...; a and b by table name only]

An ``Item`` is one entry of the namespace. Its columns are expressions at level 0 (a Var, or what a merged column
computes); asked for from ``n`` levels further in they are shifted. ``Scope.used`` remembers which attributes
of a relation were named, so that executors read no more.

Promises: PostgreSQL's errors, wording and hints: 42703, 42P01, 42702, 42712, 42P10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from planner import ast
from planner.base.errors import JoinSpan, Span, SqlError
from planner.catalog import RelationDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.conversion.composite import compose
from planner.facts import CID, OID, RECORD, TID, XID
from planner.query import (
    ALIASED,
    CMAX,
    CMIN,
    CTID,
    PLAIN,
    TABLEOID,
    XMAX,
    XMIN,
    Cte,
    Expr,
    OutputColumn,
    QueryBase,
    Range,
    RangeColumn,
    RelationRange,
    RowExpr,
    Var,
    WindowFunc,
    Written,
)
from planner.query.rewrite import shift_levels
from planner.query.walk import children, walk
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.bind.context import BindContext

SYSTEM_COLUMNS: dict[str, tuple[int, SqlType]] = {
    "ctid": (CTID, SqlType(TID)),
    "xmin": (XMIN, SqlType(XID)),
    "cmin": (CMIN, SqlType(CID)),
    "xmax": (XMAX, SqlType(XID)),
    "cmax": (CMAX, SqlType(CID)),
    "tableoid": (TABLEOID, SqlType(OID)),
}

Origin: TypeAlias = tuple[
    int, int
]  # (relation oid, SQL's number of the column) a column comes from, or (0, 0)
NO_ORIGIN: Origin = (0, 0)
Mark: TypeAlias = tuple[int, int]  # the number of a join, and the place of a column of it

_AMBIGUOUS = -1


def index_names(names: Iterable[str]) -> dict[str, int]:
    """Return name -> position, -1 for names that occur more than once."""
    found: dict[str, int] = {}
    for position, name in enumerate(names):
        found[name] = _AMBIGUOUS if name in found else position
    return found


@dataclass(slots=True, eq=False)
class Item:
    """A namespace entry: a range, or a join over ranges.

    ``range`` is its index in ``Scope.ranges`` (-1 for joins, whose ``exprs`` hold the column expressions).
    ``by_table``/``by_column``: visible as ``name.x`` / as bare ``x``. ``lateral_only``: visible to LATERAL
    items alone, while FROM is still being read; ``lateral_ok``: and legally so. ``scalar``: one function that
    returns no row type, so its name means its only column; ``row``: the composite type that its rows are of,
    where no relation says, and ``domain`` the domain over that which they are declared as, 0 for none.
    ``join``: the number of a join, ``marks`` those of its columns that are named by their place in a join
    (``planner.base.errors.JoinSpan``). ``named``, of a view that is written through: is told the numbers of
    the columns that the statement names. ``unlisted``: columns that have names, but that ``*`` does not stand
    for: those that SEARCH and CYCLE add, in the recursive term itself. ``stored``: its rows are stored ones,
    which have system columns; those that ``excluded`` stands for are none yet.
    """

    name: str
    names: Sequence[str]
    index: dict[str, int]
    range: int = -1
    columns: Sequence[RangeColumn] = ()
    exprs: Sequence[Expr] = ()
    relation: RelationDef | None = None
    aliased: bool = False
    by_table: bool = True
    by_column: bool = True
    lateral_only: bool = False
    lateral_ok: bool = True
    scalar: bool = False
    row: int = 0
    domain: int = 0
    join: int = 0
    marks: Sequence[Mark | None] = ()
    named: set[int] | None = None
    unlisted: Sequence[RangeColumn] = ()
    stored: bool = True

    def expr(self, scope: Scope, position: int, level: int, span: Span | None) -> Expr:
        """Return column ``position`` as seen ``level`` levels further in than ``scope``."""
        if self.range >= 0:
            column = self.columns[position]
            scope.use(self.range, column.attnum)
            return Var(
                type=column.type,
                range=self.range,
                attnum=column.attnum,
                level=level,
                name=column.name,
                span=span,
            )
        if self.named is not None:
            self.named.add(position + 1)
        expr = self.exprs[position]
        mark = self.marks[position] if self.marks else None
        if mark is not None and span is not None:
            span = JoinSpan.of(span, *mark)
        if isinstance(expr, Var):
            scope.use(expr.range, expr.attnum)
            return Var(
                type=expr.type,
                range=expr.range,
                attnum=expr.attnum,
                level=level,
                name=expr.name,
                span=span,
            )
        scope.use_all(expr)
        return replace(shift_levels(expr, level), span=span)


@dataclass(slots=True, eq=False)
class CteEntry:
    """A WITH item a name may mean. ``recursive`` while its own recursive term is being bound.

    ``hashable`` False: a recursive UNION whose rows cannot be told apart, which is refused where it is read.
    ``unlisted``: as in Item. ``returns`` False: it changes data and has no rows.
    """

    name: str
    columns: tuple[OutputColumn, ...]
    unlisted: tuple[OutputColumn, ...] = ()
    recursive: bool = False
    references: int = 0
    origins: tuple[Origin, ...] = ()
    hashable: bool = True
    returns: bool = True


@dataclass(slots=True, eq=False)
class Scope:
    """One query level while it is bound; see the module.

    ``clause`` names what is being bound, for rules such as "no aggregates in WHERE". ``aggregates``,
    ``window_calls`` and ``set_returning`` tell what was found at this level.
    """

    context: BindContext
    parent: Scope | None = None
    clause: str = ""
    ranges: list[Range] = field(default_factory=list)
    namespace: list[Item] = field(default_factory=list)
    origins: list[tuple[Origin, ...]] = field(default_factory=list)
    used: list[set[int]] = field(default_factory=list)
    ctes: dict[str, CteEntry] = field(default_factory=dict)
    bound_ctes: list[Cte] = field(default_factory=list)
    future_ctes: set[str] = field(default_factory=set)
    in_recursive: bool = False
    lateral_active: bool = False
    aggregates: bool = False
    window_calls: bool = False
    set_returning: bool = False
    set_span: Span | None = None
    in_aggregate: str = ""
    joins: int = 0
    windows: list[Any] = field(default_factory=list)
    window_names: dict[str, int] = field(default_factory=dict)
    grouping_calls: list[Expr] = field(default_factory=list)

    # --- ranges ---------------------------------------------------------------------------------

    def add_range(self, made: Range, origins: Sequence[Origin] | None = None) -> int:
        """Append a range; returns its index."""
        self.ranges.append(made)
        self.origins.append(tuple(origins) if origins is not None else (NO_ORIGIN,) * len(made.columns))
        self.used.append(set())
        return len(self.ranges) - 1

    def item(self, index: int, *, relation: RelationDef | None = None, aliased: bool = False) -> Item:
        """Return the namespace entry of a range."""
        made = self.ranges[index]
        names = [column.name for column in made.columns]
        return Item(
            name=made.alias,
            names=names,
            index=index_names(names),
            range=index,
            columns=made.columns,
            relation=relation,
            aliased=aliased,
        )

    def use(self, range_: int, attnum: int) -> None:
        """Note that an attribute of a range is read."""
        if range_ >= 0:
            self.used[range_].add(attnum)

    def use_all(self, expr: Expr) -> None:
        """Note every Var of this level in ``expr``."""
        for node in walk(expr):
            if isinstance(node, Var) and node.level == 0:
                self.use(node.range, node.attnum)

    def finished_ranges(self) -> tuple[Range, ...]:
        """Return the ranges with what was used of each relation."""
        return tuple(
            [
                replace(made, used=frozenset(self.used[i])) if isinstance(made, RelationRange) else made
                for i, made in enumerate(self.ranges)
            ]
        )

    def add_namespace(self, items: Iterable[Item]) -> None:
        """Make items visible; raises 42712 for a table name used twice."""
        for item in items:
            check_names(self.namespace, [item])
            self.namespace.append(item)

    # --- levels ---------------------------------------------------------------------------------

    def levels(self) -> Iterator[tuple[int, Scope]]:
        """Yield (level, scope) from this one outwards."""
        scope: Scope | None = self
        level = 0
        while scope is not None:
            yield level, scope
            scope = scope.parent
            level += 1

    def at(self, level: int) -> Scope:
        """Return the scope ``level`` levels out."""
        scope = self
        for _ in range(level):
            if scope.parent is None:
                raise LookupError(f"no query level {level}")
            scope = scope.parent
        return scope

    def visible(self) -> Iterator[Item]:
        """Yield the entries names may refer to now."""
        for item in self.namespace:
            if not item.lateral_only or self.lateral_active:
                yield item

    # --- columns --------------------------------------------------------------------------------

    def find_column(self, name: str, span: Span | None, *, local: bool = False) -> Expr | None:
        """Return what a bare column name means, innermost level first; None if nothing does.

        Raises SqlError 42702 when two visible columns of one level have the name, 42P10 for an illegal
        lateral reference.
        """
        for level, scope in self.levels():
            found: Expr | None = None
            for item in scope.namespace:
                if not item.by_column or (item.lateral_only and not scope.lateral_active):
                    continue
                position = item.index.get(name)
                if position is None:
                    continue
                if position == _AMBIGUOUS or found is not None:
                    raise SqlError("42702", f'column reference "{name}" is ambiguous', span=span)
                _check_lateral(item, span)
                found = item.expr(scope, position, level, span)
            if found is None:
                for item in scope.namespace:
                    if item.by_column and (not item.lateral_only or scope.lateral_active):
                        system = self._system_column(item, name, scope, level, span)
                        if system is None:
                            continue
                        if found is not None:
                            raise SqlError("42702", f'column reference "{name}" is ambiguous', span=span)
                        found = system
            if found is not None:
                return found
            if local:
                return None
        return None

    def _system_column(
        self, item: Item, name: str, scope: Scope, level: int, span: Span | None
    ) -> Expr | None:
        """Return what a name means that is none of the entry's listed columns."""
        for column in item.unlisted:
            if column.name == name:
                return Var(
                    type=column.type, range=item.range, attnum=column.attnum, level=level, name=name, span=span
                )  # fmt: skip
        if item.relation is None or item.range < 0 or not item.stored:
            return None
        system = SYSTEM_COLUMNS.get(name)
        if system is None or item.relation.kind == "v":
            return None
        attnum, type_ = system
        scope.use(item.range, attnum)
        return Var(type=type_, range=item.range, attnum=attnum, level=level, name=name, span=span)

    def find_item(self, schema: str, name: str, span: Span | None = None) -> tuple[int, Scope, Item] | None:
        """Return the entry a table name means: (level, scope, item), or None. Raises 42P09 (ambiguous)."""
        for level, scope in self.levels():
            found: Item | None = None
            for item in scope.visible():
                if not item.by_table or item.name != name:
                    continue
                if schema:
                    relation = item.relation
                    if relation is None or item.aliased or relation.schema != schema:
                        continue
                if found is not None:
                    raise SqlError("42P09", f'table reference "{name}" is ambiguous', span=span)
                _check_lateral(item, span)
                found = item
            if found is not None:
                return level, scope, found
        return None

    def item_column(self, level: int, scope: Scope, item: Item, name: str, span: Span | None) -> Expr | None:
        """Return column ``name`` of an entry, system columns included, or None. Raises 42702."""
        position = item.index.get(name)
        if position == _AMBIGUOUS:
            raise SqlError("42702", f'column reference "{name}" is ambiguous', span=span)
        if position is not None:
            return item.expr(scope, position, level, span)
        return self._system_column(item, name, scope, level, span)

    def whole_row(self, level: int, scope: Scope, item: Item, span: Span | None) -> Expr:
        """Return an entry as one value: Var of attnum 0, of a table's or view's type; for joins a RowExpr of
        its columns.

        A function that returns a scalar stands for that scalar, as in ``SELECT e FROM jsonb_array_elements(...) e``.
        """
        if item.scalar:
            return item.expr(scope, 0, level, span)
        if item.range >= 0:
            scope.use(item.range, 0)
            row = Var(
                type=SqlType(RECORD),
                range=item.range,
                attnum=0,
                level=level,
                name=item.name,
                span=span,
            )
            relation = item.relation
            if relation is not None and relation.kind in ROW_TYPED:
                made = self.context.env.row_type(relation.row_type)
            else:
                made = self.context.env.row_type(item.row) if item.row else None
            if made is None or len(made.live) != len(item.names):
                self.context.env.whole_rows[id(row)] = row, lambda: _columns_of(level, scope, item, span)
                return row
            composed = compose(row, made, explicit=False, span=span)
            # the rows that a function returns are of its type; of a table's the alias names the columns anew
            named = relation is None and composed.names != tuple(item.names)
            type_ = SqlType(item.domain) if item.domain else composed.type
            return replace(composed, named=named, type=type_) if named or item.domain else composed
        return _columns_of(level, scope, item, span)

    def find_cte(self, name: str) -> tuple[int, CteEntry] | None:
        """Return (level, entry) of the WITH item a bare table name means."""
        for level, scope in self.levels():
            entry = scope.ctes.get(name)
            if entry is not None:
                return level, entry
        return None


def _columns_of(level: int, scope: Scope, item: Item, span: Span | None) -> RowExpr:
    """Return an entry's columns as a row."""
    fields = tuple([item.expr(scope, position, level, span) for position in range(len(item.names))])
    if item.join and span is not None:
        span = JoinSpan.of(span, item.join, -1)
    return RowExpr(type=SqlType(RECORD), fields=fields, names=tuple(item.names), span=span)


def _check_lateral(item: Item, span: Span | None) -> None:
    if item.lateral_only and not item.lateral_ok:
        raise SqlError(
            "42P10",
            f'invalid reference to FROM-clause entry for table "{item.name}"',
            detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
            span=span,
        )


def check_names(old: Iterable[Item], new: Iterable[Item]) -> None:
    """Raise 42712 when a table name of ``new`` is taken in ``old``.

    The same relation name from two schemas, both without alias, is no conflict.
    """
    seen = [item for item in old if item.by_table and item.name]
    for item in new:
        if not item.by_table or not item.name:
            continue
        for other in seen:
            if other.name != item.name:
                continue
            if (
                other.relation is not None
                and item.relation is not None
                and not other.aliased
                and not item.aliased
                and other.relation.oid != item.relation.oid
            ):
                continue
            raise SqlError("42712", f'table name "{item.name}" specified more than once')


# --- hints --------------------------------------------------------------------------------------

_MAX_FUZZY_DISTANCE = 3


def _distance(a: str, b: str) -> int:
    """Return the Levenshtein distance of two names."""
    if abs(len(a) - len(b)) > 2 * _MAX_FUZZY_DISTANCE:
        return abs(len(a) - len(b))
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = (
                row[j],
                min(row[j] + 1, row[j - 1] + 1, previous + (x != y)),
            )
    return row[-1]


@dataclass(slots=True)
class _Fuzzy:
    """The best one or two column names near a missing one."""

    distance: int = _MAX_FUZZY_DISTANCE + 1
    first: tuple[str, str] | None = None  # (table alias, column)
    second: tuple[str, str] | None = None

    def see(self, alias: str, actual: str, wanted: str, penalty: int) -> None:
        if penalty > self.distance or not actual:
            return
        distance = _distance(actual, wanted)
        if distance > len(wanted) // 2:
            return
        distance += penalty
        if distance < self.distance:
            self.distance, self.first, self.second = distance, (alias, actual), None
        elif distance == self.distance:
            if self.second is not None:
                self.first = self.second = None
                self.distance = distance - 1
            elif self.first is not None:
                self.second = (alias, actual)
            elif self.distance <= _MAX_FUZZY_DISTANCE:
                self.first = (alias, actual)


def missing_column(scope: Scope, table: str, name: str, span: Span | None) -> SqlError:
    """Return the 42703 error for a column nothing visible has, with PostgreSQL's hint."""
    shown = f"column {table}.{name} does not exist" if table else f'column "{name}" does not exist'
    fuzzy = _Fuzzy()
    for _, level in scope.levels():
        for made in level.ranges:
            penalty = _distance(table, made.alias) if table else 0
            exact = False
            for column in made.columns:
                if column.name == name and penalty == 0:
                    exact = True
                fuzzy.see(made.alias, column.name, name, penalty)
            if exact:
                hint = (
                    f'There is a column named "{name}" in table "{made.alias}", '
                    "but it cannot be referenced from this part of the query."
                )
                return SqlError("42703", shown, hint=hint, span=span)
    hint_text: str | None = None
    if fuzzy.first is not None:
        a, b = fuzzy.first
        hint_text = f'Perhaps you meant to reference the column "{a}.{b}"'
        if fuzzy.second is not None:
            c, d = fuzzy.second
            hint_text += f' or the column "{c}.{d}"'
        hint_text += "."
    return SqlError("42703", shown, hint=hint_text, span=span)


def missing_table(scope: Scope, schema: str, name: str, span: Span | None) -> SqlError:
    """Return the 42P01 error for a table name that is no FROM entry, with PostgreSQL's hints."""
    wanted = scope.context.catalog
    hidden: Range | None = None
    renamed: Range | None = None
    target = None
    for candidate in (schema,) if schema else scope.context.search_path:
        target = wanted.relation(candidate, name)
        if target is not None:
            break
    for _, level in scope.levels():
        for made in level.ranges:
            if made.alias == name:
                hidden = hidden or made
            if isinstance(made, RelationRange) and target is not None and made.oid == target.oid:
                renamed = renamed or made
    if hidden is None and renamed is not None and renamed.alias != name:
        return SqlError(
            "42P01",
            f'invalid reference to FROM-clause entry for table "{name}"',
            hint=f'Perhaps you meant to reference the table alias "{renamed.alias}".',
            span=span,
        )
    entry = hidden or renamed
    if entry is not None:
        return SqlError(
            "42P01",
            f'invalid reference to FROM-clause entry for table "{name}"',
            hint=f'There is an entry for table "{entry.alias}", '
            "but it cannot be referenced from this part of the query.",
            span=span,
        )
    return SqlError("42P01", f'missing FROM-clause entry for table "{name}"', span=span)


def window_call_in(expr: Expr) -> WindowFunc | None:
    """Return the first window function of an expression, if any; those of its sub-selects are not its own."""
    stack: list[object] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, WindowFunc):
            return node
        if not isinstance(node, QueryBase):
            stack.extend(reversed(children(node)))
    return None


def written_as(columns: Sequence[RangeColumn], alias: ast.Alias | None, only: bool = False) -> Written:
    """Return how an entry of FROM was written, whose columns are these before the alias renames them."""
    if alias is None:
        return ONLY if only else PLAIN
    if not alias.columns and not only:
        return ALIASED
    own = tuple([column.name for column in columns]) if alias.columns else ()
    return Written(aliased=True, named=len(alias.columns), own=own, only=only)


ONLY = Written(only=True)


def under_alias(
    columns: Sequence[RangeColumn], alias: ast.Alias | None, name: str, what: str = "table"
) -> tuple[RangeColumn, ...]:
    """Apply an alias's column names. Raises 42P10 when there are too many."""
    if alias is None or not alias.columns:
        return tuple(columns)
    if len(alias.columns) > len(columns):
        raise SqlError(
            "42P10",
            f'{what} "{name}" has {len(columns)} columns available but '
            f"{len(alias.columns)} columns specified",
        )
    return tuple(
        [
            replace(column, name=alias.columns[i]) if i < len(alias.columns) else column
            for i, column in enumerate(columns)
        ]
    )
