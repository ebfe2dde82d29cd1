"""The function of the extension unaccent (manual F.48): characters without their diacritics, by PostgreSQL's shipped rules.

The rules are data (``unaccent.csv``); there are no dictionaries but the one called unaccent.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from planner.builtins.registry import REGISTRY
from planner.facts import rows


@functools.cache
def rules() -> Mapping[int, str]:
    """Return what takes the place of a character, by its code point."""
    return {int(row["code"]): row["text"] for row in rows("unaccent")}


REGISTRY.python("unaccent.unaccent(text)", lambda text: text.translate(rules()))
