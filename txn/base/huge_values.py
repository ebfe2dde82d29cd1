"""Texts and byte strings that are large enough to be worth not being copied into Arrow or the log.

(1, b"…64 MB…", "a")  ──runs_of: a table by itself──►  c2: offsets 0, n ── data: where the value lies
"""

from __future__ import annotations

import ctypes
from array import array
from codecs import getincrementaldecoder
from collections.abc import Callable, Generator, Iterator, Sequence
from mmap import mmap
from typing import Any, Final

import pyarrow as pa

from txn.base.types import Row

SHARED_BYTES: Final = 1 << 20
met = False
"""Whether a value of so much has come out of a column."""
LONG_LIST: Final = 4096
"""Elements of a list from which on it is made apart from others, and minded."""
mind: Callable[[Any], Any] = id
"""Told of long lists that were read, on the event loop: whoever has the loop frees them piece by piece once
nobody has them any more."""
SLOW_BYTES: Final = 4 << 20
"""Bytes of a value from which on reading it from a part is worth steps: two milliseconds."""

_utf8: Final = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
_utf8.argtypes = (ctypes.py_object, ctypes.POINTER(ctypes.c_ssize_t))
_utf8.restype = ctypes.c_void_p


def is_huge(value: Any) -> bool:
    """Tell whether a value is one of those."""
    return (type(value) is bytes or type(value) is str) and len(value) >= SHARED_BYTES


def minded(row: Row) -> None:
    """Mind the long lists of a row that was read."""
    for value in row:
        if isinstance(value, tuple) and len(value) > LONG_LIST:
            mind(value)


def has_huge(values: Sequence[str | bytes | None]) -> bool:
    """Tell whether there is one among texts or byte strings."""
    return max(map(len, filter(None, values)), default=0) >= SHARED_BYTES


def bytes_of(value: str | bytes) -> Any:
    """Return a value's bytes, UTF-8 of a text, as an Arrow buffer that is no copy as far as the value has the
    same bytes in memory.
    """
    if isinstance(value, bytes):
        return pa.py_buffer(value)
    if value.isascii():
        size = ctypes.c_ssize_t()
        return pa.foreign_buffer(_utf8(value, ctypes.byref(size)), size.value, value)
    return pa.py_buffer(
        value.encode()
    )  # Arrow's way to them would have Python keep them beside the characters


def views_of(values: Any) -> Iterator[memoryview | None]:
    """Yield the bytes of each value of an Arrow array of texts or bytes, None for NULL: views, where its
    items (``values[i]``) are copies.

    A copy of hundreds of megabytes is made with the interpreter held, in whatever thread.
    """
    _, offsets, data = values.buffers()
    large = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    at = memoryview(offsets).cast("q" if large else "i")[values.offset :] if len(values) else ()
    whole = memoryview(b"") if data is None else memoryview(data).cast("B")
    for number, valid in enumerate(values.is_valid().to_pylist()):
        yield whole[at[number] : at[number + 1]] if valid else None


def utf8_pieces(text: str) -> Iterator[bytes]:
    """Yield the bytes of a huge text in UTF-8, a millisecond's work at a time."""
    for at in range(0, len(text), _PIECE):
        yield text[at : at + _PIECE].encode()


_PIECE: Final = SHARED_BYTES


def python_of(data: memoryview, is_text: bool) -> Generator[None, None, str | bytes]:
    """Return a huge value as Python's from its bytes, a millisecond's work between two yields: it is
    allocated once, as wide as it has to be, and filled.
    """
    if not is_text:
        made: bytes = _new_bytes(None, len(data))
        at = _bytes_at(made)
        for start in range(0, len(data), _PIECE):
            piece = bytes(data[start : start + _PIECE])
            ctypes.memmove(at + start, piece, len(piece))
            yield
        return made
    decoder, pieces = _Utf8(), []
    for start in range(0, len(data), _PIECE):
        pieces.append(decoder.decode(data[start : start + _PIECE], start + _PIECE >= len(data)))
        yield
    address = _new_text(sum(map(len, pieces)), max(map(_widest, pieces), default=_ASCII))
    if not address:
        raise MemoryError
    try:
        at = 0
        for number, text in enumerate(pieces):
            if _fill(address, at, text, 0, len(text)) != len(text):
                raise SystemError("a text was not copied")
            at += len(text)
            pieces[number] = ""
            yield
        return str(ctypes.cast(ctypes.c_void_p(address), ctypes.py_object).value)
    finally:
        _drop(address)


def _widest(text: str) -> int:
    """Return the bound of the form that CPython has for a text that was just decoded."""
    if text.isascii():
        return _ASCII
    if len(text) == 1:  # one letter may be everybody's, which has its encoded form beside it
        return next(bound for bound in _BOUNDS.values() if ord(text) <= bound)
    return _BOUNDS[(text.__sizeof__() - _HEAD) // (len(text) + 1)]


_Utf8: Final = getincrementaldecoder("utf-8")
_ASCII: Final = 0x7F
_BOUNDS: Final = {1: 0xFF, 2: 0xFFFF, 4: 0x10FFFF}
_HEAD: Final = (
    "\xe9\xe8".__sizeof__() - 3
)  # two letters: a text of one is everybody's, and may have its encoded form beside it
_new_bytes: Final = ctypes.pythonapi.PyBytes_FromStringAndSize
_new_bytes.restype, _new_bytes.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t)
_bytes_at: Final = ctypes.pythonapi.PyBytes_AsString
_bytes_at.restype, _bytes_at.argtypes = ctypes.c_void_p, (ctypes.py_object,)
_new_text: Final = ctypes.pythonapi.PyUnicode_New
_new_text.restype, _new_text.argtypes = ctypes.c_void_p, (ctypes.c_ssize_t, ctypes.c_uint32)
_fill: Final = ctypes.pythonapi.PyUnicode_CopyCharacters
_fill.restype = ctypes.c_ssize_t
_fill.argtypes = (
    ctypes.c_void_p, ctypes.c_ssize_t, ctypes.py_object, ctypes.c_ssize_t, ctypes.c_ssize_t,
)  # fmt: skip
_drop: Final = ctypes.pythonapi.Py_DecRef
_drop.restype, _drop.argtypes = None, (ctypes.c_void_p,)


def shared(value: str | bytes, type_: Any) -> Any:
    """Return a huge value as an array of one, which Arrow has not copied."""
    return _array_of(bytes_of(value), type_)


def shared_slowly(text: str, type_: Any) -> Generator[None, None, Any]:
    """As ``shared``, a millisecond's work between two yields where a text has other bytes in memory."""
    if text.isascii():
        return shared(text, type_)
    size = 0
    for piece in utf8_pieces(text):
        size += len(piece)
        yield
    data = mmap(-1, size)  # whose pages are touched as they are written
    for piece in utf8_pieces(text):
        data.write(piece)
        yield
    return _array_of(pa.py_buffer(data), type_)


def _array_of(data: Any, type_: Any) -> Any:
    return pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(array("i", (0, data.size))), data])


def runs_of(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return from where to where rows make one table: each with a huge value is one by itself."""
    found: list[tuple[int, int]] = []
    done = 0
    for at, row in enumerate(rows):
        if any(map(is_huge, row)):
            if at > done:
                found.append((done, at))
            found.append((at, at + 1))
            done = at + 1
    if done < len(rows) or not rows:
        found.append((done, len(rows)))
    return found
