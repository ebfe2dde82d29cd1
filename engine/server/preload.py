"""What statements import or make of facts when they first need it, done ahead: on the loop the first
aggregate would cost 0.3 s.

The server listens before it has these modules, so that a restart is short; a thread brings them in at once,
and sessions begin when it has. What large libraries bring along when they are first used belongs here
(tests/engine/test_preload.py); of the project it is all modules.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

import engine
import pgwire
import planner
import txn
from engine.catalog.relations.builtin_relations import column_domains
from pgwire.codecs.time import zone
from planner import bind
from planner import functions as builtins
from planner.conversion.order import default_less
from planner.facts import INT4
from planner.lower.kit import build
from planner.patterns import charset
from planner.textsearch import dictionaries

if TYPE_CHECKING:
    from engine.session.catalog.virtual import VirtualCatalog


def preload(virtual: VirtualCatalog) -> None:
    """Import all modules, with the binders of all statements and the engine forms of all functions, make
    built-in catalog rows. For a thread; idempotent.
    """
    bind.load()
    builtins.load()
    column_domains()
    default_less(INT4)
    charset.preload()
    build.preload()
    dictionaries.preload()
    zone.names()
    virtual.preload()
    pc.add(pa.array([1]), 1)  # Arrow looks for pandas and dateutil when it is first given a number
    for package in (pgwire, planner, txn, engine):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
