"""SQL cursors: DECLARE, FETCH, MOVE, CLOSE (manual, those commands).

A cursor reads its result forward once. Rows that were read are kept while they may be asked for
(``kept_rows``: in memory and then in a file); a cursor WITH HOLD is read to its end at commit, because its
snapshot ends there. FETCH progress survives a cancelled FETCH: rows are kept before they are counted as
fetched (L40).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.kept_rows import KEPT_BYTES, KeptRows
from engine.base.rows import RowBatch, RowTuple
from engine.session.portal import Cursor, Portal, RowReader, Rows
from pgwire.codecs.sizes import measure_of, row_bytes
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.query.scrolling import scrolls_back
from planner.statements import CursorKey, DeclareCursor, DeclareSubscribe, Fetch, QueryStatement
from txn.base.errors import TxnError

if TYPE_CHECKING:
    from engine.base.rows import Source
    from engine.session.plans.plan import Plan
    from engine.session.session import Session

MAX_CURSORS = 1000
AT_ONCE = 32  # cursors that are closed in one turn of the loop
STREAM_ROWS = 10_000  # a FETCH of more is read so many at a time
READY_ROWS = (
    1  # a FETCH of more is answered in pieces: nobody knows how long the rows are before they are read
)
AHEAD_ROWS = 50  # that a cursor of PL/pgSQL reads at a time where nobody notices
LEAST_KEPT_BYTES = 16 << 10
MAX_LIVE_BYTES = 16 << 20
MAX_LIVE_ROWS = 50_000  # that FETCH ALL of a subscription gathers; the next one goes on


class Cursors:
    """The cursors of one session."""

    def __init__(self, session: Session, portals: dict[str, Portal]) -> None:
        """Start with none; ``portals``: those of the extended protocol, whose names are taken, too."""
        self._session = session
        self._portals = portals
        self._open: dict[str, Cursor] = {}
        self._unnamed = 0

    def get(self, name: str) -> Cursor:
        """Return a cursor; 34000 if there is none."""
        cursor = self._open.get(name)
        if cursor is None:
            raise SqlError("34000", f'cursor "{name}" does not exist')
        return cursor

    async def named(self, name: str) -> Cursor:
        """Return a cursor; 34000 if there is none."""
        return self.get(name)

    def find(self, name: str) -> Cursor | None:
        """Return a cursor, or None."""
        return self._open.get(name)

    @property
    def any(self) -> bool:
        """Whether one is open."""
        return bool(self._open)

    def reading(self) -> Iterator[Plan]:
        """Yield the plans of cursors, and of portals with a name, that have been started and not been closed.

        The unnamed portal goes with the next statement. A cursor that has outlived its transaction has all its rows.
        """
        for cursor in self._open.values():
            if cursor.plan is not None and cursor.savepoint_depth >= 0 and not cursor.reader.broken:
                yield cursor.plan
        for portal in self._portals.values():
            plan, broken = portal.plan, portal.reader is not None and portal.reader.broken
            if not portal.name or plan is None or not isinstance(plan.bound.statement, QueryStatement):
                continue
            if isinstance(portal.outcome, Rows) and not broken:
                yield plan

    @property
    def any_reading(self) -> bool:
        """Whether a cursor or portal may read more rows."""
        return self.any or any(portal.is_reading for portal in self._portals.values())

    def all(self) -> list[Cursor]:
        """Return all open cursors."""
        return list(self._open.values())

    def declare(self, statement: DeclareCursor, rows: Rows) -> None:
        """Open a cursor over a result, behind whose rows are the keys of what they were made of."""
        self.check_new(statement.name)
        shown = statement.shown
        self._open[statement.name] = Cursor(
            name=statement.name,
            text=self._session.query_text,
            columns=shown,
            reader=RowReader(rows.result, statement.name, self._session),
            store=self.store_of(rows),
            scroll=_scrolls(statement.scroll, rows),
            hold=statement.hold,
            binary=statement.binary,
            created_us=self._session.statement_time_us,
            savepoint_depth=len(self._session.block.savepoints),
            keys=statement.keys,
            hidden=len(rows.columns) - len(shown),
            plan=rows.plan,
        )

    def declare_rows(
        self,
        name: str,
        rows: Rows,
        *,
        scroll: bool | None,
        keys: tuple[CursorKey, ...] = (),
        loop: bool = False,
    ) -> Cursor:
        """Open a cursor of PL/pgSQL over a result; ``keys`` are behind its columns; ``loop``: of a loop,
        which nobody may close.

        Raises SqlError 42P03, 53400.
        """
        self.check_new(name)
        hidden = sum(len(key.attnums) for key in keys)
        made = self._open[name] = Cursor(
            name=name,
            text=self._session.query_text,
            columns=rows.columns[: len(rows.columns) - hidden],
            reader=RowReader(rows.result, name, self._session),
            store=self.store_of(rows),
            scroll=_scrolls(scroll, rows),
            hold=False,
            binary=False,
            created_us=self._session.statement_time_us,
            savepoint_depth=len(self._session.block.savepoints),
            keys=keys,
            hidden=hidden,
            plan=rows.plan,
            pinned=loop,
            ahead=0 if _is_noticed(rows) else AHEAD_ROWS,
        )
        return made

    async def next_rows(self, cursor: Cursor, count: int) -> list[RowTuple]:
        """Return the next rows of a cursor, at most ``count``; fewer at its end only. Raises SqlError 55000,
        and what reading raises.
        """
        cursor.reader.check()
        start = cursor.position
        if not cursor.scroll and len(cursor.store) == start and not cursor.exhausted:
            rows = []  # nobody will ask for them again
            async for batch in cursor.reader.take(count):
                rows.extend(cursor.store.tuples(batch))
            cursor.store.skip(len(rows))
            cursor.exhausted = cursor.reader.ended
            end = start + len(rows)
        else:
            await self._read(cursor, start + count)
            end = min(start + count, len(cursor.store))
            rows = await cursor.store.rows(start, end)
        cursor.position = end if end == start + count else end + 1
        self._passed(cursor)
        if not cursor.hidden:
            return rows
        cursor.here = tuple(rows[-1][-cursor.hidden :]) if rows and end == start + count else ()
        return [row[: -cursor.hidden] for row in rows]

    async def hold_pinned(self) -> None:
        """Before a procedure ends its transaction: read the cursors of the loops around that to their end, so
        that they outlive it.
        """
        for cursor in self._open.values():
            if cursor.pinned and cursor.savepoint_depth >= 0:
                await self._read(cursor, None)
                cursor.savepoint_depth = -1

    def free_name(self) -> str:
        """Return a name that no cursor of the session has had, as PostgreSQL names portals: a variable may
        keep it behind CLOSE.
        """
        while True:
            self._unnamed += 1
            name = f"<unnamed portal {self._unnamed}>"
            if name not in self._open and name not in self._portals:
                return name

    def current_value(self, name: str | None, table: int, table_name: str, attnum: int) -> object:
        """Return a column of the key of a table's row that a cursor stands on.

        Raises SqlError 34000 (no such cursor), 24000 (not on a row, not FOR UPDATE of the table, no simple scan of it).
        """
        if name is None:
            raise SqlError("42704", "no value found for parameter 1")
        cursor = self.get(name)
        if cursor.savepoint_depth < 0:
            raise SqlError("24000", f'cursor "{name}" is held from a previous transaction')
        key = next((key for key in cursor.keys if key.table == table), None)
        if key is None and cursor.plan is not None and cursor.plan.locking:
            raise SqlError(
                "24000", f'cursor "{name}" does not have a FOR UPDATE/SHARE reference to table "{table_name}"'
            )
        if key is None:
            raise SqlError("24000", f'cursor "{name}" is not a simply updatable scan of table "{table_name}"')
        keys = cursor.here
        if not keys:
            raise SqlError("24000", f'cursor "{name}" is not positioned on a row')
        return keys[key.position + key.attnums.index(attnum)]

    def store_of(self, rows: Rows) -> KeptRows:
        """Return a place for the rows of a cursor."""
        db = self._session.db
        measure = measure_of(tuple(column.type.oid for column in rows.columns))
        return KeptRows(
            Path(db.config.data_dir),
            lambda batch: db.arrow_rows(batch, rows.columns),
            measure,
            self._share,
            db.descriptors,
            files=self._session.temp,
        )

    def _share(self) -> int:
        """Return how many bytes one of the cursors may keep in memory."""
        return max(KEPT_BYTES // max(len(self._open), 1), LEAST_KEPT_BYTES)

    def check_new(self, name: str) -> None:
        """Raise SqlError 42P03 if there is a cursor of that name, 53400 if there are too many."""
        if name in self._open or name in self._portals:
            raise SqlError("42P03", f'cursor "{name}" already exists')
        if len(self._open) >= MAX_CURSORS:
            raise SqlError("53400", f"more than {MAX_CURSORS} open cursors")

    def declare_live(self, statement: DeclareSubscribe, source: Source, rows: Rows) -> None:
        """Open a cursor over a subscription."""
        self._open[statement.name] = Cursor(
            name=statement.name,
            text=self._session.query_text,
            columns=rows.columns,
            reader=RowReader(rows.result),
            store=self.store_of(rows),
            scroll=False,
            hold=False,
            binary=statement.binary,
            created_us=self._session.statement_time_us,
            savepoint_depth=len(self._session.block.savepoints),
            live=source,
        )

    async def _fetch_live(self, cursor: Cursor, source: Source, statement: Fetch) -> list[RowTuple]:
        """Return what is there, up to the count; if nothing is, wait for it up to the statement's timeout.

        Rows are kept before they are counted as fetched, so a cancel loses none (L40, Q10).
        """
        count = statement.count
        if statement.direction != "forward" or (count is not None and count < 0):
            self._need_scroll(cursor)
        most = MAX_LIVE_ROWS if count is None else count
        timeout_s = None if statement.timeout_us is None else statement.timeout_us / 1_000_000
        size = 0
        while len(cursor.kept) < most and size < MAX_LIVE_BYTES and not cursor.exhausted:
            try:
                rows = await source.poll(0 if cursor.kept else timeout_s)
            except StopAsyncIteration:
                cursor.exhausted = True
                break
            except (SqlError, TxnError):
                if not cursor.kept:
                    raise
                break  # what came before it is handed out first; the next FETCH meets it again
            if rows is None:
                break
            cursor.kept.extend(rows)
            size += openly(lambda some: sum(map(row_bytes, some)), rows)
        taken = cursor.kept[:most]
        del cursor.kept[:most]
        cursor.position += len(taken)
        return taken

    def close(self, name: str | None) -> None:
        """Close one cursor or portal, or all. Raises SqlError 34000, 24000 for one that a loop reads."""
        if name is None:
            for cursor in self._open.values():
                _check_unpinned(cursor)
            self.close_all()
            for portal in [p for p in self._portals.values() if not p.closes_cursors]:
                self._portals.pop(portal.name).close()
        elif (bound := self._portals.pop(name, None)) is not None:
            bound.close()
        else:
            cursor = self.get(name)
            _check_unpinned(cursor)
            cursor.close()
            del self._open[name]

    @property
    def names(self) -> frozenset[str]:
        """The names of all open cursors."""
        return frozenset(self._open)

    def close_others(self, names: frozenset[str]) -> None:
        """Close the cursors that have been opened since ``names`` were all: what opened them is undone."""
        for name in [n for n in self._open if n not in names]:
            self._open.pop(name).close()

    def close_all(self) -> None:
        """Close every cursor."""
        for cursor in self._open.values():
            cursor.close()
        self._open.clear()

    async def materialise_held(self) -> None:
        """Before a commit: read cursors WITH HOLD to their end."""
        for cursor in self._open.values():
            if cursor.hold and not cursor.exhausted and not cursor.reader.broken:
                await self._read(cursor, None)

    @property
    def many(self) -> bool:
        """Whether there are more than are closed in one turn."""
        return len(self._open) > AT_ONCE

    async def close_ending(self, committed: bool) -> None:
        """Before a transaction ends: close the cursors that end with it, some in each turn of the loop."""
        ending = [
            name
            for name, cursor in self._open.items()
            if cursor.savepoint_depth >= 0 and not (committed and cursor.hold)
        ]
        for start in range(AT_ONCE, len(ending), AT_ONCE):  # the first go with the block
            for name in ending[start : start + AT_ONCE]:
                self._open.pop(name).close()
            await asyncio.sleep(0)

    def block_ended(self, committed: bool) -> None:
        """A transaction ended: only held cursors that survived a commit stay."""
        for name, cursor in list(self._open.items()):
            if cursor.savepoint_depth < 0:
                continue
            if committed and cursor.hold and cursor.exhausted and not cursor.reader.broken:
                cursor.savepoint_depth = -1  # from now on it outlives transactions
            else:
                cursor.close()
                del self._open[name]

    def rolled_back_to(self, depth: int) -> None:
        """ROLLBACK TO: cursors and portals opened after the savepoint are gone; what they read may have been undone."""
        for name, cursor in list(self._open.items()):
            if cursor.savepoint_depth > depth:
                cursor.close()
                del self._open[name]
        for name, portal in list(self._portals.items()):
            if portal.savepoint_depth > depth:
                portal.close()
                del self._portals[name]

    def released(self, depth: int) -> None:
        """RELEASE: what was opened after the savepoint goes with the one before it, if any."""
        for cursor in self._open.values():
            cursor.savepoint_depth = min(cursor.savepoint_depth, depth)
        for portal in self._portals.values():
            portal.savepoint_depth = min(portal.savepoint_depth, depth)

    async def _read(self, cursor: Cursor, up_to: int | None) -> None:
        """Make sure rows 1 .. ``up_to`` (None: all) are kept, as far as they exist."""
        while not cursor.exhausted and (up_to is None or len(cursor.store) < up_to):
            want = 0 if up_to is None else max(up_to - len(cursor.store), cursor.ahead)
            async for batch in cursor.reader.take(want):
                few = cursor.ahead and len(batch) <= cursor.ahead  # which are asked for one by one
                await cursor.store.add(RowBatch(rows=cursor.store.tuples(batch)) if few else batch)
            if cursor.reader.ended:
                cursor.exhausted = True

    def stream(self, cursor: Cursor, statement: Fetch) -> AsyncIterator[RowBatch] | None:
        """Return the rows of a FETCH of many rows, in pieces; None if it is another kind of FETCH or MOVE."""
        count = statement.count
        if cursor.live is not None or statement.timeout_us is not None:
            return None
        cursor.reader.check()
        if statement.direction not in ("forward", "backward") or (
            count is not None and abs(count) <= READY_ROWS
        ):
            return None
        forward = (statement.direction == "forward") == (count is None or count >= 0)
        count = None if count is None else abs(count)
        if not forward and statement.move and count is None and cursor.position == 0:
            return None  # it has not left its beginning: no scrolling
        if not forward:
            self._need_scroll(cursor)
            found = self._backward(cursor, count)
        else:
            found = self._forward(cursor, None if count is None else cursor.position + count)
        return self._cut(cursor, found) if cursor.hidden else found

    @staticmethod
    async def _cut(cursor: Cursor, batches: AsyncIterator[RowBatch]) -> AsyncIterator[RowBatch]:
        """Yield batches without the keys behind their columns; then the cursor knows those of the row it stands on."""
        hidden, width = cursor.hidden, len(cursor.columns)
        cursor.here = ()
        async for batch in batches:
            if batch.rows is not None:
                yield RowBatch(rows=[row[:width] for row in batch.rows])
            else:
                yield RowBatch(arrow=batch.arrow.select(range(width)))
        place = cursor.position
        if 0 < place <= len(cursor.store):
            [row] = await cursor.store.rows(place - 1, place)
            cursor.here = tuple(row[-hidden:])

    async def _forward(self, cursor: Cursor, last: int | None) -> AsyncIterator[RowBatch]:
        """Yield the rows after the cursor's up to row ``last`` (None: all), moving it along."""
        while last is None or cursor.position < last:
            start = min(cursor.position, len(cursor.store))
            step = start + STREAM_ROWS if last is None else min(start + STREAM_ROWS, last)
            await self._read(cursor, step)
            end = min(step, len(cursor.store))
            async for batch in cursor.store.batches(start, end):
                yield batch
            cursor.position = end if end == step else len(cursor.store) + 1
            self._passed(cursor)
            if end < step:
                return

    async def _backward(self, cursor: Cursor, count: int | None) -> AsyncIterator[RowBatch]:
        """Yield the ``count`` rows before the cursor's (None: all), the nearest first, then move it there."""
        start = cursor.position
        low, top = self._behind(cursor, count)
        async for batch in cursor.store.batches_back(low, top):
            yield batch
        cursor.position = 0 if count is None else max(start - count, 0)

    @staticmethod
    def _behind(cursor: Cursor, count: int | None) -> tuple[int, int]:
        """Return the first of the ``count`` rows before the cursor's (None: all), and the one after the last."""
        start = cursor.position
        return 0 if count is None else max(start - 1 - count, 0), max(min(start - 1, len(cursor.store)), 0)

    @staticmethod
    def _passed(cursor: Cursor) -> None:
        """Forget what a cursor that cannot scroll has passed."""
        if not cursor.scroll:
            cursor.store.forget(cursor.position - 1)

    async def fetch(self, cursor: Cursor, statement: Fetch) -> list[RowTuple]:
        """Move the cursor and return the rows it passed (for MOVE the caller only counts them)."""
        if cursor.live is not None:
            return await self._fetch_live(cursor, cursor.live, statement)
        if statement.timeout_us is not None:
            raise SqlError("0A000", "only a cursor for SUBSCRIBE can be fetched from with a timeout")
        cursor.reader.check()
        rows = await self._fetched(cursor, statement)
        hidden = cursor.hidden
        if not hidden:
            return rows
        on_row = rows and 0 < cursor.position <= len(cursor.store)
        cursor.here = tuple(rows[-1][-hidden:]) if on_row else ()
        return [row[:-hidden] for row in rows]

    async def _fetched(self, cursor: Cursor, statement: Fetch) -> list[RowTuple]:
        start = cursor.position
        direction, count = statement.direction, statement.count
        if direction == "absolute":
            if count is None:
                raise AssertionError(f"FETCH {direction} has no count")
            if count >= 0:
                target = count
                await self._read(cursor, target)
                if (
                    target == start > len(cursor.store)
                ):  # behind the last row: it steps back, to come there again
                    self._need_scroll(cursor)
            else:
                self._need_scroll(cursor)
                await self._read(cursor, None)
                target = max(len(cursor.store) + 1 + count, 0)
            return await self._single(cursor, start, target)
        if direction == "relative":
            if count is None:
                raise AssertionError(f"FETCH {direction} has no count")
            target = start + count
            await self._read(cursor, max(target, 0))
            return await self._single(cursor, start, target, counts_only=statement.move and count == 0)
        forward = (direction == "forward") == (count is None or count >= 0)
        size = None if count is None else abs(count)
        if size == 0:
            return await self._single(cursor, start, start, counts_only=statement.move)
        if forward:
            last = None if size is None else start + size
            await self._read(cursor, last)
            end = len(cursor.store) if last is None else min(last, len(cursor.store))
            reached_end = last is None or end < last
            rows = await cursor.store.rows(start, end)
            cursor.position = len(cursor.store) + 1 if reached_end else end
            self._passed(cursor)
            return rows
        if statement.move and size is None and start == 0:
            return []  # it has not left its beginning
        self._need_scroll(cursor)
        rows = (await cursor.store.rows(*self._behind(cursor, size)))[::-1]
        cursor.position = 0 if size is None else max(start - size, 0)
        return rows

    async def _single(
        self, cursor: Cursor, start: int, target: int, *, counts_only: bool = False
    ) -> list[RowTuple]:
        """Move to row ``target`` and return it, or nothing when it lies outside.

        To read the current row once more is to scroll back, except where it is only counted.
        """
        again = target == start and 0 < start <= len(cursor.store) and not counts_only
        if target < start or again:
            self._need_scroll(cursor)
        if target <= 0:
            cursor.position = 0
            return []
        if target > len(cursor.store):
            cursor.position = len(cursor.store) + 1
            return []
        cursor.position = target
        found = await cursor.store.rows(target - 1, target)
        self._passed(cursor)
        return found

    @staticmethod
    def _need_scroll(cursor: Cursor) -> None:
        """Raise SqlError 55000 for a cursor that only goes forward, which, as in PostgreSQL, cannot be used
        any more then.
        """
        if not cursor.scroll:
            cursor.reader.broken = cursor.live is None  # a subscription goes on where it was
            raise SqlError(
                "55000",
                "cursor can only scan forward",
                hint="Declare it with SCROLL option to enable backward scan.",
            )


def _scrolls(said: bool | None, rows: Rows) -> bool:
    """Tell whether a cursor scrolls back: as is ``said``, else where its query lets it and locks no rows."""
    if said is not None or rows.plan is None:
        return said is not False
    statement = rows.plan.bound.statement
    if rows.plan.locking:
        return False
    return not isinstance(statement, DeclareCursor | QueryStatement) or scrolls_back(statement.query)


def _is_noticed(rows: Rows) -> bool:
    """Tell whether somebody may notice when the rows of a cursor are computed."""
    statement = None if rows.plan is None else rows.plan.bound.statement
    return isinstance(statement, QueryStatement) and bool(statement.query.in_turn)


def _check_unpinned(cursor: Cursor) -> None:
    if cursor.pinned:
        raise SqlError("24000", f'cannot drop pinned portal "{cursor.name}"')
