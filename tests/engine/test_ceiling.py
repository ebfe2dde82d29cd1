"""The ceiling of the server's processes: those beside it count, and what is free goes back before anybody is refused."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.base import accounts
from engine.base.accounts import Account, Statements
from engine.base.loop import ceiling, processes
from engine.base.loop.ceiling import GROWN_BYTES, Ceiling
from planner.base.errors import SqlError
from sqllogictest.client import ServerError
from tests.support.fields import connect
from tests.support.server import ServerProcess
from txn.base.resident import private_bytes_of, resident_bytes

MB = 1 << 20


def test_what_is_beside_the_server_counts_as_its_own() -> None:
    statements = Statements(1 << 40, 1 << 40, sum(resident_bytes()) + 100 * MB)
    statements.each = 8 * MB  # of which one is little
    account = Account(statements)
    account.taken = 2 * MB
    account.check()
    Ceiling(statements, lambda: 200 * MB, end_idle=(), forget=lambda: None).look_beside()
    account.limit = 8 * MB
    with pytest.raises(SqlError, match="out of memory") as caught:
        account.check()
    assert f"{statements.ceiling >> 20} MB are allowed" in (caught.value.detail or "")
    assert statements.lend(None, 64 * MB) == 1 * MB


def test_processes_are_counted_while_they_run() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "print(len(b'x' * 50_000_000)); input()"], stdin=-1, stdout=-1
    )
    try:
        before = processes.private_bytes()
        assert process.stdout is not None
        process.stdout.readline()
        processes._started.add(process)
        assert processes.private_bytes() - before == pytest.approx(private_bytes_of(process.pid), abs=4 * MB)
        assert private_bytes_of(process.pid) > 2 * MB
    finally:
        process.kill()
        process.communicate()
    assert processes.private_bytes() == pytest.approx(before, abs=8 * MB)
    assert private_bytes_of(process.pid) == 0


def test_what_has_become_free_since_is_given_back_before_anybody_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process need not have grown for that: a statement has ended, and what it had is free inside."""
    has, now, trimmed = [100 * MB], [10.0], []
    monkeypatch.setattr(accounts, "resident_bytes", lambda: (has[0], 0))
    monkeypatch.setattr(accounts, "perf_counter", lambda: now[0])
    monkeypatch.setattr(accounts, "_trim", lambda _: trimmed.append(now[0]))
    monkeypatch.setattr(accounts, "_left", 0)
    monkeypatch.setattr(accounts, "_gave_at", 0.0)
    for at, mb in ((10.0, 100), (10.05, 101), (10.06, 105), (10.1, 104), (10.2, 104)):
        now[0], has[0] = at, mb * MB
        accounts.give_back()
    assert trimmed == [10.0, 10.06, 10.2]


def test_what_is_free_goes_back_near_the_ceiling_once_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    has = [100 * MB]
    monkeypatch.setattr(ceiling, "give_back", lambda: given.append(has[0]))
    monkeypatch.setattr(ceiling, "resident_bytes", lambda: (has[0], 0))
    monkeypatch.setattr(accounts, "resident_bytes", lambda: (has[0] - 20 * MB, 20 * MB))

    async def body() -> None:
        ended: list[int] = []
        forgotten: list[int] = []
        watch = Ceiling(
            Statements(1 << 40, 1 << 40, 400 * MB),
            lambda: 50 * MB,
            end_idle=(lambda: ended.append(has[0] // MB),),
            forget=lambda: forgotten.append(has[0] // MB),
        )

        async def looked(mb: int) -> int:
            has[0] = mb * MB
            watch.look()
            await asyncio.sleep(0.05)
            return len(given)

        assert await looked(100) == 0
        assert await looked(240) == 0
        assert await looked(260) == 1  # with what is beside it past three quarters
        assert await looked(262) == 1
        assert await looked(230) == 1
        assert await looked(252) == 2
        assert GROWN_BYTES == 8 * MB
        assert ended == [260, 262, 252]
        assert forgotten == []
        for mb in (305, 310):  # the second time is too soon
            await looked(mb)
        assert forgotten == [305]

    asyncio.run(body())


TWENTY_MB = "SELECT length(string_agg(repeat('x', 1000), '')) FROM generate_series(1, 20000)"


def test_a_server_looks_again_and_again(tmp_path: Path) -> None:
    """What is beside it grows, cannot be counted, and goes again: statements that take more than a little end meanwhile, and no longer."""
    told, given = tmp_path / "beside", tmp_path / "beside.given"

    def tell(text: str) -> None:
        (tmp_path / "new").write_text(text)
        os.replace(tmp_path / "new", told)

    tell("0")
    server = ServerProcess(tmp_path / "data", "--memory", "512MB", odd={"HFTEST_BESIDE": str(told)})
    client = connect(server.port)

    def state() -> str:
        try:
            client.run(TWENTY_MB)
        except ServerError as error:
            return error.sqlstate
        return "run"

    def becomes(wanted: str) -> None:
        end = time.monotonic() + 60
        while state() != wanted:
            assert time.monotonic() < end, f"not {wanted}"

    client.run("SET executor = index")
    assert state() == "run"
    assert not given.exists()
    tell(str(1 << 40))
    becomes("53200")
    tell("no more files")
    end = time.monotonic() + 60
    while "no more files" not in server.log():
        assert time.monotonic() < end, "no look has failed"
    assert state() == "53200"
    tell("0")
    becomes("run")
    client.close()
    assert server.stop() == 0
    assert given.exists()
