"""Strings: text, varchar, bpchar, name and "char".

Lengths and positions count characters from 1. bpchar loses its trailing blanks where PostgreSQL converts it
to text. Case follows Unicode's simple mapping of single characters, as the C.UTF-8 locale does.
"""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any

from pgwire.codecs.text import parse_char, recv_char, send_char
from pgwire.give_way import give_way, outside, paced
from pgwire.long import values as long
from pgwire.release import mind_long
from planner.base.errors import SqlError
from planner.base.large import ITEM_BYTES, LARGE_BYTES, MAX_BYTES, concatenated, foresee
from planner.base.letters import _PACE, _PIECE, lower, lower_char, upper, upper_char
from planner.functions.registry import REGISTRY

INT4_MAX = 2**31 - 1


def initcap(s: str) -> str:
    """First letter of each word upper case, the rest lower; words are runs of letters and digits."""
    out = []
    inside = False
    for c in paced(s, 512):
        out.append(lower_char(c) if inside else upper_char(c))
        inside = c.isalnum()
    return long.joined_up(out)


def substr(s: str, start: int, length: int | None = None) -> str:
    """SQL's ``substring``: positions before 1 use up length; 22011 when it is negative."""
    if length is None:
        return long.cut(s, max(start - 1, 0))
    if length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    end = start + length
    return long.cut(s, max(start - 1, 0), max(end - 1, 0))


def overlay(s: str, new: str, start: int, length: int | None = None) -> str:
    """SQL's ``overlay``."""
    if length is None:
        length = len(new)
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    end = start + length
    if end > INT4_MAX:
        raise SqlError("22003", "integer out of range")
    foresee(len(s) + len(new))
    return long.joined((long.cut(s, 0, start - 1), new, long.cut(s, max(end - 1, 0))))


def left(s: str, n: int) -> str:
    """SQL's ``left``: all but the last -n for a negative n."""
    return long.cut(s, 0, n) if n >= 0 or -n < len(s) else ""


def right(s: str, n: int) -> str:
    """SQL's ``right``: all but the first -n for a negative n."""
    return long.cut(s, -n) if n else ""


def _pad(s: str, length: int, fill: str, at_left: bool) -> str:
    length = max(length, 0)
    if len(s) >= length:
        return long.cut(s, 0, length)
    if not fill:
        return s
    if length * 4 > MAX_BYTES:
        raise SqlError("54000", "requested length too large")
    foresee(length if fill.isascii() else 4 * length)
    missing = length - len(s)
    padding = (long.repeated(fill, missing // len(fill)), fill[: missing % len(fill)])
    return long.joined((*padding, s) if at_left else (s, *padding))


def lpad(s: str, length: int, fill: str = " ") -> str:
    """SQL's ``lpad``: cut or padded to exactly ``length``."""
    return _pad(s, length, fill, True)


def rpad(s: str, length: int, fill: str = " ") -> str:
    """SQL's ``rpad``."""
    return _pad(s, length, fill, False)


def ltrim(s: str, characters: str = " ") -> str:
    """SQL's ``ltrim``."""
    return long.stripped(s, characters, True, False) if characters else s


def rtrim(s: str, characters: str = " ") -> str:
    """SQL's ``rtrim``."""
    return long.stripped(s, characters, False, True) if characters else s


def btrim(s: str, characters: str = " ") -> str:
    """SQL's ``btrim``."""
    return long.stripped(s, characters, True, True) if characters else s


def replace(s: str, old: str, new: str) -> str:
    """SQL's ``replace``: an empty ``old`` changes nothing."""
    if not old:
        return s
    if len(new) > len(old) and len(s) * len(new) >= LARGE_BYTES * len(old):
        foresee(len(s) + long.count(s, old) * (len(new) - len(old)))
    return long.replaced(s, old, new)


def translate(s: str, source: str, target: str) -> str:
    """SQL's ``translate``: characters of ``source`` become those of ``target``; the surplus disappears."""
    table: dict[int, str | None] = {}
    for i, c in enumerate(paced(source, _PACE)):
        table.setdefault(ord(c), target[i] if i < len(target) else None)
    return long.mapped(s, lambda piece: piece.translate(table), _PIECE)


def split_part(s: str, separator: str, n: int) -> str:
    """SQL's ``split_part``: field n from 1, or from the end when negative."""
    if n == 0:
        raise SqlError("22023", "field position must not be zero")
    if not s:
        return ""
    if not separator:
        return s if n in (1, -1) else ""
    return long.field(s, separator, n - 1 if n > 0 else n)


def repeat(s: str, n: int) -> str:
    """SQL's ``repeat``."""
    if n <= 0 or not s:
        return ""
    foresee(n * octet_length(s))
    return long.repeated(s, n)


def ascii_code(s: str) -> int:
    """SQL's ``ascii``: the code point of the first character, 0 for an empty string."""
    return ord(s[0]) if s else 0


def chr_(n: int) -> str:
    """SQL's ``chr``."""
    if n < 0:
        raise SqlError("22023", "character number must be positive")
    if n == 0:
        raise SqlError("54000", "null character not permitted")
    if n > 0x10FFFF or 0xD800 <= n <= 0xDFFF:
        raise SqlError(
            "54000",
            f"requested character too large for encoding: {n}"
            if n > 0x10FFFF
            else f"requested character not valid for encoding: {n}",
        )
    return chr(n)


def octet_length(s: str) -> int:
    """Return the number of UTF-8 bytes."""
    return long.utf8_length(s)


def bpchar_length(s: str) -> int:
    """Return the length without trailing blanks."""
    return len(rtrim(s))


def name_of(s: str) -> str:
    """Cut to 63 bytes, at a character's border."""
    if len(s) <= 15 or (len(s) <= 63 and octet_length(s) <= 63):
        return s
    return s[:63].encode()[:63].decode(errors="ignore")


def bpchar_to_length(s: str, typmod: int, explicit: bool) -> str:
    """SQL's ``bpchar``."""
    from planner.functions.values.casts import apply  # which register casts of strings

    return str(apply(1042, s, typmod, explicit))


def varchar_to_length(s: str, typmod: int, explicit: bool) -> str:
    """SQL's ``varchar``."""
    from planner.functions.values.casts import apply  # which register casts of strings

    return str(apply(1043, s, typmod, explicit))


def unistr(s: str) -> str:
    r"""Resolve ``\XXXX``, ``\+XXXXXX``, ``\uXXXX`` and ``\UXXXXXXXX`` escapes."""
    out: list[str] = []
    i = 0
    pending = ""

    def bad() -> SqlError:
        return SqlError(
            "42601",
            "invalid Unicode escape",
            hint="Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.",
        )

    while i < len(s):
        if not len(out) % 256:
            give_way()
        if s[i] != "\\":
            if pending:
                raise SqlError("42601", "invalid Unicode surrogate pair")
            out.append(s[i])
            i += 1
            continue
        if s[i : i + 2] == "\\\\":
            out.append("\\")
            i += 2
            continue
        for prefix, count in (("\\u", 4), ("\\U", 8), ("\\+", 6), ("\\", 4)):
            digits = s[i + len(prefix) : i + len(prefix) + count]
            if s.startswith(prefix, i) and len(digits) == count and all(c in _HEX for c in digits):
                break
        else:
            raise bad()
        code = int(digits, 16)
        i += len(prefix) + count
        if code == 0 or code > 0x10FFFF:
            raise SqlError("22023", f"invalid Unicode code point: {code:04X}")
        if pending:
            if not 0xDC00 <= code <= 0xDFFF:
                raise SqlError("42601", "invalid Unicode surrogate pair")
            out.append(chr(0x10000 + ((ord(pending) - 0xD800) << 10) + code - 0xDC00))
            pending = ""
        elif 0xD800 <= code <= 0xDBFF:
            pending = chr(code)
        elif 0xDC00 <= code <= 0xDFFF:
            raise SqlError("42601", "invalid Unicode surrogate pair")
        else:
            out.append(chr(code))
    if pending:
        raise SqlError("42601", "invalid Unicode surrogate pair")
    return long.joined_up(out)


_HEX = frozenset("0123456789abcdefABCDEF")
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def _form(form: str) -> Any:
    if form.upper() not in _FORMS:
        raise SqlError("22023", f"invalid normalization form: {form}")
    return form.upper()


@outside(1 << 16)
def _normalized(s: str, form: str) -> str:
    return unicodedata.normalize(_form(form), s)


@outside(1 << 16)
def _is_normalized(s: str, form: str) -> bool:
    return unicodedata.is_normalized(_form(form), s)


@outside(1 << 20)
def _md5(s: str) -> str:
    return hashlib.md5(long.encoded(s), usedforsecurity=False).hexdigest()


def string_to_table(s: str | None, separator: str | None, null: str | None = None) -> list[str | None]:
    """SQL's ``string_to_table``: the fields as rows; a NULL separator splits into characters."""
    if s is None:
        return []
    if s == "":
        return []
    if len(s) >= LARGE_BYTES and separator != "":
        foresee(len(s) + ITEM_BYTES * (len(s) if separator is None else long.count(s, separator)))
    return fields(s, separator, null)


def fields(s: str, separator: str | None, null: str | None) -> list[str | None]:
    """Split a text; a NULL separator gives characters, an empty one the whole text. What is ``null`` becomes NULL."""
    parts: list[str | None] = []
    if separator is None:
        for piece in long.pieces(s, _PIECE):
            parts += piece
    else:
        parts += long.split(s, separator) if separator else [s]
    if null is not None:
        parts = [None if part == null else part for part in paced(mind_long(parts), _PACE)]
    return mind_long(parts)


def _register() -> None:
    python = REGISTRY.python
    python("textcat(text,text)", concatenated)
    for name in ("upper", "lower", "initcap", "reverse", "md5", "unistr"):
        function = {
            "upper": upper, "lower": lower, "initcap": initcap, "reverse": long.reversed_text,
            "md5": _md5,
            "unistr": unistr,
        }[name]  # fmt: skip
        python(f"{name}(text)", function)
    for name in ("length", "char_length", "character_length", "textlen"):
        python(f"{name}(text)", len)
    for name in ("length", "char_length", "character_length"):
        python(f"{name}(bpchar)", bpchar_length)
    python("octet_length(text)", octet_length)
    python("octet_length(bpchar)", octet_length)
    python("bit_length(text)", lambda s: 8 * octet_length(s))
    for name in ("substr", "substring"):
        python(f"{name}(text,int4)", substr)
        python(f"{name}(text,int4,int4)", substr)
    python("overlay(text,text,int4)", overlay)
    python("overlay(text,text,int4,int4)", overlay)
    python("position(text,text)", lambda s, sub: long.find(s, sub) + 1)
    python("strpos(text,text)", lambda s, sub: long.find(s, sub) + 1)
    python("left(text,int4)", left)
    python("right(text,int4)", right)
    for name, pad in (("lpad", lpad), ("rpad", rpad)):
        python(f"{name}(text,int4)", pad)
        python(f"{name}(text,int4,text)", pad)
    for name, trim in (("ltrim", ltrim), ("rtrim", rtrim), ("btrim", btrim)):
        python(f"{name}(text)", trim)
        python(f"{name}(text,text)", trim)
    python("replace(text,text,text)", replace)
    python("translate(text,text,text)", translate)
    python("split_part(text,text,int4)", split_part)
    python("repeat(text,int4)", repeat)
    python("ascii(text)", ascii_code)
    python("chr(int4)", chr_)
    python("starts_with(text,text)", lambda s, prefix: s.startswith(prefix))
    python("normalize(text,text)", _normalized)
    python("is_normalized(text,text)", _is_normalized)
    python("string_to_table(text,text)", string_to_table)
    python("string_to_table(text,text,text)", string_to_table)
    python("text(bpchar)", rtrim)
    python("text(name)", lambda s: s)
    python("text(char)", lambda s: s)
    python("varchar(name)", lambda s: s)
    python("bpchar(name)", lambda s: s)
    python("bpchar(char)", lambda s: s or " ")
    python("name(text)", name_of)
    python("name(varchar)", name_of)
    python("name(bpchar)", lambda s: name_of(rtrim(s)))
    python("char(text)", parse_char)
    python("char(int4)", _char_of_int)
    python("int4(char)", lambda s: int.from_bytes(send_char(s), signed=True))
    python("bpchar(bpchar,int4,bool)", bpchar_to_length)
    python("varchar(varchar,int4,bool)", varchar_to_length)
    python("nameconcatoid(name,oid)", lambda s, oid: s[: 63 - len(str(oid)) - 1] + f"_{oid}")


def _char_of_int(n: int) -> str:
    if not -128 <= n <= 127:
        raise SqlError("22003", '"char" out of range')
    return recv_char(bytes([n % 256]))


_register()
