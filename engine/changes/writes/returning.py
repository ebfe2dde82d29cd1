"""RETURNING: the rows a statement has stored or deleted, as its result.

    INSERT INTO t ... RETURNING id, (SELECT count(*) FROM t)
      row      as stored | tableoid, ctid | xmin, if it is asked for | extras that the source has computed
               (planner.bind.change.returning)
      result   one tuple per row, once all of them are staged

Sub-selects that the source could not compute are run by the row executor, row by row. They read after the statement's
writes and yet do not see them: a statement never sees its own changes (but ``in_turn``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from engine.base.executor import ExecContext
from engine.base.slices import pause
from engine.catalog.tids import tid_of
from engine.changes.writes.shape import table_layout
from engine.executors.index.plan import Planning
from engine.executors.index.state import ExecState, value_of
from pgwire.give_way import openly
from planner.catalog import RelationDef
from planner.evaluate import Env, RowFunction, compile_row
from planner.query import XMIN, OutputColumn, Target, Var
from planner.query.walk import walk
from txn.base.types import Row, RowId
from txn.base.writers import NUMBER_MASK

if TYPE_CHECKING:
    from engine.session.session import Session


def make_env(ctx: ExecContext) -> Env:
    """Return the evaluator's environment for a statement."""
    return Env(ctx.params, ctx.session, shared=ExecState(ctx))


def own_number(env: Env) -> int:
    """Return the xmin of rows that the running transaction has made: its id, which they show from then on."""
    ctx: ExecContext = env.shared.ctx
    if ctx.session is None:
        raise AssertionError("a statement that changes rows has a session")
    number: int = ctx.session.system.transaction_id() & NUMBER_MASK
    return number


class Returning:
    """RETURNING: rows as stored (plus the source's extra outputs) to output rows."""

    __slots__ = ("columns", "project", "relation", "tells_xmin", "width")

    def __init__(
        self,
        session: Session,
        relation: RelationDef,
        targets: Sequence[Target],
        columns: tuple[OutputColumn, ...],
    ) -> None:
        """Compile ``targets``; extras are range 1, behind the row."""
        self.relation = relation
        self.columns = columns
        self.width = len(relation.columns)
        layout = table_layout(relation)
        planning = Planning(session.catalog)
        layout.subplan = planning.sublink
        read = [node for target in targets for node in walk(target.expr) if isinstance(node, Var)]
        self.tells_xmin = any(var.attnum == XMIN for var in read)
        if self.tells_xmin:
            layout.columns[0, XMIN] = self.width + 2
        for var in read:
            if var.range == 1:
                layout.columns[1, var.attnum] = self.width + 2 + self.tells_xmin + var.attnum - 1
        exprs = [target.expr for target in targets if not target.junk]
        self.project: RowFunction = compile_row(exprs, layout)
        planning.end()

    async def rows(
        self, stored: Iterable[tuple[RowId, Row, Row]], env: Env, oid: int | None = None
    ) -> list[Row]:
        """Project (row id, row, extras) triples; ``oid``: of the table that has the rows, where that is a partition."""
        oid = self.relation.oid if oid is None else oid
        project = self.project
        # A row that the statement has made shows its transaction's id; of a deleted one the source has told it.
        xmin = (own_number(env),) if self.tells_xmin else ()
        result: list[Row] = []
        for row_id, row, extra in stored:
            full = (*row, oid, tid_of(row_id), *xmin, *extra)
            result.append(
                await value_of(project, full, env) if project.may_suspend else openly(project, full, env)
            )
            pause()
        return result


def returning_of(
    session: Session, relation: RelationDef, targets: Sequence[Target], columns: tuple[OutputColumn, ...]
) -> Returning | None:
    """Return the compiled RETURNING list, None for an empty one. Raises 0A000 for what has no Python form."""
    return Returning(session, relation, targets, columns) if targets else None
