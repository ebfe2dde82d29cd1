"""What one task of an index build does in a process of its own: the sidecar of one part.

It imports nothing of the server and nothing of Spark.
"""

from __future__ import annotations

from txn.base.errors import TxnError
from txn.base.types import PartRef
from txn.persist.parts.sidecar_job import SidecarJob


class SidecarTask:
    """The function of all tasks of a build. Can be pickled."""

    def __init__(self, job: SidecarJob) -> None:
        """Write sidecars of this job."""
        self._job = job

    def __call__(self, item: tuple[int, PartRef], worker: str) -> str | None:
        """Write the sidecar of a part, given with its number; return None, or what has kept it from being written."""
        number, ref = item
        try:
            self._job.write(ref, f"{number}-{worker}")
        except (TxnError, OSError) as error:
            return f"{type(error).__name__}: {error}"
        return None
