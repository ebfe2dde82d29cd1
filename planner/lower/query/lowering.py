"""Query tree to engine SQL, for both dialects.

    Select                         engine
      ranges, joins, WHERE           SELECT g, agg(...) FROM ... WHERE ... GROUP BY g            (rows aggregated)
      targets, HAVING, windows       SELECT e1 AS q1_1, ... FROM (above) AS s1 WHERE having
      DISTINCT, ORDER BY, LIMIT      SELECT q1_1 FROM (above) AS r2 ORDER BY key LIMIT n          (when needed)

Each range gets a generated alias, each output column a generated name, so no identifier of the user reaches an
engine. A grouped query always aggregates in an inner SELECT: the outer one then sees groups and aggregates as
plain columns, and HAVING, windows and correlated sub-selects need no rules of their own.

A relation prints as a placeholder table ``hf_rel_<n>``; the executor puts what one snapshot sees in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pgwire.give_way import give_way
from planner import facts as f
from planner import functions as builtins
from planner import query as q
from planner.base.errors import SqlError, not_supported
from planner.lower.decorrelate import unnest
from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.correlations import is_plain_in
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.from_items import over, ranges_in
from planner.lower.kit.value import Fixed, Floating, Num, Val, declared_num, declared_padding
from planner.lower.query import aggregation, callouts, finishing, functions, lifting, sublinks, windows
from planner.lower.query import expr as expressions
from planner.lower.query.samples import tested
from planner.lower.query.scope import Column, CteBinding, RangeBinding, RelationUse, Result, Scope
from planner.query.exprs import free_levels
from planner.query.rewrite import shift_levels
from planner.query.walk import walk
from planner.statements.classify import is_volatile
from planner.types import SqlType


@dataclass(slots=True)
class _Body:
    """A query before ORDER BY and LIMIT; ``junk`` marks columns to drop at the end."""

    node: Node
    columns: list[Column]
    junk: list[bool]
    plain: bool  # ORDER BY may be added to the node itself
    places: dict[int, int] | None = None  # target -> column, where they differ


@dataclass(frozen=True, slots=True)
class Finish:
    """The part of the outermost select list that Python computes: Var(range=0, attnum=i) is engine column i."""

    exprs: tuple[q.Expr, ...]


class Lowering:
    """One lowering of one statement.

    ``values``: the parameters' values where the dialect writes them as literals (Spark), else None.
    """

    def __init__(self, dialect: Dialect, values: Sequence[object] | None = None) -> None:
        """Start with no query level open."""
        self.d = dialect
        self.values = values
        self.registry = builtins.load()
        self.scopes: list[Scope] = []
        self.relations: list[RelationUse] = []
        self.finish: Finish | None = None
        self.callouts: list[callouts.Callout] = []
        self.calls_out = dialect.calls_python
        self._placeholders: list[dict[int, Val]] = []
        # The outermost query level that a column was looked up in since ``correlated`` last began.
        self._reached = 0

    @contextmanager
    def without_callouts(self) -> Iterator[None]:
        """Refuse what the engine itself cannot compute, inside the block."""
        before, self.calls_out = self.calls_out, False
        try:
            yield
        finally:
            self.calls_out = before

    # -- names -------------------------------------------------------------------------------------

    def expr(self, expr: q.Expr) -> Val:
        """Return a lowered expression of the innermost query level."""
        return expressions.lower(self, expr)

    def substituted(self, expr: q.Expr) -> Val | None:
        """Return the column that already holds ``expr`` after grouping, if there is one."""
        if isinstance(expr, q.Aggregate | q.Var) and expr.level:
            scope = self._scope(expr.level)
            if scope.known is None:
                return None
            return scope.known.get(shift_levels(expr, -expr.level))
        if not self.scopes:
            return None
        if isinstance(expr, q.SubLink) and expr in self.scopes[-1].lifted:
            return self.scopes[-1].lifted[expr]
        known = self.scopes[-1].known
        return None if known is None else known.get(expr)

    def _scope(self, level: int) -> Scope:
        self._reached = min(self._reached, len(self.scopes) - 1 - level)
        return self.scopes[-1 - level]

    def correlated(self, query: q.QueryExpr) -> tuple[Result, bool]:
        """Return a lowered sub-query, and whether it depends on the levels around it."""
        outside, self._reached = self._reached, len(self.scopes)
        result = self.query(query)
        depends = self._reached < len(self.scopes)
        self._reached = min(outside, self._reached)
        return result, depends

    def variable(self, var: q.Var) -> Val:
        """Return the value of a column reference."""
        if var.range < 0:
            return self._placeholders[-1][var.attnum]
        scope = self._scope(var.level)
        if scope.known is not None:
            raise not_supported("a column outside the grouping in this executor", span=var.span)
        binding = scope.ranges[var.range]
        value = binding.values.get(var.attnum)
        if value is None:
            raise not_supported(f"column {var.name or var.attnum} in this executor", span=var.span)
        use = binding.use
        if use is not None:
            if var.attnum == q.ROW_ID:
                use.row_id = True
            elif var.attnum == q.TABLEOID:
                use.table = len(use.tables) > 1
            elif var.attnum > 0:
                use.columns.setdefault(var.attnum, (value.type, value.num))
        return value

    @contextmanager
    def placeholder_row(self, columns: Sequence[Val]) -> Iterator[None]:
        """Let Var(range=-1, attnum=i) mean ``columns[i - 1]`` inside the block."""
        self._placeholders.append({i + 1: value for i, value in enumerate(columns)})
        try:
            yield
        finally:
            self._placeholders.pop()

    # -- queries -------------------------------------------------------------------------------------

    def query(self, query: q.QueryExpr) -> Result:
        """Return a lowered query, as a new level inside the open ones."""
        scope = Scope()
        self.scopes.append(scope)
        try:
            items = [self._cte(cte, scope) for cte in query.ctes]
            match query:
                case q.Select():
                    shows = len(self.scopes) == 1 or query.limit is not None or query.offset is not None
                    if shows and query.order != query.row_order:
                        query = replace(query, order=query.row_order)
                    body = self._select(query, scope)
                case q.SetOp():
                    body = self._set_operation(query)
                case q.Values():
                    body = self._values(query)
            result = self._finish(query, body)
        finally:
            self.scopes.pop()
        if items:
            recursive = any(cte.recursive for cte in query.ctes)
            b.with_(result.node, items, recursive)
        return result

    def _cte(self, cte: q.Cte, scope: Scope) -> tuple[str, Sequence[str], Node, bool | None]:
        label = self.d.fresh("w")
        if not cte.recursive:
            result = self.query(cte.query)
            scope.ctes[cte.name] = CteBinding(label, result.columns)
            # Never NOT MATERIALIZED: it would scan files once for each reference, uncounted.
            materialized = (cte.materialized or None) if self.d.name == "duckdb" else None
            return label, [], result.node, materialized
        return self._recursive(cte, scope, label)

    def _recursive(
        self, cte: q.Cte, scope: Scope, label: str
    ) -> tuple[str, Sequence[str], Node, bool | None]:
        body = cte.query
        if any(isinstance(node, q.Cte) and node.recursive for node in walk(body)):
            raise not_supported("a recursive WITH inside another in this executor")  # it may never end
        if (
            not isinstance(body, q.SetOp)
            or body.op != "union"
            or body.order
            or body.limit
            or body.offset
            or body.ctes
        ):
            raise not_supported("this form of recursive WITH in this executor")
        self.scopes.append(Scope())
        try:
            first = self.query(body.left)
            columns = tuple(
                Column(f"{label}_{i + 1}", o.type, declared_num(o.type), declared_padding(o.type))
                for i, o in enumerate(body.columns)
            )
            scope.ctes[cte.name] = CteBinding(label, columns)
            second = self.query(body.right)
        finally:
            self.scopes.pop()
        plain = [
            expressions.is_plain_for_equality(Val(b.null(), c.type, c.num, padded=c.padded)) for c in columns
        ]
        if not body.all and not all(plain):
            raise not_supported("recursive UNION over these types in this executor")
        nodes = [self._converted(part, columns) for part in (first, second)]
        return label, [c.name for c in columns], b.set_operation("union", *nodes, keep_all=body.all), None

    def _converted(self, part: Result, columns: Sequence[Column]) -> Node:
        """Return the query with its columns in the wanted forms and types."""
        label = self.d.fresh("r")
        targets = []
        for value, wanted in zip(part.values(label), columns, strict=True):
            give_way()
            node = value.node
            if isinstance(wanted.num, Floating):
                node = numeric.to_floating(self.d, value)
            elif value.num != wanted.num:
                node = numeric.coerce(self.d, value, wanted.num).node if wanted.num is not None else node
            targets.append(b.alias(b.cast(node, self.d.engine_type(wanted.type, wanted.num)), wanted.name))
        return b.select(targets, source=b.derived(part.node, label))

    # -- SELECT --------------------------------------------------------------------------------------

    def _select(self, select: q.Select, scope: Scope) -> _Body:
        if select.row_marks:
            raise not_supported("a locking clause in this executor")
        if len(self.scopes) == 1:
            select = finishing.open_averages(select)
        source = self._from(select, scope)
        where = None if select.where is None else self.condition(select.where)
        if select.grouped:
            source, where = aggregation.aggregate(self, select, scope, source, where), None
            scope.lifted.clear()  # they were columns of the rows that are aggregated
            if select.having is not None:
                alone = [lift for lift in self._lifts(select.having) if not lift.keys]
                source = lifting.join_lifted(self, source, alone, scope.lifted)
                where = self.condition(select.having)
        scope.windows = select.windows
        return self._project(select, source, where)

    def _project(self, select: q.Select, source: Node | None, where: Node | None) -> _Body:
        # what OFFSET passes over is evaluated, too, so Python cannot do it behind the engine where that shows
        late = select.offset is None or not any(is_volatile(target.expr) for target in select.targets)
        if (
            len(self.scopes) == 1
            and select.distinct is False
            and select.targets
            and not select.with_ties
            and late
        ):
            return self._project_top(select, source, where)
        return self._project_values(select, [self.expr(t.expr) for t in select.targets], source, where)

    def _project_values(
        self, select: q.Select, values: Sequence[Val], source: Node | None, where: Node | None
    ) -> _Body:
        prefix = self.d.fresh("q")
        targets: list[Node] = []
        columns: list[Column] = []
        for value in values:
            self._add_target(value, prefix, targets, columns)
        junk = [target.junk for target in select.targets]
        if not targets:  # SELECT FROM t: rows without columns
            if len(self.scopes) == 1:
                raise not_supported("a select list without columns in this executor")
            targets.append(b.alias(b.boolean(True), prefix))
        if select.distinct is False:
            return _Body(b.select(targets, source=source, where=where), columns, junk, True)
        inner = Result(b.select(targets, source=source, where=where), tuple(columns))
        if select.distinct is True:
            shapes = [Val(b.null(), c.type, c.num, padded=c.padded) for c in columns]
            if all(expressions.groups_as_is(self.d, v) for v in shapes):
                node = b.select(targets, source=source, where=where, distinct_rows=True)
                return _Body(node, columns, junk, False)
            return _Body(self._distinct(inner), columns, junk, False)
        return _Body(self._distinct_on(inner, select), columns, junk, False)

    def _add_target(self, value: Val, prefix: str, targets: list[Node], columns: list[Column]) -> None:
        value = self.column_value(value)
        label = f"{prefix}_{len(columns) + 1}"
        targets.append(b.alias(self.typed(value), label))
        columns.append(Column(label, value.type, value.num, value.padded))

    def _project_top(self, select: q.Select, source: Node | None, where: Node | None) -> _Body:
        """Project the outermost SELECT: what the engine cannot or should not compute is left to Python."""
        leaves: dict[q.Expr, int] = {}
        values: list[Val] = []
        sorted_by = {key.target for key in select.order}

        def leaf(expr: q.Expr, value: Val) -> q.Expr:
            # Each call of random() is one.
            index = len(values) if b.is_costly(value.node) else leaves.setdefault(expr, len(values))
            if index == len(values):
                values.append(value)
            return q.Var(type=expr.type, range=0, attnum=index + 1)

        exprs: list[q.Expr] = []
        for position, target in enumerate(select.targets):
            if position in sorted_by or target.junk:
                exprs.append(leaf(target.expr, self.expr(target.expr)))
            else:
                exprs.append(self._finished(target.expr, leaf))
        if all(isinstance(expr, q.Var) for expr in exprs):
            own = [values[expr.attnum - 1] for expr in exprs if isinstance(expr, q.Var)]
            return self._project_values(select, own, source, where)
        places = {i: e.attnum - 1 for i, e in enumerate(exprs) if isinstance(e, q.Var)}
        self.finish = Finish(tuple(e for e, t in zip(exprs, select.targets, strict=True) if not t.junk))
        if not values:  # constants only: one engine column counts the rows
            values.append(Val(b.boolean(True), SqlType(f.BOOL)))
        prefix = self.d.fresh("q")
        targets: list[Node] = []
        columns: list[Column] = []
        for value in values:
            self._add_target(value, prefix, targets, columns)
        node = b.select(targets, source=source, where=where)
        return _Body(node, columns, [False] * len(columns), True, places)

    def _finished(self, expr: q.Expr, leaf: Callable[[q.Expr, Val], q.Expr]) -> q.Expr:
        """Return a target for Python to finish, or one that the engine computes with Python's help where that
        is in its middle.
        """
        try:
            with self.without_callouts():
                return finishing.split(self, expr, leaf)
        except SqlError as error:
            if error.sqlstate != "0A000" or not self.calls_out:
                raise
        return leaf(expr, self.expr(expr))

    def column_value(self, value: Val) -> Val:
        """Return the value in a form that is one column: a varying display scale becomes Floating."""
        if isinstance(value.num, Fixed) and value.num.dynamic is not None:
            return numeric.floating(self.d, value)
        return value

    def typed(self, value: Val) -> Node:
        """Return the node, cast to its engine type unless it is a column."""
        if b.is_column(value.node):
            return value.node
        return b.cast(value.node, self.d.engine_type(value.type, value.num))

    def _distinct(self, inner: Result) -> Node:
        """Keep one row of each set of equal rows, where equality needs keys."""
        label = self.d.fresh("r")
        targets = []
        values = inner.values(label)
        groups = [expressions.equality_key(self.d, v) for v in values]
        for value, column, key in zip(values, inner.columns, groups, strict=True):
            itself = key is value.node and expressions.groups_as_is(self.d, value)
            targets.append(b.alias(value.node if itself else self.d.any_value(value.node), column.name))
        return b.select(targets, source=b.derived(inner.node, label), group=groups)

    def _distinct_on(self, inner: Result, select: q.Select) -> Node:
        """Keep the first row, by ORDER BY, of each set of rows equal in the DISTINCT ON targets."""
        if not isinstance(select.distinct, tuple):
            raise AssertionError("DISTINCT ON names no targets")
        label, outer, number = self.d.fresh("r"), self.d.fresh("r"), self.d.fresh("n")
        values = inner.values(label)
        partition = [expressions.sort_key(self.d, values[i]) for i in select.distinct]
        order = self._order(select.row_order, values)
        ranked = b.window(b.fn("row_number"), partition, order, None)
        middle = b.select(
            [*(v.node for v in values), b.alias(ranked, number)], source=b.derived(inner.node, label)
        )
        first = b.op("=", b.col(outer, number), b.integer(1))
        return b.select(
            [b.col(outer, c.name) for c in inner.columns], source=b.derived(middle, outer), where=first
        )

    def _order(self, order: Sequence[q.SortKey], values: Sequence[Val]) -> list[Node]:
        return [
            b.ordered(key, k.descending, k.nulls_first)
            for k in order
            for key in expressions.sort_keys(self.d, values[k.target])
        ]

    def condition(self, expr: q.Expr, *, outer_join: bool = False) -> Node:
        """Return a WHERE, ON or HAVING condition; of a sub-select only its truth is asked. ``outer_join``:
        the ON of one.
        """
        if isinstance(expr, q.BoolExpr) and expr.kind == "and":
            return b.and_(*(self.condition(a, outer_join=outer_join) for a in expr.args))
        if isinstance(expr, q.SubLink) and self.substituted(expr) is None:
            return sublinks.lower_sublink(self, expr, truth=True).node
        # In an outer join's ON Spark takes NULL NOT IN (SELECT ...) for true.
        plain = not outer_join or self.d.name == "duckdb"
        if plain and isinstance(expr, q.BoolExpr) and expr.kind == "not" and is_plain_in(expr.args[0]):
            return b.not_(self.condition(expr.args[0]))
        return self.expr(expr).node

    def window_function(self, expr: q.WindowFunc) -> Val:
        """Return a window function call of the innermost SELECT."""
        return windows.lower_window(self, expr, self.scopes[-1].windows[expr.window])

    # -- FROM ----------------------------------------------------------------------------------------

    def _from(self, select: q.Select, scope: Scope) -> Node | None:
        """Return the FROM list joined, with the sub-selects that are lifted into it; None if it is empty."""
        source: Node | None = None
        waiting = self._lifts(select.where, () if select.grouped else [t.expr for t in select.targets])
        joined: set[int] = set()
        for item in select.from_:
            node = self._from_item(select, item, scope)
            source = node if source is None else b.cross_join(source, node)
            joined |= ranges_in(item)
            ready = [lift for lift in waiting if lift.keys and lift.needs <= joined]
            source = lifting.join_lifted(self, source, ready, scope.lifted)
            waiting = [lift for lift in waiting if lift not in ready]
        return None if source is None else lifting.join_lifted(self, source, waiting, scope.lifted)

    def _lifts(self, where: q.Expr | None, values: Sequence[q.Expr] = ()) -> list[lifting.Lift]:
        return lifting.lifts_in(where, values) if self.d.name == "spark" else []

    def _from_item(self, select: q.Select, item: q.FromItem, scope: Scope) -> Node:
        if isinstance(item, q.RangeRef):
            return self._range(select.ranges[item.range], item.range, scope)
        left = self._from_item(select, item.left, scope)
        right = self._from_item(select, item.right, scope)
        outer = item.kind is not q.JoinKind.INNER
        on = None if item.on is None else self.condition(item.on, outer_join=outer)
        if on is None:
            if outer:
                on = b.boolean(True)
            else:
                return b.cross_join(left, right)
        return b.join(left, b.grouped_join(right), item.kind.name, on)

    def _range(self, range_: q.Range, index: int, scope: Scope) -> Node:
        label = self.d.fresh("r")
        match range_:
            case q.RelationRange():
                return self._relation(range_, index, scope, label)
            case q.SubqueryRange():
                result = self.query(self._bordered(range_.query) if range_.barrier else range_.query)
                node = b.derived(result.node, label, lateral=range_.lateral)
            case q.CteRange():
                cte = self._scope(range_.level).ctes[range_.name]
                result = Result(None, cte.columns)
                node = b.table(cte.label, label)
            case q.StepRange():
                raise not_supported("the result of a data-modifying WITH item in this executor")
            case q.FunctionRange():
                result = functions.function_range(self, range_)
                node = b.derived(result.node, label, lateral=range_.lateral)
            case _:
                raise not_supported(f"{type(range_).__name__} in this executor")
        values = dict(zip((c.attnum for c in range_.columns), result.values(label), strict=False))
        scope.ranges[index] = RangeBinding(values)
        return node

    def _relation(self, range_: q.RelationRange, index: int, scope: Scope, label: str) -> Node:
        if range_.virtual:
            raise not_supported(f"catalog relation {range_.name} in this executor")
        if range_.guard is not None:
            return self._guarded(range_, range_.guard, index, scope, label)
        if range_.sample is not None:
            return self._chosen(
                replace(range_, sample=None),
                range_.used,
                tested(range_.sample),
                (q.RangeRef(range=0),),
                index,
                scope,
                label,
            )
        use = RelationUse(f"hf_rel_{len(self.relations) + 1}", range_.tables)
        self.relations.append(use)
        values = {
            c.attnum: Val(
                b.col(label, f"c{c.attnum}"), c.type, declared_num(c.type), padded=declared_padding(c.type)
            )
            for c in range_.columns
        }
        values[q.ROW_ID] = Val(b.col(label, "s_row_id"), SqlType(f.INT8))
        table = b.col(label, "s_table") if range_.leaves else self.d.literal(range_.oid, "int64")
        values[q.TABLEOID] = Val(table, SqlType(f.OID), None)
        scope.ranges[index] = RangeBinding(values, use)
        return b.table(use.placeholder, label)

    def _bordered(self, query: q.QueryExpr) -> q.QueryExpr:
        """Return a query behind OFFSET 0, through which DuckDB moves no condition: nothing looks at rows that
        it does not give.

        Spark has nothing that its optimizer keeps to, so it is refused.
        """
        if self.d.name != "duckdb":
            raise not_supported("row-level security or a security_barrier view in this executor")
        none = q.Const(type=SqlType(f.INT8), value=0)
        return replace(query if query.offset is None else over(query), offset=none)

    def _guarded(
        self, range_: q.RelationRange, guard: q.Select, index: int, scope: Scope, label: str
    ) -> Node:
        """Return a table of whose rows only those that pass its guard may be looked at."""
        asked = guard.ranges[0]
        if not isinstance(asked, q.RelationRange):
            raise AssertionError(f"a guard asks {type(asked).__name__}, not a relation")
        inner = replace(range_, guard=None, used=range_.used | asked.used)
        return self._chosen(inner, range_.used, guard.where, guard.from_, index, scope, label, bordered=True)

    def _chosen(
        self,
        range_: q.RelationRange,
        used: frozenset[int],
        where: q.Expr | None,
        from_: tuple[q.FromItem, ...],
        index: int,
        scope: Scope,
        label: str,
        *,
        bordered: bool = False,
    ) -> Node:
        """Return a sub-select of the columns ``used`` of those rows of a table, range 0 of ``from_``, for
        which ``where`` holds.
        """
        types = {c.attnum: c.type for c in range_.columns} | {
            q.ROW_ID: SqlType(f.INT8),
            q.TABLEOID: SqlType(f.OID),
        }
        wanted = [attnum for attnum in sorted(used) if attnum in types]
        inner = q.Select(
            columns=tuple(q.OutputColumn(name=f"c{attnum}", type=types[attnum]) for attnum in wanted),
            targets=tuple(
                q.Target(expr=q.Var(type=types[attnum], range=0, attnum=attnum), name=f"c{attnum}")
                for attnum in wanted
            ),
            ranges=(range_,),
            from_=from_,
            where=where,
        )
        result = self.query(self._bordered(inner) if bordered else inner)
        scope.ranges[index] = RangeBinding(dict(zip(wanted, result.values(label), strict=True)))
        return b.derived(result.node, label)

    # -- set operations and VALUES -------------------------------------------------------------------

    def _set_operation(self, query: q.SetOp) -> _Body:
        if not query.columns:
            raise not_supported(f"{query.op.upper()} of select lists without columns in this executor")
        left, right = self.query(query.left), self.query(query.right)
        prefix = self.d.fresh("q")
        columns: list[Column] = []
        for position, (x, y, out) in enumerate(zip(left.columns, right.columns, query.columns, strict=True)):
            give_way()
            num: Num | None = None
            if out.type.oid == f.NUMERIC:
                _, num = numeric.unify_columns(self.d, [Val(b.bare(c.name), c.type, c.num) for c in (x, y)])
            padded = x.padded if x.padded == y.padded else 0
            columns.append(Column(f"{prefix}_{position + 1}", out.type, num, padded))
        sides = [self._converted(part, columns) for part in (left, right)]
        shapes = [Val(b.null(), c.type, c.num, padded=c.padded) for c in columns]
        plain = all(expressions.groups_as_is(self.d, v) for v in shapes)
        junk = [False] * len(columns)
        if query.all or plain:
            node = b.set_operation(query.op, *sides, keep_all=query.all)
            if query.all and not plain and query.op != "union":
                raise not_supported(f"{query.op.upper()} ALL over these types in this executor")
            return _Body(node, columns, junk, False)
        if query.op != "union":
            raise not_supported(f"{query.op.upper()} over these types in this executor")
        both = Result(b.set_operation("union", *sides, keep_all=True), tuple(columns))
        return _Body(self._distinct(both), columns, junk, False)

    def _values(self, query: q.Values) -> _Body:
        rows = [[self.column_value(self.expr(cell)) for cell in row] for row in query.rows]
        label, prefix = self.d.fresh("v"), self.d.fresh("q")
        columns: list[Column] = []
        cells: list[list[Node]] = [[] for _ in rows]
        for position, out in enumerate(query.columns):
            items = [row[position] for row in rows]
            num: Num | None = None
            nodes = [v.node for v in items]
            if out.type.oid == f.NUMERIC:
                nodes, num = numeric.unify_columns(self.d, items)
            padding = {v.padded for v in items}
            padded = padding.pop() if len(padding) == 1 else 0
            columns.append(Column(f"{prefix}_{position + 1}", out.type, num, padded))
            engine_type = self.d.engine_type(out.type, num)
            for row_cells, node in zip(cells, nodes, strict=True):
                row_cells.append(b.cast(node, engine_type))
        names = [c.name for c in columns]
        node = b.select([b.col(label, n) for n in names], source=b.values(cells, label, names))
        return _Body(node, columns, [False] * len(columns), True)

    # -- ORDER BY and LIMIT --------------------------------------------------------------------------

    def _finish(self, query: q.QueryExpr, body: _Body) -> Result:
        kept = tuple(c for c, junk in zip(body.columns, body.junk, strict=True) if not junk)
        if not (query.order or query.limit or query.offset or any(body.junk)):
            return Result(body.node, kept)
        limit = self._count(query.limit, "2201W", "LIMIT must not be negative")
        offset = self._count(query.offset, "2201X", "OFFSET must not be negative")
        values = [Val(b.bare(c.name), c.type, c.num, padded=c.padded) for c in body.columns]
        order_keys = query.order
        if body.places is not None:
            order_keys = tuple(replace(k, target=body.places[k.target]) for k in order_keys)
        keyed = all(expressions.is_plain(values[k.target]) for k in order_keys)
        if body.plain and keyed and not any(body.junk) and not query.with_ties:
            return Result(b.bounded(body.node, self._order(order_keys, values), limit, offset), kept)
        inner = Result(body.node, tuple(body.columns))
        if query.with_ties and limit is not None:
            return self._with_ties(query, inner, kept, limit, offset)
        label = self.d.fresh("r")
        order = self._order(order_keys, inner.values(label))
        targets = [b.col(label, c.name) for c in kept]
        node = b.select(targets, source=b.derived(inner.node, label), order=order, limit=limit, offset=offset)
        return Result(node, kept)

    def _count(self, expr: q.Expr | None, sqlstate: str, message: str) -> Node | None:
        if expr is None:
            return None
        if self.d.name == "duckdb" and any(free_levels(expr)[0]):
            raise not_supported("LIMIT or OFFSET by a value of the query around it in this executor")
        value = self.expr(expr)
        if value.constant is None:
            return None
        if isinstance(value.constant, int) and value.constant < 0:
            raise SqlError(sqlstate, message)
        if self.d.name == "spark" and not value.is_constant:
            raise not_supported("LIMIT or OFFSET by an expression in this executor")
        return self.d.limit(value.node)

    def _with_ties(
        self, query: q.QueryExpr, inner: Result, kept: tuple[Column, ...], limit: Node, offset: Node | None
    ) -> Result:
        """Skip ``offset`` rows, keep ``limit`` rows and the peers of the last of them."""
        label, outer = self.d.fresh("r"), self.d.fresh("r")
        number, rank = self.d.fresh("n"), self.d.fresh("n")
        values = inner.values(label)
        order = self._order(query.order, values)
        middle = b.select(
            [
                *(v.node for v in values),
                b.alias(b.window(b.fn("row_number"), [], order, None), number),
                b.alias(b.window(b.fn("rank"), [], order, None), rank),
            ],
            source=b.derived(inner.node, label),
        )
        skipped = b.integer(0) if offset is None else b.fn("coalesce", offset, b.integer(0))
        where = b.and_(
            b.op(">", b.col(outer, number), skipped),
            b.or_(
                b.and_(
                    b.op("<=", b.col(outer, rank), b.op("+", skipped, limit)),
                    b.op(">", limit, b.integer(0)),  # no row, no peers of it
                ),
                b.is_null(limit),
            ),
        )
        node = b.select(
            [b.col(outer, c.name) for c in kept],
            source=b.derived(middle, outer),
            where=where,
            order=[b.ordered(b.col(outer, number), False, False)],
        )
        return Result(node, kept)


@dataclass(frozen=True, slots=True)
class LoweredQuery:
    """A statement's SQL for one engine.

    Attributes:
        text: the SQL, with placeholder tables.
        relations: what each placeholder stands for.
        columns: the engine's output columns, in order.
        dialect: the dialect object, which knows the parameters' placeholders.
        finish: what Python has to compute from the columns; None if they are the result.
        callouts: what the engine has Python compute in the middle.
    """

    text: str
    relations: tuple[RelationUse, ...]
    columns: tuple[Column, ...]
    dialect: Any
    finish: Finish | None = None
    callouts: tuple[callouts.Callout, ...] = ()


def lower_query(query: q.QueryExpr, dialect: Dialect, values: Sequence[object] | None = None) -> LoweredQuery:
    """Lower a whole query.

    Raises:
        SqlError: 0A000 naming the first construct that the engine cannot run.
    """
    for node in walk(query):
        if isinstance(node, q.GroupingFunc) and node.level:
            raise not_supported("GROUPING of an outer query in this executor", span=node.span)
        if isinstance(node, q.SqlCall):
            raise not_supported(f"a call of SQL function {node.name} in this executor")
        if isinstance(node, q.Aggregate | q.WindowFunc) and node.own is not None:
            raise not_supported(f"aggregate {node.own.name} in this executor")
    query = unnest.unnest(query, dialect.correlations)
    if refused := unnest.remaining(query, dialect.correlations):
        raise not_supported(f"{refused} in this executor")
    lowering = Lowering(dialect, values)
    result = lowering.query(query)
    text = dialect.text(result.node)
    return LoweredQuery(
        text,
        tuple(lowering.relations),
        result.columns,
        dialect,
        lowering.finish,
        callouts.used(lowering.callouts, text),
    )


__all__ = ["Column", "LoweredQuery", "Lowering", "RelationUse", "Result", "lower_query"]
