"""The ceiling of the server's processes: those beside it count, and what is free goes back before anybody is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from engine import accounts
from engine.accounts import Account, Statements
from engine.loop import ceiling, processes
from engine.loop.ceiling import GROWN_BYTES, Ceiling
from planner.errors import SqlError
from txn.resident import private_bytes_of, resident_bytes

MB = 1 << 20


def test_what_is_beside_the_server_counts_as_its_own() -> None:
    statements = Statements(1 << 40, 1 << 40, sum(resident_bytes()) + 100 * MB)
    statements.each = 8 * MB  # of which one is little
    account = Account(statements)
    account.taken = 2 * MB
    account.check()
    Ceiling(statements, lambda: 200 * MB).look_beside()
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


def test_what_is_free_goes_back_near_the_ceiling_once_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    has = [100 * MB]
    monkeypatch.setattr(ceiling, "give_back", lambda: given.append(has[0]))
    monkeypatch.setattr(ceiling, "resident_bytes", lambda: (has[0], 0))
    monkeypatch.setattr(accounts, "resident_bytes", lambda: (has[0] - 20 * MB, 20 * MB))

    async def body() -> None:
        watch = Ceiling(Statements(1 << 40, 1 << 40, 400 * MB), lambda: 50 * MB)

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

    asyncio.run(body())
