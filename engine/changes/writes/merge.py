"""MERGE: from bound statement to staged row changes.

    source query ──rows──> first action whose condition holds ─┬─> DELETE   row id
      row id or NULL | old columns | extras                    ├─> UPDATE   row id, old row with new values
                                                               └─> INSERT   new row

As every statement it sees nothing of its own changes, and these are staged as one: first what goes, then what
changes, then what comes, so that a key may pass from a row that is deleted to one that is inserted (of many
rows a piece at a time, and unique keys are looked at behind the last). Where triggers look at rows before
they are stored, each is staged as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.base.eager import settle
from engine.base.executor import CHANGES
from engine.base.row_ids import RowIds
from engine.base.rows import ReadyRows
from engine.base.slices import pause
from engine.changes.constraints import effects
from engine.changes.triggers.firing import Firing, Operation, firing_of
from engine.changes.triggers.rows import begin, delete_each, insert_each, update_each
from engine.changes.writes.dml import changed_by, made_openly, tables_to_lock, target_of
from engine.changes.writes.many import CHANGED, KeysAtTheEnd, few_or_more
from engine.changes.writes.returning import make_env
from engine.changes.writes.row_checks import RowChecks
from engine.changes.writes.shape import TableShape
from engine.changes.writes.spilling import Spilling
from engine.changes.writes.spooled import SpooledRows
from engine.executors.index.plan import Planning
from engine.executors.index.state import value_of
from engine.plans.query import collect, compiled_query, context, prepare_source, run_query
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import openly, paced
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.evaluate import Env, Layout, RowFunction, compile_predicate, compile_row
from planner.query import Merge, MergeAction, RowCheckKind
from txn.base.types import Row, RowId

if TYPE_CHECKING:
    from engine.session.session import Session


class Action(NamedTuple):
    """A WHEN clause, compiled over a row of the source; ``positions`` are those of its values in a row of the table."""

    what: str
    condition: RowFunction | None
    positions: Sequence[int]
    values: RowFunction


VERB: Final = "updated or deleted"  # in messages
OPERATIONS: Final[dict[str, Operation]] = {"delete": "DELETE", "update": "UPDATE", "insert": "INSERT"}
"""The kinds of action, in the order in which their AFTER STATEMENT triggers fire; BEFORE STATEMENT ones fire
in the opposite one."""


class MergeActions:
    """The WHEN clauses of a MERGE, compiled over the source layout of ``planner.query.Merge``."""

    __slots__ = ("_matched", "_old", "_unmatched", "_width")

    def __init__(self, session: Session, relation: RelationDef, statement: Merge) -> None:
        """``relation``: the target."""
        live = relation.live
        columns = {(0, column.attnum): at for at, column in enumerate(live, 1)}
        extras = len(statement.source.columns) - 1 - len(live)
        columns |= {(1, number): len(live) + number for number in range(1, extras + 1)}
        layout = Layout(columns=columns)
        planning = Planning(session.catalog)
        layout.subplan = planning.sublink
        self._width = len(relation.columns)
        self._old = [(column.attnum - 1, at) for at, column in enumerate(live, 1)]
        self._matched = [_compiled(action, layout) for action in statement.actions if action.matched]
        self._unmatched = [_compiled(action, layout) for action in statement.actions if not action.matched]
        planning.end()

    async def choose(self, row: Row, env: Env) -> Action | None:
        """Return the first action that fits a row of the source, None for none, or DO NOTHING."""
        for action in self._unmatched if row[0] is None else self._matched:
            if action.condition is None or await value_of(action.condition, row, env):
                return None if action.what == "nothing" else action
        return None

    def old_row(self, row: Row) -> Row:
        """Return the target's row that a row of the source has, NULLs for none."""
        cells: list[Any] = [None] * self._width
        for position, at in self._old:
            cells[position] = row[at]
        return tuple(cells)

    async def new_row(self, action: Action, row: Row, env: Env) -> Row:
        """Return the row that an action makes."""
        cells = list(self.old_row(row))
        for position, value in zip(action.positions, await value_of(action.values, row, env), strict=True):
            cells[position] = value
        return tuple(cells)


class MergePlan:
    """The compiled parts of a MERGE into one table."""

    __slots__ = ("actions", "checks", "each", "firings", "reach", "shape")

    def __init__(self, session: Session, statement: Merge) -> None:
        """Compile against the session's catalog."""
        relation = target_of(session, statement.table)
        self.shape = TableShape.of(relation, session).showing(
            [attnum for action in statement.actions for attnum in action.given]
        )
        self.checks = RowChecks(session, relation, statement.row_checks)
        self.actions = MergeActions(session, relation, statement)
        self.reach = effects.Reach(session, relation, "insert", frozenset())
        self.firings: dict[Operation, Firing] = {}
        for action in paced(statement.actions, 4):
            if action.action in ("update", "delete"):
                changed, _ = changed_by(session, relation, action.assigned)
                self.reach.add(session, relation, action.action, changed)
        for what, operation in OPERATIONS.items():
            found = self._firing(session, relation, statement, what)
            if found is not None:
                self.firings[operation] = found
        # whether the rows are staged one by one, as they come, because triggers look at them
        self.each = any(firing.before_row for firing in self.firings.values())

    def _firing(self, session: Session, relation: RelationDef, statement: Merge, what: str) -> Firing | None:
        """Return what the actions of one kind fire; of several UPDATEs what any of them does."""
        actions = [action for action in statement.actions if action.action == what]
        if not actions:
            return None
        if what == "update":
            return changed_by(session, relation, [a for action in actions for a in action.assigned])[1]
        return firing_of(session, relation, OPERATIONS[what])

    def firing(self, what: Operation) -> Firing:
        """Return what fires for one kind of action."""
        return self.firings.get(what) or Firing(self.shape.relation, what, ())


def _compiled(action: MergeAction, layout: Layout) -> Action:
    condition = None if action.condition is None else compile_predicate([action.condition], layout)
    positions = [attnum - 1 for attnum in action.assigned]
    return Action(action.action, condition, positions, compile_row(action.values, layout))


def second_time() -> SqlError:
    """Return 21000 for a row of the target to which a second row of the source wants to do something."""
    return SqlError(
        "21000",
        "MERGE command cannot affect row a second time",
        hint="Ensure that not more than one source row matches any one target row.",
    )


class _Changes:
    """What a MERGE does to its target, gathered row by row."""

    def __init__(self, session: Session, merge: MergePlan, env: Env, touched: RowIds, *, many: bool) -> None:
        self._follows = bool(merge.reach or merge.shape.relation.checks_late or merge.firings)
        self.session = session
        self.merge = merge
        self.env = env
        self.deleted: list[RowId] = []
        self.updated: list[tuple[RowId, Row]] = []
        self.inserted: list[Row] = []
        gather = (lambda: SpooledRows.of(session, CHANGED)) if many else list
        self.effects = effects.Mixed(merge.shape.relation, merge.firings, gather)
        self._touched = touched
        self._count = 0

    async def take(self, row: Row) -> None:
        """Do the first action that fits. Raises SqlError 21000 for a second one on a row of the target."""
        merge, env = self.merge, self.env
        action = await merge.actions.choose(row, env)
        if action is None:
            return
        old = merge.actions.old_row(row)
        if action.what != "insert" and merge.checks:
            kind: RowCheckKind = "merge delete" if action.what == "delete" else "merge update"
            await merge.checks.check(kind, [old], env)
        if action.what == "delete":
            await self._delete(self._touch(row[0]), old)
            return
        row_id = None if row[0] is None else self._touch(row[0])
        new = await merge.actions.new_row(action, row, env)
        if row_id is None:
            await self._insert(new)
        else:
            await self._update(row_id, old, new)

    async def _delete(self, row_id: RowId, old: Row) -> None:
        merge = self.merge
        if merge.each:
            firing = merge.firing("DELETE")
            if not await delete_each(self.session, firing, merge.shape, [(row_id, old)], VERB):
                return
        self.deleted.append(row_id)
        self._note("DELETE", old, None)

    async def _update(self, row_id: RowId, old: Row, new: Row) -> None:
        merge = self.merge
        if merge.each:
            firing = merge.firing("UPDATE")
            done = await update_each(
                self.session, firing, merge.shape, [(row_id, old, new)], self.env, VERB, merge.checks
            )
            if not done:
                return
            new = done[0].new
        else:
            [new] = await merge.checks.made("update", merge.shape, [new], self.env)
        self.updated.append((row_id, new))
        self._note("UPDATE", old, new)

    async def _insert(self, new: Row) -> None:
        merge = self.merge
        if merge.each:
            done = await insert_each(
                self.session, merge.firing("INSERT"), merge.shape, [new], self.env, merge.checks
            )
            if not done:
                return
            [(_row_id, new)] = done
        else:
            [new] = await merge.checks.made("insert", merge.shape, [new], self.env)
        self.inserted.append(new)
        self._note("INSERT", None, new)

    def _note(self, op: Operation, old: Row | None, new: Row | None) -> None:
        if self._follows:
            openly(self.effects.add, op, old, new)

    def _touch(self, row_id: int) -> RowId:
        if not self._touched.add(row_id):
            raise second_time()
        return RowId(row_id)

    async def stage(self, session: Session) -> None:
        """Write what is not staged yet."""
        txn, shape = session.block.ensure_txn(), self.merge.shape
        if not self.merge.each:
            if self.deleted:
                await settle(txn.delete(shape.shard, self.deleted))
            if self.updated:
                await settle(txn.update(shape.shard, self.updated))
            if self.inserted:
                await settle(txn.insert(shape.shard, self.inserted))
        self._count += len(self.deleted) + len(self.updated) + len(self.inserted)
        let_go(self.deleted, self.updated, self.inserted)
        self.deleted, self.updated, self.inserted = [], [], []

    async def follow(self, session: Session) -> int:
        """Follow up all of it; return how many rows are changed."""
        if self._follows:
            await self.effects.follow(session)
        return self._count

    def let_go(self) -> None:
        """Have all of it freed in slices."""
        self.effects.let_go()
        let_go(self.deleted, self.updated, self.inserted)


async def run_merge(session: Session, plan: Plan, statement: Merge, params: tuple[Any, ...]) -> Outcome:
    """Run a MERGE. Raises SqlError 21000, and what storing rows raises (23502, 23503, 23505, 23514)."""
    if target_of(session, statement.table).kind == "p":
        from engine.changes.writes.partitioned_merge import merge_routed  # its actions are those of here

        return await merge_routed(session, plan, statement, params)
    if plan.dml is None:
        plan.dml = made_openly(session, plan, lambda: MergePlan(session, statement))
    merge: MergePlan = plan.dml
    prepare_source(session, compiled_query(plan, "source", statement.source))
    ctx = context(session, plan, params, for_update=CHANGES)
    await session.view.start_write(plan, [merge.shape.shard], tables_to_lock(session, plan, "source"))
    await effects.prepare(session, merge.shape.relation, merge.reach)
    session.view.use(plan)
    result = await run_query(session, plan, "source", statement.source, ctx)
    pieces = None
    if plan.locking and not isinstance(result, ReadyRows):
        rows: Sequence[Row] = await collect(session, result)
    else:
        rows, pieces = await few_or_more(session, result)
    touched = RowIds() if session.parts is None else session.parts.touched_in(merge.shape.shard)
    await begin(session, *reversed(merge.firings.values()))
    changes = _Changes(session, merge, make_env(ctx), touched, many=pieces is not None)
    for row in rows:
        pause()
        await changes.take(row)
    if pieces is not None:
        spilling = Spilling(session)
        changed = frozenset[int]() if merge.each else None
        async with aclosing(pieces):
            with KeysAtTheEnd(session, merge.shape, changed) as waiting:
                async for some in pieces:
                    for row in some:
                        pause()
                        await changes.take(row)
                    await changes.stage(session)
                    if spilling.due:
                        await spilling.spill()
                await spilling.rest()
                await waiting.look()
    await changes.stage(session)
    count = await changes.follow(session)
    changes.let_go()
    let_go(rows)
    return Command(f"MERGE {count}")
