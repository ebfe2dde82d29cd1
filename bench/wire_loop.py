"""What the wire layer costs per prepared point read, without a socket.

pgbench -S -M prepared sends Bind, Describe, Execute and Sync in one packet. This feeds such packets to a
session whose backend looks an integer up in a dict and answers at once, over a transport that only counts
bytes; then once more without the session, calling the backend directly, which is what to subtract.

    python -m bench.wire_loop [transactions]
"""

# ruff: noqa: D101, D102 - the methods are those of pgwire.backend, documented there

from __future__ import annotations

import asyncio
import struct
import sys
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from pgwire import messages as m
from pgwire.backend import (
    Authentication,
    FieldDescription,
    Responder,
    StatementDescription,
    TransactionStatus,
)
from pgwire.messages.encode import encode_frontend
from pgwire.server import Server, ServerConfig
from pgwire.session import Session

FIELDS = (FieldDescription(name="abalance", type_oid=23, type_size=4),)
ROW = struct.Struct(">cIHI")
ROWS = {b"%d" % key: b"%d" % (key * 7) for key in range(10_000)}


class DictBackend:
    """SELECT abalance FROM pgbench_accounts WHERE aid = $1, as little as it can be."""

    def __init__(self) -> None:
        self.key: bytes | None = b""

    def parse(self, name: str, sql: str, param_oids: Sequence[int]) -> None: ...

    def bind(
        self,
        portal: str,
        statement: str,
        param_formats: Sequence[int],
        params: Sequence[bytes | None],
        result_formats: Sequence[int],
        small: bool = False,
    ) -> None:
        self.key = params[0]

    def describe_statement(self, name: str) -> StatementDescription:
        return StatementDescription(param_oids=(23,), fields=FIELDS)

    def describe_portal(self, name: str) -> tuple[FieldDescription, ...]:
        return FIELDS

    def execute(self, portal: str, max_rows: int, out: Responder) -> None:
        assert self.key is not None
        value = ROWS[self.key]
        size = len(value)
        out.data_rows(ROW.pack(b"D", size + 10, 1, size) + value, 1)
        out.command_complete("SELECT 1")

    def close_statement(self, name: str) -> None: ...

    def close_portal(self, name: str) -> None: ...

    def sync(self) -> None: ...

    def synced(self, outcome: asyncio.Future[Any]) -> None: ...

    def call_function(self, oid: int, formats: Any, args: Any, result_format: int, out: Any) -> None: ...

    def failed(self) -> None: ...

    def query(self, sql: str, out: Responder) -> None:
        out.row_description(FIELDS)
        self.key = sql.rpartition(" ")[2].strip().encode()
        self.execute("", 0, out)

    wrote = False

    def status(self) -> TransactionStatus:
        return "I"

    def cancel(self, *, ends: bool = False) -> None: ...

    def unmet(self) -> None: ...

    def close(self) -> None: ...


class DictDatabase:
    def authentication(self, user: str, database: str, peer: str, tls: bool) -> Authentication:
        return Authentication(method="trust")

    def connect(
        self, parameters: Mapping[str, str], pid: int, peer: str, out: Responder
    ) -> tuple[DictBackend, Mapping[str, str]]:
        return DictBackend(), {"client_encoding": "UTF8", "server_version": "15.18"}


class CountingTransport:
    """Swallows output."""

    def __init__(self) -> None:
        self.bytes = 0
        self.writes = 0

    def write(self, data: bytes) -> None:
        self.bytes += len(data)
        self.writes += 1

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Sink:
    """A responder that keeps nothing: what the backend itself costs."""

    def data_rows(self, encoded: bytes, count: int) -> None: ...

    def command_complete(self, tag: str) -> None: ...

    def row_description(self, fields: object) -> None: ...


def packets(count: int) -> list[bytes]:
    tail = b"".join(map(encode_frontend, (m.Describe("P"), m.Execute(), m.Sync())))
    return [
        encode_frontend(m.Bind("", "P0_1", (), (b"%d" % (i % 10_000),), (0,))) + tail for i in range(count)
    ]


async def main(count: int) -> None:
    transport: Any = CountingTransport()
    session = Session(Server(DictDatabase(), ServerConfig()), transport, "bench")
    session.data_received(encode_frontend(m.StartupMessage({"user": "bench"})))
    while session.busy:
        await asyncio.sleep(0)

    def timed(work: list[bytes]) -> float:
        receive = session.data_received
        start = perf_counter()
        for data in work:
            receive(data)
        return (perf_counter() - start) / len(work) * 1e6

    work = packets(count)
    transport.writes = 0
    whole = min(timed(work) for _ in range(5))
    writes = transport.writes / (5 * count)
    simple = [
        encode_frontend(m.Query(f"SELECT abalance FROM pgbench_accounts WHERE aid = {i % 10_000}"))
        for i in range(count)
    ]
    query = min(timed(simple) for _ in range(5))

    backend, sink = DictBackend(), Sink()
    best = 1e9
    for _ in range(5):
        start = perf_counter()
        for i in range(count):
            backend.bind("", "P0_1", (), [b"%d" % (i % 10_000)], (0,))
            backend.describe_portal("")
            backend.execute("", 0, sink)  # type: ignore[arg-type]
            backend.sync()
            backend.status()
        best = min(best, (perf_counter() - start) / count * 1e6)

    print(f"prepared point read, whole       {whole:6.2f} us   ({writes:.2f} writes per transaction)")
    print(f"the dict backend alone           {best:6.2f} us")
    print(f"the wire layer                   {whole - best:6.2f} us")
    print(f"simple Query, whole              {query:6.2f} us")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
