"""What reading the past needs beside today's rights: that who asks owns what is not there any more.

    dropped table, view, function       its last owner's and superusers'
    dropped column                      its table's owner's and superusers'
    dropped attribute of a composite type, in a value    its type's, or the table's, owner's and superusers'
    detached partition, through the table that it was part of    whose SELECT on it is
    a relation that was called otherwise, named in the body of somebody else's SECURITY DEFINER function    the same

Who asks is the client's role (``Session.asker``), whoever's view or function reads on its behalf: a view that
shows whole rows, or a function that names a table by what is another one's name today, must not give back
what was dropped for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.catalog.todays_code import same_names
from engine.catalog.todays_rights import last_owner, lost_columns
from engine.definitions.needs.needs import denied
from engine.session.transaction.time_travel import catalog_at
from planner import statements as st
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.catalog.rights import Rights
from planner.catalog.row_parts import parts_of
from planner.query import RelationRange, SubqueryRange
from planner.query.walk import walk
from planner.types.facts import FIRST_USER_OID
from txn.base.types import Timestamp

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.session.plans.plan import Plan
    from engine.session.session import Session
    from planner.catalog import RelationDef


def catalog_read(session: Session, plan: Plan) -> CatalogSnapshot:
    """Return the catalog that the query of a statement is read by: that of its transaction, unless it reads
    somewhere of its own.
    """
    statement = plan.bound.statement
    if plan.as_of is not None and session.db.ports.specs[type(statement)].reads_elsewhere:
        found: CatalogSnapshot = catalog_at(session, plan.as_of)  # the rest of it is of now
        return found
    name = _subscription(statement)
    if name is None:
        return session.catalog
    record = session.db.named.of(session, name).record
    return session.past(Timestamp(record.position), policies=False)


def _subscription(statement: object) -> str | None:
    """Return the named subscription that a statement reads, bound at its position."""
    if isinstance(statement, st.DeclareSubscribe):
        return statement.subscribe.subscription
    if isinstance(statement, st.Copy) and statement.subscribe is not None:
        return statement.subscribe.subscription
    if isinstance(statement, st.Explain):
        return _subscription(statement.body.statement)
    return statement.subscription if isinstance(statement, st.Subscribe) else None


def check_past(session: Session, plan: Plan, seen: CatalogSnapshot) -> None:
    """Raise SqlError 42501 unless who asks may read what a statement reads and what has gone since; at once
    where it reads the present.

    ``seen``: what ``catalog_read`` returned.
    """
    now = session.today
    if seen is now:
        return
    rights = Rights(now, session.asker)
    if rights.superuser:
        return
    _Past(session, seen, now, rights).check(plan)


class _Past:
    """What has gone between two catalogs, for one who is no superuser."""

    def __init__(self, session: Session, then: CatalogSnapshot, now: CatalogSnapshot, rights: Rights) -> None:
        self._session = session
        self._then = then
        self._now = now
        self._rights = rights

    def check(self, plan: Plan) -> None:
        lost: dict[int, frozenset[int]] = {}
        last = self._session.space.history.last
        own = self._session.view.own_changes
        for oid, _version in plan.bound.versions:
            before, after = self._then.relation_by_oid(oid), self._now.relation_by_oid(oid)
            if before is None or before.virtual or ("relation", oid, 0) in own:
                continue
            if self._rights.owns(last_owner(before, after, last)):
                continue
            narrowed = self._narrowed(before) if before.kind != "v" else frozenset()
            if narrowed:
                lost[oid] = narrowed
            if before is after:
                continue
            if after is None or (self._session.acting and not same_names(before, after)):
                raise denied(RELATION_KINDS[before.kind].word, before.name)
            if before.partition_of not in (0, after.partition_of):
                self._detached(plan, before, after)
            columns = lost_columns(before, after)
            if columns and before.kind != "v":
                lost[oid] = columns | narrowed
        if lost:
            self._columns(plan, lost)
        for oid in plan.bound.functions:
            function = self._then.function_by_oid(oid)
            if function is None or self._now.function_by_oid(oid) is not None:
                continue
            if not self._rights.owns(last_owner(function, None, last)):
                raise denied("function", function.name)

    def _narrowed(self, relation: RelationDef) -> frozenset[int]:
        """Return the columns of a relation in whose values are attributes of composite types that have been
        dropped since.
        """
        declared = [(c.attnum, c.declared.oid) for c in relation.live if c.declared.oid >= FIRST_USER_OID]
        return frozenset(
            attnum for attnum, oid in declared if any(map(self._lost_attributes, parts_of(self._then, oid)))
        )

    def _lost_attributes(self, oid: int) -> bool:
        before, after = self._then.row_type(oid), self._now.row_type(oid)
        if before is None or after is None:
            return False
        if {c.attnum for c in before.live} <= {c.attnum for c in after.live}:
            return False
        whose = self._now.relation_by_oid(after.relation) if after.relation else self._now.type_by_oid(oid)
        return whose is None or not self._rights.owns(whose.owner)

    def _detached(self, plan: Plan, before: RelationDef, after: RelationDef) -> None:
        """A partition that belongs to its table no more asks for itself where it is read through that."""
        if any(
            node.parent and any(isinstance(n, RelationRange) and n.oid == before.oid for n in walk(node))
            for node in walk(plan.bound.statement)
            if isinstance(node, RelationRange | SubqueryRange)
        ) and not Rights(self._session.rights_catalog, self._session.asker).relation(after, "r"):
            raise denied(RELATION_KINDS[before.kind].word, before.name)

    def _columns(self, plan: Plan, lost: dict[int, frozenset[int]]) -> None:
        """Check that no column is read that has been dropped; 0 among those that are used is the whole row."""
        for node in walk(plan.bound.statement):
            if isinstance(node, RelationRange):
                uses = [(node.oid, node.used), (node.parent, node.asked)]
            elif isinstance(node, SubqueryRange):
                uses = [(node.parent, node.asked)]
            else:
                continue
            for oid, used in uses:
                gone = lost.get(oid, frozenset())
                if gone and (0 in used or gone & used):
                    relation = self._then.relation_by_oid(oid)
                    raise denied("table", "" if relation is None else relation.name)
