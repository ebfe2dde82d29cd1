"""The reader of raw trees: places in texts that are not ASCII, and giving way in lists of whatever a statement may list."""

from __future__ import annotations

import json
import threading

import pytest
from pglast import parser

from pgwire.give_way import polled
from planner import parse as parsing
from planner.base.errors import SqlError
from planner.parse import parse
from planner.parse.reader.reader import Places
from planner.parse.reader.statement import StatementReader

TEXTS = [
    "",
    "SELECT 1",
    "é",
    "aé€😀" * 1000,
    "€" * 341 + "x",
    "€" * 342,
    "x" * 1023 + "é",
    "😀" * 256,
    "😀" * 512 + "é",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_place_in_bytes_is_a_place_in_characters(text: str) -> None:
    places = Places(text)
    at = 0
    for number, character in enumerate(text):
        assert places.offset(at) == number
        at += len(character.encode())
    assert places.offset(at) == len(text)


def test_places_are_counted_once_for_all_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Places] = []

    class Counted(Places):
        __slots__ = ()

        def __init__(self, text: str) -> None:
            super().__init__(text)
            made.append(self)

    monkeypatch.setattr(parsing, "Places", Counted)
    found = parse("SELECT 'é' ; SELECT /* € */ 'ü', nothing;" * 100)
    assert len(made) == 1
    assert [p.text for p in found] == ["SELECT 'é'", "SELECT /* € */ 'ü', nothing"] * 100
    assert all(p.span.end - p.span.start == len(p.text) for p in found)


MANY = 3000
LISTS = [
    f"PREPARE p ({','.join(['int'] * MANY)}) AS SELECT 1",
    f"DROP TABLE {','.join(['a.b'] * MANY)}",
    f"TRUNCATE {','.join(['a.b'] * MANY)}",
    f"INSERT INTO t ({','.join(['a'] * MANY)}) SELECT 1",
    f"CREATE TABLE t ({','.join(['a int'] * MANY)})",
    f"CREATE TYPE t AS ({','.join(['a int'] * MANY)})",
    f"GRANT SELECT ON {','.join(['a'] * MANY)} TO b",
    f"GRANT SELECT ON a TO {','.join(['b'] * MANY)}",
    f"SELECT 1 FROM {','.join(['a'] * MANY)}",
    f"CREATE FUNCTION f({','.join(['int'] * MANY)}) RETURNS int LANGUAGE sql AS ''",
    f"DROP FUNCTION f({','.join(['int'] * MANY)})",
    f"SELECT 1 FOR UPDATE OF {','.join(['a'] * MANY)}",
]


@pytest.mark.parametrize("sql", LISTS, ids=[sql[:30] for sql in LISTS])
def test_lists_give_way(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread: a statement that nobody waits for is not read to its end there."""
    (raw,) = json.loads(parser.parse_sql_json(sql))["stmts"]
    monkeypatch.setattr("pgwire.give_way._loop_thread", threading.get_ident())
    looks, least = 0, MANY // 2

    def look() -> None:
        nonlocal looks
        looks += 1

    def read() -> None:
        with polled(look):
            try:
                StatementReader(Places(sql), lambda word: sql).statement(raw["stmt"])
            except SqlError:
                pass  # refused where it is read

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert looks >= least, looks
