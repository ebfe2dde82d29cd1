"""pg_type, pg_enum and pg_depend of users' types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.acl_texts import acl_of
from engine.catalog.referred import by_referred_type
from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.sources import RowDict, of_each, relation
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    PG_NAMESPACE_OID,
    PG_TYPE_OID,
    row_array_oid,
    row_type_oid,
)
from planner.catalog import FIRST_RANK, RelationDef, TypeDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.types.facts import FIRST_UNPINNED

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

ENUM_IN, ENUM_OUT, ENUM_RECV, ENUM_SEND = 3506, 3507, 3532, 3533
ARRAY_IN, ARRAY_OUT, ARRAY_RECV, ARRAY_SEND, ARRAY_SUBSCRIPT = 750, 751, 2400, 2401, 6179


@relation("pg_type", "catalog")
def users_types(session: Reading) -> Iterator[RowDict]:
    """Yield pg_type of enums and the array types over them (domains: ``engine.catalog.relations.pg_domains``)."""
    for made in session.catalog.user_types():
        if made.kind == "e":
            yield {
                **common_columns(made), **enum_functions(), "oid": made.oid, "typname": made.name, "typtype": "e",
                "typarray": made.array_oid, "typinput": ENUM_IN, "typreceive": ENUM_RECV,
                "typacl": type_acl_of(session, made),
            }  # fmt: skip
            yield array_row(made)


def common_columns(made: TypeDef) -> RowDict:
    """Return what pg_type says of a user's type and of the array type over it."""
    return {
        "typnamespace": made.schema_oid, "typowner": made.owner, "typisdefined": True, "typdelim": ",", "typtypmod": -1,
        "typalign": "i",
    }  # fmt: skip


def enum_functions() -> RowDict:
    """Return how pg_type says that values of an enum are kept and printed."""
    return {
        "typlen": 4, "typbyval": True, "typcategory": "E", "typoutput": ENUM_OUT, "typsend": ENUM_SEND,
        "typstorage": "p", "typdelim": ",", "typalign": "i",
    }  # fmt: skip


def array_row(made: TypeDef) -> RowDict:
    """Return pg_type of the array type over a user's type."""
    return {
        **common_columns(made), "oid": made.array_oid, "typname": made.array_name, "typlen": -1, "typtype": "b",
        "typcategory": "A", "typelem": made.oid, "typinput": ARRAY_IN, "typoutput": ARRAY_OUT,
        "typreceive": ARRAY_RECV, "typsend": ARRAY_SEND, "typstorage": "x", "typsubscript": ARRAY_SUBSCRIPT,
    }  # fmt: skip


def type_acl_of(session: Reading, made: TypeDef) -> tuple[str, ...] | None:
    """Return a type's privileges as catalogs show them, None where they are the default ones."""
    return acl_of(session, PG_TYPE_OID, made.oid)


def _sort_order(rank: int) -> float:
    """Return PostgreSQL's number of a label: 1, 2, ... at first, one less for a label before the first one,
    the middle in between.

    The rank of a label before the first one is half of that one's, as ranks are positive.
    """
    if rank >= FIRST_RANK:
        return rank / FIRST_RANK
    halvings = FIRST_RANK.bit_length() - rank.bit_length()
    return 1 - halvings + (rank << halvings) / FIRST_RANK - 1


@relation("pg_enum", "catalog")
def pg_enum(session: Reading) -> Iterator[RowDict]:
    """Yield pg_enum."""
    for made in session.catalog.user_types():
        for label in made.labels:
            yield {
                "oid": label.oid, "enumtypid": made.oid, "enumsortorder": _sort_order(label.rank),
                "enumlabel": label.label,
            }  # fmt: skip


@relation("pg_depend", "catalog")
def types_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of types: on their schema."""
    for made in session.catalog.user_types():
        yield depends(PG_TYPE_OID, made.oid, PG_NAMESPACE_OID, made.schema_oid, "n")
        yield depends(PG_TYPE_OID, made.array_oid, PG_TYPE_OID, made.oid, "i")


@of_each("pg_depend", keys={"refobjid": by_referred_type})
def columns_depend(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend of columns: on users' types; of row types: on their relations."""
    if item.kind in ROW_TYPED:
        row = row_type_oid(item.oid)
        yield depends(PG_TYPE_OID, row, PG_CLASS_OID, item.oid, "i")
        yield depends(PG_TYPE_OID, row_array_oid(item.oid), PG_TYPE_OID, row, "i")
    if item.of_type:
        yield depends(PG_CLASS_OID, item.oid, PG_TYPE_OID, item.of_type, "n")
    for column in item.live if item.kind != "i" else ():
        oid = column.declared.oid
        if oid >= FIRST_UNPINNED:
            yield depends(PG_CLASS_OID, item.oid, PG_TYPE_OID, oid, "n", sub=column.attnum)
