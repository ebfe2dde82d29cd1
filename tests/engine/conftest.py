"""A server for each module of this package whose tests talk to one as clients do: none meets the tables another left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(
        Path(tmp_path_factory.mktemp("server")) / "data",
        "--server-files",
        str(tmp_path_factory.getbasetemp()),
    )
    yield process
    process.stop()
