"""Who may do what: what the row of a class of statements says of rights, and all that may be asked of a role.

    Asks(Asked.truncate, ...)       a function from (a role, a statement) that raises SqlError 42501
    Elsewhere("engine.definitions.grant:run_grant", why)    is asked where the statement runs, for a reason
    Nothing(why)                    everybody may, for a reason

The rows are in ``engine.statements.registry``: a class without one fails when that is imported, and so do
kinds of objects and actions of ALTER TABLE in the tables beside this module, and ranges and queries in that
of ``row``; nothing is allowed because nobody thought of it. ``tests/rights/test_walk.py`` walks all rows
beside what PostgreSQL answers.

What functions a statement calls is asked for whatever class it is of (``Needs.call``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from engine.definitions.grant import refuse_strangers
from engine.definitions.needs.comment import CommentNeeds
from engine.definitions.needs.shared import SharedNeeds
from engine.session.spec import Rights
from planner import statements as st
from planner.base.errors import SqlError
from planner.query.exprs import columns_named

if TYPE_CHECKING:
    from engine.session.session import Session


class Asked(CommentNeeds, SharedNeeds):
    """All that may be asked of a role."""

    def statement(self, statement: st.Statement) -> None:
        """Ask what the row of a statement's class says. Raises SqlError 42501, and 25001 where a statement
        may not stand in a block.
        """
        row = self.session.db.ports.specs[type(statement)].rights
        if isinstance(row, Asks):
            row.ask(self, statement)

    def with_changes(self, statement: st.WithChanges) -> None:
        """What each of its parts asks."""
        for part in statement.parts:
            self.statement(part)

    def copy(self, statement: st.Copy) -> None:
        """pg_read_server_files or pg_write_server_files for files; INSERT on the columns of a table, SELECT
        on those that WHERE names; SELECT; or what is written in its place asks.
        """
        if statement.filename is not None:
            self._touch_files(reading=statement.is_from)
        if statement.query is not None:
            self.query(statement.query, self.role)
        elif statement.subscribe is not None:
            self.subscribe(statement.subscribe)
        elif statement.change is not None:
            self.statement(statement.change)
        else:
            letter = "a" if statement.is_from else "r"
            relation = self._used(statement.table)
            self._have_columns(relation, statement.attnums, letter)
            if statement.where is not None and (read := columns_named(statement.where)):
                self._have_columns(relation, read, "r")

    def declare_subscribe(self, statement: st.DeclareSubscribe) -> None:
        """What its SUBSCRIBE asks."""
        self.subscribe(statement.subscribe)

    def grant(self, statement: st.Grant) -> None:
        """To hold something to grant, or some other privilege: which part of it is granted, and as whom, is
        decided as it runs.
        """
        refuse_strangers(self.session, statement)

    def explain(self, statement: st.Explain) -> None:
        """What the statement asks, which may run; also what a query reads that is planned alone: WITH NO DATA."""
        inner = statement.body.asked or statement.body.statement
        self.statement(inner)
        if isinstance(inner, st.CreateTable | st.CreateMaterializedView) and inner.query is not None:
            self.query(inner.query, self.role)


_Ask: TypeAlias = Callable[[Asked, Any], None]
_Named: TypeAlias = Callable[[Any], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Asks(Rights):
    """A class of which ``ask`` raises SqlError 42501 for who may not.

    ``others``: what is done to temporary tables of other sessions, by PostgreSQL's word, where that is
    refused to everybody; ``named``: which tables these are, None: those whose rows are read or written.
    """

    ask: _Ask
    others: str = ""
    named: _Named | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere(Rights):
    """A class that is asked about where it runs: ``at`` a function, ``module:name``; why not here."""

    at: str
    why: str


@dataclass(frozen=True, slots=True)
class Nothing(Rights):
    """A class that everybody may run; why."""

    why: str


def its_table(statement: Any) -> Sequence[int]:
    """Return the table that a statement is about, for ``Asks.named``."""
    return (statement.table,)


def maintained(statement: st.Maintenance) -> Sequence[int]:
    """Return the relations that REINDEX and CLUSTER work on, for ``Asks.named``."""
    return statement.relations if statement.what in ("reindex", "cluster") else ()


ACCESS: Final = "access"
"""``Asks.others`` of what reads or writes rows."""


def refuse_others_temporaries(session: Session, bound: st.BoundStatement) -> None:
    """Raise SqlError 0A000 for temporary tables of other sessions, be the user a superuser: what is in them
    is no business of this one.
    """
    row = session.db.ports.specs[type(bound.statement)].rights
    if not isinstance(row, Asks) or not row.others:
        return
    oids = bound.reads | bound.writes if row.named is None else row.named(bound.statement)
    for oid in oids:
        relation = session.catalog.relation_by_oid(oid)
        if relation is not None and session.is_others_temporary(relation):
            what = row.others.format(what=getattr(bound.statement, "what", ""))
            raise SqlError("0A000", f"cannot {what} temporary tables of other sessions")
