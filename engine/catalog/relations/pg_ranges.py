"""Users' range types in the catalogs: pg_type, pg_range, pg_proc (their constructors), pg_depend.

pg_range .rngtypid ──> pg_type (typtype r)        .rngsubdiff ──> pg_proc
         .rngmultitypid ──> pg_type (typtype m)   constructors in pg_proc belong to the types
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.pg_catalog import alignment
from engine.catalog.relations.pg_types import array_row, common_columns, type_acl_of
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_NAMESPACE_OID, PG_PROC_OID, PG_TYPE_OID
from planner.catalog import RANGE_CONSTRUCTORS, TypeDef
from planner.facts import facts, rows
from planner.indexing.opclass import class_oid
from planner.types.domains import base_oid
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

INT4RANGE, INT4MULTIRANGE = "3904", "4451"
INTERNAL_LANGUAGE = 12
_SOURCES = ("range_constructor2", "range_constructor3", "multirange_constructor0", "multirange_constructor1", "multirange_constructor2")  # fmt: skip


def _ranges(session: Reading) -> Iterator[TypeDef]:
    return (made for made in session.catalog.user_types() if made.kind == "r")


@functools.cache
def _model(oid: str) -> Mapping[str, str]:
    return next(row for row in rows("types") if row["oid"] == oid)


def range_row(session: Reading, made: TypeDef, model: str) -> RowDict:
    """Return pg_type of a range type, or of its multirange type, as far as it is like that of another one."""
    row = _model(model)
    return {
        **common_columns(made), "typlen": -1, "typtype": row["typtype"], "typcategory": "R",
        "typinput": int(row["typinput"]), "typoutput": int(row["typoutput"]), "typreceive": int(row["typreceive"]),
        "typsend": int(row["typsend"]), "typalign": alignment(made.oid), "typstorage": "x",
        "typacl": type_acl_of(session, made),
    }  # fmt: skip


@relation("pg_type", "catalog")
def range_types(session: Reading) -> Iterator[RowDict]:
    """Yield pg_type of range types, their multirange types and the array types over both."""
    for made in _ranges(session):
        yield {
            **range_row(session, made, INT4RANGE), "oid": made.oid, "typname": made.name, "typarray": made.array_oid,
        }  # fmt: skip
        align = alignment(made.oid)
        yield {**array_row(made), "typalign": align}
        yield {
            **range_row(session, made, INT4MULTIRANGE), "oid": made.multirange, "typname": made.multirange_name,
            "typarray": made.multirange + 1,
        }  # fmt: skip
        yield {
            **array_row(made), "oid": made.multirange + 1, "typname": made.multirange_array_name,
            "typelem": made.multirange, "typalign": align,
        }  # fmt: skip


@relation("pg_range", "catalog")
def users_ranges(session: Reading) -> Iterator[RowDict]:
    """Yield pg_range of users' range types."""
    for made in _ranges(session):
        yield {
            "rngtypid": made.oid, "rngsubtype": made.base, "rngmultitypid": made.multirange,
            "rngcollation": made.collation, "rngsubopc": class_oid(base_oid(made.base), "btree"), "rngcanonical": 0,
            "rngsubdiff": made.subtype_diff,
        }  # fmt: skip


@relation("pg_proc", "catalog")
def constructors(session: Reading) -> Iterator[RowDict]:
    """Yield pg_proc of the constructors of users' range types."""
    for made in _ranges(session):
        for number in range(RANGE_CONSTRUCTORS):
            proc = facts().procs[made.first_constructor + number]
            yield {
                "oid": proc.oid, "proname": proc.name, "pronamespace": made.schema_oid, "proowner": made.owner,
                "prolang": INTERNAL_LANGUAGE, "procost": 1.0, "prorows": 0.0, "provariadic": proc.variadic,
                "prokind": "f", "prosecdef": False, "proleakproof": False, "proisstrict": proc.strict,
                "proretset": False, "provolatile": "i", "proparallel": "s", "pronargs": len(proc.arg_types),
                "pronargdefaults": 0, "prorettype": proc.result, "proargtypes": proc.arg_types,
                "proallargtypes": proc.all_arg_types, "proargmodes": proc.arg_modes, "prosrc": _SOURCES[number],
            }  # fmt: skip


@relation("pg_depend", "catalog")
def ranges_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of users' range types: on their function for distances; of what is made with them: on them."""
    for made in _ranges(session):
        if session.catalog.function_by_oid(made.subtype_diff) is not None:
            yield depends(PG_TYPE_OID, made.oid, PG_PROC_OID, made.subtype_diff, "n")
        yield depends(PG_TYPE_OID, made.multirange, PG_TYPE_OID, made.oid, "i")
        yield depends(PG_TYPE_OID, made.multirange, PG_NAMESPACE_OID, made.schema_oid, "n")
        yield depends(PG_TYPE_OID, made.multirange + 1, PG_TYPE_OID, made.multirange, "i")
        if made.base >= FIRST_USER_OID:
            yield depends(PG_TYPE_OID, made.oid, PG_TYPE_OID, made.base, "n")
        for number in range(RANGE_CONSTRUCTORS):
            proc = facts().procs[made.first_constructor + number]
            yield depends(PG_PROC_OID, proc.oid, PG_TYPE_OID, proc.result, "i")
            yield depends(PG_PROC_OID, proc.oid, PG_NAMESPACE_OID, made.schema_oid, "n")
            for oid in sorted({proc.result, *proc.arg_types}):
                if oid >= FIRST_USER_OID:
                    yield depends(PG_PROC_OID, proc.oid, PG_TYPE_OID, oid, "n")
