"""One statement of a routine, run within the statement that calls it until it has an outcome.

    Replan         the catalog moved under its plan              planned anew, run again
    RowsChanged    rows to be locked have changed since read     run again, locks kept

    WriteConflict, Deadlock, SchemaChanged
                   the transaction lost                          run again with it, if it is the first of one that began behind
                                                                 COMMIT or ROLLBACK of a procedure

Any other that loses its transaction is not run again here: the client's statement around it is
(``engine.statements.retry``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.base.executor import RowsChanged
from engine.base.limits import (
    AUTOCOMMIT_RETRIES,
    MAX_REPLANS,
    MAX_RERUNS,
    definitions_keep_changing,
    rows_keep_changing,
)
from engine.base.rows import ReadyRows
from engine.plans.query import collect
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome, Rows
from engine.session.transaction.alone import refuse_in_block
from engine.session.transaction.races import note_rerun
from planner.base.errors import SqlError
from planner.statements import QueryStatement, StatementClass
from txn.base.errors import Deadlock, SchemaChanged, WriteConflict
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session


async def run_inner(
    session: Session,
    plan_of: Callable[[], tuple[Plan, Row]],
    again: Callable[[], None],
    enough: int | None = None,
) -> Outcome:
    """Run the plan and parameters that ``plan_of`` returns; rows are gathered, but those of a query that is
    fetched from. ``again`` has it planned anew. ``enough``: rows that who asks looks at, others are not read.

    Raises SqlError 25006 for a change in a transaction that only reads, 25001 for what cannot be part of one,
    40001 where it was run again too often, and what it raises.
    """
    await session.cancelled.turn()  # a loop of statements that never wait would keep the event loop to itself
    await session.heard()
    run = session.db.ports.run_statement
    block = session.block
    endings = block.endings
    first = endings > 0 and block.txn is None
    replans = reruns = losses = 0
    while True:
        plan, values = plan_of()
        if plan.bound.class_ is StatementClass.DDL and block.ensure_txn().read_only:
            raise SqlError("25006", f"cannot execute {plan.bound.tag} in a read-only transaction")
        refuse_in_block(session, plan)
        session.within.append(plan)
        try:
            outcome = await run(session, plan, values)
            if isinstance(outcome, Command):
                return outcome
            statement = plan.bound.statement
            later = isinstance(statement, QueryStatement) and statement.fetched
            rows = outcome if later else await _gathered(session, outcome, enough)
            rows.plan = plan
            return rows
        except Replan:
            replans += 1
            if replans > MAX_REPLANS:
                raise definitions_keep_changing() from None
            again()
        except RowsChanged:
            reruns += 1
            if reruns > MAX_RERUNS:
                raise rows_keep_changing() from None
        except (WriteConflict, Deadlock, SchemaChanged) as error:
            if not first or block.endings != endings or losses >= AUTOCOMMIT_RETRIES:
                raise
            losses += 1
            note_rerun(session, error)
            block.restart()
            if not plan.fresh(session.catalog):
                again()
        finally:
            session.within.pop()


async def _gathered(session: Session, outcome: Rows, enough: int | None) -> Rows:
    """Return an outcome all of whose rows are there, or enough."""
    if isinstance(outcome.result, ReadyRows):
        return outcome
    rows = await collect(session, outcome.result, enough=enough)
    result = ReadyRows(outcome.columns, rows)
    return Rows(outcome.columns, result, tag=outcome.tag, final_tag=outcome.final_tag)
