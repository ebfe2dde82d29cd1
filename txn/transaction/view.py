"""A shard as one transaction sees it: schema, generation, own intents.

changed by the transaction      what it made of it
reading                         the version of the read timestamp, from the first look to the end
writing, table locked           the latest one, which the lock keeps as it is
writing, table not locked       the latest one, looked up every time: it may change until it is locked
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from txn.base.types import IndexId, Row, ShardId, ShardSpec
from txn.mvcc.generation import Generation, Padding
from txn.mvcc.intents import OwnWrites
from txn.mvcc.keys import IndexKey, KeyMaker
from txn.mvcc.many_keys import LongValues, longs_of
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY

T = TypeVar("T")
Steps: TypeAlias = Generator[Awaitable[Any], Any, T]
"""An operation: yields what it waits for, returns its result (``TransactionState.run``)."""


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


class SchemaState(NamedTuple):
    """A shard that this transaction has created, altered, truncated or dropped."""

    generation: Generation
    spec: ShardSpec
    own: OwnWrites | None
    created: bool = False
    truncated: bool = False
    dropped: bool = False


def make_ready(view: View, index: IndexId, *, ordered: bool = False) -> Steps[None]:
    """Make what an index of many hot rows, or intents, lacks before its first use, in steps: the entries of
    intents, and the order of keys.
    """
    made = [view.generation.indexes[index]] if ordered else []
    if view.own is not None and view.own.rows:
        for _ in view.own.fill(index):
            yield asyncio.sleep(0)
        made.append(view.own.index(index))
    for one in made if ordered else ():
        if one.unordered:
            for _ in one.put_in_order():
                yield asyncio.sleep(0)
