"""Foreign keys under concurrency, in bulk, and where plans were made before there were any.

What a single session sees statement by statement is compared with PostgreSQL in tests/differential/scripts/constraints.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from sqllogictest.client import ServerError
from tests.support.fields import FieldsClient, connect
from tests.support.proofs import sampled
from tests.support.server import ServerProcess

RETRIED = ("40001", "40P01")
STRESS_S = 2.0


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run("CREATE SCHEMA fk; SET search_path = fk")
    yield made
    made.run("ROLLBACK; DROP SCHEMA fk CASCADE")
    made.close()


class Writer(threading.Thread):
    """Runs random transactions until told to stop; counts commits, keeps what should not have happened."""

    def __init__(self, port: int, seed: int, stop: threading.Event, action: str) -> None:
        super().__init__(daemon=True)
        self._client = connect(port)
        self._client.run("SET search_path = fk")
        self._random = random.Random(seed)
        self._stop_event = stop
        self._action = action
        self.commits = 0
        self.refused = 0
        self.unexpected: list[str] = []

    def run(self) -> None:
        while not self._stop_event.is_set():
            block = self._random.random() < 0.5
            statements = [self._statement() for _ in range(self._random.randint(1, 3) if block else 1)]
            try:
                if block:
                    self._client.run("BEGIN")
                for sql in statements:
                    self._client.run(sql)
                if block:
                    self._client.run("COMMIT")
                self.commits += 1
            except ServerError as error:
                self.refused += 1
                if error.sqlstate not in ("23503", "23505", *RETRIED):
                    self.unexpected.append(str(error))
                if block:
                    self._client.run("ROLLBACK")
        self._client.close()

    def _statement(self) -> str:
        key = self._random.randint(1, 6)
        row = self._random.randint(1, 40)
        choices = [
            f"INSERT INTO parent VALUES ({key}, 0) ON CONFLICT DO NOTHING",
            f"INSERT INTO child VALUES ({row}, {key}) ON CONFLICT DO NOTHING",
            f"UPDATE child SET parent = {key} WHERE id = {row}",
            f"DELETE FROM parent WHERE id = {key}",
            f"DELETE FROM child WHERE id = {row}",
            f"UPDATE parent SET n = n + 1 WHERE id = {key}",
        ]
        if self._action != "NO ACTION":
            choices.append(f"UPDATE parent SET id = {self._random.randint(1, 6)} WHERE id = {key}")
        return self._random.choice(choices)


@pytest.mark.parametrize(
    "index", sampled(2, ["", "CREATE INDEX ON child (parent)", "CREATE INDEX ON child (parent, id)"])
)
@pytest.mark.parametrize(
    "action", ["NO ACTION", "CASCADE", "SET NULL", "NO ACTION DEFERRABLE INITIALLY DEFERRED"]
)
def test_no_row_is_left_without_the_one_it_refers_to(
    client: FieldsClient, server: ServerProcess, action: str, index: str
) -> None:
    timing = action.removeprefix("NO ACTION") if action.startswith("NO ACTION ") else ""
    word = "NO ACTION" if timing else action
    client.run("CREATE TABLE parent (id int PRIMARY KEY, n int)")
    client.run(
        "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent "
        f"ON DELETE {word} ON UPDATE {word}{timing})"
    )
    if index:
        client.run(index)
    stop = threading.Event()
    writers = [Writer(server.port, seed, stop, action) for seed in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(STRESS_S / 2)
    client.run("CHECKPOINT")  # rows in parts from here on
    time.sleep(STRESS_S / 2)
    stop.set()
    for writer in writers:
        writer.join(60)
        assert not writer.is_alive()
        assert not writer.unexpected
    assert sum(w.commits for w in writers) > 20
    orphans = client.run(
        "SELECT * FROM child c WHERE parent IS NOT NULL "
        "AND NOT EXISTS (SELECT FROM parent p WHERE p.id = c.parent)"
    )
    assert orphans.rows == []


def copied(server: ServerProcess, data: bytes) -> str:
    """Load ``data`` into fk.child; returns the SQLSTATE, or the count of rows."""
    with psycopg.connect(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres") as loader:
        cursor = loader.cursor()
        try:
            with cursor.copy("COPY fk.child FROM STDIN") as copy:
                copy.write(data)
        except psycopg.errors.ForeignKeyViolation as error:
            return f"{error.sqlstate} {error.diag.constraint_name}"
        return str(cursor.rowcount)


def test_rows_that_copy_loads_are_checked(client: FieldsClient, server: ServerProcess) -> None:
    client.run("CREATE TABLE parent (id int PRIMARY KEY)")
    client.run("CREATE TABLE child (id int, parent int REFERENCES parent)")
    client.run("INSERT INTO parent SELECT generate_series(1, 100)")
    assert copied(server, b"1\t1\n2\t\\N\n") == "2"
    assert copied(server, b"3\t100\n4\t101\n") == "23503 child_parent_fkey"
    many = b"".join(b"%d\t%d\n" % (i, i % 100 + 1) for i in range(30_000))
    assert copied(server, many) == "30000"
    assert copied(server, many + b"0\t777\n") == "23503 child_parent_fkey"
    assert client.run("SELECT count(*), count(parent) FROM child").rows == [("30002", "30001")]


def test_a_bulk_load_is_checked_when_its_constraint_is(client: FieldsClient) -> None:
    client.run("CREATE TABLE parent (id int PRIMARY KEY)")
    client.run("INSERT INTO parent SELECT generate_series(1, 10)")
    client.run(
        "CREATE TABLE child (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, "
        "parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
    )
    client.run("BEGIN")
    client.run("INSERT INTO child SELECT g % 25000, g % 11 FROM generate_series(1, 25001) g")
    error = client.fails("COMMIT")
    assert error["sqlstate"] == "23503"
    client.run("BEGIN")
    client.run("INSERT INTO child SELECT g % 25000, 1 FROM generate_series(1, 25001) g")
    assert client.fails("COMMIT")["detail"] == "Key (id)=(1) already exists."
    client.run("BEGIN")
    client.run("INSERT INTO child SELECT g % 25000, g % 11 FROM generate_series(1, 25001) g")
    client.run("INSERT INTO parent VALUES (0)")
    client.run("DELETE FROM child WHERE id = 1")
    client.run("COMMIT")
    assert client.run("SELECT count(*) FROM child").rows == [("24999",)]


def test_large_cascades_work_by_sets(client: FieldsClient) -> None:
    client.run("CREATE TABLE parent (id int PRIMARY KEY)")
    client.run("CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE)")
    client.run("INSERT INTO parent SELECT generate_series(1, 3000)")
    client.run("INSERT INTO child SELECT g, g FROM generate_series(1, 3000) g")
    client.run("CHECKPOINT")
    started = time.monotonic()
    assert client.run("DELETE FROM parent WHERE id > 1000").tag == "DELETE 2000"
    # a scan of the referring table for each of the rows would take minutes
    assert time.monotonic() - started < 30
    assert client.run("SELECT count(*), max(id) FROM child").rows == [("1000", "1000")]


def test_plans_learn_of_foreign_keys_that_come_and_go(client: FieldsClient, server: ServerProcess) -> None:
    client.run("CREATE TABLE parent (id int PRIMARY KEY)")
    client.run("CREATE TABLE child (id int)")
    other = connect(server.port)
    other.run("SET search_path = fk")
    other.run("PREPARE drop_parent (int) AS DELETE FROM parent WHERE id = $1")
    other.run("PREPARE add_child (int) AS INSERT INTO child VALUES ($1)")
    client.run("INSERT INTO parent VALUES (1), (2), (3)")
    for key in (1, 2):
        other.run(f"EXECUTE drop_parent ({key})")
        other.run(f"EXECUTE add_child ({key})")
    assert client.fails("ALTER TABLE child ADD FOREIGN KEY (id) REFERENCES parent")["sqlstate"] == "23503"
    client.run("TRUNCATE child")
    client.run("ALTER TABLE child ADD FOREIGN KEY (id) REFERENCES parent")
    assert other.fails("EXECUTE add_child (1)")["sqlstate"] == "23503"
    other.run("EXECUTE add_child (3)")
    assert other.fails("EXECUTE drop_parent (3)")["sqlstate"] == "23503"
    client.run("ALTER TABLE child DROP CONSTRAINT child_id_fkey")
    other.run("EXECUTE drop_parent (3)")
    other.run("EXECUTE add_child (1)")
    other.close()


def test_a_failed_check_undoes_the_statement_and_nothing_else(client: FieldsClient) -> None:
    client.run("CREATE TABLE parent (id int PRIMARY KEY)")
    client.run("CREATE TABLE child (id int, parent int REFERENCES parent)")
    client.run("BEGIN")
    client.run("INSERT INTO parent VALUES (1), (2)")
    client.run("SAVEPOINT s")
    assert client.fails("INSERT INTO child VALUES (1, 1), (2, 3)")["sqlstate"] == "23503"
    client.run("ROLLBACK TO s")
    client.run("INSERT INTO child VALUES (1, 1)")
    client.run("SAVEPOINT s")
    assert client.fails("DELETE FROM parent")["sqlstate"] == "23503"
    client.run("ROLLBACK TO s")
    client.run("COMMIT")
    assert client.run("SELECT * FROM parent ORDER BY 1").rows == [("1",), ("2",)]
    assert client.run("SELECT * FROM child").rows == [("1", "1")]


def test_a_deferred_check_fails_the_sync_of_the_extended_protocol(client: FieldsClient) -> None:
    client.run("CREATE TABLE parent (id int PRIMARY KEY)")
    client.run("CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
    assert client.fails("INSERT INTO child VALUES (1)", "extended")["sqlstate"] == "23503"
    assert client.run("SELECT count(*) FROM child").rows == [("0",)]
    client.run("INSERT INTO parent VALUES (1)")
    client.run("INSERT INTO child VALUES (1)", "extended")
    assert client.run("SELECT count(*) FROM child").rows == [("1",)]


def test_foreign_keys_survive_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fk") / "data"
    first = ServerProcess(folder)
    client = connect(first.port)
    client.run("CREATE TABLE parent (id int PRIMARY KEY)")
    client.run(
        "CREATE TABLE child (id int REFERENCES parent ON DELETE SET NULL (id) DEFERRABLE INITIALLY DEFERRED)"
    )
    client.run("INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1)")
    client.close()
    assert first.stop() == 0
    second = ServerProcess(folder)
    client = connect(second.port)
    text = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'"
    assert client.run(text).rows == [
        ("FOREIGN KEY (id) REFERENCES parent(id) ON DELETE SET NULL (id) DEFERRABLE INITIALLY DEFERRED",)
    ]
    assert client.fails("INSERT INTO child VALUES (2)")["sqlstate"] == "23503"
    client.run("DELETE FROM parent")
    assert client.run("SELECT * FROM child").rows == [(None,)]
    client.close()
    assert second.stop() == 0


def test_who_refers_to_a_table_must_be_allowed_to(client: FieldsClient) -> None:
    client.run("CREATE ROLE fk_user")
    client.run("CREATE TABLE parent (id int PRIMARY KEY)")
    client.run("CREATE SCHEMA fk_own AUTHORIZATION fk_user")
    refer = "CREATE TABLE fk_own.child (id int REFERENCES fk.parent)"
    client.run("SET ROLE fk_user")
    error = client.fails(refer)
    assert (error["sqlstate"], error["message"]) == ("42501", "permission denied for schema fk")
    client.run("RESET ROLE; GRANT USAGE ON SCHEMA fk TO fk_user; SET ROLE fk_user")
    error = client.fails(refer)
    assert (error["sqlstate"], error["message"]) == ("42501", "permission denied for table parent")
    client.run("RESET ROLE; GRANT REFERENCES (id) ON parent TO fk_user; SET ROLE fk_user")
    client.run(refer)
    client.run("RESET ROLE")
    client.run("DROP SCHEMA fk_own CASCADE; REVOKE ALL ON SCHEMA fk FROM fk_user")
    client.run("REVOKE ALL ON parent FROM fk_user; DROP ROLE fk_user")


def test_a_deferred_key_is_checked_once_however_many_statements_wrote(client: FieldsClient) -> None:
    client.run("CREATE TABLE keyed (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    client.run("BEGIN")
    for key in range(2000):
        client.run(f"INSERT INTO keyed VALUES ({key})")
    started = time.monotonic()
    client.run("COMMIT")
    # 2000 checks of 2000 rows would take more than a minute
    assert time.monotonic() - started < 20
    client.run("BEGIN")
    client.run("INSERT INTO keyed VALUES (5)")
    client.run("SAVEPOINT s")
    client.run("SET CONSTRAINTS ALL DEFERRED")
    client.run("ROLLBACK TO s")
    client.run("INSERT INTO keyed VALUES (6)")
    assert client.fails("COMMIT")["sqlstate"] == "23505"
