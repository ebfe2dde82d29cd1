"""What a server knows of a class of bound statements: a ``StatementSpec``; ``engine.statements.registry`` has them all.

    StatementSpec(
        statement=st.Truncate,          the class
        handler=drop.truncate,          what runs it: (session, plan, statement, params) -> Outcome
        rights=Asks(Asked.truncate),    who may run it
        begin=begin_definition,         what is locked, and looked at again, before the handler
    )

    run      the past, the leader ──> rights ──> begin ──> handler       (``engine.statements.run``)

Floors below that of the registry get it through ``Ports.specs`` (``engine.session.ports``). Nothing has a value that
lets a class be forgotten: what may be left out of a row is stricter that way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from engine.session.catalog.wants import Wants
    from engine.session.plans.plan import Plan
    from engine.session.portal import Outcome
    from engine.session.session import Session

Handler: TypeAlias = "Callable[[Session, Plan, Any, tuple[Any, ...]], Awaitable[Outcome]]"
"""Runs a statement in the session's transaction. Raises SqlError, txn's errors, and Replan where the catalog moved."""

Begin: TypeAlias = "Callable[[Session, Plan, Any, tuple[Any, ...]], Awaitable[None] | None]"
"""Locks what a statement is about before it runs; None: nothing is to be waited for. Raises as a handler."""


Locks: TypeAlias = "Callable[[Wants, Session, Any], None]"
"""Adds to ``Wants`` what a definition locks in the catalog. It only looks, and is asked again where locks had
to wait."""


class Rights:
    """Who may run statements of a class: ``engine.definitions.needs.rights`` has ``Asks``, ``Elsewhere``,
    ``Nothing``.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementSpec:
    """One class of bound statements.

    Attributes:
        statement: the class.
        handler: what runs it.
        rights: who may.
        begin: what is done before the handler runs, behind rights.
        locks: what of the catalog it locks where it defines something; None: it cannot (``CatalogLocks.take_for``).
        rests: what it says rests on stored data: it waits until this server leads, and reads the past if asked to.
        when_failed: it may run in a failed block.
        stands_for_another: it has another statement run in its place, of which all this is asked.
        reads_elsewhere: what it reads of the past it reads by a transaction of its own.
        of_dropped_roles: even who has a role that was dropped may run it.
        defines: indexes that were built ahead of it are given up behind it, where it has not taken them.
    """

    statement: type
    handler: Handler
    rights: Rights
    begin: Begin
    locks: Locks | None = None
    rests: bool = True
    when_failed: bool = False
    stands_for_another: bool = False
    reads_elsewhere: bool = False
    of_dropped_roles: bool = False
    defines: bool = False
