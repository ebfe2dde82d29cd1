"""Named subscriptions: the server remembers how far a client has got, and keeps what comes after it (N6).

    CREATE SUBSCRIPTION feed FOR account            position 40, held; durable as a row of a shard of its own
    SUBSCRIBE SUBSCRIPTION feed WITH (progress)     what came after 40: 57, 60, progress 60
    ALTER SUBSCRIPTION feed ACKNOWLEDGE 60          position 60, when the transaction that says so commits

            40            57    60          read_ts
    ────────┬─────────────┬─────┬─────────────┬────►
         position      not acknowledged: comes again, after whatever crash

An acknowledgement is a change of a row, so it commits with what else its transaction does: who writes what it
derives into this database processes each change exactly once. The row moves first, the hold follows in the
turn in which that is applied; after a restart holds are taken again before anything else may let go of
history (``Store.started``). The query is canonical text, bound at the position, with the catalog of that
time: what was subscribed may be altered or dropped since, and then is its last owner's
(``engine.definitions.needs.past``).

What is kept is bounded (``TxnOptions.subscription_versions``, ``txn.upkeep.flush.KEPT_LOG``); past that the
subscription is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from engine.base.eager import settle
from engine.base.rows import RowTuple
from engine.catalog.storage.stored import DATABASE_OID
from planner.base.errors import SqlError
from planner.catalog import DEFAULT_TIMELINE
from txn.api import Transaction
from txn.base.errors import DamagedFile, ReadBelowSince, TxnError, UnknownFormat, anew
from txn.base.types import (
    IndexId,
    PhysicalType,
    RowId,
    ShardColumn,
    ShardId,
    ShardIndex,
    ShardSpec,
    StoredRow,
    Timestamp,
)
from txn.log.holds import Hold

if TYPE_CHECKING:
    from engine.base.rows import Source
    from engine.session.session import Session
    from engine.session.store_server import Server

FORMAT: Final = 1
SHARD: Final = ShardId(2)
INDEX: Final = IndexId(3)
SPEC: Final = ShardSpec(
    shard=SHARD,
    version=1,
    columns=(
        ShardColumn(attnum=1, type=PhysicalType(kind="text")),
        ShardColumn(attnum=2, type=PhysicalType(kind="bytes")),
    ),
    indexes=(ShardIndex(index=INDEX, attnums=(1,), unique=True, primary=True),),
)
_log = logging.getLogger(__name__)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of one. ``owner``: a role's oid. ``snapshot``: what there was at ``position`` is still to be sent.

    ``timeline``: what ``position`` is of; ``database``: oid of the one in which ``sql`` was written.
    """

    name: str
    owner: int
    sql: str
    position: int
    snapshot: bool
    created_us: int
    lost: bool = False
    timeline: str = DEFAULT_TIMELINE
    database: int = DATABASE_OID


def encode(record: Record) -> tuple[str, bytes]:
    """Return the row of a record."""
    return record.name, bytes([FORMAT]) + msgspec.msgpack.encode(record)


def decode(name: str, body: bytes) -> Record:
    """Read the body of a subscription's row; UnknownFormat for a newer format."""
    if body[:1] != bytes([FORMAT]):
        raise UnknownFormat(
            f'subscription "{name}" has format {body[:1].hex() or "none"}; this server knows {FORMAT:02x}'
        )
    return msgspec.msgpack.decode(body[1:], type=Record)


class Named:
    """One of them. ``hold`` keeps its position, None once that is lost; ``reader``: the connection that reads
    it, or 0.
    """

    __slots__ = ("hold", "reader", "record")

    def __init__(self, record: Record, hold: Hold | None) -> None:
        self.record = record
        self.hold = hold
        self.reader = 0


class NamedSubscriptions:
    """All of a server's named subscriptions, by name."""

    def __init__(self, db: Server) -> None:
        """Call ``open`` once."""
        self._db = db
        self._all: dict[str, Named] = {}
        self._marking: set[asyncio.Task[None]] = set()
        self._making: list[int] = []
        self._damage: DamagedFile | None = None  # to some of them, or all

    async def open(self) -> None:
        """Read what is stored and hold it; then let go of what else recovery has found."""
        store = self._db.store
        store.on_taken_away(self._taken_away)
        self._damage = store.damage_of(SHARD)
        if self._damage is not None:
            _log.error("named subscriptions cannot be read: %s", self._damage)
        elif any(shard == SHARD for shard, _spec in store.shards()):
            txn = store.begin(read_only=True)
            async for chunk in txn.scan(SHARD):
                for row in chunk:
                    if None in row.values:
                        self._damage = store.lost_files(SHARD)[0]
                        _log.error("subscription %s is lost: %s", row.values[0], self._damage)
                        continue
                    record = decode(*row.values)
                    self._all[record.name] = Named(record, self._held(record))
            txn.rollback()
        store.started()

    def _held(self, record: Record) -> Hold | None:
        if record.lost:
            return None
        try:
            hold: Hold = self._db.store.hold(
                Timestamp(record.position), durable=True, timeline=record.timeline
            )
        except ReadBelowSince as error:
            _log.error("subscription %s is lost: %s", record.name, error)
            return None
        return hold

    def __iter__(self) -> Iterator[Named]:
        """Yield them by name."""
        return iter([self._all[name] for name in sorted(self._all)])

    def owners(self) -> list[int]:
        """Return whose they are, by oid, one for each that there is or is being made."""
        return [*(named.record.owner for named in self._all.values()), *self._making]

    @contextmanager
    def making(self, owner: int) -> Iterator[None]:
        """Count one that is being made."""
        self._making.append(owner)
        try:
            yield
        finally:
            self._making.remove(owner)

    def find(self, name: str) -> Named | None:
        """Return one, or None."""
        return self._all.get(name)

    def of(self, session: Session, name: str) -> Named:
        """Return one. SqlError 42704, 55000 in another database."""
        named = self._all.get(name)
        if named is None:
            if self._damage is not None:
                raise anew(self._damage)
            raise SqlError("42704", f'subscription "{name}" does not exist')
        if session.database_oid != named.record.database:
            raise SqlError("55000", f'subscription "{name}" was not created in this database')
        return named

    def add(self, record: Record, hold: Hold) -> None:
        """A new one is durable."""
        self._all[record.name] = Named(record, hold)

    def remove(self, name: str) -> None:
        """One is gone for good."""
        named = self._all.pop(name)
        if named.hold is not None:
            self._db.store.release(named.hold)

    def moved(self, name: str, row: RowId) -> None:
        """Its row may have changed in the commit that is applied in this turn: hold what it says now.

        By its id, for under its name there may be more than one, as long as somebody reads a past in which it
        was another's.
        """
        named = self._all.get(name)
        values = self._db.store.latest_hot(SHARD, row)
        if named is None or values is None:  # not in memory: not changed
            return
        before, named.record = named.hold, decode(*values)
        if before is not None and named.record.position > before.ts:
            position = Timestamp(named.record.position)
            named.hold = self._db.store.hold(position, durable=True, timeline=named.record.timeline)
            self._db.store.release(before)

    def _taken_away(self, hold: Hold) -> None:
        for named in self._all.values():
            if named.hold is hold:
                _log.warning("subscription %s kept too much history and is lost", named.record.name)
                named.hold = None
                task = asyncio.get_running_loop().create_task(self._mark_lost(named.record.name))
                self._marking.add(task)
                task.add_done_callback(self._marking.discard)

    async def _mark_lost(self, name: str) -> None:
        """Say so durably, for its position might be readable again after a restart."""
        txn = self._db.store.begin()
        try:
            row = await locked_row(txn, name)
            if row is not None:
                record = msgspec.structs.replace(decode(*row.values), lost=True)
                txn.on_applied(lambda _ts: self.moved(name, row.row_id))
                await settle(txn.update(SHARD, [(row.row_id, encode(record))]))
            await settle(txn.commit())
        except TxnError as error:
            txn.rollback()
            _log.warning("that subscription %s is lost was not stored: %s", name, error)

    async def close(self) -> None:
        """Finish what is being stored."""
        if self._marking:
            await asyncio.wait(self._marking)


async def locked_row(txn: Transaction, name: str) -> StoredRow | None:
    """Lock and return the row of a subscription."""
    waiting = txn.begin_write([SHARD])
    if waiting is not None:
        await waiting
    rows = await settle(txn.lookup(SHARD, INDEX, [(name,)], for_update=True))
    return rows[0] if rows else None


# --- binding --------------------------------------------------------------------------------------


# --- reading --------------------------------------------------------------------------------------


class Reading:
    """A source whose subscription nobody else reads meanwhile."""

    def __init__(self, source: Source, named: Named, pid: int) -> None:
        """``pid``: the connection that reads."""
        self._source = source
        self._named: Named | None = named
        named.reader = pid

    async def poll(self, timeout_s: float | None) -> list[RowTuple] | None:
        """See ``engine.base.rows.Source``."""
        return await self._source.poll(timeout_s)

    def close(self) -> None:
        """See ``engine.base.rows.Source``."""
        if self._named is not None:
            self._named.reader = 0
            self._named = None
        self._source.close()


def readable(session: Session, name: str) -> Named:
    """Return the subscription to be read. SqlError 42704, 42501, 55006 (somebody reads it), 55000 (lost)."""
    named = session.db.named.of(session, name)
    if named.reader in session.db.sessions:
        raise SqlError("55006", f'subscription "{name}" is active for PID {named.reader}')
    if named.hold is None:
        raise lost_error(named)
    return named


def lost_error(named: Named) -> SqlError:
    """Return the error for one that is lost."""
    return SqlError(
        "55000",
        f'can no longer get changes from subscription "{named.record.name}"',
        detail=f"What it kept since timestamp {named.record.position} had grown past its bound.",
        hint="Drop it and create it again, with a snapshot.",
    )
