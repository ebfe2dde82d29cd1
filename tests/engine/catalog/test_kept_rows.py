"""Catalog rows that were kept across DDL are those that would be made anew, by scan and by key; row counts follow commits.

statement 1, 2, 3 ...    after each: kept rows == rows of an empty cache        for the latest catalog, an older one that a
                         rows found by key == rows that a scan finds            transaction sees, and a private one of its DDL
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from engine.base.eager import settle
from engine.catalog.kept import as_rows
from engine.catalog.relations.builtin_relations import virtual_relations
from engine.catalog.relations.sources import SOURCES, keyed_columns
from engine.session.catalog.virtual import VirtualCatalog
from planner.catalog import RelationDef
from tests.planner.builtins.costs import Measured, counting
from tests.support.engine import Failed, Session, open_database
from tests.support.proofs import sampled
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


def made_of_each(*, builtin: bool = True) -> list[RelationDef]:
    """Return the catalog relations with rows that belong to one relation each; ``builtin``: to catalog relations, too."""
    return [
        r
        for r in virtual_relations()
        if any(
            source.each and (builtin or not source.builtin)
            for source in SOURCES.get(f"{r.schema}.{r.name}", ())
        )
    ]


def test_kept_rows_are_those_that_would_be_made() -> None:
    async def play() -> None:
        database = await open_database(MemoryDisk())
        database.clock_us = lambda: 0  # type: ignore[method-assign]
        keeper = Session(database, 1)
        reader = Session(database, 2)
        kept = VirtualCatalog(database)
        for number, statement in enumerate(STATEMENTS):
            await keeper.run(statement)
            fresh = VirtualCatalog(database)
            session = reader.connection.session
            for relation in made_of_each(builtin=number % 6 == 3):
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


SCHEMAS, NAMES, COLUMNS, ROLES = ("public", "s", "r"), ("a", "b", "c", "d"), ("x", "y", "z"), ("amy", "bo")


def random_statements(seed: int, count: int) -> Iterator[str]:
    """Yield DDL over a few names, much of which fails."""
    pick = random.Random(seed)
    yield from (f"CREATE ROLE {role}" for role in ROLES)
    yield "CREATE SCHEMA s"
    yield "CREATE TYPE mood AS ENUM ('sad')"
    forms = (
        "CREATE TABLE {t} (id serial PRIMARY KEY, x int DEFAULT 7, y mood, CHECK (x > 0))",
        "CREATE TABLE {t} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x int UNIQUE, z text)",
        "CREATE TABLE {t} (id int PRIMARY KEY, x int REFERENCES {u}, y numeric(9,2))",
        "CREATE VIEW {t} AS SELECT * FROM {u}",
        "CREATE MATERIALIZED VIEW {t} AS SELECT * FROM {u} WITH NO DATA",
        "CREATE SEQUENCE {t}",
        "ALTER TABLE {t} ADD COLUMN {c} int DEFAULT 1",
        "ALTER TABLE {t} ADD FOREIGN KEY (x) REFERENCES {u}",
        "ALTER TABLE {t} DROP COLUMN {c} CASCADE",
        "ALTER TABLE {t} RENAME COLUMN {c} TO {d}",
        "ALTER TABLE {t} ALTER {c} SET NOT NULL",
        "ALTER TABLE {t} RENAME TO {n}",
        "ALTER TABLE {t} SET SCHEMA {h}",
        "ALTER TABLE {t} OWNER TO {o}",
        "ALTER SEQUENCE {t}_id_seq RENAME TO {n}_seq",
        "ALTER VIEW {t} RENAME TO {n}",
        "CREATE INDEX ON {t} (x)",
        "GRANT SELECT (x), UPDATE ON {t} TO {o}",
        "GRANT SELECT ON {t} TO PUBLIC",
        "REVOKE UPDATE ON {t} FROM {o}",
        "COMMENT ON TABLE {t} IS 'about {n}'",
        "DROP TABLE {t} CASCADE",
        "DROP TABLE {t}",
        "DROP VIEW {t}",
        "ALTER TYPE mood RENAME TO temper",
        "ALTER TYPE temper RENAME TO mood",
        "ALTER ROLE {o} RENAME TO cleo",
        "ALTER ROLE cleo RENAME TO {o}",
        "ALTER SCHEMA s RENAME TO r",
        "ALTER SCHEMA r RENAME TO s",
    )
    weights = [4] * 6 + [2] * (len(forms) - 12) + [1] * 6
    for _ in range(count):
        tables = [f"{pick.choice(SCHEMAS[:2])}.{pick.choice(NAMES)}" for _ in range(2)]
        yield pick.choices(forms, weights)[0].format(
            t=tables[0], u=tables[1], c=pick.choice(COLUMNS), d=pick.choice(COLUMNS), n=pick.choice(NAMES),
            h=pick.choice(SCHEMAS), o=pick.choice(ROLES),
        )  # fmt: skip


def check(kept: VirtualCatalog, fresh: VirtualCatalog, session: Any, relation: RelationDef, why: str) -> None:
    """Compare what both give, whole and by values of the columns that are keys, and of some others."""
    rows = kept.rows(relation.oid, session)
    assert Counter(rows) == Counter(fresh.rows(relation.oid, session)), (why, relation.name)
    keys = keyed_columns(relation.oid)
    for column in relation.columns:
        if column.attnum not in keys and column.attnum % 5:
            continue
        position = column.attnum - 1
        values = {row[position] for row in rows if isinstance(row[position], int | str)}
        if not values:
            continue
        highest = sorted(values)[-2:]
        for value in {*highest, *(("a", "_b") if isinstance(highest[0], str) else (0,))}:
            find = kept.finder(relation.oid, column.attnum, session)
            if find is not None:
                by_scan = Counter(row for row in rows if row[position] == value)
                assert Counter(find(value)) == by_scan, (why, relation.name, column.name, value)
                find_all = kept.find_all(relation.oid, column.attnum, session)
                assert find_all is not None
                found, nothing = find_all([value, None])
                assert Counter(as_rows(found)) == by_scan, (why, relation.name, column.name, value)
                assert nothing is None


@pytest.mark.parametrize("seed", sampled(1, [1, 2]))
def test_rows_by_key_are_those_of_a_scan_over_random_ddl(seed: int) -> None:
    async def play() -> int:
        database = await open_database(MemoryDisk())
        database.clock_us = lambda: 0  # type: ignore[method-assign]
        keeper, reader, late = (Session(database, i) for i in (1, 2, 3))
        kept = VirtualCatalog(database)
        done = 0
        for number, statement in enumerate(random_statements(seed, 160)):
            if number % 40 == 20:
                await keeper.run("BEGIN")  # its catalog is private from here on
                await late.run("BEGIN")
                await late.run("SELECT 1")  # sees the catalog of now
            try:
                await keeper.run(statement)
                done += 1
            except Failed:
                if number % 40 >= 20:
                    await keeper.run("ROLLBACK")
                    await keeper.run("BEGIN")
            if number % 7 == 0:
                fresh = VirtualCatalog(database)
                for session in (reader, late, keeper):
                    inner = session.connection.session
                    idle = inner.block.txn is None
                    inner.block.ensure_txn()
                    for relation in made_of_each(builtin=number % 70 == 35)[number % 2 :: 2]:
                        check(kept, fresh, inner, relation, statement)
                    if idle:
                        inner.block.rollback()
            if number % 40 == 39:
                await keeper.run("COMMIT")
                await late.run("COMMIT")
        return done

    assert asyncio.run(play()) > 25


REFERRED = (
    "CREATE SCHEMA s", "CREATE ROLE ann", "CREATE TYPE mood AS ENUM ('a')", "CREATE TYPE pair AS (x int, y mood)",
    "CREATE DOMAIN small AS int CHECK (VALUE < 9)",
    "CREATE FUNCTION twice(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN n * 2; END'",
    "CREATE TABLE a (id serial PRIMARY KEY, m mood, p pair[], d small DEFAULT twice(2) CHECK (twice(d) > 1), UNIQUE (m, d))",
    "CREATE TABLE s.b (id int GENERATED ALWAYS AS IDENTITY, a int REFERENCES a, n int DEFAULT nextval('a_id_seq'), whole a, UNIQUE (n))",
    "CREATE TABLE s.c (n int REFERENCES s.b (n), EXCLUDE USING gist (int4range(n, n + 1) WITH &&))",
    "CREATE TABLE p (k int PRIMARY KEY, v int) PARTITION BY RANGE (k)", "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (9)",
    "CREATE TABLE q (k int REFERENCES p)", "CREATE INDEX ON a (twice(d)) WHERE twice(d) > 3", "CREATE INDEX ON p (v)",
    "CREATE TABLE checked (x int CHECK (twice(x) > 1))", "CREATE TABLE s.kept (x int)", "CREATE INDEX ON s.kept (x) WHERE twice(x) > 1",
    "CREATE VIEW v AS SELECT a.id, twice(b.n), 's.c'::regclass AS named FROM a JOIN s.b b ON b.a = a.id",
    "CREATE VIEW s.w AS SELECT v.*, c.relname FROM v JOIN pg_class c ON c.oid = v.named",
    "CREATE MATERIALIZED VIEW mv AS SELECT 1 AS x FROM s.w", "CREATE SEQUENCE s.free", "CREATE SEQUENCE s.owned OWNED BY s.c.n",
    "ALTER TABLE s.c ENABLE ROW LEVEL SECURITY", "CREATE POLICY one ON s.c USING (n IN (SELECT k FROM q WHERE twice(k) > 1))",
    "CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE TRIGGER changed BEFORE UPDATE OF m, d ON a FOR EACH ROW WHEN (twice(NEW.d) > 1) EXECUTE FUNCTION fired()",
    "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON s.c FROM s.b DEFERRABLE FOR EACH ROW EXECUTE FUNCTION fired()",
    "CREATE TRIGGER each AFTER INSERT ON p FOR EACH ROW EXECUTE FUNCTION fired()",
    "CREATE VIEW named AS SELECT 'mood'::regtype AS a, 's'::regnamespace AS b, 'twice'::regproc AS c, 'small'::regtype AS d",
    "CREATE TRIGGER named BEFORE INSERT ON a FOR EACH ROW WHEN (NEW.id::oid <> 'mood'::regtype) EXECUTE FUNCTION fired()",
    "CREATE POLICY two ON s.c USING (n::oid <> 'p1'::regclass AND n::oid <> 'pair'::regtype)",
    "CREATE TABLE keyed (x int) PARTITION BY LIST ((x::oid = 'q'::regclass))", "CREATE INDEX ON p1 ((k::oid = 's.b'::regclass))",
)  # fmt: skip


def test_what_depends_on_an_object_is_found_without_all_that_depends_on_anything() -> None:
    async def play() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        for statement in REFERRED:
            await session.run(statement)
        inner = session.connection.session
        inner.block.ensure_txn()
        depend = next(relation for relation in made_of_each() if relation.name == "pg_depend")
        attnum = next(column.attnum for column in depend.columns if column.name == "refobjid")
        rows = VirtualCatalog(database).rows(depend.oid, inner)
        kept = VirtualCatalog(database)
        find = kept.finder(depend.oid, attnum, inner)
        assert find is not None
        values = {row[attnum - 1] for row in rows} | {row[1] for row in rows} | {0, 1, 2615, 99_999}
        assert len(values) > 60
        for value in values:
            assert Counter(find(value)) == Counter(row for row in rows if row[attnum - 1] == value), value
        inner.block.rollback()

    asyncio.run(play())


def test_rows_that_name_other_relations_follow_them() -> None:
    async def play() -> None:
        session = Session(await open_database(MemoryDisk()), 1)
        for statement in (
            "CREATE TABLE t (id serial PRIMARY KEY)",
            "CREATE VIEW v AS SELECT id FROM t",
            "CREATE TABLE u (t int REFERENCES t)",
        ):
            await session.run(statement)
        read = "SELECT table_name FROM information_schema.view_table_usage WHERE view_name = 'v'"
        default = "SELECT column_default FROM information_schema.columns WHERE table_name = 'v' OR column_name = 'id'"
        used = "SELECT DISTINCT table_name FROM information_schema.constraint_table_usage ORDER BY 1"
        assert await session.run(read) == [("t",)]
        assert ("nextval('t_id_seq'::regclass)",) in await session.run(default)
        assert await session.run(used) == [("t",)]
        await session.run("ALTER TABLE t RENAME TO other")
        await session.run("ALTER SEQUENCE t_id_seq RENAME TO s")
        assert await session.run(read) == [("other",)]
        assert ("nextval('s'::regclass)",) in await session.run(default)
        assert await session.run(used) == [("other",)]

    asyncio.run(play())


def test_rows_are_made_ahead_by_whoever_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is in a transaction is waited for, and one that ends leaves the rest to the next."""
    monkeypatch.setattr("engine.session.catalog.ahead.MANY", 1)
    monkeypatch.setattr("engine.session.catalog.ahead.SLICE_S", 0)
    classes = next(r.oid for r in virtual_relations() if r.name == "pg_class")

    def made(database: Any) -> int:
        return sum(
            len(kept._kept._made) for (_, oid, _), kept in database.virtual._kept.items() if oid == classes
        )

    async def play() -> None:
        database = await open_database(MemoryDisk())
        writer = Session(database, 1)
        await writer.run("CREATE TABLE t (id int)")
        await writer.run("BEGIN")
        await writer.run("CREATE TABLE private (id int)")
        before = made(database)
        await asyncio.sleep(0.05)
        assert made(database) == before
        await settle(writer.connection.close())
        await asyncio.sleep(0.1)
        assert not database.ahead._tasks
        assert not database.ahead._made
        reader = Session(database, 2)
        for _ in range(3000):  # its slices are as short as can be, and each is followed by a pause
            await asyncio.sleep(0.01)
            if database.ahead._made:
                break
        assert database.ahead._made
        assert reader.connection.session.block.txn is None
        assert made(database) == 1
        [kept] = [k for (_, oid, _), k in database.virtual._kept.items() if oid == classes]
        last = kept._last
        assert await reader.run("SELECT count(*) FROM pg_class WHERE relname IN ('t', 'private')") == [("1",)]
        assert kept._last is last  # what was made is what is read
        await database.close()

    asyncio.run(play())


def test_whoever_reads_a_relation_at_once_gives_way() -> None:
    """As DROP … CASCADE does with pg_depend: of many objects, of each some lines."""

    async def play() -> None:
        session = Session(await open_database(MemoryDisk()), 1)
        await session.run("; ".join(f"CREATE SEQUENCE s{i}" for i in range(200)))
        inner = session.connection.session
        inner.block.ensure_txn()
        found = Measured()
        with counting(found):
            rows = inner.system.catalog_rows("pg_depend")
        assert len(rows) > 200
        assert found.lines > 50_000
        assert found.longest < found.lines / 10, found
        inner.block.rollback()

    asyncio.run(play())
