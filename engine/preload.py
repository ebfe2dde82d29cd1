"""What statements import or make of facts when they first need it, done ahead: on the loop the first aggregate would cost 0.3 s.

The server listens before it has these modules, so that a restart is short; a thread brings them in at once after.
A statement that is faster imports what it needs itself, as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.catalog.builtin_relations import column_domains
from planner import bind, builtins
from planner.facts import INT4
from planner.lower import build
from planner.patterns import charset
from planner.textsearch import dictionaries
from planner.type_order import default_less

if TYPE_CHECKING:
    from engine.catalog.virtual import VirtualCatalog


def preload(virtual: VirtualCatalog) -> None:
    """Import the binders of all statements and the engine forms of all functions, make built-in catalog rows. For a thread; idempotent."""
    bind.load()
    builtins.load()
    column_domains()
    default_less(INT4)
    charset.preload()
    build.preload()
    dictionaries.preload()
    virtual.preload()
