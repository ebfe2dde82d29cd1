"""Directories that earlier commits left: today's server opens them, with rows, history and subscriptions, or refuses them by name.

``tests/formats`` has one for each format of the disk, and what its own server answered from it after a crash. History is kept for
nothing here but the subscription (a retention of 0), so that the moments that are asked for are as far back as they will be in years.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from engine.catalog.storage import store as catalog_rows
from engine.catalog.storage.fences import Unread
from engine.feeds.sources import offsets
from engine.session import named_subscriptions as named
from tests.formats.make import Rows, as_of, connect, events, rows_of
from tests.support.server import ServerProcess
from txn.base.errors import UnknownFormat

FOLDER = Path(__file__).resolve().parents[1] / "formats"
STORED = sorted(path.stem for path in FOLDER.glob("*.json"))
OPTIONS = ("--history-retention", "0")
KEPT = "SELECT * FROM kept ORDER BY 1"
SIMPLE = ("numbers", "texts", "times", "kept")
"""Tables whose types DuckDB reads from the parts by itself."""


def unpacked(name: str, folder: Path) -> Path:
    """Return a directory with what was stored under ``name``."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(data, filter="data")
    return data


@contextmanager
def killed_at_the_end(data: Path) -> Iterator[psycopg.Connection[Any]]:
    """Run a server on ``data``, and end it as a crash would."""
    server = ServerProcess(data, *OPTIONS)
    try:
        with closing(connect(server.port)) as connection:
            yield connection
    finally:
        server.kill()


def changes(connection: psycopg.Connection[Any]) -> Rows:
    """Return what the subscription has yet to deliver, without the rows that say how far it is."""
    return [row for row in events(connection) if row[1] == "f"]


def check(
    connection: psycopg.Connection[Any], expected: dict[str, Any], added: Rows, delivered: Rows
) -> None:
    """Ask all that was stored; ``added`` and ``delivered``: rows and changes of ``kept`` since."""
    for question, answer in expected["today"].items():
        assert rows_of(connection, question) == (answer + added if question == KEPT else answer), question
    for name, past in expected["as of"].items():
        for table, rows in past["rows"].items():
            assert rows_of(connection, as_of(table, past["at"])) == rows, f"{table} {name}"
    rows_of(connection, "SET executor = local")
    for table in SIMPLE:
        question = f"SELECT * FROM {table} ORDER BY 1"
        answer = expected["today"][question]
        assert rows_of(connection, question) == (answer + added if question == KEPT else answer), question
    rows_of(connection, "RESET executor")
    if expected["events"]:
        assert changes(connection) == [row for row in expected["events"] if row[1] == "f"] + delivered


@pytest.mark.parametrize("name", STORED)
def test_a_stored_directory_opens(name: str, tmp_path: Path) -> None:
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    assert len(expected["today"][KEPT]) == 25, "what is compared is there"
    data = unpacked(name, tmp_path)
    added: Rows = [["301", "in a part of today"], ["302", "in the log of today"]]
    with killed_at_the_end(data) as c:
        check(c, expected, [], [])
        rows_of(c, "INSERT INTO kept VALUES (301, 'in a part of today')")
        rows_of(c, "CHECKPOINT")
        rows_of(c, "INSERT INTO kept VALUES (302, 'in the log of today')")
        delivered = changes(c)[-2:] if expected["events"] else []
        assert [row[2:] for row in delivered] == [["1", *row] for row in added][: len(delivered)]
    with killed_at_the_end(data) as c:
        check(c, expected, added, delivered)
        if delivered:
            rows_of(c, f"ALTER SUBSCRIPTION feed ACKNOWLEDGE {delivered[-1][0]}")
            rows_of(c, "DELETE FROM kept WHERE id = 301")
            assert [row[2:] for row in changes(c)] == [["-1", "301", "in a part of today"]]


def test_there_is_one_for_each_format() -> None:
    """Each has what its commit could store: a script that is refused as a whole would prove nothing."""
    told = {name: json.loads((FOLDER / f"{name}.json").read_text()) for name in STORED}
    assert len(told) >= 8
    assert [name for name in STORED if not told[name]["refused"]] == STORED[-4:]
    assert [name for name in STORED if not told[name]["events"]] == STORED[:1]
    for name in STORED:
        assert (FOLDER / f"{name}.tar.xz").stat().st_size < 200_000


def test_what_has_no_checksums_is_refused_by_name(tmp_path: Path) -> None:
    """The first format of all, of a few hours: its registers had none."""
    data = unpacked("2026-11-21-no-checksums", tmp_path)
    before = contents(data)
    with pytest.raises(
        RuntimeError, match=r"register manifest/\d+ in .* has format 01; this server knows 03"
    ):
        ServerProcess(data, *OPTIONS)
    assert contents(data) == before


def contents(data: Path) -> dict[str, bytes]:
    """Return the data files of a directory."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if "blobs" in path.parts and path.is_file()
    }


def test_parts_say_what_they_hold(tmp_path: Path) -> None:
    """A server that does not know arrays with lower bounds, or them inside rows, or exact forms, refuses a part by its format."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    made = {
        "plain": (
            "x int, o outer_row[]",
            "1, ARRAY[ROW(ROW('{1,2}', 'a')::inner_row, '{a}')::outer_row]",
            b"1",
        ),
        "list": ("x int, a int[]", "1, '[0:1]={1,2}'", b"2"),
        "inside": ("x int, i inner_row", "1, ROW('[0:1]={1,2}', 'a')", b"3"),
        "deeper": (
            "x int, o outer_row[]",
            "1, ARRAY[ROW(ROW('[2:3]={1,2}', 'a')::inner_row, '{a}')::outer_row]",
            b"3",
        ),
        "beside": ("x int, o outer_row", "1, ROW(ROW('{1,2}', 'a')::inner_row, '[0:0]={a}')", b"3"),
        "number": ("n numeric, p numeric(4,2)", "'NaN', 1.5", b"1"),
        "not a number": ("a int[], p numeric(4,2)", "'[0:1]={1,2}', 'NaN'", b"4"),
        "many digits": ("n numeric", "1e38", b"4"),
        "elements": ("n numeric[], p numeric(4,2)[]", "'{1e38}', '{NaN}'", b"4"),
    }
    with killed_at_the_end(data) as c:
        rows_of(c, "CREATE TYPE inner_row AS (a int[], t text)")
        rows_of(c, "CREATE TYPE outer_row AS (i inner_row, b text[])")
        for table, (columns, values, _format) in made.items():
            rows_of(c, f'CREATE TABLE "{table}" ({columns})')
            rows_of(c, f'INSERT INTO "{table}" VALUES ({values})')
        rows_of(c, "CHECKPOINT")
        shards = {
            name: f"{int(oid or 0)}"
            for oid, name in rows_of(c, "SELECT oid, relname FROM pg_class WHERE oid >= 16384")
        }
        before = {table: rows_of(c, f'SELECT * FROM "{table}"') for table in made}
    for table, (_columns, _values, format_) in made.items():
        (path,) = (data / "blobs" / shards[table]).glob("*.parquet")
        metadata = pq.read_metadata(path).metadata
        assert metadata is not None
        assert (table, metadata[b"holdfast.format"]) == (table, format_)
    with killed_at_the_end(data) as c:
        assert {table: rows_of(c, f'SELECT * FROM "{table}"') for table in made} == before


def test_rows_of_the_engine_of_another_format_are_refused_by_name() -> None:
    with pytest.raises(Unread, match="its row is of format 2; this server knows 1"):
        catalog_rows.decode(("table", 16384, 0), b"\x02\x80")
    with pytest.raises(Unread, match='this server knows no "novelty"'):
        catalog_rows.decode(("novelty", 16384, 0), b"\x01\x80")
    for body, found in ((b"\x02\x80", "02"), (b"", "none")):
        with pytest.raises(
            UnknownFormat, match=f'subscription "feed" has format {found}; this server knows 01'
        ):
            named.decode("feed", body)
        with pytest.raises(
            UnknownFormat, match=f"offset of a source has format {found}; this server knows 01"
        ):
            offsets.decode(body, named.Record)
