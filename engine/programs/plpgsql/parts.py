"""Assignments to parts of variables: r.f := x, a[i].f := x, NEW.a[(SELECT ...)] := x.

place     what is replaced: the variable, or the field of a record, and the steps that lead on from there
part      how it is replaced: an expression over the whole and the value, or a query where a subscript holds a sub-select

PostgreSQL analyses the whole assignment as one statement before any of it is computed: where its target is
wrong, the value is not.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from engine.base.where import told
from engine.programs.plpgsql.body import ReadyPart, value_at
from engine.programs.plpgsql.constants import converted, placed_in_target
from engine.programs.plpgsql.open_row import OpenRow
from engine.session.portal import Rows
from pgwire.codecs.system import RecordValue
from planner import ast
from planner.base.errors import SqlError
from planner.bind.expression.calls import result_row
from planner.evaluate import Env, Shared
from planner.plpgsql import tree
from planner.plpgsql.bind import VALUE
from planner.plpgsql.variables import Source, unassigned
from planner.query.walk import walk
from planner.types import SqlType

if TYPE_CHECKING:
    from engine.programs.plpgsql.frame import Frame


async def run_assign_part(frame: Frame, statement: tree.Assign) -> None:
    """Assign to a part of a variable. Raises SqlError as ``assign_part``, and what the value raises."""
    piece, target = statement.value, statement.target
    if frame.body.is_new(piece):
        with told(piece):
            try:
                _part(frame, target, *_place(frame, target))
            except SqlError as error:
                if error.span is None or error.query is not None:
                    raise
                raise placed_in_target(error, piece) from None
    ready = frame.body.ready(piece, frame.values)
    with ExitStack() as stack:
        if ready.function is None or _asks(target):  # the whole assignment is a query
            stack.enter_context(told(piece))
        if not ready.plain:
            await _check_subscripts(frame, target)
        try:
            value, type_ = await frame.value(piece)
        except Exception:
            if ready.plain and ready.failing is None:  # what fails while it is planned does so before
                await _check_subscripts(frame, target)
            raise
        if ready.constant:  # its conversion is as constant
            wanted = type_of(frame, target)
            value, type_ = await converted(frame, piece, ready, value, type_, wanted), wanted
        if len(target.steps) == 1 and isinstance(target.steps[0], str):
            stack.close()  # a field of a variable is not part of the query
        await assign_part(frame, target, value, type_, piece)


async def _check_subscripts(frame: Frame, target: tree.Target) -> None:
    """Raise SqlError 22004 for a subscript that is NULL: PostgreSQL computes them before the value."""
    part = _part(frame, target, *_place(frame, target))
    if part is None or part.subscripts is None:
        return
    found = await frame.apply(part.subscripts.function, _given(frame, part, None))
    for kind, subscript in zip(part.subscripts.kinds, found, strict=True):
        if subscript is None:
            raise SqlError("22004", f"{kind} subscript in assignment must not be null")


async def assign_part(
    frame: Frame, target: tree.Target, value: Any, type_: SqlType, piece: tree.Piece | None = None
) -> None:
    """Give a part of a variable a value of a type. Raises SqlError 42703, 55000, and what the part's
    conversion and subscripts raise.

    ``piece``: what CONTEXT names where a constant subscript fails.
    """
    whole, source, skip = _place(frame, target)
    part = _part(frame, target, whole, source, skip)
    if part is None:
        made = value if type_ == whole else await frame.cast(value, type_, whole)
    else:
        if part.failing is not None and piece is not None:
            with told(piece):
                part.failing((), Env((), frame.session, shared=Shared()))
        value = await frame.cast(value, type_, part.type)
        made = await _replaced(frame, target, part, value)
    _keep(frame, target, source, made)


def type_of(frame: Frame, target: tree.Target) -> SqlType:
    """Return the type of a part of a variable. Raises SqlError as ``assign_part``."""
    whole, source, skip = _place(frame, target)
    part = _part(frame, target, whole, source, skip)
    return whole if part is None else part.type


def _place(frame: Frame, target: tree.Target) -> tuple[SqlType, Source, int]:
    """Return what a target is a part of: its type, where it is, and how many of the steps have led there.

    Raises SqlError 42703 for a field that a row does not have, 55000 for a record without a row.
    """
    variable = frame.body.routine.variables[target.variable]
    number, name = variable.number, target.steps[0]
    missing = SqlError("42703", f'record "{variable.name}" has no field "{name}"')
    if number in frame.body.opened:
        form = frame.body.row_form
        if form is None:
            raise AssertionError("the routine has no form for rows")
        at = form.names.get(name) if isinstance(name, str) else None
        if at is None:
            raise missing
        return form.columns[at].declared, Source(number, at), 1
    if variable.kind != "record":
        row = result_row(frame.session.catalog, variable.type.oid) if variable.kind == "row" else None
        if row is not None and all(c.name != name for c in row.live):
            raise missing
        return variable.type, Source(number), 0
    held = frame.values[number]
    if not isinstance(held, RecordValue):
        raise unassigned(variable)
    if not isinstance(name, str) or name not in held.names:
        raise missing
    at = held.names.index(name)
    return SqlType(held.types[at], held.typmods[at] if held.typmods else -1), Source(number, at), 1


def _part(frame: Frame, target: tree.Target, whole: SqlType, source: Source, skip: int) -> ReadyPart | None:
    """Return how the part behind the first ``skip`` steps is replaced, None where they are all."""
    if len(target.steps) == skip:
        return None
    return frame.body.part(target, whole, source, frame.values, skip)


def _given(frame: Frame, part: ReadyPart, value: Any) -> tuple[Any, ...]:
    """Return the parameters of how a part is replaced by a value."""
    values = frame.values
    return tuple([value if s == VALUE else value_at(values[s.variable], s.field) for s in part.sources])


async def _replaced(frame: Frame, target: tree.Target, part: ReadyPart, value: Any) -> Any:
    """Return the whole with a value in the part's place."""
    if part.function is not None:
        return await frame.apply(part.function, _given(frame, part, value))

    def again() -> None:
        nonlocal part
        whole, source, skip = _place(frame, target)
        part = frame.body.part(target, whole, source, frame.values, skip)

    def planned() -> tuple[Any, tuple[Any, ...]]:
        if part.plan is None:
            raise AssertionError("a part is run before it has a plan")
        return part.plan, _given(frame, part, value)

    outcome = await frame.run_plan(planned, again)
    if not isinstance(outcome, Rows):
        raise AssertionError(f"a statement that returns rows ended as {type(outcome).__name__}")
    if hasattr(outcome.result, "batches"):
        raise AssertionError("rows come in batches where all of them were asked for")
    frame.row_count = 1
    return next(iter(outcome.result.rows))[0]


def _keep(frame: Frame, target: tree.Target, source: Source, made: Any) -> None:
    """Have a variable hold the value that an assignment to a part of it has made."""
    number, at = source.variable, source.field
    old = frame.values[number]
    if at is None:
        frame.values[number] = made
    elif number in frame.body.opened:
        form = frame.body.row_form
        if form is None:
            raise AssertionError("the routine has no form for rows")
        row = old or OpenRow(form, (None,) * len(form.columns))  # the others of what is NULL are NULL then
        frame.values[number] = row.with_cell(at, made)
    else:
        frame.values[number] = RecordValue(
            (*old[:at], made, *old[at + 1 :]), old.types, old.names, old.typmods
        )


def _asks(target: tree.Target) -> bool:
    """Tell whether a subscript holds a sub-select."""
    steps = [step for step in target.steps if isinstance(step, ast.SubscriptStep)]
    return any(isinstance(node, ast.SubLink) for step in steps for node in walk(step))
