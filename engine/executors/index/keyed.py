"""Sets and dicts of as many keys as a client likes: many small ones in place of a large one.

    up to MANY keys    one set, one dict
    more               PARTS of them; the hash of a key says which

A dict of a million keys that grows moves all of them in one call of C, 100 ms and more; it does so at each doubling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from pgwire.give_way import paced, paced_iter
from pgwire.release import release, release_all

MANY: Final = 1 << 15
"""Keys that one set or dict has at most before there are more of them."""
PARTS: Final = 256


def _part(key: Any) -> int:
    return hash((key,)) & (PARTS - 1)  # of a number alone the hash is the number: all may have the same end


class KeySet:
    """A set of keys. ``release`` it in a ``finally``."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[set[Any]] = [set()]

    def add_one(self, key: Any) -> bool:
        """Add a key; tell whether it is new."""
        parts = self._parts
        found = parts[0] if len(parts) == 1 else parts[_part(key)]
        if key in found:
            return False
        found.add(key)
        if len(found) > MANY and len(parts) == 1:
            self._divide()
        return True

    def new(self, rows: Sequence[Any], key: Callable[[Any], Any]) -> list[Any]:
        """Return the first of the rows with each key that is not there yet, and add their keys."""
        parts = self._parts
        out: list[Any] = []
        if len(parts) == 1:
            seen = parts[0]
            for row in paced(rows):
                k = key(row)
                if k not in seen:
                    seen.add(k)
                    out.append(row)
            if len(seen) > MANY:
                self._divide()
            return out
        for row in paced(rows):
            k = key(row)
            seen = parts[_part(k)]
            if k not in seen:
                seen.add(k)
                out.append(row)
        return out

    def has(self) -> Callable[[Any], bool]:
        """Return the test for being one of the keys, of which there come no more."""
        parts = self._parts
        return parts[0].__contains__ if len(parts) == 1 else lambda key: key in parts[_part(key)]

    def _divide(self) -> None:
        parts: list[set[Any]] = [set() for _ in range(PARTS)]
        for key in paced_iter(self._parts[0]):
            parts[_part(key)].add(key)
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._parts)

    def release(self) -> None:
        """Let go of what is in it."""
        if len(self._parts) > 1:
            release_all(self._parts)
        else:
            release(self._parts[0])  # itself: ``has`` may refer to it still


class KeyTable:
    """A dict. ``release`` it in a ``finally``."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[dict[Any, Any]] = [{}]

    def part(self, key: Any) -> dict[Any, Any]:
        """Return the dict that has a key, or would have it; valid until ``grown``."""
        parts = self._parts
        return parts[0] if len(parts) == 1 else parts[_part(key)]

    def finder(self) -> Callable[[Any], Any]:
        """Return ``get``, valid until ``grown``."""
        parts = self._parts
        return parts[0].get if len(parts) == 1 else lambda key: parts[_part(key)].get(key)

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key."""
        self.part(key)[key] = value

    def grown(self) -> None:
        """Divide it once there are many keys; to be called between batches."""
        parts = self._parts
        if len(parts) == 1 and len(parts[0]) > MANY:
            self._parts = [{} for _ in range(PARTS)]
            for key, value in paced_iter(parts[0].items()):
                self._parts[_part(key)][key] = value

    def values(self) -> Iterator[Any]:
        """Yield the values, in no particular order once there are many keys."""
        return chain.from_iterable(part.values() for part in self._parts)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._parts)

    def __bool__(self) -> bool:
        return any(self._parts)

    def release(self) -> None:
        """Let go of what is in it, however few keys there are."""
        release_all(
            self._parts if len(self._parts) > 1 else self._parts[0]
        )  # itself: ``finder`` may refer to it still
