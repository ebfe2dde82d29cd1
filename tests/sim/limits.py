"""Limits of ``txn`` that a run sets low, so that few rows reach what otherwise takes thousands.

Each is left alone or set low by the seed: write sets that travel in blobs, commits applied in slices, ends in blobs,
short logs, escalation of locks, read sets that are given up for scans, small batches, index builds of many slices,
subscriptions that fall behind at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final
from unittest import mock

LOW: Final[dict[str, tuple[int, ...]]] = {
    "txn.log.group_commit.MAX_BATCH_MEMBERS": (1, 2),
    "txn.log.group_commit.SPILL_BYTES": (60, 200),
    "txn.log.group_commit.STAGE_BYTES": (60, 200),
    "txn.log.group_commit.STAGE_ENTRIES": (1, 8),
    "txn.log.group_commit.FEW_OPS": (0,),
    "txn.mvcc.index.ORDERED": (1, 3),
    "txn.mvcc.intents.FILL_ROWS": (1, 3),
    "txn.values.encoding.CHUNK_OPS": (1, 3),
    "txn.mvcc.applying.STAGE_ROWS": (1, 2),
    "txn.transaction.coordinator.PURGED_ROWS": (1, 2),
    "txn.mvcc.applying.SLICE_ENTRIES": (1, 4),
    "txn.mvcc.vacuum.VACUUM_ROWS": (1, 3),
    "txn.mvcc.vacuum.VACUUM_ENTRIES": (1, 4),
    "txn.transaction.coordinator.RECENT_COMMITS": (1,),
    "txn.wal.apply._MIN_TRIM": (1, 4),
    "txn.persist.parts.manifest._INLINE_ENDS": (0, 1),
    "txn.transaction.read_set.MAX_READ_KEYS": (1, 4),
    "txn.transaction.read_set.MAX_READ_RANGES": (1,),
    "txn.transaction.next_key.MAX_RANGE_KEYS": (2, 6),
    "txn.transaction.scan_watch.MAX_PREDICATES": (1,),
    "txn.transaction.writes.ESCALATE_ROWS": (1,),
    "txn.transaction.writes.CHUNK_ROWS": (1,),
    "txn.transaction.schema.CHUNK_ROWS": (1, 4),
    "txn.transaction.reads.CHUNK_ROWS": (1, 3),
    "txn.transaction.reads.CHUNK_POSITIONS": (1, 3),
    "txn.transaction.index_build.CHUNK_ROWS": (1, 4),
    "txn.transaction.index_build.FEW_KEYS": (0, 2),
    "txn.upkeep.changes.PIECE_ROWS": (1, 3),
    "txn.upkeep.subscribe.PIECE_ROWS": (1, 3),
    "txn.upkeep.subscribe.WINDOW_ROWS": (1, 8),
    "txn.wal.feed.MAX_COMMITS": (0, 4),
    "txn.wal.feed.MAX_OPS": (2, 20),
    "txn.wal.feed._TRIM": (0,),
}


def draw(rng: random.Random) -> tuple[tuple[str, int], ...]:
    """Choose which limits are low."""
    share = rng.choice((0.0, 0.2, 0.6))
    return tuple((name, rng.choice(values)) for name, values in LOW.items() if rng.random() < share)


@contextmanager
def lowered(limits: tuple[tuple[str, int], ...]) -> Iterator[None]:
    """Set limits for the time of a run, in which slices end by number alone: how long their steps take is no two times the same."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch("txn.base.slices.perf_counter", return_value=0.0))
        for name, value in limits:
            stack.enter_context(mock.patch(name, value))
        yield
