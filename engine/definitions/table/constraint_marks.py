"""UPDATE of pg_constraint.convalidated: constraints count as not validated, or as validated.

    UPDATE pg_constraint SET convalidated = false WHERE ...      VALIDATE CONSTRAINT looks at the rows again
    UPDATE pg_constraint SET convalidated = true WHERE ...       nothing looks at them: as in PostgreSQL, that is the superuser's word

Rows and plans do not depend on it, so tables keep their versions. It is undone with its transaction like any
other change of the catalog, and does not lock the tables' rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.catalog.storage.stored import Stored, StoredKey, key_of
from engine.changes.writes.dml import tables_to_lock
from engine.plans.query import collect, compiled_query, context, prepare_source, run_query
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import ConstraintDef, RelationDef, TypeDef

if TYPE_CHECKING:
    from engine.session.session import Session


async def mark(
    session: Session, plan: Plan, statement: st.MarkConstraints, params: tuple[Any, ...]
) -> Outcome:
    """Run UPDATE pg_constraint SET convalidated. Raises SqlError 23502 for NULL, 42501 for a constraint that
    is built in.
    """
    query = compiled_query(plan, "query", statement.query)
    prepare_source(session, query)
    await settle(session.block.ensure_txn().begin_write([], tables_to_lock(session, plan, "query")))
    result = await run_query(session, plan, "query", query.query, context(session, plan, params))
    wanted: dict[int, bool | None] = {}
    for oid, validated in await collect(session, result):
        wanted.setdefault(oid, validated)  # of several new values of a row the first counts
    changed: dict[StoredKey, Stored] = {}
    for oid, validated in wanted.items():
        if validated is None:
            raise SqlError(
                "23502",
                'null value in column "convalidated" of relation "pg_constraint" violates not-null constraint',
            )
        found = session.catalog.constraint_by_oid(oid) or session.catalog.domain_constraint(oid)
        if found is None:
            raise SqlError("42501", f"permission denied: constraint with OID {oid} is a system object")
        holder, constraint = found
        if constraint.validated != validated:
            latest = changed.get(key_of(holder), holder)
            if not isinstance(latest, RelationDef | TypeDef):
                raise AssertionError(f"constraints are of tables and domains, not of {type(latest).__name__}")
            changed[key_of(holder)] = _with(latest, replace(constraint, validated=validated))
    if changed:
        await session.view.change(list(changed.values()))
    return Command(f"UPDATE {len(wanted)}")


def _with(holder: RelationDef | TypeDef, constraint: ConstraintDef) -> RelationDef | TypeDef:
    """Return a table or a domain with another state of one of its constraints."""
    if isinstance(holder, TypeDef):
        checks = tuple(constraint if c.oid == constraint.oid else c for c in holder.checks)
        return replace(holder, checks=checks)
    constraints = tuple(constraint if c.oid == constraint.oid else c for c in holder.constraints)
    return replace(holder, constraints=constraints)
