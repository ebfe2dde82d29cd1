"""SEARCH and CYCLE of a recursive WITH item (manual 7.8.2.1, 7.8.2.2): columns that order its rows, and that
tell of a circle.

    WITH RECURSIVE t(a, b) AS (L UNION R) SEARCH DEPTH FIRST BY a SET s CYCLE a SET m USING p

    L becomes   SELECT a, b, ARRAY[ROW(a)], false, ARRAY[ROW(a)] FROM (L)
    R becomes   SELECT a, b, s || ROW(a), CASE WHEN ROW(a) = ANY (p) THEN true ELSE false END, p || ROW(a)
                FROM (R, which hands s, m and p of its row of t on) WHERE NOT m

SEARCH BREADTH FIRST has ROW(0, a) and ROW(its first field + 1, a) instead of the arrays. Both terms are bound
as they are written; R may name the columns that are added (of its row of t), but ``*`` does not stand for
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner import ast
from planner.base.errors import Span, SqlError
from planner.base.quoting import quote_identifier
from planner.bind.expression.expr import bind_clause
from planner.bind.scope import Scope
from planner.conversion.common_types import coerce_to_common, select_common_type
from planner.conversion.order import default_equality
from planner.facts import BOOL, INT8
from planner.parse import parse_expression
from planner.query import (
    BoolExpr,
    CaseExpr,
    CaseWhen,
    CteRange,
    Expr,
    FieldSelect,
    OpExpr,
    OutputColumn,
    QueryExpr,
    RangeColumn,
    RangeRef,
    RowExpr,
    Select,
    SetOp,
    SubqueryRange,
    Target,
    Var,
)
from planner.query.rewrite import shift_query
from planner.types import SqlType


@dataclass(frozen=True, slots=True)
class _Term:
    """A side of the UNION as the only range of a new SELECT: the scope of that, and the side's columns."""

    scope: Scope
    columns: tuple[Var, ...]

    def bind(self, text: str) -> Expr:
        """Bind an expression over the side's columns."""
        return bind_clause(self.scope, parse_expression(text), "SELECT")

    def added(self, name: str) -> Var:
        """Return a column that was added, which no column of the item's is called as."""
        return next(column for column in reversed(self.columns) if column.name == name)


def check_names(item: ast.Cte, columns: Sequence[OutputColumn]) -> None:
    """Check which columns SEARCH and CYCLE name. Raises SqlError 42601, 42701."""
    names = [column.name for column in columns]
    search, cycle = item.search, item.cycle
    if search is not None:
        _check_listed("search", search.columns, names, search.span)
        _check_new("search sequence", search.sequence, names, search.span)
    if cycle is None:
        return
    _check_listed("cycle", cycle.columns, names, cycle.span)
    _check_new("cycle mark", cycle.mark, names, cycle.span)
    _check_new("cycle path", cycle.path, names, cycle.span)
    if cycle.mark == cycle.path:
        raise _same("cycle mark", "cycle path", cycle.span)
    if search is not None and search.sequence in (cycle.mark, cycle.path):
        other = "cycle mark" if search.sequence == cycle.mark else "cycle path"
        raise _same("search sequence", other, search.span)


def _check_listed(what: str, wanted: Sequence[str], names: Sequence[str], span: Span | None) -> None:
    for position, name in enumerate(wanted):
        if name not in names:
            raise SqlError("42601", f'{what} column "{name}" not in WITH query column list', span=span)
        if name in wanted[:position]:
            raise SqlError("42701", f'{what} column "{name}" specified more than once', span=span)


def _check_new(what: str, name: str, names: Sequence[str], span: Span | None) -> None:
    if name in names:
        raise SqlError(
            "42601", f'{what} column name "{name}" already used in WITH query column list', span=span
        )


def _same(one: str, other: str, span: Span | None) -> SqlError:
    return SqlError("42601", f"{one} column name and {other} column name are the same", span=span)


def check_form(node: ast.SetOp) -> None:
    """Check that both sides are what the columns can be added to. Raises SqlError 0A000, 42601 as PostgreSQL does."""
    for word, side, sqlstate in (("left", node.left, "0A000"), ("right", node.right, "42601")):
        if isinstance(side, ast.SetOp):
            raise SqlError(
                sqlstate, f"with a SEARCH or CYCLE clause, the {word} side of the UNION must be a SELECT"
            )


def added_columns(
    scope: Scope, item: ast.Cte, left: QueryExpr, columns: Sequence[OutputColumn]
) -> tuple[OutputColumn, ...]:
    """Return the columns that SEARCH and CYCLE add, as the right side may name them. Raises as
    ``with_search_and_cycle``.
    """
    marks = None if item.cycle is None else _marks(scope, item.cycle)
    first = _first(item, _term(scope, left, columns), marks)
    return tuple(OutputColumn(name=target.name, type=target.expr.type) for target in first)


def with_search_and_cycle(scope: Scope, item: ast.Cte, made: SetOp, columns: Sequence[OutputColumn]) -> SetOp:
    """Return the bound UNION of a recursive item, in ``scope``, with the columns that its SEARCH and CYCLE add.

    Raises SqlError 0A000 where the right side refers to the item further in; 42804, 42883 for marks that have
    no type in common, or one without equality.
    """
    marks = None if item.cycle is None else _marks(scope, item.cycle)
    left = _term(scope, made.left, columns)
    first = _first(item, left, marks)
    added = [(target.name, target.expr.type) for target in first]
    right = _term(
        scope, _handing_on(item, made.right, len(columns), added), columns, [name for name, _ in added]
    )
    where: Expr | None = None
    if item.cycle is not None and marks is not None:
        mark = right.added(item.cycle.mark)
        where = BoolExpr(type=SqlType(BOOL), kind="not", args=(_equal(mark, marks[0]),))
    output = (
        *made.columns,
        *(OutputColumn(name=name, type=type_) for name, type_ in added),
    )
    return replace(
        made,
        columns=output,
        left=_select(left, len(columns), first, output),
        right=_select(right, len(columns), _next(item, right, marks), output, where),
    )


def _marks(scope: Scope, cycle: ast.CycleClause) -> tuple[Expr, Expr]:
    """Return the marks of a row that closes a circle, and of any other."""
    both = [bind_clause(Scope(context=scope.context), mark, "CYCLE") for mark in (cycle.value, cycle.default)]
    oid = select_common_type(both, "CYCLE")
    default_equality(oid)
    value, default = (coerce_to_common(mark, oid, "CYCLE", scope.context.env) for mark in both)
    return value, default


def _equal(left: Expr, right: Expr) -> Expr:
    operator = default_equality(left.type.oid)
    return OpExpr(type=SqlType(BOOL), op=operator.oid, proc=operator.proc, args=(left, right))


def _term(
    parent: Scope, query: QueryExpr, columns: Sequence[OutputColumn], added: Sequence[str] = ()
) -> _Term:
    """Return a side of the UNION, bound in ``parent``, as the range of a SELECT that stands where it stood."""
    scope = Scope(context=parent.context, parent=parent)
    names = [*(column.name for column in columns), *added]
    shown = tuple(
        RangeColumn(name=name, type=column.type, attnum=position)
        for position, (name, column) in enumerate(zip(names, query.columns, strict=True), 1)
    )
    scope.add_range(SubqueryRange(alias="term", columns=shown, query=shift_query(query, 1)))
    scope.namespace.append(scope.item(0, aliased=True))
    return _Term(scope, tuple(Var(type=c.type, range=0, attnum=c.attnum, name=c.name) for c in shown))


def _handing_on(
    item: ast.Cte, right: QueryExpr, width: int, added: Sequence[tuple[str, SqlType]]
) -> QueryExpr:
    """Return the right side with the added columns of its row of the item behind its own. Raises SqlError 0A000."""
    ranges = right.ranges if isinstance(right, Select) else ()
    at = next(
        (
            i
            for i, r in enumerate(ranges)
            if isinstance(r, CteRange) and r.recursive_ref and r.name == item.name
        ),
        -1,
    )
    if not isinstance(right, Select) or at < 0:
        raise SqlError(
            "0A000",
            f'with a SEARCH or CYCLE clause, the recursive reference to WITH query "{item.name}" '
            "must be at the top level of its right-hand SELECT",
        )
    more = [
        RangeColumn(name=name, type=type_, attnum=width + position)
        for position, (name, type_) in enumerate(added, 1)
    ]
    reference = replace(ranges[at], columns=(*ranges[at].columns, *more))
    handed = [
        Target(expr=Var(type=c.type, range=at, attnum=c.attnum, name=c.name), name=c.name) for c in more
    ]
    shown = [target for target in right.targets if not target.junk]
    junk = [target for target in right.targets if target.junk]
    return replace(
        right,
        columns=(*right.columns, *(OutputColumn(name=c.name, type=c.type) for c in more)),
        targets=(*shown, *handed, *junk),
        ranges=(*ranges[:at], reference, *ranges[at + 1 :]),
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quote_identifier, names))


def _first(item: ast.Cte, term: _Term, marks: tuple[Expr, Expr] | None) -> list[Target]:
    """Return what is added to the rows that the recursion begins with."""
    made: list[Target] = []
    if item.search is not None:
        listed = _listed(item.search.columns)
        text = f"ROW(0::pg_catalog.int8, {listed})" if item.search.breadth else f"ARRAY[ROW({listed})]"
        made.append(Target(expr=term.bind(text), name=item.search.sequence))
    if item.cycle is not None and marks is not None:
        made.append(Target(expr=marks[1], name=item.cycle.mark))
        made.append(
            Target(expr=term.bind(f"ARRAY[ROW({_listed(item.cycle.columns)})]"), name=item.cycle.path)
        )
    return made


def _next(item: ast.Cte, term: _Term, marks: tuple[Expr, Expr] | None) -> list[Target]:
    """Return what is added to the rows of a further step."""
    made: list[Target] = []
    if item.search is not None:
        listed, name = _listed(item.search.columns), item.search.sequence
        if item.search.breadth:
            depth = FieldSelect(type=SqlType(INT8), arg=term.added(name), index=0)
            row = term.bind(f"ROW(0::pg_catalog.int8 + 1, {listed})")
            made.append(Target(expr=_deeper(row, depth), name=name))
        else:
            made.append(Target(expr=term.bind(f"{quote_identifier(name)} || ROW({listed})"), name=name))
    if item.cycle is not None and marks is not None:
        row_text, path = f"ROW({_listed(item.cycle.columns)})", quote_identifier(item.cycle.path)
        seen = CaseWhen(condition=term.bind(f"{row_text} = ANY ({path})"), result=marks[0])
        made.append(
            Target(expr=CaseExpr(type=marks[0].type, whens=(seen,), default=marks[1]), name=item.cycle.mark)
        )
        made.append(Target(expr=term.bind(f"{path} || {row_text}"), name=item.cycle.path))
    return made


def _deeper(row: Expr, depth: Expr) -> Expr:
    """Return ROW(0 + 1, ...) with the depth of the row before instead of 0."""
    if not isinstance(row, RowExpr):
        raise AssertionError(f"the depth of a search is kept in {type(row).__name__}, not a row")
    sum_ = row.fields[0]
    if not isinstance(sum_, OpExpr):
        raise AssertionError(f"the depth of a search is {type(sum_).__name__}, not a sum")
    return replace(row, fields=(replace(sum_, args=(depth, sum_.args[1])), *row.fields[1:]))


def _select(
    term: _Term,
    width: int,
    added: Sequence[Target],
    output: Sequence[OutputColumn],
    where: Expr | None = None,
) -> Select:
    own = [Target(expr=column, name=column.name) for column in term.columns[:width]]
    return Select(
        columns=tuple(output),
        targets=(*own, *added),
        ranges=tuple(term.scope.ranges),
        from_=(RangeRef(range=0),),
        where=where,
    )
