"""What a trigger function is told of the event that it was called for (manual 43.10.1).

A row that is inserted has only ``new``, one that is deleted only ``old``, one that is updated both; a statement has neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from planner.catalog import RelationDef
from txn.types import Row

if TYPE_CHECKING:
    from engine.connection.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEvent:
    """One call of a trigger function.

    ``table``: the relation that changes, as the running transaction sees it (TG_RELID, TG_TABLE_NAME, TG_TABLE_SCHEMA).
    ``old`` and ``new``: values of ``table.live``, in that order; None where the event has no such row (manual 43.10.1: NULL).
    ``args``: TG_ARGV, ``name``: TG_NAME. ``session``: whose statement it is; the function runs in its transaction.
    """

    op: Literal["INSERT", "UPDATE", "DELETE", "TRUNCATE"]
    when: Literal["BEFORE", "AFTER", "INSTEAD OF"]
    level: Literal["ROW", "STATEMENT"]
    name: str
    table: RelationDef
    session: Session
    args: tuple[str, ...] = ()
    old: Row | None = None
    new: Row | None = None
