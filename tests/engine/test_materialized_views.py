"""Materialized views: what no transcript shows: many rows, restarts, races, subscriptions, timelines, plans kept."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.support.fields import connect
from tests.support.server import ServerProcess

MANY = 50_000  # more than are staged row by row


def test_many_rows_are_refreshed_as_parts_and_found_by_index(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run("CREATE TABLE many_refreshed AS SELECT i AS id, i % 7 AS k FROM generate_series(1, 50000) i")
    assert (
        client.run("CREATE MATERIALIZED VIEW all_of AS SELECT id, k FROM many_refreshed").tag
        == f"SELECT {MANY}"
    )
    client.run("CREATE UNIQUE INDEX ON all_of (id)")
    client.run("INSERT INTO many_refreshed VALUES (50001, 1)")
    client.run("DELETE FROM many_refreshed WHERE id = 3")
    client.run("REFRESH MATERIALIZED VIEW all_of")
    assert client.run("SELECT count(*), max(id) FROM all_of").rows == [(str(MANY), "50001")]
    assert client.run("SELECT k FROM all_of WHERE id IN (3, 50001)").rows == [("1",)]
    client.run("DELETE FROM many_refreshed WHERE id <= 10")
    client.run("UPDATE many_refreshed SET k = 100 WHERE id = 11")
    client.run("REFRESH MATERIALIZED VIEW CONCURRENTLY all_of")
    assert client.run("SELECT count(*), min(id), max(k) FROM all_of").rows == [("49991", "11", "100")]
    client.run("INSERT INTO many_refreshed VALUES (50001, 2)")
    error = client.fails("REFRESH MATERIALIZED VIEW all_of")
    assert (error["sqlstate"], error["constraint"]) == ("23505", "all_of_id_idx")
    assert client.run("SELECT count(*) FROM all_of").rows == [("49991",)]
    client.run("DROP TABLE many_refreshed CASCADE")
    client.close()


def test_concurrently_leaves_rows_alone_that_are_as_they_should_be(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run("CREATE TABLE base (id int, v numeric)")
    client.run("INSERT INTO base VALUES (1, 1.0), (2, 2.0), (3, NULL)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT * FROM base")
    client.run("CREATE UNIQUE INDEX ON m (id)")
    before = dict(client.run("SELECT id, ctid FROM m").rows)
    client.run("UPDATE base SET v = 1.00 WHERE id = 1")  # equal, but it prints otherwise
    client.run("REFRESH MATERIALIZED VIEW CONCURRENTLY m")
    after = dict(client.run("SELECT id, ctid FROM m").rows)
    assert before["1"] != after["1"]
    assert [before[i] for i in ("2", "3")] == [after[i] for i in ("2", "3")]
    assert client.run("SELECT v FROM m WHERE id = 1").rows == [("1.00",)]
    client.run("DROP TABLE base CASCADE")
    client.close()


def test_a_restart_keeps_rows_and_whether_there_are_any(tmp_path: Path) -> None:
    first = ServerProcess(tmp_path)
    client = connect(first.port)
    client.run("CREATE TABLE base AS SELECT i FROM generate_series(1, 10) i")
    client.run("CREATE MATERIALIZED VIEW full_one AS SELECT i FROM base")
    client.run("CREATE MATERIALIZED VIEW empty_one AS SELECT i FROM base WITH NO DATA")
    client.run("DELETE FROM base")
    client.close()
    first.kill()
    second = ServerProcess(tmp_path)
    client = connect(second.port)
    assert client.run("SELECT count(*) FROM full_one").rows == [("10",)]
    assert client.fails("SELECT * FROM empty_one")["sqlstate"] == "55000"
    client.run("REFRESH MATERIALIZED VIEW empty_one")
    client.run("REFRESH MATERIALIZED VIEW full_one")
    assert client.run("SELECT count(*) FROM empty_one").rows == [("0",)]
    assert client.run("SELECT count(*) FROM full_one").rows == [("0",)]
    client.close()
    assert second.stop() == 0


def test_refreshes_beside_writers_show_every_account_of_one_moment(server: ServerProcess) -> None:
    """Money moves between accounts all the while; every refresh, and every read of one, finds the same total."""
    client = connect(server.port)
    client.run("CREATE TABLE account (id int PRIMARY KEY, amount int)")
    client.run("INSERT INTO account SELECT i, 100 FROM generate_series(1, 50) i")
    client.run("CREATE MATERIALIZED VIEW sheet AS SELECT id, amount FROM account")
    failed: list[BaseException] = []
    over = threading.Event()

    def move() -> None:
        mine = connect(server.port)
        try:
            turn = 0
            while not over.is_set():
                turn += 1
                mine.run("BEGIN")
                mine.run(f"UPDATE account SET amount = amount - 1 WHERE id = {turn % 50 + 1}")
                mine.run(f"UPDATE account SET amount = amount + 1 WHERE id = {(turn * 7) % 50 + 1}")
                mine.run("COMMIT")
        except BaseException as error:
            failed.append(error)
        finally:
            mine.close()

    writer = threading.Thread(target=move)
    writer.start()
    try:
        for _ in range(20):
            client.run("REFRESH MATERIALIZED VIEW sheet")
            assert client.run("SELECT sum(amount), count(*) FROM sheet").rows == [("5000", "50")]
    finally:
        over.set()
        writer.join()
    assert not failed
    client.run("DROP TABLE account CASCADE")
    client.close()


def test_prepared_statements_meet_each_refresh(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run("CREATE TABLE base (id int PRIMARY KEY)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT id FROM base WITH NO DATA")
    client.run("CREATE UNIQUE INDEX ON m (id)")
    client.run("PREPARE one AS SELECT id FROM m WHERE id = 1")
    assert client.fails("EXECUTE one")["sqlstate"] == "55000"
    client.run("INSERT INTO base VALUES (1)")
    client.run("REFRESH MATERIALIZED VIEW m")
    for _ in range(4):  # until the short way for point reads serves it
        assert client.run("SELECT id FROM m WHERE id = 1").rows == [("1",)]
        assert client.run("EXECUTE one").rows == [("1",)]
    client.run("REFRESH MATERIALIZED VIEW m WITH NO DATA")
    assert client.fails("EXECUTE one")["sqlstate"] == "55000"
    assert client.fails("SELECT id FROM m WHERE id = 1")["sqlstate"] == "55000"
    assert client.fails("SUBSCRIBE (SELECT id FROM m)")["sqlstate"] == "55000"
    client.run("EXPLAIN SELECT id FROM m")
    client.run("DROP TABLE base CASCADE")
    client.close()


def test_what_it_shows_of_the_user_is_its_definition_s(server: ServerProcess) -> None:
    """Values that are fixed for a statement are those of the refresh."""
    client = connect(server.port)
    client.run("CREATE MATERIALIZED VIEW made AS SELECT now() AS at, current_setting('timezone') AS zone")
    first = client.run("SELECT at FROM made").rows
    assert client.run("SELECT at FROM made").rows == first
    client.run("REFRESH MATERIALIZED VIEW made")
    assert client.run("SELECT at FROM made").rows != first
    client.run("DROP MATERIALIZED VIEW made")
    client.close()


def test_it_is_in_the_timeline_of_what_it_reads(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run("CREATE TIMELINE other")
    client.run("CREATE TABLE there (a int) WITH (timeline = other)")
    client.run("INSERT INTO there VALUES (1)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT a FROM there")
    client.run("INSERT INTO there VALUES (2)")
    client.run("REFRESH MATERIALIZED VIEW m")
    assert client.run("SELECT count(*) FROM m JOIN there USING (a)").rows == [("2",)]
    error = client.fails("DROP TIMELINE other")
    assert "materialized view public.m is in timeline other" in error["detail"]
    away = "CREATE MATERIALIZED VIEW n WITH (timeline = epoch_ms) AS SELECT a FROM there"
    assert client.fails(away)["sqlstate"] == "0A000"
    past = "CREATE MATERIALIZED VIEW n AS SELECT a FROM there AS OF SYSTEM TIME '-1s'"
    assert client.fails(past)["sqlstate"] == "0A000"
    client.run("DROP TABLE there CASCADE")
    client.run("DROP TIMELINE other")
    client.close()
