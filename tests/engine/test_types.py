"""Users' types: stored values outlast renames, kill -9 and merges into parts; all executors order them alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqllogictest.client import ServerError
from tests.support.server import ServerProcess


def test_values_of_an_enum_outlast_renames_and_kill_9(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql("CREATE TYPE mood AS ENUM ('sad', 'happy')")
        server.sql(
            "CREATE TABLE p (id int PRIMARY KEY, m mood, a mood[] DEFAULT '{happy}' CHECK (a <> '{sad}'))"
        )
        server.sql("INSERT INTO p VALUES (1, 'happy'), (2, 'sad')")
        server.sql("CHECKPOINT")
        server.sql("ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy'")
        server.sql("INSERT INTO p VALUES (3, 'ok')")
        server.sql("ALTER TYPE mood RENAME VALUE 'happy' TO 'glad'")
        server.sql("ALTER TYPE mood RENAME TO humour")
        server.sql("ALTER TABLE p ADD COLUMN late humour DEFAULT 'ok'")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        server.sql("INSERT INTO p (id, m) VALUES (4, 'glad')")
        expected = [("2", "sad", "{glad}", "ok"), ("3", "ok", "{glad}", "ok"), ("1", "glad", "{glad}", "ok")]
        expected.append(("4", "glad", "{glad}", "ok"))
        for executor in ("index", "local"):
            client = server.connect()
            client.run(f"SET executor = {executor}")
            assert list(map(tuple, client.run("SELECT * FROM p ORDER BY m, id").rows)) == expected
            count = client.run("SELECT count(*) FROM p WHERE m::text <> 'ok' AND m > 'sad'").rows
            assert list(map(tuple, count)) == [("2",)]
            client.close()
    finally:
        server.stop()


def test_a_past_read_shows_the_labels_of_then(server: ServerProcess) -> None:
    server.sql("CREATE TYPE earlier AS ENUM ('old')")
    server.sql("CREATE TABLE earlier_t AS SELECT 'old'::earlier AS v")
    [(before,)] = server.sql("SELECT clock_timestamp()")
    server.sql("ALTER TYPE earlier RENAME VALUE 'old' TO 'new'")
    assert server.sql("SELECT v FROM earlier_t") == [("new",)]
    assert server.sql(f"SELECT v FROM earlier_t AS OF SYSTEM TIME '{before}'") == [("old",)]


def test_an_enum_takes_many_labels_at_one_place(server: ServerProcess) -> None:
    server.sql("CREATE TYPE many_labels AS ENUM ('first', 'last')")
    for number in range(40):
        server.sql(f"ALTER TYPE many_labels ADD VALUE 'n{number}' AFTER 'first'")
    [(shown,)] = server.sql("SELECT enum_range(NULL::many_labels)")
    assert shown == "{first," + ",".join(f"n{n}" for n in reversed(range(40))) + ",last}"
    for number in range(40, 60):
        server.sql(f"ALTER TYPE many_labels ADD VALUE 'n{number}'")
    [(shown,)] = server.sql("SELECT enum_last(NULL::many_labels)")
    assert shown == "n59"


def test_addresses_and_amounts_order_alike_on_every_executor(server: ServerProcess) -> None:
    server.sql("CREATE TABLE net (i inet, c cidr, m macaddr, v money, l pg_lsn)")
    server.sql(
        "INSERT INTO net SELECT ('10.' || g % 7 || '.0.0/' || 8 + g % 9)::inet, ('10.' || g % 5 || '.0.0/16')::cidr,"
        " ('08:00:2b:00:00:' || lpad((g * 37 % 97)::text, 2, '0'))::macaddr, (g * 13 % 101)::money, ('0/' || g)::pg_lsn"
        " FROM generate_series(1, 90) g"
    )
    server.sql("CHECKPOINT")
    answers = []
    for executor in ("index", "local"):
        client = server.connect()
        client.run(f"SET executor = {executor}")
        answers.append(
            [
                list(map(tuple, client.run(sql).rows))
                for sql in (
                    "SELECT i, c, m, v, l FROM net ORDER BY i, m, v, l",
                    "SELECT c, count(*), min(i), max(c), max(v), min(l) FROM net GROUP BY c ORDER BY c DESC",
                    "SELECT l FROM net WHERE i > '10.3.0.0/12' AND v < '$50' AND m <> '08:00:2b:00:00:37' ORDER BY l",
                )
            ]
        )
        client.close()
    assert answers[0] == answers[1]
    assert [len(answer) for answer in answers[0]] == [90, 5, len(answers[0][2])]
    assert answers[0][2]


def test_ranges_order_and_group_alike_on_every_executor_and_outlast_kill_9(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql(
            "CREATE TABLE spans (id int PRIMARY KEY, r int4range, d daterange, m int8multirange, n numrange UNIQUE, a tsrange[])"
        )
        server.sql(
            "INSERT INTO spans SELECT g, int4range(g % 7, g % 7 + g % 4, '[]'), daterange(NULL, '2020-01-01'::date + g % 5),"
            " int8multirange(int8range(g % 3, g % 3 + 2), int8range(9, 9 + g % 2)), numrange(g, g + 1.50),"
            " ARRAY[tsrange('2020-01-01', NULL), NULL] FROM generate_series(1, 90) g"
        )
        server.sql("CHECKPOINT")
        server.sql("INSERT INTO spans VALUES (91, 'empty', '(,)', '{}', '[200.0,201.50)', '{empty}')")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        answers = []
        for executor in ("index", "local"):
            client = server.connect()
            client.run(f"SET executor = {executor}")
            answers.append(
                [
                    list(map(tuple, client.run(sql).rows))
                    for sql in (
                        "SELECT r, d, m, a FROM spans ORDER BY r, d DESC, m, id",
                        "SELECT r, count(*), count(DISTINCT m) FROM spans GROUP BY r ORDER BY r DESC",
                        "SELECT id FROM spans WHERE m > '{[1,2)}' AND r <> '[3,4)' AND d <= '(,2020-01-03)' ORDER BY id",
                        "SELECT x.id, y.id FROM spans x JOIN spans y ON x.r = y.r AND x.m = y.m ORDER BY 1, 2 LIMIT 200",
                    )
                ]
            )
            client.close()
        assert answers[0] == answers[1]
        assert answers[0][0][0] == ("empty", "(,)", "{}", "{empty}")
        assert all(answers[0])
        # by the key, of parts and of rows in memory; the display scale of elements is no part of it
        for key, shown in (("[5.00,6.5)", "[5,6.50)"), ("[200,201.5)", "[200.0,201.50)")):
            assert server.sql(f"SELECT n FROM spans WHERE n = '{key}'") == [(shown,)]
            with pytest.raises(ServerError, match="duplicate key"):
                server.sql(f"INSERT INTO spans (id, n) VALUES (100, '{key}')")
    finally:
        server.stop()
