"""A long bytea in text is read from its bytes, and means what its text does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgwire.codecs.bytea import PIECE, of_digits, parse


@given(st.binary(max_size=300), st.booleans())
def test_digits_mean_what_their_text_does(value: bytes, upper: bool) -> None:
    text = value.hex().upper() if upper else value.hex()
    assert of_digits(f"\\x{text}".encode()) == parse(f"\\x{text}") == value


def test_pieces_are_put_together() -> None:
    value = bytes(range(251)) * (PIECE // 100)
    assert of_digits(b"\\x" + value.hex().encode()) == value


@pytest.mark.parametrize(
    "text", [b"\\x0", b"\\x0g", b"\\x 00", b"00", b"\\\\x00", b"\\x00\n1", b"\\x\xc3\xa9"]
)
def test_all_else_is_left_to_the_text(text: bytes) -> None:
    assert of_digits(text) is None
