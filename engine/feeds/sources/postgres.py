"""POSTGRES sources: the tables of a publication as they are, then every transaction that changes them.

    slot created with its snapshot ──COPY of all tables──> one transaction here           offset: the slot's first LSN
    peek ──whole transactions──> one transaction here ──readable──> advance the slot      offset: end of the last commit

                      confirmed             offset                    flushed
    upstream's log ───────┬────────────────────┬─────────────────────────┬───►
                          │ here, and readable │ peeked next              │
                          └ may be sent again: skipped

The slot is only looked at (peek), and advanced once what was seen is readable here: upstream keeps everything
that is not. So ``confirmed <= offset`` always; a slot that is further has been advanced by somebody else, and
what lay between is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from engine.feeds.sources import offsets as stored
from engine.feeds.sources import pgoutput
from engine.feeds.sources.changes import TableChanges
from engine.feeds.sources.options import Options
from engine.feeds.sources.pgoutput import lsn_of, lsn_text
from engine.feeds.sources.postgres_client import Upstream, quoted
from engine.feeds.sources.postgres_rows import FollowedTable, SnapshotRows
from engine.feeds.sources.postgres_slot import DROP_SLOT, SLOT
from engine.feeds.sources.postgres_tables import decoded, described
from engine.feeds.sources.reader import Batch, Place, Progress, Temporary
from engine.session.source_status import Lag
from planner.base.errors import SqlError
from planner.catalog import RelationDef, SourceDef

SLICE_MESSAGES: Final = 500
IDLE_BYTES: Final = (
    16 << 20
)  # of upstream's log without a change for us, after which the slot is advanced all the same

_PEEK: Final = "SELECT data FROM pg_logical_slot_peek_binary_changes($1, NULL, $2, 'proto_version', '1', 'publication_names', $3)"
_PUBLISHED: Final = (
    "SELECT 1 FROM pg_publication_tables p JOIN pg_namespace n ON n.nspname = p.schemaname "
    "JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename WHERE p.pubname = $1 AND c.oid = $2::int8::oid"
)
_ADVANCE: Final = (
    "SELECT pg_replication_slot_advance(slot_name, $2::text::pg_lsn) FROM pg_replication_slots "
    "WHERE slot_name = $1 AND confirmed_flush_lsn < $2::text::pg_lsn"
)


class _Unknown(Exception):
    """A change of a table that the source does not have."""

    def __init__(self, oid: int, shown: str) -> None:
        """``oid`` upstream, and its name."""
        super().__init__(shown)
        self.oid = oid
        self.shown = shown

    def error(self) -> SqlError:
        """Return what stops the source."""
        return SqlError(
            "42P01",
            f"table {self.shown} is in the publication, and not in the source",
            detail="It was created, or added to the publication, after the source.",
            hint="Drop the source and create it again, or take the table out of the publication and resume the source.",
        )


class Offset(msgspec.Struct, frozen=True):
    """Upstream's log up to ``lsn`` is here; ``rows``: how many rows and changes that were."""

    lsn: int
    rows: int


class PostgresReader:
    """See ``engine.feeds.sources.reader.Reader``."""

    def __init__(self, source: SourceDef, relations: Sequence[RelationDef]) -> None:
        """``relations``: the source's tables, in its order."""
        options = Options("postgres", source.options)
        self.progress = Progress(lag=Lag(unit="bytes"))
        self._url = options.need("connection")
        self._publication = options.need("publication")
        self._slot = options.need("slot")
        self._most = options.int("max_batch_rows")
        tables = [FollowedTable(decoded(t), r) for t, r in zip(source.tables_from, relations, strict=True)]
        self._tables = {table.upstream.oid: table for table in tables}
        self._left: set[int] = set()  # tables that joined the publication, and have left it again
        self._offset: Offset | None = None
        self._upstream: Upstream | None = None
        self._snapshot: Upstream | None = None

    @property
    def _connected(self) -> Upstream:
        if self._upstream is None:
            raise AssertionError("the reader is not open")
        return self._upstream

    async def open(self, offsets: Mapping[str, bytes]) -> Mapping[str, Place]:
        """See Reader. Raises SqlError 42704, 55000 for a slot that cannot be the one that was left."""
        self._upstream = await Upstream.connect(self._url)
        body = offsets.get(self._slot)
        if body is None:  # nothing has been committed: whatever slot an earlier try has left is of no use
            self.progress.activity = "snapshot"
            await self._upstream.rows(DROP_SLOT, self._slot)
            return {}
        self._offset = stored.decode(body, Offset)
        found = await self._upstream.rows(SLOT, self._slot)
        if not found:
            raise self._vanished()
        confirmed, plugin = found[0]
        if plugin != "pgoutput" or lsn_of(confirmed) > self._offset.lsn:
            raise SqlError(
                "55000",
                f'replication slot "{self._slot}" is not where it was left: changes are lost',
                detail=f"This source has read up to {lsn_text(self._offset.lsn)}, the slot begins at {confirmed}.",
                hint="Drop the source and create it again.",
            )
        await self._advance(self._offset.lsn)
        return {self._slot: Place(position=lsn_text(self._offset.lsn), rows=self._offset.rows)}

    async def poll(self) -> Batch | None:
        """See Reader: at least one whole transaction, or the snapshot."""
        if self._offset is None:
            return await self._first()
        upstream = self._connected
        [[flushed]] = await upstream.rows("SELECT pg_current_wal_flush_lsn()::text")
        behind = max(lsn_of(flushed) - self._offset.lsn, 0)
        try:
            messages = await upstream.rows(_PEEK, self._slot, self._most, self._publication)
        except SqlError as error:
            if error.sqlstate == "42704":
                raise await self._missing() from None
            raise
        if messages:
            self.progress.lag.amount = behind
            return await self._known([message[0] for message in messages])
        self.progress.lag.amount = 0
        if behind < IDLE_BYTES:
            return None
        return self._batch({}, lsn_of(flushed), 0)

    async def acknowledge(self, batch: Batch) -> None:
        """See Reader: advance the slot."""
        body = batch.offsets[self._slot]
        if body is None:
            raise AssertionError("the offset of a slot is never forgotten")
        self._offset = stored.decode(body, Offset)
        if self._snapshot is not None:
            self.progress.activity = "running"
            snapshot, self._snapshot = self._snapshot, None
            await snapshot.close()
        await self._advance(self._offset.lsn)

    async def close(self) -> None:
        """See Reader."""
        for connection in (self._snapshot, self._upstream):
            if connection is not None:
                await connection.close()
        self._snapshot = self._upstream = None

    async def _advance(self, lsn: int) -> None:
        advanced = await self._connected.rows(_ADVANCE, self._slot, lsn_text(lsn))
        if not advanced and not await self._connected.rows(SLOT, self._slot):
            raise self._vanished()

    async def _missing(self) -> SqlError:
        """Return the error for what the slot could not be read without."""
        if not await self._connected.rows(SLOT, self._slot):
            return self._vanished()
        return SqlError(
            "42704",
            f'publication "{self._publication}" did not exist upstream when changes were made that are to be read next',
            detail="A slot reads changes with the publications of their time; one that was created again does not help.",
            hint="Drop the source and create it again.",
        )

    def _vanished(self) -> SqlError:
        return SqlError(
            "42704",
            f'replication slot "{self._slot}" has vanished upstream',
            detail="What changed since this source read last is lost to it.",
            hint="Drop the source and create it again.",
        )

    def _batch(self, changes: dict[int, TableChanges], lsn: int, rows: int) -> Batch:
        total = rows if self._offset is None else self._offset.rows + rows
        return Batch(
            changes=changes,
            offsets={self._slot: stored.encode(Offset(lsn, total))},
            rows={self._slot: rows},
            positions={self._slot: lsn_text(lsn)},
        )

    # -- the snapshot ------------------------------------------------------------------------------

    async def _first(self) -> Batch:
        """Create the slot, and return all rows of its snapshot: they are copied while the batch is staged."""
        self._snapshot = snapshot = await Upstream.connect(self._url, replication=True)
        await snapshot.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await snapshot.run(f"CREATE_REPLICATION_SLOT {quoted(self._slot)} LOGICAL pgoutput USE_SNAPSHOT")
        found = await self._connected.rows(SLOT, self._slot)
        if not found:
            raise Temporary(f'replication slot "{self._slot}" went as soon as it was created')
        now = {table.oid: table for table in await described(self._connected, self._publication)}
        if now != {oid: table.upstream for oid, table in self._tables.items()}:
            raise SqlError(
                "55000",
                f'the tables of publication "{self._publication}" have changed since the source was created',
                hint="Drop the source and create it again.",
            )
        lsn = lsn_of(found[0][0])
        offsets: dict[str, bytes | None] = {self._slot: stored.encode(Offset(lsn, 0))}
        rows = {self._slot: 0}

        def counted(count: int) -> None:
            rows[self._slot] += count
            offsets[self._slot] = stored.encode(Offset(lsn, rows[self._slot]))

        changes = {}
        for table in self._tables.values():
            copied = TableChanges(oid=table.relation.oid)
            copied.bulk = SnapshotRows(snapshot, table, counted).batches
            changes[table.relation.oid] = copied
        return Batch(changes=changes, offsets=offsets, rows=rows, positions={self._slot: lsn_text(lsn)})

    # -- what changes ------------------------------------------------------------------------------

    async def _known(self, messages: Sequence[bytes]) -> Batch | None:
        """As ``_transactions``; a table that has joined the publication and left it again is passed over."""
        while True:
            try:
                return await self._transactions(messages)
            except _Unknown as unknown:
                published = await self._connected.rows(_PUBLISHED, self._publication, unknown.oid)
                if published:
                    raise unknown.error() from None
                self._left.add(unknown.oid)

    async def _transactions(self, messages: Sequence[bytes]) -> Batch | None:
        """Return the net effect of whole transactions, None if all of them are here already."""
        if self._offset is None:
            raise AssertionError("changes come before the offset is known")
        changes: dict[int, TableChanges] = {}
        lsn, count, skip, commit_lsn = self._offset.lsn, 0, False, 0
        ended = True
        for number, data in enumerate(messages):
            if number % SLICE_MESSAGES == SLICE_MESSAGES - 1:
                await asyncio.sleep(0)
            message = pgoutput.decode(data)
            match message:
                case pgoutput.Begin():
                    commit_lsn, ended = message.final_lsn, False
                    skip = commit_lsn < self._offset.lsn
                case pgoutput.Commit():
                    ended = True
                    lsn = max(lsn, message.end_lsn)
                case pgoutput.Relation() if message.oid not in self._left:
                    self._table(message.oid, message).listen(message)
                case pgoutput.Other():
                    pass
                case pgoutput.Truncate() if not skip:
                    for oid in message.relations:
                        if oid not in self._left:
                            self._changes(changes, self._table(oid)).truncate()
                            count += 1
                case pgoutput.Insert() | pgoutput.Update() | pgoutput.Delete() if (
                    not skip and message.relation not in self._left
                ):
                    table = self._table(message.relation)
                    table.change(self._changes(changes, table), message, commit_lsn)
                    count += 1
        if not ended:
            raise pgoutput.MalformedMessage("a transaction without an end")
        return self._batch(changes, lsn, count) if lsn > self._offset.lsn else None

    def _table(self, oid: int, said: pgoutput.Relation | None = None) -> FollowedTable:
        table = self._tables.get(oid)
        if table is None:
            raise _Unknown(oid, f"with oid {oid}" if said is None else f"{said.schema}.{said.name}")
        return table

    @staticmethod
    def _changes(changes: dict[int, TableChanges], table: FollowedTable) -> TableChanges:
        return changes.setdefault(table.relation.oid, TableChanges(oid=table.relation.oid))
