"""The builtins table: Python, DuckDB and Spark forms of functions, operators, casts and aggregates."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from pgwire.give_way import give_way
from planner.builtins.registry import REGISTRY, Registry
from planner.query.expressions import FuncExpr, OpExpr


@functools.cache
def load() -> Registry:
    """Import every family module of this package and return the filled registry. LookupError for a builtin without a cost.

    The first statement after a start may be the one that does it: others run in between.
    """
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
        give_way()
    return REGISTRY


def looks_up(node: object) -> bool:
    """Tell whether an expression calls a function of something that users have made, which it looks up in the session's catalog."""
    if not isinstance(node, FuncExpr | OpExpr):
        return False
    row = load().functions.get(node.proc)
    return row is not None and row.of_users is not None and row.form_for(node.args)[1]


def searches(node: object) -> bool:
    """Tell whether an expression calls a function of full-text search that looks a configuration or dictionary up, be it by a setting."""
    if not isinstance(node, FuncExpr | OpExpr):
        return False
    row = load().functions.get(node.proc)
    form, needs_session = (None, False) if row is None else row.form_for(node.args)
    return form is not None and needs_session and form.__module__ == f"{__name__}.text_search"
