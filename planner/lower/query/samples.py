"""TABLESAMPLE in an engine: ``planner.query.sampling``'s arithmetic in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner import facts as f
from planner import query as q
from planner.base.errors import not_supported
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.value import Val
from planner.query.sampling import BLOCK, PRIME, REFUSALS, SHIFT, STRIDE
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext


def tested(sample: q.Sample) -> q.Expr:
    """Return the test of a row of range 0. Raises SqlError 0A000 for arguments that are not fixed for the statement."""
    if not isinstance(sample.key, q.Const | q.Param):
        raise not_supported("TABLESAMPLE by values that are not fixed for the statement in this executor")
    row_id = q.Var(type=SqlType(f.INT8), range=0, attnum=q.ROW_ID)
    return q.SampleTest(type=SqlType(f.BOOL), method=sample.method, key=sample.key, row_id=row_id)


def sample_test(lw: LoweringContext, expr: q.SampleTest) -> Val:
    """Return whether a row is chosen; a key by which nothing can be is an error where there is a row."""
    d = lw.d
    key, row_id = lw.expr(expr.key).node, lw.expr(expr.row_id).node
    number = row_id
    if expr.method == "system":
        behind = b.op("-", row_id, b.integer(1))
        number = b.op("-", behind, b.op("%", behind, b.integer(BLOCK)))

    def modulo(node: Node) -> Node:
        return b.op("%", node, b.integer(PRIME))

    start = b.op("%", key, b.integer(SHIFT))
    place = modulo(b.op("+", b.op("*", modulo(number), b.integer(STRIDE)), start))
    square = modulo(b.op("*", place, place))
    hashed = modulo(b.op("*", modulo(b.op("*", square, square)), place))
    # hashed < limit, where key is limit * SHIFT and something below SHIFT
    chosen = b.op("<=", b.op("*", b.op("+", hashed, b.integer(1)), b.integer(SHIFT)), key)
    refused = [
        (b.op("=", key, b.integer(code)), d.error(sqlstate, message, row_id))
        for code, (sqlstate, message) in REFUSALS.items()
    ]
    return Val(b.case(refused, chosen), expr.type)
