"""A shard as one transaction sees it: schema, generation, own intents.

changed by the transaction      what it made of it
reading                         the version of the read timestamp, from the first look to the end
writing, table locked           the latest one, which the lock keeps as it is
writing, table not locked       the latest one, looked up every time: it may change until it is locked
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from txn.base.errors import CrossesTimelines, SchemaChanged, anew
from txn.base.types import IndexId, Row, ShardId, ShardSpec
from txn.mvcc.generation import Generation, Padding
from txn.mvcc.intents import OwnWrites
from txn.mvcc.keys import IndexKey, KeyMaker
from txn.mvcc.many_keys import LongValues, longs_of
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY

if TYPE_CHECKING:
    from txn.transaction.transaction import StoreTransaction

T = TypeVar("T")
Steps: TypeAlias = Generator[Awaitable[Any], Any, T]
"""An operation: yields what it waits for, returns its result (``StoreTransaction.run``)."""


class IndexView(NamedTuple):
    """What writing needs of one index, unpacked."""

    id: IndexId
    make: KeyMaker
    of_row: Callable[[Row], IndexKey]
    unique: bool
    sorted: bool
    inverted: bool


class View:
    """A shard as one transaction sees it."""

    __slots__ = ("generation", "indexes", "longs", "own", "padding", "shard", "spec")

    def __init__(
        self, shard: ShardId, generation: Generation, spec: ShardSpec, own: OwnWrites | None
    ) -> None:
        self.shard = shard
        self.generation = generation
        self.spec = spec
        self.own = own
        self.padding = generation.reader_padding if generation.spec is spec else Padding(spec.columns)
        self.indexes: list[IndexView] | None = None
        self.longs: Sequence[LongValues] = ()
        """Of ``index_views``, once they have been asked for."""

    def index_views(self) -> list[IndexView]:
        """Return the indexes of the schema in use."""
        if self.indexes is None:
            kept = self.generation.index_views
            if kept is not None and kept[0] is self.spec:
                _spec, self.indexes, self.longs = kept
        if self.indexes is None:
            self.indexes = [
                IndexView(
                    i.index,
                    m := self.generation.indexes[i.index].make,
                    m.of_row,
                    i.unique,
                    i.ordered,
                    i.inverted,
                )
                for i in self.spec.indexes
            ]
            self.longs = longs_of(self.indexes)
            self.generation.index_views = (self.spec, self.indexes, self.longs)
        return self.indexes

    def parts(self, statement: int, ts: int = INFINITY) -> tuple[PartState, ...]:
        """Return the committed parts and the own ones a read in ``statement`` at ``ts`` (the latest state) sees."""
        parts = self.generation.parts_at(ts)
        own = self.own
        if own is not None:
            if own.ended:
                parts = own.without_ended(parts, statement)
            if own.parts:
                parts += tuple(own.visible_parts(statement))
        return parts


def make_ready(view: View, index: IndexId, *, ordered: bool = False) -> Steps[None]:
    """Make what an index of many hot rows, or intents, lacks before its first use, in steps: the entries of intents, and the order of keys."""
    made = [view.generation.indexes[index]] if ordered else []
    if view.own is not None and view.own.rows:
        for _ in view.own.fill(index):
            yield asyncio.sleep(0)
        made.append(view.own.index(index))
    for one in made if ordered else ():
        if one.unordered:
            for _ in one.put_in_order():
                yield asyncio.sleep(0)


def look_at(txn: StoreTransaction, shard: ShardId, *, even_damaged: bool = False) -> View:
    """Return a shard that the transaction does not look at yet; KeyError if it does not exist.

    Raises DamagedFile when it cannot be served, unless ``even_damaged``; SchemaChanged when it has changed since
    ``glimpse``, or a writing transaction finds it dropped by another; CrossesTimelines where ``read_ts`` means nothing.
    """
    changed = txn.schema_states.get(shard)
    if changed is not None:
        if changed.dropped:
            raise KeyError(shard)
        view = View(shard, changed.generation, changed.spec, txn.own.get(shard))
    else:
        core = txn.core
        damaged = core.log.damaged
        if damaged and shard in damaged and shard not in core.shards:
            raise anew(damaged[shard])
        history = core.shards[shard]
        if (
            history.domain is not txn.timeline
            and not txn.writing
            and history.domain is not core.timelines.common
        ):
            raise CrossesTimelines({shard: history.domain.name})  # its timestamps are others
        entry = history.latest if txn.writing else history.at(txn.read_ts)
        if entry is None or entry.generation is None or entry.spec is None:
            if txn.writing:
                raise SchemaChanged(shard)  # it knew of the shard; another has dropped it meanwhile
            raise KeyError(shard)
        if entry.generation.damage is not None:
            if not even_damaged and shard not in core.read_damaged:
                raise anew(entry.generation.damage)
            return View(shard, entry.generation, entry.spec, txn.own.get(shard))
        view = View(shard, entry.generation, entry.spec, txn.own.get(shard))
        if txn.writing and shard not in txn.owner.held:
            return view  # it may change until it is locked
        if txn.glimpsed is not None and txn.glimpsed.get(shard, entry.spec) is not entry.spec:
            raise SchemaChanged(shard)
    txn.views[shard] = view
    return view


def glimpse(txn: StoreTransaction, shard: ShardId) -> ShardSpec:
    """Return a shard's schema; one that no lock protects has to be the same when the shard is looked at."""
    spec = txn.view(shard, even_damaged=True).spec
    if txn.writing and shard not in txn.owner.held and shard not in txn.schema_states:
        if txn.glimpsed is None:
            txn.glimpsed = {}
        txn.glimpsed.setdefault(shard, spec)
    return spec
