"""Relations as DROP names them: along the search path, pg_temp standing for the session's own schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalog import RelationDef

if TYPE_CHECKING:
    from engine.session.session import Session


def schema_called(session: Session, name: str) -> str:
    """Return what a schema is called where ``pg_temp`` may stand for the session's own."""
    return session.temp_schema if name == "pg_temp" else name


def resolve(session: Session, schema: str, name: str) -> RelationDef | None:
    """Return the relation that a name in DROP means (schema "": by the search path), or None."""
    catalog = session.catalog
    schema = schema_called(session, schema)
    if schema:
        if catalog.schema(schema) is None:
            return None
        return catalog.relation(schema, name)
    for entry in session.search_path:
        found = catalog.relation(entry, name)
        if found is not None:
            return found
    return None
