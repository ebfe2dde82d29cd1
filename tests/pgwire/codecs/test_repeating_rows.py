"""Batches in which values repeat are written as their rows are one by one."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from pgwire import oids
from pgwire.codecs import domain, rows
from pgwire.codecs.rows import row_encoder
from pgwire.codecs.settings import CodecSettings

TYPES = (
    domain.OID, domain.NAME, domain.BOOL, domain.INT4, domain.CHAR, domain.TEXT, domain.INT8, domain.FLOAT8, domain.BOOL,
    domain.TIMESTAMP, domain.INT2, domain.TEXT, domain.BOOL, oids.TEXT_ARRAY, domain.FLOAT4, domain.BOOL, oids.ACLITEM_ARRAY,
)  # fmt: skip


def batch(seed: int, count: int) -> list[tuple[Any, ...]]:
    pick = random.Random(seed)
    few: dict[int, list[Any]] = {
        domain.NAME: ["a", "é"], domain.BOOL: [True, False, None], domain.INT4: [0, 1, None], domain.CHAR: ["r", "\x01"],
        domain.TEXT: ["", "x" * 9000, None, "ÿ"], domain.INT8: [1, 2**62], domain.FLOAT8: [0.0, -0.0, None],
        domain.TIMESTAMP: [0, None], domain.INT2: [1, -1], domain.FLOAT4: [-1.0, 0.0, -0.0, math.nan],
        oids.TEXT_ARRAY: [None, ("a", None), ("ü",), (), (("a",), ("b",))], oids.ACLITEM_ARRAY: [None, ("=r/postgres",)],
    }  # fmt: skip
    seen = {oid: values[: pick.randint(1, len(values))] for oid, values in few.items()}
    made = []
    for number in range(count):
        rare = pick.random() < 0.01  # met by no sample, perhaps
        made.append(
            tuple(
                number if oid == domain.OID else pick.choice(few[oid] if rare else seen[oid]) for oid in TYPES
            )
        )
    return made


@pytest.mark.parametrize("seed", range(8))
def test_values_that_repeat_are_written_as_they_are_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        rows, "LONG_BYTES", 1 << 30
    )  # so many rows with such values are cut before, otherwise
    encode = row_encoder(TYPES, (), CodecSettings())
    many = batch(seed, 700)
    data, count = encode(many)
    assert count == 700
    assert bytes(data) == b"".join(bytes(encode([row])[0]) for row in many)


def test_minus_zero_is_not_taken_for_zero() -> None:
    """Though it equals it, and stands where no sample is taken."""
    types = (domain.INT4, domain.FLOAT8, domain.INT4)
    encode = row_encoder(types, (), CodecSettings())
    many = [(1, -0.0 if n == 33 else 0.0, 2) for n in range(512)]
    assert rows._repeated(many, {0: 2, 1: 3, 2: 2}) == ((0, 3),)
    assert bytes(encode(many)[0]).count(b"-0") == 1
    assert bytes(encode([(1, 0.0, 2)] * 512)[0]) == bytes(encode([(1, 0.0, 2)])[0]) * 512


def test_what_repeats_is_looked_up() -> None:
    """Runs of numbers are found, and none where each row has its own."""
    gains = dict.fromkeys(range(4), 2)
    assert rows._repeated([(1, 2, None, n) for n in range(300)], gains) == ((0, 3),)
    assert rows._repeated([(n, n, n, n) for n in range(300)], gains) == ()
    assert rows._repeated([(n % 7, n % 5, n % 3, n) for n in range(300)], gains) == ()  # 105 together
