"""What the one task of a merge does in a process of its own: several parts become one.

It imports nothing of the server and nothing of Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

from txn.base.errors import TxnError
from txn.persist.parts.merge_job import MergedPart, MergeJob


@dataclass(frozen=True, slots=True)
class NotMerged:
    """What has kept a merge from being done."""

    reason: str


def merge(job: MergeJob, worker: str) -> MergedPart | NotMerged:
    """Do a job; ``worker``: nobody else's name within the job."""
    try:
        return job.write(worker)
    except (TxnError, OSError) as error:
        return NotMerged(f"{type(error).__name__}: {error}")
