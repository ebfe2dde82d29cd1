"""sqllogictest files to records: SQLite's, sqllogictest-rs's and DuckDB's dialects.

    statement ok                 query III rowsort label-1        skipif postgresql # why
    INSERT ...                   SELECT a, b, c FROM t            onlyif mysql
                                 ----                             hash-threshold 8
    statement error [regex]      1 2 3                            halt

The dialects differ in how results stand on the page, which ``Dialect`` says:

    sqlite   one value per line; long results are "N values hashing to MD5"
    rs       one row per line, values separated by blanks; ``query error``, ``statement count N``, connection
    duckdb   one row per line, values separated by tabs; a word after ok/error or the sort mode is a connection

A file names its dialect in a first line ``# slt-dialect: rs``; without one, and unless the caller names one,
it is guessed: sqllogictest-rs's (RisingWave's, DataFusion's) if it has records that only those know, or
results of several columns with one row per line; else SQLite's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal, TypeAlias

MAX_INCLUDE_DEPTH = 8


class Dialect(Enum):
    """How results stand on the page."""

    SQLITE = "sqlite"
    RS = "rs"
    DUCKDB = "duckdb"


class ParseError(Exception):
    """A file that is not sqllogictest; the message names file and line."""


SortMode: TypeAlias = Literal["nosort", "rowsort", "valuesort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What every record has: where it stands, on which connection it runs."""

    path: Path
    line: int
    connection: str = ""
    skip: str = ""  # why it does not apply to this engine, or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Record):
    """``statement ok | error | count N``. ``error`` is a regular expression the message must match."""

    sql: str
    expect: Literal["ok", "error", "count"]
    error: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Record):
    """``query TYPES [sort] [label]``. ``expected`` are the lines below ----; None: none were given."""

    sql: str
    types: str
    sort: SortMode
    label: str = ""
    expected: tuple[str, ...] | None = None
    error: str | None = None
    hash_threshold: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep(Record):
    """``sleep 3s``."""

    seconds: float


AnyRecord: TypeAlias = Statement | Query | Sleep


@dataclass(slots=True)
class _State:
    hash_threshold: int = 0
    sort: SortMode = "nosort"
    connection: str = ""
    skip: str = ""
    halted: bool = False
    labels: dict[str, str] = field(default_factory=dict)


def read(
    path: Path, engine: str = "postgresql", dialect: Dialect | None = None
) -> tuple[Dialect, list[AnyRecord]]:
    """Return a file's dialect and records, conditions for ``engine`` applied. ``dialect``: of files that name none.

    Raises ParseError.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if lines and (match := re.match(r"#\s*slt-dialect:\s*(\w+)", lines[0])):
        try:
            dialect = Dialect(match.group(1))
        except ValueError:
            raise ParseError(f"{path}:1: unknown dialect {match.group(1)!r}") from None
    elif dialect is None:
        dialect = guess(lines)
    return dialect, list(_records(path, lines, dialect, engine, _State(), 0))


_RS_ONLY = re.compile(
    r"(statement count \d|query error|connection \w|include \S|sleep \d|system (ok|error)|control \w)"
)


def guess(lines: list[str]) -> Dialect:
    """Return the dialect of a file that names none."""
    for position, line in enumerate(lines):
        if _RS_ONLY.match(line):
            return Dialect.RS
        words = line.split()
        if len(words) < 2 or words[0] != "query" or len(words[1]) < 2:
            continue
        body, _end = _block(lines, position + 1)
        rows = body[body.index("----") + 1 :] if "----" in body else []
        if len(rows) % len(words[1]) and "hashing to" not in rows[0]:
            return Dialect.RS  # a value per line would fill rows
    return Dialect.SQLITE


# how many words a record's line has at least
_WORDS = {
    "skipif": 2, "onlyif": 2, "hash-threshold": 2, "connection": 2, "control": 3, "include": 2, "statement": 2,
}  # fmt: skip


def _records(
    path: Path, lines: list[str], dialect: Dialect, engine: str, state: _State, depth: int
) -> Iterator[AnyRecord]:
    position = 0
    while position < len(lines) and not state.halted:
        line = lines[position]
        number = position + 1
        position += 1
        words = line.split("#", 1)[0].split() if not line.startswith("#") else []
        if not words:
            continue
        head = words[0]
        if len(words) < _WORDS.get(head, 1):
            raise ParseError(f"{path}:{number}: {head!r} is incomplete")
        if head in ("skipif", "onlyif"):
            applies = (words[1] == engine) == (head == "skipif")
            if applies:
                state.skip = f"{head} {words[1]}"
        elif head == "halt":
            if not state.skip:
                state.halted = True
            state.skip = ""
        elif head == "hash-threshold":
            state.hash_threshold = int(words[1])
        elif head == "connection":
            state.connection = "" if words[1] == "default" else words[1]
        elif head == "control":
            if words[1] == "sortmode":
                state.sort = _sort_mode(words[2], path, number)
        elif head in ("subtest", "mode", "tags", "user", "system"):
            continue
        elif head == "include":
            if depth >= MAX_INCLUDE_DEPTH:
                raise ParseError(f"{path}:{number}: includes nest deeper than {MAX_INCLUDE_DEPTH}")
            for found in sorted(path.parent.glob(words[1])):
                included = found.read_text(encoding="utf-8", errors="replace").splitlines()
                yield from _records(found, included, dialect, engine, state, depth + 1)
        elif head == "sleep":
            yield Sleep(path=path, line=number, seconds=_seconds(" ".join(words[1:])))
        elif head in ("statement", "query"):
            body, position = _block(lines, position)
            record = _record(path, number, line, words, body, dialect, state)
            state.skip = ""
            if dialect is Dialect.RS:
                state.connection = ""
            yield record
        else:
            raise ParseError(f"{path}:{number}: unknown record {head!r}")


def _block(lines: list[str], start: int) -> tuple[list[str], int]:
    """Return the lines up to the blank line that ends a record (two after a multi-line error)."""
    end = start
    while end < len(lines) and lines[end].strip():
        end += 1
    return lines[start:end], end


def _record(
    path: Path, number: int, line: str, words: list[str], body: list[str], dialect: Dialect, state: _State
) -> AnyRecord:
    separator = next((i for i, text in enumerate(body) if text.strip() == "----"), None)
    sql = "\n".join(body if separator is None else body[:separator]).strip()
    expected = None if separator is None else tuple(body[separator + 1 :])
    connection = state.connection
    if words[0] == "statement":
        expect = words[1]
        if expect not in ("ok", "error", "count"):
            raise ParseError(f"{path}:{number}: unknown statement result {expect!r}")
        error, count = "", 0
        if expect == "error" and dialect is Dialect.RS:
            error = line.split("error", 1)[1].strip()
        elif expect == "count":
            count = int(words[2])
        elif dialect is Dialect.DUCKDB and len(words) > 2:
            connection = words[2]
        return Statement(
            path=path, line=number, connection=connection, skip=state.skip, sql=sql,
            expect=expect, error=error, count=count,  # type: ignore[arg-type]
        )  # fmt: skip
    if len(words) > 1 and words[1] == "error":
        pattern = line.split("error", 1)[1].strip() if dialect is Dialect.RS else ""
        return Query(
            path=path, line=number, connection=connection, skip=state.skip, sql=sql, types="",
            sort="nosort", error=pattern,
        )  # fmt: skip
    sort, label = state.sort, ""
    for word in words[2:]:
        if word in ("nosort", "rowsort", "valuesort"):
            sort = _sort_mode(word, path, number)
        elif dialect is Dialect.DUCKDB and not label and sort == state.sort:
            connection = word
        else:
            label = word
    return Query(
        path=path, line=number, connection=connection, skip=state.skip, sql=sql,
        types=words[1] if len(words) > 1 else "", sort=sort, label=label, expected=expected,
        hash_threshold=state.hash_threshold,
    )  # fmt: skip


def _sort_mode(word: str, path: Path, number: int) -> SortMode:
    if word == "nosort":
        return "nosort"
    if word == "rowsort":
        return "rowsort"
    if word == "valuesort":
        return "valuesort"
    raise ParseError(f"{path}:{number}: unknown sort mode {word!r}")


def _seconds(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)\s*(ms|milliseconds?|s|seconds?)?", text)
    if match is None:
        return 0.0
    scale = 0.001 if (match.group(2) or "s").startswith("m") else 1.0
    return float(match.group(1)) * scale
