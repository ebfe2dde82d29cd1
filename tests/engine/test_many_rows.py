"""Statements that change many rows of which somebody looks at each: what they do, in what order, beside PostgreSQL; their rows go to files and parts.

Here "many" is forty rows, and a few kilobytes are spilled. ``python -m tests.engine.test_many_rows PORT`` records what PostgreSQL answers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import engine.changes.constraints.effects
import engine.changes.constraints.foreign_key
import engine.changes.writes.many
import engine.changes.writes.spilling
import engine.changes.writes.spooled
import engine.changes.writes.update_delete
import txn.transaction.spill
from sqllogictest.client import Client, ServerError, Target
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk

RECORDED: Final = Path(__file__).with_suffix(".json")

TABLE: Final = [
    "CREATE TABLE t (gone int, id int PRIMARY KEY, n int, s text DEFAULT 'd', twice int GENERATED ALWAYS AS (n * 2) STORED)",
    "ALTER TABLE t DROP COLUMN gone",
    "INSERT INTO t SELECT g, g % 7, 'row ' || g FROM generate_series(1, 300) g",
    "CREATE TABLE log (at serial, what text)",
]
LOG: Final = "SELECT count(*), md5(string_agg(what, ',' ORDER BY at)), min(what), max(what) FROM log"
SUMS: Final = "SELECT count(*), sum(id), sum(n), sum(twice), md5(string_agg(s, ',' ORDER BY id)) FROM t"


def function(name: str, body: str, variables: str = "") -> str:
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $${variables} BEGIN {body} END $$"


def trigger(when: str, body: str, variables: str = "", name: str = "g") -> list[str]:
    return [function(name, body, variables), f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()"]


PARENTS: Final = [
    "CREATE TABLE p (k int PRIMARY KEY)",
    "INSERT INTO p SELECT g FROM generate_series(1, 300) g",
]


def child(actions: str, more: str = "") -> list[str]:
    return [
        *PARENTS,
        f"CREATE TABLE c (id int PRIMARY KEY, k int DEFAULT 1 REFERENCES p {actions}{more})",
        "CREATE INDEX ON c (k)",
        "INSERT INTO c SELECT g, 1 + g % 300 FROM generate_series(1, 700) g",
    ]


CHILDREN: Final = (
    "SELECT count(*), count(k), sum(k), md5(string_agg(id || ' ' || coalesce(k, 0), ',' ORDER BY id)) FROM c"
)

PARTITIONS: Final = [
    "CREATE TABLE p (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
    *(f"CREATE TABLE p{i} PARTITION OF p FOR VALUES FROM ({i * 200}) TO ({i * 200 + 200})" for i in range(3)),
    "INSERT INTO p SELECT g, g % 5 FROM generate_series(0, 399) g",
]
COUNTS: Final = "SELECT tableoid::regclass, count(*), sum(id), sum(n) FROM p GROUP BY 1 ORDER BY 1"

SCRIPTS: Final[dict[str, list[str]]] = {
    "update returning": [*TABLE, "UPDATE t SET n = n + 1 WHERE id <> 7 RETURNING id, n, s, twice, t", SUMS],
    "update from returning": [*TABLE, "UPDATE t SET n = u.v FROM (SELECT g % 200 AS k, 5 AS v FROM generate_series(1, 900) g) u WHERE u.k = id RETURNING id, u.v", SUMS],
    "delete returning": [*TABLE, "DELETE FROM t WHERE id % 3 > 0 RETURNING *", SUMS],
    "delete using returning": [*TABLE, "DELETE FROM t USING generate_series(1, 200) g WHERE g = id RETURNING g, s", SUMS],
    "insert returning": [*TABLE, "INSERT INTO t (id, n) SELECT g, g FROM generate_series(301, 600) g RETURNING id, s, twice, tableoid::regclass", SUMS],
    "insert a key twice": [*TABLE, "INSERT INTO t (id, n) SELECT g % 290 + 301, g FROM generate_series(1, 300) g RETURNING id", SUMS],
    "another key for all": [*TABLE, "UPDATE t SET id = id + 1000 RETURNING id", SUMS, "UPDATE t SET id = 5 WHERE id > 1100 RETURNING id", SUMS],
    "refused by CHECK": [*TABLE, "ALTER TABLE t ADD CHECK (n < 7 OR id < 250)", "UPDATE t SET n = n + 1 RETURNING id", SUMS, "INSERT INTO t (id, n) SELECT g + 300, g FROM generate_series(1, 100) g RETURNING id", SUMS],
    "savepoints": [*TABLE, "BEGIN", "UPDATE t SET n = 1 RETURNING id", "SAVEPOINT a", "DELETE FROM t WHERE id > 50 RETURNING id", SUMS, "ROLLBACK TO a", SUMS, "UPDATE t SET s = 'x' WHERE id > 100 RETURNING s", "COMMIT", SUMS],
    "twice in a block": [*TABLE, "BEGIN", "INSERT INTO t (id, n) SELECT g, 1 FROM generate_series(301, 500) g RETURNING id", "UPDATE t SET n = n + 1 WHERE id > 200 RETURNING id, n", "DELETE FROM t WHERE id > 250 RETURNING id", SUMS, "ROLLBACK", SUMS],
    "with": [*TABLE, "WITH u AS (UPDATE t SET n = 100 WHERE id < 200 RETURNING id, n), d AS (DELETE FROM t WHERE id >= 200 RETURNING id, n) SELECT count(*), sum(id), sum(n) FROM (SELECT * FROM u UNION ALL SELECT * FROM d) x", SUMS],
    "with, a row twice": [*TABLE, "WITH u AS (UPDATE t SET n = 100 RETURNING id), d AS (DELETE FROM t RETURNING id) SELECT (SELECT count(*) FROM u), (SELECT count(*) FROM d), (SELECT sum(n) FROM t)", SUMS],
    "with into another": [*TABLE, "CREATE TABLE old (LIKE t)", "WITH d AS (DELETE FROM t WHERE id > 20 RETURNING id, n, s) INSERT INTO old (id, n, s) SELECT * FROM d WHERE n > 0 RETURNING id", SUMS, "SELECT count(*), sum(id) FROM old"],
    "before row, counts what is changed": [*TABLE, *trigger("BEFORE UPDATE ON t FOR EACH ROW", "SELECT count(*) INTO c FROM t WHERE n = 1000 OR n > 5000; NEW.n := CASE WHEN NEW.id % 2 = 0 THEN 5000 + c ELSE 1000 END; NEW.s := c; IF NEW.id % 10 = 0 THEN RETURN NULL; END IF; RETURN NEW;", "DECLARE c int;"), "UPDATE t SET n = 0 RETURNING id, n, s", SUMS],
    "before insert, looks for the last": [*TABLE, *trigger("BEFORE INSERT ON t FOR EACH ROW", "SELECT max(id) INTO NEW.n FROM t; RETURN NEW;"), "INSERT INTO t SELECT g * 2 FROM generate_series(301, 500) g RETURNING id, n", SUMS],
    "before delete": [*TABLE, *trigger("BEFORE DELETE ON t FOR EACH ROW", "INSERT INTO log (what) SELECT OLD.id || ' of ' || count(*) FROM t; IF OLD.n = 3 THEN RETURN NULL; END IF; RETURN OLD;"), "DELETE FROM t WHERE id > 30 RETURNING id", SUMS, LOG],
    "before row changes one to come": [*TABLE, *trigger("BEFORE UPDATE ON t FOR EACH ROW", "UPDATE t SET s = 'touched' WHERE id = NEW.id + 150 AND NEW.id = 20 AND pg_trigger_depth() = 1; RETURN NEW;"), "UPDATE t SET n = 0", SUMS],
    "before row changes one before": [*TABLE, *trigger("BEFORE UPDATE ON t FOR EACH ROW", "IF NEW.id = 290 AND pg_trigger_depth() = 1 THEN UPDATE t SET s = 'touched' WHERE id = 10; END IF; RETURN NEW;"), "UPDATE t SET n = 0", SUMS, "SELECT s, n FROM t WHERE id = 10"],
    "after row": [*TABLE, *trigger("AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW", "INSERT INTO log (what) SELECT TG_OP || coalesce(OLD.id, 0) || ' ' || coalesce(NEW.n, 0) || ' of ' || count(*) || ' ' || sum(n) FROM t; RETURN NULL;"), "UPDATE t SET n = n + 1", LOG, "DELETE FROM t WHERE id % 2 = 0", LOG, "INSERT INTO t SELECT g, g FROM generate_series(1001, 1200) g", LOG, SUMS],
    "after row, some": [*TABLE, function("f", "INSERT INTO log (what) VALUES (TG_NAME || OLD.id || NEW.n); RETURN NULL;"), "CREATE TRIGGER b AFTER UPDATE ON t FOR EACH ROW WHEN (OLD.id % 3 = 0) EXECUTE FUNCTION f()", "CREATE TRIGGER a AFTER UPDATE OF n ON t FOR EACH ROW WHEN (NEW.n > 3) EXECUTE FUNCTION f()", "UPDATE t SET n = n + 1", LOG, "UPDATE t SET s = 'x' RETURNING id", LOG],
    "after row fails": [*TABLE, *trigger("AFTER UPDATE ON t FOR EACH ROW", "INSERT INTO log (what) VALUES (NEW.id); IF NEW.id = 250 THEN RAISE EXCEPTION 'not %', NEW.id; END IF; RETURN NULL;"), "UPDATE t SET n = 50", SUMS, LOG, "DO $$ BEGIN UPDATE t SET n = 60; EXCEPTION WHEN OTHERS THEN INSERT INTO log (what) VALUES (SQLERRM); END $$", SUMS, LOG, "UPDATE t SET n = 70 WHERE id < 200", SUMS, LOG],
    "after row changes the same table": [*TABLE, *trigger("AFTER UPDATE ON t FOR EACH ROW", "IF pg_trigger_depth() = 1 THEN UPDATE t SET s = s || NEW.id WHERE id = 301 - NEW.id; END IF; RETURN NULL;"), "UPDATE t SET n = 0 RETURNING s", SUMS],
    "transition tables": [*TABLE, *trigger("AFTER UPDATE ON t REFERENCING OLD TABLE AS o NEW TABLE AS w FOR EACH STATEMENT", "INSERT INTO log (what) SELECT o.id || ' ' || o.n || ' ' || w.n || w.s FROM o JOIN w USING (id) ORDER BY id; INSERT INTO log (what) SELECT count(*) || ' ' || sum(n) FROM o; RETURN NULL;"), "UPDATE t SET n = n + 1 WHERE id <> 5", LOG, SUMS],
    "transition tables of rows": [*TABLE, *trigger("AFTER DELETE ON t REFERENCING OLD TABLE AS o FOR EACH ROW", "INSERT INTO log (what) SELECT OLD.id || ' of ' || count(*) FROM o; RETURN NULL;"), "DELETE FROM t WHERE id > 200", LOG],
    "transition tables of an insert": [*TABLE, *trigger("AFTER INSERT ON t REFERENCING NEW TABLE AS w FOR EACH STATEMENT", "INSERT INTO log (what) SELECT s || twice FROM w WHERE n > 5 ORDER BY id; RETURN NULL;"), "INSERT INTO t SELECT g, g FROM generate_series(301, 500) g", LOG],
    "statement triggers around": [*TABLE, function("f", "INSERT INTO log (what) SELECT TG_NAME || TG_WHEN || TG_LEVEL || count(*) || sum(n) FROM t; RETURN NULL;"), "CREATE TRIGGER a BEFORE UPDATE ON t EXECUTE FUNCTION f()", "CREATE TRIGGER b AFTER UPDATE ON t EXECUTE FUNCTION f()", "CREATE TRIGGER c AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()", "UPDATE t SET n = n + 1 RETURNING n", LOG],
    "constraint triggers": [*TABLE, function("f", "INSERT INTO log (what) SELECT TG_OP || coalesce(NEW.id, OLD.id) || sum(n) FROM t; RETURN NULL;"), "CREATE CONSTRAINT TRIGGER d AFTER UPDATE OR DELETE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f()", "BEGIN", "UPDATE t SET n = n + 1", LOG, "DELETE FROM t WHERE id < 100", LOG, "COMMIT", LOG],
    "on conflict": [*TABLE, "INSERT INTO t SELECT g, 1, 'new' FROM generate_series(200, 450) g ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n, s = t.s || excluded.s WHERE t.id <> 250 RETURNING id, n, s", SUMS],
    "on conflict nothing": [*TABLE, "INSERT INTO t SELECT g % 350 + 100, g FROM generate_series(1, 700) g ON CONFLICT DO NOTHING RETURNING id", SUMS],
    "on conflict a second time": [*TABLE, "INSERT INTO t SELECT 200 + g % 220, 1 FROM generate_series(1, 300) g ON CONFLICT (id) DO UPDATE SET n = t.n + 1", SUMS, "INSERT INTO t SELECT 1 + g % 220, 1 FROM generate_series(1, 300) g ON CONFLICT (id) DO UPDATE SET n = t.n + 1", SUMS],
    "on conflict with triggers": [*TABLE, *trigger("AFTER INSERT OR UPDATE ON t FOR EACH ROW", "INSERT INTO log (what) VALUES (TG_OP || NEW.id || NEW.n); RETURN NULL;"), "INSERT INTO t SELECT g, 1 FROM generate_series(200, 400) g ON CONFLICT (id) DO UPDATE SET n = t.n + 1", LOG, SUMS],
    "merge": [*TABLE, "MERGE INTO t USING generate_series(100, 500) g ON id = g WHEN MATCHED AND id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = n + g WHEN NOT MATCHED THEN INSERT VALUES (g, 1)", SUMS],
    "merge a second time": [*TABLE, "MERGE INTO t USING (SELECT g % 290 + 1 AS g FROM generate_series(1, 300) g) g ON id = g WHEN MATCHED THEN UPDATE SET n = n + g", SUMS],
    "merge with triggers": [*TABLE, *trigger("BEFORE INSERT OR UPDATE ON t FOR EACH ROW", "INSERT INTO log (what) VALUES (TG_OP || NEW.id); NEW.s := TG_OP; RETURN NEW;"), "MERGE INTO t USING generate_series(200, 450) g ON id = g WHEN MATCHED THEN UPDATE SET n = n + g WHEN NOT MATCHED THEN INSERT VALUES (g, 1)", "SELECT count(*), count(DISTINCT what) FROM log", SUMS],
    "through a view": [*TABLE, "CREATE VIEW v AS SELECT id AS i, n FROM t WHERE n < 8 WITH CHECK OPTION", "UPDATE v SET n = n + 1 WHERE i > 10 RETURNING i, n", SUMS, "UPDATE v SET n = n + 1 WHERE i > 10 RETURNING i, n", SUMS, "DELETE FROM v WHERE i > 100 RETURNING *", "INSERT INTO v SELECT g, 3 FROM generate_series(1001, 1200) g RETURNING *", SUMS],
    "instead of": [*TABLE, "CREATE VIEW v AS SELECT id, n FROM t", *trigger("INSTEAD OF UPDATE OR DELETE ON v FOR EACH ROW", "INSERT INTO log (what) VALUES (TG_OP || OLD.id); IF TG_OP = 'UPDATE' THEN UPDATE t SET n = -NEW.n WHERE id = OLD.id; RETURN NEW; END IF; RETURN CASE WHEN OLD.id % 2 = 0 THEN OLD END;"), "UPDATE v SET n = n + 1 RETURNING id, n", "DELETE FROM v WHERE id > 100 RETURNING id", SUMS, LOG],
    "row security": [*TABLE, "CREATE ROLE many_rows_reader", "GRANT ALL ON t TO many_rows_reader", "ALTER TABLE t ENABLE ROW LEVEL SECURITY", "CREATE POLICY a ON t USING (n < 5) WITH CHECK (id < 290 OR n < 5)", "SET ROLE many_rows_reader", "UPDATE t SET n = n - 1 WHERE id < 280 RETURNING id", "UPDATE t SET n = n + 1 RETURNING id", "RESET ROLE", SUMS, "DROP TABLE t", "DROP ROLE many_rows_reader"],
    "update cascade": [*child("ON UPDATE CASCADE"), "UPDATE p SET k = k + 1000", CHILDREN, "SELECT sum(k) FROM p"],
    "update set null": [*child("ON UPDATE SET NULL"), "UPDATE p SET k = k + 1000 WHERE k > 50 RETURNING k", CHILDREN],
    "update no action": [*child(""), "UPDATE p SET k = k + 1000 WHERE k > 50", "DELETE FROM c", "UPDATE p SET k = k + 1000 WHERE k > 50 RETURNING k", "SELECT sum(k) FROM p"],
    "update restrict": [*child("ON UPDATE RESTRICT"), "UPDATE p SET k = k + 1000 WHERE k > 50", "DELETE FROM c WHERE k > 50", "UPDATE p SET k = k + 1000 WHERE k > 50", "SELECT sum(k) FROM p"],
    "delete cascade": [*child("ON DELETE CASCADE"), "DELETE FROM p WHERE k % 4 > 0", CHILDREN, "DELETE FROM p RETURNING k", CHILDREN],
    "delete set null": [*child("ON DELETE SET NULL"), "DELETE FROM p WHERE k % 4 > 0", CHILDREN],
    "delete set default": [*child("ON DELETE SET DEFAULT"), "DELETE FROM p WHERE k > 100", CHILDREN, "DELETE FROM p WHERE k < 90", CHILDREN],
    "delete restrict": [*child("ON DELETE RESTRICT"), "DELETE FROM p WHERE k > 100 RETURNING k", CHILDREN],
    "delete cascade of one": [*child("ON DELETE CASCADE"), "UPDATE c SET k = 7 WHERE id > 100", "DELETE FROM p WHERE k = 7", CHILDREN],
    "delete cascade with triggers": [*child("ON DELETE CASCADE"), TABLE[3], *[one.replace(" g ", " g ") for one in trigger("AFTER DELETE ON c FOR EACH ROW", "INSERT INTO log (what) VALUES (OLD.k); RETURN NULL;")], *trigger("BEFORE DELETE ON c FOR EACH ROW", "IF OLD.id % 50 = 0 THEN RETURN NULL; END IF; RETURN OLD;", name="h"), *trigger("AFTER DELETE ON c REFERENCING OLD TABLE AS o FOR EACH STATEMENT", "INSERT INTO log (what) SELECT count(*) || ' ' || sum(id) FROM o; RETURN NULL;", name="i"), "DELETE FROM p WHERE k > 20", CHILDREN, "SELECT count(*), sum(what::int) FROM log WHERE what NOT LIKE '% %'"],
    "a tree": ["CREATE TABLE c (id int PRIMARY KEY, k int REFERENCES c ON DELETE CASCADE)", "INSERT INTO c SELECT g, nullif(g / 2, 0) FROM generate_series(1, 500) g RETURNING id", "DELETE FROM c WHERE id IN (5, 3)", CHILDREN, "DELETE FROM c WHERE id > 1 RETURNING id", CHILDREN],
    "insert without a key": [*child(""), "INSERT INTO c SELECT g, g - 1000 FROM generate_series(1001, 1310) g RETURNING id", "INSERT INTO c SELECT g, g - 1000 FROM generate_series(1001, 1290) g RETURNING id", CHILDREN],
    "deferred": [*child("", " DEFERRABLE INITIALLY DEFERRED"), "BEGIN", "DELETE FROM p WHERE k > 10 RETURNING k", "DELETE FROM c WHERE k > 10 RETURNING id", "COMMIT", CHILDREN, "BEGIN", "INSERT INTO c SELECT g, g FROM generate_series(1001, 1200) g RETURNING id", "INSERT INTO p SELECT g FROM generate_series(1001, 1200) g", "COMMIT", CHILDREN, "BEGIN", "DELETE FROM p WHERE k > 1000 RETURNING k", "COMMIT", CHILDREN, "BEGIN", "INSERT INTO c SELECT g, g FROM generate_series(2001, 2200) g RETURNING id", "COMMIT", CHILDREN],
    "deferred keys": [*TABLE, "CREATE TABLE u (k int UNIQUE DEFERRABLE INITIALLY DEFERRED)", "INSERT INTO u SELECT g FROM generate_series(1, 200) g RETURNING k", "UPDATE u SET k = k + 1 RETURNING k", "SELECT sum(k) FROM u", "BEGIN", "INSERT INTO u SELECT g FROM generate_series(150, 300) g RETURNING k", "DELETE FROM u WHERE k BETWEEN 150 AND 201", "COMMIT", "SELECT count(*), sum(k) FROM u", "INSERT INTO u SELECT g FROM generate_series(1, 100) g RETURNING k", "SELECT count(*), sum(k) FROM u"],
    "in loops": [*TABLE, "DO $$ DECLARE r record; c int := 0; BEGIN FOR r IN UPDATE t SET n = n + 1 RETURNING * LOOP c := c + r.n; IF r.id % 2 = 0 THEN INSERT INTO log (what) VALUES (r.id); END IF; END LOOP; INSERT INTO log (what) VALUES (c); END $$", LOG, "CREATE FUNCTION f() RETURNS SETOF t LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY DELETE FROM t WHERE id > 40 RETURNING *; END $$", "SELECT count(*), sum(id), sum(n) FROM f()", "CREATE FUNCTION g() RETURNS SETOF int LANGUAGE sql AS $$ INSERT INTO t SELECT g, g FROM generate_series(1001, 1200) g RETURNING id $$", "SELECT count(*), sum(g) FROM g()", SUMS],
    "in turn": [*TABLE, "CREATE FUNCTION c() RETURNS bigint VOLATILE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(n) FROM t); END $$", "UPDATE t SET n = c() % 1000 RETURNING id, n", SUMS, "INSERT INTO t SELECT g, c() % 1000 FROM generate_series(301, 400) g RETURNING id, n", SUMS, "DELETE FROM t WHERE id > 50 RETURNING c()", SUMS],
    "partitions, on conflict": [*PARTITIONS, "INSERT INTO p SELECT g, 1 FROM generate_series(300, 550) g ON CONFLICT (id) DO UPDATE SET n = p.n + 10", COUNTS, "INSERT INTO p SELECT 1 + g % 220, 1 FROM generate_series(1, 300) g ON CONFLICT (id) DO UPDATE SET n = p.n + 1", COUNTS],
    "partitions, merge": [*PARTITIONS, "MERGE INTO p USING generate_series(100, 580) g ON id = g WHEN MATCHED AND id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = n + g WHEN NOT MATCHED THEN INSERT VALUES (g, 1)", COUNTS],
    "partitions with triggers": [*PARTITIONS, TABLE[3], function("f", "INSERT INTO log (what) VALUES (TG_OP || TG_RELNAME || coalesce(OLD.id, 0) || ' ' || coalesce(NEW.id, 0)); RETURN NULL;"), "CREATE TRIGGER f AFTER INSERT OR UPDATE OR DELETE ON p FOR EACH ROW EXECUTE FUNCTION f()", *trigger("AFTER UPDATE ON p REFERENCING OLD TABLE AS o NEW TABLE AS w FOR EACH STATEMENT", "INSERT INTO log (what) SELECT count(*) || ' ' || sum(o.n) || ' ' || sum(w.n) FROM o JOIN w USING (id); RETURN NULL;"), "UPDATE p SET n = n + 1", "SELECT count(*), count(DISTINCT what), sum(length(what)) FROM log", "UPDATE p SET id = id + 170", "SELECT count(*), count(DISTINCT what), sum(length(what)) FROM log", "INSERT INTO p SELECT g, 0 FROM generate_series(0, 150) g", "DELETE FROM p WHERE id % 2 = 0", "SELECT count(*), count(DISTINCT what), sum(length(what)) FROM log", COUNTS],
    "partitions, a key twice": [*PARTITIONS, "INSERT INTO p SELECT g, 1 FROM generate_series(350, 500) g RETURNING id", "UPDATE p SET id = id / 2", COUNTS, "UPDATE p SET id = id + 1000", COUNTS],
    "partitions": ["CREATE TABLE p (id int, n int) PARTITION BY RANGE (id)", *(f"CREATE TABLE p{i} PARTITION OF p FOR VALUES FROM ({i * 200}) TO ({i * 200 + 200})" for i in range(3)), "WITH i AS (INSERT INTO p SELECT g, g % 5 FROM generate_series(0, 399) g RETURNING id, tableoid::regclass AS r) SELECT r, count(*), sum(id) FROM i GROUP BY 1 ORDER BY 1", "WITH u AS (UPDATE p SET id = id + 150 RETURNING id, tableoid::regclass AS r) SELECT r, count(*), sum(id) FROM u GROUP BY 1 ORDER BY 1", "SELECT tableoid::regclass, count(*), sum(id) FROM p GROUP BY 1 ORDER BY 1", "WITH d AS (DELETE FROM p WHERE n > 1 RETURNING id) SELECT count(*), sum(id) FROM d", "SELECT tableoid::regclass, count(*), sum(id) FROM p GROUP BY 1 ORDER BY 1"],
}  # fmt: skip

Answer = list[Any]


LIMITS: Final[list[tuple[Any, str, int]]] = [
    (engine.changes.writes.many, "BULK_ROWS", 40),
    (engine.changes.writes.many, "PIECE_ROWS", 7),
    (engine.changes.writes.update_delete, "BULK_ROWS", 40),
    (engine.changes.writes.spilling, "MOST", 16_000),
    (engine.changes.constraints.effects, "KEYS_AT_ONCE", 30),
    (engine.changes.constraints.foreign_key, "PIECE_ROWS", 10),
    (engine.changes.constraints.foreign_key, "MANY_ROWS", 25),
    (engine.changes.writes.spooled, "CHUNK_ROWS", 9),
    (engine.changes.writes.spooled, "BUFFER_BYTES", 1),
    (engine.changes.writes.spooled, "LISTED", 20),
    (txn.transaction.spill, "TABLE_ROWS", 11),
]
"""What is many, made little."""


async def answers(folder: Path) -> dict[str, tuple[list[Answer], int]]:
    """Return what each statement of each script answers, and how many times rows were spilled in it."""
    spilled = 0
    spill = txn.transaction.spill.spill

    async def counted(*args: Any) -> range:
        nonlocal spilled
        spilled += 1
        return await spill(*args)

    found: dict[str, tuple[list[Answer], int]] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(txn.transaction.spill, "spill", counted)
        for module, name, value in LIMITS:
            patched.setattr(module, name, value)
        database = await open_database(MemoryDisk(), data_dir=str(folder))
        try:
            for number, (name, script) in enumerate(SCRIPTS.items(), 1):
                session = Session(database, number)
                await session.run("DROP SCHEMA public CASCADE")
                await session.run("CREATE SCHEMA public")
                await session.run("GRANT ALL ON SCHEMA public TO PUBLIC")
                await session.run("SET executor = index")  # there is no other
                spilled = 0
                answered = [await _answer(session, sql) for sql in script]
                await session.run("ROLLBACK")
                found[name] = answered, spilled
        finally:
            await database.close()
    return found


async def _answer(session: Session, sql: str) -> Answer:
    try:
        return [list(row) for row in await session.run(sql)]
    except Failed as failed:
        return [failed.report.sqlstate, failed.report.message]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Answer], int]]:
    return asyncio.run(answers(tmp_path_factory.mktemp("many")))


def test_it_is_there_after_a_crash(tmp_path: Path) -> None:
    """What was spilled is committed, and what a rollback took back is not."""

    async def body() -> None:
        disk = MemoryDisk()
        database = await open_database(disk, data_dir=str(tmp_path))
        session = Session(database, 1)
        await session.run("SET executor = index")
        script = SCRIPTS["before row changes one before"]
        for sql in (*script, "BEGIN", "UPDATE t SET n = 77", "ROLLBACK", "DELETE FROM t WHERE id > 200"):
            await session.run(sql)
        left = await session.run(SUMS)
        disk.crash()
        database = await open_database(disk, data_dir=str(tmp_path), own_oids=False)
        session = Session(database, 2)
        assert await session.run(SUMS) == left
        assert left[0][0] == "200"
        await database.close()

    with pytest.MonkeyPatch.context() as patched:
        for module, name, value in LIMITS:
            patched.setattr(module, name, value)
        asyncio.run(body())


def test_what_is_spilled_is_not_kept_by_the_session(tmp_path: Path) -> None:
    async def body() -> None:
        database = await open_database(MemoryDisk(), data_dir=str(tmp_path))
        session = Session(database, 1)
        await session.run("SET executor = index")
        for sql in TABLE:
            await session.run(sql)
        await session.run("BEGIN")
        await session.run("INSERT INTO t (id) SELECT g FROM generate_series(1001, 3000) g RETURNING id")
        await session.run("UPDATE t SET s = 'x' WHERE id <= 300 RETURNING id")
        assert session.connection.session.block.own_rows.written[1] < 400 * 1000
        await session.run("COMMIT")
        assert (await session.run("SELECT count(*) FROM t"))[0] == ("2300",)
        await database.close()

    with pytest.MonkeyPatch.context() as patched:
        for module, name, value in LIMITS:
            patched.setattr(module, name, value)
        asyncio.run(body())


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_postgresql_answers(name: str, answered: dict[str, tuple[list[Answer], int]]) -> None:
    found, spilled = answered[name]
    wanted = json.loads(RECORDED.read_text())[name]
    for sql, mine, theirs in zip(SCRIPTS[name], found, wanted, strict=True):
        assert mine == theirs, sql
    assert spilled or name == "deferred keys", "nothing was spilled"


def record(port: int) -> None:
    """Ask PostgreSQL."""
    found: dict[str, list[Answer]] = {}
    for name, script in SCRIPTS.items():
        client = Client(Target("127.0.0.1", port, "postgres", "", "postgres"), timeout_s=60)
        client.run("DROP SCHEMA public CASCADE")
        client.run("CREATE SCHEMA public")
        client.run("GRANT ALL ON SCHEMA public TO PUBLIC")
        answered: list[Answer] = []
        for sql in script:
            try:
                answered.append([list(row) for row in client.run(sql).rows])
            except ServerError as error:
                answered.append([error.sqlstate, error.message])
        found[name] = answered
        client.close()
    RECORDED.write_text(
        json.dumps(found, indent=None, separators=(",", ":")).replace('"],"', '"],\n"') + "\n"
    )


if __name__ == "__main__":
    record(int(sys.argv[1]))
