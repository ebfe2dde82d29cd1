"""Reading within a transaction: by key and by range, hot rows and parts, own intents on top, under its locks.

Each function that may have to wait is a generator of ``txn.transaction.view.Steps``. Which locks are taken is
a table in docs/internals/transactions.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from txn.base.slices import Slice
from txn.base.types import IndexId, Key, KeyRange, Row, RowId, ShardId, StoredRow, Timestamp
from txn.locks.mode import IS, IX, ROW_MODES, SIX, RowLock, S, X
from txn.mvcc.generation import Cold
from txn.mvcc.index import bounds_of
from txn.mvcc.intents import OwnWrites
from txn.mvcc.keys import IndexKey
from txn.mvcc.many_keys import NOT_JUDGED, Judged, Known, held
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY, Version
from txn.transaction.escalation import escalate
from txn.transaction.looked_up import is_long, looked_up
from txn.transaction.next_key import lock_range
from txn.transaction.scan_watch import Predicate
from txn.transaction.traversal import Found
from txn.transaction.view import Steps, View, make_ready

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

CHUNK_POSITIONS: Final = 4096
"""Sidecar entries visited between two turns of the event loop."""

CHUNK_ROWS: Final = 4096
CHUNK_KEYS: Final = 250  # looked up, and their rows locked, in one turn
"""Cold rows decoded at once."""

FEW_INTENTS: Final = 8
"""Own rows of a table up to which a read by key looks at each of them."""


def one_row(view: View, index_id: IndexId, key: Key, ts: int) -> StoredRow | None:
    """Return the row under a key if that is certain at a glance: one row, no own intents; else None.

    None says nothing about the key. This is the path of a point read: about a microsecond for a hot row, some
    ten for a row of a part whose row group is cached.
    """
    return None if view.own is not None else _one_committed(view, index_id, key, ts)


def one_latest(txn: TransactionState, view: View, index_id: IndexId, key: Key) -> StoredRow | None:
    """The same for a writing transaction, at the latest state, with own intents if they are few.

    Under a unique key that is checked with every statement: whichever own row a read sees under it is the only one.
    """
    own = view.own
    if own is None:
        return _one_committed(view, index_id, key, INFINITY)
    rows = own.rows
    if len(rows) > FEW_INTENTS or own.parts or own.ended or index_id in txn.deferred:
        return None
    index = view.generation.indexes[index_id]
    make = index.make
    ikey = make.of_key(key)
    if not index.definition.unique or make.has_null(ikey):
        return None
    statement = txn.statement
    for row_id in rows:
        intent = own.seen(row_id, statement)
        if intent is not None and intent.values is not None and make.of_row(intent.values) == ikey:
            return StoredRow(row_id, intent.values, Timestamp(0))
    row = _one_committed(view, index_id, key, INFINITY)
    return None if row is None or row.row_id in rows else row


def _one_committed(view: View, index_id: IndexId, key: Key, ts: int) -> StoredRow | None:
    """Return the committed row under a key if that is certain at a glance; else None."""
    generation = view.generation
    index = generation.indexes[index_id]
    make = index.make
    if make.long is not None:
        return None  # a row has any number of keys
    ikey = make.of_key(key)
    row_id = index.entries.get(ikey)
    if row_id is None:
        if not index.definition.unique or (make.may_be_long and is_long(key)):
            return None
        return _one_cold(view, index_id, key, ts)
    if type(row_id) is not int or (generation.parts and not index.definition.unique):
        return None
    version = generation.rows.get(row_id)
    while version is not None and version.begin > ts:
        version = version.older
    if version is None:
        return None
    values = version.values
    if values is None:
        return None
    if len(values) < view.padding.width:
        values = view.padding.pad(values)
    if len(values) < make.width or make.of_row(values) != ikey:
        return None
    return StoredRow(row_id, values, version.begin)  # type: ignore[arg-type]  # a call less a look-up


def _one_cold(view: View, index_id: IndexId, key: Key, ts: int) -> StoredRow | None:
    """The same for a unique key that no hot version has."""
    for part in view.generation.parts_at(ts):
        for position in part.lookup(index_id, key):
            if part.visible(position, ts):
                file = part.file
                values = file.row(position, view.spec)
                if isinstance(values, tuple):
                    return StoredRow(file.row_id(position), values, Timestamp(part.begin(position)))
                values.close()
                return None
    return None


def start_scan(
    txn: TransactionState, shard: ShardId, for_update: bool | RowLock, predicate: Predicate | None
) -> Steps[None]:
    """Remember a scan, or watch what it reads from this tick on (``txn.transaction.scan_watch``)."""
    if txn.writing:
        yield from txn.lock(shard, IX if for_update else IS)
        scans = txn.unlocked_scans(shard)
        if scans is not None:
            scans.add(shard, predicate)
        txn.check_scans()
    elif txn.keeps_reads:
        txn.read_set().add_scan(shard, predicate)


def row_mode(for_update: bool | RowLock) -> int:
    """Return the mode in which a read locks the rows it finds."""
    if for_update is False:
        return S
    return X if for_update is True else ROW_MODES[for_update]


def lookup(
    txn: TransactionState, shard: ShardId, index: IndexId, keys: Sequence[Key], for_update: bool | RowLock
) -> Steps[list[StoredRow]]:
    """Read by key. A writing transaction locks first: table, keys, then the rows found.

    Many keys are read in pieces, between which others have their turns: at one timestamp, or under locks that stay.
    """
    if len(keys) <= CHUNK_KEYS:
        view = txn.view(shard)
        if view.generation.indexes[index].make.may_be_long and any(map(is_long, keys)):
            with looked_up(_parts_of(txn, view), index, keys) as looking:
                yield from looking
                return (yield from _lookup(txn, shard, index, keys, for_update))
        return (yield from _lookup(txn, shard, index, keys, for_update))
    out: list[StoredRow] = []
    met: set[IndexKey] = set()
    for start in range(0, len(keys), CHUNK_KEYS):
        if start:
            yield asyncio.sleep(0)
        maker = txn.view(shard).generation.indexes[index]
        new = {
            ikey: key
            for key in keys[start : start + CHUNK_KEYS]
            if (ikey := maker.make.of_key(key)) not in met
        }
        met.update(new)
        out += yield from _lookup(txn, shard, index, list(new.values()), for_update)
    if maker.definition.inverted:
        return list({row.row_id: row for row in out}.values())  # it may have several
    return out


def _parts_of(txn: TransactionState, view: View) -> Sequence[PartState]:
    """Return the parts that a read by key may look into."""
    return view.generation.parts_at(txn.ts) if view.own is None else view.parts(txn.statement, txn.ts)


def _lookup(
    txn: TransactionState, shard: ShardId, index: IndexId, keys: Sequence[Key], for_update: bool | RowLock
) -> Steps[list[StoredRow]]:
    """Read by a few keys."""
    if not txn.writing:
        view = txn.view(shard)
        rows = yield from read_keys(txn, view, index, keys)
        if txn.keeps_reads:
            long = view.generation.indexes[index].make.long
            under = (yield from _under(view, index, keys, rows)) if long and len(keys) > 1 else None
            txn.read_set().add_keys(view, index, keys, rows, under)
        return rows
    mode = row_mode(for_update) if for_update else S
    owner = txn.owner
    acquire = txn.core.locks.acquire
    if shard not in owner.held:
        wait = acquire(owner, shard, IX if mode >= SIX else IS)
        if wait is not None:
            yield wait
    elif len(owner.held) > owner.escalate_at:
        yield from escalate(txn, shard)
    held = owner.held[shard]
    view = txn.view(shard)
    if held == X or (mode <= S and held >= S):
        return (yield from read_keys(txn, view, index, keys))
    key_mode = X if mode == X else S
    of_key = view.generation.indexes[index].make.of_key
    for key in keys:
        wait = acquire(owner, (shard, index, of_key(key)), key_mode)
        if wait is not None:
            yield wait
    if len(keys) == 1:
        row = one_latest(txn, view, index, keys[0])
        if row is not None:
            wait = acquire(owner, (shard, row.row_id), mode)
            if wait is None:
                return [row]
            yield wait
    long = view.generation.indexes[index].make.long
    while True:
        # The keys are locked, so no row enters; those that are there may change until they are locked, too.
        waited = False
        for key in keys:
            known: Known = NOT_JUDGED
            if long is not None:
                judged: Judged = {}
                for _ in view.generation.judge(index, key, INFINITY, judged):
                    yield asyncio.sleep(0)
                known = judged
            for row_id, _begin in view.generation.identities(index, key, INFINITY, known):
                wait = acquire(owner, (shard, row_id), mode)
                if wait is not None:
                    waited = True
                    yield wait
        if not waited:
            break
    return (yield from read_keys(txn, view, index, keys))


def peek_table(txn: TransactionState, shard: ShardId) -> Steps[None]:
    """Keep a shard's schema as it is (IS), all that a read past locks needs."""
    if not txn.writing:
        raise AssertionError("only writing transactions read past locks")
    if shard not in txn.owner.held:
        yield from txn.lock(shard, IS)


def peek_keys(
    txn: TransactionState, shard: ShardId, index: IndexId, keys: Sequence[Key]
) -> Steps[list[StoredRow]]:
    """Read by key past all row and key locks (SKIP LOCKED)."""
    yield from peek_table(txn, shard)
    return (yield from read_keys(txn, txn.view(shard), index, keys))


def peek_range(
    txn: TransactionState, shard: ShardId, index: IndexId, wanted: KeyRange, reverse: bool, limit: int | None
) -> Steps[list[StoredRow]]:
    """Read a range past all row and key locks (SKIP LOCKED)."""
    yield from peek_table(txn, shard)
    # Nothing keeps rows from changing between two pieces of a long range, so it is read as of now.
    now = txn.core.domain_of(shard).read_ts()
    return (yield from read_range(txn, txn.view(shard), index, wanted, reverse, limit, now))


def read_keys(
    txn: TransactionState, view: View, index: IndexId, keys: Sequence[Key]
) -> Steps[list[StoredRow]]:
    """Read by key at the transaction's timestamp, own intents included; no locks, no read set."""
    generation = view.generation
    if view.own is not None and (
        len(view.own.rows) > FEW_INTENTS or generation.indexes[index].make.long is not None
    ):
        yield from make_ready(view, index)
    own = view.own
    ts = txn.ts
    statement = txn.statement
    padding = view.padding
    width = padding.width
    make = generation.indexes[index].make
    if len(keys) > 1:
        keys = list({make.of_key(key): key for key in keys}.values())
    judged: Sequence[Known] = ()
    if make.long is not None:
        judged = yield from _judged(view, index, keys, ts, statement)
    # From here on nobody else runs: what is hot by now, and what of the rest is in these parts, is all there is.
    parts = generation.parts_at(ts) if own is None else view.parts(statement, ts)
    out: list[StoredRow | None] = []
    missing: list[tuple[int, RowId, Cold]] = []
    for number, key in enumerate(keys):
        known = judged[number] if judged else NOT_JUDGED
        found: dict[RowId, Version] = {}
        cold: dict[RowId, Cold] = {}
        generation.find(index, key, ts, found, cold, parts, own is not None and bool(own.parts), known)
        mine: list[tuple[RowId, Row]] = []
        if own is not None and own.rows:
            for row_id in [r for r in found if own.hides(r, statement)]:
                del found[row_id]
            for row_id in [r for r in cold if own.hides(r, statement)]:
                del cold[row_id]
            mine = list(own.rows_with(index, make.of_key(key), statement, known))
        if not cold and not mine:
            ids: Iterable[RowId] = found if len(found) < 2 else sorted(found)
            for row_id in ids:
                version = found[row_id]
                values = version.values
                if values is None:
                    raise AssertionError("a version with values has none")
                if len(values) < width:
                    values = padding.pad(values)
                out.append(StoredRow(row_id, values, Timestamp(version.begin)))
            continue
        values_of = dict(mine)
        for row_id in sorted({*found, *cold, *values_of}):
            if row_id in values_of:
                out.append(StoredRow(row_id, values_of[row_id], Timestamp(0)))
            elif row_id in found:
                out.append(stored(view, row_id, found[row_id]))
            else:
                missing.append((len(out), row_id, cold[row_id]))
                out.append(None)
    if missing:
        yield from fetch(view, missing, out)
    if len(keys) > 1 and generation.indexes[index].definition.inverted:
        return list({row.row_id: row for row in out if row is not None}.values())  # it may have several
    return out  # type: ignore[return-value]  # no gap is left


def _judged(view: View, index: IndexId, keys: Sequence[Key], ts: int, statement: int) -> Steps[list[Known]]:
    """Return for each key of an inverted index which of the rows with several versions, and of the own ones,
    have it.
    """
    own, generation = view.own, view.generation
    of_key = generation.indexes[index].make.of_key
    out: list[Known] = []
    for key in keys:
        found: Judged = {}
        for _ in generation.judge(index, key, ts, found):
            yield asyncio.sleep(0)
        for _ in own.judge(index, of_key(key), statement, found) if own is not None and own.rows else ():
            yield asyncio.sleep(0)
        out.append(found)
    return out


def _under(
    view: View, index: IndexId, keys: Sequence[Key], rows: Sequence[StoredRow]
) -> Steps[dict[IndexKey, list[tuple[RowId, int]]]]:
    """Return which of the rows stand under which of the keys of an inverted index."""
    make = view.generation.indexes[index].make
    wanted = frozenset(map(make.of_key, keys))
    found: dict[IndexKey, list[tuple[RowId, int]]] = {}
    pause = Slice(CHUNK_ROWS)
    for row in rows:
        with held([make.long] if make.long else (), row.values) as making:
            for _ in making:
                yield asyncio.sleep(0)
            for ikey in wanted & make.of_row(row.values):
                found.setdefault(ikey, []).append((row.row_id, row.begin))
        if pause.over():
            yield asyncio.sleep(0)
    return found


def stored(view: View, row_id: RowId, version: Version) -> StoredRow:
    """Return a hot version as the caller gets it."""
    values = version.values
    if values is None:
        raise AssertionError("a version with values has none")
    if len(values) < view.padding.width:
        values = view.padding.pad(values)
    return StoredRow(row_id, values, Timestamp(version.begin))


def fetch(view: View, missing: list[tuple[int, RowId, Cold]], out: list[StoredRow | None]) -> Steps[None]:
    """Read rows of parts into their places in ``out``."""
    by_part: dict[str, tuple[PartState, list[tuple[int, RowId, int]]]] = {}
    for place, row_id, (part, position) in missing:
        by_part.setdefault(part.ref.name, (part, []))[1].append((place, row_id, position))
    for part, wanted in by_part.values():
        for start in range(0, len(wanted), CHUNK_ROWS):
            chunk = wanted[start : start + CHUNK_ROWS]
            rows = part.file.rows([position for _p, _r, position in chunk], view.spec)
            if not isinstance(rows, list):
                rows = yield rows
            elif start:
                yield asyncio.sleep(0)
            for (place, row_id, position), values in zip(chunk, rows, strict=True):
                out[place] = StoredRow(row_id, values, Timestamp(part.begin(position)))


def range_(
    txn: TransactionState,
    shard: ShardId,
    index: IndexId,
    wanted: KeyRange,
    reverse: bool,
    limit: int | None,
    for_update: bool | RowLock,
) -> Steps[list[StoredRow]]:
    """Read a range in key order. A writing transaction locks what it traverses (``txn.transaction.next_key``)."""
    if not txn.writing:
        view = txn.view(shard)
        rows = yield from read_range(txn, view, index, wanted, reverse, limit)
        if txn.keeps_reads:
            txn.read_set().add_range(shard, index, wanted, reverse, limit, rows)
        return rows
    mode = row_mode(for_update)
    yield from txn.lock(shard, IX if mode >= SIX else IS)
    if len(txn.owner.held) > txn.owner.escalate_at:
        yield from escalate(txn, shard)
    held = txn.owner.held[shard]
    view = txn.view(shard)
    if held != X and (mode >= SIX or held < S):
        met = yield from lock_range(txn, view, index, wanted, reverse, limit, mode)
        if met is not None:
            return (yield from fetch_found(view, met.rows))
        yield from txn.lock(shard, SIX if mode >= SIX else S)
        view = txn.view(shard)
    return (yield from read_range(txn, view, index, wanted, reverse, limit))


def fetch_found(view: View, met: Sequence[Found]) -> Steps[list[StoredRow]]:
    """Return the rows that a traversal has met; under its locks they do not change."""
    out: list[StoredRow | None] = []
    missing: list[tuple[int, RowId, Cold]] = []
    for found in met:
        if found.own is not None:
            out.append(StoredRow(found.row_id, found.own, Timestamp(0)))
        elif found.version is not None:
            out.append(stored(view, found.row_id, found.version))
        else:
            if found.cold is None:
                raise AssertionError("a version that is not in memory is in no part")
            missing.append((len(out), found.row_id, found.cold))
            out.append(None)
    if missing:
        yield from fetch(view, missing, out)
    return out  # type: ignore[return-value]  # no gap is left


def read_range(
    txn: TransactionState,
    view: View,
    index: IndexId,
    wanted: KeyRange,
    reverse: bool,
    limit: int | None,
    at: int | None = None,
) -> Steps[list[StoredRow]]:
    """Read a range at the transaction's timestamp (or ``at``), own intents included; no locks, no read set."""
    yield from make_ready(view, index, ordered=True)
    generation = view.generation
    own = view.own
    statement = txn.statement
    hidden: frozenset[RowId] = frozenset()
    if own is not None and own.rows:
        hidden = own.hidden_ids(statement)
    ts = txn.ts if at is None else at
    parts = view.parts(statement, ts)
    found = generation.find_hot_range(index, wanted, ts, reverse, limit, hidden)
    # From here on other transactions may run; parts, and what a reader at ``ts`` sees of them, do not change.
    cold: dict[RowId, Cold] = {}
    visited = 0
    for part in parts:
        count = 0
        last: Key | None = None
        for key, position in part.entries_between(index, wanted, reverse=reverse):
            if limit is not None and count >= limit and key != last:
                break
            last = key
            visited += 1
            if visited % CHUNK_POSITIONS == 0:
                yield asyncio.sleep(0)
            if not part.visible(position, ts):
                continue
            row_id = part.file.row_id(position)
            if row_id in hidden:
                continue
            if row_id not in found:
                cold[row_id] = (part, position)
            count += 1
    out: list[StoredRow | None] = [stored(view, r, v) for r, v in found.items()]
    if hidden and own is not None:
        out.extend(own_range(own, index, wanted, statement))
    # Without any of these the rows are as the part's own index has them, which orders by key alone.
    mixed = bool(out) or len(parts) > 1 or not generation.indexes[index].definition.primary
    if cold:
        missing = []
        for row_id, place in cold.items():
            missing.append((len(out), row_id, place))
            out.append(None)
        yield from fetch(view, missing, out)
    rows: list[StoredRow] = out  # type: ignore[assignment]  # no gap is left
    if mixed:
        of_row = generation.indexes[index].make.of_row
        rows.sort(key=lambda row: (of_row(row.values), row.row_id), reverse=reverse)
    return rows if limit is None else rows[:limit]


def own_range(own: OwnWrites, index_id: IndexId, wanted: KeyRange, statement: int) -> list[StoredRow]:
    """Return the transaction's own rows within a range, as a read in ``statement`` sees them."""
    index = own.index(index_id)
    out = []
    for ikey in index.keys_between(bounds_of(index.make, wanted)):
        for row_id, values in own.rows_with(index_id, ikey, statement):
            out.append(StoredRow(row_id, values, Timestamp(0)))
    return out
