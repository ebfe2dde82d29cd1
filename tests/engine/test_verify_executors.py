"""``SET verify_executors = on``: what counts as a difference, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from engine.plans.verify import Terms, difference, terms_of
from planner.facts import FLOAT8, INT4, NUMERIC, TEXT
from planner.query import OutputColumn
from planner.types import SqlType
from sqllogictest.client import Client, ServerError
from tests.support.lowered import World, sample_world
from tests.support.server import ServerProcess


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return sample_world(tmp_path_factory.mktemp("verify"))


def columns(*oids: int) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(name=f"c{i}", type=SqlType(oid)) for i, oid in enumerate(oids))


def compared(
    oids: tuple[int, ...],
    mine: list[Any],
    theirs: list[Any],
    *,
    keys: tuple[int, ...] = (),
    any_scale: bool = False,
) -> str | None:
    terms = Terms(False, keys, (any_scale,) * len(oids))
    return difference(columns(*oids), terms, ("index", mine), ("local", theirs))


@pytest.mark.parametrize(
    ("oids", "mine", "theirs"),
    [
        ((INT4, TEXT), [(1, "a"), (2, None)], [(2, None), (1, "a")]),
        ((FLOAT8,), [(0.1 + 0.2,)], [(0.3,)]),
        ((FLOAT8,), [(float("nan"),), (0.0,)], [(0.0,), (float("nan"),)]),
        ((NUMERIC,), [(Decimal("NaN"),)], [(Decimal("NaN"),)]),
        ((1007,), [((1, None, 3),)], [((1, None, 3),)]),
    ],
)
def test_answers_that_are_one_in_sql_s_eyes(
    oids: tuple[int, ...], mine: list[Any], theirs: list[Any]
) -> None:
    assert compared(oids, mine, theirs) is None


@pytest.mark.parametrize(
    ("oids", "mine", "theirs", "text"),
    [
        ((INT4,), [(1,), (1,)], [(1,)], "index answers 2 rows, local 1. Only index: (1), (1)."),
        ((INT4,), [(1,)], [(2,)], "index answers 1 rows, local 1. Only index: (1). Only local: (2)."),
        ((NUMERIC,), [(Decimal("1.0"),)], [(Decimal("1.00"),)], "Only index: (1.0). Only local: (1.00)."),
        ((TEXT,), [(None,)], [("",)], "index answers 1 rows, local 1. Only index: (). Only local: ()."),
        ((FLOAT8,), [(1.0,)], [(1.0000001,)], "Only local: (1.0000001)."),
        ((1007,), [((1, None),)], [((1,),)], "Only index: ({1,NULL})."),
    ],
)
def test_differences_are_named(oids: tuple[int, ...], mine: list[Any], theirs: list[Any], text: str) -> None:
    found = compared(oids, mine, theirs)
    assert found is not None
    assert text in found


def test_order_counts_as_far_as_it_was_asked_for() -> None:
    mine, theirs = [(1, 5), (1, 6), (2, 7)], [(1, 6), (1, 5), (2, 7)]
    assert compared((INT4, INT4), mine, theirs, keys=(0,)) is None
    found = compared((INT4, INT4), mine, theirs, keys=(0, 1))
    assert found == ("The rows are the same, their order is not: row 1 is (1, 5) of index, (1, 6) of local.")


def test_equal_numerics_may_stand_for_each_other_where_one_is_chosen() -> None:
    assert compared((NUMERIC,), [(Decimal("1.0"),)], [(Decimal("1.00"),)], any_scale=True) is None
    assert compared((NUMERIC,), [(Decimal("1.0"),)], [(Decimal("1.01"),)], any_scale=True) is not None


@pytest.mark.parametrize(
    ("sql", "terms"),
    [
        ("SELECT a, c FROM t ORDER BY c, a", Terms(False, (1, 0), (False, False))),
        ("SELECT a FROM t ORDER BY a, b, e", Terms(False, (0,), (False,))),
        ("SELECT a FROM t ORDER BY b", Terms(False, (), (False,))),
        ("SELECT a FROM t LIMIT 1", Terms(True, (), (False,))),
        ("SELECT a FROM (SELECT a FROM t OFFSET 1) x ORDER BY 1", Terms(True, (0,), (False,))),
        ("SELECT row_number() OVER () FROM t", Terms(True, (), (False,))),
        ("SELECT DISTINCT ON (a) a FROM t", Terms(True, (), (False,))),
        ("SELECT array_agg(a) FROM t", Terms(True, (), (False,))),
        ("SELECT array_agg(a ORDER BY a) FROM t", Terms(False, (), (False,))),
        ("SELECT d, sum(d) FROM t GROUP BY d", Terms(False, (), (True, False))),
        ("SELECT max(d), count(*) FROM t", Terms(False, (), (True, False))),
        ("SELECT d FROM t UNION SELECT d FROM t ORDER BY 1", Terms(False, (0,), (True,))),
    ],
)
def test_what_sql_fixes_of_an_answer(world: World, sql: str, terms: Terms) -> None:
    assert terms_of(world.bind(sql)) == terms


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("wrong") / "data", odd={"HFTEST_WRONG": "1"})
    process.sql("CREATE TABLE t (a int PRIMARY KEY, b text)")
    process.sql("INSERT INTO t SELECT g, 'x' || g FROM generate_series(1, 5) g")
    yield process
    process.stop()


@pytest.fixture
def client(wrong: ServerProcess) -> Iterator[Client]:
    made = wrong.connect()
    yield made
    made.close()


@pytest.mark.parametrize("sql", ["SELECT a, b FROM t", "SELECT * FROM t WHERE a = 3", "SELECT 40 + 2"])
def test_a_difference_fails_the_statement(client: Client, sql: str) -> None:
    right = client.run(sql).rows
    client.run("SET verify_executors = on")
    with pytest.raises(ServerError) as caught:
        client.run(sql)
    assert (caught.value.sqlstate, str(caught.value.message)) == (
        "XX000",
        "executors index and local disagree",
    )
    client.run("RESET verify_executors")
    assert client.run(sql).rows == right


def test_a_pinned_route_is_the_one_that_is_checked(client: Client) -> None:
    client.run("SET executor = local")
    client.run("SET verify_executors = on")
    with pytest.raises(ServerError, match="executors local and index disagree"):
        client.run("SELECT count(*) FROM t")


def test_where_sql_leaves_a_choice_rows_may_differ(client: Client) -> None:
    client.run("SET verify_executors = on")
    assert client.run("SELECT a FROM t LIMIT 3").rows == [("1",), ("2",), ("3",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT random() < 2",
        "SELECT relname FROM pg_class WHERE relname = 't'",
        "SELECT a FROM t WHERE a = 1 FOR UPDATE",
    ],
)
def test_what_cannot_be_compared_is_answered(client: Client, sql: str) -> None:
    client.run("SET verify_executors = on")
    assert len(client.run(sql).rows) == 1


def test_a_transaction_that_has_written_is_not_compared(client: Client) -> None:
    client.run("SET verify_executors = on")
    client.run("BEGIN")
    client.run("UPDATE t SET b = 'y' WHERE a = 1")
    assert client.run("SELECT count(*) FROM t").rows == [("5",)]
    client.run("ROLLBACK")
    client.run("BEGIN")
    with pytest.raises(ServerError, match="disagree"):
        client.run("SELECT a FROM t")
    client.run("ROLLBACK")


def test_executors_that_agree_are_not_noticed(server: ServerProcess) -> None:
    with_rows = "FROM generate_series(1, 200) g"
    for sql in (
        f"SELECT g, g * 1.50, g::float8 / 3, 'x' || g {with_rows} ORDER BY g DESC",
        f"SELECT g % 7, sum(g), avg(g), max(g::numeric / 3) {with_rows} GROUP BY 1 ORDER BY 1",
    ):
        client = server.connect()
        try:
            plain = client.run(sql).rows
            client.run("SET verify_executors = on")
            assert client.run(sql).rows == plain
        finally:
            client.close()
