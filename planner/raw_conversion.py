"""Raw parse tree -> AST, for statements about conversions (see ``planner.raw_statement``)."""

from __future__ import annotations

from typing import Any, Final

from planner import ast
from planner.raw_option import object_word
from planner.raw_reader import Raw, strings

_WHAT: Final = {
    "RenameStmt": "renameType", "AlterObjectSchemaStmt": "objectType", "AlterOwnerStmt": "objectType",
    "DropStmt": "removeType", "CommentStmt": "objtype",
}  # fmt: skip


def create_conversion(reader: Any, body: Raw) -> ast.Node:
    """Read CREATE CONVERSION."""
    return ast.CreateConversion(
        name=strings(body["conversion_name"]),
        source=body["for_encoding_name"],
        target=body["to_encoding_name"],
        function=strings(body["func_name"]),
        default=body.get("def", False),
    )


def about_conversion(reader: Any, kind: str, body: Raw) -> ast.Node | None:
    """Read RENAME, SET SCHEMA, OWNER TO, DROP and COMMENT where they are about conversions, else return None."""
    key = _WHAT.get(kind)
    if key is None or object_word(body[key]) != "conversion":
        return None
    if kind == "DropStmt":
        return ast.DropConversion(
            names=tuple([strings(node["List"]["items"]) for node in body["objects"]]),
            if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )
    name = strings(body["object"]["List"]["items"])
    if kind == "CommentStmt":
        return ast.CommentOnConversion(name=name, text=body.get("comment"))
    if kind == "RenameStmt":
        return ast.AlterConversion(name=name, rename=body["newname"])
    if kind == "AlterObjectSchemaStmt":
        return ast.AlterConversion(name=name, schema=body["newschema"])
    return ast.AlterConversion(name=name, owner=reader._role(body["newowner"]))
