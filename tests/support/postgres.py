"""A private PostgreSQL 15 to compare with: started once per module, on loopback, in a temporary folder.

Tests that need it ask for the fixture ``postgres`` (import it in the test module or a conftest); it gives the DSN,
or skips with a reason when there are no server binaries. ``HOLDFAST_TEST_POSTGRES`` names a running server instead.
``initdb`` runs once in a process of tests: each server begins with a copy of what it made, and so without another's roles.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

BINARIES = Path("/usr/lib/postgresql/15/bin")


_schemas = itertools.count(1)


def url_of(dsn: str) -> str:
    """Return a "host=... port=..." DSN as a URL."""
    words = dict(word.split("=", 1) for word in dsn.split())
    password = f":{words['password']}" if "password" in words else ""
    return f"postgresql://{words['user']}{password}@{words['host']}:{words['port']}/{words.get('dbname', 'postgres')}"


def fresh_schema() -> str:
    """Return the name of a schema that nobody has used."""
    return f"holdfast_{os.getpid()}_{next(_schemas)}_{time.time_ns() % 10**9}"


def _as_server_user(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root: become ``postgres`` then."""
    if os.geteuid() != 0:
        return command
    return ["runuser", "-u", "postgres", "--", *command]


@functools.cache
def _pristine() -> Path:
    """Return the folder of a data directory that ``initdb`` has just made; it goes with this process."""
    folder = tempfile.mkdtemp(prefix="holdfast-pg-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    data = f"{folder}/data"
    init = [str(BINARIES / "initdb"), "-D", data, "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust", "-U", "postgres",
            "--no-sync", "--wal-segsize=1"]  # fmt: skip
    subprocess.run(_as_server_user(init), check=True, capture_output=True)
    return Path(data)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Yield the DSN of a PostgreSQL 15 server."""
    given = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if given:
        yield given
        return
    if not (BINARIES / "initdb").exists():
        pytest.skip("no PostgreSQL 15 server binaries on this machine")
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("running as root and there is no user postgres to run the server")
    folder = tempfile.mkdtemp(prefix="holdfast-pg-")
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        data = f"{folder}/data"
        subprocess.run(["cp", "-a", str(_pristine()), data], check=True, capture_output=True)
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -c shared_buffers=16MB -c wal_level=logical "
            f"-c unix_socket_directories={folder} "
            # Pages freed at a moment of its own choosing would change the order in which scans meet rows.
            "-c autovacuum=off"
        )
        control = [str(BINARIES / "pg_ctl"), "-D", data, "-w"]
        start = [*control, "-o", options, "-l", f"{folder}/log", "start"]
        subprocess.run(_as_server_user(start), check=True, capture_output=True)
        try:
            yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        finally:
            subprocess.run(
                _as_server_user([*control, "-m", "immediate", "stop"]), check=False, capture_output=True
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
