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
from collections import Counter
from collections.abc import Awaitable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from tests.sim import limits
from tests.sim.checker import Anomaly, Observed, check
from tests.sim.checker.history import Outcome
from tests.sim.cluster import Cluster, Counters, NotLeader, Server
from tests.sim.loop import ProcessDied, SimLoop
from tests.sim.recorder import Record, Recorder
from tests.sim.session import Session, now
from tests.sim.stores import Outside
from tests.sim.tables import BANK, DDL, NAME_OF, OPENING, Sizes, spec
from tests.sim.workloads import BODIES, final
from tests.support.store import tiny_limits
from txn.coordinator import TxnOptions
from txn.errors import (
    CommitUnknown,
    DeadlineExceeded,
    Deadlock,
    DuplicateKey,
    Fenced,
    LockTimeout,
    ReadBelowSince,
    SchemaChanged,
    TxnError,
    WaitCancelled,
    WriteConflict,
)
from txn.locks.policy import POLICIES
from txn.types import Timestamp

TRANSACTIONS = 200
REFUSED = (
    Deadlock, WriteConflict, LockTimeout, DuplicateKey, SchemaChanged, WaitCancelled, DeadlineExceeded,
    ReadBelowSince, NotLeader, TimeoutError,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a seed is about."""

    connections: int
    policy: str
    lock_timeout_ms: int
    retention_ms: int
    lease_ms: int
    impatient: bool
    hot_rows: int
    disorder: float
    sizes: Sizes
    weights: tuple[int, ...]
    pk_hash: int
    v_hash: int
    rates: tuple[float, ...]
    limits: tuple[tuple[str, int], ...]
    events: tuple[tuple[int, str], ...]

    @classmethod
    def draw(cls, rng: random.Random, transactions: int) -> Plan:
        """Choose everything; at least one kill is among the events."""
        policy = rng.choice(["detect"] * 4 + sorted(POLICIES))
        kinds = [
            "kill",
            "take_over",
            "close",
            "pause",
            "storm",
            "full",
            "clock",
            "flush",
            "flush",
            "tidy",
            "tidy",
        ]
        events = [(rng.randrange(transactions), rng.choice(kinds)) for _ in range(rng.randrange(4, 14))]
        events.append((rng.randrange(10, transactions * 4 // 5), "kill"))
        lease_ms = rng.choice((0, 100, 400))
        if lease_ms and rng.random() < 0.6:
            events.append((rng.randrange(transactions // 2), "take_over"))
        weights = [weight * rng.choice((0, 1, 1, 2, 4)) for _body, weight, _reads in BODIES.values()]
        return cls(
            connections=rng.randrange(4, 9),
            policy=policy,
            lock_timeout_ms=50 if policy == "timeout" or rng.random() < 0.2 else 0,
            retention_ms=rng.choice((0, 0, 50, 1000)),
            impatient=lease_ms > 0 or rng.random() < 0.3,
            lease_ms=lease_ms,
            hot_rows=rng.choice((5, 20, 60, 50_000)),
            disorder=rng.choice((0.0, 0.2, 1.0)),
            sizes=Sizes.draw(rng),
            weights=tuple(weights if any(weights) else [1] * len(weights)),
            pk_hash=rng.getrandbits(6) & ~(rng.getrandbits(1) << 3),
            v_hash=rng.getrandbits(6),
            rates=tuple(rng.choice((0.0, 0.02, 0.1)) for _ in range(3)),
            limits=limits.draw(rng),
            events=tuple(sorted(events)),
        )


@dataclass(slots=True)
class Result:
    """What came of a seed. ``problems``: exceptions and broken invariants; ``digest``: of all that happened."""

    seed: int
    anomalies: list[Anomaly]
    problems: list[str]
    digest: str
    outcomes: Counter[str]
    servers: Counters
    steps: int
    history: list[Observed] = field(repr=False)
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
        self.outside = Outside(self.loop, random.Random(self.rng.getrandbits(64)))
        self.names = list(BODIES)
        self.recent: list[Timestamp] = []
        self.troubles: list[asyncio.Task[None]] = []
        self.cluster: Cluster

    async def main(self) -> None:
        """Make the tables, let clients and misfortune run, read everything at the end."""
        plan = self.plan
        options = TxnOptions(
            policy=plan.policy,
            lock_timeout_ms=plan.lock_timeout_ms,
            retention_ms=plan.retention_ms,
            hot_rows=plan.hot_rows,
        )
        self.cluster = Cluster(self.loop, self.outside, self.rng, options, plan.lease_ms)
        await self._one(0, self._make_tables, "make tables", False, await self.cluster.connect())
        clients = [self.loop.create_task(self._client(n)) for n in range(1, plan.connections + 1)]
        self.troubles.append(self.loop.create_task(self._misfortune()))
        await asyncio.gather(*clients)
        for trouble in self.troubles:
            trouble.cancel()
        self.loop.forget_trips()
        self.outside.set_weather(fail=0, done=0, late=0, full=0, slow=0)
        for server in self.cluster.servers:
            server.die()
        while True:
            server = await self.cluster.connect()
            if await self._one(0, final, "final read", True, server) == "ok":
                break
        assert server.store is not None
        await server.process.call(self._check_quiet(server))

    async def _check_quiet(self, server: Server) -> None:
        """Nobody is there any more: no lock, no hold, no broken invariant."""
        store = server.store
        assert store is not None
        await store.idle()
        store.validate()
        if len(store.core.locks) or len(store.core.holds):
            raise AssertionError(f"{len(store.core.locks)} locks and {len(store.core.holds)} holds are left")
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
        if read_only and record.session and self.recent and rng.random() < 0.1:
            at = rng.choice(self.recent[-20:])
            if at > store.read_ts():
                at = None
            record.fresh = at is None
        try:
            await server.arrive()
            txn = store.begin(
                read_only=read_only,
                session=record.session,
                at=at,
                deadline_ms=rng.randrange(1, 100) if record.session and rng.random() < 0.05 else None,
            )
        except (ReadBelowSince, Fenced):
            return "fail"
        session = Session(txn, record, self.recorder, rng, self.plan.sizes, server.arrive)
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
            answer = txn.commit()
            if isinstance(answer, Awaitable):
                self.recent.append(await answer)
            else:
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
            return "fail"
        except Exception as error:
            txn.rollback()
            if isinstance(error, FileNotFoundError) and self.outside.disk.epoch != server.epoch:
                self.outcomes["file swept away"] += (
                    1  # by the next leader, which this server has yet to notice
                )
                return "fail"
            self.problems.append(f"T{record.id} {record.note}: {type(error).__name__}: {error}")
            raise

    async def _statements(self, session: Session, body: Any, read_only: bool) -> None:
        """Run the body; now and then a second one, or one that a savepoint takes back."""
        rng, record = self.rng, session.record
        if record.session and not read_only and rng.random() < 0.15:
            mark, count = session.txn.savepoint(), len(record.ops)
            other = BODIES[rng.choices(self.names, self.plan.weights)[0]][0]
            await other(session)
            if rng.random() < 0.6:
                session.txn.rollback_to(mark)
                session.txn.next_statement()
                record.undo_to(count)
        await body(session)

    async def _make_tables(self, s: Session) -> None:
        """Create all tables in one transaction, with accounts and a marker in them."""
        for n, shard in enumerate(NAME_OF):
            pk_hash, v_hash = bool(self.plan.pk_hash >> n & 1), bool(self.plan.v_hash >> n & 1)
            s.txn.create_shard(spec(shard, pk_hash, v_hash))
        s.record.read(("ddl", "schema"), None)
        s.record.write(("ddl", "schema"), 0)
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
            run.loop.bury()
        problems[:0] = run.cluster.broken
        problems += run.loop.problems + broken_tasks
        history = run.recorder.history()
        digest = hashlib.sha256()
        for line in (*map(str, history), *run.cluster.events, f"{run.loop.steps} {run.loop.time():.9f}"):
            digest.update(line.encode() + b"\n")
        anomalies = check(history)
        return Result(
            seed, anomalies, problems, digest.hexdigest(), run.outcomes, run.cluster.counters, run.loop.steps, history,
            run.cluster.events,
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
