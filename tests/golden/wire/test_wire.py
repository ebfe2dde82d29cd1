"""Wire transcripts: what goes over the socket, message by message.

Each line is one client's (``a> …``; without a prefix, client ``c``):

    connect user=bob password=x     start a session (other words are start-up parameters)
    open                            connect the socket only
    Parse("s", "SELECT 1")          queue a message (any class of pgwire.messages)
    raw 51 00 00                    queue bytes
    until ReadyForQuery [n]         send what is queued, print what comes, up to the n-th of that name
    send [n]                        send what is queued (n bytes at a time), read nothing
    eof                             send what is queued, print what comes up to EOF
    cancel b                        ask, on a new socket, to cancel client b
    pause                           50 ms, for something to be under way
    close                           close the socket

Every script runs against a backend that answers at once (uvloop) and one that answers later (asyncio), and
must print the same. With ``--against HOST:PORT`` scripts without ``# ours only`` run on PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgwire import messages
from pgwire.auth.scram import make_verifier
from pgwire.messages import CancelRequest
from pgwire.server import ServerConfig
from tests.golden.harness import check
from tests.support.wire_backend import TinyDatabase
from tests.support.wire_client import WireClient, show
from tests.support.wire_server import ServerThread

SCRIPTS = sorted(Path(__file__).parent.glob("*.wire"))
UNINTERESTING = (messages.ParameterStatus, messages.BackendKeyData)


class Clients:
    """Runs the commands of one script."""

    def __init__(self, host: str, port: int) -> None:
        self.address = host, port
        self.clients: dict[str, WireClient] = {}
        self.output: list[str] = []

    def run(self, commands: list[str]) -> list[str]:
        self.output = []
        for line in commands:
            name, arrow, command = line.partition("> ")
            if not arrow or not name.isidentifier():
                name, command = "c", line
            self.one(name, command)
        return self.output

    def say(self, name: str, text: str) -> None:
        self.output.append(text if name == "c" else f"{name}: {text}")

    def new(self, name: str) -> WireClient:
        if name in self.clients:
            self.clients[name].close()
        self.clients[name] = client = WireClient(*self.address)
        return client

    def one(self, name: str, command: str) -> None:
        verb, _, rest = command.partition(" ")
        match verb:
            case "connect":
                parameters = dict(word.split("=", 1) for word in rest.split())
                client = self.new(name)
                said = client.start(parameters.pop("password", None), **parameters)
                for message in said:
                    if not isinstance(message, UNINTERESTING):
                        self.say(name, show(message))
            case "open":
                self.new(name)
            case "raw":
                self.clients[name].connection.send_raw(bytes.fromhex(rest))
            case "until":
                kind, _, count = rest.partition(" ")
                client = self.clients[name]
                client.send()
                for message in client.until(getattr(messages, kind), count=int(count or 1)):
                    self.say(name, show(message))
            case "send":
                self.clients[name].send(step=int(rest) if rest else None)
            case "eof":
                client = self.clients[name]
                client.send()
                while (said_last := client.receive()) is not None:
                    self.say(name, show(said_last))
                self.say(name, "EOF")
            case "cancel":
                target = self.clients[rest]
                with WireClient(*self.address) as canceller:
                    canceller.send(CancelRequest(target.pid, target.key))
                    assert canceller.receive() is None
            case "pause":
                time.sleep(0.05)
            case "close":
                self.clients[name].close()
            case _:
                self.clients[name].connection.send(eval(command, {"__builtins__": {}}, vars(messages)))

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


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
