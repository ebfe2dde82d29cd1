"""CREATE, ALTER and DROP DATABASE; what settings begin with (docs/decisions/0010-databases.md).

    create   nobody else in the template ──> all that is in it (``database_copy``); the database itself
    drop     nobody in it (FORCE: they are ended) ──> its tables' shards, all its objects, the database itself

Both lock the whole catalog and are one transaction of their own, so that they are done or not, also after a
crash. While one waits for sessions to leave it holds no locks; from then on nobody is let in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import settle
from engine.base.settings import IDENTITY, TEXT_SEARCH
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.store import is_shared, write_changes
from engine.catalog.storage.stored import PG_DATABASE_OID, CommentDef, Stored, StoredKey, key_of
from engine.definitions.database_copy import copied, copy_rows
from engine.definitions.dropping.drop import drop_rows
from engine.definitions.needs.members import refuse_predefined
from engine.definitions.needs.privileges import check as check_privileges
from engine.session.large_objects import shards as large_objects
from engine.session.named_roles import named_role
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import AclDef, DatabaseDef, DefaultsDef
from planner.catalog.acl import memberships, reowned
from txn.base.types import Timestamp

if TYPE_CHECKING:
    from engine.session.session import Session

Params = tuple[Any, ...]

TEMPLATE: Final = "template1"
EMPTY_TEMPLATE: Final = "template0"  # in which nothing is sorted
_LONGEST: Final = 63  # bytes of a name


def _unknown(name: str) -> SqlError:
    return SqlError("3D000", f'database "{name}" does not exist')


def _named(session: Session, name: str) -> DatabaseDef:
    found = session.catalog.database_named(name)
    if found is None:
        raise _unknown(name)
    return found


def _in_use(what: str, name: str, count: int) -> SqlError:
    verb = "is 1 other session" if count == 1 else f"are {count} other sessions"
    return SqlError(
        "55006",
        f'{what} "{name}" is being accessed by other users',
        detail=f"There {verb} using the database.",
    )


# --- CREATE -----------------------------------------------------------------------------------------


async def create(session: Session, plan: Plan, statement: st.CreateDatabase, params: Params) -> Outcome:
    """CREATE DATABASE. Raises SqlError 25001, 42501, 42P04, 3D000, 55006 and what ``copied`` and
    ``copy_rows`` raise.
    """
    session.block.must_be_alone("CREATE DATABASE")
    options = dict(statement.options)
    template_name = str(options.pop("template", TEMPLATE))
    template = _template_for(session, statement.name, template_name)
    others = await session.db.attendance.wait_empty(template.oid, session.pid)
    if others:
        raise _in_use("source database", template_name, others)
    with session.db.attendance.keeping_out(template.oid):
        await session.view.start_ddl(plan)
        check_privileges(session, plan)
        template = _template_for(session, statement.name, template_name)
        _take_locale(options, template)
        owner = session.role if "owner" not in options else named_role(session, str(options.pop("owner")))
        database = DatabaseDef(
            oid=session.db.allocate_oids(1),
            name=statement.name.encode()[:_LONGEST].decode(errors="ignore"),
            owner=owner.oid,
            **options,  # type: ignore[arg-type]  # the binder has checked each
        )
        copy = await copied(session, session.db.spaces[template.oid])
        await session.view.change([database])
        txn = session.block.ensure_txn()
        await write_changes(txn, CatalogSnapshot({}, database=database.oid), copy.items, [])
        await copy_rows(session, copy)
        await large_objects.copy_database(txn, template.oid, database.oid)
        items = [(key_of(item), item) for item in copy.items]

        def applied(ts: Timestamp) -> None:
            session.db.spaces.adopt(database.oid, items, ts)

        txn.on_applied(applied)
        await session.block.commit()
    return Command(plan.bound.tag)


def _take_locale(options: dict[str, object], template: DatabaseDef) -> None:
    """Complete ``options`` by the template's locale. SqlError 22023 for another one, unless the template is empty."""
    for what, name, of_template in (
        ("collation", "collate", template.collate),
        ("LC_CTYPE", "ctype", template.ctype),
    ):
        wanted = options.setdefault(name, of_template)
        if wanted != of_template and template.name != EMPTY_TEMPLATE:
            raise SqlError(
                "22023",
                f"new {what} ({wanted}) is incompatible with the {what} of the template database ({of_template})",
                hint=f"Use the same {what} as in the template database, or use template0 as template.",
            )


def _template_for(session: Session, name: str, template_name: str) -> DatabaseDef:
    """Return the template of a database of a new name. Raises SqlError 3D000, 42P04."""
    template = session.catalog.database_named(template_name)
    if template is None:
        raise SqlError("3D000", f'template database "{template_name}" does not exist')
    if session.catalog.database_named(name) is not None:
        raise SqlError("42P04", f'database "{name}" already exists')
    return template


# --- ALTER ------------------------------------------------------------------------------------------


async def alter(session: Session, plan: Plan, statement: st.AlterDatabase, params: Params) -> Outcome:
    """ALTER DATABASE ... WITH, OWNER TO, REFRESH COLLATION VERSION. Raises SqlError 3D000, 42501, 42704;
    22023 for the current one.
    """
    database = _named(session, statement.name)
    if statement.refresh:  # there is no version: texts are compared by their bytes
        session.notice("version has not changed")
        return Command(plan.bound.tag)
    options = dict(statement.options)
    changed: list[Stored] = []
    if "owner" in options:
        owner = named_role(session, str(options.pop("owner")))
        items = session.catalog.acl(PG_DATABASE_OID, database.oid)
        if items is not None:
            acl = reowned(items, database.owner, owner.oid)
            changed.append(AclDef(class_oid=PG_DATABASE_OID, object_oid=database.oid, sub_id=0, items=acl))
        database = replace(database, owner=owner.oid)
    if options.get("allow_connections") is False and database.oid == session.database_oid:
        raise SqlError("22023", "cannot disallow connections for current database")
    await session.view.change([replace(database, **options), *changed])  # type: ignore[arg-type]  # checked by the binder
    return Command(plan.bound.tag)


async def rename_database(session: Session, old: str, new: str) -> None:
    """ALTER DATABASE ... RENAME TO. Raises SqlError 3D000, 42501, 42P04, 0A000 for the current one, 55006."""
    database = _named(session, old)
    if session.catalog.database_named(new) is not None:
        raise SqlError("42P04", f'database "{new}" already exists')
    if database.oid == session.database_oid:
        raise SqlError("0A000", "current database cannot be renamed")
    others = session.db.attendance.others(database.oid, session.pid)
    if others:
        raise _in_use("database", old, len(others))
    await session.view.change([replace(database, name=new)])


async def alter_defaults(
    session: Session, plan: Plan, statement: st.AlterDefaults, params: Params
) -> Outcome:
    """ALTER DATABASE, ALTER ROLE ... SET | RESET. Raises SqlError 3D000, 42704, 42939, 42501, and those of SET."""
    database = _named(session, statement.database) if statement.database else None
    role = None if statement.role is None else named_role(session, statement.role)
    if role is not None:
        refuse_predefined(role.name)
    key = (database.oid if database is not None else 0, role.oid if role is not None else 0)
    old = session.catalog.defaults_of(*key)
    settings = dict(old.settings) if old is not None else {}
    name, value = statement.change.name, statement.change.value
    if statement.change.current:
        value = session.setting(name)
    if name == "all" and value is None:
        settings = {name: kept for name, kept in settings.items() if not _may_reset(session, name)}
    elif value is None:
        if name.lower() not in IDENTITY and old is not None:
            session.settings.allow_kept(name, beginning=True)
        settings.pop(name.lower(), None)
    else:
        _check_beginning(session, name, value)
        settings.pop(name.lower(), None)
        settings[name.lower()] = value
    item = DefaultsDef(database=key[0], role=key[1], settings=settings)
    if settings:
        await session.view.change([item])
    elif old is not None:
        await session.view.change([], [key_of(item)])
    return Command(plan.bound.tag)


def _may_reset(session: Session, name: str) -> bool:
    """Tell whether RESET ALL forgets a setting; what only superusers set stays, as it bounds the role."""
    try:
        session.settings.allow_kept(name, beginning=True)
    except SqlError as error:
        if error.sqlstate == "42501":
            return False
        if error.sqlstate not in ("42704", "55P02"):  # of what no longer is, or no longer can be set
            raise
    return True


def _check_beginning(session: Session, name: str, value: str) -> None:
    """Check what a setting is to begin with; a text search configuration may come later. Raises SqlError as SET."""
    session.settings.allow_kept(name, beginning=True)
    try:
        session.settings.check(name, value, beginning=True)
    except SqlError as error:
        if name.lower() != TEXT_SEARCH or error.sqlstate != "22023":
            raise
        session.notice(f'text search configuration "{value}" does not exist', sqlstate="42704")


# --- DROP -------------------------------------------------------------------------------------------


async def drop(session: Session, plan: Plan, statement: st.DropDatabase, params: Params) -> Outcome:
    """DROP DATABASE. Raises SqlError 25001, 3D000, 42501, 42809 (a template), 55006."""
    session.block.must_be_alone("DROP DATABASE")
    database = _may_drop(session, statement)
    if database is None:
        return Command(plan.bound.tag)
    attendance = session.db.attendance
    if statement.force:
        _end_others(session, database)
    others = await attendance.wait_empty(database.oid, session.pid)
    if others:
        raise _in_use("database", statement.name, others)
    with attendance.keeping_out(database.oid):
        await session.view.start_ddl(plan)
        check_privileges(session, plan)
        again = _may_drop(session, statement)
        if again is None or again.oid != database.oid:
            raise _unknown(statement.name)
        await _drop(session, database)
        await session.block.commit()
    return Command(plan.bound.tag)


def _may_drop(session: Session, statement: st.DropDatabase) -> DatabaseDef | None:
    database = session.catalog.database_named(statement.name)
    if database is None:
        if not statement.if_exists:
            raise _unknown(statement.name)
        session.notice(f'database "{statement.name}" does not exist, skipping')
        return None
    if database.is_template:
        raise SqlError("42809", "cannot drop a template database")
    if database.oid == session.database_oid:
        raise SqlError("55006", "cannot drop the currently open database")
    space = session.db.spaces[database.oid]
    users = [f"source {name}" for name in space.catalog.sources]
    users += [f"subscription {n.record.name}" for n in session.db.named if n.record.database == database.oid]
    if users:
        raise SqlError(
            "55006",
            f'database "{database.name}" is used by {users[0]}',
            hint="Connect to it and drop its sources and subscriptions first.",
        )
    return database


def _end_others(session: Session, database: DatabaseDef) -> None:
    """Ask the sessions in a database to end. SqlError 42501 where one is somebody else's who is more."""
    others = session.db.attendance.others(database.oid, session.pid)
    for pid in others:
        connection = session.db.sessions.get(pid)
        if connection is None:
            continue
        theirs = session.today.role_by_oid(connection.session.identity.session)
        if not session.is_superuser and theirs is not None:
            if theirs.superuser:
                raise SqlError("42501", "must be a superuser to terminate superuser process")
            if theirs.oid not in memberships(session.role, session.today.role_by_oid):
                raise SqlError(
                    "42501",
                    "must be a member of the role whose process is being terminated or member of pg_signal_backend",
                )
    for pid in others:
        session.db.terminate(pid)


async def _drop(session: Session, database: DatabaseDef) -> None:
    """Stage the end of a database and of all that is in it."""
    txn = session.block.ensure_txn()
    catalog = session.db.spaces[database.oid].catalog
    for relation in catalog.user_relations():
        await drop_rows(catalog, txn, relation)
    await settle(txn.begin_write(large_objects.SHARDS))
    await large_objects.drop_database(txn, database.oid)
    own = [key for key in catalog.items if not is_shared(key[0])]
    await write_changes(txn, catalog, [], own)
    await session.view.change([], [key_of(database), *_about(session.catalog, database)])


def _about(catalog: CatalogSnapshot, database: DatabaseDef) -> Iterable[StoredKey]:
    """Yield the keys of the shared objects that say something of a database."""
    told: list[CommentDef | AclDef] = [*catalog.comments(), *catalog.acls()]
    for item in told:
        if item.class_oid == PG_DATABASE_OID and item.object_oid == database.oid:
            yield key_of(item)
    for defaults in catalog.defaults():
        if defaults.database == database.oid:
            yield key_of(defaults)
