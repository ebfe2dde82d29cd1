"""Records as keys: two of them are compared column by column, each of whose types has to be the same in both.

    (1, 2) beside (1, 2.0)   42804, column 2 is an integer here and a numeric there
    (1, 2) beside (2, 2.0)   less: column 1 decides before the types of column 2 are looked at
    (1, 2) beside (1)        42804, as one has columns left when the other is at its end

So it depends on the values whether two records can be compared, which no hash can tell. PostgreSQL sorts
records where it would hash other values, and meets in a sorted list whatever cannot be compared. ``meet``
finds the same in what was hashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pgwire.codecs.system import RecordValue
from pgwire.give_way import paced, paced_iter
from planner.base.errors import SqlError
from planner.conversion.row_parts import can_equate, can_order
from planner.facts import RECORD
from planner.types.facts import element_of, format_type


class RecordKey:
    """What a record sorts, hashes and compares by; comparing raises 42804 and 42883 (a column that has no order).

    Attributes:
        types: oids of the columns' types.
    """

    __slots__ = ("_fields", "_hash", "_hashed", "types")

    def __init__(
        self, value: RecordValue, fields: list[Any], hashed: Callable[[int], Callable[[Any], Any] | None]
    ) -> None:
        """``fields``: the sort key of each column, None for NULL; ``hashed``: a type's equality key."""
        self.types = value.types
        self._fields = fields
        self._hash: int | None = None
        self._hashed = (value, hashed)

    def order(self, other: RecordKey, known: Callable[[int], None]) -> int:
        """Return -1, 0 or 1; ``known`` raises where a type cannot be compared. The first column that differs
        decides.
        """
        types, theirs = self.types, other.types
        for number, (type_, their) in enumerate(zip(types, theirs, strict=False)):
            if type_ != their:
                raise SqlError(
                    "42804",
                    f"cannot compare dissimilar column types {format_type(type_)} and {format_type(their)} "
                    f"at record column {number + 1}",
                )
            known(type_)
            a, b = self._fields[number], other._fields[number]
            if a is None or b is None:
                if a is not b:
                    return 1 if a is None else -1
            elif a.__class__ is RecordKey:
                if inner := a.order(b, known):
                    return inner
            elif a != b:
                return -1 if a < b else 1
        if len(types) != len(theirs):
            raise SqlError("42804", "cannot compare record types with different numbers of columns")
        return 0

    # Python's sort asks whether the later one is less, PostgreSQL how the earlier one compares: its error
    # names that first.

    def __lt__(self, other: RecordKey) -> bool:
        return other.order(self, ordered) > 0

    def __gt__(self, other: RecordKey) -> bool:
        return other.order(self, ordered) < 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordKey):
            return NotImplemented
        return self is other or other.order(self, ordered) == 0

    def __hash__(self) -> int:
        if self._hash is None:
            value, hashed = self._hashed
            parts = [hashed(oid) for oid in value.types]
            keys = [x if k is None or x is None else k(x) for x, k in zip(value, parts, strict=True)]
            self._hash = hash((value.types, *keys))
        return self._hash


def anyhow(oid: int) -> None:
    """Every type can be compared."""


def ordered(oid: int) -> None:
    """Raise 42883 for a type without a default order, or of whose columns one has none."""
    if not can_order(oid):
        raise SqlError("42883", f"could not identify a comparison function for type {format_type(oid)}")


def equated(oid: int) -> None:
    """Raise 42883 for a type without a default equality, or of whose columns one has none."""
    if not can_equate(oid):
        raise SqlError("42883", f"could not identify an equality operator for type {format_type(oid)}")


def has_records(oid: int) -> bool:
    """Tell whether values of the type are records without a type of their own, or arrays of them."""
    return oid == RECORD or element_of(oid) == RECORD


def meet(keys: Iterable[Any], positions: Sequence[int]) -> None:
    """Raise what PostgreSQL raises when it sorts these keys, which are tuples with records (or arrays) at
    ``positions``.

    Keys that differ elsewhere never meet: each group is sorted by itself, and only where its records have more than one
    list of types, or types without an order.
    """
    groups: dict[Any, list[Any]] = {}
    for key in paced_iter(iter(keys)):
        found = [key[p] for p in positions]
        rest = tuple([part for p, part in enumerate(key) if p not in positions])
        groups.setdefault(rest, []).append(tuple([(x is None, x) for x in found]))
    for group in paced_iter(iter(groups.values())):
        if len(group) > 1 and not _alike(group):
            group.sort()


def _alike(group: list[tuple[tuple[bool, Any], ...]]) -> bool:
    """Tell whether the group's records are all of the same types, which have an order."""
    types = None
    for parts in paced(group):
        for null, x in parts:
            if null:
                continue
            if x.__class__ is not RecordKey:
                return False
            if types is None:
                types = x.types
                if not all(map(can_order, types)):
                    return False
            elif types != x.types:
                return False
    return True
