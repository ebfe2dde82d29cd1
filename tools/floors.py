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
        "facts", "base", "types", "ast", "catalog", "query", "statements", "parse", "functions.costs", "functions.registry",
        "functions.session", "functions.inline", "patterns", "geometry", "textsearch", "conversion", "lower.kit",
        "functions : functions.aggregates : functions.extensions : functions.json : functions.numbers : functions.search : "
        "functions.system : functions.text : functions.time : functions.values",
        "evaluate", "indexing", "deparse", "partitions", "rules", "bind : plpgsql", "lower : lower.decorrelate : lower.query",
        "lower.forms", "information",
    ),
    "txn": (
        "base", "values", "persist", "mvcc", "locks", "wal", "log", "transaction", "upkeep", "api", "inspect", "store",
    ),
    "engine": (
        "base", "catalog", "session", "executors", "plans", "changes", "programs", "definitions", "feeds", "statements",
        "connection", "server", "__main__",
    ),
}  # fmt: skip
"""From the lowest to the highest; between colons stands what is on one floor."""

_HEIGHTS: Final = {
    f"{package}.{name}": height
    for package, names in FLOORS.items()
    for height, together in enumerate(names)
    for name in together.split(" : ")
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


def layers(package: str) -> tuple[str, ...]:
    """Return the floors of a package as import-linter has them: the highest first, and of a folder of which parts are floors the parts alone."""
    names = [name for together in FLOORS[package] for name in together.split(" : ")]
    above = {name for name in names if any(other.startswith(f"{name}.") for other in names)}
    return tuple(
        " : ".join(name for name in together.split(" : ") if name not in above)
        for together in reversed(FLOORS[package])
    )
