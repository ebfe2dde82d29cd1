"""Cases of which ``make test`` runs the first few and ``make proofs`` all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(count: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases as parameters, those after the first ``count`` with the marker ``long``."""
    return [
        case if number < count else pytest.param(case, marks=pytest.mark.long)
        for number, case in enumerate(cases)
    ]
