"""CREATE INDEX whose sidecars Spark's tasks write: the server reads no row of the table's parts (docs/guide/spark.md).

    parts ──a task each──► columns of the key, sorted ──► sidecar          the server: unique keys, over all sidecars
                                   └── not written, for whatever reason: the server writes it, and reports what is wrong

Only who writes the sidecars is another: hot rows, what commits change meanwhile and uniqueness are the build's
(``txn.transaction.index_build``), which goes on as ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engine.base.executor import ExecContext
from engine.changes.bulk.index_task import SidecarTask
from engine.executors.server import executing
from planner.base.errors import SqlError
from txn.api import SidecarJob
from txn.base.types import PartRef

if TYPE_CHECKING:
    from engine.session.session import Session

_log = logging.getLogger(__name__)


class SparkSidecars:
    """Who writes the sidecars of a session's index build; see ``txn.transaction.index_build.Elsewhere``."""

    def __init__(self, session: Session, ctx: ExecContext) -> None:
        """Use Spark as the session's settings say: ``executor``, ``index_spark_min_rows``."""
        self._session = session
        self._ctx = ctx

    def wants(self, rows: int) -> bool:
        """Tell whether parts of so many rows are Spark's: at least ``index_spark_min_rows``, or the session
        is pinned to it.
        """
        session, spark = self._session, executing(self._session.db).spark
        if spark is None or not rows:
            return False
        if session.derived.executor == "spark":
            return not spark.runtime.off
        least = session.settings.integer("index_spark_min_rows")
        return session.derived.executor == "auto" and spark.ready and rows >= least

    async def write(
        self, job: SidecarJob, refs: Sequence[PartRef], done: Callable[[int], None]
    ) -> Sequence[PartRef]:
        """Have the sidecars written; return the parts that have got one. Without Spark those that had one by then.

        Raises SqlError 57014; 57P03 and 58000 in a session that is pinned to Spark.
        """
        spark = executing(self._session.db).spark
        if spark is None:
            raise AssertionError("Spark was chosen, and does not run")
        written: list[PartRef] = []
        try:
            tasks = await spark.tasks(self._ctx)
            task = SidecarTask(job)
            for at in range(0, len(refs), tasks.wave):
                wave = list(enumerate(refs[at : at + tasks.wave], at))
                before = sum(ref.rows for ref in written)
                total = sum(ref.rows for _, ref in wave)

                def told(ended: int, before: int = before, total: int = total, of: int = len(wave)) -> None:
                    done(before + total * min(ended, of) // of)

                answers = await tasks.map(task, wave, told)
                for (_, ref), failure in zip(wave, answers, strict=True):
                    if failure is None:
                        written.append(ref)
                    else:
                        _log.warning(
                            "Spark has not written an index of part %s (%s): the server does",
                            ref.name,
                            failure,
                        )
                done(sum(ref.rows for ref in written))
        except SqlError as error:
            if error.sqlstate == "57014" or self._session.derived.executor == "spark":
                raise
            _log.warning("the server goes on with an index build in place of Spark: %s", error.message)
        return written
