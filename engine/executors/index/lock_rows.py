"""SELECT ... FOR UPDATE and its kin: the node that locks the rows a query is about to return.

    Limit
      LockRows  t for no key update, skip locked
        Sort  by 1
          Project  id, payload, (row id, version of t)

It stands between ORDER BY and LIMIT, as in PostgreSQL: rows are locked in the order of the result, and none beyond the
limit. What a row holds is compared with what was read, once it is locked:

    the same             the row goes on
    changed, or gone     ``RowsChanged``: somebody committed while the lock was waited for. The statement runs again from
                         its beginning (PostgreSQL evaluates it again for that row alone); its locks stay, so
                         that it gets further each time
    locked by others     waited for; with NOWAIT 55P03; with SKIP LOCKED the row is left out

NOWAIT counts for every lock that reading the rows takes, also those on index keys.

Tables that no index serves are scanned twice: once past all locks, to find the rows and to wait for them, and
then as the transaction's own read, which others' changes would contradict from that moment on. Of the first
rows of one table in some order (a queue's ``ORDER BY sent_at LIMIT 1``) only those up to the last one given:
what comes or goes behind it, changes nothing.

Ranges under SKIP LOCKED are read without any lock (``peek``). Where an index gives their rows in the query's order, a
few rows more than the limit are read, and more again while too many of them are skipped. Of a partitioned table each
partition gives that many; no more of them are looked at once they are sorted, as behind those others may come first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from engine.base.executor import RowsChanged
from engine.executors.index.nodes import Node, count_of
from engine.executors.index.sources import LastRow
from engine.executors.index.state import Pipe, Rows, evaluate, poll, waited
from pgwire.release import release
from planner.evaluate import Layout, compile_expr
from planner.facts import INT8, OID
from planner.query import (
    ROW_ID,
    ROW_VERSION,
    LockStrength,
    LockWait,
    RelationRange,
    RowMark,
    Select,
    SubqueryRange,
    Target,
    Var,
)
from planner.types import SqlType
from txn.base.types import RowId, ShardId

if TYPE_CHECKING:
    from engine.executors.index.sources import IndexSource, TableScan

SLACK_ROWS: Final = 16  # read beyond the limit at first, in case rows are locked
SLACK_GROWTH: Final = 8


@dataclass(frozen=True, slots=True)
class Locked:
    """One range to lock: where a row's id and version stand in the child's rows.

    ``shard``: the table that all rows are of. A partitioned one has None; ``table`` is then where each row's
    own stands.
    """

    shard: ShardId | None
    name: str
    row_id: int
    version: int
    table: int
    strength: LockStrength
    wait: LockWait

    def identity(self, row: Any) -> tuple[int, int]:
        """Return which row of which table this is; 0 where all are of one."""
        return 0 if self.shard is not None else row[self.table], row[self.row_id]

    def by_table(self, rows: Rows) -> Iterator[tuple[ShardId, Rows]]:
        """Return the rows by their tables, in their order: those of one table that follow each other together."""
        if self.shard is not None:
            yield self.shard, rows
            return
        for oid, of_one in groupby(rows, itemgetter(self.table)):
            yield ShardId(oid), list(of_one)


def _marks(query: Select) -> list[tuple[RowMark, RelationRange | SubqueryRange]]:
    """Return the marks at stored tables and at partitioned ones; those at sub-queries are carried out inside them."""
    found = [(mark, query.ranges[mark.range]) for mark in query.row_marks if not mark.above]
    return [
        (mark, item)
        for mark, item in found
        if isinstance(item, RelationRange) or (isinstance(item, SubqueryRange) and mark.row is not None)
    ]


def with_row_ids(query: Select) -> tuple[Target, ...]:
    """Return junk targets with id and version of the rows to lock, and where they are of several tables with
    their table.
    """
    made: list[Target] = []
    for mark, _item in _marks(query):
        table, row_id, version = mark.row or (None, ROW_ID, ROW_VERSION)
        wanted = [(row_id, "row_id", INT8), (version, "row_version", INT8)]
        if table is not None:
            wanted.append((table, "tableoid", OID))
        made += [
            Target(
                expr=Var(type=SqlType(oid), range=mark.range, attnum=attnum, name=name), name=name, junk=True
            )
            for attnum, name, oid in wanted
        ]
    return tuple(made)


class LockRows(Node):
    """Locks the rows of its child; see the module."""

    def __init__(
        self,
        child: Node,
        query: Select,
        first: int,
        ordered: Sequence[IndexSource],
        scouts: Sequence[TableScan],
        outer: Layout | None,
        subplan: Any,
    ) -> None:
        """Lock what ``query`` marks.

        ``first``: position of the first junk target. ``ordered``: the sources that read only to the limit.
        ``scouts``: scans of tables whose rows are to be locked.
        """
        super().__init__(child.layout, child.width, child)
        self.locked: list[Locked] = []
        for mark, item in _marks(query):
            shard = ShardId(item.oid) if isinstance(item, RelationRange) else None
            self.locked.append(
                Locked(shard, item.alias, first, first + 1, first + 2, mark.strength, mark.wait)
            )
            first += 2 if shard is not None else 3
        self.scouts = tuple(scouts)
        self.skips = any(lock.wait == "skip" for lock in self.locked)
        self.nowait = any(lock.wait == "nowait" for lock in self.locked)
        self.ordered = tuple(ordered) if self.skips else ()
        for source in self.ordered:
            source.slack = True
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
        self.first_of = self._first_of(query)
        self.order = [key.target for key in query.order]

    def _first_of(self, query: Select) -> TableScan | None:
        """Return the scan of which only rows up to the last one given matter, None where there is no such."""
        plain = not (query.grouped or query.distinct or query.in_turn or len(query.from_) != 1)
        if not plain or not self.counts or len(self.scouts) != 1 or len(query.ranges) != 1:
            return None
        (scan,) = self.scouts
        return scan if scan.watches_first(query) else None

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
        try:
            left = wanted
            while True:
                for ordered in self.ordered:
                    e.shared.private[ordered] = slack
                most = wanted + slack if self.ordered and wanted is not None else None
                read = 0
                source = self.inputs[0].pipe(e)
                try:
                    for item in source:
                        if item.__class__ is not list:
                            yield item
                            continue
                        rows = item if most is None else item[: most - read]
                        read += len(rows)
                        for row in rows:
                            key = tuple(lock.identity(row) for lock in self.locked)
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
                if most is None or read < most:
                    return
                slack = most * SLACK_GROWTH
        finally:
            release(seen)

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
        last = None
        if self.first_of is not None:
            last = e.shared.private[self.first_of, LastRow] = LastRow()
        source = self.inputs[0].pipe(e)
        left = wanted
        try:
            for item in source:
                if item.__class__ is not list:
                    yield item
                    continue
                while item:
                    rows, item = (item, []) if left is None else (item[:left], item[left:])
                    rows = yield from self._lock(rows, e)
                    if left is not None:
                        left -= len(rows)
                        if left <= 0:
                            if last is not None:
                                last.key = tuple([rows[-1][i] for i in self.order])
                            yield rows
                            return
                    if rows:
                        yield rows
        finally:
            source.close()

    def _lock(self, rows: Rows, e: Any) -> Any:
        """Lock ``rows`` at every mark; return those that stay.

        Left out is a (single) one that is skipped, and what the transaction itself has changed since the
        statement began: within it, or since the cursor was opened.
        """
        txn = e.shared.ctx.txn
        for lock in self.locked:
            gone: set[tuple[int, int]] = set()
            for shard, of_one in lock.by_table(rows):
                wanted: dict[RowId, int] = {row[lock.row_id]: row[lock.version] for row in of_one}
                found = txn.lock_rows(shard, list(wanted), lock.strength, lock.wait)
                if isinstance(found, Awaitable):
                    found = yield from waited(found)
                for (row_id, version), stored in zip(wanted.items(), found, strict=True):
                    if stored is None and lock.wait == "skip":
                        return []
                    if stored is None or stored.begin != version:
                        if not txn.changed_within(shard, row_id):
                            raise RowsChanged
                        gone.add((0 if lock.shard is not None else shard, row_id))
            if gone:
                rows = [row for row in rows if lock.identity(row) not in gone]
        return rows
