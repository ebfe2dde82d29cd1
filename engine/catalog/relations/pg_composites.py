"""Composite types in the catalogs: pg_type, pg_depend and the standard's views; what they have as relations:
``pg_catalog``.

pg_type (typtype c) .typrelid ──> pg_class (relkind c) .reltype ──> pg_type
└── pg_attribute                 COMMENT ON COLUMN type.attribute is about this
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.information.schema import type_columns
from engine.catalog.relations.pg_row_types import RECORD_IN, RECORD_OUT, RECORD_RECV, RECORD_SEND
from engine.catalog.relations.pg_types import array_row, common_columns, type_acl_of
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_CLASS_OID, PG_TYPE_OID
from planner.catalog import TypeDef

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


RECORD_KEPT: Final[RowDict] = {
    "typlen": -1, "typoutput": RECORD_OUT, "typsend": RECORD_SEND, "typalign": "d", "typstorage": "x",
}  # fmt: skip
"""How pg_type says that values of a composite type are kept and printed."""


def _composites(session: Reading) -> Iterator[TypeDef]:
    return (made for made in session.catalog.user_types() if made.kind == "c")


@relation("pg_type", "catalog")
def composite_types(session: Reading) -> Iterator[RowDict]:
    """Yield pg_type of composite types and the array types over them."""
    for made in _composites(session):
        yield {
            **common_columns(made), "oid": made.oid, "typname": made.name, "typlen": -1, "typtype": "c",
            "typcategory": "C", "typrelid": made.relation_oid, "typarray": made.array_oid, "typinput": RECORD_IN,
            "typoutput": RECORD_OUT, "typreceive": RECORD_RECV, "typsend": RECORD_SEND, "typalign": "d",
            "typstorage": "x", "typacl": type_acl_of(session, made),
        }  # fmt: skip
        yield {**array_row(made), "typalign": "d"}


@relation("pg_depend", "catalog")
def composites_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of composite types: their rows of pg_class on them."""
    for made in _composites(session):
        yield depends(PG_CLASS_OID, made.relation_oid, PG_TYPE_OID, made.oid, "i")


@relation("information_schema.user_defined_types", "catalog")
def user_defined_types(session: Reading) -> Iterator[RowDict]:
    """Yield user_defined_types: composite types by themselves."""
    for made in _composites(session):
        yield {
            "user_defined_type_catalog": session.database, "user_defined_type_schema": made.schema,
            "user_defined_type_name": made.name, "user_defined_type_category": "STRUCTURED", "is_instantiable": "YES",
        }  # fmt: skip


@relation("information_schema.attributes", "catalog")
def attributes(session: Reading) -> Iterator[RowDict]:
    """Yield attributes of composite types by themselves."""
    for made in _composites(session):
        for column in made.attributes:
            if column.dropped:
                continue
            described = dict(type_columns(session, column))
            yield {
                "udt_catalog": session.database, "udt_schema": made.schema, "udt_name": made.name,
                "attribute_name": column.name, "ordinal_position": column.attnum, "is_nullable": "YES",
                "attribute_udt_catalog": session.database, "attribute_udt_schema": described.pop("udt_schema"),
                "attribute_udt_name": described.pop("udt_name"), "dtd_identifier": str(column.attnum),
                "is_derived_reference_attribute": "NO", **described,
            }  # fmt: skip
