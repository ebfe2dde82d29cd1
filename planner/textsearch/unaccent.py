"""Characters without their diacritics, by the rules that PostgreSQL ships (manual F.48); the rules are data
(``unaccent.csv``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from planner.facts import rows


@functools.cache
def rules() -> Mapping[int, str]:
    """Return what takes the place of a character, by its code point."""
    return {int(row["code"]): row["text"] for row in rows("unaccent")}


def without_accents(text: str) -> str:
    """Return a text without diacritics."""
    return text.translate(rules())
