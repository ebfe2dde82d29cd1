"""Values of any type as bytes that are read back without it: what composite types and ranges keep beside what
is compared of them.

MessagePack: numerics are extension 1 (their text), since comparison forgets their display scale; an array
with lower bounds other than 1 is extension 2 (the bounds, then the items). Rows that only the process itself
reads again (``pack_rows`` and ``unpack_rows``) may hold records, extension 3: what they know of their
columns, then the items. Extension 3 is unknown in what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from pgwire.bounded import BoundedArray, bounded
from pgwire.codecs.errors import DataError
from pgwire.codecs.system import RecordValue

_NUMERIC: Final = 1
_BOUNDED: Final = 2
_RECORD: Final = 3


def pack_values(values: Iterable[Any]) -> bytes:
    """Return values as bytes."""
    return _encode([_plain(value) for value in values])


def unpack_values(data: bytes | memoryview) -> list[Any]:
    """Return the values that ``pack_values`` got. Raises DataError XX001 for what it never writes."""
    return [_restored(item) for item in _decode(data)]


def pack_rows(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """Return rows as bytes, which ``unpack_rows`` reads; not for what is stored: that has no records of
    unknown types.
    """
    return _encode([_with_records(row) for row in rows])


def unpack_rows(data: bytes | memoryview) -> list[tuple[Any, ...]]:
    """Return the rows that ``pack_rows`` got."""
    return [_restored(row) for row in _decode_row(data)]


def _with_records(value: Any) -> Any:
    if type(value) is RecordValue:
        items = [_with_records(item) for item in value]
        return msgspec.msgpack.Ext(_RECORD, _encode([value.types, value.names, value.typmods, items]))
    if isinstance(value, tuple):
        items = [_with_records(item) for item in value]
        if type(value) is BoundedArray:
            return msgspec.msgpack.Ext(_BOUNDED, _encode([list(value.lows), items]))
        return items
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return msgspec.msgpack.Ext(_NUMERIC, str(value).encode())
    if isinstance(value, tuple):
        items = [_plain(item) for item in value]
        if type(value) is BoundedArray:
            return msgspec.msgpack.Ext(_BOUNDED, _encode([list(value.lows), items]))
        return items
    return value


def _restored(value: Any) -> Any:
    return tuple([_restored(item) for item in value]) if isinstance(value, list) else value


def _extended(code: int, data: memoryview) -> Any:
    if code == _NUMERIC:
        return Decimal(bytes(data).decode())
    if code == _BOUNDED:
        lows, items = _decode(data)
        return bounded(_restored(items), tuple(lows))
    raise DataError("XX001", f"a value in a row has the unknown extension type {code}")


def _extended_with_records(code: int, data: memoryview) -> Any:
    if code == _BOUNDED:
        lows, items = _decode_row(data)
        return bounded(_restored(items), tuple(lows))
    if code == _RECORD:
        types, names, typmods, values = _decode_row(data)
        return RecordValue(_restored(values), tuple(types), tuple(names), tuple(typmods))
    return _extended(code, data)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list, ext_hook=_extended).decode
_decode_row = msgspec.msgpack.Decoder(list, ext_hook=_extended_with_records).decode
