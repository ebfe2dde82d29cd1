"""pg_default_acl: what ALTER DEFAULT PRIVILEGES has said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.acl_texts import acl_of
from engine.catalog.default_acls import PG_DEFAULT_ACL_OID, split
from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_NAMESPACE_OID

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

_FIRST_OID = 0xB000_0000  # above all that are allocated: lists have no oids of their own


@relation("pg_default_acl", "catalog")
def pg_default_acl(session: Reading) -> Iterator[RowDict]:
    """Yield pg_default_acl."""
    found = sorted(
        (acl.object_oid, acl.sub_id) for acl in session.catalog.acls() if acl.class_oid == PG_DEFAULT_ACL_OID
    )
    for number, (role, sub) in enumerate(found):
        schema, letter = split(sub)
        yield {
            "oid": _FIRST_OID + number, "defaclrole": role, "defaclnamespace": schema, "defaclobjtype": letter,
            "defaclacl": acl_of(session, PG_DEFAULT_ACL_OID, role, sub),
        }  # fmt: skip


@relation("pg_depend", "catalog")
def default_rights_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of what ALTER DEFAULT PRIVILEGES IN SCHEMA has said: on the schema."""
    for row in pg_default_acl(session):
        if row["defaclnamespace"]:
            yield depends(PG_DEFAULT_ACL_OID, row["oid"], PG_NAMESPACE_OID, row["defaclnamespace"], "a")
