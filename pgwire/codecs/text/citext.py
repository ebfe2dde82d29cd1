"""citext: texts that compare without regard to case (manual F.10), as bytes that compare so on every executor.

value    = key | text | length of the text, four bytes
key      the text in small letters, which is what is compared
text     as it was written; nothing where that is the key

Ab   ->   "ab" "Ab" 00000002          ab   ->   "ab" 00000000
"""

from __future__ import annotations

from functools import lru_cache

from pgwire.codecs.text import decode as decode_text
from pgwire.codecs.text import parse_text
from pgwire.long import values as long

_SHORT_CHARS = 256


def lower_char(c: str) -> str:
    """Return the lower-case form's first character: only U+0130 has more, and C.UTF-8 keeps its i."""
    return c.lower()[0]


def lower(text: str) -> str:
    """Return a text in small letters, character by character as C.UTF-8 has them."""
    return long.mapped(text, str.lower if text.isascii() else _lower_chars, 0 if text.isascii() else 1 << 12)


def _lower_chars(text: str) -> str:
    return "".join(map(lower_char, text))


def pack(text: str) -> bytes:
    """Return the value of a text."""
    small = lower(text)
    written = b"" if small == text else long.encoded(text, _encoded)
    return long.joined_bytes([long.encoded(small, _encoded), written, len(written).to_bytes(4, "big")])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def parse(text: str) -> bytes:
    """Read the text form; 22021."""
    return pack(parse_text(text))


def unpack(value: bytes) -> str:
    """Return the text of a value."""
    return _kept(value) if len(value) <= _SHORT_CHARS else _unpacked(value)


def _unpacked(value: bytes) -> str:
    return long.decoded(_written(value), "surrogatepass")


def _written(value: bytes) -> bytes:
    size = int.from_bytes(value[-4:], "big")
    end = len(value) - 4
    return long.cut_bytes(value, end - size if size else 0, end)


_kept = lru_cache(maxsize=4096)(_unpacked)


def key(value: bytes) -> bytes:
    """Return what of a value is compared."""
    end = len(value) - 4 - int.from_bytes(value[-4:], "big")
    return value[:end] if end < long.LONG else long.cut_bytes(value, 0, end)


def receive(data: bytes) -> bytes:
    """Read the binary form, which is the text in UTF-8; 22021."""
    return pack(decode_text(data))


def send(value: bytes) -> bytes:
    """Return the binary form."""
    return _written(value)
