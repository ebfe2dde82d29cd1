"""Figures of columns: of one part (or of hot rows), and of a table, which are those of its parts put together.

    part 1   c1: 900 values, registers, 1 .. 900         table   c1: no NULL, about 1,780 different, 1 .. 1800
    part 2   c1: 900 values, registers, 901 .. 1800  ─►
    hot      c1: 0 values, 5 rows                                5 of 1,805 NULL

A part's file never changes, so its figures are counted once, and again where more than a tenth of its rows
have ended since. Counts of rows are taken from elsewhere, and of a column there are no more different values
than rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from engine.executors.statistics.sketch import EMPTY, estimate, united
from txn.base.types import PhysicalType, ShardSpec

Bound: TypeAlias = int | float

WHOLE: Final = frozenset(("int16", "int32", "int64", "date", "timestamp", "timestamptz", "bool"))
"""Kinds whose bounds are whole numbers: themselves, days and microseconds since 1970, false as 0."""
FRACTIONS: Final = frozenset(("float32", "float64"))
MAX_DIGITS: Final = 18
"""Of a decimal whose bounds are kept: they are whole numbers of 64 bits, multiples of its last digit."""


class CannotCount(Exception):
    """Rows cannot be read: the file has gone, or is damaged; or somebody wants no answer any more."""


class ColumnFigures(msgspec.Struct, frozen=True, array_like=True):
    """Of a column in some rows.

    Attributes:
        values: how many are not NULL.
        registers: of these, see ``sketch``.
        low, high: the bounds where their kind has an order that is kept; None: not known, or there are no values.
        octets: bytes of all values of kinds of any length (of lists: elements), else 0.
        longest: of them, those of the longest one.
    """

    values: int
    registers: bytes = EMPTY
    low: Bound | None = None
    high: Bound | None = None
    octets: int = 0
    longest: int = 0


class PartFigures(msgspec.Struct, frozen=True, array_like=True):
    """Of some rows: how many were counted, and their columns by attnum."""

    rows: int
    columns: dict[int, ColumnFigures]


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Of a column of a table.

    Attributes:
        null_share: from 0 to 1.
        distinct: about how many different values there are.
        low, high: as in ``ColumnFigures``, of all rows.
        length: octets of a value on average, and ``longest`` of the longest, as in ``ColumnFigures``.
    """

    null_share: float
    distinct: float
    low: Bound | None
    high: Bound | None
    length: float
    longest: int


def has_bounds(type_: PhysicalType) -> bool:
    """Tell whether the bounds of a column of this type are kept."""
    return (
        type_.kind in WHOLE
        or type_.kind in FRACTIONS
        or (type_.kind == "decimal" and type_.precision <= MAX_DIGITS)
    )


def summary(
    parts: Iterable[PartFigures], attnum: int, rows: float, *, unique: bool = False
) -> ColumnSummary | None:
    """Return what the parts say of a column together; None where one does not have it.

    Args:
        parts: of the table's rows, of which some may have ended since.
        attnum: the column.
        rows: how many rows there are now.
        unique: no two rows have the same value.
    """
    counted = values = octets = longest = 0
    registers, low, high = EMPTY, None, None
    bounded = True
    for part in parts:
        column = part.columns.get(attnum)
        if column is None:
            return None
        counted += part.rows
        if not column.values:
            continue
        values += column.values
        octets += column.octets
        longest = max(longest, column.longest)
        registers = united(registers, column.registers)
        if column.low is None or column.high is None:
            bounded = False
        else:
            low = column.low if low is None else min(low, column.low)
            high = column.high if high is None else max(high, column.high)
    if not bounded:
        low = high = None
    present = rows * values / counted if counted else 0.0
    distinct = present if unique else min(estimate(registers), present)
    share = 1 - values / counted if counted else 0.0
    return ColumnSummary(share, distinct, low, high, octets / values if values else 0.0, longest)


def padded(part: PartFigures, columns: Mapping[int, bool]) -> PartFigures:
    """Return a part's figures with columns that were added after it was written; they have no bounds.

    ``columns``: by attnum, whether its rows have a value there, one and the same, or NULL.
    """
    missing = {attnum: has for attnum, has in columns.items() if attnum not in part.columns}
    if not missing:
        return part
    one = bytes([1]) + EMPTY[1:]  # as of one value
    added = {n: ColumnFigures(part.rows, one) if has else ColumnFigures(0) for n, has in missing.items()}
    return PartFigures(part.rows, {**part.columns, **added})


def unique_columns(spec: ShardSpec) -> frozenset[int]:
    """Return the columns of which a table's index says that no two rows have the same value."""
    return frozenset(index.attnums[0] for index in spec.indexes if index.unique and len(index.attnums) == 1)
