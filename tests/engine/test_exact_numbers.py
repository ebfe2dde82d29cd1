"""NaN in ``numeric(p,s)`` and numbers of more than 38 digits, where PostgreSQL has nothing to compare with: the past, changes, merges, engines.

``tests/differential/scripts/types/exact_numbers.sql`` has what both have.
"""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg import sql

from tests.support.server import ServerProcess

LONG = "7" * 60 + "." + "3" * 60
ROWS = [
    (1, "NaN", "NaN", "{NaN,1.25,NULL}"),
    (2, "1.50", LONG, "{2.00}"),
    (3, None, "Infinity", None),
]
SELECT = "SELECT id, p::text, n::text, a::text FROM {} ORDER BY id"
REFUSED = "a numeric of more than 38 digits, NaN or an infinity in this executor is not supported"


def connect(server: ServerProcess) -> psycopg.Connection[Any]:
    return psycopg.connect(server.url, autocommit=True)


def rows(c: psycopg.Connection[Any], table: str) -> list[tuple[Any, ...]]:
    return c.execute(sql.SQL(SELECT).format(sql.SQL(table))).fetchall()  # type: ignore[arg-type]


def make(c: psycopg.Connection[Any], table: str, kept: str = "") -> None:
    name = sql.SQL(table)  # type: ignore[arg-type]
    columns = sql.SQL("id int PRIMARY KEY, p numeric(10,2), n numeric, a numeric(8,2)[]")
    c.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name))
    c.execute(sql.SQL("CREATE TABLE {} ({}) {}").format(name, columns, sql.SQL(kept)))  # type: ignore[arg-type]
    with c.cursor() as cursor:
        cursor.executemany(sql.SQL("INSERT INTO {} VALUES (%s, %s, %s, %s)").format(name), ROWS)


def formats(server: ServerProcess, c: psycopg.Connection[Any], table: str) -> list[bytes]:
    (oid,) = c.execute("SELECT %s::regclass::oid", (table,)).fetchone() or (0,)
    found = []
    for path in sorted((server.data_dir / "blobs" / str(oid)).glob("*.parquet")):
        metadata = pq.read_metadata(path).metadata
        assert metadata is not None
        found.append(metadata[b"holdfast.format"])
    return found


def test_the_past_and_changes_have_them(server: ServerProcess) -> None:
    with closing(connect(server)) as c, closing(connect(server)) as reader:
        make(c, "kept")
        c.execute("CHECKPOINT")
        (at,) = c.execute("SHOW holdfast.commit_ts").fetchone() or ("",)
        c.execute("UPDATE kept SET p = 'NaN', n = 1 WHERE id = 2")
        c.execute("DELETE FROM kept WHERE id = 1")
        c.execute("CHECKPOINT")
        assert rows(c, "kept") == [(2, "NaN", "1", "{2.00}"), ROWS[2]]
        assert rows(c, f"kept AS OF SYSTEM TIME {at}") == ROWS
        reader.execute("BEGIN")
        reader.execute(f"DECLARE f CURSOR FOR SUBSCRIBE kept AS OF {at}")
        got = [row[1:] for row in reader.execute("FETCH 6 FROM f").fetchall()]
        numbers = {row[1]: row for row in got if row[0] == 1}
        assert numbers[1][2].is_nan()
        assert numbers[1][4][0].is_nan()
        assert str(next(row[3] for row in got if row[:2] == (1, 2))) == LONG
        assert len(got) == 6


def test_binary_copies_and_parameters(server: ServerProcess) -> None:
    with closing(connect(server)) as c:
        make(c, "source")
        for _ in range(2):  # hot, then from a part
            with c.cursor().copy("COPY source TO STDOUT (FORMAT binary)") as out:
                data = b"".join(bytes(piece) for piece in out)
            make(c, "copied")
            c.execute("TRUNCATE copied")
            with c.cursor().copy("COPY copied FROM STDIN (FORMAT binary)") as into:
                into.write(data)
            assert rows(c, "copied") == ROWS
            c.execute("CHECKPOINT")
        found = c.execute("SELECT id FROM copied WHERE p = %b", (Decimal("NaN"),)).fetchall()
        assert found == [(1,)]
        assert c.execute("SELECT id FROM copied WHERE n = %b", (Decimal(LONG),)).fetchall() == [(2,)]
        (number,) = c.cursor(binary=True).execute("SELECT n FROM copied WHERE id = 2").fetchone() or (None,)
        assert str(number) == LONG


def test_duckdb_refuses_what_it_meets_and_nothing_else(server: ServerProcess) -> None:
    with closing(connect(server)) as c:
        make(c, "pinned")
        for where in ("hot", "in a part"):
            c.execute("SET executor = local")
            for query in ("SELECT sum(p) FROM pinned", "SELECT max(n) FROM pinned", "SELECT a FROM pinned"):
                with pytest.raises(psycopg.errors.FeatureNotSupported, match=REFUSED):
                    c.execute(query)
            for query, answer in (
                ("SELECT sum(id) FROM pinned", 6),
                ("SELECT sum(p) FROM pinned WHERE id > 1", Decimal("1.50")),
                ("SELECT n FROM pinned WHERE id = 3", Decimal("Infinity")),
                ("SELECT a[1] FROM pinned WHERE id = 2", Decimal("2.00")),
            ):
                assert c.execute(query).fetchone() == (answer,), (where, query)
            c.execute("RESET executor")
            assert rows(c, "pinned") == ROWS
            c.execute("CHECKPOINT")


def test_a_part_that_needs_no_exact_form_any_more_has_none(server: ServerProcess) -> None:
    with closing(connect(server)) as c:
        make(c, "merged")
        c.execute("CHECKPOINT")
        assert formats(server, c, "merged") == [b"4"]
        c.execute("DELETE FROM merged WHERE id < 3")
        c.execute("VACUUM FULL merged")
        assert rows(c, "merged") == ROWS[2:]
        assert set(formats(server, c, "merged")) <= {b"1", b"4"}
        c.execute("CREATE TABLE merged_again AS SELECT * FROM merged")
        c.execute("CHECKPOINT")
        assert formats(server, c, "merged_again") == [b"1"]


def test_parts_of_both_forms_are_merged_and_outlast_a_crash(tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = ServerProcess(data, "--history-retention", "0")
    wanted: list[tuple[Any, ...]] = []
    with closing(connect(server)) as c:
        make(c, "pair")
        c.execute("CREATE INDEX ON pair (p)")
        c.execute("CREATE INDEX ON pair (n)")
        wanted += ROWS
        for i in range(10, 30):  # eight of a level become one
            p, n = ("NaN", LONG) if i % 5 == 0 else ("0.25", str(i))
            c.execute("INSERT INTO pair VALUES (%s, %s, %s, '{1}')", (i, p, n))
            wanted.append((i, p, n, "{1.00}"))
            c.execute("CHECKPOINT")
        assert rows(c, "pair") == wanted
        merges = c.execute("SELECT merges FROM holdfast_storage").fetchone()
        assert merges is not None
        assert merges[0] > 0
    server.kill()
    server = ServerProcess(data, "--history-retention", "0")
    with closing(connect(server)) as c:
        assert rows(c, "pair") == wanted
        c.execute("SET enable_seqscan = off")
        assert c.execute("SELECT count(*) FROM pair WHERE n = %s::numeric", (LONG,)).fetchone() == (5,)
        assert c.execute("SELECT count(*) FROM pair WHERE p = 'NaN'").fetchone() == (5,)
        with pytest.raises(psycopg.errors.NotNullViolation):
            c.execute("INSERT INTO pair SELECT NULL, 'NaN'")
    server.kill()
