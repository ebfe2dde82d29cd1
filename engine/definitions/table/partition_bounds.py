"""Values of partitions' bounds that a statement computes: FOR VALUES FROM (current_date) TO (current_date + 7).

As in PostgreSQL the values are those of the moment, whatever computes them, and the definition keeps them as constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.table.partition import NULL_IN_RANGE, distinct_values
from planner.catalog import PartitionBound
from planner.evaluate import Env, compile_expr
from planner.partitions.bounds import key_text
from planner.statements.table import BoundSpans


def with_values(
    env: Env,
    ask_calls: Callable[[frozenset[int]], None],
    bound: PartitionBound,
    spans: BoundSpans,
    computed: Sequence[st.ComputedBound],
) -> tuple[PartitionBound, BoundSpans]:
    """Return a bound with the values that are computed now.

    ``ask_calls`` raises SqlError 42501 for functions that the user may not call. Raises 42P17 for NULL in a range, and
    what the expressions raise.
    """
    if not computed:
        return bound, spans
    ask_calls(frozenset().union(*(one.functions for one in computed)))
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
