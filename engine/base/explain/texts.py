"""Expressions and names of a plan, written as the reader of EXPLAIN writes them.

    with texts.inside(query):            the columns of its ranges have names now, and those of the queries around it
        texts.of(conjunct)               '(e.salary > 100)'

A sub-select in an expression is a plan of its own where the executor has one: ``(SubPlan 1)``, and ``taken``
gives what has been named so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from engine.base.explain.estimated_cost import Estimator, width_of_types
from engine.base.explain.tree import PlanNode
from planner.base.quoting import quote_identifier
from planner.deparse import Reader
from planner.deparse.expr import Level, Printer
from planner.deparse.from_ import level_of
from planner.deparse.query import print_query
from planner.functions.session import EvalSession
from planner.functions.system.names import qualifier
from planner.information.definitions import reader_of
from planner.information.named_constants import for_reader
from planner.query import (
    ArrayAssign,
    CursorValue,
    Expr,
    Param,
    QueryExpr,
    Range,
    RelationRange,
    Sample,
    SampleKey,
    Select,
    SortKey,
    SubLink,
    Subscript,
)
from planner.query.walk import walk
from planner.types import SqlType


class _PlanPrinter(Printer):
    """Prints sub-selects that have a plan as its number, and what became a parameter of the statement as it
    was written.
    """

    numbers: Callable[[SubLink], str | None]
    stable: Mapping[int, Expr]

    def expr(self, expr: Expr, implicit: bool = True) -> None:
        """Append an expression."""
        if isinstance(expr, SubLink):
            name = self.numbers(expr)
            if name is not None:
                self.out += f"({name})"
                return
        if isinstance(expr, Param) and expr.number in self.stable:
            expr = self.stable[expr.number]
        if isinstance(expr, ArrayAssign):
            part = Subscript(type=expr.type, arg=expr.arg, indexes=expr.indexes, is_slice=expr.is_slice)
            Printer.expr(self, part, implicit)
            self.out += " := "
            expr = expr.value
        if isinstance(expr, CursorValue):
            self.out += f"CURRENT OF {quote_identifier(expr.cursor)}"
            return
        Printer.expr(self, expr, implicit)


@dataclass(slots=True)
class Texts:
    """How one statement's plans are written.

    Attributes:
        session: the reader.
        estimator: guesses rows; None with COSTS OFF.
        verbose: columns go with their tables' names, tables with their schemas, nodes tell their outputs.
        several: there is more than one range, so that columns go with their tables' names.
        stable: what parameters above the client's stand for.
    """

    session: EvalSession
    estimator: Estimator | None
    verbose: bool = False
    several: bool = False
    stable: Mapping[int, Expr] = field(default_factory=dict)
    _levels: list[Level] = field(default_factory=list)
    _queries: list[QueryExpr] = field(default_factory=list)
    _sizes: list[list[float]] = field(default_factory=list)
    _plans: dict[int, Any] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    _taken: list[tuple[str, Any]] = field(default_factory=list)
    _reader: tuple[Reader, Callable[[str, str], bool]] = field(init=False)

    def __post_init__(self) -> None:
        """Ask once who reads."""
        self._reader = reader_of(self.session), qualifier(self.session)

    def looks_at(self, query: QueryExpr, stable: Sequence[Expr], params: int) -> None:
        """Get ready for a part of the statement; ``params``: how many are the client's."""
        self.several = sum(isinstance(node, Range) for node in walk(query)) > 1
        self.stable = {params + number: expr for number, expr in enumerate(stable, 1)}

    @contextmanager
    def inside(self, query: QueryExpr) -> Iterator[None]:
        """Write what belongs to ``query``, a query directly below the one before."""
        self._levels.append(level_of(self._printer(), query))
        self._queries.append(query)
        sizes = (
            self.estimator.sizes(query) if self.estimator is not None and isinstance(query, Select) else []
        )
        self._sizes.append(sizes)
        try:
            yield
        finally:
            self._levels.pop()
            self._queries.pop()
            self._sizes.pop()

    @property
    def query(self) -> QueryExpr:
        """The query that is being written."""
        return self._queries[-1]

    def _printer(self) -> _PlanPrinter:
        reader, qualify = self._reader
        made = _PlanPrinter(
            prefix=self.verbose or self.several,
            indented=False,
            settings=reader.settings,
            qualify=qualify,
            type_name=reader.type_name,
            function_name=reader.function_name,
            levels=list(self._levels),
            query=print_query,
        )
        made.numbers, made.stable = self._number, self.stable
        return made

    # --- expressions ----------------------------------------------------------------------------

    def of(self, expr: Expr) -> str:
        """Return an expression's text."""
        printer = self._printer()
        printer.expr(expr, False)
        return for_reader(self.session, printer.out.strip())

    def output(self, expr: Expr) -> str:
        """Return the text of what a node gives: columns of a query over one range go by their own names,
        however much is told.
        """
        printer = self._printer()
        printer.prefix = self.several
        printer.expr(expr, False)
        return for_reader(self.session, printer.out.strip())

    def all_of(self, conjuncts: Sequence[Expr]) -> str:
        """Return the text of conditions that all have to hold."""
        texts = list(dict.fromkeys(self.of(x) for x in conjuncts))
        return texts[0] if len(texts) == 1 else "(" + " AND ".join(texts) + ")"

    def keys(self, keys: Sequence[SortKey]) -> list[str]:
        """Return the texts of the query's sort keys."""
        query = self.query
        made = []
        for key in keys:
            printer = self._printer()
            if isinstance(query, Select):
                expr = query.targets[key.target].expr
                printer.sort_item(expr)
                printer.order_suffix(expr.type.oid, key.descending, key.nulls_first, 0)
            else:
                printer.out = quote_identifier(query.columns[key.target].name)
                oid = query.columns[key.target].type.oid
                printer.order_suffix(oid, key.descending, key.nulls_first, 0)
            made.append(for_reader(self.session, printer.out))
        return made

    def grouping(self, exprs: Sequence[Expr]) -> list[str]:
        """Return the texts of expressions to group by."""
        made = []
        for expr in exprs:
            printer = self._printer()
            printer.sort_item(expr)
            made.append(for_reader(self.session, printer.out))
        return made

    # --- ranges ---------------------------------------------------------------------------------

    def alias(self, number: int) -> str:
        """Return what a range of the query is called."""
        return quote_identifier(self._levels[-1].names[number])

    def about(self, item: RelationRange, number: int) -> tuple[str, dict[str, Any]]:
        """Return a table's text behind "on", and its facts."""
        name, alias = quote_identifier(item.name), self.alias(number)
        shown = f"{quote_identifier(item.schema)}.{name}" if self.verbose else name
        facts: dict[str, Any] = {"Relation Name": item.name}
        if self.verbose:
            facts["Schema"] = item.schema
        facts["Alias"] = self._levels[-1].names[number]
        return (shown if alias == name else f"{shown} {alias}"), facts

    def sampling(self, sample: Sample) -> str:
        """Return a TABLESAMPLE clause: the method and its arguments."""
        key = sample.key
        if isinstance(key, Param):
            key = self.stable[key.number]
        if not isinstance(key, SampleKey):
            raise AssertionError(f"the key of a sample is {type(key).__name__}")
        again = "" if key.seed is None else f" REPEATABLE ({self.of(key.seed)})"
        return f"{sample.method} ({self.of(key.percent)}){again}"

    def guess_range(self, node: PlanNode, number: int, types: Sequence[SqlType]) -> None:
        """Give a node the guess for a range of the query, of whose columns those with ``types`` are read."""
        if self.estimator is None:
            return
        node.rows = self._sizes[-1][number] if number < len(self._sizes[-1]) else 1.0
        node.width = width_of_types(types)
        item = self.query.ranges[number] if isinstance(self.query, Select) else None
        read = self.estimator.read_of(item, node.rows) if isinstance(item, RelationRange) else 0.0
        node.cost = self.estimator.cost(read) + sum(below.cost for below in node.inputs)

    def guess(self, node: PlanNode, rows: Callable[[float], float] = lambda rows: rows) -> None:
        """Give a node the guess of its first input, with as many rows as ``rows`` makes of them."""
        if self.estimator is None or not node.inputs:
            return
        first = node.inputs[0]
        node.rows = max(rows(first.rows or 1.0), 1.0)
        node.width = first.width
        node.cost = sum(below.cost for below in node.inputs)

    # --- plans of sub-selects -------------------------------------------------------------------

    def has_plans(self, plans: Sequence[tuple[SubLink, Any]]) -> None:
        """Make known the plans of sub-selects, by the very expressions."""
        self._plans |= {id(link): plan for link, plan in plans}

    def _number(self, link: SubLink) -> str | None:
        if id(link) not in self._plans:
            return None
        known = self._numbers.get(id(link))
        if known is None:
            known = self._numbers[id(link)] = len(self._numbers) + 1
            self._taken.append((f"SubPlan {known}", self._plans[id(link)]))
        return f"SubPlan {known}"

    def taken(self) -> list[tuple[str, Any]]:
        """Return the plans that have been named since the last call."""
        found, self._taken = self._taken, []
        return found
