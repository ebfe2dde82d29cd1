"""Types of what was dropped are forgotten once nobody can read them, and not before; several servers of one process share what is known."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.catalog import type_owners
from engine.server.database import Database
from engine.session.sequences.values import SHARD as SEQUENCE_SHARD
from pgwire.codecs import registry
from pgwire.codecs.users import composite_keys, ranges
from pgwire.codecs.users import types as user_types
from planner.catalog import FunctionDef
from planner.conversion import composite, row_parts
from planner.facts import _kept, facts
from planner.functions.registry import REGISTRY
from planner.types import domains
from planner.types import facts as typefacts
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.server import ServerProcess
from txn.base.slices import at_once
from txn.persist.memory import MemoryDisk
from txn.transaction.coordinator import TxnOptions

ROUNDS = 4
KINDS = """
    CREATE TABLE t{n} (a int, b text); INSERT INTO t{n} VALUES (1, 'x'); SELECT t{n}, ARRAY[t{n}] FROM t{n}; DROP TABLE t{n}
    CREATE TEMP TABLE t{n} (a int PRIMARY KEY, b serial); ALTER TABLE t{n} ADD c int; DROP TABLE t{n}
    CREATE VIEW t{n} AS SELECT 1 a; SELECT t{n} FROM t{n}; DROP VIEW t{n}
    CREATE MATERIALIZED VIEW t{n} AS SELECT 1 a; DROP MATERIALIZED VIEW t{n}
    CREATE TYPE t{n} AS (a int, b text); CREATE TABLE u{n} OF t{n}; SELECT row(1,'x')::t{n} < row(2,'y')::t{n}, NULL::u{n}::t{n}; DROP TYPE t{n} CASCADE
    CREATE TYPE u{n} AS (a int, p point); CREATE TYPE t{n} AS (a int, u u{n}); SELECT ARRAY[row(1,NULL)::t{n}] = '{{}}'; DROP TYPE t{n}, u{n}
    CREATE TYPE t{n} AS ENUM ('a', 'b'); SELECT 'a'::t{n} < 'b', ARRAY['a']::t{n}[]; ALTER TYPE t{n} RENAME TO u{n}; DROP TYPE u{n}
    CREATE DOMAIN t{n} AS int CHECK (value > 0); SELECT 1::t{n}, ARRAY[1]::t{n}[]; DROP DOMAIN t{n}
    CREATE TYPE t{n} AS RANGE (subtype = float8); SELECT t{n}(1,2) && t{n}(2,3), t{n}_multirange(t{n}(1,2)); DROP TYPE t{n}
    CREATE TYPE e{n} AS ENUM ('a'); CREATE TYPE t{n} AS RANGE (subtype = e{n}); CREATE TABLE u{n} (a t{n}, b e{n}[], PRIMARY KEY (b)); \
        INSERT INTO u{n} VALUES ('[a,a]', '{{a}}'); SELECT a, array_agg(b) FROM u{n} GROUP BY 1 ORDER BY 1; DROP TYPE e{n} CASCADE; DROP TABLE u{n}
    CREATE TABLE t{n} (a int) PARTITION BY RANGE (a); CREATE TABLE u{n} PARTITION OF t{n} FOR VALUES FROM (1) TO (2); DROP TABLE t{n}
    CREATE TABLE t{n} (a int); CREATE FUNCTION f{n}(t{n}) RETURNS SETOF t{n} LANGUAGE sql AS 'SELECT $1'; SELECT f{n}(row(1)); DROP TABLE t{n} CASCADE
    BEGIN; CREATE TYPE t{n} AS ENUM ('a'); CREATE TABLE u{n} (a int); SELECT 'a'::t{n}; ROLLBACK
    CREATE SEQUENCE s{n}; SELECT nextval('s{n}'); ALTER SEQUENCE s{n} RESTART; SELECT nextval('s{n}'); DROP SEQUENCE s{n}
    BEGIN; CREATE SEQUENCE s{n}; SELECT nextval('s{n}'); SAVEPOINT p; ALTER SEQUENCE s{n} RESTART; SELECT nextval('s{n}'); ROLLBACK TO p; ROLLBACK
    CREATE FUNCTION f{n}(a int) RETURNS int LANGUAGE sql AS 'SELECT $1'; SELECT f{n}(1); DROP FUNCTION f{n}
    CREATE SCHEMA s{n}; CREATE TABLE s{n}.x (a int); CREATE DOMAIN s{n}.d AS text; DROP SCHEMA s{n} CASCADE
""".strip().replace("\\\n", "").splitlines()  # fmt: skip


def _rows_of_counters(database: Database) -> int:
    generation = database.store.core.shards[SEQUENCE_SHARD].latest.generation
    return 0 if generation is None else generation.live_rows()


def known(database: Database) -> dict[str, int]:
    """Return how much is known of types, place by place, and of what else comes and goes."""
    places: dict[str, Sized] = {
        "types": facts().types,
        "procs": facts().procs,
        "casts": facts().casts,
        "asked": [oid for kept in _kept for oid in kept],
        "domains": domains._BASES,
        "plain": domains._PLAIN,
        "ranges": typefacts._ranges(),
        "typed": composite._OF,
        "of": composite._TYPED,
        "columns": row_parts._parts,
        "functions": REGISTRY.functions,
        "codecs": registry.CODECS,
        "with rows": registry.WITH_ROWS,
        "range codecs": ranges.RANGES,
        "multirange codecs": ranges.MULTIRANGES,
        "elements": composite_keys._elements,
        "enums": composite_keys._enums,
        "rows": composite_keys._rows,
        "under domains": composite_keys._plain,
        "keys": composite_keys._made,
        "labels": user_types._latest,
        "owners": type_owners._owners,
        "counts": type_owners._counts,
        "counters": database.sequences._counters,
        "rows of counters": range(_rows_of_counters(database)),
        "routines": [item for item in gc.get_objects() if type(item) is FunctionDef],
    }
    return {name: len(place) for name, place in places.items()}


async def forget(database: Database, enough: Callable[[], bool]) -> None:
    """Let go of all that can go, plans included, until it is enough; they are freed in turns of the loop."""
    for _ in range(400):
        database.plans.clear()
        at_once(database.store.core.forgetting())
        gc.collect()
        if enough():
            break
        await asyncio.sleep(0.02)


async def at_rest(database: Database) -> dict[str, int]:
    """Return what is known once nothing of what other tests of the process have left goes any more."""
    found = known(database)
    for _ in range(100):
        await asyncio.sleep(0.05)
        gc.collect()
        last, found = found, known(database)
        if found == last:
            break
    return found


def test_what_is_known_of_dropped_types_goes_with_the_last_who_may_read_it() -> None:
    async def body() -> None:
        database = await open_database(MemoryDisk(), TxnOptions(retention_ms=0))
        session = Session(database, 1)

        most: dict[str, int] = {}  # some of it may go at once, where the loop has the time

        async def come_and_go(first: int, count: int, watched: Sequence[int] = ()) -> None:
            for number in range(first, first + count):
                for kind in KINDS:
                    for statement in kind.split(";"):
                        await session.run(statement.strip().format(n=number))
                    found = known(database) if number in watched else {}
                    most.update({name: max(size, most.get(name, 0)) for name, size in found.items()})

        others = known(database)["counts"]  # what other tests of the process have left
        await come_and_go(0, 2)
        await forget(database, lambda: known(database)["counts"] < others + 30)
        before = await at_rest(database)
        await come_and_go(2, ROUNDS, watched=(1 + ROUNDS,))
        idle = [name for name in before if most[name] <= before[name]]
        assert not idle, f"each place has had some, but {idle}"

        def too_much() -> dict[str, int]:
            return {name: size for name, size in known(database).items() if size > before[name]}

        await forget(database, lambda: not too_much())
        assert too_much() == {}
        await database.close()

    run(body)


def test_a_type_stays_known_as_long_as_another_server_of_the_process_has_it() -> None:
    async def body() -> None:
        one = await open_database(MemoryDisk(), TxnOptions(retention_ms=0))
        other = await open_database(MemoryDisk(), TxnOptions(retention_ms=0), own_oids=False)
        await other._oids.open(one._oids._next)
        first, second = Session(one, 1), Session(other, 2)
        for session in (first, second):
            await session.run(
                "CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE TYPE span AS RANGE (subtype = mood)"
            )
            await session.run(
                "CREATE TABLE felt (m mood, s span); INSERT INTO felt VALUES ('sad', '[sad,happy]')"
            )
        oid = int((await first.run("SELECT 'mood'::regtype::oid::int"))[0][0] or 0)
        assert (await second.run("SELECT 'mood'::regtype::oid::int"))[0][0] == str(oid)
        await first.run("DROP TABLE felt; DROP TYPE span; DROP TYPE mood")
        await forget(one, lambda: type_owners._counts[oid] == 1)
        assert type_owners._counts[oid] == 1
        found = await second.run("SELECT felt, ARRAY[m], span(m, 'happy', '[]') FROM felt")
        assert found == [('(sad,"[sad,happy]")', "{sad}", "[sad,happy]")]
        await second.run("DROP TABLE felt; DROP TYPE span; DROP TYPE mood")
        await forget(other, lambda: oid not in type_owners._counts)
        assert oid not in facts().types
        assert oid not in registry.CODECS
        for database in (one, other):
            await database.close()

    run(body)


def test_what_a_cursor_with_hold_has_of_dropped_types_is_an_error_that_says_so() -> None:
    async def body() -> None:
        database = await open_database(MemoryDisk(), TxnOptions(retention_ms=0))
        session = Session(database, 1)
        await session.run("CREATE TYPE mood AS ENUM ('sad')")
        for value in ("'sad'::mood", "ARRAY['sad']::mood[]"):
            await session.run(f"BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT {value}; COMMIT")
            await session.run("DROP TYPE mood")
            with pytest.raises(Failed, match=r"42704 type with OID \d+ does not exist"):
                await session.run("FETCH c")
            await session.run("CLOSE c; CREATE TYPE mood AS ENUM ('sad')")
        await database.close()

    run(body)


@pytest.mark.parametrize(
    ("column", "drops", "name"),
    [
        ("mood", "DROP TYPE mood CASCADE", "mood"),
        ("mood[]", "DROP TABLE t; DROP TYPE mood CASCADE", "mood"),
        ("felt", "DROP TABLE t; DROP DOMAIN felt; DROP TYPE mood", "mood"),
        ("pair", "DROP TABLE t; DROP TYPE pair", "pair"),
        ("pairs", "DROP TABLE t; DROP TABLE pairs", "pairs"),
    ],
)
def test_a_subscription_ends_with_the_type_of_its_rows(column: str, drops: str, name: str) -> None:
    async def body() -> None:
        database = await open_database(MemoryDisk(), TxnOptions(retention_ms=0))
        consumer, writer = Session(database, 1), Session(database, 2)
        for statement in (
            "CREATE TYPE mood AS ENUM ('sad')",
            "CREATE DOMAIN felt AS mood",
            "CREATE TYPE pair AS (a int, b text)",
            "CREATE TABLE pairs (a int)",
            "CREATE DOMAIN word AS text",
            f"CREATE TABLE t (c {column}, w word)",
        ):
            await writer.run(statement)
        await consumer.run("BEGIN; DECLARE s CURSOR FOR SUBSCRIBE t")
        await writer.run("INSERT INTO t VALUES (NULL, 'w')")
        [row] = await consumer.run("FETCH 1 FROM s")
        assert row[2:] == (None, "w")
        await writer.run("INSERT INTO t VALUES (NULL, 'x')")
        await writer.run(drops)
        await writer.run("CREATE TABLE other (a int)")
        with pytest.raises(Failed, match=f'55000 type "{name}" was dropped: the subscription ends'):
            await consumer.run("FETCH 1 FROM s")
        await database.close()

    run(body)


def test_who_reads_where_dropped_types_are_reads_them_whatever_is_forgotten(tmp_path: Path) -> None:
    """Without retention the server lets go of all that nobody holds, once a second: here are those who hold."""
    selected = "SELECT id, a, b, g, h, i, j, k, held, ARRAY[held], seen, kept FROM held, seen, kept WHERE id = x AND y = 1"
    row = "'sad', '(1,happy)', 'w', '[sad,happy)', '{sad,NULL}', '{\"(2,sad)\"}', '{v}'"
    server = ServerProcess(tmp_path / "data", "--history-retention", "0")

    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(server.url, autocommit=True, options="-c statement_timeout=10s")

    def read(connection: psycopg.Connection[Any], sql: str, rows: int = 3) -> list[Any]:
        """Return rows as text, and the next ones, or the same, in binary: of users' types bytes."""
        found = [sorted(connection.execute(sql, binary=binary).fetchall()) for binary in (False, True)]
        assert [len(answer) for answer in found] == [rows, rows]
        return found

    try:
        with (
            connect() as writer,
            connect() as reader,
            connect() as past,
            connect() as consumer,
            connect() as late,
        ):
            for statement in (
                "CREATE TYPE mood AS ENUM ('sad', 'happy')",
                "CREATE TYPE pair AS (n int, m mood)",
                "CREATE DOMAIN word AS text",
                "CREATE TYPE span AS RANGE (subtype = mood)",
                "CREATE TABLE held (id int PRIMARY KEY, a mood, b pair, g word, h span, i mood[], j pair[], k word[])",
                "CREATE VIEW seen AS SELECT id AS x, a AS s FROM held",
                "CREATE MATERIALIZED VIEW kept AS SELECT 1 AS y",
                f"INSERT INTO held SELECT id, {row} FROM generate_series(1, 3) AS id",
            ):
                writer.execute(statement)
            at = writer.info.parameter_status("holdfast.commit_ts")
            consumer.execute("BEGIN; DECLARE s CURSOR FOR SUBSCRIBE (SELECT id, g, k FROM held)")
            changes = [row[2:] for row in consumer.execute("FETCH 3 FROM s").fetchall()]
            writer.execute(f"INSERT INTO held SELECT id, {row} FROM generate_series(4, 6) AS id")
            writer.execute("DELETE FROM held WHERE id > 3")
            past.execute(f"BEGIN AS OF SYSTEM TIME {at}")
            past.execute("SELECT 1")
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            expected = read(reader, selected)
            reader.execute(f"PREPARE p AS {selected}")
            for name in "cdef":
                reader.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {selected}")
            fetched = [
                reader.execute("FETCH ALL FROM e").fetchall(),
                reader.execute("FETCH ALL FROM f", binary=True).fetchall(),
            ]
            opened = [
                reader.execute("FETCH 1 FROM c").fetchall(),
                reader.execute("FETCH 1 FROM d", binary=True).fetchall(),
            ]
            for statement in (
                "VIEW seen",
                "MATERIALIZED VIEW kept",
                "TABLE held",
                "TYPE span",
                "TYPE pair",
                "TYPE mood",
                "DOMAIN word",
            ):
                writer.execute(f"DROP {statement}")
            # a transaction that made types, while others are forgotten
            late.execute(
                "BEGIN; CREATE TYPE own AS ENUM ('x'); CREATE TABLE owned (o own); INSERT INTO owned VALUES ('x')"
            )
            for _ in range(2):  # looks of the server that let go of something
                writer.execute("CREATE TABLE other (a int); DROP TABLE other")
                time.sleep(1.1)
            assert read(reader, "EXECUTE p") == expected
            assert read(reader, selected) == expected
            rest = [
                reader.execute("FETCH ALL FROM c").fetchall(),
                reader.execute("FETCH ALL FROM d", binary=True).fetchall(),
            ]
            assert [some + more for some, more in zip(opened, rest, strict=True)] == fetched
            assert list(map(len, fetched)) == [3, 3]
            assert read(past, selected) == expected
            changed = [row[1:] for row in consumer.execute("FETCH 6 FROM s").fetchall()]
            assert [c[0] for c in changed] == [1, 1, 1, -1, -1, -1]
            assert [c[2:] for c in changed] == [c[1:] for c in changes] * 2
            assert late.execute("SELECT o, owned FROM owned").fetchall() == [("x", "(x)")]
            late.execute("ROLLBACK")
            for connection in (reader, past, consumer):
                connection.execute("ROLLBACK")
            writer.execute("CREATE TABLE mood (a int)")
            assert writer.execute("SELECT NULL::mood").fetchall() == [(None,)]
    finally:
        server.stop()
