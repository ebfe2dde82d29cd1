"""macaddr and macaddr8: six and eight ``bytes``, which order as the types do."""

from __future__ import annotations

import re
from typing import Final

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax, quoting
from pgwire.give_way import outside

_LONG: Final = 1 << 14
"""Characters of a text up to which it is read here."""

_FORMS: Final = (
    ("x:x:x:x:x:x", 8), ("x-x-x-x-x-x", 8), ("xxx:xxx", 2), ("xxx-xxx", 2), ("xx.xx.xx", 2), ("xx-xx-xx", 2), ("xxxxxx", 2),
)  # fmt: skip
"""What PostgreSQL gives sscanf: octets with what is between them, and how many characters one may have (8: any)."""
_HEX: Final = {
    width: re.compile(rf"\s*(?=[+-]?[0-9A-Fa-f])([0-9A-Fa-f+-][0-9A-Fa-f]{{0,{width - 1}}})")
    for width in (2, 8)
}
# pairs of digits, with one kind of mark, or none, between some of them
_EIGHT: Final = re.compile(r"\s*[0-9A-Fa-f]{2}(?:[:.-]?[0-9A-Fa-f]{2}){5}(?:(?:[:.-]?[0-9A-Fa-f]{2}){2})?\s*")


def _scan(text: str, form: str, width: int) -> list[int] | None:
    """Return six octets as sscanf reads them: each may have blanks and a sign in front of it."""
    octets: list[int] = []
    at = 0
    for sign in form:
        if sign == "x":
            found = _HEX[width].match(text, at)
            if found is None or found[1] in "+-":
                return None
            octets.append(int(found[1], 16))
            at = found.end()
        elif text[at : at + 1] != sign:
            return None
        else:
            at += 1
    return None if text[at:].strip() else octets


@outside(_LONG)
def parse(text: str) -> bytes:
    """Read an address of six octets; 22P02, 22003."""
    for form, width in _FORMS:
        octets = _scan(text, form, width)
        if octets is not None:
            if min(octets) < 0 or max(octets) > 255:
                raise DataError("22003", quoting('invalid octet value in "macaddr" value: ', text))
            return bytes(octets)
    raise invalid_syntax("macaddr", text)


@outside(_LONG)
def parse8(text: str) -> bytes:
    """Read an address of eight octets, or of six, which get ff:fe in their middle; 22P02."""
    if _EIGHT.fullmatch(text) is None or len(set(re.findall(r"[:.-]", text))) > 1:
        raise invalid_syntax("macaddr8", text)
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
    """Read six octets; 22P03 or 08P01 for another length."""
    if len(data) != 6:
        raise DataError(*wrong_length(data, 6))
    return bytes(data)


def recv8(data: bytes) -> bytes:
    """Read eight octets, or six; 22P03 or 08P01 for another length."""
    if len(data) not in (6, 8):
        raise DataError(*wrong_length(data, 8))
    return widen(bytes(data)) if len(data) == 6 else bytes(data)
