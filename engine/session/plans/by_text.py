"""What is kept by the text of a statement: bounded by entries and by characters, least recently used first out.

    key = (text, ...)      a plan takes about BYTES of memory for each character of its text, often more than the text says (``weight``)

A bound on entries alone would let a client that sends 2,000 long statements fill gigabytes, which a full
garbage collection then walks.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Generic, TypeAlias, TypeVar

from pgwire.release import release_all

_V = TypeVar("_V")

TextKey: TypeAlias = "tuple[str, tuple[int, ...], Any]"
"""Text, types of parameters, and what else its meaning depends on."""


ENTRIES: Final = 2000
CHARACTERS: Final = 1 << 20
"""Of the texts of all entries together: some 100 MB of plans."""
BYTES: Final = 90
"""That a plan takes for each character of its text."""


class ByText(Generic[_V]):
    """Key -> what is kept of it."""

    __slots__ = ("_characters", "_entries", "_items", "_sizes", "_used")

    def __init__(self, entries: int = ENTRIES, characters: int = CHARACTERS) -> None:
        """Start empty; the arguments are the bounds."""
        self._entries = entries
        self._characters = characters
        self._used = 0  # characters
        self._items: OrderedDict[TextKey, _V] = OrderedDict()
        self._sizes: dict[TextKey, int] = {}

    def __contains__(self, key: TextKey) -> bool:
        """Tell whether something is kept."""
        return key in self._items

    def get(self, key: TextKey) -> _V | None:
        """Return what is kept, which counts as a use."""
        found = self._items.get(key)
        if found is not None:
            self._items.move_to_end(key)
        return found

    def peek(self, key: TextKey) -> _V | None:
        """Return what is kept, without a use of it."""
        return self._items.get(key)

    def put(self, key: TextKey, item: _V, weight: int = 0) -> None:
        """Keep an item, in place of the one before if there is one; the latest stays, however long its text.
        ``weight``: characters that it counts for beside its text.
        """
        self.drop(key)
        self._items[key] = item
        size = self._sizes[key] = len(key[0]) + weight
        self._used += size
        while len(self._items) > self._entries or (self._used > self._characters and len(self._items) > 1):
            first, _item = self._items.popitem(last=False)
            self._went(first)

    def drop(self, key: TextKey) -> bool:
        """Forget an item; tell whether there was one."""
        if key not in self._items:
            return False
        del self._items[key]
        self._went(key)
        return True

    def _went(self, key: TextKey) -> None:
        self._used -= self._sizes.pop(key)

    def clear(self) -> None:
        """Forget everything; where the loop runs it is freed in the turns that follow."""
        items, self._items = self._items, OrderedDict()
        self._sizes = {}
        self._used = 0
        release_all(items)
