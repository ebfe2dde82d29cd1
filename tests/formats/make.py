"""Make a stored data directory in some commit's format, with the answers that it has to give from then on.

    git worktree add --detach /tmp/old COMMIT
    python tests/formats/make.py /tmp/old NAME

runs that checkout's server and writes ``NAME.tar.xz`` (the directory as a killed server leaves it) and ``NAME.json`` (what that server
answers after a restart) beside this script. Rows lie in parts (before a CHECKPOINT), have ended since (between two), and are in
the log alone (written last). A subscription has confirmed what came before. What the commit's server does not know is left out, and
listed as ``refused``: so one script serves all formats.

The answers are those of a server that keeps no history by itself (a retention of 0), as any server will find the directory years
later: moments are readable from the subscription's position on, because that is held.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any, Final, TypeAlias

import psycopg

RETENTION: Final = 10_000_000
"""Seconds of history while the directory is made."""

OBJECTS: Final = [
    "CREATE ROLE reader LOGIN",
    "CREATE ROLE writer NOLOGIN",
    "GRANT reader TO writer",
    "CREATE SCHEMA app",
    "CREATE TYPE mood AS ENUM ('sad', 'calm', 'glad')",
    "CREATE TYPE place AS (name text, at point, marks int[])",
    "CREATE TYPE pair AS (key text, numbers int[], price numeric(12,4))",
    "CREATE DOMAIN grade AS int CHECK (VALUE BETWEEN 1 AND 6)",
    "CREATE SEQUENCE app.ticket START 100 INCREMENT 7",
    "CREATE TABLE numbers (id int PRIMARY KEY, i2 smallint, i8 bigint, f4 real, f8 float8, n numeric, p numeric(20,6),"
    " b boolean)",
    'CREATE TABLE texts (id int PRIMARY KEY, t text, c text COLLATE "C", v varchar(20), k char(5), y bytea, u uuid)',
    "CREATE TABLE times (id int PRIMARY KEY, d date, t time, z timestamptz, l timestamp, i interval)",
    "CREATE TABLE nested (id int PRIMARY KEY, j jsonb, a int[], aa text[][], m mood, ms mood[], pr pair, prs pair[],"
    " g grade, r int4range, tr tstzrange)",
    "CREATE TABLE numeric_arrays (id int PRIMARY KEY, n numeric[], ts timestamptz[], js jsonb[])",
    "CREATE TABLE app.ledger (id bigint PRIMARY KEY DEFAULT nextval('app.ticket'), who text NOT NULL, amount numeric(14,2)"
    " CHECK (amount <> 0), at timestamptz DEFAULT '2026-01-01 00:00+00')",
    "CREATE TABLE kept (id int PRIMARY KEY, label text)",
    "CREATE TABLE child (id int PRIMARY KEY, kept_id int REFERENCES kept ON DELETE CASCADE)",
    "CREATE TABLE measured (day date NOT NULL, v int) PARTITION BY RANGE (day)",
    "CREATE TABLE measured_old PARTITION OF measured FOR VALUES FROM ('2020-01-01') TO ('2025-01-01')",
    "CREATE TABLE measured_new PARTITION OF measured FOR VALUES FROM ('2025-01-01') TO ('2030-01-01')",
    "CREATE TABLE bounded (id int PRIMARY KEY, a int[], t text[], p pair)",
    "CREATE TABLE exact_numbers (id int PRIMARY KEY, p numeric(8,2), n numeric, b numeric(50,3), pa numeric(8,2)[], na numeric[])",
    "CREATE TABLE versions (id int PRIMARY KEY, v int)",
    "CREATE TABLE loaded (id int PRIMARY KEY)",
    "CREATE INDEX exact_numbers_n ON exact_numbers (n)",
    "CREATE INDEX exact_numbers_p ON exact_numbers (p, id)",
    "CREATE INDEX exact_numbers_na ON exact_numbers USING gin (na)",
    "CREATE INDEX texts_lower ON texts (lower(t))",
    "CREATE INDEX numbers_some ON numbers (i8) WHERE b",
    "CREATE UNIQUE INDEX times_z ON times (z)",
    "CREATE INDEX nested_j ON nested USING gin (j)",
    "CREATE INDEX nested_a ON nested USING gin (a)",
    "CREATE INDEX ledger_who ON app.ledger (who, amount DESC)",
    "CREATE VIEW app.sums AS SELECT who, sum(amount) AS total FROM app.ledger GROUP BY who",
    "CREATE MATERIALIZED VIEW app.first AS SELECT 1 AS one, 'a'::text AS t",
    "CREATE FUNCTION app.twice(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x * 2'",
    "CREATE FUNCTION app.steps(n int) RETURNS int LANGUAGE plpgsql AS $$DECLARE s int := 0;"
    " BEGIN FOR k IN 1..n LOOP s := s + k; END LOOP; RETURN s; END$$",
    "COMMENT ON TABLE kept IS 'what is kept'",
    "GRANT SELECT ON kept, app.ledger TO reader",
    "GRANT USAGE ON SCHEMA app TO reader",
    "GRANT INSERT (id, label) ON kept TO writer",
    "SELECT lo_from_bytea(4711, decode(repeat('00ff10', 300), 'hex'))",
]

IN_PARTS: Final = [
    "INSERT INTO numbers SELECT g, g, g * 10000000000::bigint, g / 4.0, g / 3.0, g * 1.10, g / 7.0, g % 2 = 0"
    " FROM generate_series(1, 40) g",
    "INSERT INTO numbers VALUES (101, NULL, NULL, 'NaN', 'Infinity', 'NaN', NULL, NULL),"
    " (102, -32768, -9223372036854775808, '-0', '-Infinity', 1e-30, -99999999999999.999999, true),"
    " (103, 32767, 9223372036854775807, 1e38, 5e-324, 12345678901234567890123456789012.5, 0, false)",
    "INSERT INTO texts SELECT g, 'Text ' || g, chr(64 + g), 'v' || g, 'k', decode(lpad(to_hex(g), 4, '0'), 'hex'),"
    " ('00000000-0000-4000-8000-' || lpad(g::text, 12, '0'))::uuid FROM generate_series(1, 30) g",
    "INSERT INTO texts VALUES (101, '', NULL, '', '', '', NULL), (102, E'a\\tb\\nÄ€𝄞', 'é', 'x', 'y', '\\x00ff', NULL)",
    "INSERT INTO times VALUES (1, '2026-02-28', '23:59:59.999999', '2026-03-29 01:30+01', '1999-12-31 23:59:59', '1 mon 2 days 03:04:05.678'),"
    " (2, 'infinity', '00:00', '-infinity', 'infinity', '-1 year'), (3, '0044-03-15 BC', '24:00', '0044-03-15 12:00+00 BC', NULL, '0')",
    """INSERT INTO nested VALUES
    (1, '{"a": [1, 2.50, null, true], "b": {"c": "d"}}', '{1,2,NULL}', '{{a,b},{c,NULL}}', 'glad', '{sad,glad}',
     ROW('k', '{1,2}', 1.5), ARRAY[ROW('x', '{3}', 2)::pair, NULL], 3, '[1,10)', '[2026-01-01,2026-02-01)'),
    (2, 'null', '{}', '{}', 'sad', '{}', ROW(NULL, NULL, NULL), '{}', 1, 'empty', '(,)'),
    (3, '"text"', '{{1,2},{3,4}}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
    "INSERT INTO numeric_arrays VALUES (1, '{1.50,NaN,NULL}', '{2026-01-01 00:00+00,infinity}', ARRAY['{\"a\": 1}'::jsonb, NULL]),"
    " (2, '{{1e30,2},{3,4}}', '{}', '{}')",
    "INSERT INTO app.ledger (who, amount) SELECT 'p' || g % 3, g * 1.25 FROM generate_series(1, 20) g",
    "INSERT INTO kept SELECT g, 'label ' || g FROM generate_series(1, 12) g",
    "INSERT INTO kept SELECT g, 'label ' || g FROM generate_series(13, 25) g",
    "INSERT INTO child SELECT g, g FROM generate_series(1, 10) g",
    "INSERT INTO measured VALUES ('2021-05-05', 1), ('2026-05-05', 2), ('2029-12-31', NULL)",
    "INSERT INTO bounded VALUES (1, '[0:2]={1,2,3}', '[-1:0][2:3]={{a,b},{c,NULL}}', ROW('k', '[5:6]={1,2}', 1))",
    "INSERT INTO bounded VALUES (2, '{1,2}', '{a}', ROW('k', '{1,2}', 1))",
    "INSERT INTO exact_numbers VALUES (1, 'NaN', 1e60, 'NaN', '{NaN,1.5,NULL}', '{{1e50,NaN},{1,NULL}}'),"
    " (2, 1.25, 0.1234567890123456789012345678901234567890123456789, 12345678901234567890123456789012345678901234.5, '{2}', '{}'),"
    " (3, NULL, 'Infinity', NULL, NULL, NULL), (4, -2, -1e-40, -1, '{}', '{-Infinity,1e-60}')",
    "INSERT INTO versions SELECT g, 0 FROM generate_series(1, 5) g RETURNING xmin",
    "INSERT INTO versions SELECT g, 0 FROM generate_series(6, 9) g",
    "BEGIN; INSERT INTO loaded SELECT generate_series(1, 60000); SELECT xmin FROM loaded WHERE id = 1; COMMIT",
]

ENDED: Final = [
    "UPDATE kept SET label = 'new ' || label WHERE id % 5 = 0",
    "DELETE FROM kept WHERE id IN (3, 4)",
    "UPDATE numbers SET n = n + 0.01 WHERE id <= 5",
    "DELETE FROM texts WHERE id BETWEEN 10 AND 12",
    "UPDATE nested SET j = j || '{\"z\": 0}' WHERE id = 1",
    "DELETE FROM app.ledger WHERE who = 'p2' AND amount > 20",
    "UPDATE exact_numbers SET p = 'NaN', n = n - 1e60 WHERE id = 4",
    "UPDATE versions SET v = 1 WHERE id = 1 RETURNING xmin",
    "UPDATE versions SET v = 1 WHERE id = 6",
]

IN_THE_LOG: Final = [
    "INSERT INTO kept VALUES (201, 'in the log'), (202, NULL)",
    "INSERT INTO numbers VALUES (201, 1, 2, 3.5, 4.5, 5.500, 6, true)",
    "INSERT INTO nested VALUES (201, '[1, {\"n\": 1.10}]', '{7}', '{{x},{y}}', 'calm', '{calm}', ROW('log', '{9}', 0.1),"
    " ARRAY[ROW('y', '{4}', 3)::pair], 6, '[5,)', NULL)",
    "INSERT INTO numeric_arrays VALUES (201, '{0.10}', '{1970-01-01 00:00+00}', '{1}')",
    "INSERT INTO times VALUES (201, '1970-01-01', '12:00', '1970-01-01 00:00+00', '1970-01-01', '1 day')",
    "INSERT INTO app.ledger (who, amount) VALUES ('late', 0.01)",
    "UPDATE kept SET label = 'again' WHERE id = 5",
    "CREATE TABLE late (id int, t text)",
    "INSERT INTO late VALUES (1, 'made after the checkpoint')",
    "INSERT INTO bounded VALUES (201, '[3:4]={7,8}', NULL, ROW('k', '[-2:-1]={1,2}', 1))",
    "ALTER TABLE late ADD COLUMN more numeric DEFAULT 1.50",
    "INSERT INTO exact_numbers VALUES (201, 'NaN', repeat('9', 5000)::numeric, 1e40, '[3:4]={NaN,1}', '{1e50}')",
    "ALTER TABLE exact_numbers ADD COLUMN odd numeric(5,2) DEFAULT 'NaN'",
    "INSERT INTO versions VALUES (201, 0) RETURNING xmin",
    "UPDATE versions SET v = 2 WHERE id IN (2, 7) RETURNING xmin",
    "UPDATE versions SET v = 2 WHERE id = 3",
]

TABLES: Final = (
    "numbers", "texts", "times", "nested", "numeric_arrays", "app.ledger", "kept", "child", "measured", "bounded",
    "exact_numbers", "versions",
)  # fmt: skip

QUESTIONS: Final = [
    *(f"SELECT * FROM {table} ORDER BY 1" for table in (*TABLES, "late")),
    "SELECT id FROM texts WHERE lower(t) = 'text 7'",
    "SELECT id FROM numbers WHERE b AND i8 > 300000000000 ORDER BY i8",
    "SELECT id FROM nested WHERE j @> '{\"a\": [1]}' ORDER BY id",
    "SELECT id FROM nested WHERE a @> '{7}' ORDER BY id",
    "SELECT id FROM exact_numbers WHERE n >= 1e60 ORDER BY n, id",
    "SELECT id FROM exact_numbers WHERE p = 'NaN' ORDER BY id",
    "SELECT id FROM exact_numbers WHERE na @> '{1e50}' ORDER BY id",
    "SELECT id, xmin FROM versions ORDER BY id",
    "SELECT count(*), min(xmin::text), max(xmin::text) FROM loaded",
    "SELECT * FROM app.sums ORDER BY who",
    "SELECT * FROM app.first",
    "SELECT app.twice(21), app.steps(10)",
    "SELECT last_value > 100 FROM app.ticket",
    "SELECT md5(lo_get(4711))",
    'SELECT c FROM texts ORDER BY c COLLATE "C", id',
    "SELECT obj_description('kept'::regclass)",
    "SELECT has_table_privilege('reader', 'kept', 'SELECT'), has_table_privilege('reader', 'kept', 'INSERT'),"
    " has_column_privilege('writer', 'kept', 'label', 'INSERT'), pg_has_role('writer', 'reader', 'MEMBER')",
    "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index"
    " WHERE indrelid >= 16384 ORDER BY 1",
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid >= 16384 ORDER BY 1",
]

Rows: TypeAlias = list[list[str | None]]


def as_of(table: str, moment: int) -> str:
    """Return the query of a table's rows at a moment."""
    return f"SELECT * FROM {table} AS OF SYSTEM TIME {moment} ORDER BY 1"


def connect(port: int) -> psycopg.Connection[Any]:
    """Connect as the superuser."""
    connection = psycopg.connect(
        host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True, connect_timeout=20
    )
    rows_of(connection, "SET TimeZone = 'UTC'")
    return connection


def rows_of(connection: psycopg.Connection[Any], query: str) -> Rows:
    """Return the rows of ``query`` as the server writes them. Raises psycopg.DatabaseError."""
    result = connection.pgconn.exec_(query.encode())
    if result.error_message:
        raise psycopg.DatabaseError(result.error_message.decode())
    values = [
        [result.get_value(row, field) for field in range(result.nfields)] for row in range(result.ntuples)
    ]
    return [[None if value is None else value.decode() for value in row] for row in values]


def events(connection: psycopg.Connection[Any]) -> Rows:
    """Return what the subscription has yet to deliver, and confirm nothing."""
    rows_of(connection, "BEGIN")
    try:
        rows_of(connection, "DECLARE f CURSOR FOR SUBSCRIBE SUBSCRIPTION feed WITH (progress)")
        return rows_of(connection, "FETCH 10000 FROM f WITH (timeout = '1 s')")
    finally:
        rows_of(connection, "ROLLBACK")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Maker:
    """A checkout's server on a new data directory, and what it did not know."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        """``folder``: for the directory and the server's output."""
        self.checkout = checkout
        self.data = folder / "data"
        self.data.mkdir(mode=0o700)
        self.output = folder / "output"
        self.refused: dict[str, str] = {}

    def start(self, retention: int) -> None:
        """Start the server and connect; ``retention``: seconds of history. Raises psycopg.OperationalError."""
        port = _free_port()
        known = '"history_retention"' in (self.checkout / "engine/base/config.py").read_text()
        words = [
            "serve", "--port", str(port), "--data-dir", str(self.data),
            "--history-retention" if known else "--retention-s", str(retention),
        ]  # fmt: skip
        with self.output.open("ab") as output:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "engine", *words],
                cwd=self.checkout,
                env={**os.environ, "PYTHONPATH": str(self.checkout)},
                stdout=output,
                stderr=output,
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.connection = connect(port)
                return
            except psycopg.OperationalError:
                if self.server.poll() is not None or time.monotonic() > deadline:
                    self.server.kill()
                    print(self.output.read_text(), file=sys.stderr)
                    raise
                time.sleep(0.1)

    def kill(self) -> None:
        """End the server as a crash would."""
        self.connection.close()
        self.server.kill()
        self.server.wait()

    def run(self, *statements: str) -> None:
        """Execute each by itself."""
        for statement in statements:
            try:
                rows_of(self.connection, statement)
            except psycopg.DatabaseError as error:
                self.refused[statement] = str(error).partition("\n")[0]

    def moment(self) -> int | None:
        """Commit something and return its timestamp, None if the server does not tell."""
        self.run("INSERT INTO moment VALUES (1)")
        found = self.answers("SHOW holdfast.commit_ts")
        return int(found[0][0] or 0) if found else None

    def answers(self, question: str) -> Rows | None:
        """Return the rows, None if the server cannot answer."""
        try:
            return rows_of(self.connection, question)
        except psycopg.DatabaseError:
            return None

    def events(self) -> Rows:
        """Return what the subscription has yet to deliver, nothing if there is none."""
        try:
            return events(self.connection)
        except psycopg.DatabaseError as error:
            self.refused["SUBSCRIBE"] = str(error).partition("\n")[0]
            return []

    def fill(self) -> dict[str, int | None]:
        """Make the objects and the rows, and return moments between them."""
        self.run("CREATE TABLE moment (a int)", *OBJECTS, "CREATE SUBSCRIPTION feed FOR kept", *IN_PARTS)
        moments = {"before the checkpoint": self.moment()}
        progress = [row[0] for row in self.events() if row[1] == "t"]
        if progress:
            self.run(f"ALTER SUBSCRIPTION feed ACKNOWLEDGE {progress[len(progress) // 2]}")
        self.run("CHECKPOINT")
        moments["after the checkpoint"] = self.moment()
        self.run(*ENDED)
        moments["after rows have ended"] = self.moment()
        self.run("CHECKPOINT")
        moments["after the second checkpoint"] = self.moment()
        self.run(*IN_THE_LOG)
        moments["at the end"] = self.moment()
        return moments

    def expected(self, moments: dict[str, int | None]) -> dict[str, Any]:
        """Return what the server answers."""
        today = {question: self.answers(question) for question in QUESTIONS}
        past = {
            name: {"at": at, "rows": {table: self.answers(as_of(table, at)) for table in TABLES}}
            for name, at in moments.items()
            if at is not None
        }
        return {"today": today, "as of": past, "events": self.events(), "refused": self.refused}


MADE_ANEW: Final = frozenset(("reserve", "lock", "secret", "spark", "cache"))


def pack(data: Path, archive: Path) -> None:
    """Pack a directory, without what is made anew."""
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(data.rglob("*")):
            place = path.relative_to(data)
            if path.is_file() and place.parts[0] not in MADE_ANEW:
                packed.add(path, place.as_posix(), filter=_nobodys)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def written(value: Any, depth: int = 0) -> str:
    """Return a value as JSON, a row of an answer on a line; answers that were not given are left out."""
    if isinstance(value, dict):
        pad = " " * (depth + 1)
        items = [f"{pad}{json.dumps(k)}: {written(v, depth + 1)}" for k, v in value.items() if v is not None]
        return "{\n" + ",\n".join(items) + "\n" + " " * depth + "}" if items else "{}"
    if isinstance(value, list) and value:
        pad = " " * (depth + 1)
        return (
            "[\n"
            + ",\n".join(pad + json.dumps(row, ensure_ascii=False) for row in value)
            + "\n"
            + " " * depth
            + "]"
        )
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Make the directory in a temporary place, pack it, and write the answers beside."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a checkout of the project, whose server is run")
    parser.add_argument("name", help="of the two files beside this script")
    given = parser.parse_args()
    target = Path(__file__).resolve().parent / given.name
    with tempfile.TemporaryDirectory() as folder:
        maker = Maker(given.checkout.resolve(), Path(folder))
        maker.start(RETENTION)
        try:
            moments = maker.fill()
        finally:
            maker.kill()
        pack(maker.data, target.with_suffix(".tar.xz"))
        maker.start(0)
        try:
            expected = maker.expected(moments)
        finally:
            maker.kill()
    target.with_suffix(".json").write_text(written(expected) + "\n")
    print(
        f"{target}: {target.with_suffix('.tar.xz').stat().st_size} bytes, {len(maker.refused)} statements refused"
    )


if __name__ == "__main__":
    main()
