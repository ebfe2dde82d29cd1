"""money: an ``int`` of cents, read and printed as in the locale C: ``-$1,234.56``. No digits are 0."""

from __future__ import annotations

import re
import struct
from typing import Final

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax, out_of_range
from pgwire.codecs.text import int_of
from pgwire.give_way import outside

LIMIT: Final = 2**63
_FORM: Final = re.compile(
    r"(?P<lead>[-+$\s(]*+)(?P<whole>[0-9,]*+)(?:\.(?P<part>[0-9]*+))?(?P<tail>[)\-+$\s]*+)", re.ASCII
)
_WIRE: Final = struct.Struct(">q")
_LONG: Final = 1 << 16
"""Characters of a text up to which it is read here."""


@outside(_LONG)
def parse(text: str) -> int:
    """Read an amount, its third decimal rounded; 22P02, 22003."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise invalid_syntax("money", text)
    lead, tail = found["lead"], found["tail"]
    signs = [c for c in lead + tail if c in "-+("]
    if len(signs) > 1 or (lead + tail).count("$") > 1 or ("(" in lead) != (")" in tail):
        raise invalid_syntax("money", text)
    part = (found["part"] or "").ljust(3, "0")
    cents = int_of(found["whole"].replace(",", "") or "0") * 100 + int(part[:2]) + (part[2] >= "5")
    value = -cents if signs and signs[0] in "-(" else cents
    if not -LIMIT <= value < LIMIT:
        raise out_of_range(text, "money")
    return value


def show(value: int) -> str:
    """Print an amount."""
    whole, cents = divmod(abs(value), 100)
    return f"{'-' if value < 0 else ''}${whole:,}.{cents:02}"


def send(value: int) -> bytes:
    """Return eight bytes."""
    return _WIRE.pack(value)


def recv(data: bytes) -> int:
    """Read eight bytes; 22P03 or 08P01 for another length."""
    if len(data) != 8:
        raise DataError(*wrong_length(data, 8))
    return int(_WIRE.unpack(data)[0])
