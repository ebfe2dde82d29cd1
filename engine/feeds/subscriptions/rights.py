"""Whether who subscribed may go on: rights are today's, also of a SUBSCRIBE that has been running for a while.

    REVOKE SELECT ON t FROM ann, a membership taken away, ALTER VIEW v OWNER TO …       42501 before the next row
    row-level security that counts for the user                                         42501
    CREATE OR REPLACE of a view or function that the query runs, of somebody else       55000: it would go on as it was
    DROP VIEW, DROP FUNCTION, of somebody else                                          42P01, 42883
    another answer to what the query asks about rights (pg_has_role() …)                42501

What is left is asked again only when the catalog has changed. A table that is dropped, or has other columns,
ends the subscription by itself, behind everything before that (``txn.upkeep.subscribe``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.catalog.todays_rights import with_rights_of
from engine.definitions.needs.past import catalog_read
from engine.definitions.needs.rights import Asked
from planner.base.errors import SqlError
from planner.bind.query.row_security import secured_table
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.information.privileges import inquires

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.session.plans.plan import Plan
    from engine.session.session import Session
    from planner.catalog import FunctionDef, RoleDef
    from planner.catalog.rights import Rights
    from planner.statements import Subscribe


class Permit:
    """The rights of one subscription."""

    __slots__ = ("_answers", "_bound", "_params", "_plan", "_role", "_seen", "_session", "_statement")

    def __init__(self, session: Session, plan: Plan, statement: Subscribe, params: tuple[Any, ...]) -> None:
        """``plan`` has just passed ``engine.definitions.needs.privileges.check``; ``params`` are the
        client's. Raises SqlError 42501 for row-level security.
        """
        self._session = session
        self._plan = plan
        self._params = params
        self._statement = statement
        self._role = session.identity.current
        self._bound = catalog_read(session, plan)
        self._seen = session.space.catalog
        self._answers = self._inquire()
        self._check_row_security(self._seen, session.role)

    def check(self) -> None:
        """Raise SqlError 42501, 55000, 42P01 or 42883 once the query may not be read any more as it was bound."""
        now = self._session.space.catalog
        if now is self._seen:
            return
        role = now.role_by_oid(self._role)
        if role is None:
            raise SqlError("42501", "the role that subscribed was dropped: the subscription ends")
        self._check_row_security(now, role)
        asked = Asked(self._session, role, with_rights_of(now, self._bound, self._session.space.history.last))
        self._check_code(now, asked.rights)
        asked.call(self._plan.bound.functions, self._statement)
        asked.subscribe(self._statement)
        if self._answers != self._inquire():
            raise SqlError(
                "42501", "what its query asks about rights has another answer: the subscription ends"
            )
        self._seen = now

    def _inquire(self) -> list[Any]:
        """Return what the query has asked once, when it began, about rights (``has_table_privilege()``,
        ``pg_has_role()`` …).
        """
        asked = [number for number, expr in enumerate(self._plan.bound.stable) if inquires(expr)]
        if not asked:
            return []
        values = self._plan.stable_values(self._session, self._params)
        return [values[number] for number in asked]

    def _check_row_security(self, now: CatalogSnapshot, role: RoleDef) -> None:
        security = replace(self._session.row_security, role=role)  # whoever fetches
        found = secured_table(self._statement.query, now, security)
        if found is not None:
            raise SqlError("42501", f'table "{found.name}" has row-level security now: the subscription ends')

    def _check_code(self, now: CatalogSnapshot, rights: Rights) -> None:
        """Views and functions of others are run as they are, not as they were."""
        for oid, _version in self._plan.bound.versions:
            view, found = self._bound.relation_by_oid(oid), now.relation_by_oid(oid)
            if view is None or view.kind != "v" or rights.owns((found or view).owner):
                continue
            if found is None:
                raise _ended("42P01", f'{RELATION_KINDS["v"].word} "{view.name}" was dropped')
            if found.version != view.version:
                raise _ended("55000", f'{RELATION_KINDS["v"].word} "{view.name}" changed')
        for oid in self._plan.bound.functions:
            function, current = self._bound.function_by_oid(oid), now.function_by_oid(oid)
            if function is None or (
                rights.owns((current or function).owner) and not _given(function, current)
            ):
                continue
            if current is None:
                raise _ended("42883", f'function "{function.name}" was dropped')
            if function != current:
                raise _ended("55000", f'function "{function.name}" changed')


def _given(function: FunctionDef, current: FunctionDef | None) -> bool:
    """Tell whether a function that runs as its owner is somebody else's now."""
    return function.definer and current is not None and current.owner != function.owner


def _ended(sqlstate: str, what: str) -> SqlError:
    return SqlError(sqlstate, f"{what}: the subscription ends")
