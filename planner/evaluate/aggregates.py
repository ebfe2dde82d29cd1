"""Aggregates as objects: the function that makes a fresh state of one, for a session and direct arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.evaluate.env import Env
from planner.functions.registry import AggregateBuiltin


def state_maker(
    row: AggregateBuiltin, types: tuple[int, ...]
) -> Callable[[Env, tuple[Any, ...] | None], Any]:
    """Return the function that makes a fresh state for (env, direct arguments or None)."""
    make = row.python
    if make is None:
        raise LookupError(row.signature)
    keywords: dict[str, Any] = {"types": types} if row.needs_types else {}
    if not keywords and not row.needs_session:
        return lambda e, direct: make() if direct is None else make(direct=direct)

    def build(e: Env, direct: tuple[Any, ...] | None) -> Any:
        extra = keywords if direct is None else {**keywords, "direct": direct}
        return make(e.session, **extra) if row.needs_session else make(**extra)

    return build
