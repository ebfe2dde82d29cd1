"""Rows that an inverted index has under very many keys: the keys are made, and entered, a slice at a time.

    of_row(row)                         makes all keys in one call: 10 ms for 100,000 of them, 100 of a document
    held(…, row)            ─ slices ─► of_row(row) finds them within
    LongValues.looked       ─ slices ─► whether one key is among them, none of which is kept
    HotIndex.enter_ahead    ─ slices ─► HotIndex.add(keys, row) finds that they are there

What is entered ahead of its version is harmless: who looks a key up resolves the row to the version that it
may see, and looks whether that one has the key.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

from txn.base.slices import Slice
from txn.base.types import Row

AT_ONCE: Final = 128
"""Keys that are made or entered between two looks at the clock."""
PARTS: Final = 64
"""Times so many between two turns of the loop, at most."""
LONG: Final = 4096
"""Elements of an array, or characters and bytes of a document, from which on its keys are made in slices."""

Slowly: TypeAlias = Generator[None, None, frozenset[Any]]

Judged: TypeAlias = dict[int, tuple[Any, bool]]
"""Whether versions or intents have a key that is looked up, by the identity of what is held here."""
Known: TypeAlias = Mapping[int, tuple[Any, bool]]
NOT_JUDGED: Final[Known] = {}


class LongValues:
    """The keys of long values of one column, as long as somebody is about to need them."""

    __slots__ = ("_each", "known", "position")

    def __init__(self, position: int, each: Callable[[Any], Iterator[Any]]) -> None:
        """``each``: yields the keys of one value, some of them repeatedly."""
        self.position = position
        self._each = each
        self.known: dict[int, tuple[Any, frozenset[Any]]] = {}
        """By the identity of a value that is held here: it is nobody else's meanwhile."""

    def make(self, row: Row) -> Iterator[None]:
        """Make the keys of a row whose value is long, unless they are there."""
        value = row[self.position]
        if value is not None and is_long(value) and id(value) not in self.known:
            keys = yield from gathered(self._each(value))
            self.known[id(value)] = (value, keys)
            yield

    def keys(self, row: Row) -> Slowly:
        """Return the keys of a row, made a slice between two yields, and kept by nobody else."""
        value = row[self.position]
        if value is None:
            return frozenset()
        known = self.known.get(id(value))
        return known[1] if known is not None else (yield from gathered(self._each(value)))

    def has(self, row: Row) -> bool:
        """Tell whether the keys of a row have been made."""
        return id(row[self.position]) in self.known

    def looked(self, row: Row, wanted: Any) -> Generator[None, None, bool]:
        """Return whether a row has a key, looked for a slice between two yields."""
        value = row[self.position]
        if value is None:
            return False
        known = self.known.get(id(value))
        if known is not None:
            return wanted in known[1]
        keys = self._each(value)
        pause = Slice(PARTS, look=1)
        while part := list(islice(keys, AT_ONCE)):
            if wanted in part:
                return True
            if pause.over():
                yield
        return False

    def forget(self, row: Row) -> None:
        """Nobody is about to need the keys of a row; who does makes them anew."""
        self.known.pop(id(row[self.position]), None)


class Maker(Protocol):
    """What makes the keys of an index (``txn.mvcc.keys``), as far as it matters here."""

    @property
    def long(self) -> LongValues | None:
        """What makes those of long values; None unless the index is inverted."""


class Made(Protocol):
    """An index, or what writing needs of one."""

    @property
    def make(self) -> Maker:
        """What makes its keys."""


def longs_of(indexes: Iterable[Made]) -> list[LongValues]:
    """Return what makes the keys of long values for those of some indexes that are inverted."""
    return [index.make.long for index in indexes if index.make.long is not None]


@contextmanager
def held(longs: Sequence[LongValues], *rows: Row) -> Iterator[Iterator[None]]:
    """Have the keys of rows at hand within; what is given makes them, a slice between two yields."""
    try:
        yield (None for long in longs for row in rows for _ in long.make(row))
    finally:
        for long in longs:
            for row in rows:
                long.forget(row)


def is_long(value: Any) -> bool:
    """Tell whether a document, or an array of any number of dimensions, has its keys made in slices."""
    return size_of(value) > LONG


def size_of(value: Any) -> int:
    """Return how many characters a document has, or elements an array of any number of dimensions."""
    size = len(value)
    while isinstance(value, tuple) and value and isinstance(value[0], tuple):
        value = value[0]
        size *= len(value)
    return size


def elements_of(row: Row) -> int:
    """Return how many elements the arrays of a row have."""
    return sum([size_of(value) for value in row if isinstance(value, tuple)])


def gathered(keys: Iterator[Any]) -> Slowly:
    """Return what comes out of an iterator, a slice between two yields."""
    found: set[Any] = set()
    pause = Slice(PARTS, look=1)
    while part := list(islice(keys, AT_ONCE)):
        found.update(part)
        if pause.over():
            yield
    yield
    return frozenset(found)


def in_parts(keys: frozenset[Any]) -> Iterator[frozenset[Any]]:
    """Yield keys some at a time."""
    left = iter(keys)
    while part := frozenset(islice(left, AT_ONCE)):
        yield part
