"""What an engine is asked for: a query as a tree of scans, joins and what is made of them.

    Custom Scan (DuckDB)                 the engine plans and runs all below it as one
      Remote SQL: SELECT ...             with VERBOSE: what it is sent
      ->  Aggregate
            ->  Join
                  ->  Scan on emp e

Order and kind of joins are the engine's, so these are joins of no kind; what is measured is measured of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.base.explain.texts import Texts
from engine.base.explain.tree import PlanNode
from engine.executors.expressions import row_security_of
from planner.indexing.comparisons import conjuncts_of
from planner.query import (
    Const,
    CteRange,
    Expr,
    FromItem,
    FunctionRange,
    Join,
    JoinKind,
    QueryExpr,
    RangeRef,
    RelationRange,
    Select,
    SetOp,
    SubqueryRange,
    Var,
)
from planner.query.walk import placed

_GROUPS = 200.0
_VARS = frozenset((Var,))
_JOINS = {
    JoinKind.INNER: "Join",
    JoinKind.LEFT: "Left Join",
    JoinKind.RIGHT: "Right Join",
    JoinKind.FULL: "Full Join",
}


def custom_scan(engine: str, query: QueryExpr, sql: str, texts: Texts) -> PlanNode:
    """Describe a query that ``engine`` runs, by the text that it is sent."""
    made = PlanNode("Custom Scan", f"Custom Scan ({engine})", {"Custom Plan Provider": engine})
    if texts.verbose:
        made.details["Output"] = [column.name for column in query.columns]
        made.details["Remote SQL"] = sql
    made.add(_query(query, texts), "Outer")
    texts.guess(made)
    return made


def _query(query: QueryExpr, texts: Texts) -> PlanNode:
    with texts.inside(query):
        items = []
        for cte in query.ctes:
            item = _query(cte.query, texts)
            item.role, item.name = "InitPlan", f"CTE {cte.name}"
            items.append(item)
        made = _select(query, texts) if isinstance(query, Select) else _body(query, texts)
        if query.order:
            made = _over(made, "Sort", texts)
            made.details["Sort Key"] = texts.keys(query.order)
        if query.limit is not None or query.offset is not None:
            made = _over(made, "Limit", texts)
            if isinstance(query.limit, Const) and isinstance(query.limit.value, int):
                most = float(query.limit.value)
                texts.guess(made, lambda rows: min(rows, most))
        made.inputs = [*items, *made.inputs]
    return made


def _over(below: PlanNode, kind: str, texts: Texts, heading: str = "") -> PlanNode:
    made = PlanNode(kind, heading or kind)
    made.add(below, "Outer")
    texts.guess(made)
    return made


def _body(query: QueryExpr, texts: Texts) -> PlanNode:
    if not isinstance(query, SetOp):
        made = PlanNode("Values Scan", 'Values Scan on "*VALUES*"', {"Alias": "*VALUES*"})
        if texts.estimator is not None:
            made.rows = float(len(getattr(query, "rows", ())))
        return made
    command = query.op.capitalize() + (" All" if query.all else "")
    union_all = query.op == "union" and query.all
    made = (
        PlanNode("Append", "Append")
        if union_all
        else PlanNode("SetOp", f"SetOp {command}", {"Command": command})
    )
    for side in (query.left, query.right):
        made.add(_query(side, texts), "Member")
    texts.guess(made)
    if made.rows is not None and query.op == "union":
        made.rows = sum(below.rows or 1.0 for below in made.inputs)
    return made


def _select(query: Select, texts: Texts) -> PlanNode:
    made, left = _from(query, texts)
    if left:
        made.filtered(texts.all_of(left), None)
    if query.grouped:
        made = _over(made, "Aggregate", texts)
        made.facts["Strategy"] = "Hashed" if query.group else "Plain"
        if query.group:
            made.details["Group Key"] = texts.grouping(query.group)
        texts.guess(made, lambda rows: min(rows, _GROUPS) if query.group else 1.0)
        if having := conjuncts_of(query.having):
            made.filtered(texts.all_of(having), None)
    if query.windows:
        made = _over(made, "WindowAgg", texts)
    if query.distinct:
        made = _over(made, "Unique", texts)
    return made


def _from(query: Select, texts: Texts) -> tuple[PlanNode, list[Expr]]:
    """Return the plan of FROM, and the conditions of WHERE that are not of one range alone."""
    conditions = conjuncts_of(query.where)
    if not query.from_:
        made = PlanNode("Result", "Result")
        if texts.estimator is not None:
            made.rows = 1.0
        return made, conditions
    free = {number for item in query.from_ for number in _preserved(item)}
    own: dict[int, list[Expr]] = {}
    rest: list[Expr] = []
    for condition in conditions:
        used = {var.range for var, depth in placed(condition, _VARS) if var.level == depth + 1}
        if len(used) == 1 and used <= free:
            own.setdefault(min(used), []).append(condition)
        else:
            rest.append(condition)
    made = _item(query.from_[0], query, own, texts)
    for item in query.from_[1:]:
        made = _join(made, _item(item, query, own, texts), JoinKind.INNER, [], texts)
    if rest and made.kind == "Join" and made.facts["Join Type"] == "Inner":
        made.details["Join Filter"] = texts.all_of([*rest])
        if made.rows is not None:
            made.rows = max(below.rows or 1.0 for below in made.inputs)
        rest = []
    return made, rest


def _preserved(item: FromItem) -> set[int]:
    """Return the ranges whose rows no outer join of the item fills up with NULLs."""
    if isinstance(item, RangeRef):
        return {item.range}
    left = _preserved(item.left) if item.kind in (JoinKind.INNER, JoinKind.LEFT) else set()
    right = _preserved(item.right) if item.kind in (JoinKind.INNER, JoinKind.RIGHT) else set()
    return left | right


def _item(item: FromItem, query: Select, own: dict[int, list[Expr]], texts: Texts) -> PlanNode:
    if isinstance(item, Join):
        left, right = (_item(side, query, own, texts) for side in (item.left, item.right))
        return _join(left, right, item.kind, conjuncts_of(item.on), texts)
    made = _range(query, item.range, texts)
    tests = [*row_security_of(query.ranges[item.range], item.range), *own.get(item.range, ())]
    if tests:
        made.details["Filter"] = texts.all_of(tests)
    return made


def _join(
    left: PlanNode, right: PlanNode, kind: JoinKind, conditions: Sequence[Expr], texts: Texts
) -> PlanNode:
    made = PlanNode("Join", _JOINS[kind], {"Join Type": kind.value.capitalize()})
    made.add(left, "Outer")
    made.add(right, "Inner")
    if conditions:
        made.details["Join Cond"] = texts.all_of(conditions)
    texts.guess(made)
    if made.rows is not None:
        sizes = (left.rows or 1.0, right.rows or 1.0)
        made.rows = max(sizes) if conditions else sizes[0] * sizes[1]
        made.width = left.width + right.width
    return made


def _range(query: Select, number: int, texts: Texts) -> PlanNode:
    item = query.ranges[number]
    alias = texts.alias(number)
    if isinstance(item, RelationRange):
        about, facts = texts.about(item, number)
        kind = "Seq Scan" if item.sample is None else "Sample Scan"
        made = PlanNode(kind, f"{kind} on {about}", facts)
        if item.sample is not None:
            made.details["Sampling"] = texts.sampling(item.sample)
    elif isinstance(item, SubqueryRange):
        made = PlanNode("Subquery Scan", f"Subquery Scan on {alias}", {"Alias": alias})
        made.add(_query(item.query, texts), "Subquery")
    elif isinstance(item, FunctionRange):
        made = PlanNode("Function Scan", f"Function Scan on {alias}", {"Alias": alias})
        if texts.verbose:
            made.details["Function Call"] = ", ".join([texts.of(call) for call in item.functions])
    else:
        name = item.name if isinstance(item, CteRange) else item.alias
        made = PlanNode(
            "CTE Scan",
            f"CTE Scan on {name if name == alias else f'{name} {alias}'}",
            {"CTE Name": name, "Alias": alias},
        )
    texts.guess_range(made, number, [column.type for column in item.columns])
    return made
