"""How the ``memory`` setting is divided: what is counted, by whom it is kept, what happens at the bound.

    memory ─┬─ fixed      192 MB   interpreter, libraries, connections
            ├─ statements 1/2      what running statements gather together: the next one waits, then fails (53200)
            │    └─ 1/4            what one may gather: past it it fails (53200), and so where the process has all of ``memory``
            ├─ sessions   1/4      what sessions keep between statements; one of them half of that (53200)
             ├─ messages  1/4      long ones of all clients, while they come in and are read; the next is dropped (53200)
            └─ the rest of ``memory`` without the fixed part:
               hot        1/8      versions not in parts, with their indexes: past it they are flushed, at twice that
                                   writers wait
               cache      1/8      decoded row groups: the least recently used go
               plans      1/8      kept plans and templates of all sessions, at most some 190 MB: the least recently used go
               parts      1/32     Arrow data of one part being made; a load and a merge have some four copies each
               mapped     1/16     sidecars that are mapped, beside the libraries' pages: past it their pages are let go
               duckdb     1/4      DuckDB's memory_limit: queries spill to disk. More while it reads values so large that three do not fit (``VALUES``)
               jvm        1/4      the heap of Spark's driver (``-Xmx``), a process of its own, beside ``memory``

The shares add up to more than there is: they are bounds, of which most are not reached at once.
``engine.base.accounts`` keeps those of statements and sessions; rows that a transaction has written row by
row and not yet committed are its session's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIXED_BYTES: Final = 192 << 20
MIN_PART_BYTES: Final = 8 << 20
MAX_PART_BYTES: Final = 256 << 20
VALUES: Final = 3
"""DuckDB has a value of a part so often: as read ahead, as a page, and in a vector."""
LARGEST_VALUE: Final = 256 << 20
"""Or an eighth of ``memory``, where that is less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Bounds in bytes."""

    hot: int
    cache: int
    plans: int
    part: int
    mapped: int
    duckdb: int
    duckdb_values: int
    jvm: int
    statement: int
    statements: int
    ceiling: int
    session: int
    sessions: int
    messages: int

    @classmethod
    def of(cls, memory: int) -> MemoryPlan:
        """Divide ``memory`` bytes. Below 256 MB a quarter is divided, and the fixed part exceeds the setting."""
        rest = max(memory - FIXED_BYTES, memory // 4)
        return cls(
            hot=rest // 8,
            cache=rest // 8,
            plans=rest // 8,
            part=min(max(rest // 32, MIN_PART_BYTES), MAX_PART_BYTES),
            mapped=FIXED_BYTES + rest // 16,
            duckdb=rest // 4,
            duckdb_values=VALUES * min(memory // 8, LARGEST_VALUE),
            jvm=rest // 4,
            statement=memory // 4,
            statements=memory // 2,
            ceiling=max(memory + memory // 8, FIXED_BYTES + memory // 2),
            session=memory // 8,
            sessions=memory // 4,
            messages=memory // 4,
        )
