"""What of a query DuckDB has no form of, and asks Python for in the middle of it.

    SELECT to_char(day, 'Mon YYYY'), sum(n) FROM t WHERE note ~* 'dra(f|ugh)t' GROUP BY 1

    DuckDB   scans, filters, groups, sums
    Python   to_char of the days and the match of the notes, a vector of values at a time: hf_py_1(day), hf_py_2(note)

An expression becomes a call of ``hf_py_<n>``. Its arguments are its largest parts that the engine computes
itself; what is between them is compiled as the row executor compiles it, so it gives the same values and
raises the same errors. What changes anything, waits, or reads the catalog is never called out to: DuckDB
calls from threads of its own, as often as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner import facts as f
from planner import query as q
from planner.base.errors import SqlError
from planner.evaluate import Layout, compile_map
from planner.facts import facts
from planner.functions import load
from planner.functions.registry import PRINTERS
from planner.lower.kit import build as b
from planner.lower.kit.value import Fixed, Val, declared_num, element_of, kind_of
from planner.lower.query.finishing import COMPUTED, split
from planner.lower.query.scope import Callout, Compute
from planner.query.walk import walk
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext

PREFIX = "hf_py_"
_CATALOG_TYPES = frozenset(
    (f.REGPROC, f.REGCLASS, f.REGCONFIG, f.REGDICTIONARY, f.REGTYPE, f.REGNAMESPACE, f.REGROLE, f.REGPROCEDURE, f.REGOPER,
     f.REGOPERATOR, f.REGCOLLATION)
)  # fmt: skip
_ONE_FORM = frozenset(
    ("bool", "int16", "int32", "int64", "text", "bytes", "uuid", "date", "time", "timestamp", "timestamptz")
)


class Arguments:
    """The parts of expressions that the engine computes, as arguments of a function to be."""

    def __init__(self, lw: LoweringContext) -> None:
        """Begin with none."""
        self._lw = lw
        self._known: dict[q.Expr, int] = {}
        self.values: list[Val] = []

    def of(self, expr: q.Expr) -> q.Expr:
        """Return ``expr`` with its largest parts that the engine computes as Var(range=0, attnum=number of
        the argument).

        Raises:
            SqlError: 0A000 where nobody computes a part.
        """
        with self._lw.without_callouts():
            return split(self._lw, expr, self._leaf, divides=False)

    def _leaf(self, part: q.Expr, value: Val) -> q.Expr:
        index = (
            len(self.values) if b.is_costly(value.node) else self._known.setdefault(part, len(self.values))
        )
        if index == len(self.values):
            self.values.append(self._lw.column_value(value))
        return q.Var(type=part.type, range=0, attnum=index + 1)


def call(lw: LoweringContext, expr: q.Expr, refusal: SqlError) -> Val:
    """Return ``expr`` as a call of Python.

    Raises:
        SqlError: ``refusal`` where that cannot be.
    """
    if not lw.calls_out or not isinstance(expr, COMPUTED):
        raise refusal.copy()
    arguments = Arguments(lw)
    try:
        function = compiled(arguments.of(expr), arguments)
        num = declared_num(expr.type)
        node = register(lw, function, arguments.values, (expr.type, lw.d.engine_type(expr.type, num)))
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise
        raise refusal.copy() from error
    return Val(node, expr.type, num)


def compiled(computed: q.Expr, arguments: Arguments) -> Compute:
    """Return the function that computes an expression over ``arguments``.

    Raises:
        SqlError: 0A000 where Python may not, or cannot, compute it.
    """
    _check(computed)
    layout = Layout(columns={(0, i + 1): i for i in range(len(arguments.values))})
    function = compile_map((computed,), layout)
    if function.may_suspend:
        raise refused("what has to wait")
    return function


def register(
    lw: LoweringContext,
    function: Compute,
    values: Sequence[Val],
    result: tuple[SqlType, str],
    rows: Sequence[SqlType] = (),
) -> b.Node:
    """Note a function and return its call. ``result`` and ``rows`` as in ``Callout``."""
    given = list(values) or [
        Val(b.boolean(True), SqlType(f.BOOL))
    ]  # how many rows there are shows in some column
    args = tuple((v.type, _engine_type(lw, v)) for v in given)
    repeats = not rows and all(_has_one_form(v.type) for v in given)
    callout = Callout(f"{PREFIX}{len(lw.callouts) + 1}", function, args, result, repeats, tuple(rows))
    lw.callouts.append(callout)
    return b.fn(
        callout.name, *(b.cast(v.node, engine_type) for v, (_, engine_type) in zip(given, args, strict=True))
    )


def _engine_type(lw: LoweringContext, value: Val) -> str:
    """Return the engine's type of an argument; a list that has a form has items of that form."""
    if isinstance(value.num, Fixed) and kind_of(value.type.oid) == "list":
        return lw.d.list_of(lw.d.decimal(value.num.precision, value.num.scale))
    return lw.d.engine_type(value.type, value.num)


def refused(what: str) -> SqlError:
    """Return the refusal of something that is not to be called from an engine."""
    return SqlError("0A000", f"{what} in this executor is not supported")


def may_call(proc: int) -> bool:
    """Return whether an engine may call a function in Python: it changes nothing, and knows its arguments and
    settings only.
    """
    fact, row = facts().procs.get(proc), load().functions.get(proc)
    if fact is None or row is None or row.python is None or fact.volatility == "v":
        return False
    return not (
        row.needs_session and row.python.__module__.startswith(PRINTERS)
    )  # they look at the catalog, which belongs to the event loop


def _check(computed: q.Expr) -> None:
    for node in walk(computed):
        if isinstance(node, q.SubLink | q.SqlCall | q.QueryBase | q.CurrentSetting):
            raise refused("a sub-select")
        if isinstance(node, q.Expr) and node.type.oid in _CATALOG_TYPES:
            raise refused("a name in the catalog")
        if isinstance(node, q.FuncExpr | q.OpExpr) and not may_call(node.proc):
            raise refused("a function that is volatile or reads the catalog")


def _has_one_form(type_: SqlType) -> bool:
    kind = kind_of(type_.oid)
    return kind in _ONE_FORM or (kind == "list" and kind_of(element_of(type_.oid)) in _ONE_FORM)


def used(callouts: Sequence[Callout], text: str) -> tuple[Callout, ...]:
    """Return those that a text calls: what was tried in vain leaves some behind."""
    return tuple(c for c in callouts if f"{c.name}(" in text)


__all__ = ["PREFIX", "Arguments", "Callout", "Compute", "call", "compiled", "register", "used"]
