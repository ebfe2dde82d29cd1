"""Raw parse tree -> AST, for statements about policies of row-level security (see
``planner.parse.reader.statement``).
"""

from __future__ import annotations

from collections.abc import Sequence

from planner import ast
from planner.parse.reader.option import OptionReader, about_part
from planner.parse.reader.reader import Raw


def create_policy(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE POLICY."""
    return ast.CreatePolicy(
        name=body["policy_name"],
        relation=reader.table(body["table"]),
        command=body["cmd_name"],
        permissive=body.get("permissive", False),
        roles=_roles(reader, body["roles"]),
        using=reader.optional(body.get("qual")),
        check=reader.optional(body.get("with_check")),
    )


def alter_policy(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER POLICY, but for RENAME."""
    return ast.AlterPolicy(
        name=body["policy_name"],
        relation=reader.table(body["table"]),
        roles=_roles(reader, body["roles"]) if "roles" in body else None,
        using=reader.optional(body.get("qual")),
        check=reader.optional(body.get("with_check")),
    )


def _roles(reader: OptionReader, nodes: Sequence[Raw]) -> tuple[ast.Role, ...]:
    return tuple([reader.role(node["RoleSpec"]) for node in nodes])


def about_policy(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read RENAME, DROP and COMMENT where they are about policies, else return None."""
    return about_part(
        reader,
        kind,
        body,
        "policy",
        rename=ast.RenamePolicy,
        drop=ast.DropPolicy,
        comment=ast.CommentOnPolicy,
    )
