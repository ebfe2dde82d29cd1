"""Domains in pg_type, pg_constraint and pg_depend, and in information_schema."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.information.schema import collation_columns, type_columns
from engine.catalog.relations.pg_builtins import DOMAIN_IN, DOMAIN_RECV
from engine.catalog.relations.pg_catalog import alignment
from engine.catalog.relations.pg_composites import RECORD_KEPT
from engine.catalog.relations.pg_ranges import INT4MULTIRANGE, INT4RANGE, range_row
from engine.catalog.relations.pg_types import array_row, common_columns, enum_functions, type_acl_of
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_CONSTRAINT_OID, PG_TYPE_OID, SUPERUSER_OID
from planner import facts as f
from planner.catalog import ColumnDef, TypeDef
from planner.catalog.information_domains import information_domains
from planner.catalog.relation_kinds import STANDARD_TABLES
from planner.catalog.rights import Rights
from planner.information.definitions import domain_constraint_text, shown_value
from planner.types.domains import base_type
from planner.types.facts import FIRST_UNPINNED, FIRST_USER_OID, element_of, format_type

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


def domains_of(session: Reading) -> Iterator[TypeDef]:
    """Yield users' domains."""
    return (made for made in session.catalog.user_types() if made.is_domain)


def all_domains(session: Reading) -> Iterator[TypeDef]:
    """Yield the domains of information_schema, and users'."""
    yield from (made for oid, made in information_domains().items() if made.oid == oid)
    yield from domains_of(session)


@functools.cache
def _builtin_types() -> Mapping[int, dict[str, str]]:
    return {int(row["oid"]): row for row in f.rows("types")}


@relation("pg_type", "catalog")
def domain_types(session: Reading) -> Iterator[RowDict]:
    """Yield pg_type of domains and the array types over them: how values are kept comes from what is under
    the domain.
    """
    for made in domains_of(session):
        under = base_type(made.base_type).oid
        row = _builtin_types().get(under)
        kept: RowDict
        if row is not None:
            kept = {
                "typlen": int(row["typlen"]), "typbyval": row["typbyval"] == "t", "typcategory": row["typcategory"],
                "typdelim": row["typdelim"], "typoutput": int(row["typoutput"]), "typsend": int(row["typsend"]),
                "typalign": row["typalign"], "typstorage": row["typstorage"],
            }  # fmt: skip
        elif element_of(under):
            array = array_row(session.catalog.type_by_oid(under) or made)
            kept = {**{name: array[name] for name in _KEPT}, "typalign": alignment(under)}
        elif (kind := f.facts().types[under].kind) == "c":
            kept = {**RECORD_KEPT, "typcategory": "C"}
        elif kind in ("r", "m"):
            ranges = session.catalog.type_by_oid(under) or made
            like = range_row(session, ranges, INT4RANGE if kind == "r" else INT4MULTIRANGE)
            kept = {name: like[name] for name in _KEPT if name in like}
        else:
            kept = enum_functions()
        yield {
            **common_columns(made), **kept, "oid": made.oid, "typname": made.name, "typtype": "d",
            "typarray": made.array_oid, "typinput": DOMAIN_IN, "typreceive": DOMAIN_RECV, "typnotnull": made.not_null,
            "typbasetype": made.base, "typtypmod": made.base_typmod, "typcollation": made.collation,
            "typndims": made.dims if made.dims >= 0 else int(element_of(made.base) != 0),
            "typdefault": _default(session, made),
            "typdefaultbin": made.default_sql, "typacl": type_acl_of(session, made),
        }  # fmt: skip
        yield {
            **array_row(made),
            "typcollation": made.collation,
            "typalign": "d" if alignment(made.oid) == "d" else "i",
        }


_KEPT = ("typlen", "typcategory", "typdelim", "typoutput", "typsend", "typalign", "typstorage")


def _default(session: Reading, made: TypeDef) -> str | None:
    """Return a domain's default as text: as whoever set it saw it, in PostgreSQL, too."""
    if made.default_sql is None:
        return None
    return made.default_shown or shown_value(session, made.default_sql)


@relation("pg_constraint", "catalog")
def domain_constraints(session: Reading) -> Iterator[RowDict]:
    """Yield pg_constraint of domains' CHECKs."""
    for made in all_domains(session):
        for check in made.checks:
            yield {
                "oid": check.oid, "conname": check.name, "connamespace": made.schema_oid, "contype": "c",
                "convalidated": check.validated, "contypid": made.oid, "conislocal": True,
                "connoinherit": False, "conbin": check.check_sql, "confupdtype": " ", "confdeltype": " ",
                "confmatchtype": " ",
            }  # fmt: skip


@relation("pg_depend", "catalog")
def domains_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of domains: on what they are over; of their constraints: on them."""
    for made in all_domains(session):
        if made.base >= FIRST_UNPINNED:
            yield depends(PG_TYPE_OID, made.oid, PG_TYPE_OID, made.base, "n")
        for check in made.checks:
            yield depends(PG_CONSTRAINT_OID, check.oid, PG_TYPE_OID, made.oid, "a")


# --- information_schema ---------------------------------------------------------------------------


def _rights(session: Reading) -> Rights:
    return Rights(session.rights_catalog, session.role)


def _owns(session: Reading, owner: int) -> bool:
    return _rights(session).owns(owner)


def _may_use(session: Reading, made: TypeDef) -> bool:
    return _owns(session, made.owner) or _rights(session).type(made)


@relation("information_schema.domains", "session")
def domains(session: Reading) -> Iterator[RowDict]:
    """Yield the domains that the user may use."""
    for made in all_domains(session):
        if _may_use(session, made):
            base = made.base_type
            # the view asks whether the domain is an array type, which it never is
            under = ColumnDef(attnum=1, name="", type=base, collation=made.collation)
            plain_name = "USER-DEFINED" if base.oid >= FIRST_USER_OID else format_type(base.oid)
            yield {
                "domain_catalog": session.database, "domain_schema": made.schema, "domain_name": made.name,
                "udt_catalog": session.database, "dtd_identifier": "1",
                "domain_default": _default(session, made),
                **type_columns(session, under), "data_type": plain_name, **collation_columns(session, under),
            }  # fmt: skip


@relation("information_schema.domain_constraints", "session")
def information_constraints(session: Reading) -> Iterator[RowDict]:
    """Yield the constraints of the domains that the user may use."""
    for made in all_domains(session):
        if _may_use(session, made):
            for check in made.checks:
                yield {
                    "constraint_catalog": session.database, "constraint_schema": made.schema,
                    "constraint_name": check.name, "domain_catalog": session.database,
                    "domain_schema": made.schema, "domain_name": made.name, "is_deferrable": "NO",
                    "initially_deferred": "NO",
                }  # fmt: skip


@relation("information_schema.check_constraints", "session")
def check_constraints(session: Reading) -> Iterator[RowDict]:
    """Yield the CHECKs of domains that the user owns."""
    for made in all_domains(session):
        if _owns(session, made.owner):
            for check in made.checks:
                text = domain_constraint_text(session, made, check, pretty=False)
                yield {
                    "constraint_catalog": session.database, "constraint_schema": made.schema,
                    "constraint_name": check.name, "check_clause": text.removeprefix("CHECK ").removesuffix(" NOT VALID"),
                }  # fmt: skip


def _udt(session: Reading, oid: int) -> RowDict:
    found = session.catalog.type_by_oid(oid)
    if found is not None:
        name = found.names[oid]
        return {"udt_catalog": session.database, "udt_schema": found.schema, "udt_name": name}
    return {
        "udt_catalog": session.database,
        "udt_schema": "pg_catalog",
        "udt_name": f.facts().types[oid].name,
    }


@relation("information_schema.domain_udt_usage", "session")
def domain_udt_usage(session: Reading) -> Iterator[RowDict]:
    """Yield what the domains are over whose base types the user owns."""
    for made in all_domains(session):
        found = session.catalog.type_by_oid(made.base)
        if _owns(session, found.owner if found is not None else SUPERUSER_OID):
            yield {
                **_udt(session, made.base), "domain_catalog": session.database, "domain_schema": made.schema,
                "domain_name": made.name,
            }  # fmt: skip


@relation("information_schema.column_domain_usage", "session")
def column_domain_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the columns of domains that the user owns."""
    for item in session.catalog.user_relations():
        if item.kind not in STANDARD_TABLES:
            continue
        for column in item.live:
            made = session.catalog.type_by_oid(column.domain) if column.domain else None
            if made is not None and made.oid == column.domain and _owns(session, made.owner):
                yield {
                    "domain_catalog": session.database, "domain_schema": made.schema, "domain_name": made.name,
                    "table_catalog": session.database, "table_schema": item.schema, "table_name": item.name,
                    "column_name": column.name,
                }  # fmt: skip
