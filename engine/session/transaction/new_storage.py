"""Tables whose storage is new: which subtransaction has created or truncated them, as COPY FREEZE asks
(PostgreSQL's rd_createSubid).

BEGIN   CREATE a   SAVEPOINT s   TRUNCATE b   RELEASE s     COPY b FREEZE
          a: 0                     b: 1         b: 0          0: it may
"""

from __future__ import annotations


class NewStorage:
    """What the running transaction has given new storage, with the number of savepoints that stood then."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        """Nothing is new."""
        self._made: list[tuple[int, int]] = []

    def note(self, table: int, depth: int) -> None:
        """Table ``table`` (oid) was created or truncated behind ``depth`` savepoints."""
        self._made.append((depth, table))

    def is_of(self, table: int, depth: int) -> bool:
        """Tell whether the storage is of the subtransaction behind ``depth`` savepoints itself."""
        return (depth, table) in self._made

    def released(self, depth: int) -> None:
        """All savepoints but ``depth`` of them are forgotten: what came after them is the enclosing transaction's."""
        self._made = [(min(made, depth), table) for made, table in self._made]

    def undone(self, depth: int) -> None:
        """What came after the first ``depth`` savepoints was undone."""
        self._made = [(made, table) for made, table in self._made if made <= depth]

    def clear(self) -> None:
        """The transaction has ended."""
        if self._made:
            self._made = []
