"""The JVM that Spark runs in: one child process with an explicit command line.

    server --stdin pipe, file: properties--> java ... SparkSubmit ... pyspark-shell
           <--file: port, secret--

Spark's own launcher asks the JRE for a module that small JREs lack, and finds Java by PATH; so the command is ours.
The child has a process session of its own, so that Ctrl-C in the server's terminal does not reach it, and ends by
itself when the pipe to its stdin breaks, that is when the server is gone however it died.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.spark_properties import driver_options, properties_text

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 3.0
_POLL_S = 0.02
_LOG_TAIL_BYTES = 2000
_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c: %m%n%ex
logger.context.name = SQLQueryContextLogger
logger.context.level = off
logger.task.name = org.apache.spark.scheduler.TaskSetManager
logger.task.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
logger.plan.name = org.apache.spark.sql.catalyst
logger.plan.level = error
"""


class GatewayError(Exception):
    """The JVM did not start; the message says why."""


@dataclass(slots=True)
class Gateway:
    """A running JVM and how to talk to it."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    @property
    def alive(self) -> bool:
        """Whether the JVM runs."""
        return self.process.poll() is None

    def ends(self, within_s: float) -> bool:
        """Whether the JVM ends within the time; blocks. A dying process closes its sockets first."""
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stand_back(self, nice: int) -> None:
        """Have the JVM leave the processors to others that want them, as a nice value says (0 to 19).

        It starts at full speed. Threads that come later are as nice as those that make them. Where Linux groups
        process sessions (sched_autogroup_enabled, sched(7)) nice values count only within the JVM's own group, so the
        group is told as well.
        """
        if not nice:
            return
        pid = self.process.pid
        with contextlib.suppress(OSError):  # another system than Linux, or no such groups
            Path(f"/proc/{pid}/autogroup").write_text(str(nice), encoding="ascii")
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, nice)
            for _ in range(2):  # the second time: threads that were made meanwhile
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with contextlib.suppress(OSError):  # it has ended
                        os.setpriority(os.PRIO_PROCESS, int(thread), nice)

    def stop(self) -> None:
        """End the JVM: ask by closing its stdin, kill it after ``STOP_TIMEOUT_S``. Idempotent; blocks."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def command(
    java: str, settings: Mapping[str, str], *, heap_bytes: int, logging_file: Path, properties_file: Path
) -> list[str]:
    """Return the command line of the JVM. The settings are in ``properties_file``: others may read command lines."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    paths, options = driver_options(settings)
    # As Spark's launcher does: Hadoop and YARN are found by their configuration's folders.
    paths += [os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]
    words = [
        java,
        "-cp", os.pathsep.join([f"{jars}/*", *paths]),
        f"-Xmx{heap_bytes >> 20}m",
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-Duser.timezone=UTC",
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dlog4j2.configurationFile={logging_file}",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "--enable-native-access=ALL-UNNAMED",
    ]  # fmt: skip
    words += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    words += options
    return [
        *words, "org.apache.spark.deploy.SparkSubmit", "--properties-file", str(properties_file), "pyspark-shell"
    ]  # fmt: skip


def start_gateway(java: str, settings: Mapping[str, str], *, heap_bytes: int, work_dir: Path) -> Gateway:
    """Start a JVM and wait until it listens; blocks for a second or two.

    Args:
        java: the java executable.
        settings: Spark properties of the application.
        heap_bytes: the JVM's heap limit.
        work_dir: where its log (``jvm.log``; that of the start before is kept) and scratch files go; made if absent.

    Raises:
        GatewayError: it ended, or did not answer within ``START_TIMEOUT_S``.
    """
    import pyspark

    work_dir.mkdir(parents=True, exist_ok=True)
    logging_file = work_dir / "log4j2.properties"
    logging_file.write_text(_LOGGING, encoding="ascii")
    exchange = Path(tempfile.mkdtemp(prefix="start-", dir=work_dir))
    answer = exchange / "gateway"
    properties_file = exchange / "spark.properties"  # in a folder of mode 0700, removed once it has been read
    properties_file.write_text(properties_text(settings), encoding="ascii")
    environment = dict(os.environ)
    environment.update(
        SPARK_CONNECT_MODE="0",
        SPARK_HOME=str(Path(pyspark.__file__).parent),
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_DRIVER_PYTHON=sys.executable,
        _PYSPARK_DRIVER_CONN_INFO_PATH=str(answer),
    )
    if settings.get("spark.driver.bindAddress") == "127.0.0.1":
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    log = work_dir / "jvm.log"
    if log.exists():
        log.replace(work_dir / "jvm.previous.log")
    try:
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command(
                    java,
                    settings,
                    heap_bytes=heap_bytes,
                    logging_file=logging_file,
                    properties_file=properties_file,
                ),
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                env=environment,
                start_new_session=True,
            )
        try:
            return _join(process, answer, log)
        except GatewayError:
            if process.stdin is not None:
                process.stdin.close()
            raise
    except OSError as error:
        raise GatewayError(f"{java}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(exchange, ignore_errors=True)


def _join(process: Any, answer: Path, log: Path) -> Gateway:
    """Wait for the file that the JVM renames into place when it listens."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answer.is_file():
        if process.poll() is not None:
            tail = log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
            raise GatewayError(f"the JVM ended with status {process.returncode}: {tail}")
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise GatewayError(f"the JVM did not answer within {START_TIMEOUT_S:.0f} s")
        time.sleep(_POLL_S)
    data = answer.read_bytes()
    port, size = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
    return Gateway(process, port, data[8 : 8 + size].decode())
