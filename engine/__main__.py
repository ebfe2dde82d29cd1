"""The command line: ``holdfast serve | sql | slt | doctor | calibrate``."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import uvloop

from engine.base import tls
from engine.base.config import Config, ConfigError, add_arguments, load
from engine.base.loop.ceiling import Ceiling
from engine.base.loop.collector import Collector
from engine.base.loop.descriptors import shortage
from engine.base.loop.log_queue import QueuedLog
from engine.base.loop.processes import private_bytes
from engine.base.loop.threads import put_loop_first, worker_pool
from engine.base.private_files import prepare_data_directory, stored_secret
from engine.base.stalls import watch_stalls
from engine.executors.spark import calibrate
from engine.server import doctor
from pgwire.release import freed, freeing
from pgwire.server import Server, ServerConfig
from planner.base.errors import SqlError
from planner.base.version import VERSION
from txn.base.errors import DamagedFile, FileTrouble, OutOfSpace, TxnError
from txn.base.resident import resident_bytes
from txn.persist.regular import NotRegularFile
from txn.wal.read import DamagedLog

log = logging.getLogger("holdfast")
T = TypeVar("T")

FAILED_DRAIN_S = 1

# How deep expressions may nest before 54001: Python's 1000 frames stop near 100 levels; 4000 stay well
# within the main thread's 8 MiB of C stack (hashing and comparing trees recurses in C).
RECURSION_LIMIT = 4000

# How long a thread that computes in Python (values of a COPY, rows of DuckDB) may keep the interpreter from the event
# loop. Python's own 5 ms are what a point read would then wait.
SWITCH_INTERVAL_S = 0.0005


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="holdfast",
        description="A strictly serializable PostgreSQL-wire SQL database whose tables Apache Spark reads.",
    )
    parser.add_argument("--version", action="version", version=f"holdfast {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="run the server", description="Run the server.")
    add_arguments(serve)
    check = commands.add_parser("doctor", help="check Python, Java, disk and ports")
    add_arguments(check)
    measure = commands.add_parser(
        "calibrate", help="measure from which size on Spark is the better executor",
        description="Measures DuckDB and Spark on generated tables, on a scratch server with the same settings, and prints the "
        "recommended local_executor_max_bytes.",
    )  # fmt: skip
    add_arguments(measure)
    measure.add_argument(
        "--rows",
        type=int,
        default=calibrate.DEFAULT_ROWS,
        help="rows of the largest table (default: %(default)s)",
    )
    measure.add_argument("--store", action="store_true", help="let the server of data_dir use the result")
    sql = commands.add_parser("sql", help="run SQL against a server and print the rows")
    sql.add_argument("--url", default="postgresql://postgres@127.0.0.1:7432/postgres")
    sql.add_argument("statement", help="one SQL statement")
    slt = commands.add_parser(
        "slt", help="run sqllogictest files (see python -m sqllogictest)", add_help=False
    )
    slt.add_argument("rest", nargs=argparse.REMAINDER)
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["slt"]:
        from sqllogictest.__main__ import main as slt_main

        return slt_main(words[1:])
    arguments = parser.parse_args(words)
    if arguments.command == "sql":
        from engine.server.sql_command import run_sql  # with what clients need, as the others do not

        return run_sql(arguments.url, arguments.statement)
    try:
        config = load(arguments, os.environ)
    except ConfigError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 2
    if arguments.command == "doctor":
        return doctor.run(config)
    if arguments.command == "calibrate":
        if arguments.rows < calibrate.MIN_ROWS:
            parser.error(f"--rows must be at least {calibrate.MIN_ROWS}")
        return calibrate.run(config, rows=arguments.rows, keep=arguments.store)
    lines = QueuedLog(sys.stderr, "%(asctime)s %(levelname)s %(message)s")
    logging.basicConfig(level=config.log_level.upper(), handlers=[lines], format="%(message)s")
    try:
        uvloop.run(serve_forever(config))
        status = 0
    except (ConfigError, TxnError, OSError) as error:
        print(f"holdfast: {error}", file=sys.stderr)
        if hint := _hint(error):
            print(f"HINT:  {hint}", file=sys.stderr)
        status = 1
    if argv is None:
        _leave(status)
    return status


_HINTS: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    (
        (FileTrouble,),
        "Nothing is known to be damaged: see to it that the server's user can read the file, and start again.",
    ),
    ((OutOfSpace,), "Free space on the file system of the data directory, and start again."),
    (
        (DamagedFile, DamagedLog, NotRegularFile),
        "Put the file back, or restore the data directory as a whole from a backup, and start again. What is damaged is left as it is.",
    ),
)
"""What to do where a server does not start, by the kind of error; the first that fits."""


def _hint(error: Exception) -> str | None:
    return next((hint for kinds, hint in _HINTS if isinstance(error, kinds)), None)


def _leave(status: int) -> NoReturn:
    """End the process of ``holdfast serve`` without tearing the interpreter down.

    The store is closed and every thread that matters has ended. What is left would be the finalisation of
    extension modules, and DuckDB's binding uses it to print pages about objects it did not release.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


async def serve_forever(config: Config) -> None:
    """Serve until SIGTERM or SIGINT, then drain."""
    tls_context, tls_end_point = tls.context(config), tls.end_point(config)  # wrong ones are told at once
    prepare_data_directory(Path(config.data_dir))
    # Loading makes hundreds of thousands of objects, none of them garbage: the collector would walk them over and over.
    gc.disable()
    from engine.base.loop.outside import Outside
    from engine.base.settings import server_defaults
    from engine.changes.bulk.worker_pool import WorkerPool
    from engine.server.database import Database  # brings DuckDB along, which the other commands do not need

    try:
        server_defaults(config.setting)
    except SqlError as error:
        raise ConfigError(f"setting: {error.message}") from None
    missing = shortage(config.max_connections)
    if missing is not None:
        raise ConfigError(missing)
    sys.setrecursionlimit(RECURSION_LIMIT)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    loop = asyncio.get_running_loop()
    put_loop_first()
    loop.set_default_executor(worker_pool())
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    database = await _unless(stop, Database.open(config, _say_waiting))
    if database is None:
        return
    database.stopping = stop.set
    database.worker_pool = pool = WorkerPool(database.statements)
    outside = Outside(database.statements)
    database.run_outside(outside)
    if database.failed is not None:
        stop.set()
    if config.loop_stall_ms:
        watch_stalls(loop, config.loop_stall_ms)
    try:
        server = Server(
            database,
            ServerConfig(
                host=config.host,
                port=config.port,
                tls=tls_context,
                tls_end_point=tls_end_point,
                max_connections=config.max_connections,
                max_message_bytes=config.max_message_bytes,
                authentication_timeout_s=config.authentication_timeout_s,
            ),
            mock_secret=stored_secret(Path(config.data_dir)),
            room=database.messages,
        )
        database.terminate = server.terminate
        database.interrupt = server.interrupt
        database.turns = server.turns
        database.store.on_long_turn(server.turns.yield_to_readers)
        loop.add_signal_handler(signal.SIGHUP, database.reload)
        database.load_ahead()
        await server.start()
        Collector(
            lambda: resident_bytes()[0] - database.statements.taken - database.kept.bytes,
            lambda: (*freeing(), *(s.running for s in server.sessions.values() if s.running is not None)),
            config.memory,
            freed,
        ).watch()
        Ceiling(
            database.statements,
            private_bytes,
            end_idle=(pool.end_idle, outside.end_idle),
            forget=database.plans.clear,
        ).watch()
        host = config.host if config.host not in ("0.0.0.0", "::") else "127.0.0.1"
        print(f"holdfast is ready on {config.host}:{server.port}, data in {config.data_dir}", flush=True)
        print(f"connect with: psql -h {host} -p {server.port} -U postgres", flush=True)
        await database.start_background()
        await stop.wait()
        # a server that lost its leadership can commit nothing any more, and may not answer either
        patience = config.shutdown_timeout_s if database.failed is None else FAILED_DRAIN_S
        log.info("stopping: waiting up to %d s for running statements", patience)
        await server.drain(patience)
    finally:
        await database.close()
    log.info("stopped")
    if database.failed is not None:
        raise database.failed


def _say_waiting(holder: str) -> None:
    print(f"holdfast is waiting for the lease of the leader: {holder}", flush=True)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Return what ``work`` gives; None, with ``work`` cancelled, if ``stop`` is set before."""
    task = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
        if task.cancelled():
            return None
    return await task


if __name__ == "__main__":
    sys.exit(main())
