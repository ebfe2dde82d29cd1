"""Rows that fail at present, with what was measured. ``python -m tests.hostile --short --known`` writes them anew: what is mended goes."""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {
    "array concatenation": "one tuple of a million elements is one call of C, 100 ms",
    "an array variable that doubles": "one tuple of 16 MB and more is one call of C, 54 ms",
    "a large value that is no number": "the message is put together of the whole value, 60 ms for 60 MB",
    "a large body": "the body of a DO is read in one turn, 60 ms for 1,000 statements",
    "set operations of many columns": "an Arrow batch of 1,500 columns is taken over in one turn, 45 to 60 ms",
    "GRANT to many": "the statement is bound in one turn, 45 ms",
    "PREPARE with many types": "the types are looked up in one turn, 50 ms",
    "bounds that multiply": "an automaton is made between two looks at the clock, 41 to 60 ms",
}
"""Reasons by the names of rows."""
