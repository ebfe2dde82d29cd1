"""How much memory one statement of the row executor has gathered, measured by what the process grows in its turns.

    turn of the statement      turn of others      turn of the statement
    |-- + 3 MB --|             (not counted)       |-- + 2 MB --|               5 MB gathered

Pipelines hold rows in many places (sorts, hash tables, recursive terms, WITH items, aggregates over all rows): counting
each would cost every row something and still miss one. The process's private memory before and after each turn of the
loop costs a few microseconds per 5 ms. What threads take meanwhile is counted with it, and memory that was free
inside the process is not: the bound is coarse, and there to keep the server alive, not to share memory fairly.
"""

from __future__ import annotations

from planner.errors import SqlError
from txn.resident import resident_bytes


class Growth:
    """One statement's growth in bytes, held against ``limit``; ``turn_begins`` and ``turn_ends`` in turn."""

    __slots__ = ("_before", "limit", "taken")

    def __init__(self, limit: int) -> None:
        """Begin with nothing taken."""
        self.limit = limit
        self.taken = 0
        self._before = 0

    def turn_begins(self) -> None:
        """Note what there is before the statement runs on."""
        self._before = resident_bytes()[0]

    def turn_ends(self) -> None:
        """Add what came since; 53200 past the limit."""
        self.taken = max(self.taken + resident_bytes()[0] - self._before, 0)
        if self.taken > self.limit:
            raise SqlError(
                "53200",
                "out of memory",
                detail=f"The statement has gathered {self.taken >> 20} MB of rows in the row executor; "
                f"{self.limit >> 20} MB are allowed.",
                hint='A quarter of what the setting "memory" leaves to be divided is allowed. '
                "Look for a query that yields more rows than meant, or raise the setting.",
            )
