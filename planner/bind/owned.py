"""REASSIGN OWNED, DROP OWNED, ALTER DEFAULT PRIVILEGES; and extensions, of which there are none."""

from __future__ import annotations

from typing import Final

from planner import ast
from planner import statements as st
from planner.acl import ALL, ordered
from planner.bind.context import BindContext
from planner.bind.grant import letter_of
from planner.bind.utility import owner_name
from planner.errors import SqlError, not_supported

_KINDS: Final = {
    "table": "relation", "sequence": "sequence", "function": "function", "type": "type", "schema": "schema",
}  # fmt: skip
_BUILT_IN: Final = {
    "pgcrypto": "gen_random_uuid() and sha224() to sha512() are built in.",
    "uuid-ossp": "gen_random_uuid() is built in.",
    "plpgsql": "Functions can be written in LANGUAGE sql.",
    "citext": "An index on lower(column) may serve instead.",
}


def bind_reassign(context: BindContext, node: ast.ReassignOwned) -> st.ReassignOwned:
    """REASSIGN OWNED."""
    return st.ReassignOwned(roles=tuple(owner_name(role) for role in node.roles), to=owner_name(node.to))


def bind_drop_owned(context: BindContext, node: ast.DropOwned) -> st.DropOwned:
    """DROP OWNED."""
    return st.DropOwned(roles=tuple(owner_name(role) for role in node.roles), cascade=node.cascade)


def bind_default_privileges(
    context: BindContext, node: ast.AlterDefaultPrivileges
) -> st.AlterDefaultPrivileges:
    """ALTER DEFAULT PRIVILEGES. Raises SqlError 3F000, 0LP01 (a privilege the kind has not, IN SCHEMA for schemas)."""
    kind = _KINDS.get(node.kind)
    if kind is None:
        raise not_supported(f"ALTER DEFAULT PRIVILEGES ON {node.kind.upper()}", span=node.span)
    if kind == "schema" and node.schemas:
        raise SqlError("0LP01", "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS")
    if node.is_grant and node.option and any(role.special == "public" for role in node.grantees):
        raise SqlError("0LP01", "grant options can only be granted to roles")
    schemas: list[int] = []
    for name in node.schemas:
        schema = context.catalog.schema(name)
        if schema is None:
            raise SqlError("3F000", f'schema "{name}" does not exist')
        schemas.append(schema.oid)
    words = "".join(letter_of(privilege, kind, kind) for privilege in node.privileges)
    return st.AlterDefaultPrivileges(
        roles=tuple(owner_name(role) for role in node.roles) or ("current_user",),
        schemas=tuple(schemas) or (0,),
        kind=kind,
        is_grant=node.is_grant,
        letters=ordered(words) if node.privileges else ALL[kind],
        grantees=tuple(None if role.special == "public" else owner_name(role) for role in node.grantees),
        option=node.option,
        cascade=node.cascade,
    )


def bind_extension(context: BindContext, node: ast.Extension) -> st.Skip:
    """CREATE EXTENSION is 0A000 as PostgreSQL says it of one that is not installed; others find none (42704).

    DROP EXTENSION IF EXISTS does nothing.
    """
    if node.verb == "create":
        name = node.names[0]
        raise SqlError(
            "0A000",
            f'extension "{name}" is not available',
            detail="There are no extensions of Holdfast.",
            hint=_BUILT_IN.get(name, "The statements that need it will fail by the name of what they use."),
        )
    for name in node.names:
        if not node.if_exists:
            raise SqlError("42704", f'extension "{name}" does not exist')
    notices = [f'extension "{name}" does not exist, skipping' for name in node.names]
    return st.Skip(notice=notices[0], more=tuple(notices[1:]))
