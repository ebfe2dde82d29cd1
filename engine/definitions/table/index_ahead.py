"""Indexes are built ahead of the DDL that makes them known, while others go on reading and writing (N10).

    CREATE INDEX, ADD PRIMARY KEY | UNIQUE
      build      no lock at all; takes as long as it takes                    (txn.transaction.index_build)
      DDL        locks of the catalog, X of the table, what changed meanwhile, commit

Everything that may refuse the statement is asked again under the locks. When the table has changed its definition in
between, the statement is planned again; a build that still fits is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from engine.base.eager import settle
from engine.base.executor import ExecContext
from engine.catalog.index_parts import index_parts
from engine.catalog.physical import shard_spec
from engine.changes.bulk.spark_index import SparkSidecars
from engine.definitions.table.keys import building_indexes, unused_key_name, unused_name
from engine.definitions.table.unbuilt import leaves
from engine.session.built_ahead import Ahead
from engine.session.plans.plan import Plan
from planner import statements as st
from planner.catalog import IndexDef, RelationDef
from txn.base.errors import LockTimeout
from txn.base.types import IndexId, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

FIRST_TRY_MS: Final = 20
LONGEST_TRY_MS: Final = (
    1000  # bounds what writers wait for CREATE INDEX CONCURRENTLY that waits for one of them
)


async def build_ahead(session: Session, plan: Plan, context: Callable[[], ExecContext]) -> None:
    """Build the indexes that the statement will need. ``context``: its execution's. Raises SqlError 23505,
    25001; SchemaChanged.
    """
    built = session.ahead
    command, table, wanted = _wanted(session, plan)
    stale = [a for a in built.builds if table is None or not any(a.fits(table, index) for index in wanted)]
    for ahead in stale:
        ahead.close()
        built.builds.remove(ahead)
    txn = session.block.ensure_txn()
    if table is None or txn.read_only or txn.has_changed(ShardId(table.oid)):
        return  # refused anyway, or changed by this very transaction, which then is alone with the table
    for index in wanted:
        if any(ahead.fits(table, index) for ahead in built.builds):
            continue
        index = replace(index, oid=session.db.allocate_oids(1))
        changed = replace(table, indexes=(*table.indexes, index))
        elsewhere = SparkSidecars(session, context())
        builds = [
            session.db.store.build_index(shard_spec(changed), IndexId(part.oid), elsewhere)
            for part in index_parts(index, changed)
        ]
        ahead = Ahead(table, index, builds, command)
        built.builds.append(ahead)
        if isinstance(plan.bound.statement, st.CreateIndex) and plan.bound.statement.concurrently:
            leaves(session, table, [index])
        with building_indexes(changed, session):
            await ahead.run()
    # As long as its builds are not adopted, the table cannot be flushed: it must not wait for memory itself.
    txn.urgent = bool(built.builds)


def _wanted(session: Session, plan: Plan) -> tuple[str, RelationDef | None, list[IndexDef]]:
    """Return what the statement is called, its table (None: nothing to build), and the indexes that it adds."""
    statement = plan.bound.statement
    if isinstance(statement, st.CreateIndex):
        table = session.catalog.relation_by_oid(statement.table)
        command = "CREATE INDEX CONCURRENTLY" if statement.concurrently else "CREATE INDEX"
        if (
            table is None
            or table.kind == "p"
            or statement.hidden
            or _name_is_taken(session, table, statement.name)
        ):
            return command, None, []
        name = statement.name or unused_name(session, table.schema, table.name, statement.names, "idx")
        index = index_of(statement, name)
        return command, table, [index] if index.stored else []
    if isinstance(statement, st.AlterTable) and all(isinstance(a, st.AddKey) for a in statement.actions):
        table = session.catalog.relation_by_oid(statement.table)
        keys = [a.key for a in statement.actions if isinstance(a, st.AddKey) and a.key.using_index is None]
        if table is not None and table.kind == "r" and not table.partition_of:
            by_name = {column.name: column.attnum for column in table.live}
            return "ALTER TABLE", table, [
                IndexDef(
                    oid=0, name=key.name or unused_key_name(session, table, key),
                    attnums=tuple(by_name[name] for name in key.columns), unique=not key.operators, method=key.method,
                    nulls_not_distinct=key.nulls_not_distinct, constraint_oid=1,  # of one that has none yet
                )
                for key in keys
                if not key.expressions
                and len(set(key.columns)) == len(key.columns) and all(name in by_name for name in key.columns)
                and not (key.name and _name_is_taken(session, table, key.name))
                and not (key.primary and any(i.primary for i in table.indexes))
            ]  # fmt: skip
    return "", None, []


def _name_is_taken(session: Session, table: RelationDef, name: str | None) -> bool:
    return name is not None and session.catalog.relation(table.schema, name) is not None


def index_of(statement: st.CreateIndex, name: str = "") -> IndexDef:
    """Return the index that a statement describes, without its oid."""
    return IndexDef(
        oid=0,
        name=statement.name or name,
        attnums=statement.attnums,
        unique=statement.unique,
        method=statement.method,
        nulls_not_distinct=statement.nulls_not_distinct,
        descending=statement.descending,
        nulls_first=statement.nulls_first,
        include=statement.include,
        written=statement.written,
        expressions=statement.expressions,
        where_sql=statement.where_sql,
        key_names=statement.names if statement.written or statement.keeps_names else (),
        opclasses=statement.opclasses,
        collations=statement.collations,
        options=statement.options,
        guard=statement.guard,
    )


async def lock_between_writers(session: Session, shard: ShardId) -> None:
    """Lock a table X without making others wait long for a transaction that has written it and goes on.

    Whoever wants the table waits behind this request, so it is withdrawn after a while, and made again later.
    Raises txn's LockTimeout after ``lock_timeout``, Deadlock, SchemaChanged.
    """
    txn = session.block.ensure_txn()
    limit_ms = session.derived.lock_timeout_ms
    loop = asyncio.get_running_loop()
    started = loop.time()
    try_ms = FIRST_TRY_MS
    while True:
        txn.set_lock_timeout(min(try_ms, limit_ms) if limit_ms else try_ms)
        try:
            await settle(txn.lock_table(shard, "X"))
        except LockTimeout:
            if limit_ms and (loop.time() - started) * 1000 >= limit_ms:
                raise
        else:
            return
        finally:
            txn.set_lock_timeout(limit_ms)
        await asyncio.sleep(try_ms / 1000)
        try_ms = min(try_ms * 2, LONGEST_TRY_MS)
