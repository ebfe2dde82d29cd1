"""What several actions of ALTER TABLE do: store a definition, go through all rows under a lock, put others in their place.

Whatever looks at every row does so a slice at a time; many rewritten rows become parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine import accounts
from engine.bulk.changes import BULK_ROWS
from engine.catalog.physical import shard_column, shard_spec
from engine.ddl.keys import building_indexes
from engine.eager import settle
from engine.routines.acting import acting_as
from engine.slices import SLICE_ROWS
from engine.writes.shape import TableShape, bound_check, table_layout
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import openly
from planner.catalog import ConstraintDef, RelationDef
from planner.errors import SqlError
from planner.evaluate import Env, Shared, compile_expr
from txn.columns import column_arrays, column_fields
from txn.types import Row, ShardId

if TYPE_CHECKING:
    from engine.connection.session import Session

BATCH_BYTES: Final = 4 << 20


async def store_definition(session: Session, relation: RelationDef) -> None:
    """Make a changed definition known, in the catalog and to the table's rows. Raises SqlError 23505."""
    changed = replace(relation, version=session.db.next_catalog_version())
    if relation.stored:
        with building_indexes(changed, session):
            await settle(session.block.ensure_txn().alter_shard(shard_spec(changed)))
    await session.view.change([changed])


def to_be_rewritten(relation: RelationDef) -> RelationDef:
    """Return a definition of which every row is written anew: each then has a value of its own in every column."""
    return replace(relation, columns=tuple(replace(c, missing_value=None) for c in relation.columns))


async def locked_rows(session: Session, relation: RelationDef) -> AsyncIterator[list[Row]]:
    """Yield the values of every row, own changes included, in chunks; nobody changes any from here on.

    Raises SqlError 53200 where the statement has gathered too much by then.
    """
    txn = session.block.ensure_txn()
    await settle(txn.lock_table(ShardId(relation.oid), "X"))
    txn.next_statement()
    async for chunk in txn.scan(ShardId(relation.oid)):
        rows = [row.values for row in chunk]
        del chunk  # before the next one is read: a row may be large
        yield rows
        del rows
        accounts.check()


async def rewrite_rows(session: Session, relation: RelationDef, rows: Sequence[Row]) -> None:
    """Put ``rows`` in the place of a table's rows. Raises SqlError 23505."""
    txn, shard = session.block.ensure_txn(), ShardId(relation.oid)
    with building_indexes(relation, session):
        if len(rows) <= BULK_ROWS:
            await settle(txn.rewrite(shard, rows))
        else:
            await settle(txn.truncate(shard))
            await txn.bulk_insert(shard, batches_of(relation, rows))


def completing(session: Session, shape: TableShape, env: Env) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Return what computes all that is generated in a table's rows, when its definition changes.

    Generated columns as the role that changes it; what indexes keep of a row (their expressions, the conditions of partial ones) as the table's
    owner, who wrote them: they would run with the rights of whoever changes the table. The rows may be any slice of the table's; what is
    returned may be called in open code.
    """
    columns = shape.relation.columns
    own = [one for one in shape.generated if not columns[one[0]].hidden]
    kept = [one for one in shape.generated if columns[one[0]].hidden]

    def complete(rows: Sequence[Row]) -> Sequence[Row]:
        rows = openly(shape.complete, rows, env, own)
        if not kept:
            return rows
        with acting_as(session, shape.relation.owner, restricted=True):
            return openly(shape.complete, rows, env, kept)

    return complete


async def store_with_hidden(
    session: Session, before: RelationDef, changed: RelationDef, env: Env | None = None
) -> None:
    """Store a definition with more hidden columns and indexes, and all rows anew with what those keep. Raises SqlError 23505."""
    complete = completing(session, TableShape.of(changed, session), env or Env((), session, shared=Shared()))
    more = (None,) * (len(changed.columns) - len(before.columns))
    rows: list[Row] = []
    async for chunk in locked_rows(session, before):
        rows += complete([(*row, *more) for row in chunk])
    without = replace(changed, indexes=before.indexes, constraints=before.constraints)
    await store_definition(session, without)
    await rewrite_rows(session, without, rows)
    await store_definition(session, changed)


async def batches_of(relation: RelationDef, rows: Sequence[Row]) -> AsyncIterator[Any]:
    """Yield rows as Arrow batches of the table's live columns."""
    columns = [shard_column(column) for column in relation.stored_columns]
    schema = pa.schema([field for column in columns for field in column_fields(column)])
    start = 0
    while start < len(rows):
        some = _some_rows(rows, start)
        start += len(some)
        arrays: list[Any] = []
        for column in columns:
            arrays += column_arrays([row[column.attnum - 1] for row in some], column)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        await asyncio.sleep(0)


def _some_rows(rows: Sequence[Row], start: int) -> Sequence[Row]:
    """Return the next rows for one batch: a slice of them, or fewer that are large."""
    stop, size = start, 0
    while stop < len(rows) and stop - start < SLICE_ROWS and size < BATCH_BYTES:
        size += row_bytes(rows[stop])
        stop += 1
    return rows[start:stop]


async def validate_checks(session: Session, relation: RelationDef, constraints: Any) -> None:
    """Raise 23514 if any row breaks one of the new CHECK constraints."""
    check = RowCheck(session, relation, constraints)
    async for chunk in locked_rows(session, relation):
        check(chunk)


class RowCheck:
    """CHECK constraints of a table, for rows that are there already."""

    def __init__(self, session: Session, relation: RelationDef, constraints: Iterable[ConstraintDef]) -> None:
        """Compile the constraints. Raises SqlError 42501 for functions that the user may not call, 42883 and others where one has no meaning."""
        self._relation = relation
        self._env = Env((), session, shared=Shared())
        layout = table_layout(relation)
        called: set[int] = set()
        self._checks = [
            (constraint.name, compile_expr(bound_check(constraint, relation, session, called), layout))
            for constraint in constraints
        ]
        session.ask_calls(called)

    def __call__(self, rows: Sequence[Row]) -> None:
        """Raise 23514 if a row breaks one."""
        relation, env = self._relation, self._env
        for name, predicate in self._checks:
            for row in rows:
                if openly(predicate, (*row, relation.oid), env) is False:
                    raise SqlError(
                        "23514",
                        f'check constraint "{name}" of relation "{relation.name}" is violated by some row',
                        schema=relation.schema,
                        table=relation.name,
                        constraint=name,
                    )
