"""Coordinators over one consensus and one blob store, each a process that can die, stand still, or be deposed.

    outside (consensus, blobs, clock)
       ├── server-1   epoch 1   killed
       ├── server-2   epoch 2   paused, then deposed: its appends are refused, its reads must not be believed
       └── server-3   epoch 3   the leader

A supervisor sees to it that a leader is there. A server whose store has failed (Fenced, CommitUnknown) stops, as
the real one does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.loop import Process, ProcessDied, SimLoop
from tests.sim.stores import Outside, SimBlob, SimClock, SimConsensus
from txn.base.errors import MissingFile, TxnError
from txn.base.time import SequentialIdGen
from txn.log.durable import DurableLog
from txn.log.leadership import take_leadership
from txn.log.lease import LeaseOptions
from txn.persist.location import Offload, inline
from txn.store import ShardStore, start_store
from txn.transaction.coordinator import TxnOptions


class NotLeader(Exception):
    """The server may have been deposed: what it read must not reach a client."""


class Server:
    """One process with a store, from its start to its end."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster = cluster
        self.name = f"server-{number}"
        self.process = Process(cluster.loop, self.name)
        self.clock = SimClock(cluster.outside)
        self.consensus = SimConsensus(cluster.outside)
        self.blob = SimBlob(cluster.outside)
        self.store: ShardStore | None = None
        self.epoch = 0
        self.rivalled = False
        """Another server was started while this one lived: files may be swept from under it."""

    @property
    def serving(self) -> bool:
        """It answers clients."""
        return self.process.alive and self.store is not None

    async def start(self) -> None:
        """Become the leader and recover. Runs inside the process."""
        leadership = None
        if self.cluster.lease_ms:
            options = LeaseOptions(holder=self.name, duration_ms=self.cluster.lease_ms)
            leadership = await take_leadership(self.consensus, self.clock, options, standby=True)
        log = await DurableLog.assemble(
            self.consensus,
            self.blob,
            self.clock,
            SequentialIdGen(),
            offload=self.cluster.offload,
            leadership=leadership,
        )
        self.epoch = log.epoch
        store = await start_store(log, self.cluster.options, offload=self.cluster.offload)
        store.on_failure(self._failed)
        store.on_long_turn(lambda: self.cluster.preempted(self))
        await store.keep_timelines(self.cluster.timelines)
        self.store = store
        self.cluster.note(f"{self.name} leads in epoch {self.epoch}")

    def _failed(self, error: Exception) -> None:
        self.cluster.note(f"{self.name} stops: {error}")
        asyncio.get_running_loop().call_later(self.cluster.rng.expovariate(100), self.die)

    async def arrive(self) -> None:
        """A statement has arrived: with a lease, it is answered only while nobody else can lead. Raises Fenced."""
        lease = None if self.store is None else self.store.lease
        if lease is not None and not lease.valid():
            await lease.wait_valid()

    async def confirm(self) -> None:
        """Without a lease: make sure that no other leader had taken over when this was asked (storage.md).

        What was read without a durable write reaches the client only after this.
        """
        if not self.cluster.lease_ms:
            await asyncio.sleep(self.cluster.rng.expovariate(2000))
            if self.cluster.outside.disk.epoch != self.epoch:
                raise NotLeader(self.name)

    def die(self) -> None:
        """End at once."""
        if self.process.alive:
            self.cluster.note(f"{self.name} dies")
            self.process.kill()
            self.cluster.changed()


@dataclass(slots=True)
class Counters:
    """What has happened to the servers of a run."""

    kills: int = 0
    starts: int = 0
    takeovers: int = 0
    pauses: int = 0
    closes: int = 0
    flushes: int = 0


class Cluster:
    """All servers of a run."""

    def __init__(
        self,
        loop: SimLoop,
        outside: Outside,
        rng: random.Random,
        options: TxnOptions,
        lease_ms: int,
        timelines: tuple[str, ...] = (),
    ) -> None:
        self.loop = loop
        self.outside = outside
        self.rng = rng
        self.options = options
        self.lease_ms = lease_ms
        self.timelines = timelines
        self.offload: Offload = inline
        self.servers: list[Server] = []
        self.counters = Counters()
        self.events: list[str] = []
        self.broken: list[str] = []
        self._changed = asyncio.Event()
        self._supervisor = loop.create_task(self._supervise())
        self._starting: Server | None = None
        self.preempted: Callable[[Server], None] = lambda server: None
        """Called in the middle of a server's turns, where it lets readers go first."""

    def note(self, text: str) -> None:
        """Add a line to the run's log."""
        self.events.append(f"{self.loop.time():.6f} {text}")

    def changed(self) -> None:
        """Something has died or come up."""
        self._changed.set()

    @property
    def leader(self) -> Server | None:
        """The newest server that serves."""
        return next((s for s in reversed(self.servers) if s.serving), None)

    @property
    def newest(self) -> Server | None:
        """The newest live server, perhaps still starting."""
        return next((s for s in reversed(self.servers) if s.process.alive), None)

    async def connect(self) -> Server:
        """Return a server for a new connection: mostly the leader, sometimes an older one that still answers."""
        while True:
            serving = [s for s in self.servers if s.serving]
            if serving:
                if len(serving) > 1 and self.rng.random() < 0.3:
                    return self.rng.choice(serving)
                return serving[-1]
            self._changed.clear()
            await self._changed.wait()

    async def launch(self) -> None:
        """Start one more server, whether or not another one serves."""
        server = Server(self, len(self.servers) + 1)
        for other in self.servers:
            other.rivalled = other.rivalled or other.process.alive
        self.servers.append(server)
        self.counters.starts += 1
        try:
            await server.process.call(server.start())
        except ProcessDied:
            return
        except TxnError as error:
            self.note(f"{server.name} could not start: {error}")
            server.die()
        except Exception as error:
            self.note(f"{server.name} could not start: {error}")
            self.broken.append(f"recovery of {server.name}: {type(error).__name__}: {error}")
            raise
        self.changed()

    async def _supervise(self) -> None:
        while True:
            if self.newest is None:
                await asyncio.sleep(self.rng.expovariate(50))
                if self.newest is None:
                    await self.launch()
                continue
            self._changed.clear()
            await self._changed.wait()

    # -- what happens to servers -----------------------------------------------------------------------

    def kill(self) -> None:
        """Kill the newest server, wherever it stands."""
        server = self.newest
        if server is None:
            self.loop.after_steps(20, self.kill)
        else:
            self.counters.kills += 1
            server.die()

    async def take_over(self) -> None:
        """Start another server beside the leader, which may stand still meanwhile and come back later."""
        old = self.leader
        self.counters.takeovers += 1
        paused = old is not None and (self.lease_ms > 0 or self.rng.random() < 0.6)
        if old is not None and paused:
            self.note(f"{old.name} stands still")
            old.process.pause()
        await self.launch()
        if old is not None:
            if paused:
                await asyncio.sleep(self.rng.expovariate(8))
                self.note(f"{old.name} goes on")
                old.process.resume()
            # Clients of the old one may go on with it for a while.
            await asyncio.sleep(self.rng.expovariate(10))
            old.die()

    async def pause(self) -> None:
        """Let the leader stand still for a while."""
        server = self.leader
        if server is not None:
            self.counters.pauses += 1
            server.process.pause()
            await asyncio.sleep(self.rng.expovariate(5))
            server.process.resume()

    async def close(self) -> None:
        """Shut the leader down in order."""
        server = self.leader
        if server is not None and server.store is not None:
            store = server.store
            server.store = None
            self.counters.closes += 1
            self.note(f"{server.name} shuts down")
            try:
                await server.process.call(store.close())
            except (ProcessDied, TxnError) as error:
                self.note(f"{server.name} did not shut down in order: {error!r}")
            except Exception as error:
                self.broken.append(f"{server.name} could not shut down: {error!r}")
                raise
            finally:
                server.die()

    async def flush(self) -> None:
        """Write hot rows of the leader to parts."""
        server = self.leader
        if server is not None and server.store is not None:
            self.counters.flushes += 1
            try:
                await server.process.call(server.store.flush(history=self.rng.random() < 0.3))
            except (ProcessDied, TxnError) as error:
                self.note(f"{server.name} did not flush: {error!r}")
                if isinstance(error, MissingFile) and not server.rivalled:
                    self.broken.append(f"{server.name} could not flush: {error!r}")
            except Exception as error:
                self.broken.append(f"{server.name} could not flush: {error!r}")
                raise

    async def tidy(self) -> None:
        """Drop old versions, and check every invariant of the leader."""
        server = self.leader
        if server is not None and server.store is not None:
            await self._inside(server, server.store)

    async def _inside(self, server: Server, store: ShardStore) -> None:
        async def work() -> None:
            store.core.vacuum()
            store.validate()
            store.inspect_log()
            for facts in store.inspect_shards():
                if not facts.since <= store.read_ts():
                    raise AssertionError(f"shard {facts.shard} is readable from {facts.since}")

        try:
            await server.process.call(work())
        except ProcessDied:
            return

    def broken_tasks(self) -> list[str]:
        """Return which background tasks of servers have ended with an exception."""
        rivalled = {server.process for server in self.servers if server.rivalled}
        return [
            f"{name} of {process.name}: {error!r}"
            for process, name, error in self.loop.broken_tasks()
            if not (isinstance(error, MissingFile) and process in rivalled)
        ]

    def stop(self) -> None:
        """The run is over."""
        self._supervisor.cancel()
        for server in self.servers:
            server.process.kill()
            server.blob.forget()
