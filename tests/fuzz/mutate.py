"""Changes that keep an input's shape: tokens of SQL, messages of a conversation.

Bytes changed at random hardly ever get past the scanner or the length word; these do. Every function is of
its arguments and ``rng`` alone.
"""

from __future__ import annotations

import re
import struct
from random import Random

from tests.fuzz.corpus import EXCHANGES, conversation, frame, statements

_TOKEN = re.compile(
    r"\s+|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|\$\d+|\w+|::|<=|>=|<>|\|\||->>|->|@>|.", re.DOTALL
)
_WORDS = (
    "NULL", "0", "-1", "2147483648", "9223372036854775808", "1e400", "'NaN'", "''", "'\\x00'", "'é\u0301😀'", "*", "(", ")", ",",
    ";", "$1", "$2", "$65535", "$0", "t", "u", "w", "id", "n", "j", "a", "d", "pg_class", "DISTINCT", "ORDER BY 1", "LIMIT -1", "OFFSET 3",
    "FOR UPDATE", "LATERAL", "WITH RECURSIVE", "UNION ALL", "EXCEPT", "OVER ()", "FILTER (WHERE true)", "GROUP BY ROLLUP (1)",
    "::int", "::text", "::jsonb", "::int[]", "::regclass", "::interval", "::numeric(1000,1000)", "::mood", "ARRAY[]", "ROW()", "DEFAULT",
    "EXISTS (SELECT)", "CASE WHEN", "END", "RETURNING *", "ON CONFLICT DO NOTHING", "VALUES ()", "IN ()", "ANY", "COLLATE \"C\"",
    "generate_series(1, 1000000000)", "repeat('x', 1000000000)", "pg_sleep(1)", "1/0", "now()", "nextval('s')", "current_setting('x')",
    "/*", "*/", "--", "E'\\u0000'", "U&'\\D800'", "B'102'", "X'fg'", "\"\"", "$$", "$a$", "AS OF SYSTEM TIME 1", "\0", "\ufffe", "..",
)  # fmt: skip
_LONGEST = 8192  # characters of a token that a change repeats
_NEST = (
    ("(", ")"),
    ("(SELECT ", ")"),
    ("abs(", ")"),
    ("ARRAY[", "]"),
    ("NOT ", ""),
    ("- ", ""),
    ("ROW(", ")"),
    ("'[", "]'"),
)


def sql(text: str, rng: Random) -> str:
    """Return ``text`` with one to four of its tokens changed, or joined with another statement."""
    tokens = _TOKEN.findall(text) or [""]
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(tokens))
        to = min(len(tokens), at + rng.randint(1, 8))
        match rng.randrange(9):
            case 0:
                tokens[at] = rng.choice(_WORDS)
            case 1:
                tokens.insert(at, f" {rng.choice(_WORDS)} ")
            case 2:
                del tokens[at:to]
            case 3:
                tokens[at:at] = tokens[at:to]
            case 4:
                other = _TOKEN.findall(rng.choice(statements()))
                begin = rng.randrange(len(other))
                tokens[at:to] = other[begin : begin + rng.randint(1, 12)]
            case 5:
                before, after = rng.choice(_NEST)
                depth = rng.choice((1, 2, 30, 1000))
                tokens[at:to] = [before * depth, *tokens[at:to], after * depth]
            case 6:
                tokens = [*tokens, "; ", *_TOKEN.findall(rng.choice(statements()))]
            case 7:
                tokens = _TOKEN.findall(rng.choice(statements()))
            case 8:
                # what one change has made long is not repeated as a whole by the next: 500 times 500 times 8 kB
                token = tokens[at][:_LONGEST]
                tokens[at] = token.swapcase() if rng.random() < 0.5 else token * rng.choice((2, 3, 500))
        tokens = tokens or [""]
    return "".join(tokens)


def octets(data: bytes, rng: Random) -> bytes:
    """Return ``data`` with one to five places changed: bits, bytes, numbers at limits, pieces repeated, moved or dropped."""
    found = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(found))
        to = min(len(found), at + rng.choice((1, 1, 2, 4, 8, 30)))
        match rng.randrange(7):
            case 0:
                found[at] ^= 1 << rng.randrange(8)
            case 1:
                found[at] = rng.choice(b"\0\1\x7f\x80\xff0129-+.,:;eE\\\"'{}[]()NULnu \t\r\n/$@?*")
            case 2:
                found[at:at] = found[at:to] * rng.choice((1, 1, 2, 60))
            case 3:
                del found[at:to]
            case 4:
                number = rng.choice((0, 1, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1))
                found[at:to] = number.to_bytes(rng.choice((4, 4, 8)), "big")
            case 5:
                found[at:at] = rng.choice(
                    (
                        b"9" * 40,
                        b"infinity",
                        b"1e400",
                        b"\xf0\x9f\x98\x80",
                        b"\\N",
                        b"\\.\n",
                        b"\r\n",
                        b"null",
                    )
                )
            case 6:
                other = rng.randrange(len(found))
                found[other:other] = found[at:to]
        found = found or bytearray(b"\0")
    return bytes(found)


def split(data: bytes) -> list[bytes]:
    """Cut a stream into messages by their length words; what follows a broken one is one piece."""
    pieces, at = [], 0
    while at < len(data):
        length = struct.unpack_from("!I", data, at + 1)[0] + 1 if at + 5 <= len(data) else 0
        if not 5 <= length <= len(data) - at:
            length = len(data) - at
        pieces.append(data[at : at + length])
        at += length
    return pieces


def messages(data: bytes, rng: Random) -> bytes:
    """Return a stream with messages changed, repeated, swapped, dropped, cut short, or with others put in."""
    pieces = split(data) or [b""]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(pieces))
        piece = pieces[at]
        match rng.randrange(9):
            case 0 | 1 | 2:
                pieces.insert(at, conversation(sql(rng.choice(statements()), rng), rng.randrange(30)))
            case 3:
                pieces.insert(at, rng.choice(EXCHANGES))
            case 4:
                other = rng.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], piece
            case 5:
                pieces[at] = piece[: rng.randint(0, len(piece))]
            case 6 if piece[:1] in (b"Q", b"P") and len(piece) > 6:
                body = piece[5:].decode("utf-8", "replace")
                pieces[at] = frame(piece[:1], sql(body, rng).encode("utf-8", "surrogatepass"))
            case 6 | 7 if len(piece) > 5:
                body = bytearray(piece[5:])
                where = rng.randrange(len(body))
                body[where : where + rng.randint(0, 4)] = rng.choice(
                    (b"", b"\0", b"\xff\xff\xff\xff", b"\x7f", b"\0\0\0\0\1")
                )
                pieces[at] = frame(piece[:1], bytes(body))
            case 8:
                del pieces[at]
            case _:
                pieces.append(piece)
        pieces = split(b"".join(pieces)) or [b""]
    return b"".join(pieces)
