"""The parser's DROP statements about kinds of objects that nobody can create here -> ``planner.ast.absent``."""

from __future__ import annotations

from typing import Final

from planner import ast
from planner.parse.reader.option import OptionReader, object_word
from planner.parse.reader.reader import Raw, strings

KINDS: Final = frozenset(
    {
        "access method", "cast", "event trigger",
        "language", "operator", "publication", "rule",
        "text search parser", "text search template",
    }
)  # fmt: skip


def about_absent(reader: OptionReader, kind: str, body: Raw) -> ast.StatementNode | None:
    """Read DROP of such a kind, else return None."""
    if kind != "DropStmt":
        return None
    what = object_word(body["removeType"])
    if what not in KINDS:
        return None
    return ast.DropAbsent(
        what=what,
        objects=tuple([_object(reader, node) for node in body["objects"]]),
        if_exists=body.get("missing_ok", False),
    )


def _object(reader: OptionReader, node: Raw) -> ast.AbsentObject:
    if "ObjectWithArgs" in node:
        body = node["ObjectWithArgs"]
        return ast.AbsentObject(
            name=strings(body["objname"]),
            types=tuple([reader.type_name(a["TypeName"]) if a else None for a in body.get("objargs", ())]),
        )
    items = node["List"]["items"] if "List" in node else [node]
    return ast.AbsentObject(
        name=strings([item for item in items if "String" in item]),
        types=tuple([reader.type_name(item["TypeName"]) for item in items if "TypeName" in item]),
    )
