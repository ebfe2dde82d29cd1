"""Raw parse tree -> AST, for statements about types (see ``planner.raw_statement``)."""

from __future__ import annotations

from planner import ast
from planner.raw_query import Raw, RawReader, strings


def create_enum(reader: RawReader, body: Raw) -> ast.Node:
    """Read CREATE TYPE ... AS ENUM."""
    return ast.CreateEnum(name=strings(body["typeName"]), labels=strings(body.get("vals", ())))


def alter_enum(reader: RawReader, body: Raw) -> ast.Node:
    """Read ALTER TYPE ... ADD VALUE and RENAME VALUE."""
    name = strings(body["typeName"])
    if "oldVal" in body:
        return ast.RenameEnumValue(name=name, old=body["oldVal"], new=body["newVal"])
    return ast.AddEnumValue(
        name=name,
        label=body["newVal"],
        neighbour=body.get("newValNeighbor"),
        after=body.get("newValIsAfter", False),
        if_not_exists=body.get("skipIfNewValExists", False),
    )
