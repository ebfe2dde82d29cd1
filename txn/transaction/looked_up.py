"""Keys of megabytes, looked up in parts in a thread before they are looked up on the event loop.

    with looked_up(parts, index, keys) as looking:
        for step in looking:                  a thread reads the keys beside it: 60 MB are 30 ms
            yield step
        … part.lookup(index, key) …           knows

A part never changes, so what was found stays right. A part that has come meanwhile is looked through on the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from txn.base.types import IndexId, Key
from txn.mvcc.long_keys import is_long_value

if TYPE_CHECKING:
    from txn.mvcc.parts import PartState


def is_long(key: Key) -> bool:
    """Tell whether a key takes long to be looked up."""
    return any(value is not None and is_long_value(value) for value in key)


@contextmanager
def looked_up(
    parts: Sequence[PartState], index: IndexId, keys: Sequence[Key]
) -> Iterator[Iterator[Awaitable[None]]]:
    """Have what parts say of long keys at hand within; what is given finds it out, and has to be awaited one
    after the other. The keys' values must be the very ones that are looked up then.
    """
    asked: list[tuple[Any, Key]] = []

    def steps() -> Iterator[Awaitable[None]]:
        for key in keys:
            if None in key or not is_long(key):
                continue
            for part in parts:
                asked.append((part.file, key))
                yield part.file.look_up(index, key)

    try:
        yield steps()
    finally:
        for file, key in asked:
            file.forget_key(index, key)
