"""Values between a referencing column and the referenced one: equal values meet, others do not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.changes.constraints.values import NO_SUCH_VALUE, assigner, converter, same_image
from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from planner.facts import BPCHAR, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, TEXT, TIMESTAMP, VARCHAR
from planner.types import SqlType


def char(width: int) -> SqlType:
    return SqlType(BPCHAR, width + 4)


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (SqlType(INT4), SqlType(INT8), 7, 7),
        (SqlType(INT4), SqlType(NUMERIC), 7, Decimal(7)),
        (SqlType(NUMERIC), SqlType(INT4), Decimal("7.00"), 7),
        (SqlType(NUMERIC), SqlType(INT4), Decimal("7.5"), NO_SUCH_VALUE),
        (SqlType(NUMERIC), SqlType(INT4), Decimal("NaN"), NO_SUCH_VALUE),
        (SqlType(NUMERIC), SqlType(INT4), Decimal("Infinity"), NO_SUCH_VALUE),
        (SqlType(INT8), SqlType(FLOAT8), 3, 3.0),
        (SqlType(FLOAT4), SqlType(FLOAT8), 1.5, 1.5),
        (char(5), char(3), "ab   ", "ab "),
        (char(5), char(3), "abcd ", NO_SUCH_VALUE),
        (char(3), char(5), "ab ", "ab   "),
        (char(5), SqlType(TEXT), "ab   ", "ab"),
        (SqlType(VARCHAR, 14), SqlType(TEXT), "ab ", "ab "),
    ],
)
def test_a_value_becomes_the_equal_one(source: SqlType, target: SqlType, value: Any, expected: Any) -> None:
    convert = converter(source, target)
    assert convert is not None
    assert convert(value) == expected


@pytest.mark.parametrize("target", [INT4, NUMERIC])
def test_many_values_may_have_one_float(target: int) -> None:
    assert converter(SqlType(FLOAT8), SqlType(target)) is None


def test_types_that_are_not_compared_are_refused_by_name() -> None:
    with pytest.raises(SqlError) as caught:
        converter(SqlType(DATE), SqlType(TIMESTAMP))
    assert caught.value.sqlstate == "0A000"
    assert "from date to timestamp without time zone" in caught.value.message


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_go_to_numeric_and_back(value: int) -> None:
    there, back = converter(SqlType(INT8), SqlType(NUMERIC)), converter(SqlType(NUMERIC), SqlType(INT8))
    assert there is not None
    assert back is not None
    assert back(there(value)) == value


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (SqlType(INT8), SqlType(INT2), 32767, 32767),
        (SqlType(NUMERIC), SqlType(INT4), Decimal("2.5"), 3),
        (SqlType(FLOAT8), SqlType(INT4), 2.5, 2),
        (SqlType(INT4), SqlType(NUMERIC, ((5 << 16) | 2) + 4), 3, Decimal("3.00")),
        (char(5), SqlType(TEXT), "ab   ", "ab"),
    ],
)
def test_an_assigned_value_fits_its_column(
    source: SqlType, target: SqlType, value: Any, expected: Any
) -> None:
    assert assigner(source, target)(value) == expected


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        (SqlType(INT8), SqlType(INT2), 32768),
        (SqlType(INT8), SqlType(INT4), -(2**31) - 1),
        (SqlType(NUMERIC), SqlType(NUMERIC, ((3 << 16) | 1) + 4), Decimal(1000)),
        (SqlType(TEXT), SqlType(VARCHAR, 6), "abc"),
    ],
)
def test_what_does_not_fit_is_an_error(source: SqlType, target: SqlType, value: Any) -> None:
    with pytest.raises((SqlError, DataError)) as caught:
        assigner(source, target)(value)
    assert caught.value.sqlstate in ("22003", "22001")


def test_equal_numbers_may_be_stored_differently() -> None:
    assert same_image(Decimal("1.0"), Decimal("1.0"))
    assert not same_image(Decimal("1.0"), Decimal("1.00"))
    assert not same_image(0.0, -0.0)
    assert not same_image(None, 1)
    assert same_image(None, None)
