"""What scripts leave behind: dumped, restored here and into PostgreSQL without an error, and dumped again equal.

Scripts that end with objects PostgreSQL itself could not restore, or does not have, are not among them.
"""

from __future__ import annotations

import subprocess
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from sqllogictest.client import Client, ServerError, Target
from tests.differential.test_scripts import statements
from tests.engine.catalog.test_dump import PG_DUMP, needs_pg_dump
from tests.engine.catalog.test_psql import PSQL
from tests.engine.conftest import server
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres", "server"]

SCRIPTS = Path(__file__).parents[2] / "differential" / "scripts"
NAMES = (
    "statements/attribute_numbers", "statements/dependencies_told", "statements/computed_indexes", "constraints/exclusion_expressions",
    "functions/procedures_end", "functions/record_views", "partitions/referential_actions", "statements/names_by_oid_left",
    "types/composite_columns",
)  # fmt: skip


def dump(url: str) -> list[str]:
    done = subprocess.run([PG_DUMP, "-d", url], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [
        line
        for line in done.stdout.split("\n")
        if "restrict " not in line and not line.startswith("-- Dumped from")
    ]


def restore(url: str, script: list[str]) -> None:
    command = [PSQL, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url]
    done = subprocess.run(
        command, input="\n".join(script), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@needs_pg_dump
@pytest.mark.parametrize("name", NAMES)
def test_what_a_script_leaves_is_restored(name: str, server: ServerProcess, postgres: str) -> None:
    ours = f"host=127.0.0.1 port={server.port} user=postgres"
    source, copy = (f"{kind}_{name.replace('/', '_')}" for kind in ("made", "again"))
    with closing(server.connect()) as client:
        client.run(f"CREATE DATABASE {source}")
        client.run(f"CREATE DATABASE {copy}")
    with closing(Client(Target("127.0.0.1", server.port, "postgres", "", source), timeout_s=60)) as client:
        for sql in statements(SCRIPTS / f"{name}.sql"):
            with suppress(ServerError):  # what it shows to be refused
                client.run(sql)
    before = dump(f"{ours} dbname={source}")
    restore(f"{ours} dbname={copy}", before)
    assert dump(f"{ours} dbname={copy}") == before
    with psycopg.connect(postgres, autocommit=True) as theirs:
        theirs.execute(f"CREATE DATABASE {copy}")  # type: ignore[arg-type]
    theirs_url = postgres.replace("dbname=postgres", f"dbname={copy}")
    restore(theirs_url, before)
    assert dump(theirs_url) == before
