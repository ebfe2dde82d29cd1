"""Messages of many megabytes, read a piece at a time: one long copy or conversion would hold up every connection.

    Query, Parse, Bind, FunctionCall of LONG_BYTES or more ──> pieces of PIECE_BYTES, a turn of the loop
    between two ──> what ``decode`` gives

A text is put together by ``pgwire.long.values``, bytes in a ``BytesIO``, so a piece costs what it is long.
What is not as it should be ``decode`` says, given what is short of it. Texts that are not UTF-8, from
CONVERTED_BYTES on, are converted here, too: that takes time linear in their length, and gives way in steps of
the strand it runs on (``pgwire.give_way``). A thread would want the interpreter at the same time as all
others, who would wait for it a switching interval each time.

The reading is the backend's to wait for (``Backend.long_query`` and its like): it is part of the statement,
which a cancel or time-out ends there, too.
"""

from __future__ import annotations

import asyncio
import struct
from io import BytesIO
from typing import Final

from pgwire.give_way import openly
from pgwire.long.values import cut_bytes, decoded
from pgwire.messages import decode
from pgwire.release import mind_huge

LONG_BYTES: Final = 1 << 20
PIECE_BYTES: Final = 1 << 20  # half a millisecond
CONVERTED_BYTES: Final = 1 << 14
_LOOKED_THROUGH: Final = 8 << 20
"""Bytes of one search for a byte: a millisecond or two."""
LONGEST: Final = 4
"""Bytes of a character."""


def is_long(size: int, read: decode.Read) -> bool:
    """Tell whether a message of ``size`` bytes, more than CONVERTED_BYTES, is to be read here."""
    return size > LONG_BYTES or read is not decode.utf8


async def query(data: bytes, start: int, stop: int, read: decode.Read) -> str:
    """As ``decode.query``."""
    end = await _nul(data, start, stop)
    if end < 0:
        return decode.query(b"?", 0, 1)  # says that the text does not end
    text = await _text(data, start, end, read)
    decode.finish(end + 1, stop)
    return text


async def parse(data: bytes, start: int, stop: int, read: decode.Read) -> tuple[str, str, tuple[int, ...]]:
    """As ``decode.parse``."""
    begin = await _nul(data, start, stop) + 1
    name = await _text(data, start, begin - 1, read) if begin else ""
    end = await _nul(data, begin, stop) if begin else -1
    if end < 0:
        return decode.parse(b"?", 0, 1)  # says that a text does not end
    text = await _text(data, begin, end, read)
    _, _, oids = decode.parse(short := b"\0" + data[end:stop], 0, len(short))
    return name, text, oids


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
    """Return a message with its long values made empty, and where those are. ``at``: where its list of format
    codes begins, behind which the values come.

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


async def _text(data: bytes, start: int, stop: int, read: decode.Read) -> str:
    """Return the text of ``data[start:stop]``. Raises RemoteProtocolError 22021, 22P05 where it is none."""
    if read is not decode.utf8:
        return openly(lambda: read(cut_bytes(data, start, stop)))
    try:
        # put together once: a text that grows is copied as a whole where a character comes that is wider than
        # all before
        return openly(decoded, memoryview(data)[start:stop])
    except UnicodeDecodeError as error:
        wrong = start + error.start
        return decode.utf8(data[wrong : min(wrong + LONGEST, stop)])  # says which bytes they are


async def _bytes(data: bytes, start: int, stop: int) -> bytes:
    view = memoryview(data)
    copy = BytesIO()
    for at in range(start, stop, PIECE_BYTES):
        copy.write(view[at : min(at + PIECE_BYTES, stop)])
        await asyncio.sleep(0)
    return mind_huge(copy.getvalue())
