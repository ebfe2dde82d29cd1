"""Array types make room for what somebody calls as they are called (``engine.catalog.type_names``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.state import CatalogSnapshot
from engine.catalog.type_names import array_name, is_type
from planner.base.errors import SqlError

if TYPE_CHECKING:
    from engine.session.session import Session


async def make_room(session: Session, schema: str, name: str) -> None:
    """Give an array type that is called so another name, as PostgreSQL does before something is made, or
    renamed, that is to have this one.
    """
    catalog = session.catalog
    oid = catalog.type_oid(schema, name)
    made = catalog.type_by_oid(oid) if oid is not None else None
    if made is None or not made.chose(name):
        return
    other = array_name(catalog, schema, name)
    is_array = made.array_name == name
    renamed = replace(made, array_name=other) if is_array else replace(made, multirange_array_name=other)
    await session.view.change([renamed])


def check_free(catalog: CatalogSnapshot, schema: str, name: str) -> None:
    """Raise SqlError 42710 where a type, or the row type of a relation, has the name already."""
    if is_type(catalog, schema, name):
        raise SqlError("42710", f'type "{name}" already exists')
