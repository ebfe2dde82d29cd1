"""GRANT and REVOKE: changes of access control lists as catalog changes (``planner.catalog.acl``; of roles:
``members``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.catalog.parameters import parameter_names
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    PG_DATABASE_OID,
    PG_FOREIGN_DATA_WRAPPER_OID,
    PG_FOREIGN_SERVER_OID,
    PG_LANGUAGE_OID,
    PG_LARGEOBJECT_OID,
    PG_NAMESPACE_OID,
    PG_PROC_OID,
    PG_TYPE_OID,
    SUPERUSER_OID,
    StoredKey,
    key_of,
)
from engine.session.large_objects.access import acl_of
from engine.session.large_objects.statements import rows_of
from engine.session.named_roles import OWN_NAMES, grantees, named_role
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import between, paced, paced_iter, spaced
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.catalog import AclDef, RoleDef
from planner.catalog.acl import (
    ALL,
    READ_ALL_DATA,
    WRITE_ALL_DATA,
    best_grantor,
    default_acl,
    grant,
    held,
    nearest,
    revoke,
)
from planner.catalog.acl_items import AclItem
from planner.catalog.foreign import FOREIGN_WORDS, ServerDef, WrapperDef
from planner.catalog.parameters import PG_PARAMETER_ACL
from planner.catalog.rights import (
    READ_ALL,
    WRITE_ALL,
    Rights,
    builtin_function_acl,
    builtin_type_acl,
    column_acl,
    database_acl,
    foreign_acl,
    function_acl,
    grantable_columns,
    language_acl,
    languages,
    relation_acl,
    schema_acl,
    type_acl,
)
from planner.facts import facts
from planner.types.facts import is_fact
from txn.base.types import StoredRow

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.session.session import Session


class _Object:
    """The object of a grant: its list, its owner, and how messages call it. ``large``: rows of large objects,
    by number.
    """

    def __init__(
        self,
        session: Session,
        target: st.GrantTarget,
        large: Mapping[int, StoredRow],
        catalog: CatalogSnapshot,
    ) -> None:
        self.kind = target.kind
        self.column = ""
        if target.class_oid == PG_CLASS_OID:
            relation = catalog.relation_by_oid(target.oid)
            if relation is None:
                raise SqlError("42P01", f"relation with oid {target.oid} does not exist")
            self.owner, self.name = relation.owner, relation.name
            self.what = "sequence" if relation.kind == "S" else "table"
            self.items = relation_acl(catalog, relation)
            self.whole = self.items
            if target.attnum:
                self.items = column_acl(catalog, relation, target.attnum)
                self.column = grantable_columns(relation)[target.attnum]
        elif target.kind == "schema":
            schema = catalog.schema_by_oid(target.oid)
            if schema is None:
                raise SqlError("3F000", f"schema with oid {target.oid} does not exist")
            self.owner, self.name, self.what = schema.owner, schema.name, "schema"
            self.whole = self.items = schema_acl(catalog, schema)
        elif target.kind == "type":
            made = catalog.type_by_oid(target.oid)
            if made is not None:
                self.owner, self.name, self.what = made.owner, made.name, "type"
                self.whole = self.items = type_acl(catalog, made)
            elif is_fact(target.oid):
                self.owner, self.name, self.what = SUPERUSER_OID, facts().types[target.oid].name, "type"
                self.whole = self.items = builtin_type_acl(catalog, target.oid)
            else:
                raise SqlError("42704", f"type with OID {target.oid} does not exist")
        elif target.kind == "function":
            function = catalog.function_by_oid(target.oid)
            if function is not None:
                self.owner, self.name, self.what = function.owner, function.name, "function"
                self.whole = self.items = function_acl(catalog, function)
            elif target.oid in facts().procs:
                self.owner, self.name, self.what = SUPERUSER_OID, facts().procs[target.oid].name, "function"
                self.whole = self.items = builtin_function_acl(catalog, target.oid)
            else:
                raise SqlError("42883", f"function with OID {target.oid} does not exist")
        elif target.kind == "language":
            self.name = next(name for name, (oid, _) in languages().items() if oid == target.oid)
            self.owner, self.what = SUPERUSER_OID, "language"
            self.whole = self.items = language_acl(catalog, target.oid)
        elif target.class_oid == PG_PARAMETER_ACL:
            known = parameter_names().get(target.oid)
            if known is None and "." in target.name:
                raise not_supported("privileges of a parameter that the server does not have")
            if known is None:
                raise SqlError("42602", f'invalid parameter name "{target.name}"')
            self.owner, self.name, self.what = SUPERUSER_OID, known, "parameter"
            found = catalog.acl(PG_PARAMETER_ACL, target.oid)
            self.whole = self.items = default_acl("parameter", SUPERUSER_OID) if found is None else found
        elif target.class_oid in FOREIGN_WORDS:
            foreign = catalog.foreign_by_oid(target.oid)
            if not isinstance(foreign, WrapperDef | ServerDef):
                raise SqlError("42704", f"{target.kind} with OID {target.oid} does not exist")
            self.owner, self.name, self.what = foreign.owner, foreign.name, target.kind
            self.whole = self.items = foreign_acl(catalog, foreign)
        elif target.kind == "large object":
            row = large[target.oid]
            self.owner, self.name, self.what = row.values[2], f"large object {target.oid}", "large object"
            self.whole = self.items = acl_of(session, row)
        else:
            database = catalog.database_by_oid(target.oid)
            if database is None:
                raise SqlError("3D000", f"database with oid {target.oid} does not exist")
            self.owner, self.name, self.what = database.owner, database.name, "database"
            self.whole = self.items = database_acl(catalog, target.oid)


async def run_grant(session: Session, plan: Plan, statement: st.Grant, params: tuple[Any, ...]) -> Outcome:
    """GRANT or REVOKE of privileges.

    Raises SqlError 42501 without any right to grant, 2BP01, 0LP01, 42704, 0A000 (GRANTED BY somebody else).
    Warns 01007 and 01006 where the right is only to a part.
    """
    me = named_role(session, "current_user")
    if statement.grantor is not None and named_role(session, statement.grantor).oid != me.oid:
        raise SqlError("0A000", "grantor must be current user")
    roles = grantees(session, statement.grantees)
    large = await rows_of(session, statement)
    changed: dict[StoredKey, AclDef] = {}  # an object may be named more than once
    for target in spaced(statement.targets):
        for warning in target.warnings:
            session.warning(warning, "0LP01")
        if not target.letters:
            continue
        found = _Object(session, target, large, session.catalog)
        grantor, letters = _grantor(session, me, found, target, statement)
        if not letters:
            continue
        before = AclDef(
            class_oid=target.class_oid, object_oid=target.oid, sub_id=target.attnum, items=found.items
        )
        key = key_of(before)
        items = changed.get(key, before).items
        role_of = session.catalog.role_by_oid
        for grantee in roles:
            between()
            if statement.is_grant:
                option = role_of if statement.option else None
                items = grant(items, found.owner, grantor, grantee, letters, option=option)
            else:
                items = revoke(
                    items, found.owner, grantor, grantee, letters,
                    option_only=statement.option, cascade=statement.cascade, role_of=role_of,
                )  # fmt: skip
        changed[key] = replace(before, items=items)
        if target.kind in ("relation", "sequence") and not statement.is_grant:
            for acl in _columns_too(session, target, grantor, roles, statement, letters, changed):
                changed[key_of(acl)] = acl
    if changed:
        await session.view.change(list(changed.values()))
    return Command(plan.bound.tag)


def revoked_by_user(session: Session, acl: AclDef, roles: Iterable[int]) -> tuple[AclItem, ...]:
    """Return an access list without what the current user may take from ``roles``: what its REVOKE ALL …
    CASCADE would leave.

    Raises SqlError 42501 where it has no right to the object; warns 01006 where it has none to grant.
    """
    kinds = {
        PG_NAMESPACE_OID: "schema",
        PG_TYPE_OID: "type",
        PG_PROC_OID: "function",
        PG_LANGUAGE_OID: "language",
        PG_DATABASE_OID: "database",
        PG_PARAMETER_ACL: "parameter",
        PG_FOREIGN_DATA_WRAPPER_OID: "foreign-data wrapper",
        PG_FOREIGN_SERVER_OID: "foreign server",
    }
    kind = kinds.get(acl.class_oid, "")
    if acl.class_oid == PG_CLASS_OID:
        relation = session.catalog.relation_by_oid(acl.object_oid)
        kind = "column" if acl.sub_id else "sequence" if relation and relation.kind == "S" else "relation"
    target = st.GrantTarget(
        kind=kind,
        class_oid=acl.class_oid,
        oid=acl.object_oid,
        attnum=acl.sub_id,
        letters=ALL[kind],
        every=True,
    )
    statement = st.Grant(
        is_grant=False, targets=(target,), grantees=(), option=False, grantor=None, cascade=True
    )
    found = _Object(session, target, {}, session.catalog)
    grantor, letters = _grantor(session, session.role, found, target, statement)
    items = acl.items
    for role in roles if letters else ():
        items = revoke(
            items, found.owner, grantor, role, letters,
            option_only=False, cascade=True, role_of=session.catalog.role_by_oid,
        )  # fmt: skip
    return items


def refuse_strangers(session: Session, statement: st.Grant) -> None:
    """Raise SqlError 42501 as ``run_grant``, by the rights of today, before it locks what others need.

    Large objects are asked about with their rows, and roles that are not there are told when it runs.
    """
    catalog = session.rights_catalog
    named = [name for name in paced((statement.grantor, *statement.grantees)) if name is not None]
    if all(name in OWN_NAMES or catalog.role(name) is not None for name in paced_iter(set(paced(named)))):
        for target in paced(statement.targets):
            if target.class_oid != PG_LARGEOBJECT_OID and target.letters:
                found = _Object(session, target, {}, catalog)
                _grantor(session, session.role, found, target, statement, tell=False)


def _grantor(
    session: Session,
    me: RoleDef,
    found: _Object,
    target: st.GrantTarget,
    statement: st.Grant,
    *,
    tell: bool = True,
) -> tuple[int, str]:
    """Return who grants, and which of the letters asked for may be granted. ``tell``: warn where that is not
    all of them.
    """
    if me.superuser:
        return found.owner, target.letters
    roles = Rights(session.rights_catalog, me).roles
    items = (*found.whole, *found.items)
    near = nearest(me, session.rights_catalog.role_by_oid)
    candidates = (*near, *sorted(roles.difference(near)))
    grantor, options = best_grantor(items, candidates, found.owner, target.kind, target.letters)
    letters = options
    named = f'column "{found.column}" of relation "{found.name}"' if found.column else f'"{found.name}"'
    have = held(items, roles)
    if target.class_oid == PG_CLASS_OID:
        have += READ_ALL * (READ_ALL_DATA in roles) + WRITE_ALL * (WRITE_ALL_DATA in roles)
    if not letters and not set(have) & set(ALL[target.kind]):
        what = named if found.column else f"{found.what} {found.name}".strip()
        raise SqlError("42501", f"permission denied for {what}")
    every = target.every or (target.kind == "column" and target.letters == ALL["column"])
    if tell and (not letters or (letters != target.letters and not every)):
        which = "not all" if letters else "no"
        done = "were granted" if statement.is_grant else "could be revoked"
        session.warning(f"{which} privileges {done} for {named}", "01007" if statement.is_grant else "01006")
    if (
        not statement.is_grant
        and target.kind in ("relation", "sequence")
        and set(target.letters) & set(ALL["column"])
    ):
        _refuse_columns(session, target, roles, have + letters)
    return grantor, letters


def _refuse_columns(session: Session, target: st.GrantTarget, roles: frozenset[int], have: str) -> None:
    """Raise SqlError 42501 where REVOKE on a table goes on to columns to which the user has no right, as
    PostgreSQL does, which starts at system ones.
    """
    if set(have) & set(ALL["column"]):
        return
    relation = session.catalog.relation_by_oid(target.oid)
    if relation is None:
        raise AssertionError(f"relation {target.oid} is gone")
    closed = (
        name
        for attnum, name in grantable_columns(relation).items()
        if not held(column_acl(session.catalog, relation, attnum), roles)
    )
    name = next(closed, "")
    if name:
        raise SqlError("42501", f'permission denied for column "{name}" of relation "{relation.name}"')


def _columns_too(
    session: Session,
    target: st.GrantTarget,
    grantor: int,
    roles: list[int],
    statement: st.Grant,
    letters: str,
    changed: Mapping[StoredKey, AclDef],
) -> Iterator[AclDef]:
    """What is revoked on a table is revoked on its columns, too (manual, REVOKE). ``changed``: by the
    statement so far.
    """
    relation = session.catalog.relation_by_oid(target.oid)
    if relation is None:
        raise AssertionError(f"relation {target.oid} is gone")
    for attnum in grantable_columns(relation):
        stored = column_acl(session.catalog, relation, attnum)
        before = AclDef(class_oid=target.class_oid, object_oid=target.oid, sub_id=attnum, items=stored)
        before = changed.get(key_of(before), before)
        items = before.items
        for grantee in roles:
            between()
            items = revoke(
                items, relation.owner, grantor, grantee, letters,
                option_only=statement.option, cascade=statement.cascade,
                role_of=session.catalog.role_by_oid,
            )  # fmt: skip
        if items != before.items:
            yield replace(before, items=items)
