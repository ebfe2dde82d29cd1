"""The server as system functions see it from one session (``planner.functions.session.EvalSystem``).

pg_relation_size ──> the transaction's figures      pg_terminate_backend ──> pgwire's server
pg_blocking_pids ──> the lock table                 pg_show_all_settings ──> a catalog relation
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from engine.base.server_directory import log_files, names, temporary_files
from engine.catalog.tids import PAGE_BYTES, blocks
from engine.session.advisory import SessionAdvisory
from engine.session.interrupts import CANCELED
from engine.session.large_objects.session import SessionLargeObjects
from engine.session.sequences.session import SessionSequences
from engine.session.server_reading import file_bytes, file_status
from engine.session.transaction import snapshots
from pgwire.give_way import give_way
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.facts import PG_CATALOG_OID
from txn import inspect
from txn.api import ShardStats
from txn.base.types import ShardId, Timestamp, TxnId

if TYPE_CHECKING:
    from engine.session.channels import SessionChannels
    from engine.session.session import Session

log = logging.getLogger("holdfast")
_NOTHING: Final = ShardStats(0, 0, 0, 0, 0, 0)
_FIRST_NORMAL_XID: Final = 3


class SystemView:
    """Answers for one session; of its own are only the connection's advisory locks and what it drew from sequences."""

    __slots__ = (
        "_reads",
        "_session",
        "_snapshot",
        "_told",
        "advisory",
        "large_objects",
        "routines",
        "sequences",
    )

    def __init__(self, session: Session) -> None:
        """Answer for ``session``."""
        self._session = session
        self.advisory = SessionAdvisory(session)
        self.sequences = SessionSequences(session)
        self.large_objects = SessionLargeObjects(session)
        self.routines = session.db.ports.routines(session)
        self._told = -1  # the transaction whose id was asked for
        # of which transaction, reading where, the snapshot is
        self._reads: tuple[int, dict[str, Timestamp]] | None = None
        self._snapshot = ""

    def cursor_value(self, cursor: str | None, table: int, table_name: str, attnum: int) -> Any:
        """Return a column of the row that a cursor stands on."""
        if self._session.cursors is None:
            raise AssertionError("a cursor is read in a session that has none")
        return self._session.cursors.current_value(cursor, table, table_name, attnum)

    @property
    def start_time_us(self) -> int:
        """When the server started."""
        return self._session.db.start_time_us

    @property
    def database_oid(self) -> int:
        """Oid of the session's database."""
        return self._session.database_oid

    @property
    def channels(self) -> SessionChannels:
        """The connection's LISTEN and NOTIFY."""
        return self._session.channels

    def _stats(self, relation: RelationDef | None) -> ShardStats:
        """Return the figures of a relation, zeros where it stores nothing."""
        if relation is None or not relation.stored:
            return _NOTHING
        try:
            return self._session.block.ensure_txn().stats(ShardId(relation.oid))
        except KeyError:  # dropped meanwhile; the catalog is that of the transaction's start
            return _NOTHING

    def relation_sizes(self) -> Callable[[int], int | None]:
        """Return what gives the bytes of a table or materialized view; 0 for indexes, views and catalog relations.

        They are at least those of the pages that its rows' ctids name, for clients that read a table by its
        size in pages.
        """
        find, stats = self._session.catalog.relation_by_oid, self._stats

        def size(oid: int) -> int | None:
            relation = find(oid)
            if relation is None:
                return None
            found = stats(relation)
            return max(found.bytes, blocks(found.ids) * PAGE_BYTES)

        return size

    def row_estimate(self, oid: int) -> int:
        """Return about how many rows a stored table has; 0 for other relations."""
        return self._stats(self._session.catalog.relation_by_oid(oid)).live

    def rows_and_ids(self, oid: int) -> tuple[int, int]:
        """Return about how many rows a stored table has, and how many row ids it has given out; zeros for
        other relations.
        """
        found = self._stats(self._session.catalog.relation_by_oid(oid))
        return found.live, found.ids

    def blocks(self, oid: int) -> int:
        """Return how many blocks a stored table's ctids are in; 0 for other relations."""
        return blocks(self.rows_and_ids(oid)[1])

    def analyzed_us(self, oid: int) -> tuple[int | None, int | None]:
        """Return when a table's columns were last counted because ANALYZE asked for it, and when without."""
        statistics = self._session.db.statistics
        record = None if statistics is None else statistics.records.get(oid)
        return (None, None) if record is None else (record.asked_us, record.by_itself_us)

    def vacuumed(self, oid: int) -> tuple[int | None, int]:
        """Return when VACUUM worked on a table last since the server's start, and how often."""
        return self._session.db.upkeep.vacuumed.get(oid, (None, 0))

    @property
    def load_time_us(self) -> int:
        """When the access rules were read last."""
        return self._session.db.load_time_us

    def reload(self) -> None:
        """Have the access rules read again."""
        self._session.db.reload()

    @property
    def log_position(self) -> tuple[int, int]:
        """The first entry of the log that is still needed, and the last one."""
        facts = inspect.log(self._session.db.store.core)
        return facts.critical_since, facts.applied

    @property
    def next_transaction_id(self) -> int:
        """Above all transaction ids given out so far."""
        return int(self._session.db.store.next_transaction_id)

    @property
    def first_transaction_id(self) -> int:
        """The lower half of the first id of this run of the server."""
        return self._session.db.store.first_transaction_id & 0xFFFFFFFF

    @property
    def oldest_transaction_id(self) -> int:
        """The lower half of the id of the oldest running transaction; never that of a number that PostgreSQL
        keeps for other uses.
        """
        store = self._session.db.store
        oldest = next(iter(store.running), store.next_transaction_id)
        return max(int(oldest) & 0xFFFFFFFF, _FIRST_NORMAL_XID)

    def server_files(self, kind: Literal["log", "temporary"]) -> Iterator[tuple[str, int, int]]:
        """Return the files of the log, or temporary ones."""
        folder = Path(self._session.db.config.data_dir)
        return log_files(folder) if kind == "log" else temporary_files(folder)

    def directory(self, path: str, *, missing_ok: bool, dots: bool) -> Sequence[str]:
        """Return the names in a directory of the data directory."""
        return names(Path(self._session.db.config.data_dir), path, missing_ok=missing_ok, dots=dots)

    async def file_bytes(self, name: str, offset: int, length: int, *, missing_ok: bool) -> bytes | None:
        """Return bytes of a server's file."""
        return await file_bytes(self._session, name, offset, length, missing_ok=missing_ok)

    async def file_status(self, name: str, *, missing_ok: bool) -> tuple[int, int, int, int, bool] | None:
        """Return bytes, times and kind of a server's file."""
        return await file_status(self._session, name, missing_ok=missing_ok)

    def log_memory(self, pid: int) -> bool:
        """Write what ``holdfast_memory`` tells of a session into the log."""
        rows = [row for row in self.catalog_rows("holdfast_memory") if row[1] == pid]
        for owner, _, size, limit, most in rows:
            log.info(
                "memory of session %d: %s has %s bytes (limit %s, most so far %s)",
                pid,
                owner,
                size,
                limit,
                most,
            )
        return bool(rows)

    def database_size(self, database: int) -> int:
        """Return the bytes of all stored tables of a database; 0: of all."""
        session = self._session
        if database == session.database_oid:
            return sum(self._stats(r).bytes for r in session.catalog.user_relations())
        return sum(
            self._stats(r).bytes
            for space in session.db.spaces
            if database in (0, space.oid)
            for r in space.catalog.user_relations()
        )

    def backend_database(self, pid: int) -> int | None:
        """Return the oid of the database that a session is in, None if there is no such session."""
        found = self._session.db.sessions.get(pid)
        return None if found is None else found.session.database_oid

    @property
    def query_text(self) -> str:
        """Text of the statement as the client sent it."""
        return self._session.query_text

    @property
    def client_address(self) -> tuple[str, int] | None:
        """Address and port of the client, None for one that has none."""
        host, _, port = self._session.peer.rpartition(":")
        return (host.strip("[]"), int(port)) if host else None

    @property
    def server_address(self) -> tuple[str, int] | None:
        """Address and port the server listens on, None where it listens on all or by a name."""
        try:
            address = ipaddress.ip_address(self._session.db.config.host)
        except ValueError:
            return None
        return None if address.is_unspecified else (str(address), self._session.db.config.port)

    @property
    def trigger_depth(self) -> int:
        """How many triggers run within each other now."""
        return len(self._session.timing.in_use)

    def warn(self, message: str, sqlstate: str = "01000") -> None:
        """Send a WARNING to the client."""
        self._session.warning(message, sqlstate)

    def cancel_backend(self, pid: int) -> bool:
        """Cancel what a session runs; False if there is no such session. SqlError 57014 for its own."""
        if pid == self._session.pid:
            raise SqlError("57014", CANCELED)
        return self._session.db.interrupt(pid)

    def terminate_backend(self, pid: int) -> bool:
        """End a session; False if there is no such session."""
        return self._session.db.terminate(pid)

    def backend_user(self, pid: int) -> int | None:
        """Return the session user of a connection, by oid, None if there is no such session."""
        connection = self._session.db.sessions.get(pid)
        return None if connection is None else connection.session.identity.session

    def backends(self) -> Sequence[int]:
        """Return the process ids of all sessions, in ascending order."""
        return sorted(self._session.db.sessions)

    def blocking_pids(self, pid: int) -> Sequence[int]:
        """Return the sessions whose locks a session waits for."""
        blocked: list[int] = self._session.db.store.blocked_by(pid)
        return blocked

    def transaction_id(self) -> int:
        """Return the id of the running transaction."""
        self._told = self._session.db.outcomes.tell(self._session.block.root)
        return self._told

    def assigned_transaction_id(self) -> int | None:
        """Return the id of the running transaction if it writes or has been told; None for one that only reads."""
        txn = self._session.block.root
        return self.transaction_id() if txn.writing or txn.id == self._told else None

    def was_told(self, txn: TxnId) -> bool:
        """Tell whether the session has asked for this transaction's id."""
        return txn == self._told

    def transaction_status(self, number: int) -> str | None:
        """Return what became of a transaction; SqlError 22023 for a number of the future."""
        return self._session.db.outcomes.status(number)

    def current_snapshot(self) -> str:
        """Return which transactions the running one sees: the same value as long as it reads at the same timestamps."""
        txn = self._session.block.root
        reads = (txn.id, txn.read_points())
        if reads != self._reads:
            self._snapshot = self._session.db.outcomes.snapshot(txn)
            self._reads = reads
        return self._snapshot

    def export_snapshot(self) -> str:
        """Export the running transaction's snapshot and return its id."""
        return snapshots.export(self._session)

    def catalog_rows(self, name: str) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a relation of pg_catalog, in attnum order."""
        relation = self._session.catalog.relation("pg_catalog", name)
        if relation is None or relation.schema_oid != PG_CATALOG_OID:
            raise LookupError(f"pg_catalog has no relation {name}")
        virtual = self._session.db.virtual
        for _ in virtual.prepare(relation.oid, self._session):
            give_way()
        return virtual.rows(relation.oid, self._session)
