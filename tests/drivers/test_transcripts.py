"""Drivers of other languages: each runs a program that prints what it gets, here and on PostgreSQL 15; the outputs are equal.

    transcripts/php_pdo.php ──> php … postgresql://…  (Holdfast) ──┐
                           └──> php … postgresql://…  (PostgreSQL) ┴─> the same lines

The programs print "== step" before each step, and nothing that names a port, a process or the time of day. They need
Debian's packages; a test says which where they are missing.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.postgres import postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]

PROGRAMS = Path(__file__).with_name("transcripts")
TIMEOUT_S = 600
"""For one run of a program; the Rails application starts Ruby some thirty times, two seconds of a processor each."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * TIMEOUT_S + 60)]
GO = "/usr/share/gocode"
RANDOM = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "uuid"),
    (r"0x[0-9a-f]{16}", "0x"),
    (r"tuple \(\d+,\d+\)", "tuple"),
)
"""What differs from run to run, on PostgreSQL too."""


@dataclass(frozen=True, slots=True)
class Program:
    """How a transcript is made: ``run`` (and ``build``) are shell commands, {source}, {built} and {url} (or its parts) filled in.

    ``present`` succeeds where ``packages`` are installed; ``steps``: how many it prints, so that none goes missing.
    """

    run: str
    present: str
    packages: str
    steps: int
    build: str = ""


TRANSCRIPTS = {
    "php_pdo": Program("php {source}.php {url}", "php -m | grep -q pdo_pgsql", "php-cli php-pgsql", 20),
    "c_libpq": Program(
        "{built} {url}",
        "cc --version && test -e /usr/include/postgresql/libpq-fe.h",
        "gcc libpq-dev",
        9,
        build="cc -I/usr/include/postgresql -o {built} {source}.c -lpq",
    ),
    "c_ecpg": Program(
        "{built} {database}@{host}:{port}",
        "cc --version && ecpg --version",
        "gcc libecpg-dev",
        5,
        build="ecpg -o {built}.c {source}.pgc && cc -I/usr/include/postgresql -o {built} {built}.c -lecpg -lpgtypes",
    ),
    "cpp_pqxx": Program(
        "{built} {url}",
        "c++ --version && test -d /usr/include/pqxx",
        "g++ libpqxx-dev",
        6,
        build="c++ -std=c++17 -w -o {built} {source}.cxx -lpqxx -lpq",
    ),
    "rails_app": Program(
        "ruby {source}.rb {url}",
        'ruby -e \'require "pg"; require "rails"; require "active_record"\'',
        "ruby-pg ruby-activerecord ruby-railties postgresql-client-15",
        10,
    ),
    "ruby_sequel": Program(
        "ruby {source}.rb {url}", 'ruby -e \'require "pg"; require "sequel"\'', "ruby-pg ruby-sequel", 11
    ),
    "php_orm": Program(
        "php {source}.php {url}",
        "test -d /usr/share/php/Illuminate/Database && test -d /usr/share/php/Doctrine/ORM",
        "php-cli php-pgsql php-illuminate-database php-doctrine-orm",
        9,
    ),
    "go_sql": Program(
        "{built} {url}",
        f"go version && test -d {GO}/src/github.com/jinzhu/gorm && test -d {GO}/src/github.com/jmoiron/sqlx",
        "golang-go golang-github-jackc-pgx-v4-dev golang-github-jmoiron-sqlx-dev golang-github-jinzhu-gorm-dev",
        13,
        build="go build -o {built} {source}/main.go",
    ),
    "go_pgx": Program(
        "{built} {url}",
        f"go version && test -d {GO}/src/github.com/jackc/pgx/v4",
        "golang-go golang-github-jackc-pgx-v4-dev",
        13,
        build="go build -o {built} {source}/main.go",
    ),
}


def transcript(name: str, url: str, built: Path) -> str:
    """Return what the program prints, without what is random."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PYTHON", "RUBY", "RAILS"))}
    at = urlsplit(url)
    command = TRANSCRIPTS[name].run.format(
        source=PROGRAMS / name, built=built, url=url, host=at.hostname, port=at.port, database=at.path[1:]
    )
    done = subprocess.run(
        ["sh", "-c", f"exec {command}"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, errors="replace",
        env={**kept, "LC_ALL": "C.UTF-8", "PGTZ": "UTC"},
    )  # fmt: skip
    text = done.stdout
    for pattern, word in RANDOM:
        text = re.sub(pattern, word, text)
    assert done.returncode == 0, text[-3000:] + done.stderr[-3000:]
    return text


@pytest.fixture(params=TRANSCRIPTS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A program that can run here: its name, and where it was built."""
    name: str = request.param
    it, built = TRANSCRIPTS[name], tmp_path / name
    if subprocess.run(["sh", "-c", it.present], capture_output=True, check=False).returncode:
        pytest.skip(f"apt-get install {it.packages}")
    if it.build:
        environment = {**os.environ, "GO111MODULE": "off", "GOPATH": GO}
        command = it.build.format(source=PROGRAMS / name, built=built)
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return name, built


def test_a_driver_sees_what_it_sees_on_postgresql(
    program: tuple[str, Path], server: ServerProcess, postgres: str
) -> None:
    name, built = program
    there = transcript(name, url_of(postgres), built)
    assert there.count("\n== ") + there.startswith("== ") == TRANSCRIPTS[name].steps
    assert transcript(name, server.url, built).splitlines() == there.splitlines()
