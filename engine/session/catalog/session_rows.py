"""Registering makers of catalog rows that look at sessions and the server, not at the catalog alone.

All others use ``engine.catalog.relations.sources``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias, cast

from engine.catalog.relations import sources
from engine.catalog.relations.sources import RowDict, Scope

if TYPE_CHECKING:
    from engine.session.session import Session

Maker: TypeAlias = "Callable[[Session], Iterable[RowDict]]"


def relation(name: str, scope: Scope) -> Callable[[Maker], Maker]:
    """As ``sources.relation``: those who read are sessions, whatever less most makers want to know of them."""
    return cast("Callable[[Maker], Maker]", sources.relation(name, scope))
