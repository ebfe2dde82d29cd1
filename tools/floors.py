"""The floors of ``engine``: where each of its modules is to stand, and which imports point up from there.

A module may use its own floor and those below it. ``tools/imports.py`` counts the imports that do otherwise, ``--floors`` names them; a module that no
floor has is an error, so that a new one is given a place.

A pattern names a module, or a folder with all that is in it; the longest that fits a module decides. ``server`` puts all together; ``connection``
serves the protocol; ``statements`` runs one of any class; ``feeds`` are sources and subscriptions; ``definitions`` DDL; ``programs`` functions;
``changes`` what writes; ``plans`` queries; ``executors`` what runs them; ``session`` what a session has; ``catalog`` what there is; ``base`` the rest.
"""

from __future__ import annotations

from typing import Final

FLOORS: Final[dict[str, tuple[str, ...]]] = {
    "base": (
        "engine", "engine.access_rules", "engine.accounts", "engine.bulk.regular", "engine.bulk.server_files",
        "engine.config", "engine.connection.kept_rows", "engine.connection.pieces", "engine.connection.rows",
        "engine.connection.setting_classes", "engine.connection.setting_defs",
        "engine.connection.setting_lists", "engine.connection.setting_numbers", "engine.connection.setting_values",
        "engine.connection.settings", "engine.eager", "engine.errors", "engine.executor", "engine.explain",
        "engine.explain.formats", "engine.explain.texts", "engine.explain.tree", "engine.loop", "engine.memory",
        "engine.private_files", "engine.reads.weight", "engine.slices", "engine.stalls", "engine.tls",
        "engine.transaction.conflicts", "engine.transaction.limits", "engine.transaction.losses",
        "engine.transaction.outcomes",
    ),
    "catalog": (
        "engine.catalog", "engine.constraints.reference_texts", "engine.constraints.references",
        "engine.forgetting",
    ),
    "session": (
        "engine.catalog.ddl_wants", "engine.catalog.locks", "engine.catalog.view", "engine.catalog.wants",
        "engine.connection", "engine.connection.advisory", "engine.connection.channels",
        "engine.connection.demands", "engine.connection.derived", "engine.connection.identity",
        "engine.connection.interrupts", "engine.connection.limits", "engine.connection.portal",
        "engine.connection.session", "engine.connection.system", "engine.large_objects", "engine.reads.by_text",
        "engine.reads.caches", "engine.reads.plans", "engine.sequences", "engine.transaction",
    ),
    "executors": (
        "engine.explain.estimate", "engine.explain.logical", "engine.index", "engine.local", "engine.reads.arrow",
        "engine.reads.engine_query", "engine.reads.filters", "engine.reads.watched", "engine.spark",
        "engine.statistics",
    ),
    "plans": ("engine.reads",),
    "changes": ("engine.bulk", "engine.constraints", "engine.triggers", "engine.writes"),
    "programs": ("engine.plpgsql", "engine.routines"),
    "definitions": (
        "engine.constraints.define", "engine.ddl", "engine.sequences.define", "engine.triggers.define",
    ),
    "feeds": ("engine.sources", "engine.subscriptions"),
    "statements": (
        "engine.connection.session_statements", "engine.ddl.maintenance", "engine.explain.statement", "engine.run",
        "engine.transaction.block_statements", "engine.transaction.lock_table", "engine.transaction.retry",
        "engine.writes.copy",
    ),
    "connection": (
        "engine.connection.backend", "engine.connection.cursors", "engine.connection.extended",
        "engine.connection.function_call", "engine.connection.long_messages", "engine.connection.output",
        "engine.connection.prepared", "engine.connection.shared_portals", "engine.connection.simple",
        "engine.connection.statement_log",
    ),
    "server": (
        "engine.__main__", "engine.connection.admission", "engine.connection.server_directory",
        "engine.connection.server_reading", "engine.database", "engine.doctor", "engine.preload",
        "engine.sql_command", "engine.standing", "engine.upkeep",
    ),
}  # fmt: skip
"""From the lowest to the highest."""

HEIGHTS: Final = {name: height for height, name in enumerate(FLOORS)}
_PLACES: Final = {pattern: name for name, patterns in FLOORS.items() for pattern in patterns}


def floor_of(module: str) -> str:
    """Return the floor of a module of ``engine``. Raises KeyError where none has it."""
    pattern = module
    while pattern not in _PLACES or (pattern == "engine" and module != "engine"):
        pattern, dot, _ = pattern.rpartition(".")
        if not dot:
            raise KeyError(module)
    return _PLACES[pattern]


def points_up(module: str, imported: str) -> bool:
    """Tell whether an import of one module of ``engine`` by another points up."""
    return HEIGHTS[floor_of(module)] < HEIGHTS[floor_of(imported)]
