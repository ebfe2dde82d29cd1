"""An S3-compatible server (moto) on loopback, and a proxy in front of it that makes requests fail.

pyarrow ──> ObjectProxy ──> moto            fault(method, path) -> None: let it pass
                                                                  a status and a code: answer that
                                                                  "cut": break the connection off
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import pytest

_RUNNING = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")
_START_TIMEOUT_S = 60.0
_numbers = count(1)
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
}  # fmt: skip

Fault = tuple[int, str] | str | None


class ObjectStoreServer:
    """A moto server in a process of its own."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", "from moto.server import main; main(['-H', '127.0.0.1', '-p', '0'])"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | CREDENTIALS,
        )
        timer = threading.Timer(_START_TIMEOUT_S, self.process.kill)
        timer.start()
        said: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            said.append(line)
            found = _RUNNING.search(line)
            if found:
                self.port = int(found.group(1))
                break
        else:
            raise RuntimeError("moto did not start:\n" + "".join(said))
        timer.cancel()
        # Somebody has to read what it says about every request, or it stops.
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for _ in self.process.stderr:
            pass

    def new_bucket(self) -> str:
        """Create a bucket of its own for one test."""
        name = f"bucket-{os.getpid()}-{next(_numbers)}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("PUT", f"/{name}")
        status = connection.getresponse().status
        connection.close()
        assert status == 200, status
        return name

    def url(self, bucket: str, prefix: str = "db", port: int | None = None) -> str:
        """Return the ``blob`` setting; ``port``: of a proxy."""
        return (
            f"s3://{bucket}/{prefix}?endpoint_override=http://127.0.0.1:{port or self.port}&region=us-east-1"
        )

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStoreServer]:
    before = {name: os.environ.get(name) for name in CREDENTIALS}
    os.environ.update(CREDENTIALS)
    server = ObjectStoreServer()
    yield server
    server.stop()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


class ObjectProxy:
    """Forwards requests to ``target_port`` but for those that ``fault`` decides otherwise about."""

    def __init__(self, target_port: int) -> None:
        self.fault: Callable[[str, str], Fault] = lambda method, path: None
        self.requests: list[tuple[str, str]] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

            def _handle(self) -> None:
                body = self._body()
                proxy.requests.append((self.command, self.path))
                fault = proxy.fault(self.command, self.path)
                if fault == "cut":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if isinstance(fault, tuple):
                    status, code = fault
                    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
                    self._answer(
                        status, {"Content-Type": "application/xml"}, b"" if self.command == "HEAD" else text
                    )
                    return
                connection = http.client.HTTPConnection("127.0.0.1", target_port, timeout=60)
                try:
                    headers = {k: v for k, v in self.headers.items() if k.lower() != "transfer-encoding"}
                    headers["Content-Length"] = str(len(body))
                    connection.request(self.command, self.path, body, headers)
                    response = connection.getresponse()
                    kept = {k: v for k, v in response.getheaders() if k.lower() not in _HOP}
                    self._answer(response.status, kept, response.read(), response.getheader("Content-Length"))
                finally:
                    connection.close()

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                pieces = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                return b"".join(pieces)

            def _answer(
                self, status: int, headers: dict[str, str], body: bytes, length: str | None = None
            ) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", length if length and not body else str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients leave when a request was refused

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive", "server", "date")


@pytest.fixture
def proxy(object_store: ObjectStoreServer) -> Iterator[ObjectProxy]:
    made = ObjectProxy(object_store.port)
    yield made
    made.close()
