"""Statements about large objects: ALTER ... OWNER TO; what GRANT, COMMENT, DROP ROLE and REASSIGN and DROP
OWNED ask of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.catalog.storage.stored import PG_LARGEOBJECT_OID, Stored
from engine.session.large_objects import access
from engine.session.large_objects.shards import OBJECTS, in_chunks
from engine.session.named_roles import named_role
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import AclDef
from planner.catalog.acl import memberships, reowned
from txn.base.types import StoredRow

if TYPE_CHECKING:
    from engine.session.session import Session


async def alter_owner(
    session: Session, plan: Plan, statement: st.AlterLargeObject, params: tuple[Any, ...]
) -> Outcome:
    """ALTER LARGE OBJECT ... OWNER TO. Raises SqlError 42704, 42501."""
    row = await locked(session, statement.oid)
    role = named_role(session, statement.role)
    if not session.is_superuser and role.oid != row.values[2]:
        access.check_owner(session, row)
        if role.oid not in memberships(session.role, session.today.role_by_oid):
            raise SqlError("42501", f'must be member of role "{role.name}"')
    await _give(session, [row], role.oid)
    return Command(plan.bound.tag)


async def locked(session: Session, number: int) -> StoredRow:
    """Return the row of a large object that a statement is about to change. SqlError 42704."""
    await access.begin_change(session, "this statement")
    return await access.existing(session, number, lock=True)


async def rows_of(session: Session, statement: st.Grant) -> Mapping[int, StoredRow]:
    """Return the rows of the large objects that a GRANT or REVOKE is about, by their numbers. SqlError 42704."""
    numbers = {target.oid for target in spaced(statement.targets) if target.class_oid == PG_LARGEOBJECT_OID}
    return {number: await locked(session, number) for number in sorted(numbers)}


async def check_commentable(session: Session, number: int) -> None:
    """Raise SqlError 42704, 42501 unless the user may comment on a large object."""
    access.check_owner(session, await locked(session, number))


async def owned(session: Session, roles: Collection[int]) -> list[StoredRow]:
    """Return the large objects of the session's database that roles own, locked for a change, in order."""
    await access.begin_change(session, "this statement")
    txn = session.block.ensure_txn()
    return [
        row
        async for chunk in in_chunks(txn, OBJECTS, (session.database_oid,), for_update=True)
        for row in chunk
        if row.values[2] in roles
    ]


async def owned_in(session: Session, database: int, role: int) -> list[int]:
    """Return the numbers of the large objects of a database that a role owns, in order."""
    txn = session.block.ensure_txn()
    return [
        row.values[1]
        async for chunk in in_chunks(txn, OBJECTS, (database,))
        for row in chunk
        if row.values[2] == role
    ]


async def reassign(session: Session, roles: Collection[int], to: int) -> None:
    """Make a role the owner of what other roles own."""
    await _give(session, await owned(session, roles), to)


async def _give(session: Session, rows: Sequence[StoredRow], to: int) -> None:
    """Change the owners of large objects, and what the lists of their rights say of them."""
    txn = session.block.ensure_txn()
    changed: list[Stored] = []
    for row in rows:
        database, number, owner = row.values
        await settle(txn.update(OBJECTS, [(row.row_id, (database, number, to))], keys_kept=True))
        items = session.catalog.acl(PG_LARGEOBJECT_OID, number)
        if items is not None:
            items = reowned(items, owner, to)
            changed.append(AclDef(class_oid=PG_LARGEOBJECT_OID, object_oid=number, sub_id=0, items=items))
        await asyncio.sleep(0)
    if changed:
        await session.view.change(changed)


async def drop_owned(session: Session, roles: Collection[int]) -> None:
    """Remove what roles own."""
    for row in await owned(session, roles):
        await access.unlink(session, row)
