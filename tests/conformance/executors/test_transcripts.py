"""Every query of the transcripts (``tests/golden/sql``) gets one answer, whichever executor is asked.

While a script runs, each query outside a block is asked again of every executor, on the same connection. In a block
reads may take locks and a refusal ends it, so asking again would change the story; there the states of
``test_executors`` stand in. With HOLDFAST_TEST_CLUSTER=1 Spark is a standalone cluster of two workers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conformance.executors.compare import REFUSED, agree, ask
from tests.golden.sql.test_sql import SCRIPTS, Speaker, play
from tests.support.server import ServerProcess
from tests.support.spark_cluster import spark_cluster

ANSWER_S = 900.0  # for all routes, the JVM on a machine that does much else
ROUTES = ("index", "local", "spark")
QUERY = re.compile(r"\s*(select|with|values|table)\b", re.IGNORECASE)
LOCKS_OR_CHANGES = re.compile(
    r"\b(for\s+(update|share|no\s+key|key)|insert|update|delete|merge|nextval|setval|set_config|pg_notify"
    r"|pg_(try_)?advisory\w*|pg_(cancel|terminate)_backend)\b",
    re.IGNORECASE,
)
OPENS = re.compile(r"\s*(begin|start\s+transaction)\b", re.IGNORECASE)
ENDS = re.compile(r"\s*(commit|end|abort|rollback(?!\s+to)|prepare\s+transaction)\b", re.IGNORECASE)


@dataclass
class Findings:
    compared: int = 0
    differ: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ExitStack() as stack:
        options = ["--spark-start", "lazy"]
        if os.environ.get("HOLDFAST_TEST_CLUSTER"):
            options += stack.enter_context(spark_cluster(tmp_path_factory.mktemp("cluster"))).options
        running = ServerProcess(tmp_path_factory.mktemp("transcripts") / "data", *options)
        stack.callback(lambda: running.process.poll() is None and running.kill())
        client = running.connect(ANSWER_S)
        client.run("SET executor = spark; SELECT count(*) FROM generate_series(1, 10)")  # the JVM is there
        client.close()
        yield running
        assert running.stop() == 0


def witness(findings: Findings) -> type[Speaker]:
    """Return a connection that asks every executor."""

    class Witness(Speaker):
        inside = False  # a block
        patience_s = ANSWER_S

        def _answer(self, sql: str) -> list[str]:
            answer = super()._answer(sql)
            if OPENS.match(sql):
                self.inside = True
            elif ENDS.match(sql):
                self.inside = False
            elif self._can_be_asked_again(sql) and not answer[0].startswith("ERROR"):
                self._ask_all(sql)
            return answer

        def _can_be_asked_again(self, sql: str) -> bool:
            return not self.inside and bool(QUERY.match(sql)) and not LOCKS_OR_CHANGES.search(sql)

        def _ask_all(self, sql: str) -> None:
            first = ask(self.client, sql)
            for route in ROUTES:
                self.client.run(f"SET executor = {route}")
                found = ask(self.client, sql)
                if found.sqlstate == REFUSED and route != "index":
                    continue
                findings.compared += 1
                if not agree(sql, first, found):
                    findings.differ.append(f"{sql}\n    auto: {first}\n    {route}: {found}")
            self.client.run("RESET executor")

    return Witness


@pytest.fixture(scope="module")
def compared() -> Iterator[dict[str, int]]:
    """Answers compared for each script; where all were played these are many."""
    found: dict[str, int] = {}
    yield found
    if len(found) == len(SCRIPTS):
        assert sum(found.values()) > 3 * len(SCRIPTS)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_reads_the_same_on_every_executor(
    path: Path, server: ServerProcess, compared: dict[str, int]
) -> None:
    findings = Findings()
    try:
        play(path, server, speaker=witness(findings))
    except AssertionError as error:  # asking again has changed what comes later
        findings.differ.append(str(error))
    compared[path.stem] = findings.compared
    assert not findings.differ, "\n".join(findings.differ)
