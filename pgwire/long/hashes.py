"""Hashes of texts and bytea of megabytes, computed in a thread while others run: Python's own hash, of which
each object keeps what was once computed.

    hashed(text) ── long, and not known yet ──► a thread, without the interpreter ──► kept in the object
         └── hash(text), text in a set, in a dict, in a tuple there ……………………………………………………… is there at once

A hash is one call of C, a millisecond and more for each megabyte. What has been hashed equals what it did
before, and hashes as everywhere else: it is the same function (``_Py_HashBytes``) over the same bytes, put
where the object would have put it. How CPython lays out its objects is asked when the module is imported, of
some of each kind; where that is not as expected, nothing is done ahead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, TypeVar

from pgwire.give_way import beside

T = TypeVar("T")

LONG: Final = 4 << 20
"""Characters or bytes from which on a hash takes five milliseconds."""
_HASH_AT: Final = 24
_STATE_AT: Final = 32
_BYTES_AT: Final = bytes.__basicsize__ - 1
_ASCII_AT: Final = "".__sizeof__() - 1
_WIDE_AT: Final = "\xe9".__sizeof__() - 2
_UNKNOWN: Final = -1
_WIDTHS: Final = (1, 2, 4)
_EXACT: Final = (str, bytes)


def _library() -> Callable[[int, int], int] | None:
    try:
        found = ctypes.CDLL(None)._Py_HashBytes
    except AttributeError:
        return None
    found.restype, found.argtypes = ctypes.c_ssize_t, (ctypes.c_void_p, ctypes.c_ssize_t)
    return found


_hash_bytes: Final = _library()


def _place(value: str | bytes) -> tuple[int, int]:
    """Return the address and the size of what is hashed of a value."""
    at = id(value)
    if isinstance(value, bytes):
        return at + _BYTES_AT, len(value)
    if value.isascii():
        return at + _ASCII_AT, len(value)
    width = ctypes.c_uint32.from_address(at + _STATE_AT).value >> 2 & 7
    return at + _WIDE_AT, len(value) * width if width in _WIDTHS else -1


def _kept(value: str | bytes) -> ctypes.c_ssize_t:
    return ctypes.c_ssize_t.from_address(id(value) + _HASH_AT)


def _as_expected() -> bool:
    if _hash_bytes is None:
        return False
    samples: list[str | bytes] = [b"b" * length for length in _LENGTHS]
    samples += [unit * length for length in _LENGTHS for unit in ("a", "\xe9", "\u20ac", "\U0001f600")]
    for value in samples:
        if _kept(value).value != _UNKNOWN or _place(value)[1] < 0:
            return False
        ahead = _hash_bytes(*_place(value))
        if hash(value) != ahead or _kept(value).value != ahead:
            return False
    return True


_LENGTHS: Final = (2, 7, 8, 100, 1001)
_ahead: Final = _as_expected()


def hashed(value: T) -> T:
    """Return ``value``; if it is a long text or bytea its hash is known by now."""
    if _ahead and isinstance(value, str | bytes) and type(value) in _EXACT and len(value) >= LONG:
        kept = _kept(value)
        if kept.value == _UNKNOWN:
            place = _place(value)
            if place[1] >= 0 and (found := beside(_computed, value, *place)) is not None:
                kept.value = found
    return value


def _computed(_value: Any, address: int, size: int) -> int:
    """Hash what lies there; ``_value``: has it, also where nobody waits any more."""
    if _hash_bytes is None:
        raise AssertionError("long values are hashed by a library that is not there")
    return _hash_bytes(address, size)
