"""Transcripts with several clients: what the guarantees look like from outside.

A command is ``name> SQL``; each name is a connection. Output lines are ``name: ...`` in the order in which answers
came, timestamps numbered in the order in which they appeared. A statement that waits for a lock (pg_locks says so) prints ``name: (waits)``, and its answer where it arrives.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqllogictest.client import Client, ServerError
from tests.golden.harness import check
from tests.support.server import ServerProcess

POLL_S = 0.02
ANSWER_S = 60.0
TIMESTAMP = re.compile(r"\b\d{18}\b")
SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("golden"))
    yield running
    assert running.stop() == 0


class Speaker:
    """One connection with a thread that runs its statements in order; each answers within ``patience_s``."""

    patience_s = ANSWER_S

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client
        self.pid = client.run("SELECT pg_backend_pid()").rows[0][0]
        self.pending = 0
        self._work: queue.Queue[str | None] = queue.Queue()
        self.answers: queue.Queue[list[str]] = queue.Queue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (sql := self._work.get()) is not None:
            self.answers.put(self._answer(sql))

    def _answer(self, sql: str) -> list[str]:
        try:
            result = self.client.run(sql)
        except ServerError as error:
            return [f"ERROR {error.sqlstate} {error.message}"]
        if result.oids:
            rows = ["|".join("NULL" if c is None else c for c in row) for row in result.rows]
            return rows or ["(no rows)"]
        return [result.tag]

    def say(self, sql: str) -> None:
        self.pending += 1
        self._work.put(sql)

    def take(self, timeout: float) -> list[str] | None:
        try:
            answer = self.answers.get(timeout=timeout)
        except queue.Empty:
            return None
        self.pending -= 1
        return [f"{self.name}: {line}" for line in answer]

    def close(self) -> None:
        self._work.put(None)
        self._thread.join(self.patience_s)
        self.client.close()


class Stage:
    """Runs the commands of a script's blocks."""

    def __init__(self, server: ServerProcess, speaker: type[Speaker] = Speaker) -> None:
        self._server = server
        self._speaker = speaker
        self._control = server.connect()
        self._speakers: dict[str, Speaker] = {}
        self._timestamps: dict[str, int] = {}

    def _answer(self, speaker: Speaker) -> list[str] | None:
        """Return a speaker's answer, or None as soon as it is seen to wait for a lock."""
        deadline = time.monotonic() + speaker.patience_s
        while time.monotonic() < deadline:
            answer = speaker.take(POLL_S)
            if answer is not None:
                return answer
            waits = f"SELECT 1 FROM pg_locks WHERE pid = {speaker.pid} AND NOT granted"
            if self._control.run(waits).rows:
                return speaker.take(POLL_S)
        raise AssertionError(f"{speaker.name} neither answers nor waits for a lock")

    def run(self, commands: list[str]) -> list[str]:
        output: list[str] = []
        for command in commands:
            name, sql = command.split("> ", 1)
            speaker = self._speakers.get(name)
            if speaker is None:
                speaker = self._speakers[name] = self._speaker(
                    name, self._server.connect(self._speaker.patience_s)
                )
            assert not speaker.pending, f"{name} is still waiting"
            speaker.say(sql)
            answer = self._answer(speaker)
            output += answer if answer is not None else [f"{name}: (waits)"]
            # whoever this statement set free answers now
            for other in self._speakers.values():
                if other is not speaker and other.pending and answer is not None:
                    output += self._answer(other) or []
        for speaker in self._speakers.values():
            while speaker.pending:
                late = speaker.take(speaker.patience_s)
                assert late is not None, f"{speaker.name} never got an answer"
                output += late
        return [TIMESTAMP.sub(self._number, line) for line in output]

    def _number(self, found: re.Match[str]) -> str:
        """Name a timestamp by the order in which it was first seen: @1, @2 ..."""
        return f"@{self._timestamps.setdefault(found[0], len(self._timestamps) + 1)}"

    def close(self) -> None:
        for speaker in self._speakers.values():
            speaker.close()
        self._control.close()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_transcript(path: Path, server: ServerProcess, rewrite: bool) -> None:
    play(path, server, rewrite=rewrite)


def play(
    path: Path, server: ServerProcess, *, rewrite: bool = False, speaker: type[Speaker] = Speaker
) -> None:
    """Run a script in a schema of its own; AssertionError where it prints something else."""
    schema = path.stem
    admin = server.connect()
    admin.run(f"CREATE SCHEMA {schema}")
    stage = Stage(server, speaker)
    original = server.connect

    def connect(timeout_s: float = 60.0) -> Client:
        client = original(timeout_s)
        client.run(f"SET search_path = {schema}")
        return client

    server.connect = connect  # type: ignore[method-assign]
    try:
        check(path, stage.run, rewrite=rewrite)
    finally:
        server.connect = original  # type: ignore[method-assign]
        stage.close()
        admin.run(f"DROP SCHEMA {schema} CASCADE")
        admin.close()
