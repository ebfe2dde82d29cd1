"""pgjdbc, driven by a small Java program (Debian's JDK and libpostgresql-jdbc-java; only this test needs them)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.server import ServerProcess

DRIVER = Path("/usr/share/java/postgresql.jar")
PROGRAM = Path(__file__).with_name("Jdbc.java")
STEPS = [
    "values in text", "values in binary", "batch", "fetch size", "copy", "errors", "cancel", "metadata",
    "savepoint",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install default-jdk-headless")
@pytest.mark.skipif(not DRIVER.exists(), reason="no pgjdbc: install libpostgresql-jdbc-java")
def test_what_pgjdbc_users_do(server: ServerProcess, tmp_path: Path) -> None:
    subprocess.run(["javac", "-cp", str(DRIVER), "-d", str(tmp_path), str(PROGRAM)], check=True, timeout=120)
    done = subprocess.run(
        ["java", "-cp", f"{tmp_path}:{DRIVER}", "Jdbc", f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"ok {step}" for step in STEPS]
