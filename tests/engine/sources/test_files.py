"""FILES sources: every new file once, in three formats; what is malformed stops the source and says where."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engine.sources.support import PATIENCE_S, Connection, connect, refused, rows, value, wait_for
from tests.support.server import ServerProcess

FAST = "settle_ms = 20, poll_interval_ms = 20"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("incoming")


@pytest.fixture(scope="module")
def files_server(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("files") / "data", "--server-files", str(root))
    yield process
    assert process.stop() == 0


@pytest.fixture
def here(files_server: ServerProcess) -> Iterator[Connection]:
    with connect(files_server) as c:
        yield c
        for [name] in rows(c, "SELECT DISTINCT name FROM holdfast_sources"):
            c.execute(f"DROP SOURCE {name} CASCADE")


@pytest.fixture
def folder(root: Path) -> Path:
    path = root / f"in_{len(list(root.iterdir()))}"
    path.mkdir()
    return path


def put(folder: Path, name: str, text: str | bytes) -> Path:
    """Write a file as it should be: hidden, then renamed."""
    data = text.encode() if isinstance(text, str) else text
    hidden = folder / f".{name}"
    hidden.write_bytes(data)
    hidden.rename(folder / name)
    return folder / name


def error_of(c: Connection, name: str) -> str:
    wait_for(c, f"SELECT state FROM holdfast_sources WHERE name = '{name}'", "stopped")
    return str(value(c, f"SELECT last_error FROM holdfast_sources WHERE name = '{name}'"))


def test_new_csv_files_come_once_each(here: Connection, folder: Path) -> None:
    put(folder, "a.csv", 'id,v,n\n1,one,1.50\n2,"two\nlines",\n')
    here.execute(
        f"CREATE SOURCE feed (id int, v text, n numeric(5,2)) FROM FILES (path = '{folder}', format = csv, header,"
        f" pattern = '*.csv', {FAST})"
    )
    wait_for(here, "SELECT count(*) FROM feed", 2)
    put(folder, "note.txt", "not for us")
    put(folder, "_SUCCESS", "")
    put(folder, "b.csv", "id,v,n\n3,,0\n")
    put(folder, "empty.csv", "")
    wait_for(here, "SELECT count(*) FROM feed", 3)
    assert rows(here, "SELECT * FROM feed ORDER BY id") == [
        (1, "one", Decimal("1.50")), (2, "two\nlines", None), (3, None, Decimal("0.00")),
    ]  # fmt: skip
    wait_for(here, "SELECT lag FROM holdfast_sources WHERE name = 'feed'", 0)
    about = "SELECT partition, rows, lag_unit, state FROM holdfast_sources WHERE name = 'feed'"
    assert rows(here, about) == [(str(folder), 3, "files", "running")]


def test_json_lines_and_upserts_by_key(here: Connection, folder: Path) -> None:
    here.execute(
        "CREATE SOURCE stock (sku text, qty int, tags text[], extra jsonb, PRIMARY KEY (sku)) FROM FILES"
        f" (path = '{folder}', format = json, envelope = upsert, {FAST})"
    )
    put(
        folder,
        "1.json",
        '{"sku": "a", "qty": 1, "tags": ["x", null]}\n{"sku": "b", "qty": 2}\n{"sku": "a", "qty": 3}',
    )
    wait_for(here, "SELECT count(*) FROM stock", 2)
    put(folder, "2.json", json.dumps({"sku": "b", "qty": 9, "extra": {"deep": [1, {"er": 2.50}]}}) + "\n")
    wait_for(here, "SELECT qty FROM stock WHERE sku = 'b'", 9)
    assert rows(here, "SELECT * FROM stock ORDER BY sku") == [
        ("a", 3, None, None), ("b", 9, None, {"deep": [1, {"er": 2.5}]}),
    ]  # fmt: skip


def test_parquet_columns_by_name(here: Connection, folder: Path) -> None:
    here.execute(
        "CREATE SOURCE wide (id bigint NOT NULL, name varchar(5), price numeric(10,2), any_number numeric, at timestamptz,"
        f" day date, ok boolean, raw bytea, real_number real, u uuid) FROM FILES (path = '{folder}', format = parquet, {FAST})"
    )
    table = pa.table(
        {
            "u": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", None],
            "name": pa.array(["ann", None]).dictionary_encode(),
            "id": pa.array([1, 2], pa.int32()),
            "price": pa.array([Decimal("1.5"), None], pa.decimal128(9, 1)),
            "any_number": pa.array([7, None], pa.int16()),
            "at": pa.array([1_700_000_000_000, None], pa.timestamp("ms", tz="UTC")),
            "day": pa.array([19000, None], pa.date32()),
            "ok": [True, None],
            "raw": pa.array([b"\x00\xff", None], pa.binary()),
            "real_number": pa.array([1.5, None], pa.float32()),
        }
    )
    hidden = folder / ".t"
    pq.write_table(table, hidden)
    hidden.rename(folder / "t.parquet")
    wait_for(here, "SELECT count(*) FROM wide", 2)
    shown = "SELECT id, name, price, any_number, at = '2023-11-14 22:13:20+00', day::text, ok, raw, real_number, u::text FROM wide"
    assert rows(here, f"{shown} WHERE id = 1") == [
        (1, "ann", Decimal("1.50"), Decimal(7), True, "2022-01-08", True, b"\x00\xff", 1.5,
         "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
    ]  # fmt: skip


MALFORMED = [
    (
        "csv",
        "1,1\n\x1f\x8b\x08,2\n".encode("latin-1"),
        '22021: invalid byte sequence for encoding "UTF8": 0x8b',
        "line 2",
    ),
    ("csv", "1,1\n2,x\n", '22P02: invalid input syntax for type integer: "x"', 'line 2, column n: "x"'),
    ("csv", "1,1\n2\n", '22P04: missing data for column "n"', "line 2"),
    (
        "csv",
        "1,1\n,2\n",
        '23502: null value in column "id" of relation "bad" violates not-null constraint',
        "line 2",
    ),
    (
        "csv",
        "1,1\n2,99999999999\n",
        '22003: value "99999999999" is out of range for type integer',
        "line 2, column n",
    ),
    ("csv", '1,"1\n', "22P04: unterminated CSV quoted field", "line 1"),
    ("csv", b"1,1\n\xff,2\n", '22021: invalid byte sequence for encoding "UTF8": 0xff', "line 2"),
    (
        "json",
        '{"id": 1}\n{"id": "z"}\n',
        '22P02: invalid input syntax for type integer: "z"',
        "line 2, column id",
    ),
    ("json", '{"id": 1}\n{"id": 2, "more": 1}\n', '22P04: key "more" is not a copied column', "line 2"),
    ("json", '{"id": 1}\n[2]\n', "22P04: line is not a JSON object", "line 2"),
    ("json", '{"id": 1}\n{"id"\n', "22P02: invalid input syntax for type json", "line 2"),
    ("parquet", "PAR1 it is not", "22P04: file", ""),
]


@pytest.mark.parametrize(("form", "text", "message", "place"), MALFORMED)
def test_a_malformed_file_is_named_and_nothing_of_it_is_here(
    here: Connection, folder: Path, form: str, text: str | bytes, message: str, place: str
) -> None:
    path = put(folder, "bad.x", text)
    here.execute(
        f"CREATE SOURCE bad (id int NOT NULL, n int) FROM FILES (path = '{folder}', format = {form}, {FAST},"
        " max_batch_rows = 1)"
    )
    error = error_of(here, "bad")
    assert error.startswith(message)
    assert f'CONTEXT: file "{path}"{", " if place else ""}{place}' in error
    assert value(here, "SELECT count(*) FROM bad") == 0
    path.unlink()
    if form == "csv":
        put(folder, "good.x", "5,6\n")
        here.execute("ALTER SOURCE bad RESUME")
        wait_for(here, "SELECT max(n) FROM bad", 6)


def test_files_before_a_malformed_one_are_here(here: Connection, folder: Path) -> None:
    for name, text in (("a", "1\n2\n"), ("b", "3\n"), ("c", "4\nx\n"), ("d", "5\n")):
        os.utime(put(folder, name, text), ns=(0, ord(name)))
    here.execute(f"CREATE SOURCE four (n int) FROM FILES (path = '{folder}', format = csv, {FAST})")
    assert f'file "{folder / "c"}", line 2, column n: "x"' in error_of(here, "four")
    assert rows(here, "SELECT array_agg(n ORDER BY n) FROM four") == [([1, 2, 3],)]
    (folder / "c").unlink()
    here.execute("ALTER SOURCE four RESUME")
    wait_for(here, "SELECT max(n) FROM four", 5)


PARQUET_SCHEMAS = [
    ({"id": ["1"], "extra": [1]}, "42703", 'column "extra" of file "{}" is not a column of relation "other"'),
    ({"other": [1]}, "42703", 'file "{}" has no column "id"'),
    (
        {"id": [1.5]},
        "42804",
        'column "id" of file "{}" has type double, which does not go to a column of type int4',
    ),
    ({"id": [1, 1 << 40]}, "22003", 'value "1099511627776" is out of range for type integer'),
    (
        {"id": [1, None]},
        "23502",
        'null value in column "id" of relation "other" violates not-null constraint',
    ),
]


@pytest.mark.parametrize(("columns", "sqlstate", "message"), PARQUET_SCHEMAS)
def test_parquet_files_of_another_schema(
    here: Connection, folder: Path, columns: dict[str, list[object]], sqlstate: str, message: str
) -> None:
    pq.write_table(pa.table(columns), folder / ".p")
    (folder / ".p").rename(folder / "p")
    here.execute(
        f"CREATE SOURCE other (id int NOT NULL) FROM FILES (path = '{folder}', format = parquet, {FAST})"
    )
    error = error_of(here, "other")
    assert error.startswith(f"{sqlstate}: {message.format(folder / 'p')}")
    assert f'CONTEXT: file "{folder / "p"}"' in error


def test_a_file_that_changes_after_it_was_read_stops_the_source(here: Connection, folder: Path) -> None:
    path = put(folder, "a.csv", "1\n")
    here.execute(f"CREATE SOURCE once (id int) FROM FILES (path = '{folder}', format = csv, {FAST})")
    wait_for(here, "SELECT count(*) FROM once", 1)
    with path.open("a") as file:
        file.write("2\n")
    assert error_of(here, "once").startswith(
        f'55000: file "{path}" changed after the source had read from it'
    )
    assert value(here, "SELECT count(*) FROM once") == 1


def test_files_in_many_batches_and_duplicate_keys(here: Connection, folder: Path) -> None:
    put(folder, "a.csv", "".join(f"{i},{i * i}\n" for i in range(5000)))
    here.execute(
        f"CREATE SOURCE squares (id int PRIMARY KEY, sq bigint) FROM FILES (path = '{folder}', format = csv, {FAST},"
        " max_batch_rows = 700)"
    )
    wait_for(here, "SELECT count(*) FROM squares", 5000)
    assert value(here, "SELECT sum(sq) = sum(id::bigint * id) FROM squares") is True
    put(folder, "b.csv", "5000,1\n17,1\n")
    error = error_of(here, "squares")
    assert error.startswith('23505: duplicate key value violates unique constraint "squares_pkey"')
    assert error.endswith(f"CONTEXT: files b.csv of {folder}")
    assert value(here, "SELECT count(*) FROM squares") == 5000


def test_files_are_moved_or_deleted_once_they_are_here(here: Connection, folder: Path) -> None:
    inbox, done = folder / "in", folder / "done"
    inbox.mkdir()
    done.mkdir()
    here.execute(
        f"CREATE SOURCE moved (id int) FROM FILES (path = '{inbox}', format = csv, after = move, move_to = '{done}', {FAST})"
    )
    for i in range(3):
        put(inbox, "same.csv", f"{i}\n")
        wait_for(here, "SELECT count(*) FROM moved", i + 1)
        wait_for_empty(inbox)
    assert len(list(done.iterdir())) == 3
    here.execute("DROP SOURCE moved")
    here.execute(
        f"CREATE SOURCE moved (id int) FROM FILES (path = '{inbox}', format = csv, after = delete, {FAST})"
    )
    put(inbox, "x.csv", "1\n")
    wait_for(here, "SELECT count(*) FROM moved", 1)
    wait_for_empty(inbox)


def wait_for_empty(folder: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while list(folder.iterdir()):
        assert time.monotonic() < end, f"{folder} still holds {list(folder.iterdir())}"
        time.sleep(0.02)


def test_a_directory_that_goes_stops_the_source_until_it_is_back(here: Connection, folder: Path) -> None:
    inbox = folder / "in"
    inbox.mkdir()
    here.execute(
        f"CREATE SOURCE back (id int, v text) FROM FILES (path = '{inbox}', format = csv, header, {FAST})"
    )
    inbox.rename(folder / "away")
    assert error_of(here, "back") == f'58P01: directory "{inbox}" does not exist'
    (folder / "away").rename(inbox)
    put(inbox, "a.csv", "v,id\none,1\n")
    here.execute("ALTER SOURCE back RESUME")
    error = "SELECT last_error FROM holdfast_sources WHERE name = 'back'"
    wait_for(here, error, '22P04: column name mismatch in header line field 1: got "v", expected "id"\n'
             f'CONTEXT: file "{inbox}/a.csv", line 1: "v,id"')  # fmt: skip
    assert error_of(here, "back")
    put(inbox, "a.csv", "id,v\n1,one\n")
    here.execute("ALTER SOURCE back RESUME")
    wait_for(here, "SELECT string_agg(id || v, ',') FROM back", "1one")


def test_directories_outside_of_server_files(here: Connection, folder: Path) -> None:
    sql = "CREATE SOURCE out (a int) FROM FILES (path = '{}', format = csv)"
    diag = refused(here, sql.format("/etc"), "42501")
    assert diag.message_primary == 'permission denied for a source to use "/etc"'
    assert "server_files" in str(diag.message_hint)
    refused(here, sql.format(f"{folder}/../../.."), "42501")
    refused(here, sql.format(f"{folder}/none"), "58P01")
    refused(here, sql.format("relative"), "42602")
    assert "http://b/in" in str(refused(here, sql.format("http://b/in"), "0A000").message_primary)
    refused(here, sql.format("s3://bucket/in"), "42501")
    put(folder, "plain", "")
    refused(here, sql.format(folder / "plain"), "42809")
    refused(here, f"CREATE SOURCE out FROM FILES (path = '{folder}', format = csv)", "42601")
    refused(here, f"CREATE SOURCE out (a int) FROM FILES (path = '{folder}', format = json, header)", "22023")
    refused(
        here,
        f"CREATE SOURCE out (a int) FROM FILES (path = '{folder}', format = csv, envelope = upsert)",
        "22023",
    )
    refused(
        here, f"CREATE SOURCE out (a int) FROM FILES (path = '{folder}', format = csv, after = move)", "22023"
    )
    os.symlink("/etc/passwd", folder / "linked.csv")
    here.execute(
        f"CREATE SOURCE out (a text) FROM FILES (path = '{folder}', format = csv, {FAST}, pattern = 'l*')"
    )
    assert error_of(here, "out").startswith("42501: permission denied")
