"""MERGE: AST -> Query tree.

    MERGE INTO t USING s ON t.id = s.id                 source = Select(row id, old columns, extras) over s LEFT JOIN t
      WHEN MATCHED AND s.gone THEN DELETE               action: condition Var 1.1
      WHEN MATCHED THEN UPDATE SET n = t.n + s.n        action: n = Var 0.2 + Var 1.2
      WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n)   action: values Var 1.3, Var 1.2

The source is an ordinary query that any executor runs. Which action a row takes is found, and its values are
computed, by whoever writes: a condition is asked once, and nothing of an action that is not taken is
evaluated. Without a WHEN NOT MATCHED the join is an inner one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner import ast
from planner.base.errors import SqlError
from planner.bind.change.assign import bind_assignments, complete_assignments, default_of, target_relation
from planner.bind.change.assign_part import whole_columns
from planner.bind.change.dml import changed_scope, insert_columns, rows_to_change
from planner.bind.change.insert_source import converted_row, insert_cells, match_counts
from planner.bind.context import BindContext
from planner.bind.expression.expr import bind_boolean, bind_clause
from planner.bind.scope import Scope
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.relation_kinds import RELATION_KINDS, TABLES
from planner.conversion.casts import coerce_to_boolean
from planner.query import CteRange, Expr, Join, JoinKind, Merge, MergeAction, QueryBase, SubLink, Var
from planner.query.rewrite import replace_children
from planner.query.walk import children, walk


def bind_merge(context: BindContext, node: ast.Merge) -> Merge:
    """Bind MERGE.

    Raises SqlError 0A000 (what is no table), 42601 (WITH RECURSIVE, a clause that cannot be reached, counts),
    42712, and what its clauses raise.
    """
    if node.with_ is not None and node.with_.recursive:
        raise SqlError("42601", "WITH RECURSIVE is not supported for MERGE statement")
    _check_reach(node.clauses)
    relation = _target(context, node.relation)
    try:
        scope, from_ = changed_scope(context, node.relation, relation, node.with_, (node.source,))
    except SqlError as error:
        raise _named_twice(error, node.relation) from None
    on = bind_boolean(scope, node.on, "JOIN/ON")
    actions = [_action(scope, relation, clause) for clause in node.clauses]
    extras = _Extras()
    actions = [extras.moved(action, 0) for action in actions]
    kind = JoinKind.INNER if all(clause.matched for clause in node.clauses) else JoinKind.LEFT
    joined = Join(kind=kind, left=from_[1], right=from_[0], on=on)
    source = rows_to_change(scope, relation, (joined,), None, [], extras.found)
    return Merge(table=relation.oid, source=source, actions=tuple(actions))


def _check_reach(clauses: Sequence[ast.MergeWhen]) -> None:
    """Raise 42601 for a clause behind one of its kind that takes every row."""
    certain: set[bool] = set()
    for clause in clauses:
        if clause.matched in certain:
            raise SqlError("42601", "unreachable WHEN clause specified after unconditional WHEN clause")
        if clause.condition is None:
            certain.add(clause.matched)


def _target(context: BindContext, node: ast.TableRef) -> RelationDef:
    relation = context.relation(node.schema, node.name, node.span, catalog=node.catalog, read=True)
    if relation.kind not in TABLES and relation.kind not in ("i", "c"):
        raise SqlError(
            "0A000",
            f'cannot execute MERGE on relation "{relation.name}"',
            detail=f"This operation is not supported for {RELATION_KINDS[relation.kind].plural}.",
        )
    return target_relation(context, node)


def _named_twice(error: SqlError, target: ast.TableRef) -> SqlError:
    """Return MERGE's words for a source that is called as the target is; other errors as they are."""
    name = target.alias.name if target.alias is not None else target.name
    if error.message != f'table name "{name}" specified more than once':
        return error
    detail = "The name is used both as MERGE target table and data source."
    return SqlError("42712", f'name "{name}" specified more than once', detail=detail)


def _action(scope: Scope, relation: RelationDef, node: ast.MergeWhen) -> MergeAction:
    """Bind a WHEN clause; where nothing is matched the target cannot be seen."""
    visible = scope.namespace
    if not node.matched:
        scope.namespace = [item for item in visible if item.range != 0]
    condition = None
    if node.condition is not None:
        bound = bind_clause(scope, node.condition, "MERGE WHEN")
        for item in walk(bound):
            if isinstance(item, Var) and not item.level and item.attnum < 0 and item.name != "tableoid":
                raise SqlError(
                    "42P10", f'cannot use system column "{item.name}" in MERGE WHEN condition', span=item.span
                )
        condition = coerce_to_boolean(bound, "WHEN", scope.context.env)
    pairs: Sequence[tuple[int, Expr]] = ()
    filled: Sequence[tuple[int, Expr]] = ()
    if node.action == "update":
        pairs = complete_assignments(relation, bind_assignments(scope, node.assignments), scope.context.env)
    elif node.action == "insert":
        pairs, filled = _inserted(scope, relation, node)
    scope.namespace = visible
    return MergeAction(
        matched=node.matched,
        action=node.action,
        condition=condition,
        assigned=tuple([attnum for attnum, _ in (*pairs, *filled)]),
        values=tuple([value for _, value in (*pairs, *filled)]),
        filled=frozenset(attnum for attnum, _ in filled),
    )


def _inserted(
    scope: Scope, relation: RelationDef, node: ast.MergeWhen
) -> tuple[list[tuple[int, Expr]], list[tuple[int, Expr]]]:
    """Return the values of INSERT's columns: given ones, and defaults."""
    columns: list[ColumnDef] = []
    values: Sequence[Expr] = ()
    written = node.values
    if written is not None:
        if any(column.steps for column in node.columns):
            whole, made = whole_columns(node.columns, relation)
            node, written = replace(node, columns=whole), tuple(made(written))
        columns = insert_columns(relation, node.columns)
        before, scope.clause = scope.clause, "VALUES"
        cells = insert_cells(scope, written)
        scope.clause = before
        columns = match_counts(node, columns, [cell.span for cell in cells], None)
        values = converted_row(cells, columns, node, scope.context)
    pairs = [(column.attnum, value) for column, value in zip(columns, values, strict=True)]
    given = {column.attnum for column in columns}
    filled = []
    for column in relation.live:
        default = default_of(column, scope.context) if column.attnum not in given else None
        if default is not None:
            filled.append((column.attnum, default))
    return pairs, filled


class _Extras:
    """Takes out of actions what only the source has: other ranges, system columns, sub-selects over WITH items."""

    def __init__(self) -> None:
        self.found: list[Expr] = []

    def moved(self, node: object, depth: int) -> Any:
        """Return ``node``, ``depth`` query levels inside an action, with Vars of range 1 for what was taken out."""
        if isinstance(node, Var):
            if node.range < 0 or node.level != depth or (node.range == 0 and node.attnum > 0):
                return node
            return replace(self._extra(replace(node, level=0)), level=depth, name=node.name)
        if depth == 0 and isinstance(node, SubLink) and _names_outer_cte(node.query, 0):
            return self._extra(node)
        inner = depth + 1 if isinstance(node, QueryBase) else depth
        return replace_children(node, lambda child: self.moved(child, inner))

    def _extra(self, expr: Expr) -> Var:
        if expr not in self.found:
            self.found.append(expr)
        return Var(type=expr.type, range=1, attnum=self.found.index(expr) + 1, span=expr.span)


def _names_outer_cte(node: object, depth: int) -> bool:
    """Tell whether a query reads a WITH item of the statement around it; ``depth``: query levels entered."""
    if isinstance(node, CteRange):
        return node.level >= depth
    inner = depth + 1 if isinstance(node, QueryBase) else depth
    return any(_names_outer_cte(child, inner) for child in children(node))
