"""One version of one hot row, and where chains begin and end (D27, D28).

    rows[7] ──> Version(begin 40, values, older) ──> Version(begin 12, ...) ──> None

Newest first; begins strictly fall; ``values`` None is a tombstone. There is no end: a version ends where the next
newer one begins. A chain that reaches None may go on in a part: the part's row is a version of its own, found
through the part's sidecars and ended there, so no chain points into a part and parts may be merged freely.

Only committed versions are here. A transaction's intents are its own (``txn.mvcc.intents``): its row lock lets no
other write the row, and nobody else may see them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from txn.base.types import Row

INFINITY: Final = 2**63 - 1
"""Later than every timestamp: the end of a version that has not ended."""


class Version(msgspec.Struct, gc=False):
    """A committed version. ``segment`` and ``offset`` are its place in the columnar log (``hotlog``), none
    for tombstones.

    ``msgspec.Struct`` with ``gc=False`` keeps it at 56 bytes and out of the collector's sight; it refers only to
    older versions, so it cannot take part in a cycle. The place is two numbers because both are objects that other
    versions share: one number for both would be an integer object of its own for every row.
    """

    begin: int
    values: Row | None
    older: Version | None
    segment: int = -1
    offset: int = 0


def at(version: Version | None, ts: int) -> Version | None:
    """Return the newest version that began at or before ``ts``, or None."""
    while version is not None and version.begin > ts:
        version = version.older
    return version
