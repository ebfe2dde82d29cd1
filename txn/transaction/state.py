"""What a transaction is to the modules that do its work: its parts, how an operation is driven, and what
every operation needs.

``txn.transaction.transaction`` has the operations. They are functions over what is here, in modules that know
of one another only what stands below them; so nothing here knows any of them, but how a transaction ends,
which is asked of the class above.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from txn.base.errors import CrossesTimelines, ReadOnlyTransaction, SchemaChanged, TxnError, anew
from txn.base.types import IndexId, RowId, ShardId, ShardSpec, Timestamp, TxnId
from txn.locks.entry import NOBODY, LockOwner
from txn.locks.granule import Granule
from txn.locks.mode import S
from txn.log.holds import Hold
from txn.log.timeline import Timeline
from txn.mvcc.generation import Generation
from txn.mvcc.intents import OwnWrites
from txn.mvcc.version import INFINITY
from txn.transaction.lifetime import ACTIVE, Lifetime
from txn.transaction.read_set import ReadSet
from txn.transaction.scans import Scans
from txn.transaction.view import SchemaState, Steps, View

if TYPE_CHECKING:
    from txn.transaction.coordinator import Coordinator
    from txn.transaction.ports import Intents

T = TypeVar("T")

_NO_OTHERS: Final[dict[Timeline, Hold]] = {}


class TransactionState(ABC):
    """The parts of one transaction.

    Attributes, shared with the modules that do the work:
        core, hold, owner: the store, the hold on the read timestamp, who owns the locks. timeline: the one
        that it is in, for now if ``others``: holds in those that it may enter instead. writing: whether it
        was promoted; then it reads the latest state. life: state, deadline, operations that wait. views: the
        shards it looks at, as it sees them (``txn.transaction.view``). glimpsed: schemas it has seen of
        shards that no lock of its protects, while writing. own, schema_states: what it has written, and what
        it has made of shards' schemas. journal: how to undo that, latest last: an intent to take back, or a
        function to call. calls: the places of the functions in it; None if there are none. deferred: unique
        indexes that are checked later. reads_so_far: what it has read before its first write; None if
        nothing. scans: what it has scanned without locks since; None if nothing. pins: generations that
        upkeep leaves alone until it has ended, each once; None if there are none. commit_ts: where it asked
        to commit. everywhere: its commit is one of all timelines. urgent: it begins to write even when others
        have to wait for memory. callbacks: called with the commit timestamp when it is readable. at_end:
        called when it has ended, either way.
    """

    __slots__ = (
        "at_end", "callbacks", "calls", "commit_ts", "core", "deferred", "everywhere", "excepted", "glimpsed", "hold", "id", "journal", "last_statement", "life",
        "others", "own", "owner", "pins", "read_only", "read_ts", "reads_so_far", "scans", "schema_states", "session", "statement",
        "timeline", "urgent", "views", "writing",
    )  # fmt: skip

    def __init__(
        self,
        core: Coordinator,
        *,
        read_only: bool,
        session: int,
        at: Timestamp | None,
        deadline_ms: int | None,
        timeline: Timeline,
        open_to_all: bool,
        points: Mapping[str, Timestamp] | None = None,
    ) -> None:
        """``at``: read there instead of now (read-only). ``deadline_ms``: from now on.

        ``timeline``: where; ``open_to_all``: until ``enter`` says where. ``points``: what then to read at, by timeline.
        """
        self.core = core
        self.timeline = timeline
        self.hold = timeline.holds.acquire(at)
        self.others: dict[Timeline, Hold] | None = None
        if open_to_all:
            self.others = (
                core.timelines.hold_others(timeline, at, points) if len(core.timelines) > 1 else _NO_OTHERS
            )
        self.id = core.new_txn_id()
        self.read_ts: Timestamp = self.hold.ts
        self.read_only = read_only
        self.excepted: frozenset[ShardId] = frozenset()
        self.session = session
        self.statement = self.last_statement = 0
        if read_only:
            self.owner = NOBODY
        else:
            self.owner = LockOwner(self.id, session, core.options.lock_timeout_ms)
            self.owner.escalate_at = core.options.table_locks
        self.writing = False
        self.urgent = False
        self.scans: Scans | None = None  # while there are none
        self.life = Lifetime()
        self.commit_ts: Timestamp | None = None
        self.everywhere = False
        self.views: dict[ShardId, View] = {}
        self.own: dict[ShardId, OwnWrites] = {}
        self.schema_states: dict[ShardId, SchemaState] = {}
        self.deferred: frozenset[IndexId] = frozenset()
        self.journal: list[tuple[Intents, RowId] | Callable[[], object]] = []
        self.calls: list[int] | None = None
        self.at_end: list[Callable[[], None]] = []
        self.pins: set[Generation] | None = None
        self.callbacks: list[Callable[[Timestamp], None]] = []
        self.reads_so_far: ReadSet | None = None
        self.glimpsed: dict[ShardId, ShardSpec] | None = None  # schemas seen without a lock, while writing
        if deadline_ms is not None:
            self.life.set_deadline(deadline_ms, self._expire)
        core.active[self.id] = self

    # -- running operations ------------------------------------------------------------------------

    def run(self, steps: Steps[T]) -> T | Awaitable[T]:
        """Drive an operation as far as it goes without waiting."""
        if self.life.state is not ACTIVE:
            raise self.life.ended()
        try:
            waiting = next(steps)
        except StopIteration as done:
            if self.scans is not None:
                self.scans.check()
            value: T = done.value
            return value
        self.life.busy += 1
        return self._drive(steps, waiting)

    async def _drive(self, steps: Steps[T], waiting: Awaitable[Any]) -> T:
        """Wait, and go on, until the operation is done; it stops when the transaction has ended meanwhile."""
        try:
            while True:
                try:
                    answer = await waiting
                except BaseException as error:
                    waiting = steps.throw(error)
                    continue
                if self.life.state is not ACTIVE:
                    waiting = steps.throw(self.life.ended())
                    continue
                waiting = steps.send(answer)
        except StopIteration as done:
            if self.scans is not None:
                self.scans.check()
            value: T = done.value
            return value
        finally:
            self.life.busy -= 1

    def _expire(self, reason: TxnError) -> None:
        self.core.locks.fail_wait(self.owner, reason)
        self.rollback()

    def lock(self, granule: Granule, mode: int) -> Steps[bool]:
        """Lock a granule; the result tells whether it had to wait."""
        wait = self.core.locks.acquire(self.owner, granule, mode)
        if wait is None:
            return False
        yield wait
        return True

    def beside(self, timeline: Timeline, at: Timestamp) -> Self:
        """Return one that reads beside this one, in another timeline at a timestamp that this one holds there."""
        return type(self)(
            self.core,
            read_only=True,
            session=self.session,
            at=at,
            deadline_ms=None,
            timeline=timeline,
            open_to_all=False,
        )

    # -- shards ------------------------------------------------------------------------------------

    def view(self, shard: ShardId, *, even_damaged: bool = False) -> View:
        """Return the shard as this transaction sees it now; KeyError if it does not exist.

        Raises DamagedFile when it cannot be served, unless ``even_damaged``: to look at its schema, or to give it up.
        """
        view = self.views.get(shard)
        return view if view is not None else self._look_at(shard, even_damaged=even_damaged)

    def _look_at(self, shard: ShardId, *, even_damaged: bool = False) -> View:
        """Return a shard that the transaction does not look at yet; KeyError if it does not exist.

        Raises DamagedFile when it cannot be served, unless ``even_damaged``; SchemaChanged when it has
        changed since ``glimpse``, or a writing transaction finds it dropped by another; CrossesTimelines
        where ``read_ts`` means nothing.
        """
        changed = self.schema_states.get(shard)
        if changed is not None:
            if changed.dropped:
                raise KeyError(shard)
            view = View(shard, changed.generation, changed.spec, self.own.get(shard))
        else:
            core = self.core
            damaged = core.log.damaged
            if damaged and shard in damaged and shard not in core.shards:
                raise anew(damaged[shard])
            history = core.shards[shard]
            if (
                history.domain is not self.timeline
                and not self.writing
                and history.domain is not core.timelines.common
            ):
                raise CrossesTimelines({shard: history.domain.name})  # its timestamps are others
            entry = history.latest if self.writing else history.at(self.read_ts)
            if entry is None or entry.generation is None or entry.spec is None:
                if self.writing:
                    raise SchemaChanged(shard)  # it knew of the shard; another has dropped it meanwhile
                raise KeyError(shard)
            if entry.generation.damage is not None:
                if not even_damaged and shard not in core.read_damaged:
                    raise anew(entry.generation.damage)
                return View(shard, entry.generation, entry.spec, self.own.get(shard))
            view = View(shard, entry.generation, entry.spec, self.own.get(shard))
            if self.writing and shard not in self.owner.held:
                return view  # it may change until it is locked
            if self.glimpsed is not None and self.glimpsed.get(shard, entry.spec) is not entry.spec:
                raise SchemaChanged(shard)
        self.views[shard] = view
        return view

    def tell_id(self) -> TxnId:
        """See ``txn.api``."""
        told = self.core.log.committer.told
        if self.owner is not NOBODY and self.id not in told:
            told.add(self.id)
            self.at_end.append(partial(told.discard, self.id))
        return self.id

    def writer_of(self, shard: ShardId, begin: Timestamp) -> int:
        """See ``txn.api``."""
        if not begin:
            return self.tell_id()
        return self.view(shard).generation.writer_of(begin)

    def forget_view(self, shard: ShardId) -> None:
        """The shard has changed within this transaction."""
        self.views.pop(shard, None)

    def own_writes(self, view: View) -> OwnWrites:
        """Return the place of the transaction's intents in a shard, made if need be."""
        own = view.own
        if own is None:
            own = self.own[view.shard] = view.own = OwnWrites(view.generation)
        return own

    def replace_own(self, shard: ShardId, own: OwnWrites | None) -> None:
        """Set the shard's intents aside or bring them back (TRUNCATE and its undoing)."""
        if own is None:
            self.own.pop(shard, None)
        else:
            self.own[shard] = own

    def own_of(self, shard: ShardId) -> OwnWrites | None:
        """Return the transaction's intents in a shard, if any."""
        return self.own.get(shard)

    def write_view(self, shard: ShardId) -> View:
        """Return the shard for writing; the caller has called ``begin_write``."""
        if self.read_only and shard not in self.excepted:
            raise ReadOnlyTransaction("cannot write in a read-only transaction")
        if not self.writing:
            raise AssertionError("begin_write comes before the first write")
        return self.view(shard)

    @property
    def ts(self) -> int:
        """The timestamp at which reads see committed versions: everything, once under locks."""
        return INFINITY if self.writing else self.read_ts

    def new_generation(self, shard: ShardId) -> Generation | None:
        """Return the generation this transaction has made for a shard, if it made one."""
        state = self.schema_states.get(shard)
        return state.generation if state is not None and (state.created or state.truncated) else None

    # -- what was read, what is undone --------------------------------------------------------------

    def read_set(self) -> ReadSet:
        """Return what the transaction has read so far, for promotion."""
        if self.reads_so_far is None:
            self.reads_so_far = ReadSet()
        return self.reads_so_far

    def check_scans(self) -> None:
        """Raise WriteConflict if somebody has changed what this transaction has scanned.

        Every operation ends with it, so that what it returns and what was scanned before are of one moment.
        """
        if self.scans is not None:
            self.scans.check()

    @property
    def keeps_reads(self) -> bool:
        """See ``txn.api``."""
        return self.owner is not NOBODY

    def unlocked_scans(self, shard: ShardId) -> Scans | None:
        """Return where to note a scan of a table, None if a lock keeps the table as it is."""
        if self.owner.held[shard] >= S or shard in self.schema_states:
            return None
        if self.scans is None:
            self.scans = Scans(self.core, self.id)
        return self.scans

    def on_end(self, callback: Callable[[], None]) -> None:
        """See ``txn.api``."""
        self.at_end.append(callback)

    def pin(self, generation: Generation) -> None:
        """Have upkeep leave a generation alone until the transaction has ended, however often it is asked for that."""
        if self.pins is None:
            self.pins = set()
            self.at_end.append(self._unpin)
        if generation not in self.pins:
            self.pins.add(generation)
            generation.pinned += 1

    def _unpin(self) -> None:
        for generation in self.pins or ():
            generation.pinned -= 1
        self.pins = None

    def savepoint(self) -> int:
        """See ``txn.api``."""
        self.life.check_active()
        return len(self.journal)

    @abstractmethod
    def rollback(self) -> None:
        """See ``txn.api``."""

    @abstractmethod
    def settled(self, ts: Timestamp) -> None:
        """The commit is readable (called by the coordinator, in that tick)."""
