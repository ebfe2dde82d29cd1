"""Messages of many megabytes, read a piece at a time: one long copy or conversion would hold up every connection.

    Query, Parse, Bind of LONG_BYTES or more ──> pieces of PIECE_BYTES, a turn of the loop between two ──> what ``decode`` gives

A text grows in place (CPython extends a string that nobody else has), bytes in a ``BytesIO``, so a piece costs what it
is long. What is not as it should be is left to ``decode``, which says so. Texts that are not UTF-8, from CONVERTED_BYTES on, are converted in
a thread: that takes time linear in their length, in steps between which others run.
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

_UTF8: Final = getincrementaldecoder("utf-8")


def is_long(size: int, read: decode.Read) -> bool:
    """Tell whether a message of ``size`` bytes, more than CONVERTED_BYTES, is to be read here."""
    return size > LONG_BYTES or read is not decode.utf8


async def query(data: bytes, start: int, stop: int, read: decode.Read) -> str:
    """As ``decode.query``."""
    if read is not decode.utf8:
        return await asyncio.to_thread(decode.query, data, start, stop, read)
    if data.find(0, start, stop) != stop - 1:
        return decode.query(data, start, stop, read)
    sql = await _text(data, start, stop - 1)
    return decode.query(data, start, stop, read) if sql is None else sql


async def parse(data: bytes, start: int, stop: int, read: decode.Read) -> tuple[str, str, tuple[int, ...]]:
    """As ``decode.parse``."""
    if read is not decode.utf8:
        return await asyncio.to_thread(decode.parse, data, start, stop, read)
    begin = data.find(0, start, stop) + 1
    end = data.find(0, begin, stop) if begin else -1
    if end < 0:
        return decode.parse(data, start, stop, read)
    name, _, oids = decode.parse(short := data[start:begin] + data[end:stop], 0, len(short), read)
    sql = await _text(data, begin, end)
    return decode.parse(data, start, stop, read) if sql is None else (name, sql, oids)


async def bind(
    data: bytes, start: int, stop: int, read: decode.Read
) -> tuple[str, str, tuple[int, ...], list[bytes | None], tuple[int, ...]]:
    """As ``decode.bind``: of the message without its long parameters, which are put in afterwards."""
    kept: list[bytes] = []
    long: dict[int, tuple[int, int]] = {}
    try:
        pos = data.index(0, data.index(0, start, stop) + 1, stop) + 1
        pos += 2 + 2 * int.from_bytes(data[pos : pos + 2], "big")
        count = int.from_bytes(data[pos : pos + 2], "big")
        pos += 2
        begin = start
        for number in range(count):
            (length,) = struct.unpack_from(">i", data, pos)
            pos += 4
            if pos + length > stop:
                return decode.bind(data, start, stop, read)
            if length > PIECE_BYTES:
                kept += (data[begin : pos - 4], bytes(4))
                long[number] = (pos, pos + length)
                begin = pos + length
            pos += max(length, 0)
        kept.append(data[begin:stop])
    except (ValueError, struct.error):
        return decode.bind(data, start, stop, read)
    short = b"".join(kept)
    portal, statement, formats, params, results = decode.bind(short, 0, len(short), read)
    for number, (begin, end) in long.items():
        params[number] = await _bytes(data, begin, end)
    return portal, statement, formats, params, results


async def _text(data: bytes, start: int, stop: int) -> str | None:
    """Return the UTF-8 text of ``data[start:stop]``, None where it is none."""
    view = memoryview(data)
    decoder = _UTF8()
    text = ""
    try:
        for at in range(start, stop, PIECE_BYTES):
            text += decoder.decode(view[at : min(at + PIECE_BYTES, stop)])
            await asyncio.sleep(0)
        text += decoder.decode(b"", True)
    except UnicodeDecodeError:
        return None
    return text


async def _bytes(data: bytes, start: int, stop: int) -> bytes:
    view = memoryview(data)
    copy = BytesIO()
    for at in range(start, stop, PIECE_BYTES):
        copy.write(view[at : min(at + PIECE_BYTES, stop)])
        await asyncio.sleep(0)
    return copy.getvalue()
