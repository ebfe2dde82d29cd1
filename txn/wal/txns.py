"""The txns shard: the one log through which every commit goes (C14, C22).

``append`` is the durable point. Its three outcomes:

    returns                 the entry is durable at its sequence number
    OutOfSpace, Fenced      it is not and never will be
    CommitUnknown           it cannot be told; the server must stop (08007)

An attempt whose outcome is open is repeated *with the same sequence number and payload*: it either succeeds, or
finds the place taken, and then reading it back tells by whom. Two entries never have equal payloads, because
each carries its epoch and timestamps.
"""

from __future__ import annotations

import asyncio

from txn.base.errors import CommitUnknown, Fenced, OutOfSpace
from txn.persist.location import Consensus, Indeterminate, SequenceConflict
from txn.wal.cache import LogMap

ATTEMPTS = 8  # 5 seconds, then an outcome counts as unknown
_RETRY_S = 0.02  # the first pause; it doubles
_MAX_RETRY_S = 3.0


class TxnsLog:
    """Appends of one leader. One append at a time (the committer's queue sees to that, L9)."""

    def __init__(self, consensus: Consensus, epoch: int, log_map: LogMap, attempts: int = ATTEMPTS) -> None:
        """``log_map`` has seen every entry that is in the log. ``attempts``: to settle an open outcome (>= 1)."""
        self.consensus = consensus
        self.epoch = epoch
        self.map = log_map
        self._attempts = attempts

    @property
    def next_seq(self) -> int:
        """The sequence number that the next append will get."""
        return self.map.next

    async def append(self, payload: bytes) -> int:
        """Make ``payload`` durable and return its sequence number. The caller notes it in ``map``.

        Raises:
            OutOfSpace: nothing was written; a later append may succeed.
            Fenced: nothing was written, nor ever will be under this epoch.
            CommitUnknown: the server must stop.
        """
        seq = self.map.next
        try:
            await self.consensus.append(self.epoch, seq, payload)
        except (Indeterminate, SequenceConflict) as error:
            await self._resolve(seq, payload, error)
        return seq

    async def _resolve(self, seq: int, payload: bytes, error: Exception) -> None:
        """Return when the entry is known to be durable."""
        pause = _RETRY_S
        for _ in range(self._attempts):
            if isinstance(error, SequenceConflict):
                # The place is taken: by an attempt of ours, or by another leader.
                try:
                    if await self._is_ours(seq, payload):
                        return
                except Indeterminate as unread:
                    error = unread
                else:
                    raise Fenced(f"log entry {seq} was written by another server")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RETRY_S)
            try:
                await self.consensus.append(self.epoch, seq, payload)
                return
            except (Indeterminate, SequenceConflict) as again:
                error = again
            except (Fenced, OutOfSpace) as refused:
                # This attempt did nothing, but an earlier one may have.
                try:
                    if await self._is_ours(seq, payload):
                        return
                except Indeterminate as unread:
                    error = unread
                else:
                    # A refusal comes after every earlier attempt has ended, one way or the other.
                    raise refused
        raise CommitUnknown(f"the outcome of log entry {seq} is unknown: {error}") from error

    async def _is_ours(self, seq: int, payload: bytes) -> bool:
        entries = await self.consensus.read_log(seq, 1)
        return bool(entries) and entries[0] == (seq, payload)
