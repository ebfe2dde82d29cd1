"""What calls of builtins cost, as their arguments grow: a row per function in ``data/costs.txt``, complete at import.

    constant    nothing of it grows: all arguments are of fixed size, or only their ends are looked at
    linear      one pass of C over its arguments, about a millisecond for a megabyte: the largest value takes more than a slice
    stepped     its loops give way (``pgwire.give_way``), so what it takes in all does not matter to others
    process     large arguments are one long call of C, in a process beside the server (``outside``)
    bounded     grows, and its arguments do not: names, pictures of settings, what the catalog holds

A builtin gets its cost where it is registered, and is refused without one, so that nobody sees it before it
has its cost, whatever thread imports its family. Every cost is a builtin's
(``tests/planner/builtins/test_costs.py``); a walk there doubles the arguments of each and counts what it does
between two looks at the clock.
"""

from __future__ import annotations

import functools
from enum import StrEnum
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).parent / "data" / "costs.txt"


class Cost(StrEnum):
    """How what a call costs grows."""

    CONSTANT = "constant"
    LINEAR = "linear"
    STEPPED = "stepped"
    PROCESS = "process"
    BOUNDED = "bounded"


def read() -> dict[str, Cost]:
    """Return the costs by signature. ValueError for a line that is none, LookupError for a signature that is
    there twice.
    """
    found: dict[str, Cost] = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        cost, _, signature = line.partition(" ")
        if signature in found:
            raise LookupError(f"{signature} has two costs")
        found[signature] = Cost(cost)
    return found


@functools.cache
def _known() -> dict[str, Cost]:
    return read()


def cost_of(signature: str) -> Cost:
    """Return the cost of a builtin with a Python form. LookupError for one that has none."""
    try:
        return _known()[signature]
    except KeyError:
        raise LookupError(f"{signature} has no cost in {DATA.name}") from None
