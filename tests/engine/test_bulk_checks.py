"""INSERT … SELECT and UPDATE of many rows that are checked or computed one by one: written as parts, a slice at a time, and refused as PostgreSQL refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sqllogictest.client import Client, ServerError
from tests.support.fields import connect
from tests.support.server import ServerProcess

ROWS: Final = 21_000
SETUP: Final = (
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE TABLE parents (a int PRIMARY KEY, b int UNIQUE)",
    f"INSERT INTO parents SELECT g, -g FROM generate_series(1, {ROWS}) g",
    "CREATE TABLE checked (id serial PRIMARY KEY, u int UNIQUE, p positive, r int REFERENCES parents ON DELETE RESTRICT, "
    "s int REFERENCES parents (b) DEFERRABLE, n int NOT NULL DEFAULT 7, d text DEFAULT 'd' CHECK (d <> 'no'), g int GENERATED ALWAYS AS (n + 1) STORED, CHECK (n < 1000))",
    "CREATE TABLE others (id int REFERENCES checked)",
)
FILL: Final = f"INSERT INTO checked (u, p, r, s) SELECT g, g, g, CASE WHEN g % 2 = 0 THEN -g END FROM generate_series(1, {ROWS}) g"


def parts(server: ServerProcess) -> set[Path]:
    return set((server.data_dir / "blobs").rglob("*.parquet"))


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    client = server.connect()
    for sql in SETUP:
        client.run(sql)
    had = parts(server)
    assert client.run(FILL).tag == f"INSERT 0 {ROWS}"
    assert parts(server) - had, "the rows went to parts"
    client.run("INSERT INTO others VALUES (1), (2)")
    yield client
    client.close()


@pytest.fixture(autouse=True)
def undone(client: Client) -> Iterator[None]:
    """What a test does is done within a transaction that is rolled back."""
    yield
    client.run("ROLLBACK")


def test_defaults_and_computed_columns_are_filled_in(client: Client) -> None:
    sums = "count(*), sum(id), sum(u), sum(p), sum(r), sum(s), min(n), max(n), min(d), max(d), min(g), max(g)"
    total, half = ROWS * (ROWS + 1) // 2, -(ROWS // 2) * (ROWS // 2 + 1)
    (row,) = client.run(f"SELECT {sums} FROM checked").rows
    assert row == (str(ROWS), *[str(total)] * 4, str(half), "7", "7", "d", "d", "8", "8")
    assert client.run("SELECT u FROM checked WHERE id = 17").rows == [("17",)]


@pytest.mark.parametrize(
    ("change", "test"),
    [
        ("n = u % 900, d = 'x' || u", "n = u % 900 AND d = 'x' || u AND g = n + 1 AND r = u"),
        (f"r = {ROWS} + 1 - u, p = p + 1", f"r = {ROWS} + 1 - u AND p = u + 1 AND n = 7"),
        ("s = -u", "s = -u"),
        ("r = NULL, s = NULL", "r IS NULL AND s IS NULL"),
        ("u = -u", "id = -u"),
    ],
)
def test_what_changes_goes_to_parts(server: ServerProcess, client: Client, change: str, test: str) -> None:
    had = parts(server)
    client.run("BEGIN")
    assert client.run(f"UPDATE checked SET {change}").tag == f"UPDATE {ROWS}"
    assert parts(server) - had, "the new versions went to parts"
    assert client.run(f"SELECT count(*) FROM checked WHERE {test}").rows == [(str(ROWS),)]
    assert client.run("SELECT count(*) FROM parents JOIN checked ON a = r AND b = s").rows[0][0] in (
        "0", str(ROWS // 2), str(ROWS),
    )  # fmt: skip


LAST: Final = ROWS - 5
REFUSED: Final = {
    "CHECK": (
        f"UPDATE checked SET n = CASE u WHEN {LAST} THEN 2000 ELSE 1 END", "23514",
        'new row for relation "checked" violates check constraint "checked_n_check"',
        f"Failing row contains ({LAST}, {LAST}, {LAST}, {LAST}, null, 2000, d, 2001).",
    ),
    "a domain": (
        f"UPDATE checked SET p = CASE u WHEN {LAST} THEN -1 ELSE 1 END", "23514",
        'value for domain positive violates check constraint "positive_check"', None,
    ),
    "NOT NULL": (
        f"UPDATE checked SET n = CASE WHEN u < {LAST} THEN 1 END", "23502",
        'null value in column "n" of relation "checked" violates not-null constraint',
        f"Failing row contains ({LAST}, {LAST}, {LAST}, {LAST}, null, null, d, null).",
    ),
    "a key": (
        f"UPDATE checked SET u = CASE u WHEN {LAST} THEN -1 ELSE -u END, n = 1", "23505",
        'duplicate key value violates unique constraint "checked_u_key"', "Key (u)=(-1) already exists.",
    ),
    "a key before CHECK": (
        f"UPDATE checked SET u = CASE u WHEN 3 THEN -2 ELSE -u END, n = CASE u WHEN {LAST} THEN 2000 ELSE 1 END", "23505",
        'duplicate key value violates unique constraint "checked_u_key"', "Key (u)=(-2) already exists.",
    ),
    "a reference": (
        f"UPDATE checked SET r = CASE u WHEN {LAST} THEN 0 ELSE u END", "23503",
        'insert or update on table "checked" violates foreign key constraint "checked_r_fkey"', 'Key (r)=(0) is not present in table "parents".',
    ),
    "rows that go": (
        "DELETE FROM checked WHERE u > 1", "23503",
        'update or delete on table "checked" violates foreign key constraint "others_id_fkey" on table "others"',
        'Key (id)=(2) is still referenced from table "others".',
    ),
    "rows that go, restricted": (
        f"DELETE FROM parents WHERE a > {ROWS // 20}", "23503",
        'update or delete on table "parents" violates foreign key constraint "checked_r_fkey" on table "checked"',
        f'Key (a)=({ROWS // 20 + 1}) is still referenced from table "checked".',
    ),
    "rows that come": (
        f"INSERT INTO checked (u, r, n) SELECT -g, g, CASE g WHEN {LAST} THEN 2000 ELSE 1 END FROM generate_series(1, {ROWS}) g", "23514",
        'new row for relation "checked" violates check constraint "checked_n_check"',
        f"Failing row contains (%, -{LAST}, null, {LAST}, null, 2000, d, 2001).",
    ),
    "rows that come, a key before": (
        f"INSERT INTO checked (u, r, n) SELECT g + {ROWS} - 9, g, CASE g WHEN {LAST} THEN 2000 ELSE 1 END FROM generate_series(1, {ROWS}) g", "23505",
        'duplicate key value violates unique constraint "checked_u_key"', f"Key (u)=({ROWS - 8}) already exists.",
    ),
    "rows that come, a reference": (
        f"INSERT INTO checked (u, r) SELECT -g, CASE g WHEN {LAST} THEN 0 ELSE g END FROM generate_series(1, {ROWS}) g", "23503",
        'insert or update on table "checked" violates foreign key constraint "checked_r_fkey"', 'Key (r)=(0) is not present in table "parents".',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_changes_nothing(server: ServerProcess, client: Client, name: str) -> None:
    sql, sqlstate, message, detail = REFUSED[name]
    before = client.run(
        "SELECT count(*), sum(u), sum(p), sum(r), sum(s), sum(n), sum(g), max(d) FROM checked"
    ).rows
    other = connect(server.port)
    fields = other.fails(sql)
    found = fields.get("detail")
    if detail is not None and "%" in detail and found is not None:
        found = f"{found.split('(')[0]}(%,{found.split(',', 1)[1]}"
    assert (fields["sqlstate"], fields["message"], found) == (sqlstate, message, detail)
    other.close()
    assert (
        client.run(
            "SELECT count(*), sum(u), sum(p), sum(r), sum(s), sum(n), sum(g), max(d) FROM checked"
        ).rows
        == before
    )


def test_rows_that_nobody_refers_to_any_more_go(client: Client) -> None:
    client.run("BEGIN; DELETE FROM others WHERE id = 2")
    before = client.run("SELECT count(*) FROM checked").rows
    assert client.run("DELETE FROM checked WHERE u > 1").tag == f"DELETE {ROWS - 1}"
    assert (before, client.run("SELECT id FROM checked").rows) == ([(str(ROWS),)], [("1",)])
    client.run("UPDATE checked SET r = NULL, s = NULL")
    assert (
        client.run("DELETE FROM parents p USING parents q WHERE p.a >= q.a AND q.a < 3").tag
        == f"DELETE {ROWS}"
    )
    assert client.run("INSERT INTO others SELECT id FROM checked").tag == "INSERT 0 1"


def test_a_deferred_reference_is_looked_at_at_the_end(client: Client) -> None:
    for ending, error in (("UPDATE checked SET s = NULL", ""), ("SELECT 1", "23503 .*checked_s_fkey")):
        client.run("BEGIN; SET CONSTRAINTS ALL DEFERRED")
        assert client.run("UPDATE checked SET s = 1").tag == f"UPDATE {ROWS}"
        client.run(ending)
        if error:
            with pytest.raises(ServerError, match=error):
                client.run("SET CONSTRAINTS ALL IMMEDIATE")
        else:
            client.run("SET CONSTRAINTS ALL IMMEDIATE")
        client.run("ROLLBACK")


def test_rows_that_a_key_does_not_hold_for_yet_stay(server: ServerProcess, client: Client) -> None:
    """A foreign key that is NOT VALID says nothing of them: neither rows that come in bulk nor others that change make them an error."""
    client.run("CREATE TABLE late (a int, b int); INSERT INTO late VALUES (-1, 1)")
    client.run("ALTER TABLE late ADD FOREIGN KEY (a) REFERENCES parents NOT VALID")
    try:
        assert client.run(f"INSERT INTO late SELECT g, g FROM generate_series(1, {ROWS}) g").tag
        assert client.run("UPDATE late SET a = a WHERE a > 0").tag == f"UPDATE {ROWS}"
        other = connect(server.port)
        fields = other.fails(f"INSERT INTO late SELECT {ROWS} - g, g FROM generate_series(1, {ROWS}) g")
        assert fields["detail"] == 'Key (a)=(0) is not present in table "parents".'
        other.close()
    finally:
        client.run("DROP TABLE late")
