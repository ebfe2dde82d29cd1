"""Rows that fail at present, with what was measured. ``python -m tests.hostile --short --known`` writes them anew: what is mended goes."""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {}
"""Reasons by the names of rows."""
