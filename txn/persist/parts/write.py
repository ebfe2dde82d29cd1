"""Writing parts: sorted, as Parquet, with their sidecars (``persist.part`` has the files, and reads them).

table ──sort──► row groups ──zstd, page checksums──► <part>.parquet ──checksum──► <part>.sys
└──► keys of each index, sorted ──► <part>.x<index>
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txn.base.huge_values import views_of
from txn.base.types import PartRef, ShardIndex, ShardSpec, Timestamp
from txn.base.writers import Writers
from txn.persist.checksum import Tee, write_blocks
from txn.persist.location import Blob, Offload
from txn.persist.parts import huge_pages
from txn.persist.parts.part import (
    BOUNDED_FORMAT,
    BOUNDED_ROWS_FORMAT,
    EXACT_FORMAT,
    FORMAT,
    Part,
    group_rows,
    index_codec,
    parquet_name,
    sidecar_name,
    system_name,
)
from txn.persist.parts.sidecar import Buffers, build_key_sidecar, build_system_sidecar
from txn.values.arrow import ArrowTable
from txn.values.columns import (
    JOINED_BYTES,
    column_arrays,
    column_fields,
    has_bounded_rows,
    has_bounds,
    one_chunk,
)
from txn.values.encoding import encode_spec
from txn.values.entries import entry_arrays
from txn.values.exact import exact_columns, settled
from txn.values.intervals import node_array

_ZSTD_LEVEL: Final = 1
_BOUNDED_BYTES: Final = 4096
"""Columns of larger values, on average, have no bounds in the file: Arrow leaves out longer ones, but only
after it has kept copies of four."""
_LISTED_BYTES: Final = 1 << 16
"""Columns of larger values, on average, have no dictionaries."""
_HUGE_BYTES: Final = 4 << 20
"""Values of so much are written from where they lie, and as they are where they do not shrink."""
_WORTH_IT: Final = 0.5
"""What a sample of them has to shrink to."""
_SAMPLED_VALUES: Final = 4
_STRETCHES: Final = 16
_STRETCH_BYTES: Final = 8 << 10
_SAMPLE_BYTES: Final = _SAMPLED_VALUES * _STRETCHES * _STRETCH_BYTES
_REPEATS: Final = 2
"""How often a value occurs, on average, where a dictionary is made."""


def key_columns(table: ArrowTable, index: ShardIndex) -> tuple[list[Any], list[Any]]:
    """Return a table's columns of an index as arrays, and the companions of list columns (None for others)."""
    names = set(table.column_names)
    columns = [one_chunk(table.column(f"c{a}")) for a in index.attnums]
    dims = [one_chunk(table.column(f"c{a}_dims")) if f"c{a}_dims" in names else None for a in index.attnums]
    return columns, dims


def sort_table(table: ArrowTable, spec: ShardSpec) -> Any:
    """Return the table in part order: by primary key, or by row id where there is none. Stable.

    Runs in a thread. A table that is in order already comes back as it is.
    """
    primary = next((i for i in spec.indexes if i.primary), None)
    if primary is None:
        keys = one_chunk(table.column("s_row_id"))
    else:
        columns, dims = key_columns(table, primary)
        if len(columns) == 1 and columns[0].type in (pa.int16(), pa.int32(), pa.int64()):
            keys = columns[0]
        else:
            keys = index_codec(spec, primary).encode_arrow(columns, dims)
    count = len(keys)
    if not keys.null_count and pc.all(pc.less_equal(keys.slice(0, max(count - 1, 0)), keys.slice(1))).as_py():
        return table
    places = pc.array_sort_indices(keys)
    if table.nbytes > count * JOINED_BYTES:
        return pa.concat_tables([table.slice(place, 1) for place in places.to_pylist()])
    return table.take(places)


def _check_columns(table: ArrowTable, spec: ShardSpec) -> None:
    known = {f.name for c in spec.columns for f in column_fields(c)} | {"s_row_id", "s_begin"}
    names = set(table.column_names)
    if "s_row_id" not in names or "s_begin" not in names or not names <= known:
        raise ValueError(f"columns of a part of shard {spec.shard}: {sorted(names)}")


def _dictionary_paths(table: ArrowTable, size: int) -> Any:
    """Return the Parquet leaves worth a dictionary: those whose values repeat, in one row group, of ``size`` rows.

    Where they hardly do, a dictionary takes twice the time to make, and more room than the values. Large values fill a
    dictionary's page at once, and to count them keeps a copy of each.
    """
    middle = table.num_rows // 2 // size * size
    paths = []
    most = _LISTED_BYTES * table.num_rows
    for name, column in zip(table.column_names, table.columns, strict=True):
        if size < _REPEATS or column.nbytes > most:
            continue
        for path, values in _leaves(name, one_chunk(column.slice(middle, size))):
            if pc.count_distinct(values).as_py() * _REPEATS <= len(values):
                paths.append(path)
    return paths


def _huge(table: ArrowTable) -> dict[str, bool]:
    """Return the Parquet leaves that are mostly values of many megabytes, and whether these are worth being
    compressed.
    """
    found: dict[str, bool] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.nbytes < _HUGE_BYTES:
            continue
        leaves: dict[str, list[Any]] = {}
        for chunk in column.chunks:  # to join them would be another copy
            for path, values in _leaves(name, chunk):
                if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
                    leaves.setdefault(path, []).append(values)
        for path, parts in leaves.items():
            shrinks = _of_huge(parts)
            if shrinks is not None:
                found[path] = shrinks
    return found


def _of_huge(parts: Sequence[Any]) -> bool | None:
    """Tell whether samples of the huge values of a leaf shrink; None where most of its bytes are not in such."""
    total = in_huge = sampled = compressed = 0
    for values in parts:
        lengths = pc.binary_length(values)
        huge = pc.indices_nonzero(pc.greater_equal(lengths, _HUGE_BYTES))
        total += pc.sum(lengths).as_py() or 0
        in_huge += pc.sum(lengths.take(huge)).as_py() or 0
        for position in huge.slice(0, _SAMPLED_VALUES).to_pylist() if sampled < _SAMPLE_BYTES else ():
            sample = _sample(next(views_of(values.slice(position, 1))))
            sampled += len(sample)
            # each by itself: one that is like another is too far from it in a page
            compressed += len(pa.compress(sample, "zstd", asbytes=True))
    return compressed <= sampled * _WORTH_IT if 2 * in_huge > total else None


def _sample(value: Any) -> bytes:
    """Return stretches from everywhere in a value."""
    view = memoryview(value)
    step = len(view) // _STRETCHES
    return b"".join([view[at : at + _STRETCH_BYTES] for at in range(0, step * _STRETCHES, step)])


def _bounded_columns(table: ArrowTable) -> list[str]:
    """Return the Parquet leaves whose least and greatest values are to be in the file."""
    most = _BOUNDED_BYTES * table.num_rows
    small = [(name, c) for name, c in zip(table.column_names, table.columns, strict=True) if c.nbytes <= most]
    return [path for name, c in small for path, _values in _leaves(name, one_chunk(c.slice(0, 1)))]


def _leaves(path: str, values: Any) -> Iterator[tuple[str, Any]]:
    if pa.types.is_list(values.type):
        yield from _leaves(f"{path}.list.element", values.flatten())
    elif pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", part)
    else:
        yield path, values


def _paths(table: ArrowTable) -> Iterator[str]:
    """Yield all Parquet leaves."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        for path, _values in _leaves(name, one_chunk(column.slice(0, 1))):
            yield path


def _format_of(table: ArrowTable, spec: ShardSpec) -> bytes:
    """Return the format of a part: the lowest that has all that is in its columns."""
    if exact_columns(table.schema):
        return EXACT_FORMAT
    names = frozenset(table.column_names)
    if any(
        has_bounded_rows(table.column(f"c{c.attnum}"), c.type)
        for c in spec.columns
        if f"c{c.attnum}" in names
    ):
        return BOUNDED_ROWS_FORMAT
    if any(has_bounds(table.column(name)) for name in names if name.endswith("_dims")):
        return BOUNDED_FORMAT
    return FORMAT


async def write_part(
    blob: Blob,
    offload: Offload,
    name: str,
    spec: ShardSpec,
    table: ArrowTable,
    *,
    sort: bool = True,
    writers: Sequence[Writers] = (),
) -> PartRef:
    """Write a part and its sidecars; all of them are durable on return.

    ``table``: a pyarrow.Table of ``txn.values.columns.table_schema`` columns (columns of ``spec`` may be absent: their
    missing value is read). ``sort`` False: it is in part order already. ``writers``: where the told transactions are
    found that may have made rows of it.

    Raises:
        OutOfSpace, Indeterminate: blobs may be left behind under ``name``, which nobody may use then.
    """
    _check_columns(table, spec)
    if not table.num_rows:
        raise ValueError("a part has at least one row")
    ordered = await offload(lambda: settled(sort_table(table, spec) if sort else table))

    def write_parquet(file: BinaryIO) -> None:
        row_bytes = ordered.nbytes // ordered.num_rows
        size = group_rows(row_bytes)
        metadata = {
            b"holdfast.format": _format_of(ordered, spec), b"holdfast.spec": encode_spec(spec),
            b"holdfast.row_bytes": str(row_bytes).encode("ascii"),
        }  # fmt: skip
        if exact := exact_columns(ordered.schema):
            metadata[b"holdfast.exact"] = " ".join(map(str, sorted(exact))).encode("ascii")
        marked = ordered.replace_schema_metadata(metadata)
        paths = list(_paths(ordered))
        leaves = _huge(ordered)
        huge = {name: shrinks for name, shrinks in leaves.items() if name in marked.column_names}
        # Of what is in lists Arrow makes the pages: compressed, a value that hardly shrinks would be there
        # twice as often.
        as_is = huge.keys() | {path for path, shrinks in leaves.items() if not shrinks}
        dictionaries = _dictionary_paths(ordered, size) or False
        bounded = _bounded_columns(ordered)

        def write_file(rows: Any, into: Any) -> None:
            pq.write_table(
                rows,
                into,
                row_group_size=size,
                compression="zstd" if not as_is else {p: "none" if p in as_is else "zstd" for p in paths},
                compression_level={p: _ZSTD_LEVEL for p in paths if p not in as_is},
                use_dictionary=dictionaries,
                write_statistics=bounded,
                write_page_checksum=True,
            )

        tee: Any = Tee(file)
        if huge:
            huge_pages.write(tee, marked, huge, size, write_file)
        else:
            # Not closed: that would close the file, which is still to be synced.
            write_file(marked, pa.PythonFile(tee, mode="w"))
        crcs.append((tee.crc, tee.footer_crc()))
        pa.default_memory_pool().release_unused()  # what the writer had of pages of large values

    crcs: list[tuple[int, int]] = []

    size = await blob.publish(parquet_name(name), write_parquet)

    def build_system() -> Buffers:  # in a thread: joining chunks copies millions of numbers
        row_ids, begins = (one_chunk(ordered.column(column)) for column in ("s_row_id", "s_begin"))
        return build_system_sidecar(row_ids, begins, crcs[-1], _writers_of(begins, writers))

    await _publish(blob, system_name(name), build_system)
    names = set(ordered.column_names)  # made anew at each call
    present = {c.attnum for c in spec.columns if f"c{c.attnum}" in names}
    for index in spec.indexes:
        if present.issuperset(index.attnums):
            await write_sidecar(blob, name, spec, index, ordered)
    bounds: Any = await offload(lambda: pc.min_max(ordered.column("s_begin")).as_py())
    return PartRef(
        name=name,
        path=blob.local_path(parquet_name(name)),
        rows=ordered.num_rows,
        bytes=size,
        schema_version=spec.version,
        columns=tuple(sorted(present)),
        min_begin=Timestamp(bounds["min"]),
        max_begin=Timestamp(bounds["max"]),
    )


def _writers_of(begins: Any, writers: Sequence[Writers]) -> tuple[Any, Any] | None:
    """Return of ``writers`` those that made rows with these begins, as ``build_system_sidecar`` takes them."""
    if not writers:
        return None
    found, ids = (
        pa.concat_arrays([_int64(some) for some in column])
        for column in zip(*[(some.begins, some.ids) for some in writers], strict=True)
    )
    made = pc.is_in(found, value_set=begins.unique())
    found, ids = found.filter(made), ids.filter(made)
    order = pc.array_sort_indices(found)
    found, ids = found.take(order), ids.take(order)
    if len(found) > 1:  # each once: parts that are merged may share some
        first = pc.not_equal(found.slice(1), found.slice(0, len(found) - 1))
        first = pa.concat_arrays([pa.array([True]), first])
        found, ids = found.filter(first), ids.filter(first)
    return (found, ids) if len(found) else None


def _int64(values: Any) -> Any:
    """Return an ``array('q')``, or memory of a file, as an Arrow array over it."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


async def write_sidecar(blob: Blob, part: str, spec: ShardSpec, index: ShardIndex, table: ArrowTable) -> None:
    """Write the sidecar of one index from the part's columns in part order; durable on return."""
    codec = index_codec(spec, index)

    def build() -> Buffers:
        columns, dims = key_columns(table, index)
        if index.inverted:
            entries, positions = entry_arrays(index, columns[0])
            return build_key_sidecar(codec, [entries], [None], positions)
        if index.kind == "intervals":
            columns = [node_array(columns[0])]
        return build_key_sidecar(codec, columns, dims)

    await _publish(blob, sidecar_name(part, index.index), build)


async def build_sidecar(
    blob: Blob, offload: Offload, part: Part, spec: ShardSpec, definition: ShardIndex
) -> None:
    """Write the sidecar of an index of ``spec`` for a part that is there; durable on return.

    Columns that the part lacks count with their missing value.

    Raises:
        FileExistsError: there is one. DamagedFile: the part's pages.
        OutOfSpace, Indeterminate: there may be one, which nobody may use then.
    """
    table = await part.read_arrow([a for a in definition.attnums if a in part.ref.columns])
    table = await offload(lambda: _with_missing(table, spec, definition.attnums))
    await write_sidecar(blob, part.ref.name, spec, definition, table)


def _with_missing(table: ArrowTable, spec: ShardSpec, attnums: tuple[int, ...]) -> Any:
    """Return ``table`` with the columns it lacks, filled with their missing values."""
    for column in spec.columns:
        if column.attnum in attnums and f"c{column.attnum}" not in table.column_names:
            arrays = column_arrays([column.missing_value] * table.num_rows, column)
            for field, values in zip(column_fields(column), arrays, strict=True):
                table = table.append_column(field.with_type(values.type), values)
    return table


async def _publish(blob: Blob, name: str, build: Callable[[], Buffers]) -> None:
    def write(file: BinaryIO) -> None:
        write_blocks(file, build())

    await blob.publish(name, write)


async def delete_part(blob: Blob, part: str) -> None:
    """Delete a part with its sidecars: the file last, so that an interrupted deletion can be repeated."""
    for name in reversed(await blob.list(f"{part}.")):
        if name != parquet_name(part):
            await blob.delete(name)
    await blob.delete(parquet_name(part))
