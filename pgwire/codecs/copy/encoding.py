r"""COPY FROM data in a client's encoding -> the same in UTF-8, which decoders of ``copy_in`` read.

    feed("1\t\x83")  ->  ""             feed("\x5c\n2\t")  ->  "1\tソ\n"           finish()  ->  "2\t"

No encoding has line ends within characters, so what comes behind the last one waits for more.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from pgwire.codecs.errors import DataError
from pgwire.codecs.text.encodings import Encoding

_LINE: Final = re.compile(rb"[^\r\n]*[\r\n]|[^\r\n]+")


class Transcoder:
    """Puts one stream into UTF-8.

    ``fault``: what is wrong with the line that would come next; lines before it have been returned. Whoever
    finds it set raises it once those are read, and feeds no more.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Start a stream in ``encoding``."""
        self.fault: DataError | None = None
        self._encoding = encoding
        self._held: list[bytes] = []

    def feed(self, data: bytes) -> bytes:
        """Return the lines that are complete, in UTF-8."""
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not cut:
            self._held.append(data)
            return b""
        block = b"".join([*self._held, data[:cut]])
        self._held = [data[cut:]]
        return self._put(block)

    def finish(self) -> bytes:
        """The stream has ended: return what is left."""
        block = b"".join(self._held)
        self._held = []
        return self._put(block)

    def _put(self, block: bytes) -> bytes:
        decode = self._encoding.decode
        try:
            return decode(block).encode("utf-8")
        except DataError as error:
            self.fault = error
        good: list[str] = []
        with suppress(DataError):  # which would show fewer bytes of a character that a line end cuts off
            for line in _LINE.findall(block):
                good.append(decode(line))
        return "".join(good).encode("utf-8")
