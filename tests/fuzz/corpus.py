"""What fuzzing begins with: statements of this repository's own tests, as text and as messages of both protocols."""

from __future__ import annotations

import re
import struct
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRELUDE = (
    "CREATE TABLE t (id int PRIMARY KEY, n int, v text DEFAULT 'x', d numeric(12,3), j jsonb, a int[])",
    "CREATE TABLE u (id int REFERENCES t DEFERRABLE, at timestamptz, k uuid, CHECK (id > 0))",
    "CREATE INDEX ON t (n)",
    "CREATE VIEW w AS SELECT t.id, count(*) AS c FROM t LEFT JOIN u USING (id) GROUP BY t.id",
    "CREATE SEQUENCE s",
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "INSERT INTO t SELECT g, g % 7, 'v' || g, g / 3.0, '{\"a\": [1, null]}', ARRAY[g, NULL] FROM generate_series(1, 30) g",
    "INSERT INTO u VALUES (1, '2020-02-29 12:00:00+00', NULL), (2, 'infinity', NULL)",
)
"""The tables that ``sql`` and ``server`` find."""

_LITERAL = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)
_STATEMENT = re.compile(
    r"\s*(select|insert|update|delete|with|create|alter|drop|set|show|begin|copy|explain|declare|fetch|merge|values|"
    r"grant|truncate|prepare|execute|comment|table|lock|listen|subscribe|savepoint|reset|do|call|vacuum|refresh)\b",
    re.IGNORECASE,
)
MAX_SEED_CHARS = 2000


@cache
def statements() -> tuple[str, ...]:
    """Return distinct statements: of the golden transcripts, the differential scripts and the tests' own strings."""
    found: dict[str, None] = dict.fromkeys(PRELUDE)
    for path in sorted(ROOT.glob("golden/sql/*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            _name, mark, text = line.partition("> ")
            if mark:
                found[text] = None
    for path in sorted(ROOT.glob("differential/scripts/**/*.sql")):
        for text in path.read_text(encoding="utf-8").split(";\n"):
            found[text.strip()] = None
    for path in sorted([*ROOT.glob("engine/**/*.py"), *ROOT.glob("planner/**/*.py")]):
        for match in _LITERAL.finditer(path.read_text(encoding="utf-8")):
            text = match.group(1) or match.group(2) or ""
            if _STATEMENT.match(text):
                found[text.replace('\\"', '"')] = None
    return tuple(text for text in found if text and len(text) <= MAX_SEED_CHARS)


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """Return one frontend message."""
    return kind + struct.pack("!I", len(body) + 4) + body


def startup(version: int = 3 << 16, **parameters: str) -> bytes:
    """Return a start-up packet."""
    body = b"".join(f"{k}\0{v}\0".encode() for k, v in parameters.items()) + b"\0"
    return struct.pack("!II", len(body) + 8, version) + body


def conversation(sql: str, choice: int) -> bytes:
    """Return messages that run ``sql``: Query, or Parse to Sync with some parameters, formats and row limits."""
    text = sql.encode()
    if choice % 3 == 0:
        return frame(b"Q", text + b"\0")
    count = min(len(re.findall(r"\$\d+", sql)), 9)
    values = [(b"7", b"\0\0\0\7", b"{1,2}", None)[(choice + n) % 4] for n in range(count)]
    sent = b"".join(struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values)
    code = choice // 3 % 2
    return (
        frame(b"P", b"s\0" + text + b"\0\0\0")
        + frame(b"D", b"Ss\0")
        + frame(b"B", b"p\0s\0" + struct.pack("!HHH", 1, code, count) + sent + struct.pack("!HH", 1, code))
        + frame(b"D", b"Pp\0")
        + frame(b"E", b"p\0" + struct.pack("!I", choice % 5))
        + frame(b"E", b"p\0\0\0\0\0")
        + frame(b"C", b"Pp\0")
        + frame(b"S")
    )


COPIES = (
    b"1\t2\tx\n\\N\t\\\\\t\\x41\\101\n\\.\n",
    b'1,"a""b",\n"x\ny",,3\r\n',
    b"PGCOPY\n\xff\r\n\0" + bytes(8) + struct.pack("!hiiii", 3, 4, 7, 0, -1) + b"\xff\xff",
)
EXCHANGES = (
    startup(user="postgres", database="postgres"),
    startup(3 << 16 | 2, user="postgres", _pq_x="1", options="-c work_mem=1MB"),
    struct.pack("!II", 8, 80877103),
    struct.pack("!II", 8, 80877104),
    struct.pack("!IIII", 16, 80877102, 1, 2),
    frame(b"p", b"SCRAM-SHA-256\0" + struct.pack("!I", 24) + b"n,,n=,r=fyko+d2lbbFgONRv"),
    frame(b"p", b"c=biws,r=fyko+d2lbbFgONRv,p=AAAA"),
    frame(b"F", b"\0\0\5\0\0\0\0\0\0\0\0"),
    frame(b"Q", b"COPY t FROM STDIN\0") + frame(b"d", b"99\t1\tx\t1\t{}\t{}\n") + frame(b"c"),
    frame(b"Q", b"COPY t TO STDOUT (FORMAT binary)\0"),
    frame(b"Q", b"COPY u FROM STDIN (FORMAT csv)\0") + frame(b"d", b"1,,") + frame(b"f", b"why\0"),
    frame(b"Q", b"BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM t\0") + frame(b"Q", b"FETCH 3 FROM c\0"),
    frame(b"H") + frame(b"S") + frame(b"X"),
)
