"""Values of composite types order as their attributes do, one after the other, NULLs last."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from pgwire.codecs import domain
from pgwire.codecs.errors import DataError
from pgwire.codecs.users.composite import comparable, pack_row, parse_fields, unpack_row

# values of each type in PostgreSQL's order
ORDERED: dict[int, list[Any]] = {
    domain.BOOL: [False, True],
    domain.INT4: [-(2**31), -1, 0, 7, 2**31 - 1],
    domain.FLOAT8: [float("-inf"), -1.5, 0.0, 2.25, float("inf"), float("nan")],
    domain.NUMERIC: [Decimal("-Infinity"), Decimal("-10.5"), Decimal("0.00"), Decimal("2"), Decimal("NaN")],
    domain.TEXT: ["", "A", "a", "a\x01", "aa", "é"],
    domain.BYTEA: [b"", b"\x00", b"\x00\x00", b"\x00\x01", b"\x01"],
    domain.INTERVAL: [(0, -1, 0), (0, 0, 5), (1, 0, 0), (0, 31, 0)],
    domain.TIMETZ: [(0, -3600), (0, 0), (0, 3600)],
    domain.JSONB: ["[]", "null", '"a"', "1", "false", "true", '[1]', "[0, 0]", '{"a": 1}', '{"a": 2}'],
    1007: [(), (1,), (1, 2), (1, None), (2,)],
}  # fmt: skip


def value(values: list[Any], types: list[int]) -> bytes:
    return pack_row(values, range(len(values)), types, len(values))


@pytest.mark.parametrize("oid", ORDERED)
def test_one_attribute_orders_as_its_type_does(oid: int) -> None:
    keys = [comparable(value([item], [oid])) for item in [*ORDERED[oid], None]]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_attributes_count_one_after_the_other() -> None:
    texts, numbers = ["", "a", "b", None], [-1, 3, None]
    rows = list(product(texts, numbers))
    keys = [comparable(value(list(row), [domain.TEXT, domain.INT4])) for row in rows]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_what_differs_in_print_alone_is_equal_and_kept() -> None:
    types = [domain.NUMERIC, domain.BPCHAR, domain.FLOAT8]
    one, other = value([Decimal("1.0"), "a  ", 0.0], types), value([Decimal("1.00"), "a", -0.0], types)
    assert comparable(one) == comparable(other)
    assert str(unpack_row(one)) == "[Decimal('1.0'), 'a  ', 0.0]"
    assert str(unpack_row(other)) == "[Decimal('1.00'), 'a', -0.0]"


def test_an_attribute_that_came_later_is_null() -> None:
    before = pack_row([1], [0], [domain.INT4], 1)
    after = pack_row([1, None], [0, 2], [domain.INT4, domain.TEXT], 3)
    assert comparable(before) == comparable(after)


def test_arrays_and_rows_within_rows_come_back() -> None:
    inner = value([1, "x"], [domain.INT4, domain.TEXT])
    outer = value([((1, 2), (3, None)), inner, (1, 2, 3)], [1007, domain.BYTEA, domain.INTERVAL])
    assert unpack_row(outer) == [((1, 2), (3, None)), inner, (1, 2, 3)]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("(1,,x)", ["1", None, "x"]),
        (' ( a , "b, c" ,"") ', [" a ", " b, c ", ""]),
        ('("a""b",\\,c,"d\\"e")', ['a"b', ",c", 'd"e']),
    ],
)
def test_fields_are_read_as_postgresql_reads_them(text: str, fields: list[str | None]) -> None:
    assert list(parse_fields(text, 3)) == fields


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("1,2", "Missing left parenthesis."),
        ("(1)", "Too few columns."),
        ("(1,2,3)", "Too many columns."),
        ("(1,2", "Unexpected end of input."),
        ("(1,2)x", "Junk after right parenthesis."),
        ('(1,"2', "Unexpected end of input."),
    ],
)
def test_malformed_literals_are_told_as_by_postgresql(text: str, detail: str) -> None:
    with pytest.raises(DataError) as caught:
        list(parse_fields(text, 2))
    assert (caught.value.sqlstate, caught.value.detail) == ("22P02", detail)
