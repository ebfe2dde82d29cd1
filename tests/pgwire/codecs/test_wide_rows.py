"""Encoders of very many columns, which are compiled in parts: the cells of each column's own encoder, one behind the other."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pgwire.codecs import domain
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.writing import copy_row_encoder
from pgwire.codecs.rows import PART, WIDE, row_encoder
from pgwire.codecs.settings import CodecSettings

OIDS = (domain.INT4, domain.TEXT, domain.NUMERIC, domain.BOOL, domain.TIMESTAMP)
VALUES: tuple[Any, ...] = (7, "a\tb é", Decimal("1.50"), True, None)
WIDTHS = (WIDE, WIDE + 1, WIDE + PART - 1, 5 * PART, 1664)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("format_", [0, 1])
def test_a_row_is_made_of_its_cells(width: int, format_: int) -> None:
    settings = CodecSettings()
    oids = tuple(OIDS[i % 5] for i in range(width))
    row = tuple(VALUES[i % 5] for i in range(width))
    cells = b"".join(
        bytes(row_encoder((oid,), (format_,), settings)([(value,)])[0][7:])
        for oid, value in zip(oids, row, strict=True)
    )
    expected = b"D" + (len(cells) + 6).to_bytes(4, "big") + width.to_bytes(2, "big") + cells
    assert row_encoder(oids, (format_,), settings)([row, row]) == (bytearray(expected * 2), 2)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("framed", [False, True])
def test_a_line_is_made_of_its_cells(width: int, framed: bool) -> None:
    settings, options = CodecSettings(), CopyOptions()
    oids = tuple(OIDS[i % 5] for i in range(width))
    row = tuple(VALUES[i % 5] for i in range(width))
    cells = [
        copy_row_encoder((oid,), options, settings)([(value,)])[0][:-1]
        for oid, value in zip(oids, row, strict=True)
    ]
    line = b"\t".join(cells) + b"\n"
    expected = b"d" + (len(line) + 4).to_bytes(4, "big") + line if framed else line
    assert copy_row_encoder(oids, options, settings, framed=framed)([row, row]) == (expected * 2, 2)
