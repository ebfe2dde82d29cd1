"""Dicts of many keys, spread over many dicts, so that none grows long: one of a million keys is moved as one
call of C, 60 ms, whenever it is full.

gathered(pairs) ──► a dict, or of many pairs a Wide: whatever a dict is asked for
"""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Final

from pgwire.give_way import give_way
from pgwire.long.values import LONG
from pgwire.release import mind_long

MANY: Final = 1 << 16
"""Keys of a dict that grows in some milliseconds."""
_PARTS: Final = 1021
_PIECE: Final = 512


class Wide(dict[Any, Any]):
    """A dict whose entries are in others by the rest of their keys' hash; itself it stays empty.

    To be used by Python's code, which calls its methods: what is written in C and looks into a dict finds
    nothing. In order; a key that was deleted and comes again has the place that it had.
    """

    __slots__ = ("_gone", "_order", "_parts", "_size")

    def __init__(self, entries: Mapping[Any, Any]) -> None:
        """Begin with some entries."""
        self._parts: list[dict[Any, Any]] = [{} for _ in range(_PARTS)]
        self._order: list[Hashable] = []
        self._gone: set[Hashable] = set()
        self._size = 0
        self.update(entries)

    def __setitem__(self, key: Hashable, value: Any) -> None:
        part = self._parts[hash(key) % _PARTS]
        if key not in part:
            self._size += 1
            if key in self._gone:
                self._gone.remove(key)
            else:
                self._order.append(key)
        part[key] = value

    def update(self, entries: Mapping[Any, Any]) -> None:  # type: ignore[override]  # of mappings alone
        """Put entries in, giving way."""
        for number, (key, value) in enumerate(entries.items()):
            self[key] = value
            if not number % _PIECE:
                give_way()

    def __getitem__(self, key: Hashable) -> Any:
        return self._parts[hash(key) % _PARTS][key]

    def get(self, key: Hashable, default: Any = None) -> Any:
        """Return the value of a key, or ``default``."""
        return self._parts[hash(key) % _PARTS].get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._parts[hash(key) % _PARTS]

    def __delitem__(self, key: Hashable) -> None:
        del self._parts[hash(key) % _PARTS][key]
        self._gone.add(key)
        self._size -= 1

    def pop(self, key: Hashable, *default: Any) -> Any:
        """Take a key out and return its value; ``default``, or KeyError, where it is not there."""
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[Any, Any]:
        """Take the last entry out. KeyError if there is none."""
        while self._order:
            key = self._order.pop()
            if key not in self._gone:
                self._size -= 1
                return key, self._parts[hash(key) % _PARTS].pop(key)
            self._gone.remove(key)
        raise KeyError("empty")

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return self._in_turn(range(0, len(self._order), _PIECE), 1)

    def __reversed__(self) -> Iterator[Any]:
        return self._in_turn(reversed(range(0, len(self._order), _PIECE)), -1)

    def _in_turn(self, starts: Iterable[int], step: int) -> Iterator[Any]:
        for start in starts:
            for key in self._order[start : start + _PIECE][::step]:
                if key not in self._gone:
                    yield key
            give_way()

    def keys(self) -> KeysView[Any]:  # type: ignore[override]  # those of dicts are of C
        """Return the keys in order."""
        return KeysView(self)

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """Return the values in order."""
        return ValuesView(self)

    def items(self) -> ItemsView[Any, Any]:  # type: ignore[override]
        """Return the entries in order."""
        return ItemsView(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict) or len(self) != len(other):
            return False
        return all(key in other and other[key] == value for key, value in self.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _refused(self, *_: Any) -> Any:
        raise NotImplementedError("what nobody has asked of a Wide dict yet: the dict below it is empty")

    copy = clear = setdefault = fromkeys = __or__ = __ror__ = __ior__ = _refused


def grown(found: dict[Any, Any], more: int = 1) -> dict[Any, Any]:
    """Return what ``more`` keys may be put into: the dict itself, or a Wide one that takes its place."""
    return found if len(found) + more <= MANY or type(found) is Wide else mind_long(Wide(found))


def gathered(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return ``dict(pairs)``, giving way; it is freed in slices."""
    found: dict[Any, Any] = {}
    for number, (key, value) in enumerate(pairs):
        found[key] = value
        if not number % _PIECE or (type(key) is str and len(key) >= LONG):  # whose hash takes a millisecond
            give_way()
            found = grown(found)
    return mind_long(found) if type(found) is dict else found
