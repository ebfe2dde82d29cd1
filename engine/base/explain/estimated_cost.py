"""What EXPLAIN says a query costs: a rough guess in PostgreSQL's units, from the sizes of tables alone.

    rows    tables: how many they have; joins: the largest side; WHERE: a fraction for each condition, as PostgreSQL guesses
            them without statistics; a unique key compared with values: one row
    width   bytes of a row of the result: fixed lengths of types, 32 where they vary
    cost    0.01 for each row read or returned

No route is chosen by it (``planner.rules.route`` goes by sizes): it is what other planners ask for, as
postgres_fdw with use_remote_estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from pgwire.give_way import give_way
from planner.catalog import RelationDef
from planner.facts import facts
from planner.query import (
    BoolExpr,
    Const,
    Expr,
    FunctionRange,
    Join,
    OpExpr,
    OutputColumn,
    Param,
    QueryExpr,
    Range,
    RelationRange,
    ScalarArrayOp,
    Select,
    SetOp,
    SubqueryRange,
    Values,
    Var,
)
from planner.query.walk import walk
from planner.types import SqlType

ROW_COST: Final = 0.01
VARYING_WIDTH: Final = 32  # PostgreSQL's guess for types without a length
_EQUAL, _RANGE, _OTHER = 0.005, 1 / 3, 0.25  # DEFAULT_EQ_SEL, DEFAULT_INEQ_SEL, and what is none of them
_SET_ROWS: Final = 1000  # of a function that returns a set
_GROUPS: Final = 200  # DEFAULT_NUM_DISTINCT

RelationOf = Callable[[int], RelationDef | None]
RowsOf = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows and bytes a row of a result; ``cost`` to read and return all of it."""

    rows: int
    width: int
    cost: float


def estimate(query: QueryExpr, relation_of: RelationOf, rows_of: RowsOf) -> Estimate:
    """Return the guess for a query. ``rows_of``: how many rows the table with an oid has."""
    made = Estimator(relation_of, rows_of)
    rows = max(1, round(made.query(query)))
    return Estimate(rows=rows, width=width_of(query.columns), cost=(made.read + rows) * ROW_COST)


def width_of(columns: tuple[OutputColumn, ...]) -> int:
    """Return the bytes of a row."""
    return width_of_types([column.type for column in columns])


def width_of_types(types: Iterable[SqlType]) -> int:
    """Return the bytes that values take together."""
    total = 0
    for type_ in types:
        fact = facts().types.get(type_.oid)
        total += fact.length if fact is not None and fact.length > 0 else VARYING_WIDTH
    return total


class Estimator:
    """Guesses rows of queries and of their parts."""

    def __init__(self, relation_of: RelationOf, rows_of: RowsOf) -> None:
        """Go by the sizes that ``rows_of`` tells."""
        self.relation_of = relation_of
        self.rows_of = rows_of
        self.read = 0.0  # rows that are read of tables

    def query(self, query: QueryExpr) -> float:
        """Return the rows of a query; what it reads is added to ``read``."""
        if isinstance(query, SetOp):
            left, right = self.query(query.left), self.query(query.right)
            rows = left + right if query.op == "union" else left
        elif isinstance(query, Values):
            rows = float(len(query.rows))
        else:
            rows = self._select(query)
        if isinstance(query.limit, Const) and isinstance(query.limit.value, int):
            rows = min(rows, float(query.limit.value))
        return rows

    def sizes(self, query: Select) -> list[float]:
        """Return the rows of each range that pass the conditions on it alone."""
        conditions = _conditions(query)
        return [self._range(number, item, conditions) for number, item in enumerate(query.ranges)]

    def read_of(self, item: RelationRange, rows: float) -> float:
        """Return how many rows are read of a table of which ``rows`` pass."""
        if item.virtual:
            return 0.0
        total = float(sum(map(self.rows_of, item.tables)))
        return rows if rows <= len(item.tables) else total

    def cost(self, read: float) -> float:
        """Return the cost of reading so many rows."""
        return read * ROW_COST

    def _select(self, query: Select) -> float:
        give_way()
        conditions = _conditions(query)
        sizes = self.sizes(query)
        joined = any(_ranges_of(condition) > 1 for condition in conditions)
        rows = max(sizes, default=1.0)
        if not joined:
            rows = 1.0
            for size in sizes:
                rows *= size
        if query.grouped:
            rows = min(rows, float(_GROUPS)) if query.group else 1.0
        elif query.distinct:
            rows = min(rows, float(_GROUPS))
        return rows

    def _range(self, number: int, item: Range, conditions: list[Expr]) -> float:
        own = [c for c in conditions if _ranges_of(c) == 1 and _reads(c, number)]
        if isinstance(item, RelationRange) and not item.virtual:
            total = rows = float(sum(map(self.rows_of, item.tables)))
            keys = {attnum for c in own for attnum in _compared(c, number)}
            relation = self.relation_of(item.oid)
            if relation is not None and any(i.unique and set(i.attnums) <= keys for i in relation.indexes):
                self.read += len(item.tables)
                return min(total, float(len(item.tables)))
            self.read += total
        elif isinstance(item, SubqueryRange):
            rows = self.query(item.query)
        elif isinstance(item, FunctionRange):
            rows = float(_SET_ROWS)
        else:
            rows = float(_GROUPS)
        for condition in own:
            rows *= _selectivity(condition)
        return max(rows, 1.0)


def _conditions(query: Select) -> list[Expr]:
    found = list(_conjuncts(query.where))
    for item in query.from_:
        found += _join_conditions(item)
    return found


def _conjuncts(expr: Expr | None) -> list[Expr]:
    if expr is None:
        return []
    if isinstance(expr, BoolExpr) and expr.kind == "and":
        return [c for arg in expr.args for c in _conjuncts(arg)]
    return [expr]


def _join_conditions(item: object) -> list[Expr]:
    if not isinstance(item, Join):
        return []
    return [*_conjuncts(item.on), *_join_conditions(item.left), *_join_conditions(item.right)]


def _vars(expr: Expr) -> list[Var]:
    return [node for node in walk(expr) if isinstance(node, Var) and node.level == 0 and node.range >= 0]


def _ranges_of(expr: Expr) -> int:
    return len({var.range for var in _vars(expr)})


def _reads(expr: Expr, number: int) -> bool:
    return any(var.range == number for var in _vars(expr))


def _compared(expr: Expr, number: int) -> list[int]:
    """Return the column that a condition compares with a value by ``=``."""
    if not isinstance(expr, OpExpr) or len(expr.args) != 2 or facts().operators[expr.op].name != "=":
        return []
    for side, other in (expr.args, expr.args[::-1]):
        if isinstance(side, Var) and side.range == number and isinstance(other, Const | Param):
            return [side.attnum]
    return []


def _selectivity(expr: Expr) -> float:
    if isinstance(expr, OpExpr) and len(expr.args) == 2:
        name = facts().operators[expr.op].name
        return _EQUAL if name == "=" else _RANGE if name in ("<", "<=", ">", ">=") else _OTHER
    if isinstance(expr, ScalarArrayOp):
        return _EQUAL * 4
    return _OTHER
