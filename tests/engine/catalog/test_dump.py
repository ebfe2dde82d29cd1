"""pg_dump's output makes the same database again, schema and rows."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.engine.catalog.conftest import OBJECTS
from tests.engine.catalog.test_psql import PSQL
from tests.support.server import ServerProcess

PG_DUMP = shutil.which("pg_dump") or "/usr/lib/postgresql/15/bin/pg_dump"
needs_pg_dump = pytest.mark.skipif(
    not (os.path.exists(PG_DUMP) and os.path.exists(PSQL)), reason="there is no pg_dump on this machine"
)


def dump(port: int) -> list[str]:
    done = subprocess.run(
        [PG_DUMP, "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "postgres"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # \restrict carries a key drawn anew each time
    return [line for line in done.stdout.split("\n") if "restrict " not in line]


def restore(port: int, script: list[str]) -> str:
    done = subprocess.run(
        [PSQL, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "postgres"],
        input="\n".join(script), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stderr if done.returncode else ""


@needs_pg_dump
def test_a_dump_restores_to_the_same_dump(tmp_path: Path) -> None:
    first, second = ServerProcess(tmp_path / "a"), ServerProcess(tmp_path / "b")
    try:
        client = first.connect()
        for statement in OBJECTS.split(";\n"):
            if statement.strip():
                client.run(statement)
        client.run(
            "INSERT INTO emp VALUES (1, 'ann', 12.5, '2024-01-02 03:04:05+00', '{a,b}'), (2, 'bo', NULL, NULL, NULL)"
        )
        client.close()
        before = dump(first.port)
        second.sql("CREATE ROLE bob LOGIN")
        assert restore(second.port, before) == ""
        assert dump(second.port) == before
    finally:
        assert first.stop() == 0
        assert second.stop() == 0
