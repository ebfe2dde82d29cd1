"""What Python forms may ask of the session (rows registered with ``needs_session``).

The engine's session implements it; tests use a small fake. Everything that is not a pure function of its
arguments - settings, clock, randomness, catalog - comes through here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from planner.catalog import Catalog, RelationDef, SequenceDef, SystemCatalog

if TYPE_CHECKING:
    from pgwire.codecs.settings import CodecSettings
    from planner.query import OutputColumn, SqlCall


class AdvisorySystem(Protocol):
    """The connection's advisory locks; ``what`` is made by ``planner.functions.system.advisory.advisory_number``."""

    def lock(
        self, what: tuple[int, int, bool], *, exclusive: bool, transaction: bool
    ) -> Awaitable[None] | None:
        """Lock a number, until the transaction ends or for the session: None when done, else what to wait for."""

    def try_lock(self, what: tuple[int, int, bool], *, exclusive: bool, transaction: bool) -> bool:
        """Lock a number unless another connection is in the way."""

    def unlock(self, what: tuple[int, int, bool], *, exclusive: bool) -> bool:
        """Give back a lock of the session; False if there is none."""

    def unlock_all(self) -> None:
        """Give back all locks of the session."""


class SequenceSystem(Protocol):
    """The sequences as the session uses them; every method raises SqlError 42P01, 42809 (no sequence), 42501."""

    def next(self, oid: int) -> int:
        """nextval(): 2200H at the end, 25006. A negative oid: for an identity column, rights on its sequence
        do not matter.
        """

    def current(self, oid: int) -> int:
        """currval(): 55000 before the session's first nextval."""

    def last(self) -> int:
        """lastval(): 55000."""

    def set(self, oid: int, value: int, called: bool) -> None:
        """setval(): 22003 out of bounds, 25006."""

    def state(self, oid: int) -> tuple[int, int, bool]:
        """Return last_value, log_cnt and is_called."""

    def definition(self, oid: int) -> SequenceDef:
        """Return what a sequence counts, to whom has any right on it."""


class ChannelSystem(Protocol):
    """The connection's LISTEN and NOTIFY."""

    @property
    def listening(self) -> Sequence[str]:
        """The channels listened to."""

    @property
    def queue_usage(self) -> float:
        """How full the fullest queue of notifications is: 0 to 1."""

    def notify(self, channel: str, payload: str) -> None:
        """NOTIFY; 22023, 54000."""


class RoutineSystem(Protocol):
    """Users' functions, as expressions call them."""

    def call(self, call: SqlCall, args: Sequence[Any]) -> Coroutine[Any, Any, Any]:
        """Run a function: its value, a RecordValue for a row, a list of either for a set. Raises what its
        statements raise.
        """

    def start(self, call: SqlCall, args: Sequence[Any]) -> tuple[bool, Any]:
        """Begin a call: (True, its value) if it is done already, else (False, an awaitable of the value).
        Raises as ``call``.
        """

    def begin(self, work: Coroutine[Any, Any, Any]) -> tuple[bool, Any]:
        """Begin what a function does by statements of its own; returns as ``start``."""

    async def query(self, text: str) -> tuple[Sequence[OutputColumn], Sequence[Any]]:
        """Run a text that is one query within the statement that runs. Raises SqlError 42P11 for any other,
        and what it raises.
        """

    def call_now(self, call: SqlCall, args: Sequence[Any]) -> Any:
        """As ``call``, on the spot. Raises SqlError 0A000 for a function that has to wait, 54001 for one that
        takes too long.
        """


class LargeObjectSystem(Protocol):
    """Large objects, as functions see them."""

    def start(self, name: str, args: Sequence[Any]) -> tuple[bool, Any]:
        """Begin what a function of that name does: (True, its value) if it is done already, else (False, an
        awaitable of the value).

        Raises SqlError 42704 (no such object or descriptor), 42501, 22023, 22003, 55000, 54000, 23505, 25006.
        """


class EvalSystem(Protocol):
    """The server as system functions see it: sizes, other sessions, the running transaction."""

    @property
    def start_time_us(self) -> int:
        """When the server started: microseconds since 1970."""

    @property
    def database_oid(self) -> int:
        """Oid of the session's database."""

    @property
    def advisory(self) -> AdvisorySystem:
        """The connection's advisory locks."""

    @property
    def routines(self) -> RoutineSystem:
        """Users' functions, to be called."""

    @property
    def large_objects(self) -> LargeObjectSystem:
        """Large objects, and the session's descriptors of them."""

    @property
    def trigger_depth(self) -> int:
        """How many triggers run within each other now."""

    @property
    def sequences(self) -> SequenceSystem:
        """The sequences as the session uses them."""

    @property
    def channels(self) -> ChannelSystem:
        """The connection's LISTEN and NOTIFY."""

    def relation_sizes(self) -> Callable[[int], int | None]:
        """Return what gives, by oid, the bytes a stored table takes; 0 for other relations, None for an unknown oid.

        It serves one statement.
        """

    def database_size(self, database: int) -> int:
        """Return the bytes of all stored tables of a database, by oid; 0: of all."""

    def backend_database(self, pid: int) -> int | None:
        """Return the oid of the database that a session is in, None if there is no such session."""

    def row_estimate(self, oid: int) -> int:
        """Return about how many rows a stored table has; 0 for other relations."""

    def rows_and_ids(self, oid: int) -> tuple[int, int]:
        """Return about how many rows a stored table has, and how many row ids it has given out; zeros for
        other relations.
        """

    def blocks(self, oid: int) -> int:
        """Return how many blocks a stored table's ctids are in; 0 for other relations."""

    def analyzed_us(self, oid: int) -> tuple[int | None, int | None]:
        """Return when a table's columns were last counted because ANALYZE asked for it, and when without."""

    def vacuumed(self, oid: int) -> tuple[int | None, int]:
        """Return when VACUUM worked on a table last since the server's start (microseconds since 1970), and
        how often.
        """

    @property
    def load_time_us(self) -> int:
        """When the access rules were read last: microseconds since 1970."""

    def reload(self) -> None:
        """Have the access rules read again."""

    @property
    def log_position(self) -> tuple[int, int]:
        """The first entry of the log that is still needed, and the last one: numbers of entries."""

    @property
    def next_transaction_id(self) -> int:
        """Above all transaction ids given out so far, in full."""

    @property
    def first_transaction_id(self) -> int:
        """The lower half of the first id of this run of the server: of what is older nobody needs to know any more."""

    @property
    def oldest_transaction_id(self) -> int:
        """The lower half of the id of the oldest running transaction."""

    def server_files(self, kind: Literal["log", "temporary"]) -> Iterable[tuple[str, int, int]]:
        """Return name, bytes and time of change (microseconds since 1970) of the files of the log, or of
        temporary ones.
        """

    def directory(self, path: str, *, missing_ok: bool, dots: bool) -> Sequence[str]:
        """Return the names in a directory of the data directory. Raises SqlError 42501 for others, 58P01, 42809."""

    async def file_bytes(self, name: str, offset: int, length: int, *, missing_ok: bool) -> bytes | None:
        """Return bytes of a server's file; ``length`` below 0: to its end; ``offset`` below 0: from there.
        None where it is missing and may be.

        Raises SqlError 42501, 58P01, 42809, 58030, 54000.
        """

    async def file_status(self, name: str, *, missing_ok: bool) -> tuple[int, int, int, int, bool] | None:
        """Return bytes, times of the last read, write and change (microseconds since 1970), and whether it is
        a directory. Raises SqlError 42501, 58P01.
        """

    def log_memory(self, pid: int) -> bool:
        """Write into the server's log what memory a session has; False if there is no such session."""

    @property
    def query_text(self) -> str:
        """Text of the statement as the client sent it."""

    @property
    def client_address(self) -> tuple[str, int] | None:
        """Address and port of the client, None for one that has none."""

    @property
    def server_address(self) -> tuple[str, int] | None:
        """Address and port the server listens on, None where it listens on all."""

    def warn(self, message: str, sqlstate: str = "01000") -> None:
        """Send a WARNING to the client."""

    def cancel_backend(self, pid: int) -> bool:
        """Cancel what a session runs; False if there is no such session."""

    def terminate_backend(self, pid: int) -> bool:
        """End a session; False if there is no such session."""

    def backend_user(self, pid: int) -> int | None:
        """Return the session user of a connection, by oid, None if there is no such session."""

    def backends(self) -> Sequence[int]:
        """Return the process ids of all sessions, in ascending order."""

    def blocking_pids(self, pid: int) -> Sequence[int]:
        """Return the sessions whose locks a session waits for."""

    def assigned_transaction_id(self) -> int | None:
        """Return the id of the running transaction if it writes or has been told; None for one that only reads."""

    def transaction_id(self) -> int:
        """Return the id of the running transaction."""

    def transaction_status(self, number: int) -> str | None:
        """Return ``in progress``, ``committed``, ``aborted``, or None where it is not known; 22023 for a
        number of the future.
        """

    def current_snapshot(self) -> str:
        """Return which transactions the running statement sees, as a value of pg_snapshot; 72000 where that
        is not known any more.
        """

    def export_snapshot(self) -> str:
        """Export the running transaction's snapshot and return its id; 25001 below a savepoint."""

    def cursor_value(self, cursor: str | None, table: int, table_name: str, attnum: int) -> Any:
        """Return a column of the row that a cursor stands on. Raises SqlError 34000, 24000, 0A000."""

    def catalog_rows(self, name: str) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a relation of pg_catalog, in attnum order."""


class NameScope(Protocol):
    """What a name of an object is looked up in: a session, or a catalog with a search path (``names_of.NamesOf``)."""

    @property
    def catalog(self) -> Catalog:
        """The catalog that names are looked up in."""

    @property
    def quotes_all(self) -> bool:
        """Are all identifiers quoted that the session reads (``quote_all_identifiers``)?"""

    @property
    def database(self) -> str:
        """current_database()."""

    @property
    def search_path(self) -> tuple[str, ...]:
        """Existing schemas of the search path, pg_catalog first unless listed."""

    @property
    def closed_schemas(self) -> frozenset[str]:
        """The schemas in which the current user may look nothing up (no USAGE)."""


class EvalSession(NameScope, Protocol):
    """The session as functions see it."""

    @property
    def catalog(self) -> SystemCatalog:
        """The catalog the statement sees."""

    def row_security_counts(self, relation: RelationDef) -> bool:
        """Tell whether policies of a relation count for the current user."""

    def ask_calls(self, functions: Collection[int]) -> None:
        """Raise SqlError 42501 where the current user may not call one of ``functions``, by pg_proc oid."""

    @property
    def rights_catalog(self) -> SystemCatalog:
        """The catalog that the statement sees, with the roles, owners and access control lists of ``today``."""
        ...

    @property
    def today(self) -> SystemCatalog:
        """The catalog whose roles count: the latest, whatever time the statement reads at."""

    @property
    def system(self) -> EvalSystem:
        """The server as system functions see it."""

    @property
    def codec_settings(self) -> CodecSettings:
        """What value input and output depend on (DateStyle, TimeZone ...), kept current by the session."""

    @property
    def escapes(self) -> bool:
        """Do plain literals of the session know escapes (``standard_conforming_strings = off``)?"""

    @property
    def output_settings(self) -> CodecSettings:
        """The same without a current time, which costs less to keep."""

    def random(self) -> float:
        """Return a number uniform in [0, 1), as the SQL function of that name yields."""

    def set_seed(self, seed: float) -> None:
        """setseed(): -1 .. 1."""

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` random bytes (uuids)."""

    def setting(self, name: str) -> str:
        """Return a setting's text value (lower-case name); 42704 if unknown."""

    def set_setting(self, name: str, value: str | None, *, local: bool) -> str:
        """set_config()."""

    @property
    def user(self) -> str:
        """current_user."""

    @property
    def session_user(self) -> str:
        """session_user."""

    @property
    def pid(self) -> int:
        """pg_backend_pid()."""

    @property
    def explicit_search_path(self) -> tuple[str, ...]:
        """Those that the setting names: current_schemas(false)."""

    @property
    def transaction_time_us(self) -> int:
        """now(): microseconds since 1970."""

    @property
    def statement_time_us(self) -> int:
        """statement_timestamp()."""

    @property
    def seeded(self) -> bool:
        """Whether setseed() was called, so that random() yields a sequence of the session."""

    def clock_time_us(self) -> int:
        """clock_timestamp()."""
