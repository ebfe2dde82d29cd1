"""What is left of a damaged part, made readable: of tables that the server itself starts from
(``TxnOptions.salvaged_shards``).

    k.parquet    columns of row groups, each by its page checksums ──┐
    k.x<index>   keys of the primary key ────────────────────────────┼──> a part in memory: the same rows at the same positions,
    k.sys        row ids, begins ────────────────────────────────────┘    NULL where a value is lost

Whatever two of the three files say of a row is enough to tell which row it is; a value that is in no key is
lost with its page. The files stay as they are: whoever restores them has all of it back at the next start. A
part of which nothing is lost (a sidecar was damaged) is merged away like others, and is whole from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from txn.base.errors import DamagedFile
from txn.base.types import Key, PartRef, ShardColumn, ShardSpec
from txn.base.writers import Writers
from txn.persist.checksum import check_file, check_footer
from txn.persist.location import Blob
from txn.persist.parts.part import parquet_name, sidecar_name, system_name
from txn.persist.parts.sidecar import KeySidecar, SortedKeys, SystemSidecar
from txn.persist.trouble import opened, renewing
from txn.values.arrow import ArrowTable
from txn.values.columns import column_arrays, column_fields, one_chunk
from txn.values.exact import alike, plain_type

_ROW_IDS: Final = "s_row_id"
_BEGINS: Final = "s_begin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """What is left of a part. ``table``: as ``write_part`` takes it, in part order.

    ``damage``: what was found, at least one; ``lost``: positions of rows with lost values, in order;
    ``certain``: whether row ids are known, without which it cannot be told which rows have been changed
    since. ``writers``: as ``write_part`` takes them.
    """

    table: ArrowTable
    damage: tuple[DamagedFile, ...]
    lost: tuple[int, ...]
    certain: bool
    writers: tuple[Writers, ...]


def examine(ref: PartRef, spec: ShardSpec, blob: Blob) -> Salvage | None:
    """Read all files of a part and return what is left; None where nothing is damaged. In a thread.

    Raises UnknownFormat, FileTrouble, OutOfSpace, StoreUnavailable: nothing can be told of the part now.
    """
    return _Examination(ref, spec, blob).run()


class _Examination:
    def __init__(self, ref: PartRef, spec: ShardSpec, blob: Blob) -> None:
        self._ref, self._spec, self._blob = ref, spec, blob
        self._damage: list[DamagedFile] = []
        self._renewed = set[str]()

    def _read(self, name: str, work: Callable[[str], Any]) -> Any:
        """Return what ``work`` reads of a file, None where that is damaged, which is noted."""
        path = self._blob.local_path(name)
        try:
            return renewing(path, lambda: work(path), lambda: self._renew(name))
        except DamagedFile as error:
            self._damage.append(error)
            return None

    def _renew(self, name: str) -> object | None:
        """Fetch a file anew, once: what is damaged then is so."""
        if name in self._renewed:
            return None
        self._renewed.add(name)
        return self._blob.renew(name)

    def run(self) -> Salvage | None:
        ref = self._ref
        system: SystemSidecar | None = self._read(system_name(ref.name), self._system)
        keys: SortedKeys | None = None
        for index in self._spec.indexes:
            found = self._read(sidecar_name(ref.name, index.index), self._keys)
            keys = found if index.primary else keys
        footer = self._read(parquet_name(ref.name), lambda path: self._footer(path, system))
        if not self._damage:
            return None
        columns = list(self._columns(footer))
        named = None if keys is None else self._named(keys)
        return self._joined(system, columns, named)

    def _system(self, path: str) -> SystemSidecar:
        system = SystemSidecar(path)
        if system.rows != self._ref.rows:
            raise DamagedFile(path, f"it has {system.rows} rows, not {self._ref.rows}")
        return system

    def _keys(self, path: str) -> SortedKeys:
        keys = KeySidecar(path).arrays()
        if len(keys.positions) != self._ref.rows:
            raise DamagedFile(path, f"it has {len(keys.positions)} rows, not {self._ref.rows}")
        return keys

    def _footer(self, path: str, system: SystemSidecar | None) -> Any:
        """Return the footer; what is behind it is looked at by pages. Notes damage of the file as a whole."""
        ref = self._ref
        source: Any = self._blob.source(parquet_name(ref.name))
        if isinstance(source, str):
            with opened(source) as local:
                check_footer(path, local, ref.bytes, 0 if system is None else system.footer_crc)
        else:
            check_footer(path, source, ref.bytes, 0 if system is None else system.footer_crc)
        with pq.ParquetFile(source, memory_map=True) as file:
            footer = file.metadata
        if footer.num_rows != ref.rows:
            raise DamagedFile(path, f"it has {footer.num_rows} rows, not {ref.rows}")
        if system is not None and system.file_crc and isinstance(source, str):
            try:
                check_file(source, system.file_crc)
            except DamagedFile as error:
                self._damage.append(error)
        return footer

    def _live(self) -> Iterator[ShardColumn]:
        return (c for c in self._spec.columns if not c.dropped and c.attnum in self._ref.columns)

    def _columns(self, footer: Any) -> Iterator[tuple[pa.Field, list[Any]]]:
        """Yield each field of the part, and of each row group its values: an array, or how many are lost."""
        fields = [field for column in self._live() for field in column_fields(column)]
        groups = (
            [self._ref.rows]
            if footer is None
            else [footer.row_group(n).num_rows for n in range(footer.num_row_groups)]
        )
        for field in [*fields, pa.field(_ROW_IDS, pa.int64()), pa.field(_BEGINS, pa.int64())]:
            pieces = []
            for number, count in enumerate(groups):
                found = None if footer is None else self._page(footer, number, field)
                pieces.append(count if found is None else found)
            yield field, pieces

    def _page(self, footer: Any, number: int, field: pa.Field) -> Any:
        name = parquet_name(self._ref.name)

        def read(_path: str) -> Any:
            source: Any = self._blob.source(name)
            with pq.ParquetFile(
                source, metadata=footer, memory_map=True, page_checksum_verification=True
            ) as file:
                return one_chunk(
                    file.read_row_group(number, columns=[field.name], use_threads=False).column(0)
                )

        found = self._read(name, read)
        return found if found is not None and plain_type(found.type).equals(field.type) else None

    def _named(self, keys: SortedKeys) -> list[Key]:
        """Return the primary keys by position."""
        places = keys.positions if isinstance(keys.positions, range) else keys.positions.to_pylist()
        found: list[Key] = [(None,)] * self._ref.rows
        for place, key in zip(places, keys.keys.to_pylist(), strict=False):
            found[place] = keys.decode(key)
        return found

    def _joined(
        self, system: SystemSidecar | None, columns: list[tuple[pa.Field, list[Any]]], named: list[Key] | None
    ) -> Salvage:
        ref, rows = self._ref, self._ref.rows
        primary = next((i.attnums for i in self._spec.indexes if i.primary), ())
        by_name = {column_fields(c)[0].name: c for c in self._live()}
        fields, arrays, lost, certain = [], [], set[int](), True
        for field, pieces in columns:
            column = by_name.get(field.name)
            at = 0
            chunks = []
            for piece in pieces:
                count = piece if isinstance(piece, int) else len(piece)
                places = range(at, at + count)
                if not isinstance(piece, int):
                    chunks.append(piece)
                elif field.name == _ROW_IDS:
                    ids = [-1 - p if system is None else system.row_id(p) for p in places]
                    certain = system is not None
                    chunks.append(pa.array(ids, pa.int64()))
                elif field.name == _BEGINS:
                    known = system is not None
                    chunks.append(
                        pa.array([system.begin(p) if known else ref.max_begin for p in places], pa.int64())  # type: ignore[union-attr] # known
                    )
                elif column is not None and column.attnum in primary and named is not None:
                    slot = primary.index(column.attnum)
                    chunks += column_arrays([named[p][slot] for p in places], column)
                else:
                    lost.update(places)
                    chunks.append(pa.nulls(count, field.type))
                at += count
            whole = pa.chunked_array(alike(chunks), None if chunks else field.type)
            fields.append(field.with_type(whole.type))
            arrays.append(whole)
        table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
        if ref.min_begin == ref.max_begin:
            begins = pa.repeat(pa.scalar(ref.min_begin, pa.int64()), rows)
            table = table.set_column(table.column_names.index(_BEGINS), _BEGINS, begins)
        return Salvage(
            table=table,
            damage=tuple(self._damage),
            lost=tuple(sorted(lost)),
            certain=certain,
            writers=() if system is None or system.writers is None else (system.writers,),
        )
