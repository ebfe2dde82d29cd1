"""Rows of one followed table: out of the snapshot's COPY, and out of the messages of the slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final

import pyarrow as pa

from engine.base.slices import given_way
from engine.catalog.physical import shard_column
from engine.feeds.sources import pgoutput
from engine.feeds.sources.changes import UNCHANGED, TableChanges, primary_key
from engine.feeds.sources.pgoutput import lsn_text
from engine.feeds.sources.postgres_client import Upstream
from engine.feeds.sources.postgres_tables import UpstreamTable
from engine.feeds.sources.reader import Temporary
from engine.feeds.sources.rows import RowReader, located, shown
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.lines import CopyRows
from pgwire.codecs.copy.reading import copy_decoder
from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from txn.base.types import Key, Row, ShardColumn
from txn.values.columns import column_arrays_slowly, column_fields
from txn.values.exact import batch_of

SLICE_ROWS: Final = 2000

Change = pgoutput.Insert | pgoutput.Update | pgoutput.Delete


class FollowedTable:
    """A table of the publication, and its table here.

    Attributes:
        upstream: what it was when the source was created.
        relation: the table here.
        reader: makes rows of what the snapshot, and later the slot, sends, in the order in which it does.
    """

    __slots__ = ("_key", "reader", "relation", "upstream")

    def __init__(self, upstream: UpstreamTable, relation: RelationDef) -> None:
        """Expect the columns in the order in which upstream has them."""
        index = primary_key(relation)
        self.upstream = upstream
        self.relation = relation
        self.reader = self._reader([c.name for c in upstream.columns])
        self._key = () if index is None else tuple(attnum - 1 for attnum in index.attnums)

    def _reader(self, names: Sequence[str]) -> RowReader:
        by_name = {c.name: c.attnum for c in self.relation.live}
        return RowReader(self.relation, [by_name[name] for name in names])

    def listen(self, said: pgoutput.Relation) -> None:
        """Take the order of columns from the slot. Raises SqlError 55000 if the table has changed."""
        self.upstream.check_same(said)
        self.reader = self._reader([c.name for c in said.columns])

    def change(self, changes: TableChanges, message: Change, lsn: int) -> None:
        """Add one change of the transaction that commits at ``lsn``.

        Raises DataError for a value that does not read, with transaction, table and column; SqlError 55000.
        """
        if not self._key:
            if not isinstance(message, pgoutput.Insert):
                raise SqlError(
                    "55000", f"table {self.upstream.shown} has no primary key to tell what was changed"
                )
            changes.append([self._row(message.new, lsn)])
        elif isinstance(message, pgoutput.Insert):
            row = self._row(message.new, lsn)
            changes.put(self._key_of(row), row)
        elif isinstance(message, pgoutput.Delete):
            changes.delete(self._old_key(message.old, lsn))
        else:
            new, old_key = message.new, None
            if message.old is not None:
                old_key = self._old_key(message.old, lsn)
                new = self._completed(message.kind == "O", message.old, new)
            row = self._row(new, lsn)
            changes.put(self._key_of(row), row, old_key)

    def _completed(self, whole: bool, old: pgoutput.Cells, new: pgoutput.Cells) -> pgoutput.Cells:
        """Fill what an update did not send from the old row, or, of its key, from the old key."""
        return tuple(
            before if cell is UNCHANGED and (whole or column.attnum - 1 in self._key) else cell
            for column, before, cell in zip(self.reader.columns, old, new, strict=True)
        )

    def _row(self, cells: pgoutput.Cells, lsn: int) -> Row:
        """Return a row; cells that were not sent stay UNCHANGED."""
        row = tuple(self._cells(cells, lsn, None))
        self.reader.check([row], lambda *_: self._place(lsn))
        return row

    def _key_of(self, row: Sequence[Any]) -> Key:
        return tuple([row[position] for position in self._key])

    def _old_key(self, cells: pgoutput.Cells, lsn: int) -> Key:
        """Return the primary key in an old row or key, whose other columns may be left out."""
        return self._key_of(self._cells(cells, lsn, self._key))

    def _cells(self, cells: pgoutput.Cells, lsn: int, only: Sequence[int] | None) -> list[Any]:
        made: list[Any] = [None] * self.reader.width
        for column, read, text in zip(self.reader.columns, self.reader.readers, cells, strict=True):
            position = column.attnum - 1
            if text is UNCHANGED:
                made[position] = UNCHANGED
            elif isinstance(text, str) and (only is None or position in only):
                try:
                    made[position] = read(text)
                except DataError as error:
                    where = f'{self._place(lsn)}, column {column.name}: "{shown(text)}"'
                    raise located(error, where) from None
        return made

    def _place(self, lsn: int) -> str:
        return f"transaction {lsn_text(lsn)}, table {self.upstream.shown}"


class SnapshotRows:
    """The rows of one table in the snapshot, as Arrow batches of the table here. They can be had once."""

    def __init__(self, snapshot: Upstream, table: FollowedTable, counted: Callable[[int], None]) -> None:
        """``counted`` is told how many rows came."""
        self._snapshot = snapshot
        self._table = table
        self._counted = counted
        self._begun = False
        self._line = 0

    async def batches(self) -> AsyncIterator[Any]:
        """Yield the rows. Raises Temporary for a second time: then there has to be another snapshot."""
        if self._begun:
            raise Temporary("the snapshot was cut off")
        self._begun = True
        table = self._table
        columns = [shard_column(c) for c in table.relation.stored_columns]
        schema = pa.schema([field for column in columns for field in column_fields(column)])
        names = [c.name for c in table.reader.columns]
        decoder = copy_decoder(CopyOptions(), table.upstream.name, names)
        async with aclosing(self._snapshot.copy(table.upstream.select())) as pieces:
            async for piece in pieces:
                for batch in self._arrow(decoder.feed(piece), columns, schema):
                    yield batch
                    await asyncio.sleep(0)
        for batch in self._arrow(decoder.finish(), columns, schema):
            yield batch

    def _arrow(self, decoded: CopyRows, columns: Sequence[ShardColumn], schema: Any) -> Iterator[Any]:
        for start in range(0, len(decoded.rows), SLICE_ROWS):
            rows = self._table.reader.rows(decoded.rows[start : start + SLICE_ROWS], self._where)
            arrays: list[Any] = []
            for column in columns:
                arrays += given_way(column_arrays_slowly([row[column.attnum - 1] for row in rows], column))
            self._counted(len(rows))
            self._line += len(rows)
            yield batch_of(arrays, schema)

    def _where(self, index: int, column: str | None, text: str | None) -> str:
        place = f"snapshot of table {self._table.upstream.shown}, row {self._line + index + 1}"
        return place if column is None else f'{place}, column {column}: "{shown(text or "")}"'
