"""The server as floors below it know it, by what they use of it; and a client's connection as its session knows that.

    Server                                            what is stored, the clock, who leads
      └─ SessionServer = Numbering, Sharing, Bounding, Leading, Ending, Executing
           ├─ engine.executors.server                 Spark, statistics
           │    └─ engine.changes.bulk.server         processes that load
           └─ engine.feeds.sources.feeding            sources

``engine.server.database.Database`` is all of them, which mypy checks there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from engine.base.executor import VirtualRelations
from engine.session.store_server import Server

if TYPE_CHECKING:
    from engine.base.access_rules import Rule
    from engine.base.accounts import Sessions, Statements
    from engine.base.executor import Executor
    from engine.base.loop.descriptors import Descriptors
    from engine.base.outcomes import Outcomes
    from engine.base.rows import RowTuple
    from engine.base.server_files import Roots
    from engine.base.upkeep import Upkeep
    from engine.catalog.reading import Figures, Reading
    from engine.catalog.state import CatalogSnapshot
    from engine.catalog.storage.spaces import Space
    from engine.catalog.storage.stored import Stored, StoredKey
    from engine.session.channels import Channels
    from engine.session.cursors import Cursors
    from engine.session.interrupts import Interrupts
    from engine.session.named_subscriptions import NamedSubscriptions
    from engine.session.plans.caches import PlanCaches
    from engine.session.plans.plan import Plan
    from engine.session.portal import Cursor, Portal, Prepared
    from engine.session.ports import Ports
    from engine.session.sequences.values import Counters
    from engine.session.session import Session
    from engine.session.source_status import Status
    from engine.session.transaction.snapshots import SnapshotRegistry
    from pgwire.backend import MaybeAwaitable
    from pgwire.errors import ErrorReport
    from pgwire.messages.framing import Room
    from pgwire.session.turns import Turns
    from planner.catalog import SourceDef
    from planner.parse import Parsed
    from planner.query import OutputColumn
    from planner.statements import ExecutePrepared
    from txn.base.types import Timestamp
    from txn.log.lease import Lease


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
    session: Session
    portals: dict[str, Portal]

    @property
    def prepared(self) -> PreparedNames:
        """Its prepared statements."""

    @property
    def planning(self) -> Binder:
        """What plans its statements."""

    def cursor_of(self, name: str) -> Awaitable[Cursor]:
        """Return what FETCH and MOVE read. Raises SqlError 34000."""

    def transaction_timed_out(self) -> None:
        """End the transaction that has taken longer than ``transaction_timeout`` allows."""

    def let_go(self) -> None:
        """The session is over: its parts go."""


class Numbering(Protocol):
    """Numbers and chance that nobody else is given."""

    def allocate_oids(self, count: int) -> int:
        """Return the first of so many new oids in a row."""

    async def oids_ready(self, count: int) -> None:
        """Wait until ``allocate_oids`` has that many. Raises SqlError 53000."""

    def next_catalog_version(self) -> int:
        """Return a number above all versions of catalogs so far."""

    def random_bytes(self, count: int) -> bytes:
        """Return bytes that nobody can guess."""

    def seeded_random(self, seed: float) -> Callable[[], float]:
        """Return a generator that ``seed`` determines."""


class CatalogRows(VirtualRelations, Protocol):
    """The rows of catalog relations, as all sessions share them (``engine.session.catalog.virtual``)."""

    def ahead(self, session: Reading) -> Iterator[None]:
        """Make what browsing reads whole, in steps between which others have their turns."""

    def recount(self) -> None:
        """Have figures be of now for whoever reads them next: ANALYZE or VACUUM has ended."""


class Log(Protocol):
    """What a session writes to the server's log (``engine.session.statement_log``), as far as it writes it itself."""

    def report(self, report: ErrorReport) -> None:
        """Write an error or a notice that the client is sent."""


class Sources(Protocol):
    """The sources of a server (``engine.feeds.sources.registry``)."""

    def within(self, space: Space) -> Iterator[tuple[SourceDef, Status]]:
        """Yield the sources of a database by name, each with its status."""


class Sharing(Protocol):
    """What sessions share. ``sessions``: the connections, by pid."""

    snapshots: SnapshotRegistry
    outcomes: Outcomes
    sequences: Counters
    channels: Channels
    named: NamedSubscriptions

    @property
    def virtual(self) -> CatalogRows:
        """The rows of catalog relations."""

    @property
    def sessions(self) -> Mapping[int, Client]:
        """The connections, by pid."""

    @property
    def sources(self) -> Sources:
        """What is read from elsewhere."""


class Bounding(Protocol):
    """What sessions take together: memory of statements and between them, of plans, of messages; descriptors; turns."""

    statements: Statements
    kept: Sessions
    plans: PlanCaches
    messages: Room
    descriptors: Descriptors
    turns: Turns


class Leading(Protocol):
    """Whether this server may still say what is so. ``lease``: None where no other can take over."""

    lease: Lease | None

    def leading(self) -> bool:
        """Tell whether it is known without waiting."""

    async def reason(self, error: Exception) -> Exception:
        """Return what to tell of an error: it may come of having lost the lease."""

    def publish(
        self,
        space: Space,
        catalog: CatalogSnapshot,
        changes: Mapping[StoredKey, Stored | None],
        ts: Timestamp,
    ) -> None:
        """Make a catalog committed at ``ts`` the current one; called in the tick in which it is applied."""

    def settle_timeline(self, name: str) -> None:
        """A transaction that made or dropped a timeline has ended."""


class Attendance(Protocol):
    """Who is in which database (``engine.server.admission``)."""

    def others(self, database: int, but: int) -> list[int]:
        """Return the pids of the sessions in a database, except the one ``but``."""

    async def wait_empty(self, database: int, but: int) -> int:
        """Wait a while until nobody but ``but`` is in a database; return how many still are."""

    def keeping_out(self, database: int) -> AbstractContextManager[None]:
        """Let nobody connect to a database."""


class Ending(Protocol):
    """Sessions that come and go. ``terminate`` and ``interrupt``: by pid; they return False where there is none."""

    terminate: Callable[..., bool]
    interrupt: Callable[[int], bool]
    start_time_us: int
    load_time_us: int
    access_rules: tuple[Rule, ...]
    upkeep: Upkeep

    @property
    def attendance(self) -> Attendance:
        """Who is in which database."""

    def reload(self) -> None:
        """Read the access rules again."""

    def session_closed(self, connection: Client) -> MaybeAwaitable[None]:
        """A connection has ended: forget it, and what was its own."""


class Executing(Protocol):
    """What runs statements, whichever executor it is. ``ports``: what floors above do for sessions."""

    ports: Ports
    executors: dict[str, Executor]
    server_files: Roots

    @property
    def statistics(self) -> Figures | None:
        """What has been counted in tables."""

    @property
    def spark_available(self) -> bool:
        """Whether Spark takes queries now."""

    def wait_in_spark(self, session: Session) -> str | None:
        """Return what a session waits for in Spark, as pg_stat_activity calls it; None for nothing."""

    def arrow_rows(self, batch: Any, columns: Sequence[OutputColumn]) -> list[RowTuple]:
        """Return the rows of an Arrow batch as tuples."""


class SessionServer(Server, Numbering, Sharing, Bounding, Leading, Ending, Executing, Protocol):
    """All that sessions, and statements in them, use of the server that they are of."""
