"""What has a name in a schema and nothing that moves with it: where a new one goes, where a name is looked
up, and ALTER of each kind.

ALTER CONVERSION c RENAME TO d        AlterConversion(object=16400, name=d)
ALTER OPERATOR CLASS k USING btree SET SCHEMA s
ALTER TEXT SEARCH DICTIONARY d OWNER TO r
ALTER COLLATION g SET SCHEMA s        one binder for all, told apart by ``KINDS`` (``planner.bind.define.alter_placed``)
"""

from __future__ import annotations

from typing import Final

from planner import ast
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext

PG_CATALOG: Final = "pg_catalog"


def schemas_of(context: BindContext, name: ast.Name) -> list[str]:
    """Return where a name is looked up, temporary schemas apart. Raises SqlError 3F000, 42501."""
    if len(name) == 1:
        return [schema for schema in context.search_path if not schema.startswith("pg_temp")]
    context.check_open(name[-2])
    if not context.has_schema(name[-2]):
        raise SqlError("3F000", f'schema "{name[-2]}" does not exist')
    return [name[-2]]


def creation_schema(context: BindContext, name: ast.Name, what: str) -> str:
    """Return the schema that a new object goes to. Raises SqlError 3F000, 42501; 0A000 for a temporary one,
    ``what``: an operator class.
    """
    if len(name) > 1:
        schema = name[-2]
        if schema != "pg_temp" and not context.has_schema(schema):
            raise SqlError("3F000", f'schema "{schema}" does not exist')
    else:
        found = (s for s in context.search_path if s != PG_CATALOG and not s.startswith("pg_temp"))
        schema = next(found, "")
        if not schema:
            raise SqlError("3F000", "no schema has been selected to create in")
    if schema.startswith("pg_temp"):
        raise not_supported(f"a temporary {what}")
    return schema
