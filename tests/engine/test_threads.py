"""The loop's thread asks for short time slices, workers for long ones, others for what the system gives."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.base.loop.threads import (
    LOOP_SLICE_NS,
    WORKER_SLICE_NS,
    put_loop_first,
    slice_ns,
    stand_back,
    worker_pool,
)
from tests.support.server import ServerProcess

pytestmark = pytest.mark.skipif(slice_ns() is None, reason="this kernel does not tell of time slices")


def in_thread(work: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_what_a_thread_asks_for_is_its_own() -> None:
    usual = slice_ns()

    def as_loop() -> tuple[bool, int | None, int | None]:
        return put_loop_first(), slice_ns(), in_thread(slice_ns)

    def as_worker() -> int | None:
        stand_back()
        return slice_ns()

    assert in_thread(as_loop) == (True, LOOP_SLICE_NS, usual)
    assert in_thread(as_worker) == WORKER_SLICE_NS
    with worker_pool() as pool:
        assert pool.submit(slice_ns).result() == WORKER_SLICE_NS
    assert slice_ns() == usual


def test_the_server_puts_its_loop_first(server: ServerProcess) -> None:
    server.sql("EXPLAIN SELECT count(*) FROM generate_series(1, 100000)")
    main = server.process.pid
    assert slice_ns(main) == LOOP_SLICE_NS
    others = {slice_ns(int(t.name)) for t in Path(f"/proc/{main}/task").iterdir() if int(t.name) != main}
    assert WORKER_SLICE_NS in others
    assert LOOP_SLICE_NS not in others


@pytest.mark.skipif(os.geteuid() != 0, reason="a higher priority needs the privilege")
def test_a_higher_priority_is_inherited() -> None:
    def as_loop() -> int:
        os.setpriority(os.PRIO_PROCESS, 0, -1)
        assert put_loop_first()
        assert os.getpriority(os.PRIO_PROCESS, 0) == -1
        found: int = in_thread(lambda: os.getpriority(os.PRIO_PROCESS, 0))
        return found

    assert in_thread(as_loop) == -1
