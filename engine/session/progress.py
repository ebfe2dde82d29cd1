"""How far a COPY is (``pg_stat_progress_copy``, manual 28.4.3).

    bytes      as they arrive from the client or the file, or are handed on to them
    notices    every few seconds for files of the server (setting copy_progress_interval)
    tuples     as they are taken into the transaction, or sent; excluded: what WHERE dropped

PostgreSQL's other progress views but that of CREATE INDEX are about work that is done otherwise here (VACUUM, CLUSTER,
ANALYZE as phases over blocks) or not at all (base backups): they have no rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class CopyProgress:
    """One COPY. ``table``: its oid, 0 for a query; ``bytes_total``: 0 unless it is a file to be read."""

    command: str
    table: int
    type: str
    bytes_total: int = 0
    bytes: int = 0
    tuples: int = 0
    excluded: int = 0
    by_row: bool = True  # tuples are counted as they are read; else as batches are taken

    def notice(self, name: str) -> str:
        """Return how far it is, in words. ``name``: of the table or the file."""
        done = f"{self.tuples} rows, {self.bytes >> 20} MB"
        if self.bytes_total:
            done += f" of {self.bytes_total >> 20} MB ({min(100 * self.bytes // self.bytes_total, 100)} %)"
        return f"{self.command} {name}: {done}"

    def rows(self, read: int, kept: int) -> None:
        """``read`` rows were read, of which WHERE has kept ``kept``."""
        self.excluded += read - kept
        if self.by_row:
            self.tuples += kept

    async def batches(self, batches: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Hand on Arrow batches, counting their rows from the first one on."""
        self.by_row, self.tuples = False, 0
        async for batch in batches:
            self.tuples += batch.num_rows
            handed = [batch]
            del batch  # the taker alone has it: it may be a row of many megabytes
            yield handed.pop()
