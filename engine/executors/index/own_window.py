"""Users' aggregates over window frames.

    frame stays where it begins     the state goes on from row to row of it, its result is asked for in between
    its start moves                 anew for each row; with MSFUNC and MINVFUNC rows that leave the frame are taken out of the state

When which functions count, and when taking a row out begins the state anew, is PostgreSQL's (manual 38.12.1).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from engine.executors.index.own_aggregate import Steps
from engine.executors.index.state import Item, evaluate
from pgwire.give_way import give_way
from planner.base.errors import SqlError
from planner.bind.expression.aggregate_steps import no_window
from planner.evaluate import Env
from planner.query import AggregateSteps, SubLink, Window, WindowFunc
from planner.query.walk import walk
from planner.statements.classify import is_volatile

Row = tuple[Any, ...] | None
"""What a row has for the arguments; None: FILTER leaves it out."""


def steps_over(
    call: WindowFunc, plain: AggregateSteps, moving: AggregateSteps | None, window: Window
) -> AggregateSteps:
    """Return the steps that count for a window. Raises SqlError 0A000 where its final function changes the state."""
    chosen = plain
    if moving is not None:
        forced = moving.modify == "r" != plain.modify
        read = (*call.args, *((call.filter,) if call.filter is not None else ()))
        fixed = window.start.kind == "unbounded_preceding" or any(
            is_volatile(expr) or any(isinstance(n, SubLink) for n in walk(expr)) for expr in read
        )
        chosen = moving if forced or not fixed else plain
    if chosen.modify != "r" and call.own is not None:
        raise no_window(call.own.signature)
    return chosen


def over_frames(
    steps: Steps, rows: Sequence[Row], frame_of: Callable[[int], Sequence[int]], whole: bool, e: Env
) -> Generator[Item, None, list[Any]]:
    """Return the aggregate's result for each row. ``frame_of``: the positions of its frame; ``whole``: these
    are ranges.
    """
    out: list[Any] = []
    state: Any = None
    inside = 0  # rows in the state, those apart that a strict function passes over
    base = upto = 0  # the state is of rows[base:upto]
    last: Sequence[int] | None = None
    for i in range(len(rows)):
        give_way()
        frame = frame_of(i)
        if last is not None and frame == last:
            out.append(out[-1])
            continue
        start, end = (frame[0], frame[-1] + 1) if frame else (upto, upto)
        anew = last is None or not whole or upto <= start or (base != start and steps.inverse is None)
        while not anew and base < start:
            row = rows[base]
            if row is not None and not (steps.strict and None in row):
                if inside == 1:
                    state = yield from steps.start(e)
                    inside = 0
                else:
                    without = yield from _taken_out(steps, state, row, e)
                    anew = without is None
                    state = without
                    inside -= 1
            base += 1
        if anew:
            state = yield from steps.start(e)
            inside = 0
            upto = start
        base = start
        added = [row for j in (range(upto, end) if whole else frame) if (row := rows[j]) is not None]
        if steps.inverse is None:
            state = yield from steps.feed(state, added, e)
        else:
            for row in added:
                if not (steps.strict and None in row):
                    state = yield from steps.feed(state, (row,), e)
                    inside += 1
                    if state is None:
                        raise SqlError("22004", "moving-aggregate transition function must not return null")
        upto = max(upto, end)
        last = frame
        out.append((yield from steps.result(state, (), e)))
        yield None
    return out


def _taken_out(steps: Steps, state: Any, row: Sequence[Any], e: Env) -> Generator[Item, None, Any]:
    """Return the state without a row, None where it has to begin anew."""
    inverse = steps.inverse
    if inverse is None:
        raise AssertionError("the aggregate has no inverse")
    if inverse.may_suspend:
        return (yield from evaluate(inverse, (state, *row), e))
    return inverse((state, *row), e)
