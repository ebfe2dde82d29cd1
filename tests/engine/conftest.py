"""One server for the tests of this package that talk to it as clients do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import ServerProcess


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(
        Path(tmp_path_factory.mktemp("server")) / "data",
        "--server-files",
        str(tmp_path_factory.getbasetemp()),
    )
    yield process
    process.stop()
