"""Which objects of the catalog a DDL statement locks (``engine.session.catalog.locks`` takes the locks; D77, U10).

    what it changes or drops       X on the object, and on its table's rows where they change with it
    what a new object refers to    S on the object: it stays as it is until the reference to it is committed
    names it takes or gives up     X on the name

    a table   <── views over it, foreign keys to it          whoever adds one needs S (a view) or X (a key) on the table,
              <── sequences that its columns own             so X on the table keeps the set of its dependents as it is;
                                                             CASCADE then takes X on each of them, and on theirs.

    functions that are        much may depend on them: X on WHOLE, the catalog of their database, which all
    there, aggregates,        others have S
    domains, extensions,
    DROP TYPE, text search,
    foreign data,
    operator classes,
    DROP SCHEMA of such

Statements that have no case here are about what databases share: they lock the catalogs of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from engine.catalog.reference_checks import references_to
from engine.catalog.row_parts import columns_holding
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    PG_AUTHID_OID,
    PG_DATABASE_OID,
    PG_LARGEOBJECT_OID,
    PG_NAMESPACE_OID,
    StoredKey,
    key_of,
)
from engine.session.catalog.names import resolve
from engine.session.catalog.wants import ROLE_NAME, WHOLE, Wants, name_key, object_key, role_name_key
from engine.session.named_roles import name_of_schema
from engine.session.plans.plan import Plan
from pgwire.give_way import give_way, paced, paced_iter
from planner import statements as st
from planner.bind.define.own_range import default_multirange_name
from planner.bind.define.table.options import TIMELINE
from planner.catalog import FunctionDef, RelationDef, TextSearchDef, TypeDef
from planner.catalog.opclasses import OpclassDef
from planner.partitions.bounds import ancestors, descendants
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.session.session import Session

_OF_ONE_DATABASE: Final = (
    st.CreateFunction, st.CreateAggregate, st.AlterFunction, st.DropFunction, st.CreateExtension, st.AlterExtension,
    st.DropExtension, st.DropType, st.CreateDomain, st.SetDomainDefault, st.SetDomainNotNull, st.AddDomainCheck, st.DropDomainConstraint,
    st.ValidateDomainConstraint, st.RenameDomainConstraint, st.CreateConfiguration, st.CreateDictionary, st.AlterMapping,
    st.AlterDictionary, st.AlterTextSearch, st.DropTextSearch, st.CreateStatistics, st.AlterStatistics, st.DropStatistics,
    st.CreateWrapper, st.AlterWrapper, st.CreateServer, st.AlterServer, st.CreateUserMapping, st.AlterUserMapping, st.DropUserMapping,
    st.AlterForeign, st.DropForeign, st.ImportForeignSchema,
    st.CreateConversion, st.AlterConversion, st.DropConversion, st.CreateCollation, st.AlterCollation, st.DropCollation,
    st.CreateOpfamily, st.CreateOpclass, st.ChangeOpfamily, st.AlterOpclass, st.DropOpclass,
)  # fmt: skip
_MEMBERSHIPS: Final[StoredKey] = (
    f"{ROLE_NAME}/members",
    0,
    0,
)  # who is a member of whom: circles are looked for


def wanted_by(session: Session, plan: Plan) -> Wants | None:
    """Return what a DDL statement locks, None for the catalogs of all databases."""
    statement = plan.bound.statement
    catalog = session.catalog
    wants = Wants(catalog)
    match statement:
        case st.CreateTable():
            name = session.temp_schema if statement.persistence == "t" else statement.schema
            _create(wants, catalog, name, statement.name, skips=statement.if_not_exists)
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
        case st.CreateView():
            name = session.temp_schema if statement.persistence == "t" else statement.schema
            _create(wants, catalog, name, statement.name)
            old = catalog.relation(name, statement.name)
            if old is not None and statement.replace:
                wants.relation(old.oid)
            _read(wants, statement.depends_on, statement.sql)
        case st.CreateMaterializedView():
            _create(wants, catalog, statement.schema, statement.name, skips=statement.if_not_exists)
            _read(wants, statement.depends_on, statement.sql)
        case st.RefreshMaterializedView():
            wants.relation(statement.table, rows=not statement.concurrently)
        case st.Maintenance():  # CLUSTER ... USING
            for oid in statement.relations:
                wants.relation(oid, rows=False)
                wants.tree(oid, rows=False)
        case st.MarkConstraints():
            pass  # which constraints these are its query says; they are locked where they change
        case st.CreateSequence():
            name = session.temp_schema if statement.persistence == "t" else statement.schema
            _create(wants, catalog, name, statement.name, skips=statement.if_not_exists)
            if statement.owned_by is not None:
                wants.rely(("relation", statement.owned_by[0], 0))
        case st.AlterSequence():
            wants.relation(statement.sequence)
            if statement.owned_by is not None:
                wants.rely(("relation", statement.owned_by[0], 0))
        case st.CreateIndex():
            table = wants.relation(statement.table, rows=not statement.concurrently)
            if table is not None and statement.name is not None:
                wants.name(table.schema, statement.name)
            wants.tree(statement.table)
            for column in statement.hidden:
                wants.type(column.type.oid)
                wants.text(column.default_sql)
            wants.text(*statement.expressions, statement.where_sql)
        case st.AlterTable():
            _alter(wants, catalog, statement)
        case st.CreateTrigger():
            wants.relation(statement.table)
            if statement.trigger.function >= FIRST_USER_OID:
                wants.rely(("function", statement.trigger.function, 0))
            if statement.trigger.from_table:
                wants.rely(("relation", statement.trigger.from_table, 0))
            wants.text(statement.trigger.when_sql)
            wants.tree(statement.table)
        case st.RenameTrigger() | st.DropTrigger():
            wants.relation(statement.table)
            wants.tree(statement.table)
        case st.CreatePolicy() | st.AlterPolicy():
            wants.relation(statement.table)
            for oid in statement.policy.depends_on:
                wants.rely(("relation", oid, 0))
            wants.text(statement.policy.using_sql, statement.policy.check_sql)
            named = [] if statement.roles is None else [role.name for role in paced(statement.roles)]
            _roles(wants, catalog, named, exclusive=False)
        case st.RenamePolicy() | st.DropPolicy():
            wants.relation(statement.table)
        case st.CreateStatistics():
            name = session.temp_schema if statement.schema == "pg_temp" else statement.schema
            _create(wants, catalog, name, statement.name)
            wants.relation(statement.table, rows=False)
            wants.text(*(part.sql for part in paced(statement.parts)))
        case st.AlterStatistics():
            _alter_statistics(wants, catalog, statement)
        case st.DropStatistics():
            for oid, _ in paced(statement.objects):
                _change_statistics(wants, catalog, oid)
        case st.Rename():
            return _rename(wants, catalog, statement)
        case st.Truncate():
            _truncate(wants, catalog, statement)
        case st.Drop():
            _drop(wants, session, statement)
        case st.CreateSchema():
            name = name_of_schema(session, statement)
            found = catalog.schema(name)
            if found is not None and statement.if_not_exists:
                wants.rely(key_of(found))
            else:
                wants.name("", name)
        case st.AlterLargeObject():
            wants.change((f"acl/{PG_LARGEOBJECT_OID}", statement.oid, 0))
        case st.AlterSchemaOwner():
            found = catalog.schema(statement.schema)
            if found is not None:
                wants.change(key_of(found))
        case st.CreateEnum() | st.CreateComposite() | st.CreateRange():
            name = session.temp_schema if statement.schema == "pg_temp" else statement.schema
            _create(wants, catalog, name, statement.name)
            wants.array_of(name, statement.name)
            if isinstance(statement, st.CreateRange):
                multirange = statement.multirange or default_multirange_name(statement.name)
                wants.name(name, multirange)
                wants.array_of(name, multirange)
                if catalog.function_by_oid(statement.subtype_diff) is not None:
                    wants.rely(("function", statement.subtype_diff, 0))
        case st.AddEnumValue() | st.RenameEnumValue():
            wants.change(("type", statement.type, 0))
        case st.AlterComposite():
            _alter_composite(wants, catalog, statement)
            for below in statement.typed:
                _alter(wants, catalog, below)
            for oid in statement.renamed:
                _rename(wants, catalog, st.Rename(what="column", relation=oid))
        case st.AlterType():
            type_ = catalog.type_by_oid(statement.type)
            wants.change(("type", statement.type, 0))
            if type_ is not None:
                wants.schema(statement.schema or type_.schema)
                wants.name(type_.schema, type_.name)
                wants.name(statement.schema or type_.schema, statement.name or type_.name)
                wants.array_of(statement.schema or type_.schema, statement.name or type_.name)
        case st.Comment():
            _comment(wants, catalog, statement)
        case st.Grant():
            for target in paced(statement.targets):
                _about(wants, catalog, target.class_oid, target.oid)
                wants.change((f"acl/{target.class_oid}", target.oid, target.attnum))
        case st.GrantRole():
            wants.change(_MEMBERSHIPS)
            _roles(wants, catalog, statement.members, exclusive=True)
            granting = () if statement.grantor is None else (statement.grantor,)
            _roles(wants, catalog, (*statement.roles, *granting), exclusive=False)
        case st.RoleStatement() if statement.action != "drop":
            _roles(wants, catalog, statement.names, exclusive=True)
            for role in paced(statement.names):
                wants.change(role_name_key(role))
            for grant in statement.memberships:
                wants.change(_MEMBERSHIPS)
                _roles(wants, catalog, _others(grant.members, statement.names), exclusive=True)
                _roles(wants, catalog, _others(grant.roles, statement.names), exclusive=False)
        case st.AlterSource():
            source = catalog.sources.get(statement.name)
            if source is not None:
                wants.change(key_of(source))
        case st.CreateFunction() if _is_new(session, statement.function):
            _create_function(wants, session, statement.function)
        case _ if _finds_nothing(catalog, statement):
            pass  # IF [NOT] EXISTS, and there is nothing to do: nobody is waited for
        case _ if isinstance(statement, _OF_ONE_DATABASE):
            wants.change(WHOLE)
        case _:
            return None
    return wants


def _is_new(session: Session, function: FunctionDef) -> bool:
    """Tell whether there is no function with a name and parameters yet, so that nothing depends on it."""
    schema = _place(session, function)
    same = [f for f in session.catalog.functions_named(function.name) if f.schema == schema]
    return all(f.inputs != function.inputs for f in same)


def _place(session: Session, function: FunctionDef) -> str:
    return session.temp_schema if function.schema == "pg_temp" else function.schema


def _create_function(wants: Wants, session: Session, function: FunctionDef) -> None:
    """Take the name, which others that are made at the same time may have too, and rely on what the definition names."""
    schema = _place(session, function)
    wants.schema(schema)
    wants.name(schema, f"{function.name}(")
    for oid in (*function.types, function.result):
        wants.type(oid)
    for oid in function.depends_on:
        wants.rely(("relation", oid, 0))
    wants.text(*function.defaults, function.body_sql)


def _finds_nothing(catalog: CatalogSnapshot, statement: st.Statement) -> bool:
    """Tell whether a statement leaves the catalog alone: what it would drop is not there, or what it would make is."""
    match statement:
        case st.DropFunction():
            return not statement.functions
        case st.DropTextSearch() | st.DropForeign() | st.DropConversion() | st.DropCollation():
            return not statement.objects
        case st.DropOpclass():
            return not statement.object
        case st.CreateExtension():
            return statement.if_not_exists and catalog.extension(statement.name) is not None
        case st.DropExtension():
            return statement.if_exists and all(
                catalog.extension(name) is None for name in paced(statement.names)
            )
        case st.RoleStatement():
            dropped = statement.action == "drop" and statement.if_exists
            return dropped and all(catalog.role(name) is None for name in paced(statement.names))
    return False


def _create(wants: Wants, catalog: CatalogSnapshot, schema: str, name: str, *, skips: bool = False) -> None:
    """Take a name in a schema; one that is taken already, and is to be left alone then, only stays taken."""
    wants.schema(schema)
    if skips and catalog.relation(schema, name) is not None:
        wants.keys[name_key(schema, name)] = False
    else:
        wants.name(schema, name)


def _read(wants: Wants, oids: Iterable[int], sql: str) -> None:
    for oid in oids:
        wants.rely(("relation", oid, 0))
    wants.text(sql)


def _alter(wants: Wants, catalog: CatalogSnapshot, statement: st.AlterTable) -> None:
    rows = not all(isinstance(action, st.ValidateConstraint) for action in statement.actions)
    table = wants.relation(statement.table, rows=rows)
    if table is None:
        return
    wants.tree(table.oid, rows=rows)
    for action in paced(statement.actions, 1):
        match action:
            case st.AttachPartition() | st.DetachPartition():
                wants.parent(table.oid)
                wants.referring(action.partition)
                wants.relation(action.partition)
                wants.tree(action.partition)
                partition = catalog.relation_by_oid(action.partition)
                wants.referenced(() if partition is None else partition.constraints)
            case st.AttachIndex():
                wants.relation(action.index)
                for above in ancestors(table, catalog):
                    wants.relation(above.oid)
            case st.AddColumn():
                wants.columns([action.column])
                wants.text(*(check.sql for check in action.checks))
                wants.foreign_keys(action.foreign_keys)
            case st.AddCheck():
                wants.text(action.check.sql)
            case st.SetDefault():
                wants.text(action.default_sql)
            case st.AddForeignKey():
                wants.foreign_keys([action.key])
            case st.AlterConstraint() | st.DropConstraint():
                constraints = [c for c in table.constraints if c.name == action.name]
                wants.referenced(constraints)
                if any(c.kind in "pu" for c in constraints):
                    wants.referring(table.oid)
            case st.DropColumn():
                wants.referenced(table.foreign_keys)
                wants.views([table.oid], exclusive=action.cascade)
                if action.cascade:
                    wants.referring(table.oid)
                _sequences(wants, catalog, table)
            case st.AlterColumnTypes():
                for column in action.columns:
                    wants.type(column.type.oid)
                    wants.text(column.default_sql)
                wants.referenced(table.foreign_keys)
                wants.referring(table.oid)
                wants.views([table.oid], exclusive=False, deep=False)
            case st.SetIdentity() | st.DropIdentity() | st.AlterOwner() | st.SetPersistence():
                _sequences(wants, catalog, table)
            case st.SetSchema():
                wants.schema(action.schema)
                names = [table.name, *(index.name for index in table.indexes)]
                names += [sequence.name for sequence in catalog.sequences_of(table.oid)]
                for name in names:
                    wants.name(action.schema, name)
                    wants.name(table.schema, name)
                _sequences(wants, catalog, table)
                wants.views([table.oid], exclusive=True, deep=False)


def _alter_composite(wants: Wants, catalog: CatalogSnapshot, statement: st.AlterComposite) -> None:
    """Take the type, and the tables in whose columns are values of it: they are stored anew without an attribute that is dropped."""
    wants.change(("type", statement.type, 0))
    type_ = catalog.type_by_oid(statement.type)
    if type_ is not None and any(isinstance(action, st.DropAttribute) for action in statement.actions):
        for table in {table.oid for table, _column in columns_holding(catalog, type_.oid, type_.array_oid)}:
            wants.relation(table)


def _sequences(wants: Wants, catalog: CatalogSnapshot, table: RelationDef) -> None:
    for sequence in catalog.sequences_of(table.oid):
        wants.relation(sequence.oid)


def _rename(wants: Wants, catalog: CatalogSnapshot, statement: st.Rename) -> Wants | None:
    if statement.what == "schema":
        _rename_schema(wants, catalog, statement)
        return wants
    if statement.what not in ("relation", "column", "constraint"):
        return None
    relation = catalog.relation_by_oid(statement.relation)
    if relation is None:
        return wants
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
    return wants


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


def _change_statistics(wants: Wants, catalog: CatalogSnapshot, oid: int) -> str:
    """Change extended statistics, which are a part of their table as it is stored; return the name of their schema."""
    found = catalog.statistics_by_oid(oid)
    if found is None:
        return ""
    wants.relation(found[0].oid, rows=False)
    schema = catalog.schema_by_oid(found[1].schema_oid)
    return "" if schema is None else schema.name


def _alter_statistics(wants: Wants, catalog: CatalogSnapshot, statement: st.AlterStatistics) -> None:
    schema = _change_statistics(wants, catalog, statement.object)
    found = catalog.statistics_by_oid(statement.object)
    if found is not None and (statement.name is not None or statement.schema is not None):
        _create(wants, catalog, statement.schema or schema, statement.name or found[1].name)
    if statement.owner is not None:
        _roles(wants, catalog, [statement.owner], exclusive=False)


def _truncate(wants: Wants, catalog: CatalogSnapshot, statement: st.Truncate) -> None:
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
            _sequences(wants, catalog, table)
        if statement.cascade:
            todo += [child.oid for child, _constraint in references_to(catalog, table)]


def _drop(wants: Wants, session: Session, statement: st.Drop) -> None:
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
    """Tell whether a schema has types, functions or text search objects; outside of it all kinds of objects may use these."""
    return any(
        isinstance(item, TypeDef | FunctionDef | TextSearchDef | OpclassDef) and item.schema == schema
        for item in paced_iter(catalog.items.values())
    )


def _comment(wants: Wants, catalog: CatalogSnapshot, statement: st.Comment) -> None:
    _about(wants, catalog, statement.class_oid, statement.object_oid)
    wants.change((f"comment/{statement.class_oid}", statement.object_oid, statement.sub_id))


def _about(wants: Wants, catalog: CatalogSnapshot, class_oid: int, oid: int) -> None:
    """Lock what a comment or a list of rights is about: X, but S for what much else is within."""
    key = object_key(catalog, class_oid, oid)
    if key is None:
        return
    if class_oid in (PG_NAMESPACE_OID, PG_AUTHID_OID, PG_DATABASE_OID):
        wants.rely(key)
    else:
        wants.change(key)


def _others(names: Sequence[str], without: Sequence[str]) -> set[str]:
    return set(paced(names)).difference(without)


def _roles(wants: Wants, catalog: CatalogSnapshot, names: Iterable[str], *, exclusive: bool) -> None:
    for name in paced_iter(names):
        role = catalog.role(name)
        if role is not None:
            wants.keys[key_of(role)] = exclusive or wants.keys.get(key_of(role), False)
