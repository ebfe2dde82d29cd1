"""Exclusion constraints hold for transactions side by side, for every way that rows come, and after a crash."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from sqllogictest.client import ServerError
from tests.support.server import ServerProcess

OVERLAPS = "SELECT count(*) FROM {0} a JOIN {0} b ON a.id < b.id AND a.room = b.room AND a.during && b.during"


def test_transactions_side_by_side_add_no_rows_that_conflict(server: ServerProcess) -> None:
    server.sql(
        "CREATE TABLE xc (id serial PRIMARY KEY, room int, during int4range, EXCLUDE USING gist (room WITH =, during WITH &&))"
    )
    taken: list[str] = []

    def work(seed: int) -> None:
        chosen = random.Random(seed)
        client = server.connect()
        for _ in range(12):
            start = chosen.randrange(12)
            try:
                client.run("BEGIN")
                for _ in range(2):
                    room = chosen.randrange(2)
                    client.run(f"INSERT INTO xc(room, during) VALUES ({room}, '[{start},{start + 3})')")
                    start += 4
                client.run("COMMIT")
                taken.append("done")
            except ServerError as error:
                taken.append(error.sqlstate)
                client.run("ROLLBACK")
        client.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "done" in taken
    assert "23P01" in taken
    assert set(taken) <= {"done", "23P01", "40001", "40P01"}
    assert server.sql(OVERLAPS.format("xc")) == [("0",)]
    assert server.sql("SELECT count(*) FROM xc") == [(str(2 * taken.count("done")),)]


def test_an_insert_waits_for_the_transaction_it_may_conflict_with(server: ServerProcess) -> None:
    server.sql("CREATE TABLE xw (id int PRIMARY KEY, during int4range, EXCLUDE USING gist (during WITH &&))")
    first, second = server.connect(), server.connect()
    first.run("BEGIN")
    first.run("INSERT INTO xw VALUES (1, '[1,5)')")
    states: list[str] = []

    def insert() -> None:
        try:
            second.run("INSERT INTO xw VALUES (2, '[4,9)')")
            states.append("done")
        except ServerError as error:
            states.append(error.sqlstate)

    thread = threading.Thread(target=insert)
    thread.start()
    first.run("COMMIT")
    thread.join()
    assert states == ["23P01"]
    for sql in (
        "ALTER TABLE xw ALTER COLUMN during TYPE text",
        "ALTER TABLE xw ADD EXCLUDE (id int4_ops DESC WITH =)",
    ):
        with pytest.raises(ServerError) as caught:
            first.run(sql)
        assert caught.value.sqlstate == "0A000", sql
    assert first.run("INSERT INTO xw VALUES (2, '[4,9)') ON CONFLICT DO NOTHING").tag == "INSERT 0 0"
    first.close()
    second.close()


@pytest.mark.parametrize("executor", ["auto", "local"])
def test_many_rows_at_once_are_checked(server: ServerProcess, executor: str) -> None:
    table = f"xm_{executor}"
    server.sql(
        f"CREATE TABLE {table} (id int PRIMARY KEY, room int, during int4range, EXCLUDE USING gist (room WITH =, during WITH &&))"
    )
    client = server.connect()
    client.run(f"SET executor = {executor}")
    rows = "SELECT g, g % 500, int4range(g, g + {0}) FROM generate_series(1, 3000) g"
    with pytest.raises(ServerError) as caught:
        client.run(f"INSERT INTO {table} {rows.format(501)}")
    assert caught.value.sqlstate == "23P01"
    assert client.run(f"INSERT INTO {table} {rows.format(500)}").tag == "INSERT 0 3000"
    with pytest.raises(ServerError) as caught:
        client.run(f"UPDATE {table} SET room = 7")
    assert caught.value.sqlstate == "23P01"
    client.close()


def test_copy_is_checked(server: ServerProcess, tmp_path: Path) -> None:
    server.sql("CREATE TABLE xp (id int, during int4range, EXCLUDE USING gist (during WITH &&))")
    file = tmp_path / "rows.csv"
    file.write_text("".join(f'{i},"[{i},{i + 2})"\n' for i in range(0, 2000, 1)))
    with pytest.raises(ServerError) as caught:
        server.sql(f"COPY xp FROM '{file}' CSV")
    assert caught.value.sqlstate == "23P01"
    file.write_text("".join(f'{i},"[{i},{i + 2})"\n' for i in range(0, 2000, 2)))
    server.sql(f"COPY xp FROM '{file}' CSV")
    assert server.sql("SELECT count(*) FROM xp") == [("1000",)]


@pytest.mark.long
def test_they_outlast_kill_9(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql(
            "CREATE TABLE t (a int, b int4range, CONSTRAINT x EXCLUDE USING gist (a WITH =, b WITH &&) WHERE (a > 0) DEFERRABLE)"
        )
        server.sql("INSERT INTO t VALUES (1, '[1,5)'), (0, '[1,5)'), (0, '[1,5)')")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        assert server.sql("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'x'") == [
            ("EXCLUDE USING gist (a WITH =, b WITH &&) WHERE ((a > 0)) DEFERRABLE",)
        ]
        with pytest.raises(ServerError) as caught:
            server.sql("INSERT INTO t VALUES (1, '[4,9)')")
        assert caught.value.sqlstate == "23P01"
    finally:
        server.stop()
