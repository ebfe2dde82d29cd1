"""Clients that follow tables through everything that happens to servers (C8, N6).

    server-1   rows at 40 · +a -b at 57 · progress 57 · +c ...   dies
    server-3                                as of 57 · +c at 60 · +d at 60 · progress 75 ...   and so on to the end

A subscriber keeps one state. It believes what has come when progress confirms it, forgets the rest when its connection
breaks, and goes on with a subscription as of its last progress, at whatever server answers; where that timestamp is not
readable any more, or the table's columns have changed, it begins anew with all rows. Now and then it tells what
it knows: that is a read of the past, which the checker compares with what all others saw, and which is compared at once
with a transaction at that timestamp. At the end each reads up to the last timestamp there is.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from tests.sim.checker import Event, Fact, Op, Stream
from tests.sim.cluster import NotLeader, Server
from tests.sim.loop import ProcessDied
from tests.sim.recorder import Record
from tests.sim.session import now
from tests.sim.tables import BANK, CELLS, DDL, EVENTS, LISTS, NAMES, OPENING, REFS, Sizes, facts, families
from txn.base.errors import MissingFile, ReadBelowSince, SubscriptionEnded, SubscriptionLapsed, TxnError
from txn.base.types import ShardId, Timestamp
from txn.log.timeline import DEFAULT_TIMELINE
from txn.store import ShardStore
from txn.upkeep.subscribe import Changes, Subscription
from txn.upkeep.subscribe import Event as Delivered

if TYPE_CHECKING:
    from tests.sim.run import Run

TABLES = (LISTS, CELLS, BANK, EVENTS, NAMES, DDL, REFS)

State = dict[Hashable, Any]


class Subscriber:
    """One client. ``state`` is what the tables hold at ``at``; None: it knows nothing."""

    def __init__(self, run: Run, number: int) -> None:
        rng = run.rng
        self.run = run
        self.session = 90 + number
        self.tables: tuple[ShardId, ...] = tuple(
            sorted(rng.sample(TABLES, rng.randrange(1, len(TABLES) + 1)))
        )
        self.rows = rng.random() < 0.85
        """Without: it is only told at which timestamps something has changed."""
        self.slow = rng.random() < 0.3
        self.state: State = {}
        self.at: int | None = None
        self.epoch = 0
        """The newest leader that it has heard from."""
        self.stream: Stream | None = None

    # -- outside of any server ----------------------------------------------------------------------

    async def follow(self) -> None:
        """Subscribe again and again until the clients have gone."""
        run = self.run
        while not run.over:
            await asyncio.sleep(run.rng.expovariate(50))
            server = await run.cluster.connect()
            if run.over:
                return
            await self._connect(server, None)

    async def finish(self, server: Server, last: Timestamp) -> None:
        """Read what is left, up to ``last`` and no further."""
        while self.at != last or self.stream is None or not self.stream.ended:
            await self._connect(server, Timestamp(last + 1))
        if self.rows:
            self._tell(self.run.recorder.tick(), fresh=False)

    async def _connect(self, server: Server, until: Timestamp | None) -> None:
        try:
            await server.process.call(self._subscribe(server, until))
        except ProcessDied:
            self.run.outcomes["subscription cut"] += 1

    # -- in a server --------------------------------------------------------------------------------

    async def _subscribe(self, server: Server, until: Timestamp | None) -> None:
        store, rng, run = server.store, self.run.rng, self.run
        if store is None:
            return
        final = until is not None
        resumed = self.stream if self.at is not None and (final or rng.random() < 0.85) else None
        if resumed is not None:
            assert self.at is not None
            as_of: Timestamp | None = Timestamp(self.at)
        else:
            self.at, self.state = None, {}
            as_of = rng.choice(run.recent[-20:]) if run.recent and not final and rng.random() < 0.2 else None
        began = run.recorder.tick()
        try:
            await server.arrive()
            if as_of is not None and as_of > store.read_ts():
                if server.epoch >= self.epoch and resumed is not None:
                    raise AssertionError(f"progress {as_of} came before {store.read_ts()} was readable")
                return  # a leader of old, who lags behind
            if not final and rng.random() < 0.25:
                until = Timestamp(store.present() + rng.choice((1, 1 << 16, 30 << 16, 300 << 16)))
            subscription = store.subscribe(
                self.tables,
                as_of,
                until,
                snapshot=self.rows and resumed is None,
                rows=self.rows,
                session=self.session,
            )
        except ReadBelowSince:
            run.outcomes["resume too late" if resumed else "ReadBelowSince"] += 1
            self.at = None
            return
        except TxnError:
            return
        if resumed is not None:
            run.outcomes["resumed"] += 1
            run.outcomes["resumed at another server"] += server.epoch != self.epoch
        stream = self.stream = Stream(
            id=len(run.recorder.streams) + 1,
            families=tuple(f for shard in self.tables for f in families(shard)),
            start=subscription.position,
            snapshot=self.rows and resumed is None,
            resumes=resumed,
            until=until,
            rows=self.rows,
        )
        run.recorder.streams.append(stream)
        self.epoch = max(self.epoch, server.epoch)
        try:
            await self._read(server, store, subscription, stream, None if as_of is not None else began)
        except (SubscriptionEnded, SubscriptionLapsed) as ended:
            run.outcomes[type(ended).__name__] += 1
            self.at = None
        except TxnError as error:
            run.outcomes[f"subscription: {type(error).__name__}"] += 1
            # Swept away by the next leader, which this server has yet to notice; else it was lost.
            if isinstance(error, MissingFile) and run.outside.disk.epoch == server.epoch:
                run.problems.append(f"subscription {stream.id}: {error}")
        except Exception as error:
            run.problems.append(f"subscription {stream.id}: {type(error).__name__}: {error}")
            raise
        finally:
            subscription.close()

    async def _read(
        self, server: Server, store: ShardStore, subscription: Subscription, stream: Stream, began: int | None
    ) -> None:
        """Take events until the end, or until it has had enough. ``began``: it asked for the present then."""
        rng, final = self.run.rng, self.run.over
        pending: list[tuple[int, Fact]] = []
        while True:
            event = await self._next(subscription)
            if event is None:
                stream.ended = stream.until is not None and subscription.ends_by(subscription.position)
                return
            if isinstance(event, Changes):
                found = self._facts(event)
                pending += [(event.ts, fact) for fact in found]
                stream.events.append(Event("changes", event.ts, tuple(found)))
            else:
                stream.events.append(Event("progress", event.ts))
                self._believe(pending)
                pending.clear()
                self.at = event.ts
                if began is not None:
                    await self._first(server, began)
                    began = None
                elif self.rows and rng.random() < 0.15:
                    record = self._tell(self.run.recorder.tick(), fresh=False)
                    if rng.random() < 0.5:
                        await self._compare(store, record)
            if not final:
                if rng.random() < 0.03:
                    return
                if self.slow and rng.random() < 0.3:
                    await asyncio.sleep(rng.expovariate(20))

    async def _next(self, subscription: Subscription) -> Delivered | None:
        """Return the next event in one of the ways there are; None: there are no more."""
        rng = self.run.rng
        while True:
            draw = rng.random()
            try:
                if draw < 0.5:
                    return await anext(subscription)
                if draw < 0.75:
                    event = await subscription.poll(rng.choice((0, 0.001, 0.1)))
                else:
                    event = None
                    async with asyncio.timeout(rng.expovariate(200)):  # cancelled, it loses nothing
                        event = await anext(subscription)
                if event is not None:
                    return event
            except StopAsyncIteration:
                return None
            except TimeoutError:
                continue

    def _facts(self, changes: Changes) -> list[Fact]:
        if not self.rows:
            return []
        return [
            Fact(key, value, change.diff)
            for change in changes.rows
            for key, value in facts(change.shard, change.row)
        ]

    def _believe(self, pending: list[tuple[int, Fact]]) -> None:
        """Take over what has come, commit by commit: in each, what goes before what comes."""
        for _ts, commit in itertools.groupby(pending, key=lambda change: change[0]):
            facts_of_commit = sorted((fact for _ts, fact in commit), key=lambda fact: fact.diff)
            for fact in facts_of_commit:
                if fact.diff < 0:
                    self.state.pop(fact.key, None)
                else:
                    self.state[fact.key] = fact.value

    # -- what it knows ------------------------------------------------------------------------------

    async def _first(self, server: Server, began: int) -> None:
        """All rows have come: those of a moment after it asked, if the server led then."""
        fresh = True
        try:
            await server.confirm()
        except NotLeader:
            fresh = False
        if self.rows:
            self._tell(began, fresh=fresh)

    def _tell(self, began: int, *, fresh: bool) -> Record:
        """Note the whole state as a read at its timestamp."""
        assert self.at is not None
        record = self.run.recorder.state(f"state of subscriber {self.session}", began, self.at, fresh=fresh)
        record.timeline = DEFAULT_TIMELINE
        sizes = self.run.plan.sizes
        for shard in self.tables:
            record.ops += reads(shard, self.state, sizes)
        return record

    async def _compare(self, store: ShardStore, record: Record) -> None:
        """A transaction at the timestamp reads the same: the subscription holds it."""
        assert record.ts is not None
        txn = store.begin(read_only=True, session=self.session, at=Timestamp(record.ts))
        try:
            seen: State = {}
            for shard in self.tables:
                rows = [row async for chunk in txn.scan(shard) for row in chunk]
                seen.update(fact for row in rows for fact in facts(shard, row.values))
            mine, theirs = (sorted(map(str, state.items())) for state in (self.state, seen))
            record.ops.append(Op("total", f"tables at {record.ts}", (theirs, mine)))
        finally:
            await now(txn.commit())


def reads(shard: ShardId, state: State, sizes: Sizes) -> list[Op]:
    """Return a table's part of a state as reads of all its keys, those included that are not there."""
    if shard == LISTS:
        return [Op("list", ("list", k), state.get(("list", k), ()), "scan") for k in range(sizes.lists)]
    if shard == DDL:
        marker = state.get(("ddl", "marker"))
        epoch = 0 if marker is None else marker[0]
        keys = [("ddl", epoch, k) for k in range(1, sizes.ddl)]
        return [
            Op("read", ("ddl", "marker"), marker, "scan"),
            *(Op("list", key, state.get(key, ()), "scan") for key in keys),
        ]
    if shard == BANK:
        accounts = [(("bank", k), state.get(("bank", k))) for k in range(sizes.bank)]
        total = sum(value[0] for _key, value in accounts if value is not None)
        return [
            *(Op("read", key, value, "scan") for key, value in accounts),
            Op("total", "bank", (OPENING * sizes.bank, total)),
        ]
    if shard == NAMES:
        keys_of_names = [("u", u) for u in range(sizes.names)]
        keys_of_names += [key for key in state if isinstance(key, tuple) and key[0] == "id"]
        return [Op("read", key, state.get(key), "scan") for key in keys_of_names]
    if shard == REFS:
        return [
            Op("read", key, value, "scan")
            for key, value in state.items()
            if isinstance(key, tuple) and key[0] == "refs"
        ]
    name, count = ("cells", sizes.cells) if shard == CELLS else ("events", sizes.events)
    return [Op("read", (name, k), state.get((name, k)), "scan") for k in range(count)]
