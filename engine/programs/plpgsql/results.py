"""What a PL/pgSQL function returns: RETURN, RETURN NEXT, RETURN QUERY, and the variables of OUT parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.programs.plpgsql.frame import Frame
from engine.programs.plpgsql.open_row import OpenRow
from pgwire.codecs.system import RecordValue
from planner.base.errors import SqlError
from planner.base.identifiers import split_identifier
from planner.bind.expression.calls import result_row
from planner.catalog import RowType
from planner.facts import VOID
from planner.plpgsql import tree
from planner.plpgsql.variables import unassigned
from planner.query import OutputColumn
from planner.types import SqlType
from planner.types.domains import base_oid, base_type, is_domain
from planner.types.facts import format_type
from txn.base.types import Row

_NO_ROW: Final = "cannot return non-composite value from function returning composite type"


async def run_return(frame: Frame, statement: tree.Return) -> None:
    """RETURN: the frame has the value. Raises SqlError 42804 for what is no row where one is returned."""
    if statement.value is None:
        return
    held = frame.held(statement.value) if frame.body.row_form is not None else None
    if isinstance(held, OpenRow):  # NEW, or OLD: of the table's columns
        frame.result = held.cells
        return
    value, type_ = await frame.value(statement.value)
    if frame.scalar is None or _row_under(frame, frame.scalar) is not None:
        value = _record(frame, value, type_)
    frame.returned = value, type_


async def convert_returned(frame: Frame) -> None:
    """Make what RETURN gave a value of the function's type, behind its blocks: none of their handlers meets
    an error in that.

    Raises SqlError 42804 for a row of other columns, and what the conversion raises.
    """
    if frame.returned is None or frame.ignored:
        return
    value, type_ = frame.returned
    frame.line, frame.doing = 0, frame.leaving
    wanted = frame.scalar
    if wanted is None:
        if value is not None:
            _check(frame, _types(value), frame.mismatch)
            _note(frame, value)
        frame.result = None if value is None else tuple(value)
        return
    row = _row_under(frame, wanted)
    if row is None:
        frame.result = (await _as(frame, value, type_, wanted),)
        return
    made = None if value is None else await _as_row(frame, value, row, wanted, frame.mismatch)
    frame.result = (await frame.cast(made, base_type(wanted), wanted),)


async def _as(frame: Frame, value: Any, type_: SqlType, wanted: SqlType) -> Any:
    return value if type_ == wanted else await frame.cast(value, type_, wanted)


def _row_under(frame: Frame, wanted: SqlType) -> RowType | None:
    """Return the composite type that a result's type is a domain over, None where it is over none."""
    oid = base_oid(wanted.oid)
    return None if oid == wanted.oid else result_row(frame.session.catalog, oid)


async def _as_row(frame: Frame, record: RecordValue, row: RowType, wanted: SqlType, message: str) -> bytes:
    """Return a row as one of the composite type under ``wanted``. Raises SqlError 42804 with ``message``."""
    _compare([column.declared for column in row.live], _types(record), message)
    return await frame.packed(record, record.types, base_type(wanted))


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


def _types(record: RecordValue) -> list[SqlType]:
    typmods = record.typmods or (-1,) * len(record.types)
    return [SqlType(oid, typmod) for oid, typmod in zip(record.types, typmods, strict=True)]


def _check(frame: Frame, types: Sequence[SqlType], message: str, *, domains: bool = False) -> None:
    """Raise SqlError 42804 unless a row has the columns that the function returns, where anything tells them."""
    if frame.columns:
        _compare(_wanted(frame), types, message, domains=domains)


def _wanted(frame: Frame) -> list[SqlType]:
    """Return the types of the columns that the function returns, domains told."""
    function = frame.body.function
    if function.outputs:
        columns = zip(frame.columns, function.outputs, strict=False)
        return [SqlType(oid) if is_domain(oid) else column.type for column, (_, oid) in columns]
    if frame.scalar is not None and len(frame.columns) == 1:
        return [frame.scalar]
    row = result_row(frame.session.catalog, function.result)
    return [c.type for c in frame.columns] if row is None else [c.declared for c in row.live]


def _compare(
    wanted: Sequence[SqlType], types: Sequence[SqlType], message: str, *, domains: bool = False
) -> None:
    """Raise SqlError 42804 with ``message`` unless columns have the types that are wanted.

    ``domains``: ``types`` tells of them; fields of records are known by what domains are over.
    """
    for number, (given, expected) in enumerate(zip(types, wanted, strict=False), 1):
        same = given.oid == expected.oid if domains else base_oid(given.oid) == base_oid(expected.oid)
        if not same or (given.typmod != expected.typmod and expected.typmod >= 0):
            names = [format_type(type_.oid, type_.typmod) for type_ in (given, expected)]
            detail = f"Returned type {names[0]} does not match expected type {names[1]} in column {number}."
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
    row = None if frame.scalar is None else _row_under(frame, frame.scalar)
    if frame.scalar is not None and row is None:
        frame.rows.append((await _as(frame, value, type_, frame.scalar),))
        return
    record = _record(frame, value, type_)
    found = _whole_variable(frame, statement.value)
    message = frame.mismatch if found is None else "wrong record type supplied in RETURN NEXT"
    if record is None and found is not None:
        variable = frame.body.routine.variables[found]
        if variable.kind == "record":
            raise unassigned(variable)
        row_type = result_row(frame.session.catalog, base_oid(variable.type.oid))
        if variable.kind == "row" and row_type is not None:  # one of NULLs
            live = row_type.live
            record = RecordValue((None,) * len(live), tuple([column.declared.oid for column in live]))
    if row is not None:
        # what the domain demands is not looked at where a set is returned, as in PostgreSQL
        if frame.scalar is None:
            raise AssertionError("a routine that returns single values has no type for them")
        if record is None:
            types = tuple([column.type.oid for column in row.live])
            record = RecordValue((None,) * len(types), types)
        frame.rows.append((await _as_row(frame, record, row, frame.scalar, message),))
        return
    if record is None:
        frame.rows.append((None,) * len(frame.columns))
        return
    _check(frame, _types(record), message)
    _note(frame, record)
    frame.rows.append(tuple(record))


def _whole_variable(frame: Frame, piece: tree.Piece) -> int | None:
    """Return the variable that a piece names, with its block before it or not; None where it is anything else."""
    try:
        names = tuple(split_identifier(piece.text))
    except SqlError:
        return None
    found = piece.names.find(names, frame.body.routine.variables)
    return found[0] if found is not None and found[1] == len(names) else None


def check_query(frame: Frame, columns: Sequence[OutputColumn]) -> None:
    """Raise SqlError 42804 where the query of RETURN QUERY has other columns than the function returns,
    before it runs; they say of what domains they are.
    """
    message = "structure of query does not match function result type"
    types = [column.type for column in columns]
    row = None if frame.scalar is None else _row_under(frame, frame.scalar)
    if row is not None:
        _compare([column.declared for column in row.live], types, message, domains=True)
    else:
        _check(frame, types, message, domains=True)


async def add_query(
    frame: Frame, columns: Sequence[OutputColumn], rows: Sequence[Row], *, domains: bool = False
) -> None:
    """RETURN QUERY: more rows. Raises SqlError 42804 where they have other columns; ``domains``: those say of
    what domains they are.
    """
    message = "structure of query does not match function result type"
    types = [c.type for c in columns]
    row = None if frame.scalar is None else _row_under(frame, frame.scalar)
    if row is not None:
        if frame.scalar is None:
            raise AssertionError("a routine that returns single values has no type for them")
        _compare([column.declared for column in row.live], types, message, domains=domains)
        names, oids = tuple([c.name for c in columns]), tuple([t.oid for t in types])
        for values in rows:
            record = RecordValue(values, oids, names)
            frame.rows.append((await _as_row(frame, record, row, frame.scalar, message),))
        return
    _check(frame, types, message, domains=domains)
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
