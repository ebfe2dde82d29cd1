"""Locks of tables, views, sequences, schemas, and of what belongs to tables (``engine.definitions.locks``)."""

from __future__ import annotations

from engine.catalog.reference_checks import references_to
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import key_of
from engine.definitions.locks.forms import create, read, roles, sequences
from engine.session.catalog.names import resolve
from engine.session.catalog.wants import WHOLE, Wants
from engine.session.named_roles import name_of_schema
from engine.session.session import Session
from pgwire.give_way import give_way, paced, paced_iter
from planner import statements as st
from planner.bind.define.table.options import TIMELINE
from planner.catalog import FunctionDef, TextSearchDef, TypeDef
from planner.catalog.opclasses import OpclassDef
from planner.partitions.bounds import descendants
from planner.types.facts import FIRST_USER_OID


def create_table(wants: Wants, session: Session, statement: st.CreateTable) -> None:
    """Take its name, rely on what its columns and constraints name; keys are the other table's, too."""
    catalog = session.catalog
    name = session.temp_schema if statement.persistence == "t" else statement.schema
    create(wants, catalog, name, statement.name, skips=statement.if_not_exists)
    timeline = catalog.timelines.get(statement.options.get(TIMELINE, ""))
    if timeline is not None:
        wants.rely(key_of(timeline))
    wants.columns(statement.columns)
    if statement.of_type:
        wants.rely(("type", statement.of_type, 0))
    wants.text(*(check.sql for check in statement.checks))
    for index in statement.indexes:
        wants.text(*index.expressions, index.where_sql)
    wants.foreign_keys(statement.foreign_keys)
    if statement.parent:
        wants.parent(statement.parent)
    if statement.server:
        wants.rely(("foreign server", statement.server, 0))


def create_view(wants: Wants, session: Session, statement: st.CreateView) -> None:
    """Take its name, or the view that OR REPLACE finds."""
    catalog = session.catalog
    name = session.temp_schema if statement.persistence == "t" else statement.schema
    create(wants, catalog, name, statement.name)
    old = catalog.relation(name, statement.name)
    if old is not None and statement.replace:
        wants.relation(old.oid)
    read(wants, statement.depends_on, statement.sql)


def create_materialized(wants: Wants, session: Session, statement: st.CreateMaterializedView) -> None:
    """Take its name."""
    catalog = session.catalog
    create(wants, catalog, statement.schema, statement.name, skips=statement.if_not_exists)
    read(wants, statement.depends_on, statement.sql)


def refresh(wants: Wants, _session: Session, statement: st.RefreshMaterializedView) -> None:
    """Change the view, and its rows unless CONCURRENTLY."""
    wants.relation(statement.table, rows=not statement.concurrently)


def create_sequence(wants: Wants, session: Session, statement: st.CreateSequence) -> None:
    """Take its name, rely on the table that owns it."""
    catalog = session.catalog
    name = session.temp_schema if statement.persistence == "t" else statement.schema
    create(wants, catalog, name, statement.name, skips=statement.if_not_exists)
    if statement.owned_by is not None:
        wants.rely(("relation", statement.owned_by[0], 0))


def alter_sequence(wants: Wants, _session: Session, statement: st.AlterSequence) -> None:
    """Change the sequence."""
    wants.relation(statement.sequence)
    if statement.owned_by is not None:
        wants.rely(("relation", statement.owned_by[0], 0))


def create_index(wants: Wants, _session: Session, statement: st.CreateIndex) -> None:
    """Change the table, and its rows unless CONCURRENTLY."""
    table = wants.relation(statement.table, rows=not statement.concurrently)
    if table is not None and statement.name is not None:
        wants.name(table.schema, statement.name)
    wants.tree(statement.table)
    for column in statement.hidden:
        wants.type(column.type.oid)
        wants.text(column.default_sql)
    wants.text(*statement.expressions, statement.where_sql)


def rename(wants: Wants, session: Session, statement: st.Rename) -> None:
    """Change a relation with what depends on its names, or all of a schema; roles and databases are all databases'."""
    catalog = session.catalog
    if statement.what == "schema":
        _rename_schema(wants, catalog, statement)
        return
    if statement.what not in ("relation", "column", "constraint"):
        wants.everything = True
        return
    relation = catalog.relation_by_oid(statement.relation)
    if relation is None:
        return
    wants.relation(relation.oid)
    if statement.what != "relation":
        wants.tree(relation.oid)
        for partition in descendants(relation, catalog):
            wants.views([partition.oid], exclusive=True, deep=False)
    if statement.what != "column":
        wants.name(relation.schema, statement.new)
        wants.name(relation.schema, relation.name if statement.what == "relation" else statement.old)
    if statement.what != "constraint":
        wants.views([relation.oid], exclusive=True, deep=False)


def _rename_schema(wants: Wants, catalog: CatalogSnapshot, statement: st.Rename) -> None:
    wants.name("", statement.old)
    wants.name("", statement.new)
    schema = catalog.schema(statement.old)
    if schema is None:
        return
    wants.change(key_of(schema))
    for relation in paced_iter(catalog.user_relations()):
        if relation.schema == statement.old:
            wants.change(key_of(relation))
    for type_ in paced_iter(catalog.user_types()):
        if type_.schema == statement.old:
            wants.change(key_of(type_))
    for function in catalog.functions_in(statement.old):
        wants.change(key_of(function))
    for item in (*catalog.text_search(), *catalog.opclasses(), *catalog.conversions(), *catalog.collations()):
        if item.schema == statement.old:
            wants.change(key_of(item))


def truncate(wants: Wants, session: Session, statement: st.Truncate) -> None:
    """Rely on the tables and change their rows: their partitions', and with CASCADE those of what refers to them."""
    catalog = session.catalog
    todo, seen = list(statement.tables), set[int]()
    while todo:
        give_way()
        oid = todo.pop()
        table = catalog.relation_by_oid(oid)
        if oid in seen or table is None:
            continue
        seen.add(oid)
        wants.rely(key_of(table))
        wants.tables.add(oid)
        todo += [partition.oid for partition in catalog.partitions_of(oid)]
        if statement.restart_identity:
            sequences(wants, catalog, table)
        if statement.cascade:
            todo += [child.oid for child, _constraint in references_to(catalog, table)]


def drop(wants: Wants, session: Session, statement: st.Drop) -> None:
    """Change what goes, with CASCADE what depends on it, too; of a schema all that is in it."""
    catalog = session.catalog
    if statement.what == "schema":
        for _, name in paced(statement.names):
            wants.whole_schema(name, cascade=statement.cascade)
            if statement.cascade and _much_may_depend(catalog, name):
                wants.change(WHOLE)
        return
    for schema, name in paced(statement.names):
        relation = resolve(session, schema, name)
        if relation is None or relation.virtual:
            continue
        if relation.kind == "i":
            table = wants.relation(relation.oid, rows=not statement.concurrently)
            wants.tree(relation.table_oid)
            wants.name(relation.schema, relation.name)
            if table is not None and statement.cascade:
                wants.referring(table.oid)
        else:
            wants.dropped(relation, cascade=statement.cascade)


def _much_may_depend(catalog: CatalogSnapshot, schema: str) -> bool:
    """Tell whether a schema has types, functions or text search objects; outside of it all kinds of objects
    may use these.
    """
    return any(
        isinstance(item, TypeDef | FunctionDef | TextSearchDef | OpclassDef) and item.schema == schema
        for item in paced_iter(catalog.items.values())
    )


def create_schema(wants: Wants, session: Session, statement: st.CreateSchema) -> None:
    """Take its name."""
    catalog = session.catalog
    name = name_of_schema(session, statement)
    found = catalog.schema(name)
    if found is not None and statement.if_not_exists:
        wants.rely(key_of(found))
    else:
        wants.name("", name)


def alter_schema_owner(wants: Wants, session: Session, statement: st.AlterSchemaOwner) -> None:
    """Change the schema."""
    catalog = session.catalog
    found = catalog.schema(statement.schema)
    if found is not None:
        wants.change(key_of(found))


def create_trigger(wants: Wants, _session: Session, statement: st.CreateTrigger) -> None:
    """Change the table, rely on the function."""
    wants.relation(statement.table)
    if statement.trigger.function >= FIRST_USER_OID:
        wants.rely(("function", statement.trigger.function, 0))
    if statement.trigger.from_table:
        wants.rely(("relation", statement.trigger.from_table, 0))
    wants.text(statement.trigger.when_sql)
    wants.tree(statement.table)


def change_trigger(wants: Wants, _session: Session, statement: st.RenameTrigger | st.DropTrigger) -> None:
    """Change the table and its partitions."""
    wants.relation(statement.table)
    wants.tree(statement.table)


def define_policy(wants: Wants, session: Session, statement: st.CreatePolicy | st.AlterPolicy) -> None:
    """Change the table, rely on what its conditions read and on its roles."""
    catalog = session.catalog
    wants.relation(statement.table)
    for oid in statement.policy.depends_on:
        wants.rely(("relation", oid, 0))
    wants.text(statement.policy.using_sql, statement.policy.check_sql)
    named = [] if statement.roles is None else [role.name for role in paced(statement.roles)]
    roles(wants, catalog, named, exclusive=False)


def change_policy(wants: Wants, _session: Session, statement: st.RenamePolicy | st.DropPolicy) -> None:
    """Change the table."""
    wants.relation(statement.table)


def create_statistics(wants: Wants, session: Session, statement: st.CreateStatistics) -> None:
    """Take its name, change the table."""
    catalog = session.catalog
    name = session.temp_schema if statement.schema == "pg_temp" else statement.schema
    create(wants, catalog, name, statement.name)
    wants.relation(statement.table, rows=False)
    wants.text(*(part.sql for part in paced(statement.parts)))


def alter_statistics(wants: Wants, session: Session, statement: st.AlterStatistics) -> None:
    """Change the table that they are of; take a new name."""
    catalog = session.catalog
    schema = _change_statistics(wants, catalog, statement.object)
    found = catalog.statistics_by_oid(statement.object)
    if found is not None and (statement.name is not None or statement.schema is not None):
        create(wants, catalog, statement.schema or schema, statement.name or found[1].name)
    if statement.owner is not None:
        roles(wants, catalog, [statement.owner], exclusive=False)


def drop_statistics(wants: Wants, session: Session, statement: st.DropStatistics) -> None:
    """Change the tables that they are of."""
    catalog = session.catalog
    for oid, _ in paced(statement.objects):
        _change_statistics(wants, catalog, oid)


def _change_statistics(wants: Wants, catalog: CatalogSnapshot, oid: int) -> str:
    """Change extended statistics, which are a part of their table as it is stored; return the name of their schema."""
    found = catalog.statistics_by_oid(oid)
    if found is None:
        return ""
    wants.relation(found[0].oid, rows=False)
    schema = catalog.schema_by_oid(found[1].schema_oid)
    return "" if schema is None else schema.name
