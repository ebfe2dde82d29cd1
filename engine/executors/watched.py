"""Tests of rows that a transaction leaves behind for others to make: may this change matter to what it has read?

The committer makes them, and promotion, in turns that have to be whole. So a test that may take long has
``BUDGET_S`` for all rows together; once that is used up every row may matter, which is the safe side: the
statement is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final

from pgwire import give_way
from pgwire.give_way import OverBudget, bounded
from planner.evaluate.short import is_short
from planner.query import Expr
from txn.api import Predicate
from txn.base.types import Row

BUDGET_S: Final = 0.005


def watching(test: Callable[[Row], bool], conjuncts: Sequence[Expr]) -> Predicate:
    """Return ``test``, which is made of ``conjuncts``, as the committer may call it."""
    return test if is_short(*conjuncts) and not give_way.DEBUG else _Budgeted(test)


class _Budgeted:
    __slots__ = ("_left", "_test")

    def __init__(self, test: Callable[[Row], bool]) -> None:
        self._test = test
        self._left = BUDGET_S

    def __call__(self, row: Row) -> bool:
        if self._left <= 0:
            return True
        began = perf_counter()
        try:
            with bounded(self._left):
                return self._test(row)
        except OverBudget:
            return True
        finally:
            self._left -= perf_counter() - began
