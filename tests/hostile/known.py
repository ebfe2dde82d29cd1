"""Rows that fail at present, with what was measured. ``python -m tests.hostile --short --known`` writes them anew: what is mended goes."""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {
    "array concatenation": "one tuple of a million elements is one call of C, 100 ms",
    "an array variable that doubles": "one tuple of 16 MB and more is one call of C, 54 ms",
    "a large value that is no number": "the message is put together of the whole value, 60 ms for 60 MB",
    "IN of texts": "DuckDB's SQL of a large statement is printed by one call of sqlglot, 90 ms",
    "a large body": "the body of a DO is read in one turn, 60 ms for 1,000 statements",
    "COALESCE of many": "a large expression is compiled by one call of Python, 64 ms",
    "GROUP BY of many": "a large expression is compiled by one call of Python, 45 ms",
    "many targets": "the encoder of 1,664 columns is compiled by one call of Python, 160 ms, once for a shape",
    "a row of a wide table": "the expressions of 1,600 columns are compiled by one call of Python, 45 ms",
    "GRANT to many": "the statement is bound in one turn, 45 ms",
    "PREPARE with many types": "the types are looked up in one turn, 50 ms",
    "bounds that multiply": "an automaton is made between two looks at the clock, 41 to 60 ms",
}
"""Reasons by the names of rows."""
