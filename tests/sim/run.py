"""One seed, one run: servers, clients and misfortune, then the checker.

python -m tests.sim.run SEED [--trace]     replays a seed and prints what happened
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import logging
import os
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Awaitable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from tests.sim import limits
from tests.sim.checker import Anomaly, Observed, Stream, check
from tests.sim.checker.history import Outcome
from tests.sim.cluster import Cluster, Counters, NotLeader, Server
from tests.sim.loop import ProcessDied, SimLoop
from tests.sim.plan import Plan
from tests.sim.recorder import Record, Recorder
from tests.sim.session import GivenUp, Session, note_row, now
from tests.sim.stores import Outside
from tests.sim.subscribers import Subscriber
from tests.sim.tables import BANK, CELLS, DDL, LISTS, NAME_OF, OPENING, PK, TIDE, TIDES, spec
from tests.sim.workloads import BODIES, final, final_tide, tide
from tests.support.store import tiny_limits
from txn.base.errors import (
    CommitUnknown,
    DeadlineExceeded,
    Deadlock,
    DuplicateKey,
    LockTimeout,
    MissingFile,
    ReadBelowSince,
    SchemaChanged,
    TimestampPassed,
    TxnError,
    WaitCancelled,
    WriteConflict,
)
from txn.base.types import Timestamp
from txn.log.timeline import DEFAULT_TIMELINE
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions

TRANSACTIONS = 200
REFUSED = (
    Deadlock, WriteConflict, LockTimeout, DuplicateKey, SchemaChanged, WaitCancelled, DeadlineExceeded,
    ReadBelowSince, NotLeader, TimeoutError, TimestampPassed, GivenUp,
)  # fmt: skip


@dataclass(slots=True)
class Result:
    """What came of a seed. ``problems``: exceptions and broken invariants; ``digest``: of all that happened.

    ``transactions``: that clients have asked for, at least ``TRANSACTIONS``; what subscribers do does not count.
    """

    seed: int
    anomalies: list[Anomaly]
    problems: list[str]
    digest: str
    outcomes: Counter[str]
    servers: Counters
    steps: int
    transactions: int
    history: list[Observed] = field(repr=False)
    streams: list[Stream] = field(repr=False)
    events: list[str] = field(repr=False)

    @property
    def failed(self) -> bool:
        """Something is wrong."""
        return bool(self.anomalies or self.problems)

    def explain(self) -> str:
        """Return what is wrong and how to see it again."""
        lines = [f"seed {self.seed} fails; replay it with: python -m tests.sim.run {self.seed} --trace"]
        lines += self.problems[:5]
        lines += [str(anomaly) for anomaly in self.anomalies[:3]]
        if len(self.anomalies) > 3:
            lines.append(f"... and {len(self.anomalies) - 3} more")
        return "\n".join(lines)


class Run:
    """The clients' and the misfortune's side of a run."""

    def __init__(self, seed: int, transactions: int) -> None:
        self.rng = random.Random(seed)
        self.transactions = transactions
        self.plan = Plan.draw(self.rng, transactions)
        self.recorder = Recorder()
        self.outcomes: Counter[str] = Counter()
        self.problems: list[str] = []
        self.loop = SimLoop(random.Random(self.rng.getrandbits(64)), self.plan.disorder)
        self.preempting = random.Random(seed)  # of its own: who reads in between changes nothing else
        self.outside = Outside(self.loop, random.Random(self.rng.getrandbits(64)))
        self.names = list(BODIES)
        self.recent: list[Timestamp] = []
        self.recent_tides: list[Timestamp] = []
        self.troubles: list[asyncio.Task[None]] = []
        self.over = False
        """The clients have gone."""
        self.cluster: Cluster

    async def main(self) -> None:
        """Make the tables, let clients and misfortune run, read everything at the end."""
        plan = self.plan
        options = TxnOptions(
            policy=plan.policy,
            lock_timeout_ms=plan.lock_timeout_ms,
            retention_ms=plan.retention_ms,
            hot_rows=plan.hot_rows,
            subscription_versions=plan.subscription_versions,
        )
        self.cluster = Cluster(
            self.loop, self.outside, self.rng, options, plan.lease_ms, (TIDES,) if plan.tides else ()
        )
        self.cluster.preempted = self._preempt
        await self._one(0, self._make_tables, "make tables", False, await self.cluster.connect())
        self.subscribers = [Subscriber(self, n) for n in range(plan.subscribers)]
        following = [self.loop.create_task(subscriber.follow()) for subscriber in self.subscribers]
        clients = [self.loop.create_task(self._client(n)) for n in range(1, plan.connections + 1)]
        self.troubles.append(self.loop.create_task(self._misfortune()))
        await asyncio.gather(*clients)
        self.over = True
        for trouble in self.troubles:
            trouble.cancel()
        self.loop.forget_trips()
        self.outside.set_weather(fail=0, done=0, late=0, full=0, slow=0)
        for server in self.cluster.servers:
            server.die()
        await asyncio.gather(*following)
        for name, body in (("final tide", final_tide), ("final read", final))[not plan.tides :]:
            while True:
                server = await self.cluster.connect()
                if await self._one(0, body, name, True, server) == "ok":
                    break
        assert server.store is not None
        last = self.recorder.records[-1].ts
        assert last is not None
        for subscriber in self.subscribers:
            await subscriber.finish(server, last)
        await server.process.call(self._check_quiet(server))

    async def _check_quiet(self, server: Server) -> None:
        """Nobody is there any more: no lock, no hold, no broken invariant."""
        store = server.store
        assert store is not None
        await store.idle()
        store.validate()
        holds = sum(len(timeline.holds) for timeline in store.core.timelines)
        if len(store.core.locks) or holds:
            raise AssertionError(f"{len(store.core.locks)} locks and {holds} holds are left")
        await store.close()

    # -- clients ---------------------------------------------------------------------------------------

    async def _client(self, session: int) -> None:
        server: Server | None = None
        rng = self.rng
        while len(self.recorder.records) <= self.transactions or not self.cluster.counters.kills:
            await asyncio.sleep(rng.expovariate(200))
            if server is None or not server.serving:
                server = await self.cluster.connect()
            (name,) = rng.choices(self.names, self.plan.weights)
            body, _weight, reads = BODIES[name]
            read_only = reads and rng.random() < 0.3
            if await self._one(session, body, name, read_only, server) == "unknown":
                server = None

    async def _one(self, session: int, body: Any, name: str, read_only: bool, server: Server) -> Outcome:
        """Run one transaction as a client does: ask, and take what comes back."""
        record = self.recorder.begin(session, name)
        impatient = self.plan.impatient and session
        try:
            async with asyncio.timeout(self.rng.uniform(0.05, 0.6) if impatient else None):
                outcome = await server.process.call(self._backend(server, record, body, read_only))
        except TimeoutError:
            # The server goes on with it, and nobody listens.
            outcome = "fail" if read_only else "unknown"
            self.outcomes["given up"] += 1
        except ProcessDied:
            outcome = "unknown" if record.committing else "fail"
            self.outcomes["connection lost"] += 1
        self.recorder.finish(record, outcome)
        self.outcomes[outcome] += 1
        return outcome

    async def _backend(self, server: Server, record: Record, body: Any, read_only: bool) -> Outcome:
        """The server's side of a transaction."""
        store, rng = server.store, self.rng
        if store is None:
            return "fail"
        at = None
        tides = body in (tide, final_tide)
        recent = self.recent_tides if tides else self.recent
        timeline = TIDES if tides else DEFAULT_TIMELINE
        record.timeline = timeline
        try:
            await server.arrive()
            if read_only and record.session:
                draw = rng.random()
                if draw < 0.1 and not tides:
                    return await self._glance(server, store, record)
                if draw < 0.2 and recent:
                    at = rng.choice(recent[-20:])
                    if at > store.read_ts(timeline):
                        at = None
                    record.fresh = at is None
                elif draw < 0.3:
                    # Above everything there is: what is committed now has to be waited for, what comes later is above.
                    at = store.present(timeline) + rng.choice((-2, 0, 1, 5 << 16))
                    at = Timestamp(max(at, store.read_ts(timeline)))
                    async with asyncio.timeout(1):  # the clock may have been set back an hour
                        await store.reach(at, timeline)
            txn = store.begin(
                read_only=read_only,
                session=record.session,
                at=at,
                timeline=None if self.plan.tides and not tides and rng.random() < 0.3 else timeline,
                deadline_ms=rng.randrange(1, 100) if record.session and rng.random() < 0.05 else None,
            )
        except (TxnError, NotLeader, TimeoutError) as error:
            self.outcomes[type(error).__name__] += 1
            return "fail"
        session = Session(txn, record, self.recorder, rng, self.plan.sizes, server.arrive, store)
        try:
            async with asyncio.timeout(
                rng.expovariate(20) if record.session and rng.random() < 0.05 else None
            ):
                await self._statements(session, body, read_only)
                await session.pause()
            if record.session and rng.random() < 0.04:
                txn.rollback()
                return "fail"
            record.committing = session.wrote
            if session.wrote and rng.random() < 0.06 and record.session:
                wanted = Timestamp(
                    store.present(timeline) + rng.choice((-1, 0, 1, 1 << 16, 20 << 16, 60_000 << 16))
                )
                answer = txn.commit_at(wanted)
            else:
                wanted, answer = None, txn.commit()
            if isinstance(answer, Awaitable):
                record.ts = await answer
                recent.append(record.ts)
                if wanted is not None and record.ts != wanted and session.changed:
                    raise AssertionError(f"committed at {record.ts}, not at {wanted}")
            else:
                record.ts = answer
                await server.confirm()  # nothing was written durably, so nothing has told that it still leads
            return "ok"
        except REFUSED as refused:
            txn.rollback()
            self.outcomes[type(refused).__name__] += 1
            return "fail"
        except CommitUnknown:
            txn.rollback()
            return "unknown" if record.committing else "fail"
        except TxnError as error:
            txn.rollback()
            self.outcomes[type(error).__name__] += 1
            # Swept away by the next leader, which this server has yet to notice; else it was lost.
            if isinstance(error, MissingFile) and self.outside.disk.epoch == server.epoch:
                self.problems.append(f"T{record.id} {record.note}: {error}")
            return "fail"
        except Exception as error:
            txn.rollback()
            if isinstance(error, ValueError) and "beyond the reservation" in str(error):
                self.outcomes["too far ahead"] += 1
                return "fail"
            self.problems.append(f"T{record.id} {record.note}: {type(error).__name__}: {error}")
            raise

    async def _glance(self, server: Server, store: ShardStore, record: Record) -> Outcome:
        """Read one row as the shortest of transactions does; there may be no answer."""
        shard = self.rng.choice((LISTS, CELLS, BANK))
        k = self.rng.randrange({LISTS: self.plan.sizes.lists, CELLS: self.plan.sizes.cells}.get(shard, 2))
        row, record.ts = store.read_now(shard, PK, (k,)), store.read_ts()
        await server.confirm()
        if row is None:
            return "fail"
        note_row(record, shard, k, row, "key")
        return "ok"

    def _preempt(self, server: Server) -> None:
        """Read one row in the middle of a turn of the server's (``pgwire.session.turns``), answered at once."""
        store, rng = server.store, self.preempting
        if store is None or self.over or rng.random() > 0.1:
            return
        leads = server.epoch == self.outside.disk.epoch if store.lease is None else store.lease.valid()
        shard = rng.choice((LISTS, CELLS, BANK))
        k = rng.randrange({LISTS: self.plan.sizes.lists, CELLS: self.plan.sizes.cells}.get(shard, 2))
        began = self.recorder.tick()
        row = store.read_now(shard, PK, (k,)) if leads else None
        if row is not None:
            self.outcomes["preempting"] += 1
            record = self.recorder.state("read in the middle of a turn", began, store.read_ts(), fresh=True)
            record.timeline = DEFAULT_TIMELINE
            note_row(record, shard, k, row, "key")

    async def _statements(self, session: Session, body: Any, read_only: bool) -> None:
        """Run the body; now and then a second one, or one that a savepoint takes back."""
        rng, record = self.rng, session.record
        if record.session and not read_only and rng.random() < 0.15:
            mark, count = session.txn.savepoint(), len(record.ops)
            other = BODIES[rng.choices(self.names, self.plan.weights)[0]][0]
            if (other is tide) == (body is tide):
                await other(session)
            if rng.random() < 0.6:
                session.txn.rollback_to(mark)
                session.txn.next_statement()
                record.undo_to(count)
        await body(session)

    async def _make_tables(self, s: Session) -> None:
        """Create all tables in one transaction, with accounts and a marker in them."""
        for n, shard in enumerate(NAME_OF):
            if shard == TIDE and not self.plan.tides:
                continue
            pk_hash, v_hash = bool(self.plan.pk_hash >> n & 1), bool(self.plan.v_hash >> n & 1)
            s.txn.create_shard(spec(shard, pk_hash, v_hash))
            s.record.read(("schema", NAME_OF[shard]), None)
            s.record.write(("schema", NAME_OF[shard]), 0)
        await s.statement(DDL)
        tag = self.recorder.value()
        await now(s.txn.insert(DDL, [(0, 0, str(tag))]))
        s.record.read(("ddl", "marker"), None)
        s.record.write(("ddl", "marker"), (0, tag))
        for k in range(self.plan.sizes.bank):
            await s.statement(BANK)
            s.record.read(("bank", k), None)
            await s.write(BANK, k, None, OPENING)

    # -- misfortune ------------------------------------------------------------------------------------

    async def _misfortune(self) -> None:
        """Let the planned events happen when so many transactions are done, and a little later."""
        cluster, rng = self.cluster, self.rng
        for count, kind in self.plan.events:
            while len(self.recorder.records) < count:
                await asyncio.sleep(0.002)
            cluster.note(f"event: {kind}")
            match kind:
                case "kill":
                    self.loop.after_steps(rng.randrange(1, 300), cluster.kill)
                case "storm":
                    fail, done, late = self.plan.rates
                    self.outside.set_weather(fail=fail, done=done, late=late, slow=0.02)
                    self._meanwhile(self._calm())
                case "full":
                    self.outside.set_weather(full=rng.choice((0.2, 1.0)))
                    self._meanwhile(self._calm())
                case "clock":
                    self.outside.wall_offset_ms += rng.choice((-3_600_000, -5_000, 2_000, 3_600_000))
                case "take_over":
                    self._meanwhile(cluster.take_over())
                case "close":
                    self._meanwhile(cluster.close())
                case "pause":
                    self._meanwhile(cluster.pause())
                case "flush":
                    self._meanwhile(cluster.flush())
                case "tidy":
                    self._meanwhile(cluster.tidy())

    def _meanwhile(self, work: Coroutine[Any, Any, None]) -> None:
        self.troubles.append(self.loop.create_task(work))

    async def _calm(self) -> None:
        await asyncio.sleep(self.rng.expovariate(5))
        self.outside.set_weather(fail=0, done=0, late=0, full=0, slow=0)


def run_seed(seed: int, transactions: int = TRANSACTIONS) -> Result:
    """Run one seed to its end and check it."""
    with ExitStack() as stack:
        stack.enter_context(tiny_limits())
        stack.enter_context(mock.patch.object(gc, "freeze"))
        if os.access("/dev/shm", os.W_OK):
            stack.enter_context(mock.patch.object(tempfile, "tempdir", "/dev/shm"))  # copies of blobs
        said = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        logging.disable(logging.CRITICAL)
        stack.callback(logging.disable, logging.NOTSET)
        collecting = gc.isenabled()
        gc.disable()
        if collecting:
            stack.callback(gc.enable)
        run = Run(seed, transactions)
        stack.enter_context(limits.lowered(run.plan.limits))
        try:
            run.loop.run_until_complete(run.main())
        except Exception as error:
            if not run.problems:
                run.problems.append(f"{type(error).__name__}: {error}")
        finally:
            problems = list(run.problems)  # before coroutines of dead processes are closed
            run.cluster.stop()
            run.loop.close()
            broken_tasks = run.cluster.broken_tasks()
            warned = [str(warning.message) for warning in said]  # not what is left of dead processes
            run.loop.bury()
        problems[:0] = run.cluster.broken
        problems += run.loop.problems + broken_tasks + warned
        history = run.recorder.history()
        streams = run.recorder.streams
        digest = hashlib.sha256()
        for line in (
            *map(str, history),
            *map(str, streams),
            *run.cluster.events,
            f"{run.loop.steps} {run.loop.time():.9f}",
        ):
            digest.update(line.encode() + b"\n")
        anomalies = check(history, streams)
        return Result(
            seed, anomalies, problems, digest.hexdigest(), run.outcomes, run.cluster.counters, run.loop.steps,
            sum(1 for record in run.recorder.records if record.session), history, streams, run.cluster.events,
        )  # fmt: skip


def main() -> int:
    """Replay seeds from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.run", description="Replay simulated seeds.")
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--trace", action="store_true", help="print servers' events and all transactions")
    options = parser.parse_args()
    failed = 0
    for seed in options.seeds:
        result = run_seed(seed)
        if options.trace:
            print(*result.events, *result.history, sep="\n")
        print(f"seed {seed}: {dict(result.outcomes)} {result.servers} digest {result.digest[:16]}")
        if result.failed:
            failed += 1
            print(result.explain())
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
