"""Making the checks: of a statement's keys at its end, of the waiting ones at COMMIT or SET CONSTRAINTS ...
IMMEDIATE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.base.eager import settle
from engine.changes.constraints.exclusion import check_whole
from engine.changes.constraints.foreign_key import ForeignKey, compiled
from engine.changes.constraints.owners import ask_child, ask_parent
from engine.changes.constraints.setwise import check_table, release_one
from engine.changes.writes.spilling import Spilling
from engine.session.transaction.timing import Keys, Waiting
from pgwire.give_way import between, spaced
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.catalog import ConstraintDef
from txn.base.types import IndexId, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session
    from planner.statements import SetConstraints


async def set_constraints(session: Session, statement: SetConstraints) -> None:
    """SET CONSTRAINTS. Raises SqlError 3F000, 42704, 42809, and the errors of checks that are due now."""
    if not statement.names:
        session.timing.defer_all(statement.deferred)
    else:
        chosen: dict[int, bool] = {}
        for schema, name in spaced(statement.names):
            for constraint in _named(session, schema, name):
                if constraint.deferrable:
                    chosen |= dict.fromkeys(_with_parts(session, constraint.oid), statement.deferred)
                elif statement.deferred:
                    raise SqlError("42809", f'constraint "{name}" is not deferrable')
        session.timing.defer(chosen)
    if not statement.deferred:
        await make_waiting_checks(session, due_only=True)


async def make_waiting_checks(session: Session, *, due_only: bool = False) -> None:
    """Make the checks that wait, all or those whose constraint is no longer deferred, and those that triggers
    then cause.

    Raises SqlError 23503, 23505, 23P01, and what trigger functions raise.
    """
    while True:
        due: list[Waiting] = []
        later: list[Waiting] = []
        node = session.timing.waiting
        waits: dict[
            int, bool | None
        ] = {}  # by constraint: whether it is still deferred; None: it was dropped
        while node is not None:
            if node.constraint not in waits:
                found = session.catalog.constraint_by_oid(node.constraint)
                waits[node.constraint] = None if found is None else session.timing.is_deferred(found[1])
            deferred = waits[node.constraint]
            if deferred is not None:
                (later if due_only and deferred else due).append(node)
            node = node.before
            between()
        session.timing.keep(later[::-1])
        if not due:
            return
        session.block.ensure_txn().next_statement()
        spilling = Spilling(session)
        for check in reversed(due):
            await _make(session, check)
            if spilling.due:
                await spilling.spill()
            between()
        let_go(*(check.keys for check in due))


async def _make(session: Session, check: Waiting) -> None:
    found = session.catalog.constraint_by_oid(check.constraint)
    if found is None:
        return
    table, constraint = found
    txn = session.block.ensure_txn()
    if check.call is not None:
        await check.call()
        txn.next_statement()
    elif check.side == "unique":
        await settle(txn.check_unique(ShardId(table.oid), IndexId(constraint.index_oid)))
    elif check.side == "exclusion":
        await check_whole(session, table, constraint)
    elif check.side == "whole table":
        ask_parent(session, compiled(session, table, constraint))
        await check_table(session, table, constraint)
    elif check.side == "parent table":
        await release_one(session, compiled(session, table, constraint))
    else:
        key = compiled(session, table, constraint)
        if check.mixed and await key.has_mixed_rows(txn):
            raise key.mixed_nulls()
        if check.side == "child":
            await check_referencing(session, key, check.keys)
        else:
            await check_referenced(session, key, check.keys)


async def check_referencing(session: Session, key: ForeignKey, keys: Keys) -> None:
    """Raise 23503 if rows refer to one of ``keys`` (values of their columns) and no referenced row has it;
    42501 as ``ask_parent``.
    """
    ask_parent(session, key)
    txn = session.block.ensure_txn()
    missing = await key.missing(txn, keys)
    if missing:
        there = {key.child_key(row.values) for row in await key.children(txn, missing, of_parent=False)}
        for canonical, shown in missing.items():
            if canonical in there:
                raise key.not_present(shown, session)
        let_go(missing, there)


async def check_referenced(session: Session, key: ForeignKey, keys: Keys, *, restrict: bool = False) -> None:
    """Raise 23503 if rows refer to one of ``keys`` (values of the referenced columns) that no row has any more.

    ``restrict``: it does not help that another row has the key now. 42501 as ``ask_parent`` and ``ask_child``.
    """
    txn = session.block.ensure_txn()
    if not restrict:
        ask_parent(session, key)
    gone = keys if restrict else await key.vanished(txn, keys)
    if gone:
        ask_child(session, key)
        there = {key.child_key(row.values) for row in await key.children(txn, gone, of_parent=True)}
        for canonical, shown in gone.items():
            if canonical in there:
                raise key.still_referenced(shown, session)
        let_go(gone, there)


def _named(session: Session, schema: str, name: str) -> list[ConstraintDef]:
    """Return the constraints of that name in the schema, or in the first schema of the path that has one."""
    catalog = session.catalog
    if schema and catalog.schema(schema) is None:
        raise SqlError("3F000", f'schema "{schema}" does not exist')
    for entry in [schema] if schema else session.search_path:
        found = [
            c for r in catalog.user_relations() if r.schema == entry for c in r.constraints if c.name == name
        ]
        if found:
            return found
    raise SqlError("42704", f'constraint "{name}" does not exist')


def _with_parts(session: Session, constraint: int) -> list[int]:
    """Return a constraint of a partitioned table, by oid, and those that its partitions have from it."""
    found = [constraint]
    for oid in found:
        table = session.catalog.constraint_by_oid(oid)
        if table is not None and table[0].kind == "p":
            children = session.catalog.partitions_of(table[0].oid)
            found += [c.oid for child in children for c in child.constraints if c.parent == oid]
    return found
