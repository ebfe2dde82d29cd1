"""Raw parse tree -> AST, for statements about policies of row-level security (see ``planner.raw_statement``)."""

from __future__ import annotations

from typing import Any

from planner import ast
from planner.raw_option import object_word
from planner.raw_reader import Raw, strings


def create_policy(reader: Any, body: Raw) -> ast.Node:
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


def alter_policy(reader: Any, body: Raw) -> ast.Node:
    """Read ALTER POLICY, but for RENAME."""
    return ast.AlterPolicy(
        name=body["policy_name"],
        relation=reader.table(body["table"]),
        roles=_roles(reader, body["roles"]) if "roles" in body else None,
        using=reader.optional(body.get("qual")),
        check=reader.optional(body.get("with_check")),
    )


def _roles(reader: Any, nodes: Any) -> tuple[ast.Role, ...]:
    return tuple([reader._role(node["RoleSpec"]) for node in nodes])


def about_policy(reader: Any, kind: str, body: Raw) -> ast.Node | None:
    """Read RENAME, DROP and COMMENT where they are about policies, else return None."""
    key = {"RenameStmt": "renameType", "DropStmt": "removeType", "CommentStmt": "objtype"}.get(kind)
    if key is None or object_word(body[key]) != "policy":
        return None
    if kind == "RenameStmt":
        return ast.RenamePolicy(
            name=body["subname"], relation=reader.table(body["relation"]), new=body["newname"]
        )
    found = body["object"] if kind == "CommentStmt" else body["objects"][0]  # the grammar has no list of them
    name = strings(found["List"]["items"])
    if kind == "CommentStmt":
        return ast.CommentOnPolicy(table=name[:-1], name=name[-1], text=body.get("comment"))
    return ast.DropPolicy(table=name[:-1], name=name[-1], if_exists=body.get("missing_ok", False))
