"""WITH items that change data: a statement of several parts.

    WITH a AS (SELECT ...), d AS (DELETE FROM t USING a ... RETURNING t.id) INSERT INTO log SELECT id FROM d
      step 0   a, since a part that changes data reads it        Select
      step 1   d                                                 Delete, reads step 0
      body                                                       Insert, reads step 1

So are queries that ON CONFLICT or RETURNING of an INSERT reads. Parts are bound one by one; a later one meets
the rows of an earlier one as a ``StepRange``. Items that are queries, and that no such part reads, stay in
the WITH of the body. Only the WITH of a statement as a whole may have items that change data; any other is
refused where it is bound (``planner.bind.query.with_``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner import ast
from planner import query as q
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.change.changing_items import CHANGES, read_by_changes
from planner.bind.change.dml import bind_delete, bind_insert, bind_update
from planner.bind.context import BindContext, WithStep
from planner.bind.query.with_ import named_columns, ordered_items, references
from planner.bind.recursion import QUERY, STATEMENT
from planner.query.walk import walk


def bind_with_changes(context: BindContext, node: Any) -> st.WithChanges:
    """Bind a statement for which ``runs_in_parts`` holds.

    Raises SqlError 42712, 42P10, 42P19 (a recursive item that changes data), 0A000 (MERGE as an item; an
    item's own WITH that changes data; rows of an item without RETURNING), and what the parts raise.
    """
    clause: ast.With = node.with_
    _check_items(clause)
    items = ordered_items(clause.ctes) if clause.recursive else list(clause.ctes)
    apart = _apart(items, read_by_changes(node))
    context.future_steps = {item.name for item in items if item.name in apart}
    steps: list[st.Step] = []
    kept: list[ast.Cte] = []
    for item in items:
        if item.name not in apart:
            _check_order(context, item)
            kept.append(item)
            continue
        statement, columns = _step(context, item, recursive=clause.recursive)
        context.steps[item.name] = WithStep(len(steps), columns)
        context.future_steps = context.future_steps - {item.name}
        steps.append(st.Step(name=item.name, statement=statement, needs=_steps_of(statement)))
    rest = replace(clause, ctes=tuple(kept)) if kept else None
    body = STATEMENT.call(context, replace(node, with_=rest))
    if not isinstance(body, st.QueryStatement | q.Insert | q.Update | q.Delete | q.Merge):
        raise AssertionError(f"the statement after WITH is bound as {type(body).__name__}")
    return st.WithChanges(steps=tuple(steps), body=body, needs=_steps_of(body))


def _check_items(clause: ast.With) -> None:
    names: set[str] = set()
    for item in clause.ctes:
        if isinstance(item.query, ast.Merge):
            raise SqlError("0A000", "MERGE not supported in WITH query", span=item.span)
        if item.name in names:
            raise SqlError("42712", f'WITH query name "{item.name}" specified more than once', span=item.span)
        names.add(item.name)
        if clause.recursive and isinstance(item.query, CHANGES) and _reads(item.query, {item.name}):
            raise SqlError(
                "42P19",
                f'recursive query "{item.name}" must not contain data-modifying statements',
                span=item.span,
            )


def _reads(node: ast.Node, names: set[str]) -> bool:
    return next(references(node, frozenset(names)), None) is not None


def _apart(items: list[ast.Cte], wanted: set[str]) -> set[str]:
    """Return the items that become steps: those that change data, ``wanted``, and every query that these read
    in the end.
    """
    by_name = {item.name: item for item in items}
    found = {item.name for item in items if isinstance(item.query, CHANGES)} | wanted
    todo = list(found)
    while todo:
        node = by_name[todo.pop()].query
        for name in {ref.name for ref in references(node, frozenset(by_name))} - found:
            found.add(name)
            todo.append(name)
    return found


def _check_order(context: BindContext, item: ast.Cte) -> None:
    """Refuse a query that stays in the body's WITH and names a step which comes later, where a table has that
    name, too.
    """
    for reference in references(item.query, frozenset(context.future_steps)):
        if context.find_relation("", reference.name) is not None:
            raise not_supported("a table that has the name of a later WITH item", span=reference.span)
        raise SqlError(
            "42P01",
            f'relation "{reference.name}" does not exist',
            detail=f'There is a WITH item named "{reference.name}", but it cannot be referenced from '
            "this part of the query.",
            hint="Use WITH RECURSIVE, or re-order the WITH items to remove forward references.",
            span=reference.span,
        )


def _step(
    context: BindContext, item: ast.Cte, *, recursive: bool
) -> tuple[st.QueryStatement | q.Insert | q.Update | q.Delete, tuple[q.OutputColumn, ...] | None]:
    """Bind one step; returns it and the columns of its rows, None where it has none."""
    match item.query:
        case ast.Insert():
            made: q.Insert | q.Update | q.Delete = bind_insert(context, item.query)
        case ast.Update():
            made = bind_update(context, item.query)
        case ast.Delete():
            made = bind_delete(context, item.query)
        case _:
            every = ast.TargetItem(expr=ast.ColumnRef(names=(), star=True))
            whole = ast.With(ctes=(item,), recursive=recursive)
            query = ast.Select(targets=(every,), from_=(ast.TableRef(name=item.name),), with_=whole)
            bound = st.QueryStatement(query=QUERY.call(context, query))
            return bound, bound.query.columns
    return made, named_columns(item, made.columns) if made.returning else None


def _steps_of(statement: object) -> frozenset[int]:
    found = (node.step for node in walk(statement) if isinstance(node, q.StepRange))
    return frozenset([step for step in found if step >= 0])  # transition tables are there already
