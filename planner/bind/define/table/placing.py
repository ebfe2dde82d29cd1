"""Where a new relation goes: its schema, and whether it is permanent, temporary or unlogged.

CREATE TEMP TABLE t         pg_temp, t
CREATE TABLE s.t            s, p
CREATE TABLE t              the first schema of the search path that is none of pg_catalog
"""

from __future__ import annotations

from typing import Literal

from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.context import BindContext


def creation_schema(context: BindContext, node: ast.TableRef, span: Span | None = None) -> str:
    """Return the schema a new relation goes to; ``pg_temp`` for temporary ones.

    ``span``: where errors point to; PostgreSQL looks the schema up without the statement's text for all but
    CREATE TABLE.

    The path's temporary schema counts where the setting lists it: behind pg_catalog, which is searched first then.
    Raises SqlError 3F000 (no such schema, nothing to create in), 42P16 (temporary in a permanent schema).
    """
    if node.schema.startswith("pg_temp_"):
        context.check_open(node.schema, node.span)
        if context.catalog.schema(node.schema) is not None and node.schema not in context.search_path:
            raise SqlError("42P16", "cannot create relations in temporary schemas of other sessions")
    own = node.schema == "pg_temp" or (
        node.schema.startswith("pg_temp_") and node.schema in context.search_path
    )
    if node.persistence == "t" or own:
        if node.schema and not own:
            if context.catalog.schema(node.schema) is None:
                raise SqlError("3F000", f'schema "{node.schema}" does not exist', span=span)
            raise SqlError("42P16", "cannot create temporary relation in non-temporary schema", span=span)
        return "pg_temp"
    if node.schema:
        if context.catalog.schema(node.schema) is None:
            raise SqlError("3F000", f'schema "{node.schema}" does not exist', span=span)
        return node.schema
    listed = False
    for name in context.search_path:
        if name == "pg_catalog":
            listed = True
        elif not name.startswith("pg_temp"):
            return name
        elif listed:
            return "pg_temp"
    raise SqlError("3F000", "no schema has been selected to create in", span=span)


def persistence_of(node: ast.TableRef, schema: str) -> Literal["p", "t", "u"]:
    """Return the persistence written, or ``t`` for what goes to ``schema`` pg_temp."""
    return "t" if schema == "pg_temp" else node.persistence
