"""Domains: what they demand holds on every way that values are stored, outlasts kill -9, and executors answer alike."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from sqllogictest.client import ServerError
from tests.support.server import ServerProcess


def _fails(server: ServerProcess, sql: str, sqlstate: str) -> None:
    with pytest.raises(ServerError) as error:
        server.sql(sql)
    assert error.value.sqlstate == sqlstate, sql


def test_domains_outlast_kill_9(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        server.sql("CREATE DOMAIN good AS mood CHECK (VALUE <> 'sad')")
        server.sql("CREATE DOMAIN score AS numeric(6,2) DEFAULT 1.5 CHECK (VALUE >= 0)")
        server.sql("CREATE DOMAIN high AS score CHECK (VALUE > 10)")
        server.sql("CREATE TABLE r (id int PRIMARY KEY, s score, h high, g good, a score[])")
        server.sql("INSERT INTO r VALUES (1, 2.345, 200, 'ok', '{3,4}')")
        server.sql("CHECKPOINT")
        server.sql("ALTER DOMAIN high ADD CONSTRAINT low CHECK (VALUE < 100) NOT VALID")
        server.sql("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'")
        server.sql("ALTER TABLE r ADD COLUMN late score")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        _fails(server, "INSERT INTO r (id, h) VALUES (2, 100)", "23514")
        _fails(server, "INSERT INTO r (id, g) VALUES (2, 'sad')", "23514")
        _fails(server, "INSERT INTO r (id, a) VALUES (2, '{1,-1}')", "23514")
        server.sql("INSERT INTO r (id, h, g) VALUES (2, 12, 'fine')")
        expected = [
            ("1", "2.35", "200.00", "fine", "{3.00,4.00}", "1.50"),
            ("2", "1.50", "12.00", "fine", None, "1.50"),
        ]
        for executor in ("index", "local"):
            client = server.connect()
            client.run(f"SET executor = {executor}")
            assert list(map(tuple, client.run("SELECT * FROM r ORDER BY s DESC, id").rows)) == expected
            client.close()
        _fails(server, "ALTER DOMAIN high VALIDATE CONSTRAINT low", "23514")
    finally:
        server.stop()


@pytest.fixture(scope="module")
def measured(server: ServerProcess) -> ServerProcess:
    server.sql("CREATE DOMAIN plus AS int CHECK (VALUE > 0)")
    server.sql("CREATE DOMAIN word AS text NOT NULL CHECK (VALUE ~ '^[a-z]+$')")
    server.sql("CREATE TABLE measured (id int PRIMARY KEY, p plus, w word, l plus[])")
    server.sql("INSERT INTO measured SELECT g, g, 'w', ARRAY[g, g + 1] FROM generate_series(1, 21000) g")
    return server


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("INSERT INTO measured SELECT g, g - 51999, 'w', NULL FROM generate_series(30000, 52000) g", "23514"),
        ("INSERT INTO measured SELECT g, g, 'w', ARRAY[g, 0] FROM generate_series(30000, 52000) g", "23514"),
        ("UPDATE measured SET p = p - 20000", "23514"),
        ("UPDATE measured SET l[2] = -1 WHERE id = 5", "23514"),
        ("INSERT INTO measured (id, p) VALUES (0, 1)", "23502"),
        ("INSERT INTO measured VALUES (5, 1, 'w') ON CONFLICT (id) DO UPDATE SET p = -1", "23514"),
        ("ALTER TABLE measured ADD COLUMN other word", "23502"),
        ("ALTER TABLE measured ALTER COLUMN id TYPE plus USING id - 10", "23514"),
        ("ALTER DOMAIN word ADD CHECK (VALUE <> 'w')", "23514"),
    ],
)
def test_large_and_small_changes_are_checked(measured: ServerProcess, sql: str, sqlstate: str) -> None:
    _fails(measured, sql, sqlstate)
    assert measured.sql("SELECT count(*), sum(p), max(w), sum(l[2]) FROM measured") == [
        ("21000", "220510500", "w", "220531500")
    ]


def test_executors_see_what_is_under_a_domain(measured: ServerProcess) -> None:
    queries = (
        "SELECT p, w, l FROM measured WHERE p BETWEEN 10 AND 12 ORDER BY p DESC",
        "SELECT w, sum(p), count(DISTINCT p % 7) FROM measured GROUP BY w",
        "SELECT a.id FROM measured a JOIN measured b ON a.p = b.id AND b.p < 4 ORDER BY a.p",
        "SELECT id::plus, (p * 2)::plus::text FROM measured WHERE id < 3",
        "SELECT pg_typeof(p), pg_typeof(l), pg_typeof(p + 1) FROM measured WHERE id = 3",
    )
    answers = []
    for executor in ("index", "local"):
        client = measured.connect()
        client.run(f"SET executor = {executor}")
        answers.append([sorted(map(tuple, client.run(sql).rows)) for sql in queries])
        client.close()
    assert answers[0] == answers[1]
    assert answers[0][4] == [("plus", "plus[]", "integer")]
    client = measured.connect()
    sql = "SELECT count(*) FROM measured WHERE (id - 10)::plus > 0"
    for executor in ("local", "auto"):
        client.run(f"SET executor = {executor}")
        with pytest.raises(ServerError, match="domain plus") as error:
            client.run(sql)
        assert error.value.sqlstate == "23514", executor
    client.close()


def test_a_waiting_insert_meets_the_constraint_that_is_added_meanwhile(server: ServerProcess) -> None:
    server.sql("CREATE DOMAIN narrow AS int")
    server.sql("CREATE TABLE narrow_t (id int PRIMARY KEY, v narrow)")
    changer, writer = server.connect(), server.connect()
    changer.run("BEGIN")
    changer.run("ALTER DOMAIN narrow ADD CHECK (VALUE < 5)")
    writer.run("PREPARE add AS INSERT INTO narrow_t VALUES ($1, $2)")

    async def both() -> str:
        waiting = asyncio.to_thread(_state_of, writer, "EXECUTE add (1, 7)")
        task = asyncio.create_task(waiting)
        while not server.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(changer.run, "COMMIT")
        return await task

    assert asyncio.run(asyncio.wait_for(both(), 60)) == "23514"
    changer.close()
    writer.close()


def _state_of(client: object, sql: str) -> str:
    try:
        client.run(sql)  # type: ignore[attr-defined]
    except ServerError as error:
        return error.sqlstate
    return ""


COPIES = (
    ("FORMAT text", '1\t(1,x)\t{"(2,y)"}\n', None),
    ("FORMAT text", "1\t(1,x)\t\\N\n2\t(0,x)\t\\N\n", 'COPY copied, line 2, column c: "(0,x)"'),
    ("FORMAT csv", '1,"(1,x)","{""(-2,y)""}"\n', 'COPY copied, line 1, column l: "{"(-2,y)"}"'),
)


@pytest.mark.parametrize(("how", "data", "where"), COPIES)
def test_copy_checks_attributes_of_domains(
    server: ServerProcess, how: str, data: str, where: str | None
) -> None:
    with psycopg.connect(server.url, autocommit=True) as client:
        client.execute(
            "DROP TABLE IF EXISTS copied; DROP TYPE IF EXISTS copied_t; DROP DOMAIN IF EXISTS above"
        )
        client.execute(
            "CREATE DOMAIN above AS int CHECK (VALUE > 0); CREATE TYPE copied_t AS (a above, b text)"
        )
        client.execute("CREATE TABLE copied (id int, c copied_t, l copied_t[])")

        def load(text: str) -> None:
            with client.cursor().copy(f"COPY copied FROM STDIN ({how})") as sink:
                sink.write(text)

        if where is None:
            load(data)
            assert client.execute("SELECT c::text, l::text FROM copied").fetchall() == [
                ("(1,x)", '{"(2,y)"}')
            ]
            return
        with pytest.raises(psycopg.errors.CheckViolation) as error:
            load(data)
        assert error.value.diag.context == where
        # many rows, which a process beside the server reads where it can
        many = "".join(f"{i}\t(5,x)\t\\N\n" for i in range(1, 30000))
        if how == "FORMAT text":
            with pytest.raises(psycopg.errors.CheckViolation):
                load(many + "30000\t(-5,x)\t\\N\n")
            load(many)
        assert client.execute("SELECT count(*) FROM copied").fetchone() == (
            29999 if how == "FORMAT text" else 0,
        )


def test_binary_input_checks_attributes_of_domains(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as client:
        client.execute(
            "CREATE DOMAIN uneven AS int CHECK (VALUE % 2 = 1); CREATE DOMAIN brief AS varchar(3) NOT NULL"
        )
        client.execute(
            "CREATE TYPE wired AS (a uneven, b brief, c varchar(2)); CREATE TYPE wired_too AS (w wired, l uneven[])"
        )

        def oid(name: str) -> int:
            (found,) = client.execute("SELECT %s::regtype::oid::int8", (name,)).fetchone() or (0,)
            return int(found)

        def sent(name: str, binary: bytes) -> str | None:
            done = client.pgconn.exec_params(
                b"SELECT $1::text", [binary], param_types=[oid(name)], param_formats=[1]
            )
            if done.status == psycopg.pq.ExecStatus.FATAL_ERROR:
                return (done.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
            return (done.get_value(0, 0) or b"").decode()

        def made(sql: str) -> bytes:
            return (
                client.pgconn.exec_params(b"SELECT " + sql.encode(), [], result_format=1).get_value(0, 0)
                or b""
            )

        one = made("'(1,abc,zz)'::wired")
        assert sent("wired", one) == "(1,abc,zz)"
        assert sent("wired", one.replace(b"\0\0\0\1", b"\0\0\0\2")) == "23514"
        assert sent("wired", one.replace(b"\0\0\0\3abc", b"\0\0\0\4abcd")) == "22001"
        assert sent("wired", one.replace(b"\0\0\0\3abc", b"\xff\xff\xff\xff")) == "23502"
        assert sent("wired", one.replace(b"\0\0\0\2zz", b"\0\0\0\3zzz")) == "22001"
        nested = made("""'("(1,abc,zz)","{3,7}")'::wired_too""")
        assert sent("wired_too", nested) == '("(1,abc,zz)","{3,7}")'
        assert sent("wired_too", nested.replace(b"\0\0\0\7", b"\0\0\0\x08")) == "23514"
        assert sent("wired_too", nested.replace(b"\0\0\0\3abc", b"\xff\xff\xff\xff")) == "23502"
        several = made("ARRAY['(1,abc,zz)', '(3,d,)']::wired[]")
        assert sent("wired[]", several) == '{"(1,abc,zz)","(3,d,)"}'
        assert sent("wired[]", several.replace(b"\0\0\0\3abc", b"\xff\xff\xff\xff")) == "23502"
