"""UPDATE of pg_constraint: AST -> the constraints it is about, and what their ``convalidated`` is to be.

    UPDATE pg_constraint SET convalidated = false WHERE conname = 'c_p_fkey'      MarkConstraints(query: oid, new value)

It is what loaders of fixtures do to have VALIDATE CONSTRAINT look at rows again that were written while
triggers were off. All else of the catalogs changes by DDL alone: other columns, other relations and other
commands stay refused (42501).
"""

from __future__ import annotations

from planner import ast
from planner import statements as st
from planner.base.errors import not_supported
from planner.bind.change.assign import bind_assignments, complete_assignments, target_relation
from planner.bind.change.dml import bind_update, changed_scope
from planner.bind.context import BindContext
from planner.bind.expression.expr import bind_boolean
from planner.query import Expr, OutputColumn, Select, Target, Update, Var

_TABLE = "pg_constraint"
_COLUMN = "convalidated"


def bind_update_or_marks(context: BindContext, node: ast.Update) -> Update | st.MarkConstraints:
    """Bind UPDATE of any relation. Raises what ``bind_update`` raises; 0A000 for RETURNING of constraints
    that are marked.
    """
    if node.relation.name == _TABLE:
        relation = context.relation(node.relation.schema, _TABLE, node.relation.span)
        named = {column.name for item in node.assignments for column in item.columns}
        if relation.virtual and named == {_COLUMN} and not isinstance(node.where, ast.CurrentOf):
            return _bind_marks(context, node)
        if relation.virtual:
            target_relation(context, node.relation)
    return bind_update(context, node)


def _bind_marks(context: BindContext, node: ast.Update) -> st.MarkConstraints:
    relation = context.relation(node.relation.schema, _TABLE, node.relation.span)
    if node.returning:
        raise not_supported("RETURNING of UPDATE pg_constraint", span=node.returning[0].span)
    scope, from_ = changed_scope(context, node.relation, relation, node.with_, node.from_)
    bound = bind_assignments(scope, node.assignments)
    where = None if node.where is None else bind_boolean(scope, node.where, "WHERE")
    ((_, value),) = complete_assignments(relation, bound, context.env)
    key = next(column for column in relation.live if column.name == "oid")
    scope.use(0, key.attnum)
    oid = Var(type=key.type, range=0, attnum=key.attnum, name=key.name)
    outputs: list[tuple[str, Expr]] = [("oid", oid), (_COLUMN, value)]
    return st.MarkConstraints(
        query=Select(
            columns=tuple(OutputColumn(name=name, type=expr.type) for name, expr in outputs),
            targets=tuple(Target(expr=expr, name=name) for name, expr in outputs),
            ranges=scope.finished_ranges(),
            from_=from_,
            where=where,
            ctes=tuple(scope.bound_ctes),
        )
    )
