"""Snapshots of tables as SQL: parts without their hidden rows, and the hot rows.

    SELECT c1, c3 FROM read_parquet([p1, p2])                          parts with nothing hidden, by equal columns
    UNION ALL SELECT c1, c3 FROM read_parquet([p3, p4], file_row_number = true) AS f
              ANTI JOIN hf_hidden_1 AS h ON f.file_row_number = h.pos AND f.file_index = h.file     parts with hidden positions
    UNION ALL SELECT c1, c3 FROM hf_hot_1                              the hot rows, an Arrow table

A column added after a part was written stands as its missing value. Only the columns a statement reads are
named. A scan of DuckDB opens two descriptors when it begins, however late it comes, and a bounded number
however many files it has: so one scan reads all files that are read alike, of all tables that stand in the
range (partitions). Which of them a row is in is told by the number of its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from pgwire.give_way import give_way
from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.duckdb import DuckDialect
from planner.lower.kit.value import Fixed
from planner.lower.query import literals
from planner.lower.query.lowering import RelationUse
from planner.types import SqlType
from txn.base.types import PhysicalType, ShardColumn, Snapshot, SnapshotPart
from txn.values.exact import exact_columns


@dataclass(slots=True)
class Sources:
    """What a query reads: Arrow tables to register, by name, and ``scans``, how many files each scan has."""

    tables: dict[str, Any] = field(default_factory=dict)
    scans: list[int] = field(default_factory=list)

    def add(self, prefix: str, table: Any) -> str:
        """Note a table and return its name."""
        name = f"hf_{prefix}_{len(self.tables) + 1}"
        self.tables[name] = table
        return name

    def files(self, parts: Sequence[SnapshotPart], options: str = "") -> str:
        """Note a scan and return it; parts are numbered from 0 (``file_index``)."""
        self.scans.append(len(parts))
        paths = ", ".join(_quoted(part.ref.path) for part in parts)
        return f"read_parquet([{paths}]{options})"


@dataclass(frozen=True, slots=True)
class _Alike:
    """What is read in one scan has this in common. ``types``: as they are stored, of the columns it has;
    ``exact``: columns in their exact form, read or not.
    """

    targets: str
    types: tuple[tuple[int, PhysicalType], ...]
    exact: frozenset[int]
    hides: bool


def relation_sql(use: RelationUse, snapshots: Sequence[Snapshot], sources: Sources) -> str:
    """Return a parenthesised query that yields the rows of ``use.tables``, whose ``snapshots`` these are,
    with the columns of ``use``.
    """
    scans: dict[_Alike, list[tuple[int, SnapshotPart]]] = {}
    hot: dict[_Alike, list[Any]] = {}
    for oid, snapshot in zip(use.tables, snapshots, strict=True):
        give_way()
        columns = {c.attnum: c for c in snapshot.spec.columns}
        known: dict[tuple[tuple[int, ...], frozenset[int]], _Alike] = {}
        for part in snapshot.parts:
            present = tuple(sorted(set(part.ref.columns) & set(use.columns)))
            alike = known.get((present, part.exact))
            if alike is None:
                alike = known[present, part.exact] = _alike(use, columns, present, part.exact)
            hides = part.hidden is not None and len(part.hidden) > 0
            scans.setdefault(replace(alike, hides=hides), []).append((oid, part))
        if snapshot.hot.num_rows:
            exact = exact_columns(snapshot.hot.schema)
            alike = _alike(use, columns, tuple(sorted(use.columns)), exact)
            hot.setdefault(alike, []).append(_hot(use, oid, snapshot))
    branches = [_scan(use, alike, found, sources) for alike, found in scans.items()]
    for alike, tables in hot.items():
        name = sources.add("hot", tables[0] if len(tables) == 1 else pa.concat_tables(tables))
        branches.append(f"SELECT {_with_table(use, alike.targets, 's_table')} FROM {name}")
    if not branches:
        targets = _targets(use, {c.attnum: c for c in snapshots[0].spec.columns}, set(), frozenset())
        no_rows = "(SELECT CAST(NULL AS BIGINT) AS s_row_id, CAST(NULL AS BIGINT) AS s_table) WHERE false"
        branches.append(f"SELECT {_with_table(use, targets, 's_table')} FROM {no_rows}")
    return f"({' UNION ALL '.join(branches)})"


def _alike(
    use: RelationUse, columns: dict[int, ShardColumn], present: tuple[int, ...], exact: frozenset[int]
) -> _Alike:
    types = tuple((attnum, columns[attnum].type) for attnum in present)
    return _Alike(_targets(use, columns, set(present), exact), types, exact, False)


def _hot(use: RelationUse, oid: int, snapshot: Snapshot) -> Any:
    """Return the hot table with the columns needed only (registering copies the schema, not the data)."""
    wanted = [f"c{attnum}" for attnum in sorted(use.columns)]
    names = set(snapshot.hot.column_names)  # made anew at each call
    wanted += [f"{name}_dims" for name in wanted if f"{name}_dims" in names]
    if use.row_id or not wanted:
        wanted.append("s_row_id")
    found = snapshot.hot.select(wanted)
    return (
        found.append_column("s_table", pa.repeat(pa.scalar(oid, pa.int64()), len(found)))
        if use.table
        else found
    )


def _scan(
    use: RelationUse, alike: _Alike, found: Sequence[tuple[int, SnapshotPart]], sources: Sources
) -> str:
    """Return what reads parts that are read alike, each with the table that it belongs to."""
    parts = [part for _, part in found]
    oids = ", ".join(str(oid) for oid, _ in found) if use.table else ""
    targets = _with_table(use, alike.targets, f"CAST([{oids}] AS BIGINT[])[CAST(file_index AS BIGINT) + 1]")
    if not alike.hides:
        return f"SELECT {targets} FROM {sources.files(parts)}"
    hidden = {"pos": pa.chunked_array([part.hidden for part in parts])}  # millions, which are not copied
    of_file = ""
    if len(parts) > 1:
        numbers = []
        for n, part in enumerate(parts):
            numbers.append(pa.repeat(pa.scalar(n, pa.uint32()), len(part.hidden)))
            give_way()
        hidden["file"] = pa.chunked_array(numbers)
        of_file = " AND f.file_index = h.file"
    name = sources.add("hidden", pa.table(hidden))
    files = sources.files(parts, ", file_row_number = true")
    return f"SELECT {targets} FROM {files} AS f ANTI JOIN {name} AS h ON f.file_row_number = h.pos{of_file}"


def _with_table(use: RelationUse, targets: str, table: str) -> str:
    return f"{targets}, {table} AS s_table" if use.table else targets


def _targets(
    use: RelationUse, columns: dict[int, ShardColumn], present: set[int], exact: frozenset[int]
) -> str:
    dialect = DuckDialect()  # names that it makes are the same for what is alike
    targets = []
    for attnum, (type_, num) in sorted(use.columns.items()):
        column = columns[attnum]
        engine_type = dialect.engine_type(type_, num)
        if attnum not in present:
            value = literals.missing(dialect, column.missing_value, type_, num)
            targets.append(f"CAST({value} AS {engine_type}) AS c{attnum}")
        elif column.type.kind == "list":
            # Arrays of several dimensions, or with lower bounds, have them beside them; engines hold flat lists only.
            refused = dialect.text(
                dialect.error(
                    "0A000",
                    "an array of several dimensions or other lower bounds than 1 in this executor is not supported",
                )
            )
            items = _items(dialect, f"c{attnum}", column.type, exact=attnum in exact)
            targets.append(
                f"CASE WHEN c{attnum}_dims IS NOT NULL THEN {refused} ELSE {items} END AS c{attnum}"
            )
        else:
            value = dialect.text(_fitting(dialect, b.bare(f"c{attnum}"))) if attnum in exact else f"c{attnum}"
            targets.append(f"CAST({value} AS {engine_type}) AS c{attnum}")
    if use.row_id:
        targets.append("s_row_id" if present or use.row_id else "0")
    if not targets:
        targets.append("1 AS s_none")
    return ", ".join(targets)


def _fitting(dialect: DuckDialect, value: Node) -> Node:
    """Return a value of a column in its exact form; one that is beyond DuckDB's types ends the query there."""
    text = b.field(value, "x")
    beyond = dialect.error(*numeric.OVERFLOW, b.is_null(b.copied(text)))
    return b.case([(b.is_null(text, negated=True), beyond)], b.field(b.copied(value), "v"))


def _items(dialect: DuckDialect, name: str, stored: PhysicalType, *, exact: bool) -> str:
    """Return a column of arrays as queries have it: numerics in them are of any scale, whatever was declared."""
    element = stored.element
    if element is None or not (exact or element.kind == "decimal"):
        return name
    item = dialect.fresh("x")
    body = _fitting(dialect, b.bare(item)) if exact else b.bare(item)
    if element.kind == "decimal":
        fixed = numeric.numeric(body, Fixed(element.precision, element.scale))
        body = numeric.to_floating(dialect, fixed)
    return dialect.text(dialect.mapped(b.bare(name), item, body))


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


__all__ = ["Sources", "SqlType", "relation_sql"]
