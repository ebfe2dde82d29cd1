"""Roles by name, and who is a member of whom: GRANT and REVOKE of roles, ALTER GROUP, CREATE ROLE ... ROLE
(``planner.catalog.acl``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.catalog.storage.stored import predefined_roles
from engine.session.named_roles import named_role
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import between, spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import RoleDef
from planner.catalog.acl import DATABASE_OWNER, memberships
from planner.catalog.acl_items import Membership

if TYPE_CHECKING:
    from engine.session.session import Session


def refuse_reserved_role(name: str) -> None:
    """Raise SqlError 42939 for a name that no role may get."""
    if name.startswith("pg_"):
        raise SqlError(
            "42939",
            f'role name "{name}" is reserved',
            detail='Role names starting with "pg_" are reserved.',
        )


def refuse_new_name(session: Session, role: RoleDef, new: str) -> None:
    """Raise SqlError for what no right makes up for in a RENAME: 0A000 for one's own role, 42939 for reserved
    names, 42710 for one that is taken.
    """
    for whose, user in (("session", session.identity.session), ("current", session.identity.current)):
        if role.oid == user:
            raise SqlError("0A000", f"{whose} user cannot be renamed")
    refuse_reserved_role(role.name)
    refuse_reserved_role(new)
    if session.catalog.role(new) is not None:
        raise SqlError("42710", f'role "{new}" already exists')


async def run_grant_role(
    session: Session, plan: Plan, statement: st.GrantRole, params: tuple[Any, ...]
) -> Outcome:
    """GRANT or REVOKE of roles. Raises SqlError 42704, 0LP01 (a circle). Who grants is noted, a REVOKE does
    not ask for it.
    """
    changed = changed_members(session, statement, {})
    if changed:
        await session.view.change(changed)
    return Command(plan.bound.tag)


def changed_members(session: Session, statement: st.GrantRole, made: Mapping[str, RoleDef]) -> list[RoleDef]:
    """Return the roles that the statement changes; ``made`` by name: those that are not in the catalog yet,
    or not so.
    """
    grantor = session.role if statement.grantor is None else named_role(session, statement.grantor)
    for name in spaced(statement.roles) if statement.alters_group else ():
        refuse_predefined(name)
    by_oid = {role.oid: role for role in made.values()}

    def find(oid: int) -> RoleDef | None:
        return by_oid.get(oid) or session.catalog.role_by_oid(oid)

    before = [made.get(name) or named_role(session, name) for name in spaced(statement.members)]
    roles = [made.get(name) or named_role(session, name) for name in spaced(statement.roles)]
    members = {role.oid: role for role in before}
    for role in roles:
        for oid, member in members.items():
            between()
            members[oid] = (
                _admitted(session, grantor, role, member, find, admin=statement.admin)
                if statement.is_grant
                else _dismissed(session, role, member, option_only=statement.admin)
            )
    return [member for member in members.values() if find(member.oid) != member]


def refuse_predefined(name: str) -> None:
    """Raise SqlError 42939 for a predefined role."""
    if name in predefined_roles():
        raise SqlError("42939", f'role name "{name}" is reserved', detail="Cannot alter reserved roles.")


def _admitted(
    session: Session,
    grantor: RoleDef,
    role: RoleDef,
    member: RoleDef,
    find: Callable[[int], RoleDef | None],
    *,
    admin: bool,
) -> RoleDef:
    if role.oid == DATABASE_OWNER:  # its one member is who owns the database
        raise SqlError("0LP01", f'role "{role.name}" cannot have explicit members')
    if member.oid == DATABASE_OWNER:
        raise SqlError("0LP01", f'role "{member.name}" cannot be a member of any role')
    if member.oid in memberships(role, find):
        raise SqlError("0LP01", f'role "{role.name}" is a member of role "{member.name}"')
    old = next((m for m in member.member_of if m.role == role.oid), None)
    if old is not None and (old.admin or not admin):
        session.notice(f'role "{member.name}" is already a member of role "{role.name}"')
        return member
    others = tuple(m for m in member.member_of if m.role != role.oid)
    return replace(member, member_of=(*others, Membership(role=role.oid, grantor=grantor.oid, admin=admin)))


def _dismissed(session: Session, role: RoleDef, member: RoleDef, *, option_only: bool) -> RoleDef:
    old = next((m for m in member.member_of if m.role == role.oid), None)
    if old is None:
        session.warning(f'role "{member.name}" is not a member of role "{role.name}"', "01000")
        return member
    others = tuple(m for m in member.member_of if m.role != role.oid)
    return replace(member, member_of=(*others, replace(old, admin=False)) if option_only else others)
