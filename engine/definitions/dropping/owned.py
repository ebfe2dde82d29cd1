"""REASSIGN OWNED, DROP OWNED and ALTER DEFAULT PRIVILEGES (manual 22.4), in the database of the session.

REASSIGN OWNED BY a TO b     what a owns here, and its databases, become b's
DROP OWNED BY a              what a owns here is dropped; what a was granted here, and on databases, is revoked
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.catalog.default_acls import PG_DEFAULT_ACL_OID, sub_id
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    PG_DATABASE_OID,
    PG_EXTENSION_OID,
    PG_FOREIGN_DATA_WRAPPER_OID,
    PG_FOREIGN_SERVER_OID,
    PG_NAMESPACE_OID,
    PG_PROC_OID,
    PG_TS_CONFIG_OID,
    PG_TS_DICT_OID,
    PG_TYPE_OID,
    SUPERUSER_OID,
    Stored,
    StoredKey,
    key_of,
    predefined_roles,
)
from engine.definitions import extensions, functions, text_search
from engine.definitions.collations import drop_collations
from engine.definitions.conversions import drop_conversions
from engine.definitions.dropping.dependency_walk import Address, lines, told_with
from engine.definitions.dropping.dependents import still_needed
from engine.definitions.dropping.drop import drop_relations
from engine.definitions.dropping.extension_uses import dictionaries_of
from engine.definitions.dropping.notices import notice_cascade
from engine.definitions.foreign import drop_objects
from engine.definitions.foreign_parts import tables_below
from engine.definitions.grant import revoked_by_user
from engine.definitions.needs.needs import denied
from engine.definitions.opclasses import drop_objects as drop_opclasses
from engine.definitions.table.policies import without_roles
from engine.definitions.table.statistics_parts import (
    drop_statistics_in,
    drop_statistics_owned,
    reassign_statistics,
    statistics_owned_by,
)
from engine.definitions.types import drop_types
from engine.session.large_objects import statements as large_objects
from engine.session.named_roles import grantees, named_role
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import between, opening, paced, paced_iter, paced_sorted, spaced
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.catalog import (
    AclDef,
    ConfigurationDef,
    DatabaseDef,
    DictionaryDef,
    ExtensionDef,
    FunctionDef,
    RelationDef,
    RoleDef,
    SchemaDef,
    SourceDef,
    TextSearchDef,
    TypeDef,
)
from planner.catalog.acl import default_acl, grant, reowned, revoke
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import ForeignDef, MappingDef, ServerDef, WrapperDef
from planner.catalog.opclasses import OpclassDef, OperatorClassDef, OperatorFamilyDef
from planner.catalog.rights import Rights
from planner.catalog.statistics import PG_STATISTIC_EXT
from planner.information.describe import describe_object

if TYPE_CHECKING:
    from engine.session.session import Session

Params = tuple[Any, ...]
_Owned = (
    RelationDef | FunctionDef | TypeDef | SchemaDef | SourceDef | DatabaseDef | ExtensionDef
    | ConfigurationDef | DictionaryDef | OperatorFamilyDef | OperatorClassDef | WrapperDef | ServerDef | MappingDef | ConversionDef | CollationDef
)  # fmt: skip
_CLASSES: dict[type, int] = {
    RelationDef: PG_CLASS_OID, FunctionDef: PG_PROC_OID, TypeDef: PG_TYPE_OID, SchemaDef: PG_NAMESPACE_OID,
    ExtensionDef: PG_EXTENSION_OID, ConfigurationDef: PG_TS_CONFIG_OID, DictionaryDef: PG_TS_DICT_OID,
    DatabaseDef: PG_DATABASE_OID, WrapperDef: PG_FOREIGN_DATA_WRAPPER_OID, ServerDef: PG_FOREIGN_SERVER_OID,
}  # fmt: skip


@opening
def _owned(session: Session, roles: Set[int]) -> dict[int, list[_Owned]]:
    """Return by role what it owns in this database, and its databases, oldest first."""
    found: dict[int, list[_Owned]] = {role: [] for role in roles}
    for item in paced_iter(session.catalog.items.values()):
        if isinstance(item, _Owned) and item.owner in roles:
            found[item.owner].append(item)
    return {role: paced_sorted(items, key=lambda i: i.oid) for role, items in found.items()}


def _roles(session: Session, names: Sequence[str], verb: str, what: str) -> list[RoleDef]:
    """Return the roles whose objects are changed. Raises SqlError 42704, 2BP01."""
    found = []
    for name in dict.fromkeys(spaced(names)):
        role = named_role(session, name)
        if role.oid == SUPERUSER_OID or role.name in predefined_roles():
            raise SqlError(
                "2BP01",
                f"cannot {what} objects owned by role {role.name} because they are required by the database system",
            )
        if any(n.record.owner == role.oid for n in session.db.named):
            raise not_supported(f"{verb.upper()} OWNED BY a role that owns subscriptions")
        found.append(role)
    return found


async def reassign(session: Session, plan: Plan, statement: st.ReassignOwned, params: Params) -> Outcome:
    """REASSIGN OWNED. Raises SqlError 42704, 42501, 2BP01."""
    roles = _roles(session, statement.roles, "reassign", "reassign ownership of")
    to = named_role(session, statement.to)
    changed: list[Stored] = []
    everybodys = _owned(session, {role.oid for role in roles})
    for role in roles:
        owned = [] if role.oid == to.oid else everybodys[role.oid]
        owned = [item for item in spaced(owned) if not isinstance(item, MappingDef)]  # one is its role's own
        in_schemas = [one.schema_oid for _table, one in statistics_owned_by(session.catalog, role.oid)]
        _check_taken(session, owned, [] if role.oid == to.oid else in_schemas, to)
        changed += [replace(item, owner=to.oid) for item in spaced(owned)]
        of = {(_CLASSES[type(item)], item.oid) for item in spaced(owned) if type(item) in _CLASSES}
        changed += [
            replace(acl, items=reowned(acl.items, role.oid, to.oid))
            for acl in spaced(session.catalog.acls())
            if (acl.class_oid, acl.object_oid) in of
        ]
    if changed:
        await session.view.change(changed)
    await reassign_statistics(session, {role.oid for role in roles}, to.oid)
    await large_objects.reassign(session, {role.oid for role in roles}, to.oid)
    return Command(plan.bound.tag)


def _check_taken(session: Session, owned: Sequence[_Owned], statistics: Sequence[int], to: RoleDef) -> None:
    """Ask what PostgreSQL asks of objects one by one, of relations and types nothing. Raises SqlError 42501.

    Schemas change hands as by ALTER SCHEMA, for which their giver may CREATE in the database; who gets what
    is in a schema may make it there. ``statistics``: schemas of extended statistics.
    """
    giver, taker = Rights(session.catalog, session.role), Rights(session.catalog, to)
    if giver.superuser:
        return
    for item in spaced(owned):
        if isinstance(item, SchemaDef) and not giver.database("C"):
            raise denied("database", session.database)
        if isinstance(item, FunctionDef | TextSearchDef | OpclassDef | ConversionDef | CollationDef):
            schema = session.catalog.schema(item.schema)
            if schema is not None and not taker.schema(schema, "C"):
                raise denied("schema", schema.name)
    for oid in spaced(statistics):
        schema = session.catalog.schema_by_oid(oid)
        if schema is not None and not taker.schema(schema, "C"):
            raise denied("schema", schema.name)


async def drop_owned(session: Session, plan: Plan, statement: st.DropOwned, params: Params) -> Outcome:
    """DROP OWNED. Raises SqlError 42704, 42501, 2BP01 (what others have made of it, without CASCADE)."""
    roles = _roles(session, statement.roles, "drop", "drop")
    everybodys = _owned(session, {role.oid for role in roles})
    owned = [item for role in roles for item in everybodys[role.oid]]
    if any(isinstance(item, SourceDef) for item in spaced(owned)):
        raise not_supported("DROP OWNED BY a role that owns sources", hint="Use DROP SOURCE.")
    _check_dependents(session, owned, {role.oid for role in roles}, cascade=statement.cascade)
    await _drop(session, owned)
    await drop_statistics_owned(session, {role.oid for role in roles})
    await large_objects.drop_owned(session, {role.oid for role in roles})
    await _revoke(session, {role.oid for role in roles})
    await without_roles(session, {role.oid for role in roles})
    return Command(plan.bound.tag)


@opening
def _inside(session: Session, schemas: set[int]) -> list[RelationDef | FunctionDef | TypeDef | TextSearchDef]:
    items = session.catalog.items.values()
    return [
        item
        for item in paced_iter(items)
        if isinstance(item, RelationDef | FunctionDef | TypeDef | TextSearchDef)
        and item.schema_oid in schemas
    ]


def _address(item: _Owned) -> Address:
    of = (
        item.class_oid
        if isinstance(item, ForeignDef | OpclassDef | ConversionDef | CollationDef)
        else _CLASSES[type(item)]
    )
    return Address(of, item.oid)


@opening
def _check_dependents(session: Session, owned: Sequence[_Owned], roles: set[int], *, cascade: bool) -> None:
    """Tell what goes with what is owned; refuse without ``cascade`` (2BP01)."""
    roots = {item.oid for item in paced(owned) if not isinstance(item, DatabaseDef)}
    roots |= {
        part.oid
        for item in paced(owned)
        if isinstance(item, ExtensionDef)
        for part in extensions.members(session.catalog, item.oid)
    }
    brought = dictionaries_of(
        session.catalog, [item for item in paced(owned) if isinstance(item, ExtensionDef)]
    )
    roots |= {dictionary.oid for dictionary in brought}
    _views, _functions, links = functions.dependents(session, roots)
    searching = [*brought, *(item for item in paced(owned) if isinstance(item, TextSearchDef))]
    links += text_search.asked_by(session, searching)[1]
    asked = [_address(item) for item in paced(owned) if not isinstance(item, DatabaseDef)]
    for role in roles:
        asked += [
            Address(PG_STATISTIC_EXT, one.oid) for _table, one in statistics_owned_by(session.catalog, role)
        ]
    asked = paced_sorted(
        asked, key=lambda each: -each.oid
    )  # the youngest first, as what is dropped together is in PostgreSQL
    gone = told_with(session, asked, links, lambda one: functions.words_of(session, one.on))
    if gone and not cascade:
        raise still_needed(describe_object(session, *asked[0]) if len(asked) == 1 else None, lines(gone))
    notice_cascade(session, [one.what for one in paced(gone)])


async def _drop(session: Session, owned: Sequence[_Owned]) -> None:
    schemas = {item.oid for item in spaced(owned) if isinstance(item, SchemaDef)}
    every = [*(item for item in spaced(owned) if not isinstance(item, SchemaDef)), *_inside(session, schemas)]
    gone = {e.oid: e for e in spaced(owned) if isinstance(e, ExtensionDef)}
    gone |= {e.oid: e for schema in schemas for e in extensions.in_schema(session.catalog, schema)}
    every += [part for oid in gone for part in extensions.members(session.catalog, oid)]
    foreign = [item for item in spaced(owned) if isinstance(item, ForeignDef)]
    every += tables_below(session.catalog, foreign)
    relations = {r.oid: r for r in spaced(every) if isinstance(r, RelationDef)}
    gone_with = [
        r for r in spaced(relations.values())
        if r.sequence is None or not r.sequence.owner_table or r.sequence.owner_table not in relations
    ]  # fmt: skip
    if gone_with:
        await drop_relations(session, gone_with, cascade=True, quiet=True)
    catalog = session.catalog
    made = [
        f for f in spaced(every) if isinstance(f, FunctionDef) and catalog.function_by_oid(f.oid) is not None
    ]
    await functions.drop_functions(session, made, cascade=True, quiet=True)
    searching = [item for item in spaced(every) if isinstance(item, TextSearchDef)]
    await text_search.drop_objects(session, searching, cascade=True, quiet=True)
    await extensions.forget_extensions(session, gone.values())
    types = [
        t for t in spaced(every) if isinstance(t, TypeDef) and session.catalog.type_by_oid(t.oid) is not None
    ]
    await drop_types(session, types, cascade=True, quiet=True)
    await drop_objects(session, foreign)
    ordering = [item for item in spaced(owned) if isinstance(item, OpclassDef)]
    ordering += [item for item in session.catalog.opclasses() if item.schema_oid in schemas]
    await drop_opclasses(session, ordering)
    converting = [item for item in spaced(owned) if isinstance(item, ConversionDef)]
    converting += [item for item in session.catalog.conversions() if item.schema_oid in schemas]
    await drop_conversions(session, converting)
    collating = [item for item in spaced(owned) if isinstance(item, CollationDef)]
    collating += [item for item in session.catalog.collations() if item.schema_oid in schemas]
    await drop_collations(session, collating)
    await drop_statistics_in(session, schemas)
    deletes: list[StoredKey] = [("schema", oid, 0) for oid in sorted(schemas)]
    deletes += [key_of(a) for a in spaced(session.catalog.acls()) if a.object_oid in schemas]
    deletes += [key_of(c) for c in spaced(session.catalog.comments()) if c.object_oid in schemas]
    if deletes:
        await session.view.change([], deletes)


async def _revoke(session: Session, roles: set[int]) -> None:
    """Take from all lists what roles were granted; their default privileges go.

    A superuser takes all of it; who is a member, what its REVOKE would: others' grants to the role stay (42501, 01006).
    """
    puts: list[Stored] = []
    deletes: list[StoredKey] = []
    for acl in spaced(session.catalog.acls()):
        if acl.class_oid == PG_DEFAULT_ACL_OID and acl.object_oid in roles:
            deletes.append(key_of(acl))
            continue
        kept = tuple(item for item in acl.items if item.grantee not in roles and item.grantor not in roles)
        if kept != acl.items and not session.role.superuser:
            kept = revoked_by_user(session, acl, sorted(roles))
        if kept != acl.items:
            puts.append(replace(acl, items=kept))
    if puts or deletes:
        await session.view.change(puts, deletes)


async def default_privileges(
    session: Session, plan: Plan, statement: st.AlterDefaultPrivileges, params: Params
) -> Outcome:
    """ALTER DEFAULT PRIVILEGES. Raises SqlError 42704."""
    to = grantees(session, statement.grantees)
    schemas = dict.fromkeys(statement.schemas)  # each once, as the lists are changed together
    puts: list[Stored] = []
    deletes: list[StoredKey] = []
    role_of = session.catalog.role_by_oid
    for name in dict.fromkeys(spaced(statement.roles)):
        role = named_role(session, name)
        for schema in schemas:
            plain = () if schema else default_acl(statement.kind, role.oid)
            sub = sub_id(schema, statement.kind)
            before = session.catalog.acl(PG_DEFAULT_ACL_OID, role.oid, sub)
            items = plain if before is None else before
            for grantee in to:
                between()
                if statement.is_grant:
                    option = role_of if statement.option else None
                    items = grant(items, role.oid, role.oid, grantee, statement.letters, option=option)
                else:
                    items = revoke(
                        items, role.oid, role.oid, grantee, statement.letters,
                        option_only=statement.option, cascade=statement.cascade, role_of=role_of,
                    )  # fmt: skip
            made = AclDef(class_oid=PG_DEFAULT_ACL_OID, object_oid=role.oid, sub_id=sub, items=items)
            if set(items) != set(plain):
                puts.append(made)
            elif before is not None:
                deletes.append(key_of(made))
    if puts or deletes:
        await session.view.change(puts, deletes)
    return Command(plan.bound.tag)
