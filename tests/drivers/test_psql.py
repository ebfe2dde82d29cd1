r"""psql itself, on Holdfast and on PostgreSQL 15: a script of its commands, and a terminal in which somebody presses Tab.

    psql_session.sql ──> psql < … (Holdfast) ─┐
                    └──> psql < … (PostgreSQL)─┴─> the same output, line by line

    pty ── "SELECT * FROM so", Tab ──> psql ── catalog queries ──> the line completed, or what it may become

Commands that show the catalog are compared in tests/engine/catalog/test_psql.py.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.postgres import postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]

PSQL = shutil.which("psql")
SESSION = Path(__file__).with_name("psql_session.sql")
NAME = "psql_session"
PATIENCE_S = 60
LOOKS_DIFFERENT = (
    (r"^LOCATION: .*\n", ""),  # where in PostgreSQL's source
    (r"^.* \(every .*s\)$", "(every)"),
    (r"Time: [\d.,:ms ()]+", "Time:"),
    (r"port \"?\d+\"?", "port"),
    (r"^SSL connection .*\n", ""),
)
pytestmark = pytest.mark.skipif(PSQL is None, reason="there is no psql on this machine")


def port_of(postgres: str) -> int:
    """Return the port of the PostgreSQL to compare with."""
    found = urlsplit(url_of(postgres)).port
    if found is None:
        pytest.skip("the PostgreSQL to compare with is not reached by a port")
    return found


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return {**kept, "LC_ALL": "C.UTF-8", "PSQL_HISTORY": "/dev/null", "PAGER": "", **more}


def command(port: int, database: str = NAME) -> list[str]:
    assert PSQL is not None
    return [PSQL, "-X", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", database]


def run(port: int, text: str, database: str = NAME, **variables: str) -> str:
    done = subprocess.run(
        command(port, database), input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=PATIENCE_S, check=False, env=environment(**variables),
    )  # fmt: skip
    return done.stdout


def made(port: int, name: str) -> None:
    run(port, f"DROP DATABASE IF EXISTS {name};\nCREATE DATABASE {name};\n", "postgres")


def session(port: int, folder: Path) -> list[str]:
    """Return what psql prints in the session, but for what is a server's own."""
    editor = folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/a \\* 2/a * 2 + 100/" "$1"\n')
    editor.chmod(0o755)
    made(port, NAME)
    try:
        text = SESSION.read_text().replace("FOLDER", str(folder))
        printed = run(port, text, PSQL_EDITOR=str(editor))
    finally:
        run(port, f"DROP DATABASE {NAME};\n", "postgres")
    for pattern, instead in LOOKS_DIFFERENT:
        printed = re.sub(pattern, instead, printed, flags=re.MULTILINE)
    return printed.replace(str(folder), "FOLDER").splitlines()


def test_a_session_reads_as_on_postgresql(server: ServerProcess, postgres: str, tmp_path: Path) -> None:
    printed = []
    for name, port in (("ours", server.port), ("theirs", port_of(postgres))):
        (tmp_path / name).mkdir()
        printed.append(session(port, tmp_path / name))
    ours, theirs = printed
    assert len(theirs) > 300
    assert ours == theirs


# --- a terminal -------------------------------------------------------------------------------------

SCHEMA = (
    """
CREATE SCHEMA tab_schema;
CREATE TYPE tab_mood AS ENUM ('sad', 'so-so', 'happy');
CREATE DOMAIN tab_positive AS int CHECK (VALUE > 0);
CREATE TABLE tab_sold (region text, month text, n int CONSTRAINT tab_sold_n CHECK (n > 0), PRIMARY KEY (region, month));
CREATE TABLE tab_sorted (id serial, "Odd name" text);
CREATE TABLE tab_schema.inner_one (a int, b int REFERENCES tab_schema.inner_one);
""".replace(" REFERENCES tab_schema.inner_one", "")
    + """
CREATE TABLE "tab Odd" (a int);
CREATE INDEX tab_sold_by_n ON tab_sold (n);
CREATE VIEW tab_view AS SELECT region FROM tab_sold;
CREATE MATERIALIZED VIEW tab_kept AS SELECT 1 AS one;
CREATE SEQUENCE tab_turns;
CREATE FUNCTION tab_doubled(a int) RETURNS int LANGUAGE sql AS 'SELECT a * 2';
"""
)
# A bar is where the line ends: behind a blank.
PROBES = (
    r"""
SELECT * FROM tab_so
SELECT * FROM tab_sol
SELECT * FROM tab_schema.
INSERT INTO tab_so
INSERT INTO tab_sold
UPDATE tab_so
UPDATE tab_sold SET |
DELETE FROM tab_
TABLE tab_v
TRUNCATE tab_
COPY tab_so
LOCK tab_
MERGE INTO tab_
ANALYZE tab_
VACUUM tab_
ALTER TABLE tab_
ALTER TABLE tab_sold |
ALTER TABLE tab_sold ALTER COLUMN |
ALTER TABLE tab_sold DROP CONSTRAINT |
ALTER TABLE tab_sold RENAME COLUMN |
ALTER TABLE tab_sold RENAME CONSTRAINT |
ALTER TABLE tab_sold CLUSTER ON |
ALTER INDEX tab_
ALTER SEQUENCE tab_
ALTER VIEW tab_
ALTER DOMAIN tab_
ALTER DOMAIN tab_positive DROP CONSTRAINT |
ALTER TYPE tab_
ALTER TYPE tab_mood RENAME VALUE |
ALTER FUNCTION tab_
CREATE INDEX tab_x ON tab_
CREATE INDEX tab_x ON tab_sold (
CREATE VIEW tab_w AS SELECT * FROM tab_v
CREATE TABLE tab_new (a tab_m
COMMENT ON TABLE tab_
COMMENT ON COLUMN tab_so
COMMENT ON CONSTRAINT tab_
DROP TABLE tab_
DROP VIEW tab_
DROP INDEX tab_
DROP MATERIALIZED VIEW tab_
DROP SEQUENCE tab_
DROP TYPE tab_
DROP DOMAIN tab_
DROP SCHEMA tab_
DROP FUNCTION tab_
DROP FUNCTION tab_doubled |
DROP DATABASE psql_
DROP ROLE psql_
GRANT SELECT ON tab_so
GRANT SELECT ON tab_sold TO psql_
GRANT psql_
REFRESH MATERIALIZED VIEW tab_
REINDEX INDEX tab_
SET search_path TO tab_
SET ROLE psql_
SET TimeZone TO Europe/Ber
SET enable_hasha
SHOW default_transaction_
RESET statement_t
SET default_transaction_isolation TO |
EXECUTE tab_
DEALLOCATE tab_
CLOSE tab_
FETCH FROM tab_
LISTEN tab_
\d tab_so
\d tab_schema.
\dv tab_
\di tab_
\ds tab_
\df tab_
\dn tab_
\dT tab_
\dD tab_
\du psql_
\l psql_
\c psql_
\sf tab_
\sv tab_
\ef tab_
\copy tab_so
\dconfig default_transaction_
""".replace("|", "")
    .strip("\n")
    .split("\n")
)
INPUTRC = """
set bell-style none
set show-all-if-ambiguous on
set completion-query-items 0
set page-completions off
set completion-display-width 0
set enable-bracketed-paste off
set colored-stats off
"""


class Terminal:
    """A psql that somebody types into."""

    def __init__(self, port: int, folder: Path, *words: str) -> None:
        """Start it; ``words``: more of its command line."""
        inputrc = folder / "inputrc"
        inputrc.write_text(INPUTRC)
        variables = environment(TERM="dumb", INPUTRC=str(inputrc), COLUMNS="200", LINES="100")
        master, terminal = pty.openpty()
        self._fd = master
        self._asked = 0
        self._process = subprocess.Popen(
            [*command(port), *words], stdin=terminal, stdout=terminal, stderr=terminal, env=variables,
            start_new_session=True,
        )  # fmt: skip
        os.close(terminal)

    def until(self, *patterns: str) -> str:
        """Return what it prints until one of the patterns (regular expressions) is met."""
        said = ""
        deadline = time.monotonic() + PATIENCE_S
        while not any(re.search(pattern, said, re.MULTILINE) for pattern in patterns):
            ready, _, _ = select.select([self._fd], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"nothing like {patterns} in {said!r}"
            said += os.read(self._fd, 65536).decode()
        return said

    def interrupt_until(self, pattern: str) -> None:
        """Press Ctrl-C, again where it came before the statement did, until ``pattern`` is met.

        Not before it has been silent for a second: psql prints at each, and one at the prompt comes between error and prompt.
        """
        said = ""
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(pattern, said, re.MULTILINE):
            assert time.monotonic() < deadline, said
            self._process.send_signal(signal.SIGINT)
            while not re.search(pattern, said, re.MULTILINE) and select.select([self._fd], [], [], 1)[0]:
                said += os.read(self._fd, 65536).decode()

    def send(self, text: str) -> None:
        """Type."""
        os.write(self._fd, text.encode())

    def offered(self, line: str) -> list[str]:
        """Return what Tab offers behind a line, where there are several continuations. The line stays in the history."""
        self._asked += 1
        self.send(f"{line}\t")
        self.send(f"\x01--\r\\echo done-{self._asked}\r")  # what has become of it is a comment
        said = self.until(rf"^done-{self._asked}\r?$").replace("\r", "").split("\n")
        rows = [row for row in said[1:] if not row.startswith(("done-", "\\echo", f"{NAME}="))]
        return sorted(word for row in rows for word in row.split())

    def history(self, file: Path) -> list[str]:
        """Return the comments that were entered, as the lines that they were."""
        self.send(f"\\s {file}\r\\echo written\r")
        self.until(r"^written\r?$")
        return [line.removeprefix("--") for line in file.read_text().splitlines() if line.startswith("--")]

    def close(self) -> None:
        """Leave it."""
        self.send("\x15\\q\r")
        self._process.wait(PATIENCE_S)
        os.close(self._fd)


def completions(port: int, folder: Path, probes: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    terminal = Terminal(port, folder)
    try:
        terminal.until("=# ")
        for statement in (
            "PREPARE tab_prepared AS SELECT 1;", "DECLARE tab_cursor CURSOR WITH HOLD FOR SELECT 1;", "LISTEN tab_channel;",
        ):  # fmt: skip
            terminal.send(f"{statement}\r")
            terminal.until(rf"^{statement.split()[0]}[A-Z ]*\r?$")
        offered = [terminal.offered(probe) for probe in probes]
        lines = terminal.history(folder / "history")
        return dict(zip(probes, zip(lines, offered, strict=True), strict=True))
    finally:
        terminal.close()


@pytest.mark.long
def test_tab_completes_as_on_postgresql(server: ServerProcess, postgres: str, tmp_path: Path) -> None:
    found = []
    for name, port in (("ours", server.port), ("theirs", port_of(postgres))):
        (tmp_path / name).mkdir()
        made(port, NAME)
        run(port, "DROP ROLE IF EXISTS psql_reader;\nCREATE ROLE psql_reader;\n", "postgres")
        try:
            run(port, SCHEMA)
            found.append(completions(port, tmp_path / name, PROBES))
        finally:
            run(port, f"DROP DATABASE {NAME};\nDROP ROLE psql_reader;\n", "postgres")
    ours, theirs = found
    assert theirs["SELECT * FROM tab_so"][1] == ["tab_sold", "tab_sorted", "tab_sorted_id_seq"]
    differing = {probe: (ours[probe], theirs[probe]) for probe in PROBES if ours[probe] != theirs[probe]}
    assert not differing


@pytest.mark.long
def test_passwords_are_asked_for_and_statements_interrupted(server: ServerProcess, tmp_path: Path) -> None:
    made(server.port, NAME)
    try:
        run(server.port, "CREATE ROLE psql_reader;\n")
        terminal = Terminal(server.port, tmp_path)
        terminal.until("=# ")
        terminal.send("\\password psql_reader\r")
        terminal.until("Enter new password")
        terminal.send("sesame\r")
        terminal.until("Enter it again")
        terminal.send("sesame\r")
        terminal.until("=# ")
        terminal.send("SELECT substr(rolpassword, 1, 13) FROM pg_authid WHERE rolname = 'psql_reader';\r")
        terminal.until(r"^ SCRAM-SHA-256\r?$")
        terminal.send("BEGIN;\rSELECT pg_sleep(1000);\r")
        terminal.until(r"^BEGIN\r?$")
        terminal.interrupt_until(r"^ERROR:  canceling statement due to user request\r?$[\s\S]*=!# ")
        terminal.close()
    finally:
        run(server.port, f"DROP DATABASE {NAME};\nDROP ROLE psql_reader;\n", "postgres")
