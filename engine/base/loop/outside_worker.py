"""The process that runs long calls of C for the server: ``python -m engine.base.loop.outside_worker``.

    socket   a function's name, bytes it may take, its arguments ──► its value, or its error        (``engine.base.loop.outside_wire``)
    stdin    nothing ever; its end is the server's

It runs functions that are declared ``outside`` (``pgwire.give_way``) and no others. It is killed when the
statement ends that it works for, and a call may take so much memory and no more.
"""

from __future__ import annotations

import ctypes
import importlib
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, Final, cast

from engine.base.loop.outside_wire import FRAME, Unpacking, pack
from engine.base.loop.processes import end_with_server
from pgwire.codecs.errors import DataError
from pgwire.give_way import OUTSIDE
from planner.base.errors import SqlError

MODULES: Final = ("pgwire.", "planner.")
"""Where functions may be declared ``outside``."""
DONE, FAILED, NO_MEMORY = 0, 1, 2


def function_of(name: str) -> Callable[..., Any]:
    """Return a function that is declared ``outside``. Raises LookupError for every other."""
    module = name.partition(":")[0]
    if not module.startswith(MODULES):
        raise LookupError(f"{name} is not to be run outside")
    importlib.import_module(module)
    return OUTSIDE[name]


def _read(file: BinaryIO) -> bytes:
    head = file.read(FRAME.size)
    if len(head) < FRAME.size:
        raise EOFError
    (size,) = FRAME.unpack(head)
    body = file.read(size)
    if len(body) < size:
        raise EOFError
    return body


def _receive(file: BinaryIO) -> Unpacking:
    message = Unpacking(_read(file))
    while message.left:
        message.add(_read(file))
    return message


def _answer(name: str, args: tuple[Any, ...]) -> tuple[object, tuple[Any, ...]]:
    try:
        return DONE, (function_of(name)(*args),)
    except MemoryError:
        return NO_MEMORY, ()
    except DataError as error:
        span = error.span if isinstance(error, SqlError) else None
        place = None if span is None else (span.start, span.end)
        fields = (error.sqlstate, error.message, error.detail, error.hint, error.where, place)
        return FAILED, (type(error).__name__, *fields)


def serve(sock: socket.socket) -> None:
    """Run what the server asks for, one function after the other, until it closes the socket."""
    file = cast("BinaryIO", sock.makefile("rb", buffering=1 << 16))
    while True:
        _allow(None)  # what comes is as large as the server has allowed
        try:
            message = _receive(file)
        except EOFError:
            return
        tag, values = _run(message)
        del message
        head, pieces = pack(tag, values)
        sock.sendall(FRAME.pack(len(head)) + head)
        for piece in pieces:
            sock.sendall(FRAME.pack(len(piece)) + piece)
        # what it waits for may be a minute away: meanwhile it has nothing of this call
        del values, head, pieces
        _return_free()


def _run(message: Unpacking) -> tuple[object, tuple[Any, ...]]:
    bytes_, *args = message.values
    _allow(bytes_)
    return _answer(message.tag, tuple(args))


def _return_free() -> None:
    """Return to the system what is free; where the C library is not glibc, it does so by itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _allow(bytes_: int | None) -> None:
    """Let the process take so much memory beyond what it has, as much as it likes where that is None: then
    MemoryError.
    """
    with open("/proc/self/statm", "rb") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard if bytes_ is None else taken + bytes_, hard))


def main() -> None:
    """Run the process. Arguments: the socket's descriptor, how deep the server may call."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from engine.base.loop.threads import stand_back  # behind this, as loading it takes a while

    threading.Thread(target=end_with_server, daemon=True).start()
    stand_back()
    sys.setrecursionlimit(int(sys.argv[2]))
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
