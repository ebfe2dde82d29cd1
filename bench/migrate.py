"""How long installations and migrations of applications take: ``python -m bench.migrate --tables 500``, beside PostgreSQL 15.

    for each table, as frameworks that install module by module do:
      is it there?          information_schema.tables
      CREATE TABLE
      six times             its columns, then ALTER TABLE ADD COLUMN
      three times           its constraints, then ALTER TABLE ADD CONSTRAINT: foreign key, unique, check
      twice                 its indexes (pg_indexes; pg_index with pg_class), then CREATE INDEX
      COMMENT on it and on a column
      what the application keeps of it: rows of two tables written, read and changed
    for every tenth         all tables of the schema, as tools list them before they begin

All in one transaction, then all again with each statement a transaction by itself. Both servers run each statement in turn, timed by
libpq's client from sending to the last row received. What is printed is the mean of a kind of statement over the first and
over the last fifth of the tables, so that what grows with their number is seen.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator

from psycopg import pq

from bench.peers import holdfast, postgres

DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
LOCKS = "max_locks_per_transaction=1024"
COLUMNS = ("integer", "varchar", "numeric", "timestamp(0)", "boolean DEFAULT false", "text")

IS_THERE = "SELECT 1 FROM information_schema.tables WHERE table_name = '{t}' AND table_schema = 'app'"
ITS_COLUMNS = (
    "SELECT column_name, udt_name, is_nullable, character_maximum_length, column_default "
    "FROM information_schema.columns WHERE table_name = '{t}' AND table_schema = 'app'"
)
ITS_CONSTRAINTS = (
    "SELECT constraint_name, constraint_type FROM information_schema.table_constraints "
    "WHERE table_name = '{t}' AND table_schema = 'app'"
)
ITS_INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'app' AND tablename = '{t}'"
INDEXES_BY_OID = (
    "SELECT i.relname, x.indisunique FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid "
    "JOIN pg_class c ON c.oid = x.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'app' AND c.relname = '{t}'"
)
ALL_TABLES = (
    "SELECT c.relname, c.relkind, obj_description(c.oid, 'pg_class') FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_table_is_visible(c.oid)"
)


def beginning() -> Iterator[str]:
    """Yield what is there before the first table."""
    yield "DROP SCHEMA IF EXISTS app CASCADE"
    yield "CREATE SCHEMA app"
    yield "SET search_path = app"
    yield "CREATE TABLE models (id serial PRIMARY KEY, name varchar NOT NULL UNIQUE, info text)"
    yield "CREATE TABLE fields (id serial PRIMARY KEY, model int NOT NULL REFERENCES models, name varchar NOT NULL, changed timestamptz)"
    yield "CREATE INDEX ON fields (model)"


def of_table(number: int) -> Iterator[tuple[str, str]]:
    """Yield what is sent for one table: what it is called in the report, and the statement."""
    t, before = f"t{number:05d}", f"t{max(number - 1, 0):05d}"
    yield "is it there?", IS_THERE.format(t=t)
    yield "CREATE TABLE", f"CREATE TABLE {t} (id serial PRIMARY KEY, name varchar NOT NULL, parent integer)"
    for position, type_ in enumerate(COLUMNS):
        yield "its columns", ITS_COLUMNS.format(t=t)
        yield "ADD COLUMN", f"ALTER TABLE {t} ADD COLUMN c{position} {type_}"
    for kind, constraint in (
        ("ADD FOREIGN KEY", f"FOREIGN KEY (parent) REFERENCES {before} ON DELETE CASCADE"),
        ("ADD UNIQUE", "UNIQUE (name)"),
        ("ADD CHECK", "CHECK (c2 >= 0)"),
    ):
        yield "its constraints", ITS_CONSTRAINTS.format(t=t)
        yield kind, f"ALTER TABLE {t} ADD CONSTRAINT {t}_{kind[4:7].strip().lower()} {constraint}"
    for look, column in ((ITS_INDEXES, "c0"), (INDEXES_BY_OID, "c3")):
        yield "its indexes", look.format(t=t)
        yield "CREATE INDEX", f"CREATE INDEX {t}_{column} ON {t} ({column})"
    yield "COMMENT", f"COMMENT ON TABLE {t} IS 'table number {number}'"
    yield "COMMENT", f"COMMENT ON COLUMN {t}.name IS 'what {number} is called'"
    yield (
        "INSERT of a row",
        f"INSERT INTO models (name, info) VALUES ('{t}', 'table number {number}') RETURNING id",
    )
    for position in range(len(COLUMNS)):
        yield (
            "row read by a join",
            f"SELECT f.id FROM fields f JOIN models m ON m.id = f.model WHERE m.name = '{t}' AND f.name = 'c{position}'",
        )
        yield (
            "INSERT of a row",
            f"INSERT INTO fields (model, name) SELECT id, 'c{position}' FROM models WHERE name = '{t}'",
        )
        yield (
            "UPDATE of a row",
            f"UPDATE fields SET changed = now() WHERE model = {number + 1} AND name = 'c{position}'",
        )
    if number % 10 == 0:
        yield "all tables", ALL_TABLES


class Side:
    """One server, and how long each kind of statement took, by a fifth of the tables, in milliseconds."""

    def __init__(self, url: str) -> None:
        self.client = pq.PGconn.connect(url.encode())
        if self.client.status != pq.ConnStatus.OK:
            raise ConnectionError(self.client.get_error_message())
        self.client.exec_(b"SET client_min_messages = error")
        self.times: dict[tuple[str, int], list[float]] = defaultdict(list)
        self.total_s = 0.0

    def run(self, sql: str) -> float:
        """Run one statement by the simple protocol; return how long it took, in milliseconds. Raises RuntimeError where it fails."""
        started = time.perf_counter()
        result = self.client.exec_(sql.encode())
        took = time.perf_counter() - started
        if result.status not in DONE:
            raise RuntimeError(f"{sql}: {result.get_error_message()}")
        self.total_s += took
        return took * 1000

    def mean(self, kind: str, fifth: int) -> float:
        """Return the mean of a kind of statement over a fifth of the tables."""
        found = self.times[kind, fifth]
        return sum(found) / len(found)


def migrate(sides: tuple[Side, Side], tables: int, *, together: bool) -> None:
    """Make the tables on both. ``together``: in one transaction."""
    for side in sides:
        side.times.clear()
        for sql in beginning():
            side.run(sql)
        side.total_s = 0.0
        if together:
            side.run("BEGIN")
    for number in range(tables):
        for kind, sql in of_table(number):
            for side in sides:
                side.times[kind, number * 5 // tables].append(side.run(sql))
    if together:
        for side in sides:
            side.times["COMMIT", 0].append(side.run("COMMIT"))
    report(sides, tables, together=together)


def report(sides: tuple[Side, Side], tables: int, *, together: bool) -> None:
    """Print the means of each kind, and the sums."""
    how = "one transaction" if together else "a transaction for each statement"
    print(f"\n{tables} tables, {how}; ms a statement in the first and in the last fifth\n")
    print("| | Holdfast, first | last | PostgreSQL 15, first | last |\n| --- | --- | --- | --- | --- |")
    for kind in dict.fromkeys(kind for kind, _fifth in sides[0].times):
        fifths = (0,) if kind == "COMMIT" else (0, 4)
        cells = [f"{side.mean(kind, fifth):.2f}" for side in sides for fifth in fifths]
        if kind == "COMMIT":
            cells = [cells[0], "", cells[1], ""]
        print(f"| {kind} | {' | '.join(cells)} |")
    ours, theirs = (side.total_s for side in sides)
    print(f"| **all, s** | **{ours:.1f}** | | **{theirs:.1f}** | |")
    print(f"\nHoldfast / PostgreSQL: {ours / theirs:.2f}", flush=True)


def main() -> None:
    """Run as the prologue says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=500, help="a multiple of 50 (default 500)")
    parser.add_argument(
        "--on",
        nargs=2,
        metavar="URL",
        help="databases to make them in, Holdfast's and PostgreSQL's: a schema app that is there is DROPPED",
    )
    options = parser.parse_args()
    if options.on:
        both(*options.on, options.tables)
        return
    with holdfast("--spark-start", "off") as ours, postgres(LOCKS) as theirs:
        both(ours.url, theirs, options.tables)


def both(ours: str, theirs: str, tables: int) -> None:
    """Make the tables in one transaction, then in many."""
    sides = Side(ours), Side(theirs)
    for together in (True, False):
        migrate(sides, tables, together=together)


if __name__ == "__main__":
    main()
