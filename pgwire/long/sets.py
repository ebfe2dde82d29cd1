"""Sets of many items, spread over many sets, so that none grows long: a set of a million is moved as one call
of C whenever it is full.

distinct(items) ──► a set, or of many a Spread: ``in``, ``add``, ``len``
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Any, Final

from pgwire.give_way import give_way, paced_iter
from pgwire.release import mind

MANY: Final = 1 << 13
"""Items of a set that grows in less than a millisecond."""
_PARTS: Final = 1021
_PACE: Final = 512


class Spread(Collection[Any]):
    """Items in sets by the rest of their hash."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        """Begin with none."""
        self._parts: list[set[Hashable]] = mind([set() for _ in range(_PARTS)])

    def add(self, item: Hashable) -> None:
        """Put an item in."""
        self._parts[hash(item) % _PARTS].add(item)

    def __contains__(self, item: object) -> bool:
        return item in self._parts[hash(item) % _PARTS]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Any]:
        for part in self._parts:
            yield from part
            give_way()


def distinct(items: Iterable[Hashable]) -> Collection[Any]:
    """Return the items, each once, giving way; to be asked for what is in them."""
    found: set[Hashable] = set()
    source = iter(items)
    for number, item in enumerate(source):
        found.add(item)
        if not number % _PACE:
            give_way()
            if len(found) >= MANY:
                break
    else:
        return found
    spread = Spread()
    for one in paced_iter(found):
        spread.add(one)
    for number, item in enumerate(source):
        spread.add(item)
        if not number % _PACE:
            give_way()
    return spread
