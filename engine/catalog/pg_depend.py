"""pg_depend of relations, their constraints, indexes, defaults and views' rules; pg_rewrite.

What depends on functions, types and triggers is told beside those (``pg_functions``, ``pg_types``, ``pg_triggers``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.dependency_rows import PG_ATTRDEF_OID, PG_REWRITE_OID, attrdef_oid, depends, rewrite_oid
from engine.catalog.referred import by_referred
from engine.catalog.stored import PG_CLASS_OID, PG_CONSTRAINT_OID, PG_NAMESPACE_OID
from engine.catalog.virtual import RowDict, by_oid, of_each
from planner.bind.sequence import relations_in_text, relations_of_default
from planner.catalog import RelationDef

if TYPE_CHECKING:
    from engine.connection.session import Session


@of_each("pg_depend", keys={"refobjid": by_referred})
def pg_depend(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend: constraints on tables, indexes on constraints, views on what they read."""
    if item.kind == "i":
        return  # with its table
    for constraint in item.constraints:
        # not on the whole table, an expression's 0, where there are columns
        for attnum in [a for a in item.written_columns(constraint) if a] or (0,):
            yield depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, item.oid, "a", ref_sub=attnum)
        if constraint.foreign is not None:
            referenced = constraint.foreign
            for attnum in referenced.attnums:
                yield depends(
                    PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, referenced.table, "n", ref_sub=attnum
                )
            yield depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, constraint.index_oid, "n")
    for index in item.indexes:
        if index.constraint_oid:
            yield depends(PG_CLASS_OID, index.oid, PG_CONSTRAINT_OID, index.constraint_oid, "i")
        else:
            for attnum in index.key_columns:
                yield depends(PG_CLASS_OID, index.oid, PG_CLASS_OID, item.oid, "a", ref_sub=attnum)
    if item.kind in "vm":
        rule = rewrite_oid(item.oid)
        yield depends(PG_REWRITE_OID, rule, PG_CLASS_OID, item.oid, "i")
        for oid in sorted({*item.depends_on, *relations_in_text(item.view_sql)}):
            yield depends(PG_REWRITE_OID, rule, PG_CLASS_OID, oid, "n")
    for column in item.live:
        if column.default_sql is not None and not column.identity:
            default = attrdef_oid(item, column.attnum)
            yield depends(PG_ATTRDEF_OID, default, PG_CLASS_OID, item.oid, "a", ref_sub=column.attnum)
            for oid in relations_of_default(column):
                yield depends(PG_ATTRDEF_OID, default, PG_CLASS_OID, oid, "n")
    if item.partition_of:
        yield depends(PG_CLASS_OID, item.oid, PG_CLASS_OID, item.partition_of, "a")
    owner = item.sequence
    if owner is not None and owner.owner_table:
        how = "i" if owner.internal else "a"
        yield depends(
            PG_CLASS_OID, item.oid, PG_CLASS_OID, owner.owner_table, how, ref_sub=owner.owner_attnum
        )
    yield depends(PG_CLASS_OID, item.oid, PG_NAMESPACE_OID, item.schema_oid, "n")


@of_each("pg_rewrite", keys={"ev_class": by_oid})
def pg_rewrite(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_rewrite: the _RETURN rule of each view."""
    if item.kind in "vm":
        yield {
            "oid": rewrite_oid(item.oid), "rulename": "_RETURN", "ev_class": item.oid, "ev_type": "1",
            "ev_enabled": "O", "is_instead": True, "ev_qual": "<>", "ev_action": "<>",
        }  # fmt: skip
