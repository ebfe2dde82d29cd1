"""Options every suite shares."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Generator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.support.objects import object_store, proxy  # noqa: F401 - fixtures of several suites
from tests.support.server import ServerProcess
from tests.support.tls import certificate  # noqa: F401

ServerProcess.forked = True

# No deadlines: how long an example takes, or its making, says more about the machine than about the code. In CI the
# examples are the same every time, so that a red run is about the change.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
os.environ.setdefault("HOLDFAST_DEBUG_TURNS", "1")  # whole turns are whole (pgwire.give_way)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@atexit.register
def _quiet_interpreter_exit() -> None:
    """Keep DuckDB's binding from reporting its own globals as leaks while the interpreter is torn down.

    Handlers run last in, first out, so all others have run; pytest's summary stays the last thing printed.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


JVM = ("tests/engine/spark/", "tests/engine/sources/test_files_on_spark")
"""Where tests share one Spark JVM of their process."""
LONGEST = (
    "tests/engine/spark/test_through_the_wire.py",
    "tests/sim/test_mutations.py",
    "tests/conformance/executors/test_executors.py",
    "tests/hostile/test_hostile.py",
    "tests/differential/test_scripts.py",
    "tests/sim/test_seeds.py",
    "tests/rights/test_walk.py",
    "tests/fuzz/test_fuzz.py",
    "tests/engine/local/test_varying_numeric.py",
    "tests/engine/test_object_store.py",
    "tests/engine/test_takeover.py",
    "tests/engine/test_server_life.py",
    "tests/engine/test_full_disk.py",
    "tests/engine/test_sequences.py",
    "tests/engine/test_subscribe.py",
    "tests/engine/sources/test_crash.py",
    "tests/isolation/test_specs.py",
)
"""Files that take twenty seconds and more (``make test PYTEST_ARGS=--durations=100``): they begin first, so that none is left for the end."""


def _file(nodeid: str) -> str:
    return nodeid.split("::")[0]


class WholeFiles(LoadScopeScheduling):
    """Gives each process of ``-n`` whole files, which share a server, and one of them all that needs the JVM."""

    def _split_scope(self, nodeid: str) -> str:
        file = _file(nodeid)
        return "jvm" if file.startswith(JVM) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeFiles:
    """Not ``--dist loadgroup``: xdist's marks reach no scheduler with pytest 9.2, which keeps names of tests in a form of its own."""
    return WholeFiles(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files go first, where several processes share them."""
    if hasattr(config, "workerinput"):
        places = {file: place for place, file in enumerate(LONGEST)}
        items.sort(key=lambda item: places.get(_file(item.nodeid), len(places)))


def pytest_collection_finish() -> None:
    """Keep the collector from walking what has been loaded, hundreds of thousands of objects, over and over; databases of tests seldom, too."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 20)


SHOWN_CHARS: Final = 10_000
"""Of the log of a server that a failed test has left."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that fails shows the logs of its servers and leaves none behind: one with a source of 20,000 rows a second had a processor of the run to itself."""
    before = set(ServerProcess.running)
    try:
        return (yield)
    except BaseException:
        for server in ServerProcess.running - before:
            shown = server.log()[-SHOWN_CHARS:]  # what is printed out here no report captures
            item.add_report_section("call", "log of a server", shown)
            server.kill()
        raise


FROZEN_EVERY: Final = 250
_ran = 0


def pytest_runtest_logfinish() -> None:
    """What tests have left is alive: modules, plans, reports. Walking it in every full collection took a tenth of the time."""
    global _ran
    _ran += 1
    if _ran % FROZEN_EVERY == 0:
        gc.collect()
        gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite golden scripts with what they print now")
    parser.addoption(
        "--against",
        metavar="HOST:PORT",
        help="run golden wire scripts against this PostgreSQL (user postgres, trust) instead of ours",
    )
    parser.addoption("--seeds", type=int, default=40, help="how many seeds tests/sim runs")
    parser.addoption("--first-seed", type=int, default=1, help="the first of them")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))
