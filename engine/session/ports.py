"""What a session asks of the floors above it: what each answer has to be able to do, and where they are all named.

    session, block, planning, triggers ──> Ports ──> definitions, programs, changes, statements

A lower floor imports no higher one (``tools/floors.py``). What it has to have done there it asks for here, and
``engine.server.ports``, the one module that knows both sides, says who answers. ``Ports`` has no defaults: where one is
left out no server starts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from planner.functions.session import RoutineSystem

if TYPE_CHECKING:
    from engine.session.plans.plan import Plan
    from engine.session.portal import Outcome
    from engine.session.session import Session
    from engine.session.spec import StatementSpec
    from engine.session.trigger_event import TriggerEvent
    from planner import ast
    from planner.base.errors import SqlError
    from planner.catalog import FunctionDef
    from planner.statements import Statement
    from txn.base.types import Row

OnCommit = Literal["delete", "drop"]
Bind: TypeAlias = "Callable[[ast.StatementNode], Statement]"
"""Binds a statement, or raises what is wrong with it."""


class CommitActions(Protocol):
    """What a session's temporary tables ask for at COMMIT (``engine.definitions.table.temporary``)."""

    def add(self, oid: int, action: OnCommit) -> None:
        """Note what happens to table ``oid`` at commit."""

    async def run(self, session: Session) -> None:
        """Do it, as the last work of the committing transaction. Raises SqlError 0A000."""


class Routines(RoutineSystem, Protocol):
    """The calls of users' functions of one session (``engine.programs.routines.calls``).

    ``stack``: those that run, the innermost last.
    """

    stack: list[Any]

    def context(self, outside: Any = None) -> list[str]:
        """Return the lines of CONTEXT, the innermost call first."""

    @property
    def may_end(self) -> bool:
        """Whether the procedure that is called next may end transactions."""


class RunStatement(Protocol):
    """Runs a planned statement within the one that runs."""

    def __call__(self, session: Session, plan: Plan, params: tuple[Any, ...]) -> Awaitable[Outcome]:
        """Return its outcome. Raises what it raises; Replan where the catalog moved under its plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Who does what the floors from ``session`` to ``programs`` ask of those above them.

    Attributes:
        routines: makes a session's ``Routines``. waiting_checks: makes the checks that wait for the commit.
        Raises SqlError 23503, 23505, 23P01, and what triggers do. call_trigger: calls a trigger function for
        an event; returns the row to go on with, or None. check_rights: raises SqlError 42501 unless the
        current user may run a statement, Replan where its plan must not run. refuse_strangers: raises
        SqlError 42501 in place of the error with which a statement could not be bound, where
            PostgreSQL asks for a right first.
        run_statement: runs a statement of a routine.
        specs: what is known of each class of statements.
        beside: makes a session of nobody's, with a superuser's rights, in the database of another one.
    """

    routines: Callable[[Session], Routines]
    waiting_checks: Callable[[Session], Awaitable[None]]
    call_trigger: Callable[[FunctionDef, TriggerEvent], Awaitable[Row | None]]
    check_rights: Callable[[Session, Plan], None]
    refuse_strangers: Callable[[Session, ast.StatementNode, SqlError, Bind], None]
    run_statement: RunStatement
    specs: Mapping[type, StatementSpec]
    beside: Callable[[Session], Session]
