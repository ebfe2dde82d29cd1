"""What is kept to be run again, prepared statements and bodies of functions, keeps nothing of the catalog that it was planned for.

Each definition makes another catalog, of which a session that prepares statements between definitions would keep as many as it likes: dictionaries
of all objects, half a megabyte for 2,000 tables.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path
from typing import Final

from pgwire import messages as m
from tests.support.sessions import Client, opened

SETUP: Final = (
    "CREATE TYPE mood AS ENUM ('sad', 'happy')",
    "CREATE TABLE t (id int PRIMARY KEY, r int, n int CHECK (n < 5000), d text, m mood)",
    "INSERT INTO t SELECT g, g, g, g::text, 'sad' FROM generate_series(1, 300) g",
    "CREATE TABLE fk (id int REFERENCES t)",
    "CREATE TABLE p (a int, b text) PARTITION BY LIST (a)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
    "CREATE TABLE p2 PARTITION OF p DEFAULT",
    "CREATE VIEW v AS SELECT id, n, (SELECT count(*) FROM fk WHERE fk.id = t.id) c FROM t",
    "CREATE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN a + (SELECT count(*) FROM t); END'",
    "CREATE FUNCTION q(a int) RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t WHERE id < a'",
    "CREATE FUNCTION tr() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.n := (SELECT max(id) FROM fk); RETURN NEW; END'",
    "CREATE TABLE fires (id int PRIMARY KEY, n int)",
    "CREATE TRIGGER tr BEFORE INSERT ON fires FOR EACH ROW EXECUTE FUNCTION tr()",
    "CREATE TABLE guarded (id int)",
    "CREATE POLICY pol ON guarded USING (id IN (SELECT id FROM fk)) WITH CHECK (id IN (SELECT id FROM t))",
)
STATEMENTS: Final = (
    "SELECT * FROM t WHERE id = 1",
    "SELECT d FROM t WHERE n = (SELECT max(n) FROM t) ORDER BY d LIMIT 2",
    "SELECT count(*), sum(a.n) OVER (PARTITION BY a.r) FROM t a JOIN t b ON a.id = b.r GROUP BY a.n, a.r",
    "WITH RECURSIVE w AS (SELECT 1 a UNION ALL SELECT a + 1 FROM w WHERE a < 5) SELECT a, (SELECT d FROM t WHERE id = a) FROM w",
    "SELECT * FROM t LEFT JOIN LATERAL (SELECT id FROM fk WHERE fk.id = t.id) x ON true WHERE t.n < 10 UNION SELECT t.*, 1 FROM t",
    "SELECT * FROM v WHERE c = 0 LIMIT 1",
    "SELECT * FROM p WHERE a = 1",
    "SELECT relname FROM pg_class WHERE relname = 't'",
    "SELECT table_name FROM information_schema.tables LIMIT 1",
    "SELECT f(1), (q(3)).id",
    "SELECT * FROM q(5)",
    "SELECT m, ARRAY[m], ROW(m, 1) FROM t WHERE m = 'sad' LIMIT 1",
    "INSERT INTO t VALUES ((random() * 1e9)::int, 2, 3, 'x') ON CONFLICT (id) DO UPDATE SET n = (SELECT max(id) FROM fk) RETURNING id",
    "INSERT INTO t SELECT -(random() * 1e9)::int, r, n, d FROM t WHERE id = 1 RETURNING (SELECT count(*) FROM fk)",
    "INSERT INTO fires VALUES ((random() * 1e9)::int)",
    "INSERT INTO guarded VALUES (1) RETURNING id",
    "INSERT INTO p VALUES (1, 'x'), (2, 'y')",
    "UPDATE t SET n = (SELECT count(*) FROM fk) WHERE id = 1 RETURNING *",
    "UPDATE p SET b = 'z' WHERE a = 2",
    "DELETE FROM t WHERE id = 7 AND EXISTS (SELECT FROM fk WHERE fk.id = t.id)",
    "MERGE INTO t USING fk ON t.id = fk.id WHEN MATCHED AND (SELECT true) THEN UPDATE SET n = 1 WHEN NOT MATCHED THEN DO NOTHING",
    "WITH d AS (DELETE FROM fk WHERE id = 99 RETURNING id) SELECT count(*) FROM d",
    "SELECT id FROM t WHERE id = 3 FOR UPDATE",
)


def test_nothing_prepared_keeps_an_old_catalog(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as (database, server):
            client = Client(server)
            await client.answers()

            async def run(sql: str) -> None:
                events = await client.run(m.Query(sql))
                errors = [e.report for e in events if isinstance(e, m.ErrorResponse)]
                assert not errors, (sql, [e.message for e in errors])

            for sql in SETUP:
                await run(sql)
            for executor in ("auto", "local"):
                await run(f"SET executor = '{executor}'")
                for number, sql in enumerate(STATEMENTS):
                    if executor == "auto" or sql.startswith("SELECT d"):
                        await run(f"PREPARE {executor}{number} AS {sql}")
                        for _ in range(3):
                            await run(f"EXECUTE {executor}{number}")
            await run("RESET executor")
            old = weakref.ref(database.spaces.any.catalog)
            await run("CREATE TABLE another (a int)")
            await run("SELECT 1")
            database.plans.clear()  # what is kept there is counted with its catalogs
            for _ in range(100):
                gc.collect()
                if old() is None:
                    break
                await asyncio.sleep(0.05)
            assert old() is None
            await run("EXECUTE auto0")

    asyncio.run(main())
