"""One server for all driver tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import ServerProcess


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("drivers"))
    client = running.connect()
    client.run("CREATE ROLE keeper LOGIN SUPERUSER PASSWORD 'sesame'")
    client.close()
    yield running
    assert running.stop() == 0
