"""What a server answered against what a file expects, per dialect."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

from sqllogictest.client import Result
from sqllogictest.records import Dialect, Query

BOOL_OID = 16
BOOLEANS = {"t": "true", "true": "true", "1": "true", "f": "false", "false": "false", "0": "false"}
TOLERANCE = 1e-6


def sqlite_cell(cell: str | None, kind: str) -> str:
    """Print a value as SQLite's runner does: I as %d, R as %.3f, T with odd bytes as @."""
    if cell is None:
        return "NULL"
    if kind == "I":
        if cell in ("t", "f"):
            return "1" if cell == "t" else "0"
        try:
            return str(int(cell))
        except ValueError:
            pass
        try:
            return str(int(float(cell)))
        except (ValueError, OverflowError):
            return "0"
    if kind == "R":
        try:
            return f"{float(cell):.3f}"
        except ValueError:
            return "0.000"
    if cell == "":
        return "(empty)"
    return "".join(ch if " " <= ch <= "~" else "@" for ch in cell)


def _plain(cell: str | None) -> str:
    if cell is None:
        return "NULL"
    return cell if cell else "(empty)"


def sqlite_values(query: Query, result: Result) -> list[str]:
    """Return the values one per entry, sorted as the record says."""
    kinds = query.types
    rows = [
        [sqlite_cell(cell, kinds[i] if i < len(kinds) else "T") for i, cell in enumerate(row)]
        for row in result.rows
    ]
    if query.sort == "rowsort":
        rows.sort(key=lambda row: [value.encode() for value in row])
    values = [value for row in rows for value in row]
    if query.sort == "valuesort":
        values.sort(key=str.encode)
    return values


def digest(values: Sequence[str]) -> str:
    """Return "N values hashing to MD5" over each value plus a newline."""
    text = "".join(f"{value}\n" for value in values)
    hashed = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{len(values)} values hashing to {hashed}"


def mismatch(query: Query, result: Result, dialect: Dialect) -> tuple[list[str], list[str]] | None:
    """Return (expected lines, actual lines) where they differ, None where they agree."""
    if query.expected is None:
        return None
    expected = list(query.expected)
    if dialect is Dialect.SQLITE:
        actual = sqlite_values(query, result)
        if len(expected) == 1 and re.fullmatch(r"\d+ values hashing to [0-9a-f]{32}", expected[0]):
            actual = [digest(actual)]
        elif query.hash_threshold and len(actual) > query.hash_threshold:
            actual = [digest(actual)] if len(expected) == 1 else actual
        return None if actual == expected else (expected, actual)
    rows = [_row_line(row, result.oids, dialect) for row in result.rows]
    width = len(result.oids)
    if dialect is Dialect.RS:
        expected = [" ".join(line.split()) for line in expected]
        rows = [" ".join(line.split()) for line in rows]
    else:
        expected = _canonical_lines(expected, result.oids, len(rows))
    if query.sort == "rowsort":
        rows.sort(key=_sort_key)
        expected.sort(key=_sort_key)
    elif query.sort == "valuesort":
        blank = "\t" if dialect is Dialect.DUCKDB else " "
        rows = sorted((v for row in rows for v in row.split(blank)), key=_sort_key)
        expected = sorted((v for row in expected for v in row.split(blank)), key=_sort_key)
        width = 1
    same = rows == expected if dialect is Dialect.RS else _same_duckdb(expected, rows, width)
    return None if same else (expected, rows)


def _row_line(row: Sequence[str | None], oids: Sequence[int], dialect: Dialect) -> str:
    if dialect is Dialect.RS:
        return " ".join(_plain(cell) for cell in row)
    return "\t".join(
        BOOLEANS.get(_plain(cell), _plain(cell)) if oid == BOOL_OID else _plain(cell)
        for cell, oid in zip(row, oids, strict=True)
    )


def _canonical_lines(expected: list[str], oids: Sequence[int], height: int) -> list[str]:
    """Return one line per row, booleans as true and false however the file spells them.

    A file may put one value per line where a row has several: as many lines as values says so.
    """
    width = len(oids)
    if width > 1 and len(expected) == height * width and not any("\t" in line for line in expected):
        expected = ["\t".join(expected[i : i + width]) for i in range(0, len(expected), width)]
    if BOOL_OID not in oids:
        return expected
    lines = []
    for line in expected:
        cells = line.split("\t")
        if len(cells) == width:
            cells = [
                BOOLEANS.get(c.lower(), c) if oid == BOOL_OID else c
                for c, oid in zip(cells, oids, strict=True)
            ]
        lines.append("\t".join(cells))
    return lines


def _sort_key(line: str) -> list[bytes]:
    """Return what rows are sorted by: numbers by what they are, so that 10 and 10.000 sort alike."""
    key = []
    for cell in line.split("\t"):
        try:
            key.append(f"{float(cell):.5g}".encode())
        except ValueError:
            key.append(cell.encode())
    return key


def _same_duckdb(expected: list[str], actual: list[str], width: int) -> bool:
    return len(expected) == len(actual) and all(
        _same_row(e, a, width) for e, a in zip(expected, actual, strict=True)
    )


def _same_row(expected: str, actual: str, width: int) -> bool:
    if width == 1:
        return _same_cell(expected, actual)
    left, right = expected.split("\t"), actual.split("\t")
    return len(left) == len(right) and all(_same_cell(e, a) for e, a in zip(left, right, strict=True))


def _same_cell(expected: str, actual: str) -> bool:
    if expected == actual:
        return True
    try:
        return math.isclose(float(expected), float(actual), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except ValueError:
        return False
