"""Random PL/pgSQL functions beside PostgreSQL 15: result, error and notices with all their fields, and what the tables hold afterwards.

``HOLDFAST_DIFF=20000`` asks that many, ``HOLDFAST_SEEDS=1-4`` so many of each seed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from tests.differential.generated_plpgsql import SCHEMA, TABLES, Program, Programs
from tests.differential.test_generated import seeds_of
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

COUNT = int(os.environ.get("HOLDFAST_DIFF", "40"))
SEEDS = seeds_of(os.environ.get("HOLDFAST_SEEDS", "1"))
EVERY = 250
Field = psycopg.pq.DiagnosticField
FIELDS = (
    Field.SEVERITY, Field.SQLSTATE, Field.MESSAGE_PRIMARY, Field.MESSAGE_DETAIL, Field.MESSAGE_HINT, Field.COLUMN_NAME, Field.TABLE_NAME,
    Field.SCHEMA_NAME, Field.CONSTRAINT_NAME, Field.DATATYPE_NAME, Field.CONTEXT,
)  # fmt: skip
UNNAMED = re.compile(r"<unnamed portal \d+>")
"""PostgreSQL counts them as long as a session lasts."""
REFUSED = "is not supported"
NO_TEXT = "failed to find conversion function from unknown to text"
LINE = re.compile(
    r" line \d+ (?=at|during)|(SQL expression|PL/pgSQL assignment) \".*?\"\\\\n(?=PL/pgSQL function)"
)
Fields = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a statement ended: the error, "" for none, its notices, names of columns and rows."""

    error: Fields = ()
    notices: tuple[Fields, ...] = ()
    names: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()

    @property
    def state(self) -> str:
        """SQLSTATE."""
        return self.error[1] if self.error else ""


class Side:
    """A connection that tells how statements end."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.notices: list[Fields] = []
        connection.pgconn.notice_handler = self._noticed

    def _noticed(self, result: psycopg.pq.abc.PGresult) -> None:
        self.notices.append(_fields(result))

    def ask(self, sql: str) -> Ended:
        """Run a statement."""
        self.notices = []
        done = self.connection.pgconn.exec_(sql.encode())
        notices = tuple(self.notices)
        if done.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            return Ended(error=_fields(done), notices=notices)
        values = [[done.get_value(r, c) for c in range(done.nfields)] for r in range(done.ntuples)]
        return Ended(
            notices=notices,
            names=tuple((done.fname(c) or b"").decode() for c in range(done.nfields)),
            rows=tuple(tuple(None if v is None else v.decode() for v in row) for row in values),
        )

    def run(self, program: Program) -> list[Ended]:
        """Define and call a function, read the tables, and undo it all."""
        self.connection.pgconn.exec_(b"BEGIN")
        ends = [self.ask(program.definition)]
        if not ends[0].error:
            self.connection.pgconn.exec_(b"SAVEPOINT called")
            ends.append(self.ask(program.call))
            if ends[1].error:
                self.connection.pgconn.exec_(b"ROLLBACK TO called")
            ends += [self.ask(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]
        self.connection.pgconn.exec_(b"ROLLBACK")
        return ends


def _fields(result: psycopg.pq.abc.PGresult) -> Fields:
    found = [result.error_field(code) or b"" for code in FIELDS]
    return tuple(UNNAMED.sub("<unnamed portal>", value.decode()) for value in found)


REASONS = ("refused", "no text of an unknown", "lines of CONTEXT")


def explained(ours: list[Ended], theirs: list[Ended]) -> str:
    """Return why a function may do something else, "" where nothing explains it.

    What PostgreSQL computes while it plans has another CONTEXT (docs/sql.md). It has no conversion from unknown, the type of fields that were made of literals, and says so as an internal error; after an error
    in DECLARE it tells that variable's line of all that follows.
    """
    if any(REFUSED in repr(end) for end in ours):
        return REASONS[0]
    if any(NO_TEXT in repr(end) for end in theirs):
        return REASONS[1]
    return REASONS[2] if LINE.sub("", repr(ours)) == LINE.sub("", repr(theirs)) else ""


@contextmanager
def sides(server: ServerProcess, postgres: str) -> Iterator[tuple[Side, Side]]:
    """Connect to both servers, with tables and types in a schema of their own."""
    ours_at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with (
        psycopg.connect(ours_at, autocommit=True) as ours,
        psycopg.connect(postgres, autocommit=True) as theirs,
    ):
        for connection in (ours, theirs):
            connection.execute("DROP SCHEMA IF EXISTS gp CASCADE")
            connection.execute("CREATE SCHEMA gp")
            connection.execute("SET search_path = gp")
            connection.execute(SCHEMA)
            connection.execute("SET statement_timeout = '20s'")
        try:
            yield Side(ours), Side(theirs)
        finally:
            for connection in (ours, theirs):
                connection.execute("DROP SCHEMA gp CASCADE")


@pytest.mark.timeout(0 if COUNT > 500 else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_functions_do_the_same(seed: int, postgres: str, server: ServerProcess) -> None:
    programs = Programs(seed)
    ends: Counter[str] = Counter()
    differences: list[str] = []
    with sides(server, postgres) as (ours, theirs):
        for number in range(COUNT):
            program = programs.program()
            mine, other = ours.run(program), theirs.run(program)
            end = next((e.state for e in other if e.error), "equal")
            if mine == other:
                ends[end] += 1
            elif reason := explained(mine, other):
                ends[reason] += 1
            else:
                parts = [f"  ours   {m}\n  theirs {o}" for m, o in zip(mine, other, strict=False) if m != o]
                differences.append(
                    "\n".join([f"{number}: {program.definition}", program.call, *parts])[:9000]
                )
            if COUNT >= EVERY and (number + 1) % EVERY == 0:
                print(f"{number + 1} of {COUNT}: {dict(ends)}, {len(differences)} different", flush=True)
    print(f"seed {seed}: {dict(ends)}")
    assert not differences, f"{len(differences)} of {COUNT}\n" + "\n\n".join(differences[:10])
    assert ends["equal"] > COUNT // 6, (
        ends
    )  # errors, which most end in, come behind notices of what went well
    assert sum(ends[reason] for reason in REASONS) <= COUNT // 10, ends


def test_a_seed_gives_the_same_functions() -> None:
    one, two = Programs(7), Programs(7)
    assert [one.program() for _ in range(50)] == [two.program() for _ in range(50)]
