"""pgcli: its own executor and completer read the catalog, its special commands and a script by the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
from pgcli.completion_refresher import CompletionRefresher
from pgcli.pgcompleter import PGCompleter
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial
from prompt_toolkit.document import Document
from steps import ADDRESS, raised, run, same, step

EXECUTOR = PGExecute(ADDRESS.database, ADDRESS.user, "", ADDRESS.host, str(ADDRESS.port))
SPECIAL = PGSpecial()


def rows(text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for _, cursor, *_ in EXECUTOR.run(text, SPECIAL) for row in cursor or ()]


@step("statements and errors")
def statements() -> None:
    rows(
        "DROP SCHEMA IF EXISTS cli CASCADE; CREATE SCHEMA cli; CREATE TABLE cli.made (id int PRIMARY KEY, name text DEFAULT 'x')"
    )
    rows(
        "CREATE TABLE cli.child (id int REFERENCES cli.made); CREATE VIEW cli.seen AS SELECT name FROM cli.made"
    )
    same(rows("SELECT 1, 'x'"), [(1, "x")])
    same(EXECUTOR.get_timezone() != "", True)
    error = raised(psycopg.errors.UndefinedColumn, lambda: rows("SELECT nope"))
    same(error.diag.statement_position, "8")


@step("special commands")
def special() -> None:
    for command in (
        "\\l", "\\l+", "\\dn", "\\dn+", "\\dt cli.*", "\\dt+ cli.*", "\\dv cli.*", "\\di cli.*", "\\ds", "\\df now", "\\du", "\\dx", "\\db", "\\dT",
        "\\dD", "\\d cli.made", "\\d+ cli.made", "\\d cli.seen", "\\d+ cli.child", "\\dm", "\\dp", "\\sf now", "\\dE", "\\ddp",
    ):  # fmt: skip
        list(EXECUTOR.run(command, SPECIAL, exception_formatter=None))
    same([row[1] for row in rows("\\dt cli.*")], ["child", "made"])


@step("completion")
def completion() -> None:
    completer = PGCompleter(smart_completion=True, pgspecial=SPECIAL)
    done: list[PGCompleter] = []
    CompletionRefresher()._bg_refresh(EXECUTOR, SPECIAL, done.append, history=None, settings={})
    completer = done[0]

    def offered(text: str) -> set[str]:
        return {c.text for c in completer.get_completions(Document(text, len(text)), None)}

    assert {"made", "child", "seen"} <= offered("SELECT * FROM cli."), offered("SELECT * FROM cli.")
    assert {"id", "name"} <= offered("SELECT * FROM cli.made m WHERE m."), "columns"
    joins = offered("SELECT * FROM cli.child JOIN ")
    assert any(text.startswith("cli.made") and text.endswith("= child.id") for text in joins), (
        joins
    )  # by the foreign key


@step("command line")
def command_line() -> None:
    program = str(Path(sys.executable).with_name("pgcli"))
    done = subprocess.run(
        [program, "-h", ADDRESS.host, "-p", str(ADDRESS.port), "-U", ADDRESS.user, "-d", ADDRESS.database, "--list"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    same((done.returncode, "template1" in done.stdout), (0, True))


@step("drop")
def drop() -> None:
    rows("DROP SCHEMA cli CASCADE")


if __name__ == "__main__":
    run()
