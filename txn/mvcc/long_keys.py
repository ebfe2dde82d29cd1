"""Index keys of megabytes: values that are hashed by a sample, and compared where they lie.

    'ab…60 MB…yz'    hash: its length, both ends and 64 places between, which nobody outside can guess
                     ==    the same object, as in all that was made of one row; else both are read, up to where they differ
    (1, 2, … n)      an array, likewise: elements are mapped (``txn.mvcc.keys``) as they are compared

To hash a value of 60 MB takes 40 ms, to make a key of an array of 200,000 elements 20, each time: whoever
runs beside it waits as long. Keys whose samples are alike are compared in full where they meet, up to the
first difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from txn.base.huge_values import SHARED_BYTES
from txn.base.types import PhysicalType
from txn.mvcc.many_keys import is_long
from txn.values.columns import flatten_list, key_dims

LONG_BYTES: Final = SHARED_BYTES
"""Characters or bytes from which on a value is such a key."""
_ENDS: Final = 4096
_PLACES: Final = tuple(sorted(int.from_bytes(os.urandom(4), "big") / (1 << 32) for _ in range(64)))
_WIDTH: Final = 64
_FEW: Final = 16  # elements that are sampled at each end
_CHUNK: Final = 4096  # elements compared at once


class LongText:
    """A text or bytes: equal to another with equal contents, in their order."""

    __slots__ = ("_equal", "_hash", "value")

    def __init__(self, value: str | bytes) -> None:
        self.value: Any = value
        self._equal: Any = None  # another value that it was found to be equal to
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            value = self.value
            size = len(value)
            inner = tuple([value[(at := int(size * place)) : at + _WIDTH] for place in _PLACES])
            self._hash = hash((size, value[:_ENDS], value[-_ENDS:], inner))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not LongText:
            return False
        ours, theirs = self.value, other.value
        if ours is theirs or other._equal is ours or self._equal is theirs:
            return True
        if hash(self) != hash(other) or ours != theirs:
            return False
        other._equal = ours  # it is the one that is looked up: the row that is found is compared next
        return True

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < _plain(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > _plain(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= _plain(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= _plain(other))

    def __repr__(self) -> str:
        return f"LongText({self.value[:20]!r}…)"


def _plain(other: Any) -> Any:
    return other.value if other.__class__ is LongText else other


class LongList:
    """An array: compared with others, and with the keys of short ones, as ``(mapped elements, dimensions,
    sizes, bounds)`` is.
    """

    __slots__ = ("_flat", "_hash", "_map", "_rest", "value")

    def __init__(
        self, value: Any, element: PhysicalType, mapped: Callable[[Sequence[Any]], tuple[Any, ...]]
    ) -> None:
        """``mapped``: elements as keys have them."""
        self.value = value
        dims, self._flat = flatten_list(value, element)
        sizes, lows = key_dims(value, dims)
        self._rest: tuple[Any, ...] = (len(sizes), sizes, lows) if lows else (len(sizes), sizes)
        self._map = mapped
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            flat = self._flat
            size = len(flat)
            some = [*flat[:_FEW], *flat[-_FEW:], *[flat[int(size * place)] for place in _PLACES if size]]
            self._hash = hash((self._rest, self._map(some)))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not LongList:
            return False
        return self.value is other.value or (hash(self) == hash(other) and self._compare(other) == 0)

    def _compare(self, other: Any) -> int:
        """Return whether this comes before (-1) another key, behind it (1), or is equal (0)."""
        if other.__class__ is LongList:
            theirs, rest, map_theirs = other._flat, other._rest, other._map
        else:  # of a short array, whose elements are mapped
            theirs, *rest = other
            rest, map_theirs = tuple(rest), tuple
        ours = self._flat
        for at in range(0, min(len(ours), len(theirs)) + 1, _CHUNK):
            a, b = ours[at : at + _CHUNK], theirs[at : at + _CHUNK]
            if a != b or map_theirs is tuple:
                x, y = self._map(a), map_theirs(b)
                if x != y:
                    return -1 if x < y else 1
        if len(ours) != len(theirs):
            return -1 if len(ours) < len(theirs) else 1
        return 0 if self._rest == rest else -1 if self._rest < rest else 1

    def __lt__(self, other: Any) -> Any:
        return self._compare(other) < 0 if other.__class__ in _LISTS else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return self._compare(other) > 0 if other.__class__ in _LISTS else NotImplemented

    def __le__(self, other: Any) -> Any:
        return self._compare(other) <= 0 if other.__class__ in _LISTS else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return self._compare(other) >= 0 if other.__class__ in _LISTS else NotImplemented


_LISTS: Final = (LongList, tuple)


def text_key(value: Any) -> Any:
    """Return the key of a text or bytes."""
    return value if len(value) < LONG_BYTES else LongText(value)


def is_long_value(value: Any) -> bool:
    """Tell whether a value of a row is one of which such a key is made."""
    kind = value.__class__
    if kind is str or kind is bytes:
        return len(value) >= LONG_BYTES
    return isinstance(value, tuple) and is_long(value)
