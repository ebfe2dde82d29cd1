"""What a PL/pgSQL function returns: RETURN, RETURN NEXT, RETURN QUERY, and the variables of OUT parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.plpgsql.frame import Frame
from engine.plpgsql.open_row import OpenRow
from planner.domains import base_oid
from planner.errors import SqlError
from planner.facts import VOID
from planner.plpgsql import tree
from planner.query import OutputColumn
from planner.typefacts import format_type
from planner.types import SqlType
from txn.types import Row

if TYPE_CHECKING:
    from pgwire.codecs.system import RecordValue

_NO_ROW: Final = "cannot return non-composite value from function returning composite type"


async def run_return(frame: Frame, statement: tree.Return) -> None:
    """RETURN: the frame has the value. Raises SqlError 42804 for a row of other columns."""
    if statement.value is None:
        return
    held = frame.held(statement.value) if frame.body.row_form is not None else None
    if isinstance(held, OpenRow):  # NEW, or OLD: of the table's columns
        frame.result = held.cells
        return
    value, type_ = await frame.value(statement.value)
    wanted = frame.scalar
    if wanted is not None:
        frame.line, frame.doing = 0, frame.leaving
        frame.result = (await _as(frame, value, type_, wanted),)
        return
    record = _record(frame, value, type_)
    frame.line, frame.doing = 0, frame.leaving
    if record is not None:
        _check(frame, record.types, frame.mismatch)
        _note(frame, record)
        frame.result = tuple(record)
    else:
        frame.result = None


async def _as(frame: Frame, value: Any, type_: SqlType, wanted: SqlType) -> Any:
    return value if type_ == wanted else await frame.cast(value, type_, wanted)


def _record(frame: Frame, value: Any, type_: SqlType) -> RecordValue | None:
    if value is None:
        return None
    try:
        return frame.record(value, type_)
    except SqlError:
        raise SqlError("42804", _NO_ROW) from None


def _note(frame: Frame, record: RecordValue) -> None:
    """Note the columns of a row where nothing else tells them."""
    if not frame.columns:
        names = record.names or [f"f{i}" for i in range(1, len(record) + 1)]
        frame.columns = tuple(
            OutputColumn(name=n, type=SqlType(t)) for n, t in zip(names, record.types, strict=True)
        )


def _check(frame: Frame, types: Sequence[int], message: str) -> None:
    """Raise SqlError 42804 unless a row has the columns that the function returns."""
    wanted = [column.type.oid for column in frame.columns]
    if not wanted:
        return
    for number, (given, expected) in enumerate(zip(types, wanted, strict=False), 1):
        if base_oid(given) != base_oid(expected):
            detail = f"Returned type {format_type(given)} does not match expected type {format_type(expected)} in column {number}."
            raise SqlError("42804", message, detail=detail)
    if len(types) != len(wanted):
        detail = (
            f"Number of returned columns ({len(types)}) does not match expected column count ({len(wanted)})."
        )
        raise SqlError("42804", message, detail=detail)


async def run_return_next(frame: Frame, statement: tree.ReturnNext) -> None:
    """RETURN NEXT: one more row. Raises SqlError 42804."""
    if statement.value is None:
        frame.rows.append(out_row(frame))
        return
    value, type_ = await frame.value(statement.value)
    if frame.scalar is not None:
        frame.rows.append((await _as(frame, value, type_, frame.scalar),))
        return
    record = _record(frame, value, type_)
    if record is None:
        frame.rows.append((None,) * len(frame.columns))
        return
    name = statement.value.text.strip().lower()
    is_variable = statement.value.names.find((name,), frame.body.routine.variables) is not None
    _check(
        frame, record.types, "wrong record type supplied in RETURN NEXT" if is_variable else frame.mismatch
    )
    _note(frame, record)
    frame.rows.append(tuple(record))


def add_query(frame: Frame, columns: Sequence[OutputColumn], rows: Sequence[Row]) -> None:
    """RETURN QUERY: more rows. Raises SqlError 42804 where they have other columns."""
    _check(frame, [c.type.oid for c in columns], "structure of query does not match function result type")
    if not frame.columns:
        frame.columns = tuple(columns)
    frame.rows.extend(rows)


def out_row(frame: Frame) -> Row:
    """Return what the variables of OUT parameters hold."""
    return tuple([frame.values[number] for number in frame.body.routine.outputs])


def finished(frame: Frame) -> tuple[Sequence[OutputColumn], Sequence[Row]]:
    """Return what a call returns once its body has ended: columns and rows, none for NULL in the place of a row."""
    function = frame.body.function
    if function.returns_set:
        return frame.columns, frame.rows
    if frame.body.routine.outputs:
        return frame.columns, [out_row(frame)]
    if function.result == VOID:
        return (OutputColumn(name=function.name, type=SqlType(VOID)),), [("",)]
    return frame.columns, [] if frame.result is None else [frame.result]
