"""Nobody but a source changes its tables: what statements are refused, and how (promise: a table is what its
source said).

Indexes may be added, the table may be renamed and read; its rows, columns and constraints are the source's.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.catalog.state import CatalogSnapshot
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.catalog import RelationDef
from planner.statements.classify import relations_written


def refuse(catalog: CatalogSnapshot, statement: st.Statement) -> None:
    """Raise SqlError if a statement changes a source's table: 42809 its rows, 0A000 its definition."""
    if not catalog.sources:
        return
    inner = statement.body.statement if isinstance(statement, st.Explain) else statement
    for relation in _sourced(catalog, relations_written(inner)):
        raise SqlError(
            "42809",
            f'cannot change table "{relation.name}" of source "{name_of(catalog, relation)}"',
            hint="Only the source writes it.",
        )
    match inner:
        case st.AlterTable():
            for relation in _sourced(catalog, [inner.table]):
                raise not_supported(
                    f'ALTER TABLE of "{relation.name}", which source "{name_of(catalog, relation)}" writes'
                )
            for action in inner.actions:
                if isinstance(action, st.AddForeignKey):
                    _refuse_reference(catalog, [action.key])
                elif isinstance(action, st.AddColumn):
                    _refuse_reference(catalog, action.foreign_keys)
        case st.CreateTrigger():
            for relation in _sourced(catalog, [inner.table]):
                raise not_supported(
                    f'a trigger of "{relation.name}", which source "{name_of(catalog, relation)}" writes'
                )
        case st.CreateTable():
            _refuse_reference(catalog, inner.foreign_keys)
        case st.Rename() if inner.what in ("column", "constraint"):
            for relation in _sourced(catalog, [inner.relation]):
                raise not_supported(
                    f'renaming a {inner.what} of "{relation.name}", which source '
                    f'"{name_of(catalog, relation)}" writes'
                )


def _refuse_reference(catalog: CatalogSnapshot, keys: Iterable[st.ForeignKeySpec]) -> None:
    """A source's rows come and go as upstream says: no foreign key can keep one, or follow it."""
    for relation in _sourced(catalog, [key.table for key in keys]):
        raise not_supported(
            f'a foreign key that refers to "{relation.name}", which source "{name_of(catalog, relation)}" writes'
        )


def refuse_drop(catalog: CatalogSnapshot, relation: RelationDef) -> None:
    """Raise SqlError 2BP01 if a table that is dropped by itself belongs to a source."""
    if relation.source_oid:
        name = name_of(catalog, relation)
        raise SqlError(
            "2BP01",
            f"cannot drop table {relation.name} because source {name} requires it",
            hint=f"You can drop source {name} instead.",
        )


def name_of(catalog: CatalogSnapshot, relation: RelationDef) -> str:
    """Return the name of the source that writes a table."""
    source = catalog.source_by_oid(relation.source_oid)
    return str(relation.source_oid) if source is None else source.name


def _sourced(catalog: CatalogSnapshot, oids: Iterable[int]) -> list[RelationDef]:
    found = map(catalog.relation_by_oid, oids)
    return [relation for relation in found if relation is not None and relation.source_oid]
