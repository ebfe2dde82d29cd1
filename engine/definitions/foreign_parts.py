"""Foreign-data wrappers, servers, user mappings and tables by oid: what is of what, who owns it, what it is
called, what its options are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.graph import relations_naming
from engine.catalog.state import CatalogSnapshot
from engine.session.catalog.foreign import foreign_of
from engine.session.plans.plan import Replan
from pgwire.give_way import openly
from planner import statements as st
from planner.catalog import RelationDef
from planner.catalog.foreign import PG_FOREIGN_TABLE, ForeignDef, MappingDef, ServerDef, WrapperDef
from planner.information.describe import describe_object
from planner.statements.foreign_options import PG_ATTRIBUTE, changed_options, check_options

if TYPE_CHECKING:
    from engine.session.session import Session


def words(session: Session, item: ForeignDef) -> str:
    """Return what messages about what depends on what call an object."""
    return describe_object(session, item.class_oid, item.oid, 0) or ""


def with_dependents(catalog: CatalogSnapshot, asked: Sequence[ForeignDef]) -> dict[int, ForeignDef]:
    """Return objects with all that is of them, by oid: servers with a wrapper, user mappings with a server."""
    every = {item.oid: item for item in asked}
    for item in catalog.foreign():  # the oldest first: what is of something is younger than it
        of = (
            item.wrapper
            if isinstance(item, ServerDef)
            else item.server
            if isinstance(item, MappingDef)
            else 0
        )
        if of in every:
            every[item.oid] = item
    return every


def owned_by(catalog: CatalogSnapshot, roles: Collection[int]) -> list[ForeignDef]:
    """Return what roles own, oldest first; a user mapping is its role's."""
    return [item for item in catalog.foreign() if item.owner in roles]


def validator_of(catalog: CatalogSnapshot, server: ServerDef) -> int:
    """Return the function that looks at options of what is of a server, 0 for none."""
    return foreign_of(catalog, WrapperDef, server.wrapper).validator


def check_table_options(session: Session, relation: RelationDef) -> None:
    """Have the wrapper's validator look at the options of a foreign table and its columns. Raises SqlError
    42601; Replan where its server is gone.
    """
    validator = validator_of(session.catalog, foreign_of(session.catalog, ServerDef, relation.server))
    openly(check_options, validator, relation.foreign_options, PG_FOREIGN_TABLE)
    for column in relation.live:
        if column.foreign_options:
            openly(check_options, validator, column.foreign_options, PG_ATTRIBUTE)


def with_options(session: Session, relation: RelationDef, action: st.SetForeignOptions) -> RelationDef:
    """Return a foreign table with other options, or with a column that has. Raises SqlError 42710, 42704,
    22023, 42601; Replan.
    """
    validator = validator_of(session.catalog, foreign_of(session.catalog, ServerDef, relation.server))
    if not action.column:
        options = openly(changed_options, relation.foreign_options, action.changes)
        openly(check_options, validator, options, PG_FOREIGN_TABLE)
        return replace(relation, foreign_options=options)
    column = next((c for c in relation.live if c.name == action.column), None)
    if column is None:
        raise Replan
    options = openly(changed_options, column.foreign_options, action.changes)
    openly(check_options, validator, options, PG_ATTRIBUTE)
    changed = replace(column, foreign_options=options)
    return replace(
        relation, columns=tuple(changed if c.attnum == column.attnum else c for c in relation.columns)
    )


def tables_below(catalog: CatalogSnapshot, asked: Sequence[ForeignDef]) -> list[RelationDef]:
    """Return the foreign tables that hang on objects: of servers, and of those of wrappers; the oldest first."""
    servers = with_dependents(catalog, asked).keys()
    return [table for table in relations_naming(catalog, set(servers)) if table.server in servers]
