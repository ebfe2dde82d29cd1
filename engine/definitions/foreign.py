"""CREATE, ALTER and DROP of foreign-data wrappers, servers and user mappings as catalog changes
(``planner.catalog.foreign``).

    wrapper  <──n── server  <──n── user mapping ──o──> role
                            <──n── foreign table

They are kept, shown and dumped; a wrapper without a handler reads nothing, in PostgreSQL as here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.catalog.storage.stored import key_of
from engine.definitions.dropping.dependency_walk import Address, Told, lines, told
from engine.definitions.dropping.dependents import still_needed
from engine.definitions.dropping.drop import drop_relations
from engine.definitions.dropping.notices import kept_about, notice_cascade
from engine.definitions.foreign_parts import tables_below, validator_of, with_dependents, words
from engine.session.catalog.foreign import foreign_of, no_handler
from engine.session.named_roles import named_role
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome
from pgwire.give_way import openly
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import AclDef
from planner.catalog.acl import reowned
from planner.catalog.foreign import (
    FOREIGN_WORDS,
    PG_FOREIGN_DATA_WRAPPER,
    PG_FOREIGN_SERVER,
    PG_USER_MAPPING,
    PUBLIC_MAPPING,
    ForeignDef,
    MappingDef,
    ServerDef,
    WrapperDef,
)
from planner.statements.foreign_options import changed_options, check_options

if TYPE_CHECKING:
    from engine.session.session import Session

Params = tuple[Any, ...]


def _check_new(session: Session, class_oid: int, name: str) -> None:
    if session.catalog.foreign_named(class_oid, name) is not None:
        raise SqlError("42710", f'{FOREIGN_WORDS[class_oid]} "{name}" already exists')


async def create_wrapper(
    session: Session, plan: Plan, statement: st.CreateWrapper, params: Params
) -> Outcome:
    """CREATE FOREIGN DATA WRAPPER. Raises SqlError 42710, 42601 (an option that its validator does not know)."""
    _check_new(session, PG_FOREIGN_DATA_WRAPPER, statement.name)
    openly(check_options, statement.validator, statement.options, PG_FOREIGN_DATA_WRAPPER)
    made = WrapperDef(
        oid=session.db.allocate_oids(1),
        name=statement.name,
        owner=session.role_oid,
        validator=statement.validator,
        options=statement.options,
    )
    await session.view.change([made])
    return Command(plan.bound.tag)


async def alter_wrapper(session: Session, plan: Plan, statement: st.AlterWrapper, params: Params) -> Outcome:
    """ALTER FOREIGN DATA WRAPPER with functions or options. Raises SqlError 42704, 42710, 42601; warns 01000."""
    found = foreign_of(session.catalog, WrapperDef, statement.wrapper)
    if statement.handler:
        session.warning(
            "changing the foreign-data wrapper handler can change behavior of existing foreign tables",
            "01000",
        )
    validator = found.validator if statement.validator is None else statement.validator
    if validator and statement.validator is not None:
        session.warning(
            "changing the foreign-data wrapper validator can cause the options for dependent objects to become invalid",
            "01000",
        )
    options = found.options
    if statement.changes:
        options = openly(changed_options, options, statement.changes)
        openly(check_options, validator, options, PG_FOREIGN_DATA_WRAPPER)
    await session.view.change([replace(found, validator=validator, options=options)])
    return Command(plan.bound.tag)


async def create_server(session: Session, plan: Plan, statement: st.CreateServer, params: Params) -> Outcome:
    """CREATE SERVER. Raises SqlError 42710, 42601."""
    if session.catalog.foreign_named(PG_FOREIGN_SERVER, statement.name) is not None:
        message = f'server "{statement.name}" already exists'
        if not statement.if_not_exists:
            raise SqlError("42710", message)
        session.notice(f"{message}, skipping", sqlstate="42710")
        return Command(plan.bound.tag)
    wrapper = foreign_of(session.catalog, WrapperDef, statement.wrapper)
    openly(check_options, wrapper.validator, statement.options, PG_FOREIGN_SERVER)
    made = ServerDef(
        oid=session.db.allocate_oids(1),
        name=statement.name,
        owner=session.role_oid,
        wrapper=wrapper.oid,
        type=statement.type,
        version=statement.version,
        options=statement.options,
    )
    await session.view.change([made])
    return Command(plan.bound.tag)


async def alter_server(session: Session, plan: Plan, statement: st.AlterServer, params: Params) -> Outcome:
    """ALTER SERVER with a version or options. Raises SqlError 42704, 42710, 42601."""
    found = foreign_of(session.catalog, ServerDef, statement.server)
    options = found.options
    if statement.changes:
        options = openly(changed_options, options, statement.changes)
        openly(check_options, validator_of(session.catalog, found), options, PG_FOREIGN_SERVER)
    version = statement.version if statement.has_version else found.version
    await session.view.change([replace(found, version=version, options=options)])
    return Command(plan.bound.tag)


# --- user mappings --------------------------------------------------------------------------------


def _mapped(session: Session, role: str | None) -> tuple[int, str]:
    """Return whom a mapping is for, by oid and as messages call it. Raises SqlError 42704."""
    if role is None:
        return PUBLIC_MAPPING, "public"
    found = named_role(session, role)
    return found.oid, found.name


def _missing(name: str, server: str) -> str:
    return f'user mapping for "{name}" does not exist for server "{server}"'


async def create_mapping(
    session: Session, plan: Plan, statement: st.CreateUserMapping, params: Params
) -> Outcome:
    """CREATE USER MAPPING. Raises SqlError 42704, 42710, 42601."""
    role, name = _mapped(session, statement.role)
    server = foreign_of(session.catalog, ServerDef, statement.server)
    if session.catalog.foreign_named(PG_USER_MAPPING, (role, server.oid)) is not None:
        message = f'user mapping for "{name}" already exists for server "{server.name}"'
        if not statement.if_not_exists:
            raise SqlError("42710", message)
        session.notice(f"{message}, skipping", sqlstate="42710")
        return Command(plan.bound.tag)
    openly(check_options, validator_of(session.catalog, server), statement.options, PG_USER_MAPPING)
    made = MappingDef(
        oid=session.db.allocate_oids(1), owner=role, server=server.oid, options=statement.options
    )
    await session.view.change([made])
    return Command(plan.bound.tag)


async def alter_mapping(
    session: Session, plan: Plan, statement: st.AlterUserMapping, params: Params
) -> Outcome:
    """ALTER USER MAPPING. Raises SqlError 42704, 42710, 42601."""
    role, name = _mapped(session, statement.role)
    server = foreign_of(session.catalog, ServerDef, statement.server)
    found = session.catalog.foreign_named(PG_USER_MAPPING, (role, server.oid))
    if not isinstance(found, MappingDef):
        raise SqlError("42704", _missing(name, server.name))
    options = openly(changed_options, found.options, statement.changes)
    openly(check_options, validator_of(session.catalog, server), options, PG_USER_MAPPING)
    await session.view.change([replace(found, options=options)])
    return Command(plan.bound.tag)


async def drop_mapping(
    session: Session, plan: Plan, statement: st.DropUserMapping, params: Params
) -> Outcome:
    """DROP USER MAPPING. Raises SqlError 42704; with IF EXISTS it is a notice."""
    try:
        role, name = _mapped(session, statement.role)
        if not statement.server:
            raise SqlError("42704", f'server "{statement.written}" does not exist')
        server = foreign_of(session.catalog, ServerDef, statement.server)
        found = session.catalog.foreign_named(PG_USER_MAPPING, (role, server.oid))
        if found is None:
            raise SqlError("42704", _missing(name, server.name))
    except SqlError as error:
        if not statement.if_exists:
            raise
        session.notice(f"{error.message}, skipping")
        return Command(plan.bound.tag)
    await session.view.change([], [key_of(found)])
    return Command(plan.bound.tag)


# --- names, owners, DROP --------------------------------------------------------------------------


async def alter_foreign(session: Session, plan: Plan, statement: st.AlterForeign, params: Params) -> Outcome:
    """RENAME TO, OWNER TO. Raises SqlError 42710, 42704, 42501 (who is to own a wrapper is no superuser)."""
    found = session.catalog.foreign_by_oid(statement.object)
    if not isinstance(found, WrapperDef | ServerDef):
        raise Replan
    if statement.name is not None:
        _check_new(session, found.class_oid, statement.name)
        await session.view.change([replace(found, name=statement.name)])
        return Command(plan.bound.tag)
    if statement.owner is None:
        raise AssertionError("ALTER of a foreign object changes neither options nor owner")
    owner = named_role(session, statement.owner)
    if isinstance(found, WrapperDef) and not owner.superuser:
        raise SqlError(
            "42501",
            f'permission denied to change owner of foreign-data wrapper "{found.name}"',
            hint="The owner of a foreign-data wrapper must be a superuser.",
        )
    if owner.oid != found.owner:
        acl = session.catalog.acl(found.class_oid, found.oid)
        changed: list[WrapperDef | ServerDef | AclDef] = [replace(found, owner=owner.oid)]
        if acl is not None:
            items = reowned(acl, found.owner, owner.oid)
            changed.append(AclDef(class_oid=found.class_oid, object_oid=found.oid, sub_id=0, items=items))
        await session.view.change(changed)
    return Command(plan.bound.tag)


async def drop_foreign(session: Session, plan: Plan, statement: st.DropForeign, params: Params) -> Outcome:
    """DROP FOREIGN DATA WRAPPER and SERVER. Raises SqlError 2BP01."""
    for notice in statement.missing:
        session.notice(notice)
    asked = [found for oid in statement.objects if (found := session.catalog.foreign_by_oid(oid)) is not None]
    if not asked:
        return Command(plan.bound.tag)
    tables = tables_below(session.catalog, asked)
    gone: list[Told] = openly(told, session, [Address(item.class_oid, item.oid) for item in asked])
    if gone and not statement.cascade:
        raise still_needed(words(session, asked[0]) if len(asked) == 1 else None, lines(gone))
    notice_cascade(session, [one.what for one in gone])
    if tables:
        await drop_relations(session, tables, cascade=True, quiet=True)
    await drop_objects(session, asked)
    return Command(plan.bound.tag)


async def drop_objects(session: Session, asked: Sequence[ForeignDef]) -> None:
    """Drop objects and all that is of them."""
    every = with_dependents(session.catalog, asked)
    if every:
        about = openly(kept_about, session.catalog, set(every))
        await session.view.change([], [*map(key_of, every.values()), *about])


async def import_schema(
    session: Session, plan: Plan, statement: st.ImportForeignSchema, params: Params
) -> Outcome:
    """IMPORT FOREIGN SCHEMA. Raises SqlError 3F000, and 55000 where it could begin: no wrapper has a handler."""
    catalog = session.catalog
    server = foreign_of(catalog, ServerDef, statement.server)
    if catalog.schema(statement.schema) is None:
        raise SqlError("3F000", f'schema "{statement.schema}" does not exist')
    raise no_handler(foreign_of(catalog, WrapperDef, server.wrapper))
