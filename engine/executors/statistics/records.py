"""What ANALYZE has found of a table, as pg_stats shows it (manual 54.27).

    ColumnSummary ─► null_frac 0.2, avg_width 7, n_distinct -0.8 (a share of the rows: it is taken to grow
    with them) or 25

Most common values, histograms, correlations and elements are not counted: they stay NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.base.statistics_records import ColumnRecord
from engine.executors.statistics.figures import ColumnSummary, PartFigures, padded, summary, unique_columns
from txn.base.types import PhysicalType, ShardSpec

SCALES: Final = 0.1
"""A column with more different values than this share of its rows is taken to get more with them."""
_WIDTHS: Final = {
    "bool": 1, "int16": 2, "int32": 4, "int64": 8, "float32": 4, "float64": 8, "uuid": 16, "date": 4, "time": 8, "timetz": 12,
    "timestamp": 8, "timestamptz": 8, "interval": 16,
}  # fmt: skip
_SHORT: Final = 126  # bytes of a value whose length takes one byte; others' takes four
_ARRAY: Final = 24
_UNKNOWN: Final = 32


def columns_of(spec: ShardSpec, parts: Iterable[PartFigures], rows: int) -> dict[int, ColumnRecord]:
    """Return the columns of a table with ``rows`` rows by attnum. ``parts``: the figures of all of them."""
    columns = {c.attnum: c for c in spec.columns if not c.dropped}
    missing = {attnum: column.missing_value is not None for attnum, column in columns.items()}
    known = [padded(part, missing) for part in parts]
    unique = unique_columns(spec)
    found: dict[int, ColumnRecord] = {}
    for attnum, column in columns.items() if rows else ():
        figures = summary(known, attnum, rows, unique=attnum in unique)
        if figures is not None:
            found[attnum] = ColumnRecord(
                column.type.kind,
                figures.null_share,
                _width(column.type, figures),
                _distinct(figures, rows, unique=attnum in unique),
            )
    return found


def _distinct(figures: ColumnSummary, rows: int, *, unique: bool) -> float:
    if unique:
        return figures.null_share - 1
    distinct = max(round(figures.distinct), 1) if figures.null_share < 1 else 0
    return -distinct / rows if distinct > SCALES * rows else float(distinct)


def _width(type_: PhysicalType, figures: ColumnSummary) -> int:
    """Return the bytes that PostgreSQL's form of a value takes on average."""
    if type_.kind in _WIDTHS:
        return _WIDTHS[type_.kind]
    if type_.kind == "decimal":
        largest = max(abs(figures.low or 0), abs(figures.high or 0))
        digits = len(str(int(largest))) if largest else type_.precision
        return 3 + 2 * ((digits + 3) // 4)
    if type_.kind == "list":
        element = _WIDTHS.get(type_.element.kind, _UNKNOWN) if type_.element is not None else _UNKNOWN
        return _ARRAY + round(figures.length * element)
    if type_.kind == "numeric":
        return round(figures.length)
    return round(figures.length) + (1 if figures.length <= _SHORT else 4)
