"""Servers made by forking a process that has loaded the engine's modules: a start without two seconds of imports.

    tests ──start──> template (python -m tests.support.forked, one per test process, single-threaded)
                        └── fork ──> runs ``python -m engine serve ...`` from there, with its own output, environment, folder

What the child does is what ``python -m`` does, the modules apart that it finds loaded. The template holds no event loop, no thread, no
file and no store; ``ServerProcess(fresh=True)`` starts one the ordinary way.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, NoReturn, cast

ROOT: Final = str(Path(__file__).resolve().parents[2])
_PID: Final = struct.Struct("!i")
_MOST_BYTES: Final = 1 << 20


class ForkedProcess:
    """A forked server, as ``subprocess.Popen`` shows one. ``stdout`` is text."""

    def __init__(
        self, module: str, words: Sequence[str], log: IO[bytes], environment: Mapping[str, str]
    ) -> None:
        """Start ``python -m module words``; what it logs goes to ``log``."""
        ours, theirs = os.pipe()
        told, tells = os.pipe()
        request = {
            "module": module,
            "words": list(words),
            "environment": dict(environment),
            "folder": os.getcwd(),
        }
        try:
            socket.send_fds(_template(), [json.dumps(request).encode()], [theirs, log.fileno(), tells])
        finally:
            os.close(theirs)
            os.close(tells)
        self.args = [sys.executable, "-m", module, *words]
        self.stdout: IO[str] = os.fdopen(ours, "r")
        self.returncode: int | None = None
        self._told = os.fdopen(told, "rb", buffering=0)
        self.pid: int = _PID.unpack(self._told.read(_PID.size))[0]

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once it has ended. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            said = self._told.read(_PID.size)
            assert said, "the template of the servers has ended"
            self.returncode = os.waitstatus_to_exitcode(_PID.unpack(said)[0])
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


_running: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []


def _template() -> socket.socket:
    """Return what takes requests, started when it is first wanted. It ends when this process has."""
    if not _running:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        environment["HOLDFAST_DEBUG_TURNS"] = "1"
        # threads of NumPy and of Arrow's allocator that nothing uses: they would not be in the child
        environment |= {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, environment.get("PYTHONPATH", ""))))
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forked", str(theirs.fileno())],
                env=environment,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        _running.append((ours, process))
    return _running[0][0]


def _load() -> None:
    """Import and make what a server has soon after its start (0.2 s of each), and leave ``engine.__main__`` to be run."""
    import engine.__main__
    import engine.base.loop.outside
    import engine.base.memory
    import engine.changes.bulk.worker_pool
    import engine.server.database
    from engine.catalog.relations.builtin_relations import virtual_relations
    from engine.server.preload import preload
    from engine.session.catalog.virtual import VirtualCatalog

    virtual_relations()
    preload(VirtualCatalog(cast("engine.server.database.Database", None)))  # what it makes is no database's
    del sys.modules["engine.__main__"], engine.__main__
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would not be in the child"


def _run(request: dict[str, object]) -> NoReturn:
    """Be ``python -m module words`` in this process."""
    environment, words = request["environment"], request["words"]
    assert isinstance(environment, dict)
    assert isinstance(words, list)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(str(request["folder"]))
    sys.argv = [str(request["module"]), *words]
    gc.enable()
    runpy.run_module(str(request["module"]), run_name="__main__", alter_sys=True)
    sys.exit(0)


def _serve(control: socket.socket) -> None:
    """Fork what is asked for until nobody can ask any more, then end what runs; tell who asked of the pid and, later, of the status."""
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked: dict[int, int] = {}
    while True:
        ready = select.select([control, woken], [], [])[0]
        if woken in ready:
            woken.recv(4096)
            while asked:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                _tell(asked.pop(pid), status, last=True)
        if control not in ready:
            continue
        data, descriptors, _flags, _address = socket.recv_fds(control, _MOST_BYTES, 3)
        if not data:
            for pid in asked:
                os.kill(pid, signal.SIGKILL)
            return
        output, log, tells = descriptors
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(output, 1)
            os.dup2(log, 2)
            for end in (control, woken, wakes):
                end.close()
            for descriptor in (*descriptors, *asked.values()):
                os.close(descriptor)
            _run(json.loads(data))
        asked[pid] = tells
        os.close(output)
        os.close(log)
        _tell(tells, pid)


def _tell(descriptor: int, value: int, *, last: bool = False) -> None:
    try:
        os.write(descriptor, _PID.pack(value))
    except BrokenPipeError:
        pass  # nobody waits for it
    if last:
        os.close(descriptor)


if __name__ == "__main__":
    gc.disable()
    _load()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as taken:
        _serve(taken)
    os._exit(0)  # see engine.__main__._leave
