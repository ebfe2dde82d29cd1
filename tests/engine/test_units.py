"""The engine's small parts by themselves: settings, the transaction block, error reports, eager coroutines."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path

import pytest

from engine.base.eager import eager
from engine.base.settings import Settings
from engine.catalog.storage.fences import stand_in
from engine.catalog.storage.stored import highest_oid
from engine.session.conflicts import Surroundings
from engine.session.errors import _TXN, MOST_BYTES, in_bounds, report_of
from engine.session.transaction.block_state import BlockEvent, BlockState, next_state, status_byte
from pgwire.codecs.domain import CITEXT
from pgwire.errors import ErrorReport
from planner.base.errors import SqlError
from planner.catalog import TypeDef
from tests.support.catalog import MemoryCatalog
from txn.base import errors as txn_errors
from txn.base.types import IndexId, RowId, ShardId, Timestamp
from txn.persist.location import StoreUnavailable

# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("work_mem", "65536", "64MB"),
        ("statement_timeout", "1.5s", "1500ms"),
        ("statement_timeout", "2min", "2min"),
        ("DATESTYLE", "german", "German, DMY"),
        ("datestyle", "sql, dmy", "SQL, DMY"),
        ("timezone", "europe/berlin", "Europe/Berlin"),
        ("TimeZone", "+2", "<+02>-02"),
        ("application_name", "caf\xe9", "caf??"),
        ("bytea_output", "ESCAPE", "escape"),
        ("enable_seqscan", "of", "off"),
        ("app.user", "me", "me"),
    ],
)
def test_values_are_kept_in_canonical_form(name: str, value: str, shown: str) -> None:
    settings = Settings({})
    settings.set(name, value)
    assert settings.show(name) == shown


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [
        ("nosuch", "1", "42704"),
        ("work_mem", "lots", "22023"),
        ("work_mem", "1", "22023"),
        ("server_version", "16", "55P02"),
        ("max_connections", "5", "55P02"),
        ("timezone", "Mars/Olympus", "22023"),
        ("jit", "maybe", "22023"),
        ("session_replication_role", "replica", "42501"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name: str, value: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        Settings({}).set(name, value)
    assert caught.value.sqlstate == sqlstate


def test_set_is_undone_by_rollback_and_set_local_by_commit() -> None:
    told: list[tuple[str, str]] = []
    settings = Settings({"is_superuser": "on"}, changed=lambda name, value: told.append((name, value)))
    settings.set("application_name", "a")
    settings.commit()
    settings.set("application_name", "b")
    mark = settings.mark()
    settings.set("application_name", "c")
    settings.undo_to(mark)
    assert settings.get("application_name") == "b"
    settings.rollback()
    assert settings.get("application_name") == "a"
    settings.set("application_name", "d", local=True)
    settings.commit()
    assert settings.get("application_name") == "a"
    assert told == [("application_name", v) for v in ("a", "b", "c", "b", "a", "d", "a")]


@pytest.mark.parametrize("tool", ["gen_settings_doc", "gen_pictures", "gen_evidence_doc", "gen_hostile_doc"])
def test_what_is_generated_for_the_documentation_is_current(tool: str) -> None:
    path = Path(__file__).resolve().parents[2] / "tools" / f"{tool}.py"
    assert subprocess.run([sys.executable, str(path), "--check"], check=False).returncode == 0


# --- transaction block --------------------------------------------------------------------------


def test_a_failed_block_is_left_only_by_its_end_or_a_savepoint() -> None:
    failed = next_state(next_state(BlockState.IDLE, BlockEvent.BEGIN), BlockEvent.ERROR)
    assert failed is BlockState.FAILED
    assert status_byte(failed) == "E"
    assert next_state(failed, BlockEvent.ROLLBACK_TO) is BlockState.BLOCK
    assert next_state(failed, BlockEvent.END) is BlockState.IDLE
    for event in (BlockEvent.STATEMENT, BlockEvent.BEGIN):
        with pytest.raises(KeyError):
            next_state(failed, event)


def test_an_implicit_transaction_becomes_a_block_or_ends() -> None:
    implicit = next_state(BlockState.IDLE, BlockEvent.STATEMENT)
    assert (implicit, status_byte(implicit)) == (BlockState.IMPLICIT, "I")
    assert next_state(implicit, BlockEvent.BEGIN) is BlockState.BLOCK
    assert next_state(implicit, BlockEvent.ERROR) is BlockState.IDLE


def test_every_state_can_end() -> None:
    assert {next_state(state, BlockEvent.END) for state in BlockState} == {BlockState.IDLE}


# --- errors -------------------------------------------------------------------------------------

_ROW = txn_errors.LockTarget(kind="row", shard=ShardId(1), row_id=RowId(5))
_WAIT = txn_errors.LockWait(waiter=7, holder=8, waiter_txn=1, holder_txn=2, mode="X", held="X", target=_ROW)
_SAMPLES: dict[type[Exception], Exception] = {
    txn_errors.WriteConflict: txn_errors.WriteConflict(txn_errors.Cause.SCAN_READ, ShardId(1)),
    txn_errors.Deadlock: txn_errors.Deadlock((_WAIT,)),
    txn_errors.SchemaChanged: txn_errors.SchemaChanged(ShardId(1)),
    txn_errors.Displaced: txn_errors.Displaced("/data", "was renamed"),
    txn_errors.ReadInFuture: txn_errors.ReadInFuture(2, 1),  # type: ignore[arg-type]
    txn_errors.CommitWithdrawn: txn_errors.CommitWithdrawn(),
    txn_errors.CrossesTimelines: txn_errors.CrossesTimelines({ShardId(1): "a", ShardId(2): "b"}),
    txn_errors.DamagedFile: txn_errors.DamagedFile("a.parquet", "its checksum is wrong"),
    txn_errors.CopyDamaged: txn_errors.CopyDamaged(
        txn_errors.DamagedFile("a.parquet", "its checksum is wrong")
    ),
    txn_errors.FileTrouble: txn_errors.FileTrouble("a.parquet", "open", "Too many open files", "files"),
    txn_errors.DamagedEntry: txn_errors.DamagedEntry("log entry 7", "its checksum is wrong", None, None),
    txn_errors.LockTimeout: txn_errors.LockTimeout((_WAIT,)),
    txn_errors.LockNotAvailable: txn_errors.LockNotAvailable(_ROW, (_WAIT,)),
    txn_errors.DuplicateKey: txn_errors.DuplicateKey(ShardId(1), 2, (3,)),  # type: ignore[arg-type]
    txn_errors.TimestampPassed: txn_errors.TimestampPassed(Timestamp(1), Timestamp(2)),
    txn_errors.SubscriptionLapsed: txn_errors.SubscriptionLapsed(Timestamp(1), 2),
    txn_errors.SubscriptionEnded: txn_errors.SubscriptionEnded(ShardId(1), Timestamp(2), dropped=True),
    txn_errors.ReadBelowSince: txn_errors.ReadBelowSince(1, 2),  # type: ignore[arg-type]
}
_BASES = (txn_errors.TxnError, txn_errors.LockRefused, txn_errors.Lost)
# these end the start of a server, before there are clients
_AT_START = (txn_errors.DataDirectoryInUse, txn_errors.LeaderAlive, txn_errors.UnknownFormat)


# bulk loads know the table that it is about, and say so themselves
_TOLD_BY_LOADS = (txn_errors.NullInColumn,)


def _expected() -> list[type[Exception]]:
    found = [
        c for _, c in inspect.getmembers(txn_errors, inspect.isclass) if issubclass(c, txn_errors.TxnError)
    ]
    return [c for c in found if c not in _BASES and not issubclass(c, (*_AT_START, *_TOLD_BY_LOADS))]


@pytest.mark.parametrize("kind", _expected(), ids=lambda c: c.__name__)
def test_every_error_of_a_transaction_has_a_report(kind: type[Exception]) -> None:
    error = _SAMPLES[kind] if kind in _SAMPLES else kind("why")
    report = report_of(error, MemoryCatalog())
    assert report is not None
    assert len(report.sqlstate) == 5
    assert report.sqlstate != "XX000"
    assert report.message
    assert isinstance(error, txn_errors.Lost) == (report.sqlstate in ("40001", "40P01"))  # which have a cause


def test_a_file_that_could_not_be_read_at_the_start_is_not_called_damaged() -> None:
    for error in (
        txn_errors.DamagedFile("a.parquet", "Input/output error", unread=True),
        txn_errors.DamagedEntry("a.parquet", "Input/output error", (ShardId(1),), None, unread=True),
    ):
        report = report_of(error, MemoryCatalog())
        assert report is not None
        assert (report.sqlstate, report.message) == (
            "58030",
            'could not read file "a.parquet": Input/output error',
        )
        assert report.hint is not None
        assert "start the server again" in report.hint


def test_oids_go_on_behind_those_that_were_given_out_though_a_type_of_an_extension_cannot_be_read() -> None:
    unread = [stand_in(("type", oid, 0), b"", None) for oid in (20_000, CITEXT)]
    assert all(isinstance(item, TypeDef) for item in unread)
    assert 20_000 <= highest_oid([item for item in unread if item is not None]) < 20_100


@pytest.mark.parametrize("letter", ["x", "\xe9", "\U0001f600"])
def test_texts_of_reports_are_cut_by_their_bytes(letter: str) -> None:
    long, short = letter * (2 * MOST_BYTES), letter * 100
    report = in_bounds(ErrorReport(severity="ERROR", sqlstate="22P02", message=long, detail=short))
    assert MOST_BYTES // 4 <= len(report.message.encode()) <= MOST_BYTES + 3
    assert report.detail == short


def test_a_deadlock_names_what_was_waited_for_and_what_was_run() -> None:
    catalog = MemoryCatalog()
    table = catalog.table("pair", "a int4 pk", "b int4", "v int4")
    target = txn_errors.LockTarget(kind="row", shard=ShardId(table.oid), row_id=RowId(5))
    wait = dataclasses.replace(_WAIT, target=target)
    back = dataclasses.replace(
        _WAIT, waiter=8, holder=7, mode="IX", target=dataclasses.replace(target, kind="table", row_id=None)
    )
    known = Surroundings(
        query={7: "UPDATE pair SET v = 1", 8: None}.get,
        row=lambda shard, row_id: (1, 2, 3) if (shard, row_id) == (table.oid, 5) else None,
        readable=lambda relation, attnums: True,
    )
    report = report_of(txn_errors.Deadlock((wait, back)), catalog, known)
    assert report is not None
    assert report.detail == (
        'Process 7 waits for AccessExclusiveLock on row (a = 1) of table "pair"; blocked by process 8.\n'
        'Process 8 waits for RowExclusiveLock on table "pair"; blocked by process 7.\n'
        "Process 7: UPDATE pair SET v = 1"
    )
    assert report.hint == "The transaction might succeed if retried."
    unknown = report_of(txn_errors.LockTimeout((wait,)), catalog)
    assert unknown is not None
    assert unknown.detail == (
        'Process 7 waits for AccessExclusiveLock on row (0,5) of table "pair"; blocked by process 8.'
    )


def test_a_conflict_names_who_changed_what() -> None:
    catalog = MemoryCatalog()
    table = catalog.table("duty", "who text pk", "on_call bool")
    index = table.indexes[0].oid
    error = txn_errors.WriteConflict(
        txn_errors.Cause.SCAN_READ, ShardId(table.oid), index=IndexId(index), key=("ann, b",), other_session=9
    )
    known = Surroundings(
        query={9: "COMMIT"}.get, row=lambda shard, row_id: None, readable=lambda relation, attnums: True
    )
    report = report_of(error, catalog, known)
    assert report is not None
    assert report.message == "could not serialize access due to concurrent update"
    assert report.detail == (
        'Key (who = ann, b) of table "duty" was changed by the connection with pid 9 '
        "after this transaction's snapshot was taken.\n"
        "Process 9: COMMIT"
    )
    assert report.hint == "The transaction might succeed if retried."


def test_a_bug_has_no_report() -> None:
    assert report_of(KeyError("x"), MemoryCatalog()) is None
    assert set(_TXN) <= {*_expected(), StoreUnavailable}


# --- eager --------------------------------------------------------------------------------------


def test_what_does_not_wait_answers_at_once() -> None:
    async def quick() -> int:
        return 7

    assert eager(quick()) == 7


def test_what_waits_goes_on_in_the_awaiting_task() -> None:
    async def main() -> list[str]:
        trace: list[str] = []
        gate = asyncio.get_running_loop().create_future()

        async def slow() -> str:
            trace.append("started")
            try:
                trace.append(await gate)
            except asyncio.CancelledError:
                trace.append("cancelled")
                raise
            return "end"

        pending = eager(slow())
        assert isinstance(pending, Awaitable)
        assert trace == ["started"]
        gate.set_result("woken")
        trace.append(await pending)

        gate = asyncio.get_running_loop().create_future()
        again = eager(slow())
        assert isinstance(again, Awaitable)

        async def wait() -> None:
            await again

        task = asyncio.get_running_loop().create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return trace

    assert asyncio.run(main()) == ["started", "woken", "end", "started", "cancelled"]
