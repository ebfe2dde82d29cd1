"""Tables that queries of the same session are reading, or have checks waiting from: they are not altered,
dropped or truncated (55006).

    open cursors and named portals         until they are closed, also where all their rows were fetched
    WITH HOLD                              until the transaction ends, which gathers their rows
    statements around a routine            SELECT f() FROM t, where f drops t; the query of a FOR loop; triggers of t
    checks that wait for the commit        "pending trigger events"

What a view reads is in use, the view is not: its definition has gone into the plan. Other sessions wait for
locks instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.catalog.relation_kinds import CHECKED
from planner.catalog.rights import Rights
from planner.query import RelationRange
from planner.query.walk import walk
from planner.statements.classify import relations_written

if TYPE_CHECKING:
    from engine.session.plans.plan import Plan
    from engine.session.session import Session


def refuse_change(session: Session, relation: RelationDef, what: str) -> None:
    """Raise SqlError 55006 for a relation about to be changed by ``what`` (ALTER TABLE, TRUNCATE ...) that is
    in use, or has checks waiting.
    """
    if relation.oid in session.timing.in_use or any(relation.oid in _tables(p) for p in _reading(session)):
        raise SqlError(
            "55006",
            f'cannot {what} "{relation.name}" because it is being used by active queries in this session',
        )
    session.timing.refuse_pending(relation, what)


def refuse_before_actions(session: Session, node: ast.StatementNode) -> None:
    """Raise what PostgreSQL says of a statement before it looks at what could not be bound.

    26000 and 42601 for EXECUTE of a statement that is not there, or has another number of parameters; 25P01
    for LOCK TABLE outside a block, whatever it names; 55006 for an ALTER TABLE of a table in use, behind
    whether there is such a table, and whether the role owns it.
    """
    if isinstance(node, ast.LockTable) and session.block.is_alone:
        raise SqlError("25P01", "LOCK TABLE can only be used in transaction blocks")
    if isinstance(node, ast.Execute):
        prepared = session.connection.prepared.find(node.name)
        if prepared is None:
            raise SqlError("26000", f'prepared statement "{node.name}" does not exist')
        prepared.check_count(len(node.args))
    if not isinstance(node, ast.AlterTable) or node.what != "table":
        return
    schema, name = node.relation.schema, node.relation.name
    for place in (schema,) if schema else session.bind_path:
        relation = session.catalog.relation(place, name)
        if relation is None:
            continue
        rights = Rights(session.rights_catalog, session.role)
        if relation.kind in CHECKED and not relation.virtual and rights.owns(relation.owner):
            refuse_change(session, relation, "ALTER TABLE")
        return


def _reading(session: Session) -> Iterator[Plan]:
    """Yield the plans of what has not ended yet, but for the statement that asks."""
    cursors = session.cursors
    if cursors is not None:
        yield from cursors.reading()
    if session.within:
        if session.running is not None:
            yield session.running
        yield from session.within[:-1]


def _tables(plan: Plan) -> frozenset[int]:
    """Return the relations that a statement reads or writes; of a partitioned table the partitions that are left in."""
    statement = plan.bound.statement
    if isinstance(statement, st.Explain):
        statement = statement.body.statement
    read = frozenset(
        oid for item in walk(statement) if isinstance(item, RelationRange) for oid in item.tables
    )
    return read | relations_written(statement)
