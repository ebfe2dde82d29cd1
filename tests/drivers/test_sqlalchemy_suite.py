"""SQLAlchemy's own tests for dialects (``test/dialect/test_suite.py`` of its source archive), unmodified.

Its set-up creates the extensions citext and hstore itself; the schemas it asks for are made here.
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
AT_LEAST = 1883


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_dialect_suite(server: ServerProcess, driver: str) -> None:
    source = next(INSTALLED.glob("sqlalchemy-*/test/conftest.py"), None)
    if source is None:
        pytest.skip(f"no source of SQLAlchemy in {INSTALLED}: tools/install_clients.sh fetches it")
    name = f"suite_{driver}"  # it looks at everything in its database
    server.sql(f"CREATE DATABASE {name}")
    url = urlsplit(server.url)._replace(scheme=f"postgresql+{driver}", path=f"/{name}").geturl()
    client = Client(Target.from_url(urlsplit(server.url)._replace(path=f"/{name}").geturl()), timeout_s=60)
    for schema in ("test_schema", "test_schema_2"):
        client.run(f"CREATE SCHEMA {schema}")
    client.close()
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PYTHON", "PYTEST"))}
    done = subprocess.run(
        [
            str(INSTALLED / "venv/bin/python"), "-m", "pytest", "-p", "no:logging", "-q",
            "--tb=short", "--maxfail=1000", "--dburi", url,
            "test/dialect/test_suite.py",
        ],
        cwd=source.parents[1], env=variables,
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    failed = re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.MULTILINE)
    assert not failed, "\n".join(failed)
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout[-3000:] + done.stderr
    assert int(passed.group(1)) >= AT_LEAST
