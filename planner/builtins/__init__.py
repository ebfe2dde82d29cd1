"""The builtins table: Python, DuckDB and Spark forms of functions, operators, casts and aggregates."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from planner.builtins.registry import REGISTRY, Registry


@functools.cache
def load() -> Registry:
    """Import every family module of this package and return the filled registry."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return REGISTRY
