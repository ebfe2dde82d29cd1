"""A snapshot of a table as Spark relations: part files without their hidden rows, and the hot rows.

    SELECT c1, c3 FROM hf_7_1                                            parts with nothing hidden, by equal columns
    UNION ALL SELECT c1, c3 FROM hf_7_2 AS f LEFT ANTI JOIN hf_7_3 AS h
              ON f.s_file = h.file AND f.s_pos = h.pos                    parts with hidden positions
    UNION ALL SELECT c1, c3 FROM hf_7_4                                  the hot rows

Files are read with an explicit schema, so Spark opens none of them to plan. ``s_file`` and ``s_pos`` are Spark's
metadata columns. Hot rows and hidden positions up to ``MAX_INLINE_ROWS`` travel in the plan, more as a Parquet file
of this query. A column added after a part was written stands as its missing value.

``plan_relation`` is pure and runs on the loop; ``Inputs.register`` does the work in a thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from planner.lower import literals
from planner.lower.common import RelationUse
from planner.lower.spark import SparkDialect
from txn.types import PhysicalType, ShardColumn, Snapshot, SnapshotPart

MAX_INLINE_ROWS = 10_000
MAX_BROADCAST_ROWS = 1_000_000
_DIALECT = SparkDialect()


@dataclass(frozen=True, slots=True)
class FileInput:
    """Part files to read as one view; ``positions`` adds ``s_file`` and ``s_pos``."""

    view: str
    ddl: str
    paths: tuple[str, ...]
    positions: bool


@dataclass(frozen=True, slots=True)
class TableInput:
    """An Arrow table to hand over as a view."""

    view: str
    ddl: str
    table: Any


@dataclass(slots=True)
class Inputs:
    """Everything one query reads, under names nobody else uses."""

    prefix: str
    spool_dir: Path
    files: list[FileInput] = field(default_factory=list)
    tables: list[TableInput] = field(default_factory=list)
    spooled: list[Path] = field(default_factory=list)

    def name(self) -> str:
        """Return a new view name."""
        return f"{self.prefix}_{len(self.files) + len(self.tables) + 1}"

    def register(self, session: Any) -> None:
        """Make the views. Blocks; call in a thread."""
        for item in self.files:
            frame = session.read.schema(item.ddl).parquet(*(_globbed(path) for path in item.paths))
            if item.positions:
                frame = frame.selectExpr("*", "_metadata.file_name AS s_file", "_metadata.row_index AS s_pos")
            frame.createOrReplaceTempView(item.view)
        for table in self.tables:
            self._hand_over(session, table).createOrReplaceTempView(table.view)

    def _hand_over(self, session: Any, item: TableInput) -> Any:
        from pyspark.sql.types import _parse_datatype_string

        table = pa.table(
            [_plain_column(column) for column in item.table.columns], names=item.table.column_names
        )
        if table.num_rows <= MAX_INLINE_ROWS:
            return session.createDataFrame(table, schema=_parse_datatype_string(item.ddl))
        self.spool_dir.mkdir(parents=True, exist_ok=True)
        path = self.spool_dir / f"{item.view}.parquet"
        self.spooled.append(path)
        pq.write_table(table, path, compression="lz4", row_group_size=65_536)
        return session.read.schema(item.ddl).parquet(_globbed(str(path)))

    def drop_views(self, session: Any) -> None:
        """Forget the names; an analysed query does not need them any more. Blocks."""
        for view in [f.view for f in self.files] + [t.view for t in self.tables]:
            session.catalog.dropTempView(view)

    def discard(self) -> None:
        """Delete spooled files."""
        for path in self.spooled:
            path.unlink(missing_ok=True)
        self.spooled.clear()


def _plain_column(column: Any) -> Any:
    """Bring types that Spark does not take to the ones it reads: uuids to bytes, times to microseconds."""
    if pa.types.is_fixed_size_binary(column.type):
        return column.cast(pa.binary())
    if pa.types.is_time64(column.type):
        return column.cast(pa.int64())
    if pa.types.is_list(column.type):
        if pa.types.is_fixed_size_binary(column.type.value_type):
            return column.cast(pa.list_(pa.binary()))
        if pa.types.is_time64(column.type.value_type):
            return column.cast(pa.list_(pa.int64()))
    return column


def plan_relation(use: RelationUse, snapshot: Snapshot, inputs: Inputs) -> str:
    """Return a parenthesised query for the snapshot's rows with the columns of ``use``; note what it reads."""
    columns = {c.attnum: c for c in snapshot.spec.columns}
    branches: list[str] = []
    whole: dict[tuple[int, ...], list[SnapshotPart]] = {}
    partly: dict[tuple[int, ...], list[SnapshotPart]] = {}
    for part in snapshot.parts:
        present = tuple(sorted(set(part.ref.columns) & set(use.columns)))
        holed = part.hidden is not None and len(part.hidden) > 0
        (partly if holed else whole).setdefault(present, []).append(part)
    for present, parts in whole.items():
        view = _files(use, columns, present, parts, inputs, positions=False)
        branches.append(f"SELECT {_targets(use, columns, set(present))} FROM {view}")
    for present, parts in partly.items():
        branches.append(_with_hidden(use, columns, present, parts, inputs))
    if snapshot.hot.num_rows:
        present = tuple(sorted(use.columns))
        ddl = _ddl(use, columns, present)
        view = inputs.name()
        names = [word.split(" ", 1)[0] for word in ddl]
        inputs.tables.append(TableInput(view, ", ".join(ddl), snapshot.hot.select(names)))
        branches.append(f"SELECT {_targets(use, columns, set(present))} FROM {view}")
    if not branches:
        branches.append(f"SELECT {_targets(use, columns, set(), row_id='CAST(NULL AS BIGINT)')} WHERE false")
    return f"({' UNION ALL '.join(branches)})"


def _files(
    use: RelationUse,
    columns: dict[int, ShardColumn],
    present: tuple[int, ...],
    parts: list[SnapshotPart],
    inputs: Inputs,
    *,
    positions: bool,
) -> str:
    view = inputs.name()
    ddl = ", ".join(_ddl(use, columns, present))
    inputs.files.append(FileInput(view, ddl, tuple(part.ref.path for part in parts), positions))
    return view


def _with_hidden(
    use: RelationUse,
    columns: dict[int, ShardColumn],
    present: tuple[int, ...],
    parts: list[SnapshotPart],
    inputs: Inputs,
) -> str:
    view = _files(use, columns, present, parts, inputs, positions=True)
    names = pa.chunked_array(
        [pa.repeat(pa.scalar(part.ref.path.rsplit("/", 1)[-1]), len(part.hidden)) for part in parts],
        type=pa.string(),
    )
    positions = pa.chunked_array([part.hidden for part in parts], type=pa.int64())
    hidden = inputs.name()
    inputs.tables.append(
        TableInput(hidden, "file STRING, pos BIGINT", pa.table({"file": names, "pos": positions}))
    )
    hint = "/*+ BROADCAST(h) */ " if len(positions) <= MAX_BROADCAST_ROWS else ""
    return (
        f"SELECT {hint}{_targets(use, columns, set(present))} FROM {view} AS f "
        f"LEFT ANTI JOIN {hidden} AS h ON f.s_file = h.file AND f.s_pos = h.pos"
    )


def _ddl(use: RelationUse, columns: dict[int, ShardColumn], present: tuple[int, ...]) -> list[str]:
    """Return the schema of what is read, a word list per column. Never empty: Spark counts rows by a column."""
    words = []
    for attnum in present:
        column = columns[attnum]
        words.append(f"c{attnum} {_spark_type(column.type)}")
        if column.type.kind == "list":
            words.append(f"c{attnum}_dims ARRAY<INT>")
    if use.row_id or not words:
        words.append("s_row_id BIGINT")
    return words


def _spark_type(type_: PhysicalType) -> str:
    if type_.kind == "decimal":
        return _DIALECT.decimal(type_.precision, type_.scale)
    if type_.kind == "list":
        assert type_.element is not None
        return _DIALECT.list_of(_spark_type(type_.element))
    return _DIALECT.types[type_.kind]


def _targets(
    use: RelationUse, columns: dict[int, ShardColumn], present: set[int], *, row_id: str = "s_row_id"
) -> str:
    targets = []
    for attnum, (type_, num) in sorted(use.columns.items()):
        column = columns[attnum]
        engine_type = _DIALECT.engine_type(type_, num)
        if attnum not in present:
            value = literals.missing(_DIALECT, column.missing_value, type_, num)
            targets.append(f"CAST({value} AS {engine_type}) AS c{attnum}")
        elif column.type.kind == "list":
            # Arrays of several dimensions have their sizes beside them; engines hold flat lists only.
            refused = _DIALECT.text(
                _DIALECT.error("0A000", "an array of several dimensions in this executor")
            )
            targets.append(
                f"CASE WHEN c{attnum}_dims IS NOT NULL THEN {refused} ELSE c{attnum} END AS c{attnum}"
            )
        else:
            targets.append(f"CAST(c{attnum} AS {engine_type}) AS c{attnum}")
    if use.row_id:
        targets.append(f"{row_id} AS s_row_id")
    if not targets:
        targets.append("1 AS s_none")
    return ", ".join(targets)


def _globbed(path: str) -> str:
    """Return a path in which Spark finds no pattern."""
    return "".join(f"\\{ch}" if ch in "{}[]*?\\" else ch for ch in path)
