"""Aggregates of one's own beside PostgreSQL 15, at random: every kind of frame, DISTINCT, ORDER BY, FILTER, grouping sets.

Their transition functions write down what they are given, so the texts that come out tell which steps were made, in which order, and which
rows were taken out again. ``HOLDFAST_AGGREGATES=N`` asks N times as many.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.support.postgres import postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]
QUERIES = 120 * int(os.environ.get("HOLDFAST_AGGREGATES", "1"))
MADE = """
CREATE FUNCTION wrote(text, anyelement) RETURNS text LANGUAGE sql AS $$SELECT coalesce($1, '') || '*' || quote_nullable($2)$$;
CREATE FUNCTION added(text, anyelement) RETURNS text LANGUAGE sql AS $$SELECT coalesce($1, '') || '+' || quote_nullable($2)$$;
CREATE FUNCTION taken(text, anyelement) RETURNS text LANGUAGE sql AS $$SELECT $1 || '-' || quote_nullable($2)$$;
CREATE FUNCTION wrote_strict(text, anyelement) RETURNS text LANGUAGE sql STRICT AS $$SELECT $1 || '*' || $2$$;
CREATE FUNCTION added_strict(text, anyelement) RETURNS text LANGUAGE sql STRICT AS $$SELECT $1 || '+' || $2$$;
CREATE FUNCTION taken_strict(text, anyelement) RETURNS text LANGUAGE sql STRICT AS
    $$SELECT CASE WHEN $2::text <> '4' THEN $1 || '-' || $2 END$$;
CREATE FUNCTION pair(text, int, int) RETURNS text LANGUAGE plpgsql AS
    $$BEGIN RETURN concat($1, '(', $2, ',', $3, ')'); END$$;
CREATE FUNCTION told(text, int, int) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN '<' || $1 || '>'; END$$;
CREATE FUNCTION latest(anyelement, anyelement) RETURNS anyelement LANGUAGE sql STRICT AS 'SELECT $2';
CREATE AGGREGATE writing(anyelement) (STYPE = text, SFUNC = wrote, MSTYPE = text, MSFUNC = added, MINVFUNC = taken);
CREATE AGGREGATE writing_on(anyelement) (
    STYPE = text, SFUNC = wrote, INITCOND = 'I', MSTYPE = text, MSFUNC = added, MINVFUNC = taken, MINITCOND = 'M');
CREATE AGGREGATE strictly(text) (STYPE = text, SFUNC = wrote_strict, MSTYPE = text, MSFUNC = added_strict, MINVFUNC = taken_strict);
CREATE AGGREGATE strictly_on(anyelement) (STYPE = text, SFUNC = wrote_strict, INITCOND = 'I', MSTYPE = text, MSFUNC = added_strict,
    MINVFUNC = taken_strict, MINITCOND = 'M');
CREATE AGGREGATE pairs(int, int) (SFUNC = pair, STYPE = text, FINALFUNC = told, FINALFUNC_EXTRA);
CREATE AGGREGATE latest(anyelement) (SFUNC = latest, STYPE = anyelement);
CREATE AGGREGATE gathered(anycompatible) (SFUNC = array_append, STYPE = anycompatiblearray, INITCOND = '{}');
CREATE TABLE t (id int, g int, x int, y int);
"""
CALLS = (
    "writing(x", "writing_on(x", "strictly(x::text", "strictly_on(x", "pairs(x, y", "pairs(y, x + 1", "latest(x", "gathered(x",
)  # fmt: skip
BOUNDS = ("UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW", "{} FOLLOWING", "UNBOUNDED FOLLOWING")
GROUPS = {
    "": "",
    "GROUP BY g": "g",
    "GROUP BY ROLLUP (g, y)": "GROUPING(g, y), g, y",
    "GROUP BY GROUPING SETS ((g), (y), ())": "GROUPING(g, y), g, y",
    "GROUP BY g HAVING latest(x ORDER BY id) > 1": "g",
}


def filtered(rng: random.Random, call: str) -> str:
    conditions = ("x > 2", "y IS NOT NULL", "id % 2 = 0", "false")
    return f"{call} FILTER (WHERE {rng.choice(conditions)})" if rng.random() < 0.3 else call


def frame(rng: random.Random) -> str:
    first, last = sorted(rng.choices(range(5), k=2))
    first, last = min(first, 3), max(last, 1)
    start, end = (BOUNDS[at].format(rng.randrange(4)) for at in (first, last))
    exclude = rng.choice(["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"])
    return f"{rng.choice(['ROWS', 'GROUPS', 'RANGE'])} BETWEEN {start} AND {end}{exclude}"


def windowed(rng: random.Random) -> str:
    frame_ = frame(rng)
    order = rng.choice(["id", "id DESC"] if frame_.startswith("RANGE") else ["id", "x, id", "id DESC"])
    calls = ", ".join(f"{filtered(rng, f'{rng.choice(CALLS)})')} OVER w" for _ in range(rng.randrange(1, 4)))
    partition = rng.choice(["", "PARTITION BY g "])
    where = rng.choice(["true", "x IS NOT NULL", "g = 1"])
    return f"SELECT id, {calls} FROM t WHERE {where} WINDOW w AS ({partition}ORDER BY {order} {frame_}) ORDER BY id"


def grouped(rng: random.Random) -> str:
    calls = []
    for _ in range(rng.randrange(1, 4)):
        call = rng.choice(CALLS)
        if rng.random() < 0.3:
            call = call.replace("(", "(DISTINCT ", 1)
        else:
            call += f" ORDER BY {rng.choice(['', 'x, ', 'y NULLS FIRST, ', 'x DESC, '])}id"
        calls.append(filtered(rng, f"{call})"))
    group = rng.choice(sorted(GROUPS))
    keys = GROUPS[group].count(", ") + 1 if group else 0
    keys -= "GROUPING(" in GROUPS[group]
    order = f" ORDER BY {', '.join(str(i + 1) for i in range(keys))}" if keys else ""
    return f"SELECT {', '.join(filter(None, (GROUPS[group], *calls)))} FROM t {group}{order}"


@pytest.fixture(scope="module")
def both(postgres: str, server: ServerProcess) -> Iterator[tuple[psycopg.Connection, ...]]:
    """Both servers, PostgreSQL first, in a database of their own."""
    rng = random.Random(9)
    rows = [
        (i, rng.randrange(3), rng.choice((None, 1, 2, 3, 4, 5)), rng.choice((None, 1, 2))) for i in range(20)
    ]
    opened = []
    urls = (url_of(postgres), server.url)
    for url in urls:
        with psycopg.connect(url, autocommit=True) as root:
            root.execute("CREATE DATABASE random_aggregates")
        one = psycopg.connect(url, dbname="random_aggregates", autocommit=True)
        one.execute(MADE)
        with one.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s)", rows)
        opened.append(one)
    yield tuple(opened)
    for one, url in zip(opened, urls, strict=True):
        one.close()
        with psycopg.connect(url, autocommit=True) as root:
            root.execute("DROP DATABASE random_aggregates")


@pytest.mark.parametrize("make", [windowed, grouped])
def test_what_they_were_given_is_the_same(
    both: tuple[psycopg.Connection, ...], make: Callable[[random.Random], str]
) -> None:
    rng = random.Random(11)
    for _ in range(QUERIES):
        sql = make(rng)
        theirs, ours = (one.execute(sql).fetchall() for one in both)
        assert ours == theirs, sql
