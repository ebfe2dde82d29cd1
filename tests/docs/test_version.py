"""One version number, told alike by the command, by SQL and by the page about upgrades; the newest of CHANGELOG.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from planner.base.version import VERSION

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_tells_the_version() -> None:
    command = [sys.executable, "-m", "engine", "--version"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
        == f"holdfast {VERSION}\n"
    )


def test_pages_are_of_this_version() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION
    assert f"| Holdfast | {VERSION} " in (ROOT / "docs/guide/operate/upgrade.md").read_text("utf-8")
