"""Arrays that begin elsewhere than at 1, beside PostgreSQL 15 at random: nested functions, comparisons, subscripts and slices, assignments.

Of two errors in one expression either may come first, so errors are only told from values there; statements of one operation have the same
SQLSTATE and message. PL/pgSQL's assignment of one element of several dimensions to an array that is there and empty is left out:
PostgreSQL calls it out of range in a variable and makes it in a column. ``HOLDFAST_ARRAYS=N`` asks N times as many.
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
ROUNDS = 150 * int(os.environ.get("HOLDFAST_ARRAYS", "1"))
ELEMENTS = {
    "int": ["1", "2", "3", "-1", "NULL"],
    "text": ["a", "b", '"x y"', '"null"', '""', "NULL"],
    "numeric": ["1.50", "2", "-3.0", "NULL"],
    "interval": ['"1 day"', '"2 hours"', "NULL"],
    "timetz": ["10:00+01", "NULL"],
    "float8": ["1.5", "2", "NaN", "NULL"],
}
TARGETS = {"text": ["text", "varchar(3)"], "interval": ["text"], "timetz": ["text", "time"]}
SUBSCRIPTS = ["0", "1", "-1", "2", "5", "3", "-2", "6"]


class Made:
    """Expressions over arrays of one element type."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.type = rng.choice(list(ELEMENTS))

    def body(self, sizes: list[int]) -> str:
        if not sizes:
            return self.rng.choice(ELEMENTS[self.type])
        return "{" + ",".join(self.body(sizes[1:]) for _ in range(sizes[0])) + "}"

    def literal(self, sizes: list[int] | None = None) -> str:
        rng = self.rng
        if sizes is None and rng.random() < 0.1:
            return rng.choice([f"'{{}}'::{self.type}[]", f"null::{self.type}[]"])
        sizes = sizes or [rng.randint(1, 3) for _ in range(rng.choices([1, 2, 3], [6, 3, 1])[0])]
        text = self.body(sizes)
        if rng.random() < 0.8:
            lows = [rng.choice([1, 1, 0, -1, 2, 5, -3]) for _ in sizes]
            text = "".join(f"[{low}:{low + n - 1}]" for low, n in zip(lows, sizes, strict=True)) + "=" + text
        return f"'{text}'::{self.type}[]"

    def element(self) -> str:
        text = self.rng.choice(ELEMENTS[self.type])
        return f"null::{self.type}" if text == "NULL" else "'" + text.strip('"') + f"'::{self.type}"

    def at(self) -> str:
        return self.rng.choice(SUBSCRIPTS) if self.rng.random() < 0.95 else "null"

    def subscripts(self) -> str:
        forms = ["[{}]", "[{}]", "[{}:{}]", "[{}:{}]", "[{}:]", "[:{}]", "[:]"]
        count = self.rng.choices([1, 2, 3], [5, 4, 1])[0]
        return "".join(self.rng.choice(forms).format(self.at(), self.at()) for _ in range(count))

    def array(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 1 or rng.random() < 0.5:
            return self.literal()
        a, b, x, y = self.array(depth + 1), self.array(depth + 1), self.element(), self.element()
        some = f"(values ({a}), ({b})) v(x)"
        return rng.choice(
            [
                f"({a} || {b})", f"({a} || {x})", f"({x} || {a})", f"array_append({a}, {x})", f"array_prepend({x}, {a})",
                f"array_cat({a}, {b})", f"array_remove({a}, {x})", f"array_replace({a}, {x}, {y})", f"trim_array({a}, {rng.randint(-1, 2)})",
                f"({a})[{self.at()}:{self.at()}]", f"({a})[{self.at()}:][{self.at()}]", f"array[{a}, {b}]",
                f"array[{self.literal([2])}, {self.literal([2])}]", f"{a}::text::{self.type}[]", f"(select array_agg(x) from {some})",
                f"(select max(x) from {some})", f"(select min(x) from {some})", f"greatest({a}, {b})", f"coalesce({a}, {b})",
                f"array_fill({x}, {rng.choice(['array[2]', 'array[2,2]', 'array[0]'])}, {rng.choice(['array[0]', 'array[-1,3]', 'array[1]'])})",
            ]
        )  # fmt: skip

    def value(self) -> str:
        rng = self.rng
        a, b, x, n = self.array(), self.array(), self.element(), rng.randint(0, 3)
        rows = f"(values ({a}), ({b}), ({self.array()}), ({self.array()})) v(x)"
        target = rng.choice(TARGETS.get(self.type, ["text", "numeric(8,2)", "float8"]))
        return rng.choice(
            [
                a, a, f"({a}){self.subscripts()}", f"({a}){self.subscripts()}", f"array_dims({a})", f"array_lower({a}, {n})",
                f"array_upper({a}, {n})", f"array_length({a}, {n})", f"array_ndims({a})", f"cardinality({a})", f"array_position({a}, {x})",
                f"array_position({a}, {x}, {self.at()})", f"array_positions({a}, {x})", f"array_to_string({a}, ',', '*')",
                f"to_json({a})", f"to_jsonb({a})", f"row({a}, 1)", f"{a} {rng.choice(['=', '<', '>', '<=', '>=', '<>', '@>', '<@', '&&'])} {b}",
                f"{a} is distinct from {b}", f"({a})::{target}[]", f"({a})::text", f"array(select generate_subscripts({a}, {n}))",
                f"array(select unnest({a}))", f"{x} = any({a})", f"{x} < all({a})", f"row({a}) {rng.choice('=<>')} row({b})",
                f"array(select x::text from {rows} order by x, x::text)", f"array(select x::text from {rows} group by x order by 1)",
                f"(select count(distinct x) from {rows})", f"hash_array({a}) = hash_array({b})", f"btarraycmp({a}, {b})", f"nullif({a}, {b})",
            ]
        )  # fmt: skip

    def assignment(self) -> tuple[str, str]:
        rng, count = self.rng, self.rng.choices([1, 2], [3, 1])[0]
        if rng.random() < 0.5:
            return "".join(f"[{rng.choice(SUBSCRIPTS)}]" for _ in range(count)), self.element()
        parts = []
        for _ in range(count):
            low = rng.randint(-3, 4)
            parts.append(
                rng.choice([f"[{low}:{low + rng.randint(-1, 2)}]"] * 4 + [f"[{low}:]", f"[:{low}]", "[:]"])
            )
        return "".join(parts), self.literal()


Both = Callable[[str], tuple[object, object]]


@pytest.fixture
def both(server: ServerProcess, postgres: str) -> Iterator[Both]:
    urls = (url_of(postgres), server.url)
    opened = []
    for url in urls:
        with psycopg.connect(url, autocommit=True) as root:
            root.execute("CREATE DATABASE array_bounds")
        opened.append(psycopg.connect(url, dbname="array_bounds", autocommit=True))

    def ask(sql: str) -> tuple[object, object]:
        theirs, ours = (_answer(one, sql) for one in opened)
        return theirs, ours

    yield ask
    for one, url in zip(opened, urls, strict=True):
        one.close()
        with psycopg.connect(url, autocommit=True) as root:
            root.execute("DROP DATABASE array_bounds")


def _answer(one: psycopg.Connection, sql: str) -> object:
    notices: list[str | None] = []
    one.add_notice_handler(lambda diag: notices.append(diag.message_primary))
    try:
        cursor = one.execute(sql.encode())
        return (cursor.fetchall() if cursor.description else None), notices
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, error.diag.message_detail
    finally:
        one._notice_handlers.clear()


def test_values(both: Both) -> None:
    rng, failed = random.Random(3), 0
    for _ in range(3 * ROUNDS):
        sql = f"SELECT ({Made(rng).value()})::text"
        theirs, ours = both(sql)
        assert isinstance(theirs, tuple)
        if len(theirs) == 3:
            failed += 1
            assert isinstance(ours, tuple)
            assert len(ours) == 3, sql
        else:
            assert ours == theirs, sql
    assert failed < 2 * ROUNDS


def test_assignments(both: Both) -> None:
    rng = random.Random(5)
    for number in range(ROUNDS):
        made = Made(rng)
        initial, parts = made.literal(), [made.assignment() for _ in range(rng.randint(1, 3))]
        if number % 2:
            both(f"CREATE TEMP TABLE b (a {made.type}[])")
            both(f"INSERT INTO b VALUES ({initial})")
            for where, value in parts:
                theirs, ours = both(f"UPDATE b SET a{where} = {value} RETURNING a::text")
                assert ours == theirs, (initial, parts)
            both("DROP TABLE b")
            continue
        one = [f"a{w} := {v}" for w, v in parts if ":" in w or w.count("[") == 1]
        tries = " ".join(
            f"BEGIN {s}; RAISE NOTICE '%', a; EXCEPTION WHEN others THEN RAISE NOTICE '% %', sqlstate, sqlerrm; END;"
            for s in one
        )
        theirs, ours = both(f"DO $$ DECLARE a {made.type}[] := {initial}; BEGIN {tries} END $$")
        assert ours == theirs, (initial, parts)
