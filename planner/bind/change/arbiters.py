"""ON CONFLICT targets: which unique indexes, and exclusion constraints, arbitrate.

ON CONFLICT (a, lower(b)) WHERE NOT gone      every unique index over exactly these keys whose condition follows
ON CONFLICT ON CONSTRAINT name                the index of that constraint, which may be one that excludes (DO NOTHING)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pgwire.codecs.settings import STORED_TEXT
from planner import ast
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.define.table.index import index_keys
from planner.bind.define.table.table_parts import column_collation
from planner.bind.expression.expr import bind_boolean, bind_clause
from planner.bind.query.guarding import own_vars
from planner.bind.stored import table_scope
from planner.catalog import Catalog, ConstraintDef, IndexDef, RelationDef
from planner.conversion.casts import resolve_unknown
from planner.conversion.collations import collation_of
from planner.indexing.comparisons import conjuncts_of
from planner.indexing.implication import implied
from planner.query import Const, Expr, OnConflict, Param, Var
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.rules.fold import fold, fold_node
from planner.types.domains import plain_type


def target_of(context: BindContext, node: ast.OnConflict, relation: RelationDef) -> OnConflict:
    """Return a clause with its target alone: the indexes that it names or infers, and its WHERE where that
    decides only with parameters' values.

    Raises SqlError 42703, 42704, 42809, 42P10 (none fits), 55000 (deferrable).
    """

    def made(arbiters: tuple[int, ...], asked: Iterable[int], where: tuple[Expr, ...] = ()) -> OnConflict:
        return OnConflict(action=node.action, arbiters=arbiters, arbiter_where=where, asked=frozenset(asked))

    if node.constraint:
        constraint = constraint_named(context, node.constraint, relation)
        if not constraint.index_oid:
            raise SqlError("42809", "constraint in ON CONFLICT clause has no associated index")
        if constraint.kind == "x" and node.action == "update":
            raise SqlError("42809", "ON CONFLICT DO UPDATE not supported with exclusion constraints")
        if constraint.kind not in "pux":
            raise SqlError("42809", "constraint in ON CONFLICT clause has no associated index")
        if constraint.deferrable:
            raise _deferrable_arbiter(relation, [constraint.index_oid])
        [index] = [index for index in relation.indexes if index.oid == constraint.index_oid]
        keys, _condition = index_keys(index, relation, context.catalog)
        return made((constraint.index_oid,), {key.attnum for key in keys if isinstance(key, Var)})
    if not node.elements:
        if relation.has_deferrable_key:
            raise _deferrable_arbiter(relation, [index.oid for index in relation.indexes])
        return made((), ())
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
        collation = column_collation(context, named, plain_type(expr.type), node.infer_span) if named else 0
        if (expr, collation) not in wanted:
            wanted.append((expr, collation))
    where: tuple[Expr, ...] = ()
    asked = {var.attnum for expr, _collation in wanted for var in own_vars(expr)}
    if node.element_where is not None:
        condition = bind_boolean(scope, node.element_where, "INDEX WHERE")
        asked |= {var.attnum for var in own_vars(condition)}
        where = tuple(conjuncts_of(fold(condition)))
    over = [i for i in relation.indexes if i.unique and _is_over(i, relation, context.catalog, wanted)]
    if over and any(isinstance(item, Param) for conjunct in where for item in walk(conjunct)):
        return made(tuple(i.oid for i in over), asked, where)
    if (
        context.defines
    ):  # PostgreSQL looks for the index when it plans the statement: a dump has it behind the functions
        return made(tuple(i.oid for i in over), asked)
    try:
        return made(_complete(over, relation, context.catalog, where), asked)
    except SqlError as error:
        if error.ends_statement:
            raise
        raise NoArbiter(error, made((), asked)) from None


class NoArbiter(Exception):
    """No index serves ON CONFLICT, which is told once nothing else is found wrong: PostgreSQL looks for it
    when it plans the statement.

    ``error`` says so; ``clause``: what is known of the clause but for its arbiters.
    """

    def __init__(self, error: SqlError, clause: OnConflict) -> None:
        """Say why, and what is known besides."""
        super().__init__()
        self.error, self.clause = error, clause


def constraint_named(context: BindContext, name: str, relation: RelationDef) -> ConstraintDef:
    """Return a constraint of a table; stored texts name it by oid (``"#16400"``). Raises SqlError 42704."""
    by_oid = context.env.settings is STORED_TEXT
    for constraint in relation.constraints:
        if constraint.name == name or (by_oid and name == f"#{constraint.oid}"):
            return constraint
    raise SqlError("42704", f'constraint "{name}" for table "{relation.name}" does not exist')


def decided(clause: OnConflict, relation: RelationDef, catalog: Catalog, params: Sequence[Any]) -> OnConflict:
    """Return a clause whose target has parameters with the indexes that it infers from their values.

    Raises SqlError 42P10 (none fits), 55000 (deferrable).
    """
    candidates = [index for index in relation.indexes if index.oid in clause.arbiters]
    where = [_known(params, conjunct) for conjunct in clause.arbiter_where]
    return replace(clause, arbiters=_complete(candidates, relation, catalog, where), arbiter_where=())


def _known(params: Sequence[Any], node: object) -> Any:
    """Return a node with the parameters' values."""
    if isinstance(node, Param) and node.number <= len(params):
        return Const(type=node.type, value=params[node.number - 1], span=node.span)
    return fold_node(replace_children(node, partial(_known, params)))


def _complete(
    indexes: Sequence[IndexDef], relation: RelationDef, catalog: Catalog, where: Sequence[Expr]
) -> tuple[int, ...]:
    """Return those that have all rows for which the target's WHERE holds; one that never holds says nothing,
    as in PostgreSQL.
    """
    if any(isinstance(conjunct, Const) and not conjunct.value for conjunct in where):
        where = ()
    found = []
    for index in indexes:
        _keys, condition = index_keys(index, relation, catalog)
        if all(implied(fold(conjunct), where) for conjunct in conjuncts_of(condition)):
            found.append(index)
    if not found:
        raise SqlError(
            "42P10",
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        )
    if any(index.deferrable for index in found):
        raise _deferrable_arbiter(relation, [index.oid for index in found])
    return tuple(index.oid for index in found)


def _is_over(
    index: IndexDef, relation: RelationDef, catalog: Catalog, wanted: Sequence[tuple[Expr, int]]
) -> bool:
    """Tell whether an index is over exactly these keys, by the collations they name."""
    keys, _condition = index_keys(index, relation, catalog)
    collations = [
        own or collation_of(relation.column(attnum))
        for attnum, own in zip(index.attnums, index.collations or (0,) * len(keys), strict=True)
    ]
    exprs = [expr for expr, _collation in wanted]
    if not all(key in exprs for key in keys):
        return False
    found = list(zip(keys, collations, strict=True))
    return all((expr, collation) in found if collation else expr in keys for expr, collation in wanted)


def _deferrable_arbiter(relation: RelationDef, indexes: Sequence[int]) -> SqlError:
    return SqlError(
        "55000",
        "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters",
        schema=relation.schema,
        table=relation.name,
        constraint=next(i.name for i in relation.indexes if i.deferrable and i.oid in indexes),
    )
