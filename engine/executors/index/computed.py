"""Rows of FROM that are made, not stored: functions, sub-selects, WITH items.

function      arguments ──> values, or records cut into columns; several in step (ROWS FROM)
sub-select    a plan of its own, run for each row joined so far if LATERAL
WITH item     rows made while they are first read, and kept for the next reader
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from engine.executors.index.nodes import Node, lockstep, release_sets
from engine.executors.index.sources import Columns, Source, whole_row
from engine.executors.index.state import BATCH, CteState, Item, Pipe, Rows, evaluate
from pgwire.codecs.system import RecordValue
from pgwire.codecs.users.composite import record_of
from planner.base.errors import SqlError
from planner.evaluate import Env, Layout, compile_row
from planner.facts import RECORD
from planner.functions.json.records import as_reader, is_reader, reader
from planner.query import (
    WHOLE_ROW,
    CteRange,
    FuncExpr,
    FunctionRange,
    Range,
    SqlCall,
    StepRange,
    SubLink,
    Var,
)
from planner.query.walk import walk
from planner.statements.classify import is_volatile
from planner.types import SqlType
from planner.types.domains import plain_type
from planner.types.facts import format_type
from txn.base.types import Row


def fields(value: Row | None, expected: tuple[int, ...]) -> Row:
    """Return a record's fields, NULLs for no record. Raises 42804 if they are not of the ``expected`` types."""
    if value is None:
        return (None,) * len(expected)
    if not isinstance(value, RecordValue) or value.types == expected:
        return value
    if (
        tuple(plain_type(SqlType(t)).oid for t in value.types) == expected
    ):  # executors see what domains are over
        return value
    if len(value) != len(expected):
        found = f"{len(value)} attribute" + ("s" if len(value) != 1 else "")
        detail = f"Returned row contains {found}, but query expects {len(expected)}."
    else:
        at = next(i for i, (a, b) in enumerate(zip(value.types, expected, strict=True)) if a != b)
        detail = (
            f"Returned type {format_type(value.types[at])} at ordinal position {at + 1},"
            f" but query expects {format_type(expected[at])}."
        )
    raise SqlError("42804", "function return row and query-specified return row do not match", detail=detail)


class ComputedSource(Source):
    """A FROM entry whose rows are made, not stored; ``whole`` adds the whole-row value where it is asked for."""

    def __init__(self, item: Range, index: int, needed: Sequence[int]) -> None:
        columns: Columns = {(index, c.attnum): i for i, c in enumerate(item.columns)}
        self.whole = whole_row(item) if WHOLE_ROW in needed else None
        width = len(item.columns)
        if self.whole is not None:
            columns[(index, WHOLE_ROW)] = width
            width += 1
        super().__init__(columns, width)


class FunctionSource(ComputedSource):
    """Functions in FROM; arguments may use the row joined so far."""

    def __init__(self, item: FunctionRange, index: int, needed: Sequence[int], outer: Layout) -> None:
        super().__init__(item, index, needed)
        self.item = item
        functions = tuple(map(as_reader, item.functions))
        self.kept = [
            is_volatile(f) and not any(isinstance(x, Var | SubLink) for x in walk(f)) for f in functions
        ]
        self.functions = compile_row(
            [f for f, kept in zip(functions, self.kept, strict=True) if not kept], outer
        )
        self.kept_functions = compile_row(
            [f for f, kept in zip(functions, self.kept, strict=True) if kept], outer
        )
        self.sets = [isinstance(f, FuncExpr) and f.returns_set for f in functions]
        ends = list(itertools.accumulate(item.widths))
        self.types = [
            tuple(c.type.oid for c in item.columns[end - width : end])
            for end, width in zip(ends, item.widths, strict=True)
        ]
        self.records = [
            f.type.oid == RECORD
            and (len(types) > 1 or not isinstance(f, FuncExpr) or isinstance(f, SqlCall) or is_reader(f.proc))
            for f, types in zip(functions, self.types, strict=True)
        ]
        defined = item.defined or ((),) * len(functions)
        self.objects: list[tuple[list[str], list[SqlType]] | None] = []
        for f, columns in zip(functions, defined, strict=True):
            asked = [name for name, _ in columns], [type_ for _, type_ in columns]
            self.objects.append(asked if isinstance(f, FuncExpr) and is_reader(f.proc) else None)
        self.slots = item.slots or (None,) * len(functions)
        self.dependent = bool(outer.columns)

    def _read_objects(self, sets: list[Any], e: Env) -> list[Any]:
        """Return the values of functions, those that are JSON objects as rows of the columns asked for."""
        if e.session is None:
            raise AssertionError("functions are read without a session")
        read: list[Any] = []
        for found, asked in zip(sets, self.objects, strict=True):
            if asked is not None:
                row_of = reader(*asked, e.session)
                found = [None if text is None else row_of(text) for text in found]
            read.append(found)
        return read

    def _with_kept(self, values: Iterator[Any], outer: Any, e: Env) -> Generator[Item, None, list[Any]]:
        """Return the values of all functions; those of volatile ones that depend on no row are what they were
        at first.
        """
        private = e.shared.private
        if self not in private:
            function = self.kept_functions
            found = (yield from evaluate(function, outer, e)) if function.may_suspend else function(outer, e)
            own = [is_set for is_set, kept in zip(self.sets, self.kept, strict=True) if kept]
            private[self] = [
                list(v) if is_set and v is not None else v for v, is_set in zip(found, own, strict=True)
            ]
        kept = iter(private[self])
        return [next(kept if is_kept else values) for is_kept in self.kept]

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Call and expand."""
        function = self.functions
        values = (yield from evaluate(function, outer, e)) if function.may_suspend else function(outer, e)
        if any(self.kept):
            values = yield from self._with_kept(iter(values), outer, e)
        sets = [v if is_set else (v,) for v, is_set in zip(values, self.sets, strict=True)]
        if any(asked is not None for asked in self.objects):
            sets = self._read_objects([() if s is None else s for s in sets], e)
        widths = self.item.widths
        ordinality = self.item.ordinality
        plain = len(widths) == 1 and widths[0] == 1 and not self.records[0] and self.slots[0] is None
        out: Rows = []
        try:
            for number, parts in enumerate(lockstep(sets), 1):
                if plain:
                    row = parts
                else:
                    flat_row: list[Any] = []
                    for value, types, is_record, slots in zip(
                        parts, self.types, self.records, self.slots, strict=True
                    ):
                        if slots is not None:
                            flat_row.extend(
                                (None,) * len(slots) if value is None else record_of(value, slots, types, ())
                            )
                        elif is_record or len(types) > 1:
                            flat_row.extend(fields(value, types))
                        else:
                            flat_row.append(value)
                    row = tuple(flat_row)
                if ordinality:
                    row = (*row, number)
                if self.whole is not None:
                    row = (*row, self.whole(row))
                out.append(row)
                if len(out) >= BATCH:
                    yield out
                    out = []
            if out:
                yield out
        finally:
            release_sets(sets)


class SubquerySource(ComputedSource):
    """A sub-select in FROM; LATERAL ones are run for each row joined so far."""

    def __init__(
        self, item: Range, index: int, needed: Sequence[int], plan: Node, *, lateral: bool, keyed: bool
    ) -> None:
        super().__init__(item, index, needed)
        self.plan = plan
        self.item = item
        self.dependent = lateral
        self.keyed = keyed

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Run the sub-select."""
        pipe = self.plan.pipe(e.child(outer))
        return pipe if self.whole is None else _with_whole(pipe, self.whole)


def _with_whole(pipe: Pipe, whole: Callable[[Any], Any]) -> Pipe:
    try:
        for item in pipe:
            if item.__class__ is list:
                yield [(*r, whole(r)) for r in item]
            else:
                yield item
    finally:
        pipe.close()


class StepSource(ComputedSource):
    """The rows that another part of the statement has returned (``engine.changes.writes.with_changes``)."""

    def __init__(self, item: StepRange, index: int, needed: Sequence[int]) -> None:
        super().__init__(item, index, needed)
        self.item = item

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Give the rows."""
        found = e.shared.ctx.steps[self.item.step]
        for start in range(0, len(found), BATCH):
            batch = found[start : start + BATCH]
            yield list(batch) if self.whole is None else [(*r, self.whole(r)) for r in batch]


class CteSource(ComputedSource):
    """A reference to a WITH item."""

    def __init__(self, item: CteRange, index: int, needed: Sequence[int]) -> None:
        super().__init__(item, index, needed)
        self.item = item

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Give the rows, computing them at first use."""
        owner = e
        for _ in range(self.item.level):
            if owner.parent is None:
                raise LookupError(f"WITH item {self.item.name} has no owner")
            owner = owner.parent
        states = owner.ctes
        key = self.item.name + ("\0work" if self.item.recursive_ref else "")
        if states is None or key not in states:
            raise LookupError(f"WITH item {self.item.name} is not there")
        state: CteState = states[key]
        given = 0
        while True:
            while given < len(state.rows):
                batch = state.rows[given : given + BATCH]
                given += len(batch)
                yield batch if self.whole is None else [(*r, self.whole(r)) for r in batch]
            if state.done or state.plan is None:
                return
            if state.pipe is None:
                state.pipe = state.plan.pipe(owner.child(()))
            try:
                made = next(state.pipe)
            except StopIteration:
                state.done = True
                continue
            if made.__class__ is list:
                state.rows.extend(made)
                yield None
            else:
                yield made
