"""WITH items that the rewriting of sub-queries makes (``unnest``), moved from the query that reads them to
the whole statement's.

They read nothing of the queries around them, and DuckDB fails on WITH in what is itself correlated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from planner import query as q
from planner.query.exprs import free_levels
from planner.query.rewrite import replace_children
from planner.query.walk import children

MADE: Final = "*"
"""How the names of such items begin, which no text can name."""


def hoisted(query: q.QueryExpr) -> q.QueryExpr:
    """Return a whole statement's query with the items that were made for its sub-queries at its top."""
    moved: list[q.Cte] = []
    made: q.QueryExpr = _change(query, 0, (), moved)
    return made if not moved else replace(made, ctes=(*moved, *made.ctes))


def _change(node: object, entered: int, names: tuple[dict[str, str], ...], moved: list[q.Cte]) -> Any:
    """Return a node without the items that ``moved`` gets.

    ``entered``: queries around the node where it will be; ``names``: new ones, by the queries around it where it is.
    """
    if isinstance(node, q.CteRange):
        known = names[-1 - node.level] if node.level < len(names) else {}
        if node.name in known:
            return replace(node, name=known[node.name], level=entered - 1)
        return node
    if not isinstance(node, q.QueryBase):
        return replace_children(node, lambda child: _change(child, entered, names, moved))
    own: dict[str, str] = {}
    inner = (*names, own)
    for cte in node.ctes:
        if cte.name.startswith(MADE) and _is_closed(cte.query, inner):
            made = _change(cte.query, 1, inner, moved)
            own[cte.name] = f"{MADE}{len(moved)}"
            moved.append(replace(cte, name=own[cte.name], query=made))
    rest = replace(node, ctes=tuple(cte for cte in node.ctes if cte.name not in own))
    return replace_children(rest, lambda child: _change(child, entered + 1, inner, moved))


def _is_closed(query: q.QueryExpr, names: tuple[dict[str, str], ...]) -> bool:
    """Return whether a query reads no columns and no WITH items around it but such as are moved."""
    return free_levels(query) == ([], []) and _reads_moved(query, 0, names)


def _reads_moved(node: object, inside: int, names: tuple[dict[str, str], ...]) -> bool:
    """Return whether the WITH items that a node reads from around its ``inside`` innermost queries are all moved."""
    if isinstance(node, q.CteRange) and node.level >= inside:
        out = node.level - inside
        return out < len(names) and node.name in names[-1 - out]
    inner = inside + isinstance(node, q.QueryBase)
    return all(_reads_moved(child, inner, names) for child in children(node))
