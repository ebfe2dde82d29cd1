"""pg_type of rows: the type that a table's or view's rows have, and the array type over it.

    pg_class.reltype ──> pg_type (typtype c) .typrelid ──> pg_class
                              │ typarray
                              └─> pg_type (_name, typelem)      sequences and indexes have none, as since PostgreSQL 14

Every relation that can be read has one, the catalog's too: whoever follows the arrow finds a row. The oids of
pg_catalog's are PostgreSQL's: the facts hold their array types, which name the element. So are those of
information_schema's, which follow the oid of their relation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.catalog.relations.builtin_relations import virtual_relations
from engine.catalog.relations.sources import RowDict, by_oid, by_row_type, by_type_name, of_each, relation
from planner import facts as f
from planner.catalog import RelationDef
from planner.catalog.relation_kinds import COLUMNED

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

RECORD_IN, RECORD_OUT, RECORD_RECV, RECORD_SEND = 2290, 2291, 2402, 2403
ARRAY_IN, ARRAY_OUT, ARRAY_RECV, ARRAY_SEND = 750, 751, 2400, 2401


def row_types(item: RelationDef) -> tuple[int, int]:
    """Return the oids of a relation's row type and of the array type over it, zeros where it has none."""
    if item.kind == "c":  # its oid is the third of a composite type's
        return item.oid - 2, item.oid - 1
    return (0, 0) if item.kind not in COLUMNED else (item.row_type, item.row_array)


def _common(item: RelationDef) -> dict[str, Any]:
    return {
        "typnamespace": item.schema_oid, "typowner": item.owner, "typisdefined": True, "typdelim": ",", "typalign": "d",
        "typstorage": "x", "typlen": -1, "typtypmod": -1,
    }  # fmt: skip


def _row_type(item: RelationDef) -> RowDict:
    oid, array = row_types(item)
    return {
        **_common(item), "oid": oid, "typname": item.name, "typtype": "c", "typcategory": "C", "typrelid": item.oid,
        "typarray": array, "typinput": RECORD_IN, "typoutput": RECORD_OUT, "typreceive": RECORD_RECV,
        "typsend": RECORD_SEND,
    }  # fmt: skip


def _array_type(item: RelationDef) -> RowDict:
    element, oid = row_types(item)
    return {
        **_common(item), "oid": oid, "typname": "_" + item.name, "typtype": "b", "typcategory": "A", "typelem": element,
        "typinput": ARRAY_IN, "typoutput": ARRAY_OUT, "typreceive": ARRAY_RECV, "typsend": ARRAY_SEND,
    }  # fmt: skip


@relation("pg_type", "static")
def catalog_row_types(session: Reading) -> Iterator[RowDict]:
    """Yield pg_type of the rows of the catalog's relations, and the arrays over them that are not among the facts."""
    known = {row["oid"] for row in f.rows("types")}
    for item in virtual_relations():
        yield _row_type(item)
        if str(item.row_array) not in known:
            yield _array_type(item)


@of_each(
    "pg_type",
    keys={
        "oid": by_row_type,
        "typrelid": by_oid,
        "typarray": by_row_type,
        "typelem": by_row_type,
        "typname": by_type_name,
    },
)
def users_row_types(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_type of the rows of tables and views, and the arrays over them."""
    if row_types(item)[0] and item.kind != "c":
        yield _row_type(item)
        yield _array_type(item)
