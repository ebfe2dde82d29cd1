"""What has been found out about the values of tables, as it is stored and shown.

    ANALYZE, counted parts   ColumnRecord, TableRecord            pg_stats
    CREATE STATISTICS        ExtendedRecord and what is in it     pg_stats_ext

How the figures come about is in ``engine.executors.statistics``.
"""

from __future__ import annotations

import msgspec


class ColumnRecord(msgspec.Struct, frozen=True, array_like=True):
    """Of a column: the type it had, and pg_stats' figures; ``distinct`` is a share of the rows where it is negative."""

    kind: str
    null_share: float
    width: int
    distinct: float


class TableRecord(msgspec.Struct, frozen=True, array_like=True):
    """Of a table, when it was last looked at.

    Attributes:
        rows: how many there were.
        columns: by attnum.
        asked_us: when ANALYZE was run last (microseconds since 1970), None: never.
        by_itself_us: when the server last looked by itself.
    """

    rows: int
    columns: dict[int, ColumnRecord]
    asked_us: int | None
    by_itself_us: int | None


class McvItem(msgspec.Struct, frozen=True, array_like=True):
    """A combination of values: as texts (NULL: None), its share of the rows, and the product of its values'
    own shares.
    """

    values: tuple[str | None, ...]
    frequency: float
    base_frequency: float


class ExpressionRecord(msgspec.Struct, frozen=True, array_like=True):
    """Of an expression: pg_stats' figures; ``distinct`` is a share of the rows where it is negative."""

    null_share: float
    width: int
    distinct: float


class ExtendedRecord(msgspec.Struct, frozen=True, array_like=True):
    """What was found by a statistics object; None: that kind was not asked for, or nothing was found.

    ``types``: of what it is over, when it was looked at. ``inherited``: of a partitioned table.
    """

    types: tuple[int, ...]
    inherited: bool
    ndistinct: str | None = None
    dependencies: str | None = None
    mcv: tuple[McvItem, ...] | None = None
    expressions: tuple[ExpressionRecord, ...] | None = None
