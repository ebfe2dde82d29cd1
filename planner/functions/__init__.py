"""The builtins table: Python, DuckDB and Spark forms of functions, operators, casts and aggregates."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Final

from pgwire.give_way import give_way
from planner.functions.registry import REGISTRY, Registry
from planner.query.expressions import FuncExpr, OpExpr

FAMILIES: Final = (__name__, "planner.lower.forms", "planner.information")
"""Packages whose modules register rows when they are imported."""


@functools.cache
def load() -> Registry:
    """Import every family of functions and their engine forms, and return the filled registry. LookupError
    for a builtin without a cost.

    The first statement after a start may be the one that does it: others run in between.
    """
    for family in FAMILIES:
        package = importlib.import_module(family)
        for module in pkgutil.walk_packages(package.__path__, f"{family}."):
            importlib.import_module(module.name)
            give_way()
    return REGISTRY


def looks_up(node: object) -> bool:
    """Tell whether an expression calls a function of something that users have made, which it looks up in the
    session's catalog.
    """
    if not isinstance(node, FuncExpr | OpExpr):
        return False
    row = load().functions.get(node.proc)
    return row is not None and row.of_users is not None and row.form_for(node.args)[1]


def searches(node: object) -> bool:
    """Tell whether an expression calls a function of full-text search that looks a configuration or
    dictionary up, be it by a setting.
    """
    if not isinstance(node, FuncExpr | OpExpr):
        return False
    row = load().functions.get(node.proc)
    form, needs_session = (None, False) if row is None else row.form_for(node.args)
    return form is not None and needs_session and form.__module__ == f"{__name__}.search.functions"
