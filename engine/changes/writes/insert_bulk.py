"""INSERT ... SELECT, UPDATE and CREATE TABLE AS of many rows: an executor's Arrow batches become parts
without passing through tuples.

    source stream ──> gathered up to a bound ──> few rows: tuples, intents (``engine.changes.writes.dml``)
                                             └─> more: batches renamed to the table's columns ──> txn.bulk_insert
                                                       └─ through values, a slice of rows at a time: defaults,
                                                       CHECK, computed columns

Only statements whose rows are not looked at once more when they are stored come here: no ON CONFLICT,
RETURNING or trigger. A batch whose columns are not in the table's physical form (numerics of another scale,
arrays) goes through values, and so does all of a table whose rows are computed or checked one by one.

A row that is refused ends the load behind those before it: one of these may break a key, and then that is
what is told, as in PostgreSQL (``raise_refused``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.base.pieces import FEW_BYTES
from engine.base.rows import RowBatch, RowStream
from engine.base.slices import given_way, pause, rows_at_once
from engine.catalog.physical import shard_column
from engine.changes.writes.shape import OF_ROWS
from pgwire.codecs.errors import DataError
from pgwire.give_way import give_way, openly
from pgwire.release import let_go
from txn.base.types import Row
from txn.values.columns import as_stored, column_arrays_slowly, column_fields
from txn.values.exact import batch_of

if TYPE_CHECKING:
    from engine.changes.writes.dml import InsertPlan
    from engine.session.session import Session
    from planner.catalog import RelationDef

SLICE_ROWS: Final = 4_000  # of rows that go through values, between two turns of the loop


class BulkSource:
    """A source of rows for one INSERT. Used once; ``close`` it."""

    def __init__(
        self,
        session: Session,
        relation: RelationDef,
        attnums: Sequence[int],
        stream: RowStream,
        complete: Callable[[Sequence[Row]], Sequence[Row]],
        *,
        by_row: bool = False,
    ) -> None:
        """Read ``stream``, whose columns go to ``attnums`` of ``relation`` (0: nowhere).

        ``complete`` makes checked table rows of source rows; it raises 23502 for those with a NULL too many.
        ``by_row``: it has more to do than to look for these, so that all rows are brought to it.
        """
        self._session = session
        self._complete = complete
        self._stream = stream
        self._batches = aiter(stream.batches)
        self._first: list[RowBatch] = []
        self._columns = [shard_column(c) for c in relation.stored_columns]
        self._schema = pa.schema([field for column in self._columns for field in column_fields(column)])
        self._at = {f"c{attnum}": i for i, attnum in enumerate(attnums) if attnum}
        self._computes = by_row or bool(relation.generated)
        self._refused: DataError | None = None
        self._not_null = [f"c{c.attnum}" for c in relation.live if c.not_null]

    @staticmethod
    def serves(insert: InsertPlan) -> bool:
        """Return whether the rows of an INSERT may be written as parts, as far as the statement goes."""
        return not (insert.conflict or insert.checks or insert.checks.views or insert.returning)

    @staticmethod
    def computes(insert: InsertPlan) -> bool:
        """Return whether the INSERT has more to do per row than to look for NULLs, so that only the server can."""
        return bool(insert.defaults or insert.shape.checks or insert.shape.demands)

    async def few(self, limit: int) -> list[Row] | None:
        """Return the source's rows if there are at most ``limit``, of ``FEW_BYTES`` together; else None, and
        ``batches`` has them.
        """
        pause()  # of very many columns it takes long to be made
        count = size = 0
        async for batch in self._batches:
            self._first.append(batch)
            count += len(batch)
            size += openly(getattr, batch, "nbytes")
            if count > limit or size > FEW_BYTES:
                return None
        return [row for batch in self._first for row in openly(self.values, batch)]

    async def batches(self) -> AsyncIterator[Any]:
        """Yield all rows as Arrow batches of the table's columns, up to one that is refused (``raise_refused``)."""
        async for batch in self.source_batches():
            for one in openly(self.table_batches, batch):
                yield one
            if batch.rows is not None:
                let_go(batch.rows)
            if self._refused is not None:
                return

    def raise_refused(self) -> None:
        """Raise the error of the row that has ended the load, if any: DataError 22*, 23502, 23514. Those
        before it have been stored.
        """
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused

    async def source_batches(self) -> AsyncIterator[RowBatch]:
        """Yield all of the source's batches, those that ``few`` has read first."""
        first, self._first = self._first[::-1], []
        while first:
            yield first.pop()  # nobody else keeps it
        async for batch in self._batches:
            yield batch

    def close(self) -> None:
        """End the source query. Idempotent."""
        self._stream.close()

    def values(self, batch: RowBatch) -> list[Row]:
        """Return a batch's rows as tuples."""
        if batch.rows is not None:
            return list(batch.rows)
        return list(self._session.db.arrow_rows(batch.arrow, self._stream.columns))

    def table_batches(self, batch: RowBatch) -> list[Any]:
        """Return a batch as Arrow batches of the table's columns, in order; those before the row that is
        refused, where one is.
        """
        if batch.arrow is not None:
            same = self._same_form(batch.arrow)
            if same is not None:
                return [same]
        made = []
        for start in range(0, len(batch), SLICE_ROWS):
            if batch.rows is not None:
                piece = RowBatch(rows=batch.rows[start : start + SLICE_ROWS])
            else:
                piece = RowBatch(arrow=batch.arrow.slice(start, SLICE_ROWS))
            values = self.values(piece)
            most = rows_at_once(values)
            rows: list[Row] = []
            for at in range(0, len(values), most):
                rows += self._completed(values[at : at + most])
                give_way()
                if self._refused is not None:
                    break
            arrays: list[Any] = []
            for column in self._columns:
                arrays += given_way(column_arrays_slowly([row[column.attnum - 1] for row in rows], column))
                give_way()
            made.append(batch_of(arrays, self._schema))
            let_go(values, rows)
            if self._refused is not None:
                break
        return made

    def _completed(self, some: Sequence[Row]) -> Sequence[Row]:
        """Return table rows of source rows; where one is refused, those before it, and the error is kept."""
        try:
            return self._complete(some)
        except DataError as error:
            if not error.sqlstate.startswith(OF_ROWS):
                raise
            found: list[Row] = []
            try:
                for row in some:
                    found += self._complete([row])
                    give_way()
                raise error  # it was another one's the first time
            except DataError as refused:
                if not refused.sqlstate.startswith(OF_ROWS):
                    raise
                self._refused = refused
            return found

    def _same_form(self, batch: Any) -> Any:
        """Return the batch as the table's, or None where a column has another form, or is computed, or a NULL
        too many.
        """
        if self._computes:
            return None
        arrays = []
        for field in self._schema:
            at = self._at.get(field.name)
            if at is None:
                arrays.append(pa.nulls(batch.num_rows, field.type))
            else:
                stored = None if pa.types.is_list(field.type) else as_stored(batch.column(at), field.type)
                if stored is None:
                    return None
                arrays.append(stored)
            if arrays[-1].null_count and field.name in self._not_null:
                return None
        return batch_of(arrays, self._schema)
