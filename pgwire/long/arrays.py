"""Long tuples, the values of arrays, made, cut and compared piece by piece, so that others run in between.

    a || b          chained((a, b)) ──► one tuple, filled from pieces ──► give_way() ──► … ──► tuple
    a[2:], a = b    cut(a, 1, None), order(a, b)

A tuple of ten million items is 80 MB of memory, and each item is touched for its count of references: 100 ms
as one call of C. So it is made as long as it will be, and filled with pieces (``Filling``); what is shorter
than ``LONG`` is left to Python. Python's own way to make one of an iterator has it grow by a quarter of its
length, whose pages are touched in one go, and has the collector walk it meanwhile. To let go of one takes as
long: ``pgwire.release.mind`` sees to it.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from pgwire.give_way import give_way
from pgwire.release import mind, release

PIECE: Final = 1 << 15
"""Items of one call of C: a third of a millisecond."""
LONG: Final = 2 * PIECE
"""What is shorter is one call of C."""
_KEYS: Final = 1 << 12
"""Keys that are compared at once: each may be a tuple of tuples."""

Items = Sequence[Any]

_make = ctypes.pythonapi._PyObject_GC_NewVar
_make.restype, _make.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.c_ssize_t)
_libc: Final = ctypes.PyDLL(
    None
)  # its calls keep the interpreter: nobody sees references that are there twice
_move: Final = _libc.memmove
_move.restype, _move.argtypes = None, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_POINTER: Final = ctypes.sizeof(ctypes.c_void_p)
_SIZE_AT: Final = object.__basicsize__  # of a tuple, behind what every object has
_ITEMS_AT: Final = tuple.__basicsize__


class Filling:
    """A tuple that is made as long as it will be, in memory that nobody has touched, and filled piece by piece.

    It says to be as long as it is filled, so that it is a tuple at any time: whoever abandons it frees what
    is there. The collector does not know it.
    """

    __slots__ = ("_at", "_length", "_made")

    def __init__(self, length: int) -> None:
        """``length``: items that it will have, 1 at least. Fill it before anything else can fail."""
        self._made: tuple[Any, ...] = _make(tuple, length)
        self._length = ctypes.c_ssize_t.from_address(id(self._made) + _SIZE_AT)
        self._length.value = 0
        self._at = id(self._made) + _ITEMS_AT

    def add(self, items: Items) -> None:
        """Add items behind those that are there; there must be room. A tuple must be nobody else's: nothing
        is left in it.
        """
        part = items if type(items) is tuple else tuple(items)
        count = len(part)
        _move(self._at, id(part) + _ITEMS_AT, _POINTER * count)
        ctypes.c_ssize_t.from_address(id(part) + _SIZE_AT).value = 0  # the references are the other one's now
        self._at += _POINTER * count
        self._length.value += count

    def done(self) -> tuple[Any, ...]:
        """Return the tuple; it is nobody else's."""
        made, self._made = self._made, ()
        return made


def _filled(length: int, pieces: Iterator[Items]) -> tuple[Any, ...]:
    """Return ``length`` items that come in pieces, of which there are more than one, as a tuple."""
    first = next(pieces)
    filling = Filling(length)
    filling.add(first)
    for piece in pieces:
        filling.add(piece)
    return mind(filling.done())


def chained(parts: Sequence[Items]) -> tuple[Any, ...]:
    """Return the items of all ``parts``, one part after the other, as a tuple."""
    if sum(map(len, parts)) < LONG:
        return tuple(chain.from_iterable(parts))
    for part in parts:
        if type(part) is list and len(part) >= LONG:  # made for this, most likely
            mind(part)
    return _filled(sum(map(len, parts)), _pieces(parts))


def tupled(items: Items) -> tuple[Any, ...]:
    """Return ``tuple(items)``."""
    return tuple(items) if len(items) < LONG or type(items) is tuple else chained((items,))


def listed(items: Items) -> list[Any]:
    """Return ``list(items)``."""
    if len(items) < LONG:
        return list(items)
    made: list[Any] = []
    for piece in _pieces((items,)):
        made += piece
    return mind(made)


def gathered(items: Iterable[Any]) -> list[Any]:
    """Return ``list(items)``, of an iterator that gives way; the list is freed in slices, also where the
    iterator fails or is cancelled.
    """
    made: list[Any] = []
    try:
        made.extend(items)
    except BaseException:
        release(made)
        raise
    return mind(made) if len(made) >= LONG else made


def repeated(item: Any, count: int) -> tuple[Any, ...]:
    """Return ``(item,) * count``."""
    if count < LONG:
        return (item,) * count
    return _filled(count, _giving_way((item,) * min(PIECE, count - at) for at in range(0, count, PIECE)))


def cut(items: tuple[Any, ...], start: int, end: int | None = None) -> tuple[Any, ...]:
    """Return ``items[start:end]``."""
    start, end, _ = slice(start, end).indices(len(items))
    return items if end - start == len(items) else tupled_part(items, start, end)


def tupled_part(items: Items, start: int, end: int) -> tuple[Any, ...]:
    """Return ``tuple(items[start:end])`` of bounds that are within ``items``."""
    if end - start < LONG:
        return tuple(items[start:end])
    return _filled(end - start, _pieces((items,), start, end))


def holds(items: Items, item: Any) -> bool:
    """Return ``item in items``."""
    if len(items) < LONG:
        return item in items
    return any(item in piece for piece in _pieces((items,)))


def differ(a: Items, b: Items, size: int = PIECE) -> tuple[Items, Items]:
    """Return what ``a`` and ``b`` are compared by: themselves where they are short, else the first pieces
    that are not equal.
    """
    least = min(len(a), len(b))
    if least < LONG:
        return a, b
    for at in range(0, least, size):
        x, y = a[at : at + size], b[at : at + size]
        if x != y:
            return x, y
        give_way()
    return a[least : least + 1], b[least : least + 1]


def equal(a: Items, b: Items) -> bool:
    """Return ``a == b``."""
    return len(a) == len(b) and operator.eq(*differ(a, b))


class Ordered:
    """Many items as a key of a sort or of a hash: compared with others of its kind piece by piece."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: tuple[Any, ...]) -> None:
        self._items = items
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Ordered and self._equals(other)

    def _equals(self, other: Any) -> bool:
        a, b = self._items, other._items
        return len(a) == len(b) and operator.eq(*differ(a, b, _KEYS))

    def __lt__(self, other: Ordered | tuple[Any, ...]) -> bool:
        a, b = differ(self._items, _items(other), _KEYS)
        return tuple(a) < tuple(b)

    def __gt__(self, other: Ordered | tuple[Any, ...]) -> bool:
        a, b = differ(self._items, _items(other), _KEYS)
        return tuple(a) > tuple(b)

    def __le__(self, other: Ordered | tuple[Any, ...]) -> bool:
        return not self > other

    def __ge__(self, other: Ordered | tuple[Any, ...]) -> bool:
        return not self < other

    def __hash__(self) -> int:
        if self._hash is None:
            found = 0
            for piece in _pieces((self._items,)):
                found = hash((found, piece))
            self._hash = found
        return self._hash


def _items(key: Ordered | tuple[Any, ...]) -> Items:
    return key._items if isinstance(key, Ordered) else key


def ordered(items: tuple[Any, ...]) -> Any:
    """Return what sorts and hashes as the tuple does, also beside others: the tuple itself where it is short."""
    return items if len(items) < LONG else Ordered(items)


def _pieces(parts: Iterable[Items], start: int = 0, end: int | None = None) -> Iterator[Items]:
    for part in parts:
        last = len(part) if end is None else end
        for at in range(start, last, PIECE):
            piece = part[at : min(at + PIECE, last)]
            yield (*piece,) if piece is part else piece
            del piece
            give_way()


def _giving_way(parts: Iterable[Items]) -> Iterator[Items]:
    for part in parts:
        yield part
        give_way()
