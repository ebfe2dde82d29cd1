"""Whose rights and policies count for what a text reads that has been put into a statement.

    the body of a function, in the place of its call          whoever runs the statement
    a view's condition, in a change through the view          the view's owner; of a security_invoker view whoever runs the statement
    anything else                                             as where it stands: in a view's query its owner

The ranges of such a text are marked (``Range.invoker``, ``Range.within``) and looked at by
``planner.bind.query.row_security`` and by the check of privileges. What a view that they read reads in its
turn is that view's affair (manual 41.5, CREATE VIEW).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from planner.bind.define.table.options import is_on
from planner.catalog import RelationDef
from planner.query import RelationRange, SubLink, SubqueryRange
from planner.query.rewrite import replace_children
from planner.query.walk import walk

_Node = TypeVar("_Node")


def invokes(view: RelationDef) -> bool:
    """Tell whether what a view reads is asked of whoever uses it (security_invoker), be it from within another view."""
    return is_on(view.options, "security_invoker")


def is_barrier(view: RelationDef) -> bool:
    """Tell whether a view shows its rows to nothing outside of it before it has chosen them (security_barrier)."""
    return is_on(view.options, "security_barrier")


def as_caller(node: _Node, *, looked_up: bool) -> _Node:
    """Return a tree whose ranges are read as whoever runs the statement; ``looked_up``: as ``Range`` has it."""
    made: _Node = _marked(node, invoker=True, **({"looked_up": True} if looked_up else {}))
    return made


def as_view(node: _Node, view: int) -> _Node:
    """Return an expression of a view whose sub-selects are read as that view reads; 0: as they are read anyway."""
    if not view or not any(isinstance(found, SubLink) for found in walk(node)):
        return node
    made: _Node = _marked(node, within=view)
    return made


def _marked(node: object, **marks: Any) -> Any:
    if isinstance(node, RelationRange) and node.sample is not None:
        node = replace(node, sample=_marked(node.sample, **marks))
    if isinstance(node, RelationRange) or (isinstance(node, SubqueryRange) and node.view is not None):
        return replace(node, **marks)
    return replace_children(node, lambda child: _marked(child, **marks))
