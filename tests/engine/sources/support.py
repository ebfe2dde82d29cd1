"""What the tests of sources share: connections, and waiting for what comes by itself."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest

from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[Any, ...]]
PATIENCE_S = 120.0  # far more than anything here takes; only a failure waits so long


def connect(server: ServerProcess) -> Connection:
    return psycopg.connect(server.url, autocommit=True)


def rows(c: Connection, sql: str) -> list[tuple[Any, ...]]:
    return c.execute(sql).fetchall()  # type: ignore[arg-type]


def value(c: Connection, sql: str) -> Any:
    [[found]] = rows(c, sql)
    return found


def wait_for(c: Connection, sql: str, expected: Any, patience_s: float = PATIENCE_S) -> None:
    """Return once ``sql`` answers one value that is ``expected``; else fail with what it answers and why."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        found = value(c, sql)
        if found == expected:
            return
        time.sleep(0.02)
    about = rows(c, "SELECT name, state, partition, position, last_error FROM holdfast_sources")
    raise AssertionError(f"{sql} is {found!r}, not {expected!r}; sources: {about}")


def refused(c: Connection, sql: str, sqlstate: str) -> psycopg.errors.Diagnostic:
    with pytest.raises(psycopg.Error) as error:
        c.execute(sql)  # type: ignore[arg-type]
    assert error.value.diag.sqlstate == sqlstate, error.value
    return error.value.diag
