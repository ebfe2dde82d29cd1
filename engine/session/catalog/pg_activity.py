"""pg_catalog's views over sessions, their transactions and locks; Holdfast's own over shards, holds and timelines.

    pg_stat_activity, pg_stat_database                            engine.session.session
    pg_stat_progress_create_index, _copy                          engine.session.built_ahead, engine.session.progress
    pg_stat_bgwriter, pg_stat_wal, pg_stat_ssl                    engine.base.upkeep, txn.inspect, the connection
    pg_locks                                                      txn.locks.table
    holdfast_shards, _holds, _timelines, _transactions            txn.inspect
    holdfast_sources                                              engine.feeds.sources

Who is no superuser sees of others' sessions that they exist, not what they do (manual 28.2.3). Holdfast's
views stand in pg_catalog, so that they are found without a schema and no dump contains them;
``builtin_relations.OWN_RELATIONS`` is their definition.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from engine.base.lock_modes import mode_name
from engine.base.losses import MEANINGS
from engine.base.memory import MemoryPlan
from engine.catalog.relations.sources import RowDict
from engine.catalog.storage.fences import standing
from engine.catalog.storage.stored import PG_CLASS_OID
from engine.catalog.tids import block_and_position, tid_of
from engine.session.catalog.session_rows import relation
from pgwire.codecs.network import address_of
from pgwire.give_way import paced_iter
from planner.types.facts import FIRST_USER_OID
from txn import inspect
from txn.base.resident import resident_bytes
from txn.base.time import timestamp_ms
from txn.base.types import Timestamp
from txn.locks.entry import LockRow
from txn.locks.granule import Advisory

if TYPE_CHECKING:
    from engine.session.session import Session

XID_MASK: Final = 0xFFFFFFFF
PG_LOCKS_OID: Final = 12073


@relation("pg_stat_activity", "session")
def pg_stat_activity(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_activity: one row per connection."""
    waits = {wait.session: wait for wait in session.db.store.lock_waits()}
    committing = {txn.session for txn in session.db.store.core.committing.values()}
    for pid, connection in session.db.sessions.items():
        other = connection.session
        role = session.space.catalog.role_by_oid(other.identity.session)
        row: dict[str, Any] = {
            "datid": other.database_oid, "datname": other.database, "pid": pid,
            "usesysid": other.identity.session, "usename": role.name if role is not None else None,
            "application_name": other.settings.get("application_name"),
            "query": "<insufficient privilege>",
        }  # fmt: skip
        if session.may_watch(other.identity.session):
            host, port = other.system.client_address or (None, -1)
            event = _wait_event(other, waits.get(pid), pid in committing)
            txn = other.block.txn
            has_id = txn is not None and (txn.writing or other.system.was_told(txn.id))
            inside = txn is not None or other.block.is_open
            row |= {
                "client_addr": None if host is None else address_of(host), "client_port": port, "backend_start": other.backend_start_us,
                "xact_start": other.transaction_time_us if inside else None,
                "query_start": other.statement_time_us or None, "state_change": other.state_change_us,
                "wait_event_type": event[0], "wait_event": event[1], "state": other.activity,
                "backend_xid": txn.id & XID_MASK if txn is not None and has_id else None,
                "backend_xmin": txn.id & XID_MASK if txn is not None and other.activity == "active" else None,
                "query": other.query_text, "backend_type": "client backend",
            }  # fmt: skip
            if other.settings.get("track_activities") == "off":
                row |= {
                    "state": "disabled",
                    "query": "",
                    "query_start": None,
                    "xact_start": None,
                    "state_change": None,
                }
        yield row


def _wait_event(other: Session, wait: LockRow | None, committing: bool) -> tuple[str | None, str | None]:
    if wait is not None:
        return "Lock", _granule(wait.granule)["locktype"]
    if committing:
        return "IO", "WALSync"
    if other.activity != "active":
        return "Client", "ClientRead"
    event = other.db.wait_in_spark(other)
    return (None, None) if event is None else ("Extension", event)


@relation("pg_locks", "session")
def pg_locks(session: Session) -> Iterator[RowDict]:
    """Yield pg_locks: the lock table of txn (tables, rows, index keys as objects of pg_class), and what a
    running transaction is and reads.

    Its ids it holds, as in PostgreSQL: ``virtualxid``, and ``transactionid`` where it writes. What it has
    read without a lock stays as it was for it; it is shown as PostgreSQL's weakest lock, for which nobody
    waits either (but its ACCESS EXCLUSIVE).
    """
    now_us, loop_s = session.clock_time_us(), asyncio.get_running_loop().time()
    for lock in paced_iter(session.db.store.lock_rows()):
        granule = _granule(lock.granule)
        kind = {"relation": "table", "tuple": "row"}.get(granule["locktype"], "key")
        holder = session.db.sessions.get(lock.session)
        yield {
            **granule, "database": session.database_oid if holder is None else holder.session.database_oid,
            "virtualtransaction": f"{lock.session}/{lock.txn}", "pid": lock.session or None,
            "mode": mode_name(kind, lock.mode), "granted": lock.granted, "fastpath": False,
            "waitstart": None if lock.since_s is None else now_us - int((loop_s - lock.since_s) * 1e6),
        }  # fmt: skip
    for txn in paced_iter(inspect.transactions(session.db.store.core)):
        if not txn.session:
            continue
        holder = session.db.sessions.get(txn.session)
        database = session.database_oid if holder is None else holder.session.database_oid
        virtual = f"{txn.session}/{txn.txn}"
        common = {"virtualtransaction": virtual, "pid": txn.session, "granted": True, "fastpath": False}
        own = {**common, "mode": "ExclusiveLock"}
        yield {**own, "locktype": "virtualxid", "virtualxid": virtual}
        if txn.state != "reading":
            yield {**own, "locktype": "transactionid", "transactionid": txn.txn & XID_MASK}
        read = [shard for shard in txn.unlocked if shard >= FIRST_USER_OID]
        for oid in (*read, *((PG_LOCKS_OID,) if holder is not None and holder.session is session else ())):
            yield {
                **common,
                "locktype": "relation",
                "database": database,
                "relation": oid,
                "mode": "AccessShareLock",
            }


def _granule(granule: Any) -> dict[str, Any]:
    """Return what pg_locks says of a table, a row (table, row id), a key or range (table, index, key ...), a number."""
    if isinstance(granule, Advisory):
        return {
            "locktype": "advisory", "classid": granule.high, "objid": granule.low,
            "objsubid": 2 if granule.pair else 1,
        }  # fmt: skip
    if isinstance(granule, tuple) and len(granule) == 2:
        page, number = block_and_position(tid_of(granule[1]))
        return {"locktype": "tuple", "relation": granule[0], "page": _int4(page), "tuple": _int2(number)}
    if isinstance(granule, tuple):
        return {
            "locktype": "object",
            "relation": granule[0],
            "classid": PG_CLASS_OID,
            "objid": granule[1],
            "objsubid": 0,
        }
    return {"locktype": "relation", "relation": granule}


def _int4(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


def _int2(value: int) -> int:
    return value - (1 << 16) if value >= 1 << 15 else value


@relation("pg_stat_database", "session")
def pg_stat_database(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_database: sessions, and how transactions ended since the server started; deadlocks of all
    databases.
    """
    db = session.db
    connected = Counter(connection.session.database_oid for connection in db.sessions.values())
    yield {
        "datid": 0, "numbackends": 0, "deadlocks": db.store.core.locks.deadlocks, "stats_reset": db.start_time_us
    }  # fmt: skip
    for database in session.catalog.databases.values():
        counters = db.spaces[database.oid].counters
        yield {
            "datid": database.oid, "datname": database.name, "numbackends": connected[database.oid],
            "xact_commit": counters.commits, "xact_rollback": counters.rollbacks, "conflicts": 0,
            "sessions": counters.sessions, "stats_reset": db.start_time_us,
        }  # fmt: skip


@relation("pg_stat_database_conflicts", "catalog")
def pg_stat_database_conflicts(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_database_conflicts: what reads of a standby were cancelled by. A standby here answers none."""
    for database in session.catalog.databases.values():
        yield {
            "datid": database.oid, "datname": database.name, "confl_tablespace": 0, "confl_lock": 0, "confl_snapshot": 0,
            "confl_bufferpin": 0, "confl_deadlock": 0,
        }  # fmt: skip


@relation("pg_stat_bgwriter", "session")
def pg_stat_bgwriter(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_bgwriter: CHECKPOINTs since the start. None is due by time, a part is synced as it is
    written, and there are no buffers.
    """
    upkeep = session.db.upkeep
    yield {
        "checkpoints_timed": 0, "checkpoints_req": upkeep.checkpoints, "checkpoint_write_time": upkeep.checkpoint_ms,
        "checkpoint_sync_time": 0.0, "buffers_checkpoint": 0, "buffers_clean": 0, "maxwritten_clean": 0,
        "buffers_backend": 0, "buffers_backend_fsync": 0, "buffers_alloc": 0, "stats_reset": session.db.start_time_us,
    }  # fmt: skip


@relation("pg_stat_archiver", "session")
def pg_stat_archiver(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_archiver: nothing is archived."""
    yield {"archived_count": 0, "failed_count": 0, "stats_reset": session.db.start_time_us}


@relation("pg_stat_wal", "session")
def pg_stat_wal(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_wal: what the log has got since the start. Each entry is written and synced at once, with
    one or several commits.
    """
    facts = inspect.log(session.db.store.core)
    yield {
        "wal_records": facts.new_entries, "wal_fpi": 0, "wal_bytes": Decimal(facts.new_bytes), "wal_buffers_full": 0,
        "wal_write": facts.new_entries, "wal_sync": facts.new_entries, "wal_write_time": 0.0, "wal_sync_time": 0.0,
        "stats_reset": session.db.start_time_us,
    }  # fmt: skip


@relation("pg_stat_ssl", "session")
def pg_stat_ssl(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_ssl, of sessions that the user may watch. Clients are not asked for certificates."""
    for pid, connection in session.db.sessions.items():
        other = connection.session
        if session.may_watch(other.identity.session):
            row: dict[str, Any] = {"pid": pid, "ssl": False}
            if (found := other.out.encryption()) is not None:
                row |= {"ssl": True, "version": found.version, "cipher": found.cipher, "bits": found.bits}
            yield row


@relation("pg_stat_gssapi", "session")
def pg_stat_gssapi(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_gssapi, of sessions that the user may watch: no connection uses it."""
    for pid, connection in session.db.sessions.items():
        if session.may_watch(connection.session.identity.session):
            yield {"pid": pid, "gss_authenticated": False, "encrypted": False}


@relation("pg_stat_progress_create_index", "session")
def pg_stat_progress_create_index(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_progress_create_index: indexes that are being built ahead (``engine.session.built_ahead``)."""
    for pid, connection in session.db.sessions.items():
        other = connection.session
        for ahead in other.ahead.builds:
            row: dict[str, Any] = {"pid": pid, "datid": other.database_oid, "datname": other.database}
            if session.may_watch(other.identity.session):
                phase, rows, of_rows = ahead.build.progress
                lockers = session.db.store.blocked_by(pid)
                row |= {
                    "relid": ahead.table.oid, "index_relid": ahead.index.oid, "command": ahead.command,
                    "phase": phase, "lockers_total": len(lockers), "lockers_done": 0,
                    "current_locker_pid": lockers[0] if lockers else 0, "blocks_total": 0, "blocks_done": 0,
                    "tuples_total": of_rows, "tuples_done": rows, "partitions_total": 0,
                    "partitions_done": 0,
                }  # fmt: skip
            yield row


@relation("pg_stat_progress_copy", "session")
def pg_stat_progress_copy(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_progress_copy: the COPY commands that run (``engine.session.progress``)."""
    for pid, connection in session.db.sessions.items():
        other = connection.session
        copying = other.copying
        if copying is None:
            continue
        row: dict[str, Any] = {"pid": pid, "datid": other.database_oid, "datname": other.database}
        if session.may_watch(other.identity.session):
            row |= {
                "relid": copying.table, "command": copying.command, "type": copying.type,
                "bytes_processed": copying.bytes, "bytes_total": copying.bytes_total,
                "tuples_processed": copying.tuples, "tuples_excluded": copying.excluded,
            }  # fmt: skip
        yield row


# --- Holdfast's own -------------------------------------------------------------------------------


def _time_us(ts: int) -> int:
    """Return the wall clock's part of a timestamp in microseconds."""
    return timestamp_ms(Timestamp(ts)) * 1000


@relation("holdfast_shards", "session")
def holdfast_shards(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_shards: every stored table, and the catalog itself."""
    for shard in inspect.shards(session.db.store.core):
        table = session.catalog.relation_by_oid(shard.shard)
        yield {
            "shard": shard.shard, "timeline": shard.timeline,
            "schemaname": table.schema if table is not None else None,
            "relname": table.name if table is not None else None,
            "since": shard.since, "physical_upper": shard.physical_upper,
            "logical_upper": shard.logical_upper, "generation": shard.generation, "live_rows": shard.rows,
            "hot_rows": shard.hot_rows, "parts": shard.parts, "bytes": shard.bytes,
        }  # fmt: skip


@relation("holdfast_holds", "session")
def holdfast_holds(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_holds: who still reads at which timestamp."""
    for hold in inspect.holds(session.db.store.core):
        yield {
            "hold": hold.serial, "ts": hold.ts, "at": _time_us(hold.ts),
            "holder": hold.holder, "pid": hold.session or None,
            "transaction": hold.txn or None, "timeline": hold.timeline,
        }  # fmt: skip


@relation("holdfast_timelines", "session")
def holdfast_timelines(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_timelines."""
    for timeline in inspect.timelines(session.db.store.core):
        yield {
            "timeline": timeline.name, "since": timeline.since, "read_ts": timeline.read_ts,
            "read_at": _time_us(timeline.read_ts), "shards": timeline.shards, "holds": timeline.holds,
        }  # fmt: skip


@relation("holdfast_oracle", "session")
def holdfast_oracle(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_oracle: one oracle for each timeline."""
    for timeline in inspect.timelines(session.db.store.core):
        yield {
            "timeline": timeline.name, "read_ts": timeline.read_ts, "write_ts": timeline.write_ts,
            "bound": timeline.bound, "bound_at": _time_us(timeline.bound), "epoch": timeline.epoch,
            "clock_skew_ms": timeline.skew_ms,
        }  # fmt: skip


@relation("holdfast_storage", "session")
def holdfast_storage(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_storage: one row, memory of hot versions and what upkeep has written since the start."""
    facts = inspect.storage(session.db.store.core)
    done = facts.written
    yield {
        "hot_bytes": facts.hot_bytes, "hot_limit": facts.hot_limit, "superseded": facts.superseded,
        "cached_bytes": facts.cached_bytes, "log_bytes": facts.log_bytes, "rows_flushed": done.flushed,
        "rows_merged": done.merged, "rows_lost": done.lost, "rows_history": done.history, "merges": done.merges,
        "part_bytes_written": done.bytes, "write_amplification": done.amplification,
        "waiting_to_delete": facts.doomed, "damaged": "\n".join(facts.damaged) or None,
    }  # fmt: skip


@relation("holdfast_memory", "session")
def holdfast_memory(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_memory: who has how much, of the server as a whole and of the sessions that one may watch."""
    db = session.db
    facts = inspect.storage(db.store.core)
    plan = MemoryPlan.of(db.config.memory)
    resident, _ = resident_bytes()
    whole = {
        "process": (resident, db.statements.ceiling), "hot rows": (facts.hot_bytes, plan.hot),
        "row groups": (facts.cached_bytes, plan.cache), "statements": (db.statements.taken, db.statements.limit),
        "sessions": (db.kept.bytes, db.kept.limit), "messages": (db.messages.taken, db.messages.limit),
    }  # fmt: skip
    for owner, (size, limit) in whole.items():
        yield {"owner": owner, "bytes": size, "limit_bytes": limit}
    for pid, connection in db.sessions.items():
        own = connection.session
        if not session.may_watch(own.identity.session):
            continue
        account = own.account
        yield {
            "owner": "statement", "pid": pid, "bytes": account.taken + account.promised, "limit_bytes": account.limit,
            "most_bytes": account.most,
        }  # fmt: skip
        yield {"owner": "session", "pid": pid, "bytes": own.held.bytes, "limit_bytes": db.kept.each}
        yield {"owner": "output", "pid": pid, "bytes": own.out.unsent()}


@relation("holdfast_conflicts", "session")
def holdfast_conflicts(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_conflicts: how often transactions of this database have lost since the server started,
    by cause and table.
    """
    for (cause, oid), tally in session.space.losses.tallies.items():
        table = session.catalog.relation_by_oid(oid)
        yield {
            "cause": cause.value, "sqlstate": tally.sqlstate, "relid": oid or None,
            "schemaname": table.schema if table is not None else None,
            "relname": table.name if table is not None else None, "retried": tally.retried, "failed": tally.failed,
            "last_at": tally.last_us, "meaning": MEANINGS[cause],
        }  # fmt: skip


@relation("holdfast_unreadable_objects", "session")
def holdfast_unreadable_objects(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_unreadable_objects: what of the database, and of all databases, is fenced off."""
    relative = session.surroundings.relative
    if session.catalog.lost:
        yield {
            "object": "the catalog as a whole",
            "kind": "catalog",
            "oid": 0,
            "reason": relative(session.catalog.lost),
        }
    for fence in standing(session.catalog.fences, session.catalog.items):
        kind, oid, _sub = fence.key
        yield {
            "object": fence.what, "kind": kind.partition("/")[0], "oid": oid, "reason": relative(fence.reason),
            "schemaname": getattr(fence.object, "schema", None), "name": getattr(fence.object, "name", None),
            "cause": fence.cause or None,
        }  # fmt: skip


@relation("holdfast_sources", "session")
def holdfast_sources(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_sources: a row for each partition that a source has got somewhere in, or one without a partition.

    What it has from upstream, names of directories, files and slots among it, is for who may watch its owner.
    """
    for source, status in session.db.sources.within(session.space):
        role = session.catalog.role_by_oid(source.owner)
        owner = str(source.owner) if role is None else role.name
        tables = [r for r in map(session.catalog.relation_by_oid, source.tables) if r is not None]
        shown = session.may_watch(source.owner)
        about = {
            "name": source.name, "kind": source.kind, "owner": owner, "timeline": source.timeline,
            "state": status.state, "lag": status.lag.amount, "lag_unit": status.lag.unit or None,
            "tables": ", ".join(f"{r.schema}.{r.name}" for r in tables),
            "last_error": status.last_error if shown else None, "last_error_at": status.last_error_us,
        }  # fmt: skip
        for name, place in sorted(status.partitions.items()):
            yield {
                **about, "partition": name if shown else None, "position": place.position if shown else None, "rows": place.rows,
                "ts": place.ts, "committed_at": place.committed_us, "acknowledged_ts": place.acknowledged_ts,
                "acknowledged_position": place.acknowledged_position if shown else None, "acknowledged_at": place.acknowledged_us,
            }  # fmt: skip
        if not status.partitions:
            yield {**about, "rows": 0}


@relation("holdfast_subscriptions", "session")
def holdfast_subscriptions(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_subscriptions: the named ones, with how far each has been acknowledged."""
    for named in session.db.named:
        record = named.record
        role = session.catalog.role_by_oid(record.owner)
        owner = str(record.owner) if role is None else role.name
        reading = named.reader if named.reader in session.db.sessions else 0
        yield {
            "name": record.name, "owner": owner,
            "definition": record.sql if session.may_watch(record.owner) else None, "position": record.position,
            "position_at": _time_us(record.position), "snapshot": record.snapshot,
            "state": "lost" if named.hold is None else "reading" if reading else "idle",
            "pid": reading or None, "created_at": record.created_us,
        }  # fmt: skip


@relation("holdfast_transactions", "session")
def holdfast_transactions(session: Session) -> Iterator[RowDict]:
    """Yield holdfast_transactions."""
    for txn in inspect.transactions(session.db.store.core):
        yield {
            "transaction": txn.txn, "pid": txn.session or None, "state": txn.state,
            "read_only": txn.read_only, "read_ts": txn.read_ts, "read_at": _time_us(txn.read_ts),
            "locks": txn.locks, "rows": txn.rows, "waiting": txn.waiting, "timeline": txn.timeline,
        }  # fmt: skip
