"""Consensus in a PostgreSQL database, for servers that stand by for each other.

    <schema>.state      one row: epoch, changes (of registers), next_seq, log_first, two session numbers
    <schema>.register   name -> seq, data
    <schema>.log        seq -> data
    <schema>.format     version of all this, and the identity of the database that it belongs to

Everything that changes something begins by updating the one row of ``state`` *where* the epoch (and what else must
hold) is current, and does the rest in the same statement, one round trip::

    WITH s AS (UPDATE state SET next_seq = next_seq + 1 WHERE epoch = .. AND next_seq = .. RETURNING 1)
    INSERT INTO log SELECT .. FROM s

At READ COMMITTED such a statement waits for whoever has the row, and then looks at the row's newest version. So
raising the epoch waits for an append under way, and every later one finds the new epoch (L10).

A connection that broke, or did not answer in time, may leave a statement behind that the server has yet to run.
It must not take effect after its successor was refused. So each connection that writes takes a *session number*
from ``state`` first, which is checked as the epoch is: once the next connection has its number, whatever older ones
left behind has ended or will find that it is too late.

Three connections, so that a renewal of the lease waits for no append: ``log``, ``register``, ``bulk``
(replay, trimming). They are made when needed and replaced when broken. A server error other than a full disk
is reported as Indeterminate: repeating the call is always right.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from txn.base.errors import Fenced, OutOfSpace, UnknownFormat
from txn.persist.location import Indeterminate, Pulse, SequenceConflict, Versioned

T = TypeVar("T")
Connection = Any  # asyncpg.Connection; its stubs make every row Any all the same

FORMAT: Final = 1
LOG_TIMEOUT_S: Final = 30.0  # a batch of 4 MB on a slow disk
REGISTER_TIMEOUT_S: Final = 5.0
CONNECT_TIMEOUT_S: Final = 5.0
APPEND_ATTEMPTS: Final = 25  # about a minute: PostgreSQL may be restarting
_TRUNCATE_ENTRIES = 2000  # per statement, so that appends get in between
_TRUNCATE_BYTES = 32 << 20
_READ_ENTRIES = 5000
_SESSION_ATTEMPTS = 3
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")

# How a lost connection shows; uvloop raises RuntimeError for writing to a transport that is closing.
_BROKEN = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, EOFError, RuntimeError)

_log = logging.getLogger(__name__)

_CREATE = """
CREATE TABLE {s}.format (version int NOT NULL, cluster text NOT NULL);
CREATE TABLE {s}.state (
    one boolean PRIMARY KEY CHECK (one),
    epoch bigint NOT NULL, changes bigint NOT NULL,
    next_seq bigint NOT NULL, log_first bigint NOT NULL,
    log_session bigint NOT NULL, register_session bigint NOT NULL
) WITH (fillfactor = 10);
CREATE TABLE {s}.register (name text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, data bytea NOT NULL);
CREATE TABLE {s}.log (seq bigint PRIMARY KEY, data bytea NOT NULL);
ALTER TABLE {s}.register ALTER data SET STORAGE EXTERNAL;
ALTER TABLE {s}.log ALTER data SET STORAGE EXTERNAL;
INSERT INTO {s}.state VALUES (true, 0, 0, 1, 1, 0, 0);
"""
_APPEND = """
WITH s AS (UPDATE {s}.state SET next_seq = next_seq + 1
           WHERE epoch = $1 AND log_session = $2 AND next_seq = $3 RETURNING 1)
INSERT INTO {s}.log (seq, data) SELECT $3, $4::bytea FROM s RETURNING seq
"""
_CHANGE = """
WITH s AS (UPDATE {s}.state SET changes = changes + 1
           WHERE epoch = $1 AND register_session = $2 RETURNING changes), w AS (%s)
SELECT (SELECT changes FROM s), (SELECT seq FROM w)
"""
_INSERT = _CHANGE % (
    "INSERT INTO {s}.register (name, seq, data) SELECT $3::text, s.changes, $4::bytea FROM s "
    "ON CONFLICT (name) DO NOTHING RETURNING seq"
)
_UPDATE = _CHANGE % (
    "UPDATE {s}.register r SET seq = s.changes, data = $4 FROM s WHERE r.name = $3 AND r.seq = $5 RETURNING r.seq"
)
_DELETE = _CHANGE % (
    "DELETE FROM {s}.register r USING s WHERE r.name = $3 AND r.seq = $4 RETURNING 0::bigint AS seq"
)
_ABSENT = _CHANGE % (
    "SELECT 0::bigint AS seq FROM s WHERE NOT EXISTS (SELECT FROM {s}.register WHERE name = $3)"
)
_READ = """
SELECT seq, data FROM (
    SELECT seq, data, sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before
    FROM {s}.log WHERE seq >= $1 ORDER BY seq LIMIT $3::bigint) t
WHERE before < $2 ORDER BY seq
"""
_TRUNCATE_TO = """
SELECT coalesce(max(seq) + 1, $1) FROM (
    SELECT seq, sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before
    FROM {s}.log WHERE seq < $1 ORDER BY seq LIMIT $2::bigint) t
WHERE before < $3
"""
_TRUNCATE = """
WITH s AS (UPDATE {s}.state SET log_first = greatest(log_first, least($2, next_seq))
           WHERE epoch = $1 RETURNING log_first, next_seq),
     d AS (DELETE FROM {s}.log l USING s WHERE l.seq < s.log_first)
SELECT log_first, next_seq FROM s
"""


_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*)(?::[0-9]*)?")


def shown(url: str) -> str:
    """Return a connection URL without its password and parameters, for messages.

    Nothing is shown of one that may be divided in the wrong place: a password with a ``/``, ``?`` or ``#``
    that is not escaped ends the part that has it, and would be taken for a port and a path.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a malformed URL"
    user, at, hosts = parts.netloc.rpartition("@")
    if not all(map(_HOST.fullmatch, hosts.split(","))) or "@" in parts.path + parts.query + parts.fragment:
        return "a malformed URL"
    return urlunsplit((parts.scheme, user.partition(":")[0] + at + hosts, parts.path, "", ""))


class _Lane:
    """One connection, used by one statement at a time, made anew when broken."""

    def __init__(self, owner: PostgresConsensus, name: str, timeout_s: float) -> None:
        self.name = name
        self._owner = owner
        self._timeout_s = timeout_s
        self._lock = asyncio.Lock()
        self._connection: Connection = None
        self._session: tuple[int, int] | None = None  # epoch, number
        self._left_behind = False  # a connection was given up, and no later one has taken a number since

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run ``work`` on the connection. Raises OutOfSpace, Indeterminate and what ``work`` raises itself."""
        async with self._lock:
            try:
                connection = await self._open()
                async with asyncio.timeout(self._timeout_s):
                    return await work(connection)
            except asyncpg.PostgresError as error:
                if isinstance(error, asyncpg.DiskFullError):
                    raise OutOfSpace(f"the consensus database is full: {error}") from error
                if self._connection is not None and self._connection.is_closed():
                    self.drop()
                raise Indeterminate(f"the consensus database refused: {error}") from error
            except TimeoutError as error:
                self.drop()
                raise Indeterminate(
                    f"the consensus database did not answer within {self._timeout_s:g} s"
                ) from error
            except _BROKEN as error:
                self.drop()
                raise Indeterminate(f"the connection to the consensus database was lost: {error}") from error
            except asyncio.CancelledError:
                self.drop()  # whatever was sent may be running still
                raise

    async def _open(self) -> Connection:
        if self._owner.closed:
            raise Indeterminate("the log is closed")
        if self._connection is None or self._connection.is_closed():
            self.drop()
            self._connection = await self._owner.connect(self.name, self._timeout_s)
        return self._connection

    def drop(self) -> None:
        """Give the connection up at once; its session number is worth nothing any more."""
        connection, self._connection, self._session = self._connection, None, None
        if connection is not None:
            self._left_behind = True
            connection.terminate()

    async def session(self, connection: Connection, claim: str, epoch: int) -> int:
        """Return this connection's number under ``epoch``, taking one if need be.

        Raises Fenced; Indeterminate where there is no space for that, and an earlier connection may have left
        behind what only a new number keeps from taking effect: a full disk refuses then, but settles nothing.
        """
        if self._session is None or self._session[0] != epoch:
            try:
                number = await connection.fetchval(claim, epoch)
            except asyncpg.DiskFullError as error:
                if self._left_behind:
                    raise Indeterminate(f"the consensus database is full: {error}") from error
                raise
            if number is None:
                raise await self._owner.fenced(connection, epoch)
            self._session = epoch, number
            self._left_behind = False
        return self._session[1]

    def forget_session(self) -> None:
        """A claim of an older connection came through late: take another number."""
        self._session = None

    async def close(self) -> None:
        """Wait for the statement under way, then close."""
        async with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and not connection.is_closed():
                try:
                    await connection.close(timeout=1.0)
                except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                    connection.terminate()


class PostgresConsensus:
    """Consensus over the schema ``schema`` of a PostgreSQL database; made by ``open``, used from one event loop.

    ``cluster`` identifies the database of which it is the log: blobs of another one are not mixed with it.
    """

    def __init__(self, url: str, schema: str, register_timeout_s: float, log_timeout_s: float) -> None:
        """Use ``open``."""
        if not _IDENTIFIER.match(schema):
            raise ValueError(f"not a plain schema name: {schema!r}")
        self.cluster = ""
        self.closed = False
        self._url = url
        self._schema = schema
        self.name = f"schema {schema} of the consensus database"
        self._log = _Lane(self, "log", log_timeout_s)
        self._register = _Lane(self, "register", register_timeout_s)
        self._bulk = _Lane(self, "bulk", log_timeout_s)
        self._warned = False
        self._sql: dict[str, str] = {}

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        schema: str = "holdfast",
        cluster: str,
        register_timeout_s: float = REGISTER_TIMEOUT_S,
        log_timeout_s: float = LOG_TIMEOUT_S,
    ) -> PostgresConsensus:
        """Connect to ``url`` (postgresql://...), creating the schema at first use, then as ``cluster``.

        ``register_timeout_s``: after so long a register's change counts as Indeterminate; shorter than a lease.

        Raises:
            Indeterminate: the database cannot be reached, or refuses (the message says why).
            UnknownFormat: the schema was made by a newer server or is something else.
            ValueError: ``schema`` is no plain lower-case name.
        """
        self = cls(url, schema, register_timeout_s, log_timeout_s)
        try:
            self.cluster = await self._bulk.run(lambda c: self._prepare(c, cluster))
        except BaseException:
            await self.close()
            raise
        return self

    def _in_schema(self, text: str) -> str:
        found = self._sql.get(text)
        if found is None:
            found = self._sql[text] = text.replace("{s}", self._schema)
        return found

    async def connect(self, lane: str, timeout_s: float) -> Connection:
        """Return a new connection with the settings that correctness rests on."""
        timeout_ms = str(int(timeout_s * 1000))
        try:
            connection = await asyncpg.connect(
                self._url,
                timeout=CONNECT_TIMEOUT_S,
                target_session_attrs=SessionAttribute.read_write,
                server_settings={
                    "application_name": f"holdfast {lane}",
                    "default_transaction_isolation": "read committed",
                    "statement_timeout": timeout_ms,
                    "idle_in_transaction_session_timeout": timeout_ms,
                    "lock_timeout": "0",
                    "jit": "off",
                },
            )
        except ValueError:  # asyncpg's text may quote the URL, so a traceback must not have it either
            raise Indeterminate(f"cannot use the consensus URL {shown(self._url)}") from None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                row = await connection.fetchrow(
                    "SELECT current_setting('synchronous_commit'), current_setting('fsync')"
                )
                synchronous, fsync = row or ("", "")
                if synchronous == "off":
                    await connection.execute("SET synchronous_commit TO on")
            if fsync == "off" and not self._warned:
                self._warned = True
                _log.warning("the consensus database runs with fsync = off: commits do not survive its crash")
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _prepare(self, connection: Connection, cluster: str) -> str:
        """Create the tables if the schema has none, check their format, return the cluster's identity."""
        async with connection.transaction():
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtext('holdfast ' || $1))", self._schema
            )
            tables = await connection.fetch(
                "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = $1 AND c.relkind IN ('r', 'v', 'm', 'p', 'f')",
                self._schema,
            )
            where = f"schema {self._schema} of {shown(self._url)}"
            if tables and "format" not in {row["relname"] for row in tables}:
                raise UnknownFormat(f"{where} holds other tables")
            if not tables:
                exists = await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", self._schema)
                if not exists:
                    await connection.execute(f"CREATE SCHEMA {self._schema}")
                await connection.execute(self._in_schema(_CREATE))
                await connection.execute(
                    self._in_schema("INSERT INTO {s}.format VALUES ($1, $2)"), FORMAT, cluster
                )
                return cluster
            version = await connection.fetchval(self._in_schema("SELECT version FROM {s}.format"))
            if version != FORMAT:
                raise UnknownFormat(f"{where} has format {version}; this server knows format {FORMAT}")
            return str(await connection.fetchval(self._in_schema("SELECT cluster FROM {s}.format")))

    async def fenced(self, connection: Connection, epoch: int) -> Exception:
        """Return the error for a change that no row of ``state`` with ``epoch`` let through."""
        current = await connection.fetchval(self._in_schema("SELECT epoch FROM {s}.state"))
        return Fenced(f"epoch {epoch} has been superseded by {current}")

    # -- Consensus ---------------------------------------------------------------------------------

    async def append(self, epoch: int, seq: int, payload: bytes) -> None:
        """See Consensus."""
        lane = self._log

        async def work(connection: Connection) -> None:
            session = await lane.session(connection, self._in_schema(_CLAIM_LOG), epoch)
            done = await connection.fetchval(self._in_schema(_APPEND), epoch, session, seq, payload)
            if done is not None:
                return
            state = await connection.fetchrow(self._in_schema("SELECT epoch, next_seq FROM {s}.state"))
            if state["epoch"] != epoch:
                raise await self.fenced(connection, epoch)
            if state["next_seq"] != seq:
                raise SequenceConflict(seq, state["next_seq"])
            lane.forget_session()
            raise Indeterminate("an older connection interfered with the append")

        await lane.run(work)

    async def compare_and_set(
        self, key: str, expected: int | None, data: bytes | None, *, epoch: int
    ) -> int | None:
        """See Consensus."""
        lane = self._register
        rest: tuple[object, ...]
        if data is None:
            text, rest = (_ABSENT, ()) if expected is None else (_DELETE, (expected,))
        elif expected is None:
            text, rest = _INSERT, (data,)
        else:
            text, rest = _UPDATE, (data, expected)

        async def work(connection: Connection) -> int | None:
            for _ in range(_SESSION_ATTEMPTS):
                session = await lane.session(connection, self._in_schema(_CLAIM_REGISTER), epoch)
                row = await connection.fetchrow(self._in_schema(text), epoch, session, key, *rest)
                if row[0] is not None:
                    return None if row[1] is None else int(row[1])
                lane.forget_session()  # the next claim tells whether it was the epoch
            raise Indeterminate("older connections interfered with the change of a register")

        return await lane.run(work)

    async def pulse(self) -> Pulse:
        """See Consensus."""

        async def work(connection: Connection) -> Pulse:
            row = await connection.fetchrow(self._in_schema("SELECT epoch, changes FROM {s}.state"))
            return Pulse(row["epoch"], row["changes"])

        return await self._register.run(work)

    async def acquire_epoch(self, at: Pulse | None = None) -> int | None:
        """See Consensus."""

        async def work(connection: Connection) -> int | None:
            raised = "UPDATE {s}.state SET epoch = epoch + 1 %sRETURNING epoch"
            if at is None:
                epoch = await connection.fetchval(self._in_schema(raised % ""))
            else:
                text = self._in_schema(raised % "WHERE epoch = $1 AND changes = $2 ")
                epoch = await connection.fetchval(text, at.epoch, at.changes)
            return None if epoch is None else int(epoch)

        return await self._register.run(work)

    async def head(self, key: str) -> Versioned | None:
        """See Consensus."""

        async def work(connection: Connection) -> Versioned | None:
            row = await connection.fetchrow(
                self._in_schema("SELECT seq, data FROM {s}.register WHERE name = $1"), key
            )
            return None if row is None else Versioned(row["seq"], row["data"])

        return await self._register.run(work)

    async def keys(self, prefix: str) -> list[str]:
        """See Consensus."""

        async def work(connection: Connection) -> list[str]:
            rows = await connection.fetch(
                self._in_schema("SELECT name FROM {s}.register WHERE starts_with(name, $1) ORDER BY name"),
                prefix,
            )
            return [row["name"] for row in rows]

        return await self._register.run(work)

    async def log_bounds(self) -> tuple[int, int]:
        """See Consensus."""

        async def work(connection: Connection) -> tuple[int, int]:
            row = await connection.fetchrow(self._in_schema("SELECT log_first, next_seq FROM {s}.state"))
            return row["log_first"], row["next_seq"]

        return await self._bulk.run(work)

    async def read_log(self, start: int, max_bytes: int = 8 << 20) -> list[tuple[int, bytes]]:
        """See Consensus."""

        async def work(connection: Connection) -> list[tuple[int, bytes]]:
            rows = await connection.fetch(self._in_schema(_READ), start, max_bytes, _READ_ENTRIES)
            return [(row["seq"], row["data"]) for row in rows]

        return await self._bulk.run(work)

    async def truncate(self, before: int, *, epoch: int) -> None:
        """See Consensus."""

        async def work(connection: Connection) -> bool:
            upto = await connection.fetchval(
                self._in_schema(_TRUNCATE_TO), before, _TRUNCATE_ENTRIES, _TRUNCATE_BYTES
            )
            row = await connection.fetchrow(self._in_schema(_TRUNCATE), epoch, upto)
            if row is None:
                raise await self.fenced(connection, epoch)
            return bool(row["log_first"] >= min(before, row["next_seq"]))

        while not await self._bulk.run(work):
            await asyncio.sleep(0)

    async def close(self) -> None:
        """See Consensus."""
        self.closed = True
        for lane in (self._log, self._register, self._bulk):
            await lane.close()


_CLAIM_LOG = "UPDATE {s}.state SET log_session = log_session + 1 WHERE epoch = $1 RETURNING log_session"
_CLAIM_REGISTER = (
    "UPDATE {s}.state SET register_session = register_session + 1 WHERE epoch = $1 RETURNING register_session"
)
