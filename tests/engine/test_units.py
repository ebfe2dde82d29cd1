"""The engine's small parts by themselves: settings, the transaction block, error reports, eager coroutines."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path

import pytest

from engine.eager import eager
from engine.errors import _TXN, report_of
from engine.settings import HARMLESS, HONOURED, Settings, definitions
from engine.txn_block import BlockEvent, BlockState, next_state, status_byte
from planner.errors import SqlError
from tests.support.catalog import MemoryCatalog
from txn import errors as txn_errors
from txn.types import ShardId

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
        ("application_name", "caf\xe9", "caf?"),
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


def test_the_closed_groups_name_settings_that_exist_and_do_not_overlap() -> None:
    assert not HONOURED & HARMLESS
    assert {name for name in HONOURED | HARMLESS if name not in definitions()} == set()


def test_the_page_of_settings_is_current() -> None:
    tool = Path(__file__).resolve().parents[2] / "tools" / "gen_settings_doc.py"
    assert subprocess.run([sys.executable, str(tool), "--check"], check=False).returncode == 0


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

_SAMPLES: dict[type[Exception], Exception] = {
    txn_errors.WriteConflict: txn_errors.WriteConflict(ShardId(1)),
    txn_errors.Deadlock: txn_errors.Deadlock(((1, 2, "a row"),)),
    txn_errors.DuplicateKey: txn_errors.DuplicateKey(ShardId(1), 2, (3,)),  # type: ignore[arg-type]
    txn_errors.ReadBelowSince: txn_errors.ReadBelowSince(1, 2),  # type: ignore[arg-type]
}
# these end the start of a server, before there are clients
_AT_START = (txn_errors.DataDirectoryInUse, txn_errors.UnknownFormat)


def _expected() -> list[type[Exception]]:
    found = [
        c for _, c in inspect.getmembers(txn_errors, inspect.isclass) if issubclass(c, txn_errors.TxnError)
    ]
    return [c for c in found if c is not txn_errors.TxnError and not issubclass(c, _AT_START)]


@pytest.mark.parametrize("kind", _expected(), ids=lambda c: c.__name__)
def test_every_error_of_a_transaction_has_a_report(kind: type[Exception]) -> None:
    error = _SAMPLES[kind] if kind in _SAMPLES else kind("why")
    report = report_of(error, MemoryCatalog())
    assert report is not None
    assert len(report.sqlstate) == 5
    assert report.sqlstate != "XX000"
    assert report.message


def test_a_bug_has_no_report() -> None:
    assert report_of(KeyError("x"), MemoryCatalog()) is None
    assert set(_TXN) <= set(_expected())


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
