"""The figures of columns (``engine.executors.statistics``) of a part or of rows in memory, in one pass of DuckDB.

    SELECT count(*), count(c1), approx_count_distinct(c1) EXPORT_STATE, min(c1), max(c1), count(c2), ... FROM
    read_parquet('...')

Registers are those of DuckDB's HyperLogLog, as they are: it hands them out, and takes none back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from engine.executors.statistics.figures import Bound, CannotCount, ColumnFigures, PartFigures, has_bounds
from engine.executors.statistics.sketch import EMPTY, PRECISION
from pgwire.codecs.numeric import CONTEXT
from txn.base.types import PhysicalType
from txn.values.exact import exact_columns

VERSION = f"duckdb {duckdb.__version__}"
"""Registers of one version are not to be put together with those of another, which may hash otherwise."""

_LENGTHS = {
    "text": "strlen({c})", "bytes": "octet_length({c})", "tailed": "octet_length({c})",
    # digits, four of which take two bytes, and three bytes beside them
    "numeric": "3 + 2 * ((strlen(CAST({c}.u AS VARCHAR)) + 3) // 4)",
    "list": "len({c})",
}  # fmt: skip


_EXACT_LENGTHS = {
    "numeric": "3 + 2 * ((coalesce(strlen({c}.x), strlen(CAST({c}.v.u AS VARCHAR))) + 3) // 4)",
}


class DuckCounter:
    """Counts with a local executor's instance. Used by one thread at a time; ``interrupt`` by any."""

    def __init__(self, cursor: Callable[[], Any]) -> None:
        """``cursor``: opens a connection to the instance."""
        self._cursor = cursor
        self._running: Any = None

    def part(
        self,
        path: str,
        columns: Mapping[int, PhysicalType],
        hidden: Any = None,
        exact: Collection[int] = (),
    ) -> PartFigures:
        """Return the figures of a part's file. Blocks. Raises CannotCount.

        Args:
            path: the file.
            columns: those it has.
            hidden: positions of rows that do not count (Arrow int64); None: all do.
            exact: columns in their exact form (``txn.values.exact``), which have no bounds.
        """
        quoted = path.replace("'", "''")
        if hidden is None:
            return self._count(f"read_parquet('{quoted}')", columns, {}, exact)
        seen = f"read_parquet('{quoted}', file_row_number = true) AS f ANTI JOIN hf_hidden AS h ON f.file_row_number = h.pos"
        return self._count(seen, columns, {"hf_hidden": pa.table({"pos": hidden})}, exact)

    def rows(self, table: Any, columns: Mapping[int, PhysicalType]) -> PartFigures:
        """Return the figures of an Arrow table with columns ``c<attnum>``. Blocks. Raises CannotCount."""
        wanted = table.select([f"c{attnum}" for attnum in columns])
        return self._count("hf_rows", columns, {"hf_rows": wanted}, exact_columns(wanted.schema))

    def interrupt(self) -> None:
        """Make what is being counted fail with CannotCount."""
        running = self._running
        if running is not None:
            running.interrupt()

    def _count(
        self,
        source: str,
        columns: Mapping[int, PhysicalType],
        tables: Mapping[str, Any],
        exact: Collection[int],
    ) -> PartFigures:
        if not columns:
            return PartFigures(0, {})
        targets = ", ".join(_targets(attnum, type_, attnum in exact) for attnum, type_ in columns.items())
        cursor = self._running = self._cursor()
        try:
            for name, table in tables.items():
                cursor.register(name, table)
            found = cursor.sql(f"SELECT count(*) AS n, {targets} FROM {source}").to_arrow_table()
        except (duckdb.Error, pa.ArrowException) as error:
            raise CannotCount(str(error).split("\n", 1)[0]) from error
        finally:
            self._running = None
            cursor.close()
        figures = {
            attnum: _figures(found, attnum, type_, attnum in exact) for attnum, type_ in columns.items()
        }
        return PartFigures(found["n"][0].as_py(), figures)


def _targets(attnum: int, type_: PhysicalType, exact: bool) -> str:
    column = f"c{attnum}"
    targets = [
        f"count({column}) AS n{attnum}", f"approx_count_distinct({column}) EXPORT_STATE AS s{attnum}"
    ]  # fmt: skip
    if has_bounds(type_) and not exact:
        targets += [f"min({column}) AS l{attnum}", f"max({column}) AS h{attnum}"]
    lengths = _EXACT_LENGTHS if exact and type_.kind in _EXACT_LENGTHS else _LENGTHS
    length = lengths.get(type_.kind, "").format(c=column)
    if length:
        targets += [f"CAST(coalesce(sum({length}), 0) AS BIGINT) AS o{attnum}", f"max({length}) AS m{attnum}"]
    return ", ".join(targets)


def _figures(found: Any, attnum: int, type_: PhysicalType, exact: bool) -> ColumnFigures:
    """Return a column's figures from the row that DuckDB answered."""
    values = found[f"n{attnum}"][0].as_py()
    if not values:
        return ColumnFigures(0)
    state = found[f"s{attnum}"][0].as_py()
    if state["precision"] != PRECISION or len(state["registers"]) != len(EMPTY):
        raise CannotCount(f"{VERSION} has other sketches")
    low = high = None
    if has_bounds(type_) and not exact:
        low, high = (_bound(found[f"{side}{attnum}"], type_) for side in "lh")
    octets = longest = 0
    if type_.kind in _LENGTHS:
        octets, longest = (int(found[f"{what}{attnum}"][0].as_py()) for what in "om")
    known = low is not None and high is not None
    return ColumnFigures(
        values, bytes(state["registers"]), low if known else None, high if known else None, octets, longest
    )


def _bound(column: Any, type_: PhysicalType) -> Bound | None:
    """Return the one value of an Arrow column as a bound; None where it is no number."""
    if type_.kind == "date":
        column = column.cast(pa.int32())
    elif type_.kind in ("timestamp", "timestamptz"):
        column = column.cast(pa.int64())
    value = column[0].as_py()
    if value is None:
        return None
    if type_.kind == "decimal":
        return int(value.scaleb(type_.scale, CONTEXT))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return int(value)
