"""Values of an eighth of ``memory``, whose peaks ``bench.memory`` measures: texts that shrink, one bytea and one jsonb that do not."""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import md5
from random import Random

from bench.peaks import (
    EITHER,
    REFUSED,
    RUNS,
    Attack,
    Does,
    Group,
    Wire,
    binds,
    dump_and_restore,
    fetches,
    reads,
    then,
    unread,
)
from tests.support.server import ServerProcess


def largest() -> Group:
    size = (64 << 20) - 4096
    rows = 6

    def fill(server: ServerProcess) -> str:
        said = reads("CREATE TABLE largest (id int PRIMARY KEY, d text, n int)")(server)
        for n in range(rows):
            if said == RUNS:
                said = reads(f"INSERT INTO largest VALUES ({n}, repeat('x', {size} - {n}), 0)")(server)
        return said

    def copied(server: ServerProcess) -> str:
        wire = Wire(server)
        try:
            line = b"1\t" + b"z" * size + b"\n"
            said = wire.query("CREATE TABLE copied (id int, d text)")
            return said if said != RUNS else wire.copy_in("COPY copied FROM STDIN", lambda: line, rows)
        finally:
            wire.close()

    return Group("largest", "512MB", fill, [
        Attack("SELECT *", reads("SELECT * FROM largest")),
        Attack("SELECT *, unread", unread("SELECT * FROM largest")),
        Attack("by key", reads(*(f"SELECT * FROM largest WHERE id = {n}" for n in range(rows)))),
        Attack("COPY", reads("COPY largest TO STDOUT")),
        Attack("COPY binary", reads("COPY largest TO STDOUT (FORMAT binary)")),
        Attack("COPY FROM STDIN", copied),
        Attack("UPDATE of another column", reads("UPDATE largest SET n = n + 1")),
        Attack("UPDATE of one by key", reads("UPDATE largest SET n = n + 1 WHERE id = 1")),
        Attack("CREATE TABLE AS", reads("CREATE TABLE as_ AS SELECT * FROM largest", "DROP TABLE as_")),
        Attack("ALTER TABLE", reads("ALTER TABLE largest ALTER n TYPE bigint"), EITHER),
        Attack("CHECKPOINT", reads("VACUUM largest", "CHECKPOINT")),
        Attack("dump and restore", dump_and_restore("largest")),
        Attack("a larger value", reads("INSERT INTO largest VALUES (100, repeat('x', 200000000), 0)"), REFUSED),
    ])  # fmt: skip


def bytea() -> Group:
    """Return what is done with one bytea that does not shrink, as text, which is twice as long, too."""
    value = Random(1).randbytes((64 << 20) - 4096)

    def loaded(options: str, line: Callable[[], bytes]) -> Does:
        def run(server: ServerProcess) -> str:
            wire = Wire(server)
            try:
                said = wire.query("CREATE TABLE copied (id int, d bytea)")
                if said == RUNS:
                    said = wire.copy_in(f"COPY copied FROM STDIN {options}", line, 1)
                same = f"SELECT 1 / (md5(d) = '{md5(value, usedforsecurity=False).hexdigest()}')::int FROM copied"
                return (
                    said if said != RUNS else wire.query(f"SET executor = index; {same}; DROP TABLE copied")
                )
            finally:
                wire.close()

        return run

    def field() -> bytes:
        return (
            b"PGCOPY\n\xff\r\n\0" + bytes(8) + struct.pack("!hiii", 2, 4, 1, len(value)) + value + b"\xff\xff"
        )

    def fill(server: ServerProcess) -> str:
        made = reads("CREATE TABLE digits (id int PRIMARY KEY, d bytea)")(server)
        wire = Wire(server)
        try:
            return made if made != RUNS else wire.copy_in("COPY digits FROM STDIN (FORMAT binary)", field, 1)
        finally:
            wire.close()

    def again(server: ServerProcess) -> str:
        server.kill()
        server.__init__(server.data_dir, "--memory", "512MB")  # type: ignore[misc]
        return RUNS

    same_row = "RETURN NEW; END"
    trigger = f"CREATE FUNCTION same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.d IS DISTINCT FROM NEW.d THEN RAISE ''no''; END IF; {same_row}'"
    assigns = f"CREATE FUNCTION same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.d := set_byte(NEW.d, 0, 1); {same_row}'"
    fires = "CREATE TRIGGER t BEFORE UPDATE ON digits FOR EACH ROW EXECUTE FUNCTION same()"
    returns = "CREATE FUNCTION same() RETURNS bytea LANGUAGE plpgsql AS 'DECLARE b bytea; BEGIN SELECT d INTO b FROM digits; RETURN b; END'"
    mine = "CREATE TABLE own (id int PRIMARY KEY, d bytea)"
    docs = "CREATE TABLE docs (id int PRIMARY KEY, d jsonb)"

    def literal() -> str:
        return "INSERT INTO digits VALUES (2, '\\x" + value.hex() + "')"

    def document() -> bytes:
        return b'{"a": "' + value.hex()[: len(value) - 100].encode() + b'"}'

    def plain() -> bytes:
        return value.hex()[: len(value) - 100].encode()

    return Group("bytea", "512MB", fill, [
        Attack("SELECT", reads("SELECT * FROM digits")),
        Attack("SELECT, binary", binds("SELECT * FROM digits WHERE id = $1", lambda: b"1", binary=False, answer_binary=True)),
        Attack("SELECT, unread", unread("SELECT * FROM digits")),
        Attack("COPY", reads("COPY digits TO STDOUT")),
        Attack("COPY CSV", reads("COPY digits TO STDOUT (FORMAT csv)")),
        Attack("COPY binary", reads("COPY digits TO STDOUT (FORMAT binary)")),
        Attack("COPY FROM STDIN", loaded("", lambda: b"1\t\\\\x" + value.hex().encode() + b"\n")),
        Attack("COPY FROM STDIN CSV", loaded("(FORMAT csv)", lambda: b"1,\\x" + value.hex().encode() + b"\n")),
        Attack("COPY FROM STDIN CSV, quoted", loaded("(FORMAT csv)", lambda: b'1,"\\x' + value.hex().encode() + b'"\n')),
        Attack("COPY FROM STDIN binary", loaded("(FORMAT binary)", field)),
        Attack("length and md5, index", reads("SET executor = index; SELECT length(d), md5(d) FROM digits")),
        Attack("length, local", reads("SET executor = local; SELECT length(d) FROM digits")),
        Attack("md5, local", reads("SET executor = local; SELECT md5(d) FROM digits")),
        Attack("count, local", reads("SET executor = local; SELECT count(*), max(id) FROM digits WHERE d <> ''")),
        Attack("SELECT, local", reads("SET executor = local; SELECT d FROM digits")),
        Attack("FETCH", fetches("SELECT * FROM digits", "FETCH 1 FROM c")),
        Attack("FETCH, WITH HOLD", reads("BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM digits", "COMMIT", "FETCH 1 FROM c")),
        Attack("INSERT of a literal", reads(literal), EITHER),
        Attack("INSERT of a parameter", binds("INSERT INTO digits VALUES (2, $1)", lambda: value, binary=True)),
        Attack("INSERT of a parameter as text", binds("INSERT INTO digits VALUES (7, $1)", lambda: b"\\x" + value.hex().encode(), binary=False)),
        Attack("INSERT of a parameter, then length", then(binds("INSERT INTO digits VALUES (6, $1)", lambda: value, binary=True), reads("SELECT length(d) FROM digits WHERE id = 6"))),
        Attack("INSERT of text", then(reads("CREATE TABLE texts (id int PRIMARY KEY, d text)"), binds("INSERT INTO texts VALUES (1, $1)", plain, binary=False), reads("SELECT * FROM texts", "UPDATE texts SET d = d || 'x'", "DROP TABLE texts"))),
        Attack("INSERT of jsonb", then(reads(docs), binds("INSERT INTO docs VALUES (1, $1)", document, binary=False), reads("SELECT * FROM docs", "DROP TABLE docs")), EITHER),
        Attack("INSERT … SELECT", reads("INSERT INTO digits SELECT id + 10, d FROM digits LIMIT 1")),
        Attack("INSERT … RETURNING", binds("INSERT INTO digits VALUES (3, $1) RETURNING *", lambda: value, binary=True)),
        Attack("INSERT, indexed by md5", then(reads(mine, "CREATE INDEX ON own (md5(d))"), binds("INSERT INTO own VALUES (1, $1)", lambda: value, binary=True), reads("DROP TABLE own"))),
        Attack("CREATE INDEX by md5", reads("CREATE INDEX of_md5 ON digits (md5(d))", "DROP INDEX of_md5")),
        Attack("CREATE TABLE AS", reads("CREATE TABLE own AS SELECT * FROM digits LIMIT 1", "DROP TABLE own")),
        Attack("UPDATE of the value", reads("UPDATE digits SET d = set_byte(d, 0, 1) WHERE id = 1")),
        Attack("UPDATE, appended", reads("UPDATE digits SET d = d || '\\x00' WHERE id = 1")),
        Attack("UPDATE twice", reads(*("UPDATE digits SET d = d || '\\x00' WHERE id = 1",) * 2)),
        Attack("UPDATE of a parameter", binds("UPDATE digits SET d = $1 WHERE id = 1", lambda: value, binary=True)),
        Attack("UPDATE … RETURNING *", reads("UPDATE digits SET id = id + 100 WHERE id = 1 RETURNING *", "UPDATE digits SET id = id - 100 WHERE id = 101")),
        Attack("ON CONFLICT", reads("INSERT INTO digits SELECT * FROM digits WHERE id = 1 ON CONFLICT (id) DO UPDATE SET d = excluded.d")),
        Attack("MERGE", reads("MERGE INTO digits t USING (SELECT * FROM digits WHERE id = 1) s ON s.id = t.id WHEN MATCHED THEN UPDATE SET d = s.d")),
        Attack("a block, rolled back", reads("BEGIN", "UPDATE digits SET d = d || '\\x00' WHERE id = 1", "ROLLBACK")),
        Attack("a variable", reads("DO $$ DECLARE b bytea; c bytea; BEGIN SELECT d INTO b FROM digits WHERE id = 1; c := b; END $$")),
        Attack("RETURN", reads(returns, "SELECT same()", "DROP FUNCTION same")),
        Attack("RAISE", reads("DO $$ DECLARE b bytea; BEGIN SELECT d INTO b FROM digits WHERE id = 1; RAISE NOTICE '%', b; END $$"), EITHER),
        Attack("a trigger", reads(trigger, fires, "UPDATE digits SET id = id WHERE id = 1", "DROP FUNCTION same CASCADE")),
        Attack("a trigger that assigns", reads(assigns, fires, "UPDATE digits SET id = id WHERE id = 1", "DROP FUNCTION same CASCADE")),
        Attack("large objects", binds("SELECT lo_from_bytea(4711, $1)", lambda: value, binary=True)),
        Attack("lo_put, lo_get", reads("SELECT lo_create(4712)", "SELECT lo_put(4712, 0, d) FROM digits WHERE id = 1", "SELECT lo_get(4712)")),
        Attack("AS OF", reads("SELECT pg_sleep(1)", "UPDATE digits SET d = d || '\\x00' WHERE id = 1", "SELECT * FROM digits AS OF SYSTEM TIME '-1s' WHERE id = 1")),
        Attack("CHECKPOINT", then(binds("INSERT INTO digits VALUES (4, $1)", lambda: value, binary=True), reads("CHECKPOINT", "VACUUM digits"))),
        Attack("a restart", then(binds("INSERT INTO digits VALUES (5, $1)", lambda: value, binary=True), again)),
        Attack("after it", reads("SELECT length(d) FROM digits WHERE id = 5")),
        Attack("dump and restore", dump_and_restore("digits")),
    ])  # fmt: skip


def looked_at() -> Group:
    """Return statements over a million rows that somebody looks at: RETURNING, triggers, keys, actions."""
    rows = 1_000_000
    log = "CREATE TABLE log (id int, n int)"
    body = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$"
    refers = (
        "CREATE TABLE c (id int PRIMARY KEY, k int REFERENCES t {})",
        f"INSERT INTO c SELECT g, g FROM generate_series(1, {rows}) g",
        "CREATE INDEX ON c (k)",
    )
    kinds = (
        ("UPDATE RETURNING", "UPDATE t SET n = n + 1 RETURNING *"),
        ("UPDATE of a key RETURNING", "UPDATE t SET id = id + 1 RETURNING *"),
        ("DELETE RETURNING", "DELETE FROM t RETURNING *"),
        ("INSERT RETURNING", f"INSERT INTO t SELECT g, g, 'x' FROM generate_series({rows + 1}, {2 * rows}) g RETURNING *"),
        ("DELETE within WITH", "CREATE TABLE kept (LIKE t)", "WITH d AS (DELETE FROM t RETURNING *) INSERT INTO kept SELECT * FROM d"),
        ("a loop", "DO $$ DECLARE r record; s int := 0; BEGIN FOR r IN UPDATE t SET n = n + 1 RETURNING * LOOP s := s + r.n % 2; END LOOP; END $$"),
        ("transition tables", log, body.format("INSERT INTO log SELECT id, n FROM o; INSERT INTO log SELECT id, n FROM w; RETURN NULL;"),
            "CREATE TRIGGER a AFTER UPDATE ON t REFERENCING OLD TABLE AS o NEW TABLE AS w FOR EACH STATEMENT EXECUTE FUNCTION f()", "UPDATE t SET n = n + 1"),
        ("ON CONFLICT", f"INSERT INTO t SELECT g, 1, 'x' FROM generate_series({rows // 2}, {rows + rows // 2}) g ON CONFLICT (id) DO UPDATE SET n = t.n + 1"),
        ("MERGE", f"MERGE INTO t USING generate_series({rows // 2}, {rows + rows // 2}) g ON id = g WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT VALUES (g, g, 'x')"),
        ("ON DELETE CASCADE", *(one.format("ON DELETE CASCADE") for one in refers), "DELETE FROM t"),
        ("ON DELETE SET NULL", *(one.format("ON DELETE SET NULL") for one in refers), "DELETE FROM t"),
        ("ON UPDATE CASCADE", *(one.format("ON UPDATE CASCADE") for one in refers), "UPDATE t SET id = id + 1"),
        ("AFTER ROW", log, body.format("INSERT INTO log VALUES (NEW.id, NEW.n); RETURN NULL;"), "CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()", "UPDATE t SET n = n + 1"),
        ("BEFORE ROW", body.format("NEW.n := 5; RETURN NEW;"), "CREATE TRIGGER a BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()", "UPDATE t SET n = n + 1"),
    )  # fmt: skip
    setup = f"INSERT INTO t SELECT g, g, 'row ' || g FROM generate_series(1, {rows}) g"
    return Group("looked at", "512MB", reads("CREATE TABLE t (id int PRIMARY KEY, n int, s text)"), [
        Attack(name, reads("TRUNCATE t CASCADE", setup, "CHECKPOINT", *statements, "DROP TABLE IF EXISTS c, log, kept", "DROP FUNCTION IF EXISTS f CASCADE"))
        for name, *statements in kinds
    ])  # fmt: skip


def rewritten() -> Group:
    """Return what computes something of every row of a table: eight rows of an eighth of ``memory``, and two million small ones."""
    size = (60 << 20) - 4096
    value = Random(2).randbytes(1 << 20)

    def fill(server: ServerProcess) -> str:
        said = reads(
            "CREATE TABLE long (d bytea)",
            "CREATE TABLE many AS SELECT g AS id, 'v' || g AS t, g % 10 AS k FROM generate_series(1, 2000000) g",
        )(server)
        for n in range(8):
            if said == RUNS:
                one = (value * (size // len(value) + 1))[n : n + size]
                said = binds("INSERT INTO long VALUES ($1)", lambda one=one: one, binary=True)(server)  # type: ignore[misc]
        return said

    anew = "REFRESH MATERIALIZED VIEW"
    kinds = (
        ("CREATE INDEX", "CREATE INDEX of_{t} ON {t} (md5({c}))", "DROP INDEX of_{t}"),
        ("a partial index", "CREATE INDEX of_{t} ON {t} (md5({c})) WHERE length({c}) > 3", "DROP INDEX of_{t}"),
        ("ADD COLUMN", "ALTER TABLE {t} ADD v float8 DEFAULT random()", "ALTER TABLE {t} DROP v"),
        ("a generated column", "ALTER TABLE {t} ADD v int GENERATED ALWAYS AS (length({c})) STORED", "ALTER TABLE {t} DROP v"),
        ("ALTER COLUMN TYPE", "ALTER TABLE {t} ALTER {c} TYPE {y} USING {c} || 'x'::{y}"),
        ("SET NOT NULL", "ALTER TABLE {t} ALTER {c} SET NOT NULL"),
        ("ADD CHECK", "ALTER TABLE {t} ADD CONSTRAINT lengths CHECK (length({c}) > 0) NOT VALID", "ALTER TABLE {t} VALIDATE CONSTRAINT lengths", "ALTER TABLE {t} DROP CONSTRAINT lengths"),
        ("ATTACH PARTITION", "CREATE TABLE p (LIKE {t}) PARTITION BY RANGE ({c})", "ALTER TABLE p ATTACH PARTITION {t} FOR VALUES FROM (MINVALUE) TO (MAXVALUE)", "ALTER TABLE p DETACH PARTITION {t}", "DROP TABLE p"),
        ("REFRESH", "CREATE MATERIALIZED VIEW m AS SELECT md5({c}) AS k, * FROM {t}", anew + " m", "CREATE UNIQUE INDEX ON m (k)", anew + " CONCURRENTLY m", "DROP MATERIALIZED VIEW m"),
        ("a block, rolled back", "BEGIN", "ALTER TABLE {t} ADD v float8 DEFAULT random()", "ROLLBACK"),
    )  # fmt: skip
    tables = (
        ("long rows", {"t": "long", "c": "d", "y": "bytea"}),
        ("many rows", {"t": "many", "c": "t", "y": "text"}),
    )
    return Group("rewritten", "512MB", fill, [
        Attack(f"{name}, {of}", reads(*(one.format(**words) for one in statements)))
        for of, words in tables for name, *statements in kinds
    ])  # fmt: skip
