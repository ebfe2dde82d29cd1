"""CREATE, ALTER, DROP POLICY, and ALTER TABLE … ROW LEVEL SECURITY.

A policy is kept with its table: whatever changes it gives the table a new version, so plans are made anew,
and waits for the transactions that have written the table. What its expressions read it depends on, as a view
does:

    tables and views that its sub-selects name     DROP … CASCADE of one takes the policy
    columns, of its own table too                  DROP COLUMN … CASCADE, likewise; their types stay
    functions                                      DROP FUNCTION … CASCADE, likewise (``engine.definitions.dropping.uses``)
    roles                                          DROP ROLE is refused, DROP OWNED takes the role out of its list
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.catalog.graph import relations_naming
from engine.catalog.policy_columns import columns_of
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_POLICY_OID, Stored, StoredKey
from engine.definitions.table.row_readers import Readers
from engine.session.catalog.names import described
from engine.session.named_roles import named_roles
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import between, spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.policy import of_table, rebound_policies
from planner.bind.stored.renaming import renamed
from planner.catalog import RelationDef
from planner.catalog.policy import EVERYBODY, PolicyDef
from planner.query import Expr
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

Params = tuple[Any, ...]


async def create_policy(session: Session, plan: Plan, statement: st.CreatePolicy, params: Params) -> Outcome:
    """CREATE POLICY. Raises SqlError 42710, 42704."""
    table = _table(session, statement.table)
    made = statement.policy
    roles = _roles(session, statement.roles)
    if any(policy.name == made.name for policy in table.policies):
        raise SqlError("42710", f'policy "{made.name}" for table "{table.name}" already exists')
    made = replace(made, oid=session.db.allocate_oids(1), roles=roles)
    await _store(session, table, [*table.policies, made])
    return Command("CREATE POLICY")


async def alter_policy(session: Session, plan: Plan, statement: st.AlterPolicy, params: Params) -> Outcome:
    """ALTER POLICY. Raises SqlError 42704."""
    table = _table(session, statement.table)
    changed = statement.policy
    if statement.roles is not None:
        changed = replace(changed, roles=_roles(session, statement.roles))
    await _store(session, table, [changed if p.oid == changed.oid else p for p in table.policies])
    return Command("ALTER POLICY")


async def rename_policy(session: Session, plan: Plan, statement: st.RenamePolicy, params: Params) -> Outcome:
    """ALTER POLICY ... RENAME TO."""
    table = _table(session, statement.table)
    old = of_table(table, statement.name)
    changed = replace(old, name=statement.new)
    await _store(session, table, [changed if policy is old else policy for policy in table.policies])
    return Command("ALTER POLICY")


async def drop_policy(session: Session, plan: Plan, statement: st.DropPolicy, params: Params) -> Outcome:
    """DROP POLICY."""
    table = _table(session, statement.table)
    await drop_policies(session, table, [of_table(table, statement.name)])
    return Command("DROP POLICY")


async def set_row_security(session: Session, table: RelationDef, action: st.SetRowSecurity) -> None:
    """ALTER TABLE [ENABLE | DISABLE | FORCE | NO FORCE] ROW LEVEL SECURITY."""
    if action.enabled is not None:
        table = replace(table, row_security=action.enabled)
    if action.forced is not None:
        table = replace(table, force_row_security=action.forced)
    await _store(session, table, table.policies)


async def drop_policies(session: Session, table: RelationDef, gone: Collection[PolicyDef]) -> None:
    """Drop policies of a table, with their comments."""
    oids = {policy.oid for policy in gone}
    await _store(session, table, [policy for policy in table.policies if policy.oid not in oids])
    await session.view.change([], comments_of(gone))


def comments_of(policies: Iterable[PolicyDef]) -> list[StoredKey]:
    """Return the keys of what comments there may be on policies."""
    return [(f"comment/{PG_POLICY_OID}", policy.oid, 0) for policy in policies]


async def _store(session: Session, table: RelationDef, policies: Iterable[PolicyDef]) -> None:
    await settle(session.block.ensure_txn().lock_table(ShardId(table.oid), "X"))
    by_name = tuple(sorted(policies, key=lambda policy: policy.name))
    version = session.db.next_catalog_version()
    await session.view.change([replace(table, policies=by_name, version=version)])


def _table(session: Session, oid: int) -> RelationDef:
    found = session.catalog.relation_by_oid(oid)
    if found is None:
        raise SqlError("42P01", f"relation with oid {oid} does not exist")
    return found


def _roles(session: Session, roles: Sequence[st.PolicyRole]) -> tuple[int, ...]:
    """Return the oids of a TO list, EVERYBODY alone where PUBLIC is in it. Raises SqlError 42704."""
    if any(not role.name for role in spaced(roles)):
        if len(roles) > 1:
            session.notice(
                "ignoring specified roles other than PUBLIC",
                severity="WARNING",
                sqlstate="22023",
                hint="All roles are members of the PUBLIC role.",
            )
        return (EVERYBODY,)
    return tuple(role.oid for role in named_roles(session, (role.name for role in roles)))


# --- what policies depend on ------------------------------------------------------------------------


def policy_words(session: Session, policy: PolicyDef, table: RelationDef) -> str:
    """Return how messages call a policy; unlike other names PostgreSQL never quotes its one."""
    return f"policy {policy.name} on {described(session, table)}"


def policies_over(catalog: CatalogSnapshot, oids: Collection[int]) -> list[tuple[RelationDef, PolicyDef]]:
    """Return the policies of other tables that read one of some relations, oldest first."""
    found = [
        (table, policy)
        for table in relations_naming(catalog, oids)
        if table.oid not in oids
        for policy in table.policies
        if not set(oids).isdisjoint(policy.depends_on)
    ]
    return sorted(found, key=lambda pair: pair[1].oid)


def policies_on(
    catalog: CatalogSnapshot, relation: RelationDef, attnums: Collection[int]
) -> list[tuple[RelationDef, PolicyDef]]:
    """Return the policies, of any table, that name one of some columns of a relation, oldest first."""
    wanted = {(relation.oid, attnum) for attnum in attnums}
    found = [
        (table, policy)
        for table in spaced(catalog.user_relations())
        for policy in table.policies
        if table.oid == relation.oid or relation.oid in policy.depends_on
        if not wanted.isdisjoint(columns_of(policy, table, catalog))
    ]
    return sorted(found, key=lambda pair: pair[1].oid)


async def rebase_policies(session: Session, before: CatalogSnapshot, readers: Readers) -> None:
    """Write policies anew that read (``row_readers``) what has other names or columns than in ``before``."""

    def change(expr: Expr) -> Expr:
        made: Expr = renamed(expr, session.catalog)
        return made

    changed: list[Stored] = []
    for table in readers.relations(session.catalog):
        between()
        if any(
            readers.reads((table.oid, *policy.depends_on), f"{policy.using_sql} {policy.check_sql}")
            for policy in table.policies
        ):
            old = before.relation_by_oid(table.oid)
            if old is not None:
                # those of the table itself may have been written anew already, others of it are gone
                left = {policy.oid for policy in table.policies}
                kept = tuple([policy for policy in old.policies if policy.oid in left])
                policies = rebound_policies(old, replace(table, policies=kept), before, change)
                if policies != table.policies:
                    version = session.db.next_catalog_version()
                    changed.append(replace(table, policies=policies, version=version))
    if changed:
        await session.view.change(changed)


async def without_roles(session: Session, roles: Set[int]) -> None:
    """Take roles out of all policies (DROP OWNED); a policy that is about nobody else goes."""
    for table in list(spaced(session.catalog.user_relations())):
        if all(roles.isdisjoint(policy.roles) for policy in table.policies):
            continue
        kept = [
            replace(policy, roles=left)
            for policy in table.policies
            if (left := tuple(oid for oid in policy.roles if oid not in roles))
        ]
        gone = {policy.oid for policy in table.policies} - {policy.oid for policy in kept}
        await _store(session, table, kept)
        await session.view.change([], comments_of(p for p in table.policies if p.oid in gone))


def role_targets(session: Session, role: int) -> list[tuple[int, str]]:
    """Return what DROP ROLE tells of the policies that name a role, once for each time, with the policy's oid."""
    return [
        (policy.oid, f"target of {policy_words(session, policy, table)}")
        for table in session.catalog.user_relations()
        for policy in table.policies
        for oid in policy.roles
        if oid == role
    ]
