"""What runs in no transaction block, nor beside anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.session.plans.plan import Plan
from planner import statements as st

if TYPE_CHECKING:
    from engine.session.session import Session


def refuse_in_block(session: Session, plan: Plan) -> None:
    """Raise 25001 for CONCURRENTLY within a transaction block, beside other statements in one Query, or in a
    function.
    """
    statement = plan.bound.statement
    words = {st.CreateIndex: "CREATE", st.Drop: "DROP"}.get(type(statement))
    if words is None or not getattr(statement, "concurrently", False):
        return
    session.block.must_be_alone(f"{words} INDEX CONCURRENTLY")
