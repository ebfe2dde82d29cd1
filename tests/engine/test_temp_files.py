"""``temp_file_limit``: what a session's temporary files may take together, rows in files and what DuckDB spills for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from engine.base.temp_files import TempFiles
from engine.executors.local.instance import MIN_MEMORY_BYTES, MemoryLimit
from engine.executors.local.own import folder_of, remove_left
from planner.base.errors import SqlError
from tests.support.server import ServerProcess

ROWS = 1_000_000
SORTED = "SELECT i FROM (SELECT i, row_number() OVER (ORDER BY m) r FROM big) x WHERE r = 500000"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with so little memory that DuckDB spills."""
    process = ServerProcess(Path(tmp_path_factory.mktemp("server")) / "data", "--memory", "512MB")
    with psycopg.connect(process.url, autocommit=True) as made:
        made.execute(
            f"CREATE TABLE big AS SELECT i, md5(i::text) || md5(i::text) m FROM generate_series(1, {ROWS}) i"
        )
    yield process
    process.stop()


@pytest.fixture
def session(small: ServerProcess) -> Iterator[psycopg.Connection]:
    with psycopg.connect(small.url, autocommit=True) as made:
        yield made


def fails(session: psycopg.Connection, sql: str) -> tuple[str | None, str | None]:
    with pytest.raises(psycopg.Error) as caught:
        session.execute(sql)
    return caught.value.sqlstate, caught.value.diag.message_primary


def exceeded(limit_kb: int) -> tuple[str, str]:
    return "53400", f"temporary file size exceeds temp_file_limit ({limit_kb}kB)"


def spilled(server: ServerProcess) -> list[Path]:
    return list((server.data_dir / "duckdb-spill").glob("own-*"))


def test_files_and_folders_of_a_session_count_together(tmp_path: Path) -> None:
    limit = 100
    files = TempFiles(lambda: limit)
    files.grow(60 << 10)
    assert files.left(tmp_path / "a") == 40 << 10
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(bytes(32 << 10))
    assert files.left(tmp_path / "a") == 40 << 10, "its own are among what it may have"
    assert files.left(tmp_path / "b") == 8 << 10
    with pytest.raises(SqlError) as caught:
        files.grow(9 << 10)
    assert (caught.value.sqlstate, caught.value.message) == exceeded(limit)
    files.grow(8 << 10)
    files.without(tmp_path / "a")
    files.grow(32 << 10)
    files.shrink(100 << 10)
    assert files.left(tmp_path / "b") == 100 << 10
    limit = 0
    assert files.left(tmp_path / "b") == 0
    limit = -1
    files.grow(1 << 40)
    assert not files.limited


class Instance:
    """DuckDB as far as its memory limit goes."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def execute(self, sql: str) -> None:
        self.said.append(sql)


def test_memory_that_is_lent_is_the_shared_instances_no_more() -> None:
    shared = Instance()
    limit = MemoryLimit(4 * MIN_MEMORY_BYTES, 8 * MIN_MEMORY_BYTES)
    lent = limit.lend(shared)
    assert lent == 2 * MIN_MEMORY_BYTES
    assert shared.said[-1] == f"SET GLOBAL memory_limit = '{2 * MIN_MEMORY_BYTES}B'"
    assert limit.lend(shared) is None
    limit.returning(lent)
    ending = threading.Timer(0.1, limit.give_back, (shared, lent))
    ending.start()
    assert limit.lend(shared) == lent, "it waits for what is being given back"
    ending.join()
    limit.returning(lent)
    limit.give_back(shared, lent)
    assert shared.said[-1] == f"SET GLOBAL memory_limit = '{4 * MIN_MEMORY_BYTES}B'"
    assert limit.lend(shared) == lent


def test_what_a_killed_server_left_is_removed(tmp_path: Path) -> None:
    left = folder_of(tmp_path, 7)
    left.mkdir()
    (left / "x").write_text("rows")
    (tmp_path / "other").mkdir()
    remove_left(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_what_duckdb_spills_for_a_session_is_bounded(
    small: ServerProcess, session: psycopg.Connection
) -> None:
    without = session.execute(SORTED).fetchall()
    for limit_kb in (0, 10240):
        session.execute(f"SET temp_file_limit = {limit_kb}")
        assert fails(session, SORTED) == exceeded(limit_kb)
    assert session.execute("SELECT count(*) FROM big").fetchall() == [(ROWS,)], "it needs no file"
    session.execute("SET temp_file_limit = '2GB'")
    assert session.execute(SORTED).fetchall() == without
    with psycopg.connect(small.url, autocommit=True) as other:
        session.execute("SET temp_file_limit = 0")
        assert other.execute(SORTED).fetchall() == without, "others have no limit"
    deadline = time.monotonic() + 10
    while spilled(small) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not spilled(small)


def test_where_an_instance_has_no_memory_left_another_executor_answers(session: psycopg.Connection) -> None:
    session.execute("SET temp_file_limit = '2GB'")
    with session.transaction():
        names = [f"c{n}" for n in range(3)]
        for name in names:
            session.execute(f"DECLARE {name} CURSOR FOR SELECT i, m FROM big")
            assert session.execute(f"FETCH 1 FROM {name}").fetchall()
        session.execute("SET LOCAL executor = local")
        session.execute("DECLARE pinned CURSOR FOR SELECT i, m FROM big")
        with pytest.raises(psycopg.Error, match="no memory for another query with temp_file_limit"):
            session.execute("FETCH 1 FROM pinned")
        raise psycopg.Rollback


def test_rows_in_files_are_bounded(session: psycopg.Connection) -> None:
    session.execute("CREATE TEMP TABLE t (i int, m text)")
    insert = "INSERT INTO t SELECT i, m FROM big LIMIT 100000 RETURNING m"
    session.execute("SET temp_file_limit = '1MB'")
    assert fails(session, insert) == exceeded(1024)
    session.execute("BEGIN; SET LOCAL executor = index; DECLARE c SCROLL CURSOR FOR SELECT i, m FROM big")
    assert fails(session, "MOVE 600000 FROM c") == exceeded(1024)
    session.execute("ROLLBACK")
    session.execute("SET temp_file_limit = '200MB'")
    for _ in range(5):  # what is there at a time counts, not what there has been
        assert len(session.execute(insert).fetchall()) == 100_000


def test_spark_whose_spilled_data_nobody_bounds_is_refused(session: psycopg.Connection) -> None:
    session.execute("SET temp_file_limit = '1GB'; SET executor = spark")
    assert fails(session, "SELECT count(*) FROM big") == (
        "0A000",
        "temp_file_limit in this executor is not supported",
    )


def test_who_may_set_it(session: psycopg.Connection) -> None:
    session.execute("CREATE ROLE nobody_much")
    session.execute("SET ROLE nobody_much")
    denied = ("42501", 'permission denied to set parameter "temp_file_limit"')
    assert fails(session, "SET temp_file_limit = -1") == denied
    session.execute("RESET ROLE")
    session.execute("SET temp_file_limit = 2048")
    assert session.execute("SHOW temp_file_limit").fetchall() == [("2MB",)]
    assert fails(session, "SET temp_file_limit = -2")[0] == "22023"
    session.execute("DROP ROLE nobody_much")
