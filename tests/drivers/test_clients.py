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
import subprocess
from pathlib import Path

import pytest

from tests.support.postgres import postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]
pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(os.environ.get("HOLDFAST_TEST_CLIENTS", ROOT / ".drivers"))
CLIENTS = Path(__file__).with_name("clients")
TIMEOUT_S = 270
PROGRAMS = {
    "sqlalchemy_app.py": 12,
    "django_app.py": 10,
    "python_drivers.py": 7,
    "dataframes.py": 5,
}
"""Program: its number of steps, so that none goes missing in silence."""


def run_program(name: str, url: str) -> subprocess.CompletedProcess[str]:
    python = INSTALLED / "venv/bin/python"
    if not python.exists():
        pytest.skip(
            f"no clients in {INSTALLED}: tools/install_clients.sh installs them, make drivers calls it"
        )
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PYTHON"))}
    return subprocess.run(
        [str(python), str(CLIENTS / name), url], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=variables,
    )  # fmt: skip


def check(name: str, url: str) -> None:
    done = run_program(name, url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^ok ", done.stdout, re.MULTILINE)) == PROGRAMS[name], done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_holdfast(server: ServerProcess, name: str) -> None:
    check(name, server.url)


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_postgresql(postgres: str, name: str) -> None:
    check(name, url_of(postgres))
