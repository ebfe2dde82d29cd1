"""A store's inner state as plain values, for system views: shards, holds, the oracle, transactions.

    Coordinator ─┬─ shards  ──> ShardFacts         since, uppers, parts, bytes
                 ├─ holds   ──> HoldFacts          who still reads when
                 ├─ active  ──> TransactionFacts   state, locks, what is staged
                 └─ oracle  ──> TimelineFacts      read, write and durable bounds

Everything is read in one turn of the event loop and consistent in itself; nothing is locked or kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from txn.base.slices import at_once
from txn.base.types import ShardId, Timestamp, TxnId
from txn.mvcc.compaction import Written
from txn.transaction.coordinator import Coordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFacts:
    """One shard. It is readable in ``[since, logical_upper)``; ``physical_upper`` is just above its last change (C26).
    ``registered`` is when it was made (C23).

    ``generation`` counts TRUNCATEs and rewrites; ``versions`` are the hot ones, superseded ones included.
    """

    shard: ShardId
    timeline: str
    registered: Timestamp
    since: Timestamp
    physical_upper: Timestamp
    logical_upper: Timestamp
    generation: int
    rows: int
    hot_rows: int
    parts: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldFacts:
    """One read hold. ``txn`` is 0 for one that is no transaction's, ``session`` where nobody has said whose it is."""

    timeline: str
    serial: int
    holder: Literal["transaction", "subscription", "named subscription", "snapshot"]
    ts: Timestamp
    txn: TxnId
    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFacts:
    """One running transaction. ``rows``: intents staged; ``locks``: granules held.

    ``unlocked``: the shards that it has read without a lock.
    ``timeline``: None while it is open in which one it reads.
    """

    txn: TxnId
    session: int
    timeline: str | None
    state: Literal["reading", "writing", "committing"]
    read_only: bool
    read_ts: Timestamp
    locks: int
    rows: int
    waiting: bool
    unlocked: tuple[ShardId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFacts:
    """One timeline and its oracle.

    ``write_ts`` is the highest timestamp handed out, ``bound`` the durable reservation that all stay below (A22),
    ``skew_ms`` how far the wall clock is behind the timestamps' clock.
    """

    name: str
    read_ts: Timestamp
    write_ts: Timestamp
    bound: Timestamp
    since: Timestamp
    skew_ms: int
    epoch: int
    shards: int
    holds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """The txns shard. Entries ``first .. applied`` are in the log; all of them are applied (C24, C27).

    ``critical_since``: entries below it are needed by nobody, and may be trimmed (C40). ``upper``: every
    shard is readable below it (C16). ``subscriptions``: how many read changes; ``recent``: up from here they
    find them in memory. ``new_entries``, ``new_bytes``: what has come since the start.
    """

    first: int
    applied: int
    critical_since: int
    entries: int
    bytes: int
    upper: Timestamp
    subscriptions: int
    recent: Timestamp
    new_entries: int
    new_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFacts:
    """Memory and upkeep. ``hot_bytes`` is an estimate; past ``hot_limit`` rows are flushed, at twice that writers wait.

    ``superseded``: hot versions that have ended. ``doomed``: parts that go once nobody can have captured them.
    ``damaged``: what is wrong with the shards that are not served, or not whole.
    """

    hot_bytes: int
    hot_limit: int
    superseded: int
    cached_bytes: int
    log_bytes: int
    doomed: int
    written: Written
    damaged: tuple[str, ...]


def storage(core: Coordinator) -> StorageFacts:
    """Return what memory and upkeep look like now."""
    generations = [g for history in core.shards.values() for g in history.generations()]
    return StorageFacts(
        hot_bytes=at_once(core.hot_sizes())[0],
        hot_limit=core.options.hot_bytes,
        superseded=sum(g.log.superseded for g in generations),
        cached_bytes=core.log.cache.bytes,
        log_bytes=core.log.length,
        doomed=len(core.doomed_parts),
        written=core.written,
        damaged=(
            *(f"shard {shard}: {damage}" for shard, damage in core.log.damaged.items()),
            *(f"shard {shard}: {damage}" for shard, found in core.log.salvaged.items() for damage in found),
        ),
    )


def shards(core: Coordinator) -> Iterator[ShardFacts]:
    """Yield the shards that exist now, by id."""
    for shard in sorted(core.shards):
        facts = shard_facts(core, shard)
        if facts is not None:
            yield facts


def shard_facts(core: Coordinator, shard: ShardId) -> ShardFacts | None:
    """Return what there is to know of one shard, None for one that does not exist now."""
    history = core.shards.get(shard)
    generation = None if history is None else history.latest.generation
    if history is None or generation is None:
        return None
    rows, hot, size = generation.counts()
    return ShardFacts(
        shard=shard,
        timeline=history.domain.name,
        registered=Timestamp(history.registered),
        since=core.since_of(shard),
        physical_upper=Timestamp(generation.last_change + 1),
        logical_upper=Timestamp(history.domain.read_ts() + 1),
        generation=generation.number,
        rows=rows,
        hot_rows=hot,
        parts=len(generation.parts),
        bytes=size,
    )


def log(core: Coordinator) -> LogFacts:
    """Return what there is to know of the log."""
    pressure = core.log.pressure()
    applied = core.log.committer.applied_seq
    return LogFacts(
        first=applied + 1 - pressure.entries,
        applied=applied,
        critical_since=pressure.critical_since,
        entries=pressure.entries,
        bytes=pressure.bytes,
        upper=Timestamp(core.read_ts() + 1),
        subscriptions=sum(len(timeline.feed.subscribers) for timeline in core.timelines),
        recent=core.feed.floor,
        new_entries=applied - core.log.committer.start_seq,
        new_bytes=core.log.committer.new_bytes,
    )


def holds(core: Coordinator) -> Iterator[HoldFacts]:
    """Yield the read holds, oldest first."""
    owners = {
        hold.serial: txn for txn in core.active.values() for hold in (txn.hold, *(txn.others or {}).values())
    }
    subscribers = {
        serial: subscription
        for timeline in core.timelines
        for subscription in timeline.feed.subscribers
        for serial in subscription.serials
    }
    every = [(hold, t) for t in (*core.timelines, *core.timelines.left) for hold in t.holds.all()]
    for hold, timeline in sorted(every, key=lambda pair: pair[0].serial):
        owner, subscriber = owners.get(hold.serial), subscribers.get(hold.serial)
        otherwise: Literal["named subscription", "snapshot"] = (
            "named subscription" if hold.durable else "snapshot"
        )
        yield HoldFacts(
            timeline=timeline.name,
            serial=hold.serial,
            holder="transaction" if owner else "subscription" if subscriber else otherwise,
            ts=hold.ts,
            txn=TxnId(0) if owner is None else owner.id,
            session=owner.session if owner else subscriber.session if subscriber else 0,
        )


def transactions(core: Coordinator) -> Iterator[TransactionFacts]:
    """Yield the running transactions, oldest first."""
    for txn in sorted({**core.active, **core.committing}.values(), key=lambda txn: txn.id):
        yield TransactionFacts(
            txn=txn.id,
            session=txn.session,
            timeline=txn.timeline.name if txn.others is None else None,
            state="committing" if txn.id in core.committing else "writing" if txn.writing else "reading",
            read_only=txn.read_only,
            read_ts=txn.read_ts,
            locks=len(txn.owner.held),
            rows=sum(own.staged for own in txn.own.values()),
            waiting=txn.owner.waiting is not None,
            unlocked=tuple(shard for shard in txn.views if shard not in txn.owner.held),
        )


def timelines(core: Coordinator) -> Iterator[TimelineFacts]:
    """Yield the timelines in use, the default one first."""
    for timeline in core.timelines:
        oracle = timeline.oracle
        yield TimelineFacts(
            name=timeline.name,
            read_ts=oracle.read_ts(),
            write_ts=oracle.last_ts,
            bound=oracle.bound,
            since=timeline.since,
            skew_ms=oracle.skew_ms(),
            epoch=core.log.epoch,
            shards=sum(
                history.latest.generation is not None and history.domain is timeline
                for history in core.shards.values()
            ),
            holds=len(timeline.holds),
        )
