"""Messages of many megabytes, read a piece at a time: one long copy or conversion would hold up every connection.

    Query, Parse, Bind, FunctionCall of LONG_BYTES or more ──> pieces of PIECE_BYTES, a turn of the loop between two ──> what ``decode`` gives

A text grows in place (CPython extends a string that nobody else has), bytes in a ``BytesIO``, so a piece costs what it
is long. What is not as it should be is left to ``decode``, which says so. Texts that are not UTF-8, from CONVERTED_BYTES on, are converted in
a thread: that takes time linear in their length, in steps between which others run.

The reading is the backend's to wait for (``Backend.long_query`` and its like): it is part of the statement, which a cancel or time-out ends there, too.
"""

from __future__ import annotations

import asyncio
import struct
from codecs import getincrementaldecoder
from io import BytesIO
from typing import Final

from pgwire import decode

LONG_BYTES: Final = 1 << 20
PIECE_BYTES: Final = 1 << 20  # half a millisecond
CONVERTED_BYTES: Final = 1 << 14
_LOOKED_THROUGH: Final = 8 << 20
"""Bytes of one search for a byte: a millisecond or two."""
LONGEST: Final = 4
"""Bytes of a character."""

_UTF8: Final = getincrementaldecoder("utf-8")


def is_long(size: int, read: decode.Read) -> bool:
    """Tell whether a message of ``size`` bytes, more than CONVERTED_BYTES, is to be read here."""
    return size > LONG_BYTES or read is not decode.utf8


async def query(data: bytes, start: int, stop: int, read: decode.Read) -> str:
    """As ``decode.query``."""
    if read is not decode.utf8:
        return await asyncio.to_thread(decode.query, data, start, stop, read)
    if await _nul(data, start, stop) != stop - 1:
        return decode.query(data, start, stop, read)
    return await _text(data, start, stop - 1)


async def parse(data: bytes, start: int, stop: int, read: decode.Read) -> tuple[str, str, tuple[int, ...]]:
    """As ``decode.parse``."""
    if read is not decode.utf8:
        return await asyncio.to_thread(decode.parse, data, start, stop, read)
    begin = await _nul(data, start, stop) + 1
    end = await _nul(data, begin, stop) if begin else -1
    if end < 0:
        return decode.parse(data, start, stop, read)
    name, _, oids = decode.parse(short := data[start:begin] + data[end:stop], 0, len(short), read)
    return name, await _text(data, begin, end), oids


async def bind(
    data: bytes, start: int, stop: int, read: decode.Read
) -> tuple[str, str, tuple[int, ...], list[bytes | None], tuple[int, ...]]:
    """As ``decode.bind``: of the message without its long parameters, which are put in afterwards."""
    try:
        at = data.index(0, data.index(0, start, stop) + 1, stop) + 1
        short, long = _without_long(data, start, at, stop)
    except (ValueError, struct.error):
        return decode.bind(data, start, stop, read)
    portal, statement, formats, params, results = decode.bind(short, 0, len(short), read)
    await _put_in(data, long, params)
    return portal, statement, formats, params, results


async def function_call(
    data: bytes, start: int, stop: int
) -> tuple[int, tuple[int, ...], list[bytes | None], int]:
    """As ``decode.function_call``, in the way of ``bind``."""
    try:
        short, long = _without_long(data, start, start + 4, stop)
    except (ValueError, struct.error):
        return decode.function_call(data, start, stop)
    oid, formats, args, result_format = decode.function_call(short, 0, len(short))
    await _put_in(data, long, args)
    return oid, formats, args, result_format


async def _nul(data: bytes, start: int, stop: int) -> int:
    """Return ``data.find(0, start, stop)``."""
    for at in range(start, stop, _LOOKED_THROUGH):
        found = data.find(0, at, min(at + _LOOKED_THROUGH, stop))
        if found >= 0:
            return found
        await asyncio.sleep(0)
    return -1


Places = dict[int, tuple[int, int]]
"""Where the bytes of long values are, by the values' numbers."""


def _without_long(data: bytes, start: int, at: int, stop: int) -> tuple[bytes, Places]:
    """Return a message with its long values made empty, and where those are. ``at``: where its list of format codes begins, behind which the values come.

    Raises ValueError or struct.error where it breaks off.
    """
    kept: list[bytes] = []
    long: Places = {}
    at += 2 + 2 * int.from_bytes(data[at : at + 2], "big")
    count = int.from_bytes(data[at : at + 2], "big")
    at += 2
    begin = start
    for number in range(count):
        (length,) = struct.unpack_from(">i", data, at)
        at += 4
        if at + length > stop:
            raise ValueError
        if length > PIECE_BYTES:
            kept += (data[begin : at - 4], bytes(4))
            long[number] = (at, at + length)
            begin = at + length
        at += max(length, 0)
    kept.append(data[begin:stop])
    return b"".join(kept), long


async def _put_in(data: bytes, long: Places, values: list[bytes | None]) -> None:
    for number, (begin, end) in long.items():
        values[number] = await _bytes(data, begin, end)


async def _text(data: bytes, start: int, stop: int) -> str:
    """Return the UTF-8 text of ``data[start:stop]``. Raises RemoteProtocolError 22021 where it is none."""
    view = memoryview(data)
    decoder = _UTF8()
    text = ""
    at = start
    while True:
        begun = at - len(decoder.getstate()[0])  # the piece before may have ended within a character
        end = min(at + PIECE_BYTES, stop)
        try:
            text += decoder.decode(view[at:end], end == stop)
        except UnicodeDecodeError as error:
            wrong = begun + error.start
            return decode.utf8(data[wrong : min(wrong + LONGEST, stop)])  # says which bytes they are
        if end == stop:
            return text
        at = end
        await asyncio.sleep(0)


async def _bytes(data: bytes, start: int, stop: int) -> bytes:
    view = memoryview(data)
    copy = BytesIO()
    for at in range(start, stop, PIECE_BYTES):
        copy.write(view[at : min(at + PIECE_BYTES, stop)])
        await asyncio.sleep(0)
    return copy.getvalue()
