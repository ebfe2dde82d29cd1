"""Statements about named subscriptions, found by tokens as those of ``planner.parse.beyond``.

    CREATE SUBSCRIPTION [IF NOT EXISTS] name FOR table | (query) [WITH (snapshot [= bool])]
    ALTER SUBSCRIPTION name ACKNOWLEDGE moment
    DROP SUBSCRIPTION [IF EXISTS] name
    SUBSCRIBE [TO] SUBSCRIPTION name [UP TO moment] [WITH (progress [= bool])]     (planner.parse.beyond)

PostgreSQL's own CREATE SUBSCRIPTION goes on with CONNECTION, its ALTER with other words: they stay its grammar's.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse.beyond.tokens import (
    OPEN,
    ParseOne,
    Token,
    boolean,
    closing,
    expression,
    identifier,
    options,
    queried,
    span_of,
    syntax_error,
    words,
)


def is_named(said: Sequence[str]) -> bool:
    """Tell whether the words of a statement are those of a statement of this module."""
    if said[1:2] != ["subscription"]:
        return False
    if said[0] == "create":
        return "for" in said and "connection" not in said[: said.index("for")]
    return (said[0] == "alter" and said[3:4] == ["acknowledge"]) or said[0] == "drop"


def read_named(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.StatementNode:
    """Read a statement for which ``is_named``. Raises SqlError 42601, and what ``parse_one`` raises."""
    said = words(text, tokens)
    span = Span(tokens[0].start, tokens[-1].end + 1)
    if said[0] == "create":
        return _create(text, tokens, parse_one)
    at = 2
    if said[0] == "drop":
        missing_ok = said[2:4] == ["if", "exists"]
        name, at = identifier(text, tokens, 4 if missing_ok else 2)
        if said[at : at + 1] in (["restrict"], ["cascade"]):
            at += 1  # nothing depends on a subscription
        if at < len(tokens):
            raise syntax_error(text, tokens[at].start, text[tokens[at].start : tokens[at].end + 1])
        return ast.DropSubscription(name=name, if_exists=missing_ok, span=span)
    name, at = identifier(text, tokens, 2)
    if at + 1 >= len(tokens):
        raise syntax_error(text, tokens[-1].end + 1)
    to = expression(text, tokens, at + 1, len(tokens), parse_one)
    return ast.AcknowledgeSubscription(name=name, to=to, span=span)


def _create(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.CreateSubscription:
    said = words(text, tokens)
    missing_ok = said[2:5] == ["if", "not", "exists"]
    name, at = identifier(text, tokens, 5 if missing_ok else 2)
    if said[at : at + 1] != ["for"] or at + 1 >= len(tokens):
        where = tokens[at].start if at < len(tokens) else tokens[-1].end + 1
        raise syntax_error(text, where, said[at] if at < len(said) else "")
    query, at = queried(text, tokens, at + 1, parse_one)
    snapshot = True
    if at < len(tokens):
        if said[at] != "with" or at + 1 >= len(tokens) or tokens[at + 1].name != OPEN:
            raise syntax_error(text, tokens[at].start, text[tokens[at].start : tokens[at].end + 1])
        close = closing(text, tokens, at + 1)
        for option, value, token in options(text, tokens[at + 2 : close], tokens[close]):
            if option != "snapshot":
                raise SqlError("42601", f'subscription option "{option}" not recognized', span=span_of(token))
            snapshot = boolean(option, value, token)
        if close + 1 < len(tokens):
            raise syntax_error(text, tokens[close + 1].start, said[close + 1])
    return ast.CreateSubscription(
        name=name, query=query, snapshot=snapshot, if_not_exists=missing_ok,
        span=Span(tokens[0].start, tokens[-1].end + 1),
    )  # fmt: skip
