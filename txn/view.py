"""A shard as one transaction sees it: schema, generation, own intents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from txn.mvcc.generation import Generation, Padding
from txn.mvcc.intents import OwnWrites
from txn.mvcc.keys import IndexKey, KeyMaker
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY
from txn.types import IndexId, Row, ShardId, ShardSpec

T = TypeVar("T")
Steps: TypeAlias = Generator[Awaitable[Any], Any, T]
"""An operation: yields what it waits for, returns its result (``StoreTransaction.run``)."""


class IndexView(NamedTuple):
    """What writing needs of one index, unpacked."""

    id: IndexId
    make: KeyMaker
    of_row: Callable[[Row], IndexKey]
    unique: bool
    nulls_distinct: bool
    sorted: bool


class View:
    """A shard as one transaction sees it."""

    __slots__ = ("generation", "indexes", "own", "padding", "shard", "spec")

    def __init__(
        self, shard: ShardId, generation: Generation, spec: ShardSpec, own: OwnWrites | None
    ) -> None:
        self.shard = shard
        self.generation = generation
        self.spec = spec
        self.own = own
        self.padding = generation.reader_padding if generation.spec is spec else Padding(spec.columns)
        self.indexes: list[IndexView] | None = None

    def index_views(self) -> list[IndexView]:
        """Return the indexes of the schema in use."""
        if self.indexes is None:
            kept = self.generation.index_views
            if kept is not None and kept[0] is self.spec:
                self.indexes = kept[1]
        if self.indexes is None:
            self.indexes = [
                IndexView(
                    i.index,
                    m := self.generation.indexes[i.index].make,
                    m.of_row,
                    i.unique,
                    i.nulls_distinct,
                    i.kind == "sorted",
                )
                for i in self.spec.indexes
            ]
            self.generation.index_views = (self.spec, self.indexes)
        return self.indexes

    def parts(self, statement: int, ts: int = INFINITY) -> tuple[PartState, ...]:
        """Return the committed parts and the own ones a read in ``statement`` at ``ts`` (the latest state) sees."""
        parts = self.generation.parts_at(ts)
        if self.own is not None and self.own.parts:
            parts += tuple(self.own.visible_parts(statement))
        return parts
