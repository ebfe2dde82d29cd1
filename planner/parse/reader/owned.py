"""Raw parse tree -> AST, for statements about what roles own, and extensions (see
``planner.parse.reader.statement``).
"""

from __future__ import annotations

from planner import ast
from planner.parse.reader.definitions import DdlReader
from planner.parse.reader.option import object_word
from planner.parse.reader.reader import Raw, strings


def reassign(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read REASSIGN OWNED."""
    return ast.ReassignOwned(roles=_roles(reader, body["roles"]), to=reader.role(body["newrole"]))


def drop(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read DROP OWNED."""
    return ast.DropOwned(roles=_roles(reader, body["roles"]), cascade=body.get("behavior") == "DROP_CASCADE")


def _roles(reader: DdlReader, nodes: list[Raw]) -> tuple[ast.Role, ...]:
    return tuple([reader.role(node["RoleSpec"]) for node in nodes])


def default_privileges(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read ALTER DEFAULT PRIVILEGES."""
    lists = {o["DefElem"]["defname"]: o["DefElem"]["arg"]["List"]["items"] for o in body.get("options", ())}
    action = body["action"]
    return ast.AlterDefaultPrivileges(
        roles=_roles(reader, lists.get("roles", [])),
        schemas=strings(lists.get("schemas", ())),
        is_grant=action.get("is_grant", False),
        kind=object_word(action["objtype"]),
        privileges=tuple([reader.privilege(node["AccessPriv"]) for node in action.get("privileges", ())]),
        grantees=_roles(reader, action["grantees"]),
        option=action.get("grant_option", False),
        cascade=action.get("behavior") == "DROP_CASCADE",
    )


def create_extension(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read CREATE EXTENSION."""
    words = _words(body)
    return ast.Extension(
        verb="create",
        names=(body["extname"],),
        skips=body.get("if_not_exists", False),
        cascade="cascade" in words,
        schema=words.get("schema", ""),
        version=words.get("new_version", ""),
    )


def update_extension(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read ALTER EXTENSION ... UPDATE."""
    return ast.Extension(verb="update", names=(body["extname"],), version=_words(body).get("new_version", ""))


def alter_extension(reader: DdlReader, body: Raw) -> ast.StatementNode:
    """Read ALTER EXTENSION ... ADD and DROP."""
    return ast.Extension(verb="alter", names=(body["extname"],))


def _words(body: Raw) -> dict[str, str]:
    """Return the options of CREATE EXTENSION and UPDATE."""
    options = [option["DefElem"] for option in body.get("options", ())]
    return {o["defname"]: o.get("arg", {}).get("String", {}).get("sval", "") for o in options}


def about_extension(reader: DdlReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read DROP, SET SCHEMA and COMMENT where they are about extensions, else return None."""
    key = {"DropStmt": "removeType", "AlterObjectSchemaStmt": "objectType", "CommentStmt": "objtype"}.get(
        kind
    )
    if key is None or body[key] != "OBJECT_EXTENSION":
        return None
    if kind == "DropStmt":
        names = tuple([reader.object_name(node)[0] for node in body["objects"]])
        return ast.Extension(
            verb="drop",
            names=names,
            skips=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )
    names = reader.object_name(body["object"])
    if kind == "CommentStmt":
        return ast.Extension(verb="comment on", names=names, text=body.get("comment"))
    return ast.Extension(verb="set schema", names=names, schema=body["newschema"])
