"""Referential actions on a partitioned table: one UPDATE or DELETE of it, as PostgreSQL runs it.

    UPDATE p SET a = 12 ──> c (a) REFERENCES p ON UPDATE CASCADE
                            ├─ c1 FOR VALUES FROM (0) TO (10)     rows with the old key: deleted here,
                            └─ c2 FOR VALUES FROM (10) TO (20)    inserted there

The rows are found by the keys of the partitions, which have indexes; what they become is decided, and routed,
as rows of the table that has the constraint. Its statement triggers fire, row triggers are the partitions'
own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from engine.changes.constraints.effects import Change
from engine.changes.constraints.foreign_key import ForeignKey
from engine.changes.triggers.firing import Firing, updated_columns
from engine.changes.writes.partitioned import Noted, Partitioned, statement_firing
from engine.changes.writes.partitioned_changes import Changes
from engine.session.transaction.timing import Keys
from pgwire.release import let_go
from planner.evaluate import Env, Shared
from planner.query import Delete, Select
from txn.base.types import Row, RowId, StoredRow

if TYPE_CHECKING:
    from engine.session.session import Session

Begin = Callable[["Session", Firing], Awaitable[None]]
NewRows = Callable[[ForeignKey, Sequence[StoredRow]], Awaitable[list[tuple[RowId, Row]]]]


async def act_on_partitions(
    session: Session,
    key: ForeignKey,
    leaves: Sequence[ForeignKey],
    gone: Keys,
    assigned: Sequence[int] | None,
    new_rows: NewRows,
    begin: Begin,
) -> list[Change]:
    """Change the rows that refer to ``gone``; return the changes, in the order in which what follows them is
    to be done.

    ``key``: of the partitioned table; ``leaves``: the same constraint of its partitions that store rows.
    ``assigned``: the columns that are set, None: rows are deleted. ``new_rows`` makes what rows of the
    partitioned table become; ``begin`` fires BEFORE STATEMENT, unless it has fired. Raises what storing rows
    and triggers raise.
    """
    root = key.child
    made = Partitioned(session, Delete(table=root.oid, source=Select(columns=(), targets=())))
    env = Env((), session, shared=Shared())
    firing = statement_firing(
        session,
        root,
        "DELETE" if assigned is None else "UPDATE",
        () if assigned is None else updated_columns(session, root, assigned),
    )
    if firing is not None:
        await begin(session, firing)
    noted = Noted(made, [firing])
    changes = Changes(session, made, env, noted)
    txn = session.block.ensure_txn()
    for leaf in leaves:
        rows = await leaf.children(txn, gone, of_parent=True, for_update=True)
        whole = [StoredRow(row.row_id, made.routing.back(leaf.child, row.values), row.begin) for row in rows]
        part = made.part(session, leaf.child)
        if assigned is None:
            for row in whole:
                await changes.delete(part, row.row_id, row.values)
        else:
            made_of = await new_rows(key, whole)
            for row, (row_id, new) in zip(whole, made_of, strict=True):
                await changes.update(part, row_id, row.values, new, assigned)
            let_go(made_of)
        let_go(rows, whole)
    await changes.stage()
    return noted.changes()
