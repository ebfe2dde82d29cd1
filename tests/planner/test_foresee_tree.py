"""A statement whose tree is too large is refused before the grammar makes it, and no other one is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pglast import parser as pg

from planner import parse
from planner.base.errors import SqlError
from planner.base.large import METER
from planner.parse import long_texts as long_parse
from planner.parse import scanner

SHARE = 4 << 20
MOST = SHARE // 400
MANY = MOST + 10


@pytest.fixture(autouse=True)
def _share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METER, "each", SHARE)
    monkeypatch.setattr(METER, "charge", None)


def items(item: str, count: int) -> str:
    return ",".join([item] * count)


TOO_MANY = [
    f"SELECT {items('11111', MANY)}",
    f"SELECT 1 WHERE 'a' IN ({items(chr(39) + 'it' + 2 * chr(39) + 's' + chr(39), MANY)})",
    f"INSERT INTO t VALUES {items('(1,2)', MANY)}",
    f"SELECT $$ , $$, {items('$x$,$x$', MANY)}",
    f"SELECT /* ' */ {items('11111', MANY)} -- '",
]


@pytest.mark.parametrize("sql", TOO_MANY, ids=range(len(TOO_MANY)))
def test_too_many_items_do_not_reach_the_grammar(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []
    monkeypatch.setattr(long_parse, "_parse", reached.append)
    with pytest.raises(SqlError, match="out of memory") as caught:
        parse.parse(sql)
    assert "syntax tree" in (caught.value.detail or "")
    assert reached == []


COMMAS = "," * (MANY + 50_000)
ALIKE = [
    f"SELECT '{COMMAS}'",
    f"SELECT E'\\'{COMMAS}'",
    f"SELECT $a${COMMAS}$a$",
    f"SELECT $${COMMAS}$$, $1",
    f"SELECT 1 /* {COMMAS} */",
    f"SELECT 1 -- {COMMAS}",
    f"SELECT '' AS \"{COMMAS}\"",
    f"SELECT 'a' || 'b', '{COMMAS}', $b$'$b$",
    f"SELECT {items('11111', MOST // 4)}",
]


@pytest.mark.parametrize("sql", ALIKE, ids=range(len(ALIKE)))
def test_commas_that_make_no_items_are_not_counted(sql: str) -> None:
    assert len(parse.parse(sql)) == 1


def test_a_text_of_which_there_is_no_room_for_copies_is_refused() -> None:
    with pytest.raises(SqlError, match="out of memory") as caught:
        parse.parse(f"SELECT '{'x' * (SHARE // 4)}'")
    assert (caught.value.detail or "").startswith("To read a statement of 1 MB takes 4 MB; 4 MB are allowed")


@pytest.mark.parametrize("long", [False, True])
def test_the_grammar_s_want_of_memory_says_nothing_about_the_text(
    long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(text: object) -> object:
        raise pg.ParseError("out of memory")

    monkeypatch.setattr(pg, "parse_sql_json", fails)
    monkeypatch.setattr(pg, "scan", fails)
    monkeypatch.setattr(long_parse, "tree_of", fails)
    text = f"SELECT '{'x' * 50_000 if long else 'x'}'"
    for read in (parse.parse, scanner._shown.__wrapped__):
        with pytest.raises(MemoryError):
            read(text, True) if read is not parse.parse else read(text)


DENSEST = {
    "TABLE a;": "{}",
    "SELECT 1;": "{}",
    "(TABLE a),": "SELECT {}1",
    "1,": "SELECT {}1",
    "f(),": "SELECT {}1",
    "1::int,": "SELECT {}1",
    "a,": "SELECT 1 FROM {}a",
    "b, ": "GRANT SELECT ON a TO {}c",
    "a=1 AND ": "SELECT {}b",
    ".a": "SELECT a{}",
    "$1,": "SELECT {}1",
    "[],": "SELECT ARRAY[{}[]]",
    "WHEN a THEN b ": "SELECT CASE {}END",
}
PEAK = """
import os, sys
from pglast.parser import parse_sql_json
for text in sys.stdin.read().split("\\0"):
    if not os.fork():
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak is what it has now
        def field(name):
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) << 10
        before = field("VmRSS")
        parse_sql_json(text)
        print((field("VmHWM") - before) / len(text), flush=True)
        os._exit(0)
    os.wait()
"""


def test_the_grammar_takes_no_more_for_a_character_than_is_said() -> None:
    """Measured, some of it twice as high as a statement's list of constants."""
    texts = [around.format(item * (150_000 // len(item))) for item, around in DENSEST.items()]
    ran = subprocess.run(
        [sys.executable, "-c", PEAK], input="\0".join(texts), capture_output=True, text=True, check=True
    )
    took = dict(zip(DENSEST, map(float, ran.stdout.split()), strict=True))
    assert 100 < max(took.values()) <= parse.GRAMMAR_BYTES, took
