"""Ordered-set and hypothetical-set aggregates: percentiles, mode, the rank a row would have.

They are stepped in WITHIN GROUP order and get their direct arguments at creation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from pgwire.bounded import alike
from pgwire.give_way import paced
from pgwire.long.arrays import gathered, tupled
from planner.base.errors import SqlError
from planner.functions.aggregates.states import python_form
from planner.functions.registry import REGISTRY
from planner.functions.values.compare import hash_key


def _fraction(p: float) -> float:
    if p != p or not 0 <= p <= 1:
        raise SqlError("22003", f"percentile value {p:g} is not between 0 and 1")
    return p


def _leaves(value: tuple[Any, ...]) -> Iterator[Any]:
    for item in paced(value):
        if type(item) is tuple:
            yield from _leaves(item)
        else:
            yield item


def _map_nested(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, tuple):
        return alike(tupled(gathered(_map_nested(function, x) for x in paced(value))), value)
    return None if value is None else function(value)


class Percentile:
    """percentile_cont and percentile_disc, for one fraction or an array of them."""

    __slots__ = ("continuous", "direct", "interval", "items")

    def __init__(self, continuous: bool, direct: tuple[Any, ...], interval: bool = False) -> None:
        self.continuous = continuous
        self.interval = interval
        self.direct = direct[0]
        if self.direct is not None:
            for p in _leaves(self.direct) if isinstance(self.direct, tuple) else (self.direct,):
                if p is not None:
                    _fraction(p)
        self.items: list[Any] = []

    def step(self, value: Any) -> None:
        """Take the next value in order."""
        self.items.append(value)

    def result(self) -> Any:
        """Return the value at the fraction; NULL for no rows or a NULL fraction."""
        if not self.items or self.direct is None:
            return None
        pick = self._continuous if self.continuous else self._discrete
        return _map_nested(pick, self.direct) if isinstance(self.direct, tuple) else pick(self.direct)

    def _discrete(self, p: float) -> Any:
        return self.items[max(math.ceil(p * len(self.items)) - 1, 0)]

    def _continuous(self, p: float) -> Any:
        position = p * (len(self.items) - 1)
        low, high = math.floor(position), math.ceil(position)
        a, b = self.items[low], self.items[high]
        if low == high:
            return a
        share = position - low
        if self.interval:
            difference = python_form("interval_mi(interval,interval)")(b, a)
            part = python_form("interval_mul(interval,float8)")(difference, share)
            return python_form("interval_pl(interval,interval)")(a, part)
        return a + share * (b - a)


class Mode:
    """SQL's ``mode``: the most frequent value, the first in order among equals."""

    __slots__ = ("best", "best_count", "count", "key", "last", "value")

    def __init__(self, types: tuple[int, ...], direct: tuple[Any, ...] = ()) -> None:
        self.key = hash_key(types[0])
        self.last: Any = None
        self.value: Any = None
        self.best: Any = None
        self.count = self.best_count = 0

    def step(self, value: Any) -> None:
        """Take the next value in order."""
        key = value if self.key is None else self.key(value)
        if self.count and key == self.last:
            self.count += 1
        else:
            self.last, self.value, self.count = key, value, 1
        if self.count > self.best_count:
            self.best, self.best_count = self.value, self.count

    def result(self) -> Any:
        """Return it; NULL for no rows."""
        return self.best


class Hypothetical:
    """rank, dense_rank, percent_rank, cume_dist of a row that is not there.

    Stepped with -1, 0, 1: how each row of the group compares with the hypothetical one, and with whether the row
    equals the one before it.
    """

    __slots__ = ("before", "distinct", "kind", "n", "same")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.n = self.before = self.same = self.distinct = 0

    def step(self, order: int, repeated: bool) -> None:
        """Take the next row in order."""
        self.n += 1
        if order < 0:
            self.before += 1
            self.distinct += not repeated
        elif order == 0:
            self.same += 1

    def result(self) -> Any:
        """Return the statistic."""
        if self.kind == "rank":
            return self.before + 1
        if self.kind == "dense_rank":
            return self.distinct + 1
        if self.kind == "percent_rank":
            return self.before / self.n if self.n else 0.0
        return (self.before + self.same + 1) / (self.n + 1)


HYPOTHETICAL = ("rank", "dense_rank", "percent_rank", "cume_dist")


def _register() -> None:
    register = REGISTRY.aggregate_python
    for array in ("float8", "_float8"):
        register(f"percentile_cont({array},float8)", lambda direct: Percentile(True, direct))
        register(f"percentile_cont({array},interval)", lambda direct: Percentile(True, direct, True))
        register(f"percentile_disc({array},anyelement)", lambda direct: Percentile(False, direct))
    register("mode(anyelement)", Mode, needs_types=True)
    for kind in HYPOTHETICAL:
        register(f"{kind}(any)", lambda kind=kind: Hypothetical(kind), skip_nulls=False)


_register()
