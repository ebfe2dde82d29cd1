"""FOR UPDATE, NO KEY UPDATE, SHARE and KEY SHARE: which ranges of a query have their rows locked.

    SELECT ... FROM a, (SELECT * FROM b) s FOR UPDATE OF s NOWAIT

    Select            row_marks  [1: update, nowait]            the sub-query, for printing
      range 1 Select  row_marks  [0: update, nowait, pushed]    b, whose rows are locked

A clause without OF means every table and sub-query of FROM; in a sub-query or view it goes on to what that one
reads. Functions, WITH items and VALUES have no rows to lock: named by OF they are an error, else they are passed over.
A range that several clauses name gets the strongest lock, and NOWAIT before SKIP LOCKED before waiting (manual,
SELECT, The Locking Clause). Restrictions and wording are PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from planner import ast
from planner.base.errors import SqlError, not_supported
from planner.bind.scope import Scope
from planner.facts import facts
from planner.query import (
    Aggregate,
    BoolExpr,
    CteRange,
    Expr,
    FromItem,
    FuncExpr,
    FunctionRange,
    JoinKind,
    LockStrength,
    LockWait,
    NullTest,
    OpExpr,
    QueryBase,
    QueryExpr,
    Range,
    RangeRef,
    RelabelType,
    RelationRange,
    RowMark,
    ScalarArrayOp,
    Select,
    SetOp,
    StepRange,
    SubqueryRange,
    Var,
    WindowFunc,
)
from planner.query.walk import children

STRENGTHS: Final[tuple[LockStrength, ...]] = ("key share", "share", "no key update", "update")
_WAITS: Final[tuple[LockWait, ...]] = ("block", "skip", "nowait")


def clause_name(strength: LockStrength) -> str:
    """Return a clause as messages name it: FOR UPDATE."""
    return f"FOR {strength.upper()}"


def bind_locking(scope: Scope, clauses: Sequence[ast.Locking], query: Select) -> Select:
    """Add the row marks of ``clauses`` to a bound SELECT.

    Raises SqlError 0A000 for queries whose rows are not rows of tables, 42P01 and 42601 for names of OF.
    """
    for clause in clauses:
        check_lockable(query, clause.strength)
        if not clause.tables:
            if clause.wait == "skip" and query.with_ties:
                raise _skip_with_ties()
            query = _mark(query, range(len(query.ranges)), clause.strength, clause.wait, pushed=False)
            continue
        for table in clause.tables:
            if table.schema or table.catalog:
                raise SqlError(
                    "42601",
                    f"{clause_name(clause.strength)} must specify unqualified relation names",
                    span=table.span,
                )
            index = _named(scope, query, table, clause.strength)
            query = _mark(query, (index,), clause.strength, clause.wait, pushed=False)
    _check_outer_joins(query)
    return query


def _skip_with_ties() -> SqlError:
    return SqlError("42601", "SKIP LOCKED and WITH TIES options cannot be used together")


def _named(scope: Scope, query: Select, table: ast.TableRef, strength: LockStrength) -> int:
    """Return the range that OF names. Raises 42P01 where there is none, 0A000 for one that has no rows to lock."""
    name = clause_name(strength)

    def refuse(what: str) -> SqlError:
        return SqlError("0A000", f"{name} cannot be applied to {what}", span=table.span)

    for index, item in enumerate(query.ranges):
        if item.alias != table.name:
            continue
        if isinstance(item, FunctionRange):
            raise refuse("a function")
        if isinstance(item, CteRange | StepRange):
            raise refuse("a WITH query")
        return index
    if any(item.range < 0 and item.name == table.name for item in scope.namespace):
        raise refuse("a join")
    raise SqlError(
        "42P01",
        f'relation "{table.name}" in {name} clause not found in FROM clause',
        span=table.span,
    )


def check_lockable(query: QueryExpr, strength: LockStrength) -> None:
    """Raise 0A000 unless each row of ``query`` comes from one row of each of its tables."""
    name = clause_name(strength)

    def refuse(what: str) -> SqlError:
        return SqlError("0A000", f"{name} is not allowed with {what}")

    if isinstance(query, SetOp):
        raise refuse("UNION/INTERSECT/EXCEPT")
    if not isinstance(query, Select):
        return
    if query.distinct:
        raise refuse("DISTINCT clause")
    if query.group or query.grouping_sets is not None:
        raise refuse("GROUP BY clause")
    if query.having is not None:
        raise refuse("HAVING clause")
    own = list(_own_nodes([target.expr for target in query.targets]))
    if query.grouped or any(isinstance(node, Aggregate) for node in own):
        raise refuse("aggregate functions")
    if any(isinstance(node, WindowFunc) for node in own):
        raise refuse("window functions")
    if any(isinstance(node, FuncExpr) and node.returns_set for node in own):
        raise refuse("set-returning functions in the target list")


def _own_nodes(nodes: Sequence[Any]) -> Iterator[Any]:
    """Yield what is below ``nodes``, sub-selects left out."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, QueryBase):
            stack.extend(children(node))


def _mark(
    query: Select, indexes: Sequence[int], strength: LockStrength, wait: LockWait, *, pushed: bool
) -> Select:
    """Return ``query`` with marks at ``indexes``, and what its sub-queries read marked, too."""
    marks = {mark.range: mark for mark in query.row_marks}
    ranges: list[Range] = list(query.ranges)
    for index in indexes:
        item = ranges[index]
        if isinstance(item, RelationRange):
            if item.virtual:
                raise not_supported(f"SELECT {clause_name(strength)} of a catalog relation")
            if item.materialized:
                raise SqlError("42809", f'cannot lock rows in materialized view "{item.name}"')
        elif isinstance(item, SubqueryRange):
            ranges[index] = replace(item, query=_push(item.query, strength, wait))
        else:
            continue
        marks[index] = _stronger(
            marks.get(index), RowMark(range=index, strength=strength, wait=wait, pushed=pushed)
        )
    return replace(query, ranges=tuple(ranges), row_marks=tuple([marks[index] for index in sorted(marks)]))


def _push(query: QueryExpr, strength: LockStrength, wait: LockWait) -> QueryExpr:
    """Lock the rows a sub-query or view is made of."""
    check_lockable(query, strength)
    if not isinstance(query, Select):
        return query
    if wait == "skip" and query.with_ties:
        raise _skip_with_ties()
    made = _mark(query, range(len(query.ranges)), strength, wait, pushed=True)
    _check_outer_joins(made)
    return made


def _stronger(old: RowMark | None, new: RowMark) -> RowMark:
    if old is None:
        return new
    return RowMark(
        range=new.range,
        strength=max(old.strength, new.strength, key=STRENGTHS.index),
        wait=max(old.wait, new.wait, key=_WAITS.index),
        pushed=old.pushed and new.pushed,
    )


# --- outer joins ------------------------------------------------------------------------------------


def _check_outer_joins(query: Select) -> None:
    """Raise 0A000 when a marked range may be filled up with NULLs: there would be no row to lock."""
    marked = {mark.range: mark for mark in query.row_marks}
    if not marked:
        return
    certain = _certain(query.where)
    for item in query.from_:
        for index in _nullable(item, certain):
            if index in marked:
                raise SqlError(
                    "0A000",
                    f"{clause_name(marked[index].strength)} cannot be applied to the nullable side of an outer join",
                )


def _ranges(item: FromItem) -> set[int]:
    return {item.range} if isinstance(item, RangeRef) else _ranges(item.left) | _ranges(item.right)


def _nullable(item: FromItem, certain: set[int]) -> set[int]:
    """Return the ranges below ``item`` that an outer join may fill up.

    ``certain``: ranges of which a condition above needs a value, so that rows filled up there are dropped and the
    join is as good as an inner one (as PostgreSQL's planner reduces it).
    """
    if isinstance(item, RangeRef):
        return set()
    left, right = _ranges(item.left), _ranges(item.right)
    fills_right = item.kind in (JoinKind.LEFT, JoinKind.FULL) and not right & certain
    fills_left = item.kind in (JoinKind.RIGHT, JoinKind.FULL) and not left & certain
    out = (right if fills_right else set()) | (left if fills_left else set())
    condition = _certain(item.on)
    below_left = certain | (set() if fills_right else condition)
    below_right = certain | (set() if fills_left else condition)
    if fills_right:
        below_right = condition | (certain & right)
    if fills_left:
        below_left = condition | (certain & left)
    return out | _nullable(item.left, below_left) | _nullable(item.right, below_right)


def _certain(condition: Expr | None) -> set[int]:
    """Return the ranges that cannot be filled up with NULLs where ``condition`` is TRUE."""
    if condition is None:
        return set()
    if isinstance(condition, BoolExpr):
        if condition.kind == "and":
            return set().union(*[_certain(arg) for arg in condition.args])
        if condition.kind == "or":
            return set.intersection(*[_certain(arg) for arg in condition.args])
        return set()
    if isinstance(condition, NullTest):
        return _strict_ranges(condition.arg) if condition.negated else set()
    return _strict_ranges(condition)


def _strict_ranges(expr: Expr) -> set[int]:
    """Return the ranges whose being NULL makes ``expr`` NULL."""
    if isinstance(expr, Var):
        return {expr.range} if expr.level == 0 and expr.attnum != 0 else set()
    if isinstance(expr, RelabelType):
        return _strict_ranges(expr.arg)
    if isinstance(expr, OpExpr | FuncExpr):
        proc = facts().procs.get(expr.proc)
        if proc is None or not proc.strict:
            return set()
        return set().union(*[_strict_ranges(arg) for arg in expr.args])
    if isinstance(expr, ScalarArrayOp) and expr.use_any:
        return _strict_ranges(expr.scalar)
    return set()


# --- what a statement locks ---------------------------------------------------------------------------


def locking_selects(node: object) -> Iterator[Select]:
    """Yield the SELECTs below ``node`` that lock rows, outer ones first."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Select) and current.row_marks:
            yield current
        stack.extend(reversed(children(current)))


def never_waits(node: object) -> bool:
    """Tell whether a statement is not to wait for the rows that it locks."""
    return any(mark.wait == "nowait" for select in locking_selects(node) for mark in select.row_marks)


def statement_name(node: object) -> str | None:
    """Return what errors call a statement that locks rows (SELECT FOR UPDATE), None if it locks none."""
    for select in locking_selects(node):
        return f"SELECT {clause_name(select.row_marks[0].strength)}"
    return None
