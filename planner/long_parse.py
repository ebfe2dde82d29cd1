"""The grammar's tree of a long text, in steps: what ``pglast`` adds to a parse are calls that keep the interpreter from all other threads.

    text ──► UTF-8, a piece at a time ──► pg_query_parse (others run) ──► JSON, decoded a piece at a time
                                                      └── error: message, and place in characters

``pglast.parser`` decodes the tree in one call (100 MB of a million targets: 100 ms), and for an error counts every character of the text (20 ms for each
million). Here the library that it comes with, libpg_query, is called as its header has it. For short texts ``pglast`` is the faster one.

Promises: pure, usable in any thread; where the calling code is open, it gives way between two pieces.
"""

from __future__ import annotations

import codecs
import ctypes
from collections.abc import Iterator
from typing import Final

from pglast import parser

from pgwire.give_way import give_way
from pgwire.long_values import PIECE, encoded, filled


class ParseError(Exception):
    """What the grammar refuses. Arguments: its message; the character at which, None where it is none of the text's."""


class _Error(ctypes.Structure):
    _fields_ = (
        ("message", ctypes.c_char_p), ("funcname", ctypes.c_char_p), ("filename", ctypes.c_char_p),
        ("lineno", ctypes.c_int), ("cursorpos", ctypes.c_int), ("context", ctypes.c_char_p),
    )  # fmt: skip


class _Result(ctypes.Structure):
    _fields_ = (
        ("tree", ctypes.c_void_p), ("stderr", ctypes.c_void_p), ("error", ctypes.POINTER(_Error)),
    )  # fmt: skip


_library: Final = ctypes.CDLL(parser.__file__)
_parse = _library.pg_query_parse
_parse.restype, _parse.argtypes = _Result, (ctypes.c_char_p,)
_free = _library.pg_query_free_parse_result
_free.restype, _free.argtypes = None, (_Result,)
_length = ctypes.CDLL(None).strlen
_length.restype, _length.argtypes = ctypes.c_size_t, (ctypes.c_void_p,)


def tree_of(text: str) -> str:
    """Return the tree of a text without NUL as JSON.

    Raises:
        ParseError
        UnicodeEncodeError: the text has lone surrogates.
    """
    result = _parse(encoded(text))
    try:
        if result.error:
            place = result.error.contents.cursorpos - 1  # counted in characters, from 1; 0: nowhere
            message = result.error.contents.message.decode()
            raise ParseError(message, place if 0 <= place < len(text) else None)
        size = _length(result.tree)
        ascii_only = all(piece.isascii() for piece in _pieces(result.tree, size))
        return filled(size, "" if ascii_only else "\x80", _decoded(result.tree, size))
    finally:
        _free(result)


def _pieces(address: int, size: int) -> Iterator[bytes]:
    for at in range(0, size, PIECE):
        yield ctypes.string_at(address + at, min(PIECE, size - at))
        give_way()


def _decoded(address: int, size: int) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    for piece in _pieces(address, size):
        yield decoder.decode(piece)
