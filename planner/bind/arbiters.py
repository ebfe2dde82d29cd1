"""ON CONFLICT targets: which unique indexes, and exclusion constraints, arbitrate.

ON CONFLICT (a, lower(b)) WHERE NOT gone      every unique index over exactly these keys whose condition follows
ON CONFLICT ON CONSTRAINT name                the index of that constraint, which may be one that excludes (DO NOTHING)
"""

from __future__ import annotations

from collections.abc import Sequence

from planner import ast
from planner.bind.context import BindContext
from planner.bind.expr import bind_boolean, bind_clause
from planner.bind.index import index_keys
from planner.bind.stored import table_scope
from planner.bind.table_parts import column_collation
from planner.casts import resolve_unknown
from planner.catalog import IndexDef, RelationDef
from planner.collations import collation_of
from planner.comparisons import conjuncts_of
from planner.domains import plain_type
from planner.errors import SqlError
from planner.implication import implied
from planner.query import Expr, Var


def arbiters_of(context: BindContext, node: ast.OnConflict, relation: RelationDef) -> tuple[int, ...]:
    """Return the indexes that a conflict target names or infers; () = all of them.

    Raises SqlError 42703, 42704, 42809, 42P10 (none fits), 55000 (deferrable).
    """
    if node.constraint:
        for constraint in relation.constraints:
            if constraint.name == node.constraint:
                if not constraint.index_oid:
                    raise SqlError("42809", "constraint in ON CONFLICT clause has no associated index")
                if constraint.kind == "x" and node.action == "update":
                    raise SqlError("42809", "ON CONFLICT DO UPDATE not supported with exclusion constraints")
                if constraint.kind not in "pux":
                    raise SqlError("42809", "constraint in ON CONFLICT clause has no associated index")
                if constraint.deferrable:
                    raise _deferrable_arbiter(relation, [constraint.index_oid])
                return (constraint.index_oid,)
        raise SqlError("42704", f'constraint "{node.constraint}" for table "{relation.name}" does not exist')
    if not node.elements:
        if relation.has_deferrable_key:
            raise _deferrable_arbiter(relation, [index.oid for index in relation.indexes])
        return ()
    wanted: list[tuple[Expr, int]] = []
    scope = table_scope(context, relation)
    for element in node.elements:
        if element.direction:
            raise SqlError("42P10", "ASC/DESC is not allowed in ON CONFLICT clause", span=node.infer_span)
        if element.nulls:
            raise SqlError(
                "42P10", "NULLS FIRST/LAST is not allowed in ON CONFLICT clause", span=node.infer_span
            )
        expr: Expr
        if element.expr is not None and not isinstance(element.expr, ast.ColumnRef):
            expr = resolve_unknown(bind_clause(scope, element.expr, "INDEX"), context.env)
        else:
            name = element.name or element.expr.names[-1]  # type: ignore[union-attr]
            column = next((c for c in relation.live if c.name == name), None)
            if column is None:
                raise SqlError("42703", f'column "{name}" does not exist', span=node.infer_span)
            expr = Var(type=column.type, range=0, attnum=column.attnum, name=column.name)
        named = element.collation
        collation = column_collation(named, plain_type(expr.type), node.infer_span) if named else 0
        if (expr, collation) not in wanted:
            wanted.append((expr, collation))
    where: Sequence[Expr] = ()
    if node.element_where is not None:
        where = conjuncts_of(bind_boolean(scope, node.element_where, "INDEX WHERE"))
    found = tuple(i.oid for i in relation.indexes if i.unique and _fits(i, relation, context, wanted, where))
    if not found:
        raise SqlError(
            "42P10",
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        )
    if any(index.oid in found and index.deferrable for index in relation.indexes):
        raise _deferrable_arbiter(relation, found)
    return found


def _fits(
    index: IndexDef,
    relation: RelationDef,
    context: BindContext,
    wanted: Sequence[tuple[Expr, int]],
    where: Sequence[Expr],
) -> bool:
    """Tell whether an index is over exactly these keys, by the collations they name, and has all rows for which the target's WHERE holds."""
    keys, condition = index_keys(index, relation, context.catalog)
    collations = [
        own or collation_of(relation.column(attnum))
        for attnum, own in zip(index.attnums, index.collations or (0,) * len(keys), strict=True)
    ]
    exprs = [expr for expr, _collation in wanted]
    if not all(key in exprs for key in keys):
        return False
    found = list(zip(keys, collations, strict=True))
    if not all((expr, collation) in found if collation else expr in keys for expr, collation in wanted):
        return False
    return all(implied(conjunct, where) for conjunct in conjuncts_of(condition))


def _deferrable_arbiter(relation: RelationDef, indexes: Sequence[int]) -> SqlError:
    return SqlError(
        "55000",
        "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters",
        schema=relation.schema,
        table=relation.name,
        constraint=next(i.name for i in relation.indexes if i.deferrable and i.oid in indexes),
    )
