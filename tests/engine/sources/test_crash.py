"""A server that is killed while sources run: nothing is lost, nothing comes twice."""

from __future__ import annotations

from pathlib import Path

from tests.engine.sources.support import connect, value, wait_for
from tests.support.server import ServerProcess


def test_a_source_goes_on_behind_what_was_committed(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    with connect(server) as c:
        c.execute("CREATE SOURCE flow FROM RATE (rows_per_second = 20000, poll_interval_ms = 10)")
        c.execute("CREATE SOURCE held FROM RATE (rows_per_second = 20000)")
        c.execute("ALTER SOURCE held PAUSE")
    seen = 0
    for _ in range(2):
        with connect(server) as c:
            wait_for(c, f"SELECT count(*) > {seen} FROM flow", True)
            held = value(c, "SELECT count(*) FROM held")
            acknowledged = value(
                c, "SELECT substr(acknowledged_position, 7)::bigint FROM holdfast_sources WHERE name = 'flow'"
            )
        server.kill()
        server = ServerProcess(tmp_path / "data")
        with connect(server) as c:
            seen = value(c, "SELECT count(*) FROM flow")
            assert seen >= (acknowledged or 0)
            assert value(c, "SELECT count(*) = coalesce(max(value) + 1, 0) FROM flow") is True
            assert value(c, "SELECT count(*) FROM held") == held
            assert value(c, "SELECT state FROM holdfast_sources WHERE name = 'held'") == "paused"
    assert server.stop() == 0
