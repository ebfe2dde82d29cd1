"""Arrays whose subscripts do not begin at 1: a tuple that knows its lower bounds.

    '[0:2]={1,2,3}'              BoundedArray((1, 2, 3), (0,))
    '[2:3][-1:0]={{1,2},{3,4}}'  BoundedArray(((1, 2), (3, 4)), (2, -1))
    '[1:3]={1,2,3}'              (1, 2, 3)                         bounds of 1 are those of any tuple

Only the outermost level is one, with a bound for each dimension; it is never empty, and never are all its
bounds 1 (``bounded`` sees to it). So whoever makes a new array of its items gets one that begins at 1, and
says otherwise where the bounds are to stay.

Values of row types are bytes (``pgwire.codecs.users.composite``). Those with such an array in them say so
where their attributes begin, so that what is stored of them can be marked without a type at hand: a server
that knows no lower bounds has to refuse it by its format.

Two arrays that differ in their bounds alone are unequal; their order is decided by the bounds last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

Lows = tuple[int, ...]

_ONES: tuple[Lows, ...] = tuple((1,) * count for count in range(7))
ROW_MARK: Final = b"\xdd\0\0"
"""How a row's attributes begin then: MessagePack's header of a long array, which no other row has, being short."""


@final
class BoundedArray(tuple[Any, ...]):
    """The items of an array with lower bounds, not all of which are 1."""

    lows: Lows

    def __new__(cls, items: Sequence[Any], lows: Lows) -> BoundedArray:
        """Take ``items`` as they are; ``bounded`` makes a plain tuple where that will do."""
        made = tuple.__new__(cls, items)
        made.lows = lows
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundedArray, (tuple(self), self.lows)

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other) is True and self.lows == _lows(other, len(self.lows))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return _key(self, len(self.lows)) < _key(other, len(self.lows))

    def __le__(self, other: tuple[Any, ...]) -> bool:
        return _key(self, len(self.lows)) <= _key(other, len(self.lows))

    def __gt__(self, other: tuple[Any, ...]) -> bool:
        return _key(self, len(self.lows)) > _key(other, len(self.lows))

    def __ge__(self, other: tuple[Any, ...]) -> bool:
        return _key(self, len(self.lows)) >= _key(other, len(self.lows))

    def __repr__(self) -> str:
        return f"BoundedArray({tuple.__repr__(self)}, {self.lows})"


def _lows(value: Any, count: int) -> Lows:
    return value.lows if type(value) is BoundedArray else _ONES[count]


def _key(value: tuple[Any, ...], count: int) -> tuple[Any, Lows]:
    return tuple(value), _lows(value, count)


def ones(count: int) -> Lows:
    """Return ``count`` lower bounds of 1."""
    return _ONES[count]


def lower_bounds(value: tuple[Any, ...], count: int) -> Lows:
    """Return the lower bounds of an array of ``count`` dimensions."""
    return _lows(value, count)


def bounded(items: tuple[Any, ...], lows: Lows) -> tuple[Any, ...]:
    """Return an array of these items, nested by its dimensions, with these lower bounds."""
    if not items or lows == _ONES[len(lows)]:
        return items if type(items) is tuple else tuple(items)
    return BoundedArray(items, lows)


def plain(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the items of an array, with lower bounds of 1."""
    return tuple(value) if type(value) is BoundedArray else value


def alike(items: tuple[Any, ...], value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an array of these items with the lower bounds of ``value``, which has as many dimensions."""
    return bounded(items, value.lows) if type(value) is BoundedArray else items


def row_keeps_bounds(value: bytes) -> bool:
    """Return whether a row's value says that there is an array with lower bounds in it.

    Other bytes may happen to say so: then what holds them is refused by older servers without need.
    """
    size = int.from_bytes(value[-4:], "big")
    return 4 < size <= len(value) - 4 and value.startswith(ROW_MARK, len(value) - 4 - size)


def keeps_bounds(value: Any) -> bool:
    """Return whether there is an array with lower bounds in a value, however deep."""
    if isinstance(value, tuple):
        return type(value) is BoundedArray or any(map(keeps_bounds, value))
    return type(value) is bytes and row_keeps_bounds(value)
