"""Reading the log back: what a restart applies on top of the manifests.

    entry 41  [shard 7: rows] [shard 9: rows]      manifest of 7: flushed_through 41
              '-- dropped --' '---- kept ---'      manifest of 9: flushed_through 12

Part swaps are dropped: they changed nothing visible, and the manifest written after one is what says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Mapping

import msgspec

from txn.base.errors import DamagedEntry, DamagedFile, MissingFile, TxnError
from txn.base.records import Batch, ShardWrites, WriteSet
from txn.base.types import PartRef, ShardId
from txn.persist.location import Blob, Consensus, strictly_next
from txn.persist.parts.manifest import Manifest
from txn.persist.trouble import starting
from txn.values.encoding import LogEntry, decode_entry, decode_write_set, shards_of
from txn.wal.cache import LogMap

_CHUNK_BYTES = 4 << 20


class DamagedLog(TxnError):
    """The log misses entries that a manifest or a later entry presupposes; nothing is served from it."""


async def read_entries(
    consensus: Consensus, blob: Blob, log_map: LogMap, where: str = "the log"
) -> AsyncIterator[tuple[int, Batch | DamagedEntry, list[str]]]:
    """Yield (seq, batch, blobs named) in order, as logged, and note each in ``log_map`` (it starts at the first).

    An entry that is damaged, or whose blob is, comes as the error that says which shards it concerns.
    ``where`` names the log in errors.

    Raises UnknownFormat, DamagedLog, DamagedEntry (one that does not even say that).
    """
    first, end = await consensus.log_bounds()
    if first != log_map.first:
        raise DamagedLog(f"{where} is damaged: it begins at entry {first}, not at {log_map.first}")
    at = first
    while at < end:
        entries = await consensus.read_log(at, _CHUNK_BYTES)
        if not entries or not strictly_next(entries, at):
            raise DamagedLog(f"{where} is damaged: it has no entry {at} but goes on to {end - 1}")
        for seq, payload in entries:
            try:
                entry = decode_entry(payload, f"log entry {seq} in {where}")
            except DamagedEntry as error:
                if error.shards is None:
                    raise
                log_map.note(seq, len(payload), error.shards)
                yield seq, error, []
                continue
            try:
                batch, names, size = await _resolve(entry, blob, len(payload))
            except DamagedEntry as error:
                if error.shards is None:
                    raise
                log_map.note(seq, len(payload), error.shards)
                yield seq, error, []
                continue
            log_map.note(seq, len(payload) + size, shards_of(batch))
            yield seq, batch, names
        at = entries[-1][0] + 1


async def _resolve(entry: LogEntry, blob: Blob, inline_bytes: int) -> tuple[Batch, list[str], int]:
    """Return the entry with the write sets that lie in blobs, the blobs' names and their bytes."""
    size = 0
    writes: list[WriteSet] = []
    names: list[str] = []
    for write_set in entry.writes:
        if isinstance(write_set, tuple):
            ts, name = write_set
            path = blob.local_path(name)
            try:
                with starting():
                    data = await blob.get(name)
                if data is None:
                    raise MissingFile(path)
                names.append(name)
                size += len(data)
                write_set = decode_write_set(data, ts, path)
            except DamagedFile as error:
                raise DamagedEntry(
                    path, error.what, entry.shards, entry.upper, unread=error.unread
                ) from error
        writes.append(write_set)
    batch = Batch(
        epoch=entry.epoch,
        writes=tuple(writes),
        swaps=entry.swaps,
        bytes=inline_bytes + size,
        told=entry.told,
    )
    return batch, names, size


class Uncovered:
    """Cuts from each entry what the manifests already contain (C41), and what writes to damaged shards.

    A TRUNCATE or DROP of a damaged shard makes it whole: what was damaged is not needed any more.
    """

    def __init__(
        self,
        manifests: Mapping[ShardId, Manifest],
        locate: Callable[[str], str],
        damaged: dict[ShardId, DamagedFile],
    ) -> None:
        """``locate(part name)`` gives the path that part references carry in memory. ``damaged`` is kept current."""
        self._damaged = damaged
        self._through = {shard: m.flushed_through for shard, m in manifests.items()}
        self._highest = max(self._through.values(), default=0)
        self._locate = locate

    def cut(self, seq: int, batch: Batch) -> Batch | None:
        """Return what is left of entry ``seq``, None if nothing is."""
        through = self._through
        plain = seq > self._highest
        writes: list[WriteSet] = []
        for write_set in batch.writes:
            if plain:
                shards, schema = write_set.shards, write_set.schema
            else:
                shards = tuple(w for w in write_set.shards if seq > through.get(w.shard, 0))
                schema = tuple(c for c in write_set.schema if seq > through.get(c.shard, 0))
            if self._damaged:
                for change in schema:
                    if change.forget or change.truncate:
                        self._damaged.pop(change.shard, None)
                shards = tuple(w for w in shards if w.shard not in self._damaged)
                schema = tuple(c for c in schema if c.shard not in self._damaged)
            if any(w.parts for w in shards):
                shards = tuple(self._located(w) for w in shards)
            if shards or schema:
                if shards is write_set.shards and schema is write_set.schema:
                    writes.append(write_set)
                else:
                    writes.append(msgspec.structs.replace(write_set, shards=shards, schema=schema))
        if not writes:
            return None
        return Batch(epoch=batch.epoch, writes=tuple(writes), bytes=batch.bytes, told=batch.told)

    def damage(self, seq: int, entry: DamagedEntry) -> None:
        """Note the shards that need the damaged entry ``seq``."""
        for shard in entry.shards or ():
            if seq > self._through.get(shard, 0):
                self._damaged.setdefault(shard, entry)

    def _located(self, writes: ShardWrites) -> ShardWrites:
        parts = tuple(locate_part(p, self._locate) for p in writes.parts)
        return msgspec.structs.replace(writes, parts=parts)


def locate_part(ref: PartRef, locate: Callable[[str], str]) -> PartRef:
    """Return ``ref`` with the path of today's data directory."""
    return dataclasses.replace(ref, path=locate(ref.name))
