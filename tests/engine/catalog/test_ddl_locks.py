"""DDL of many transactions at once: on objects of their own none waits for another, and no change is lost.

a: BEGIN; ALTER TABLE t1 ...        b: BEGIN; DROP VIEW v2 ...        c: BEGIN; CREATE SCHEMA s3 ...
all of them are answered while all are open, in whatever order; then they commit, and the catalog has every change,
also the one that is read from the log afterwards
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

import pytest

from engine.catalog.storage.stored import Stored, StoredKey
from engine.server.database import Database
from planner.catalog import RelationDef
from tests.support.engine import Failed, Rows, Session, open_database
from txn.persist.memory import MemoryDisk

# Each statement has objects of its own: {n} is its number. All of them are in one schema.
SETUP = """
CREATE TYPE e{n} AS ENUM ('a', 'b');
CREATE SEQUENCE q{n};
CREATE TABLE p{n} (id int PRIMARY KEY, x int);
CREATE TABLE t{n} (id serial PRIMARY KEY, a int DEFAULT nextval('q{n}'), b text, e e{n}, p int CONSTRAINT fk REFERENCES p{n});
CREATE INDEX i{n} ON t{n} (a);
CREATE VIEW v{n} AS SELECT id, a FROM t{n};
CREATE VIEW w{n} AS SELECT id FROM v{n};
CREATE MATERIALIZED VIEW m{n} AS SELECT id FROM t{n};
CREATE SCHEMA s{n};
CREATE TABLE s{n}.inner (id int);
CREATE ROLE r{n}
"""

STATEMENTS = (
    "CREATE TABLE new{n} (id int PRIMARY KEY, v text UNIQUE)",
    "CREATE TABLE new{n} (id serial PRIMARY KEY, e e{n} DEFAULT 'b', CHECK (e <> 'a'))",
    "CREATE TABLE new{n} (id int REFERENCES p{n}, q int DEFAULT nextval('q{n}'))",
    "CREATE TABLE new{n} AS SELECT id, a FROM t{n}",
    "CREATE TEMP TABLE new{n} (id int)",
    "CREATE VIEW new{n} AS SELECT id, e FROM t{n} WHERE e = 'a'",
    "CREATE OR REPLACE VIEW v{n} AS SELECT id, a, b FROM t{n}",
    "CREATE MATERIALIZED VIEW new{n} AS SELECT id FROM w{n}",
    "REFRESH MATERIALIZED VIEW m{n}",
    "CREATE SEQUENCE new{n}",
    "ALTER SEQUENCE q{n} INCREMENT 5",
    "CREATE SCHEMA new{n}",
    "CREATE SCHEMA new{n} CREATE TABLE x (id int PRIMARY KEY) CREATE VIEW y AS SELECT id FROM x",
    "CREATE TYPE new{n} AS ENUM ('x')",
    "ALTER TYPE e{n} ADD VALUE 'c'",
    "ALTER TYPE e{n} RENAME TO new{n}",
    "CREATE INDEX new{n} ON t{n} (b)",
    "CREATE INDEX ON t{n} (lower(b)) WHERE a > 0",
    "ALTER TABLE t{n} ADD COLUMN c int DEFAULT 1, ALTER b SET NOT NULL",
    "ALTER TABLE t{n} ADD COLUMN c serial",
    "ALTER TABLE t{n} DROP COLUMN a CASCADE",
    "ALTER TABLE t{n} ALTER b TYPE varchar(20)",
    "ALTER TABLE t{n} DROP CONSTRAINT fk",
    "ALTER TABLE p{n} ADD UNIQUE (x)",
    "ALTER TABLE t{n} OWNER TO r{n}",
    "ALTER TABLE t{n} SET SCHEMA s{n}",
    "ALTER TABLE t{n} RENAME TO new{n}",
    "ALTER TABLE t{n} RENAME COLUMN a TO z",
    "ALTER VIEW v{n} RENAME TO new{n}",
    "ALTER INDEX i{n} RENAME TO new{n}",
    "ALTER SCHEMA s{n} RENAME TO new{n}",
    "ALTER SCHEMA s{n} OWNER TO r{n}",
    "ALTER ROLE r{n} LOGIN",
    "CREATE ROLE new{n}",
    "DROP VIEW v{n} CASCADE",
    "DROP TABLE t{n} CASCADE",
    "DROP TABLE p{n} CASCADE",
    "DROP TABLE IF EXISTS nowhere{n}",
    "DROP INDEX i{n}",
    "DROP MATERIALIZED VIEW m{n}",
    "DROP SEQUENCE q{n} CASCADE",
    "DROP SCHEMA s{n} CASCADE",
    "TRUNCATE t{n} RESTART IDENTITY",
    "TRUNCATE p{n} CASCADE",
    "COMMENT ON TABLE t{n} IS 'a table'",
    "COMMENT ON COLUMN v{n}.id IS 'a column'",
    "COMMENT ON SCHEMA s{n} IS 'a schema'",
    "GRANT SELECT ON t{n} TO r{n}",
    "GRANT USAGE ON SCHEMA s{n} TO r{n}",
)


class Client:
    """A session whose statements are tasks, so that one may wait."""

    def __init__(self, database: Database, pid: int) -> None:
        self._session = Session(database, pid)
        self._locks = database.store.core.locks  # type: ignore[attr-defined]
        self._pid = pid

    async def run(self, sql: str) -> Rows:
        return await self._session.run(sql)

    async def answered(self, sql: str) -> bool:
        """Run a statement; return False, and withdraw it, if it waits for a lock."""
        task = asyncio.ensure_future(self._session.run(sql))
        while not task.done():
            if any(wait.session == self._pid for wait in self._locks.waits()):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                return False
            await asyncio.sleep(0)
        task.result()
        return True


def stored(database: Database) -> dict[StoredKey, Stored]:
    """Return all objects that a restart keeps, without the numbers that tell their versions."""
    return {
        key: replace(item, version=0, sequence=item.sequence and replace(item.sequence, generation=0))
        if isinstance(item, RelationDef)
        else item
        for key, item in database.spaces.any.catalog.items.items()
        if not getattr(item, "schema", getattr(item, "name", "")).startswith("pg_temp")
    }


def named(items: Mapping[StoredKey, Stored]) -> set[tuple[str, str]]:
    return {(item.schema, item.name) for item in items.values() if isinstance(item, RelationDef)}


def test_ddl_on_objects_of_its_own_waits_for_nobody_and_loses_nothing() -> None:
    numbered = list(enumerate(STATEMENTS))

    async def prepared() -> MemoryDisk:
        disk = MemoryDisk()
        keeper = Client(await open_database(disk, own_oids=False), 1)
        for n, _statement in numbered:
            await keeper.run(SETUP.format(n=n))
        return disk

    async def one_by_one(disk: MemoryDisk) -> dict[StoredKey, Stored]:
        database = await open_database(disk, own_oids=False)
        for n, statement in numbered:
            await Client(database, 10 + n).run(statement.format(n=n))
        return stored(database)

    async def at_once(disk: MemoryDisk, order: int) -> dict[StoredKey, Stored]:
        database = await open_database(disk, own_oids=False)
        clients = [Client(database, 10 + n) for n, _statement in numbered]
        for n, statement in numbered[::order]:
            await clients[n].run("BEGIN")
            assert await clients[n].answered(statement.format(n=n)), f"{statement} waits"
        for n, _statement in numbered[::2] + numbered[1::2]:
            await clients[n].run("COMMIT")
        found = stored(database)
        assert stored(await open_database(disk, own_oids=False)) == found
        return found

    disk = asyncio.run(prepared())
    alone = asyncio.run(one_by_one(deepcopy(disk)))
    assert asyncio.run(at_once(deepcopy(disk), 1)) == alone
    assert named(asyncio.run(at_once(disk, -1))) == named(alone)


def test_a_table_that_a_failed_statement_had_locked_is_locked_again_by_the_next() -> None:
    async def play() -> None:
        database = await open_database(MemoryDisk())
        holder, session = Client(database, 1), Client(database, 2)
        for sql in ("CREATE TABLE a (i int)", "CREATE TABLE b (i int)", "CREATE POLICY p ON a"):
            await holder.run(sql)
        await holder.run("BEGIN")
        await holder.run("INSERT INTO b VALUES (1)")
        await session.run("SET lock_timeout = '10ms'")
        with pytest.raises(Failed, match="55P03"):
            await session.run("DROP TABLE a, b")  # it has a, and waits for b
        assert (
            not session._session.connection.session.view.locks._tables
        )  # noted as locked, which they no longer are
        await session.run("RESET lock_timeout")
        await holder.run("COMMIT")
        await holder.run("BEGIN")
        await holder.run("INSERT INTO a VALUES (1)")
        assert not await session.answered("DROP POLICY p ON a")

    asyncio.run(play())
