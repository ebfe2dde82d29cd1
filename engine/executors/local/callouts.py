"""Python called from the middle of a DuckDB query: what ``planner.lower.query.callouts`` left to it.

    worker thread of DuckDB ── a vector of 2048 values as Arrow ──> values ── compiled expression ──> Arrow ──> back

Each running query has functions of its own, under names that no other query has; they go when it ends. An
error keeps all its fields: the text that travels through DuckDB carries its number.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, Final

import duckdb
import pyarrow as pa
from duckdb.func import ARROW, SPECIAL

from engine.catalog.physical import physical_type
from engine.executors.arrow import result_physical_type
from pgwire.bounded import BoundedArray
from pgwire.codecs.errors import DataError
from pgwire.give_way import polled
from planner.base.errors import SqlError, not_supported
from planner.evaluate import Env
from planner.lower.kit.dialect import ERROR_END, ERROR_MARK
from planner.lower.query.callouts import PREFIX
from planner.lower.query.scope import Callout
from planner.types import SqlType
from txn.base.types import PhysicalType
from txn.values.columns import one_chunk, to_arrow, to_python

REMEMBERED: Final = 20_000
"""So many arguments and their values are kept per function, where arguments repeat."""
TRIAL: Final = 8_192
"""After so many values it is seen whether they do."""
SET_ITEMS: Final = 100_000
"""The most rows of one call of a set-returning function."""
_NUMBER = re.compile(f"{ERROR_END}py(\\d+)")
_queries = itertools.count(1)


class Callouts:
    """The functions of one running query."""

    def __init__(self, callouts: Sequence[Callout], env: Env, ended: Callable[[], bool]) -> None:
        """``env``: what they are computed in. ``ended``: tells whether the query is to go no further; asked
        in any thread.
        """
        self._ended = ended
        self._number = next(_queries)
        self._callouts = callouts
        self._env = env
        self._errors: dict[int, Exception] = {}
        self._error_numbers = itertools.count()  # several threads may fail at once
        self._made: list[str] = []

    @property
    def names(self) -> Mapping[str, str]:
        """From names in a plan's text to those of this query."""
        return {c.name: self._name(c) for c in self._callouts}

    def _name(self, callout: Callout) -> str:
        return f"{PREFIX}{self._number}_{callout.name.removeprefix(PREFIX)}"

    def register(self, cursor: Any) -> None:
        """Make the functions; in any thread, once."""
        for callout in self._callouts:
            cursor.create_function(
                self._name(callout),
                self._guarded(_vectors(callout, self._env), len(callout.args)),
                [duckdb.sqltype(engine_type) for _, engine_type in callout.args],
                duckdb.sqltype(callout.result[1]),
                type=ARROW,
                null_handling=SPECIAL,
            )
            self._made.append(self._name(callout))

    def remove(self, cursor: Any) -> None:
        """Take them away again; the cursor is the one that made them."""
        while self._made:
            cursor.remove_function(self._made.pop())

    def _guarded(self, compute: Callable[..., Any], arguments: int) -> Callable[..., Any]:
        """Return a function that notes its errors, and shows DuckDB as many parameters as it is given types."""

        def guarded(*columns: Any) -> Any:
            try:
                with polled(self._check):
                    return compute(*columns)
            except DataError as error:
                number = next(self._error_numbers)
                self._errors[number] = error
                text = f"{ERROR_MARK}{error.sqlstate}:{error.message}{ERROR_END}py{number}"
                raise duckdb.InvalidInputException(text) from error

        shown = [Parameter(f"a{n}", Parameter.POSITIONAL_ONLY) for n in range(arguments)]
        guarded.__signature__ = Signature(shown)  # type: ignore[attr-defined]
        return guarded

    def _check(self) -> None:
        if self._ended():
            raise SqlError("57014", "canceling statement due to user request")

    def error_of(self, error: Exception) -> Exception | None:
        """Return the error of a function that DuckDB's error stands for, if it is one."""
        found = _NUMBER.search(str(error))
        return None if found is None else self._errors[int(found.group(1))]


def _vectors(callout: Callout, env: Env) -> Callable[..., Any]:
    """Return the function from Arrow columns to an Arrow column."""
    types = [type_ for type_, _ in callout.args]
    function = callout.function
    columns_of_set = [_held(type_) for type_ in callout.rows]
    if columns_of_set:
        return lambda *columns: _sets([v for (v,) in function(_rows(columns, types), env)], columns_of_set)
    wanted = _held(callout.result[0])
    known: dict[tuple[Any, ...], Any] | None = {} if callout.repeats else None
    seen = 0

    def compute(*columns: Any) -> Any:
        nonlocal known, seen
        rows = _rows(columns, types)
        remembered = known
        if remembered is None:
            return _column([value for (value,) in function(rows, env)], wanted)
        seen += len(rows)
        new = [row for row in dict.fromkeys(rows) if row not in remembered]
        found = dict(zip(new, (value for (value,) in function(new, env)), strict=True))
        if len(remembered) + len(found) <= REMEMBERED:
            remembered.update(found)
        values = [found[row] if row in found else remembered[row] for row in rows]
        if seen > TRIAL and len(remembered) * 2 > seen:
            known = None  # they hardly repeat
        return _column(values, wanted)

    return compute


def _held(type_: SqlType) -> PhysicalType:
    """Return the form in which the query has values of a type: in lists numerics are of any scale, whatever
    was declared.
    """
    held = physical_type(type_)
    return physical_type(SqlType(type_.oid, -1)) if held.kind == "list" else held


def _rows(columns: Sequence[Any], types: Sequence[SqlType]) -> list[tuple[Any, ...]]:
    values = []
    for column, type_ in zip(columns, types, strict=True):
        array = one_chunk(column)
        values.append(to_python(array, result_physical_type(array.type, type_)))
    return list(zip(*values, strict=True))


def _sets(values: Sequence[Any], types: Sequence[PhysicalType]) -> Any:
    """Return sets, each the rows of one call, as lists of items or of structs.

    Raises:
        SqlError: 0A000 for a set that is too large to be held: the row executor makes it as it is read.
    """
    items: list[Any] = []
    offsets = [0]
    for value in values:
        if value is not None:
            items.extend(itertools.islice(value, SET_ITEMS + 1))
        if len(items) - offsets[-1] > SET_ITEMS:
            raise not_supported(f"a set of more than {SET_ITEMS} rows in this executor")
        offsets.append(len(items))
    if len(types) == 1:
        made = _column(items, types[0])
    else:
        rows = [(None,) * len(types) if item is None else item for item in items]
        parts = list(zip(*rows, strict=True)) or [()] * len(types)
        made = pa.StructArray.from_arrays(
            [_column(part, type_) for part, type_ in zip(parts, types, strict=True)],
            names=[f"f{i}" for i in range(1, len(types) + 1)],
        )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), made)


def _column(values: Sequence[Any], wanted: PhysicalType) -> Any:
    """Return values as Arrow.

    Raises:
        SqlError: 0A000 for what no column of the engine holds: then the row executor has to run the query.
    """
    if wanted.kind == "list" and any(
        value and type(value[0]) is tuple and not _is_tuple(wanted) for value in values
    ):
        raise not_supported("an array of several dimensions in this executor")
    if wanted.kind == "list" and any(type(value) is BoundedArray for value in values):
        raise not_supported("an array with other lower bounds than 1 in this executor")
    try:
        return to_arrow(values, wanted)
    except (OverflowError, ValueError) as error:
        raise not_supported("a value beyond the types of this executor") from error


def _is_tuple(wanted: PhysicalType) -> bool:
    return wanted.element is not None and wanted.element.kind in ("interval", "timetz")
