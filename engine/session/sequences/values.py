"""How far each sequence has counted: in memory, with what is durable ahead of it (manual, CREATE SEQUENCE and 9.17).

    stored      ────────────────────●  row (oid, generation) of a shard of the server's own: go on behind this value
    given       ──────────●            in memory: what nextval has handed out
                          └ covered: how many more calls may be answered before the row has to move

``nextval`` never waits: it counts in memory, outside of every transaction, and the row moves ahead of it in
transactions of its own, in blocks that grow as long as they are used up while one is written. Where it
overtakes the row, the transaction that drew the value waits for the row before it commits, so whatever
crashes, no value that a committed transaction has drawn is drawn again. As in PostgreSQL a crash skips the
rest of a block, and a value that was drawn by a transaction which did not commit may come again after it.

A RESTART is a new ``generation`` in the catalog, with a row of its own; so it is undone with its transaction, and an
older generation is found as it was left.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from engine.base.eager import settle
from planner.base.errors import SqlError
from planner.catalog import RelationDef, SequenceDef
from txn.api import Transaction
from txn.base.errors import DamagedFile, TxnError
from txn.base.types import (
    IndexId,
    PhysicalType,
    RowId,
    ShardColumn,
    ShardId,
    ShardIndex,
    ShardSpec,
    Timestamp,
)

if TYPE_CHECKING:
    from engine.session.store_server import Server

SHARD: Final = ShardId(6)
INDEX: Final = IndexId(7)
SPEC: Final = ShardSpec(
    shard=SHARD,
    version=1,
    columns=(
        ShardColumn(attnum=1, type=PhysicalType(kind="int64")),
        ShardColumn(attnum=2, type=PhysicalType(kind="int64")),
        ShardColumn(attnum=3, type=PhysicalType(kind="int64")),
        ShardColumn(attnum=4, type=PhysicalType(kind="bool")),
    ),
    indexes=(ShardIndex(index=INDEX, attnums=(1, 2), unique=True, primary=True),),
)
FIRST_BLOCK: Final = 32
LARGEST_BLOCK: Final = 8192
REMOVED_AT_ONCE: Final = 64
"""Rows of dropped sequences that one transaction deletes."""
_log = logging.getLogger(__name__)


def limits(definition: SequenceDef) -> tuple[int, int]:
    """Return where counting ends, and where it begins again with CYCLE."""
    if definition.increment > 0:
        return definition.maximum, definition.minimum
    return definition.minimum, definition.maximum


def step(definition: SequenceDef, value: int, name: str) -> int:
    """Return what comes after ``value``. SqlError 2200H at the end of a sequence that does not cycle."""
    end, begin = limits(definition)
    following = value + definition.increment
    if (following > end) if definition.increment > 0 else (following < end):
        if definition.cycle:
            return begin
        which = "maximum" if definition.increment > 0 else "minimum"
        raise SqlError("2200H", f'nextval: reached {which} value of sequence "{name}" ({end})')
    return following


def ahead(definition: SequenceDef, value: int, called: bool, count: int) -> int:
    """Return the last of the coming ``count`` values: the one behind which all of them lie.

    At the end of a sequence that does not cycle it is its end, for nothing comes behind that.
    """
    end, begin = limits(definition)
    steps = count if called else count - 1
    left = max((end - value) // definition.increment, 0)
    if steps <= left or not definition.cycle:
        return value + min(steps, left) * definition.increment
    lap = (end - begin) // definition.increment + 1
    return begin + (steps - left - 1) % lap * definition.increment


class Counter:
    """One generation of one sequence. ``value`` and ``called`` as PostgreSQL's last_value and is_called."""

    __slots__ = (
        "_block", "_counters", "_definition", "_jumps", "_key", "_row", "_writing", "called", "covered", "given", "value",
    )  # fmt: skip

    def __init__(
        self, counters: Counters, key: tuple[int, int], definition: SequenceDef, stored: _Stored | None
    ) -> None:
        """Go on behind what is stored; what is not stored begins anew."""
        self._counters = counters
        self._key = key
        self._definition = definition
        self._row: RowId | None = None if stored is None else stored[2]
        self.value = definition.first if stored is None else stored[0]
        self.called = False if stored is None else stored[1]
        self.given = 0  # calls answered
        self.covered = 0  # calls that may be answered before the row has to move
        self._jumps = 0  # times it was set, or given other steps
        self._block = FIRST_BLOCK
        self._writing: asyncio.Task[None] | None = None

    @property
    def is_covered(self) -> bool:
        """Whether what is stored lies beyond every value given."""
        return self.given <= self.covered

    def next(self, definition: SequenceDef, name: str) -> int:
        """Return the next value. SqlError 2200H."""
        if definition is not self._definition:
            if definition != self._definition:  # ALTER SEQUENCE: the row was made with other steps
                self._jumped()
            self._definition = definition
        if self.called:
            self.value = step(definition, self.value, name)
        self.called = True
        self.given += 1
        self._write_if_low()
        return self.value

    def set(self, definition: SequenceDef, value: int, called: bool) -> None:
        """Count on from ``value``; ``called`` False: it is itself the next one."""
        self._definition = definition
        self.value, self.called = value, called
        self.given += 1
        self._jumped()
        self._write_if_low()

    def _jumped(self) -> None:
        """What is stored says nothing about what is given from here on."""
        self._jumps += 1
        self.covered = self.given - 1

    def _is_low(self) -> bool:
        return self.covered - self.given < self._block // 2

    def _write_if_low(self) -> None:
        # one that has ended, whose ``_written`` is still to come, writes no more: who waits for it would go
        # round for ever
        if (self._writing is None or self._writing.done()) and self._is_low():
            self._writing = asyncio.get_running_loop().create_task(self._write())
            self._writing.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        if self._writing is task:
            self._writing = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.warning("a sequence's position could not be stored: %s", error)  # the next call tries again

    async def wait(self, given: int) -> None:
        """Return once what is stored lies beyond the first ``given`` calls. Raises TxnError."""
        while self.covered < given:
            self._write_if_low()
            if self._writing is None:
                raise AssertionError("a sequence is low, and nothing is being written")
            await asyncio.shield(self._writing)

    async def _write(self) -> None:
        while self._is_low():
            jumps, given = self._jumps, self.given
            count = self._block
            value = ahead(self._definition, self.value, self.called, count)
            self._row = await self._counters.store(self._key, self._row, value, True)
            if jumps == self._jumps:
                self.covered = given + count
            if self.given - given > self._block // 2:
                self._block = min(self._block * 2, LARGEST_BLOCK)

    async def rest(self) -> RowId | None:
        """Return its row once none is being written; None where there is none. Nobody draws from it any more."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        return self._row

    async def close(self) -> None:
        """Store exactly where it stands, so that an orderly restart skips nothing."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self.given:
            self._row = await self._counters.store(self._key, self._row, self.value, self.called)


_Stored = tuple[int, bool, RowId]


class Counters:
    """The counters of all sequences, by oid and generation."""

    def __init__(self, db: Server) -> None:
        """Call ``open`` once."""
        self._db = db
        self._stored: dict[tuple[int, int], _Stored] = {}
        self._counters: dict[tuple[int, int], Counter] = {}
        self._lost: dict[tuple[int, int], DamagedFile] = {}
        self._damage: DamagedFile | None = None  # concerns those that are not among ``_stored``
        self._gone: deque[Counter | RowId] = deque()  # of no sequence any more: their rows are to go
        self._removing: asyncio.Task[None] | None = None

    async def open(self, sequences: Iterable[RelationDef], unreadable: Collection[int] = ()) -> None:
        """Read what is stored, and forget what is of no sequence any more. ``unreadable``: oids of which it
        is not known.
        """
        store = self._db.store
        self._damage = store.damage_of(SHARD)
        if self._damage is not None:
            _log.error("how far sequences have counted cannot be read: %s", self._damage)
            return
        if not any(shard == SHARD for shard, _spec in store.shards()):
            txn = store.begin()
            txn.create_shard(SPEC)
            await settle(txn.commit())
            return
        known = {(s.oid, s.sequence.generation) for s in sequences if s.sequence is not None}
        gone: list[RowId] = []
        txn = store.begin()
        async for chunk in txn.scan(SHARD):
            for row in chunk:
                oid, generation, value, called = row.values
                if oid is None or generation is None:
                    self._damage = store.lost_files(SHARD)[0]
                elif value is None or called is None:
                    self._lost[oid, generation] = store.lost_files(SHARD)[0]
                elif (oid, generation) in known:
                    self._stored[oid, generation] = (value, called, row.row_id)
                elif oid not in unreadable:
                    gone.append(row.row_id)
        if gone and not self._db.spaces.lost:
            await settle(txn.begin_write([SHARD]))
            await settle(txn.delete(SHARD, gone))
            await settle(txn.commit())
        else:
            txn.rollback()

    def of(self, relation: RelationDef) -> Counter:
        """Return the counter of a sequence. DamagedFile: how far it has counted is lost; a RESTART is a new one."""
        if relation.sequence is None:
            raise AssertionError(f"relation {relation.name} is no sequence")
        key = relation.oid, relation.sequence.generation
        counter = self._counters.get(key)
        if counter is None:
            damage = self._lost.get(key, None if key in self._stored else self._damage)
            if damage is not None:
                raise damage
            counter = Counter(self, key, relation.sequence, self._stored.get(key))
            self._counters[key] = counter
        return counter

    def forget(self, relation: RelationDef) -> None:
        """Let go of the counter of a generation that is no more. Its row goes with ``remove_rows``, or the
        next start.
        """
        if relation.sequence is None:
            raise AssertionError(f"relation {relation.name} is no sequence")
        key = relation.oid, relation.sequence.generation
        counter, stored = self._counters.pop(key, None), self._stored.pop(key, None)
        if counter is not None:
            self._gone.append(counter)
        elif stored is not None:
            self._gone.append(stored[2])

    def remove_rows(self) -> None:
        """Delete the rows of what has been forgotten, in transactions of their own, behind the caller."""
        if self._gone and (self._removing is None or self._removing.done()):
            self._removing = asyncio.get_running_loop().create_task(self._remove())

    async def _remove(self) -> None:
        while self._gone:
            rows: list[RowId] = []
            while self._gone and len(rows) < REMOVED_AT_ONCE:
                gone = self._gone.popleft()
                row = await gone.rest() if isinstance(gone, Counter) else gone
                if row is not None:
                    rows.append(row)
            if not rows:
                continue
            txn = self._db.store.begin()
            try:
                await settle(txn.begin_write([SHARD]))
                await settle(txn.delete(SHARD, rows))
                await settle(txn.commit())
            except TxnError as error:
                txn.rollback()
                _log.warning("rows of %d dropped sequences stay until the next start: %s", len(rows), error)
            except BaseException:
                txn.rollback()
                raise

    async def store(self, key: tuple[int, int], row: RowId | None, value: int, called: bool) -> RowId:
        """Make a counter's row durable; returns it. Raises TxnError."""
        txn = self._db.store.begin()
        try:
            await settle(txn.begin_write([SHARD]))
            values = (*key, value, called)
            if row is None:
                [row] = await settle(txn.insert(SHARD, [values]))
            else:
                await settle(txn.update(SHARD, [(row, values)]))
            await settle(txn.commit())
        except BaseException:
            txn.rollback()
            raise
        return row

    async def copy(self, txn: Transaction, pairs: Iterable[tuple[RelationDef, RelationDef]]) -> None:
        """Stage in ``txn`` that the second of each pair, a new sequence, stands where the first stands now."""
        rows: list[tuple[int, int, int, bool]] = []
        for old, new in pairs:
            if new.sequence is None:
                raise AssertionError(f"relation {new.name} is no sequence")
            counter = self.of(old)
            rows.append((new.oid, new.sequence.generation, counter.value, counter.called))
        if not rows:
            return
        made = await settle(txn.insert(SHARD, rows))

        def applied(_ts: Timestamp) -> None:
            for row, (oid, generation, value, called) in zip(made, rows, strict=True):
                self._stored[oid, generation] = (value, called, row)

        txn.on_applied(applied)

    async def close(self) -> None:
        """Store where all stand."""
        if self._removing is not None:
            await asyncio.wait([self._removing])
        for counter in self._counters.values():
            try:
                await counter.close()
            except TxnError as error:
                _log.warning("where a sequence stands was not stored; it skips some values: %s", error)
