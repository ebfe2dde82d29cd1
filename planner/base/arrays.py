"""Arrays of SQL as Python has them."""

from __future__ import annotations

from typing import Any

from pgwire.bounded import plain
from pgwire.codecs.array import dimensions, flatten
from pgwire.give_way import paced
from pgwire.long.arrays import tupled


def flat(array: tuple[Any, ...], leaf: bool = False) -> tuple[Any, ...]:
    """Return the elements of an array of any dimension, in storage order.

    ``leaf``, here and below: elements are tuples themselves (interval, timetz).
    """
    if leaf:
        return tupled(flatten(array, len(dimensions(array, True)))) if array else ()
    if array and type(array[0]) is tuple:
        return tupled([x for part in paced(array) for x in flat(part)])
    return plain(array)
