"""How long tools wait for the catalog: ``python -m bench.browse --tables 100 | 5000``, beside PostgreSQL 15.

    schema app    t00000 <── t00001 <── t00002 ...    ten columns, identity, two keys, an index, a check, a default each;
                  v00000 ... over every tenth         comments on every fifth

What is asked: what the psql of this machine sends for its commands (``psql -E`` says it), and ``browse.sql``, which holds the statements of
JDBC, SQLAlchemy, asyncpg, DBeaver, pgAdmin and Metabase. Each is timed by libpq's client from sending to the last row received, over
``--rounds`` runs of both servers in turn; the rows stay as they came, so that no client in Python that decodes them is measured with the server.
The first run after DDL, for which the catalog's rows are made anew, stands by itself.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from psycopg import pq

from bench.peers import holdfast, postgres
from sqllogictest.client import Client, Target

COMMANDS = (
    r"\d", r"\dt app.*", r"\dt+ app.*", r"\di+ app.*", r"\dv app.*", r"\ds app.*", r"\d app.t00050", r"\d+ app.t00050",
    r"\d app.v00050", r"\dn+", r"\dp app.t0005*", r"\dT", r"\df", r"\du", r"\l+", r"\dd",
)  # fmt: skip
ONE_TRANSACTION = 500  # statements: PostgreSQL has room for so many locks
DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
SHOWN = "********* QUERY **********"


def schema(tables: int) -> Iterator[str]:
    """Yield the statements that make the schema."""
    yield "CREATE SCHEMA app"
    for i in range(tables):
        refers = f"REFERENCES app.t{i - 1:05d}" if i else ""
        yield (
            f"CREATE TABLE app.t{i:05d} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, parent bigint {refers}, "
            "code varchar(20) NOT NULL UNIQUE, name text, amount numeric(12,2) DEFAULT 0, made timestamptz DEFAULT now(), "
            "flag boolean NOT NULL DEFAULT false, data jsonb, tags text[], note text, CHECK (amount >= 0))"
        )
        yield f"CREATE INDEX ON app.t{i:05d} (name, made)"
        if i % 5 == 0:
            yield f"COMMENT ON TABLE app.t{i:05d} IS 'table number {i}'"
        if i % 10 == 0:
            yield f"CREATE VIEW app.v{i:05d} AS SELECT id, code, amount FROM app.t{i:05d} WHERE flag"


def make(client: Client, tables: int) -> float:
    """Make the schema; return the seconds it took."""
    started = time.perf_counter()
    client.run("BEGIN")
    for number, statement in enumerate(schema(tables), 1):
        client.run(statement)
        if number % ONE_TRANSACTION == 0:
            client.run("COMMIT")
            client.run("BEGIN")
    client.run("COMMIT")
    return time.perf_counter() - started


def asked_by_psql(url: str, command: str) -> list[str]:
    """Return the queries that psql sends for a backslash command."""
    done = subprocess.run(
        ["psql", "-X", "-E", "-A", "-d", url, "-c", command], capture_output=True, text=True, check=True
    )
    queries = done.stdout.split(SHOWN)[1:]
    return [query.split("**************************")[0].strip() for query in queries]


def asked_by_tools() -> dict[str, list[str]]:
    """Return the statements of ``browse.sql`` by what they are for."""
    text = Path(__file__).with_name("browse.sql").read_text()
    pieces = re.split(r"^-- (.+)\n", text, flags=re.MULTILINE)[1:]
    return {name: [sql.strip().rstrip(";")] for name, sql in zip(pieces[::2], pieces[1::2], strict=True)}


class Side:
    """One server: what is asked there, and how long it took, in milliseconds."""

    def __init__(self, url: str) -> None:
        self.client = pq.PGconn.connect(url.encode())
        if self.client.status != pq.ConnStatus.OK:
            raise ConnectionError(self.client.get_error_message())
        # psql puts oids into its queries, so each server has its own
        self.asked = {command: asked_by_psql(url, command) for command in COMMANDS} | asked_by_tools()
        self.times: dict[str, list[float]] = {name: [] for name in self.asked}
        self.first: dict[str, float] = {}

    def run(self, sql: str) -> None:
        """Run one statement by the simple protocol, its rows unread; raises RuntimeError where it fails."""
        result = self.client.exec_(sql.encode())
        if result.status not in DONE:
            raise RuntimeError(f"{sql}: {result.get_error_message()}")

    def ask(self, name: str) -> float:
        """Ask for one thing; return how long it took, in milliseconds."""
        started = time.perf_counter()
        for query in self.asked[name]:
            self.run(query)
        return (time.perf_counter() - started) * 1000


def main() -> None:
    """Run as the prologue says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=100, help="more than 50 (default 100)")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each (default 9)")
    parser.add_argument(
        "--on", nargs=2, metavar="URL", help="servers that have the schema already: Holdfast, PostgreSQL"
    )
    options = parser.parse_args()
    if options.on:
        ask_both(*options.on, options.rounds)
        return
    with holdfast("--spark-start", "off") as ours, postgres() as theirs:
        make_both(ours.url, theirs, options.tables)
        ask_both(ours.url, theirs, options.rounds)


def make_both(ours: str, theirs: str, tables: int) -> None:
    """Make the schema on both."""
    for name, url in (("Holdfast", ours), ("PostgreSQL", theirs)):
        client = Client(Target.from_url(url), timeout_s=3600)
        print(f"{name}: {tables} tables made in {make(client, tables):.1f} s", flush=True)
        if name == "PostgreSQL":
            client.run("VACUUM ANALYZE")
        client.close()


def ask_both(ours: str, theirs: str, rounds: int) -> None:
    """Ask both, and print a table."""
    sides = [Side(ours), Side(theirs)]
    for side in sides:
        for name in side.asked:
            side.run("COMMENT ON TABLE app.t00000 IS 'another text'")
            side.first[name] = side.ask(name)
    for _ in range(rounds):
        for side in sides:
            for name in side.asked:
                side.times[name].append(side.ask(name))
    report(*sides)


def report(ours: Side, theirs: Side) -> None:
    """Print medians and the first time after DDL, in milliseconds."""
    print(
        "\n| what is asked | Holdfast | after DDL | PostgreSQL 15 | after DDL |\n| --- | --- | --- | --- | --- |"
    )
    for name in ours.asked:
        cells = [
            f"{figure:.1f}"
            for side in (ours, theirs)
            for figure in (statistics.median(side.times[name]), side.first[name])
        ]
        shown = f"`{name}`" if name.startswith("\\") else name
        print(f"| {shown} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
