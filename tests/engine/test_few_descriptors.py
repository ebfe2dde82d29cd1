"""A schema of many tables, indexes and partitions with parts runs with few descriptors: sidecars keep none, parts are open for one read."""

from __future__ import annotations

import gc
import os
import resource
from pathlib import Path

import pytest

from tests.support.server import ServerProcess
from txn.persist.mapping import SMALL_BYTES, Mapping


def mappings(name: str) -> int:
    return Path("/proc/self/maps").read_text().count(name)


@pytest.mark.parametrize("size", [100, SMALL_BYTES, SMALL_BYTES + 1, 3 * SMALL_BYTES])
def test_a_mapped_file_keeps_no_descriptor_and_goes_with_its_last_view(tmp_path: Path, size: int) -> None:
    path = tmp_path / f"mapped-{size}.bin"
    content = os.urandom(size)
    path.write_bytes(content)
    before = sorted(os.listdir("/proc/self/fd"))
    with path.open("rb") as file:
        mapped = Mapping(file.fileno(), size)
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert len(mapped) == size
    assert mappings(path.name) == (size > SMALL_BYTES)
    mapped.forget(0, size)
    view = mapped.view[size // 2 :].cast("B")
    assert bytes(mapped.view) == content
    with pytest.raises(TypeError):
        view[0] = 1
    path.unlink()
    del mapped
    gc.collect()
    assert bytes(view) == content[size // 2 :]
    del view
    gc.collect()
    assert mappings(path.name) == 0


def build(server: ServerProcess, tables: int, partitions: int) -> None:
    """Make tables with three indexes each and a table of many partitions, whose rows are all in parts."""
    server.sql("CREATE TABLE p (k int, v int) PARTITION BY RANGE (k)")
    server.sql(
        "DO $$ BEGIN FOR i IN 1.." + str(partitions) + " LOOP EXECUTE format('CREATE TABLE p%s PARTITION OF p FOR VALUES FROM (%s) TO (%s)', "
        "i, i * 10, i * 10 + 10); END LOOP; END $$"
    )  # fmt: skip
    server.sql(f"INSERT INTO p SELECT i, i FROM generate_series(10, {partitions * 10 + 9}) i")
    for start in range(0, tables, 50):
        texts = [
            f"CREATE TABLE t{n} (a int PRIMARY KEY, b text UNIQUE, c int); CREATE INDEX ON t{n} (c);"
            f"INSERT INTO t{n} SELECT i, 'text ' || i, i % 7 FROM generate_series(1, 300) i"
            for n in range(start, min(start + 50, tables))
        ]
        server.sql("; ".join(texts))
    client = server.connect(timeout_s=3600)  # thousands of tables are flushed one after the other
    try:
        client.run("CHECKPOINT")
    finally:
        client.close()


def check(server: ServerProcess, tables: int, partitions: int) -> None:
    for n in range(tables):
        rows = server.sql(
            f"SELECT (SELECT a FROM t{n} WHERE b = 'text 7'), (SELECT count(*) FROM t{n} WHERE c = 3), "
            f"(SELECT b FROM t{n} WHERE a = 300)"
        )
        assert rows == [("7", "43", "text 300")]
    server.sql("SET executor = 'local'")
    assert server.sql("SELECT count(*), sum(v) = sum(k) FROM p") == [(str(partitions * 10), "t")]
    assert server.sql("SELECT v FROM p WHERE k = 77") == [("77",)]
    assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 200


def run(folder: Path, tables: int, partitions: int, limit: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = ServerProcess(folder / "data", "--max-connections", "20")
    try:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, hard))
        build(server, tables, partitions)
        check(server, tables, partitions)
    finally:
        server.stop()
    assert (soft, hard) == resource.getrlimit(resource.RLIMIT_NOFILE)
    again = ServerProcess(folder / "data", "--max-connections", "20")
    try:
        resource.prlimit(again.process.pid, resource.RLIMIT_NOFILE, (limit, hard))
        check(again, tables, partitions)
    finally:
        again.stop()


def test_tables_indexes_and_partitions_with_parts_need_no_descriptors(tmp_path: Path) -> None:
    """120 sidecars and 20 parts beside 160 descriptors, of which the server itself has some 60."""
    run(tmp_path, 20, 20, 160)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_five_thousand_tables_run_with_a_thousand_descriptors(tmp_path: Path) -> None:
    run(tmp_path, 5000, 500, 1024)
