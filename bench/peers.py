"""The servers that are compared: Holdfast and a private PostgreSQL 15, both on loopback, both durable."""

from __future__ import annotations

import compileall
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.server import ServerProcess

BINARIES = Path("/usr/lib/postgresql/15/bin")
ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("pgwire", "planner", "txn", "engine")


def compile_modules() -> None:
    """Compile Holdfast's modules, as ``make install`` does, so that a start is not measured as a compiler.

    Where PYTHONDONTWRITEBYTECODE is set no start would leave them compiled for the next one.
    """
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=1)


def _as_server_user(command: list[str]) -> list[str]:
    return command if os.geteuid() else ["runuser", "-u", "postgres", "--", *command]


@contextmanager
def postgres(*settings: str) -> Iterator[str]:
    """Run PostgreSQL 15 with its shipped settings (fsync on) plus ``settings``; yields its URL."""
    if not (BINARIES / "initdb").exists():
        raise FileNotFoundError("PostgreSQL 15 is needed to compare with: apt-get install postgresql-15")
    folder = tempfile.mkdtemp(prefix="holdfast-bench-pg-")
    if not os.geteuid():
        shutil.chown(folder, "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = f"{folder}/data"
    init = [str(BINARIES / "initdb"), "-D", data, "--locale=C.UTF-8", "-A", "trust", "-U", "postgres"]
    control = [str(BINARIES / "pg_ctl"), "-D", data, "-w"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    options += "".join(f" -c {setting}" for setting in settings)
    try:
        subprocess.run(_as_server_user(init), check=True, capture_output=True)
        start = [*control, "-o", options, "-l", f"{folder}/log", "start"]
        subprocess.run(_as_server_user(start), check=True, capture_output=True)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run(
                _as_server_user([*control, "-m", "fast", "stop"]), check=False, capture_output=True
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def holdfast(*options: str) -> Iterator[ServerProcess]:
    """Run Holdfast on a fresh data directory."""
    compile_modules()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        server = ServerProcess(Path(folder) / "data", *options)
        try:
            yield server
        finally:
            server.stop()
