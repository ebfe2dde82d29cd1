"""The catalog as one session sees it, and how its transaction keeps plans and catalog together.

    outside a transaction   the latest one                              (or a past one, while a statement is bound)
    a reading transaction   the one of its read timestamp
    a writing transaction   the latest one again, the tables it uses locked, and its own DDL on top

A transaction sees the catalog that was current when it began: its read timestamp is the latest applied commit, so
they belong together. When it starts to write its reads move to the latest state, and the catalog with them. Whoever
writes holds table locks, so what it was bound against cannot change under it; ``Replan`` says that it changed just
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from engine.base.eager import settle
from engine.catalog.default_acls import lists_for_new
from engine.catalog.history import generation_of, sequences_of
from engine.catalog.lost_parts import lost_comments
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.fences import refuse_replacement
from engine.catalog.storage.store import write_changes
from engine.catalog.storage.stored import Stored, StoredKey, key_of
from engine.catalog.user_types import with_unsafe_labels
from engine.session.catalog.locks import CatalogLocks
from engine.session.plans.caches import PlanCaches
from engine.session.plans.plan import Plan, Replan
from engine.session.transaction.block_state import BLOCK, IMPLICIT
from pgwire.codecs.users.types import EnumLabels, UserTypes
from pgwire.give_way import between, openly, paced, spaced
from planner.base.errors import SqlError
from planner.catalog import RelationDef, TypeDef
from planner.statements.classify import Runs, row_of
from txn.api import Transaction
from txn.base.errors import Cause, SchemaChanged
from txn.base.types import ShardId, Timestamp

if TYPE_CHECKING:
    from engine.session.session import Session

_Changes = Mapping[StoredKey, Stored | None]


def _command(plan: Plan) -> str:
    """Return a statement's name in errors: its tag, but that of COPY, which only writes one way."""
    tag = plan.bound.tag
    return "COPY FROM" if tag == "COPY" else tag


class CatalogView:
    """What one session sees of the catalog; see the module's prologue.

    Attributes:
        own_changes: what the transaction has put and (None) deleted; replaced, never changed.
        locks: what the transaction has locked of the catalog.
    """

    __slots__ = (
        "_base", "_db", "_ddl_staged", "_historic", "_lens", "_marked", "_own_plans", "_seen", "_session", "_space", "_unsafe", "_used", "_within", "added_labels", "locks",
        "own_changes",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        """See the latest catalog."""
        self._session = session
        self._db = session.db
        self._space = session.space
        self._seen = self._base = (
            session.space.catalog
        )  # of the running transaction, with and without own changes
        self._lens: CatalogSnapshot | None = None  # seen instead of the latest catalog outside a transaction
        self._within = False  # in one, too
        self._historic = False  # the running transaction began with an older catalog
        self._used: dict[
            int, int
        ] = {}  # versions of the relations that were read before the first write, by oid
        self._ddl_staged = False
        self._unsafe = False  # labels of what is seen are not to be used yet
        self._marked: Mapping[int, EnumLabels] = {}  # the last that had unsafe labels, by their type
        self.added_labels: set[int] = set()  # oids of labels that the transaction has added to enums
        self._own_plans: PlanCaches | None = None
        self.own_changes: _Changes = {}
        self.locks = CatalogLocks(session)

    # -- what is seen ------------------------------------------------------------------------------

    @property
    def catalog(self) -> CatalogSnapshot:
        """The catalog the current transaction sees, or the latest outside one."""
        if self._session.block.txn is not None and not self._within:
            return self._seen
        return self._space.catalog if self._lens is None else self._lens

    @property
    def is_private(self) -> bool:
        """True when the transaction sees a catalog of its own, or a past one."""
        if self._session.block.txn is None or self._within:
            return self._lens is not None
        return self._historic or self._seen is not self._base

    @property
    def plans(self) -> PlanCaches | None:
        """Where plans for what is seen are kept (``engine.session.plans.caches``), None: nowhere."""
        if not self.is_private:
            return self._db.plans
        if self._historic or self._lens is not None:
            return None
        if self._own_plans is None:
            self._own_plans = PlanCaches(self._db.plans.size // 4, self._db.plans)
        return self._own_plans

    @contextmanager
    def looking_at(self, catalog: CatalogSnapshot, *, within: bool = False) -> Iterator[None]:
        """See ``catalog`` while a statement is bound that will read in the past.

        A running transaction sees its own, unless ``within``: the statement reads elsewhere than the transaction.
        """
        before = self._lens, self._within
        self._lens, self._within = None if catalog is self._space.catalog else catalog, within
        try:
            yield
        finally:
            self._lens, self._within = before

    # -- the transaction's course ------------------------------------------------------------------

    def begin(self, catalog: CatalogSnapshot) -> None:
        """A transaction begins with ``catalog``."""
        self._seen = self._base = catalog
        self._historic = catalog is not self._space.catalog
        if self._historic:
            self.conform()

    def conform(self) -> bool:
        """Have a reading transaction see today's code where that has changed; tell whether it sees something
        else now.
        """
        txn = self._session.block.txn
        if (
            txn is None
            or txn.writing
            or self._within
            or self.own_changes
            or self._base is self._space.catalog
        ):
            return False
        wanted = self._session.as_of_today(self._base, txn.read_ts)
        if wanted is self._seen:
            return False
        self._seen = wanted
        self._own_plans = None
        return True

    def end(self) -> None:
        """The transaction is over."""
        self._used.clear()
        if self._ddl_staged or self.locks.any:
            self._ddl_staged = False
            self.own_changes = {}
            self.added_labels.clear()
            self._marked = {}
            self._own_plans = None
            self.locks.clear()

    def rest(self) -> None:
        """Between transactions: the catalog that was seen last may go. A commit that is still to be published
        has its own.
        """
        if self._session.block.txn is None and not (self._ddl_staged or self.own_changes):
            self._seen = self._base = self._space.catalog

    def go_back(self, own_changes: _Changes) -> None:
        """ROLLBACK TO: the transaction has changed ``own_changes``, and nothing else any more."""
        if self.own_changes is not own_changes:
            self.own_changes = own_changes
            self._overlay()

    def renew(self) -> None:
        """Before a statement is planned: what a writing transaction reads next is the latest. Raises SchemaChanged."""
        block = self._session.block
        if block.txn is not None and block.txn.writing and block.state in (BLOCK, IMPLICIT):
            self.adopt_latest()

    def redefined(self) -> int | None:
        """Return a relation that the transaction has read, by its oid, and that is no longer defined as it
        was; None if all are.
        """
        latest = self._space.catalog
        for oid, version in self._used.items():
            relation = latest.relation_by_oid(oid)
            if relation is None or relation.version != version:
                return oid
        return None

    def adopt_latest(self) -> None:
        """Move to the latest catalog, where the transaction's reads now are (after promotion).

        Own changes stay on top: they are of objects that the transaction has locked. Raises SchemaChanged when a
        relation that was read before the transaction wrote is no longer as it was.
        """
        latest = self._space.catalog
        if self._base is latest:
            return
        redefined = self.redefined()
        if redefined is not None:
            raise SchemaChanged(ShardId(redefined), Cause.CATALOG)
        txn = self._session.block.txn
        if txn is not None and txn.writing:
            self._used.clear()  # locked from here on
        self._base = latest
        self._historic = False
        self._overlay()

    def _overlay(self) -> None:
        """See own changes on top of the catalog last adopted."""
        base = self._base
        own = self.own_changes
        self._seen = base.overlaid(own, self._db.next_catalog_version()) if own else base
        self._mark_labels()

    def _mark_labels(self) -> None:
        """Have labels that the transaction has added to enums not be used before they are committed: what is
        stored with them would outlast it.

        Raises nothing; what is seen is then this transaction's alone, and not what is published (``_publish``).
        """
        self._unsafe = False
        types = [item for item in self.own_changes.values() if isinstance(item, TypeDef)]
        if types and self.added_labels:
            seen = self._seen.codec_types
            enums = with_unsafe_labels(seen.enums, types, self.added_labels, self._marked)
            if enums is not seen.enums:
                self._marked = {oid: known for oid, known in enums.items() if known.unsafe}
                self._seen.codec_types = UserTypes(enums, seen.row, seen.space)
                self._unsafe = True

    # -- plans: what they rely on is locked before they run ----------------------------------------

    def use(self, plan: Plan) -> None:
        """Remember what the transaction relied on, for ``adopt_latest``; once it writes, it has that locked."""
        txn = self._session.block.txn
        if txn is not None and not txn.writing:
            for oid, version in plan.bound.versions:
                self._used[oid] = version

    def is_current(self, plan: Plan) -> bool:
        """Tell whether a query may run at once: if the transaction writes, its tables have to be locked already.

        A transaction that only reads has the catalog of its timestamp; one that writes reads what is latest.
        """
        txn = self._session.block.txn
        if txn is None or not txn.writing:
            return True
        return self._base is self._space.catalog and all(map(txn.holds_table, plan.tables))

    def insist(self, plan: Plan) -> None:
        """Raise Replan where a plan no longer fits what is seen: nothing more can be made of it, not even
        what its locks are.
        """
        if not plan.fresh(self.catalog):
            raise Replan

    async def start_read(self, plan: Plan) -> None:
        """Lock a query's tables by intention, so that they stay as it was planned for. Raises Replan when they are not.

        A transaction that only reads locks nothing: its catalog is that of its timestamp. But it may have
        begun later than its statement was planned, which can have waited for its turn meanwhile.
        """
        if self.is_current(plan):
            if plan.as_of is None and not plan.crosses and not plan.fresh(self._seen):
                raise Replan
            return
        await self._hold_tables(plan)
        self.adopt_latest()
        if not plan.fresh(self._seen):
            raise Replan

    async def start_write(
        self,
        plan: Plan,
        writes: Sequence[ShardId],
        scans: Sequence[ShardId] = (),
    ) -> None:
        """Promote and lock for a writing statement. Raises Replan when its plan went stale.

        ``scans``: tables to be locked because they are read otherwise than by key.
        """
        block = self._session.block
        txn = block.ensure_txn()
        if txn.read_only and not self.may_write(txn, writes):
            raise SqlError("25006", f"cannot execute {_command(plan)} in a read-only transaction")
        block.wrote = True
        alone = self._seen.written_alone(writes)
        waiting = txn.begin_write(writes, [*scans, *alone] if alone else scans)
        if waiting is not None:
            await waiting
        if not self.is_current(plan):
            await self._hold_tables(plan)
            self.adopt_latest()
        if not plan.fresh(self._seen):
            raise Replan
        self._session.db.turns.yield_to_readers()

    def may_write(self, txn: Transaction, shards: Sequence[ShardId]) -> bool:
        """Tell whether a read-only transaction may write to these tables all the same: they are the session's
        temporary ones.
        """
        if not shards or not txn.keeps_reads:
            return False
        catalog = self.catalog
        found = [catalog.relation_by_oid(int(shard)) for shard in shards]
        if any(relation is None or relation.persistence != "t" for relation in found):
            return False
        oids = [relation.oid for relation in found if relation is not None]
        for oid in oids:  # grows by the partitions, whose partitions are asked for in turn
            oids.extend(part.oid for part in catalog.partitions_of(oid))
        txn.excepted = txn.excepted.union(map(ShardId, oids))
        return True

    async def start_ddl(self, plan: Plan) -> None:
        """Lock what the statement is about in the catalog, and take the latest one. Raises Replan, and txn's errors."""
        block = self._session.block
        txn = block.ensure_txn()
        if txn.read_only:
            raise SqlError("25006", f"cannot execute {_command(plan)} in a read-only transaction")
        block.wrote = True
        await self.locks.take_for(plan)
        statement = plan.bound.statement
        if row_of(statement).runs is not Runs.NOTHING and getattr(statement, "query", None) is not None:
            if plan.as_of is None:
                await self._hold_tables(plan)
            self.adopt_latest()
        # What CREATE TABLE AS ... AS OF SYSTEM TIME reads was bound against the catalog of then, which stays as it was.
        if plan.as_of is None and not plan.fresh(self._seen):
            raise Replan

    async def _hold_tables(self, plan: Plan) -> None:
        txn = self._session.block.ensure_txn()
        for shard in plan.tables:
            if not txn.holds_table(shard):
                await settle(txn.lock_table(shard, "IS"))

    # -- changes -----------------------------------------------------------------------------------

    async def change(self, puts: Sequence[Stored], deletes: Sequence[StoredKey] = ()) -> None:
        """Stage catalog changes in the transaction; it sees them at once, others when it commits.

        A statement may make thousands of them (CASCADE, partitions) without anything to wait for: others get
        their turn in between. Raises SqlError XX001 where a change would put something in the place of what
        cannot be read.
        """
        if self._seen.fenced:
            for item in puts:
                refuse_replacement(self._seen.fences, self._seen.items, item)
        await self._session.cancelled.turn()
        txn = self._session.block.ensure_txn()
        puts = [*puts, *lists_for_new(self._seen, spaced(puts))]
        deletes = list(dict.fromkeys((*deletes, *openly(lost_comments, self._seen, puts, deletes))))
        await self.locks.cover(puts, deletes)
        await write_changes(txn, self._seen, puts, deletes)
        if made := [item for item in sequences_of(puts) if not self._counts(item)]:
            txn.on_undo(partial(self._space.history.sequences.extend, made))
        own = dict(self.own_changes)
        own.update((key_of(item), item) for item in spaced(puts))
        own.update((key, None) for key in spaced(deletes) if key in self._seen.items)
        self.own_changes = own
        version = self._db.next_catalog_version()
        self._seen = openly(self._seen.with_changes, puts, deletes, version, paced)
        between()
        openly(self._mark_labels)
        if not self._ddl_staged:
            self._ddl_staged = True
            txn.on_applied(self._publish)

    def _counts(self, sequence: RelationDef) -> bool:
        """Tell whether what is seen has the counter of a sequence already."""
        seen = self._seen.relation_by_oid(sequence.oid)
        return seen is not None and bool(seen.sequence) and generation_of(seen) == generation_of(sequence)

    def _publish(self, ts: Timestamp) -> None:
        """The commit is readable: make its changes part of the current catalog, which others may have changed."""
        latest = self._space.catalog
        own = self.own_changes
        if latest is self._base and not self._unsafe:
            self._db.publish(self._space, self._seen, own, ts)
        elif own:
            self._db.publish(self._space, latest.overlaid(own, self._db.next_catalog_version()), own, ts)
