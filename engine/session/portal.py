"""Prepared statements, portals, and what a running statement yields.

A statement yields an ``Outcome``: a command tag, or rows. A portal keeps its outcome between Execute messages, so
that a row limit suspends it and the next Execute (or FETCH) goes on where it stopped (L40).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from engine.base.kept_rows import KeptRows
from engine.base.rows import MANY_ROWS, ReadyRows, RowBatch, RowStream, RowTuple
from engine.session.acting import Acting, acting_as
from engine.session.plans.plan import Plan
from planner.base.errors import SqlError
from planner.facts import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ
from planner.query import OutputColumn
from planner.statements import CloseCursor

if TYPE_CHECKING:
    from engine.base.rows import Source
    from engine.session.transaction.work import Work
    from planner.statements import CursorKey


@dataclass(slots=True)
class Command:
    """A statement that returned no rows."""

    tag: str


@dataclass(slots=True)
class Rows:
    """A statement that returns rows.

    ``tag`` is completed with the row count unless ``final_tag``. ``binary``: the simple protocol sends binary values
    (FETCH from a BINARY cursor); the extended protocol's formats are the client's.
    """

    columns: tuple[OutputColumn, ...]
    result: ReadyRows | RowStream
    tag: str = "SELECT"
    final_tag: bool = False
    binary: bool = False
    plan: Plan | None = None  # of a cursor's query, and of a routine's statement

    def completion(self, count: int) -> str:
        """Return the command tag after ``count`` rows."""
        return self.tag if self.final_tag else f"{self.tag} {count}"


Outcome = Command | Rows

_CLOCK_TYPES = frozenset((DATE, TIME, TIMETZ, TIMESTAMP, TIMESTAMPTZ))


@dataclass(slots=True)
class Prepared:
    """A prepared statement; ``plan`` None for an empty query string."""

    name: str
    text: str
    plan: Plan | None
    param_oids: tuple[int, ...]
    path: tuple[str, ...]  # the search path under which the plan was made
    from_sql: bool = False
    prepare_time_us: int = 0
    shown: str = (
        ""  # what the client sent, if that is another text: with PREPARE, or with escapes in plain literals
    )
    # parameter decoders for one combination of formats and settings
    decoder_key: Any = None
    decoders: list[Any] = field(default_factory=list)
    reads_clock: bool = field(init=False)
    """Whether reading a parameter may look at the current time ('now', 'today')."""

    def __post_init__(self) -> None:
        """Parameter types stay what they are."""
        self.reads_clock = not _CLOCK_TYPES.isdisjoint(self.param_oids)

    def check_count(self, given: int) -> None:
        """Raise SqlError 42601 where EXECUTE gives it another number of arguments than it has parameters."""
        if given != len(self.param_oids):
            raise SqlError(
                "42601",
                f'wrong number of parameters for prepared statement "{self.name}"',
                detail=f"Expected {len(self.param_oids)} parameters but got {given}.",
            )


@dataclass(slots=True)
class Portal:
    """A bound statement, maybe running."""

    name: str
    prepared: Prepared
    plan: Plan | None
    params: tuple[Any, ...]
    result_formats: tuple[int, ...]
    outcome: Outcome | None = None
    sent: int = 0
    done: bool = False
    reader: RowReader | None = None
    created_us: int = 0  # of one with a name
    cursor: Cursor | None = None  # once FETCH has been asked of it (``shared_portals``)
    starting: bool = False  # by a FETCH
    savepoint_depth: int = 0  # how many savepoints there were when it was bound
    param_bytes: int = 0  # what its parameters take, if that is much

    @property
    def closes_cursors(self) -> bool:
        """Whether its statement is CLOSE, which must not close the portal it is run by."""
        return self.plan is not None and isinstance(self.plan.bound.statement, CloseCursor)

    @property
    def is_reading(self) -> bool:
        """Whether it was started and may read more rows."""
        if self.done:
            return False
        outcome = self.outcome
        lazy = isinstance(outcome, Rows) and not isinstance(outcome.result, ReadyRows)
        return lazy or self.starting

    def close(self) -> None:
        """Release what the portal still reads."""
        if self.cursor is not None:
            self.cursor.close()
        elif self.reader is not None:
            self.reader.close()
        elif isinstance(self.outcome, Rows) and not isinstance(self.outcome.result, ReadyRows):
            self.outcome.result.close()


@dataclass(slots=True)
class Cursor:
    """A SQL cursor (DECLARE). Rows already read are in ``store`` as long as they may be asked for.

    ``position`` counts rows from 1: 0 is before the first row.
    """

    name: str
    text: str
    columns: tuple[OutputColumn, ...]
    reader: RowReader
    store: KeptRows
    scroll: bool
    hold: bool
    binary: bool
    created_us: int
    savepoint_depth: int = 0
    position: int = 0
    kept: list[RowTuple] = field(default_factory=list)
    exhausted: bool = False
    live: Source | None = None
    """Of a subscription; then ``kept`` are rows that were read but not fetched yet, and ``store`` is empty."""

    keys: tuple[CursorKey, ...] = ()
    """Of what the keys of each row are, for WHERE CURRENT OF."""

    hidden: int = 0
    """How many columns of what it reads are keys, the last ones."""

    here: RowTuple = ()
    """The keys of the row that such a cursor stands on; none: on no row."""

    ahead: int = 0
    """So many rows are read at a time at least, where nobody can tell that they were computed."""

    pinned: bool = False
    """A loop of PL/pgSQL reads it: nobody may close it."""

    plan: Plan | None = None
    """What it reads, where tables are meant that may not be changed meanwhile (``engine.session.in_use``)."""

    def close(self) -> None:
        """Stop reading and drop what was read."""
        self.reader.close()
        self.store.close()


class Computing(Acting, Protocol):
    """A session that computes rows which somebody reads."""

    @property
    def block(self) -> Work:
        """Its transaction."""


class RowReader:
    """Reads a result in pieces of any size.

    ``take(n)`` returns up to n rows as batches; fewer only at the end. Arrow batches are sliced, never copied.

    Attributes:
        ended: there are no more rows. live: the result waits for what others do. broken: reading has failed,
        was cancelled, or has been asked for what cannot be, so that the rest cannot be had any more.
    """

    __slots__ = (
        "_at",
        "_iterator",
        "_name",
        "_pending",
        "_role",
        "_session",
        "_statement",
        "_stream",
        "_txn",
        "broken",
        "ended",
        "live",
    )

    def __init__(
        self, result: ReadyRows | RowStream, name: str = "", session: Computing | None = None
    ) -> None:
        """Read ``result`` from its beginning. ``name``: of the portal or cursor that does, for errors.

        ``session``: whose current role computes all rows, whoever fetches them later; None: nobody else can.
        """
        self._name = name
        self._session = session
        self._role = 0 if session is None else session.identity.current
        self._txn = None if session is None else session.block.txn
        self._statement = 0 if self._txn is None else self._txn.statement
        self.broken = False
        self._pending: RowBatch | None = None
        self._at = 0  # so many of its rows have been given
        self._stream: RowStream | None = None
        self._iterator: AsyncIterator[RowBatch] | None = None
        self.ended = False
        self.live = not isinstance(result, ReadyRows) and result.live
        if isinstance(result, ReadyRows):
            self._pending = RowBatch(rows=result.rows)
        else:
            self._stream = result
            self._iterator = aiter(result.batches)

    def check(self) -> None:
        """Raise SqlError 55000 once it is broken: an iterator that was interrupted only looks as if it had ended."""
        if self.broken:
            raise SqlError("55000", f'portal "{self._name}" cannot be run')

    async def take(self, limit: int) -> AsyncIterator[RowBatch]:
        """Yield batches of at most ``limit`` rows together (0: all that is left). Raises as ``check``."""
        self.check()
        left = limit if limit > 0 else None
        while left is None or left > 0:
            batch, at = self._pending, self._at
            self._pending, self._at = None, 0
            if batch is None:
                if self._iterator is None:
                    self.ended = True
                    return
                if self._stream is not None and self._stream.wanted is not None:
                    self._stream.wanted.rows = MANY_ROWS if left is None else left
                try:
                    batch = await self._next(self._iterator)
                except StopAsyncIteration:
                    self.ended = True
                    return
                except BaseException:
                    self.broken = True
                    raise
            if at or (left is not None and len(batch) > left):
                end = len(batch) if left is None else min(len(batch), at + left)
                if end < len(batch):
                    self._pending, self._at = batch, end
                batch = _part(batch, at, end)
            if len(batch):
                if left is not None:
                    left -= len(batch)
                yield batch
            elif self._iterator is None:
                self.ended = True
                return

    async def _next(self, batches: AsyncIterator[RowBatch]) -> RowBatch:
        session = self._session
        if session is None:
            return await anext(batches)
        txn = session.block.txn
        number = -1 if txn is None or txn is not self._txn else txn.statement
        if txn is not None and number >= 0:
            txn.resume_statement(self._statement)  # it sees what was there when it was opened
        try:
            if session.identity.current == self._role:
                return await anext(batches)
            with acting_as(session, self._role, restricted=True):
                return await anext(batches)
        finally:
            if txn is not None and number >= 0:
                txn.resume_statement(number)

    def close(self) -> None:
        """Cancel what still runs; idempotent."""
        self._pending = None
        self._iterator = None
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _part(batch: RowBatch, start: int, end: int) -> RowBatch:
    if batch.rows is not None:
        return RowBatch(rows=batch.rows[start:end])
    return RowBatch(arrow=batch.arrow.slice(start, end - start))
