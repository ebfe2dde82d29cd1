"""Where in its files a key stands that a load would have stored twice: CONTEXT of 23505, as PostgreSQL has it.

    files ──read again, by column──> a batch with the key? ──row by row──> lines

Keys of a load are compared over the sorted sidecars of parts, which know nothing of lines, so the files are read once
more, and only once the load has failed. What is named is the row that PostgreSQL would have stopped at: the first with
the key if the table had it before, else the second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.base.eager import settle
from engine.base.stored_objects import beside
from engine.catalog.physical import shard_spec
from engine.changes.bulk.portable import obstacle
from engine.changes.bulk.read_split import Reading, read_split, worker_env
from engine.changes.bulk.splits import Split
from engine.changes.writes.copy_rows import LoadSpec
from pgwire.codecs.copy import copy_context
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from txn.base.errors import DuplicateKey
from txn.base.types import Key, Row, ShardId, ShardIndex, ShardSpec
from txn.persist.parts.part import index_codec
from txn.persist.parts.write import key_columns
from txn.values.columns import int64_view

if TYPE_CHECKING:
    from engine.session.session import Session


@dataclass(frozen=True, slots=True)
class Place:
    """A row of a file. ``file``: its name where there are several, else empty."""

    line: int
    file: str = ""

    def context(self, table: str) -> str:
        """Return CONTEXT."""
        return copy_context(table, self.line) + (f'\nfile "{self.file}"' if self.file else "")


class KeyWatch:
    """Looks out for one key of one index; collects the lines of rows that have it."""

    def __init__(self, spec: ShardSpec, index: ShardIndex, key: Key) -> None:
        """Look for ``key`` of ``index``."""
        self._index = index
        self._codec = index_codec(spec, index)
        self._key = key
        self._encoded = self._codec.encode(key)
        self.lines: list[int] = []

    def in_batch(self, batch: Any) -> bool:
        """Return whether a row of a batch of the table has the key."""
        columns, dims = key_columns(pa.Table.from_batches([batch]), self._index)
        if self._codec.is_int:
            if self._key[0] is None:
                return bool(columns[0].null_count)
            same = pc.equal(int64_view(columns[0]), pa.scalar(self._key[0], pa.int64()))
        else:
            same = pc.equal(
                self._codec.encode_arrow(columns, dims), pa.scalar(self._encoded, pa.large_binary())
            )
        return bool(pc.any(same).as_py())

    def has(self, row: Row) -> bool:
        """Return whether a row of the table has the key."""
        return self._codec.encode(tuple([row[attnum - 1] for attnum in self._index.attnums])) == self._encoded


class FindTask:
    """The function of the tasks that look for a key. Can be pickled."""

    def __init__(
        self, load: LoadSpec, params: tuple[Any, ...], spec: ShardSpec, index: ShardIndex, key: Key
    ) -> None:
        """``load`` and ``params``: as for ``load_task.LoadTask``."""
        self._load = load
        self._params = params
        self._key = spec, index, key

    def __call__(self, splits: Sequence[Split], worker: str) -> list[Place]:
        """Return the first places of the key in some splits, two at most."""
        del worker
        places: list[Place] = []
        env = worker_env(self._params)
        for split in splits:
            watch = KeyWatch(*self._key)
            for _ in read_split(self._load, env, split, Reading(), watch=watch):
                if len(watch.lines) > 1:
                    break
            places += [Place(line, split.name) for line in watch.lines]
            if len(places) > 1:
                break
        return places[:2]


Run = Callable[[FindTask, Sequence[Sequence[Split]]], Awaitable[Iterable[list[Place]]]]


async def locate(
    session: Session,
    load: LoadSpec,
    params: Sequence[Any],
    error: DuplicateKey,
    work: Sequence[Sequence[Split]],
    run: Run | None = None,
) -> None:
    """Add to the error where in the files of a load its key stands, if that can be told.

    ``run``: calls the task for each item of ``work``, in order; None: here, one after the other, in threads.
    """
    relation = load.relation
    index = _index_of(relation, error)
    if index is None or obstacle(load) is not None:
        return
    task = FindTask(load, tuple(params), shard_spec(relation), index, error.key)
    before = await _known_before(session, error)
    places: list[Place] = []
    try:
        if run is not None:
            for found in await run(task, work):
                places += found
        else:
            for splits in work:
                far = any(not isinstance(split.path, str) for split in splits)
                places += await beside(far, task, splits, "")
                if len(places) > 1 or (places and before):
                    break
    except SqlError:
        return  # the files have changed, or cannot be read any more: the key alone is told
    error.context = _context(relation.name, places, before)


def _context(table: str, places: Sequence[Place], before: bool) -> str | None:
    """Return CONTEXT of the row that the load would have ended at, from the places of its key."""
    return (places[0] if before or len(places) == 1 else places[1]).context(table) if places else None


async def _known_before(session: Session, error: DuplicateKey) -> bool:
    """Return whether the table had the key before the statement, whose rows are undone."""
    txn = session.block.ensure_txn()
    return bool(await settle(txn.lookup(ShardId(error.shard), error.index, [error.key])))


async def locate_among(
    session: Session, relation: RelationDef, error: DuplicateKey, rows: Sequence[Row], lines: Sequence[int]
) -> None:
    """Add to the error where its key stands, among rows whose lines are known."""
    index = _index_of(relation, error)
    if index is None:
        return
    watch = KeyWatch(shard_spec(relation), index, error.key)
    places = [Place(line) for row, line in zip(rows, lines, strict=True) if watch.has(row)]
    error.context = _context(relation.name, places, await _known_before(session, error))


def _index_of(relation: RelationDef, error: DuplicateKey) -> ShardIndex | None:
    return next((i for i in shard_spec(relation).indexes if i.index == error.index), None)
