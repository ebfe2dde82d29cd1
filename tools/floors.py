"""The floors of each package: which folder may use which.

A module may use its own floor and those below it. A floor is a folder or module of the package, the longest that fits a module decides; a module that
no floor has is an error, so that a new folder is given a place. ``tools/imports.py`` counts the imports that point up, ``--floors`` names them.

Of ``engine``: ``server`` puts all together; ``connection`` serves the protocol; ``statements`` runs one of any class; ``feeds`` are sources and
subscriptions; ``definitions`` DDL; ``programs`` functions; ``changes`` what writes; ``plans`` queries; ``executors`` what runs them; ``session``
what a session has; ``catalog`` what there is; ``base`` the rest.
"""

from __future__ import annotations

from typing import Final

FLOORS: Final[dict[str, tuple[str, ...]]] = {
    "pgwire": (
        "sqlstate", "oids", "errors", "bounded", "kept", "give_way", "release_pages", "release", "voice", "long",
        "codecs", "backend", "messages", "state", "connection",
        "auth", "tcp", "session", "server", "client",
    ),
    "planner": (
        "base", "facts", "types", "ast", "catalog", "query", "statements", "parse", "functions.costs", "functions.registry",
        "functions.session", "functions.inline", "lower.kit", "geometry", "patterns", "textsearch", "functions", "lower.forms",
        "evaluate", "conversion", "indexing", "deparse", "partitions", "bind.context", "bind.scope", "rules", "plpgsql", "bind",
        "lower", "information",
    ),
    "txn": (
        "base", "values", "persist", "mvcc", "locks", "wal", "log", "transaction", "upkeep", "api", "inspect", "store",
    ),
    "engine": (
        "base", "catalog", "session", "executors", "plans", "changes", "programs", "definitions", "feeds", "statements",
        "connection", "server", "__main__",
    ),
}  # fmt: skip
"""From the lowest to the highest."""

_HEIGHTS: Final = {
    f"{package}.{name}": height for package, names in FLOORS.items() for height, name in enumerate(names)
}


def floor_of(module: str) -> str:
    """Return the floor of a module, without its package. Raises KeyError where none has it."""
    package = module.partition(".")[0]
    name = module
    while name not in _HEIGHTS:
        name, dot, _ = name.rpartition(".")
        if not dot:
            raise KeyError(module)
    return name.removeprefix(f"{package}.")


def points_up(module: str, imported: str) -> bool:
    """Tell whether an import of one module of a package by another points up; what stands at its root is for all."""
    package = module.partition(".")[0]
    if package in (module, imported):
        return False
    return _HEIGHTS[f"{package}.{floor_of(module)}"] < _HEIGHTS[f"{package}.{floor_of(imported)}"]
