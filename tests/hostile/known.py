"""Rows that fail at present, with what is missing. A row that is mended has to go from here: its test fails until it has."""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {}
"""Reasons by the names of rows."""
