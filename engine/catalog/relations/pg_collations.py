"""Users' collations in pg_catalog, and what has one (PostgreSQL's own: ``pg_builtins``; what names one in an
expression: ``pg_functions``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from engine.catalog.graph import relations_naming
from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.sources import RowDict, of_each, relation
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_CLASS_OID, PG_NAMESPACE_OID, PG_TYPE_OID
from planner.catalog import RelationDef
from planner.catalog.collations import PG_COLLATION
from planner.conversion.collations import collation_of
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


@relation("pg_collation", "catalog")
def users_collations(session: Reading) -> Iterator[RowDict]:
    """Yield pg_collation of users' collations."""
    for item in session.catalog.collations():
        yield {
            "oid": item.oid, "collname": item.name, "collnamespace": item.schema_oid, "collowner": item.owner,
            "collprovider": "c", "collisdeterministic": True, "collencoding": item.encoding, "collcollate": item.collate,
            "collctype": item.ctype, "collversion": item.version,
        }  # fmt: skip


def _by_collation(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef]:
    """Return the relations that may have a collation."""
    if catalog.collation_by_oid(value) is None:
        return ()
    return [item for item in relations_naming(catalog, [value]) if not item.virtual]


@of_each("pg_depend", keys={"refobjid": _by_collation})
def relations_depend_on_collations(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend of columns, indexes and divided tables: on users' collations."""
    if item.kind == "i":
        return  # with its table
    for column in item.live:
        if column.collation >= FIRST_USER_OID:
            yield depends(PG_CLASS_OID, item.oid, PG_COLLATION, column.collation, sub=column.attnum)
    by_attnum = {column.attnum: column for column in item.columns}
    for index in item.every_index:
        written = index.collations or (0,) * len(index.attnums)
        for attnum, own in zip(index.attnums, written, strict=False):
            collation = own or (collation_of(by_attnum[attnum]) if attnum in by_attnum else 0)
            if collation >= FIRST_USER_OID:
                yield depends(PG_CLASS_OID, index.oid, PG_COLLATION, collation)
    for collation in item.partition_key.collations if item.partition_key is not None else ():
        if collation >= FIRST_USER_OID:
            yield depends(PG_CLASS_OID, item.oid, PG_COLLATION, collation)


@relation("pg_depend", "catalog")
def collations_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of collations on their schemas, of domains and ranges on their collations."""
    for item in session.catalog.collations():
        yield depends(PG_COLLATION, item.oid, PG_NAMESPACE_OID, item.schema_oid)
    for made in session.catalog.user_types():
        if made.collation >= FIRST_USER_OID:
            yield depends(PG_TYPE_OID, made.oid, PG_COLLATION, made.collation)
            if made.is_domain:
                yield depends(PG_TYPE_OID, made.array_oid, PG_COLLATION, made.collation)
