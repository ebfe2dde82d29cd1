"""The grammar's tree of a long text, in steps: what ``pglast`` adds to a parse are calls that keep the
interpreter from all other threads.

    text ──► UTF-8, a piece at a time ──► pg_query_parse (others run) ──► JSON, decoded a piece at a time ──►
    without_long_strings
                                                      └── error: message, and place in characters

``pglast.parser`` decodes the tree in one call (100 MB of a million targets: 100 ms), and for an error counts
every character of the text (20 ms for each million). Here the library that it comes with, libpg_query, is
called as its header has it. For short texts ``pglast`` is the faster one.

Promises: pure, usable in any thread; where the calling code is open, it gives way between two pieces.
"""

from __future__ import annotations

import codecs
import ctypes
from collections.abc import Iterator
from json import JSONDecoder
from typing import Final

from pglast import parser

from pgwire.give_way import give_way
from pgwire.long.values import PIECE, cut, encoded, filled, joined

STRETCH: Final = 1 << 16
"""Characters of a string of the tree that are decoded at once; shorter strings are left in it."""
STAND_IN: Final = "\0"
"""What the stand-in of a long string begins with, and no string of a tree has in it; its number follows."""


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


_decoder: Final = JSONDecoder()
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


def without_long_strings(tree: str) -> tuple[str, list[str]]:
    """Return the JSON of a tree with stand-ins for its long strings, and these strings, decoded: to JSON's
    decoder each is one step.

    Where nothing is quoted an object begins within a few characters. In a string there is a backslash before
    each quote, so that neither what an object begins with nor what stands between a key and its string is
    seen in one, its last characters apart.
    """
    parts: list[str] = []
    strings: list[str] = []
    done = at = 0
    while at < len(tree):
        if tree.find('{"', at, at + STRETCH) < 0 and (key := tree.rfind('":"', done, at)) >= 0:
            start = key + 3
            string, end = _string(tree, start)
            if len(string) > STRETCH // 2:
                parts += (cut(tree, done, start), f"\\u0000{len(strings)}")
                strings.append(string)
                done = end
            at = max(at, end)
        at += STRETCH
        give_way()
    return (joined([*parts, cut(tree, done)]), strings) if strings else (tree, strings)


def _string(tree: str, start: int) -> tuple[str, int]:
    """Return the string whose first character stands at ``start``, and where the quote behind it stands."""
    parts: list[str] = []
    while True:
        piece = tree[start : start + STRETCH]
        if not piece:  # it was the end of a string that the key was taken for
            return "", len(tree)
        escape = piece.rfind("\\", -6)
        if escape >= 0 and start + len(piece) < len(tree):  # it may go on behind the piece
            run = len(piece[: escape + 1].rstrip("\\"))
            piece = piece[: run or (escape + 1) & ~1]
        part, end = _decoder.raw_decode(f'"{piece}"')
        parts.append(part)
        if end < len(piece) + 2:
            return joined(parts), start + end - 2
        start += len(piece)
        give_way()
