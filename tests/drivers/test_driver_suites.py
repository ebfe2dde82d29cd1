"""The drivers' own tests, as their source archives hold them, against a server that runs: asyncpg's, psycopg2's, pg8000's.

    .drivers/suites/asyncpg-0.32.0/tests ── pytest of .drivers/venv ──> a server of this module's
         failed == KNOWN: whatever else fails is a regression, and a line of KNOWN that passes has to go

What is refused by name, or differs as docs/reference/isolation.md says, is in KNOWN with its reason. Tests that start servers of their own
skip themselves; those that need what no server by itself gives are left out with a reason, too.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.drivers.test_clients import INSTALLED
from tests.support.server import ServerProcess

TIMEOUT_S: Final = 400
pytestmark = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_S + 60)]
FAILED: Final = re.compile(r"^(?:FAILED|ERROR|SUBFAILED).*?(tests?/[\w/]+\.py::\S+)", re.MULTILINE)
PASSED: Final = re.compile(r"(\d+) passed")

_ATTRIBUTE: Final = "0A000: DROP ATTRIBUTE of a type that a column has"
_LEVEL: Final = "every level reads one snapshot: 40001 (isolation.md, 1 and 3)"
_AHEAD: Final = "a cursor makes its rows a batch at a time (isolation.md)"
_PLACE: Final = "fields F and L (file and line in PostgreSQL's source) are not sent"
_TWO_PHASE: Final = "0A000: PREPARE TRANSACTION"
_XML: Final = "0A000: xml"


@dataclass(frozen=True, slots=True)
class Suite:
    """How a driver's tests are run; ``{port}`` in ``variables`` is the server's.

    Attributes:
        passes: how many pass, subtests aside.
        known: what fails, with the reason.
        left_out: files and tests that are not run, with the reason.
    """

    folder: str
    variables: Mapping[str, str]
    passes: int
    known: Mapping[str, str]
    left_out: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()


SUITES: Final = {
    "asyncpg": Suite(
        folder="tests",
        variables={
            "PGHOST": "127.0.0.1",
            "PGPORT": "{port}",
            "PGUSER": "postgres",
            "PGDATABASE": "postgres",
        },
        passes=300,
        known={
            "tests/test_cache_invalidation.py::TestCacheInvalidation::test_type_cache_invalidation_on_change_attr": _ATTRIBUTE,
            "tests/test_cache_invalidation.py::TestCacheInvalidation::test_type_cache_invalidation_on_drop_type_attr": _ATTRIBUTE,
            "tests/test_codecs.py::TestCodecs::test_unhandled_type_fallback": "0A000: extension isn",
            "tests/test_codecs.py::TestCodecs::test_unknown_type_text_fallback": "0A000: a range type over citext",
            "tests/test_execute.py::TestExecuteScript::test_execute_script_check_transactionality": "errors of constants come where they are computed (isolation.md)",
            "tests/test_introspection.py::TestIntrospection::test_introspection_on_large_db": "0A000: INHERITS",
            "tests/test_prepare.py::TestPrepare::test_prepare_14_explain": "EXPLAIN shows Holdfast's plans",
            "tests/test_prepare.py::TestPrepare::test_prepare_16_command_result": "makes the table that the test of errors of constants has left",
        },
        left_out={
            "tests/test_connect.py::TestConnectionAttributes": "starts clusters of its own",
            "tests/test_pool.py::TestPool::test_pool_config_persistence": "a closed pool cancels a connection that it is making, and its future is reported now and then, on PostgreSQL too",
            "tests/test_listeners.py::TestLogListeners::test_log_listener_01": f"waits for ever: {_PLACE}"
        },
    ),
    "psycopg2": Suite(
        folder="tests",
        variables={
            "PSYCOPG2_TESTDB": "postgres",
            "PSYCOPG2_TESTDB_HOST": "127.0.0.1",
            "PSYCOPG2_TESTDB_PORT": "{port}",
            "PSYCOPG2_TESTDB_USER": "postgres",
        },
        passes=717,
        known={
            "tests/test_connection.py::ConnectionTests::test_pgconn_ptr": "the wheel's libpq is not the one it looks for, on PostgreSQL, too",
            "tests/test_connection.py::IsolationLevelsTestCase::test_isolation_level_read_committed": _LEVEL,
            "tests/test_connection.py::IsolationLevelsTestCase::test_isolation_level_serializable": _LEVEL,
            "tests/test_extras_dictcursor.py::ExtrasDictCursorTests::testDictCursorWithNamedCursorNotGreedy": _AHEAD,
            "tests/test_extras_dictcursor.py::ExtrasDictCursorRealTests::testDictCursorRealWithNamedCursorNotGreedy": _AHEAD,
            "tests/test_extras_dictcursor.py::NamedTupleCursorTest::test_not_greedy": _AHEAD,
        },
        before=("CREATE EXTENSION hstore",),
    ),
    "pg8000": Suite(
        folder="test",
        variables={"PGHOST": "127.0.0.1", "PGPORT": "{port}", "PGPASSWORD": "unused"},
        passes=747,
        known={
            **{f"test/{part}/test_copy.py::test_copy_from_with_error": _PLACE for part in ("dbapi", "legacy", "native")},
            **{f"test/{part}/test_query.py::test_tpc_prepare": _TWO_PHASE for part in ("dbapi", "legacy")},
            **{
                f"test/{part}/test_typeconversion.py::test_xml_roundtrip": _XML
                for part in ("dbapi", "legacy", "native")
            },
        },
        left_out={
            **{f"test/{part}/auth": "asks for servers that are configured so" for part in ("dbapi", "legacy", "native")},
            **{
                f"test/{part}/test_benchmarks.py": "measures, with a package of its own"
                for part in ("dbapi", "legacy", "native")
            },
            "test/test_readme.py": "runs the examples of a file beside the tests",
            **{
                f"test/{part}/test_connection.py::test_broken_pipe_read": "sees another error where the reset comes early, on PostgreSQL, too"
                for part in ("dbapi", "legacy", "native")
            },
        },
        before=("CREATE EXTENSION hstore",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("driver", SUITES)
def test_suite(driver: str, tmp_path: Path) -> None:
    suite = SUITES[driver]
    tests = next(INSTALLED.glob(f"suites/{driver}-*/{suite.folder}"), None)
    if tests is None:
        pytest.skip(f"no tests of {driver} in {INSTALLED}/suites: tools/install_clients.sh fetches them")
    server = ServerProcess(tmp_path / "data")
    try:
        for statement in suite.before:
            server.sql(statement)
        given = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PYTHON", "PYTEST"))}
        options = [f"--deselect={name}" if "::" in name else f"--ignore={name}" for name in suite.left_out]
        done = subprocess.run(
            [
                str(INSTALLED / "venv/bin/python"), "-m", "pytest", "-q", "-rfE", "--tb=short",
                "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", *options, suite.folder,
            ],
            cwd=tests.parent, env=given | {k: v.format(port=server.port) for k, v in suite.variables.items()},
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    finally:
        server.stop()
    failed = set(FAILED.findall(done.stdout))
    assert not failed - set(suite.known), done.stdout
    assert not set(suite.known) - failed, "these do not fail, or were not run"
    passed = PASSED.search(done.stdout)
    assert passed is not None
    assert int(passed.group(1)) >= suite.passes
