"""What ``jsonb['a'][3] = x`` and ``hstore['a'] = x`` make of a value, in UPDATE ... SET (manual 8.14.5, F.18).

    {"a": 1}    ['b'] = 2         {"a": 1, "b": 2}
    {}          ['a'][1] = 2      {"a": [null, 2]}        what is not there is made, as the next key says
    NULL        [0] = 2           [2]                     an array where the first subscript is an integer
    [1, 2]      [-1] = 9          [1, 9]                  negative ones count from the end
    {"a": 1}    ['a'][0] = 2      22023                   a scalar is not replaced by what would hold the part

Values are jsonb's canonical text, and an hstore's bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pgwire.codecs.json import dump, load
from pgwire.codecs.json.hstore import pack, unpack
from planner.base.errors import SqlError
from planner.evaluate.assign import MAX_GROWN
from planner.functions.json.values import integer


def assign_pair(value: bytes | None, key: str | None, text: str | None) -> bytes:
    """Return an hstore with ``key`` set. Raises SqlError 22004."""
    if key is None:
        raise SqlError("22004", "hstore subscript in assignment must not be null")
    return pack(chain(((key, text),), () if value is None else unpack(value).items()))


def keys_given(keys: tuple[str | int | None, ...]) -> tuple[str, ...]:
    """Return subscripts of a jsonb, of which none may be NULL, as texts. Raises SqlError 22004."""
    path = tuple([str(key) for key in keys if key is not None])
    if len(path) < len(keys):
        raise SqlError("22004", "jsonb subscript in assignment must not be null")
    return path


def assign_member(value: str | None, path: tuple[str, ...], item: str | None, numbered: bool) -> str:
    """Return a jsonb with ``item`` (NULL: null) at the end of a path; ``numbered``: the first subscript is an integer.

    Raises SqlError 22023, 22P02, 54000.
    """
    empty: Any = [] if numbered else {}
    whole = empty if value is None else load(value)
    _put(whole, path, 0, None if item is None else load(item))
    return dump(whole)


def _put(inside: Any, path: Sequence[str], level: int, item: Any) -> None:
    """Set what ``path`` from ``level`` on leads to in an object or array, in place."""
    key: Any = path[level]
    if isinstance(inside, list):
        key = _index(path, level, len(inside))
        there = key < len(inside)
        inside += _nulls(key - len(inside) + 1)
    elif isinstance(inside, dict):
        there = key in inside
    else:
        raise SqlError(
            "22023",
            "cannot replace existing key",
            detail="The path assumes key is a composite object, but it is a scalar value.",
        )
    if there and level + 1 < len(path):
        _put(inside[key], path, level + 1, item)
    else:
        inside[key] = _made(path, level + 1, item)


def _index(path: Sequence[str], level: int, length: int) -> int:
    index = integer(path[level])
    if index is None:
        raise SqlError("22P02", f'path element at position {level + 1} is not an integer: "{path[level]}"')
    if index < -length:
        raise SqlError("22023", f"path element at position {level + 1} is out of range: {index}")
    return index if index >= 0 else length + index


def _made(path: Sequence[str], level: int, item: Any) -> Any:
    """Return ``item`` in the objects and arrays that the rest of a path asks for."""
    for key in reversed(path[level:]):
        index = integer(key)
        item = {key: item} if index is None else [*_nulls(index), item]
    return item


def _nulls(count: int) -> list[None]:
    if count > MAX_GROWN:
        raise SqlError("54000", f"number of jsonb array elements exceeds the maximum allowed ({MAX_GROWN})")
    return [None] * count
