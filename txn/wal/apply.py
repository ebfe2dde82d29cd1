"""Tidying the log: once every shard's manifest covers an entry, it goes (C27, C40, C41, L18).

In-memory application of a batch is the memory half's; it happens in the tick after the durable point. What the
log holds is therefore exactly what a restart has to apply again. Tidy is idempotent and may lag behind.
"""

from __future__ import annotations

from txn.wal.txns import TxnsLog

_MIN_TRIM = 64  # entries: less is not worth a transaction


async def tidy(log: TxnsLog, *, everything: bool = False) -> int:
    """Trim the log as far as the manifests allow and return its first entry.

    ``everything`` False: skip when there is little to gain. Raises Fenced, OutOfSpace, Indeterminate; whatever
    was trimmed by then is consistent, and calling again goes on.
    """
    point = log.map.trim_point()
    if point - log.map.first >= (1 if everything else _MIN_TRIM):
        await log.consensus.truncate(point, epoch=log.epoch)
        log.map.trimmed(point)
    return log.map.first
