"""Rows of a partitioned table: which partition each belongs to, and the same row as that partition has it."""

from __future__ import annotations

from typing import Any

from planner.catalog import Catalog, RelationDef
from planner.evaluate import Env
from planner.partitions.bounds import divided

Row = tuple[Any, ...]


def slots_of(table: RelationDef, other: RelationDef) -> list[int] | None:
    """Return for each column of ``other`` where rows of ``table`` have it, -1 for nowhere; None where rows
    are the same.
    """
    named = {c.name: c.attnum - 1 for c in table.live}
    found = [-1 if c.dropped or c.hidden else named.get(c.name, -1) for c in other.columns]
    return None if found == list(range(len(table.columns))) else found


def moved(row: Row, slots: list[int] | None) -> Row:
    """Return a row with its values in other places (``slots_of``)."""
    return row if slots is None else tuple([None if at < 0 else row[at] for at in slots])


def place_of(table: RelationDef, row: Row, env: Env, catalog: Catalog) -> tuple[RelationDef, Row | None]:
    """Return the table that a row of a partitioned one belongs to, and None; or the last one on the way, and
    the key that it has no partition for.
    """
    while table.kind == "p":
        parts = divided(table, catalog)
        key = parts.key_of(row, env, catalog)
        found = parts.find(key)
        if found is None:
            return table, key
        if found.kind == "p":
            row = moved(row, slots_of(table, found))
        table = found
    return table, None
