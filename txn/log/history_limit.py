"""How much of what tables and definitions were before is kept in memory: retention gives way rather than memory.

    CREATE … DROP, ALTER, TRUNCATE ──► entries of a table's history (``log.history``), each with what reads of
    then use, rows not in parts among it
      changes kept   |---- as many as half of ``hot_bytes`` holds ----|     the oldest beyond that can be read no more, as if
                                                                           ``history_retention`` had passed them
    definitions of all kinds ──► changes of the catalog, weighed by who keeps them (``Store.on_forgetting``)

An empty table that is created and dropped leaves some 9 kB for as long as reads may go back; anybody may make
temporary tables, a thousand in a second. Rows that were not in parts when their table was emptied or written
anew get into none; writers would wait for them as long as that lasts. What holds keep (transactions, cursors,
subscriptions) stays: ``HoldRegistry.low_watermark`` sees to that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from txn.log.timeline import Domain

CHANGE_BYTES: Final = 4 << 10
"""About what one change of a table keeps: a generation without rows, its log and containers. What the catalog
has of it is weighed apart."""

_log = logging.getLogger(__name__)


class HistoryLimit:
    """Up to where each domain's history has to go before retention is over."""

    __slots__ = ("_beyond", "_most")

    def __init__(self, size: int) -> None:
        """``size``: bytes that changes may keep."""
        self._most = size
        self._beyond: dict[Domain, int] = {}

    def beyond(self, domain: Domain) -> int:
        """Return up to which timestamp retention does not count; 0: all of it does."""
        return self._beyond.get(domain, 0)

    def seen(self, changes: Mapping[Domain, list[tuple[int, int]]]) -> None:
        """Note all changes of which something is kept, by domain: their timestamps, and about how many bytes of rows.

        Each domain has to give up its share of what is too much.
        """
        kept = {
            domain: sorted((begin, max(size, CHANGE_BYTES)) for begin, size in found)
            for domain, found in changes.items()
        }
        total = sum(size for found in kept.values() for _begin, size in found)
        if total <= self._most:
            self._beyond.clear()
            return
        if not self._beyond:
            _log.warning(
                "the past is not kept for history_retention: what tables and definitions were before %d changes takes %d MB; %d MB are kept",
                sum(map(len, changes.values())), total >> 20, self._most >> 20,
            )  # fmt: skip
        for domain, found in kept.items():
            left = sum(size for _begin, size in found)
            allowed = left * self._most // total
            beyond = 0
            for begin, size in found:
                if left <= allowed:
                    break
                beyond, left = begin, left - size
            self._beyond[domain] = beyond
