"""REASSIGN OWNED, DROP OWNED, ALTER DEFAULT PRIVILEGES; and statements about extensions."""

from __future__ import annotations

from typing import Final

from pgwire.give_way import paced
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.grant import check_roles, letter_of
from planner.bind.define.table.placing import creation_schema
from planner.bind.session.utility import owner_name
from planner.catalog.acl import ALL, ordered

_KINDS: Final = {
    "table": "relation", "sequence": "sequence", "function": "function", "type": "type", "schema": "schema",
}  # fmt: skip
PG_EXTENSION: Final = 3079  # the oid of the catalog


def bind_reassign(context: BindContext, node: ast.ReassignOwned) -> st.ReassignOwned:
    """REASSIGN OWNED."""
    return st.ReassignOwned(
        roles=tuple(owner_name(role) for role in paced(node.roles)), to=owner_name(node.to)
    )


def bind_drop_owned(context: BindContext, node: ast.DropOwned) -> st.DropOwned:
    """DROP OWNED."""
    return st.DropOwned(roles=tuple(owner_name(role) for role in paced(node.roles)), cascade=node.cascade)


def bind_default_privileges(
    context: BindContext, node: ast.AlterDefaultPrivileges
) -> st.AlterDefaultPrivileges:
    """ALTER DEFAULT PRIVILEGES. Raises SqlError 3F000, 0LP01 (a privilege the kind has not, IN SCHEMA for schemas)."""
    kind = _KINDS.get(node.kind)
    if kind is None:
        raise not_supported(f"ALTER DEFAULT PRIVILEGES ON {node.kind.upper()}", span=node.span)
    if kind == "schema" and node.schemas:
        raise SqlError("0LP01", "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS")
    if node.is_grant and node.option and any(role.special == "public" for role in paced(node.grantees)):
        raise SqlError("0LP01", "grant options can only be granted to roles")
    check_roles(context, node.grantees)
    if any(privilege.columns for privilege in node.privileges):
        raise SqlError("0LP01", "default privileges cannot be set for columns")
    schemas: list[int] = []
    for name in paced(node.schemas):
        schema = context.catalog.schema(name)
        if schema is None:
            raise SqlError("3F000", f'schema "{name}" does not exist')
        schemas.append(schema.oid)
    words = "".join(letter_of(privilege, kind, kind) for privilege in node.privileges)
    return st.AlterDefaultPrivileges(
        roles=tuple(owner_name(role) for role in paced(node.roles)) or ("current_user",),
        schemas=tuple(schemas) or (0,),
        kind=kind,
        is_grant=node.is_grant,
        letters=ordered(words) if node.privileges else ALL[kind],
        grantees=tuple(
            None if role.special == "public" else owner_name(role) for role in paced(node.grantees)
        ),
        option=node.option,
        cascade=node.cascade,
    )


def bind_extension(context: BindContext, node: ast.Extension) -> st.Statement:
    """CREATE, ALTER, DROP and COMMENT ON EXTENSION. Raises SqlError 0A000 (others' members), 42704 (a comment
    on none).
    """
    name = node.names[0]
    match node.verb:
        case "create":
            reference = ast.TableRef(catalog="", schema=node.schema, name=name)
            schema = creation_schema(context, reference)
            return st.CreateExtension(
                name=name, schema=schema, version=node.version, if_not_exists=node.skips
            )
        case "drop":
            return st.DropExtension(names=node.names, if_exists=node.skips, cascade=node.cascade)
        case "update" | "set schema":
            return st.AlterExtension(name=name, schema=node.schema, version=node.version)
    found = context.catalog.extension(name)
    if found is None:
        raise SqlError("42704", f'extension "{name}" does not exist')
    if node.verb == "alter":
        raise not_supported("ALTER EXTENSION ... ADD or DROP", span=node.span)
    return st.Comment(class_oid=PG_EXTENSION, object_oid=found.oid, sub_id=0, text=node.text)
