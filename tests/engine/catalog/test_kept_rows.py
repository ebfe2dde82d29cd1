"""Rows of pg_catalog that were kept across DDL are those that would be made anew; row counts follow commits."""

from __future__ import annotations

import asyncio

from engine.catalog.state import virtual_relations
from engine.catalog.virtual import SOURCES, VirtualCatalog
from planner.catalog import RelationDef
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk

STATEMENTS = (
    "CREATE ROLE clerk",
    "CREATE TYPE mood AS ENUM ('sad')",
    "CREATE TABLE p (id int PRIMARY KEY)",
    "CREATE TABLE t (id serial PRIMARY KEY, a int DEFAULT 7, b text UNIQUE, m mood, CHECK (a > 0))",
    "CREATE VIEW v AS SELECT id, a FROM t",
    "ALTER TABLE t ADD COLUMN p int REFERENCES p",
    "CREATE INDEX i ON t (a) WHERE b IS NOT NULL",
    "GRANT SELECT (a), UPDATE ON t TO clerk",
    "ALTER ROLE clerk RENAME TO boss",
    "COMMENT ON TABLE t IS 'a table'",
    "ALTER TABLE t RENAME a TO z",
    "ALTER TYPE mood RENAME TO temper",
    "CREATE SCHEMA s",
    "ALTER TABLE t SET SCHEMA s",
    "ALTER TABLE s.t OWNER TO boss",
    "ALTER INDEX s.i RENAME TO j",
    "CREATE MATERIALIZED VIEW m AS SELECT z FROM s.t WITH NO DATA",
    "REFRESH MATERIALIZED VIEW m",
    "ALTER TABLE s.t DROP COLUMN z CASCADE",
    "DROP TABLE p CASCADE",
    "ALTER SCHEMA s RENAME TO r",
    "DROP TABLE r.t",
)


def made_of_each() -> list[RelationDef]:
    """Return the catalog relations with rows that belong to one relation each."""
    return [
        r
        for r in virtual_relations()
        if any(source.each for source in SOURCES.get(f"{r.schema}.{r.name}", ()))
    ]


def test_kept_rows_are_those_that_would_be_made() -> None:
    async def play() -> None:
        database = await open_database(MemoryDisk())
        database.clock_us = lambda: 0  # type: ignore[method-assign]
        keeper = Session(database, 1)
        reader = Session(database, 2)
        kept = VirtualCatalog(database)
        for statement in STATEMENTS:
            await keeper.run(statement)
            fresh = VirtualCatalog(database)
            session = reader.connection.session
            for relation in made_of_each():
                session.block.ensure_txn()
                rows = sorted(map(repr, kept.rows(relation.oid, session)))
                assert rows == sorted(map(repr, fresh.rows(relation.oid, session))), (
                    statement,
                    relation.name,
                )
            session.block.rollback()

    asyncio.run(play())
    assert {r.name for r in made_of_each()} >= {
        "pg_class",
        "pg_attribute",
        "pg_index",
        "pg_constraint",
        "pg_type",
    }


def test_row_counts_are_those_of_lately() -> None:
    async def play() -> None:
        database = await open_database(MemoryDisk())
        now = 1
        database.clock_us = lambda: now  # type: ignore[method-assign]
        one, other = Session(database, 1), Session(database, 2)
        count = "SELECT reltuples FROM pg_class WHERE relname IN ('t', 't_pkey') ORDER BY relname"
        await one.run("CREATE TABLE t (id int PRIMARY KEY)")
        assert await other.run(count) == [("0",), ("0",)]
        await one.run("INSERT INTO t VALUES (1), (2)")
        assert await other.run(count) == [("0",), ("0",)]
        now += 2_000_000
        assert await other.run(count) == [("2",), ("2",)]
        await one.run("BEGIN")
        await one.run("INSERT INTO t VALUES (3)")
        now += 2_000_000
        assert await one.run(count) == [("3",), ("3",)]  # its own
        await one.run("ROLLBACK")
        now += 2_000_000
        assert await other.run(count) == [("2",), ("2",)]

    asyncio.run(play())
