"""Quotients inside a query on Spark: the short way, the long one and Python's kernel give the same digits and scale."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from planner.builtins import numeric
from planner.lower import division
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
    values = ", ".join(f"({n}, {x}::numeric(17,2), {y}::bigint)" for n, (x, y) in enumerate(cases))
    sql = f"SELECT q FROM (SELECT n, x / y AS q FROM (VALUES {values}) v (n, x, y)) s ORDER BY n"
    expected = [
        (format(numeric.div(Decimal(x).quantize(Decimal("0.01")), Decimal(y)), "f"),) for x, y in cases
    ]
    found = spark.rows(sql)
    assert [pair for pair in zip(cases, found, expected, strict=True) if pair[1] != pair[2]] == []
    monkeypatch.setattr(division, "_short", lambda d, left, right: None)
    assert spark.rows(sql) == expected
