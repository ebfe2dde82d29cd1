"""Rows of pg_depend, and the oids there of what is stored within something else.

PostgreSQL gives a column's default and a view's rule oids of their own. Here they are parts of their
relation, so theirs are made of its oid.
"""

from __future__ import annotations

from typing import Final

from engine.catalog.relations.sources import RowDict
from planner.catalog import RelationDef
from planner.information.definitions import RULE_OID_BASE

PG_ATTRDEF_OID: Final = 2604
PG_REWRITE_OID: Final = 2618
PG_LANGUAGE_OID: Final = 2612


def depends(
    class_: int, oid: int, ref_class: int, ref: int, kind: str = "n", *, sub: int = 0, ref_sub: int = 0
) -> RowDict:
    """Return a row of pg_depend: ``oid`` of ``class_`` depends on ``ref`` of ``ref_class``.

    ``kind``: PostgreSQL's deptype, n(ormal), a(uto), i(nternal), e(xtension). ``sub``, ``ref_sub``: a column,
    0 for the whole.
    """
    return {
        "classid": class_, "objid": oid, "objsubid": sub, "refclassid": ref_class, "refobjid": ref,
        "refobjsubid": ref_sub, "deptype": kind,
    }  # fmt: skip


def attrdef_oid(relation: RelationDef, attnum: int) -> int:
    """Return the oid of a column default: above all allocated oids, unique per column."""
    return 0x8000_0000 | (relation.oid * 1601 + relation.number(attnum)) & 0x7FFF_FFFF


def rewrite_oid(view_oid: int) -> int:
    """Return the oid of a view's _RETURN rule: the third oid of the relation's block is its array type,
    so the rule takes a number above all allocated oids.
    """
    return RULE_OID_BASE | view_oid
