"""Users' operator classes and families in pg_catalog: pg_opclass, pg_opfamily, pg_amop, pg_amproc, and what
they depend on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_NAMESPACE_OID, PG_PROC_OID, PG_TYPE_OID
from planner.catalog.opclasses import (
    PG_AMOP,
    PG_AMPROC,
    PG_OPCLASS,
    PG_OPFAMILY,
    FamilyMember,
    OperatorClassDef,
    OperatorFamilyDef,
)
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


def _families(session: Reading) -> Iterator[OperatorFamilyDef]:
    return (item for item in session.catalog.opclasses() if isinstance(item, OperatorFamilyDef))


def _classes(session: Reading) -> Iterator[OperatorClassDef]:
    return (item for item in session.catalog.opclasses() if isinstance(item, OperatorClassDef))


@relation("pg_opfamily", "catalog")
def users_families(session: Reading) -> Iterator[RowDict]:
    """Yield pg_opfamily of users' families."""
    for item in _families(session):
        yield {
            "oid": item.oid, "opfmethod": item.method, "opfname": item.name, "opfnamespace": item.schema_oid,
            "opfowner": item.owner,
        }  # fmt: skip


@relation("pg_opclass", "catalog")
def users_classes(session: Reading) -> Iterator[RowDict]:
    """Yield pg_opclass of users' classes."""
    for item in _classes(session):
        yield {
            "oid": item.oid, "opcmethod": item.method, "opcname": item.name, "opcnamespace": item.schema_oid,
            "opcowner": item.owner, "opcfamily": item.family, "opcintype": item.input_type, "opcdefault": item.default,
            "opckeytype": item.key_type,
        }  # fmt: skip


@relation("pg_amop", "catalog")
def users_operators(session: Reading) -> Iterator[RowDict]:
    """Yield pg_amop of users' families."""
    for family in _families(session):
        for one in family.members:
            if not one.function:
                yield {
                    "oid": one.oid, "amopfamily": family.oid, "amoplefttype": one.left, "amoprighttype": one.right,
                    "amopstrategy": one.number, "amoppurpose": "o" if one.sort_family else "s", "amopopr": one.object,
                    "amopmethod": family.method, "amopsortfamily": one.sort_family,
                }  # fmt: skip


@relation("pg_amproc", "catalog")
def users_functions(session: Reading) -> Iterator[RowDict]:
    """Yield pg_amproc of users' families."""
    for family in _families(session):
        for one in family.members:
            if one.function:
                yield {
                    "oid": one.oid, "amprocfamily": family.oid, "amproclefttype": one.left,
                    "amprocrighttype": one.right, "amprocnum": one.number, "amproc": one.object,
                }  # fmt: skip


@relation("pg_depend", "catalog")
def opclasses_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of families, classes and members."""
    for family in _families(session):
        yield depends(PG_OPFAMILY, family.oid, PG_NAMESPACE_OID, family.schema_oid)
        for one in family.members:
            yield from _member(family, one)
    for item in _classes(session):
        yield depends(PG_OPCLASS, item.oid, PG_NAMESPACE_OID, item.schema_oid)
        yield depends(PG_OPCLASS, item.oid, PG_OPFAMILY, item.family, "a")
        for oid in (item.input_type, item.key_type):
            if oid >= FIRST_USER_OID:
                yield depends(PG_OPCLASS, item.oid, PG_TYPE_OID, oid)


def _member(family: OperatorFamilyDef, one: FamilyMember) -> Iterator[RowDict]:
    class_ = PG_AMPROC if one.function else PG_AMOP
    if one.function and one.object >= FIRST_USER_OID:
        yield depends(class_, one.oid, PG_PROC_OID, one.object, "n" if one.of_class else "a")
    if one.of_class:
        yield depends(class_, one.oid, PG_OPCLASS, one.of_class, "i")
    else:
        yield depends(class_, one.oid, PG_OPFAMILY, family.oid, "a")
    for oid in {one.left, one.right}:
        if oid >= FIRST_USER_OID:
            yield depends(class_, one.oid, PG_TYPE_OID, oid, "n" if one.of_class else "a")
    if one.sort_family >= FIRST_USER_OID:
        yield depends(class_, one.oid, PG_OPFAMILY, one.sort_family, "n" if one.of_class else "a")
