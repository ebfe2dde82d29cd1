"""What ``make test`` sees of Spark: one server, one JVM, a query of select1 and a few of each kind.

The rest of the Spark tests (``make spark``) carry the marker ``spark``; these do not, so that a change which breaks
the route is seen at once. Together they take about half a minute, the start of the JVM included.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from sqllogictest.client import Client, ServerError, Target
from sqllogictest.records import Query
from sqllogictest.runner import FileRun, Options
from tests.conformance.executors.compare import agree, ask
from tests.conformance.executors.corpus import HERE, lines
from tests.support.server import ServerProcess
from tests.support.suites import sqllogictest_file

pytestmark = pytest.mark.timeout(900)  # a machine with two cores may do much else besides

ANSWER_S = 600.0
# The JVM's second compiler takes more than it gives back in half a minute.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
ENDLESS = "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b WHERE a < b"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Tables with rows in parts, hidden rows, and hot ones; the JVM starts meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", JAVA_OPTIONS)
        folder = tmp_path_factory.mktemp("wire")
        options = ("--spark-start", "background", "--server-files", str(folder))
        running = ServerProcess(folder / "data", *options)
    client = running.connect()
    for statement in (*lines(HERE / "tables.sql"), "CHECKPOINT", *lines(HERE / "changes.sql")):
        client.run(statement)
    client.close()
    yield running
    assert running.stop() == 0


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    connection = server.connect(ANSWER_S)
    connection.run("SET executor = spark")
    yield connection
    connection.close()


def test_a_pinned_query_goes_to_spark(client: Client) -> None:
    plan = "\n".join(row[0] or "" for row in client.run("EXPLAIN SELECT count(*) FROM t").rows)
    assert "spark" in plan.lower()


@pytest.mark.parametrize("sample", [1, pytest.param(50, marks=pytest.mark.spark)])
def test_a_sample_of_select1(server: ServerProcess, sample: int) -> None:
    target = Target.from_url(server.url)
    options = Options(target=target, executor="spark", sample=sample, timeout_s=ANSWER_S)
    run = FileRun(sqllogictest_file("select1"), options, "sample_of_select1")
    report = run.run(lambda _asked: None)
    assert not report.failures, "\n\n".join(failure.show() for failure in report.failures)
    assert sum(isinstance(record, Query) for record in run.records) - report.skipped == sample


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t ORDER BY id",
        "SELECT * FROM w ORDER BY id",
        "SELECT g, count(*), max(ts), min(tz), max(iv) FROM w GROUP BY g ORDER BY g",
        pytest.param(
            "SELECT b, sum(n), avg(d), count(DISTINCT c), bool_or(i4 > 2) FROM t GROUP BY b ORDER BY b",
            marks=pytest.mark.spark,  # ten seconds
        ),
        "SELECT x.c, nokey.v FROM x LEFT JOIN nokey ON nokey.k = x.a",
        "SELECT id FROM t WHERE s LIKE '_lpha%' ORDER BY id",
        "SELECT id FROM t WHERE s LIKE 'e%t' ORDER BY id",  # the plan of the one before, with another pattern
        pytest.param(
            "SELECT id FROM t WHERE i4 > (SELECT avg(v) FROM nokey WHERE nokey.k = t.id) OR s LIKE '%!' ORDER BY id",
            marks=pytest.mark.spark,
        ),
    ],
)
def test_types_and_rows_are_the_row_executor_s(client: Client, sql: str) -> None:
    found = ask(client, sql)
    client.run("SET executor = index")
    expected = ask(client, sql)
    assert expected.rows
    assert agree(sql, expected, found), f"index: {expected}\nspark: {found}"


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT i4 + 2147483647 FROM t", "22003"),
        ("SELECT 1 / (id - 1) FROM t", "22012"),
        ("SELECT s::int FROM t", "22P02"),
        ("SELECT (SELECT id FROM t) FROM t", "21000"),
    ],
)
def test_errors_have_postgresql_s_sqlstates(client: Client, sql: str, sqlstate: str) -> None:
    with pytest.raises(ServerError) as caught:
        client.run(sql)
    assert caught.value.sqlstate == sqlstate


def test_a_cancel_request_ends_a_query(server: ServerProcess) -> None:
    ended = threading.Event()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET executor = spark")

        def cancel() -> None:
            while not ended.wait(1):  # again: the first one may come before the query has begun
                connection.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        try:
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(ENDLESS)
        finally:
            ended.set()
            canceller.join()
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (7,)


def test_statement_timeout_ends_a_query(client: Client) -> None:
    client.run("SET statement_timeout = '1s'")
    with pytest.raises(ServerError) as caught:
        client.run(ENDLESS)
    assert caught.value.sqlstate == "57014"
    client.run("RESET statement_timeout")
    assert client.run("SELECT count(*) FROM t").rows == [("7",)]


def test_spark_reads_the_past(client: Client) -> None:
    client.run("CREATE TABLE was (a int PRIMARY KEY, b int)")
    client.run("INSERT INTO was SELECT g, g FROM generate_series(1, 100) g")
    [(ts,)] = client.run("SELECT read_ts FROM holdfast_oracle").rows
    client.run("UPDATE was SET b = 0 WHERE a <= 50")
    client.run("CHECKPOINT")
    client.run("DELETE FROM was WHERE a > 90")
    client.run("ALTER TABLE was DROP COLUMN b")
    assert client.run(f"SELECT count(*), sum(b) FROM was AS OF SYSTEM TIME {ts}").rows == [("100", "5050")]
    assert client.run("SELECT count(*) FROM was").rows == [("90",)]
    client.run("DROP TABLE was")
    assert client.run(f"SELECT sum(b) FROM was AS OF SYSTEM TIME {ts} WHERE a > 90").rows == [("955",)]


def test_rows_become_parts_without_passing_through_the_server(client: Client) -> None:
    client.run("CREATE TABLE loaded (id bigint PRIMARY KEY, s text NOT NULL)")
    statement = "INSERT INTO loaded SELECT i, 'x' || i FROM generate_series(1, 2000) i"
    said = [row[0] for row in client.run(f"EXPLAIN {statement}").rows]
    assert "Rows: written as parts by Spark's executors" in said
    client.run(statement)
    with pytest.raises(ServerError) as caught:
        client.run("INSERT INTO loaded SELECT i, 'y' FROM generate_series(2000, 2001) i")
    assert caught.value.sqlstate == "23505"
    assert client.run("SELECT count(*), min(s), max(id) FROM loaded").rows == [("2000", "x1", "2000")]


def test_spark_reads_pages_of_huge_values(server: ServerProcess, client: Client) -> None:
    """Which ``txn.persist.parts.huge_pages`` has made: as they are, and compressed; values that are not there between them."""
    client.run("SET executor = auto")
    client.run("CREATE TABLE huge (id int, b bytea, c text)")
    noise = "decode(string_agg(md5(g::text), ''), 'hex')"
    client.run(f"INSERT INTO huge SELECT 1, {noise}, repeat('x', 5000000) FROM generate_series(1, 270000) g")
    client.run("INSERT INTO huge VALUES (2, NULL, 'short'), (3, '', NULL)")
    client.run("CHECKPOINT")
    [(oid,)] = client.run("SELECT 'huge'::regclass::oid").rows
    assert max(file.stat().st_size for file in server.data_dir.glob(f"blobs/{oid}/*.parquet")) > 4 << 20
    query = "SELECT id, length(b), md5(b), length(c), md5(c) FROM huge ORDER BY id"
    answers = []
    for executor in ("index", "local", "spark"):
        client.run(f"SET executor = {executor}")
        answers.append(client.run(query).rows)
    assert answers[0][0][1] == "4320000"
    assert answers[1:] == answers[:1] * 2


def test_files_are_loaded_by_executors(server: ServerProcess, client: Client) -> None:
    folder = server.data_dir.parent
    (folder / "rows.csv").write_text("".join(f'{i},"text\n{i}"\n' for i in range(1000)))
    client.run("CREATE TABLE filed (a int PRIMARY KEY, b text NOT NULL)")
    assert client.run(f"COPY filed FROM '{folder}/rows.csv' (FORMAT csv)").tag == "COPY 1000"
    assert client.run("SELECT count(*), min(b) FROM filed").rows == [("1000", "text\n0")]
    (folder / "more.csv").write_text("2000,x\n2001,y\nbad,z\n")
    with pytest.raises(ServerError) as caught:
        client.run(f"COPY filed FROM '{folder}/more.csv' (FORMAT csv)")
    assert caught.value.sqlstate == "22P02"
    with pytest.raises(ServerError) as caught:
        client.run(f"COPY filed FROM '{folder}/rows.csv' (FORMAT csv)")
    assert caught.value.sqlstate == "23505"
    assert client.run("SELECT count(*) FROM filed").rows == [("1000",)]
    for options in ("FORMAT csv, HEADER", "FORMAT json", "FORMAT parquet"):
        client.run("TRUNCATE filed")
        client.run(f"COPY filed FROM '{folder}/rows.csv' (FORMAT csv)")
        out = folder / f"out {options[7:10]}"
        assert client.run(f"COPY (SELECT * FROM filed) TO '{out}' ({options})").tag == "COPY 1000"
        assert out.is_dir()
        client.run("TRUNCATE filed")
        assert client.run(f"COPY filed FROM '{out}' ({options})").tag == "COPY 1000"
        assert client.run("SELECT count(*), min(b), sum(a) FROM filed").rows == [
            ("1000", "text\n0", "499500")
        ]
    with pytest.raises(ServerError) as caught:
        client.run(f"COPY filed TO '{out}' (FORMAT parquet)")
    assert caught.value.sqlstate == "58P02"
    with pytest.raises(ServerError) as caught:
        client.run(f"COPY (SELECT 1 / (a - 500) FROM filed) TO '{folder}/none' (FORMAT csv)")
    assert caught.value.sqlstate == "22012"
    assert not list(folder.glob("*none*"))
