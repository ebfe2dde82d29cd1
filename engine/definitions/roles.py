"""CREATE, ALTER and DROP ROLE; SET ROLE. Passwords are stored as SCRAM-SHA-256 verifiers only."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.catalog.default_acls import PG_DEFAULT_ACL_OID, split
from engine.catalog.parameters import parameter_names
from engine.catalog.storage.spaces import objects_in
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    PG_DATABASE_OID,
    PG_LANGUAGE_OID,
    PG_LARGEOBJECT_OID,
    PG_NAMESPACE_OID,
    PG_PROC_OID,
    PG_TYPE_OID,
    SUPERUSER_OID,
    key_of,
    predefined_roles,
)
from engine.definitions.dropping.dependents import client_and_log
from engine.definitions.foreign_parts import owned_by, words
from engine.definitions.needs.members import changed_members, refuse_predefined, refuse_reserved_role
from engine.definitions.table.policies import role_targets
from engine.definitions.table.statistics_parts import statistics_owned_by, statistics_words
from engine.session.catalog.names import shown_name
from engine.session.large_objects import statements as large_objects
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.auth.scram import (
    MAX_ITERATIONS,
    Verifier,
    check_password,
    is_usable,
    make_verifier,
    parse_verifier,
)
from pgwire.give_way import opening, paced_iter, spaced
from planner.base.errors import SqlError, not_supported
from planner.base.quoting import quote_identifier
from planner.bind.define.named_functions import signature
from planner.catalog import AclDef, FunctionDef, RoleDef
from planner.catalog.parameters import PG_PARAMETER_ACL
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.catalog.rights import grantable_columns, languages
from planner.facts import facts
from planner.functions.system.function_names import shown_function
from planner.functions.system.names import type_name
from planner.functions.values.reg import search_object_name
from planner.information.describe import describe_object
from planner.statements import RoleStatement
from planner.textsearch.names import SEARCH_NAMES

if TYPE_CHECKING:
    from engine.session.session import Session

_OWNED = {kind: facts.word for kind, facts in RELATION_KINDS.items() if kind not in ("c", "i")}
_LAST: Final = 1 << 32  # behind what has an oid
_PLAIN = frozenset(
    [
        "superuser",
        "inherit",
        "create_role",
        "create_db",
        "can_login",
        "replication",
        "bypass_rls",
        "connection_limit",
        "valid_until",
    ]
)


async def run_role(
    session: Session, plan: Plan, statement: RoleStatement, params: tuple[Any, ...]
) -> Outcome:
    """Run a role statement."""
    if statement.action == "create":
        await _create(session, statement)
    elif statement.action == "alter":
        await _alter(session, statement)
    else:
        await _drop(session, statement)
    return Command(plan.bound.tag)


def _apply(session: Session, role: RoleDef, options: Any) -> RoleDef:
    changes: dict[str, Any] = {}
    for name, value in options.items():
        if name in _PLAIN:
            changes[name] = value
        elif name == "password":
            changes["verifier"] = _verifier(session, value)
        else:
            raise not_supported(f"role option {name}")
    return replace(role, **changes)


_MD5_HASH: Final = re.compile(r"md5[0-9a-f]{32}")
"""What PostgreSQL takes for a hash; anything else that begins so is a password."""
_MOST_TRIED: Final = 100_000


def _is_empty(verifier: Verifier) -> bool:
    """Tell whether a verifier is that of the empty password, which nobody may have; one that takes long to
    try is not tried.
    """
    return verifier.iterations <= _MOST_TRIED and check_password("", verifier)


def _verifier(session: Session, password: str | None) -> str | None:
    """Return what is kept of a password: its verifier, also where it was given in that form. SqlError 0A000
    for other hashes.

    A hash that could not be compared with must not become the password itself: whoever has read it would come in.
    """
    if password is None:
        return None
    if _MD5_HASH.fullmatch(password):
        raise SqlError(
            "0A000",
            "MD5 password hashes are not supported",
            hint="Give the password itself, or its SCRAM-SHA-256 verifier.",
        )
    verifier = parse_verifier(password)
    if verifier is not None and not is_usable(verifier):
        raise SqlError(
            "0A000",
            f"SCRAM-SHA-256 verifiers of {verifier.iterations} iterations are not supported"
            if verifier.salt
            else "SCRAM-SHA-256 verifiers without a salt are not supported",
            hint=f"There may be 1 to {MAX_ITERATIONS} iterations.",
        )
    if password == "" or (verifier is not None and _is_empty(verifier)):
        session.notice("empty string is not a valid password, clearing password")
        return None
    return password if verifier is not None else str(make_verifier(password, session.random_bytes(16)))


async def _create(session: Session, statement: RoleStatement) -> None:
    [name] = statement.names
    refuse_reserved_role(name)
    if session.catalog.role(name) is not None:
        raise SqlError("42710", f'role "{name}" already exists')
    role = RoleDef(oid=session.db.allocate_oids(1), name=name, can_login=statement.is_user)
    roles: dict[str, RoleDef] = {name: _apply(session, role, statement.options)}
    for grant in statement.memberships:
        roles |= {changed.name: changed for changed in changed_members(session, grant, roles)}
    await session.view.change(list(roles.values()))


async def _alter(session: Session, statement: RoleStatement) -> None:
    changed = []
    for name in spaced(statement.names):
        role = session.catalog.role(name)
        if role is None:
            raise SqlError("42704", f'role "{name}" does not exist')
        refuse_predefined(name)
        changed.append(_apply(session, role, statement.options))
    await session.view.change(changed)


@opening
def _owned_by(session: Session, role: RoleDef) -> list[tuple[int, int, str]]:
    """Return the words for all in this database that a role owns, databases too, with what they are put in order by."""
    owned = [
        (s.oid, 0, f"owner of schema {s.name}") for s in session.catalog.schemas() if s.owner == role.oid
    ]
    owned += [
        (r.oid, 0, f"owner of {_OWNED[r.kind]} {shown_name(session, r)}")
        for r in paced_iter(session.catalog.user_relations())
        if r.owner == role.oid
    ]
    owned += [
        (f.oid, 0, f"owner of {function_words(session, f)}")
        for f in paced_iter(session.catalog.functions())
        if f.owner == role.oid
    ]
    owned += [
        (e.oid, 0, f"owner of extension {e.name}")
        for e in session.catalog.extensions.values()
        if e.owner == role.oid
    ]
    owned += [
        (i.oid, 0, f"owner of {SEARCH_NAMES[i.named_by]} {search_object_name(session, i)}")
        for i in session.catalog.text_search()
        if i.owner == role.oid
    ]
    owned += [
        (one.oid, 0, f"owner of {statistics_words(session, one)}")
        for _table, one in statistics_owned_by(session.catalog, role.oid)
    ]
    owned += [
        (one.oid, 0, f"owner of {describe_object(session, one.class_oid, one.oid, 0)}")
        for one in (
            *session.catalog.opclasses(),
            *session.catalog.conversions(),
            *session.catalog.collations(),
        )
        if one.owner == role.oid
    ]
    owned += [
        (one.oid, 0, f"owner of {words(session, one)}") for one in owned_by(session.catalog, {role.oid})
    ]
    owned += [
        (t.oid, place, f"owner of type {type_name(session, oid, None)}")
        for t in paced_iter(session.catalog.user_types())
        if t.owner == role.oid
        for place, oid in enumerate((t.multirange, t.oid) if t.multirange else (t.oid,))
    ]
    owned += [
        (_LAST, 0, f"owner of {_default_words(session, acl)}")
        for acl in paced_iter(session.catalog.acls())
        if acl.class_oid == PG_DEFAULT_ACL_OID and acl.object_oid == role.oid
    ]
    owned += [
        (_LAST, 1, f"owner of subscription {n.record.name}")
        for n in session.db.named
        if n.record.owner == role.oid
    ]
    owned += [
        (_LAST, 1, f"owner of source {name}")
        for name, source in session.catalog.sources.items()
        if source.owner == role.oid
    ]
    owned += [
        (d.oid, 0, f"owner of database {quote_identifier(d.name)}")
        for d in session.catalog.databases.values()
        if d.owner == role.oid
    ]
    return owned


@opening
def _granted_to(session: Session, role: RoleDef, large: Collection[int]) -> list[tuple[int, int, str]]:
    """Likewise for rights that it has or has given to others; ``large``: the large objects it owns."""
    return [
        (
            _LAST if acl.class_oid == PG_DEFAULT_ACL_OID else acl.object_oid,
            acl.sub_id,
            f"privileges for {_granted_on(session, acl)}",
        )
        for acl in paced_iter(session.catalog.acls())
        if any(role.oid in (item.grantee, item.grantor) for item in acl.items)
        and not _is_owner(session, acl, role.oid)
        and (acl.class_oid != PG_LARGEOBJECT_OID or acl.object_oid not in large)
    ]


async def _drop(session: Session, statement: RoleStatement) -> None:
    for name in spaced(statement.names):
        role = session.catalog.role(name)
        if role is None:
            if not statement.if_exists:
                raise SqlError("42704", f'role "{name}" does not exist')
            session.notice(f'role "{name}" does not exist, skipping')
            continue
        current = session.identity.current
        if role.oid in (current, session.identity.session):
            which = "current" if role.oid == current else "session"
            raise SqlError("55006", f"{which} user cannot be dropped")
        if role.oid == SUPERUSER_OID or name in predefined_roles():
            raise SqlError("2BP01", f"cannot drop role {name} because it is required by the database system")
        owned = _owned_by(session, role)
        large = await large_objects.owned_in(session, session.database_oid, role.oid)
        owned += [(number, 0, f"owner of large object {number}") for number in large]
        owned += _granted_to(session, role, large)
        owned += [(oid, 0, line) for oid, line in role_targets(session, role.oid)]
        lines = [line for _, _, line in sorted(owned, key=lambda one: one[:2])]
        elsewhere = [line async for line in _elsewhere(session, role.oid)]
        if lines or elsewhere:
            detail, log_detail = client_and_log(lines)
            error = SqlError(
                "2BP01",
                f'role "{name}" cannot be dropped because some objects depend on it',
                detail="\n".join(filter(None, [detail, *elsewhere])),
            )
            if log_detail is not None:
                error.log_detail = "\n".join([log_detail, *elsewhere])
            raise error
        left = [
            replace(r, member_of=tuple(m for m in r.member_of if m.role != role.oid))
            for r in session.catalog.roles.values()
            if any(m.role == role.oid for m in r.member_of)
        ]
        gone = [key_of(item) for item in session.catalog.defaults() if item.role == role.oid]
        await session.view.change(left, [key_of(role), *gone])


async def _elsewhere(session: Session, role: int) -> AsyncIterator[str]:
    """Yield a line for each other database in which something depends on a role."""
    for space in session.db.spaces:
        if space.oid == session.database_oid:
            continue
        catalog = space.catalog
        own: list[Any] = [*catalog.schemas(), *catalog.user_relations(), *catalog.sources.values()]
        own += [*catalog.user_types(), *catalog.functions(), *catalog.extensions.values()]
        own += catalog.text_search()
        own += catalog.foreign()
        own += catalog.opclasses()
        own += catalog.conversions()
        own += catalog.collations()
        own += [one for _table, one in catalog.statistics().values()]
        oids = {item.oid for item in own if item.owner == role}
        granted = {
            (acl.class_oid, acl.object_oid, acl.sub_id)
            for acl in catalog.acls()
            if acl.class_oid not in (PG_DATABASE_OID, PG_PARAMETER_ACL)
            and acl.object_oid not in oids
            and any(role in (item.grantee, item.grantor) for item in acl.items)
        }
        named = sum(policy.roles.count(role) for r in catalog.user_relations() for policy in r.policies)
        large = await large_objects.owned_in(session, space.oid, role)
        granted -= {(PG_LARGEOBJECT_OID, number, 0) for number in large}
        count = len(oids) + len(large) + len(granted) + named
        if count:
            yield objects_in(session.catalog, space.oid, count)


def _is_owner(session: Session, acl: AclDef, role: int) -> bool:
    """Whether a role owns what a list is of: that it does so is said already."""
    if acl.class_oid == PG_DEFAULT_ACL_OID:
        return acl.object_oid == role
    function, type_ = (
        session.catalog.function_by_oid(acl.object_oid),
        session.catalog.type_by_oid(acl.object_oid),
    )
    if acl.class_oid in (PG_PROC_OID, PG_TYPE_OID):
        owners = [item.owner for item in (function, type_) if item is not None]
        return role in owners
    relation = session.catalog.relation_by_oid(acl.object_oid)
    schema = session.catalog.schema_by_oid(acl.object_oid)
    if acl.class_oid == PG_DATABASE_OID:
        database = session.catalog.database_by_oid(acl.object_oid)
        return database is not None and database.owner == role
    foreign = session.catalog.foreign_by_oid(acl.object_oid)
    if foreign is not None and acl.class_oid == foreign.class_oid:
        return foreign.owner == role
    return (relation is not None and relation.owner == role) or (schema is not None and schema.owner == role)


_DEFAULTS = {"r": "relations", "S": "sequences", "f": "functions", "T": "types", "n": "schemas"}


def _default_words(session: Session, acl: AclDef) -> str:
    schema_oid, letter = split(acl.sub_id)
    role = session.catalog.role_by_oid(acl.object_oid)
    text = f"default privileges on new {_DEFAULTS[letter]} belonging to role {role.name if role else acl.object_oid}"
    schema = session.catalog.schema_by_oid(schema_oid) if schema_oid else None
    return text if schema is None else f"{text} in schema {quote_identifier(schema.name)}"


def function_words(session: Session, function: FunctionDef) -> str:
    """Return how messages about what depends on what call a function or procedure: with the types of its inputs."""
    return f"function {shown_function(session, function)}"


def _granted_on(session: Session, acl: AclDef) -> str:
    if acl.class_oid == PG_DEFAULT_ACL_OID:
        return _default_words(session, acl)
    function = session.catalog.function_by_oid(acl.object_oid)
    if acl.class_oid == PG_PROC_OID and function is not None:
        return function_words(session, function)
    if acl.class_oid == PG_PROC_OID and acl.object_oid in facts().procs:
        proc = facts().procs[acl.object_oid]
        return f"function {signature(proc.name, proc.arg_types)}"
    if acl.class_oid == PG_TYPE_OID:
        return f"type {type_name(session, acl.object_oid, None)}"
    relation = session.catalog.relation_by_oid(acl.object_oid)
    if acl.class_oid == PG_CLASS_OID and relation is not None:
        shown = f"{_OWNED.get(relation.kind, 'table')} {shown_name(session, relation)}"
        return f"column {grantable_columns(relation)[acl.sub_id]} of {shown}" if acl.sub_id else shown
    schema = session.catalog.schema_by_oid(acl.object_oid)
    if acl.class_oid == PG_NAMESPACE_OID and schema is not None:
        return f"schema {quote_identifier(schema.name)}"
    if acl.class_oid == PG_LANGUAGE_OID:
        return f"language {next(name for name, (oid, _) in languages().items() if oid == acl.object_oid)}"
    if acl.class_oid == PG_PARAMETER_ACL:
        return f"parameter {parameter_names()[acl.object_oid]}"
    if acl.class_oid == PG_LARGEOBJECT_OID:
        return f"large object {acl.object_oid}"
    foreign = session.catalog.foreign_by_oid(acl.object_oid)
    if foreign is not None and acl.class_oid == foreign.class_oid:
        return words(session, foreign)
    database = session.catalog.database_by_oid(acl.object_oid)
    return f"database {quote_identifier(session.database if database is None else database.name)}"
