"""What the parts of one statement share while it runs (``engine.changes.writes.with_changes``).

    WITH a AS (UPDATE ...), b AS (DELETE ...) SELECT ...     parts a, b, and the statement itself

All parts see the data as it was before the statement. What each returned is kept for those that name it, and
what each has changed waits, so that keys and foreign keys are checked, and AFTER triggers fired, once for all
at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.base.row_ids import RowIds
from pgwire.give_way import paced
from pgwire.release import let_go
from txn.base.types import Row, ShardId


class Parts:
    """The state of a running statement whose WITH changes data.

    Attributes:
        rows: what the steps that have run returned, by number; the transition tables of the trigger that the
        statement is of. changes: what they changed, to be checked and followed up when all of them have run.
        begun: the tables, by oid, and kinds of change whose BEFORE STATEMENT triggers have fired.
    """

    __slots__ = ("_touched", "begun", "changes", "rows")

    def __init__(self, transitions: Mapping[int, Sequence[Row]]) -> None:
        """Start with transition tables, and nothing else."""
        self.rows: dict[int, Sequence[Row]] = dict(transitions)
        self.changes: list[
            Any
        ] = []  # of engine.changes.constraints.effects, which alone knows what follows them
        self.begun: set[tuple[int, str]] = set()
        self._touched: dict[ShardId, RowIds] = {}

    def let_go(self) -> None:
        """Have what the parts have gathered freed in slices, once nobody else has it."""
        let_go(*self.rows.values())

    def touched_in(self, shard: ShardId) -> RowIds:
        """Return the rows of a table that the statement has changed or made, to be added to."""
        return self._touched.setdefault(shard, RowIds())

    def first_to_change(self, shard: ShardId, rows: Sequence[Row]) -> Sequence[Row]:
        """Return those source rows, row id first, whose row no other part has changed, and note them.

        Of several changes of a row within one statement the first counts, as in PostgreSQL (manual, 7.8.4).
        """
        touched = self.touched_in(shard)
        kept: list[Row] = []
        for row in paced(rows):
            if touched.add(row[0]):
                kept.append(row)
        return kept
