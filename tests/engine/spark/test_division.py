"""Numerics inside a query on Spark: each way to divide and Python's kernel give the same digits and scale; all numbers compare."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from planner.base.errors import SqlError
from planner.functions.numbers import numeric
from planner.lower.kit import division
from tests.engine.spark.conftest import Spark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

EDGES = (
    ("1", "1"), ("1", "3"), ("2", "3"), ("-2", "3"), ("1", "9999"), ("9999", "10000"), ("10000", "9999"), ("9999.99", "1"),
    ("99999999.99", "9999"), ("0.01", "7"), ("0.00", "7"), ("-0.99", "7"), ("12345678901.23", "1"), ("9999999999999.99", "1"),
    ("9999999999999.99", "999999999999999"), ("10000000000000.00", "3"), ("1.00", "999999999999999"), ("1.00", "1000000000000000"),
    ("5.00", "10"), ("0.05", "-10"), ("1", "-3"), ("1000.00", "1000"), ("10000.00", "1"), ("9999.99", "9999"), ("20000.00", "2"),
)  # fmt: skip


def pairs(seed: int, count: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        units = rng.randrange(10 ** rng.randint(1, 17)) * rng.choice((1, 1, -1))
        made.append((format(Decimal(units).scaleb(-2), "f"), str(rng.randint(1, 10 ** rng.randint(1, 17)))))
    return made


def test_every_way_gives_the_same_digits(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [*EDGES, *pairs(1, 400)]
    values = ", ".join(f"({n}, {x}::numeric(17,2), {y}::numeric(17,0))" for n, (x, y) in enumerate(cases))
    sql = f"SELECT q FROM (SELECT n, x / y AS q FROM (VALUES {values}) v (n, x, y)) s ORDER BY n"
    expected = [
        (format(numeric.div(Decimal(x).quantize(Decimal("0.01")), Decimal(y)), "f"),) for x, y in cases
    ]
    found = spark.rows(sql)
    assert [pair for pair in zip(cases, found, expected, strict=True) if pair[1] != pair[2]] == []
    monkeypatch.setattr(division, "_bounded", lambda d, left, right, digits: None)
    assert spark.rows(sql) == expected
    monkeypatch.setattr(division, "_short", lambda d, left, right: None)
    assert spark.rows(sql) == expected


def test_a_divisor_may_have_places_too(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        ("1.0", "0.003"),
        ("-123.4", "0.004"),
        ("0.0", "7.125"),
        ("99999.9", "99999.999"),
        ("0.1", "-12345.678"),
    ]
    values = ", ".join(f"({n}, {x}::numeric(6,1), {y}::numeric(8,3))" for n, (x, y) in enumerate(cases))
    rows = f"(VALUES {values}, (9, NULL, 0::numeric(8,3)), (10, 1::numeric(6,1), NULL)) v (n, x, y)"
    sql = f"SELECT q FROM (SELECT n, x / y AS q FROM {rows}) s ORDER BY n"
    expected: list[tuple[str | None, ...]] = [
        (format(numeric.div(Decimal(x), Decimal(y)), "f"),) for x, y in cases
    ]
    expected += [(None,), (None,)]
    assert spark.rows(sql) == expected
    with pytest.raises(SqlError) as caught:
        spark.rows(
            "SELECT q FROM (SELECT x / y AS q FROM (VALUES (1.5::numeric(6,1), 0.0::numeric(8,3))) v (x, y)) s ORDER BY 1"
        )
    assert caught.value.sqlstate == "22012"


UNUSUAL = (
    "0", "0.00", "1e-30", "-1e-30", "1", "1.0", "1.0000000000000000000000", "-1", "-1.00000000000000000000", "0.3", "-0.3",
    "999999999999999999", "1000000000000000000.0", "-1000000000000000000.0000000000000000001",
    "1000000000000000000.0000000000000000001", "99999999999999999999999999999999999999", "12345678901234567890.12345",
    "0.000000000000000001", "0.0000000000000000001", "NaN", "Infinity", "-Infinity",
)  # fmt: skip


def test_numbers_of_every_size_and_scale_compare(spark: Spark) -> None:
    values = ", ".join(f"({n}, numeric '{x}')" for n, x in enumerate(UNUSUAL))
    rows = f"(VALUES {values}, ({len(UNUSUAL)}, NULL))"
    tests = ", ".join(f"a.x {op} b.x" for op in ("<", "<=", "=", "<>", ">=", ">"))
    found = spark.rows(f"SELECT {tests} FROM {rows} a (n, x), {rows} b (n, x) ORDER BY a.n, b.n")

    def rank(text: str) -> tuple[int, Decimal]:
        special = {"NaN": 2, "Infinity": 1, "-Infinity": -1}.get(text, 0)
        return special, Decimal(0 if special else text)

    ranks = [rank(text) for text in UNUSUAL]
    expected: list[tuple[str | None, ...]] = []
    for x in (*ranks, None):
        for y in (*ranks, None):
            if x is None or y is None:
                expected.append((None,) * 6)
            else:
                results = (x < y, x <= y, x == y, x != y, x >= y, x > y)
                expected.append(tuple("t" if r else "f" for r in results))
    assert found == expected
