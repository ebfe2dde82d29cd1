"""bool: ``t``/``f`` in text, one byte in binary; value ``bool``."""

from __future__ import annotations

from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax
from pgwire.long.values import stripped

_WORDS = {
    prefix: value
    for word, value, least in (
        ("true", True, 1), ("false", False, 1), ("yes", True, 1), ("no", False, 1),
        ("on", True, 2), ("off", False, 2), ("1", True, 1), ("0", False, 1),
    )
    for prefix in (word[:n] for n in range(least, len(word) + 1))
}  # fmt: skip
LONGEST = max(map(len, _WORDS))
_SPACE = " \t\n\r\f\v"


def parse(text: str) -> bool:
    """Read any unambiguous prefix of true, false, yes, no, on, off, 1, 0, in any case; 22P02 otherwise."""
    value = _WORDS.get(text) if len(text) <= LONGEST else None  # the hash of a long text is a long call of C
    if value is None:
        word = stripped(text, _SPACE, True, True)
        value = _WORDS.get(word.lower()) if len(word) <= LONGEST else None
        if value is None:
            raise invalid_syntax("boolean", text)
    return value


def show(value: bool) -> str:
    """Print ``t`` or ``f``."""
    return "t" if value else "f"


def recv(data: bytes) -> bool:
    """Read one byte; any byte but 0 is true. 22P03 for another length."""
    if len(data) != 1:
        raise DataError(*wrong_length(data, 1))
    return data[0] != 0


def send(value: bool) -> bytes:
    """Return one byte, 0 or 1."""
    return b"\x01" if value else b"\x00"


def wrong_length(data: bytes, size: int) -> tuple[str, str]:
    """Return SQLSTATE and message for binary data of the wrong length (too short, or left over)."""
    if len(data) < size:
        return "08P01", "insufficient data left in message"
    return "22P03", "incorrect binary data format"
