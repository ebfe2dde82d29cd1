"""Functions whose bodies run as statements: serializable as all others, under their own rights and settings, cleanly undone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sqllogictest.client import ServerError
from tests.support.fields import connect, fields_of
from tests.support.server import ServerProcess


def _fails(server: ServerProcess, sql: str) -> ServerError:
    with pytest.raises(ServerError) as caught:
        server.sql(sql)
    return caught.value


def test_calls_on_several_connections_lose_nothing(server: ServerProcess) -> None:
    _move_on_several_connections(server)


def test_calls_that_have_lost_races_lose_nothing(tmp_path: Path) -> None:
    """What their functions read is watched until the commit, whose loss is a reason to run again like any other."""
    process = ServerProcess(tmp_path / "locks", odd={"HFTEST_LOCKS": "1"})
    try:
        _move_on_several_connections(process)
    finally:
        assert process.stop() == 0


def _move_on_several_connections(server: ServerProcess) -> None:
    server.sql("CREATE TABLE cf_acc (id int PRIMARY KEY, bal int)")
    server.sql("INSERT INTO cf_acc SELECT g, 100 FROM generate_series(1, 4) g")
    server.sql(
        "CREATE FUNCTION cf_move(a int, b int) RETURNS int LANGUAGE sql AS $$ "
        "UPDATE cf_acc SET bal = bal - 1 WHERE id = least(a, b); UPDATE cf_acc SET bal = bal + 1 WHERE id = greatest(a, b); "
        "SELECT count(*)::int FROM cf_acc $$"
    )
    done: list[int] = []
    ended: list[int] = []

    def work(seed: int) -> None:
        client = server.connect()
        for i in range(15):
            a, b = (seed + i) % 4 + 1, (seed + i * 3 + 1) % 4 + 1
            if a != b:
                client.run(f"SELECT cf_move({a}, {b})")
                done.append(1)
        ended.append(seed)
        client.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done
    assert sorted(ended) == [0, 1, 2, 3]
    assert server.sql("SELECT sum(bal) FROM cf_acc") == [("400",)]
    moved = server.sql("SELECT sum(abs(bal - 100)) > 0 FROM cf_acc")
    assert moved == [("t",)]


def test_a_caller_waits_for_the_rows_that_another_call_has_changed(server: ServerProcess) -> None:
    server.sql("CREATE TABLE cf_n (id int PRIMARY KEY, n int)")
    server.sql("INSERT INTO cf_n VALUES (1, 0)")
    server.sql(
        "CREATE FUNCTION cf_next() RETURNS int LANGUAGE sql AS 'UPDATE cf_n SET n = n + 1 WHERE id = 1 RETURNING n'"
    )
    first = server.connect()
    first.run("BEGIN")
    assert [tuple(r) for r in first.run("SELECT cf_next()").rows] == [("1",)]
    answers: list[object] = []
    second = server.connect()
    thread = threading.Thread(target=lambda: answers.append(second.run("SELECT cf_next()").rows))
    thread.start()
    first.run("COMMIT")
    thread.join()
    assert [list(map(tuple, rows)) for rows in answers] == [[("2",)]]  # type: ignore[call-overload]
    first.close()
    second.close()


def test_a_failing_call_undoes_the_statement_and_names_the_function(server: ServerProcess) -> None:
    server.sql("CREATE TABLE cf_u (a int UNIQUE)")
    server.sql(
        "CREATE FUNCTION cf_twice(x int) RETURNS void LANGUAGE sql AS $$ INSERT INTO cf_u VALUES (x); INSERT INTO cf_u VALUES (x) $$"
    )
    client = connect(server.port)
    client._bodies = []
    with pytest.raises(ServerError) as caught:
        client.run("SELECT cf_twice(1)")
    assert caught.value.sqlstate == "23505"
    assert fields_of(client._bodies[0])["where"] == 'SQL function "cf_twice" statement 2'
    client.close()
    assert server.sql("SELECT count(*) FROM cf_u") == [("0",)]


def test_definer_rights_and_settings_hold_for_the_body_only(server: ServerProcess) -> None:
    server.sql("CREATE ROLE cf_low LOGIN")
    server.sql("CREATE TABLE cf_secret (a int)")
    server.sql("INSERT INTO cf_secret VALUES (42)")
    server.sql("CREATE FUNCTION cf_mine() RETURNS int LANGUAGE sql AS 'SELECT a FROM cf_secret'")
    server.sql(
        "CREATE FUNCTION cf_theirs() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT a || current_user FROM cf_secret'"
    )
    server.sql(
        "CREATE FUNCTION cf_zone() RETURNS text LANGUAGE sql SET timezone = 'Asia/Tokyo' SET search_path = pg_catalog, public "
        "AS $$ SELECT current_setting('timezone') || ' ' || current_setting('search_path') $$"
    )
    client = server.connect()
    client.run("SET ROLE cf_low")
    with pytest.raises(ServerError) as caught:
        client.run("SELECT cf_mine()")
    assert caught.value.sqlstate == "42501"
    assert [tuple(r) for r in client.run("SELECT cf_theirs(), current_user").rows] == [
        ("42postgres", "cf_low")
    ]
    client.run("SET timezone = 'UTC'")
    rows = client.run("SELECT cf_zone(), current_setting('timezone')").rows
    assert [tuple(r) for r in rows] == [("Asia/Tokyo pg_catalog, public", "UTC")]
    with pytest.raises(ServerError):  # what the body failed under is not kept
        client.run("SELECT cf_zone() || (1 / 0)")
    assert [tuple(r) for r in client.run("SHOW timezone").rows] == [("UTC",)]
    client.close()
    assert server.sql("SELECT prosecdef, proconfig FROM pg_proc WHERE proname = 'cf_zone'") == [
        ("f", '{TimeZone=Asia/Tokyo,"search_path=pg_catalog, public"}')
    ]
    server.sql("DROP FUNCTION cf_theirs()")
    server.sql("DROP ROLE cf_low")


def test_calls_are_the_row_executors_and_others_refuse_them(server: ServerProcess) -> None:
    server.sql("CREATE TABLE cf_r (a int)")
    server.sql("INSERT INTO cf_r SELECT generate_series(1, 5)")
    server.sql(
        "CREATE FUNCTION cf_sum(n int) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT 1; SELECT sum(a) FROM cf_r WHERE a <= n $$"
    )
    client = server.connect()
    for executor in ("auto", "index"):
        client.run(f"SET executor = {executor}")
        rows = client.run("SELECT a, cf_sum(a) FROM cf_r WHERE cf_sum(a) > 3 ORDER BY a").rows
        assert [tuple(r) for r in rows] == [("3", "6"), ("4", "10"), ("5", "15")]
    client.run("SET executor = local")
    with pytest.raises(ServerError) as caught:
        client.run("SELECT cf_sum(a) FROM cf_r")
    assert caught.value.sqlstate == "0A000"
    client.close()


def test_calls_that_go_too_deep_end(server: ServerProcess) -> None:
    server.sql("CREATE FUNCTION cf_deep(n int) RETURNS int LANGUAGE sql AS 'SELECT cf_deep(n + 1)'")
    assert _fails(server, "SELECT cf_deep(1)").sqlstate == "54001"
    server.sql(
        "CREATE FUNCTION cf_to(n int) RETURNS int LANGUAGE sql AS 'SELECT CASE WHEN n = 0 THEN 0 ELSE 1 + cf_to(n - 1) END'"
    )
    assert server.sql("SELECT cf_to(60)") == [("60",)]


def test_a_plan_that_calls_outlasts_changes_of_what_it_calls(server: ServerProcess) -> None:
    server.sql("CREATE TABLE cf_p (a int)")
    server.sql(
        "CREATE FUNCTION cf_put(x int) RETURNS bigint LANGUAGE sql AS $$ INSERT INTO cf_p VALUES (x); SELECT count(*) FROM cf_p $$"
    )
    client = server.connect()
    client.run("PREPARE put(int) AS SELECT cf_put($1)")
    assert [tuple(r) for r in client.run("EXECUTE put(1)").rows] == [("1",)]
    server.sql("ALTER TABLE cf_p ADD COLUMN b int DEFAULT 5")
    assert [tuple(r) for r in client.run("EXECUTE put(2)").rows] == [("2",)]
    server.sql(
        "CREATE OR REPLACE FUNCTION cf_put(x int) RETURNS bigint LANGUAGE sql AS $$ INSERT INTO cf_p VALUES (x, x); SELECT sum(b) FROM cf_p $$"
    )
    assert [tuple(r) for r in client.run("EXECUTE put(3)").rows] == [("13",)]
    client.close()
