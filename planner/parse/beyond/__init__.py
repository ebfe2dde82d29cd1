"""Statements beyond PostgreSQL's grammar, found by its scanner's tokens: SUBSCRIBE, FETCH with a timeout, and others.

    SUBSCRIBE [TO] name | (query) [AS OF expr] [UP TO expr] [WITH (snapshot [= bool], progress [= bool])]
    SUBSCRIBE [TO] SUBSCRIPTION name [UP TO expr] [WITH (progress [= bool])]
    DECLARE c [BINARY] [NO SCROLL] CURSOR FOR SUBSCRIBE ...
    COPY (SUBSCRIBE ...) TO STDOUT [WITH (...)]
    PREPARE name [(types)] AS SUBSCRIBE ...         EXPLAIN [...] SUBSCRIBE ...
    FETCH [...] c WITH (timeout = 'interval')
    CREATE, ALTER, DROP SUBSCRIPTION                                               (planner.parse.beyond.named)
    CREATE, DROP TIMELINE                                                          (planner.parse.beyond.timelines)
    CREATE, ALTER, DROP SOURCE                                                     (planner.parse.beyond.sources)

A statement of PostgreSQL's around one of ours is left to its grammar, with SELECT 1 in the inner one's place.

    SUBSCRIBE (SELECT a FROM t) AS OF 5 + 1        the statement
               SELECT a FROM t                     its query
    SELECT                            5 + 1        its timestamp

This module knows tokens, not the library they come from (``planner.parse`` is its one door). No statement of
PostgreSQL begins with these words, so nothing changes its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse.beyond.named import is_named, read_named
from planner.parse.beyond.sources import is_source, read_source
from planner.parse.beyond.timelines import is_timeline, read_timeline
from planner.parse.beyond.tokens import (
    DOT,
    OPEN,
    ParseOne,
    Token,
    boolean,
    closing,
    end_of_expression,
    expression,
    identifier,
    options,
    queried,
    span_of,
    syntax_error,
    words,
)

WORDS_BEYOND: Final = ("subscribe", "timeout", "subscription", "timeline", "source")
MAY_GO_BEYOND: Final = re.compile(rf"\b(?:{'|'.join(WORDS_BEYOND)})\b", re.IGNORECASE)
"""A text that does not match holds none of these statements; one that matches may."""

_OUTER: Final = {"declare": "for", "prepare": "as", "copy": "("}
"""What stands before SUBSCRIBE in a statement that may hold one."""


def goes_beyond(text: str, tokens: Sequence[Token]) -> bool:
    """Tell whether the tokens of one statement are those of a statement of this module."""
    said = words(text, tokens)
    if not said:
        return False
    if (
        said[0] == "subscribe"
        or is_named(said)
        or is_timeline(said)
        or is_source(said)
        or _inner(text, tokens, said) is not None
    ):
        return True
    return said[0] in ("fetch", "move") and "with" in said


def _inner(text: str, tokens: Sequence[Token], said: Sequence[str]) -> int | None:
    """Return where SUBSCRIBE stands in a statement around it, None if there is none."""
    if "subscribe" not in said[1:]:
        return None
    at = said.index("subscribe", 1)
    if said[0] == "explain":
        first = closing(text, tokens, 1) + 1 if tokens[1].name == OPEN else 1
        return at if all(word in ("analyze", "verbose") for word in said[first:at]) else None
    return at if said[at - 1] == _OUTER.get(said[0]) and (said[0] != "copy" or at == 2) else None


def read_statement(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.StatementNode:
    """Read one statement that ``goes_beyond``. Raises SqlError 42601, and what ``parse_one`` raises."""
    said = words(text, tokens)
    if said[0] == "subscribe":
        return _subscribe(text, tokens, parse_one)
    if said[0] in ("fetch", "move"):
        return _fetch(text, tokens, parse_one)
    if is_named(said):
        return read_named(text, tokens, parse_one)
    if is_timeline(said):
        return read_timeline(text, tokens, parse_one)
    if is_source(said):
        return read_source(text, tokens, parse_one)
    at = said.index("subscribe", 1)
    stop = closing(text, tokens, at - 1) if said[0] == "copy" else len(tokens)
    inner = _subscribe(text, tokens[at:stop], parse_one)
    masked = text[: tokens[at].start] + "SELECT 1 "
    if stop < len(tokens):
        masked += " " * (tokens[stop].start - len(masked)) + text[tokens[stop].start : tokens[-1].end + 1]
    node = parse_one(masked)
    if isinstance(node, ast.DeclareCursor | ast.Copy):
        return replace(node, query=inner)
    if isinstance(node, ast.Explain):
        return replace(node, statement=inner)
    if isinstance(node, ast.Prepare):
        start = tokens[at].start
        return replace(node, text=text[start : tokens[-1].end + 1], at=start)
    raise AssertionError(f"{said[0].upper()} reads as something else")


def _subscribe(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.Subscribe:
    said = words(text, tokens)
    at = 2 if said[1:2] == ["to"] else 1
    if at >= len(tokens):
        raise syntax_error(text, tokens[-1].end + 1)
    name: str | None = None
    query: ast.QueryNode | None = None
    if _names_one(tokens, said, at):
        name, at = identifier(text, tokens, at + 1)
    else:
        query, at = queried(text, tokens, at, parse_one)
    found: dict[str, ast.Expression] = {}
    flags = {"snapshot": True, "progress": False}
    if name is not None:
        del flags["snapshot"]
    while at < len(tokens):
        clause = " ".join(said[at : at + 2])
        if clause in ("as of", "up to"):
            if clause in found or (clause == "as of" and name is not None):
                raise syntax_error(text, tokens[at].start, said[at])
            start = at + 2
            if clause == "as of" and said[start : start + 2] == ["system", "time"]:
                start += 2
            at = end_of_expression(tokens, said, start)
            if at == start:
                raise syntax_error(text, tokens[at].start if at < len(tokens) else tokens[-1].end + 1)
            found[clause] = expression(text, tokens, start, at, parse_one)
        elif said[at] == "with" and at + 1 < len(tokens) and tokens[at + 1].name == OPEN:
            close = closing(text, tokens, at + 1)
            for option, value, token in options(text, tokens[at + 2 : close], tokens[close]):
                if option not in flags:
                    raise SqlError(
                        "42601", f'SUBSCRIBE option "{option}" not recognized', span=span_of(token)
                    )
                flags[option] = boolean(option, value, token)
            at = close + 1
        else:
            raise syntax_error(text, tokens[at].start, text[tokens[at].start : tokens[at].end + 1])
    return ast.Subscribe(
        query=query,
        subscription=name,
        as_of=found.get("as of"),
        up_to=found.get("up to"),
        snapshot=flags.get("snapshot", True),
        progress=flags["progress"],
        span=Span(tokens[0].start, tokens[-1].end + 1),
    )


def _names_one(tokens: Sequence[Token], said: Sequence[str], at: int) -> bool:
    """Tell whether it is SUBSCRIPTION and a name, and no table called subscription."""
    if said[at] != "subscription" or at + 1 >= len(tokens) or tokens[at + 1].name == DOT:
        return False
    return said[at + 1] not in ("as", "with") and said[at + 1 : at + 3] != ["up", "to"]


def _fetch(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.StatementNode:
    said = words(text, tokens)
    at = len(said) - 1 - said[::-1].index("with")
    if at + 1 >= len(tokens) or tokens[at + 1].name != OPEN:
        raise syntax_error(text, tokens[at].start, said[at])
    close = closing(text, tokens, at + 1)
    if close != len(tokens) - 1:
        raise syntax_error(text, tokens[close + 1].start, said[close + 1])
    timeout = None
    for name, value, token in options(text, tokens[at + 2 : close], tokens[close]):
        if name != "timeout":
            raise SqlError("42601", f'FETCH option "{name}" not recognized', span=span_of(token))
        if value is None or not value.startswith("'"):
            raise SqlError("22023", "timeout requires an interval, as in '1 second'", span=span_of(token))
        timeout = value[1:-1].replace("''", "'")
    node = parse_one(text[: tokens[at].start])
    if not isinstance(node, ast.Fetch):
        raise AssertionError("FETCH reads as something else")
    return replace(node, timeout=timeout)
