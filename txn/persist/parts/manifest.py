"""A shard's durable state: which parts it consists of, which of their rows have ended, and up to where.

A manifest is the *exact* state of a shard after all commits with log sequence numbers up to
``flushed_through``; nothing of it is hot. So recovery is simple::

    state of a shard  =  its manifest  +  the log's entries for it with seq > flushed_through

       log    ... 41  42  43 | 44  45  46 ...          manifest: flushed_through = 43
                             '--- replayed on top ---

Ends that the manifest already knows may be met again in the replayed entries: ending the same version at the
same timestamp twice is harmless (C27).

Stored: one register per shard, replaced by compare-and-set under the epoch. Ends that are few travel in it; many
of them are a blob of their own, ``<part>.ends<epoch>-<id>``, written before the register names it, never changed, and
removed when the register names another.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow.compute as pc

from txn.base.errors import DamagedFile, MissingFile, TxnError, UnknownFormat
from txn.base.time import IdGen
from txn.base.types import PartRef, ShardId, ShardSpec, Timestamp
from txn.persist.checksum import WRITERS_FORMAT_BYTE, seal, sealed_parts, unseal
from txn.persist.location import Blob, Consensus, Indeterminate, register_name
from txn.persist.parts.part import parquet_name
from txn.persist.trouble import starting
from txn.values.columns import int64_array, int64_values
from txn.values.encoding import decode_spec, encode_spec

_PREFIX = "manifest/"
_INLINE_ENDS = 256  # so many ends of a part fit into the register
_ATTEMPTS = 5
_UNKNOWN = Timestamp(0)
_log = logging.getLogger(__name__)


def _no_ends() -> array[int]:
    return array("q")


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of versions in one part: ``positions`` rising, ``timestamps[i]`` the end of ``positions[i]``.

    Both are ``array('q')``, of equal length, and not to be changed.
    """

    positions: array[int] = field(default_factory=_no_ends)
    timestamps: array[int] = field(default_factory=_no_ends)

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Ends:
        """Make ends from (position, end) pairs in any order, one per position. For many: in a thread."""
        listed = pairs if isinstance(pairs, list) else list(pairs)
        if len(listed) <= _INLINE_ENDS:
            listed = sorted(listed)
            return cls(array("q", [p for p, _ in listed]), array("q", [t for _, t in listed]))
        return cls.of_arrays(array("q", [p for p, _ in listed]), array("q", [t for _, t in listed]))

    @classmethod
    def of_arrays(cls, positions: array[int], timestamps: array[int]) -> Ends:
        """Make ends from parallel arrays in any order. The sorting does not hold the GIL."""
        keys = int64_array(positions)
        order = pc.array_sort_indices(keys)
        return cls(int64_values(keys.take(order)), int64_values(int64_array(timestamps).take(order)))

    def __len__(self) -> int:
        return len(self.positions)

    def validate(self, rows: int) -> None:
        """Check: as many timestamps as positions, positions rising and below ``rows``. 1 ms per 100,000."""
        positions = self.positions
        if len(positions) != len(self.timestamps):
            raise AssertionError("ends: positions and timestamps differ in number")
        if positions and (positions[0] < 0 or positions[-1] >= rows):
            raise AssertionError(f"ends: position outside of 0 .. {rows - 1}")
        keys = int64_array(positions)
        if len(keys) > 1 and not pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py():
            raise AssertionError("ends: positions do not rise")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPart:
    """A part of the shard with the ends known at the manifest's cut."""

    ref: PartRef
    ends: Ends = field(default_factory=Ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A shard at the cut ``flushed_through`` (a log sequence number; commits up to and with it are in here).

    ``since``: reads below it are refused, because versions have been dropped. ``next_row_id``: above all row
    ids given before the cut. ``generation`` counts TRUNCATEs. ``forgotten``: dropped at the cut; kept until the
    log has been trimmed past it. ``history``: parts of versions that ended between ``since`` and the cut and that are
    in none of ``parts``; empty where ``since`` is the cut.
    """

    shard: ShardId
    spec: ShardSpec
    generation: int
    flushed_through: int
    next_row_id: int
    since: Timestamp
    parts: tuple[ManifestPart, ...] = ()
    history: tuple[ManifestPart, ...] = ()
    forgotten: bool = False
    registered: Timestamp = _UNKNOWN
    """When the shard was made (C23); 0 in manifests of servers that did not note it."""
    writers: Mapping[int, int] = field(default_factory=dict)
    """Told transactions by their timestamps, whose rows are in parts as they were loaded (``txn.base.writers``)."""

    @property
    def files(self) -> tuple[ManifestPart, ...]:
        """All parts, those of history included."""
        return self.parts + self.history


class _StoredPart(msgspec.Struct, frozen=True, array_like=True):
    ref: PartRef
    count: int
    positions: bytes  # int64, little-endian; empty if in ``blob``
    timestamps: bytes
    blob: str


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    shard: ShardId
    spec: bytes
    generation: int
    flushed_through: int
    next_row_id: int
    since: Timestamp
    forgotten: bool
    parts: tuple[_StoredPart, ...]
    registered: Timestamp = _UNKNOWN
    history: tuple[_StoredPart, ...] = ()


class _StoredWriters(_Stored, frozen=True, array_like=True):
    """Of a shard with told transactions: of format 3, so that a server which would forget them refuses it."""

    writers: tuple[tuple[int, int], ...] = ()


_decoder = msgspec.msgpack.Decoder(_StoredWriters)


def register_key(shard: ShardId) -> str:
    """Return the name of a shard's register."""
    return f"{_PREFIX}{shard:010d}"


class ManifestStore:
    """All shards' manifests under one epoch. Changes are made one at a time per shard (the caller sees to it)."""

    def __init__(self, consensus: Consensus, blob: Blob, ids: IdGen, epoch: int) -> None:
        """Call ``load`` once."""
        self._consensus = consensus
        self._blob = blob
        self._ids = ids
        self._epoch = epoch
        self._seqs: dict[ShardId, int] = {}
        self._ends_blobs: dict[ShardId, dict[str, tuple[str, Ends]]] = {}  # shard -> part -> (blob, ends)
        self.current: dict[ShardId, Manifest] = {}
        self._in_doubt: dict[
            ShardId, set[str]
        ] = {}  # parts of manifests that may be stored, beside ``current``
        self.damaged: dict[ShardId, DamagedFile] = {}
        """Shards whose manifest is damaged (and not in ``current``), or its ends (there without them)."""

    async def load(self) -> None:
        """Read all manifests. Raises UnknownFormat, Indeterminate."""
        for key in await self._consensus.keys(_PREFIX):
            head = await self._consensus.head(key)
            if head is None:
                continue
            try:
                manifest, blobs = await self._decode(key, head.data)
            except DamagedFile as error:
                self.damaged[ShardId(int(key.removeprefix(_PREFIX)))] = error
                continue
            self.current[manifest.shard] = manifest
            self._seqs[manifest.shard] = head.seq
            self._ends_blobs[manifest.shard] = blobs

    async def _decode(self, key: str, data: bytes) -> tuple[Manifest, dict[str, tuple[str, Ends]]]:
        register, key = key, register_name(key, self._consensus)
        content = unseal(key, data, WRITERS_FORMAT_BYTE)
        try:
            stored = _decoder.decode(content)
        except msgspec.MsgspecError as error:
            raise UnknownFormat(f"{key} cannot be read: {error}") from error
        parts: list[ManifestPart] = []
        history: list[ManifestPart] = []
        blobs: dict[str, tuple[str, Ends]] = {}
        kinds = [(part, parts) for part in stored.parts] + [(part, history) for part in stored.history]
        for part, found in kinds:
            positions, timestamps = part.positions, part.timestamps
            if part.blob:
                try:
                    packed = await self._ends(part.blob, part.count)
                except DamagedFile as error:
                    self.damaged[stored.shard] = error
                    continue
                positions, timestamps = bytes(packed[: part.count * 8]), bytes(packed[part.count * 8 :])
            ends = Ends(array("q", positions), array("q", timestamps))
            ends.validate(part.ref.rows)
            if part.blob:
                blobs[part.ref.name] = (part.blob, ends)
            path = self._blob.local_path(parquet_name(part.ref.name))
            found.append(ManifestPart(ref=dataclasses.replace(part.ref, path=path), ends=ends))
        if register_key(stored.shard) != register:
            raise DamagedFile(key, f"it is the manifest of shard {stored.shard}")
        manifest = Manifest(
            shard=stored.shard,
            spec=decode_spec(stored.spec, f"the schema in {key}"),
            generation=stored.generation,
            flushed_through=stored.flushed_through,
            next_row_id=stored.next_row_id,
            since=stored.since,
            parts=tuple(parts),
            history=tuple(history),
            forgotten=stored.forgotten,
            registered=stored.registered,
            writers=dict(stored.writers),
        )
        return manifest, blobs

    async def _ends(self, name: str, count: int) -> memoryview:
        path = self._blob.local_path(name)
        with starting():
            packed = await self._blob.get(name)
        if packed is None:
            raise MissingFile(path)
        content = unseal(path, packed)
        if len(content) != count * 16:
            raise DamagedFile(path, f"it does not hold {count} ends")
        return content

    async def store(self, manifest: Manifest) -> None:
        """Make ``manifest`` its shard's durable state.

        Raises:
            Fenced: another server has taken over.
            OutOfSpace, Indeterminate: the old one may still be the durable one; calling again is safe. What this one
                names stays named (``names``) until another one is known to be stored.
            ValueError: it would go back behind the current one.
        """
        old = self.current.get(manifest.shard)
        if old is not None and (manifest.flushed_through < old.flushed_through or old.forgotten):
            raise ValueError(f"manifest of shard {manifest.shard} would go back")
        old_blobs = self._ends_blobs.get(manifest.shard, {})
        new_blobs: dict[str, tuple[str, Ends]] = {}
        parts = [await self._store_part(part, old_blobs, new_blobs) for part in manifest.parts]
        history = [await self._store_part(part, old_blobs, new_blobs) for part in manifest.history]
        fields = (
            manifest.shard, encode_spec(manifest.spec), manifest.generation, manifest.flushed_through,
            manifest.next_row_id, manifest.since, manifest.forgotten, tuple(parts),
            manifest.registered, tuple(history),
        )  # fmt: skip
        if manifest.writers:
            told = _StoredWriters(*fields, tuple(sorted(manifest.writers.items())))
            data = seal(msgspec.msgpack.encode(told), WRITERS_FORMAT_BYTE)
        else:
            data = seal(msgspec.msgpack.encode(_Stored(*fields)))
        doubt = self._in_doubt.setdefault(manifest.shard, set())
        doubt.update(part.ref.name for part in manifest.files)
        seq = await self._set(register_key(manifest.shard), self._seqs.get(manifest.shard), data)
        del self._in_doubt[manifest.shard]
        self._seqs[manifest.shard] = seq
        self._ends_blobs[manifest.shard] = new_blobs
        self.current[manifest.shard] = manifest
        kept = {blob for blob, _ in new_blobs.values()}
        for blob, _ in old_blobs.values():
            if blob not in kept:
                try:
                    await self._blob.delete(blob)
                except TxnError as error:  # the manifest is stored; the next start sweeps the blob away
                    _log.info("%s was not deleted: %s", blob, error)

    async def _store_part(
        self,
        part: ManifestPart,
        old_blobs: dict[str, tuple[str, Ends]],
        new_blobs: dict[str, tuple[str, Ends]],
    ) -> _StoredPart:
        ends, name = part.ends, part.ref.name
        ends.validate(part.ref.rows)
        ref = dataclasses.replace(part.ref, path="")
        if len(ends) <= _INLINE_ENDS:
            return _StoredPart(ref, len(ends), ends.positions.tobytes(), ends.timestamps.tobytes(), "")
        known = old_blobs.get(name)
        if known is not None and known[1] == ends:
            blob = known[0]
        else:
            blob = f"{name}.ends{self._epoch}-{self._ids.next_id()}"
            pieces = memoryview(ends.positions).cast("B"), memoryview(ends.timestamps).cast("B")
            sealed = b""
            for part_of_it in sealed_parts(*pieces):
                sealed = part_of_it
                await asyncio.sleep(0)
            await self._blob.put(blob, sealed)
        new_blobs[name] = (blob, ends)
        return _StoredPart(ref, len(ends), b"", b"", blob)

    def names(self, shard: ShardId, part: str) -> bool:
        """Tell whether the manifest that a start now would find may name a part."""
        manifest = self.current.get(shard)
        named = manifest is not None and any(p.ref.name == part for p in manifest.files)
        return named or part in self._in_doubt.get(shard, ())

    async def remove(self, shard: ShardId) -> None:
        """Delete a forgotten shard's register, once the log holds nothing of it. Idempotent."""
        manifest = self.current.get(shard)
        if manifest is None:
            return
        if not manifest.forgotten:
            raise ValueError(f"shard {shard} is not forgotten")
        await self._set(register_key(shard), self._seqs[shard], None)
        del self.current[shard], self._seqs[shard]
        self._ends_blobs.pop(shard, None)

    async def _set(self, key: str, expected: int | None, data: bytes | None) -> int:
        error: TxnError = Indeterminate(f"{key} could not be written")
        for _ in range(_ATTEMPTS):
            try:
                seq = await self._consensus.compare_and_set(key, expected, data, epoch=self._epoch)
                if seq is not None:
                    return seq
                head = await self._consensus.head(key)
            except Indeterminate as unknown:
                error = unknown
                continue
            # Not the value expected. The epoch is still ours, else that would have been Fenced: so it was an
            # attempt of ours whose outcome was never learnt, of now or of an earlier call.
            found: Any = None if head is None else head.data
            if found == data:
                return 0 if head is None else head.seq
            expected = None if head is None else head.seq
        raise error

    def blob_names(self) -> set[str]:
        """Return the names of the ends blobs that the manifests refer to."""
        return {blob for blobs in self._ends_blobs.values() for blob, _ in blobs.values()}
