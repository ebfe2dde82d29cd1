"""Updatable views: INSERT, UPDATE and DELETE through a simple view become those of its base table.

    CREATE VIEW v AS SELECT a AS x, b + 1 AS y FROM t WHERE a > 0
    UPDATE v SET x = 5 WHERE y = 3       UPDATE t SET a = 5 WHERE a > 0 AND b + 1 = 3

What the statement calls columns of the view are expressions over the base table from the start
(``view_item``), so the executors see a statement on a table. What is special about it stays with it in
``ThroughViews``: whose rights count, and which conditions new rows have to keep (WITH CHECK OPTION). Which
views are simple is PostgreSQL's (manual, CREATE VIEW).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from planner import ast
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.query.guarding import guard_of
from planner.bind.query.select import bind_view
from planner.bind.scope import Item, Scope, index_names
from planner.bind.stored import stored_context
from planner.bind.stored.readers import as_view, is_barrier
from planner.catalog import Catalog, RelationDef
from planner.query import (
    Aggregate,
    BoolExpr,
    Expr,
    FuncExpr,
    QueryBase,
    QueryExpr,
    RangeRef,
    RelationRange,
    RowCheck,
    Select,
    SetOp,
    SubqueryRange,
    TargetUse,
    ThroughViews,
    Var,
    WindowFunc,
)
from planner.query.exprs import columns_named
from planner.query.rewrite import at_range, replace_children, shift_levels
from planner.query.walk import walk
from planner.types import SqlType

_BOOL = SqlType(16)
_VERBS = {
    "insert": ("insert into", "inserting into the view", "INSERT"),
    "update": ("update", "updating the view", "UPDATE"),
    "delete": ("delete from", "deleting from the view", "DELETE"),
}
_NO_COLUMN = "View columns that are not columns of their base relation are not updatable."
_SYSTEM_COLUMN = "View columns that refer to system columns are not updatable."
_WHOLE_ROW = "View columns that return whole-row references are not updatable."
_NO_CHANGE = "-"  # for which no view has triggers
_NO_TABLE = "Views that do not select from a single table or view are not automatically updatable."


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One view on the way: its columns and its own condition, as expressions over the base table (range 0).

    ``below``: which column of what the view is over each of its columns is, 0: none; ``reads``: those of them
    that its query names.
    """

    view: RelationDef
    exprs: tuple[Expr, ...]
    where: Expr | None
    below: tuple[int, ...] = ()
    reads: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewTarget:
    """A view that can be written through: its levels, outermost first, and its base table.

    ``base``: with the defaults that the views have for its columns in the place of its own, ``table``: with
    its own. ``named``: which columns of the first view the statement reads, gathered while it is bound
    (``Item.named``).
    """

    levels: tuple[Level, ...]
    base: RelationDef
    table: RelationDef
    named: set[int] = field(default_factory=set)

    @property
    def view(self) -> RelationDef:
        """The view that the statement names."""
        return self.levels[0].view

    @property
    def where(self) -> list[Expr]:
        """Return the conditions of all views."""
        return _conditions(self.levels)

    def behind(self, source: Select, where: Expr | None) -> Select:
        """Return the rows to change, ``source`` with the conditions of the views and ``where``, which is the
        statement's own.

        What a security_barrier view and those below it ask of a row is asked before anything else looks at
        it. Raises SqlError 0A000 where that cannot be.
        """
        first = next((at for at, level in enumerate(self.levels) if is_barrier(level.view)), len(self.levels))
        where = all_conditions([*_conditions(self.levels[:first]), *([] if where is None else [where])])
        border = all_conditions(_conditions(self.levels[first:]))
        if border is None:
            return replace(source, where=where)
        target = source.ranges[0]
        if not isinstance(target, RelationRange):
            raise not_supported(
                "a change through a security_barrier view of a view that has INSTEAD OF triggers"
            )
        ranges = (replace(target, guard=guard_of(self.table, border)), *source.ranges[1:])
        return replace(source, ranges=ranges, where=where)

    def with_own_defaults(self) -> RelationDef:
        """Return the base table as DEFAULT in an UPDATE means it: NULL where the view itself has no default,
        as in PostgreSQL.
        """
        own = {
            expr.attnum: column.default_sql
            for column, expr in zip(self.view.live, self.levels[0].exprs, strict=True)
            if isinstance(expr, Var)
        }
        columns = (c if c.generated else replace(c, default_sql=own.get(c.attnum)) for c in self.base.columns)
        return replace(self.base, columns=tuple(columns))

    def inserted_base(self, overriding: str) -> RelationDef:
        """Return the base table as DEFAULT in an INSERT means it: what OVERRIDING USER VALUE ignores is a
        view's default, too.
        """
        if overriding != "user":
            return self.base
        own = {c.attnum: c for c in self.table.columns if c.identity}
        return replace(self.base, columns=tuple(own.get(c.attnum, c) for c in self.base.columns))

    def refuse_inserted(self, attnums: Collection[int]) -> None:
        """Refuse INSERT of columns where a view has a default for one that is none of what is below it, and
        is not named either: 0A000.
        """
        wrong = _first_obstacle(self.levels, attnums, "insert", defaults=True)
        if wrong is not None:
            raise wrong

    def base_attnum(self, attnum: int, what: str) -> int:
        """Return the base table's column that a column of the view is. Raises SqlError 0A000 where it is none."""
        wrong = _first_obstacle(self.levels, (attnum,), what)
        if wrong is not None:
            raise wrong
        expr = self.levels[0].exprs[attnum - 1]
        if not isinstance(expr, Var):
            raise AssertionError(
                f"column {attnum} of an updatable view is {type(expr).__name__}, not a column"
            )
        return expr.attnum


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTarget:
    """A view that nothing can be done through: the views as far as they could be, and why not."""

    levels: tuple[Level, ...]
    what: str
    error: SqlError

    def refused(self, assigned: Collection[int] = ()) -> SqlError:
        """Return what a statement that assigns these columns is told: of a view's columns before what is
        below it is looked at.
        """
        return _first_obstacle(self.levels, assigned, self.what) or self.error


def _first_obstacle(
    levels: Sequence[Level], assigned: Collection[int], what: str, *, defaults: bool = False
) -> SqlError | None:
    """Return what is wrong with assigning columns of the first view, in the words of the view whose column is
    none of what is below.

    ``defaults``: columns for which a view has a default are assigned, too.
    """
    for level in levels:
        if not level.below:
            return None
        if defaults:
            assigned = {*assigned, *(c.attnum for c in level.view.live if c.default_sql is not None)}
        for attnum in sorted(assigned):
            if level.below[attnum - 1] <= 0:
                return SqlError(
                    "0A000",
                    f'cannot {_VERBS[what][0]} column "{level.view.column(attnum).name}" of view "{level.view.name}"',
                    detail=_obstacle(level.exprs[attnum - 1]),
                )
        assigned = [level.below[attnum - 1] for attnum in assigned]
    return None


def _conditions(levels: Sequence[Level]) -> list[Expr]:
    return [level.where for level in reversed(levels) if level.where is not None]


_NO_COLUMNS: Final = "Views that have no updatable columns are not automatically updatable."


def obstacle_to_check(query: QueryExpr) -> str | None:
    """As ``obstacle_of`` for a view WITH CHECK OPTION, some column of which has to be of its table."""
    why = obstacle_of(query)
    if why is not None or not isinstance(query, Select):
        return why
    return _NO_COLUMNS if all(_obstacle(t.expr) for t in query.targets if not t.junk) else None


def obstacle_of(query: QueryExpr) -> str | None:
    """Return why a view's query is not simple enough to be written through (PostgreSQL's words), None if it is."""
    if isinstance(query, SetOp):
        return "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable."
    if not isinstance(query, Select):
        return _NO_TABLE
    for found, words in (
        (query.distinct, "containing DISTINCT"),
        (query.group or query.grouping_sets is not None, "containing GROUP BY"),
        (query.having is not None, "containing HAVING"),
        (query.ctes, "containing WITH"),
        (query.limit is not None or query.offset is not None, "containing LIMIT or OFFSET"),
    ):
        if found:
            return f"Views {words} are not automatically updatable."
    for target in query.targets:
        for node in walk(target.expr):
            if isinstance(node, Aggregate) and node.level == 0:
                return "Views that return aggregate functions are not automatically updatable."
            if isinstance(node, WindowFunc):
                return "Views that return window functions are not automatically updatable."
            if isinstance(node, FuncExpr) and node.returns_set:
                return "Views that return set-returning functions are not automatically updatable."
    if len(query.from_) != 1 or not isinstance(query.from_[0], RangeRef):
        return _NO_TABLE
    source = query.ranges[query.from_[0].range]
    if isinstance(source, RelationRange) and source.sample is not None:
        return "Views containing TABLESAMPLE are not automatically updatable."
    if isinstance(source, RelationRange) and not source.virtual and not source.materialized:
        return None
    return None if isinstance(source, SubqueryRange) and source.view is not None else _NO_TABLE


def view_target(context: BindContext, view: RelationDef, what: str) -> ViewTarget | NoTarget:
    """Return how to ``insert``, ``update`` or ``delete`` through a view; 55000 where it is not automatically
    updatable, in PostgreSQL's words.
    """
    levels: list[Level] = []
    found = _levels(context, view, bind_view(context, view), levels, what[0])
    if isinstance(found, str):
        error = _not_updatable(levels[-1].view if levels else view, what, found)
        return NoTarget(levels=tuple(levels), what=what, error=error)
    if what != "delete" and all(_obstacle(expr) for expr in levels[0].exprs):
        return NoTarget(levels=(), what=what, error=_not_updatable(view, what, _NO_COLUMNS))
    base = found
    for level in reversed(levels):
        for column, expr in zip(level.view.live, level.exprs, strict=True):
            if column.default_sql is not None and isinstance(expr, Var) and expr.attnum > 0:
                changed = replace(base.column(expr.attnum), default_sql=column.default_sql)
                base = replace(
                    base, columns=tuple(changed if c.attnum == expr.attnum else c for c in base.columns)
                )
    return ViewTarget(levels=tuple(levels), base=base, table=found)


def _levels(
    context: BindContext, view: RelationDef, query: QueryExpr, levels: list[Level], letter: str
) -> RelationDef | str:
    """Add the levels of a view, outermost first; return the base table, or why there is none.

    A view below that has INSTEAD OF triggers for the change ``letter`` is as a table.
    """
    why = obstacle_of(query)
    if why is not None:
        levels.append(Level(view=view, exprs=(), where=None))
        return why
    if not isinstance(query, Select):
        raise AssertionError(f"an updatable view is {type(query).__name__}")
    if not isinstance(query.from_[0], RangeRef):
        raise AssertionError(f"an updatable view is of {type(query.from_[0]).__name__}, not of a range")
    number = query.from_[0].range
    source = query.ranges[number]
    shown = tuple([target.expr for target in query.targets if not target.junk])
    below = tuple(
        [e.attnum if isinstance(e, Var) and (e.range, e.level) == (number, 0) else 0 for e in shown]
    )
    at = len(levels)
    levels.append(Level(view=view, exprs=shown, where=None, below=below))
    inner: Sequence[Expr] | None = None
    if isinstance(source, SubqueryRange):
        if source.view is None:
            raise AssertionError("an updatable view is of a sub-query that is no view")
        lower = context.catalog.relation_by_oid(source.view[0])
        if lower is None:
            raise AssertionError(f"view {source.view[0]} is gone")
        if lower.has_instead(letter):
            base = lower
        else:
            base_or_why = _levels(context, lower, source.query, levels, letter)
            if isinstance(base_or_why, str):
                return base_or_why
            base = base_or_why
            inner = levels[at + 1].exprs
    else:
        if not isinstance(source, RelationRange):
            raise AssertionError(f"an updatable view is of {type(source).__name__}")
        found = context.catalog.relation_by_oid(source.oid)
        if found is None:
            raise AssertionError(f"relation {source.oid} is gone")
        base = found
        context.versions[base.oid] = base.version
        context.reads.add(base.oid)

    def own(expr: Expr) -> Expr:
        return as_view(expr, view.oid)

    levels[at] = Level(
        view=view,
        exprs=tuple(_over_base(own(expr), number, inner, 0) for expr in shown),
        where=None if query.where is None else _over_base(own(query.where), number, inner, 0),
        below=below,
        reads=columns_named(query, number),
    )
    return base


def _over_base(node: object, number: int, inner: Sequence[Expr] | None, depth: int) -> Any:
    """Return an expression over range ``number`` as one over range 0 of the base table; ``inner``: the view
    below's columns.
    """
    if isinstance(node, Var) and node.level == depth and node.range == number:
        if inner is None:
            return replace(node, range=0)
        return shift_levels(inner[node.attnum - 1], depth)
    deeper = depth + 1 if isinstance(node, QueryBase) else depth
    return replace_children(node, lambda child: _over_base(child, number, inner, deeper))


def _obstacle(expr: Expr) -> str | None:
    """Return why a column of a view cannot be assigned to, None if it can."""
    if not isinstance(expr, Var):
        return _NO_COLUMN
    if expr.attnum < 0:
        return _SYSTEM_COLUMN
    return _WHOLE_ROW if expr.attnum == 0 else None


def _not_updatable(view: RelationDef, what: str, why: str) -> SqlError:
    verb, doing, event = _VERBS[what]
    return SqlError(
        "55000",
        f'cannot {verb} view "{view.name}"',
        detail=why,
        hint=f"To enable {doing}, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule.",
    )


# --- names ------------------------------------------------------------------------------------------


def view_item(scope: Scope, target: ViewTarget, node: ast.TableRef, position: int, item: Item) -> Item:
    """Return the namespace entry of a view whose base table is range ``position`` and has the entry ``item``."""
    names = [column.name for column in target.view.live]
    if node.alias is not None and node.alias.columns:
        if len(node.alias.columns) > len(names):
            raise SqlError(
                "42P10",
                f'table "{item.name}" has {len(names)} columns available but {len(node.alias.columns)} columns specified',
                span=node.span,
            )
        names = [*node.alias.columns, *names[len(node.alias.columns) :]]
    exprs = tuple(at_range(expr, position) for expr in target.levels[0].exprs)
    return Item(
        name=item.name, names=names, index=index_names(names), exprs=exprs, aliased=item.aliased,
        named=target.named,
    )  # fmt: skip


def base_names(
    target: ViewTarget, nodes: Sequence[ast.TargetColumn], what: str
) -> tuple[ast.TargetColumn, ...]:
    """Return assigned columns of a view under the names of the base table. Raises SqlError 42703, 0A000."""
    by_name = {column.name: column for column in target.view.live}
    found: list[ast.TargetColumn] = []
    for node in nodes:
        column = by_name.get(node.name)
        if column is None:
            raise SqlError(
                "42703",
                f'column "{node.name}" of relation "{target.view.name}" does not exist',
                span=node.span,
            )
        attnum = target.base_attnum(column.attnum, what)
        found.append(replace(node, name=target.base.column(attnum).name))
    return tuple(found)


def with_base_names(target: ViewTarget, nodes: Sequence[ast.Assignment]) -> tuple[ast.Assignment, ...]:
    """Return a SET list under the names of the base table. Raises SqlError 42703, 0A000."""
    return tuple(replace(node, columns=base_names(target, node.columns, "update")) for node in nodes)


def assigned_of(target: ViewTarget, nodes: Sequence[ast.Assignment]) -> list[int]:
    """Return which columns of a view a SET list assigns, which has been looked at (``with_base_names``)."""
    by_name = {column.name: column.attnum for column in target.view.live}
    return [by_name[column.name] for node in nodes for column in node.columns]


def all_conditions(conditions: Sequence[Expr]) -> Expr | None:
    """Return the conjunction of conditions, None of none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return BoolExpr(type=_BOOL, kind="and", args=tuple(conditions))


# --- what remains of the views ----------------------------------------------------------------------


def through_views(
    target: ViewTarget, inserted: Collection[int] = (), updated: Collection[int] = ()
) -> ThroughViews:
    """Return what a statement through views has to keep to, once it is bound; columns that it assigns are the
    first view's.
    """
    use = TargetUse(
        oid=target.view.oid,
        inserted=frozenset(inserted),
        updated=frozenset(updated),
        read=frozenset(target.named) or None,
    )
    uses = [use]
    oids = [*(level.view.oid for level in target.levels[1:]), target.base.oid]
    for level, oid in zip(target.levels, oids, strict=True):
        use = TargetUse(
            oid=oid,
            inserted=frozenset(level.below[attnum - 1] for attnum in use.inserted),
            updated=frozenset(level.below[attnum - 1] for attnum in use.updated),
            read=None if use.read is None else level.reads,
        )
        uses.append(use)
    return ThroughViews(uses=tuple(uses))


def stored_checks(target: ViewTarget) -> tuple[RowCheck, ...]:
    """Return what WITH CHECK OPTION asks of rows that are stored through views: the innermost first."""
    checks: list[RowCheck] = []
    cascaded = False
    for level in target.levels:
        option = level.view.options.get("check_option", "").lower()
        cascaded = cascaded or option == "cascaded"
        if (option or cascaded) and level.where is not None:
            checks.insert(0, RowCheck(kind="stored", condition=level.where, view=level.view.name))
    return tuple(checks)


def conflict_checks(target: ViewTarget) -> tuple[RowCheck, ...]:
    """Return what a row that ON CONFLICT DO UPDATE meets has to be, to be seen through the views: the
    innermost first.
    """
    return tuple(
        RowCheck(kind="conflict", condition=level.where, view=level.view.name)
        for level in reversed(target.levels)
        if level.where is not None
    )


def updatable_columns(catalog: Catalog, view: RelationDef) -> frozenset[int] | None:
    """Return the columns of a view that can be assigned to, None where nothing can be done through it;
    triggers do not count.
    """
    context = stored_context(catalog, view.view_sql, view.view_path)
    levels: list[Level] = []
    if isinstance(_levels(context, view, bind_view(context, view), levels, _NO_CHANGE), str):
        return None
    return frozenset(at for at, expr in enumerate(levels[0].exprs, 1) if _obstacle(expr) is None)
