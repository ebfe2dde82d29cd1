"""What several actions of ALTER TABLE do: store a definition, go through all rows under a lock, put others in
their place.

    rows ──pieces──> what each becomes ──> few: tuples, as INSERT has them
                                       └─> more: parts, written as they are made; the table's own once all are there

Whatever looks at every row does so a slice at a time, and has no more of them at once than a batch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from engine.base import accounts
from engine.base.eager import settle
from engine.base.pieces import FEW_BYTES, cut_rows
from engine.catalog.physical import shard_spec
from engine.changes.bulk.changes import BULK_ROWS
from engine.changes.bulk.row_batches import batches_of, row_measure
from engine.changes.writes.shape import TableShape, bound_check, table_layout
from engine.definitions.table.keys import building_indexes
from engine.session.acting import acting_as
from pgwire.give_way import openly
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.catalog import ConstraintDef, RelationDef
from planner.evaluate import Env, Shared, compile_expr
from txn.base.types import Row, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

Renew: TypeAlias = Callable[[Sequence[Row]], Sequence[Row]]


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
    """Yield the values of every row, own changes included, in chunks; nobody changes any from here on. A
    foreign table has none.

    Raises SqlError 53200 where the statement has gathered too much by then.
    """
    if not relation.stored:
        return
    txn = session.block.ensure_txn()
    await settle(txn.lock_table(ShardId(relation.oid), "X"))
    txn.next_statement()
    async for chunk in txn.scan(ShardId(relation.oid)):
        rows = [row.values for row in chunk]
        del chunk  # before the next one is read: a row may be large
        yield rows
        del rows
        accounts.check()


async def rewrite_rows(session: Session, before: RelationDef, changed: RelationDef, renew: Renew) -> None:
    """Put what ``renew`` makes of a table's rows in their place, and store the definition that they then have.

    ``renew`` is given some rows at a time, and finds the table as it was. Raises what it raises, and SqlError 23505.
    """
    if not changed.stored:
        await store_definition(session, changed)
        return
    txn, shard = session.block.ensure_txn(), ShardId(changed.oid)
    source = FewOrMore(changed, _renewed(session, before, renew))
    rows = await source.few()
    with building_indexes(changed, session):
        if rows is None:
            await txn.bulk_rewrite(shard_spec(changed), source.batches())
        await store_definition(session, changed)
        if rows is not None:
            await settle(txn.rewrite(shard, rows))


async def _renewed(session: Session, before: RelationDef, renew: Renew) -> AsyncIterator[Sequence[Row]]:
    measure = row_measure(before)
    async for chunk in locked_rows(session, before):
        for some, _long in cut_rows(chunk, measure):
            yield renew(some)
            del some
            accounts.check()
        del chunk


def completing(session: Session, shape: TableShape, env: Env) -> Renew:
    """Return what computes all that is generated in a table's rows, when its definition changes.

    Generated columns as the role that changes it; what indexes keep of a row (their expressions, the
    conditions of partial ones) as the table's owner, who wrote them: they would run with the rights of
    whoever changes the table. The rows may be any slice of the table's; what is returned may be called in
    open code.
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
    """Store a definition with more hidden columns and indexes, and all rows anew with what those keep. Raises
    SqlError 23505.
    """
    complete = completing(session, TableShape.of(changed, session), env or Env((), session, shared=Shared()))
    more = (None,) * (len(changed.columns) - len(before.columns))
    without = replace(changed, indexes=before.indexes, constraints=before.constraints)
    await rewrite_rows(session, before, without, lambda rows: complete([(*row, *more) for row in rows]))
    await store_definition(session, changed)


class FewOrMore:
    """Rows for a table: few of them as they are, more as batches. Used once."""

    def __init__(self, relation: RelationDef, chunks: AsyncIterator[Sequence[Row]]) -> None:
        """Read ``chunks``, none of which is more than memory has room for twice."""
        self._relation = relation
        self._chunks = chunks
        self._first: list[Row] = []

    async def few(self) -> list[Row] | None:
        """Return all rows if there are at most ``BULK_ROWS``, of ``FEW_BYTES`` together; else None, and
        ``batches`` has them.
        """
        measure, size = row_measure(self._relation), 0
        async for chunk in self._chunks:
            self._first += chunk
            size += 0 if measure is None else openly(measure, chunk)
            del chunk
            if len(self._first) > BULK_ROWS or size > FEW_BYTES:
                return None
        return self._first

    async def batches(self) -> AsyncIterator[Any]:
        """Yield all rows, those that ``few`` has read first, as Arrow batches of the table's live columns."""
        first, self._first = self._first, []
        async for batch in batches_of(self._relation, first):
            yield batch
            del batch
        let_go(first)
        del first
        async for chunk in self._chunks:
            async for batch in batches_of(self._relation, chunk):
                yield batch
                del batch
            del chunk


async def validate_checks(session: Session, relation: RelationDef, constraints: Any) -> None:
    """Raise 23514 if any row breaks one of the new CHECK constraints."""
    check = RowCheck(session, relation, constraints)
    async for chunk in locked_rows(session, relation):
        check(chunk)


class RowCheck:
    """CHECK constraints of a table, for rows that are there already."""

    def __init__(self, session: Session, relation: RelationDef, constraints: Iterable[ConstraintDef]) -> None:
        """Compile the constraints. Raises SqlError 42501 for functions that the user may not call, 42883 and
        others where one has no meaning.
        """
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
