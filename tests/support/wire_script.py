"""Clients that speak the wire protocol by script, message by message.

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
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pgwire import messages
from pgwire.messages import CancelRequest
from tests.support.wire_client import WireClient, show

UNINTERESTING = (messages.ParameterStatus, messages.BackendKeyData)


class Clients:
    """Runs the commands of one script; ``show`` prints a message as one line."""

    def __init__(self, host: str, port: int, show: Callable[[messages.BackendMessage], str] = show) -> None:
        self.address = host, port
        self.show = show
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
                        self.say(name, self.show(message))
            case "open":
                self.new(name)
            case "raw":
                self.clients[name].connection.send_raw(bytes.fromhex(rest))
            case "until":
                kind, _, count = rest.partition(" ")
                client = self.clients[name]
                client.send()
                for message in client.until(getattr(messages, kind), count=int(count or 1)):
                    self.say(name, self.show(message))
            case "send":
                self.clients[name].send(step=int(rest) if rest else None)
            case "eof":
                client = self.clients[name]
                client.send()
                while (said_last := client.receive()) is not None:
                    self.say(name, self.show(said_last))
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
