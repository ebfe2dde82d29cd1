"""Statements that read a named subscription: which one, and the same statement with the query that it stands for."""

from __future__ import annotations

from dataclasses import replace

from planner import ast
from planner.parse import parse


def name_in(node: ast.StatementNode) -> str | None:
    """Return the named subscription that a statement reads, None if there is none."""
    inner = node
    if isinstance(node, ast.DeclareCursor | ast.Copy):
        inner = node.query or node
    elif isinstance(node, ast.Explain):
        inner = node.statement
    return inner.subscription if isinstance(inner, ast.Subscribe) else None


def with_query(node: ast.StatementNode, sql: str) -> ast.StatementNode:
    """Return the statement with the query of the subscription that it names."""
    if isinstance(node, ast.DeclareCursor | ast.Copy):
        if not isinstance(node.query, ast.Subscribe):
            raise AssertionError(f"a query is named in {type(node.query).__name__}, not SUBSCRIBE")
        return replace(node, query=with_query(node.query, sql))  # type: ignore[arg-type]
    if isinstance(node, ast.Explain):
        return replace(node, statement=with_query(node.statement, sql))
    if not isinstance(node, ast.Subscribe):
        raise AssertionError(f"a query is named in {type(node).__name__}, not SUBSCRIBE")
    query = parse(sql)[0].statement
    if not isinstance(query, ast.Select | ast.SetOp | ast.Values):
        raise AssertionError(f"a named query is {type(query).__name__}")
    return replace(node, query=query)
