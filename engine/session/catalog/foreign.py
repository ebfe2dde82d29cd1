"""Foreign-data wrappers, servers, user mappings by oid; what nobody can do with them, as no wrapper has a handler."""

from __future__ import annotations

from typing import TypeVar

from engine.catalog.state import CatalogSnapshot
from engine.session.plans.plan import Replan
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.catalog.foreign import MappingDef, ServerDef, WrapperDef

_Kind = TypeVar("_Kind", WrapperDef, ServerDef, MappingDef)


def foreign_of(catalog: CatalogSnapshot, kind: type[_Kind], oid: int) -> _Kind:
    """Return an object of a kind. Raises Replan where it has been dropped since the plan was made."""
    found = catalog.foreign_by_oid(oid)
    if not isinstance(found, kind):
        raise Replan
    return found


def no_handler(wrapper: WrapperDef) -> SqlError:
    """Return the error for what only a handler could do."""
    return SqlError("55000", f'foreign-data wrapper "{wrapper.name}" has no handler')


def no_reader(catalog: CatalogSnapshot, table: RelationDef) -> SqlError:
    """Return the error for rows of a foreign table, which only the handler of its wrapper could get or change."""
    return no_handler(foreign_of(catalog, WrapperDef, foreign_of(catalog, ServerDef, table.server).wrapper))
