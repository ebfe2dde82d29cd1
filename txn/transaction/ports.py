"""What the parts of this floor know of one another without being one another's parts.

    coordinator   knows of a transaction what ``Running`` says        (``txn.transaction.state`` is one)
    scan_watch    knows of the coordinator what ``Commits`` says
    coordinator   knows of a build what ``Build`` says                (``txn.transaction.index_build`` makes them)

That each is what is asked for the type checker sees where it is entered or handed over. At run time nothing is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from txn.base.records import WriteSet
    from txn.base.types import RowId, ShardId, ShardIndex, Timestamp, TxnId
    from txn.locks.entry import LockOwner
    from txn.log.history import ShardHistory
    from txn.log.holds import Hold
    from txn.log.timeline import Timeline
    from txn.mvcc.generation import Generation
    from txn.mvcc.intents import OwnWrites
    from txn.mvcc.version import Version
    from txn.transaction.view import Steps, View


class Intents(Protocol):
    """What a journal's entries of intents name: own writes, or what stands in their place once they are
    spilled (``txn.transaction.spill``).
    """

    @property
    def rows(self) -> Mapping[RowId, Any]:
        """The newest intent of each row."""

    def pop(self, row_id: RowId) -> None:
        """Take the row's newest intent back."""


class Running(Protocol):
    """A transaction that has not ended, as the coordinator and who inspects it know it."""

    @property
    def id(self) -> TxnId:
        """Ids order transactions by age."""

    @property
    def session(self) -> int:
        """Whose it is."""

    @property
    def timeline(self) -> Timeline:
        """The one that it is in."""

    @property
    def others(self) -> Mapping[Timeline, Hold] | None:
        """Holds in timelines that it may enter instead; None once it may not."""

    @property
    def everywhere(self) -> bool:
        """Whether its commit is one of all timelines."""

    @property
    def hold(self) -> Hold:
        """What keeps its read timestamp readable."""

    @property
    def read_ts(self) -> Timestamp:
        """What it reads at until it writes."""

    @property
    def read_only(self) -> bool:
        """Whether it was begun as one that only reads."""

    @property
    def writing(self) -> bool:
        """Whether it was promoted."""

    @property
    def owner(self) -> LockOwner:
        """Who owns its locks."""

    @property
    def own(self) -> Mapping[ShardId, OwnWrites]:
        """What it has written."""

    @property
    def views(self) -> Mapping[ShardId, View]:
        """The shards it looks at."""

    def own_of(self, shard: ShardId) -> OwnWrites | None:
        """Return its intents in a shard, if any."""

    def new_generation(self, shard: ShardId) -> Generation | None:
        """Return the generation it has made for a shard, if it made one."""

    def settled(self, ts: Timestamp) -> None:
        """Its commit is readable: called in that tick."""

    def on_end(self, callback: Callable[[], None]) -> None:
        """Have a function called when it has ended, either way."""

    def rollback(self) -> None:
        """Give it up, unless its commit is under way."""


class Commits(Protocol):
    """What is committed, as whoever compares scans with it asks for it."""

    @property
    def shards(self) -> Mapping[ShardId, ShardHistory]:
        """The shards by id."""

    @property
    def committing(self) -> Mapping[TxnId, Running]:
        """The transactions whose commits are under way."""

    @property
    def aside(self) -> list[tuple[int, Generation, RowId, Version]]:
        """Entries of the garbage queue that are set aside while it is purged."""

    def session_of_txn(self, writes: WriteSet) -> int:
        """Return the session of a transaction that is being committed, 0 if it has gone."""


class Build(Protocol):
    """An index that is built ahead, as the transaction that makes it its own knows it."""

    def fits(self, generation: Generation, definition: ShardIndex) -> bool:
        """Tell whether this is the index that is wanted."""

    def adopt(self, generation: Generation, definition: ShardIndex) -> Steps[None]:
        """Finish under the table's X. Raises DuplicateKey."""
