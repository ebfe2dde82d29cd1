"""Values of partitions' bounds that a statement computes: FOR VALUES FROM (current_date) TO (current_date + 7).

As in PostgreSQL the values are those of the moment, whatever computes them, and the definition keeps them as constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.changes.writes.returning import make_env
from engine.plans.query import context
from engine.session.plans.plan import Plan
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.table.partition import NULL_IN_RANGE, distinct_values
from planner.catalog import PartitionBound
from planner.evaluate import compile_expr
from planner.partitions.bounds import key_text
from planner.statements.table import BoundSpans

if TYPE_CHECKING:
    from engine.session.session import Session


def with_values(
    session: Session,
    plan: Plan,
    bound: PartitionBound,
    spans: BoundSpans,
    computed: Sequence[st.ComputedBound],
) -> tuple[PartitionBound, BoundSpans]:
    """Return a bound with the values that are computed now.

    Raises SqlError 42501 for functions that the user may not call, 42P17 for NULL in a range, and what the
    expressions raise.
    """
    if not computed:
        return bound, spans
    session.ask_calls(frozenset().union(*(one.functions for one in computed)))
    env = make_env(context(session, plan, ()))
    values, upper = list(bound.values), list(bound.upper)
    for one in computed:
        value = compile_expr(one.expr)((), env)
        text = None if value is None else key_text(value, one.type)
        if text is None and bound.strategy == "r":
            raise SqlError("42P17", NULL_IN_RANGE)
        if one.upper and text is not None:
            upper[one.place] = text
        else:
            values[one.place] = text
    made = replace(bound, values=tuple(values), upper=tuple(upper))
    return distinct_values(made, spans) if bound.strategy == "l" else (made, spans)
