"""Whether WITH changes data, and what changes read from it: told from the text, before anything is bound.

    WITH d AS (DELETE FROM t RETURNING id) SELECT ...               modifies
    WITH a AS (SELECT 1 n) INSERT INTO t ... RETURNING (SELECT n FROM a)    read_by_changes: {a}

Such a statement runs in parts (``planner.bind.change.with_items``).
"""

from __future__ import annotations

from typing import TypeGuard

from planner import ast
from planner.bind.query.with_ import QUERIES, references

_CARRIERS = (*QUERIES, ast.Insert, ast.Update, ast.Delete, ast.Merge)
CHANGES = (ast.Insert, ast.Update, ast.Delete)


def modifies(node: object) -> TypeGuard[ast.Select]:
    """Tell whether a statement has an item in its WITH that changes data."""
    if not isinstance(node, _CARRIERS) or node.with_ is None:
        return False
    return any(isinstance(item.query, CHANGES) for item in node.with_.ctes)


def runs_in_parts(node: object) -> bool:
    """Tell whether a statement has to run in parts: its WITH changes data, or its own changes read from it."""
    return modifies(node) or bool(read_by_changes(node))


def read_by_changes(node: object) -> set[str]:
    """Return the WITH items that ON CONFLICT and RETURNING of an INSERT name: its source cannot hand them over."""
    if not isinstance(node, ast.Insert) or node.with_ is None:
        return set()
    names = frozenset(item.name for item in node.with_.ctes)
    clauses = (*node.returning, *([node.on_conflict] if node.on_conflict is not None else ()))
    return {reference.name for clause in clauses for reference in references(clause, names)}
