"""CREATE, ALTER, DROP and COMMENT ON POLICY.

    USING (owner = CURRENT_USER AND EXISTS (SELECT 1 FROM grp WHERE grp.k = t.k))      range 0: the table

Expressions are kept as canonical text and bound anew where they are used
(``planner.bind.query.row_security``), as CHECKs are; unlike these they may have sub-selects, so what they
read is kept beside them (``PolicyDef.depends_on``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.define.grant import check_roles
from planner.bind.define.of_table import bind_drop, named_part
from planner.bind.define.relations import relations_named
from planner.bind.expression.expr import bind_kept
from planner.bind.stored import stored_context, table_scope, with_oids, without_spans
from planner.catalog import Catalog, RelationDef
from planner.catalog.policy import PolicyCommand, PolicyDef
from planner.catalog.relation_kinds import TABLES
from planner.conversion.casts import coerce_to_boolean
from planner.deparse import deparse_expr
from planner.parse import parse_expression
from planner.query import Expr

PG_POLICY: Final = 3256
_COMMANDS: Final[dict[str, PolicyCommand]] = {
    "all": "*", "select": "r", "insert": "a", "update": "w", "delete": "d",
}  # fmt: skip


def bind_create_policy(context: BindContext, node: ast.CreatePolicy) -> st.CreatePolicy:
    """CREATE POLICY.

    Raises SqlError 42601 (an expression that the command has no use for), 42P01, 42809, 42501, and what its
    expressions raise.
    """
    command = _COMMANDS[node.command]
    if node.check is not None and command in "rd":
        raise SqlError("42601", "WITH CHECK cannot be applied to SELECT or DELETE")
    if node.using is not None and command == "a":
        raise SqlError("42601", "only WITH CHECK expression allowed for INSERT")
    check_roles(context, node.roles)
    relation = _table(context, node.relation)
    using, check = (_written(context, part, relation) for part in (node.using, node.check))
    policy = PolicyDef(
        oid=0,
        name=node.name,
        command=command,
        permissive=node.permissive,
        using_sql=using[0],
        check_sql=check[0],
        depends_on=tuple(sorted(using[1] | check[1])),
    )
    return st.CreatePolicy(table=relation.oid, policy=policy, roles=_roles(node.roles))


def bind_alter_policy(context: BindContext, node: ast.AlterPolicy) -> st.AlterPolicy:
    """ALTER POLICY ... TO, USING, WITH CHECK. Raises as CREATE POLICY, and 42704."""
    check_roles(context, node.roles or ())
    relation = _table(context, node.relation)
    using, check = (_written(context, part, relation) for part in (node.using, node.check))
    policy = of_table(relation, node.name)
    if node.check is not None and policy.command in "rd":
        raise SqlError("42601", "only USING expression allowed for SELECT, DELETE")
    if node.using is not None and policy.command == "a":
        raise SqlError("42601", "only WITH CHECK expression allowed for INSERT")
    changed = replace(
        policy,
        using_sql=policy.using_sql if node.using is None else using[0],
        check_sql=policy.check_sql if node.check is None else check[0],
    )
    changed = replace(changed, depends_on=_read(relation, changed, context.catalog))
    roles = None if node.roles is None else _roles(node.roles)
    return st.AlterPolicy(table=relation.oid, policy=changed, roles=roles)


def _table(context: BindContext, node: ast.TableRef) -> RelationDef:
    relation = context.relation(node.schema, node.name, catalog=node.catalog)
    if relation.virtual:
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    if relation.kind not in TABLES:
        raise SqlError("42809", f'"{relation.name}" is not a table')
    return relation


def _roles(nodes: Iterable[ast.Role]) -> tuple[st.PolicyRole, ...]:
    return tuple(st.PolicyRole(name="" if r.special == "public" else r.name or r.special) for r in nodes)


def _written(
    context: BindContext, node: ast.Expression | None, relation: RelationDef
) -> tuple[str, frozenset[int]]:
    """Return an expression's canonical text and the relations that it reads."""
    if node is None:
        return "", frozenset()
    try:
        expr = with_oids(context, _bound(context, node, relation))
    except SqlError as error:
        error.span = None  # as PostgreSQL, which binds these without the statement's text
        raise
    return deparse_expr(expr, relation), relations_named(expr)


def _bound(context: BindContext, node: ast.Expression, relation: RelationDef) -> Expr:
    return coerce_to_boolean(bind_kept(table_scope(context, relation), node, "POLICY"), "POLICY", context.env)


def stored_policy(context: BindContext, sql: str, relation: RelationDef) -> Expr:
    """Return the expression of a stored text; Vars of the table are range 0. ``context``: that of stored texts."""
    expr: Expr = without_spans(_bound(context, parse_expression(sql), relation))
    return expr


def expressions(
    policy: PolicyDef, relation: RelationDef, catalog: Catalog
) -> tuple[Expr | None, Expr | None]:
    """Return USING and WITH CHECK of a policy, None for what it has not; spans tell which join a column is
    of, so that it prints as one.
    """
    using, check = (
        _bound(stored_context(catalog, sql), parse_expression(sql), relation) if sql else None
        for sql in (policy.using_sql, policy.check_sql)
    )
    return using, check


def _read(relation: RelationDef, policy: PolicyDef, catalog: Catalog) -> tuple[int, ...]:
    found: set[int] = set()
    for expr in expressions(policy, relation, catalog):
        if expr is not None:
            found |= relations_named(expr)
    return tuple(sorted(found))


def rebound_policies(
    before: RelationDef, after: RelationDef, catalog: Catalog, change: Callable[[Expr], Expr]
) -> tuple[PolicyDef, ...]:
    """Return a table's policies with their expressions, bound against ``catalog`` and ``before``, changed and
    printed for ``after``.
    """
    made: list[PolicyDef] = []
    for policy in after.policies:
        texts = [
            "" if expr is None else deparse_expr(change(expr), after)
            for expr in expressions(policy, before, catalog)
        ]
        made.append(replace(policy, using_sql=texts[0], check_sql=texts[1]))
    return tuple(made)


# --- others ---------------------------------------------------------------------------------------


def of_table(relation: RelationDef, name: str) -> PolicyDef:
    """Return a table's policy. Raises SqlError 42704."""
    return named_part("policy", relation.policies, relation, name)


def bind_rename_policy(context: BindContext, node: ast.RenamePolicy) -> st.RenamePolicy:
    """ALTER POLICY ... RENAME TO. Raises SqlError 42P01, 42704, 42710, 42809, 42501."""
    relation = _table(context, node.relation)
    if any(policy.name == node.new for policy in relation.policies):
        raise SqlError("42710", f'policy "{node.new}" for table "{relation.name}" already exists')
    of_table(relation, node.name)
    return st.RenamePolicy(table=relation.oid, name=node.name, new=node.new)


def bind_drop_policy(context: BindContext, node: ast.DropPolicy) -> st.DropPolicy | st.Skip:
    """DROP POLICY. Raises SqlError 42704, 42P01, 3F000; with IF EXISTS these are notices."""
    found = bind_drop(context, node, "policy", lambda relation: relation.policies)
    return found if isinstance(found, st.Skip) else st.DropPolicy(table=found.oid, name=node.name)


def bind_comment_on_policy(context: BindContext, node: ast.CommentOnPolicy) -> st.Comment:
    """COMMENT ON POLICY. Raises SqlError 42P01, 42704."""
    relation = context.relation(node.table[-2] if len(node.table) > 1 else "", node.table[-1])
    oid = of_table(relation, node.name).oid
    return st.Comment(class_oid=PG_POLICY, object_oid=oid, sub_id=0, text=node.text)


SECURITY_ACTIONS: Final[dict[str, tuple[bool | None, bool | None]]] = {
    "enable row security": (True, None),
    "disable row security": (False, None),
    "force row security": (None, True),
    "no force row security": (None, False),
}
"""The kinds of ``ast.AlterAction`` about row-level security: (enabled, forced), None for what stays."""


def bind_row_security(kind: str) -> st.SetRowSecurity:
    """ALTER TABLE ... [ENABLE | DISABLE | FORCE | NO FORCE] ROW LEVEL SECURITY."""
    enabled, forced = SECURITY_ACTIONS[kind]
    return st.SetRowSecurity(enabled=enabled, forced=forced)
