"""A snapshot of a table as Spark relations: part files without their hidden rows, and the hot rows.

    SELECT c1, c3 FROM hf_7_1 WHERE NOT s_gone        the files of parts and of hot rows: one scan
    UNION ALL SELECT c1, 5 AS c3 FROM hf_7_2          parts from before a column was added
    UNION ALL SELECT c1, c3 FROM hf_7_3               hot rows where no file takes them

Usually the first line is all there is, so Spark plans as if the table were a plain folder of Parquet: filters
reach the row groups, the scan is cut by the bytes of all files together, and sizes are those of the columns
that are read. For that a view has all columns of the parts, whatever the query reads. Files are read with an
explicit schema, so Spark opens none of them to plan.

Which rows are hidden is told by ``engine.executors.spark.hidden``; where a scan has too many rows for that,
by an anti-join with their positions. Hot rows travel in the plan where they stand alone and are few, else as
a Parquet file of this query.

``plan_relations`` is pure and runs on the loop; ``Inputs.register`` does the work in a thread.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.base.executor import EngineLimit
from engine.executors.spark import statistics
from engine.executors.spark.hidden import MAX_BITS, HiddenViews, HoledPart, is_hidden, slots_for
from engine.executors.spark.part_bounds import Bounds, Conditions, pruned
from engine.executors.spark.views import Entry, TableViews, place_of
from engine.executors.statistics.figures import summary, unique_columns
from engine.executors.statistics.keeper import Known, Statistics
from planner.lower.kit.spark import SparkDialect
from planner.lower.query import literals
from planner.lower.query.lowering import RelationUse
from txn.base.types import PhysicalType, ShardColumn, Snapshot, SnapshotPart
from txn.values.exact import exact_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_INLINE_ROWS = 10_000
MAX_BROADCAST_ROWS = 1_000_000
_DIALECT = SparkDialect()
_NAMES = re.compile(r"'(?:[^'\\]|\\.)*'|\b(hf_\d+_\d+)\b", re.DOTALL)


@dataclass(slots=True)
class FileInput:
    """Files to read as one view.

    Attributes:
        view: its name.
        ddl: the schema to read.
        whole: files with nothing hidden, and their noted sizes in bytes.
        holed: parts with hidden rows, which the view's column ``s_gone`` tells.
        sizes: their noted sizes in bytes.
        hot: rows to be written to a file that is read along.
        positions: instead of ``s_gone``, whether ``s_file`` and ``s_pos`` are added.
        paths: what Spark calls a part -> where the server reads it.
        oid: the table.
        marked: whether the view has ``s_gone``.
        rows: that are seen of each file, by what Spark calls it.
        names: of the parts, in the same way.
        columns: the types of the columns that all have.
        unique: which of them are, by themselves.
    """

    view: str
    ddl: str
    whole: dict[str, int] = field(default_factory=dict)
    holed: list[HoledPart] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    hot: Any = None
    positions: bool = False
    paths: dict[str, str] = field(default_factory=dict)
    oid: int = 0
    marked: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    columns: dict[int, PhysicalType] = field(default_factory=dict)
    unique: frozenset[int] = frozenset()


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
    tables_dir: Path
    files: list[FileInput] = field(default_factory=list)
    tables: list[TableInput] = field(default_factory=list)
    located: Callable[[str], str] = str
    """What Spark calls a part that the server reads at a path."""
    bounds: Bounds = field(default_factory=Bounds)
    conditions: Mapping[int, Conditions] = field(default_factory=dict)
    """By table, see ``part_bounds``."""
    params: tuple[Any, ...] = ()
    statistics: Statistics | None = None
    """What Spark is told of tables; None: nothing."""
    _entered: dict[str, tuple[TableViews, Entry]] = field(default_factory=dict)
    _discarded: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def name(self) -> str:
        """Return a new view name."""
        return f"{self.prefix}_{len(self.files) + len(self.tables) + 1}"

    def register(self, session: SparkSession, hidden: HiddenViews, views: TableViews) -> None:
        """Make the views, or find them made. Blocks; call in a thread."""
        for item in self.files:
            self._leave_out(item)
            holed = tuple((part.path, part.rows, id(part.positions)) for part in item.holed)
            known = self._known(item, item.rows)
            counted = None if known is None else len(known.parts)
            key: Hashable = (
                item.ddl, tuple(item.whole.items()), holed, tuple(item.sizes), item.marked, item.positions, place_of(item.hot),
                counted,
            )  # fmt: skip
            kept = [part.positions for part in item.holed] + ([] if item.hot is None else [item.hot])
            self._enter(views, item.view, key, partial(self._scan, session, hidden, item), kept)
        for table in self.tables:
            key = (table.ddl, place_of(table.table))
            self._enter(views, table.view, key, partial(self._hand_over, session, table), [table.table])

    def _enter(
        self, views: TableViews, name: str, key: Hashable, make: Callable[[str], Any], kept: list[Any]
    ) -> None:
        entry = views.enter(key, make, kept, sum(int(each.nbytes) for each in kept))
        with self._lock:
            if not self._discarded:
                self._entered[name] = (views, entry)
                return
        views.leave(entry)  # the query was cancelled meanwhile

    def named(self, sql: str) -> str:
        """Return the query with the names of the views that serve it."""
        names = {name: entry.view for name, (_, entry) in self._entered.items()}
        return _NAMES.sub(lambda m: names.get(m.group(1), m.group(0)) if m.group(1) else m.group(0), sql)

    def _scan(
        self, session: SparkSession, hidden: HiddenViews, item: FileInput, name: str
    ) -> tuple[Any, Path | None]:
        """Return the frame of one view, and the file of its hot rows."""
        whole = dict(item.whole)
        path = None
        if item.hot is not None:
            path = self._spool(f"{name}.parquet", item.hot)
            whole[str(path)] = path.stat().st_size
        return self._frame(session, hidden, item, whole), path

    def _frame(
        self, session: SparkSession, hidden: HiddenViews, item: FileInput, whole: dict[str, int]
    ) -> Any:
        if item.positions:
            frame = _read(session, item.ddl, whole)
            return frame.selectExpr("*", "_metadata.file_name AS s_file", "_metadata.row_index AS s_pos")
        if not item.holed:
            frame = self._read(session, item, whole)
            return frame.selectExpr("*", "false AS s_gone") if item.marked else frame
        frames = []
        whole = {path: _size(path, noted) for path, noted in whole.items()}
        all_sizes = [_size(part.path, noted) for part, noted in zip(item.holed, item.sizes, strict=True)]
        for parts, sizes, beside in _apart(item.holed, all_sizes, whole):
            slots = slots_for(sizes, list(beside.values()))
            if slots is None:
                raise AssertionError("the relations beside each other have no slots")
            frame = self._read(session, item, [*(part.path for part in parts), *beside])
            with hidden.arrays_sql(tuple(parts), tuple(sizes), slots) as arrays:
                gone = is_hidden(arrays, slots, "_metadata.file_size", "_metadata.row_index")
                frames.append(frame.selectExpr("*", f"{gone} AS s_gone"))
            whole = {path: size for path, size in whole.items() if path not in beside}
        if whole:
            frames.append(self._read(session, item, whole).selectExpr("*", "false AS s_gone"))
        frame, *others = frames
        for other in others:
            frame = frame.unionAll(other)
        return frame

    def _read(self, session: SparkSession, item: FileInput, names: Iterable[str]) -> Any:
        """Return the rows of files, with what is known of them where Spark uses it."""
        chosen = list(names)
        frame = _read(session, item.ddl, chosen)
        known = self._known(item, chosen)
        if self.statistics is None or known is None:
            return frame
        parts = [name for name in chosen if name in item.rows]
        rows = sum(item.rows[name] for name in parts)
        figures, complete = list(known.parts), known.complete
        if item.hot is not None and len(parts) < len(chosen):
            rows += int(item.hot.num_rows)
            names = set(item.hot.column_names)  # made anew at each call
            read = {n: type_ for n, type_ in item.columns.items() if f"c{n}" in names}
            hot = self.statistics.of_rows(
                item.hot, read
            )  # of columns that the query does not read nothing is told
            figures += [] if hot is None else [hot]
            complete = complete and hot is not None
        columns = {
            attnum: found
            for attnum in item.columns
            if (found := summary(figures, attnum, rows, unique=attnum in item.unique)) is not None
        }
        noted = dict(item.whole) | dict(zip((part.path for part in item.holed), item.sizes, strict=True))
        size = sum(noted.get(name, 0) for name in chosen)
        told = statistics.figures_of(columns, item.columns, rows, bounded=complete)
        return statistics.with_figures(session, frame, rows, size, told)

    def _known(self, item: FileInput, chosen: Iterable[str]) -> Known | None:
        """Return what is known of the parts among some files."""
        if self.statistics is None:
            return None
        return self.statistics.known(
            item.oid, {item.names[name]: item.rows[name] for name in chosen if name in item.names}
        )

    def _leave_out(self, item: FileInput) -> None:
        """Forget parts in which the query finds nothing; one file stays, so that there is something to read."""
        gone = pruned(item.paths, self.bounds, self.conditions.get(item.oid, ()), self.params)
        kept = [i for i, part in enumerate(item.holed) if part.path not in gone]
        whole = {path: size for path, size in item.whole.items() if path not in gone}
        if not (kept or whole or item.hot is not None):
            whole, kept = dict(list(item.whole.items())[:1]), [] if item.whole else [0]
        item.whole = whole
        item.holed, item.sizes = [item.holed[i] for i in kept], [item.sizes[i] for i in kept]

    def _hand_over(self, session: SparkSession, item: TableInput, name: str) -> tuple[Any, Path | None]:
        from pyspark.sql.types import _parse_datatype_string

        if item.table.num_rows <= MAX_INLINE_ROWS:
            return session.createDataFrame(_plain(item.table), schema=_parse_datatype_string(item.ddl)), None
        path = self._spool(f"{name}.parquet", item.table)
        return _read(session, item.ddl, [str(path)]), path

    def _spool(self, name: str, table: Any) -> Path:
        """Write rows to a file; as quickly as can be, few queries read it."""
        self.tables_dir.mkdir(parents=True, exist_ok=True)
        path = self.tables_dir / name
        pq.write_table(
            _plain(table), path, compression="lz4", row_group_size=65_536, use_dictionary=False,
            write_statistics=False,
        )  # fmt: skip
        return path

    def discard(self) -> None:
        """Give the views back."""
        with self._lock:
            self._discarded = True
            entered, self._entered = self._entered, {}
        for views, entry in entered.values():
            views.leave(entry)


def _read(session: SparkSession, ddl: str, paths: Iterable[str]) -> Any:
    return session.read.schema(ddl).parquet(*(_globbed(path) for path in paths))


def _apart(
    holed: Sequence[HoledPart], sizes: Sequence[int], whole: Mapping[str, int]
) -> Iterable[tuple[list[HoledPart], list[int], dict[str, int]]]:
    """Yield sets of parts with hidden rows that their sizes tell apart, each with other files to be read along.

    Nearly always one set with all files: parts of the same size to the byte are rare.
    """
    rest = list(zip(holed, sizes, strict=True))
    beside = dict(whole)
    while rest:
        taken: list[tuple[HoledPart, int]] = []
        left: list[tuple[HoledPart, int]] = []
        for part, size in rest:
            (left if any(size == other for _, other in taken) else taken).append((part, size))
        own = [size for _, size in taken]
        if slots_for(own, list(beside.values())) is None:
            beside = {path: size for path, size in beside.items() if size not in own}
        if slots_for(own, list(beside.values())) is None:
            beside, left, taken = {}, [*taken[1:], *left], taken[:1]
        yield [part for part, _ in taken], [size for _, size in taken], beside
        beside = {}
        rest = left


def _plain(table: Any) -> Any:
    return pa.table([_plain_column(column) for column in table.columns], names=table.column_names)


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


def plan_relations(
    uses: Sequence[RelationUse], snapshots: Mapping[int, Snapshot], inputs: Inputs
) -> dict[str, str]:
    """Return a parenthesised query per placeholder for the rows of its table's snapshot; note what is read.

    A table that a query reads several times is made a relation once.
    """
    tables: dict[int, _Table] = {}
    for use in uses:
        if use.oid not in tables:
            same = [other for other in uses if other.oid == use.oid]
            tables[use.oid] = _Table(same, snapshots[use.oid], inputs)
    return {use.placeholder: tables[use.oid].query(use) for use in uses}


class _Table:
    """One table's snapshot as views, for all its uses in a query."""

    def __init__(self, uses: Sequence[RelationUse], snapshot: Snapshot, inputs: Inputs) -> None:
        self._oid = uses[0].oid
        self._columns = {c.attnum: c for c in snapshot.spec.columns}
        self._unique = unique_columns(snapshot.spec)
        self._used = frozenset(attnum for use in uses for attnum in use.columns)
        self._row_id = any(use.row_id for use in uses)
        self._inputs = inputs
        self._sources: list[tuple[str, str, frozenset[int]]] = []
        """Of each branch: a hint, FROM and WHERE, which of the used columns it has."""
        groups: dict[frozenset[int], list[SnapshotPart]] = {}
        exact = exact_columns(snapshot.hot.schema)
        if self._used & exact.union(*(part.exact for part in snapshot.parts)):
            raise EngineLimit(
                "0A000",
                "a stored numeric of more than 38 digits, or NaN in a column with a precision, in this executor is not supported",
            )
        for part in snapshot.parts:
            groups.setdefault(self._used & set(part.ref.columns), []).append(part)
        hot = snapshot.hot if snapshot.hot.num_rows else None
        for present, parts in groups.items():
            beside = hot if present == self._used else None
            self._files(present, parts, beside)
            hot = None if beside is not None else hot
        if hot is not None:
            ddl = self._ddl(sorted(self._used))
            view = inputs.name()
            inputs.tables.append(TableInput(view, ", ".join(ddl), self._hot(hot)))
            self._sources.append(("", f"FROM {view}", self._used))

    def _hot(self, hot: Any) -> Any:
        return hot.select([word.split(" ", 1)[0] for word in self._ddl(sorted(self._used))])

    def _files(self, present: frozenset[int], parts: list[SnapshotPart], hot: Any) -> None:
        """Note a scan of parts that have the same of the used columns; ``hot``: rows to be read along."""
        inputs = self._inputs
        common = set(self._columns).intersection(*(set(part.ref.columns) - part.exact for part in parts))
        ddl = ", ".join(self._ddl(sorted(n for n in common if not self._columns[n].dropped), row_id=True))
        holed = [part for part in parts if _is_holed(part)]
        by_position = sum(part.ref.rows for part in holed) > MAX_BITS
        item = FileInput(inputs.name(), ddl, oid=self._oid)
        item.paths = {inputs.located(part.ref.path): part.ref.path for part in parts}
        item.hot = None if hot is None else self._hot(hot)
        item.rows = {inputs.located(part.ref.path): _seen(part) for part in parts}
        item.names = {inputs.located(part.ref.path): part.ref.name for part in parts}
        item.columns = {n: c.type for n, c in self._columns.items() if n in common and not c.dropped}
        item.unique = self._unique
        for part in parts:
            if not _is_holed(part):
                item.whole[inputs.located(part.ref.path)] = part.ref.bytes
            elif not by_position:
                item.holed.append(HoledPart(inputs.located(part.ref.path), part.ref.rows, part.hidden))
                item.sizes.append(part.ref.bytes)
        if item.whole or item.holed or item.hot is not None:
            inputs.files.append(item)
            item.marked = bool(item.holed)
            gone = " WHERE NOT s_gone" if item.marked else ""
            self._sources.append(("", f"FROM {item.view}{gone}", present))
        if by_position:
            self._sources.append((*self._without(holed, ddl), present))

    def _without(self, parts: list[SnapshotPart], ddl: str) -> tuple[str, str]:
        """Return hint and FROM of parts anti-joined with what they hide."""
        inputs = self._inputs
        item = FileInput(
            inputs.name(),
            ddl,
            {inputs.located(part.ref.path): part.ref.bytes for part in parts},
            positions=True,
        )
        inputs.files.append(item)
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
        join = f"LEFT ANTI JOIN {hidden} AS h ON f.s_file = h.file AND f.s_pos = h.pos"
        return hint, f"FROM {item.view} AS f {join}"

    def query(self, use: RelationUse) -> str:
        """Return the rows for one use."""
        branches = [
            f"SELECT {hint}{_targets(use, self._columns, present)} {source}"
            for hint, source, present in self._sources
        ]
        if not branches:
            none = _targets(use, self._columns, frozenset(), row_id="CAST(NULL AS BIGINT)")
            branches.append(f"SELECT {none} WHERE false")
        return f"({' UNION ALL '.join(branches)})"

    def _ddl(self, attnums: Iterable[int], *, row_id: bool = False) -> list[str]:
        """Return a schema, a word list per column. Never empty: a file needs a column to have rows."""
        words = []
        for attnum in attnums:
            column = self._columns[attnum]
            words.append(f"c{attnum} {_spark_type(column.type)}")
            if column.type.kind == "list":
                words.append(f"c{attnum}_dims ARRAY<INT>")
        if row_id or self._row_id or not words:
            words.append("s_row_id BIGINT")
        return words


def _is_holed(part: SnapshotPart) -> bool:
    return part.hidden is not None and len(part.hidden) > 0


def _seen(part: SnapshotPart) -> int:
    return part.ref.rows - (0 if part.hidden is None else len(part.hidden))


def _size(path: str, noted: int) -> int:
    """Return a file's size as Spark sees it: it is what rows are looked up by."""
    return noted if "://" in path else os.path.getsize(path)


def _spark_type(type_: PhysicalType) -> str:
    if type_.kind == "decimal":
        return _DIALECT.decimal(type_.precision, type_.scale)
    if type_.kind == "list":
        if type_.element is None:
            raise AssertionError("a list has no type of elements")
        return _DIALECT.list_of(_spark_type(type_.element))
    return _DIALECT.types[type_.kind]


def _targets(
    use: RelationUse, columns: dict[int, ShardColumn], present: frozenset[int], *, row_id: str = "s_row_id"
) -> str:
    targets = []
    for attnum, (type_, num) in sorted(use.columns.items()):
        column = columns[attnum]
        engine_type = _DIALECT.engine_type(type_, num)
        if attnum not in present:
            value = literals.missing(_DIALECT, column.missing_value, type_, num)
            targets.append(f"CAST({value} AS {engine_type}) AS c{attnum}")
        elif column.type.kind == "list":
            # Arrays of several dimensions, or with lower bounds, have them beside them; engines hold flat lists only.
            refused = _DIALECT.text(
                _DIALECT.error(
                    "0A000",
                    "an array of several dimensions or other lower bounds than 1 in this executor is not supported",
                )
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
