"""Numerics of varying scale in DuckDB beside PostgreSQL: the same digits and scales, whatever path a value takes.

Values are drawn around the limits at which keys and sums change their form (``planner.lower.kit.varying``,
``sums``, ``estimated``).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from engine.executors.local.errors import BEYOND
from engine.executors.local.executor import LocalExecutor
from planner.base.errors import SqlError
from tests.support.lowered import PostgreSQL, World, database_of
from tests.support.postgres import postgres  # noqa: F401 - a fixture

SEED = 20251
SPECIALS = ["NaN", "Infinity", "-Infinity"]
EDGES = [
    "0", "0.00", "0.0000000000000000000000", "1", "1.0", "1.000000000000000000", "1.0000000000000000000",
    "1.00000000000000000000000000000", "999999999999999999", "1000000000000000000", "1000000000000000000.0",
    "999999999999999999.9999999999999999999", "999999999999999999.999999999999999999", "9999999999.000000001",
    "99999999999999999999999999999999999999", "0.000000000000000001", "0.0000000000000000001",
    "0.00000000000000000000000000000000001", "0.0000000000000000005", "1e-30", "1e-60", "2.5e-60",
    "1000000000000000000.0000000000000000001", "123456789012345678.12345678901234567891",
]  # fmt: skip


def drawn(rng: random.Random) -> str:
    """Return a numeric of up to 30 digits, of any scale up to 24."""
    digits = rng.choice((1, 2, 4, 9, 17, 18, 19, 20, 27, 28, 30))
    scale = rng.choice((0, 0, 1, 2, 2, 6, 7, 9, 10, 13, 14, 17, 18, 19, 24))
    number = Decimal(rng.randrange(10 ** (digits - 1), 10**digits)).scaleb(-scale)
    if rng.random() < 0.2:  # the same number with another scale
        number = Decimal(rng.choice(("1", "2.5", "-7", "100"))).quantize(Decimal(1).scaleb(-min(scale, 20)))
    return format(-number if rng.random() < 0.5 else number, "f")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    rng = random.Random(SEED)
    made = World(tmp_path_factory.mktemp("varying"))
    values = [drawn(rng) for _ in range(240)]
    edges = [*EDGES, *("-" + e for e in EDGES)]
    every: list[str | None] = [*values, *edges, *SPECIALS, None, None]
    made.table("v", "a int4", "x numeric", rows=[(str(i % 7), x) for i, x in enumerate(every)])
    # Of a size at which no sum or product passes 38 digits.
    small: list[str | None] = [None]
    for _ in range(300):
        scale = rng.choice((0, 1, 2, 3, 6, 7, 8, 9, 12))
        small.append(format(Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-scale), "f"))
    rows: list[tuple[str | None, ...]] = [
        (
            str(i % 5),
            x,
            str(rng.randrange(-999, 999)),
            format(Decimal(rng.randrange(-99999, 99999)).scaleb(-3), "f"),
        )
        for i, x in enumerate(small)
    ]
    made.table("s", "a int4", "x numeric", "i int4", "f numeric(12,3)", rows=rows)
    # Usual values beside those that need exact parts: 19 to 24 places, or 20 and more whole digits.
    mixed = [("0", f"{n}.5") for n in range(9)] + [("0", "-0." + "0" * 21 + "7")] + [("1", "12.25")]
    mixed += [("2", "12345678901234567890123.5"), ("2", "-1.25"), ("2", "-12345678901234567890123.75")]
    mixed += [
        ("3", "-0.7"),
        ("3", "0." + "0" * 20 + "1"),
        ("3", "0.699"),
        ("4", "-5." + "3" * 20),
        ("4", "5.1234567"),
    ]
    mixed += [("5", "1234567890123456789012.1234567"), ("5", "0.1234567"), ("5", "-1.5")]
    mixed += [("6", "0." + "9" * 36), ("6", "0." + "9" * 36), ("6", "-0." + "0" * 35 + "1"), ("6", "0.25")]
    made.table("m", "a int4", "x numeric", rows=mixed)
    types = (
        "k int4",
        "n numeric(10,2)",
        "m numeric(10,2)",
        "o numeric(15,4)",
        "w numeric(18,6)",
        "i int8",
        "y numeric",
    )
    made.table("d", *types, rows=divided(rng))
    return made


def divided(rng: random.Random) -> list[tuple[str | None, ...]]:
    """Return operands of divisions: of all lengths, around powers of ten, with NULL; m is never 0."""

    def number(digits: int, scale: int) -> str | None:
        size = 10 ** rng.randrange(1, digits + 1)
        unscaled = rng.choice(
            (rng.randrange(size), size - 1, size // 10, size // 10 + 1, size // 2, 25 * size // 100, 0)
        )
        value = Decimal(min(unscaled, 10**digits - 1) * rng.choice((1, 1, -1))).scaleb(-scale)
        return None if rng.random() < 0.03 else format(value, "f")

    rows: list[tuple[str | None, ...]] = []
    for k in range(600):
        m = number(10, 2)
        m = "0.01" if m is None or not Decimal(m) else m
        y = number(rng.choice((3, 9, 14, 16)), rng.choice((0, 1, 2, 5, 8)))
        rows.append((str(k), number(10, 2), m, number(15, 4), number(18, 6), number(17, 0), y))
    return rows


@pytest.fixture(scope="module")
def judge(world: World, postgres: str) -> Iterator[PostgreSQL]:  # noqa: F811
    with database_of(postgres) as server:
        for statement in world.statements:
            server.run(statement)
        yield server


@pytest.fixture(scope="module")
def executor(world: World) -> Iterator[LocalExecutor]:
    made = LocalExecutor(blob_dir=world.folder)
    yield made
    asyncio.run(made.close())


QUERIES = [
    # Order, equality and grouping; of equal numbers any may stand for its group.
    "SELECT x + 0 IS NULL, count(*) FROM s GROUP BY 1 ORDER BY 1",
    "SELECT row_number() OVER (ORDER BY x), x::text FROM (SELECT DISTINCT ON (x) x FROM v WHERE a < 3 ORDER BY x, x::text) q",
    "SELECT count(*), count(DISTINCT x) FROM v",
    "SELECT count(*) FROM (SELECT x FROM v GROUP BY x) q",
    "SELECT n, count(*) FROM (SELECT count(*) AS n FROM v GROUP BY x) q GROUP BY n ORDER BY n",
    "SELECT count(*) FROM (SELECT DISTINCT x FROM v) q",
    "SELECT count(*) FROM v p JOIN v q ON p.x = q.x",
    "SELECT count(*) FROM v p, v q WHERE p.x < q.x",
    "SELECT count(*) FROM v p, v q WHERE p.x >= q.x",
    "SELECT count(*) FROM v p, v q WHERE p.x <> q.x",
    "SELECT count(*) FROM v p, v q WHERE p.x IS NOT DISTINCT FROM q.x",
    "SELECT count(*) FROM v p, s q WHERE p.x > q.f",
    "SELECT count(*) FROM v p, s q WHERE q.i = p.x",
    "SELECT count(*) FROM v WHERE x IN (SELECT x FROM m)",
    "SELECT count(*) FROM v WHERE NOT (x > 2)",
    *(
        "SELECT " + ", ".join(f"count(*) FILTER (WHERE x {op} {c})" for op in ("=", "<>", "<", "<=", ">", ">=")) + " FROM v"
        for c in ("1", "1.00000000000000000000", "-7.0", "0", "999999999999999999.9999999999999999999",
                  "1000000000000000000", "'NaN'::numeric", "'-Infinity'::numeric", "0.0000000000000000005")
    ),
    "SELECT count(*) FROM v WHERE 2.5 <= x",
    "SELECT a, max(x) = min(x), max(x) - 0 FROM s GROUP BY a ORDER BY a",
    "SELECT a, max(x), min(x) FROM m GROUP BY a ORDER BY a",
    "SELECT max(x), min(x) FROM v",
    "SELECT max(x), min(x) FROM v WHERE x < 1e25 AND x > -1e25",
    "SELECT max(x), min(x) FROM v WHERE x > 1e37",
    "SELECT max(x + 1), min(x * -3) FROM s",
    "SELECT max(x) OVER (ORDER BY a, i, f, x), a FROM s ORDER BY a, i, f, x",
    # Sums.
    "SELECT sum(x), avg(x), count(x) FROM s",
    "SELECT a, sum(x), avg(x) FROM s GROUP BY a ORDER BY a",
    "SELECT a, sum(x), avg(x) FROM m GROUP BY a ORDER BY a",
    "SELECT sum(x), avg(x) FROM m WHERE a > 9",
    "SELECT sum(x) FILTER (WHERE x > 0), sum(x) FILTER (WHERE x > 1e30) FROM s",
    "SELECT sum(x) OVER (ORDER BY a, i, f, x ROWS 2 PRECEDING) FROM s ORDER BY a, i, f, x",
    "SELECT sum(x * 2 + 1), sum(1 - x), sum(x * f), sum(f - x), sum(x + x), sum(x * i) FROM s",
    "SELECT a, sum(x * (1 - f)), sum(x - x) FROM s GROUP BY a ORDER BY a",
    "SELECT sum(round(x, 2)), sum(round(x)), sum(round(x, 8)) FROM s",
    # Quotients, by row and summed.
    *(
        f"SELECT k, q FROM (SELECT k, {quotient} AS q FROM d OFFSET 0) s ORDER BY k"
        for quotient in ("n / m", "n / nullif(o, 0)", "w / m", "w / nullif(o, 0)", "i / m", "i / 4.0", "1 / m", "y / m",
                         "n / nullif(y, 0)", "y / nullif(y, 0)", "n / m / m", "round(n / m, 3)", "w + 0.5", "-w * 2")
    ),
    "SELECT sum(n / m), avg(n / m), min(n / m), max(n / m), count(n / m) FROM d WHERE abs(m) > 1 AND abs(n) > 1",
    "SELECT k % 3, sum(n / o) FILTER (WHERE o <> 0), sum(n / m) FROM d WHERE abs(m) > 1 AND abs(n) > 1 AND abs(o) < 1e7 "
    "GROUP BY k % 3 HAVING sum(n / m) <> 0 ORDER BY 1",
    "SELECT k % 2, k % 3, sum(n / m) FROM d WHERE abs(m) > 1 AND abs(n) > 1 GROUP BY ROLLUP (k % 2, k % 3) ORDER BY 1, 2",
    "SELECT k, (SELECT sum(p.n / p.m) FROM d p WHERE p.k % 9 = d.k AND abs(p.m) > 1 AND abs(p.n) > 1) FROM d WHERE k < 9 ORDER BY k",
    "SELECT sum(p.n / q.m), sum(q.y + p.w) FROM d p JOIN d q ON q.k = p.k + 1 WHERE abs(q.m) > 1 AND abs(p.n) > 1",
    "SELECT sum(n / m) FROM d WHERE k < 0",
    # Arithmetic by row.
    "SELECT x + 0.005, 0.5 - x, x * 1.50, x + f, f - x, x * i, -x, abs(x), round(x, 4), x::numeric(20,5) FROM s ORDER BY a, i, f, x",
    "SELECT x + 1, x - 1, 1 - x, x + x FROM m ORDER BY x",
]  # fmt: skip


@pytest.mark.parametrize(
    "sql",  # every third one in make test, all in make proofs
    [pytest.param(sql, marks=[pytest.mark.long] if number % 3 else []) for number, sql in enumerate(QUERIES)],
)
def test_as_postgresql(world: World, judge: PostgreSQL, executor: LocalExecutor, sql: str) -> None:
    wanted = judge.run(sql)
    got = asyncio.run(world.answer(executor, sql))
    ordered = "ORDER BY" in sql.rsplit(")", 1)[-1]
    assert (got if ordered else sorted(got, key=str)) == (wanted if ordered else sorted(wanted, key=str))


def test_order_is_postgresqls(world: World, judge: PostgreSQL, executor: LocalExecutor) -> None:
    """Equal numbers may come in any order, so they are compared as numbers."""
    sql = "SELECT x FROM v ORDER BY x DESC NULLS LAST"

    def number(row: tuple[Any, ...]) -> object:
        value = None if row[0] is None else Decimal(row[0])
        return "NaN" if value is not None and value.is_nan() else value

    got = asyncio.run(world.answer(executor, sql))
    assert [number(r) for r in got] == [number(r) for r in judge.run(sql)]


@pytest.mark.parametrize("dividend", ["n", "y", "1"])
def test_division_by_zero_is_22012(world: World, executor: LocalExecutor, dividend: str) -> None:
    with pytest.raises(SqlError) as caught:
        asyncio.run(world.answer(executor, f"SELECT sum({dividend} / (m - m)) FROM d"))
    assert caught.value.sqlstate == "22012"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(x) FROM v WHERE x > 1 AND x < 1e37",  # 38 digits and 24 places
        "SELECT sum(x) FROM v WHERE x = 'NaN'",
        "SELECT sum(x) FROM v WHERE x = 'Infinity'",
        "SELECT avg(x) FROM v WHERE x = 'NaN'",
        "SELECT x + 1 FROM v WHERE x = '-Infinity'",
        "SELECT x * x FROM v WHERE x > 1e20 AND x < 1e37",
        "SELECT sum(x) FROM (SELECT x FROM v WHERE x = 99999999999999999999999999999999999999 "
        "UNION ALL SELECT 1::numeric) q",
    ],
)
def test_what_38_digits_do_not_hold_is_refused_by_name(
    world: World, executor: LocalExecutor, sql: str
) -> None:
    with pytest.raises(SqlError) as caught:
        asyncio.run(world.answer(executor, sql))
    assert (caught.value.sqlstate, caught.value.message) == BEYOND
