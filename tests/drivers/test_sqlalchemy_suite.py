"""SQLAlchemy's own tests of its PostgreSQL dialect (``test/dialect`` of its source archive), unmodified.

``test_suite.py`` is what any dialect has to pass: nothing may fail. Of ``postgresql/``, which asks for much of what PostgreSQL itself can do,
those in ``REFUSED`` fail, and no others: one that passes has to leave the list.
"""

from __future__ import annotations

import os
import re
import subprocess
from urllib.parse import urlsplit

import pytest

from sqllogictest.client import Client, Target
from tests.drivers.test_clients import INSTALLED
from tests.support.server import ServerProcess

pytestmark = pytest.mark.long
TIMEOUT_S = 1500
RUNS = [
    ("psycopg", "test_suite.py", 1883),
    ("asyncpg", "test_suite.py", 1883),
    ("psycopg", "postgresql", 10157),
]
"""Driver, tests, and how many of them pass at least."""

REFUSED = {
    "CREATE COLLATION": (
        "DomainReflectionTest::test_inspect_domains", "DomainReflectionTest::test_inspect_domains_schema",
        "DomainReflectionTest::test_inspect_domains_star", "ReflectionTest::test_column_collation_reflection_with_schema",
    ),
    "PREPARE TRANSACTION, COMMIT PREPARED": (
        "MiscBackendTest::test_autocommit_isolation_level",
        *(f"TwoPhaseCommitTest::test_default_pg_dialect[{end}]" for end in ("commit", "not_commit")),
        *(
            f"TwoPhaseCommitTest::test_provided_id_round_trip[{end}-{name}]"
            for end in ("commit", "not_commit") for name in ("driverid", "noid", "withid")
        ),
    ),
    "INHERITS": ("TestTableOptionsReflection::test_table_inherits",),
    "CREATE ACCESS METHOD": ("TestTableOptionsReflection::test_table_using_custom",),
    "CREATE INDEX CONCURRENTLY that fails leaves no index behind": (
        "InvalidIndexReflectionTest::test_get_indexes", "InvalidIndexReflectionTest::test_get_multi_indexes",
        "InvalidIndexReflectionTest::test_index_from_get_indexes", "InvalidIndexReflectionTest::test_table_reflection",
    ),
    "the collation en_US, which is not there": (
        "CoreArrayRoundTripTest::test_array_str_collation", "PGArrayRoundTripTest::test_array_str_collation",
    ),
}  # fmt: skip
"""Tests of ``postgresql/`` that fail, by what they ask for."""


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize(("driver", "tests", "at_least"), RUNS)
def test_dialect_suite(server: ServerProcess, driver: str, tests: str, at_least: int) -> None:
    source = next(INSTALLED.glob("sqlalchemy-*/test/conftest.py"), None)
    if source is None:
        pytest.skip(f"no source of SQLAlchemy in {INSTALLED}: tools/install_clients.sh fetches it")
    name = f"suite_{driver}_{tests.partition('.')[0]}"  # it looks at everything in its database
    server.sql(f"CREATE DATABASE {name}")
    at = urlsplit(server.url)._replace(path=f"/{name}")
    client = Client(Target.from_url(at.geturl()), timeout_s=60)
    for schema in ("test_schema", "test_schema_2"):
        client.run(f"CREATE SCHEMA {schema}")
    for extension in ("btree_gist", "citext", "hstore"):
        client.run(f"CREATE EXTENSION {extension}")
    client.close()
    url = at._replace(
        scheme=f"postgresql+{driver}", netloc=at.netloc.replace("@", ":any@")
    )  # it insists on a password
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PYTHON", "PYTEST"))}
    done = subprocess.run(
        [
            str(INSTALLED / "venv/bin/python"), "-m", "pytest", "-p", "no:logging", "-q",
            "--tb=short", "-rfE", "--maxfail=1000", "--dburi", url.geturl(),
            f"test/dialect/{tests}",
        ],
        cwd=source.parents[1], env=variables,
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    failed = re.findall(
        r"^(?:FAILED|ERROR) \S+?::(\w+?)(?:_postgresql\+\w+)?(::\S+)", done.stdout, re.MULTILINE
    )
    known = {test for tests in REFUSED.values() for test in tests} if tests == "postgresql" else set()
    assert {"".join(parts) for parts in failed} == known, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout[-3000:] + done.stderr
    assert int(passed.group(1)) >= at_least
