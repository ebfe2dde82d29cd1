"""Write ``pgwire/codecs/data/*.txt``: where PostgreSQL's maps of multi-byte encodings differ from Python's codecs.

    python tools/gen_encodings.py "host=localhost user=postgres dbname=postgres"           rewrite the files
    python tools/gen_encodings.py "host=localhost user=postgres dbname=postgres" --check   exit 1 if they differ

The server has to be a PostgreSQL 15 with a UTF8 database. It is asked what every character of every encoding means, and how
every character of the Basic Multilingual Plane and the two planes behind it is sent.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping

import psycopg

from pgwire.codecs.text.multibyte import DATA, TABLES, Corrections, base, sending

_RECEIVED = """
CREATE FUNCTION pg_temp.received(encoding name, units bytea[]) RETURNS TABLE (unit bytea, means text) LANGUAGE plpgsql AS $$
BEGIN
  FOREACH unit IN ARRAY units LOOP
    BEGIN means := convert_from(unit, encoding); RETURN NEXT; EXCEPTION WHEN data_exception THEN NULL; END;
  END LOOP;
END $$"""
_SENT = """
CREATE FUNCTION pg_temp.sent(encoding name, low int, high int) RETURNS TABLE (code int, unit bytea) LANGUAGE plpgsql AS $$
BEGIN
  FOR code IN SELECT generate_series(low, high) LOOP
    IF code BETWEEN 55296 AND 57343 THEN CONTINUE; END IF;
    BEGIN unit := convert_to(chr(code), encoding); RETURN NEXT; EXCEPTION WHEN data_exception THEN NULL; END;
  END LOOP;
END $$"""
_PART = 20_000  # units asked for at once


def units_of(name: str) -> list[bytes]:
    """Return all bytes that may be a character of an encoding, as its rule has it."""
    _, rule, _ = TABLES[name]
    upper, right = range(0x80, 0x100), range(0xA1, 0xFF)
    units = [bytes((a,)) for a in upper] + [bytes((a, b)) for a in upper for b in range(1, 0x100)]
    units += [bytes((0x8F, a, b)) for a in right for b in right]
    units += [bytes((0x8E, plane, a, b)) for plane in range(0xA1, 0xA8) for a in right for b in right]
    return [unit for unit in units if rule(unit, 0) == len(unit)]


def rows(units: Iterable[bytes]) -> Iterable[list[bytes]]:
    """Yield units in lists whose members follow one another, at most a row of 256."""
    row: list[bytes] = []
    for unit in sorted(units, key=lambda unit: (len(unit), unit)):
        if row and (len(unit), unit[:-1], unit[-1]) != (len(row[-1]), row[-1][:-1], row[-1][-1] + 1):
            yield row
            row = []
        row.append(unit)
    if row:
        yield row


def meanings(means: Mapping[bytes, str]) -> Iterable[str]:
    """Yield the ``=`` lines; code points in a row are told by the first and their number."""
    for row in rows(means):
        line = ["=", row[0].hex()]
        first, count = -1, 0
        for code in [ord(means[unit]) for unit in row]:
            if count and code == first + count:
                count += 1
                line[-1] = f"{first:x}+{count}"
            else:
                first, count = code, 1
                line.append(f"{code:x}")
        yield " ".join(line)


def refusals(units: Iterable[bytes]) -> Iterable[str]:
    """Yield the ``-`` lines, one for each first byte or two."""
    lines: dict[bytes, list[str]] = {}
    for row in rows(units):
        run = row[0].hex() + (f"+{len(row)}" if len(row) > 1 else "")
        lines.setdefault(row[0][:-1], ["-"]).append(run)
    return [" ".join(line) for line in lines.values()]


def lines_of(connection: psycopg.Connection, name: str) -> list[str]:
    """Return what the file of an encoding has to say."""
    codec, rule, size = TABLES[name]
    units = units_of(name)
    theirs: dict[bytes, str] = {}
    for at in range(0, len(units), _PART):
        part = units[at : at + _PART]
        asked = connection.execute("SELECT * FROM pg_temp.received(%s, %s::bytea[])", (name, part))
        theirs |= {bytes(unit): text for unit, text in asked}
    asked = connection.execute("SELECT * FROM pg_temp.sent(%s, 128, %s)", (name, 0x2FFFF))
    sent = {chr(code): bytes(unit) for code, unit in asked}
    for text, unit in sent.items():
        if unit[0] >= 0x80 and rule(unit, 0) != len(unit):
            theirs[unit] = text
    ours = base(codec, size)
    means = {unit: text for unit, text in theirs.items() if ours.get(unit) != text}
    nothing = [unit for unit in ours if unit not in theirs and rule(unit, 0) == len(unit)]
    lines = [*meanings(means), *refusals(nothing)]
    default = sending(Corrections(lines).table(ours))
    for text in sorted({*sent, *(text for text in default if len(text) == 1)}):
        if sent.get(text) != default.get(text):
            lines.append(f"> {ord(text):x} {sent[text].hex() if text in sent else '-'}")
    return lines


def main() -> int:
    """Write or check all files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dsn")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    differing = 0
    with psycopg.connect(arguments.dsn, autocommit=True) as connection:
        connection.execute(_RECEIVED)
        connection.execute(_SENT)
        for name in TABLES:
            path = DATA / f"{name.lower()}.txt"
            text = "".join([line + "\n" for line in lines_of(connection, name)])
            if arguments.check:
                same = path.read_text("ascii") == text
                differing += not same
                print(f"{name}: {'as before' if same else 'differs'}")
            else:
                path.write_text(text, "ascii")
                print(f"{name}: {text.count(chr(10))} lines")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
