"""The real psql shows what its users expect, and the same as against PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.engine.catalog.conftest import OBJECTS
from tests.golden.harness import check
from tests.support.server import ServerProcess

PSQL = shutil.which("psql") or "/usr/lib/postgresql/15/bin/psql"
needs_psql = pytest.mark.skipif(not os.path.exists(PSQL), reason="there is no psql on this machine")

# Commands whose output must be PostgreSQL's to the last blank; sizes, oids and descriptions of built-in objects are
# other ones here.
COMPARED = r"""
\d
\d emp
\d+ emp
\d rich
\d+ rich
\d emp_name
\d+ emp_name
\d emp_pkey
\d shift
\d+ shift
\d one_a_day
\d sales.*
\d+ sales.*
\d "Odd Name"
\d emp*
\d nosuch
\d information_schema.sequences
\dt
\dt sales.*
\dt *.emp
\di
\di sales.*
\dv
\dv *.rich
\dtvi
\ds
\dm
\dE
\du
\dg
\df abs
\df generate_*
\df pg_get_*
\dT
\do
\dp
\z sales.*
\ddp
\dc
\dC
\dC int4
\dD
\dO
\dA
\dAc btree int4
\dAo btree integer_ops
\dAp btree integer_ops
\dd
\des
\dew
\deu
\det
\dP
\drds
\dRp
\dRs
\dy
\dX
\dconfig work_mem
\dF
\dF+ english
\dF+ seeking
\dFd
\dFd+
\dFp
\dFp+
\dFt
\dFt+
\sf abs(int)
\sf pg_get_keywords
\sv rich
\sv+ rich
\sv sales.notes
\encoding
""".strip().splitlines()


# A database of its own on the PostgreSQL that other tests use too.
OTHER = "catalog_of_psql"


def psql(port: int, commands: list[str], *, database: str = "postgres") -> list[str]:
    environment = {**os.environ, "PAGER": "", "PGCLIENTENCODING": "UTF8", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [PSQL, "-X", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", database],
        input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=60, env=environment,
        check=False,
    )  # fmt: skip
    printed = (done.stdout + done.stderr).rstrip("\n")
    return [line.rstrip() for line in printed.split("\n")]


@needs_psql
def test_psql_shows_what_its_users_expect(server: ServerProcess, rewrite: bool) -> None:
    check(Path(__file__).with_name("psql.txt"), lambda commands: psql(server.port, commands), rewrite=rewrite)


@needs_psql
def test_psql_shows_the_same_as_against_postgresql(server: ServerProcess, postgres: str) -> None:
    found = re.search(r"port=(\d+)", postgres)
    if found is None:
        pytest.skip("the PostgreSQL to compare with is not reached by a port")
    port = int(found.group(1))
    marked = [line for command in COMPARED for line in ("\\echo -- " + command.replace("\\", "/"), command)]
    ours = _by_command(psql(server.port, marked))
    psql(port, [f"CREATE DATABASE {OTHER};"])
    try:
        psql(port, [OBJECTS], database=OTHER)
        theirs = _by_command(psql(port, marked, database=OTHER))
    finally:
        psql(port, [f"DROP DATABASE {OTHER};", "DROP ROLE bob;"])
    differing = [name for name in theirs if ours.get(name) != theirs[name]]
    shown = "\n".join(
        f"{name}\nours:\n" + "\n".join(ours.get(name, [])) + "\ntheirs:\n" + "\n".join(theirs[name])
        for name in differing[:3]
    )
    assert not differing, f"{differing}\n{shown}"


def _by_command(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        if line.startswith("-- /"):
            current = found.setdefault(line, [])
        else:
            current.append(line)
    return found
