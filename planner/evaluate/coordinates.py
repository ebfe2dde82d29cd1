"""Subscripts of points, lines, segments and boxes: types of fixed length that PostgreSQL treats as arrays from 0 on.

    (point '(1,2)')[1]  ->  2          UPDATE t SET p[1] = 9          p is (1,9)
    (box '(1,2),(0,0)')[0]  ->  (1,2)

A value is bytes of which each part has as many (``pgwire.codecs.geometric``): eight are a double, sixteen a point.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from planner.base.errors import SqlError

_DOUBLE: Final = struct.Struct(">d")
Bounds = tuple[tuple[Any, Any], ...]


def coordinate(value: bytes | None, bounds: Bounds, count: int) -> Any:
    """Return a part of a value; NULL for one that it has not, and for more than one subscript. ``count``: of
    its parts.
    """
    if value is None or len(bounds) != 1:
        return None
    at = bounds[0][1]
    if at is None or not 0 <= at < count:
        return None
    size = len(value) // count
    part = value[at * size : (at + 1) * size]
    return _DOUBLE.unpack(part)[0] if size == _DOUBLE.size else part


def assign_coordinate(value: bytes | None, bounds: Bounds, new: Any, count: int) -> bytes | None:
    """Return a value with a part replaced; the value itself if it or the part is NULL. SqlError 2202E."""
    if value is None or new is None:
        return value
    if len(bounds) != 1:
        raise SqlError("2202E", "wrong number of array subscripts")
    at = bounds[0][1]
    if not 0 <= at < count:
        raise SqlError("2202E", "array subscript out of range")
    size = len(value) // count
    part = _DOUBLE.pack(new) if size == _DOUBLE.size else new
    return value[: at * size] + part + value[(at + 1) * size :]
