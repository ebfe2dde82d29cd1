"""bytea: functions, digests, encodings, and the binary forms of all types (``*send``). Python forms."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from pgwire.codecs import bytea as codec
from pgwire.codecs.invalid import quoting
from pgwire.codecs.registry import binary_output, has_codec
from pgwire.codecs.text.encodings import NAMES, canonical, convertible, encoding
from pgwire.give_way import give_way, outside, paced
from pgwire.long import values as long
from planner.base.errors import SqlError, not_supported
from planner.base.large import foresee
from planner.facts import ANYARRAY, BYTEA, facts, rows
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.patterns.like import like_matcher

python = REGISTRY.python

_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


# -- pieces --------------------------------------------------------------------------------------


def substring(data: bytes, start: int, length: int | None = None) -> bytes:
    """Return bytes from ``start`` (1-based; may be before the first); 22011 for a negative length."""
    end = len(data) + 1 if length is None else start + length
    if length is not None and length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return long.cut_bytes(data, max(start, 1) - 1, max(end, 1) - 1)


def overlay(data: bytes, new: bytes, start: int, length: int | None = None) -> bytes:
    """Replace ``length`` bytes (by default as many as ``new`` has) from ``start``; 22011, 22003."""
    count = len(new) if length is None else length
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    if start + count >= 2**31:
        raise SqlError("22003", "integer out of range")
    foresee(len(data) + len(new))
    return long.spliced(data, start - 1, max(start + count, 1) - 1, new)


def _checked(index: int, size: int) -> int:
    if not 0 <= index < size:
        raise SqlError("2202E", f"index {index} out of valid range, 0..{size - 1}")
    return index


def get_byte(data: bytes, index: int) -> int:
    """Return a byte; 2202E."""
    return data[_checked(index, len(data))]


def set_byte(data: bytes, index: int, value: int) -> bytes:
    """Return the data with a byte (modulo 256) changed; 2202E."""
    _checked(index, len(data))
    return overlay(data, bytes([value & 0xFF]), index + 1)


def get_bit(data: bytes, index: int) -> int:
    """Return a bit, the lowest of each byte first; 2202E."""
    _checked(index, len(data) * 8)
    return data[index // 8] >> index % 8 & 1


def set_bit(data: bytes, index: int, value: int) -> bytes:
    """Return the data with a bit changed; 2202E, 22023."""
    _checked(index, len(data) * 8)
    if value not in (0, 1):
        raise SqlError("22023", "new bit must be 0 or 1")
    byte = data[index // 8] & ~(1 << index % 8) | value << index % 8
    return overlay(data, bytes([byte]), index // 8 + 1)


def _trim(data: bytes, chars: bytes, left: bool, right: bool) -> bytes:
    start, end = 0, len(data)
    chosen = frozenset().union(*(set(piece) for piece in long.byte_pieces(chars, 1 << 16)))
    while left and start < end and data[start] in chosen:
        start += 1
        if not start & 1023:
            give_way()
    while right and end > start and data[end - 1] in chosen:
        end -= 1
        if not end & 1023:
            give_way()
    return long.cut_bytes(data, start, end)


# -- encodings -----------------------------------------------------------------------------------


def byteacat(a: bytes, b: bytes) -> bytes:
    """SQL's ``||``."""
    foresee(len(a) + len(b))
    return long.joined_bytes((a, b))


def encode(data: bytes, form: str) -> str:
    """Return the text of bytes in hex, base64 (lines of 76) or escape; 22023 for another form."""
    match form[:_LONGEST_FORM].lower():
        case "hex":
            foresee(2 * len(data))
            return long.filled(
                2 * len(data), "", (piece.hex() for piece in long.byte_pieces(data, codec.PIECE))
            )
        case "base64":
            return long.joined(list(_base64_lines(data)), "\n")
        case "escape":
            return long.joined_up(
                ["".join(map(_ESCAPED.__getitem__, piece)) for piece in long.byte_pieces(data, 1 << 16)]
            )
        case _:
            raise SqlError("22023", quoting("unrecognized encoding: ", form))


_ESCAPED: Final = [
    "\\\\" if byte == 0x5C else f"\\{byte:03o}" if byte == 0 or byte > 127 else chr(byte)
    for byte in range(256)
]
_LONGEST_FORM: Final = 16
"""Characters, more than the name of a form has."""


def _base64_lines(data: bytes) -> Iterator[str]:
    """Yield lines of 76 digits, 57 bytes each, some hundred of them in one text."""
    for piece in long.byte_pieces(data, 57 * 256):
        text = base64.b64encode(piece).decode("ascii")
        yield "\n".join([text[i : i + 76] for i in range(0, len(text), 76)])


def decode(text: str, form: str) -> bytes:
    """Return the bytes of a text; 22023 for bad digits or another form."""
    match form[:_LONGEST_FORM].lower():
        case "hex":
            return codec.parse_hex(text)
        case "base64":
            return _decode_base64(text)
        case "escape":
            return _decode_escape(text)
        case _:
            raise SqlError("22023", quoting("unrecognized encoding: ", form))


def _decode_base64(text: str) -> bytes:
    digits = bytearray()
    first = kept = (
        0  # the group that "=" ends, and how many bytes it and, as in PostgreSQL, those behind it give
    )
    for char in paced(text, 1024):
        if char in " \t\n\r":
            continue
        if char == "=":
            if not kept:
                first, place = divmod(len(digits), 4)
                if place < 2:
                    raise SqlError("22023", 'unexpected "=" while decoding base64 sequence')
                kept = place - 1
            digits += b"A"
            continue
        code = ord(char)
        if code > 127 or code not in _BASE64:
            raise SqlError("22023", f'invalid symbol "{char}" found while decoding base64 sequence')
        digits.append(code)
    if len(digits) % 4:
        raise SqlError(
            "22023",
            "invalid base64 end sequence",
            hint="Input data is missing padding, is truncated, or is otherwise corrupted.",
        )
    end = 4 * first if kept else len(digits)
    pieces = [base64.b64decode(piece) for piece in long.byte_pieces(digits[:end], 1 << 16)]
    pieces += [base64.b64decode(digits[at : at + 4])[:kept] for at in paced(range(end, len(digits), 4), 1024)]
    return long.joined_bytes(pieces)


def _decode_escape(text: str) -> bytes:
    out = bytearray()
    at = 0
    for match in re.finditer(r"\\(\\|[0-3][0-7][0-7])?", text):
        give_way()
        out += text[at : match.start()].encode("utf-8")
        if match[1] is None:
            raise SqlError("22P02", "invalid input syntax for type bytea")
        out.append(0x5C if match[1] == "\\" else int(match[1], 8))
        at = match.end()
    out += text[at:].encode("utf-8")
    return long.joined_bytes((out,))


def _encoding(name: str, what: str) -> str:
    """Return the canonical name of an encoding; 22023 for an unknown one."""
    found = canonical(name)
    if found is None:
        raise SqlError("22023", f'invalid {what} encoding name "{name}"')
    return found


def convert_from(data: bytes, name: str) -> str:
    """Return the text of bytes in an encoding. Raises as ``convert``."""
    return long.decoded(convert(data, name, "UTF8"))


def convert_to(text: str, name: str) -> bytes:
    """Return a text's bytes in an encoding. Raises as ``convert``."""
    foresee(2 * len(text))  # as it is kept, and in the encoding
    return convert(long.encoded(text), "UTF8", name)


def convert(data: bytes, source: str, target: str) -> bytes:
    """Put bytes of one encoding into another.

    Raises DataError 22021 for bytes that are no characters, 22P05 for characters that the other lacks;
    SqlError 22023 for unknown names, 42883 where PostgreSQL has no conversion, 0A000 for those of its
    conversions that do not go from or to UTF8.
    """
    from_, to = _encoding(source, "source"), _encoding(target, "destination")
    if from_ != to and "SQL_ASCII" not in (from_, to) and (from_, to) not in _conversions():
        if convertible(from_):
            encoding(from_).verify(data)
        what = f'default conversion function for encoding "{from_}" to "{to}"'
        raise SqlError("42883", f"{what} does not exist")
    if not (convertible(from_) and convertible(to)) or (
        from_ != to and not {from_, to} & {"UTF8", "SQL_ASCII"}
    ):
        raise not_supported(f"conversion from {from_} to {to}")
    if from_ == to or "SQL_ASCII" in (from_, to):  # nothing to convert; the bytes have to be the other's
        checked = to if from_ == "SQL_ASCII" else from_
        if checked != "SQL_ASCII":
            encoding(checked).verify(data)
        return data
    encoding(from_).verify(data)
    return encoding(to).encode(encoding(from_).decode(data))


@functools.cache
def _conversions() -> frozenset[tuple[str, str]]:
    """Return between which encodings PostgreSQL converts."""
    numbers = [(int(row["conforencoding"]), int(row["contoencoding"])) for row in rows("conversions")]
    return frozenset((NAMES[source], NAMES[target]) for source, target in numbers)


def characters(data: bytes, name: str) -> int:
    """Return the number of characters that bytes in an encoding are. 22021, 22023."""
    found = canonical(name)
    if found is None:
        raise SqlError("22023", quoting("invalid encoding name ", name))
    if found == "SQL_ASCII":
        return len(data)
    if not convertible(found):
        raise not_supported(f"length of bytes in {found}")
    of = encoding(found)
    of.verify(data)
    at = count = 0
    while at < len(data):
        at += of.length(data, at)
        count += 1
        if not count % 256:
            give_way()
    return count


def like(data: bytes, pattern: bytes) -> bool:
    """LIKE on bytes: ``%`` and ``_``, backslash escapes; 22025 when it ends in one."""
    return like_matcher(_characters(pattern))(_characters(data))


def _characters(data: bytes) -> str:
    """Return a character for each byte."""
    return long.joined([piece.decode("latin-1") for piece in long.byte_pieces(data)])


def _like_escape(pattern: bytes, escape: bytes) -> bytes:
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    if not escape:
        return long.mapped_bytes(pattern, lambda piece: piece.replace(b"\\", b"\\\\"))
    if escape == b"\\":
        return pattern
    out = bytearray()
    escaped = False
    for byte in paced(pattern, 1024):
        if byte == escape[0] and not escaped:
            out += b"\\"
            escaped = True
            continue
        if byte == 0x5C and not escaped:
            out += b"\\"
        out.append(byte)
        escaped = False
    return long.joined_bytes((out,))


HASHED_BYTES: Final = 1 << 20
"""What any algorithm takes some milliseconds for; more is hashed by a process beside the server."""


@outside(HASHED_BYTES)
def hashed(name: str, data: bytes) -> bytes:
    """Return a hash; of much data by a process beside the server."""
    return hashlib.new(name, data, usedforsecurity=False).digest()


def _digest(name: str) -> Callable[[bytes], bytes]:
    return lambda data: hashed(name, data)


def _register() -> None:
    for name in ("substr", "substring"):
        python(f"{name}(bytea,int4)", substring)
        python(f"{name}(bytea,int4,int4)", substring)
    python("overlay(bytea,bytea,int4)", overlay)
    python("overlay(bytea,bytea,int4,int4)", overlay)
    python("length(bytea)", len)
    python("octet_length(bytea)", len)
    python("bit_length(bytea)", lambda data: len(data) * 8)
    python("length(bytea,name)", characters)
    python("byteacat(bytea,bytea)", byteacat)
    python("position(bytea,bytea)", lambda data, part: long.find(data, part) + 1)
    python(
        "bit_count(bytea)",
        lambda data: sum([int.from_bytes(piece, "big").bit_count() for piece in long.byte_pieces(data)]),
    )
    python("get_byte(bytea,int4)", get_byte)
    python("set_byte(bytea,int4,int4)", set_byte)
    python("get_bit(bytea,int8)", get_bit)
    python("set_bit(bytea,int8,int4)", set_bit)
    python("btrim(bytea,bytea)", lambda data, chars: _trim(data, chars, True, True))
    python("ltrim(bytea,bytea)", lambda data, chars: _trim(data, chars, True, False))
    python("rtrim(bytea,bytea)", lambda data, chars: _trim(data, chars, False, True))
    python("encode(bytea,text)", encode)
    python("decode(text,text)", decode)
    python("convert_from(bytea,name)", convert_from)
    python("convert_to(text,name)", convert_to)
    python("convert(bytea,name,name)", convert)
    python("md5(bytea)", lambda data: hashed("md5", data).hex())
    for bits in ("224", "256", "384", "512"):
        python(f"sha{bits}(bytea)", _digest(f"sha{bits}"))
    for name in ("like", "bytealike"):
        python(f"{name}(bytea,bytea)", like)
    for name in ("notlike", "byteanlike"):
        python(f"{name}(bytea,bytea)", lambda data, pattern: not like(data, pattern))
    python("like_escape(bytea,bytea)", _like_escape)
    for signature in ("array_send(anyarray)", "anyarray_send(anyarray)"):
        python(signature, _send_array, needs_session=True, needs_types=True)
    for proc in list(facts().procs.values()):
        sends = proc.result == BYTEA and len(proc.arg_types) == 1 and proc.name.endswith("send")
        if sends and proc.arg_types[0] != ANYARRAY and has_codec(proc.arg_types[0]):
            python(facts().signature(proc.oid), _sender(proc.arg_types[0]), needs_session=True)


def _send_array(session: EvalSession, value: Any, *, types: tuple[int, ...]) -> bytes:
    return bytes(binary_output(types[0], value, session.codec_settings))


def _sender(oid: int) -> Callable[[EvalSession, Any], bytes]:
    return lambda session, value: bytes(binary_output(oid, value, session.codec_settings))


_register()
