"""Functions in FROM: generate_series, unnest, and scalar functions as rows of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner import facts as f
from planner import query as q
from planner.base.errors import not_supported
from planner.facts import facts
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.value import element_of
from planner.lower.query import gathered
from planner.lower.query.scope import Column, Result
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext


def function_range(lw: LoweringContext, range_: q.FunctionRange) -> Result:
    """Return the rows of a function range as a query.

    Raises:
        SqlError: 0A000 for other set-returning functions, ROWS FROM, WITH ORDINALITY on Spark.
    """
    if len(range_.functions) != 1:
        raise not_supported("ROWS FROM in this executor")
    if range_.slots:
        raise not_supported("a function of composite values in FROM in this executor")
    call = range_.functions[0]
    prefix = lw.d.fresh("q")
    # The arguments belong to the query level that holds the range.
    if isinstance(call, q.FuncExpr) and call.returns_set:
        name = facts().procs[call.proc].name
        columns = [Column(f"{prefix}_1", call.type)]
        node: Node | None = None
        if name == "generate_series" and call.type.oid in (f.INT4, f.INT8):
            args = [lw.expr(a) for a in call.args]
            if (
                not range_.ordinality or lw.d.series_in_order
            ):  # else under row_number(), as those of an array do
                node = lw.d.series_rows(args, lw.d.fresh("r"), columns[0].name, call.type)
            items = lw.d.series(args, call.type)
        elif (
            name == "unnest"
            and len(call.args) == 1
            and element_of(call.args[0].type.oid) not in (0, f.NUMERIC)
        ):
            items = lw.expr(call.args[0]).node
        else:
            refusal = not_supported(f"function {facts().signature(call.proc)} in FROM in this executor")
            width = len(range_.columns) - int(range_.ordinality)
            node, columns = gathered.rows(lw, call, [c.type for c in range_.columns[:width]], prefix, refusal)
        if node is None:
            node = b.select([b.alias(b.fn(lw.d.explode, items), columns[0].name)])
    else:
        value = lw.column_value(lw.expr(call))
        columns = [Column(f"{prefix}_1", value.type, value.num, value.padded)]
        node = b.select([b.alias(lw.typed(value), columns[0].name)])
    if range_.ordinality:
        label = lw.d.fresh("r")
        number = b.window(b.fn("row_number"), [], lw.d.any_order(), None)
        ordinal = Column(f"{prefix}_2", SqlType(f.INT8))
        node = b.select(
            [*(b.col(label, c.name) for c in columns), b.alias(number, ordinal.name)],
            source=b.derived(node, label),
        )
        columns.append(ordinal)
    return Result(node, tuple(columns))
