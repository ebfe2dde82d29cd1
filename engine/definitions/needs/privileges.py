"""Who may do what: a statement against the rights of its user (``planner.catalog.rights``).

    rows           SELECT, INSERT, UPDATE, DELETE, TRUNCATE on tables, or on the columns that a statement names
    definitions    an owner's alone; CREATE and USAGE on schemas, CREATE and TEMPORARY on the database

``engine.definitions.needs.rights`` is the table of which statement needs what;
``engine.definitions.needs.needs`` and the modules over it say what that is. ``check`` is asked once per
statement and state of the catalog: plans remember that they passed.

Not looked at: names in error messages still tell that an object exists, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.storage.stored import key_of
from engine.catalog.todays_rights import with_rights_of
from engine.definitions.needs import sourced
from engine.definitions.needs.past import catalog_read, check_past
from engine.definitions.needs.rights import Asked, refuse_others_temporaries
from engine.definitions.table.foreign_rows import refuse_foreign_rows
from engine.session.plans.permission import key_of_now
from engine.session.plans.plan import Replan
from engine.session.session import Session
from engine.session.transaction.time_travel import catalog_at
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog.policy import security_of
from planner.catalog.relation_kinds import BY_QUERY
from planner.catalog.rights import Rights, database_owner

if TYPE_CHECKING:
    from engine.session.plans.plan import Plan


def check(session: Session, plan: Plan) -> None:
    """Raise SqlError 42501, in PostgreSQL's words, unless the current user may run the statement."""
    if plan.permitted == key_of_now(session):
        return
    if session.db.ports.specs[type(plan.bound.statement)].of_dropped_roles:
        return  # RESET ROLE is the way out for those that can become another
    if session.view.conform():
        raise Replan  # what it reads by is not what may be run any more
    key = key_of_now(session)
    refuse_foreign_rows(session, plan)
    _check_row_security(session, plan)
    plan.dml = (
        None  # what was compiled for DML knows which columns the user may see in errors, and what it fires
    )
    seen = catalog_read(session, plan)
    check_past(session, plan, seen)
    role = session.role
    if not role.superuser or _reads_as_others(session, plan):
        statement = plan.bound.asked or plan.bound.statement
        catalog = session.rights_catalog
        if seen is not session.catalog:
            then = with_rights_of(session.today, seen, session.space.history.last)
            if isinstance(statement, st.CreateTable) and statement.query is not None:
                # what it is made of may be gone by now
                Asked(session, role, then).query(statement.query, role)
                statement = replace(statement, query=None)
            else:
                catalog = then
        checker = Asked(session, role, catalog)
        checker.call(plan.bound.functions, statement)
        checker.statement(statement)
    refuse_others_temporaries(session, plan.bound)
    sourced.refuse(session.catalog, plan.bound.statement)
    plan.permitted = key


def _reads_as_others(session: Session, plan: Plan) -> bool:
    """Tell whether views or aggregates of owners who may not do everything stand in a statement, whoever runs it."""
    catalog = session.rights_catalog
    for oid in plan.bound.functions:
        function = catalog.function_by_oid(oid)
        if function is not None and function.kind == "a":
            owner = catalog.role_by_oid(function.owner)
            if owner is not None and not owner.superuser:
                return True
    for oid, _version in plan.bound.versions:
        relation = catalog.relation_by_oid(oid)
        if relation is not None and relation.kind in BY_QUERY:
            owner = catalog.role_by_oid(relation.owner)
            if owner is not None and not owner.superuser:
                return True
    return False


def _check_row_security(session: Session, plan: Plan) -> None:
    """Raise Replan for a plan that was made for other policies, 42501 where those of the past are not those of now."""
    if plan.bound.row_security not in (None, session.row_security.key):
        plan.outdate()  # a block sees the catalog of before, by which it would be fresh
        raise Replan
    seen, latest = session.catalog, session.space.catalog
    if plan.as_of is not None and session.db.ports.specs[type(plan.bound.statement)].reads_elsewhere:
        seen = catalog_at(session, plan.as_of)  # its query is of then, the rest of now
    if seen.version == latest.version:
        return
    own = session.view.own_changes
    for oid, _version in plan.bound.versions:
        now, then = latest.relation_by_oid(oid), seen.relation_by_oid(oid)
        if now is None or then is None or security_of(now) == security_of(then) or key_of(now) in own:
            continue
        if session.row_security_counts(now):
            raise SqlError(
                "42501",
                f'row-level security of table "{now.name}" has changed since the time that is read',
                hint="Begin another transaction, or read a later time.",
            )


def maintainable(session: Session, oids: Sequence[int], what: str) -> list[int]:
    """Return those of ``oids`` that VACUUM and ANALYZE may work on; a WARNING names each of the others."""
    today = session.rights_catalog
    rights = Rights(today, session.role)
    every = rights.owns(database_owner(today, today.database))
    kept = []
    for oid in oids:
        relation = session.catalog.relation_by_oid(oid)
        if relation is None:
            continue
        if every or rights.owns(relation.owner):
            kept.append(oid)
        else:
            session.warning(
                f'skipping "{relation.name}" --- only table or database owner can {what} it', "01000"
            )
    return kept
