"""One transaction: lock-free reads at its timestamp, then, from its first write on, strict two-phase locking.

    reading   every read at read_ts; what was read is remembered (keys with the versions found, ranges, scans)
       │      begin_write: lock all of it in one order, check in one tick that it is as it was (promotion)
    writing   reads of the latest committed state and own intents, each under locks held to the end
       │      commit: one write set into the log; a transaction that wrote nothing just ends
    ended

Why that is strictly serializable: a writing transaction holds, at its commit, locks on everything it has read
and written, and what it read before it wrote was proved current while those locks were held; so all of it
happens at once at its commit timestamp, which lies between the grant of its last lock and its acknowledgement.
One that only reads happens at ``read_ts``, which was the latest commit when it began.

Locks (granules of ``txn.locks.table``):

    read by key            table IS, key S (also a key nobody has), each row found S; for update: X, X
    range, scan, snapshot  table S; for update: SIX
    insert                 table IX, each unique key X, each other key IX
    update, delete         table IX, row X (table X past ESCALATE_ROWS), each key entered as for insert
    duplicate key found    row S first: it may be about to be deleted
    DDL, bulk load         table X

Operations are generators that yield what they have to wait for; ``_run`` drives one without suspending while
nothing has to be waited for, so the usual case is a plain function call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from txn import bulk, schema, snapshot
from txn.coordinator import Coordinator
from txn.errors import (
    DeadlineExceeded,
    DuplicateKey,
    ReadOnlyTransaction,
    SchemaChanged,
    TxnError,
    WaitCancelled,
    WriteConflict,
)
from txn.locks.mode import IS, IX, MODES, SIX, SUPREMUM, S, X
from txn.locks.table import Granule, LockOwner
from txn.mvcc.generation import Cold, Generation, Padding
from txn.mvcc.index import bounds_of
from txn.mvcc.intents import OwnWrites
from txn.mvcc.keys import IndexKey, KeyMaker
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY, Version
from txn.records import RowOp, SchemaChange, ShardWrites, WriteSet
from txn.schema import SchemaState
from txn.types import (
    IndexId,
    Key,
    KeyRange,
    Row,
    RowId,
    ShardId,
    ShardSpec,
    Snapshot,
    StoredRow,
    Timestamp,
)

T = TypeVar("T")
Steps: TypeAlias = Generator[Awaitable[Any], Any, T]

ESCALATE_ROWS: Final = 2000
"""An update or delete of more rows than this takes table X instead of row locks."""

MAX_READ_KEYS: Final = 4096
"""A reading transaction that remembers more keys than this forgets them for table scans."""

_ACTIVE: Final = "active"
_COMMITTING: Final = "committing"
_ENDED: Final = "ended"


class IndexView(NamedTuple):
    """What writing needs of one index, unpacked."""

    id: IndexId
    make: KeyMaker
    of_row: Callable[[Row], IndexKey]
    unique: bool
    nulls_distinct: bool


class View:
    """A shard as one transaction sees it."""

    __slots__ = ("generation", "indexes", "own", "padding", "shard", "spec")

    def __init__(
        self, shard: ShardId, generation: Generation, spec: ShardSpec, own: OwnWrites | None
    ) -> None:
        self.shard = shard
        self.generation = generation
        self.spec = spec
        self.own = own
        self.padding = generation.padding if generation.spec is spec else Padding(spec.columns)
        self.indexes: list[IndexView] | None = None

    def index_views(self) -> list[IndexView]:
        """Return the indexes of the schema in use."""
        if self.indexes is None:
            self.indexes = [
                IndexView(
                    i.index, m := self.generation.indexes[i.index].make, m.of_row, i.unique, i.nulls_distinct
                )
                for i in self.spec.indexes
            ]
        return self.indexes

    def parts(self, statement: int) -> tuple[PartState, ...]:
        """Return the committed parts and the own ones a read in ``statement`` sees."""
        parts = self.generation.parts
        if self.own is not None and self.own.parts:
            parts += tuple(self.own.visible_parts(statement))
        return parts


class StoreTransaction:
    """Implements ``txn.api.Transaction``."""

    def __init__(
        self,
        core: Coordinator,
        *,
        read_only: bool,
        session: int,
        at: Timestamp | None,
        deadline_ms: int | None,
    ) -> None:
        """``at``: read there instead of now (read-only). ``deadline_ms``: from now on."""
        self.core = core
        self.hold = core.holds.acquire(at)
        self.id = core.new_txn_id()
        self.read_ts: Timestamp = self.hold.ts
        self.read_only = read_only
        self.session = session
        self.statement = 0
        self.owner = LockOwner(self.id, session, core.options.lock_timeout_ms)
        self.writing = False
        self._state = _ACTIVE
        self._busy = 0
        self._ended_by: TxnError | None = None
        self._views: dict[ShardId, View] = {}
        self._own: dict[ShardId, OwnWrites] = {}
        self.schema_states: dict[ShardId, SchemaState] = {}
        self.journal: list[tuple[OwnWrites, RowId] | Callable[[], None]] = []
        self.at_end: list[Callable[[], None]] = []
        self._callbacks: list[Callable[[Timestamp], None]] = []
        self._keys: dict[tuple[ShardId, IndexId, IndexKey], tuple[Key, list[tuple[RowId, int]]]] = {}
        self._ranges: list[tuple[ShardId, IndexId, KeyRange, list[tuple[RowId, int]] | None]] = []
        self._scans: dict[ShardId, None] = {}
        self._done: asyncio.Future[Timestamp] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        if deadline_ms is not None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(deadline_ms / 1000, self._expire)
        core.active[self.id] = self

    # -- running operations ------------------------------------------------------------------------

    def _run(self, steps: Steps[T]) -> T | Awaitable[T]:
        """Drive an operation as far as it goes without waiting."""
        if self._state is not _ACTIVE:
            raise self._ended()
        try:
            waiting = next(steps)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        self._busy += 1
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
                if self._state is not _ACTIVE:
                    waiting = steps.throw(self._ended())
                    continue
                waiting = steps.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        finally:
            self._busy -= 1

    def _ended(self) -> TxnError:
        if self._ended_by is not None:
            return self._ended_by
        return WaitCancelled("the transaction has ended")

    def _expire(self) -> None:
        if self._state is _ACTIVE:
            self._ended_by = DeadlineExceeded("the transaction's deadline has passed")
            self.core.locks.fail_wait(self.owner, self._ended_by)
            self.rollback()

    def next_statement(self) -> int:
        """Start a statement; see ``txn.api``."""
        self.statement += 1
        return self.statement

    def lock(self, granule: Granule, mode: int) -> Steps[bool]:
        """Lock a granule; the result tells whether it had to wait."""
        wait = self.core.locks.acquire(self.owner, granule, mode)
        if wait is None:
            return False
        yield wait
        return True

    # -- views -------------------------------------------------------------------------------------

    def view(self, shard: ShardId) -> View:
        """Return the shard as this transaction sees it now; KeyError if it does not exist."""
        view = self._views.get(shard)
        if view is not None:
            return view
        changed = self.schema_states.get(shard)
        if changed is not None:
            if changed.dropped:
                raise KeyError(shard)
            view = View(shard, changed.generation, changed.spec, self._own.get(shard))
        else:
            history = self.core.shards[shard]
            entry = history.latest if self.writing else history.at(self.read_ts)
            if entry is None or entry.generation is None or entry.spec is None:
                raise KeyError(shard)
            view = View(shard, entry.generation, entry.spec, self._own.get(shard))
            if self.writing and shard not in self.owner.held:
                return view  # it may change until it is locked
        self._views[shard] = view
        return view

    def forget_view(self, shard: ShardId) -> None:
        """The shard has changed within this transaction."""
        self._views.pop(shard, None)

    def own_writes(self, view: View) -> OwnWrites:
        """Return the place of the transaction's intents in a shard, made if need be."""
        own = view.own
        if own is None:
            own = self._own[view.shard] = view.own = OwnWrites(view.generation)
        return own

    def replace_own(self, shard: ShardId, own: OwnWrites | None) -> None:
        """Set the shard's intents aside or bring them back (TRUNCATE and its undoing)."""
        if own is None:
            self._own.pop(shard, None)
        else:
            self._own[shard] = own

    def own_of(self, shard: ShardId) -> OwnWrites | None:
        """Return the transaction's intents in a shard, if any."""
        return self._own.get(shard)

    @property
    def ts(self) -> int:
        """The timestamp at which reads see committed versions: everything, once under locks."""
        return INFINITY if self.writing else self.read_ts

    def spec(self, shard: ShardId) -> ShardSpec:
        """See ``txn.api``."""
        return self.view(shard).spec

    def stats(self, shard: ShardId) -> snapshot.ShardStats:
        """See ``txn.api``."""
        view = self.view(shard)
        rows, hot, size = view.generation.counts()
        if view.own is not None:
            rows += len(view.own.rows) + sum(p.ref.rows for _s, p in view.own.parts)
        return snapshot.ShardStats(rows=rows, hot_rows=hot, parts=len(view.generation.parts), bytes=size)

    # -- reading -----------------------------------------------------------------------------------

    def lookup(
        self, shard: ShardId, index: IndexId, keys: Sequence[Key], *, for_update: bool = False
    ) -> list[StoredRow] | Awaitable[list[StoredRow]]:
        """See ``txn.api``. Rows come in the order of ``keys``, under one key by row id."""
        return self._run(self._lookup(shard, index, keys, for_update))

    def _lookup(
        self, shard: ShardId, index: IndexId, keys: Sequence[Key], for_update: bool
    ) -> Steps[list[StoredRow]]:
        if not self.writing:
            view = self.view(shard)
            rows = yield from self._read_keys(view, index, keys)
            if not self.read_only:
                self._remember_keys(view, index, keys, rows)
            return rows
        owner = self.owner
        acquire = self.core.locks.acquire
        if shard not in owner.held:
            wait = acquire(owner, shard, IX if for_update else IS)
            if wait is not None:
                yield wait
        held = owner.held[shard]
        view = self.view(shard)
        if held == X or (not for_update and held >= S):
            return (yield from self._read_keys(view, index, keys))
        mode = X if for_update else S
        of_key = view.generation.indexes[index].make.of_key
        for key in keys:
            wait = acquire(owner, (shard, index, of_key(key)), mode)
            if wait is not None:
                yield wait
        while True:
            waited = False
            for key in keys:
                for row_id, _begin in view.generation.identities(index, key, INFINITY):
                    wait = acquire(owner, (shard, row_id), mode)
                    if wait is not None:
                        waited = True
                        yield wait
            if not waited:
                break
        return (yield from self._read_keys(view, index, keys))

    def _read_keys(self, view: View, index: IndexId, keys: Sequence[Key]) -> Steps[list[StoredRow]]:
        """Read by key at the transaction's timestamp, own intents included; no locks, no read set."""
        generation = view.generation
        own = view.own
        ts = self.ts
        statement = self.statement
        padding = view.padding
        width = padding.width
        parts = generation.parts if own is None else view.parts(statement)
        out: list[StoredRow | None] = []
        missing: list[tuple[int, RowId, Cold]] = []
        if len(keys) > 1:
            of_key = generation.indexes[index].make.of_key
            keys = list({of_key(key): key for key in keys}.values())
        for key in keys:
            found: dict[RowId, Version] = {}
            cold: dict[RowId, Cold] = {}
            generation.find(index, key, ts, found, cold, parts)
            mine: list[tuple[RowId, Row]] = []
            if own is not None and own.rows:
                for row_id in [r for r in found if own.hides(r, statement)]:
                    del found[row_id]
                for row_id in [r for r in cold if own.hides(r, statement)]:
                    del cold[row_id]
                ikey = generation.indexes[index].make.of_key(key)
                mine = list(own.rows_with(index, ikey, statement))
            if not cold and not mine:
                ids: Iterable[RowId] = found if len(found) < 2 else sorted(found)
                for row_id in ids:
                    version = found[row_id]
                    values = version.values
                    assert values is not None
                    if len(values) < width:
                        values = padding.pad(values)
                    out.append(StoredRow(row_id, values, Timestamp(version.begin)))
                continue
            values_of = dict(mine)
            for row_id in sorted({*found, *cold, *values_of}):
                if row_id in values_of:
                    out.append(StoredRow(row_id, values_of[row_id], Timestamp(0)))
                elif row_id in found:
                    out.append(self.stored(view, row_id, found[row_id]))
                else:
                    missing.append((len(out), row_id, cold[row_id]))
                    out.append(None)
        if missing:
            yield from self._fetch(view, missing, out)
        return out  # type: ignore[return-value]

    def stored(self, view: View, row_id: RowId, version: Version) -> StoredRow:
        """Return a hot version as the caller gets it."""
        values = version.values
        assert values is not None
        if len(values) < view.padding.width:
            values = view.padding.pad(values)
        return StoredRow(row_id, values, Timestamp(version.begin))

    def _fetch(
        self, view: View, missing: list[tuple[int, RowId, Cold]], out: list[StoredRow | None]
    ) -> Steps[None]:
        """Read rows of parts into their places in ``out``."""
        by_part: dict[str, tuple[PartState, list[tuple[int, RowId, int]]]] = {}
        for place, row_id, (part, position) in missing:
            by_part.setdefault(part.ref.name, (part, []))[1].append((place, row_id, position))
        for part, wanted in by_part.values():
            rows = part.file.rows([position for _p, _r, position in wanted], view.spec)
            if not isinstance(rows, list):
                rows = yield rows
            for (place, row_id, position), values in zip(wanted, rows, strict=True):
                out[place] = StoredRow(row_id, values, Timestamp(part.begin(position)))

    def _remember_keys(self, view: View, index: IndexId, keys: Sequence[Key], rows: list[StoredRow]) -> None:
        """Note what was read for promotion: each key with the versions found under it."""
        shard = view.shard
        if shard in self._scans:
            return
        make = view.generation.indexes[index].make
        if len(keys) == 1:
            found = [(row.row_id, row.begin) for row in rows]
            self._keys.setdefault((shard, index, make.of_key(keys[0])), (keys[0], found))  # type: ignore[arg-type]
        else:
            by_key: dict[IndexKey, list[tuple[RowId, int]]] = {}
            for row in rows:
                by_key.setdefault(make.of_row(row.values), []).append((row.row_id, row.begin))
            for key in keys:
                ikey = make.of_key(key)
                self._keys.setdefault((shard, index, ikey), (key, by_key.get(ikey, [])))
        if len(self._keys) > MAX_READ_KEYS:
            for shard_, _index, _key in self._keys:
                self._scans[shard_] = None
            self._keys.clear()

    def range(
        self,
        shard: ShardId,
        index: IndexId,
        key_range: KeyRange,
        *,
        reverse: bool = False,
        limit: int | None = None,
        for_update: bool = False,
    ) -> list[StoredRow] | Awaitable[list[StoredRow]]:
        """See ``txn.api``. Equal keys come in the order of row ids (reversed with ``reverse``)."""
        return self._run(self._range(shard, index, key_range, reverse, limit, for_update))

    def _range(
        self,
        shard: ShardId,
        index: IndexId,
        wanted: KeyRange,
        reverse: bool,
        limit: int | None,
        for_update: bool,
    ) -> Steps[list[StoredRow]]:
        if self.writing:
            yield from self.lock(shard, SIX if for_update else S)
        view = self.view(shard)
        rows = yield from self._read_range(view, index, wanted, reverse, limit)
        if not self.writing and not self.read_only and shard not in self._scans:
            if limit is None and len(rows) <= MAX_READ_KEYS and len(self._ranges) < MAX_READ_KEYS:
                self._ranges.append((shard, index, wanted, sorted((r.row_id, r.begin) for r in rows)))
            else:
                self._scans[shard] = None
        return rows

    def _read_range(
        self, view: View, index: IndexId, wanted: KeyRange, reverse: bool, limit: int | None
    ) -> Steps[list[StoredRow]]:
        generation = view.generation
        own = view.own
        statement = self.statement
        hidden: frozenset[RowId] = frozenset()
        if own is not None and own.rows:
            hidden = own.hidden_ids(statement)
        found, cold = generation.find_range(
            index, wanted, self.ts, reverse, limit, hidden, view.parts(statement)
        )
        out: list[StoredRow | None] = [self.stored(view, r, v) for r, v in found.items()]
        if hidden and own is not None:
            out.extend(own_range(own, index, wanted, statement))
        if cold:
            missing = []
            for row_id, place in cold.items():
                missing.append((len(out), row_id, place))
                out.append(None)
            yield from self._fetch(view, missing, out)
        rows: list[StoredRow] = out  # type: ignore[assignment]
        of_row = generation.indexes[index].make.of_row
        rows.sort(key=lambda row: (of_row(row.values), row.row_id), reverse=reverse)
        return rows if limit is None else rows[:limit]

    async def scan(self, shard: ShardId, *, for_update: bool = False) -> AsyncIterator[list[StoredRow]]:
        """See ``txn.api``."""
        lock = self._run(self._scan_lock(shard, for_update))
        if isinstance(lock, Awaitable):
            await lock
        async for rows in snapshot.scan(self, self.view(shard)):
            if self._state is not _ACTIVE:
                raise self._ended()
            yield rows

    def snapshot(self, shard: ShardId) -> Snapshot | Awaitable[Snapshot]:
        """See ``txn.api``."""
        return self._run(self._snapshot(shard))

    def _snapshot(self, shard: ShardId) -> Steps[Snapshot]:
        yield from self._scan_lock(shard, False)
        return (yield from snapshot.take(self, self.view(shard)))

    def _scan_lock(self, shard: ShardId, for_update: bool) -> Steps[None]:
        if self.writing:
            yield from self.lock(shard, SIX if for_update else S)
        elif not self.read_only:
            self._scans[shard] = None

    # -- promotion (DESIGN section 7) --------------------------------------------------------------

    def begin_write(self, writes: Iterable[ShardId], scans: Iterable[ShardId] = ()) -> Awaitable[None] | None:
        """See ``txn.api``."""
        if self.read_only:
            raise ReadOnlyTransaction("cannot write in a read-only transaction")
        modes: dict[ShardId, int] = dict.fromkeys(writes, IX)
        for shard in scans:
            modes[shard] = SUPREMUM[modes[shard]][S] if shard in modes else S
        return self._run(self._begin_write(modes))

    def _begin_write(self, modes: dict[ShardId, int]) -> Steps[None]:
        acquire = self.core.locks.acquire
        owner = self.owner
        if self.writing:
            for shard, mode in modes.items():
                wait = acquire(owner, shard, mode)
                if wait is not None:
                    yield wait
            return
        if not self._keys and not self._ranges and not self._scans:
            for shard in sorted(modes):
                wait = acquire(owner, shard, modes[shard])
                if wait is not None:
                    yield wait
            self._check_schemas()
        else:
            yield from self._promote(modes)
        self.writing = True
        self._views.clear()
        self._keys.clear()
        self._ranges.clear()
        self._scans.clear()

    def _check_schemas(self) -> None:
        """Every schema used so far must still be the current one (D77)."""
        for shard, view in self._views.items():
            if shard in self.schema_states:
                continue
            latest = self.core.shards[shard].latest
            if latest.spec is not view.spec or latest.generation is not view.generation:
                raise SchemaChanged(f"the schema of shard {shard} has changed")

    def _promote(self, modes: dict[ShardId, int]) -> Steps[None]:
        """Lock all that was read, in one order for all transactions, and check that it has not changed."""
        tables = dict(modes)
        for shard in [*self._scans, *(r[0] for r in self._ranges)]:
            tables[shard] = SUPREMUM[tables.get(shard, S)][S]
        wants: list[tuple[Any, Granule, int]] = []
        for (shard, index, ikey), (_key, found) in self._keys.items():
            held = tables.setdefault(shard, IS)
            if held >= S:
                continue
            wants.append(((shard, 1, index, ikey), (shard, index, ikey), S))
            wants.extend(((shard, 2, row_id), (shard, row_id), S) for row_id, _begin in found)
        wants.extend(((shard, 0), shard, mode) for shard, mode in tables.items())
        wants.sort(key=lambda want: want[0])
        for _order, granule, mode in wants:
            wait = self.core.locks.acquire(self.owner, granule, mode)
            if wait is not None:
                yield wait
        self._check_schemas()
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        """Raise WriteConflict unless everything read at read_ts is still the latest. One tick, under locks."""
        shards = self.core.shards
        for shard in self._scans:
            generation = shards[shard].latest.generation
            if generation is None or generation.last_change > self.read_ts:
                raise self._conflict(shard, generation)
        for shard, index, wanted, found in self._ranges:
            generation = shards[shard].latest.generation
            if generation is None:
                raise self._conflict(shard, generation)
            if generation.last_change > self.read_ts:
                hot, cold = generation.find_range(index, wanted, INFINITY, False, None, frozenset())
                now = [(r, v.begin) for r, v in hot.items()]
                now.extend((r, part.begin(position)) for r, (part, position) in cold.items())
                if sorted(now) != found:
                    raise self._conflict(shard, generation)
        for (shard, index, _ikey), (key, before) in self._keys.items():
            generation = shards[shard].latest.generation
            if generation is None:
                raise self._conflict(shard, generation)
            if generation.last_change > self.read_ts:
                current = generation.identities(index, key, INFINITY)
                if current != sorted(before):
                    raise self._conflict(shard, generation, index, key, before, current)

    def _conflict(
        self,
        shard: ShardId,
        generation: Generation | None,
        index: IndexId | None = None,
        key: Key | None = None,
        before: list[tuple[RowId, int]] | None = None,
        current: list[tuple[RowId, int]] | None = None,
    ) -> WriteConflict:
        changed_at = 0 if generation is None else generation.last_change
        if generation is not None and before is not None and current is not None:
            begins = [begin for _row, begin in current if begin > self.read_ts]
            for row_id, _begin in before:
                head = generation.rows.get(row_id)
                if head is not None and head.begin > self.read_ts:
                    begins.append(head.begin)
            changed_at = max(begins, default=changed_at)
        return WriteConflict(
            shard,
            key=key,
            index=index,
            other_session=self.core.session_of(changed_at),
            changed_at=Timestamp(changed_at),
        )

    def lock_table(
        self, shard: ShardId, mode: Literal["IS", "IX", "S", "SIX", "X"]
    ) -> Awaitable[None] | None:
        """See ``txn.api``. Promotes a reading transaction, so that the lock protects what is read next."""
        return self._run(self._begin_write({shard: MODES[mode]}))

    # -- writing -----------------------------------------------------------------------------------

    def write_view(self, shard: ShardId) -> View:
        """Return the shard for writing; the caller has called ``begin_write``."""
        if self.read_only:
            raise ReadOnlyTransaction("cannot write in a read-only transaction")
        if not self.writing:
            raise AssertionError("begin_write comes before the first write")
        return self.view(shard)

    def insert(self, shard: ShardId, rows: Sequence[Row]) -> list[RowId] | Awaitable[list[RowId]]:
        """See ``txn.api``."""
        return self._run(self._insert(shard, rows))

    def _insert(self, shard: ShardId, rows: Sequence[Row]) -> Steps[list[RowId]]:
        yield from self._intend(shard)
        view = self.write_view(shard)
        own = self.own_writes(view)
        exclusive = self.owner.held[shard] == X
        entered: list[tuple[IndexView, IndexKey, Row]] = []
        width = view.padding.width
        full: list[Row] = []
        for row in rows:
            if len(row) < width:
                row = view.padding.pad(row)
            full.append(row)
            yield from self._lock_keys(view, row, None, exclusive, entered)
        first = view.generation.take_row_ids(len(full))
        ids = [RowId(first + i) for i in range(len(full))]
        mark = len(self.journal)
        statement = self.statement
        try:
            for row_id, row in zip(ids, full, strict=True):
                own.put(row_id, row, statement, 0)
                self.journal.append((own, row_id))
            for index, ikey, row in entered:
                yield from self._check_unique(view, own, index, ikey, row, exclusive)
        except BaseException:
            self.undo_to(mark)
            raise
        return ids

    def _intend(self, shard: ShardId) -> Steps[None]:
        """Hold at least IX on a shard that is about to be written."""
        held = self.owner.held.get(shard)
        if self.writing and (held is None or SUPREMUM[held][IX] != held):
            yield from self.lock(shard, IX)

    def _lock_keys(
        self,
        view: View,
        row: Row,
        old: Row | None,
        exclusive: bool,
        entered: list[tuple[IndexView, IndexKey, Row]],
    ) -> Steps[None]:
        """Lock the keys that ``row`` enters (those that ``old`` does not have); note the unique ones.

        A key with NULL cannot be looked up, and is not a duplicate unless NULLs are not distinct.
        """
        for index in view.index_views():
            ikey = index.of_row(row)
            if old is not None and ikey == index.of_row(old):
                continue
            if index.make.has_null(ikey) and (not index.unique or index.nulls_distinct):
                continue
            if index.unique:
                entered.append((index, ikey, row))
            if not exclusive:
                wait = self.core.locks.acquire(
                    self.owner, (view.shard, index.id, ikey), X if index.unique else IX
                )
                if wait is not None:
                    yield wait

    def _live_with(
        self, view: View, own: OwnWrites | None, index: IndexView, ikey: IndexKey, row: Row
    ) -> tuple[list[RowId], list[RowId]]:
        """Return (own rows, committed rows not overwritten) that have a key now, all statements counted."""
        mine = [r for r, _v in own.rows_with(index.id, ikey, INFINITY)] if own is not None else []
        generation = view.generation
        parts = view.parts(INFINITY)
        if not parts and ikey not in generation.indexes[index.id].entries:
            return mine, []
        found: dict[RowId, Version] = {}
        cold: dict[RowId, Cold] = {}
        generation.find(index.id, index.make.raw(row), INFINITY, found, cold, parts)
        rows = own.rows if own is not None else {}
        return mine, [r for r in (*found, *cold) if r not in rows]

    def _check_unique(
        self, view: View, own: OwnWrites, index: IndexView, ikey: IndexKey, row: Row, exclusive: bool
    ) -> Steps[None]:
        """Raise DuplicateKey if two rows have a key that this transaction has locked (D51)."""
        while True:
            mine, committed = self._live_with(view, own, index, ikey, row)
            if len(mine) + len(committed) <= 1:
                return
            # Whoever has locked the row may be deleting it, or giving it another key.
            waits = len(mine) <= 1 and committed and not exclusive
            if waits and (yield from self.lock((view.shard, committed[0]), S)):
                continue
            raise DuplicateKey(view.shard, index.id, index.make.raw(row))

    def find_conflicts(
        self, shard: ShardId, row: Row, indexes: Sequence[IndexId]
    ) -> StoredRow | Awaitable[StoredRow | None] | None:
        """See ``txn.api``. The row found is locked X."""
        return self._run(self._find_conflicts(shard, row, indexes))

    def _find_conflicts(
        self, shard: ShardId, row: Row, indexes: Sequence[IndexId]
    ) -> Steps[StoredRow | None]:
        yield from self._intend(shard)
        view = self.write_view(shard)
        exclusive = self.owner.held[shard] == X
        if len(row) < view.padding.width:
            row = view.padding.pad(row)
        for index in view.index_views():
            if index.id not in indexes:
                continue
            ikey = index.of_row(row)
            if index.make.has_null(ikey) and index.nulls_distinct:
                continue
            if not exclusive:
                yield from self.lock((shard, index.id, ikey), X)
            while True:
                mine, committed = self._live_with(view, view.own, index, ikey, row)
                if mine and view.own is not None:
                    return StoredRow(mine[0], view.own.rows[mine[0]].values or (), Timestamp(0))
                if not committed:
                    break
                if not exclusive and (yield from self.lock((shard, committed[0]), X)):
                    continue
                (base,) = yield from self._bases(view, committed[:1])
                if base is None:
                    raise AssertionError("a locked row has vanished")
                return StoredRow(committed[0], base[0], Timestamp(base[1]))
        return None

    def update(
        self, shard: ShardId, changes: Sequence[tuple[RowId, Row]]
    ) -> list[bool] | Awaitable[list[bool]]:
        """See ``txn.api``."""
        return self._run(self._change(shard, changes))

    def delete(self, shard: ShardId, row_ids: Sequence[RowId]) -> list[bool] | Awaitable[list[bool]]:
        """See ``txn.api``."""
        return self._run(self._change(shard, [(row_id, None) for row_id in row_ids]))

    def _change(self, shard: ShardId, changes: Sequence[tuple[RowId, Row | None]]) -> Steps[list[bool]]:
        """Update (or delete, where the new row is None): lock, read what is replaced, stage, check."""
        yield from self._intend(shard)
        view = self.write_view(shard)
        own = self.own_writes(view)
        if len(changes) > ESCALATE_ROWS:
            yield from self.lock(shard, X)
        exclusive = self.owner.held[shard] == X
        if not exclusive:
            acquire = self.core.locks.acquire
            for row_id, _row in changes:
                wait = acquire(self.owner, (shard, row_id), X)
                if wait is not None:
                    yield wait
        bases = yield from self._bases(view, [row_id for row_id, _row in changes])
        width = view.padding.width
        entered: list[tuple[IndexView, IndexKey, Row]] = []
        staged: list[tuple[RowId, Row | None, int]] = []
        for (row_id, row), base in zip(changes, bases, strict=True):
            if base is None:
                continue
            if row is not None:
                if len(row) < width:
                    row = view.padding.pad(row)
                yield from self._lock_keys(view, row, base[0], exclusive, entered)
            staged.append((row_id, row, base[1]))
        mark = len(self.journal)
        statement = self.statement
        try:
            for row_id, row, begin in staged:
                own.put(row_id, row, statement, begin)
                self.journal.append((own, row_id))
            for index, ikey, row in entered:
                yield from self._check_unique(view, own, index, ikey, row, exclusive)
        except BaseException:
            self.undo_to(mark)
            raise
        return [base is not None for base in bases]

    def _bases(self, view: View, row_ids: Sequence[RowId]) -> Steps[list[tuple[Row, int] | None]]:
        """Return each row's newest values and the begin of its committed version; None where it is gone."""
        generation = view.generation
        own_rows = view.own.rows if view.own is not None else {}
        padding = view.padding
        width = padding.width
        out: list[tuple[Row, int] | None] = []
        missing: list[tuple[int, RowId, Cold]] = []
        parts = view.parts(INFINITY)
        for row_id in row_ids:
            intent = own_rows.get(row_id)
            if intent is not None:
                out.append(None if intent.values is None else (intent.values, intent.base))
                continue
            head = generation.rows.get(row_id)
            if head is not None:
                values = head.values
                if values is not None and len(values) < width:
                    values = padding.pad(values)
                out.append(None if values is None else (values, head.begin))
                continue
            place = generation.find_row(row_id, INFINITY, parts)
            if isinstance(place, tuple):
                missing.append((len(out), row_id, place))
            out.append(None)
        if missing:
            stored: list[StoredRow | None] = [None] * len(out)
            yield from self._fetch(view, missing, stored)
            for place_, _row_id, _cold in missing:
                row = stored[place_]
                if row is not None:
                    out[place_] = (row.values, row.begin)
        return out

    async def bulk_insert(self, shard: ShardId, batches: AsyncIterator[Any]) -> int:
        """See ``txn.api``."""
        lock = self._run(self._begin_write({shard: X}))
        if isinstance(lock, Awaitable):
            await lock
        self._busy += 1
        try:
            return await bulk.insert(self, self.write_view(shard), batches)
        finally:
            self._busy -= 1

    # -- schema ------------------------------------------------------------------------------------

    def create_shard(self, spec: ShardSpec) -> None:
        """See ``txn.api``."""
        self._only_when_active()
        if self.read_only:
            raise ReadOnlyTransaction("cannot change a schema in a read-only transaction")
        schema.create(self, spec)

    def alter_shard(self, spec: ShardSpec) -> Awaitable[None] | None:
        """See ``txn.api``."""
        return self._run(self._schema_change(spec.shard, lambda: schema.alter(self, spec)))

    def rewrite(self, shard: ShardId, rows: Sequence[Row]) -> Awaitable[None] | None:
        """See ``txn.api``."""

        def steps() -> Steps[None]:
            schema.truncate(self, shard)
            yield from self._insert(shard, rows)

        return self._run(self._schema_change(shard, steps))

    def truncate(self, shard: ShardId) -> Awaitable[None] | None:
        """See ``txn.api``."""

        def steps() -> Steps[None]:
            schema.truncate(self, shard)
            yield from ()

        return self._run(self._schema_change(shard, steps))

    def drop_shard(self, shard: ShardId) -> Awaitable[None] | None:
        """See ``txn.api``."""

        def steps() -> Steps[None]:
            schema.drop(self, shard)
            yield from ()

        return self._run(self._schema_change(shard, steps))

    def _schema_change(self, shard: ShardId, steps: Callable[[], Steps[None]]) -> Steps[None]:
        if self.read_only:
            raise ReadOnlyTransaction("cannot change a schema in a read-only transaction")
        yield from self._begin_write({shard: X})
        mark = len(self.journal)
        try:
            yield from steps()
        except BaseException:
            self.undo_to(mark)
            raise

    def new_generation(self, shard: ShardId) -> Generation | None:
        """Return the generation this transaction has made for a shard, if it made one."""
        state = self.schema_states.get(shard)
        return state.generation if state is not None and (state.created or state.truncated) else None

    # -- end ---------------------------------------------------------------------------------------

    def _only_when_active(self) -> None:
        if self._state is not _ACTIVE:
            raise self._ended()

    def on_applied(self, callback: Callable[[Timestamp], None]) -> None:
        """See ``txn.api``."""
        self._callbacks.append(callback)

    def savepoint(self) -> int:
        """See ``txn.api``."""
        self._only_when_active()
        return len(self.journal)

    def rollback_to(self, savepoint: int) -> None:
        """See ``txn.api``."""
        self._only_when_active()
        if self._busy:
            raise AssertionError("an operation of this transaction is still running")
        self.undo_to(savepoint)

    def undo_to(self, mark: int) -> None:
        """Undo everything the journal holds beyond ``mark``, latest first."""
        journal = self.journal
        while len(journal) > mark:
            entry = journal.pop()
            if isinstance(entry, tuple):
                own, row_id = entry
                own.pop(row_id)
            else:
                entry()

    def commit(self) -> Timestamp | Awaitable[Timestamp]:
        """See ``txn.api``."""
        self._only_when_active()
        if self._busy:
            raise AssertionError("an operation of this transaction is still running (L31)")
        if self.owner.doomed is not None:
            doomed = self.owner.doomed
            self.rollback()
            raise doomed
        writes = self._write_set()
        if writes is None:
            self._finish()
            for callback in self._callbacks:
                callback(self.read_ts)
            return self.read_ts
        core = self.core
        try:
            future = core.log.committer.submit(writes)
        except BaseException:
            self.rollback()
            raise
        self._state = _COMMITTING
        if self._deadline is not None:
            self._deadline.cancel()
        core.committing[self.id] = self
        self._done = asyncio.get_running_loop().create_future()
        future.add_done_callback(self._answered)
        return self._done

    def _write_set(self) -> WriteSet | None:
        """Return what the log must know, or None if nothing was written."""
        changes: list[SchemaChange] = []
        for shard, state in self.schema_states.items():
            if state.dropped:
                if not state.created:
                    changes.append(SchemaChange(shard=shard, forget=True))
            else:
                changes.append(SchemaChange(shard=shard, spec=state.spec, truncate=state.truncated))
        writes: list[ShardWrites] = []
        for shard, own in self._own.items():
            dropped = self.schema_states.get(shard)
            if dropped is not None and dropped.dropped:
                continue
            ops = []
            for row_id, intent in own.rows.items():
                if intent.values is None and intent.base == 0 and not own.parts:
                    continue  # inserted and deleted here: never was
                ops.append(RowOp(row_id, Timestamp(intent.base), intent.values))
            if ops or own.parts:
                writes.append(
                    ShardWrites(
                        shard=shard,
                        ops=tuple(ops),
                        parts=tuple(part.ref for _statement, part in own.parts),
                        next_row_id=own.generation.next_row_id if own.parts else 0,
                    )
                )
        if not changes and not writes:
            return None
        return WriteSet(txn=self.id, ts=Timestamp(0), shards=tuple(writes), schema=tuple(changes))

    def settled(self, ts: Timestamp) -> None:
        """The commit is readable (called by the coordinator, in that tick)."""
        for callback in self._callbacks:
            callback(ts)
        self._finish()
        if self._done is not None and not self._done.done():
            self._done.set_result(ts)

    def _answered(self, future: asyncio.Future[Timestamp]) -> None:
        """The committer is done with it; when that is a failure, nothing was applied."""
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            return
        self.core.committing.pop(self.id, None)
        self._state = _ACTIVE
        self.rollback()
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)

    def rollback(self) -> None:
        """See ``txn.api``. While a commit is under way it has no effect: the commit decides."""
        if self._state is not _ACTIVE:
            return
        self.undo_to(0)
        self._finish()

    def _finish(self) -> None:
        self._state = _ENDED
        core = self.core
        core.locks.release_all(self.owner)
        core.holds.release(self.hold)
        core.active.pop(self.id, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._views.clear()
        self._own.clear()
        self.journal.clear()
        for callback in self.at_end:
            callback()
        self.at_end.clear()


def own_range(own: OwnWrites, index_id: IndexId, wanted: KeyRange, statement: int) -> list[StoredRow]:
    """Return the transaction's own rows within a range, as a read in ``statement`` sees them."""
    index = own.index(index_id)
    out = []
    for ikey in index.keys_between(bounds_of(index.make, wanted)):
        for row_id, values in own.rows_with(index_id, ikey, statement):
            out.append(StoredRow(row_id, values, Timestamp(0)))
    return out
