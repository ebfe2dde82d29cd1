"""Conditions on ctid find rows by position: hot rows, those of parts, a transaction's own, at any time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.server import ServerProcess


@pytest.fixture
def client(server: ServerProcess) -> Iterator[psycopg.Connection[Any]]:
    """A connection that commits each statement, with tables of its own."""
    with psycopg.connect(
        host="127.0.0.1", port=server.port, user="postgres", dbname="postgres", autocommit=True
    ) as made:
        made.execute("DROP TABLE IF EXISTS placed")
        made.execute("CREATE TABLE placed (id int PRIMARY KEY, v int)")
        yield made
        made.execute("DROP TABLE placed")


def _agrees(client: psycopg.Connection[Any], rng: random.Random) -> None:
    """Conditions find what the same conditions over a list of all rows say."""
    rows = client.execute("SELECT ctid::text, id, v FROM placed").fetchall()
    place = {tuple(map(int, ctid[1:-1].split(","))): (id_, v) for ctid, id_, v in rows}
    assert len(place) == len(rows)
    last = max(place, default=(0, 0))[1] + 3
    picked = [(0, rng.randrange(last)) for _ in range(5)]
    low, high = sorted(picked[:2])
    asked = (
        ("ctid = %s::tid", [picked[0]], [p for p in place if p == picked[0]]),
        ("ctid = ANY (%s::tid[])", [picked], [p for p in place if p in picked]),
        (
            "ctid IN (SELECT ctid FROM placed WHERE v % 3 = 0)",
            None,
            [p for p in place if place[p][1] % 3 == 0],
        ),
        ("ctid > %s::tid AND ctid <= %s::tid", [low, high], [p for p in place if low < p <= high]),
        ("ctid BETWEEN %s::tid AND %s::tid", [low, high], [p for p in place if low <= p <= high]),
        ("ctid < %s::tid", [high], [p for p in place if p < high]),
        ("NOT ctid = ANY (%s::tid[])", [picked], [p for p in place if p not in picked]),
    )
    for condition, values, expected in asked:
        given = None if values is None else [_text(v) for v in values]
        found = client.execute(f"SELECT id, v FROM placed WHERE {condition}", given).fetchall()
        assert sorted(found) == sorted(place[p] for p in expected), (condition, values)
    joined = client.execute("SELECT count(*) FROM placed a JOIN placed b ON a.ctid = b.ctid").fetchone()
    assert joined == (len(rows),)


def _text(value: Any) -> Any:
    return [_text(v) for v in value] if isinstance(value, list) else f"({value[0]},{value[1]})"


@pytest.mark.parametrize("seed", range(3))
def test_positions_through_changes(client: psycopg.Connection[Any], seed: int) -> None:
    """After inserts, updates, deletes and flushes, in a block of its own and out of it."""
    rng = random.Random(seed)
    following = 0
    for step in range(10):
        inside = rng.random() < 0.4
        if inside:
            client.execute("BEGIN")
        for _ in range(rng.randrange(1, 4)):
            match rng.randrange(5):
                case 0 | 1:
                    client.execute(
                        "INSERT INTO placed SELECT g, g FROM generate_series(%s::int, %s::int) g",
                        (following, following + 9),
                    )
                    following += 10
                case 2:
                    client.execute("UPDATE placed SET v = v + 1 WHERE id %% 4 = %s", (rng.randrange(4),))
                case 3:
                    client.execute(
                        "DELETE FROM placed WHERE ctid IN (SELECT ctid FROM placed WHERE id %% 5 = %s LIMIT 4)",
                        (rng.randrange(5),),
                    )
                case _ if not inside:
                    client.execute("CHECKPOINT")
                case _:
                    client.execute("UPDATE placed SET v = v * 2 WHERE ctid > '(0,3)' AND ctid < '(0,9)'")
            _agrees(client, rng)
        if inside:
            client.execute(rng.choice(("COMMIT", "ROLLBACK")))
        if step % 3 == 0:
            client.execute("CHECKPOINT")
        _agrees(client, rng)


def test_a_snapshot_keeps_its_positions(client: psycopg.Connection[Any], server: ServerProcess) -> None:
    """A ctid that a transaction has read finds the same row in it, whatever others do meanwhile."""
    client.execute("INSERT INTO placed SELECT g, g FROM generate_series(1, 50) g")
    client.execute("CHECKPOINT")
    with psycopg.connect(host="127.0.0.1", port=server.port, user="postgres", dbname="postgres") as reader:
        reader.execute("SET TRANSACTION READ ONLY")
        places = reader.execute("SELECT ctid::text, id, v FROM placed").fetchall()
        client.execute("UPDATE placed SET v = -v WHERE id <= 20")
        client.execute("DELETE FROM placed WHERE id > 40")
        client.execute("CHECKPOINT")
        for ctid, id_, v in places:
            found = reader.execute("SELECT id, v FROM placed WHERE ctid = %s::tid", (ctid,)).fetchall()
            assert found == [(id_, v)]
        assert reader.execute("SELECT count(*) FROM placed WHERE ctid > '(0,0)'").fetchone() == (50,)


def test_others_rows_do_not_matter(client: psycopg.Connection[Any], server: ServerProcess) -> None:
    """A block that reads one row by ctid and writes meets changes of that row alone."""
    client.execute("INSERT INTO placed SELECT g, g FROM generate_series(1, 9) g")
    for changed, fails in ((5, False), (2, True)):
        with psycopg.connect(host="127.0.0.1", port=server.port, user="postgres", dbname="postgres") as block:
            assert block.execute("SELECT id FROM placed WHERE ctid = '(0,2)'").fetchone() == (2,)
            client.execute("UPDATE placed SET v = v + 1 WHERE id = %s", (changed,))
            if fails:
                with pytest.raises(psycopg.errors.SerializationFailure):
                    block.execute("INSERT INTO placed VALUES (100, 1); COMMIT")
                block.rollback()
            else:
                block.execute("UPDATE placed SET v = 0 WHERE id = 9")
                block.commit()


def test_pages(client: psycopg.Connection[Any]) -> None:
    """relpages is how many blocks ctids name, and sizes are at least theirs."""
    pages = "SELECT relpages, pg_relation_size(oid) / 8192 >= relpages FROM pg_class WHERE relname = 'placed'"
    client.execute("BEGIN")
    assert client.execute(pages).fetchone() == (0, True)
    client.execute("INSERT INTO placed SELECT g, g FROM generate_series(1, 40000) g")
    assert client.execute("SELECT min(ctid)::text, max(ctid)::text FROM placed").fetchone() == (
        "(0,1)",
        "(1,7232)",
    )
    assert client.execute(pages).fetchone() == (2, True)
    client.execute("COMMIT")
    plan = client.execute(
        "EXPLAIN (COSTS OFF) SELECT * FROM placed WHERE ctid > '(0,5)' AND v = 1"
    ).fetchall()
    assert [line for (line,) in plan[:3]] == [
        "Tid Range Scan on placed",
        "  TID Cond: (ctid > '(0,5)'::tid)",
        "  Filter: (v = 1)",
    ]
