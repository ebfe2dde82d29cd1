"""uuid; value ``bytes`` of length 16."""

from __future__ import annotations

import re

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax

_SYNTAX = re.compile(r"(\{)?((?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4})(?(1)\})", re.ASCII)


def parse(text: str) -> bytes:
    """Read 32 hexadecimal digits, with an optional hyphen after every fourth and optional braces; 22P02."""
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise invalid_syntax("uuid", text)
    return bytes.fromhex(match[2].replace("-", ""))


def show(value: bytes) -> str:
    """Print the standard 8-4-4-4-12 form."""
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def recv(data: bytes) -> bytes:
    """Read 16 bytes."""
    if len(data) != 16:
        raise DataError(*wrong_length(data, 16))
    return bytes(data)


def send(value: bytes) -> bytes:
    """Return the 16 bytes."""
    return value
