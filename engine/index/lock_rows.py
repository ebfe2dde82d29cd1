"""SELECT ... FOR UPDATE and its kin: the node that locks the rows a query is about to return.

    Limit
      LockRows  t for no key update, skip locked
        Sort  by 1
          Project  id, payload, (row id, version of t)

It stands between ORDER BY and LIMIT, as in PostgreSQL: rows are locked in the order of the result, and none beyond the
limit. What a row holds is compared with what was read, once it is locked:

    the same             the row goes on
    changed, or gone     ``RowsChanged``: somebody committed while the lock was waited for. The statement runs again from
                         its beginning (PostgreSQL evaluates it again for that row alone); its locks stay, so that it gets
                         further each time
    locked by others     waited for; with NOWAIT 55P03; with SKIP LOCKED the row is left out

NOWAIT counts for every lock that reading the rows takes, also those on index keys.

Tables that no index serves are scanned twice: once past all locks, to find the rows and to wait for them, and then as
the transaction's own read, which others' changes would contradict from that moment on.

Ranges under SKIP LOCKED are read without any lock (``peek``). Where an index gives their rows in the query's order, a
few rows more than the limit are read, and more again while too many of them are skipped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.executor import RowsChanged
from engine.index.nodes import Node, count_of
from engine.index.state import Pipe, Rows, Wait, evaluate, poll
from planner.evaluate import Layout, compile_expr
from planner.facts import INT8
from planner.query import (
    ROW_ID,
    ROW_VERSION,
    LockStrength,
    LockWait,
    RelationRange,
    RowMark,
    Select,
    Target,
    Var,
)
from planner.types import SqlType
from txn.types import RowId, ShardId

if TYPE_CHECKING:
    from engine.index.sources import IndexSource, TableScan

SLACK_ROWS: Final = 16  # read beyond the limit at first, in case rows are locked
SLACK_GROWTH: Final = 8


@dataclass(frozen=True, slots=True)
class Locked:
    """One range to lock: where a row's id and version stand in the child's rows."""

    shard: ShardId
    name: str
    row_id: int
    version: int
    strength: LockStrength
    wait: LockWait


def relation_marks(query: Select) -> list[tuple[RowMark, RelationRange]]:
    """Return the marks at stored tables; those at sub-queries are carried out inside them."""
    found = [(mark, query.ranges[mark.range]) for mark in query.row_marks]
    return [(mark, item) for mark, item in found if isinstance(item, RelationRange)]


def with_row_ids(query: Select) -> tuple[Target, ...]:
    """Return junk targets with id and version of the rows to lock, in the order of ``relation_marks``."""
    return tuple(
        Target(
            expr=Var(type=SqlType(INT8), range=mark.range, attnum=attnum, name=name),
            name=name,
            junk=True,
        )
        for mark, _item in relation_marks(query)
        for attnum, name in ((ROW_ID, "row_id"), (ROW_VERSION, "row_version"))
    )


class LockRows(Node):
    """Locks the rows of its child; see the module."""

    def __init__(
        self,
        child: Node,
        query: Select,
        first: int,
        ordered: IndexSource | None,
        scouts: Sequence[TableScan],
        outer: Layout | None,
        subplan: Any,
    ) -> None:
        """Lock what ``query`` marks.

        ``first``: position of the first junk target. ``ordered``: the source that reads only to the limit.
        ``scouts``: scans of tables whose rows are to be locked.
        """
        super().__init__(child.layout, child.width, child)
        self.locked = [
            Locked(ShardId(item.oid), item.alias, first + 2 * i, first + 2 * i + 1, mark.strength, mark.wait)
            for i, (mark, item) in enumerate(relation_marks(query))
        ]
        self.scouts = tuple(scouts)
        self.skips = any(lock.wait == "skip" for lock in self.locked)
        self.nowait = any(lock.wait == "nowait" for lock in self.locked)
        self.ordered = ordered if self.skips else None
        if self.ordered is not None:
            self.ordered.slack = True
        layout = Layout(outer=outer, subplan=subplan)
        capped = not query.with_ties
        self.counts = (
            [
                (compile_expr(expr, layout), what)
                for expr, what in ((query.limit, "LIMIT"), (query.offset, "OFFSET"))
                if expr is not None
            ]
            if capped and query.limit is not None
            else []
        )

    def _wanted(self, e: Any) -> Any:
        """Return how many rows LIMIT and OFFSET take together, None for all."""
        total = 0
        for function, what in self.counts:
            value = (yield from evaluate(function, (), e)) if function.may_suspend else function((), e)
            count = count_of(value, what)
            if count is None and what == "LIMIT":
                return None
            total += count or 0
        return total if self.counts else None

    def pipe(self, e: Any) -> Pipe:
        """Lock and pass on."""
        wanted = yield from self._wanted(e)
        if wanted == 0:
            return
        if not self.skips:
            ctx = e.shared.ctx
            if self.nowait:
                ctx.txn.set_lock_timeout(-1)
            try:
                if self.scouts:
                    yield from self._scout(e, wanted)
                yield from self._all(e, wanted)
            finally:
                if self.nowait:
                    ctx.txn.set_lock_timeout(int(ctx.session.settings.get("lock_timeout")))
            return
        slack = SLACK_ROWS
        seen: set[tuple[Any, ...]] = set()
        left = wanted
        while True:
            if self.ordered is not None:
                e.shared.private[self.ordered] = slack
            read = 0
            source = self.inputs[0].pipe(e)
            try:
                for item in source:
                    if item.__class__ is not list:
                        yield item
                        continue
                    read += len(item)
                    for row in item:
                        key = tuple(row[lock.row_id] for lock in self.locked)
                        if key in seen:
                            continue
                        seen.add(key)
                        if (yield from self._lock([row], e)):
                            yield [row]
                            left = None if left is None else left - 1
                            if left == 0:
                                return
            finally:
                source.close()
            if self.ordered is None or wanted is None or read < wanted + slack:
                return
            slack = (wanted + slack) * SLACK_GROWTH

    def _scout(self, e: Any, wanted: int | None) -> Pipe:
        """Find and lock the rows, waiting for whoever has them, until they are as they were found."""
        private = e.shared.private
        while True:
            for source in self.scouts:
                private[source] = True
            try:
                for item in self._all(e, wanted):
                    yield None if item.__class__ is list else item
                return
            except RowsChanged:
                poll(e.shared.ctx)
            finally:
                for source in self.scouts:
                    private[source] = False

    def _all(self, e: Any, wanted: int | None) -> Pipe:
        source = self.inputs[0].pipe(e)
        left = wanted
        try:
            for item in source:
                if item.__class__ is not list:
                    yield item
                    continue
                rows = item if left is None else item[:left]
                yield from self._lock(rows, e)
                if rows:
                    yield rows
                if left is not None:
                    left -= len(rows)
                    if left <= 0:
                        return
        finally:
            source.close()

    def _lock(self, rows: Rows, e: Any) -> Any:
        """Lock ``rows`` at every mark; False when the (single) row is to be left out."""
        txn = e.shared.ctx.txn
        for lock in self.locked:
            wanted: dict[RowId, int] = {row[lock.row_id]: row[lock.version] for row in rows}
            found = txn.lock_rows(lock.shard, list(wanted), lock.strength, lock.wait)
            if isinstance(found, Awaitable):
                wait = Wait(found)
                yield wait
                found = wait.value
            for (_row_id, version), stored in zip(wanted.items(), found, strict=True):
                if stored is None and lock.wait == "skip":
                    return False
                if stored is None or stored.begin != version:
                    raise RowsChanged
        return True

    def label(self) -> str:
        """Return the line."""
        words = {"block": "", "skip": " skip locked", "nowait": " nowait"}
        shown = [f"{lock.name} for {lock.strength}{words[lock.wait]}" for lock in self.locked]
        return "LockRows " + ", ".join(shown)
