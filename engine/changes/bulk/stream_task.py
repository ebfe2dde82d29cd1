"""What the process beside the server does with one COPY: the client's bytes become parts of the table.

    frames ──read_stream──> batches ──write_parts──> parts          Answer: the parts' names, or the first error

The same functions as those of a load's tasks (``load_task``), over bytes that arrive instead of splits of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from engine.changes.bulk.load_task import Answer
from engine.changes.bulk.read_split import Broken, Bytes, Reading, read_stream, worker_env
from engine.changes.writes.copy_rows import LoadSpec
from txn.base.errors import StorageError
from txn.persist.location import StoreUnavailable
from txn.persist.parts.job import PartJob


@dataclass(frozen=True, slots=True)
class StreamTask:
    """One load. Can be pickled. ``params``: values of the spec's parameters; ``keep``: see ``Rejects``."""

    job: PartJob
    spec: LoadSpec
    params: tuple[Any, ...]
    keep: int

    def run(self, stream: Bytes, tell: Callable[[int, int], None]) -> Answer:
        """Read the stream and write its rows. Blocks.

        Args:
            stream: may raise Broken: then the answer says which line would come next.
            tell: called with the rows so far, and those that WHERE has left out.
        """
        answer, reading = Answer(), Reading()

        def batches() -> Iterator[Any]:
            for batch in read_stream(self.spec, worker_env(self.params), stream, reading, keep=self.keep):
                tell(reading.rows, reading.excluded)
                yield batch

        try:
            answer.write(self.job, 0, 1, "stream", batches())
        except Broken:
            answer.next_line = reading.next_line
        except StoreUnavailable as error:
            answer.unwritten = error.store, str(error), error.kind
        except StorageError as error:
            answer.unwritten = "", str(error), error.kind
        answer.take(reading)
        return answer
