"""Full-text search: what a gin index over tsvectors serves, that it finds what a scan finds, on every route, and what it locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run("CREATE TABLE essays (id int PRIMARY KEY, body text, words tsvector)")
    yield made
    made.run("DROP TABLE essays")
    made.close()


def plan(client: FieldsClient, sql: str) -> str:
    return "\n".join(str(row[0]) for row in client.run("EXPLAIN " + sql).rows)


@pytest.mark.parametrize(
    ("index", "served", "not_served"),
    [
        ("(words)", ["words @@ 'a'", "'a & b' @@ words", "words @@ to_tsquery('english', 'cats | dogs')"], ["words = 'a'", "body @@ 'a'::tsquery"]),
        ("(to_tsvector('english', body))", ["to_tsvector('english', body) @@ 'a'"], ["to_tsvector('simple', body) @@ 'a'", "words @@ 'a'"]),
    ],
)  # fmt: skip
def test_what_an_index_serves(
    client: FieldsClient, index: str, served: list[str], not_served: list[str]
) -> None:
    client.run(f"CREATE INDEX essays_gin ON essays USING gin {index}")
    for condition in served:
        assert "using essays_gin" in plan(client, f"SELECT id FROM essays WHERE {condition}"), condition
    for condition in not_served:
        assert "essays_gin" not in plan(client, f"SELECT id FROM essays WHERE {condition}"), condition


def test_an_index_finds_what_a_scan_finds(client: FieldsClient) -> None:
    client.run(
        "INSERT INTO essays SELECT i, 'w' || i % 7 || ' x' || i % 11 || ' y' || i % 13, NULL FROM generate_series(1, 600) i"
    )
    client.run("UPDATE essays SET words = to_tsvector('simple', body) WHERE id % 17 > 0")
    asked: dict[str, Callable[[int, int, int], bool]] = {
        "w3": lambda w, x, y: w == 3,
        "w3 & x4": lambda w, x, y: w == 3 and x == 4,
        "w3 & !x4": lambda w, x, y: w == 3 and x != 4,
        "!w3": lambda w, x, y: w != 3,
        "w3 | x4": lambda w, x, y: w == 3 or x == 4,
        "(w3 | w4) & (x1 | x2 | x3)": lambda w, x, y: w in (3, 4) and x in (1, 2, 3),
        "w3 | !x4": lambda w, x, y: w == 3 or x != 4,
        "!(w3 & x4)": lambda w, x, y: not (w == 3 and x == 4),
        "w:*": lambda w, x, y: True,
        "w3 & x1:*": lambda w, x, y: w == 3 and x in (1, 10),
        "w3 <-> x4": lambda w, x, y: w == 3 and x == 4,
        "x4 <-> w3": lambda w, x, y: False,
        "w3 <2> y1:*": lambda w, x, y: w == 3 and y in (1, 10, 11, 12),
        "w3 <-> !x4": lambda w, x, y: w == 3 and x != 4,
        "nosuch": lambda w, x, y: False,
        "nosuch | w3": lambda w, x, y: w == 3,
        "w3:A": lambda w, x, y: False,
        "": lambda w, x, y: False,
    }
    expected = {
        query: [(str(i),) for i in range(1, 601) if i % 17 and holds(i % 7, i % 11, i % 13)]
        for query, holds in asked.items()
    }

    def found(query: str) -> object:
        return client.run(f"SELECT id FROM essays WHERE words @@ '{query}' ORDER BY id").rows

    assert {query: found(query) for query in asked} == expected
    client.run("CREATE INDEX ON essays USING gin (words)")
    assert {query: found(query) for query in asked} == expected
    client.run("SET verify_executors = on")
    assert {query: found(query) for query in asked} == expected


def test_values_order_and_group_alike_on_every_route(client: FieldsClient) -> None:
    client.run(
        "INSERT INTO essays SELECT i, NULL, (ARRAY['a', 'a:1', 'a:2', 'a:1A', 'b:1', 'a b', '', 'aa:1,2'])[1 + i % 8]::tsvector"
        " FROM generate_series(1, 60) i"
    )
    asked = "SELECT words, count(*), min(id) FROM essays WHERE words > 'a'::tsvector GROUP BY words ORDER BY words"
    answers = []
    for route in ("index", "local"):
        client.run(f"SET executor = {route}")
        answers.append(client.run(asked).rows)
    assert answers[0] == answers[1]
    assert [row[0] for row in answers[0]] == ["'a':2", "'a':1A", "'a':1", "'b':1", "'a' 'b'", "'aa':1,2"]


def test_two_that_look_for_a_word_and_add_one_do_not_both_commit(
    client: FieldsClient, server: ServerProcess
) -> None:
    client.run("CREATE INDEX ON essays USING gin (words)")
    other = connect(server.port)
    for one in (client, other):
        one.run("BEGIN")
        assert one.run("SELECT count(*) FROM essays WHERE words @@ 'free & (x | y)'").rows == [("0",)]
    client.run("INSERT INTO essays VALUES (1, '', 'free x')")
    client.run("COMMIT")
    assert other.fails("INSERT INTO essays VALUES (2, '', 'y free')")["sqlstate"] == "40001"
    other.run("ROLLBACK")
    other.close()
