"""The part of a select list that Python computes from an engine's columns, compiled."""

from __future__ import annotations

from planner.errors import not_supported
from planner.evaluate import Layout, RowFunction, compile_map
from planner.lower.common import LoweredQuery


def finish_function(lowered: LoweredQuery) -> RowFunction | None:
    """Return what turns the engine's rows into the result's, or None if they are the same.

    Raises:
        SqlError: 0A000 where Python cannot compute it either, or would have to wait.
    """
    if lowered.finish is None:
        return None
    layout = Layout(columns={(0, i + 1): i for i in range(len(lowered.columns))})
    made = compile_map(lowered.finish.exprs, layout)
    if made.may_suspend:
        raise not_supported("pg_sleep in this executor")
    return made
