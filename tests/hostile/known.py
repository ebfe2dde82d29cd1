"""Rows that fail at present, with what was measured. ``python -m tests.hostile --short --known`` writes them anew: what is mended goes."""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {
    "set operations of many columns": "an Arrow batch of 1,500 columns is taken over in one turn, 45 to 60 ms",
}
"""Reasons by the names of rows."""
