"""What WHERE of COPY FROM asks: SELECT on the columns that it names, as of PostgreSQL; what it may name."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess


@pytest.fixture(scope="module")
def loader(server: ServerProcess) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A role that may insert into both tables, and of ``part`` read one column."""
    server.sql(
        "CREATE ROLE loader LOGIN; CREATE TABLE blind (id int, v text, h text DEFAULT 'd'); GRANT INSERT ON blind TO loader; "
        "CREATE TABLE part (id int, v text, h text DEFAULT 'd'); GRANT INSERT, SELECT (id) ON part TO loader; "
        "CREATE TABLE made (id int, g int GENERATED ALWAYS AS (id + 1) STORED); GRANT ALL ON made TO loader; "
        "CREATE TABLE free (id int, v text); GRANT ALL ON free TO loader"
    )
    with psycopg.connect(server.url.replace("postgres@", "loader@"), autocommit=True) as connection:
        yield connection
    server.sql("DROP TABLE blind, part, made, free; DROP ROLE loader")


@pytest.mark.parametrize(("statement", "answer"), [
    ("blind (id, v) FROM STDIN", 1),
    ("blind (id, v) FROM STDIN WHERE true", 1),
    ("blind (id, v) FROM STDIN WHERE id > 0", "42501"),
    ("blind (id, v) FROM STDIN WHERE h = 'd'", "42501"),
    ("part (id, v) FROM STDIN WHERE id > 0", 1),
    ("part (id, v) FROM STDIN WHERE v = 'x'", "42501"),
    ("part (id, v) FROM STDIN WHERE id > 0 AND h = 'd'", "42501"),
    ("made (id) FROM STDIN WHERE g > 0", "42P10"),
    ("made (id) FROM STDIN WHERE made IS NOT NULL", "42P10"),
    ("free FROM STDIN WHERE free IS NOT NULL", "0A000"),
    ("free FROM STDIN WHERE row_to_json(free) IS NOT NULL", "0A000"),
    ("free FROM STDIN WHERE ctid IS NULL", "0A000"),
    ("free FROM STDIN WHERE tableoid = 'free'::regclass", 1),
])  # fmt: skip
def test_where_of_copy_reads_columns(
    loader: psycopg.Connection[tuple[object, ...]], statement: str, answer: int | str
) -> None:
    found: int | str
    row = "1\n" if statement.startswith("made") else "1\tx\n"
    try:
        with loader.cursor() as cursor:
            with cursor.copy(f"COPY {statement}") as copy:  # type: ignore[call-overload]
                copy.write(row)
            found = cursor.rowcount
    except psycopg.Error as error:
        found = str(error.sqlstate)
    assert found == answer
