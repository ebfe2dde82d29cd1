"""Another PostgreSQL, as a source sees it: the one module beside ``txn.persist.logs.postgres`` that knows asyncpg.

Two kinds of connections: ordinary ones, and one in replication mode, which alone can create a slot together
with a snapshot. There only the simple protocol is spoken, so rows are fetched as COPY sends them:

    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
    CREATE_REPLICATION_SLOT "s" LOGICAL pgoutput USE_SNAPSHOT        the state at which the slot begins ...
    COPY (SELECT ...) TO STDOUT                                      ... is what this reads

Values come as text, written under settings of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

import asyncpg

from engine.feeds.sources.reader import Temporary
from planner.base.errors import SqlError

CONNECT_TIMEOUT_S: Final = 10.0
COMMAND_TIMEOUT_S: Final = 300.0  # one look at a slot decodes all that lies between
SLOT_TIMEOUT_S: Final = 3600.0  # a new slot waits for the transactions that run upstream
CLOSE_TIMEOUT_S: Final = 5.0
_QUEUED: Final = 16  # chunks of COPY that wait to be read
_SETTINGS: Final = {
    "application_name": "holdfast source",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
_MAY_PASS: Final = ("08", "53", "57", "40")  # classes: connection, resources, intervention, conflicts
_BUSY: Final = "55006"  # the slot is in use, by a connection of ours that is about to end
# how a lost connection shows; uvloop raises RuntimeError for writing to a transport that is closing
_BROKEN: Final = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, EOFError, RuntimeError)


def translated(error: BaseException) -> BaseException:
    """Return what a source makes of an error: Temporary, or a SqlError with upstream's SQLSTATE."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or "XX000"
        message = f"upstream: {error.args[0] if error.args else error}"
        if state[:2] in _MAY_PASS or state == _BUSY:
            return Temporary(f"{state}: {message}")
        return SqlError(state, message, detail=error.detail or None, hint=error.hint or None)
    if isinstance(error, TimeoutError):
        return Temporary("08006: upstream does not answer")
    if isinstance(error, _BROKEN):
        return Temporary(f"08006: upstream: {error or type(error).__name__}")
    return error


class Upstream:
    """One connection. Methods raise Temporary, or SqlError for what stays wrong; after Temporary it is of no use."""

    def __init__(self, connection: Any) -> None:
        """Use ``connect``."""
        self._connection = connection

    @classmethod
    async def connect(cls, url: str, *, replication: bool = False) -> Upstream:
        """Connect. Raises Temporary, SqlError (28P01, 3D000 ...; 22023 for a URL that cannot be read)."""
        await asyncio.sleep(0)  # what a statement has run eagerly has no task yet, and asyncpg needs one
        settings = dict(_SETTINGS)
        if replication:
            settings["replication"] = "database"
        try:
            return cls(
                await asyncpg.connect(
                    url,
                    timeout=CONNECT_TIMEOUT_S,
                    command_timeout=COMMAND_TIMEOUT_S,
                    statement_cache_size=0,
                    server_settings=settings,
                )
            )
        except (ValueError, asyncpg.ClientConfigurationError):
            raise SqlError(
                "22023", "the connection of a POSTGRES source must be a postgresql:// URL"
            ) from None
        except (asyncpg.PostgresError, *_BROKEN) as error:
            raise translated(error) from None

    async def rows(self, sql: str, *arguments: Any) -> list[Any]:
        """Return the rows of a query (asyncpg.Record, by name or position)."""
        try:
            return list(await self._connection.fetch(sql, *arguments))
        except (asyncpg.PostgresError, *_BROKEN) as error:
            raise translated(error) from None

    async def run(self, sql: str) -> None:
        """Run a command by the simple protocol."""
        try:
            await self._connection.execute(sql, timeout=SLOT_TIMEOUT_S)
        except (asyncpg.PostgresError, *_BROKEN) as error:
            raise translated(error) from None

    async def copy(self, query: str) -> AsyncGenerator[bytes]:
        """Yield what COPY sends of a query, in text format, in pieces of any size. Closing the iterator ends
        the copy.
        """
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUED)

        async def take(piece: bytes) -> None:
            await pieces.put(bytes(piece))

        async def all_of_it() -> None:
            try:
                await self._connection.copy_from_query(query, output=take, timeout=SLOT_TIMEOUT_S)
            finally:
                await pieces.put(None)

        copying = asyncio.get_running_loop().create_task(all_of_it())
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            try:
                await copying
            except (asyncpg.PostgresError, *_BROKEN) as error:
                raise translated(error) from None
        finally:
            if not copying.done():
                copying.cancel()
                await asyncio.wait((copying,))

    async def close(self) -> None:
        """End the connection, at once if upstream does not answer. Never fails."""
        try:
            await self._connection.close(timeout=CLOSE_TIMEOUT_S)
        except (asyncpg.PostgresError, *_BROKEN):
            self._connection.terminate()


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def listed(names: Sequence[str]) -> str:
    """Return quoted names, separated by commas."""
    return ", ".join(map(quoted, names))
