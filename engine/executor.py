"""The one interface of the three executors (DESIGN section 9).

    index   the row executor: Python over version chains, part sidecars and virtual catalog relations
    local   DuckDB over parts and hot rows
    spark   PySpark over parts and hot rows

All read the same snapshot through ``ExecContext.txn``; which one runs is ``planner.route``'s choice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from engine.rows import ReadyRows, RowStream
from planner.builtins.session import EvalSystem
from planner.catalog import Catalog, SystemCatalog
from planner.query import QueryExpr
from txn.api import Transaction

if TYPE_CHECKING:
    from pgwire.codecs.settings import CodecSettings


class Session(Protocol):
    """What functions may ask of the session (registry rows with ``needs_session``)."""

    @property
    def catalog(self) -> SystemCatalog:
        """The catalog the statement sees."""

    @property
    def system(self) -> EvalSystem:
        """The server as system functions see it."""

    @property
    def codec_settings(self) -> CodecSettings:
        """What value input and output depend on (DateStyle, TimeZone ...), kept current by the session."""

    def random(self) -> float:
        """Return a number uniform in [0, 1), as the SQL function of that name yields."""

    def set_seed(self, seed: float) -> None:
        """setseed(): -1 .. 1."""

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` random bytes (uuids)."""

    def setting(self, name: str) -> str:
        """Return a setting's text value (lower-case name); 42704 if unknown."""

    def set_setting(self, name: str, value: str, *, local: bool) -> str:
        """set_config()."""

    @property
    def user(self) -> str:
        """current_user."""

    @property
    def session_user(self) -> str:
        """session_user."""

    @property
    def database(self) -> str:
        """current_database()."""

    @property
    def pid(self) -> int:
        """pg_backend_pid()."""

    @property
    def search_path(self) -> tuple[str, ...]:
        """Existing schemas of the search path, pg_catalog first unless listed."""

    @property
    def explicit_search_path(self) -> tuple[str, ...]:
        """Those that the setting names: current_schemas(false)."""

    @property
    def transaction_time_us(self) -> int:
        """now(): microseconds since 1970."""

    @property
    def statement_time_us(self) -> int:
        """statement_timestamp()."""

    def clock_time_us(self) -> int:
        """clock_timestamp()."""


class RowsChanged(Exception):
    """A row that FOR UPDATE or SHARE locked has changed since it was read: the statement runs again, locks kept."""


class VirtualRelations(Protocol):
    """Rows of catalog relations (pg_catalog, information_schema)."""

    def rows(self, oid: int, session: Session) -> Sequence[tuple[Any, ...]]:
        """Return all rows in attnum order. Cached per catalog version where possible."""

    def lookup(
        self, oid: int, attnum: int, values: Sequence[Any], session: Session
    ) -> Sequence[tuple[Any, ...]] | None:
        """Return the rows whose column equals one of ``values``, by an index, or None if it has none."""


READS = 0
CHANGES = 1  # deletes rows, or changes a unique key of them
CHANGES_NO_KEY = 2


@dataclass(slots=True)
class ExecContext:
    """What a query runs with.

    ``params[i]`` is the value of ``Param(i + 1)``: the client's first, then the stable values.
    ``for_update``: rows found are about to be changed (DML sources): READS, CHANGES or CHANGES_NO_KEY.
    ``cancelled``: an object with ``is_set()``; long Python loops poll it and raise 57014.
    """

    txn: Transaction
    session: Session
    virtual: VirtualRelations
    params: tuple[Any, ...] = ()
    for_update: int = READS
    cancelled: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)


Result: TypeAlias = ReadyRows | RowStream


class Executor(Protocol):
    """An executor."""

    name: str

    def prepare(self, query: QueryExpr, catalog: Catalog) -> Any:
        """Compile once (cached with the plan): returns an opaque plan for ``run``.

        ``catalog`` is the one the query was bound against: it names the indexes that may serve.

        Raises SqlError 0A000 naming the construct when this route cannot run it (the router then looks
        further).
        """

    def run(self, plan: Any, ctx: ExecContext) -> Result | Awaitable[Result]:
        """Execute; may answer at once."""

    def explain(self, plan: Any) -> list[str]:
        """Return printed lines: the plan tree, or the SQL sent to the engine."""
