"""Statements that go the short ways (docs/internals/architecture.md) beside every kind of DDL on their table, for a comparison with PostgreSQL.

    warm: the statement has run some times      waiting: it is sent while the DDL is not committed      after: when it is

``play`` runs one pair on a server and answers with what the client is told.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import psycopg

WAYS: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "point read": ("SELECT v FROM t WHERE id = %s", (1,)),
    "range read": ("SELECT id, v FROM t WHERE id < %s ORDER BY id", (3,)),
    "quick query": ("SELECT a.v, b.v FROM t a JOIN t b ON b.id = a.id WHERE a.id = %s", (1,)),
    "insert": ("INSERT INTO t (id, v) VALUES (%s, %s)", (50, "new")),
    "insert returning": ("INSERT INTO t (id, v) VALUES (%s, %s) RETURNING id, v", (50, "new")),
    "insert on conflict": ("INSERT INTO t (id, v) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET v = excluded.v", (1, "new")),
    "update": ("UPDATE t SET v = %s WHERE id = %s", ("other", 1)),
    "update returning": ("UPDATE t SET v = %s WHERE id = %s RETURNING v", ("other", 1)),
    "delete": ("DELETE FROM t WHERE id = %s", (1,)),
    "lock": ("SELECT v FROM t WHERE id = %s FOR UPDATE", (1,)),
}  # fmt: skip
"""A statement and its parameters."""

FORMS: Final = ("simple", "extended", "prepared", "block")

READS: Final = ("point read", "range read", "quick query")
"""They wait for nobody here: beside DDL they answer what was there before."""

DDL: Final[dict[str, tuple[str, ...]]] = {
    "nothing": (),
    "drop": ("DROP TABLE t",),
    "drop and create": ("DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'born')"),
    "drop and create another": ("DROP TABLE t", "CREATE TABLE t (v int, id text)"),
    "drop and create view": ("DROP TABLE t", "CREATE VIEW t AS SELECT 1 AS id, 'view' AS v"),
    "add column": ("ALTER TABLE t ADD COLUMN w int DEFAULT 7",),
    "drop column": ("ALTER TABLE t DROP COLUMN v",),
    "drop key column": ("ALTER TABLE t DROP COLUMN id",),
    "alter type": ("ALTER TABLE t ALTER COLUMN v TYPE varchar(5)",),
    "alter key type": ("ALTER TABLE t ALTER COLUMN id TYPE bigint",),
    "rename column": ("ALTER TABLE t RENAME COLUMN v TO w",),
    "rename table": ("ALTER TABLE t RENAME TO u",),
    "swap tables": ("ALTER TABLE t RENAME TO u", "ALTER TABLE other RENAME TO t"),
    "set schema": ("ALTER TABLE t SET SCHEMA elsewhere",),
    "truncate": ("TRUNCATE t",),
    "create index": ("CREATE INDEX ON t (v)",),
    "drop index": ("DROP INDEX second",),
    "drop key": ("ALTER TABLE t DROP CONSTRAINT t_pkey",),
    "add check": ("ALTER TABLE t ADD CHECK (id <> 50)",),
    "add unique": ("ALTER TABLE t ADD UNIQUE (v)",),
    "set default": ("ALTER TABLE t ALTER COLUMN v SET DEFAULT 'd', ALTER COLUMN v SET NOT NULL",),
    "create trigger": (
        "CREATE TRIGGER g BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION refuse()",
    ),
    "enable policies": ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", "ALTER TABLE t FORCE ROW LEVEL SECURITY"),
    "owner": ("ALTER TABLE t OWNER TO short_owner",),
    "revoke": ("REVOKE ALL ON t FROM short_ways",),
    "attach": (
        "ALTER TABLE t RENAME TO part",
        "CREATE TABLE t (id int NOT NULL, v text, CONSTRAINT t_key PRIMARY KEY (id)) PARTITION BY RANGE (id)",
        "ALTER TABLE t ATTACH PARTITION part FOR VALUES FROM (0) TO (40)",
        "GRANT ALL ON t TO short_ways",
    ),
    "drop schema": ("DROP SCHEMA short CASCADE",),
}  # fmt: skip

SETUP: Final = """
DROP SCHEMA IF EXISTS short, elsewhere CASCADE;
CREATE SCHEMA short; CREATE SCHEMA elsewhere; GRANT USAGE ON SCHEMA short, elsewhere TO short_ways;
CREATE TABLE short.t (id int PRIMARY KEY, v text); CREATE INDEX second ON short.t (v);
CREATE TABLE short.other (id int PRIMARY KEY, v text);
INSERT INTO short.t VALUES (1, 'one'), (2, 'two'), (3, 'three'); INSERT INTO short.other VALUES (1, 'swap');
CREATE FUNCTION short.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
GRANT ALL ON ALL TABLES IN SCHEMA short TO short_ways
"""
ROLES: Final = ("short_ways", "short_owner")
WARM: Final = 3


def run(connection: psycopg.Connection[Any], way: str, form: str) -> Any:
    """Run a statement; return its SQLSTATE, or its tag and rows."""
    text, params = WAYS[way]
    try:
        cursor: psycopg.Cursor[Any]
        if form == "simple":
            with psycopg.ClientCursor(connection) as cursor:
                cursor.execute(text.encode(), params)
                return [cursor.statusmessage, _rows(cursor)]
        if form == "block":
            connection.execute("BEGIN")
        cursor = connection.execute(text.encode(), params, prepare=form != "extended")
        return [cursor.statusmessage, _rows(cursor)]
    except psycopg.Error as error:
        return error.sqlstate or repr(error)
    finally:
        if form == "block":
            connection.execute("ROLLBACK" if connection.info.transaction_status == 3 else "COMMIT")


def _rows(cursor: psycopg.Cursor[Any]) -> list[list[Any]] | None:
    return None if cursor.description is None else [list(row) for row in cursor.fetchall()]


def _warm(connection: psycopg.Connection[Any], way: str, form: str) -> None:
    for _ in range(WARM):
        run(connection, way, form)
        connection.execute("DELETE FROM t WHERE id = 50")
        connection.execute("INSERT INTO t VALUES (1, 'one') ON CONFLICT (id) DO UPDATE SET v = excluded.v")


def play(
    boss: psycopg.Connection[Any],
    client: psycopg.Connection[Any],
    way: str,
    form: str,
    ddl: str,
    *,
    waiting: bool,
) -> Any:
    """Return what ``client`` is told of a statement that comes beside or after DDL of ``boss``."""
    client.execute("ROLLBACK")  # upon which psycopg forgets and deallocates what it has prepared
    boss.execute(SETUP.encode())
    _warm(client, way, form)
    boss.execute("BEGIN")
    for statement in DDL[ddl]:
        boss.execute(statement.encode())
    if not waiting:
        boss.execute("COMMIT")
        return run(client, way, form)
    answers: list[Any] = []
    worker = threading.Thread(target=lambda: answers.append(run(client, way, form)))
    worker.start()
    for _ in range(400):
        waits = boss.execute(
            "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s", (client.info.backend_pid,)
        ).fetchone()
        if not worker.is_alive() or waits == (True,):
            break
        time.sleep(0.005)
    boss.execute("COMMIT")
    worker.join(20)
    assert not worker.is_alive(), f"{form} {way} beside {ddl} waits for ever"
    return answers[0]


def connect(dsn: str) -> tuple[psycopg.Connection[Any], psycopg.Connection[Any]]:
    """Return sessions of a superuser and of the role whose statements wait."""
    boss = psycopg.connect(dsn, autocommit=True)
    for role in ROLES:
        if boss.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
            boss.execute(f"CREATE ROLE {role} LOGIN".encode())
    boss.execute("SET search_path = short")
    client = psycopg.connect(dsn, autocommit=True, user="short_ways")
    client.execute("SET search_path = short")
    client.prepare_threshold = 1
    return boss, client
