"""Parts merged by a process elsewhere: what the server tells a worker, what it does, what it tells the server.

    server                               worker                                            server
    MergeJob ──pickled──►  the parts without the rows that nobody can read ─► one part ──► swaps it in, or deletes it

The worker writes under a ``PartJob``, with the server's code. Rows that end while it works are in the new
part; the server carries their ends over, as it does for a merge of its own (``txn.upkeep.flush_job.Carry``).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.types import PartRef, ShardSpec
from txn.base.writers import Writers
from txn.persist.location import in_thread
from txn.persist.parts.job import PartJob
from txn.persist.parts.part import RowGroupCache, open_part
from txn.persist.parts.write import write_part
from txn.values.arrow import ArrowTable
from txn.values.columns import column_arrays, joined, table_schema
from txn.values.encoding import decode_spec
from txn.values.exact import table_of


@dataclass(frozen=True, slots=True)
class MergePiece:
    """A part to merge. ``hidden``: positions of rows to leave out (an Arrow int64 array), None for none."""

    ref: PartRef
    hidden: Any


@dataclass(frozen=True, slots=True)
class MergedPart:
    """What has come of a job. ``ref``: None where no row is left. ``before``: rows of the parts, ``lost``:
    those left out.
    """

    ref: PartRef | None
    before: int
    lost: int


@dataclass(frozen=True, slots=True)
class MergeJob:
    """Which parts become one. Can be pickled if the grant of ``parts`` can."""

    parts: PartJob
    pieces: tuple[MergePiece, ...]
    writers: Writers
    """Told transactions that made rows of parts which hold none themselves, in ``array('q')``."""

    def write(self, worker: str) -> MergedPart:
        """Write the part; it is durable on return. Blocks; for a process of its own.

        ``worker``: nobody else's name within the job (``[0-9a-z-]+``).

        Raises TxnError: a part is damaged, the store failed, or the grant has ended.
        """
        return asyncio.run(self._write(worker))

    async def _write(self, worker: str) -> MergedPart:
        spec = decode_spec(self.parts.spec)
        blob = self.parts.grant.open(worker)
        tables: list[Any] = []
        writers = [self.writers] if len(self.writers) else []
        before = 0
        for piece in self.pieces:
            part = await open_part(piece.ref, blob, in_thread, RowGroupCache(0))
            table = await part.read_arrow()
            before += table.num_rows
            tables.append(live_rows(table, piece.hidden, spec))
            if part.writers is not None:
                writers.append(part.writers)
        whole = joined(tables)
        tables.clear()
        if not whole.num_rows:
            return MergedPart(None, before, before)
        name = f"{self.parts.prefix}-{worker}"
        ref = await write_part(blob, in_thread, name, spec, whole, writers=writers)
        return MergedPart(ref, before, before - whole.num_rows)


def live_rows(table: ArrowTable, hidden: Any, spec: ShardSpec) -> Any:
    """Drop rows at the positions ``hidden`` and bring the table into the form of ``spec``. Runs in a thread."""
    if hidden is not None:
        ones = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
        positions = pc.cumulative_sum(ones, start=pa.scalar(-1, pa.int64()))
        table = table.filter(pc.invert(pc.is_in(positions, value_set=hidden)))
    schema = table_schema(spec.columns)
    have = set(table.column_names)
    columns: dict[str, Any] = {}
    for column in spec.columns:
        if column.dropped:
            continue
        name = f"c{column.attnum}"
        if name in have:
            columns[name] = table.column(name)
            if f"{name}_dims" in have:
                columns[f"{name}_dims"] = table.column(f"{name}_dims")
        else:
            arrays = column_arrays([column.missing_value] * table.num_rows, column)
            columns[name] = arrays[0]
            if len(arrays) > 1:
                columns[f"{name}_dims"] = arrays[1]
    columns["s_row_id"] = table.column("s_row_id")
    columns["s_begin"] = table.column("s_begin")
    return table_of([columns[name] for name in schema.names], schema)


class Merger(Protocol):
    """Has parts merged by other processes. ``max_bytes``: the Arrow data of one merge."""

    max_bytes: int

    def wants(self, size: int) -> bool:
        """Tell whether files of so many bytes are to be merged there now."""

    async def write(self, job: MergeJob) -> MergedPart | None:
        """Have the job done. None: it could not be, and ``wants`` says no for a while."""
