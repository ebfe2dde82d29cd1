"""What the views say of sessions that wait, of transactions, and of the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from sqllogictest.client import Client, ServerError
from tests.support.fields import connect
from tests.support.server import ServerProcess

WAIT_S = 20.0


class Pair:
    """``holder`` has row 1 of ``spot`` locked; ``waiter`` wants it, in a thread, until the end."""

    def __init__(self, server: ServerProcess) -> None:
        self.control = server.connect()
        self.holder, self.waiter = server.connect(), server.connect()
        self.control.run("DROP TABLE IF EXISTS spot")
        self.control.run("CREATE TABLE spot (id int PRIMARY KEY, n int)")
        self.control.run("INSERT INTO spot VALUES (1, 0), (2, 0)")
        self.holder_pid = int(str(self.holder.run("SELECT pg_backend_pid()").rows[0][0]))
        self.waiter_pid = int(str(self.waiter.run("SELECT pg_backend_pid()").rows[0][0]))
        self.holder.run("BEGIN")
        self.holder.run("UPDATE spot SET n = 1 WHERE id = 1")
        self.error: ServerError | None = None
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()
        deadline = time.monotonic() + WAIT_S
        while self.one(f"SELECT cardinality(pg_blocking_pids({self.waiter_pid}))")[0] == "0":
            assert time.monotonic() < deadline, "nobody waits"

    def _wait(self) -> None:
        try:
            self.waiter.run("UPDATE spot SET n = 2 WHERE id = 1")
        except ServerError as error:
            self.error = error

    def one(self, sql: str) -> tuple[str | None, ...]:
        [row] = self.control.run(sql).rows
        return row

    def end(self) -> None:
        self.holder.run("ROLLBACK")
        self._thread.join(WAIT_S)

    def close(self) -> None:
        self.end()
        self.control.run("DROP TABLE spot")  # others on this server compare what tables there are
        for client in (self.control, self.holder, self.waiter):
            client.close()


@pytest.fixture
def pair(server: ServerProcess) -> Iterator[Pair]:
    made = Pair(server)
    yield made
    made.close()


def test_a_wait_is_seen_from_outside(pair: Pair) -> None:
    assert pair.one(f"SELECT pg_blocking_pids({pair.waiter_pid}), pg_blocking_pids({pair.holder_pid})") == (
        f"{{{pair.holder_pid}}}",
        "{}",
    )
    test = "SELECT pg_isolation_test_session_is_blocked({}, '{{{}}}')"
    assert pair.one(test.format(pair.waiter_pid, pair.holder_pid)) == ("t",)
    assert pair.one(test.format(pair.waiter_pid, pair.waiter_pid)) == ("f",)
    assert pair.one(test.format(pair.holder_pid, pair.waiter_pid)) == ("f",)
    waiting = pair.one(
        "SELECT pid, relation::regclass, waitstart BETWEEN now() - interval '20 s' AND clock_timestamp() FROM pg_locks"
        " WHERE NOT granted"
    )
    assert waiting == (str(pair.waiter_pid), "spot", "t")
    held = pair.control.run(
        f"SELECT locktype, mode FROM pg_locks WHERE granted AND pid = {pair.holder_pid}"
    ).rows
    assert ("relation", "RowExclusiveLock") in held
    assert ("tuple", "ExclusiveLock") in held  # no key is changed


def test_a_session_holds_its_own_ids_and_what_it_reads(server: ServerProcess) -> None:
    """As PostgreSQL 15 shows it, but for indexes, and for tables that are read and then written: one mode, the stronger."""
    client = server.connect()
    own = (
        "SELECT locktype, relation::regclass, virtualxid IS NOT NULL, transactionid IS NOT NULL, mode FROM pg_locks"
        " WHERE pid = pg_backend_pid() AND granted AND locktype IN ('relation', 'virtualxid', 'transactionid') ORDER BY 1, 2"
    )
    here, virtual = (
        ("relation", "pg_locks", "f", "f", "AccessShareLock"),
        ("virtualxid", None, "t", "f", "ExclusiveLock"),
    )
    client.run("DROP TABLE IF EXISTS read_here; CREATE TABLE read_here (a int PRIMARY KEY)")
    assert client.run(own).rows == [here, virtual]
    client.run("BEGIN")
    client.run("SELECT count(*) FROM read_here")
    assert client.run(own).rows == [here, ("relation", "read_here", "f", "f", "AccessShareLock"), virtual]
    client.run("INSERT INTO read_here VALUES (1)")
    assert client.run(own).rows == [
        here, ("relation", "read_here", "f", "f", "RowExclusiveLock"), ("transactionid", None, "f", "t", "ExclusiveLock"), virtual,
    ]  # fmt: skip
    client.run("COMMIT")
    assert client.run(own).rows == [here, virtual]
    client.run("DROP TABLE read_here")
    client.close()


def test_activity_tells_who_waits_and_who_idles(pair: Pair) -> None:
    columns = "state, wait_event_type, query, xact_start IS NOT NULL, backend_xid IS NOT NULL"
    activity = f"SELECT {columns} FROM pg_stat_activity WHERE pid = "
    waiter = pair.one(activity + str(pair.waiter_pid))
    assert waiter == ("active", "Lock", "UPDATE spot SET n = 2 WHERE id = 1", "t", "t")
    holder = pair.one(activity + str(pair.holder_pid))
    assert holder == ("idle in transaction", "Client", "UPDATE spot SET n = 1 WHERE id = 1", "t", "t")
    states = pair.control.run(
        "SELECT pid, state, waiting, rows FROM holdfast_transactions WHERE pid IS NOT NULL ORDER BY transaction"
    ).rows
    assert (str(pair.holder_pid), "writing", "f", "1") in states
    assert [row[2] for row in states if row[0] == str(pair.waiter_pid)] == ["t"]
    holds = {
        row[0] for row in pair.control.run("SELECT pid FROM holdfast_holds WHERE holder = 'transaction'").rows
    }
    assert {str(pair.holder_pid), str(pair.waiter_pid)} <= holds


def test_a_transaction_that_asked_for_its_id_has_it_in_the_list(server: ServerProcess) -> None:
    """What only reads has none to show; the list has the lower half of it, as PostgreSQL's."""
    reader, other = server.connect(), server.connect()
    reader.run("BEGIN")
    pid = str(reader.run("SELECT pg_backend_pid()").rows[0][0])
    seen = f"SELECT backend_xid FROM pg_stat_activity WHERE pid = {pid}"
    assert other.run(seen).rows == [(None,)]
    told = reader.run("SELECT txid_current() & 4294967295").rows
    assert other.run(seen).rows == told
    reader.run("COMMIT")
    assert other.run(seen).rows == [(None,)]
    reader.close()
    other.close()


def test_cancelling_ends_the_wait_and_nothing_else(pair: Pair) -> None:
    assert pair.one(f"SELECT pg_cancel_backend({pair.waiter_pid})") == ("t",)
    pair._thread.join(WAIT_S)
    assert pair.error is not None
    assert pair.error.sqlstate == "57014"
    assert pair.one(f"SELECT pg_blocking_pids({pair.waiter_pid})") == ("{}",)
    assert pair.waiter.run("SELECT 1").rows == [("1",)]


def test_others_see_that_a_session_exists_but_not_what_it_does(pair: Pair, server: ServerProcess) -> None:
    bob = connect(server.port, user="bob")
    [row] = bob.run(f"SELECT usename, query, state FROM pg_stat_activity WHERE pid = {pair.holder_pid}").rows
    assert row == ("postgres", "<insufficient privilege>", None)
    for function in ("pg_cancel_backend", "pg_terminate_backend"):
        assert bob.fails(f"SELECT {function}({pair.holder_pid})")["sqlstate"] == "42501"
    [own] = bob.run("SELECT state FROM pg_stat_activity WHERE pid = pg_backend_pid()").rows
    assert own == ("active",)
    bob.close()


def _shard(client: Client) -> dict[str, int]:
    names = ("since", "physical_upper", "logical_upper", "live_rows", "hot_rows", "parts", "generation")
    [row] = client.run(f"SELECT {', '.join(names)} FROM holdfast_shards WHERE relname = 'spot'").rows
    return {name: int(str(value)) for name, value in zip(names, row, strict=True)}


def test_shards_show_their_range_and_their_parts(pair: Pair) -> None:
    pair.end()
    before = _shard(pair.control)
    assert before["since"] < before["physical_upper"] <= before["logical_upper"]
    assert (before["live_rows"], before["parts"], before["generation"]) == (2, 0, 0)
    pair.control.run("CREATE TABLE elsewhere (a int)")
    moved = _shard(pair.control)
    assert moved["physical_upper"] == before["physical_upper"]
    assert moved["logical_upper"] > before["logical_upper"]
    pair.control.run("VACUUM spot")
    flushed = _shard(pair.control)
    assert flushed["parts"] == 1
    assert flushed["hot_rows"] <= 1, "what was replaced within history_retention stays where its past is"
    pair.control.run("TRUNCATE spot")
    assert _shard(pair.control)["generation"] == 1
    pair.control.run("DROP TABLE elsewhere")


def test_the_oracle_reads_below_what_it_hands_out_and_that_below_its_bound(pair: Pair) -> None:
    [row] = pair.control.run(
        "SELECT o.read_ts <= o.write_ts, o.write_ts < o.bound, o.epoch > 0, t.since <= t.read_ts, t.read_ts = o.read_ts"
        " FROM holdfast_oracle o JOIN holdfast_timelines t USING (timeline) WHERE timeline = 'epoch_ms'"
    ).rows
    assert row == ("t",) * 5


def test_the_database_counts_transactions(pair: Pair) -> None:
    counts = "SELECT xact_commit, xact_rollback, numbackends FROM pg_stat_database WHERE datname = current_database()"
    before = [int(str(n)) for n in pair.one(counts)]
    pair.control.run("BEGIN")
    pair.control.run("ROLLBACK")
    after = [int(str(n)) for n in pair.one(counts)]
    assert after[0] == before[0] + 1  # the first query itself
    assert after[1] == before[1] + 1
    assert after[2] >= 3
