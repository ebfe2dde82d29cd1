"""A Holdfast server as a child process, for tests that talk to it as clients do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from sqllogictest.client import Client, Target
from tests.support.forked import ForkedProcess

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
ROOT = str(Path(__file__).resolve().parents[2])
READY = re.compile(r"ready on 127\.0\.0\.1:(\d+)")


class ServerProcess:
    """A running server; ``stop`` ends it with SIGTERM, ``kill`` with SIGKILL.

    With ``wait`` False it may take its time (a standby): call ``wait_ready`` before connecting. ``odd``: variables of
    ``tests.support.odd_server``, which is run then. ``timed``: the files of ``tests.hostile.server``, which is run then.
    These, and what is ``fresh``, start as a user's server does; the others, the odd ones too, are forked under pytest, their modules loaded.
    """

    forked = False
    """Whether servers are forked (``tests.support.forked``): set by tests/conftest.py."""
    running: ClassVar[set[ServerProcess]] = set()
    """Those that have been started and neither stopped nor killed."""

    def __init__(
        self,
        data_dir: Path,
        *options: str,
        wait: bool = True,
        odd: Mapping[str, str] | None = None,
        timed: Sequence[str] = (),
        fresh: bool = False,
    ) -> None:
        self.data_dir = data_dir
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        environment["HOLDFAST_DEBUG_TURNS"] = "1"
        module = ["engine"]
        if odd is not None:
            module = ["tests.support.odd_server"]
            environment |= odd
        if timed:
            module = ["tests.hostile.server", *timed]
        if module != ["engine"]:
            environment["PYTHONPATH"] = os.pathsep.join(
                filter(None, (ROOT, environment.get("PYTHONPATH", "")))
            )
        words = [
            "serve",
            "--port",
            "0",
            "--data-dir",
            str(data_dir),
            "--spark-start",
            "off",
            "--disk-reserve",
            "0",
            *options,
        ]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._started = time.perf_counter()
        self.process: subprocess.Popen[str] | ForkedProcess
        if fresh or timed or not self.forked:
            command = [sys.executable, "-m", *module, *words]
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=self._log, env=environment, text=True
            )
        else:
            self.process = ForkedProcess(module[0], words, self._log, environment)
        self.port = 0
        self.start_seconds = 0.0
        self.said = ""
        """Its log, once it has ended."""
        self.running.add(self)
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until it accepts connections."""
        self.port = self._wait_ready()
        self.start_seconds = time.perf_counter() - self._started

    def _wait_ready(self) -> int:
        output = self.process.stdout
        assert output is not None
        timer = threading.Timer(START_TIMEOUT_S, self.process.kill)
        timer.start()
        try:
            for line in output:
                match = READY.search(line)
                if match:
                    return int(match.group(1))
        finally:
            timer.cancel()
        self.process.wait()
        message = f"the server did not start:\n{self.log()}"
        self._end()
        raise RuntimeError(message)

    def log(self) -> str:
        """Return what it has logged so far; its own place in the file stays where it is."""
        descriptor = self._log.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def connect(self, timeout_s: float = 60.0) -> Client:
        return Client(Target.from_url(self.url), timeout_s=timeout_s)

    def sql(self, text: str) -> list[tuple[str | None, ...]]:
        client = self.connect()
        try:
            return client.run(text).rows
        finally:
            client.close()

    def _end(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.said = self.log()
        self._log.close()
        self.running.discard(self)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        # what the engine starts and forgets may be a commit
        forgotten = [line for line in self.log().splitlines() if "was never awaited" in line]
        assert not forgotten, forgotten
        self._end()
        return code

    def pause(self) -> None:
        """Stop it where it is (SIGSTOP), until ``resume``."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def wait_end(self, timeout_s: float = STOP_TIMEOUT_S) -> tuple[int, str]:
        """Wait until it has ended by itself; return its status and its log."""
        code = self.process.wait(timeout_s)
        said = self.log()
        self._end()
        return code, said

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._end()
