"""What a trigger function is told of the event that it was called for (manual 43.10.1).

A row that is inserted has only ``new``, one that is deleted only ``old``, one that is updated both; a
statement has neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from planner.bind.context import WithStep
from planner.catalog import RelationDef
from planner.catalog.trigger import NO_TRANSITIONS
from planner.query import NEW_ROWS, OLD_ROWS, OutputColumn
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEvent:
    """One call of a trigger function.

    ``table``: the relation that changes, as the running transaction sees it (TG_RELID, TG_TABLE_NAME,
    TG_TABLE_SCHEMA). ``old`` and ``new``: values of ``table.live``, in that order; None where the event has
    no such row (manual 43.10.1: NULL). ``transitions``: the names of REFERENCING, of the old rows and the new
    ones, "" for none; ``old_rows`` and ``new_rows``: the transition tables, rows as ``old`` and ``new``.
    ``args``: TG_ARGV, ``name``: TG_NAME. ``updated``: attnums of what an UPDATE assigns, and what is
    generated from that. ``session``: whose statement it is; the function runs in its transaction.
    """

    op: Literal["INSERT", "UPDATE", "DELETE", "TRUNCATE"]
    when: Literal["BEFORE", "AFTER", "INSTEAD OF"]
    level: Literal["ROW", "STATEMENT"]
    name: str
    table: RelationDef
    session: Session
    args: tuple[str, ...] = ()
    updated: frozenset[int] = frozenset()
    old: Row | None = None
    new: Row | None = None
    transitions: tuple[str, str] = NO_TRANSITIONS
    old_rows: Sequence[Row] = ()
    new_rows: Sequence[Row] = ()

    @property
    def steps(self) -> dict[str, WithStep]:
        """What the names of transition tables mean."""
        if self.transitions == NO_TRANSITIONS:
            return {}
        columns = tuple([OutputColumn(name=c.name, type=c.declared) for c in self.table.live])
        numbered = zip(self.transitions, (OLD_ROWS, NEW_ROWS), strict=True)
        return {name: WithStep(number, columns) for name, number in numbered if name}
