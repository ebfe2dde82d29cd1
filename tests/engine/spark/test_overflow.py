"""An integer out of range is told as PostgreSQL tells it: with the type that the operation has there."""

from __future__ import annotations

from typing import Any

import pytest

from engine.executors.spark.errors import from_text
from engine.executors.spark.executor import compile_text
from engine.executors.spark.overflow import type_of
from planner import facts as f
from planner.base.errors import SqlError
from tests.engine.spark.conftest import Spark
from tests.support.lowered import World, sample_world

INT8_MIN = "(-9223372036854775807::int8 - b % 1 - 1)"
CASES = [
    ("SELECT a + 2147483647 FROM t", "integer"),
    ("SELECT b + 1 FROM t", "bigint"),
    ("SELECT a + 9223372036854775807 FROM t", "bigint"),
    ("SELECT a - 1 + (a - 2147483647 - 3) FROM t", "integer"),
    ("SELECT a * 2147483647 + b FROM t WHERE a > 1", "integer"),
    ("SELECT a + 1 + b * 2 FROM t", "bigint"),
    ("SELECT a::int2 * 32767::int2 FROM t", "smallint"),
    ("SELECT a::int2 + 32767::int2 FROM t", "smallint"),
    ("SELECT -(a::int2 - 32767::int2 - 2::int2) FROM t WHERE a = 1", "smallint"),
    ("SELECT -(a - 2147483647 - 2) FROM t WHERE a = 1", "integer"),
    ("SELECT abs(a - 2147483647 - 2) FROM t WHERE a = 1", "integer"),
    (f"SELECT abs{INT8_MIN} FROM t WHERE a = 1", "bigint"),
    ("SELECT (a - 2147483647 - 2) / (a - 2) FROM t WHERE a = 1", "integer"),
    (f"SELECT {INT8_MIN} / (a - 2) FROM t WHERE a = 1", "bigint"),
    ("SELECT (a * 100000)::int2 FROM t", "smallint"),
    ("SELECT b::int FROM t", "integer"),
    ("SELECT (c * 1000)::int FROM t", "integer"),
    ("SELECT (g * 10)::int8 FROM t WHERE a = 4", "bigint"),
    ("SELECT count(*) FROM t x JOIN t y ON x.a + 2147483647 > y.b", "integer"),
    ("SELECT sum(a * 1000000000) FROM t GROUP BY j", "integer"),
    ("SELECT max(a) + 2147483647 FROM t", "integer"),
    ("SELECT (SELECT max(s.a) + 2147483647 FROM s WHERE s.k = t.a) + b FROM t WHERE a = 1", "integer"),
    ("SELECT 'é\U0001f600\n''', b + 1 FROM t", "bigint"),
]  # fmt: skip
SPARK = "[ARITHMETIC_OVERFLOW] overflow. Use 'try_add' to tolerate overflow. SQLSTATE: 22003\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return sample_world(tmp_path_factory.mktemp("overflow"))


@pytest.mark.parametrize(
    ("sql", "at", "message"),
    [
        ("SELECT a + 1, b + 2 FROM t", "+ 1)", "integer out of range"),
        ("SELECT a + 1, b + 2 FROM t", "+ CAST(2 AS BIGINT))", "bigint out of range"),
        ("SELECT 'x\ny', a * 3, (a::int2 - 4::int2) * b FROM t", "* 3)", "integer out of range"),
        ("SELECT 'x\ny', a * 3, a::int2 - a::int2 FROM t", "- CAST(", "smallint out of range"),
        ("SELECT (a + 1) * (a + 2) FROM t", "* (", "integer out of range"),
        ("SELECT e FROM t", "FROM", "value out of range"),
    ],
)
@pytest.mark.parametrize("cast", [False, True])
def test_the_place_of_an_overflow_tells_its_type(
    world: World, sql: str, at: str, message: str, cast: bool
) -> None:
    """It is that of the operation, or of a cast around it that Spark has left out."""
    text = compile_text(world.bind(sql), None)
    whole = text.lowered.text
    end = whole.index(at)
    begin = max((i for i in range(end) if _opens(whole, i, end)), default=end)
    if cast and whole[:begin].endswith("CAST(("):
        begin -= len("CAST((")
    before = whole[:begin]
    place = (before.count("\n") + 1, begin - (before.rfind("\n") + 1) + 1)
    error = f"{SPARK}== SQL (line {place[0]}, position {place[1]}) ==\n...{whole[begin:end]}...\n   ^^^^\n"
    found = from_text(error, lambda said: type_of(said, whole, text.integers))
    assert (found.sqlstate, found.message) == ("22003", message)


def _opens(text: str, begin: int, end: int) -> bool:
    """Tell whether an operation whose operator is at ``end`` begins at ``begin``: behind its parenthesis."""
    between = text[begin:end]
    return text[begin - 1] == "(" and between.count("(") == between.count(")")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPARK, "value out of range"),
        ("[ARITHMETIC_OVERFLOW] Overflow in integral divide. Use 'try_divide'", "bigint out of range"),
        ("[BINARY_ARITHMETIC_OVERFLOW] 32767S + 1S caused overflow. Use `try_add`", "smallint out of range"),
        ('[CAST_OVERFLOW] The value 3 of the type "INT" cannot be cast to "SMALLINT" due', "smallint out of range"),
        ('[CAST_OVERFLOW] The value 3L of the type "BIGINT" cannot be cast to "INT" due', "integer out of range"),
    ],
)  # fmt: skip
def test_what_spark_itself_says_of_the_type(text: str, message: str) -> None:
    assert from_text(text).message == message


@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("small", [True, False], ids=["interpreted", "compiled"])
def test_an_integer_out_of_range_is_told_with_its_type(
    spark: Spark, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    if not small:
        monkeypatch.setattr("engine.executors.spark.runtime.SMALL_ROWS", 0)
    found = {sql: _error(spark, sql) for sql, _ in CASES}
    assert found == {sql: ("22003", f"{name} out of range") for sql, name in CASES}


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_a_parameter_s_type_counts(spark: Spark) -> None:
    assert _error(spark, "SELECT a + $1 FROM t", (2**31 - 1,), (f.INT4,))[1] == "integer out of range"
    assert _error(spark, "SELECT a + $1 FROM t", (2**63 - 1,), (f.INT8,))[1] == "bigint out of range"


def _error(
    spark: Spark, sql: str, params: tuple[Any, ...] = (), types: tuple[int, ...] = ()
) -> tuple[str, str]:
    try:
        return "", str(spark.rows(sql, params, types))
    except SqlError as error:
        return error.sqlstate, error.message
