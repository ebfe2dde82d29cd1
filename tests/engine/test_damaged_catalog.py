"""Damaged files of the server's own tables: it starts, fences off by name what cannot be read, and serves everything else.

part of the catalog     page of bodies, footer, sidecar, each alone, two of them, all three, or gone
registers, log          its manifest, an entry with its changes
sequences               rows of those that have counted
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from engine.catalog.storage.store import SPEC
from engine.session.sequences.values import SHARD as SEQUENCES
from pgwire.errors import BackendError
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.server import ServerProcess
from tests.support.store import tear_away
from txn.persist.memory import MemoryDisk
from txn.transaction.coordinator import TxnOptions
from txn.values.encoding import decode_batch, shards_of

EARLY: Final = (
    "CREATE TABLE early (a int PRIMARY KEY, b text); INSERT INTO early VALUES (1, 'x'); CREATE SEQUENCE counted; "
    "CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN $1 * 2; CREATE VIEW seen AS SELECT a FROM early; "
    "CREATE ROLE somebody LOGIN; CREATE TABLE parted (a int) PARTITION BY LIST (a); CREATE TABLE one PARTITION OF parted DEFAULT"
)


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 8,)) + data[at + 1 :]


async def filled(disk: MemoryDisk) -> None:
    """Leave a catalog in a part, later objects in the log alone."""
    database = await open_database(disk)
    session = Session(database, 1)
    await session.run(EARLY)
    await session.run("SELECT nextval('counted')")
    await session.run("CHECKPOINT")
    await session.run("CREATE TABLE late (a int); INSERT INTO late VALUES (7)")
    await tear_away(database.store, disk)


def of(disk: MemoryDisk, shard: int, ending: str) -> list[str]:
    return [name for name in disk.blobs if name.startswith(f"{shard}/") and name.rpartition(".")[2] == ending]


def damage(disk: MemoryDisk, shard: int, ending: str, at: Callable[[bytes], int] | None) -> None:
    """Flip a bit, or remove the file."""
    (name,) = of(disk, shard, ending)
    if at is None:
        del disk.blobs[name]
    else:
        disk.blobs[name] = flip(disk.blobs[name], at(disk.blobs[name]))


async def refused(session: Session, statement: str, state: str = "XX001") -> Any:
    with pytest.raises(Failed) as caught:
        await session.run(statement)
    assert caught.value.report.sqlstate == state, f"{statement}: {caught.value.report}"
    return caught.value.report


def bodies(data: bytes) -> int:
    """Somewhere in the page of the bodies: the longest column, before the footer."""
    return len(data) // 2


def tail(data: bytes) -> int:
    return len(data) - 20


def middle(data: bytes) -> int:
    return len(data) // 2


NOTHING_LOST: Final[Mapping[str, list[tuple[str, Any]]]] = {
    "sidecar": [("x2", middle)], "no sidecar": [("x2", None)], "row ids": [("sys", middle)], "no row ids": [("sys", None)],
    "both sidecars": [("x2", middle), ("sys", middle)],
}  # fmt: skip


@pytest.mark.parametrize("what", NOTHING_LOST)
def test_what_another_file_tells_is_not_lost(what: str) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await filled(disk)
        for ending, at in NOTHING_LOST[what]:
            damage(disk, SPEC.shard, ending, at)
        for _ in range(2):
            database = await open_database(disk)
            session = Session(database, 1)
            assert await session.run("SELECT twice(a), b FROM early") == [("2", "x")]
            assert await session.run("SELECT * FROM late") == [("7",)]
            assert await session.run("SELECT object FROM holdfast_unreadable_objects") == []
            await session.run(
                "DROP VIEW IF EXISTS seen; ALTER TABLE early RENAME TO later; ALTER TABLE later RENAME TO early"
            )
            await tear_away(database.store, disk)

    run(go)


LOST: Final[Mapping[str, list[tuple[str, Any]]]] = {
    "bodies": [("parquet", bodies)], "footer": [("parquet", tail)], "no file": [("parquet", None)],
}  # fmt: skip


@pytest.mark.parametrize("what", LOST)
def test_rows_of_a_damaged_file_are_fenced_off_and_dropped(what: str) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await filled(disk)
        good = dict(disk.blobs)
        for ending, at in LOST[what]:
            damage(disk, SPEC.shard, ending, at)
        database = await open_database(disk)
        session = Session(database, 1)
        assert await session.run("SELECT * FROM late") == [("7",)]
        assert "shard 1" in str(await session.run("SELECT damaged FROM holdfast_storage"))
        listed = await session.run(
            "SELECT kind, name FROM holdfast_unreadable_objects WHERE kind IN ('relation', 'function')"
        )
        tables = [name for kind, name in listed if kind == "relation"]
        assert len(tables) == 5
        assert len(listed) == 6
        assert all(name is not None and name.startswith("unreadable_") for _kind, name in listed)
        for name in tables:
            await refused(session, f"SELECT * FROM {name}")
        await session.run("CREATE TABLE new (a int); INSERT INTO new VALUES (1)")
        await tear_away(database.store, disk)

        lost, disk.blobs = disk.blobs, {**disk.blobs, **good}
        database = await open_database(disk)
        session = Session(database, 1)
        assert await session.run("SELECT twice(a), b FROM early") == [("2", "x")], "restored"
        assert await session.run("SELECT * FROM new") == [("1",)]
        await tear_away(database.store, disk)

        disk.blobs = lost
        database = await open_database(disk)
        session = Session(database, 1)
        for name in tables:
            await session.run(f"DROP TABLE {name}")
        assert {
            n for k, n in await session.run("SELECT kind, name FROM holdfast_unreadable_objects")
        }.isdisjoint(tables)
        await tear_away(database.store, disk)
        database = await open_database(disk)
        session = Session(database, 1)
        assert {
            n for k, n in await session.run("SELECT kind, name FROM holdfast_unreadable_objects")
        }.isdisjoint(tables)
        assert await session.run("SELECT * FROM new") == [("1",)]
        await database.close()

    run(go)


MADE: Final = (
    "CREATE TABLE t{n} (a int PRIMARY KEY, b text DEFAULT 'x'); INSERT INTO t{n} VALUES (1); CREATE INDEX i{n} ON t{n} (b); "
    "CREATE TYPE e{n} AS ENUM ('x'); CREATE TYPE c{n} AS (a int); CREATE DOMAIN d{n} AS int; CREATE TYPE r{n} AS RANGE (subtype = int); "
    "CREATE VIEW v{n} AS SELECT 1 AS a; CREATE MATERIALIZED VIEW m{n} AS SELECT 1 AS a; CREATE SEQUENCE s{n}; CREATE SCHEMA n{n}; "
    "CREATE ROLE o{n}; CREATE FUNCTION f{n}() RETURNS int LANGUAGE sql RETURN 1; CREATE DATABASE b{n}; "
    "CREATE POLICY p ON t{n}; COMMENT ON SCHEMA n{n} IS 'x'; GRANT USAGE ON SCHEMA n{n} TO PUBLIC"
)
CHANGED: Final = (
    "ALTER TABLE t1 ADD COLUMN c int", "ALTER INDEX i1 RENAME TO j1", "ALTER TYPE e1 ADD VALUE 'y'",
    "ALTER TYPE c1 ADD ATTRIBUTE b int", "ALTER DOMAIN d1 SET DEFAULT 1", "ALTER TYPE r1 RENAME TO q1",
    "CREATE OR REPLACE VIEW v1 AS SELECT 2 AS a", "ALTER MATERIALIZED VIEW m1 RENAME TO l1", "ALTER SEQUENCE s1 INCREMENT BY 2",
    "ALTER SCHEMA n1 RENAME TO k1", "ALTER ROLE o1 LOGIN", "ALTER FUNCTION f1() RENAME TO g1",
    "ALTER DATABASE b1 CONNECTION LIMIT 3", "ALTER POLICY p ON t1 RENAME TO q", "COMMENT ON SCHEMA k1 IS 'y'",
    "REVOKE USAGE ON SCHEMA k1 FROM PUBLIC",
)  # fmt: skip
DROPPED: Final = (
    "DROP POLICY p ON t2", "DROP INDEX i2", "DROP TABLE t2", "DROP TYPE e2", "DROP TYPE c2", "DROP DOMAIN d2", "DROP TYPE r2",
    "DROP VIEW v2", "DROP MATERIALIZED VIEW m2", "DROP SEQUENCE s2", "DROP SCHEMA n2", "DROP ROLE o2", "DROP FUNCTION f2()",
    "DROP DATABASE b2",
)  # fmt: skip


@pytest.mark.parametrize("what", LOST)
def test_objects_changed_or_dropped_since_the_damaged_file_do_not_keep_a_server_from_starting(
    what: str,
) -> None:
    async def go() -> None:
        kept = TxnOptions(retention_ms=10**9)  # what there was before is read at the start, too
        disk = MemoryDisk()
        database = await open_database(disk, kept)
        session = Session(database, 1)
        for number in (1, 2):
            for statement in MADE.format(n=number).split("; "):
                await session.run(statement)
        await session.run("CHECKPOINT")
        for statement in (*CHANGED, *DROPPED):
            await session.run(statement)
        await tear_away(database.store, disk)
        for ending, at in LOST[what]:
            damage(disk, SPEC.shard, ending, at)
        for _ in range(2):
            database = await open_database(disk, kept)
            session = Session(database, 1)
            assert await session.run("SELECT a, b, c FROM t1") == [("1", "x", None)]
            assert await session.run("SELECT a FROM v1") == [("2",)]
            assert await session.run("SELECT g1(), 'y'::e1, (1, 2)::c1") == [("1", "y", "(1,2)")]
            await refused(session, "SELECT * FROM t2", "42P01")
            await tear_away(database.store, disk)

    run(go)


def _part(*endings: str) -> Callable[[MemoryDisk], None]:
    def go(disk: MemoryDisk) -> None:
        for ending in endings:
            damage(disk, SPEC.shard, ending, None)

    return go


def _manifest(disk: MemoryDisk) -> None:
    (key,) = [
        k for k in disk.registers if k.startswith("manifest/") and int(k.partition("/")[2]) == SPEC.shard
    ]
    good = disk.registers[key]
    disk.registers[key] = type(good)(seq=good.seq, data=flip(good.data, 40))


def _entry(disk: MemoryDisk) -> None:
    last = max(seq for seq, data in disk.log.items() if SPEC.shard in shards_of(decode_batch(data)))
    disk.log[last] = flip(disk.log[last], len(disk.log[last]) // 2)


UNKNOWN: Final[Mapping[str, tuple[Callable[[MemoryDisk], None], bool]]] = {
    "keys and rows": (_part("parquet", "x2"), False), "row ids and rows": (_part("parquet", "sys"), False),
    "all files": (_part("parquet", "x2", "sys"), False), "manifest": (_manifest, False), "log entry": (_entry, True),
}  # fmt: skip
"""What is damaged, and whether what was stored before it can be read."""


@pytest.mark.parametrize("what", UNKNOWN)
def test_where_it_is_not_known_what_is_lost_superusers_read_what_there_is(what: str) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await filled(disk)
        plant, earlier = UNKNOWN[what]
        plant(disk)
        before = dict(disk.log), dict(disk.blobs)
        database = await open_database(disk)
        session = Session(database, 1)
        assert await session.run("SELECT 1") == [("1",)]
        whole = await session.run("SELECT reason FROM holdfast_unreadable_objects WHERE kind = 'catalog'")
        assert len(whole) == 1
        tables = await session.run("SELECT name FROM holdfast_unreadable_objects WHERE kind = 'relation'")
        assert tables
        if earlier:
            assert await session.run("SELECT * FROM early") == [("1", "x")]
        report = await refused(session, "SELECT * FROM nowhere")
        assert "may be among" in (report.detail or "")
        for statement in (
            "CREATE TABLE t (a int)",
            "CREATE ROLE r",
            *(["INSERT INTO early VALUES (2)"] if earlier else []),
        ):
            assert "damaged" in (await refused(session, statement)).message
        with pytest.raises(BackendError) as caught:
            Session(database, 2, "somebody")
        assert caught.value.report.sqlstate in ("XX001", "28000")
        await tear_away(database.store, disk)
        assert (dict(disk.log), dict(disk.blobs)) == before, "nothing is replaced"

    run(go)


def test_a_sequence_whose_counter_is_lost_does_not_count_again() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await filled(disk)
        damage(disk, SEQUENCES, "parquet", None)
        database = await open_database(disk)
        session = Session(database, 1)
        await refused(session, "SELECT nextval('counted')")
        assert await session.run("CREATE SEQUENCE fresh; SELECT nextval('fresh')") == [("1",)]
        await session.run("ALTER SEQUENCE counted RESTART WITH 500")
        assert await session.run("SELECT nextval('counted')") == [("500",)]
        assert await session.run("SELECT * FROM early") == [("1", "x")]
        await database.close()

    run(go)


def test_a_server_starts_on_a_damaged_file_of_its_catalog(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    with psycopg.connect(server.url, autocommit=True) as client:
        client.execute("CREATE TABLE early (a int)")
        client.execute("CHECKPOINT")
        client.execute("CREATE TABLE late (a int)")
        client.execute("CREATE TABLE large AS SELECT i AS a FROM generate_series(1, 30000) AS i")
    [(large,)] = server.sql("SELECT 'large'::regclass::oid")
    server.kill()
    files = [
        file for shard in (SPEC.shard, large) for file in (tmp_path / "blobs" / str(shard)).glob("*.parquet")
    ]
    assert len({file.parent for file in files}) == 2
    for file in files:
        data = file.read_bytes()
        file.write_bytes(flip(data, len(data) // 2))
    server = ServerProcess(tmp_path)
    assert server.sql("SELECT count(*) FROM late") == [("0",)]
    assert server.sql("SELECT count(*) FROM holdfast_unreadable_objects WHERE reason LIKE '%damaged%'") != [
        ("0",)
    ]
    assert "cannot be read" in server.log()
    [(damage,)] = server.sql("SELECT string_agg(reason, ' ') FROM holdfast_unreadable_objects")
    with pytest.raises(psycopg.errors.DataCorrupted) as told, psycopg.connect(server.url) as client:
        client.execute("SELECT max(a) FROM large")
    for text in (str(damage), str(told.value)):
        assert "blobs/" in text
        assert str(tmp_path) not in text  # where a server keeps its files is not for clients
    server.stop()
