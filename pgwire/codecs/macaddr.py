"""macaddr and macaddr8: six and eight ``bytes``, which order as the types do."""

from __future__ import annotations

import re
from typing import Final

from pgwire.codecs.errors import DataError

_X: Final = "([0-9A-Fa-f]{1,%d})"
# as sscanf reads them: one or two digits of an octet; the groups of some forms have two or three octets
_SIX: Final = tuple(
    re.compile(r"\s*" + form)
    for form in (
        ":".join([_X % 8] * 6), "-".join([_X % 8] * 6),
        (_X % 2) * 3 + ":" + (_X % 2) * 3, (_X % 2) * 3 + "-" + (_X % 2) * 3,
        r"\.".join([(_X % 2) * 2] * 3), "-".join([(_X % 2) * 2] * 3), (_X % 2) * 6,
    )
)  # fmt: skip
# pairs of digits, with one kind of mark, or none, between some of them
_EIGHT: Final = re.compile(r"\s*[0-9A-Fa-f]{2}(?:[:.-]?[0-9A-Fa-f]{2}){5}(?:(?:[:.-]?[0-9A-Fa-f]{2}){2})?\s*")


def parse(text: str) -> bytes:
    """Read an address of six octets; 22P02, 22003."""
    for form in _SIX:
        found = form.fullmatch(text.rstrip())
        if found is not None:
            octets = [int(part, 16) for part in found.groups()]
            if max(octets) > 255:
                raise DataError("22003", f'invalid octet value in "macaddr" value: "{text}"')
            return bytes(octets)
    raise DataError("22P02", f'invalid input syntax for type macaddr: "{text}"')


def parse8(text: str) -> bytes:
    """Read an address of eight octets, or of six, which get ff:fe in their middle; 22P02."""
    marks = set(re.findall(r"[:.-]", text))
    if _EIGHT.fullmatch(text) is None or len(marks) > 1:
        raise DataError("22P02", f'invalid input syntax for type macaddr8: "{text}"')
    octets = bytes.fromhex(re.sub(r"[:.\-\s]", "", text))
    return widen(octets) if len(octets) == 6 else octets


def widen(value: bytes) -> bytes:
    """Return six octets as eight."""
    return value[:3] + b"\xff\xfe" + value[3:]


def show(value: bytes) -> str:
    """Print the octets with colons."""
    return value.hex(":")


def send(value: bytes) -> bytes:
    """Return the octets."""
    return value


def recv(data: bytes) -> bytes:
    """Read six octets; 22P03."""
    if len(data) != 6:
        raise DataError("22P03", "incorrect binary data format")
    return bytes(data)


def recv8(data: bytes) -> bytes:
    """Read eight octets, or six; 22P03."""
    if len(data) not in (6, 8):
        raise DataError("22P03", "incorrect binary data format")
    return widen(bytes(data)) if len(data) == 6 else bytes(data)
