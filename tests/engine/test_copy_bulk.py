"""COPY FROM past the bulk bound: what is read by column and what is not come together as one load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.server import ServerProcess

ROWS = 45_000  # well past engine.statements.copy.BULK_ROWS


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    server = ServerProcess(Path(tmp_path_factory.mktemp("copy")) / "data")
    try:
        with psycopg.connect(server.url, autocommit=True) as made:
            yield made
    finally:
        server.stop()


def load(connection: psycopg.Connection[tuple[object, ...]], copy: str, data: str) -> None:
    with connection.cursor().copy(copy) as sink:
        for at in range(0, len(data), 100_000):
            sink.write(data[at : at + 100_000])


def make(connection: psycopg.Connection[tuple[object, ...]], columns: str) -> None:
    connection.execute("DROP TABLE IF EXISTS t")
    connection.execute(f"CREATE TABLE t ({columns})")


def test_odd_rows_among_plain_ones_keep_their_place_and_value(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    make(connection, "id int PRIMARY KEY, t text, n numeric(8,2), d date DEFAULT '2020-02-02'")
    lines: list[str] = []
    expected: list[tuple[int, str | None, str | None]] = []
    for i in range(ROWS):
        if i % 9000 == 8999:
            lines.append(f"{i}\ta\\tb\\\nc\t1.005\n")
            expected.append((i, "a\tb\nc", "1.01"))
        elif i % 7 == 0:
            lines.append(f"{i}\t\\N\t\\N\n")
            expected.append((i, None, None))
        else:
            lines.append(f"{i}\tname {i}\t{i % 100}.5\n")
            expected.append((i, f"name {i}", f"{i % 100}.50"))
    load(connection, "COPY t (id, t, n) FROM STDIN", "".join(lines))
    found = connection.execute("SELECT id, t, n::text, d::text FROM t ORDER BY id").fetchall()
    assert found == [(*row, "2020-02-02") for row in expected]


def test_quoted_line_ends_across_blocks_are_data(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    make(connection, "id int, t text")
    texts = [f'line "{i}"\n,' + "\n" * (i % 3) for i in range(ROWS)]
    data = "".join(f'{i},"{t.replace(chr(34), chr(34) * 2)}"\n' for i, t in enumerate(texts))
    load(connection, "COPY t FROM STDIN (FORMAT csv)", data)
    assert connection.execute("SELECT t FROM t ORDER BY id").fetchall() == [(t,) for t in texts]


@pytest.mark.parametrize(
    ("bad", "state", "context"),
    [
        ("x1\ta\n", "22P02", 'COPY t, line 40001, column id: "x1"'),
        ("0x1\ta\n", "22P02", 'COPY t, line 40001, column id: "0x1"'),
        ("1\n", "22P04", 'COPY t, line 40001: "1"'),
        ("1\ta\tb\n", "22P04", 'COPY t, line 40001: "1\ta\tb"'),
        ("1\t\\N\n", "23502", 'COPY t, line 40001: "1\t\\N"'),
        ("1\tabcdefghij\n", "22001", 'COPY t, line 40001, column t: "abcdefghij"'),
    ],
)
def test_errors_name_line_and_column_and_undo_the_load(
    connection: psycopg.Connection[tuple[object, ...]], bad: str, state: str, context: str
) -> None:
    make(connection, "id int, t varchar(9) NOT NULL")
    lines = [f"{i}\tname\n" for i in range(ROWS)]
    lines[40_000] = bad
    with pytest.raises(psycopg.Error) as caught:
        load(connection, "COPY t FROM STDIN", "".join(lines))
    assert caught.value.sqlstate == state
    assert caught.value.diag.context == context
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_the_end_marker_ends_a_large_load(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    make(connection, "id int")
    lines = [f"{i}\n" for i in range(ROWS)]
    lines[30_000] = "\\.\n"
    load(connection, "COPY t FROM STDIN", "".join(lines))
    assert connection.execute("SELECT count(*), max(id) FROM t").fetchall() == [(30_000, 29_999)]


def test_returns_and_newlines_end_rows_together_and_the_last_row_needs_none(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    make(connection, "id int, t text")
    data = "".join(f"{i}\tä{i}\r\n" for i in range(ROWS))
    load(connection, "COPY t FROM STDIN", data + "-1\tlast")
    assert connection.execute("SELECT count(*), min(t), max(t) FROM t").fetchall() == [
        (ROWS + 1, "last", "ä9999")
    ]


def test_a_duplicate_key_undoes_the_load(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    make(connection, "id int PRIMARY KEY")
    with pytest.raises(psycopg.errors.UniqueViolation):
        load(connection, "COPY t FROM STDIN", "".join(f"{i % (ROWS - 1)}\n" for i in range(ROWS)))
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_insert_select_of_many_rows_stores_what_the_source_holds(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    make(connection, "x int NOT NULL, q text, id bigint PRIMARY KEY, n numeric(9,3), ar int[]")
    connection.execute(
        "INSERT INTO t (id, x, n, ar) SELECT i, i % 7, i * 0.125, ARRAY[i, NULL] "
        "FROM generate_series(1, 45000) AS g (i)"
    )
    connection.execute("INSERT INTO t (id, x, n) SELECT id + 1000000, x, n FROM t")
    found = connection.execute(
        "SELECT count(*), count(q), count(ar), sum(x), sum(n), max(id) FROM t"
    ).fetchone()
    total = sum(i % 7 for i in range(1, ROWS + 1))
    assert found is not None
    assert [str(v) for v in found] == [
        str(v) for v in (2 * ROWS, 0, ROWS, 2 * total, f"{ROWS * (ROWS + 1) / 8:.3f}", 1000000 + ROWS)
    ]
    with pytest.raises(psycopg.errors.NotNullViolation):
        connection.execute("INSERT INTO t (id, x) SELECT id + 2000000, nullif(x, 3) FROM t")
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO t (id, x) SELECT id + 1, x FROM t")
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2 * ROWS,)


def test_create_table_as_of_many_rows_stores_what_the_query_returns(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    make(connection, "id int, t text")
    load(connection, "COPY t FROM STDIN", "".join(f"{i}\tn{i}\n" for i in range(ROWS)))
    connection.execute("CREATE TABLE made AS SELECT t, id * 2 AS double, NULL::date AS d FROM t")
    found = connection.execute("SELECT count(*), sum(double), max(t), count(d) FROM made").fetchone()
    assert found == (ROWS, ROWS * (ROWS - 1), "n9999", 0)
