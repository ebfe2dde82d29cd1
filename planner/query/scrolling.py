"""Which queries give cursors that scroll back where nobody has said whether they shall (PostgreSQL's
ExecSupportsBackwardScan).

    SELECT * FROM t   VALUES (1), (2)   ... ORDER BY b                              they do: scans and sorts go back
    SELECT 1   SELECT count(*) FROM t   SELECT DISTINCT b FROM t   t UNION u         they do not

In PostgreSQL it is the plan that decides. What it decides for every plan of a query is the same here; where
it depends, as for joins, a cursor scrolls, as its rows are kept anyway.
"""

from __future__ import annotations

from planner.query import FuncExpr, QueryExpr, RangeRef, Select, SetOp, SubqueryRange, Values


def scrolls_back(query: QueryExpr) -> bool:
    """Tell whether a cursor over a query scrolls back."""
    if isinstance(query, Select):
        return _select(query)
    if query.order:
        return True
    if isinstance(query, Values):
        return len(query.rows) > 1
    return _appends(query) and scrolls_back(query.left) and scrolls_back(query.right)


def _appends(query: SetOp) -> bool:
    return query.op == "union" and query.all


def _select(query: Select) -> bool:
    rows_of_target = any(isinstance(t.expr, FuncExpr) and t.expr.returns_set for t in query.targets)
    if not query.from_:
        return bool(query.order) and rows_of_target
    if query.order:
        return True
    if query.grouped or query.distinct or rows_of_target:
        return False
    (item, *others) = query.from_
    if others or not isinstance(item, RangeRef):
        return True
    read = query.ranges[item.range]
    return not isinstance(read, SubqueryRange) or scrolls_back(read.query)
