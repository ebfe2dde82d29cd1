"""Real clients doing their own work: on Holdfast, and on PostgreSQL 15 to show that what they expect is PostgreSQL's.

```
make drivers ── tools/install_clients.sh ──> .drivers/venv, .drivers/node_modules
     └─ this module ── .drivers/venv/bin/python clients/django_app.py postgresql://… ──> "ok <step>" lines, status
```

The programs (``clients/``) know nothing of pytest: each takes an address, prints ``ok`` or ``FAILED`` for every step,
and ends with status 1 if one failed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.postgres import postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(os.environ.get("HOLDFAST_TEST_CLIENTS", ROOT / ".drivers"))
CLIENTS = Path(__file__).with_name("clients")
TIMEOUT_S = 600
"""For one program: dbt alone takes 45 s of a processor for itself, whatever the server does."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_S + 60)]
PROGRAMS = {
    "sqlalchemy_app.py": 13,
    "django_app.py": 10,
    "django_tests.py": 4,
    "python_drivers.py": 8,
    "dataframes.py": 5,
    "duckdb_attach.py": 6,
    "odbc.py": 5,
    "pgadmin_browse.py": 5,
    "pgcli_session.py": 5,
    "dbt_project.py": 3,
    "node_drivers.mjs": 8,
    "node_orms.mjs": 5,
    "node_prisma.mjs": 4,
    "perl_dbi.pl": 7,
}
"""Program: its number of steps, so that none goes missing in silence."""
OWN = {"pgadmin_browse.py": "pgadmin", "duckdb_attach.py": "duckdb"}
"""Programs with an environment of their own."""


def command(name: str, folder: Path) -> list[str]:
    """Return how to run a program. Node finds its packages beside the program, so there it goes."""
    if name.endswith(".pl"):
        if subprocess.run(["perl", "-MDBD::Pg", "-e1"], capture_output=True, check=False).returncode:
            pytest.skip("no DBD::Pg: install libdbd-pg-perl")
        return ["perl", str(CLIENTS / name)]
    kind = "node_modules" if name.endswith(".mjs") else OWN.get(name, "venv")
    if not (INSTALLED / kind).exists():
        pytest.skip(
            f"no {kind} in {INSTALLED}: tools/install_clients.sh installs it, make drivers calls that"
        )
    if kind != "node_modules":
        return [str(INSTALLED / kind / "bin/python"), str(CLIENTS / name)]
    (folder / kind).symlink_to(INSTALLED / kind)
    for program in CLIENTS.glob("*.mjs"):
        shutil.copy(program, folder)
    return ["node", str(folder / name)]


def run_program(name: str, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PYTHON"))}
    return subprocess.run(
        [*command(name, folder), url], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=variables,
    )  # fmt: skip


def check(name: str, url: str, folder: Path) -> None:
    done = run_program(name, url, folder)
    if done.stdout.startswith("SKIP "):
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^ok ", done.stdout, re.MULTILINE)) == PROGRAMS[name], done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_holdfast(server: ServerProcess, tmp_path: Path, name: str) -> None:
    check(name, server.url, tmp_path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_postgresql(postgres: str, tmp_path: Path, name: str) -> None:
    check(name, url_of(postgres), tmp_path)
