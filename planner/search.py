"""Regular expressions over long texts, in steps: one search keeps the interpreter from all other threads until it ends."""

from __future__ import annotations

import re
from typing import Final

from pgwire.give_way import give_way, paced

STEP: Final = 1 << 16
"""Characters that are searched at once: about a millisecond."""
OVERLAP: Final = 1024
"""Characters that are searched twice, so that no word is cut: more than what is looked for is long."""


def next_match(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """Return the next match, from ``at`` on, of a pattern that matches at most ``OVERLAP`` characters."""
    while at < len(text):
        found = pattern.search(text, at, at + STEP + OVERLAP)
        if found is not None:
            return found
        at += STEP
        give_way()
    return None


def occurs(pattern: re.Pattern[str], text: str) -> bool:
    """Tell whether a pattern that matches at most ``OVERLAP`` characters occurs in a text.

    In a long text a word boundary is also seen where a step ends, so that True may be a mistake; False is none.
    """
    if len(text) <= STEP:
        return pattern.search(text) is not None
    return any(
        pattern.search(text, start, start + STEP + OVERLAP) is not None
        for start in paced(range(0, len(text), STEP), 1)
    )
