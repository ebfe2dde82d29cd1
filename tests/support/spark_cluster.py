"""A standalone Spark cluster on loopback: a master and workers of the PyPI package, started as Java processes.

    Master  <── Worker 1 ── executor (its child, of one application)
            <── Worker 2 ── executor

Every daemon leads a process group of its own, so that ``kill`` takes a worker with its executor, at once.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from engine.executors.spark.java import java_command

START_TIMEOUT_S = 240.0
_HOME = Path(pyspark.__file__).parent
_ROOT = Path(__file__).resolve().parents[2]
_MASTER_URL = re.compile(r"Starting Spark master at (spark://[0-9.]+:\d+)")
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


class Daemon:
    """One Java process of the cluster."""

    def __init__(self, folder: Path, name: str, heap_mb: int, words: list[str]) -> None:
        java = java_command()
        assert java is not None
        self.name = name
        self.log_file = folder / f"{name}.log"
        logging = folder / "log4j2.properties"
        logging.write_text(_LOGGING)
        command = [
            java, "-cp", f"{_HOME}/jars/*", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:+IgnoreUnrecognizedVMOptions",
            "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "--add-opens=java.base/java.net=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
            f"-Dlog4j2.configurationFile={logging}", *words,
        ]  # fmt: skip
        environment = os.environ | {
            "SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(Path(java).resolve().parents[1]),
            "SPARK_SCALA_VERSION": "2.13",  # of the jars; else it is looked for in a build tree
            "PYTHONPATH": "",  # workers get what they need from the application
        }  # fmt: skip
        with self.log_file.open("wb") as sink:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=environment, cwd=folder,
                start_new_session=True,
            )  # fmt: skip

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until its log has the pattern."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            found = re.search(pattern, self.log())
            if found is not None:
                return found
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} says no {pattern!r}:\n{self.log()[-4000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End the process and its children, at once."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class SparkCluster:
    """A master and its workers. ``url`` is for ``spark_master``."""

    def __init__(self, folder: Path, *, workers: int = 2, cores: int = 1, memory_mb: int = 700) -> None:
        self.folder = folder
        self.cores, self.memory_mb = cores, memory_mb
        self.workers: list[Daemon] = []
        folder.mkdir(parents=True, exist_ok=True)
        self.master = Daemon(
            folder, "master", 256,
            ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"],
        )  # fmt: skip
        try:
            self.url = self.master.wait_for(_MASTER_URL.pattern).group(1)
            for _ in range(workers):
                self.add_worker()
            for worker in self.workers:
                worker.wait_for("Successfully registered with master")
        except BaseException:
            self.stop()
            raise

    def add_worker(self) -> Daemon:
        """Start another worker; it registers by itself."""
        number = len(self.workers) + 1
        worker = Daemon(
            self.folder, f"worker{number}", 192,
            [
                "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0",
                "--cores", str(self.cores), "--memory", f"{self.memory_mb}m",
                "--work-dir", str(self.folder / f"work{number}"), self.url,
            ],
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    @property
    def options(self) -> list[str]:
        """What a server needs to use it, an executor per worker."""
        return [
            "--spark-master", self.url, "--spark-conf", "spark.authenticate=false",
            "--spark-conf", f"spark.executor.memory={self.memory_mb - 50}m",
            "--spark-conf", f"spark.executor.cores={self.cores}",
            # Executors say which tasks they run, so that a test knows when to kill one.
            "--spark-conf", "spark.executor.extraJavaOptions=-XX:+UseSerialGC "
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
        ]  # fmt: skip

    def stop(self) -> None:
        for daemon in (*self.workers, self.master):
            daemon.kill()


@contextmanager
def spark_cluster(folder: Path, **options: int) -> Iterator[SparkCluster]:
    """Run a cluster."""
    cluster = SparkCluster(folder, **options)
    try:
        yield cluster
    finally:
        cluster.stop()
