"""CREATE, ALTER and DROP SOURCE, found by tokens as the statements of ``planner.parse.beyond``.

    CREATE SOURCE [IF NOT EXISTS] name [(columns)] [INTO table] FROM kind [(option = value, ...)] [WITH
    (timeline = name)] ALTER SOURCE [IF EXISTS] name PAUSE | RESUME DROP SOURCE [IF EXISTS] name [, ...]
    [RESTRICT | CASCADE]

The columns read as those of CREATE TABLE, which is put in the place of CREATE SOURCE: ``CREATE TABLE  name (columns)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse.beyond.tokens import (
    COMMA,
    OPEN,
    ParseOne,
    Token,
    closing,
    identifier,
    options,
    queried,
    span_of,
    syntax_error,
    words,
)

KINDS = ("files", "postgres", "kafka", "rate")


def is_source(said: Sequence[str]) -> bool:
    """Tell whether the words of a statement are those of a statement of this module."""
    return said[1:2] == ["source"] and said[0] in ("create", "alter", "drop")


def read_source(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.StatementNode:
    """Read a statement for which ``is_source``. Raises SqlError 42601, and what ``parse_one`` raises."""
    said = words(text, tokens)
    if said[0] == "create":
        return _create(text, tokens, said, parse_one)
    span = Span(tokens[0].start, tokens[-1].end + 1)
    if_exists = said[2:4] == ["if", "exists"]
    name, at = identifier(text, tokens, 4 if if_exists else 2)
    if said[0] == "alter":
        if at >= len(tokens) or said[at] not in ("pause", "resume"):
            raise _unexpected(text, tokens, at)
        _end(text, tokens, at + 1)
        return ast.AlterSource(name=name, pause=said[at] == "pause", if_exists=if_exists, span=span)
    names = [name]
    while at < len(tokens) and tokens[at].name == COMMA:
        name, at = identifier(text, tokens, at + 1)
        names.append(name)
    cascade = said[at : at + 1] == ["cascade"]
    if cascade or said[at : at + 1] == ["restrict"]:
        at += 1
    _end(text, tokens, at)
    return ast.DropSource(names=tuple(names), if_exists=if_exists, cascade=cascade, span=span)


def _create(text: str, tokens: Sequence[Token], said: Sequence[str], parse_one: ParseOne) -> ast.CreateSource:
    if_not_exists = said[2:5] == ["if", "not", "exists"]
    first = 5 if if_not_exists else 2
    name, at = identifier(text, tokens, first)
    has_columns = at < len(tokens) and tokens[at].name == OPEN
    begin = tokens[0].start
    head = " " * begin + "CREATE TABLE"
    head += " " * (tokens[first].start - len(head)) + text[tokens[first].start : tokens[at - 1].end + 1]
    if has_columns:
        close = closing(text, tokens, at)
        head += text[tokens[at - 1].end + 1 : tokens[close].end + 1]
        at = close + 1
    else:
        head += "()"
    table = parse_one(head)
    if not isinstance(table, ast.CreateTable):
        raise AssertionError("CREATE TABLE reads as something else")
    if said[at : at + 1] == ["into"]:
        if at + 1 >= len(tokens) or tokens[at + 1].name == OPEN:
            raise _unexpected(text, tokens, at + 1)
        query, at = queried(text, tokens, at + 1, parse_one)
        into = query.from_[0] if isinstance(query, ast.Select) and query.from_ else None
        if not isinstance(into, ast.TableRef):
            raise AssertionError("TABLE name reads as something else")
        table = replace(table, relation=into)
    if said[at : at + 1] != ["from"]:
        raise _unexpected(text, tokens, at)
    kind, after = identifier(text, tokens, at + 1)
    if kind not in KINDS:
        raise SqlError(
            "42601",
            f'unrecognized kind of source "{kind}"',
            hint=f"Sources read from {', '.join(k.upper() for k in KINDS[:-1])} or {KINDS[-1].upper()}.",
            span=span_of(tokens[at + 1]),
        )
    at = after
    given: list[tuple[str, str | None, Span]] = []
    if at < len(tokens) and tokens[at].name == OPEN:
        given, at = _options(text, tokens, at)
    timeline = ""
    if said[at : at + 1] == ["with"]:
        if at + 1 >= len(tokens) or tokens[at + 1].name != OPEN:
            raise _unexpected(text, tokens, at + 1)
        found, at = _options(text, tokens, at + 1)
        for option, value, span in found:
            if option != "timeline":
                raise SqlError("22023", f'unrecognized parameter "{option}"', span=span)
            if not value or timeline:
                raise SqlError("22023", "timeline requires the name of a timeline, once", span=span)
            timeline = value
    _end(text, tokens, at)
    return ast.CreateSource(
        name=name, kind=kind, options=tuple(given), table=table, has_columns=has_columns, timeline=timeline,
        if_not_exists=if_not_exists, span=Span(begin, tokens[-1].end + 1),
    )  # fmt: skip


def _options(text: str, tokens: Sequence[Token], at: int) -> tuple[list[tuple[str, str | None, Span]], int]:
    """Read a list of options in brackets; values without their quotes. Returns them and where the text goes on."""
    close = closing(text, tokens, at)
    found = [
        (name, _value(value), span_of(token))
        for name, value, token in options(text, tokens[at + 1 : close], tokens[close])
    ]
    return found, close + 1


def _value(written: str | None) -> str | None:
    if written is not None and written.startswith("'"):
        return written[1:-1].replace("''", "'")
    if written is not None and written.startswith('"'):
        return written[1:-1].replace('""', '"')
    return written


def _end(text: str, tokens: Sequence[Token], at: int) -> None:
    if at < len(tokens):
        raise _unexpected(text, tokens, at)


def _unexpected(text: str, tokens: Sequence[Token], at: int) -> SqlError:
    if at >= len(tokens):
        return syntax_error(text, tokens[-1].end + 1)
    return syntax_error(text, tokens[at].start, text[tokens[at].start : tokens[at].end + 1])
