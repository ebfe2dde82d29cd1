"""pg_policy, pg_policies, and what policies depend on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.catalog.policy_columns import columns_of
from engine.catalog.referred import with_policies
from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.pg_functions import objects_named
from engine.catalog.relations.sources import RowDict, by_oid, of_each, relation
from engine.catalog.storage.stored import PG_CLASS_OID, PG_POLICY_OID
from planner.catalog import RelationDef
from planner.catalog.policy import COMMAND_WORDS, EVERYBODY
from planner.information.definitions import get_expr

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

_KINDS: Final = {True: "PERMISSIVE", False: "RESTRICTIVE"}


@of_each("pg_policy", keys={"polrelid": by_oid})
def pg_policy(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_policy of a table."""
    for policy in item.policies:
        yield {
            "oid": policy.oid, "polname": policy.name, "polrelid": item.oid, "polcmd": policy.command,
            "polpermissive": policy.permissive, "polroles": policy.roles, "polqual": policy.using_sql or None,
            "polwithcheck": policy.check_sql or None,
        }  # fmt: skip


@relation("pg_policies", "session")
def pg_policies(session: Reading) -> Iterator[RowDict]:
    """Yield pg_policies."""
    for item in session.catalog.user_relations():
        for policy in item.policies:
            roles = (session.catalog.role_by_oid(oid) for oid in policy.roles if oid != EVERYBODY)
            names = tuple(role.name for role in roles if role is not None)
            using, check = (
                get_expr(session, sql, item.oid) if sql else None
                for sql in (policy.using_sql, policy.check_sql)
            )
            yield {
                "schemaname": item.schema, "tablename": item.name, "policyname": policy.name,
                "permissive": _KINDS[policy.permissive], "roles": names or ("public",),
                "cmd": COMMAND_WORDS[policy.command], "qual": using, "with_check": check,
            }  # fmt: skip


@of_each("pg_depend", keys={"refobjid": with_policies})
def pg_depend(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend: policies on their tables, on what they read, call and name."""
    for policy in item.policies:
        yield depends(PG_POLICY_OID, policy.oid, PG_CLASS_OID, item.oid, "a")
        columns = columns_of(policy, item, session.catalog)
        for oid, attnum in sorted(columns):
            yield depends(PG_POLICY_OID, policy.oid, PG_CLASS_OID, oid, ref_sub=attnum)
        for oid in policy.depends_on:
            if all(oid != table for table, _ in columns):
                yield depends(PG_POLICY_OID, policy.oid, PG_CLASS_OID, oid)
        for of, oid in objects_named(session, f"{policy.using_sql} {policy.check_sql}"):
            if oid not in policy.depends_on:
                yield depends(PG_POLICY_OID, policy.oid, of, oid)
