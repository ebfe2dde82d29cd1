"""Stores outside the data directory: consensus in PostgreSQL, blobs in a common directory or an object store.

    lock the server's own directory -> connect to the consensus -> wait for leadership (epoch, lease)
      -> the blob store, which must belong to the same database

A server's own directory then holds nothing durable: its lock, and what engines spill. Only the leader opens the
blob directory, so what it finds in ``tmp`` is left over from leaders that can complete nothing any more.

Who may delete what, with an old leader that does not know yet that it is one:

- It cannot hurt its successor. It deletes what its own stored manifest, or its own trimming of the log, no longer
  names; both were accepted under its epoch, so the successor has read them. Where it does not know whether something
  was accepted, it deletes nothing (``DurableLog.discard``). Names it writes carry its epoch, so it overwrites nothing.
- The successor sweeps blobs of earlier epochs that neither a manifest nor the log names. It reads both after raising
  the epoch, when no earlier leader can add a name to either.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from txn.base.errors import UnknownFormat
from txn.base.time import Clock, IdGen
from txn.log.leadership import SCRATCH, DirectoryLock, Leadership, take_leadership
from txn.log.lease import LeaseOptions, Waiting
from txn.persist.blobs.files import LocalBlob, write_durably
from txn.persist.blobs.object_url import CACHE_FOLDER, parse_object_url
from txn.persist.blobs.objects import ObjectBlob
from txn.persist.location import Blob, Consensus
from txn.persist.trouble import small_text

if TYPE_CHECKING:
    from txn.persist.logs.postgres import PostgresConsensus

CLUSTER_FILE = "CLUSTER"
OBJECTS_FILE = "OBJECTS"
"""In a data directory whose data files are in an object store: the identity of that, and its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStore:
    """An object store. ``url``: see ``txn.persist.blobs.objects``. ``cache_bytes``: of local copies of what is read."""

    url: str
    cache_bytes: int = 10 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedConfig:
    """Where the shared stores are. ``consensus``: a postgresql:// URL, of which messages omit the password.

    ``schema``: its tables are there. ``standby``, ``waiting``: see ``txn.log.lease.take_lease``.
    """

    consensus: str
    blob: Path | ObjectStore
    lease: LeaseOptions
    schema: str = "holdfast"
    standby: bool = False
    waiting: Waiting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStores:
    """What ``open_shared`` opened; the caller closes it."""

    lock: DirectoryLock
    consensus: PostgresConsensus
    blob: Blob
    leadership: Leadership
    append_attempts: int

    async def close(self) -> None:
        """Give everything up."""
        if self.leadership.lease is not None:
            await self.leadership.lease.release()
        await self.consensus.close()
        self.lock.release()


async def open_shared(config: SharedConfig, path: str, clock: Clock, ids: IdGen) -> SharedStores:
    """Lock the server's directory ``path``, wait for leadership, open the stores.

    Raises:
        DataDirectoryInUse: another process uses ``path``.
        LeaderAlive, Indeterminate: see ``take_lease``.
        UnknownFormat: a newer server wrote one of them, ``path`` holds a database of its own, or the blob
            directory belongs to another database.
    """
    from txn.persist.logs.postgres import APPEND_ATTEMPTS, PostgresConsensus  # takes asyncpg a while

    lock = await asyncio.to_thread(DirectoryLock.acquire, path, clock, SCRATCH)
    consensus: PostgresConsensus | None = None
    leadership: Leadership | None = None
    try:
        consensus = await PostgresConsensus.open(
            config.consensus,
            schema=config.schema,
            cluster=ids.next_id(),
            register_timeout_s=max(0.5, config.lease.duration_ms / 2000),
        )
        leadership = await take_leadership(
            consensus, clock, config.lease, standby=config.standby, waiting=config.waiting
        )
        fresh = (await consensus.log_bounds())[1] == 1
        blob: Blob
        if isinstance(config.blob, ObjectStore):
            blob = await open_objects(config.blob, path, consensus.cluster, fresh)
        else:
            root = str(config.blob)
            await asyncio.to_thread(_check_cluster, root, consensus.cluster, fresh)
            lease = leadership.lease
            blob = await asyncio.to_thread(
                LocalBlob,
                root,
                writer=f"{leadership.epoch}-{ids.next_id()}",
                leads=None if lease is None else lease.valid,
            )
        return SharedStores(
            lock=lock, consensus=consensus, blob=blob, leadership=leadership, append_attempts=APPEND_ATTEMPTS
        )
    except BaseException:
        if leadership is not None and leadership.lease is not None:
            await leadership.lease.release()
        if consensus is not None:
            await consensus.close()
        lock.release()
        raise


async def open_objects(store: ObjectStore, path: str, cluster: str, fresh: bool) -> ObjectBlob:
    """Open an object store for the server with the directory ``path``.

    Raises:
        StoreUnavailable: no such bucket, no access, no answer.
        UnknownFormat: it belongs to another database, or holds something else.
    """
    url = parse_object_url(store.url)
    blob = await ObjectBlob.open(url, os.path.join(path, CACHE_FOLDER), store.cache_bytes)
    found = await blob.claim(cluster, fresh=fresh)
    if found is None:
        what = (
            "is not empty and is not a blob store"
            if fresh
            else "has no blob store, but the log is not empty: is it the right one?"
        )
        raise UnknownFormat(f"{url.name} {what}")
    if found != cluster:
        raise UnknownFormat(f"{url.name} belongs to another database than the log ({found[:40]!r})")
    return blob


async def open_own_objects(
    store: ObjectStore, path: str, owned: tuple[str, bool], consensus: Consensus
) -> ObjectBlob:
    """Open the object store of a data directory with a log of its own. ``owned``: see ``object_cluster``.

    The directory names the store, durably, before anything is written to it. Raises as ``open_objects``.
    """
    cluster, known = owned
    fresh = (await consensus.log_bounds())[1] == 1
    if not known:
        text = f"{cluster}\n{parse_object_url(store.url).name}\n"
        await asyncio.to_thread(write_durably, os.path.join(path, OBJECTS_FILE), text)
    return await open_objects(store, path, cluster, fresh)


def object_cluster(path: str, url: str | None, new_id: str) -> tuple[str, bool] | None:
    """Return the identity of a data directory whose data files are in an object store, and whether it was known.

    ``url``: of the store that the server was given, None: it was given none, and its files are in the directory.

    Raises:
        UnknownFormat: the directory says otherwise.
    """
    name = os.path.join(path, OBJECTS_FILE)
    try:
        cluster, _, where = small_text(name).partition("\n")
    except FileNotFoundError:
        if url is not None and os.path.isdir(os.path.join(path, "blobs")):
            raise UnknownFormat(
                f"the data files of {path} are in the directory itself, not in an object store"
            ) from None
        return None if url is None else (new_id, False)
    if url is None:
        raise UnknownFormat(
            f"the data files of {path} are in {where.strip()}: start the server with blob set to it"
        )
    return cluster, True


def _check_cluster(root: str, cluster: str, fresh: bool) -> None:
    """Write the blob directory's identity, or check it. Durable on return.

    A leader sweeps away what its log does not name, so a directory of another database must not get that far.
    """
    name = os.path.join(root, CLUSTER_FILE)
    os.makedirs(root, mode=0o700, exist_ok=True)
    try:
        found = small_text(name).strip()
    except FileNotFoundError:
        if set(os.listdir(root)) - {"tmp", CLUSTER_FILE + ".new"}:
            raise UnknownFormat(f"{root} is not empty and is not a shared blob directory") from None
        if not fresh:
            raise UnknownFormat(
                f"{root} is empty, but the consensus store is not: is it the right one?"
            ) from None
        write_durably(name, cluster + "\n")
        return
    except UnicodeDecodeError:
        found = "not text"
    if found != cluster:
        raise UnknownFormat(f"{root} belongs to another database than the consensus store ({found[:40]!r})")
