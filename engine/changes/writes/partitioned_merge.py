"""MERGE into a partitioned table: the actions are MERGE's, what they do to rows is that of UPDATE, DELETE and
INSERT of such tables.

source rows, with the table each is in ──> first action whose condition holds ─┬─> DELETE   in its partition
├─> UPDATE   there, or it moves
└─> INSERT   in the partition of the new row
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.base.row_ids import RowIds
from engine.changes.triggers.firing import Firing, updated_columns
from engine.changes.triggers.rows import begin
from engine.changes.writes.dml import leaf_of
from engine.changes.writes.merge import OPERATIONS, VERB, Action, MergeActions, second_time
from engine.changes.writes.partitioned import Noted, Partitioned, routed, statement_firing
from engine.changes.writes.partitioned_changes import Changes, in_pieces, source_rows
from engine.changes.writes.row_checks import RowChecks
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.release import let_go
from planner.evaluate import Env
from planner.query import Merge
from txn.base.types import Row, RowId, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session


class _Merging:
    """One run of a MERGE."""

    def __init__(
        self, session: Session, made: Partitioned, statement: Merge, env: Env, *, many: bool
    ) -> None:
        self.session, self.made, self.env = session, made, env
        parent = made.parent
        self.assigned = sorted(
            {a for one in statement.actions if one.action == "update" for a in one.assigned}
        )
        self.firings: list[Firing] = []
        for what, operation in OPERATIONS.items():
            if any(action.action == what for action in statement.actions):
                changed = updated_columns(session, parent, self.assigned) if what == "update" else ()
                firing = statement_firing(session, parent, operation, changed)
                self.firings += [] if firing is None else [firing]
        self.noted = Noted(made, self.firings, session if many else None)
        self.changes = Changes(session, made, env, self.noted, VERB)
        self.actions = MergeActions(session, parent, statement)
        self.checks = RowChecks(session, parent, statement.row_checks)
        self._touched: dict[int, RowIds] = {}

    async def take(self, row: Row) -> None:
        """Do the first action that fits. Raises SqlError 21000 for a second one on a row of the target."""
        action = await self.actions.choose(row, self.env)
        if action is None:
            return
        if action.what == "insert":
            await self.changes.insert(await self.actions.new_row(action, row, self.env))
            return
        await self._change(action, row)

    async def _change(self, action: Action, row: Row) -> None:
        old = self.actions.old_row(row)
        if self.checks:
            await self.checks.check(
                "merge delete" if action.what == "delete" else "merge update", [old], self.env
            )
        self._touch(row[-1], row[0])
        part = self.made.part(self.session, leaf_of(self.session, row[-1]))
        if action.what == "delete":
            await self.changes.delete(part, RowId(row[0]), old)
        else:
            new = await self.actions.new_row(action, row, self.env)
            await self.changes.update(part, RowId(row[0]), old, new, self.assigned)

    def _touch(self, table: int, row_id: int) -> None:
        if not self._touched.setdefault(table, RowIds()).add(row_id):
            raise second_time()
        if self.session.parts is not None and not self.session.parts.touched_in(ShardId(table)).add(row_id):
            raise second_time()

    def let_go(self) -> None:
        """Have all of it freed in slices."""
        self.noted.let_go()


async def merge_routed(session: Session, plan: Plan, statement: Merge, params: tuple[Any, ...]) -> Outcome:
    """Run a MERGE into a partitioned table. Raises as ``run_merge``; SqlError 23514 for a row without a partition."""
    made = routed(session, plan, statement)
    rows, pieces, env = await source_rows(session, plan, made, statement, params)
    merging = _Merging(session, made, statement, env, many=pieces is not None)
    await begin(session, *reversed(merging.firings))
    await in_pieces(session, rows, pieces, merging.changes, merging.take)
    await merging.noted.follow(session)
    count = merging.changes.count
    merging.let_go()
    let_go(rows)
    return Command(f"MERGE {count}")
