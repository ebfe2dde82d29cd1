"""Values in messages, of which those of megabytes are cut before they are printed, and rows of long arrays that are measured as open code."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.changes.writes import many, spilling
from engine.session.transaction.shown_values import MOST, MOST_ITEMS, shown_value
from pgwire.bounded import bounded
from pgwire.codecs import domain
from pgwire.codecs.registry import CodecSettings
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import is_open
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk

INTS = 1007
TEXTS = 1009
PLAIN = CodecSettings()


def test_long_values_are_cut() -> None:
    short = tuple(range(MOST_ITEMS))
    numbers = ",".join(map(str, short))
    cases: tuple[tuple[int, Any, str], ...] = (
        (domain.TEXT, None, "null"),
        (domain.TEXT, "x" * MOST, "x" * MOST),
        (domain.TEXT, "é" * (MOST + 1), "é" * MOST + "..."),
        (domain.BYTEA, b"\1" * 9, "\\x" + "01" * 9),
        (INTS, short, f"{{{numbers}}}"),
        (INTS, (*short, 7), f"{{{numbers}}}..."),
        (INTS, bounded((*short, 7), (0,)), f"[0:{MOST_ITEMS - 1}]={{{numbers}}}..."),
        (TEXTS, ("a", "b" * (MOST + 1)), f"{{a,{'b' * MOST}}}..."),
        (INTS, ((1, 2), (3, 4)), "{{1,2},{3,4}}"),
    )
    for oid, value, text in cases:
        assert shown_value(oid, value, PLAIN) == text
    assert len(shown_value(domain.BYTEA, b"\1" * (MOST + 1), PLAIN)) == 2 * MOST + 3


def test_no_message_prints_more_of_a_key() -> None:
    """Of unique constraints, foreign keys, exclusion constraints and partitions."""

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        long = f"repeat('x', {MOST + 1})"
        shown = "x" * MOST + "..."
        await session.run(
            "CREATE TABLE t (s text UNIQUE); CREATE TABLE r (s text REFERENCES t (s)); "
            "CREATE TABLE e (s text, EXCLUDE USING btree (s WITH =)); "
            "CREATE TABLE p (s text) PARTITION BY LIST (s)"
        )
        for table in "te":
            await session.run(f"INSERT INTO {table} VALUES ({long})")
        for table, detail in (
            ("t", f"Key (s)=({shown}) already exists."),
            ("e", f"Key (s)=({shown}) conflicts with existing key (s)=({shown})."),
            ("p", f"Partition key of the failing row contains (s) = ({shown})."),
            ("r", f'Key (s)=({shown.replace("x", "y")}) is not present in table "t".'),
        ):
            value = long if table != "r" else long.replace("x", "y")
            with pytest.raises(Failed) as failed:
                await session.run(f"INSERT INTO {table} VALUES ({value})")
            assert failed.value.report.detail == detail
        await database.close()

    asyncio.run(main())


def test_long_arrays_are_measured_as_open_code(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(many, "BULK_ROWS", 10)
    for module in (many, spilling):

        def measured(row: Any, name: str = module.__name__) -> int:
            seen.append(name)
            assert is_open()
            return row_bytes(row)

        monkeypatch.setattr(module, "row_bytes", measured)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE t (n int PRIMARY KEY, a int[])")
        for statement in (
            "INSERT INTO t SELECT n, array_agg(x) FROM generate_series(1, 9) x, generate_series(1, 15) n GROUP BY n RETURNING n",
            "UPDATE t SET a = a || 5 RETURNING n",
        ):
            seen.clear()
            await session.run(statement)
            assert set(seen) == {many.__name__, spilling.__name__}, statement
        await database.close()

    asyncio.run(main())
