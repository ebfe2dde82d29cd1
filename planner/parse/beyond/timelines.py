"""CREATE and DROP TIMELINE, found by tokens as the statements of ``planner.parse.beyond``.

    CREATE TIMELINE [IF NOT EXISTS] name
    DROP TIMELINE [IF EXISTS] name [, ...] [RESTRICT | CASCADE]

They read as PostgreSQL's grammar reads those of a schema, which is put in their place: ``CREATE SCHEMA   name``.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner import ast
from planner.parse.beyond.tokens import ParseOne, Token, syntax_error


def is_timeline(said: Sequence[str]) -> bool:
    """Tell whether the words of a statement are those of a statement of this module."""
    return said[1:2] == ["timeline"] and said[0] in ("create", "drop")


def read_timeline(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.StatementNode:
    """Read a statement for which ``is_timeline``. Raises SqlError 42601, and what ``parse_one`` raises."""
    word = tokens[1]
    rest = text[word.end + 1 : tokens[-1].end + 1]
    node = parse_one(text[: word.start] + "SCHEMA".ljust(word.end + 1 - word.start) + rest)
    if isinstance(node, ast.CreateSchema):
        if node.owner is not None or node.elements or not node.name:
            at = tokens[(5 if node.if_not_exists else 2) + bool(node.name)]
            raise syntax_error(text, at.start, text[at.start : at.end + 1])
        return ast.CreateTimeline(name=node.name, if_not_exists=node.if_not_exists, span=node.span)
    if isinstance(node, ast.Drop):
        return ast.DropTimeline(
            names=tuple(name[0] for name in node.names),
            if_exists=node.if_exists,
            cascade=node.cascade,
            span=node.span,
        )
    raise AssertionError("CREATE and DROP SCHEMA read as something else")
