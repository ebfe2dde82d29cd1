"""pg_depend of relations, their constraints, indexes, defaults and views' rules; pg_rewrite.

Of what an expression or a query reads the columns are told, as PostgreSQL does: bound anew, once for each
definition; what cannot be bound depends on what its definition is known to need. What depends on functions,
types and triggers is told beside those (``pg_functions``, ``pg_types``, ``pg_triggers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.catalog.referred import by_referred, by_referred_in_views
from engine.catalog.relations.dependency_rows import (
    PG_ATTRDEF_OID,
    PG_REWRITE_OID,
    attrdef_oid,
    depends,
    rewrite_oid,
)
from engine.catalog.relations.information.schema import relations_read
from engine.catalog.relations.information.usage import columns_named
from engine.catalog.relations.sources import RowDict, by_oid, of_each
from engine.catalog.rule_text import NOTHING, select_rule
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    PG_CONSTRAINT_OID,
    PG_FOREIGN_SERVER_OID,
    PG_NAMESPACE_OID,
)
from planner.base.errors import SqlError
from planner.bind.define.table.generated import columns_used, stored_generation
from planner.bind.define.table.index import index_keys
from planner.bind.define.table.sequence import relations_of_default
from planner.bind.query.select import bind_view
from planner.bind.stored import stored_context
from planner.bind.stored.evaluated import bind_check
from planner.catalog import ColumnDef, IndexDef, RelationDef
from planner.catalog.named_oids import relations_in_text
from planner.catalog.relation_kinds import BY_QUERY
from planner.partitions.bounds import key_exprs

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


@of_each("pg_depend", keys={"refobjid": by_referred})
def pg_depend(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend: constraints on tables, indexes on constraints, views on what they read."""
    if item.kind == "i":
        return  # with its table
    for constraint in item.constraints:
        # not on the whole table, an expression's 0, where there are columns
        for attnum in [a for a in item.written_columns(constraint) if a] or (0,):
            yield depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, item.oid, "a", ref_sub=attnum)
        for attnum in constraint.attnums if constraint.kind == "c" else ():
            yield depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, item.oid, "n", ref_sub=attnum)
        if constraint.parent and constraint.kind in "puf":
            yield depends(PG_CONSTRAINT_OID, constraint.oid, PG_CONSTRAINT_OID, constraint.parent, "P")
            yield depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, item.oid, "S")
        if constraint.foreign is not None:
            referenced = constraint.foreign
            for attnum in referenced.attnums:
                yield depends(
                    PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, referenced.table, "n", ref_sub=attnum
                )
            yield depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, constraint.index_oid, "n")
    for index in item.every_index:
        used = _columns_of_index(session, item, index)
        if index.constraint_oid:
            yield depends(PG_CLASS_OID, index.oid, PG_CONSTRAINT_OID, index.constraint_oid, "i")
        elif plain := {a for a in (*index.key_columns, *index.include) if a}:
            used.append(plain)
        else:
            yield depends(PG_CLASS_OID, index.oid, PG_CLASS_OID, item.oid, "a")
        for attnum in (a for part in used for a in sorted(part)):
            yield depends(PG_CLASS_OID, index.oid, PG_CLASS_OID, item.oid, "a", ref_sub=attnum)
        if index.parent:
            yield depends(PG_CLASS_OID, index.oid, PG_CLASS_OID, index.parent, "P")
            yield depends(PG_CLASS_OID, index.oid, PG_CLASS_OID, item.oid, "S")
    for column in item.live:
        if column.default_sql is not None and not column.identity:
            default = attrdef_oid(item, column.attnum)
            kind = "i" if column.generated else "a"
            yield depends(PG_ATTRDEF_OID, default, PG_CLASS_OID, item.oid, kind, ref_sub=column.attnum)
            for attnum in sorted(_columns_of_generated(session, item, column)):
                yield depends(PG_ATTRDEF_OID, default, PG_CLASS_OID, item.oid, "n", ref_sub=attnum)
            for oid in relations_of_default(column):
                yield depends(PG_ATTRDEF_OID, default, PG_CLASS_OID, oid, "n")
    for attnum in _columns_of_key(session, item):
        yield depends(PG_CLASS_OID, item.oid, PG_CLASS_OID, item.oid, "i", sub=attnum)
    if item.server:
        yield depends(PG_CLASS_OID, item.oid, PG_FOREIGN_SERVER_OID, item.server, "n")
    if item.partition_of:
        yield depends(PG_CLASS_OID, item.oid, PG_CLASS_OID, item.partition_of, "a")
    owner = item.sequence
    if owner is not None and owner.owner_table:
        how = "i" if owner.internal else "a"
        yield depends(
            PG_CLASS_OID, item.oid, PG_CLASS_OID, owner.owner_table, how, ref_sub=owner.owner_attnum
        )
    if item.kind != "c":  # else its type's
        yield depends(PG_CLASS_OID, item.oid, PG_NAMESPACE_OID, item.schema_oid, "n")


def _columns_of_index(session: Reading, table: RelationDef, index: IndexDef) -> list[set[int]]:
    """Return the columns that the expressions of an index read, and those that its condition does: each are
    told by themselves.
    """
    predicate = table.predicate_of(index)
    if not index.computed and not predicate:
        return []
    try:
        keys, where = index_keys(index, table, session.catalog) if index.computed else ((), None)
        if where is None and predicate:  # an exclusion constraint's
            where = bind_check(predicate, table, session.catalog)
    except SqlError:
        return []
    read = {a for key, text in zip(keys, index.expressions, strict=False) if text for a in columns_used(key)}
    tested = set[int]() if where is None else set(columns_used(where))
    return [{a for a in part if a > 0} for part in (read, tested)]


def _columns_of_key(session: Reading, table: RelationDef) -> list[int]:
    """Return the columns that the rows of a partitioned table are divided by, those in expressions, too."""
    if table.partition_key is None:
        return []
    try:
        keys = key_exprs(table, session.catalog)
    except SqlError:
        return sorted({attnum for attnum in table.partition_key.attnums if attnum})
    return sorted({attnum for key in keys for attnum in columns_used(key) if attnum > 0})


def _columns_of_generated(session: Reading, table: RelationDef, column: ColumnDef) -> set[int]:
    if not column.generated:
        return set()
    try:
        return {a for a in columns_used(stored_generation(table, column.attnum, session.catalog)) if a > 0}
    except SqlError:
        return set()


def _reads(catalog: CatalogSnapshot, item: RelationDef) -> list[int]:
    return relations_read(catalog, item) if item.kind in BY_QUERY else []


@of_each("pg_depend", keys={"refobjid": by_referred_in_views}, needs=_reads)
def views_depend(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend of views' rules: on their view, the columns that they read, and the primary keys that
    their groups rely on.
    """
    if item.kind not in BY_QUERY:
        return
    rule, catalog = rewrite_oid(item.oid), session.catalog
    for kind in "in":  # as what belongs to it, and as what names it
        yield depends(PG_REWRITE_OID, rule, PG_CLASS_OID, item.oid, kind)
    context = stored_context(catalog, item.view_sql, item.view_path)
    columns: Mapping[int, frozenset[int]] = {}
    with suppress(SqlError):  # it reads what is not there any more, or in another form
        columns = columns_named(bind_view(context, item), catalog)
    for oid in sorted({*item.depends_on, *relations_in_text(item.view_sql), *columns}):
        read = catalog.relation_by_oid(oid)
        if read is None or not read.virtual:
            for attnum in sorted(columns.get(oid, ())) or (0,):
                yield depends(PG_REWRITE_OID, rule, PG_CLASS_OID, oid, "n", ref_sub=attnum)
    for depth, oid in sorted(context.keys):
        if depth == 1:  # else those of views that it reads
            yield depends(PG_REWRITE_OID, rule, PG_CONSTRAINT_OID, oid, "n")


@of_each("pg_rewrite", keys={"ev_class": by_oid}, needs=_reads)
def pg_rewrite(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_rewrite: the _RETURN rule of each view."""
    if item.kind in BY_QUERY:
        action = NOTHING  # as long as it reads what is not there any more, or in another form
        with suppress(SqlError):
            query = bind_view(stored_context(session.catalog, item.view_sql, item.view_path), item)
            action = select_rule([column.name for column in item.live], query)
        yield {
            "oid": rewrite_oid(item.oid), "rulename": "_RETURN", "ev_class": item.oid, "ev_type": "1",
            "ev_enabled": "O", "is_instead": True, "ev_qual": NOTHING, "ev_action": action,
        }  # fmt: skip
