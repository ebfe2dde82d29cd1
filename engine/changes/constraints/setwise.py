"""A whole table against a foreign key, with one query (RI_Initial_Check of PostgreSQL).

    SELECT f.a FROM child f
    WHERE f.a IS NOT NULL AND NOT EXISTS (SELECT FROM parent p WHERE p.x = f.a) LIMIT 1

It takes the route that any query takes, so large tables are an anti-join of the engine that is best for it. For
ADD and VALIDATE CONSTRAINT, and for bulk loads.

VALIDATE locks nothing: a constraint that is NOT VALID holds for all rows written since it was added, so it is
enough to look at the rows committed now, while others go on writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.catalog.reference_checks import references_to
from engine.changes.constraints.foreign_key import ForeignKey, compiled
from engine.changes.constraints.owners import ask_child, ask_parent
from engine.plans.unasked import unasked_rows
from planner.base.quoting import quote_identifier
from planner.catalog import ConstraintDef, RelationDef
from txn.api import Transaction
from txn.base.types import Row, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session


async def check_table(
    session: Session, table: RelationDef, constraint: ConstraintDef, reader: Transaction | None = None
) -> None:
    """Raise 23503 if a row of ``table`` breaks its foreign key ``constraint``.

    ``reader``: look at what this transaction sees, instead of the session's with its own changes.
    """
    if reader is None and await _is_empty(session, table):
        return
    key = compiled(session, table, constraint)
    row = None
    if key.full and len(key.child_at) > 1:
        row = await _first_row(session, _mixed_rows(key), reader)
    if row is not None:
        raise key.mixed_nulls()
    row = await _first_row(session, _dangling_rows(key), reader)
    if row is not None:
        raise key.not_present(row, session)


async def _is_empty(session: Session, table: RelationDef) -> bool:
    """Tell whether a table has no rows, as when it has just been made: a look at it is less than a query that
    has to be planned.
    """
    if not table.stored or session.system.row_estimate(table.oid):
        return False
    txn = session.block.ensure_txn()
    txn.next_statement()
    async for rows in txn.scan(ShardId(table.oid)):
        if rows:
            return False
    return True


async def check_bulk(session: Session, table: RelationDef) -> None:
    """Check, or let wait, the foreign keys of a table into which rows were loaded in bulk. Raises 23503, and
    42501 as ``ask_parent``.
    """
    await _check_each(session, table, table.foreign_keys)


async def _check_each(session: Session, table: RelationDef, constraints: Sequence[ConstraintDef]) -> None:
    for constraint in () if _keys_off(session, table) else constraints:
        await check_one(session, table, constraint)


async def check_one(session: Session, table: RelationDef, constraint: ConstraintDef) -> None:
    """Check one foreign key of a table for all rows, or let it wait. Raises as ``check_bulk``."""
    if session.timing.is_deferred(constraint):
        session.timing.note(constraint, table.oid, "whole table", {})
    else:
        ask_parent(session, compiled(session, table, constraint))
        await check_table(session, table, constraint)


async def check_unreferenced(session: Session, table: RelationDef, constraint: ConstraintDef) -> None:
    """Raise 23503 if a row of ``table`` refers to one of a partition that is about to leave the table that
    ``constraint`` refers to.

    ``constraint``: as ``references_above`` gives it for the partition.
    """
    key = compiled(session, table, constraint)
    row = await _first_row(session, _referenced_rows(key), None)
    if row is not None:
        message = (
            f'removing partition "{key.parent.name}" violates foreign key constraint "{constraint.name}"'
        )
        raise key.referenced(message, row, session)


def checked_whole(session: Session, table: RelationDef, changed: frozenset[int]) -> bool:
    """Tell whether all that foreign keys ask of an UPDATE of the columns ``changed`` is what
    ``check_changed`` looks at: of those of the table itself, in which all rows hold.

    None may refer to a column that changes, and rows that were there before a key that is NOT VALID need not have it.
    """
    if any(
        constraint.foreign is not None and not changed.isdisjoint(constraint.foreign.attnums)
        for _child, constraint in references_to(session.catalog, table)
    ):
        return False
    return all(constraint.validated for constraint in _concerned(table, changed))


async def check_changed(session: Session, table: RelationDef, changed: frozenset[int]) -> None:
    """As ``check_bulk``, of a table many of whose rows have other values in the columns ``changed``."""
    await _check_each(session, table, _concerned(table, changed))


def released_whole(session: Session, table: RelationDef) -> bool:
    """Tell whether all that foreign keys ask of a DELETE is what ``check_released`` looks at: that no row
    refers to one that is gone.

    None may have an action, or wait for the commit, and rows that were there before a key that is NOT VALID
    need not have it.
    """
    return not table.partition_of and all(
        constraint.foreign is not None
        and constraint.foreign.on_delete in "ar"
        and constraint.validated
        and not (constraint.parent or child.kind == "p" or session.timing.is_deferred(constraint))
        for child, constraint in references_to(session.catalog, table)
    )


async def check_released(session: Session, table: RelationDef) -> None:
    """Raise 23503 if a row refers to one of ``table`` that is gone, the lowest key if there are several;
    42501 as ``check_referenced``.
    """
    for child, constraint in () if _keys_off(session, table) else references_to(session.catalog, table):
        await release_one(session, compiled(session, child, constraint))


async def check_one_released(session: Session, key: ForeignKey) -> None:
    """As ``check_released``, of one foreign key; where it is deferred, at the commit."""
    if session.timing.is_deferred(key.constraint):
        session.timing.note(key.constraint, key.parent.oid, "parent table", {})
    else:
        await release_one(session, key)


async def release_one(session: Session, key: ForeignKey) -> None:
    """Raise 23503 if a row refers to one that is gone; 42501."""
    restrict = key.definition.on_delete == "r"
    if not restrict:
        ask_parent(session, key)
    row = await _first_row(session, _dangling_rows(key, ordered=True), None)
    if row is not None:
        ask_child(session, key)
        raise key.still_referenced(key.as_parent(row), session)


def _keys_off(session: Session, table: RelationDef) -> bool:
    return table.keys_off or session.derived.replica


def _concerned(table: RelationDef, changed: frozenset[int]) -> list[ConstraintDef]:
    return [one for one in table.foreign_keys if not changed.isdisjoint(one.attnums)]


def _table_name(relation: RelationDef) -> str:
    return f"{quote_identifier(relation.schema)}.{quote_identifier(relation.name)}"


def _columns(key: ForeignKey) -> list[str]:
    return [f"f.{quote_identifier(key.child.columns[i].name)}" for i in key.child_at]


def _mixed_rows(key: ForeignKey) -> str:
    columns = _columns(key)
    some = " OR ".join(f"{c} IS NULL" for c in columns)
    not_all = " OR ".join(f"{c} IS NOT NULL" for c in columns)
    return (
        f"SELECT {', '.join(columns)} FROM {_table_name(key.child)} f WHERE ({some}) AND ({not_all}) LIMIT 1"
    )


def _dangling_rows(key: ForeignKey, *, ordered: bool = False) -> str:
    columns = _columns(key)
    others = [f"p.{quote_identifier(key.parent.columns[i].name)}" for i in key.parent_at]
    equal = " AND ".join(f"{other} = {own}" for own, other in zip(columns, others, strict=True))
    there = " AND ".join(f"{c} IS NOT NULL" for c in columns)
    order = f"ORDER BY {', '.join(columns)} " if ordered else ""
    return (
        f"SELECT {', '.join(columns)} FROM {_table_name(key.child)} f WHERE {there} "
        f"AND NOT EXISTS (SELECT 1 FROM {_table_name(key.parent)} p WHERE {equal}) "
        f"{order}LIMIT 1"
    )


def _referenced_rows(key: ForeignKey) -> str:
    others = [f"p.{quote_identifier(key.parent.columns[i].name)}" for i in key.parent_at]
    equal = " AND ".join(f"{other} = {own}" for own, other in zip(_columns(key), others, strict=True))
    return (
        f"SELECT {', '.join(others)} FROM {_table_name(key.parent)} p, {_table_name(key.child)} f "
        f"WHERE {equal} LIMIT 1"
    )


async def _first_row(session: Session, sql: str, reader: Transaction | None) -> Row | None:
    rows = await unasked_rows(session, sql, reader)
    return rows[0] if rows else None
