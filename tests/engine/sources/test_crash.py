"""A server that is killed while sources run: nothing is lost, nothing comes twice."""

from __future__ import annotations

from pathlib import Path

from tests.engine.sources.support import connect, value, wait_for
from tests.support.server import ServerProcess


def test_a_source_goes_on_behind_what_was_committed(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, first in (("a", 0), ("b", 2000), ("c", 4000)):
        (folder / name).write_text("".join(f"{i}\n" for i in range(first, first + 2000)))
    server = ServerProcess(tmp_path / "data", "--server-files", str(tmp_path))
    with connect(server) as c:
        c.execute(
            f"CREATE SOURCE lines (n int PRIMARY KEY) FROM FILES (path = '{folder}', format = csv, settle_ms = 0,"
            " max_batch_rows = 200, poll_interval_ms = 10)"
        )
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
        server = ServerProcess(tmp_path / "data", "--server-files", str(tmp_path))
        with connect(server) as c:
            seen = value(c, "SELECT count(*) FROM flow")
            assert seen >= (acknowledged or 0)
            assert value(c, "SELECT count(*) = coalesce(max(value) + 1, 0) FROM flow") is True
            assert value(c, "SELECT count(*) FROM held") == held
            assert value(c, "SELECT state FROM holdfast_sources WHERE name = 'held'") == "paused"
    with connect(server) as c:
        wait_for(c, "SELECT count(*) FROM lines", 6000)
        assert value(c, "SELECT rows FROM holdfast_sources WHERE name = 'lines'") == 6000
    assert server.stop() == 0
