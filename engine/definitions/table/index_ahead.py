"""Indexes are built ahead of the DDL that makes them known, while others go on reading and writing (N10).

    CREATE INDEX, ADD PRIMARY KEY | UNIQUE
      build      no lock at all; takes as long as it takes                    (txn.transaction.index_build)
      DDL        locks of the catalog, X of the table, what changed meanwhile, commit

Everything that may refuse the statement is asked again under the locks. When the table has changed its definition in
between, the statement is planned again; a build that still fits is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from engine.base.eager import settle
from engine.base.executor import ExecContext
from engine.catalog.index_parts import index_parts
from engine.catalog.physical import shard_spec
from engine.changes.bulk.spark_index import SparkSidecars
from engine.definitions.table.keys import building_indexes, unused_key_name, unused_name
from engine.session.plans.plan import Plan
from planner import statements as st
from planner.catalog import IndexDef, RelationDef
from txn.base.errors import LockTimeout
from txn.base.types import IndexId, ShardId
from txn.transaction.index_build import IndexBuild

if TYPE_CHECKING:
    from engine.session.session import Session

FIRST_TRY_MS: Final = 20
LONGEST_TRY_MS: Final = (
    1000  # bounds what writers wait for CREATE INDEX CONCURRENTLY that waits for one of them
)


class Ahead:
    """One index built ahead: for which table, at which version, what it looks like."""

    def __init__(
        self, table: RelationDef, index: IndexDef, builds: Sequence[IndexBuild], command: str
    ) -> None:
        """``builds``: one for each of its parts. ``command``: what pg_stat_progress_create_index calls it."""
        self.table = table
        self.index = index
        self.builds = builds
        self.build = builds[0]  # the one that runs
        self.command = command
        self.taken = False

    def fits(self, table: RelationDef, index: IndexDef) -> bool:
        """Tell whether ``index`` (whatever its name and oid) on ``table`` is what was built."""
        return (table.oid, table.version) == (self.table.oid, self.table.version) and _same(self.index, index)

    async def run(self) -> None:
        """Build the parts, one after the other. Raises as ``IndexBuild.run``."""
        for build in self.builds:
            self.build = build
            await build.run()

    def close(self) -> None:
        """Give up what was not adopted."""
        for build in self.builds:
            build.close()


def _same(one: IndexDef, other: IndexDef) -> bool:
    return (one.attnums, one.unique, one.method, one.nulls_not_distinct, one.opclasses, one.collations) == (
        other.attnums, other.unique, other.method, other.nulls_not_distinct, other.opclasses, other.collations,
    )  # fmt: skip


class BuiltAhead:
    """The indexes that a session's running statement has built ahead."""

    __slots__ = ("_session", "builds")

    def __init__(self, session: Session) -> None:
        """Start with none."""
        self._session = session
        self.builds: list[Ahead] = []

    def oid_of(self, table: RelationDef, index: IndexDef) -> int:
        """Return the oid for a new index of ``table``: that of the one built ahead if it fits, else a fresh one."""
        for ahead in self.builds:
            if not ahead.taken and ahead.table.oid == table.oid and _same(ahead.index, index):
                ahead.taken = True
                return ahead.index.oid
        return self._session.db.allocate_oids(1)

    def close(self) -> None:
        """The statement is over: what was not adopted is given up."""
        for ahead in self.builds:
            ahead.close()
        self.builds.clear()

    async def prepare(self, plan: Plan, context: Callable[[], ExecContext]) -> None:
        """Build what the statement will need. ``context``: its execution's. Raises SqlError 23505, 25001; SchemaChanged."""
        session = self._session
        command, table, wanted = _wanted(session, plan)
        stale = [a for a in self.builds if table is None or not any(a.fits(table, index) for index in wanted)]
        for ahead in stale:
            ahead.close()
            self.builds.remove(ahead)
        txn = session.block.ensure_txn()
        if table is None or txn.read_only or txn.has_changed(ShardId(table.oid)):
            return  # refused anyway, or changed by this very transaction, which then is alone with the table
        for index in wanted:
            if any(ahead.fits(table, index) for ahead in self.builds):
                continue
            index = replace(index, oid=session.db.allocate_oids(1))
            changed = replace(table, indexes=(*table.indexes, index))
            elsewhere = SparkSidecars(session, context())
            builds = [
                session.db.store.build_index(shard_spec(changed), IndexId(part.oid), elsewhere)
                for part in index_parts(index, changed)
            ]
            ahead = Ahead(table, index, builds, command)
            self.builds.append(ahead)
            with building_indexes(changed, session):
                await ahead.run()
        # As long as its builds are not adopted, the table cannot be flushed: it must not wait for memory itself.
        txn.urgent = bool(self.builds)


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
        key_names=statement.names if statement.written else (),
        opclasses=statement.opclasses,
        collations=statement.collations,
        options=statement.options,
        guard=statement.guard,
    )


def refuse_in_block(session: Session, plan: Plan) -> None:
    """Raise 25001 for CONCURRENTLY within a transaction block, beside other statements in one Query, or in a function."""
    statement = plan.bound.statement
    words = {st.CreateIndex: "CREATE", st.Drop: "DROP"}.get(type(statement))
    if words is None or not getattr(statement, "concurrently", False):
        return
    session.block.must_be_alone(f"{words} INDEX CONCURRENTLY")


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
