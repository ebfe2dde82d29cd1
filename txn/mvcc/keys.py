"""Index keys in memory: values made comparable the way PostgreSQL orders them.

A row's key becomes an *index key*: the bare value for a one-column index, a tuple otherwise. Most kinds compare
in Python as they do in PostgreSQL; the rest are mapped:

    NULL            NULL_LAST, above everything (NULLs sort last)
    NaN             NAN, above every number, equal to itself
    interval        its length in microseconds with 30-day months, as PostgreSQL compares intervals
    tailed          the bytes that are compared
    timetz          (UTC microseconds, zone)
    text, bytes     of megabytes: ``long_keys``; so are arrays of very many elements
    list            (all elements mapped, number of dimensions, their sizes), and lower bounds that are not all 1: ``key_dims``

So ``1.0`` and ``1.00`` are one numeric key, and every index key hashes and sorts. Index keys never leave ``txn``.

In an inverted index (``txn.values.entries``) a row has a frozenset of index keys, which no other index's key
is. The keys of intervals (``txn.values.intervals``) are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final, TypeAlias

from txn.base.types import Key, PhysicalType, Row, ShardColumn, ShardIndex, bounded
from txn.mvcc.long_keys import LongList, LongText, text_key
from txn.mvcc.many_keys import LongValues, is_long
from txn.values.columns import NO_TAIL, bound_by_key, flatten_list, key_dims, nested, without_tail
from txn.values.entries import document_entries, each_document_entry, entry_type
from txn.values.intervals import node

IndexKey: TypeAlias = Any

_BYTES: Final = PhysicalType(kind="bytes")
_DAY_US: Final = 86_400_000_000
_MONTH_US: Final = 30 * _DAY_US


class _NullLast:
    """Sorts above everything but itself."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __le__(self, other: object) -> bool:
        return other is self

    def __ge__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "NULL"


class _NaN:
    """Sorts above every number and below NULL; equal to itself."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return other is NULL_LAST

    def __gt__(self, other: object) -> bool:
        return other is not self and other is not NULL_LAST

    def __le__(self, other: object) -> bool:
        return other is self or other is NULL_LAST

    def __ge__(self, other: object) -> bool:
        return other is not NULL_LAST

    def __repr__(self) -> str:
        return "NaN"


NULL_LAST: Final = _NullLast()
NAN: Final = _NaN()

_PLAIN: Final = frozenset(
    ("bool", "int16", "int32", "int64", "uuid", "date", "time", "timestamp", "timestamptz")
)
_TEXTS: Final = frozenset(("text", "bytes"))
_MAY_BE_LONG: Final = frozenset(("text", "bytes", "tailed", "list"))


def _number(value: Any) -> Any:
    return value if value == value else NAN


def _interval(value: Any) -> Any:
    months, days, us = value
    return months * _MONTH_US + days * _DAY_US + us


def _timetz(value: Any) -> Any:
    us, west = value
    return (us + west * 1_000_000, west)


def value_mapper(type_: PhysicalType) -> Callable[[Any], Any] | None:
    """Return the mapping of one non-NULL value of ``type_``, or None where Python's order is right."""
    kind = type_.kind
    if kind in _PLAIN:
        return None
    if kind in _TEXTS:
        return text_key
    if kind in ("float32", "float64", "decimal", "numeric"):
        return _number
    if kind == "interval":
        return _interval
    if kind == "timetz":
        return _timetz
    if kind == "tailed":
        return lambda value: text_key(without_tail(value))
    element = type_.element
    if element is None:
        raise ValueError("a list type needs an element type")
    inner = value_mapper(element)

    def map_(flat: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([NULL_LAST if v is None else v if inner is None else inner(v) for v in flat])

    def list_(value: Any) -> Any:
        if is_long(value):
            return LongList(value, element, map_)
        dims, flat = flatten_list(value, element)
        mapped = map_(flat)
        sizes, lows = key_dims(value, dims)
        return (mapped, len(sizes), sizes, lows) if lows else (mapped, len(sizes), sizes)

    return list_


def value_unmapper(type_: PhysicalType) -> Callable[[Any], Any] | None:
    """Return the way back from ``value_mapper``: to a value equal to the one mapped, or None where it is itself."""
    kind = type_.kind
    if kind in _PLAIN:
        return None
    if kind in _TEXTS:
        return lambda value: value.value if value.__class__ is LongText else value
    if kind in ("float32", "float64", "decimal", "numeric"):
        nan = Decimal("NaN") if kind in ("decimal", "numeric") else float("nan")
        return lambda value: nan if value is NAN else value
    if kind == "interval":
        return lambda us: (0, 0, us)
    if kind == "tailed":
        return lambda value: (value.value if value.__class__ is LongText else value) + NO_TAIL
    if kind == "timetz":
        return lambda value: (value[0] - value[1] * 1_000_000, value[1])
    inner = None if type_.element is None else value_unmapper(type_.element)

    def list_(value: Any) -> Any:
        if value.__class__ is LongList:
            return value.value
        flat, _count, dims, *bounds = value
        level = tuple(None if v is NULL_LAST else v if inner is None else inner(v) for v in flat)
        if not bounds:
            return nested(level, dims)
        sizes = (*dims[:-1], dims[-1] - bound_by_key(dims, len(flat)))
        return bounded(nested(level, sizes), bounds[0])

    return list_


class KeyMaker:
    """Makes the index keys of one index.

    ``of_row`` takes a padded row tuple, ``of_key`` a caller's key (values in index column order).
    ``has_null`` tells whether an index key contains NULL, ``exempt`` whether several rows may have it in a
    unique index, ``values`` turns one back for error messages. Of an inverted index ``of_row`` gives all keys
    of the row, in a frozenset; a caller's key is one of them. ``long``: those of values that have very many,
    None where there are none.
    """

    __slots__ = (
        "_nodes",
        "attnums",
        "exempt",
        "has_null",
        "long",
        "mappers",
        "may_be_long",
        "of_key",
        "of_row",
        "single",
        "unmappers",
        "width",
    )

    of_row: Callable[[Row], IndexKey]
    of_key: Callable[[Key], IndexKey]
    has_null: Callable[[IndexKey], bool]
    exempt: Callable[[IndexKey], bool]

    def __init__(self, columns: tuple[ShardColumn, ...], index: ShardIndex) -> None:
        """``columns`` of the shard's spec; KeyError when the index names a column that is not there."""
        by_attnum = {c.attnum: c for c in columns}
        self.attnums = index.attnums
        self.width = max(index.attnums)
        self.single = len(index.attnums) == 1
        types = [by_attnum[a].type for a in index.attnums]
        self._nodes = index.kind == "intervals"
        if index.inverted:
            (column,) = types
            types = [entry_type(index.kind, column)]
        elif self._nodes:
            types = [_BYTES]
        self.may_be_long = not self._nodes and any(type_.kind in _MAY_BE_LONG for type_ in types)
        """Whether there may be keys of megabytes, which are looked up in steps (``looked_up``)."""
        self.mappers = tuple(value_mapper(type_) for type_ in types)
        self.unmappers = tuple(value_unmapper(type_) for type_ in types)
        positions = [a - 1 for a in index.attnums]
        self.long: LongValues | None = None
        if index.inverted:
            self.of_row, self.long = _entries_of_row(positions[0], index, column, self.mappers[0])
            self.of_key = _single_of_key(self.mappers[0])
            self.has_null = _is_null
        elif self.single:
            self.of_row = _single_of_row(positions[0], node if self._nodes else self.mappers[0])
            self.of_key = _single_of_key(self.mappers[0])
            self.has_null = _is_null
        else:
            mappers = self.mappers if any(m is not None for m in self.mappers) else None
            map_tuple = _tuple_mapper(mappers)
            get = itemgetter(*positions)
            self.of_row = lambda row: map_tuple(get(row))
            self.of_key = lambda key: map_tuple(tuple(key))
            self.has_null = _any_null
        self.exempt = _out if index.guarded else self.has_null if index.nulls_distinct else _never

    def part(self, position: int, value: Any) -> Any:
        """Map one value of the key's column ``position``."""
        if value is None:
            return NULL_LAST
        mapper = self.mappers[position]
        return value if mapper is None else mapper(value)

    def values(self, ikey: IndexKey) -> Key:
        """Return a key that ``of_key`` makes ``ikey`` of (an interval comes back in microseconds)."""
        parts = (ikey,) if self.single else ikey
        return tuple(
            None if part is NULL_LAST else part if back is None else back(part)
            for part, back in zip(parts, self.unmappers, strict=True)
        )

    def raw(self, row: Row) -> Key:
        """Return the key's values as the row has them (of an interval: its node, which is the key)."""
        if self._nodes:
            value = row[self.attnums[0] - 1]
            return (None if value is None else node(value),)
        return tuple(row[a - 1] for a in self.attnums)


def under(key: IndexKey, ikey: IndexKey) -> bool:
    """Tell whether a row whose key (of an inverted index: keys) ``of_row`` gave stands under ``ikey``."""
    return bool(key == ikey) or (key.__class__ is frozenset and ikey in key)


def each(key: IndexKey) -> Iterable[IndexKey]:
    """Return the single keys of what ``of_row`` gave."""
    return key if key.__class__ is frozenset else (key,)


def but(key: IndexKey, others: Collection[IndexKey]) -> IndexKey:
    """Return what ``of_row`` gave of one version without the keys that others have; it is none of them."""
    return key.difference(*others) if others and key.__class__ is frozenset else key


def _is_null(key: IndexKey) -> bool:
    return key is NULL_LAST


def _any_null(key: IndexKey) -> bool:
    return any(part is NULL_LAST for part in key)


def _out(key: IndexKey) -> bool:
    return key[-1] is NULL_LAST


def _never(_key: IndexKey) -> bool:
    return False


def _single_of_row(position: int, mapper: Callable[[Any], Any] | None) -> Callable[[Row], IndexKey]:
    if mapper is None:

        def plain(row: Row) -> IndexKey:
            value = row[position]
            return NULL_LAST if value is None else value

        return plain

    def mapped(row: Row) -> IndexKey:
        value = row[position]
        return NULL_LAST if value is None else mapper(value)

    return mapped


def _entries_of_row(
    position: int, index: ShardIndex, column: PhysicalType, mapper: Callable[[Any], Any] | None
) -> tuple[Callable[[Row], IndexKey], LongValues]:
    none: frozenset[IndexKey] = frozenset()
    element = column.element
    kind = index.kind
    if element is not None:
        empty = frozenset((NULL_LAST,))

        def entries(value: Any) -> frozenset[IndexKey]:
            _dims, flat = flatten_list(value, element)
            if not flat:
                return empty
            return frozenset([v if mapper is None else mapper(v) for v in flat if v is not None])

        def each_entry(value: Any) -> Iterator[IndexKey]:
            _dims, flat = flatten_list(value, element)
            if not flat:
                return iter(empty)
            return (v if mapper is None else mapper(v) for v in flat if v is not None)

    else:

        def entries(value: Any) -> frozenset[IndexKey]:
            return document_entries(kind, value)

        def each_entry(value: Any) -> Iterator[IndexKey]:
            return each_document_entry(kind, value)

    long = LongValues(position, each_entry)
    known = long.known

    def of_row(row: Row) -> IndexKey:
        value = row[position]
        if value is None:
            return none
        if known and (found := known.get(id(value))) is not None:
            return found[1]
        return entries(value)

    return of_row, long


def _single_of_key(mapper: Callable[[Any], Any] | None) -> Callable[[Key], IndexKey]:
    if mapper is None:
        return lambda key: NULL_LAST if key[0] is None else key[0]
    return lambda key: NULL_LAST if key[0] is None else mapper(key[0])


def _tuple_mapper(
    mappers: tuple[Callable[[Any], Any] | None, ...] | None,
) -> Callable[[tuple[Any, ...]], IndexKey]:
    if mappers is None:

        def plain(values: tuple[Any, ...]) -> IndexKey:
            if None in values:
                return tuple(NULL_LAST if v is None else v for v in values)
            return values

        return plain

    def mapped(values: tuple[Any, ...]) -> IndexKey:
        return tuple(
            NULL_LAST if v is None else (v if m is None else m(v))
            for v, m in zip(values, mappers, strict=True)
        )

    return mapped
