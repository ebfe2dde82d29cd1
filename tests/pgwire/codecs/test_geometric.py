"""Geometric values on the wire: what binary forms are refused, and how corners are put in order."""

from __future__ import annotations

import struct

import pytest

from pgwire.codecs import domain
from pgwire.codecs.errors import DataError
from pgwire.codecs.geometric import box_of, same_point
from pgwire.codecs.registry import binary_input, text_output

NAN = float("nan")


def _doubles(*values: float) -> bytes:
    return struct.pack(f">{len(values)}d", *values)


@pytest.mark.parametrize(
    ("oid", "data", "sqlstate", "message"),
    [
        (domain.POINT, _doubles(1), "08P01", "insufficient data left in message"),
        (domain.POINT, _doubles(1, 2, 3), "22P03", "incorrect binary data format"),
        (
            domain.LINE,
            _doubles(0, 1e-7, 3),
            "22P03",
            "invalid line specification: A and B cannot both be zero",
        ),
        (domain.CIRCLE, _doubles(0, 0, -1), "22P03", 'invalid radius in external "circle" value'),
        (
            domain.PATH,
            b"\1" + struct.pack(">i", 0),
            "22P03",
            'invalid number of points in external "path" value',
        ),
        (domain.PATH, b"\1\0", "08P01", "insufficient data left in message"),
        (
            domain.PATH,
            b"\1" + struct.pack(">i", 2) + _doubles(1, 2),
            "08P01",
            "insufficient data left in message",
        ),
        (
            domain.POLYGON,
            struct.pack(">i", -1),
            "22P03",
            'invalid number of points in external "polygon" value',
        ),
        (domain.POLYGON, struct.pack(">i", 1) + _doubles(1, 2, 3), "22P03", "incorrect binary data format"),
    ],
)
def test_binary_forms_that_are_refused(oid: int, data: bytes, sqlstate: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        binary_input(oid, data)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_corners_are_put_in_order_and_nan_is_the_greatest() -> None:
    assert text_output(domain.BOX, binary_input(domain.BOX, _doubles(0, 5, 3, 1))) == "(3,5),(0,1)"
    assert text_output(domain.BOX, binary_input(domain.BOX, _doubles(0, NAN, NAN, 1))) == "(NaN,NaN),(0,1)"
    assert box_of((3, 1), (0, 5)) == ((3, 5), (0, 1))


def test_any_byte_but_zero_closes_a_path() -> None:
    data = struct.pack(">i", 1) + _doubles(1, 2)
    assert text_output(domain.PATH, binary_input(domain.PATH, b"\7" + data)) == "((1,2))"
    assert text_output(domain.PATH, binary_input(domain.PATH, b"\0" + data)) == "[(1,2)]"


def test_points_are_the_same_within_epsilon_and_where_both_are_nan() -> None:
    assert same_point((1, 2), (1.0000009, 2))
    assert not same_point((1, 2), (1.0000011, 2))
    assert same_point((NAN, 2), (NAN, 2))
    assert not same_point((NAN, 2), (NAN, 2.0000001))
    assert not same_point((NAN, 2), (1, 2))
