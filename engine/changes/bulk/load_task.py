"""What one task of a load does in a process of its own: splits of files become parts of the table.

    splits ──read_split──> batches ──write_parts──> parts          Answer: the parts' names, or the first error

It imports nothing of the server and nothing of Spark; the server reads the answers in the order of the files,
so that what a load reports does not depend on which task was faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.changes.bulk.read_split import Reading, read_split, worker_env
from engine.changes.bulk.splits import Split
from engine.changes.writes.copy_rows import LoadSpec, Reject, Rejects, too_many
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from txn.base.errors import OutOfSpace, StorageError, TroubleKind
from txn.persist.location import StoreUnavailable
from txn.persist.parts.job import PartJob, WrittenPart, write_parts

MOST_KEPT: Final = 10_000
"""Rows left out under ON_ERROR ignore that a task remembers."""

_FIELDS: Final = ("detail", "hint", "where", "schema", "table", "column", "constraint")


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as values, which cross to another process."""

    sqlstate: str
    message: str
    fields: dict[str, str | None]

    @classmethod
    def of(cls, error: DataError) -> Failure:
        """Take an error down."""
        return cls(error.sqlstate, error.message, {name: getattr(error, name, None) for name in _FIELDS})

    def error(self) -> SqlError:
        """Return the error again."""
        made = SqlError(self.sqlstate, self.message)
        for name, value in self.fields.items():
            setattr(made, name, value)
        return made


@dataclass(slots=True)
class Answer:
    """What has come of a task. With ``failure``, ``full`` (no space left) or ``unwritten`` its parts are of no use.

    ``by_file``: the rows of each file, by its place among the files; the last one is the one that failed. Of
    a stream (``stream_task``): ``unwritten``, an object store and its error, or "" and the disk's, and what
    is short; ``next_line``, of one that broke off.
    """

    parts: list[bytes] = field(default_factory=list)
    rows: int = 0
    by_file: dict[int, int] = field(default_factory=dict)
    excluded: int = 0
    rejected: int = 0
    rejects: list[Reject] = field(default_factory=list)
    failure: Failure | None = None
    full: str | None = None
    unwritten: tuple[str, str, TroubleKind] | None = None
    next_line: int | None = None

    def write(self, job: PartJob, task: int, tasks: int, worker: str, batches: Iterator[Any]) -> None:
        """Write batches as parts, and take down what has come of it; see ``write_parts``."""
        try:
            for part in write_parts(job, task, tasks, worker, batches):
                self.parts.append(part.encode())
        except DataError as error:
            self.failure = Failure.of(error)
        except OutOfSpace as error:
            self.full = str(error)

    def written(self) -> list[WrittenPart]:
        """Return the parts.

        Raises:
            SqlError: the error of the first bad row.
            OutOfSpace, StoreUnavailable, StorageError: the parts could not be written.
        """
        if self.failure is not None:
            raise self.failure.error()
        if self.full is not None:
            raise OutOfSpace(self.full)
        if self.unwritten is not None:
            store, message, kind = self.unwritten
            made = StoreUnavailable(store, message) if store else StorageError(message)
            made.kind = kind
            raise made
        return [WrittenPart.decode(part) for part in self.parts]

    def take(self, reading: Reading) -> None:
        """Add what has come of a split."""
        self.rows += reading.rows
        self.excluded += reading.excluded
        self.rejected += reading.rejects.count
        self.rejects += reading.rejects.first


class LoadTask:
    """The function of all tasks of one load. Can be pickled."""

    def __init__(self, job: PartJob, spec: LoadSpec, params: tuple[Any, ...], tasks: int) -> None:
        """``params``: values of the spec's parameters. ``tasks``: how many there are."""
        self._job = job
        self._spec = spec
        self._params = params
        self._tasks = tasks

    def __call__(self, splits: Sequence[Split], worker: str) -> Answer:
        """Read splits and write their rows; ``worker``: nobody else's name within the job."""
        answer = Answer()
        answer.write(self._job, splits[0].number, self._tasks, worker, self._batches(splits, answer))
        return answer

    def _batches(self, splits: Sequence[Split], answer: Answer) -> Iterator[Any]:
        env = worker_env(self._params)
        for split in splits:
            reading = Reading()
            try:
                yield from read_split(self._spec, env, split, reading, keep=MOST_KEPT - len(answer.rejects))
            finally:
                answer.take(reading)
                answer.by_file[split.file] = answer.by_file.get(split.file, 0) + reading.rows


@dataclass(slots=True)
class Sum:
    """The answers so far, taken in the order of the tasks."""

    table: str
    options: CopyOptions
    parts: list[WrittenPart] = field(default_factory=list)
    rows: int = 0
    excluded: int = 0
    rejects: Rejects = field(default_factory=lambda: Rejects(MOST_KEPT))

    def add(self, answer: Answer) -> None:
        """Take the next task's answer.

        Raises:
            SqlError: the error of the first bad row; DataError 22P02 where more rows were left out than
            REJECT_LIMIT allows. OutOfSpace: a worker's disk is full.
        """
        limit = self.options.reject_limit
        before = self.rejects.count
        if limit and before + answer.rejected > limit:
            at = limit - before
            over = answer.rejects[at] if at < len(answer.rejects) else None
            raise too_many(limit, None if over is None else over.where(self.table))
        self.parts += answer.written()
        self.rows += answer.rows
        self.excluded += answer.excluded
        self.rejects.count += answer.rejected
        self.rejects.first += answer.rejects[: MOST_KEPT - len(self.rejects.first)]
