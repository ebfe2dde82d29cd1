"""WHERE, generated columns and CHECK of a load, over batches that were read by column.

    columns ──those that expressions name──> tuples ──compiled loops──> which rows stay ──take──> columns
                                                            └── a row breaks a CHECK, or an error: the careful path

The expressions are compiled by ``planner.evaluate``, as for single rows, and see the values that a stored row
has: what is decided is what the row executor decides. Only what needs no session is done here
(``engine.changes.bulk.portable``), so that it may run in any thread; the careful path
(``engine.changes.writes.copy_rows``) names the first bad row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.changes.bulk.portable import obstacle
from pgwire.codecs import domain
from planner.base.errors import SqlError
from planner.evaluate import Env, Layout, Shared, compile_filter, compile_map
from planner.query import BooleanTest, Expr, Var
from planner.query.walk import walk
from planner.types import SqlType
from txn.base.types import ShardColumn
from txn.values.columns import column_arrays, column_fields, to_python

if TYPE_CHECKING:
    from engine.changes.writes.copy_rows import LoadSpec

_BOOL: Final = SqlType(domain.BOOL)


class Conditions:
    """The expressions of one load. ``apply`` may run in several threads at once."""

    def __init__(self, spec: LoadSpec, env: Env, columns: Sequence[ShardColumn]) -> None:
        """Compile them; ``serves`` has to hold. ``columns``: the live ones of the table."""
        self._params = env.params
        self._columns = {column.attnum: column for column in columns}
        self._where: tuple[tuple[int, ...], Any] | None = None
        if spec.where is not None:
            used, layout = self._layout([spec.where])
            self._where = used, compile_filter([spec.where], layout)
        self._generated = [attnum for attnum, _ in spec.generated]
        made = [expr for _, expr in spec.generated]
        self._made_from, layout = self._layout(made)
        self._make = compile_map(made, layout) if made else None
        checks = [expr for _, expr in spec.checks]
        self._checked, layout = self._layout(checks)
        self._broken = [
            compile_filter([BooleanTest(type=_BOOL, arg=expr, test="false")], layout) for expr in checks
        ]

    @staticmethod
    def serves(spec: LoadSpec) -> bool:
        """Return whether the expressions of a load need no more than the columns of each row."""
        live = {column.attnum for column in spec.relation.live}
        return obstacle(spec) is None and all(
            node.range == 0 and node.attnum in live for node in _variables(_expressions(spec))
        )

    def _layout(self, exprs: Sequence[Expr]) -> tuple[tuple[int, ...], Layout]:
        used = tuple(sorted({node.attnum for node in _variables(exprs)}))
        return used, Layout(columns={(0, attnum): at for at, attnum in enumerate(used)})

    def apply(self, rows: int, read: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Return how many rows stay, and their columns with the generated ones.

        None: the careful path has an error to report, or to look for.
        """
        env = Env(self._params, shared=Shared())
        try:
            if self._where is not None:
                used, stay = self._where
                places = [row[-1] for row in stay(self._tuples(used, rows, read), env)]
                if len(places) < rows:
                    rows, taken = len(places), pa.array(places, pa.int32())
                    read = {name: array.take(taken) for name, array in read.items()}
            if self._make is not None:
                made = self._make(self._tuples(self._made_from, rows, read), env)
                read = read | self._arrays(made)
            if self._broken:
                tuples = self._tuples(self._checked, rows, read)
                if any(find(tuples, env) for find in self._broken):
                    return None
        except (SqlError, OverflowError, pa.ArrowInvalid):
            return None
        return rows, read

    def _tuples(self, attnums: Iterable[int], rows: int, read: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return the values of some columns by row, and the row's place behind them."""
        columns: list[Iterable[Any]] = []
        for attnum in attnums:
            array = read.get(f"c{attnum}")
            column = self._columns[attnum]
            columns.append(
                [None] * rows if array is None else to_python(array, column.type, read.get(f"c{attnum}_dims"))
            )
        return list(zip(*columns, range(rows), strict=True))

    def _arrays(self, made: Sequence[Sequence[Any]]) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        for at, attnum in enumerate(self._generated):
            column = self._columns[attnum]
            values = [row[at] for row in made]
            for field, array in zip(column_fields(column), column_arrays(values, column), strict=True):
                arrays[field.name] = array
        return arrays


def _expressions(spec: LoadSpec) -> Iterator[Expr]:
    for _, expr in (*spec.generated, *spec.checks):
        yield expr
    if spec.where is not None:
        yield spec.where


def _variables(exprs: Iterable[Expr]) -> Iterator[Var]:
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, Var):
                yield node
