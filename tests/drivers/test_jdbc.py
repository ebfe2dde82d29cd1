"""pgjdbc, and above it Spring and Hibernate, driven by small Java programs (all of them Debian's; only these tests need them)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.postgres import postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]

DRIVER = Path("/usr/share/java/postgresql.jar")
PROGRAM = Path(__file__).with_name("Jdbc.java")
STEPS = [
    "values in text", "values in binary", "batch", "fetch size", "copy", "errors", "cancel", "metadata",
    "savepoint", "callable", "large objects", "encodings",
]  # fmt: skip

TIMEOUT_S = 240
JARS = Path("/usr/share/java")
SPRING = [
    "hibernate-core", "hibernate-commons-annotations", "geronimo-jpa_2.0_spec", "geronimo-jta-1.2-spec", "dom4j", "antlr",
    "javassist", "commons-collections3", "commons-logging", "slf4j-api", "slf4j-nop", "spring3-core", "spring3-beans",
    "spring3-context", "spring3-expression", "spring3-aop", "spring3-jdbc", "spring3-transaction", "spring3-orm", "postgresql",
]  # fmt: skip
SPRING_STEPS = [
    "hbm2ddl: create, validate, update", "a graph of objects is stored and found",
    "queries: HQL, criteria, pages, scrolling, bulk", "versions and locks", "Spring's templates", "Spring's transactions",
    "hbm2ddl: drop",
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


@pytest.mark.long
@pytest.mark.parametrize("on", ["holdfast", "postgresql"])
@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install default-jdk-headless")
@pytest.mark.skipif(
    not all((JARS / f"{jar}.jar").exists() for jar in SPRING),
    reason="no Spring with Hibernate: install libhibernate3-java libjavassist-java libspring-context-java libspring-jdbc-java libspring-orm-java",
)
def test_a_spring_application(
    server: ServerProcess, request: pytest.FixtureRequest, tmp_path: Path, on: str
) -> None:
    url = urlsplit(server.url if on == "holdfast" else url_of(request.getfixturevalue("postgres")))
    jars = ":".join(str(JARS / f"{jar}.jar") for jar in SPRING)
    program = PROGRAM.with_name("Spring.java")
    subprocess.run(
        ["javac", "-nowarn", "-cp", jars, "-d", str(tmp_path), str(program)], check=True, timeout=120
    )
    done = subprocess.run(
        [
            "java", "-Xmx300m", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp", f"{tmp_path}:{jars}",
            "Spring", f"jdbc:postgresql://{url.netloc.rpartition('@')[2]}/postgres",
        ],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"ok {step}" for step in SPRING_STEPS]
