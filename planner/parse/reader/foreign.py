"""Raw parse tree -> AST, for statements about foreign data (see ``planner.parse.reader.statement``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from planner import ast
from planner.base.errors import SqlError
from planner.parse.reader.option import OptionReader, object_word
from planner.parse.reader.reader import Raw, strings

KINDS: Final = frozenset(("foreign data wrapper", "server"))
_ACTIONS: Final[Mapping[str, ast.OptionAction]] = {
    "DEFELEM_UNSPEC": "add", "DEFELEM_ADD": "add", "DEFELEM_SET": "set", "DEFELEM_DROP": "drop",
}  # fmt: skip
_WHAT: Final = {
    "RenameStmt": "renameType", "AlterOwnerStmt": "objectType", "DropStmt": "removeType", "CommentStmt": "objtype",
}  # fmt: skip
"""Statements about objects of several kinds, and where they say of which."""


def foreign_options(nodes: Sequence[Raw] | None) -> tuple[ast.ForeignOption, ...]:
    """Read OPTIONS (...)."""
    return tuple(
        [
            ast.ForeignOption(
                name=body["defname"],
                value=body["arg"]["String"].get("sval", "") if "arg" in body else "",
                action=_ACTIONS[body["defaction"]],
            )
            for body in [node["DefElem"] for node in nodes or ()]
        ]
    )


def define_wrapper(reader: OptionReader, body: Raw, *, create: bool) -> ast.StatementNode:
    """Read CREATE and ALTER FOREIGN DATA WRAPPER. Raises SqlError 42601 for a function that is named twice."""
    functions: dict[str, ast.Name] = {}
    for node in body.get("func_options", ()):
        option = node["DefElem"]
        if option["defname"] in functions:
            raise SqlError("42601", "conflicting or redundant options", span=reader.span(option))
        functions[option["defname"]] = strings(option["arg"]["List"]["items"]) if "arg" in option else ()
    return ast.DefineWrapper(
        create=create,
        name=body["fdwname"],
        handler=functions.get("handler"),
        validator=functions.get("validator"),
        options=foreign_options(body.get("options")),
    )


def create_wrapper(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE FOREIGN DATA WRAPPER."""
    return define_wrapper(reader, body, create=True)


def alter_wrapper(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER FOREIGN DATA WRAPPER."""
    return define_wrapper(reader, body, create=False)


def create_server(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE SERVER."""
    return ast.CreateServer(
        name=body["servername"],
        wrapper=body["fdwname"],
        type=body.get("servertype"),
        version=body.get("version"),
        if_not_exists=body.get("if_not_exists", False),
        options=foreign_options(body.get("options")),
    )


def alter_server(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER SERVER with a version or options."""
    return ast.AlterServer(
        name=body["servername"],
        has_version=body.get("has_version", False),
        version=body.get("version"),
        options=foreign_options(body.get("options")),
    )


def create_mapping(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE USER MAPPING."""
    return ast.UserMapping(
        verb="create",
        role=reader.role(body["user"]),
        server=body["servername"],
        lenient=body.get("if_not_exists", False),
        options=foreign_options(body.get("options")),
    )


def alter_mapping(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER USER MAPPING."""
    return ast.UserMapping(
        verb="alter",
        role=reader.role(body["user"]),
        server=body["servername"],
        options=foreign_options(body["options"]),
    )


def drop_mapping(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read DROP USER MAPPING."""
    return ast.UserMapping(
        verb="drop",
        role=reader.role(body["user"]),
        server=body["servername"],
        lenient=body.get("missing_ok", False),
    )


def import_schema(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read IMPORT FOREIGN SCHEMA."""
    return ast.ImportForeignSchema(server=body["server_name"], schema=body["local_schema"])


def about_foreign(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read RENAME, OWNER TO, DROP and COMMENT where they are about wrappers and servers, else return None."""
    key = _WHAT.get(kind)
    if key is None or (what := object_word(body[key])) not in KINDS:
        return None
    if kind == "DropStmt":
        return ast.DropForeign(
            what=what,
            names=strings(body["objects"]),
            if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )
    name = body["object"]["String"]["sval"]
    if kind == "CommentStmt":
        return ast.CommentOnForeign(what=what, name=name, text=body.get("comment"))
    if kind == "RenameStmt":
        return ast.AlterForeign(what=what, name=name, rename=body["newname"])
    return ast.AlterForeign(what=what, name=name, owner=reader.role(body["newowner"]))
