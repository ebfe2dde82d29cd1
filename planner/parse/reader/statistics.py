"""Raw parse tree -> AST, for statements about extended statistics (see ``planner.parse.reader.statement``)."""

from __future__ import annotations

from typing import Final

from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse import scanner
from planner.parse.reader.option import OptionReader, object_word
from planner.parse.reader.reader import Raw, strings

_KINDS: Final = {
    "RenameStmt": "renameType", "AlterObjectSchemaStmt": "objectType", "AlterOwnerStmt": "objectType",
    "DropStmt": "removeType", "CommentStmt": "objtype",
}  # fmt: skip
"""Statements about objects of several kinds, and where they say of which."""


def create_statistics(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read CREATE STATISTICS. Raises SqlError 42601 where there is no name, which version 15 asks for; 0A000."""
    if "defnames" not in body:
        raise _unnamed(reader.text)
    relations = body["relations"]
    if len(relations) != 1:
        raise SqlError("0A000", "only a single relation is allowed in CREATE STATISTICS")
    if "RangeVar" not in relations[0]:
        raise SqlError("0A000", "CREATE STATISTICS only supports relation names in the FROM clause")
    return ast.CreateStatistics(
        name=strings(body["defnames"]),
        kinds=strings(body.get("stat_types", ())),
        elements=tuple([_element(reader, node["StatsElem"]) for node in body["exprs"]]),
        relation=reader.table(relations[0]["RangeVar"]),
        if_not_exists=body.get("if_not_exists", False),
    )


def _unnamed(text: str) -> SqlError:
    """Return the error for what stands where a name ought to; the tree has no place of it."""
    before = ""
    for token in scanner.each(text):
        if before == "STATISTICS" and token.name in ("ON", "ASCII_40"):
            word = text[token.start : token.end + 1]
            return SqlError(
                "42601", f'syntax error at or near "{word}"', span=Span(token.start, token.end + 1)
            )
        before = token.name
    raise AssertionError("statistics without a name have one")


def _element(reader: OptionReader, body: Raw) -> ast.StatisticsElement:
    return ast.StatisticsElement(name=body.get("name", ""), expr=reader.optional(body.get("expr")))


def alter_statistics(reader: OptionReader, body: Raw) -> ast.StatementNode:
    """Read ALTER STATISTICS ... SET STATISTICS."""
    target = body.get("stxstattarget")
    return ast.AlterStatistics(
        name=strings(body["defnames"]),
        if_exists=body.get("missing_ok", False),
        target=-1 if target is None else target["Integer"].get("ival", 0),
    )


def about_statistics(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read RENAME, SET SCHEMA, OWNER TO, DROP and COMMENT where they are about statistics, else return None."""
    key = _KINDS.get(kind)
    if key is None or object_word(body[key]) != "statistics":
        return None
    if kind == "DropStmt":
        return ast.DropStatistics(
            names=tuple([strings(node["List"]["items"]) for node in body["objects"]]),
            if_exists=body.get("missing_ok", False),
        )
    name = strings(body["object"]["List"]["items"])
    if kind == "CommentStmt":
        return ast.CommentOnStatistics(name=name, text=body.get("comment"))
    if kind == "RenameStmt":
        return ast.AlterStatistics(name=name, rename=body["newname"])
    if kind == "AlterObjectSchemaStmt":
        return ast.AlterStatistics(name=name, schema=body["newschema"])
    return ast.AlterStatistics(name=name, owner=reader.role(body["newowner"]))
