"""What calls of builtins cost, as their arguments grow: a row per function in ``data/costs.txt``, complete at import.

    constant    nothing of it grows: all arguments are of fixed size, or only their ends are looked at
    linear      one pass of C over its arguments, about a millisecond for a megabyte: the largest value takes more than a slice
    stepped     its loops give way (``pgwire.give_way``), so what it takes in all does not matter to others
    process     large arguments are one long call of C, in a process beside the server (``outside``)
    bounded     grows, and its arguments do not: names, pictures of settings, what the catalog holds

``load`` reads them once all families are registered, and refuses to import a builtin without a cost or a cost without a builtin. A walk
(``tests/planner/builtins/test_costs.py``) doubles the arguments of each and counts what it does between two looks at the clock.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.typefacts import FIRST_USER_OID

if TYPE_CHECKING:
    from planner.builtins.registry import Registry

DATA: Final = Path(__file__).parent / "data" / "costs.txt"


class Cost(StrEnum):
    """How what a call costs grows."""

    CONSTANT = "constant"
    LINEAR = "linear"
    STEPPED = "stepped"
    PROCESS = "process"
    BOUNDED = "bounded"


def read() -> dict[str, Cost]:
    """Return the costs by signature. ValueError for a line that is none, LookupError for a signature that is there twice."""
    found: dict[str, Cost] = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        cost, _, signature = line.partition(" ")
        if signature in found:
            raise LookupError(f"{signature} has two costs")
        found[signature] = Cost(cost)
    return found


def settle(registry: Registry) -> None:
    """Give each builtin with a Python form its cost. LookupError for one without, and for a cost of nothing.

    Constructors of users' ranges, which may have been registered before, keep the cost that they have.
    """
    costs = read()
    for oid, row in registry.functions.items():
        if row.python is None or oid >= FIRST_USER_OID:
            continue
        cost = costs.pop(row.signature, None)
        if cost is None:
            raise LookupError(f"{row.signature} has no cost in {DATA.name}")
        row.cost = cost
    if costs:
        raise LookupError(f"costs of no builtin in {DATA.name}: {', '.join(sorted(costs))}")
