"""Temporary objects of sessions that have ended, or of a server that was killed: they go, with what hangs on them.

    pg_temp_12   rt <── domain public.d <── column public.t.c        dropped by DROP … CASCADE

in a session that nobody is connected to, which has none of the role, limits and modes that the old one had
set: ``lock_timeout``, say, does not leave them there. Where it fails as the server starts, the temporary
objects alone go: a new session may have the number of the old one, and must not find them. What hung on them
is left as what cannot be read.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from engine.base.eager import settle
from engine.base.settings import Settings
from engine.catalog.storage.spaces import Space
from engine.catalog.storage.store import SPEC, write_changes
from engine.catalog.storage.stored import SUPERUSER_OID, StoredKey, key_of
from engine.definitions.dropping.drop import drop_rows
from engine.definitions.table.temporary import drop_temporaries
from engine.session.session import Session
from pgwire.backend import Responder
from planner.catalog import RelationDef, RoleDef
from txn.base.errors import Deadlock, Fenced, SchemaChanged, WriteConflict

if TYPE_CHECKING:
    from engine.server.database import Database

log = logging.getLogger("holdfast")
PREFIX = "pg_temp_"
_TRIES = 10


class _Nobody(Responder):
    """Who listens to a session without a client: what is said to it is gone, as the protocol's own bodies do
    nothing.
    """

    rests = False
    sync_follows = False
    paused = False
    lost = False

    def tcp_options(self) -> Mapping[str, int]:
        """There is no socket."""
        return {}

    def encryption(self) -> None:
        """There is no socket."""

    def unsent(self) -> int:
        """There is no socket."""
        return 0

    def when_complete(self, then: Callable[[], None]) -> None:
        """Nothing is sent."""
        then()

    def copy_in(self, format: int, column_formats: Sequence[int]) -> AsyncIterator[bytes]:
        """There is no data to copy."""
        raise ConnectionError


async def drop_ended(database: Database, space: Space, pid: int) -> None:
    """Drop what the session ``pid``, which has ended, has in its temporary schema. Raises TxnError, SqlError."""
    for left in reversed(range(_TRIES + 1)):
        session = _session(database, space, pid)
        try:
            await drop_temporaries(session)
            return
        except (Deadlock, SchemaChanged, WriteConflict):
            if not left:  # else: others changed what hangs on it
                raise
        finally:
            session.let_go()


async def drop_leftovers(database: Database, space: Space) -> None:
    """Drop what earlier sessions of one database have left in their temporary schemas. Raises Fenced."""
    for schema in sorted(s.name for s in space.catalog.schemas() if s.name.startswith(PREFIX)):
        try:
            await drop_ended(database, space, int(schema.removeprefix(PREFIX)))
        except Fenced:
            raise
        except Exception:  # starting depends on no object
            log.exception("temporary objects in %s were dropped without what hangs on them", schema)
            await _forget(database, space, schema)


def session_beside(session: Session) -> Session:
    """Return a session without a client in the database of another one, for what that has to do in a
    transaction of its own.
    """
    return _session(cast("Database", session.db), session.space, session.pid)


def _session(database: Database, space: Space, pid: int) -> Session:
    role = RoleDef(oid=SUPERUSER_OID, name="postgres", superuser=True)
    settings = Settings(
        database.setting_defaults
        | {
            "is_superuser": "on",
            "session_authorization": role.name,
            "lock_timeout": "0",
            "transaction_timeout": "0",
            "default_transaction_read_only": "off",
        }
    )
    found = space.catalog.database_by_oid(space.oid)
    if found is None:
        raise AssertionError(f"database {space.oid} is not in its own catalog")
    out = _Nobody()  # type: ignore[abstract] # bodies that do nothing are what is wanted
    return Session(database, pid=pid, user=role, database_def=found, settings=settings, out=out)


async def _forget(database: Database, space: Space, schema: str) -> None:
    """Take a temporary schema and all that is in it out of the catalog."""
    items = [i for i in space.catalog.items.values() if getattr(i, "schema", "") == schema]
    found = space.catalog.schema(schema)
    deletes: list[StoredKey] = [key_of(item) for item in items]
    if found is not None:
        deletes.append(key_of(found))
    txn = database.store.begin()
    try:
        for item in items:
            if isinstance(item, RelationDef):
                await drop_rows(space.catalog, txn, item)
        await settle(txn.begin_write([SPEC.shard]))
        await write_changes(txn, space.catalog, [], deletes)
        ts = await settle(txn.commit())
    except BaseException:
        txn.rollback()
        raise
    after = space.catalog.with_changes([], deletes, database.next_catalog_version())
    database.publish(space, after, dict.fromkeys(deletes), ts)
