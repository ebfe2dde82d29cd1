"""Large values of containers as parameters, in binary and in text, and back to the client in binary."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

from tests.hostile.row import Row
from tests.hostile.talk import SYNC, Talk, execute, frame, parse


def there_and_back(type_name: str, format_: int, made: Callable[[int], bytes], talk: Talk, n: int) -> None:
    """Send a value of n elements as a parameter, and have it back in binary."""
    value = made(n)
    client = talk.client()
    if type_name in ("citext", "hstore"):
        client.run(f"CREATE EXTENSION IF NOT EXISTS {type_name}")
    head = b"\0\0" + struct.pack("!HHH", 1, format_, 1) + struct.pack("!i", len(value))
    talk.send(
        client,
        [
            parse(f"SELECT $1::{type_name}"),
            frame(b"B", head + value + struct.pack("!HH", 1, 1)),
            execute(),
            SYNC,
        ],
    )
    states = talk.states(client)
    assert states in ([], ["53200"]), (
        states
    )  # it is there several times, and others before it have left something


def _array(oid: int, element: bytes) -> Callable[[int], bytes]:
    return lambda n: struct.pack("!iiiii", 1, 0, oid, n, 1) + (struct.pack("!i", len(element)) + element) * n


def _vector(oid: int, element: bytes) -> Callable[[int], bytes]:
    return lambda n: struct.pack("!iiiii", 1, 0, oid, n, 0) + (struct.pack("!i", len(element)) + element) * n


def _tsvector(n: int) -> bytes:
    words = [b"w%07d\0" % i + struct.pack("!HHH", 2, 1, 2) for i in range(n)]
    return struct.pack("!i", n) + b"".join(words)


def _tsquery(n: int) -> bytes:
    return struct.pack("!i", n + 1) + b"\x02\x01" * n + b"\x01\0\0w\0"


def _hstore(n: int) -> bytes:
    return struct.pack("!i", n) + b"".join(
        struct.pack("!i", 7) + b"k%06d" % i + struct.pack("!i", 1) + b"v" for i in range(n)
    )


def _multirange(n: int) -> bytes:
    ranges = [struct.pack("!iBiiii", 17, 2, 4, 3 * i, 4, 3 * i + 1) for i in range(n)]
    return struct.pack("!i", n) + b"".join(ranges)


def _joined(piece: str, ends: str, separator: str = ",") -> Callable[[int], bytes]:
    return lambda n: (
        ends[:1] + separator.join(piece.replace("#", str(i)) for i in range(n)) + ends[1:]
    ).encode()


_SENT = (
    ("text[]", _array(25, b"abc"), 150_000, 500_000),
    ("timestamp[]", _array(1114, struct.pack("!q", 1_234_567_890)), 150_000, 300_000),
    ("numeric[]", _array(1700, struct.pack("!HhHHHH", 2, 0, 0, 4, 1, 2)), 20_000, 300_000),
    ("oidvector", _vector(26, struct.pack("!I", 77_777)), 1_000_000, 3_000_000),
    ("int2vector", _vector(21, struct.pack("!h", 7)), 1_000_000, 3_000_000),
    ("varbit", lambda n: struct.pack("!i", n) + b"\xaa" * (n // 8), 2_400_000, 80_000_000),
    ("tsvector", _tsvector, 20_000, 70_000),
    ("tsquery", _tsquery, 20_000, 50_000),
    ("hstore", _hstore, 15_000, 300_000),
    ("int4multirange", _multirange, 8_000, 200_000),
    ("polygon", lambda n: struct.pack("!i", n) + struct.pack("!dd", 1.5, 2.5) * n, 200_000, 1_000_000),
    ("path", lambda n: b"\1" + struct.pack("!i", n) + struct.pack("!dd", 1.5, 2.5) * n, 200_000, 1_000_000),
)  # fmt: skip
_WRITTEN = (
    ("polygon", _joined("(#,1)", "()"), 60_000, 300_000),
    ("path", _joined("(#,1)", "[]"), 60_000, 300_000),
    ("int4multirange", lambda n: b"{" + b",".join(b"[%d,%d)" % (3 * i, 3 * i + 1) for i in range(n)) + b"}", 8_000, 200_000),
    ("tsquery", _joined("w#", "", " | "), 15_000, 40_000),
    ("oidvector", _joined("#", "", " "), 100_000, 1_000_000),
    ("citext", lambda n: b"xY" * n, 3_000_000, 20_000_000),
)  # fmt: skip

ROWS = (
    *(
        Row(name=f"{name} in binary", talk=partial(there_and_back, name, 1, made), short=short, full=full)
        for name, made, short, full in _SENT
    ),
    *(
        Row(name=f"{name} in text, back in binary", talk=partial(there_and_back, name, 0, made), short=short, full=full)
        for name, made, short, full in _WRITTEN
    ),
    Row(name="a bit string of an integer", sql="SELECT length(\"bit\"(3, <n>))", short=20_000_000, full=2**31 - 1,
        expect="done 53200 54000"),
    Row(name="a character string by its modifier", sql="SELECT length(bpchar('x', <n>, true))", short=20_000_000, full=2**31 - 1,
        expect="done 53200 54000"),
    Row(name="bit strings combined", sql="SELECT length(repeat('10', <n>)::varbit & repeat('01', <n>)::varbit)", short=1_000_000,
        full=20_000_000, expect="done 53200"),
    Row(name="a polygon of a circle", sql="SELECT npoints(polygon(<n>, circle '<(1,2),3>'))", short=60_000, full=1_000_000,
        expect="done 54000 53200"),
    Row(name="a pattern that is refused", sql=r"SELECT 'x' ~ repeat('%a_\d+(x)*', <n>)", short=1000, full=30_000, expect="done 2201B"),
)  # fmt: skip
