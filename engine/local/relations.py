"""A snapshot of a table as SQL: parts without their hidden rows, and the hot rows.

    SELECT c1, c3 FROM read_parquet([p1, p2])                         parts with nothing hidden, by equal columns
    UNION ALL SELECT c1, c3 FROM read_parquet('p3', file_row_number = true) AS f
              ANTI JOIN hf_hidden_1 AS h ON f.file_row_number = h.pos  a part with hidden positions
    UNION ALL SELECT c1, c3 FROM hf_hot_1                              the hot rows, an Arrow table

A column added after a part was written stands as its missing value. Only the columns a statement reads are named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from planner.lower import build as b
from planner.lower import literals, numeric
from planner.lower.common import RelationUse
from planner.lower.duckdb import DuckDialect
from planner.lower.value import Fixed
from planner.types import SqlType
from txn.types import PhysicalType, ShardColumn, Snapshot, SnapshotPart


@dataclass(slots=True)
class Sources:
    """What a query reads besides files: Arrow tables to register, by name."""

    tables: dict[str, Any] = field(default_factory=dict)

    def add(self, prefix: str, table: Any) -> str:
        """Note a table and return its name."""
        name = f"hf_{prefix}_{len(self.tables) + 1}"
        self.tables[name] = table
        return name


def relation_sql(use: RelationUse, snapshot: Snapshot, sources: Sources) -> str:
    """Return a parenthesised query that yields the snapshot's rows with the columns of ``use``."""
    dialect = DuckDialect()
    columns = {c.attnum: c for c in snapshot.spec.columns}
    branches: list[str] = []
    whole: dict[tuple[int, ...], list[str]] = {}
    for part in snapshot.parts:
        present = tuple(sorted(set(part.ref.columns) & set(use.columns)))
        if part.hidden is None or not len(part.hidden):
            whole.setdefault(present, []).append(part.ref.path)
        else:
            branches.append(_part_with_hidden(dialect, use, columns, part, present, sources))
    for present, paths in whole.items():
        files = ", ".join(_quoted(path) for path in paths)
        targets = _targets(dialect, use, columns, set(present))
        branches.append(f"SELECT {targets} FROM read_parquet([{files}])")
    if snapshot.hot.num_rows:
        targets = _targets(dialect, use, columns, set(use.columns))
        branches.append(f"SELECT {targets} FROM {sources.add('hot', _hot(use, snapshot))}")
    if not branches:
        no_rows = "(SELECT CAST(NULL AS BIGINT) AS s_row_id) WHERE false"
        branches.append(f"SELECT {_targets(dialect, use, columns, set())} FROM {no_rows}")
    return f"({' UNION ALL '.join(branches)})"


def _hot(use: RelationUse, snapshot: Snapshot) -> Any:
    """Return the hot table with the columns needed only (registering copies the schema, not the data)."""
    wanted = [f"c{attnum}" for attnum in sorted(use.columns)]
    names = set(snapshot.hot.column_names)  # made anew at each call
    wanted += [f"{name}_dims" for name in wanted if f"{name}_dims" in names]
    if use.row_id or not wanted:
        wanted.append("s_row_id")
    return snapshot.hot.select(wanted)


def _part_with_hidden(
    dialect: DuckDialect,
    use: RelationUse,
    columns: dict[int, ShardColumn],
    part: SnapshotPart,
    present: tuple[int, ...],
    sources: Sources,
) -> str:
    name = sources.add("hidden", pa.table({"pos": part.hidden}))
    targets = _targets(dialect, use, columns, set(present))
    return (
        f"SELECT {targets} FROM read_parquet({_quoted(part.ref.path)}, file_row_number = true) AS f "
        f"ANTI JOIN {name} AS h ON f.file_row_number = h.pos"
    )


def _targets(
    dialect: DuckDialect, use: RelationUse, columns: dict[int, ShardColumn], present: set[int]
) -> str:
    targets = []
    for attnum, (type_, num) in sorted(use.columns.items()):
        column = columns[attnum]
        engine_type = dialect.engine_type(type_, num)
        if attnum not in present:
            value = literals.missing(dialect, column.missing_value, type_, num)
            targets.append(f"CAST({value} AS {engine_type}) AS c{attnum}")
        elif column.type.kind == "list":
            # Arrays of several dimensions have their sizes beside them; engines hold flat lists only.
            refused = dialect.text(dialect.error("0A000", "an array of several dimensions in this executor"))
            items = _items(dialect, f"c{attnum}", column.type)
            targets.append(
                f"CASE WHEN c{attnum}_dims IS NOT NULL THEN {refused} ELSE {items} END AS c{attnum}"
            )
        else:
            targets.append(f"CAST(c{attnum} AS {engine_type}) AS c{attnum}")
    if use.row_id:
        targets.append("s_row_id" if present or use.row_id else "0")
    if not targets:
        targets.append("1 AS s_none")
    return ", ".join(targets)


def _items(dialect: DuckDialect, name: str, stored: PhysicalType) -> str:
    """Return a column of arrays as queries have it: numerics in them are of any scale, whatever was declared."""
    element = stored.element
    if element is None or element.kind != "decimal":
        return name
    item = dialect.fresh("x")
    value = numeric.numeric(b.bare(item), Fixed(element.precision, element.scale))
    return dialect.text(dialect.mapped(b.bare(name), item, numeric.to_floating(dialect, value)))


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


__all__ = ["Sources", "SqlType", "relation_sql"]
