"""pg_dump and pg_restore between PostgreSQL 15 and Holdfast: what was dumped there is dumped here again, word by word."""

from __future__ import annotations

import difflib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.postgres import BINARIES, postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("pg_dump") is None, reason="there is no pg_dump on this machine"),
]
SHOP = Path(__file__).with_name("shop.sql")
DEFINITIONS = Path(__file__).with_name("definitions.sql")
TIMEOUT_S = 120


def run(*command: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def other_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def psql(url: str, script: str) -> str:
    return run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", "-", stdin=script)


def dump(url: str, *options: str) -> list[str]:
    """Return the lines of a dump, without the key drawn for each and the versions' minor parts."""
    lines = run("pg_dump", *options, "-d", url).splitlines()
    lines = [line for line in lines if "restrict " not in line]
    return [line.split(".")[0] if line.startswith("-- Dumped") else line for line in lines]


def assert_same(got: list[str], expected: list[str]) -> None:
    assert got == expected, "\n".join(difflib.unified_diff(expected, got, lineterm="", n=2))


@pytest.fixture(scope="module")
def source(postgres: str, server: ServerProcess) -> Iterator[str]:
    """The shop in a PostgreSQL; its roles are there on both sides."""
    url = url_of(postgres)
    psql(url, "CREATE DATABASE shop_source")
    roles = [
        line for line in SHOP.read_text().splitlines(True) if "ROLE" in line or line.startswith("GRANT boss")
    ]
    psql(server.url, "".join(roles))
    psql(other_database(url, "shop_source"), SHOP.read_text())
    yield other_database(url, "shop_source")
    psql(url, "DROP DATABASE shop_source")
    psql(url, "DROP ROLE clerk; DROP ROLE boss")


@pytest.mark.parametrize(
    "options", [(), ("--inserts",), ("--column-inserts", "--rows-per-insert=2")], ids=str
)
def test_a_dump_of_postgresql_restores_to_the_same_dump(
    source: str, server: ServerProcess, options: tuple[str, ...]
) -> None:
    before = dump(source, *options)
    psql(server.url, "CREATE DATABASE restored")
    try:
        restored = other_database(server.url, "restored")
        psql(restored, "\n".join(before))
        assert_same(dump(restored, *options), before)
    finally:
        psql(server.url, "DROP DATABASE restored")


@pytest.mark.parametrize("form", ["custom", "directory"])
def test_pg_restore(source: str, server: ServerProcess, tmp_path: Path, form: str) -> None:
    assert (BINARIES / "pg_restore").exists()
    archive = str(tmp_path / "archive")
    jobs = ["-j", "2"] if form == "directory" else []
    psql(server.url, "CREATE DATABASE first; CREATE DATABASE second")
    first, second = (other_database(server.url, name) for name in ("first", "second"))
    try:
        psql(first, "\n".join(dump(source)))
        run("pg_dump", "-F", form[0], *jobs, "-f", archive, "-d", first)
        run("pg_restore", *jobs, "--exit-on-error", "-d", second, archive)
        assert_same(dump(second), dump(source))
    finally:
        psql(server.url, "DROP DATABASE first; DROP DATABASE second")


def test_pg_dumpall_of_roles(source: str, server: ServerProcess) -> None:
    url = urlsplit(server.url)
    said = run("pg_dumpall", "-g", "-h", str(url.hostname), "-p", str(url.port), "-U", "postgres")
    assert (
        "ALTER ROLE boss WITH NOSUPERUSER INHERIT NOCREATEROLE CREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;"
        in said
    )
    assert "GRANT boss TO clerk GRANTED BY postgres;" in said


def test_definitions_dumped_here_restore_on_both(postgres: str, server: ServerProcess) -> None:
    sides = (url_of(postgres), server.url)
    for url in sides:
        psql(url, "CREATE DATABASE defined; CREATE DATABASE restored")
    try:
        for url in sides:
            psql(other_database(url, "defined"), DEFINITIONS.read_text())
        before = dump(other_database(server.url, "defined"))
        assert_same(before, dump(other_database(sides[0], "defined")))
        for url in sides:
            psql(other_database(url, "restored"), "\n".join(before))
            assert_same(dump(other_database(url, "restored")), before)
    finally:
        for url in sides:
            psql(url, "DROP DATABASE defined; DROP DATABASE restored")
