"""A long bytea is made of another without a copy in between: where it is an eighth of ``memory``, each one counts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import pytest

from pgwire.codecs import bytea as codec
from planner.functions.text import bytea

SIZE: Final = 8 << 20
VALUE: Final = bytes(range(256)) * (SIZE // 256)
DIGITS: Final = VALUE.hex()
WAYS: Final[dict[str, tuple[Callable[[], Any], Any]]] = {
    "substring": (lambda: bytea.substring(VALUE, 2), VALUE[1:]),
    "overlay": (lambda: bytea.overlay(VALUE, b"new", 1000, 5), VALUE[:999] + b"new" + VALUE[1004:]),
    "set_byte": (lambda: bytea.set_byte(VALUE, 7, 0), VALUE[:7] + b"\0" + VALUE[8:]),
    "set_bit": (lambda: bytea.set_bit(VALUE, 0, 1), b"\1" + VALUE[1:]),
    "||": (lambda: bytea.byteacat(VALUE, b"x"), VALUE + b"x"),
    "encode": (lambda: bytea.encode(VALUE, "hex"), DIGITS),
    "input": (lambda: codec.parse_hex(DIGITS), VALUE),
    "output": (lambda: codec.show_hex(VALUE), "\\x" + DIGITS),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_but_the_result_is_made(way: str) -> None:
    make, wanted = WAYS[way]
    tracemalloc.start()
    try:
        made = make()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made == wanted
    assert peak < len(wanted) + SIZE // 2, f"{peak / len(wanted):.1f} times the result"
