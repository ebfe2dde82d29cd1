"""Wire transcripts: what goes over the socket, message by message.

``tests.support.wire_script`` says what a line means.

Every script runs against a backend that answers at once (uvloop) and one that answers later (asyncio), and
must print the same. With ``--against HOST:PORT`` scripts without ``# ours only`` run on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgwire.auth.scram import make_verifier
from pgwire.server import ServerConfig
from tests.golden.harness import check
from tests.support.wire_backend import TinyDatabase
from tests.support.wire_script import Clients
from tests.support.wire_server import ServerThread

SCRIPTS = sorted(Path(__file__).parent.glob("*.wire"))


USERS = {"ann": str(make_verifier("correct", b"0123456789abcdef")), "nobody": None}


@pytest.fixture(params=["now", "late"])
def address(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    against = request.config.getoption("--against")
    if against:
        host, _, port = against.partition(":")
        yield host, int(port)
        return
    late = request.param == "late"
    config = ServerConfig(port=0, max_message_bytes=1 << 20)
    with ServerThread(TinyDatabase(late=late, verifiers=USERS), config, use_uvloop=not late) as thread:
        yield "127.0.0.1", thread.port


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(
    script: Path, address: tuple[str, int], rewrite: bool, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--against") and "# ours only" in script.read_text(encoding="utf-8"):
        pytest.skip("a promise of ours alone")
    clients = Clients(*address)
    try:
        check(script, clients.run, rewrite=rewrite)
    finally:
        clients.close()
