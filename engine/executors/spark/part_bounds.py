"""Parts that a query cannot find anything in, by the smallest and largest value of a column: Spark never hears of them.

    WHERE day >= '2026-11-01' AND id < 500      part 1  day 2026-01-01 .. 2026-10-31      left out
                                                part 2  day 2026-10-30 .. 2026-11-09      read

Spark leaves out row groups by the same figures, but only once a task has opened the file. Looked at are
comparisons of a whole number or a date with a constant or parameter, joined by AND. A table that a query
reads several times loses the parts that no reading of it needs. The figures are those of the files' footers,
read once per process.
"""

from __future__ import annotations

import datetime
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from engine.executors.filters import table_reads
from planner.facts import DATE, INT2, INT4, INT8
from planner.indexing.comparisons import Operator, key_operators
from planner.query import Const, Expr, OpExpr, Param, QueryExpr, Var

KEPT_BOUNDS: Final = 10_000
"""(file, column) pairs whose bounds are remembered."""
_FAMILY: Final = {INT2: "int", INT4: "int", INT8: "int", DATE: "date"}
_FLIPPED: Final[dict[Operator, Operator]] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH: Final = datetime.date(1970, 1, 1)
Range: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column operator value``; ``value`` is a constant, or a parameter by its number."""

    attnum: int
    operator: Operator
    value: int | None
    param: int = 0

    def excludes(self, low: int, high: int, params: Sequence[Any]) -> bool:
        """Tell whether no value from ``low`` to ``high`` satisfies it. NULL satisfies no comparison, nor does
        any with NULL.
        """
        value = params[self.param - 1] if self.param else self.value
        if value is None:
            return True
        match self.operator:
            case "=":
                return not low <= value <= high
            case "<":
                return bool(low >= value)
            case "<=":
                return bool(low > value)
            case ">":
                return bool(high <= value)
            case _:
                return bool(high < value)


Conditions: TypeAlias = tuple[tuple[Comparison, ...], ...]
"""One conjunction for each time that a table is read; () where some reading needs every part."""


def conditions_of(query: QueryExpr) -> dict[int, Conditions]:
    """Return the conditions on each table by its oid."""
    found: dict[int, list[tuple[Comparison, ...]]] = {}
    for oid, index, conjuncts in table_reads(query):
        tests = tuple(test for c in conjuncts if (test := _comparison(c, index)) is not None)
        found.setdefault(oid, []).append(tests)
    return {oid: tuple(reads) if all(reads) else () for oid, reads in found.items()}


def _comparison(expr: Expr, index: int) -> Comparison | None:
    if not isinstance(expr, OpExpr) or len(expr.args) != 2:
        return None
    operator = key_operators().get(expr.proc)
    if operator is None:
        return None
    left, right = expr.args
    if not isinstance(left, Var):
        left, right, operator = right, left, _FLIPPED[operator]
    if not isinstance(left, Var) or left.range != index or left.level or left.attnum <= 0:
        return None
    family = _FAMILY.get(left.type.oid)
    if family is None or _FAMILY.get(right.type.oid) != family:
        return None
    if isinstance(right, Const) and (right.value is None or isinstance(right.value, int)):
        return Comparison(left.attnum, operator, right.value)
    return Comparison(left.attnum, operator, None, right.number) if isinstance(right, Param) else None


class Bounds:
    """The bounds of columns in files, remembered. Used by several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], Range | None] = OrderedDict()
        self._lock = threading.Lock()

    def needed(self, path: str, conditions: Conditions, params: Sequence[Any]) -> bool:
        """Tell whether a file of the server may have rows for one of the readings. Blocks: it may read a footer."""
        return not conditions or any(self._may_match(path, tests, params) for tests in conditions)

    def _may_match(self, path: str, tests: Sequence[Comparison], params: Sequence[Any]) -> bool:
        for test in tests:
            bounds = self.range_of(path, test.attnum)
            if bounds is not None and test.excludes(*bounds, params):
                return False
        return True

    def range_of(self, path: str, attnum: int) -> Range | None:
        """Return the least and greatest value of a column in a file of the server; None where not known.
        Blocks as ``needed``.
        """
        key = (path, attnum)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        try:
            found = bounds_in(pq.read_metadata(path), f"c{attnum}")
        except (OSError, pa.ArrowException):
            return None  # whoever reads the rows says what is wrong with the file
        with self._lock:
            self._known[key] = found
            while len(self._known) > KEPT_BOUNDS:
                self._known.popitem(last=False)
        return found


def bounds_in(metadata: Any, column: str) -> Range | None:
    """Return the least and greatest value of a column of whole numbers or dates (days); None where it is not known."""
    low: int | None = None
    high: int | None = None
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        at = next((i for i in range(group.num_columns) if group.column(i).path_in_schema == column), None)
        statistics = None if at is None else group.column(at).statistics
        if statistics is None:
            return None
        if not statistics.has_min_max:
            if statistics.has_null_count and statistics.null_count == group.num_rows:
                continue  # NULL throughout
            return None
        try:
            least, greatest = _number(statistics.min), _number(statistics.max)
        except (OverflowError, ValueError):  # a date that Python has not, such as infinity
            return None
        if least is None or greatest is None:
            return None
        low = least if low is None else min(low, least)
        high = greatest if high is None else max(high, greatest)
    return None if low is None or high is None else (low, high)


def _number(value: object) -> int | None:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return (value - _EPOCH).days
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def pruned(
    paths: Mapping[str, str], bounds: Bounds, conditions: Conditions, params: Sequence[Any]
) -> set[str]:
    """Return which files are not needed. ``paths``: what Spark calls a file -> where the server reads it."""
    if not conditions:
        return set()
    return {
        name
        for name, path in paths.items()
        if "://" not in path and not bounds.needed(path, conditions, params)
    }
