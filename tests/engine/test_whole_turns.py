"""Turns that have to be whole fail, in debug mode, on what would break them (docs/internals/invariants.md)."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from engine.base.loop.turns import TURNS, check_turns
from engine.executors import watched
from pgwire.give_way import TurnBroken, bounded, give_way
from sqllogictest.client import ServerError
from tests.support.fields import connect
from tests.support.server import ServerProcess
from txn.transaction.transaction import StoreTransaction


def test_the_list_is_the_documents() -> None:
    text = Path("docs/internals/invariants.md").read_text()
    for owner, name in TURNS:
        assert f"`{owner.__name__}.{name}`" in text
    assert text.count("| `StoreTransaction.") + text.count("| `Committer.") == len(TURNS)


def test_each_step_of_an_operation_is_a_turn() -> None:
    check_turns()
    check_turns()  # idempotent

    def steps() -> Generator[Any, Any, None]:
        with bounded(10):
            give_way()  # what has a budget may run
        give_way()
        yield None

    class Life:
        busy = 0

    self: Any = type("Txn", (), {"life": Life, "scans": None})()
    from txn.transaction.lifetime import ACTIVE

    Life.state = ACTIVE  # type: ignore[attr-defined]
    with pytest.raises(TurnBroken):
        StoreTransaction.run(self, steps())


def test_statements_with_slow_expressions_everywhere_break_none(server: ServerProcess) -> None:
    """Functions of users in CHECKs, defaults, generated columns, indexes, policies, triggers, conditions that scans are watched by."""
    client = connect(server.port)
    for text in (
        "CREATE FUNCTION turn_f(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN n % 7; END'",
        "CREATE FUNCTION turn_t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM turn_f(NEW.a); RETURN NEW; END'",
        "CREATE TABLE turn_x (id int PRIMARY KEY DEFAULT turn_f(3), a int CHECK (turn_f(a) >= 0), b text DEFAULT upper('x'),"
        " g text GENERATED ALWAYS AS (lower(b)) STORED, r int4range, EXCLUDE USING gist (r WITH &&))",
        "CREATE INDEX ON turn_x ((upper(b)))",
        "CREATE INDEX ON turn_x ((turn_f(a) + id)) WHERE turn_f(a) > 0",
        "CREATE TRIGGER t BEFORE INSERT OR UPDATE ON turn_x FOR EACH ROW WHEN (turn_f(NEW.a) < 9) EXECUTE FUNCTION turn_t()",
        "CREATE CONSTRAINT TRIGGER c AFTER INSERT ON turn_x DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION turn_t()",
        "INSERT INTO turn_x (a) VALUES (1)",
        "INSERT INTO turn_x SELECT i, i, 'row ' || i, default, int4range(i * 10, i * 10 + 5) FROM generate_series(10, 60) i".replace(
            ", default", ""
        ).replace("INTO turn_x SELECT", "INTO turn_x (id, a, b, r) SELECT"),
        "INSERT INTO turn_x (id, a) VALUES (10, 2) ON CONFLICT (id) DO UPDATE SET a = turn_f(turn_x.a) WHERE turn_f(turn_x.a) >= 0",
        "UPDATE turn_x SET b = upper(b) WHERE lower(b) LIKE 'row 2%'",
        "DELETE FROM turn_x WHERE turn_f(a) = 3 AND b LIKE '%5'",
        "MERGE INTO turn_x USING (VALUES (20, 5), (99, 6)) v(i, a) ON id = i WHEN MATCHED THEN UPDATE SET a = turn_f(v.a) WHEN NOT MATCHED THEN INSERT (id, a) VALUES (i, turn_f(v.a))",
        "SELECT * FROM turn_x WHERE turn_f(a) > 1 FOR UPDATE",
        "ALTER TABLE turn_x ADD COLUMN z int DEFAULT turn_f(9), ADD CHECK (turn_f(z) < 9)",
    ):
        client.run(text)
    with pytest.raises(ServerError):
        client.run("INSERT INTO turn_x (id, a) VALUES (10, 2)")
    client.close()


def test_what_a_scan_watches_by_has_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def slow(row: Any) -> bool:
        asked.append(row)
        while True:
            give_way()

    test = watched._Budgeted(slow)
    assert test((1,)) is True
    assert test((2,)) is True  # the budget is used up: every row may matter
    assert asked == [(1,)]


def test_two_writers_that_watch_each_other(server: ServerProcess) -> None:
    """The committer evaluates their conditions, which are users' own, over each other's rows."""
    one, two = connect(server.port), connect(server.port)
    one.run("CREATE TABLE turn_w (a int, b text)")
    one.run("CREATE FUNCTION turn_g(n int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT n % 5'")
    one.run("INSERT INTO turn_w SELECT i, 'x' || i FROM generate_series(1, 100) i")
    for client in (one, two):
        client.run("BEGIN")
        client.run(
            "SELECT count(*) FROM turn_w WHERE upper(b) LIKE 'X1%' AND turn_g(a) = 2 AND a::numeric > 1.5"
        )
    one.run("INSERT INTO turn_w VALUES (500, 'other')")
    two.run("INSERT INTO turn_w VALUES (501, 'other')")
    one.run("COMMIT")
    two.run("COMMIT")
    assert one.run("SELECT count(*) FROM turn_w WHERE a >= 500").rows == [("2",)]
    one.close()
    two.close()
