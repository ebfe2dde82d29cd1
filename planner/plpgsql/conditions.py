"""Names of conditions, as EXCEPTION and RAISE have them, and their SQLSTATEs (manual appendix A)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Final

from planner.facts import rows

OTHERS: Final = ""
"""Stands for WHEN OTHERS among the SQLSTATEs of a handler."""

_STATE: Final = re.compile(r"[0-9A-Z]{5}")
_NOT_OTHERS: Final = frozenset(("57014", "P0004"))
"""What WHEN OTHERS lets through: query_canceled, assert_failure (manual 43.6.8)."""


@functools.cache
def condition_states() -> Mapping[str, tuple[str, ...]]:
    """Return the SQLSTATEs of each condition; a name may have several."""
    found: dict[str, list[str]] = {}
    for row in rows("errcodes"):
        if row["name"] and row["severity"] != "S":
            found.setdefault(row["name"], []).append(row["sqlstate"])
    return {name: tuple(states) for name, states in found.items()}


def is_sqlstate(text: str) -> bool:
    """Tell whether a text may be a SQLSTATE."""
    return _STATE.fullmatch(text) is not None


def state_named(text: str) -> str | None:
    """Return the SQLSTATE that RAISE means by ``text``, a code or a condition's name; None where it is neither."""
    if is_sqlstate(text):
        return text
    states = condition_states().get(text)
    return None if states is None else states[0]


def handles(states: Sequence[str], sqlstate: str) -> bool:
    """Tell whether a handler of these SQLSTATEs takes an error: of one of them, or of a class that one of
    them stands for.
    """
    for state in states:
        if state == OTHERS:
            if sqlstate not in _NOT_OTHERS:
                return True
        elif state == sqlstate or (state.endswith("000") and state[:2] == sqlstate[:2]):
            return True
    return False
