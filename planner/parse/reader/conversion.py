"""Raw parse tree -> AST, for statements about conversions and collations (see ``planner.parse.reader.statement``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner import ast
from planner.parse.reader.option import OptionReader, object_word
from planner.parse.reader.reader import Raw, strings

_WHAT: Final = {
    "RenameStmt": "renameType", "AlterObjectSchemaStmt": "objectType", "AlterOwnerStmt": "objectType",
    "DropStmt": "removeType", "CommentStmt": "objtype",
}  # fmt: skip


class _Kind(NamedTuple):
    alter: Callable[..., ast.StatementNode]
    drop: Callable[..., ast.StatementNode]
    comment: Callable[..., ast.StatementNode]


_KINDS: Final[Mapping[str, _Kind]] = {
    "conversion": _Kind(ast.AlterConversion, ast.DropConversion, ast.CommentOnConversion),
    "collation": _Kind(ast.AlterCollation, ast.DropCollation, ast.CommentOnCollation),
}


def create_conversion(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE CONVERSION."""
    return ast.CreateConversion(
        name=strings(body["conversion_name"]),
        source=body["for_encoding_name"],
        target=body["to_encoding_name"],
        function=strings(body["func_name"]),
        default=body.get("def", False),
    )


def about_conversion(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read RENAME, SET SCHEMA, OWNER TO, DROP and COMMENT where they are about conversions or collations,
    else return None.
    """
    key = _WHAT.get(kind)
    made = None if key is None else _KINDS.get(object_word(body[key]))
    if made is None:
        return None
    if kind == "DropStmt":
        return made.drop(
            names=tuple([strings(node["List"]["items"]) for node in body["objects"]]),
            if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )
    name = strings(body["object"]["List"]["items"])
    if kind == "CommentStmt":
        return made.comment(name=name, text=body.get("comment"))
    if kind == "RenameStmt":
        return made.alter(name=name, rename=body["newname"])
    if kind == "AlterObjectSchemaStmt":
        return made.alter(name=name, schema=body["newschema"])
    return made.alter(name=name, owner=reader.role(body["newowner"]))
