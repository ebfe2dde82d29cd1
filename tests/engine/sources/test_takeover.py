"""Sources across a takeover, and a few rounds of their crash proof (``python -m bench.source_crash`` runs many)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.source_crash import run
from tests.engine.sources.support import connect, value, wait_for
from tests.engine.test_takeover import Cluster
from tests.support.postgres import postgres, url_of  # noqa: F401 - a fixture

pytestmark = pytest.mark.long


def test_a_standby_that_takes_over_goes_on_with_the_sources(tmp_path: Path, postgres: str) -> None:  # noqa: F811
    cluster = Cluster(url_of(postgres), tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    try:
        leader = cluster.start("--server-files", str(tmp_path))
        with connect(leader) as c:
            c.execute("CREATE SOURCE flow FROM RATE (rows_per_second = 5000, poll_interval_ms = 10)")
            c.execute(
                f"CREATE SOURCE lines (n int) FROM FILES (path = '{folder}', format = csv, settle_ms = 0, max_batch_rows = 100)"
            )
        for number in range(4):
            standby = cluster.start("--standby", "--server-files", str(tmp_path), wait=False)
            hidden = folder / f".{number}"
            hidden.write_text("".join(f"{number * 1000 + i}\n" for i in range(1000)))
            hidden.rename(folder / f"f{number}")
            with connect(leader) as c:
                wait_for(c, "SELECT count(*) > 0 FROM lines", True)
                seen = value(c, "SELECT count(*) FROM flow")
            leader.kill()
            standby.wait_ready()
            leader = standby
            with connect(leader) as c:
                assert value(c, "SELECT count(*) FROM flow") >= seen
                wait_for(c, f"SELECT count(*) > {seen} FROM flow", True)
                assert value(c, "SELECT count(*) = max(value) + 1 FROM flow") is True
        with connect(leader) as c:
            wait_for(c, "SELECT count(*) FROM lines", 4000)
            assert value(c, "SELECT count(DISTINCT n) FROM lines") == 4000
        assert leader.stop() == 0
    finally:
        cluster.end()


def test_a_few_rounds_of_the_crash_proof() -> None:
    assert run(4, 11) == []
