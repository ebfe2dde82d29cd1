"""How much of what tables were before is kept in memory: retention gives way rather than memory.

    CREATE … DROP, ALTER, TRUNCATE ──► entries of a table's history (``mvcc.history``), each with what reads of then use
      changes kept   |---- as many as half of ``hot_bytes`` holds ----|     the oldest beyond that can be read no more, as if
                                                                           ``history_retention`` had passed them

An empty table that is created and dropped leaves some 8 kB for as long as reads may go back; anybody may make temporary tables, a
thousand in a second. What holds keep (transactions, cursors, subscriptions) stays: ``HoldRegistry.low_watermark`` sees to that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from txn.timeline import Domain

CHANGE_BYTES: Final = 8 << 10
"""About what one change keeps: a generation without rows, its log and containers, the definition of then, and what the catalog has of it."""

_log = logging.getLogger(__name__)


class HistoryLimit:
    """Up to where each domain's history has to go before retention is over."""

    __slots__ = ("_beyond", "_most")

    def __init__(self, size: int) -> None:
        """``size``: bytes that changes may keep."""
        self._most = size // CHANGE_BYTES
        self._beyond: dict[Domain, int] = {}

    def beyond(self, domain: Domain) -> int:
        """Return up to which timestamp retention does not count; 0: all of it does."""
        return self._beyond.get(domain, 0)

    def seen(self, changes: Mapping[Domain, list[int]]) -> None:
        """Note the timestamps of all changes of which something is kept, by domain; each domain has to give up its share of what is too much."""
        total = sum(map(len, changes.values()))
        if total <= self._most:
            self._beyond.clear()
            return
        if not self._beyond:
            _log.warning(
                "the past is not kept for history_retention: %d tables were dropped or changed within it, %d of them are kept",
                total, self._most,
            )  # fmt: skip
        for domain, begins in changes.items():
            begins.sort()
            gone = len(begins) - len(begins) * self._most // total
            self._beyond[domain] = begins[gone - 1] if gone else 0
