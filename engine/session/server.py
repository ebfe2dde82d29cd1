"""The server as what belongs to it knows it: what is stored, its clock, who leads. A client's connection as its session knows that."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from engine.base.config import Config
    from engine.catalog.storage.spaces import Spaces
    from engine.session.cursors import Cursors
    from engine.session.interrupts import Interrupts
    from engine.session.plans.plan import Plan
    from engine.session.portal import Cursor, Portal, Prepared
    from planner.parse import Parsed
    from planner.statements import ExecutePrepared


class Server(Protocol):
    """What sequences, catalog relations, named subscriptions and sources need of the server that they are of.

    ``store``: its ``txn.store.Store``.
    """

    config: Config
    store: Any
    spaces: Spaces

    def clock_us(self) -> int:
        """Return the wall clock in microseconds since 1970."""

    def random(self) -> float:
        """Return a uniform random number in [0, 1)."""

    async def wait_leading(self) -> None:
        """Wait until it is known that this server leads. Raises Fenced where it does not."""


class PreparedNames(Protocol):
    """A session's prepared statements by name (``engine.connection.prepared``)."""

    def find(self, name: str) -> Prepared | None:
        """Return a prepared statement, None if there is none."""

    def all(self) -> Sequence[Prepared]:
        """Return those that have a name."""

    def prepare(
        self, name: str, sql: str, oids: tuple[int, ...], *, from_sql: bool = False, plan: Plan | None = None
    ) -> Prepared:
        """Plan a text and keep it. Raises SqlError 42P05, 53400, and what planning raises."""

    async def prepare_long(
        self, name: str, sql: str, oids: tuple[int, ...], *, from_sql: bool = False
    ) -> Prepared:
        """As ``prepare``, for a long text: in a thread."""

    def close(self, name: str) -> bool:
        """Forget one; tells whether there was one."""

    def clear(self) -> None:
        """Forget all."""

    def to_execute(
        self, plan: Plan, statement: ExecutePrepared, params: tuple[Any, ...]
    ) -> tuple[Plan, tuple[Any, ...]]:
        """Return the plan that EXECUTE runs, and its parameter values. Raises SqlError 26000, 42601, 42804, 42809."""


class Binder(Protocol):
    """Plans statements for a session (``engine.plans.planning``)."""

    def bind(self, statement: Parsed, param_oids: tuple[int, ...], *, variable_params: bool = True) -> Plan:
        """Return the plan of a parsed statement. Raises SqlError."""


class Client(Protocol):
    """The connection of a session (``engine.connection.backend``), for statements that concern what it keeps.

    ``portals``: those of the extended protocol, by name.
    """

    cursors: Cursors
    interrupts: Interrupts
    portals: dict[str, Portal]

    @property
    def prepared(self) -> PreparedNames:
        """Its prepared statements."""

    @property
    def planning(self) -> Binder:
        """What plans its statements."""

    def cursor_of(self, name: str) -> Awaitable[Cursor]:
        """Return what FETCH and MOVE read. Raises SqlError 34000."""
