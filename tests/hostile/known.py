"""Rows that fail at present, with what was measured. ``python -m tests.hostile --short --known`` writes them anew: what is mended goes."""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {
    "a large value that is no number": "the message is put together of the whole value, 60 ms for 60 MB",
    "EXECUTE of a long list": "the expression of a list of 60,000 elements is compiled in one call of C, 150 ms",
    "set operations of many columns": "an Arrow batch of 1,500 columns is taken over in one turn, 45 to 60 ms",
    "GRANT to many": "the statement is bound in one turn, 45 ms",
    "PREPARE with many types": "the types are looked up in one turn, 50 ms",
    "bounds that multiply": "an automaton is made between two looks at the clock, 41 to 60 ms",
}
"""Reasons by the names of rows."""
