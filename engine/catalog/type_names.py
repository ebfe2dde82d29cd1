"""Names of types: those of array types are chosen, with as many underscores as make them unique.

CREATE TYPE a AS ENUM ()       array type _a
CREATE TABLE _a (b int)        table _a; the array type of a is __a from then on (``engine.definitions.type_names``)
"""

from __future__ import annotations

from planner.catalog import Catalog
from planner.catalog.relation_kinds import ROW_TYPED
from planner.parse.long_names import cut


def is_type(catalog: Catalog, schema: str, name: str) -> bool:
    """Tell whether a user's type, or the row type of a relation, has a name."""
    relation = catalog.relation(schema, name)
    return catalog.type_oid(schema, name) is not None or (relation is not None and relation.kind in ROW_TYPED)


def array_name(catalog: Catalog, schema: str, name: str) -> str:
    """Return what the array type over a type that is to be called ``name`` is called."""
    wanted = cut("_" + name)
    while wanted == name or is_type(catalog, schema, wanted):
        wanted = cut("_" + wanted)
    return wanted
