"""Transactional DDL on shards (U10, D77, N10): create, alter, truncate, drop, as part of a transaction.

A change is first a ``SchemaState`` of the transaction alone, undone like any intent by its journal; it becomes an
entry of the shard's history when the commit is applied. The shard is locked X meanwhile, and readers at older
timestamps go on with the older schema and generation.

A new index is entered in the generation at once, which is harmless to others: their schema does not name it. Large ones
are built ahead, while others go on writing (``txn.transaction.index_build``); here they are only completed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from txn.base.errors import DuplicateKey, ReadOnlyTransaction
from txn.base.types import Row, RowId, ShardId, ShardIndex, ShardSpec
from txn.locks.mode import X
from txn.mvcc.generation import Generation, Padding
from txn.mvcc.index import BuildingIndex, HotIndex
from txn.mvcc.intents import Intent
from txn.mvcc.keys import KeyMaker
from txn.mvcc.version import INFINITY, Version
from txn.transaction import promotion
from txn.transaction.index_build import merge_parts
from txn.transaction.journal import note, undo_failed
from txn.transaction.looked_up import looked_up
from txn.transaction.view import SchemaState, Steps, View

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

CHUNK_ROWS: Final = 1000
FLUSH_POLL_S: Final = 0.005


def _set(txn: TransactionState, shard: ShardId, state: SchemaState) -> None:
    before = txn.schema_states.get(shard)

    def undo() -> None:
        if before is None:
            txn.schema_states.pop(shard, None)
        else:
            txn.schema_states[shard] = before
        txn.forget_view(shard)

    txn.schema_states[shard] = state
    txn.forget_view(shard)
    note(txn, undo)


def _state(txn: TransactionState, view: View) -> SchemaState:
    return txn.schema_states.get(view.shard) or SchemaState(view.generation, view.spec, view.own)


def change(txn: TransactionState, shard: ShardId, work: Callable[[], Steps[None] | None]) -> Steps[None]:
    """Lock a shard X and do ``work``, all at once or in the steps that it returns; what it has done is undone
    if it fails.
    """
    if txn.read_only:
        raise ReadOnlyTransaction("cannot change a schema in a read-only transaction")
    yield from promotion.begin_write(txn, {shard: X})
    mark = len(txn.journal)
    try:
        steps = work()
        if steps is not None:
            yield from steps
    except BaseException as error:
        yield from undo_failed(txn, mark, error)
        raise


def create(txn: TransactionState, spec: ShardSpec) -> None:
    """Make a new shard, empty, known to this transaction until it commits. ValueError if the id is taken."""
    if spec.shard in txn.core.shards or spec.shard in txn.schema_states:
        raise ValueError(f"shard {spec.shard} exists")
    generation = Generation(spec, 0, txn.core.domain_for(spec).garbage)
    _set(txn, spec.shard, SchemaState(generation, spec, None, created=True))


def truncate(txn: TransactionState, shard: ShardId) -> None:
    """Start an empty generation. The caller holds X. A damaged shard is whole afterwards."""
    view = txn.view(shard, even_damaged=True)
    start(txn, view, following(view, view.spec))


def following(view: View, spec: ShardSpec) -> Generation:
    """Return an empty generation that is to follow a shard's, with another schema perhaps."""
    old = view.generation
    return Generation(spec, old.number + 1, old.garbage, old.next_row_id)


def start(txn: TransactionState, view: View, generation: Generation) -> None:
    """Put a generation of no rows, and its schema, in the place of a shard's. The caller holds X."""
    shard = view.shard
    state = _state(txn, view)
    own = txn.own_of(shard)

    def undo() -> None:
        txn.replace_own(shard, own)
        txn.forget_view(shard)

    txn.replace_own(shard, None)
    note(txn, undo)
    _set(txn, shard, state._replace(
        generation=generation, spec=generation.spec, own=None, truncated=not state.created
    ))  # fmt: skip


def drop(txn: TransactionState, shard: ShardId) -> None:
    """Forget a shard. The caller holds X."""
    _set(txn, shard, _state(txn, txn.view(shard, even_damaged=True))._replace(dropped=True))


def alter(txn: TransactionState, spec: ShardSpec) -> Steps[None]:
    """Change the schema; new indexes are built and unique ones checked. The caller holds X."""
    view = txn.view(spec.shard)
    state = _state(txn, view)
    generation = view.generation
    while generation.flushing:
        yield asyncio.sleep(FLUSH_POLL_S)  # upkeep writes parts without the new indexes
    txn.pin(generation)
    builds = txn.core.builds
    built = [
        (build, i) for i in spec.indexes
        if (build := builds.get(i.index)) is not None and build.fits(generation, i) and view.own is None
    ]  # fmt: skip
    ready = {definition.index for _build, definition in built}
    added = [
        i for i in spec.indexes
        if i.index not in ready
        and (i.index not in generation.indexes or isinstance(generation.indexes[i.index], BuildingIndex))
    ]  # fmt: skip
    sure = {replace(i, primary=False) for i in view.spec.indexes}
    checked = [
        i for i in spec.indexes
        if i.unique and replace(i, primary=False) not in sure and i.index not in ready
    ]  # fmt: skip
    old_padding = generation.padding
    narrow: list[tuple[Intent, Row]] = []

    def undo() -> None:
        generation.padding = old_padding
        for intent, values in narrow:
            intent.values = values
        for index_id in [*(i.index for i in added), *ready]:
            generation.indexes.pop(index_id, None)
        _rebuild_own(txn, view)

    generation.padding = Padding(spec.columns)
    note(txn, undo)
    narrow += _widen_own(txn, view, generation.padding)
    for build, definition in built:
        yield from build.adopt(generation, definition)
    for definition in added:
        index = generation.indexes[definition.index] = HotIndex(
            KeyMaker(spec.columns, definition), definition
        )
        yield from _fill(generation, index)
    _set(txn, spec.shard, state._replace(spec=spec))
    changed = txn.view(spec.shard)
    for definition in added:
        for part in changed.parts(INFINITY):
            yield txn.core.log.build_sidecar(part.ref, spec, definition.index)
    for definition in checked:
        yield from _check_no_duplicates(txn, changed, definition)


def _rebuild_own(txn: TransactionState, view: View) -> None:
    own = txn.own_of(view.shard)
    if own is not None:
        own.forget_indexes()


def _widen_own(txn: TransactionState, view: View, padding: Padding) -> list[tuple[Intent, Row]]:
    """Give own intents the new columns; returns those it changed, with what they were.

    An intent left wide would have a value for a number of a column that a later ADD COLUMN gives again.
    """
    narrow: list[tuple[Intent, Row]] = []
    own = txn.own_of(view.shard)
    if own is not None:
        own.forget_indexes()
        for newest in own.rows.values():
            intent: Intent | None = newest
            while intent is not None:
                values = intent.values
                if values is not None and len(values) < padding.width:
                    narrow.append((intent, values))
                    intent.values = padding.pad(values)
                intent = intent.older
    return narrow


def _fill(generation: Generation, index: HotIndex) -> Steps[None]:
    """Enter all hot versions in a new index, in pieces; it is registered already, so vacuum keeps it right."""
    padding = generation.padding
    for count, row_id in enumerate(list(generation.rows), 1):
        version: Version | None = generation.rows.get(row_id)
        while version is not None:
            if version.values is not None:
                index.add(index.make.of_row(padding.pad(version.values)), row_id)
            version = version.older
        if count % CHUNK_ROWS == 0:
            yield asyncio.sleep(0)


def _check_no_duplicates(txn: TransactionState, view: View, definition: ShardIndex) -> Steps[None]:
    """Raise DuplicateKey if live rows (own ones included) share a key. The shard is locked X."""
    generation = view.generation
    own = txn.own_of(view.shard)
    own_rows = own.rows if own is not None else {}
    index = generation.indexes[definition.index]
    make = index.make
    padding = view.padding
    parts = view.parts(INFINITY)
    seen: dict[Any, RowId] = {}
    live: list[tuple[RowId, Any]] = []
    for row_id, head in list(generation.rows.items()):
        if head.values is not None and RowId(row_id) not in own_rows:
            live.append((RowId(row_id), padding.pad(head.values)))
    for own_id, intent in own_rows.items():
        if intent.values is not None:
            live.append((own_id, padding.pad(intent.values)))
    for count, (row_id, values) in enumerate(live, 1):
        if count % CHUNK_ROWS == 0:
            yield asyncio.sleep(0)
        key = make.of_row(values)
        if make.exempt(key):
            continue
        if seen.setdefault(key, row_id) != row_id:
            raise DuplicateKey(view.shard, definition.index, make.raw(values))
        raw = make.raw(values)
        with looked_up(parts if make.may_be_long else (), definition.index, (raw,)) as looking:
            yield from looking
            for part in parts:
                for position in part.lookup(definition.index, raw):
                    other = part.file.row_id(position)
                    if not part.end_of(position) and other != row_id and other not in own_rows:
                        raise DuplicateKey(view.shard, definition.index, raw)
    if parts:
        skip = frozenset(own_rows)
        merged = merge_parts(parts, definition, skip)
        pair = yield txn.core.offload(merged.next)
        while pair is not None:
            part, position = pair
            row = part.file.row(position, view.spec)
            if not isinstance(row, tuple):
                row = yield row
            if not definition.exempt(make.raw(row)):
                raise DuplicateKey(view.shard, definition.index, make.raw(row))
            pair = yield txn.core.offload(merged.next)
