"""Locks of ALTER TABLE: the table, its partitions, and what each action reaches besides, of which each has a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from engine.catalog.state import CatalogSnapshot
from engine.definitions.locks.forms import sequences
from engine.session.catalog.wants import Wants
from engine.session.session import Session
from pgwire.give_way import paced
from planner import statements as st
from planner.base.total import members, total
from planner.catalog import RelationDef
from planner.partitions.bounds import ancestors

_Wanted: TypeAlias = Callable[[Wants, CatalogSnapshot, RelationDef, Any], None]


def alter_table(wants: Wants, session: Session, statement: st.AlterTable) -> None:
    """Change the table, its partitions, and what each action reaches besides."""
    catalog = session.catalog
    rows = not all(isinstance(action, st.ValidateConstraint) for action in statement.actions)
    table = wants.relation(statement.table, rows=rows)
    if table is None:
        return
    wants.tree(table.oid, rows=rows)
    for action in paced(statement.actions, 1):
        _ACTIONS[type(action)](wants, catalog, table, action)


def _table_alone(_wants: Wants, _catalog: CatalogSnapshot, _table: RelationDef, _action: object) -> None:
    """Want nothing but the table and its partitions."""


def _partition(
    wants: Wants,
    catalog: CatalogSnapshot,
    table: RelationDef,
    action: st.AttachPartition | st.DetachPartition,
) -> None:
    wants.parent(table.oid)
    wants.referring(action.partition)
    wants.relation(action.partition)
    wants.tree(action.partition)
    partition = catalog.relation_by_oid(action.partition)
    wants.referenced(() if partition is None else partition.constraints)


def _attach_index(wants: Wants, catalog: CatalogSnapshot, table: RelationDef, action: st.AttachIndex) -> None:
    wants.relation(action.index)
    for above in ancestors(table, catalog):
        wants.relation(above.oid)


def _add_column(wants: Wants, _catalog: CatalogSnapshot, _table: RelationDef, action: st.AddColumn) -> None:
    wants.columns([action.column])
    wants.text(*(check.sql for check in action.checks))
    wants.foreign_keys(action.foreign_keys)


def _add_check(wants: Wants, _catalog: CatalogSnapshot, _table: RelationDef, action: st.AddCheck) -> None:
    wants.text(action.check.sql)


def _set_default(wants: Wants, _catalog: CatalogSnapshot, _table: RelationDef, action: st.SetDefault) -> None:
    wants.text(action.default_sql)


def _add_foreign_key(
    wants: Wants, _catalog: CatalogSnapshot, _table: RelationDef, action: st.AddForeignKey
) -> None:
    wants.foreign_keys([action.key])


def _constraint(
    wants: Wants,
    _catalog: CatalogSnapshot,
    table: RelationDef,
    action: st.AlterConstraint | st.DropConstraint,
) -> None:
    constraints = [c for c in table.constraints if c.name == action.name]
    wants.referenced(constraints)
    if any(c.kind in "pu" for c in constraints):
        wants.referring(table.oid)


def _drop_column(wants: Wants, catalog: CatalogSnapshot, table: RelationDef, action: st.DropColumn) -> None:
    wants.referenced(table.foreign_keys)
    wants.views([table.oid], exclusive=action.cascade)
    if action.cascade:
        wants.referring(table.oid)
    sequences(wants, catalog, table)


def _alter_types(
    wants: Wants, _catalog: CatalogSnapshot, table: RelationDef, action: st.AlterColumnTypes
) -> None:
    for column in action.columns:
        wants.type(column.type.oid)
        wants.text(column.default_sql)
    wants.referenced(table.foreign_keys)
    wants.referring(table.oid)
    wants.views([table.oid], exclusive=False, deep=False)


def _its_sequences(wants: Wants, catalog: CatalogSnapshot, table: RelationDef, _action: object) -> None:
    sequences(wants, catalog, table)


def _set_schema(wants: Wants, catalog: CatalogSnapshot, table: RelationDef, action: st.SetSchema) -> None:
    wants.schema(action.schema)
    names = [table.name, *(index.name for index in table.every_index)]
    names += [sequence.name for sequence in catalog.sequences_of(table.oid)]
    for name in names:
        wants.name(action.schema, name)
        wants.name(table.schema, name)
    sequences(wants, catalog, table)
    wants.views([table.oid], exclusive=True, deep=False)


_ACTIONS: Final[Mapping[type, _Wanted]] = total(
    "locks of ALTER TABLE",
    members(st.AlterAction),
    {
        st.AddColumn: _add_column,
        st.AttachPartition: _partition,
        st.DetachPartition: _partition,
        st.AttachIndex: _attach_index,
        st.EnableTriggers: _table_alone,
        st.SetRowSecurity: _table_alone,
        st.DropColumn: _drop_column,
        st.AddKey: _table_alone,
        st.AddCheck: _add_check,
        st.AddForeignKey: _add_foreign_key,
        st.ValidateConstraint: _table_alone,
        st.AlterConstraint: _constraint,
        st.DropConstraint: _constraint,
        st.SetDefault: _set_default,
        st.DropExpression: _table_alone,
        st.AddIdentity: _table_alone,
        st.SetIdentity: _its_sequences,
        st.DropIdentity: _its_sequences,
        st.SetNotNull: _table_alone,
        st.AlterColumnTypes: _alter_types,
        st.AlterOwner: _its_sequences,
        st.SetOptions: _table_alone,
        st.TuneColumn: _table_alone,
        st.TuneIndexKey: _table_alone,
        st.MarkClustered: _table_alone,
        st.SetReplicaIdentity: _table_alone,
        st.SetPersistence: _its_sequences,
        st.SetSchema: _set_schema,
        st.SetOfType: _table_alone,
        st.SetForeignOptions: _table_alone,
    },
)
