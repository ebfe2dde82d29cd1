"""Sets of row ids that take a bit for each, where they lie close together: a statement may change millions of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

PAGE_BITS: Final = 12
"""Of row ids that one piece is for: 512 bytes."""


class RowIds:
    """A set of row ids that takes a bit for each, where they lie close together."""

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        """Have none."""
        self._pages: dict[int, bytearray] = {}

    def add(self, row_id: int) -> bool:
        """Add one; tell whether it was not there."""
        page = self._pages.get(row_id >> PAGE_BITS)
        if page is None:
            page = self._pages[row_id >> PAGE_BITS] = bytearray(1 << (PAGE_BITS - 3))
        at = row_id & ((1 << PAGE_BITS) - 1)
        bit = 1 << (at & 7)
        if page[at >> 3] & bit:
            return False
        page[at >> 3] |= bit
        return True

    def update(self, row_ids: Iterable[int]) -> None:
        """Add some."""
        for row_id in row_ids:
            self.add(row_id)

    def __contains__(self, row_id: int) -> bool:
        """Tell whether it has an id."""
        page = self._pages.get(row_id >> PAGE_BITS)
        at = row_id & ((1 << PAGE_BITS) - 1)
        return page is not None and bool(page[at >> 3] & 1 << (at & 7))
