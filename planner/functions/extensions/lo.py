"""The function of the extension lo (manual F.21) that is called by triggers alone
(``engine.changes.triggers.large_objects``).
"""

from __future__ import annotations

from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY


def _not_fired() -> None:
    """SQL's ``lo_manage()`` where no trigger calls it."""
    raise SqlError("XX000", "lo_manage: not fired by trigger manager")


REGISTRY.python("lo.lo_manage()", _not_fired)
