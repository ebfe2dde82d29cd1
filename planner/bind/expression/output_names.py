"""Names of output columns that were given none: PostgreSQL's rules (FigureColname)."""

from __future__ import annotations

from planner import ast
from planner.query import Expr, SubLink

UNNAMED = "?column?"


def column_name(node: ast.Expression, bound: Expr | None = None) -> str:
    """Return the name of a select-list item; ``bound`` helps for scalar sub-selects."""
    name, _ = _figure(node, bound)
    return name or UNNAMED


_FIXED: dict[type, str] = {
    ast.NullIf: "nullif",
    ast.Coalesce: "coalesce",
    ast.ArrayLiteral: "array",
    ast.Row: "row",
    ast.Grouping: "grouping",
}


def _figure(node: ast.Expression | None, bound: Expr | None) -> tuple[str, int]:
    """Return (name, strength): 2 a good name, 1 one that an inner name may replace, 0 none."""
    match node:
        case ast.ColumnRef(names=names) if names:  # of a star, too, where it is one value: ``t.*::text``
            return names[-1], 2
        case ast.FuncCall(name=called):
            return called[-1], 2
        case ast.Constant() | ast.Operator() | None:
            return "", 0
        case ast.Indirection(arg=arg, steps=steps):
            for step in reversed(steps):
                if isinstance(step, str):
                    return step, 2
            return _figure(arg, None)
        case ast.TypeCast(arg=arg, type=type_):
            name, strength = _figure(arg, None)
            if strength <= 1:
                return type_.names[-1], 1
            return name, strength
        case ast.Collate(arg=arg):
            return _figure(arg, None)
        case ast.Case(default=default):
            name, strength = _figure(default, None)
            return (name, strength) if strength > 1 else ("case", 1)
        case ast.MinMax(greatest=greatest):
            return ("greatest" if greatest else "least"), 2
        case ast.SqlValue(what=what):
            return what, 2
        case ast.SubLink(kind="exists"):
            return "exists", 2
        case ast.SubLink(kind="array"):
            return "array", 2
        case ast.SubLink(kind="scalar", query=query):
            if isinstance(bound, SubLink):
                return bound.query.columns[0].name, 2
            return _first_column(query)
        case _:
            fixed = _FIXED.get(type(node))
            return (fixed, 2) if fixed else ("", 0)


def _first_column(query: ast.QueryNode) -> tuple[str, int]:
    """Return the first output name of a query that is not bound at hand (inside a cast, CASE ...)."""
    while isinstance(query, ast.SetOp):
        query = query.left
    if isinstance(query, ast.Values):
        return "column1", 2
    if not query.targets:
        return "", 0
    item = query.targets[0]
    return item.name or column_name(item.expr), 2
