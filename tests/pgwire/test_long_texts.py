"""Texts of any length that are read as values of short types: what is wrong with them is said as of short ones."""

from __future__ import annotations

import pytest

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_input

SMALL, INT4, INT8, OID, BOOL, FLOAT4, FLOAT8, NUMERIC, DATE, TIME, STAMP, SPAN = (
    21, 23, 20, 26, 16, 700, 701, 1700, 1082, 1083, 1114, 1186,
)  # fmt: skip
MANY = 300_000


@pytest.mark.parametrize("type_oid", [SMALL, INT4, INT8, OID])
@pytest.mark.parametrize("fill", [" ", "0", "\t0", " +0"])
def test_what_may_stand_before_a_number_counts_for_nothing(type_oid: int, fill: str) -> None:
    if len(fill) > 1:
        text = fill[:-1] * MANY + fill[-1] * MANY if fill[0] == "\t" else " +" + "0" * MANY
    else:
        text = fill * MANY
    assert text_input(type_oid, text + "12 ") == 12


@pytest.mark.parametrize("type_oid", [SMALL, INT4, INT8, OID])
@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("x" * MANY, "22P02"), ("1" * MANY, "22003"), ("1" * MANY + "x", "22003"), (" " * MANY + "x", "22P02"), (" " * MANY, "22P02"),
        ("-" * MANY, "22P02"), ("0" * MANY + "x", "22P02"), ("1 " * MANY, "22P02"), ("7" + "x" * MANY, "22P02"),
    ],
)  # fmt: skip
def test_a_long_text_that_is_no_integer(type_oid: int, text: str, state: str) -> None:
    with pytest.raises(DataError) as caught:
        text_input(type_oid, text)
    assert caught.value.sqlstate == state
    assert text in caught.value.message


@pytest.mark.parametrize("type_oid", [FLOAT4, FLOAT8, NUMERIC])
def test_long_texts_of_numbers_with_fractions(type_oid: int) -> None:
    assert text_input(type_oid, " " * MANY + "1.5") == 1.5
    with pytest.raises(DataError, match=r"out of range|overflows"):
        text_input(type_oid, "1" * MANY)
    with pytest.raises(DataError) as caught:
        text_input(type_oid, "x" * MANY)
    assert caught.value.sqlstate == "22P02"


@pytest.mark.parametrize("type_oid", [DATE, TIME, STAMP, SPAN])
@pytest.mark.parametrize("text", ["x" * MANY, "1" * MANY, "1:" * MANY, "+" + " " * MANY])
def test_a_long_text_that_is_no_time(type_oid: int, text: str) -> None:
    """PostgreSQL has room for 128 to 255 characters of fields, and says so to what is longer."""
    with pytest.raises(DataError) as caught:
        text_input(type_oid, text)
    assert caught.value.sqlstate == "22007"
    assert text in caught.value.message


def test_blanks_around_times_and_booleans_count_for_nothing() -> None:
    blank = " " * MANY
    assert text_input(DATE, f"{blank}2000-01-01{blank}") == text_input(DATE, "2000-01-01")
    assert text_input(BOOL, f"{blank}yes{blank}") is True
    with pytest.raises(DataError, match="invalid input syntax for type boolean"):
        text_input(BOOL, "yes" * MANY)
