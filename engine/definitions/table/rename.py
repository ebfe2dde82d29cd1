"""ALTER ... RENAME: relations, columns, constraints, schemas, roles, databases.

What names a renamed thing is stored as text (views, bodies, checks, policies, triggers), so it is bound
against the catalog of before the change and printed against the one after it: ``rebase_queries``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from engine.base.eager import settle
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import Stored
from engine.definitions.databases import rename_database
from engine.definitions.dropping.drop import table_of
from engine.definitions.field_names import rename_fields
from engine.definitions.needs.members import refuse_new_name
from engine.definitions.stored_queries import rebase_queries
from engine.definitions.table.create import Params, refuse_reserved_schema
from engine.definitions.table.held_rows import renew_holders
from engine.definitions.type_names import check_free, make_room
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.give_way import spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind import bind_check, deparse_check
from planner.bind.define.policy import rebound_policies
from planner.bind.define.statistics import rebound_statistics
from planner.bind.define.table.generated import stored_generation
from planner.bind.define.table.index import key_names, rebound_indexes
from planner.bind.define.table.partition import with_key_named
from planner.bind.define.trigger import rebound_triggers
from planner.bind.stored.renaming import renamed
from planner.catalog import IndexDef, RelationDef, with_index_changed
from planner.catalog.relation_kinds import ROW_TYPED
from planner.partitions.bounds import descendants
from planner.query import Expr
from txn.base.types import ShardId


async def rename(session: Session, plan: Plan, statement: st.Rename, params: Params) -> Outcome:
    """RENAME of a relation, column, constraint, schema or role."""
    catalog = session.catalog
    version = session.db.next_catalog_version()
    new = statement.new
    if statement.what == "schema":
        await _rename_schema(session, statement)
        return Command(plan.bound.tag)
    if statement.what == "database":
        await rename_database(session, statement.old, new)
        return Command(plan.bound.tag)
    if statement.what == "role":
        role = catalog.role(statement.old)
        if role is None:
            raise SqlError("42704", f'role "{statement.old}" does not exist')
        refuse_new_name(session, role, new)
        await session.view.change([replace(role, name=new)])
        return Command(plan.bound.tag)
    relation = table_of(session, statement.relation)
    if statement.what == "relation":
        if catalog.relation(relation.schema, new) is not None:
            raise SqlError("42P07", f'relation "{new}" already exists')
        if relation.kind in ROW_TYPED:  # whose rows are of a type of that name
            await make_room(session, relation.schema, new)
            catalog = session.catalog
            check_free(catalog, relation.schema, new)
        await lock_stored(session, relation)
        if relation.kind == "i":
            owner = table_of(session, relation.table_oid)
            await _rename_index(session, owner, relation.name, new)
        else:
            await session.view.change([replace(relation, name=new, version=version)])
            await rebase_queries(session, {relation.oid}, catalog)
        return Command(plan.bound.tag)
    if statement.what == "column":
        await rename_column(session, relation, statement.old, new)
        return Command(plan.bound.tag)
    constraint = next((c for c in relation.constraints if c.name == statement.old), None)
    if constraint is None:
        raise SqlError(
            "42704",
            f'constraint "{statement.old}" for table "{relation.name}" does not exist',
        )
    if constraint.kind == "c" and constraint.parent:
        raise SqlError("42P16", f'cannot rename inherited constraint "{statement.old}"')
    await lock_stored(session, relation)
    await _rename_index(session, relation, statement.old, new)
    if constraint.kind == "c":
        for below in descendants(relation, catalog):
            await _rename_index(session, table_of(session, below.oid), statement.old, new)
    return Command(plan.bound.tag)


async def rename_column(session: Session, relation: RelationDef, old: str, new: str) -> None:
    """Give a column of a table and of its partitions another name. Raises SqlError 42703, 42701, 42P16."""
    if not any(c.name == old for c in relation.live):
        raise SqlError("42703", f'column "{old}" does not exist')
    if relation.partition_of:
        raise SqlError("42P16", f'cannot rename inherited column "{old}"')
    if any(c.name == new for c in relation.live):
        raise SqlError("42701", f'column "{new}" of relation "{relation.name}" already exists')
    for table in (relation, *descendants(relation, session.catalog)):
        await _rename_column(session, table_of(session, table.oid), old, new)


async def _rename_column(session: Session, relation: RelationDef, old: str, new: str) -> None:
    """Give a column another name, in all that names it."""
    catalog = session.catalog
    version = session.db.next_catalog_version()
    columns = tuple(
        replace(c, name=new) if c.name == old and c in relation.live else c for c in relation.columns
    )
    await lock_stored(session, relation)
    changed = replace(_with_index_columns_named(relation, old), columns=columns, version=version)
    trial = catalog.with_changes([changed], [], version)
    changed = _rename_in_checks(session, relation, changed, trial)
    changed = with_key_named(relation, changed, catalog)
    await session.view.change([changed])
    await renew_holders(session, changed)
    await rebase_queries(session, {relation.oid}, catalog)
    await rename_fields(session, catalog, old, renamed_table=relation.oid)


def _with_index_columns_named(table: RelationDef, column: str) -> RelationDef:
    """Return a table whose indexes keep what their columns are called now, as in PostgreSQL, where they have a
    column that gets another name.
    """
    attnum = next(c.attnum for c in table.live if c.name == column)
    for index in table.every_index:
        attnums = index.key_columns + index.include
        if attnum in attnums and not index.key_names:
            names = key_names([table.column(a).name for a in attnums])
            table = with_index_changed(table, index.oid, partial(_named, names))
    return table


def _named(names: tuple[str, ...], index: IndexDef) -> IndexDef:
    return replace(index, key_names=names)


async def lock_stored(session: Session, relation: RelationDef) -> None:
    """Lock a table X whose definition changes in the catalog alone: writing transactions rely on it."""
    if relation.kind == "i" or relation.stored:
        oid = relation.table_oid if relation.kind == "i" else relation.oid
        await settle(session.block.ensure_txn().lock_table(ShardId(oid), "X"))


async def _rename_index(session: Session, table: RelationDef, old: str, new: str) -> None:
    """Rename an index and the constraint it serves (or a constraint and its index)."""
    if any(c.name == new for c in table.constraints):
        raise SqlError("42710", f'constraint "{new}" for relation "{table.name}" already exists')
    if any(i.name == old for i in table.every_index) and session.catalog.relation(table.schema, new):
        raise SqlError("42P07", f'relation "{new}" already exists')
    oid = next((i.oid for i in table.every_index if i.name == old), 0)
    table = with_index_changed(table, oid, lambda index: replace(index, name=new))
    await session.view.change(
        [
            replace(
                table,
                constraints=tuple(replace(c, name=new) if c.name == old else c for c in table.constraints),
                version=session.db.next_catalog_version(),
            )
        ]
    )


def _rename_in_checks(
    session: Session, before: RelationDef, after: RelationDef, trial: CatalogSnapshot
) -> RelationDef:
    """Return ``after`` with its CHECK and generation expressions naming the new column names, as ``trial`` has them."""

    def change(expr: Expr) -> Expr:
        made: Expr = renamed(expr, trial)
        return made

    constraints = []
    for constraint in after.constraints:
        if constraint.check_sql:
            expr = bind_check(constraint.check_sql, before, session.catalog, settings=session.bind_settings)
            constraint = replace(constraint, check_sql=deparse_check(change(expr), after))
        constraints.append(constraint)
    texts = {
        c.attnum: deparse_check(change(stored_generation(before, c.attnum, session.catalog)), after)
        for c in before.stored_columns
        if c.generated
    }
    columns = tuple(replace(c, default_sql=texts.get(c.attnum, c.default_sql)) for c in after.columns)
    triggers = rebound_triggers(before, after, session.catalog, change)
    policies = rebound_policies(before, after, session.catalog, change)
    statistics = rebound_statistics(before, after, session.catalog, change)
    after = replace(
        after,
        constraints=tuple(constraints),
        columns=columns,
        triggers=triggers,
        policies=policies,
        statistics=statistics,
    )
    return rebound_indexes(before, after, session.catalog, change)


async def _rename_schema(session: Session, statement: st.Rename) -> None:
    catalog = session.catalog
    schema = catalog.schema(statement.old)
    if schema is None:
        raise SqlError("3F000", f'schema "{statement.old}" does not exist')
    if catalog.schema(statement.new) is not None:
        raise SqlError("42P06", f'schema "{statement.new}" already exists')
    refuse_reserved_schema(statement.new)
    version = session.db.next_catalog_version()
    relations = [r for r in spaced(catalog.user_relations()) if r.schema == statement.old]
    moved: list[Stored] = [replace(schema, name=statement.new)]
    moved += [replace(r, schema=statement.new, version=version) for r in spaced(relations)]
    moved += [
        replace(t, schema=statement.new) for t in spaced(catalog.user_types()) if t.schema == statement.old
    ]
    moved += [replace(f, schema=statement.new) for f in spaced(catalog.functions_in(statement.old))]
    moved += [
        replace(i, schema=statement.new)
        for i in (*catalog.text_search(), *catalog.opclasses(), *catalog.conversions(), *catalog.collations())
        if i.schema == statement.old
    ]
    await session.view.change(moved)
    await rebase_queries(session, {relation.oid for relation in relations}, catalog)
