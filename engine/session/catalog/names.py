"""Relations by name: as DROP names them, along the search path, and as messages show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.base.quoting import quote_identifier
from planner.catalog import RelationDef
from planner.catalog.relation_kinds import RELATION_KINDS

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


def shown_name(session: Session, relation: RelationDef) -> str:
    """Return a relation's name as messages show it: qualified unless the search path finds it, quoted if need be."""
    catalog = session.catalog
    name = quote_identifier(relation.name)
    qualified = f"{quote_identifier(relation.schema)}.{name}"
    for schema in session.search_path:
        found = catalog.relation(schema, relation.name)
        if found is not None:
            return name if found.oid == relation.oid else qualified
    return qualified


def described(session: Session, relation: RelationDef) -> str:
    """Return a relation with what it is, as errors and notices name it."""
    return f"{RELATION_KINDS[relation.kind].word} {shown_name(session, relation)}"
