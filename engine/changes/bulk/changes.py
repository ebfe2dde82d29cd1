"""UPDATE and DELETE of many rows: by sets of row ids and columns of values instead of row by row.

    UPDATE  route Spark   X on the table ─► job: new rows ─► parts; row ids ─► server: the old versions end
            route local   Arrow batches ─► row ids end, the rest becomes parts (few rows: tuples, as ever)
    DELETE                row ids alone are read; old values are not

Row ids stay 8 bytes each, and one bit of a part's rows once they have been looked up there
(``txn.transaction.bulk_ends``). What an UPDATE writes as parts has new row ids, as in PostgreSQL it has new
ctids. Only statements go this way whose rows are not looked at once more when they are stored: no RETURNING,
trigger, deferrable key, and of foreign keys that the change concerns only those of the table itself, which
are checked for the whole table behind it (``engine.changes.constraints.setwise``). CHECKs and computed
columns make rows pass through values; Spark takes nothing that has either.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import settle
from engine.base.executor import ExecContext
from engine.base.pieces import FEW_BYTES
from engine.base.rows import RowBatch, RowStream
from engine.base.slices import SLICE_ROWS
from engine.changes.bulk.spark_load import null_error, rows_for
from engine.changes.constraints.setwise import check_released
from engine.changes.writes.insert_bulk import BulkSource
from engine.executors.spark.executor import SparkExecutor
from engine.executors.spark.part_writer import OtherForm
from engine.plans.query import CompiledQuery, choose_route
from pgwire.give_way import openly, paced
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.evaluate import Env
from txn.api import PartJob, WrittenPart
from txn.base.errors import NullInColumn
from txn.base.types import Row, RowId, ShardId
from txn.values.columns import int64_values

if TYPE_CHECKING:
    from engine.changes.writes.update_delete import ChangePlan
    from engine.session.session import Session


WIDE: Final = 16  # rows between two looks at the clock: each may have a thousand values
BULK_ROWS = 20_000  # more rows than this are written as parts, or ended by their places in parts


class BulkChanges(BulkSource):
    """The source of an UPDATE: rows of ``planner.query.Update``'s layout. Used once; ``close`` it."""

    def __init__(self, session: Session, change: ChangePlan, stream: RowStream, env: Env) -> None:
        """Read ``stream``; ``env``: for generated columns."""
        attnums = new_columns(change)

        def complete(rows: Sequence[Row]) -> Sequence[Row]:
            return openly(change.shape.made, [change.new(row) for row in paced(rows, WIDE)], env)

        by_row = change.shape.by_row
        super().__init__(session, change.shape.relation, attnums, stream, complete, by_row=by_row)

    async def changes(self) -> AsyncIterator[tuple[array[int], Any]]:
        """Yield row ids, and batches of what replaces those rows, up to one that is refused (``raise_refused``)."""
        async for batch in self.source_batches():
            ids = _ids_of(batch)
            at = 0
            for piece in openly(self.table_batches, batch):
                yield ids[at : at + piece.num_rows], piece
                at += piece.num_rows
            if batch.rows is not None:
                let_go(batch.rows)
            if self._refused is not None:
                return

    async def pieces(self) -> AsyncGenerator[Sequence[Row]]:
        """Yield all rows, some at a time, and end the source query: they go another way after all."""
        try:
            async for batch in self.source_batches():
                for start in range(0, len(batch), SLICE_ROWS):
                    if batch.rows is not None:
                        yield batch.rows[start : start + SLICE_ROWS]
                    else:
                        yield self.values(RowBatch(arrow=batch.arrow.slice(start, SLICE_ROWS)))
        finally:
            self.close()


def new_columns(change: ChangePlan) -> list[int]:
    """Return the attnum that each source column is the new value of, 0 for none."""
    live = [column.attnum for column in change.shape.relation.live]
    assigned = change.statement.assigned if hasattr(change.statement, "assigned") else ()
    kept = [attnum if attnum not in assigned else 0 for attnum in live]
    return [0, *kept, *assigned]


def _ids_of(batch: RowBatch) -> array[int]:
    if batch.arrow is None:
        return array("q", [row[0] for row in batch.rows or ()])
    return int64_values(batch.arrow.column(0))


async def update_on_spark(
    session: Session, change: ChangePlan, query: CompiledQuery, ctx: ExecContext
) -> int | None:
    """Have Spark write what replaces the rows of an UPDATE; return the row count, None where it goes another way.

    Raises:
        SqlError: what the query raises; 23502.
        DuplicateKey and all else that ``Transaction.bulk_insert_parts`` raises.
    """
    route, executable = choose_route(session, query, ctx.params, ctx.txn)
    if route.executor != "spark":
        return None
    if change.shape.generated:
        return None
    spark = session.db.executors["spark"]
    if not isinstance(spark, SparkExecutor):
        raise AssertionError(f"the Spark executor is {type(spark).__name__}")
    shape = change.shape
    relation = shape.relation
    joins = len(change.statement.source.ranges) > 1
    rows = replace(rows_for(relation, new_columns(change)), ids=0, repeated=joins)
    not_null = [c.attnum for c in relation.live if c.not_null]
    txn = session.block.ensure_txn()

    async def write(job: PartJob) -> list[WrittenPart]:
        written = await spark.write_parts(executable, ctx, job.requiring(not_null), rows)
        if await txn.bulk_delete(shape.shard, written.row_ids) != len(written.row_ids):
            raise AssertionError(f"a row of shard {shape.shard} that was scanned under lock has gone")
        return written.parts

    try:
        return await txn.bulk_insert_parts(shape.shard, write, change.assigned_attnums)
    except OtherForm:
        return None
    except NullInColumn as error:
        raise null_error(session, shape, error) from error
    except SqlError as error:  # Spark may learn only at run time that it cannot
        if error.sqlstate != "0A000" or session.derived.executor != "auto":
            raise
        query.refused["spark"] = error.copy()
        return None


async def delete_found(session: Session, change: ChangePlan, result: RowStream) -> int:
    """Delete the rows whose ids a DELETE's source finds, each once; returns how many."""
    ids = array("q")
    try:
        async for batch in result.batches:
            ids += _ids_of(batch)
    finally:
        result.close()
    return await delete_ids(session, change.shape.shard, ids)


async def delete_referenced(
    session: Session, change: ChangePlan, result: RowStream
) -> int | list[Row] | None:
    """Delete the rows that a DELETE's source finds, each once, of a table that others refer to
    (``released_whole``); returns how many.

    Returns the source's rows where they are few, and None where somebody else has a lock on the table: they
    are to be deleted one by one.
    """
    ids = array("q")
    first: list[RowBatch] | None = []
    size = 0
    try:
        async for batch in result.batches:
            ids += _ids_of(batch)
            if first is not None:
                first.append(batch)
                size += openly(getattr, batch, "nbytes")
                if len(ids) > BULK_ROWS or size > FEW_BYTES:
                    first = None
    finally:
        result.close()
    if first is not None:
        rows: list[Row] = []
        for batch in first:
            rows += (
                batch.rows if batch.rows is not None else session.db.arrow_rows(batch.arrow, result.columns)
            )
        return rows
    count = await session.block.ensure_txn().bulk_delete(change.shape.shard, ids)
    if count is not None:
        await check_released(session, change.shape.relation)
    return count


async def delete_ids(session: Session, shard: ShardId, ids: array[int]) -> int:
    """Delete the rows with some ids, each once; returns how many."""
    txn = session.block.ensure_txn()
    if len(ids) > BULK_ROWS:
        count = await txn.bulk_delete(shard, ids)
        if count is not None:
            return count
    each = [RowId(row_id) for row_id in dict.fromkeys(ids)]
    await settle(txn.delete(shard, each))
    return len(each)
