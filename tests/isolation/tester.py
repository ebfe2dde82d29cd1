"""PostgreSQL's isolationtester against a server: one spec in, its output out.

The tester (Debian: in package postgresql-15) and the suites are not part of this repository; what needs them is skipped
with that reason where they are absent.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from tests.isolation.compare import Verdict, compare

SUITES: Final = Path(__file__).resolve().parents[2].parent / "shared" / "suites"
TESTER: Final = Path("/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/isolationtester")
STEP_TIMEOUT_S: Final = 1  # a step that waits longer for one that comes later is cancelled
SPEC_TIMEOUT_S: Final = 900


def missing() -> str:
    """Return what keeps the suites from running, "" if nothing does."""
    if not TESTER.exists():
        return f"no isolationtester at {TESTER}"
    if not SUITES.exists():
        return f"no suites at {SUITES}"
    return ""


def specs(suite: str) -> list[str]:
    """Return the names of a suite's specs; none where the suites are absent."""
    return sorted(path.stem for path in (SUITES / suite / "specs").glob("*.spec"))


def run_spec(suite: str, name: str, port: int) -> Verdict:
    """Run a spec against the server on ``port`` and judge what came out."""
    folder = SUITES / suite
    environment = {key: value for key, value in os.environ.items() if key not in ("LANGUAGE", "LC_ALL")}
    environment |= {
        "LC_MESSAGES": "C",
        "PGTZ": "America/Los_Angeles",
        "PGDATESTYLE": "Postgres, MDY",
        "PGOPTIONS": "-c intervalstyle=postgres_verbose",
        "PGAPPNAME": f"isolation/{name}",
        "PGISOLATIONTIMEOUT": str(STEP_TIMEOUT_S),
    }
    text = (folder / "specs" / f"{name}.spec").read_bytes()
    done = subprocess.run(
        [str(TESTER), f"postgresql://postgres@127.0.0.1:{port}/postgres"],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        timeout=SPEC_TIMEOUT_S,
        check=False,
    )
    expected = [folder / "expected" / f"{name}.out", *sorted((folder / "expected").glob(f"{name}_[0-9].out"))]
    # a tester that gives up in the middle leaves permutations lost, which is what the verdict then says
    return compare(
        [path.read_text("latin-1") for path in expected],
        done.stdout.decode("latin-1"),
        level_kept="read committed" in text.decode("latin-1").lower(),
    )
