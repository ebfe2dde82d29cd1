"""Composite types as catalog changes: CREATE TYPE ... AS (...), and what ALTER TYPE does to attributes.

Values have their attributes by number (``pgwire.codecs.users.composite``), so that adding and renaming
attributes touches no row:

    CREATE TYPE t AS (a int, b text)      1 a   2 b             (1, 'x')
    DROP ATTRIBUTE a                      1 .   2 b             (., 'x')
    ADD ATTRIBUTE c date                  1 .   2 b   3 c       (., 'x'), and c is NULL

Dropping one, or changing its type, changes how values compare, and values that are stored have their order in
them: both are refused while a column holds values of the type, which is what PostgreSQL does for changes of
types.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.catalog.row_parts import columns_holding
from engine.definitions import functions
from engine.definitions.attribute_types import refuse_used
from engine.definitions.domains import domains_over
from engine.definitions.dropping.dependents import Dependency, in_report_order, still_needed
from engine.definitions.dropping.drop import table_of, view_dependencies, view_dependents
from engine.definitions.dropping.field_uses import selecting
from engine.definitions.dropping.notices import notice_cascade
from engine.definitions.field_names import rename_fields
from engine.definitions.named_places import target_schema
from engine.definitions.roles import function_words
from engine.definitions.stored_queries import rebase_queries
from engine.definitions.table.alter import apply_actions
from engine.definitions.table.held_rows import refuse_unordered, repack_rows
from engine.definitions.table.rename import rename_column
from engine.definitions.type_names import check_free, make_room
from engine.definitions.types import changed_type, new_type, without_attribute
from engine.session.catalog.names import described
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.give_way import between, openly
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.stored.domain_checks import check_function
from planner.catalog import ColumnDef, TypeDef
from planner.catalog.row_parts import refuse_member
from planner.functions.system.names import type_name
from planner.types.domains import domain_named, plain_type

Params = tuple[Any, ...]


async def create_composite(
    session: Session, plan: Plan, statement: st.CreateComposite, params: Params
) -> Outcome:
    """CREATE TYPE ... AS (...). Raises SqlError 42710, 42P07, 42701."""
    schema, schema_oid = await target_schema(
        session, statement.schema, "t" if statement.schema == "pg_temp" else "p"
    )
    await make_room(session, schema, statement.name)
    check_free(session.catalog, schema, statement.name)
    if (
        session.catalog.relation(schema, statement.name) is not None
    ):  # an index or a sequence: they have no types
        raise SqlError("42P07", f'relation "{statement.name}" already exists')
    names: set[str] = set()
    attributes: list[ColumnDef] = []
    for spec in statement.attributes:
        if spec.name in names:
            raise SqlError("42701", f'column "{spec.name}" specified more than once')
        names.add(spec.name)
        attributes.append(attribute(len(names), spec))
        between()
    first = session.db.allocate_oids(3)
    made = new_type(
        session,
        (schema, schema_oid),
        statement.name,
        "c",
        first,
        attributes=tuple(attributes),
        relation_oid=first + 2,
    )
    await session.view.change([made])
    return Command("CREATE TYPE")


def attribute(attnum: int, spec: st.AttributeSpec) -> ColumnDef:
    """Return an attribute as the catalog has it."""
    return ColumnDef(
        attnum=attnum,
        name=spec.name,
        type=plain_type(spec.type),
        collation=spec.collation,
        domain=domain_named(spec.type),
        dims=spec.dims,
    )


async def alter_composite(
    session: Session, plan: Plan, statement: st.AlterComposite, params: Params
) -> Outcome:
    """ALTER TYPE ... ATTRIBUTE. Raises SqlError 42701, 42703, 42P16; 0A000 for changes of types that columns have."""
    type_ = changed_type(session, statement.type)
    before = session.catalog
    tables = (*(below.table for below in statement.typed), *statement.renamed)
    if tables != tuple(relation.oid for relation in before.typed_tables(type_.oid)):
        raise Replan  # a table of the type has come or gone since
    holding = list(columns_holding(before, type_.oid, type_.array_oid))
    for action in statement.actions:
        changed = _altered(session, type_, action)
        if isinstance(action, st.DropAttribute) and changed is not type_:
            await _lose(session, changed, action)
        type_ = changed
    before = session.catalog
    await session.view.change([type_])
    if any(isinstance(action, st.AddAttribute | st.DropAttribute) for action in statement.actions):
        await rebase_queries(session, frozenset(), before, type_.family)
    if any(isinstance(action, st.DropAttribute) for action in statement.actions):
        await repack_rows(session, type_.oid, holding)
    for action in statement.actions:
        if isinstance(action, st.RenameAttribute):
            await rename_fields(session, before, action.old)
        else:
            _check_domains(session, type_, action)
    for below in statement.typed:
        await apply_actions(session, plan, below)
    for action in statement.actions:
        if isinstance(action, st.RenameAttribute):
            for table in statement.renamed:
                await rename_column(session, table_of(session, table), action.old, action.new)
    return Command(plan.bound.tag)


async def _lose(session: Session, changed: TypeDef, action: st.DropAttribute) -> None:
    """Drop, with CASCADE, what selects an attribute that ``changed`` has no more; raise SqlError 2BP01
    without where there is such.
    """
    uses = selecting(session, changed, action.name, changed.family)
    root = ("attribute", changed.oid, action.name)
    views, _, links = functions.dependents(session, [function.oid for function in uses.functions])
    found = uses.dependencies(session, root) + links
    found += [Dependency(v.oid, v.oid, described(session, v), root) for v in uses.views]
    found += [Dependency(f.oid, f.oid, function_words(session, f), root) for f in uses.functions]
    below = {view.oid for view in (*uses.views, *views)}
    found += view_dependencies(session, view_dependents(session, below))
    told = [one for one in in_report_order([root], found) if one.what]
    if told and not action.cascade:
        column = f"column {action.name} of composite type {type_name(session, changed.oid, None)}"
        on = [column if one.on == root else functions.words_of(session, one.on) for one in told]
        raise still_needed(
            column, (f"{one.what} depends on {words}" for one, words in zip(told, on, strict=True))
        )
    notice_cascade(session, [one.what for one in told])
    await uses.drop(session)


def _check_domains(session: Session, type_: TypeDef, action: st.AttributeAction) -> None:
    """Raise SqlError for a CHECK of a domain over a type that no longer reads its attributes: 2BP01 for one
    dropped, else what the condition says of the new type (42883).
    """
    for oid in sorted(domains_over(session, type_.oid) - {type_.oid}):
        made = session.catalog.type_by_oid(oid)
        if made is None:
            continue
        for check in made.checks:
            try:
                check_function(session.catalog, made, check.check_sql)
            except SqlError as error:
                if not isinstance(action, st.DropAttribute):
                    raise SqlError(
                        error.sqlstate, error.message, detail=error.detail, hint=error.hint
                    ) from None
                column = f"column {action.name} of composite type {type_.name}"
                raise SqlError(
                    "2BP01",
                    f"cannot drop {column} because other objects depend on it",
                    detail=f"constraint {check.name} depends on {column}",
                    hint="Use DROP ... CASCADE to drop the dependent objects too.",
                ) from None


def _altered(session: Session, type_: TypeDef, action: st.AttributeAction) -> TypeDef:
    columns = list(type_.attributes)
    if isinstance(action, st.AddAttribute):
        if any(c.name == action.attribute.name and not c.dropped for c in columns):
            raise SqlError(
                "42701", f'column "{action.attribute.name}" of relation "{type_.name}" already exists'
            )
        refuse_member(session.catalog, type_.oid, action.attribute.type.oid)
        refuse_unordered(session.catalog, type_, action.attribute.type.oid)
        return replace(type_, attributes=(*columns, attribute(len(columns) + 1, action.attribute)))
    name = action.old if isinstance(action, st.RenameAttribute) else (
        action.name if isinstance(action, st.DropAttribute) else action.attribute.name
    )  # fmt: skip
    at = next((i for i, c in enumerate(columns) if c.name == name and not c.dropped), None)
    if at is None:
        message = f'column "{name}" of relation "{type_.name}" does not exist'
        if isinstance(action, st.DropAttribute) and action.if_exists:
            session.notice(f"{message}, skipping")
            return type_
        raise SqlError("42703", message)
    if isinstance(action, st.RenameAttribute):
        columns[at] = replace(columns[at], name=action.new)
    elif isinstance(action, st.DropAttribute):
        return without_attribute(type_, at + 1)
    else:
        openly(refuse_used, session, type_, columns[at])
        refuse_member(session.catalog, type_.oid, action.attribute.type.oid)
        refuse_unordered(session.catalog, type_, action.attribute.type.oid)
        columns[at] = attribute(at + 1, action.attribute)
    return replace(type_, attributes=tuple(columns))
