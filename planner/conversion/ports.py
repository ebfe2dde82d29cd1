"""What is asked of the binder from below: stored texts that are evaluated where values are converted and rows
are divided.

``planner.bind.supplied`` has all of them answered before anything is bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from planner.base.port import Port
from planner.catalog import Catalog, RelationDef
from planner.functions.session import EvalSession
from planner.query import Expr

Demand: TypeAlias = Callable[[Any, EvalSession | None], None]
"""Raises SqlError for a value (None: NULL) that breaks it."""

DEMAND: Final[Port[Callable[[Catalog, int], Demand | None]]] = Port("what a domain demands of values")
KEY_EXPR: Final[Port[Callable[[str, RelationDef, Catalog], Expr]]] = Port("the expression of a partition key")

PORTS: Final = (DEMAND, KEY_EXPR)
