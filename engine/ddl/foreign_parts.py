"""Foreign-data wrappers, servers and user mappings by oid: what is of what, who owns it, what it is called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

from engine.catalog.state import CatalogSnapshot
from engine.reads.plans import Replan
from planner.builtins.system_describe import describe_object
from planner.catalog.foreign import ForeignDef, MappingDef, ServerDef, WrapperDef
from planner.errors import SqlError

if TYPE_CHECKING:
    from engine.connection.session import Session

_Kind = TypeVar("_Kind", WrapperDef, ServerDef, MappingDef)


def foreign_of(catalog: CatalogSnapshot, kind: type[_Kind], oid: int) -> _Kind:
    """Return an object of a kind. Raises Replan where it has been dropped since the plan was made."""
    found = catalog.foreign_by_oid(oid)
    if not isinstance(found, kind):
        raise Replan
    return found


def words(session: Session, item: ForeignDef) -> str:
    """Return what messages about what depends on what call an object."""
    return describe_object(session, item.class_oid, item.oid, 0) or ""


def with_dependents(catalog: CatalogSnapshot, asked: Sequence[ForeignDef]) -> dict[int, ForeignDef]:
    """Return objects with all that is of them, by oid: servers with a wrapper, user mappings with a server."""
    every = {item.oid: item for item in asked}
    for item in catalog.foreign():  # the oldest first: what is of something is younger than it
        of = (
            item.wrapper
            if isinstance(item, ServerDef)
            else item.server
            if isinstance(item, MappingDef)
            else 0
        )
        if of in every:
            every[item.oid] = item
    return every


def owned_by(catalog: CatalogSnapshot, roles: Collection[int]) -> list[ForeignDef]:
    """Return what roles own, oldest first; a user mapping is its role's."""
    return [item for item in catalog.foreign() if item.owner in roles]


def validator_of(catalog: CatalogSnapshot, server: ServerDef) -> int:
    """Return the function that looks at options of what is of a server, 0 for none."""
    return foreign_of(catalog, WrapperDef, server.wrapper).validator


def no_handler(wrapper: WrapperDef) -> SqlError:
    """Return the error for what only a handler could do."""
    return SqlError("55000", f'foreign-data wrapper "{wrapper.name}" has no handler')
