"""Queries of scripts as views on two servers: what is printed of them, what they answer, also once what they read has been altered.

    CREATE VIEW kept_view AS query           taken by both, or by neither
    pg_get_viewdef                           one text
    CREATE VIEW kept_again AS that text      prints the same text
    CREATE VIEW kept_theirs AS PostgreSQL's  one answer, too, where its text is another
    query, kept_view, kept_again             one answer
    the query in other ways                  one answer (``ways_of_queries``)
    ALTER TABLE of what is read, RENAME …    again one text and one answer on both

All of it is in a transaction that is rolled back, so that a script goes on as if it had not been asked.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from tests.differential.compare_generated import Answer, ask
from tests.differential.ways_of_queries import asked_in_all_ways

UNSUPPORTED = "0A000"
NAMED_TWICE = "42701"
QUERY = re.compile(r"\s*(select|with|values|table|\()", re.IGNORECASE)
NO_VIEW = re.compile(r"\binto\b|\bfor\s+(no\s+key\s+)?(update|share|key)\b|pg_sleep|advisory", re.IGNORECASE)
"""Queries that make tables or lock rows, and such as do something where they run."""
WAITS = re.compile(r"\\|copy\b.*\b(stdin|stdout)\b|(un)?listen\b|notify\b", re.IGNORECASE | re.DOTALL)
READ = """
SELECT DISTINCT d.refobjid::regclass::text, d.refobjid
FROM pg_rewrite w JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid JOIN pg_class c ON c.oid = d.refobjid
WHERE w.ev_class = 'kept_view'::regclass AND d.refclassid = 'pg_class'::regclass AND c.relkind IN ('r', 'p') AND c.oid >= 16384
ORDER BY 1 LIMIT 2
"""
COLUMNS = """
SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum LIMIT 4
"""
_SHOWN_OTHERWISE = re.compile(r"'::(bytea|timestamp|date|time|interval)|information_schema\.|ROW\(")
"""Constants that are shown under fixed settings (docs/reference/isolation.md), domains that columns of information_schema lack, whole rows of
sub-selects and joins, which are shown as their columns."""
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$|;", re.DOTALL
)
_COPY = re.compile(r"\s*copy\s+(\w+(?:\.\w+)?)\s+from\s+:'filename'", re.IGNORECASE)
_FILE = re.compile(r"\\set\s+filename\s+:abs_srcdir\s+'([^']*)'")

KNOWN = (
    ("text", re.compile(r"'::reg"), "what a literal of a reg type names is shown as it was written"),
    (
        "altered rows",
        re.compile(r"\battidentity\b"),
        "a column that was dropped keeps its attidentity in PostgreSQL",
    ),
    ("refused", re.compile(r"pg_node_tree"), "no views with columns of type pg_node_tree"),
    ("altered rows", re.compile(r"\bctid\b"), "rows that ALTER TABLE rewrites have other places"),
    (
        "altered text",
        re.compile(r"WITH ORDINALITY|ROWS FROM"),
        "columns that a row type has got since are listed where others follow: PostgreSQL reads its own text otherwise",
    ),
)
"""Kinds of differences, what is in the query or in what was said, and why."""

Connection = psycopg.Connection[Any]


def known(kind: str, sql: str, said: str) -> str:
    """Return why two servers may differ, "" where nothing explains it."""
    return next((why for one, pattern, why in KNOWN if one == kind and pattern.search(f"{sql}\n{said}")), "")


@dataclass
class Found:
    """Differences as kind, script, query and what was said; how the queries ended."""

    differences: list[tuple[str, str, str, str]] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)


def cut(text: str) -> list[str]:
    """Return the statements of a script for psql, without its comments and its own commands; data of COPY is not theirs."""
    lines = []
    data = False
    for line in text.splitlines():
        if data:
            data = line != "\\."
        elif not line.lstrip().startswith("\\"):
            lines.append(line)
            data = re.match(r"\s*copy\b.*\bfrom\s+std(in|out)\b.*;", line, re.IGNORECASE) is not None
    text = "\n".join(lines)
    found, piece, at = [], "", 0
    for token in _TOKEN.finditer(text):
        piece += text[at : token.start()]
        at = token.end()
        if token[0].startswith(("--", "/*")):
            piece += " "
        elif token[0] != ";":
            piece += token[0]
        elif re.search(r"\bbegin\s+atomic\b(?!.*\bend\s*$)", piece, re.IGNORECASE | re.DOTALL):
            piece += ";"
        else:
            found.append(piece.strip())
            piece = ""
    return [statement for statement in found if statement]


def load(connections: Sequence[Connection], suite: Path, name: str) -> None:
    """Run a supporting script of PostgreSQL's regression suite, and load the files that it names."""
    filename = ""
    text = (suite / "support" / f"{name}.sql").read_text(encoding="latin1")
    files = iter(_FILE.findall(text))
    for statement in cut(text):
        copied = _COPY.match(statement)
        if copied:
            filename = next(files, filename)
        for connection in connections:
            if not copied:
                ask(connection, statement)
                continue
            with (
                contextlib.suppress(
                    psycopg.errors.UndefinedTable
                ),  # one that inherits, which is refused here
                connection.cursor().copy(f"COPY {copied[1]} FROM STDIN".encode()) as copy,
            ):
                copy.write((suite / filename.lstrip("/")).read_bytes())


def walk(
    ours: Connection,
    theirs: Connection,
    script: str,
    statements: Sequence[str],
    some: random.Random,
    most: int,
) -> Found:
    """Run a script on both; ask ``most`` of its queries as views."""
    found = Found()
    places = [i for i, sql in enumerate(statements) if QUERY.match(sql) and not NO_VIEW.search(sql)]
    chosen = set(some.sample(places, min(most, len(places))))
    for place, sql in enumerate(statements):
        if WAITS.match(sql):
            continue
        other = ask(theirs, sql)
        mine = ask(ours, sql)
        idle = all(c.info.transaction_status == TransactionStatus.IDLE for c in (ours, theirs))
        if place not in chosen or not idle or other.state or mine.state:
            continue
        differences = []
        for kind, said in asked_as_view(ours, theirs, sql, len(other.types), found.ends):
            why = known(kind, sql, said)
            found.ends[why] += bool(why)
            differences += [] if why else [(kind, said)]
        found.differences += [(kind, script, sql, said) for kind, said in differences]
        found.ends["different" if differences else "equal"] += 1
    for connection in (ours, theirs):
        if connection.info.transaction_status != TransactionStatus.IDLE:
            ask(connection, "ROLLBACK")
    return found


def asked_as_view(
    ours: Connection, theirs: Connection, sql: str, width: int, ends: Counter[str]
) -> Iterator[tuple[str, str]]:
    """Yield the kinds of differences, each with what was said."""
    both = (ours, theirs)
    names = ""
    try:
        for names in ("", f" ({', '.join(f'k{i}' for i in range(width))})"):
            for connection in both:
                ask(connection, "ROLLBACK")
                ask(connection, "BEGIN")
            mine, other = (ask(c, f"CREATE VIEW kept_view{names} AS {sql}") for c in both)
            if other.state != NAMED_TWICE:
                break
        if mine.state == UNSUPPORTED or mine.state == other.state != "":
            ends["refused here" if not other.state else "refused by both"] += 1
            if not other.state:
                yield "refused", mine.message
            return
        if mine.state or other.state:
            yield "taken", f"{mine}\n{other}"
            return
        yield from _compared(ours, theirs, sql, names, ends)
    finally:
        for connection in both:
            ask(connection, "ROLLBACK")


def _compared(
    ours: Connection, theirs: Connection, sql: str, names: str, ends: Counter[str]
) -> Iterator[tuple[str, str]]:
    text, other = _text(ours, "kept_view"), _text(theirs, "kept_view")
    if text != other and _SHOWN_OTHERWISE.search(text):
        ends["shown otherwise, as is known"] += 1
    elif text != other:
        yield "text", f"{text}\n{other}"
    pretty = [_text(c, "kept_view", ", true") for c in (ours, theirs)]
    if text == other and pretty[0] != pretty[1]:
        yield "pretty", "\n".join(pretty)
    again = _spared(ours, f"CREATE VIEW kept_again{names} AS {text.rstrip(';')}")
    if again.state:
        yield "unread", f"{again.message}\n{text}"
        return
    if (second := _text(ours, "kept_again")) != text:
        _spared(theirs, f"CREATE VIEW kept_again{names} AS {other.rstrip(';')}")
        if text == other and second == _text(theirs, "kept_again"):
            ends["read otherwise, as PostgreSQL does"] += 1
        else:
            yield "unequal", f"{text}\n{second}"
        ask(theirs, "DROP VIEW IF EXISTS kept_again")
    rows = _rows(ours, sql)
    if rows != _rows(ours, sql):
        ends["volatile"] += 1
        return
    if text != other:
        made = _spared(ours, f"CREATE VIEW kept_theirs{names} AS {other.rstrip(';')}")
        if made.state:
            yield "PostgreSQL's unread", f"{made.message}\n{other}"
            return
    for view in ("kept_view", "kept_again", *(["kept_theirs"] if text != other else [])):
        if (shown := _rows(ours, f"SELECT * FROM {view}")) != rows:
            yield view, f"{rows}\n{shown}"
            return
    yield from asked_in_all_ways(ours, theirs, sql, names, rows, ends)
    if text != other:
        ask(ours, "DROP VIEW kept_theirs")
    same = rows == _rows(theirs, "SELECT * FROM kept_view")
    yield from _altered(ours, theirs, same, text == other, ends)


def _altered(
    ours: Connection, theirs: Connection, same: bool, alike: bool, ends: Counter[str]
) -> Iterator[tuple[str, str]]:
    """Alter what is read; views of it are as alike as they were."""
    ask(ours, "DROP VIEW kept_again")
    changes = 0
    for table, oid in theirs.execute(READ.encode()).fetchall():
        columns = [name for (name,) in theirs.execute(COLUMNS.encode(), (oid,)).fetchall()]
        alters = [f"ALTER TABLE {table} ADD kept_added int DEFAULT 7"]
        for column in columns:
            alters.append(f"ALTER TABLE {table} ALTER {column} TYPE text")
            alters.append(f"ALTER TABLE {table} DROP {column}")
            alters.append(f"ALTER TABLE {table} RENAME {column} TO kept_{len(alters)}")
        alters.append(f"ALTER TABLE {table} RENAME TO kept_{oid}")
        for alter in alters:
            mine, other = _spared(ours, alter), _spared(theirs, alter)
            if mine.state == other.state:
                changes += not mine.state
                continue
            # by default operator classes or by views first: no matter which refuses; views of functions' rows follow their tables
            if mine.state != UNSUPPORTED and other.state != UNSUPPORTED:
                yield "alter", f"{alter}\n{mine}\n{other}"
            ends["other changes"] += 1
            return
    if not changes:
        return
    ends["altered"] += 1
    text, wanted = _text(ours, "kept_view"), _text(theirs, "kept_view")
    if alike and text != wanted:
        yield "altered text", f"{text}\n{wanted}"
    rows, others = (_rows(c, "SELECT * FROM kept_view") for c in (ours, theirs))
    if same and rows != others:
        yield "altered rows", f"{rows}\n{others}"


def _text(connection: Connection, view: str, more: str = "") -> str:
    answer = _spared(connection, f"SELECT pg_get_viewdef('{view}'::regclass{more})")
    return answer.rows[0][0] or "" if answer.rows else f"{answer.state}: {answer.message}"


def _rows(connection: Connection, sql: str) -> tuple[str, list[str]]:
    answer = _spared(connection, sql)
    return answer.state, sorted(map(repr, answer.rows))


def _spared(connection: Connection, sql: str) -> Answer:
    """Ask; an error costs the transaction nothing."""
    ask(connection, "SAVEPOINT kept")
    answer = ask(connection, sql)
    ask(connection, "ROLLBACK TO kept" if answer.state else "RELEASE kept")
    return answer
