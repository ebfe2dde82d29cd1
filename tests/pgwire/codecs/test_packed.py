"""Rows as bytes that only the process itself reads again: what is read is what was packed, whatever class it is of."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pgwire.bounded import bounded
from pgwire.codecs.system import RecordValue
from pgwire.codecs.users.packed import pack_rows, unpack_rows

VALUES: list[Any] = [
    None, True, 0, -(2**63), 2**64 - 1, 1.5, float("inf"), "", "é", b"\x00", Decimal("1.50"), Decimal("NaN"), Decimal("1e200"),
    (), (1, (2, None)), bounded((1, 2), (0,)), RecordValue((1, "x"), (23, 25)), RecordValue((), ()),
    RecordValue(((1, 2), RecordValue((Decimal("2.0"),), (1700,), ("n",), (-1,))), (1007, 2249), ("a", "r")), (RecordValue((1,), (23,)),),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_rows_are_read_as_they_were_packed(value: Any) -> None:
    [(read, behind)] = unpack_rows(pack_rows([(value, 7)]))
    assert behind == 7
    assert type(read) is type(value)
    assert repr(read) == repr(value)
    if isinstance(value, RecordValue):
        assert (read.types, read.names, read.typmods) == (value.types, value.names, value.typmods)
