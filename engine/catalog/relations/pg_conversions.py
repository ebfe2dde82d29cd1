"""Users' conversions between encodings in pg_catalog (PostgreSQL's own: ``pg_builtins``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_NAMESPACE_OID
from planner.catalog.conversions import PG_CONVERSION

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


@relation("pg_conversion", "catalog")
def users_conversions(session: Reading) -> Iterator[RowDict]:
    """Yield pg_conversion of users' conversions."""
    for item in session.catalog.conversions():
        yield {
            "oid": item.oid, "conname": item.name, "connamespace": item.schema_oid, "conowner": item.owner,
            "conforencoding": item.source, "contoencoding": item.target, "conproc": item.function,
            "condefault": item.default,
        }  # fmt: skip


@relation("pg_depend", "catalog")
def conversions_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of conversions on their schemas."""
    for item in session.catalog.conversions():
        yield depends(PG_CONVERSION, item.oid, PG_NAMESPACE_OID, item.schema_oid)
