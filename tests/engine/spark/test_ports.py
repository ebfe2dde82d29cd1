"""Who connects to a port of the JVM without its secret is hung up on: other users of the machine run nothing in it."""

from __future__ import annotations

import os
import re
import socket
import struct
from pathlib import Path
from typing import Final

import pytest

from tests.engine.spark.conftest import Spark

pytestmark = pytest.mark.spark

LISTENS: Final = "0A"
KNOWN: Final = ("rpc", "rpc", "py4j")
"""What the JVM listens for: messages for the driver, blocks, and Py4J's gateway."""


def listening(pid: int) -> list[int]:
    """Return the TCP ports that a process listens on."""
    folder = Path(f"/proc/{pid}/fd")
    links = (os.readlink(folder / entry) for entry in os.listdir(folder))
    inodes = {found[1] for found in map(re.compile(r"socket:\[(\d+)\]").fullmatch, links) if found}
    ports = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and words[9] in inodes:
                ports.append(int(words[1].rpartition(":")[2], 16))
    return sorted(ports)


def answer(port: int, message: bytes) -> bytes:
    """Send something and return what is said to it at once, or nothing where the other side hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(message)
        try:
            return sock.recv(65536)
        except ConnectionResetError:
            return b""


def rpc(body: bytes) -> bytes:
    """Return a frame of Spark's network protocol: an RpcRequest, whose body the driver would take for a Java object."""
    message = struct.pack(">BQI", 3, 1, len(body)) + body
    return struct.pack(">Q", 8 + len(message)) + message


def test_every_port_of_the_jvm_asks_for_a_secret(spark: Spark) -> None:
    assert spark.rows("SELECT count(*) FROM generate_series(1, 20000)") == [("20000",)]
    live = spark.runner.run(spark.executor.runtime.live())
    ports = listening(live.gateway.process.pid)
    assert len(ports) == len(KNOWN), "a port that nobody has thought of"
    for first in (b"c\nj\njava.lang.System\nexit\ni1\ne\n", b"A\nnot the secret\n"):
        assert answer(live.gateway.port, first).startswith(b"!xsAuthentication error")
    for port in ports:
        if port != live.gateway.port:
            said = answer(port, rpc(b"\xac\xed\x00\x05sr"))
            assert not said or b"Expected SaslMessage" in said, said
    assert live.gateway.alive
