"""Which partition a row of a partitioned table belongs to, and rows of either as rows of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.changes.writes.shape import Shown, TableShape, runnable_check, table_layout
from engine.session.transaction.shown_values import shown_value
from planner.base.errors import SqlError
from planner.bind.define.table.partition import partition_check, shown_key
from planner.catalog import RelationDef
from planner.evaluate import Env, RowFunction, compile_expr
from planner.information.definitions import reader_of
from planner.partitions.rows import moved, place_of, slots_of
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session


class Routing:
    """The way from rows of a partitioned table to its partitions, and back, under one catalog."""

    __slots__ = ("_back", "_bound", "_forth", "parent")

    def __init__(self, session: Session, parent: RelationDef) -> None:
        """Route rows of ``parent``. It is kept with plans, which outlive the session."""
        self.parent = parent
        self._forth: dict[int, list[int] | None] = {}
        self._back: dict[int, list[int] | None] = {}
        expr = partition_check(parent, session.catalog)
        self._bound: RowFunction | None = (
            None  # of a partition that is divided again, and named by the statement
        )
        if expr is not None:
            self._bound = compile_expr(runnable_check(expr, session), table_layout(parent))

    def find(self, session: Session, row: Row, env: Env) -> RelationDef:
        """Return the table for a row of the parent. Raises SqlError 23514."""
        table = self.parent
        if self._bound is not None and self._bound((*row, table.oid), env) is False:
            raise TableShape.of(table, session).out_of_bound(row, session)
        found, key = place_of(table, row, env, session.catalog)
        if key is not None:
            raise _nowhere(session, found, key)
        return found

    def forth(self, leaf: RelationDef, row: Row) -> Row:
        """Return a row of the parent as one of a partition."""
        if leaf.oid not in self._forth:
            self._forth[leaf.oid] = slots_of(self.parent, leaf)
        return moved(row, self._forth[leaf.oid])

    def back(self, leaf: RelationDef, row: Row) -> Row:
        """Return a row of a partition as one of the parent."""
        if leaf.oid not in self._back:
            self._back[leaf.oid] = slots_of(leaf, self.parent)
        return moved(row, self._back[leaf.oid])


def _nowhere(session: Session, table: RelationDef, key: Row) -> SqlError:
    """Return 23514 for a row that no partition has; its key is shown to who may read all of it."""
    made = table.partition_key
    if made is None:
        raise AssertionError(f"relation {table.name} is not partitioned")
    detail = None
    shown = Shown.of(table, session).attnums
    if shown is None or all(attnum in shown for attnum in made.attnums):
        names = shown_key(table, reader_of(session))
        values = [
            shown_value(type_.oid, value, session.codec_settings)
            for value, type_ in zip(key, made.types, strict=True)
        ]
        detail = f"Partition key of the failing row contains ({', '.join(names)}) = ({', '.join(values)})."
    return SqlError(
        "23514",
        f'no partition of relation "{table.name}" found for row',
        detail=detail,
        schema=table.schema,
        table=table.name,
    )
