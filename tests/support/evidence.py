"""Figures of long proofs, kept as data in docs/evidence: a run is added to those before it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def add_run(path: Path, what: str, run: Mapping[str, Any]) -> None:
    """Add the figures of a run, with today's commit and day, in the place of those of the same ``seeds`` and commit."""
    known = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    made = {"commit": commit(), "day": datetime.now(tz=UTC).date().isoformat(), **run}
    runs = [each for each in known if _key(each) != _key(made)] + [made]
    document = {"what": what, "runs": runs}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def commit() -> str:
    """Return the short hash of what is checked out."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return head.stdout.strip()


def _key(run: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(run.get(name) for name in ("seeds", "commit", "kind"))
