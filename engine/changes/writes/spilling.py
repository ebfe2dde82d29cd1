"""What a statement writes one row after another goes to parts now and then, so that it writes more rows than
it may have in memory.

    for row in rows: trigger ──> staged ──> ...         16 MB of staged rows ──> txn.transaction.spill ──> a part of the table

Also what runs within the statement, functions of triggers above all, and in all tables: what is counted is
the journal of the transaction. Where somebody else has a lock on a table its rows stay in memory, as many as
the statement may have (53200 past that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import openly
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

STAGED_BYTES: Final = 700
"""Of a row beside its values: its intent, its places in tables of rows, journal and indexes."""
SHARES: Final = 8
"""What is staged is spilled once it has its statement's share divided by this."""
MOST: Final = 32 << 20


class Spilling:
    """Of one statement, or of the triggers behind it. No savepoint that is made later may be gone back to
    while it is asked.

    ``limit``: bytes that may be staged.
    """

    __slots__ = ("_bytes", "_first", "_marks", "_seen", "_session", "limit")

    def __init__(self, session: Session) -> None:
        """Count from now on."""
        self._session = session
        self._first = self._seen = session.block.ensure_txn().savepoint()
        self._marks: dict[ShardId, int] = {}
        self._bytes = 0
        self.limit = min(session.account.limit // SHARES, MOST)

    @property
    def due(self) -> bool:
        """Whether so much is staged that it is to be spilled; asked after each row, or a few small ones: what
        the last one takes is what each counts for.
        """
        txn = self._session.block.ensure_txn()
        now = txn.savepoint()
        count = now - self._seen
        if count <= 0:
            self._seen = now  # a statement within may have spilled its own
            return False
        _, rows = txn.written_since(now - 1, 1)
        self._bytes += count * (STAGED_BYTES + (openly(row_bytes, rows[0]) if rows and rows[0] else 0))
        self._seen = now
        return self._bytes >= self.limit

    async def rest(self) -> None:
        """Spill what is left of the tables of which something was: rows lie in the order in which they were
        written. Raises as ``spill``.
        """
        txn = self._session.block.ensure_txn()
        for shard, mark in self._marks.items():
            if self._may_go(shard):
                await txn.spill(shard, mark)

    async def spill(self) -> dict[ShardId, list[int]]:
        """Spill the tables that have the most rows staged; returns the new ids of rows that were replaced.
        Raises what writing a part raises.
        """
        txn = self._session.block.ensure_txn()
        staged = sorted(((count, shard) for shard, count in txn.staged_rows()), reverse=True)
        half = sum(count for count, _ in staged) / 2
        moved: dict[ShardId, list[int]] = {}
        for count, shard in staged:
            if not self._may_go(shard):
                continue
            ids = await txn.spill(shard, self._marks.get(shard, self._first))
            if ids is not None:
                self._marks[shard] = txn.savepoint()
                moved[shard] = list(ids)
            half -= count
            if half <= 0:
                break
        self._seen = txn.savepoint()
        self._bytes = 0
        return moved

    def _may_go(self, shard: ShardId) -> bool:
        """Tell whether nobody looks for its rows in memory: keys that wait for the commit are looked at there."""
        relation = self._session.catalog.relation_by_oid(shard)
        if relation is None or relation.exclusions:
            return False
        return not any(c.kind in "pu" and self._session.timing.is_deferred(c) for c in relation.constraints)
