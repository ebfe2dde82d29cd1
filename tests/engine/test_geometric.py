"""Geometric columns: gist indexes find what a scan finds, executors agree, values last. What statements give is beside PostgreSQL's in types/geometric_*.sql."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sqllogictest.client import Client
from tests.support.server import ServerProcess

ODD = ("0", "1", "-1", "0.5", "3", "1e9", "-1e9", "1e300", "Infinity", "-Infinity", "NaN", "0.9999995")
CONDITIONS = {
    "point": (
        "v ~= point(%s, 0)",
        "v <@ box(point(%s, -1e9), point(0, 1e9))",
        "box(point(%s, -1), point(1, 1)) @> v",
        "v <@ circle(point(%s, 0), 2)",
        "polygon(box(point(%s, -1), point(0, 2))) @> v",
    ),
    "box": (
        "v && box(point(%s, 0), point(0.5, 1))",
        "v @> point(%s, 0)",
        "v <@ box(point(%s, 9), point(-2, -9))",
        "v ~= box(point(%s, 0), point(0, 1))",
    ),
    "circle": (
        "v && circle(point(%s, 0), 0.5)",
        "v @> point(%s, 0)",
        "v <@ circle(point(%s, 0), 1e9)",
        "v ~= circle(point(%s, 0), 1)",
    ),
    "polygon": (
        "v && polygon(box(point(%s, 0), point(0.5, 1)))",
        "v @> point(%s, 0)",
        "v <@ polygon(box(point(%s, 9), point(-2, -9)))",
        "v ~= polygon(box(point(%s, 0), point(0, 1)))",
    ),
}
MADE = {
    "point": "point(x, y)",
    "box": "box(point(x, y), point(y, 1))",
    "circle": "circle(point(x, y), abs(y))",
    "polygon": "polygon(box(point(x, 0), point(y, 1)))",
}


@pytest.fixture(scope="module")
def shapes(server: ServerProcess) -> Iterator[Client]:
    client = server.connect()
    values = ", ".join(f"('{n}'::float8)" for n in ODD)
    for kind, made in MADE.items():
        client.run(
            f"CREATE TABLE geo_{kind} AS SELECT row_number() OVER () AS id, {made} AS v "
            f"FROM (VALUES {values}) a (x), (VALUES {values}) b (y)"
        )
        client.run(f"INSERT INTO geo_{kind} VALUES (1000, NULL)")
        client.run(f"CREATE TABLE geo_{kind}_indexed AS TABLE geo_{kind}")
        client.run(f"CREATE INDEX ON geo_{kind}_indexed USING gist (v)")
    yield client
    for kind in MADE:
        client.run(f"DROP TABLE geo_{kind}, geo_{kind}_indexed")
    client.close()


@pytest.mark.parametrize("kind", sorted(CONDITIONS))
def test_a_gist_index_finds_what_a_scan_finds(shapes: Client, kind: str) -> None:
    found = 0
    for condition in CONDITIONS[kind]:
        for number in ODD:
            asked = condition % f"'{number}'"
            indexed = f"SELECT id FROM geo_{kind}_indexed WHERE {asked} ORDER BY id"
            assert "Index Scan" in str(shapes.run(f"EXPLAIN {indexed}").rows), asked
            rows = shapes.run(indexed).rows
            assert rows == shapes.run(f"SELECT id FROM geo_{kind} WHERE {asked} ORDER BY id").rows, asked
            found += len(rows)
    assert found > 100


def test_other_conditions_read_the_table(shapes: Client) -> None:
    for condition in ("v <-> point(0, 0) < 1", "v << point(0, 0)", "v ~= (SELECT point(0, 0))"):
        asked = f"EXPLAIN SELECT id FROM geo_point_indexed WHERE {condition}"
        assert "Index Scan" not in str(shapes.run(asked).rows), condition


def test_executors_agree(shapes: Client) -> None:
    asked = (
        "SELECT a.id, b.id, a.v[0], a.v <-> b.v FROM geo_point a JOIN geo_point b ON a.v ~= b.v "
        "WHERE a.v <@ box '(3,3),(-3,-3)' ORDER BY 1, 2",
        "SELECT (v[0])[1] y, count(*), array_agg(v ORDER BY id) FROM geo_box GROUP BY 1 ORDER BY 1",
    )
    for sql in asked:
        answers = []
        for route in ("index", "local"):
            shapes.run(f"SET executor = {route}")
            answers.append(shapes.run(sql).rows)
        shapes.run("RESET executor")
        assert answers[0]
        assert answers[0] == answers[1]


def test_values_and_their_index_survive_a_crash(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    server.sql(
        "CREATE TABLE kept (id int PRIMARY KEY, p point DEFAULT '(3,4)', z polygon, b box[], EXCLUDE USING gist (p WITH ~=))"
    )
    server.sql("CREATE INDEX kept_z ON kept USING gist (z)")
    server.sql(
        "INSERT INTO kept SELECT g, point(g, 'NaN'), polygon(box(point(g, 0), point(g + 1, 1))), ARRAY[box(point(g, g))] FROM generate_series(1, 500) g"
    )
    server.sql("UPDATE kept SET p[1] = 7 WHERE id = 5")
    server.kill()
    server = ServerProcess(tmp_path)
    try:
        client = server.connect()
        asked = "SELECT id, p, z, b FROM kept WHERE z @> point(5.5, 0.5)"
        assert "kept_z" in str(client.run(f"EXPLAIN {asked}").rows)
        assert client.run(asked).rows == [("5", "(5,7)", "((5,0),(5,1),(6,1),(6,0))", "{(5,5),(5,5)}")]
        client.run("INSERT INTO kept (id) VALUES (1000)")
        assert client.run("SELECT p FROM kept WHERE id = 1000").rows == [("(3,4)",)]
        client.close()
    finally:
        server.stop()
