"""FILES sources that read objects of an S3-compatible store (moto): each once, put away, refused, replaced."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.base.server_files import roots_of
from engine.base.stored_objects import StoredObject, all_below, open_bytes, upload
from engine.feeds.sources.files_directory import Found
from engine.feeds.sources.files_objects import ObjectFolder
from tests.engine.sources.support import Connection, connect, refused, rows, value, wait_for
from tests.support.objects import ObjectProxy, ObjectStoreServer
from tests.support.server import ServerProcess
from txn.persist.blobs.object_url import parse_object_url

FAST = "settle_ms = 0, poll_interval_ms = 50"


class Store:
    """A bucket, and a server that may read below its folder ``in``, through a proxy."""

    def __init__(self, moto: ObjectStoreServer, data_dir: Path) -> None:
        self.bucket = moto.new_bucket()
        self.proxy = ObjectProxy(moto.port)
        self.moto = moto
        self._at = parse_object_url(moto.url(self.bucket, "in"))
        self._data_dir = data_dir
        roots = (self._url(self.bucket), self._url("no-such-bucket"), str(data_dir.parent))
        self._options = ("--server-files", ",".join(roots))
        self.server = ServerProcess(data_dir, *self._options)

    def _url(self, bucket: str) -> str:
        return self.moto.url(bucket, "in", self.proxy.port)

    def again(self) -> None:
        """Kill the server, and start it over the same data."""
        self.server.kill()
        self.server = ServerProcess(self._data_dir, *self._options)

    def at(self, key: str) -> StoredObject:
        return StoredObject(self._at, f"{self.bucket}/in/{key}")

    def put(self, key: str, data: str | bytes) -> None:
        upload(self.at(key), io.BytesIO(data.encode() if isinstance(data, str) else data))

    def keys(self, folder: str) -> list[str]:
        return sorted(one.key.rpartition("/")[2] for one in all_below(self.at(folder)))

    def text(self, key: str) -> str:
        with open_bytes(self.at(key)) as file:
            return file.read().decode()

    def path(self, folder: str) -> str:
        return f"s3://{self.bucket}/in/{folder}"


@pytest.fixture(scope="module")
def store(object_store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(object_store, tmp_path_factory.mktemp("objects") / "data")
    yield made
    assert made.server.stop() == 0
    made.proxy.close()


@pytest.fixture
def here(store: Store) -> Iterator[Connection]:
    with connect(store.server) as c:
        yield c
        store.proxy.fault = lambda method, path: None
        for [name] in rows(c, "SELECT DISTINCT name FROM holdfast_sources"):
            c.execute(f"DROP SOURCE {name} CASCADE")


def create(c: Connection, name: str, columns: str, options: str) -> None:
    c.execute(f"CREATE SOURCE {name} ({columns}) FROM FILES ({options}, {FAST})")


def state_of(c: Connection, name: str, expected: str) -> str:
    wait_for(c, f"SELECT state FROM holdfast_sources WHERE name = '{name}'", expected)
    return str(value(c, f"SELECT last_error FROM holdfast_sources WHERE name = '{name}'"))


def put_feed(store: Store, folder: str) -> None:
    """Put an object of 3,000 rows, and others that are not for the source."""
    store.put(f"{folder}/a.csv", "id,v\n" + "".join(f"{n},row {n}\n" for n in range(3000)))
    store.put(f"{folder}/_SUCCESS", "")
    store.put(f"{folder}/.hidden.csv", "not for us")
    store.put(f"{folder}/note.txt", "not for us")
    store.put(f"{folder}/deep/b.csv", "not for us")


def create_feed(c: Connection, store: Store, name: str) -> None:
    create(
        c, name, "id int PRIMARY KEY, v text",
        f"path = '{store.path(name)}/', format = csv, header, pattern = '*.csv', max_batch_rows = 1000",
    )  # fmt: skip


def check_feed(c: Connection, store: Store, name: str) -> None:
    store.put(f"{name}/c.csv", "id,v\n3000,last\n")
    wait_for(c, f"SELECT max(v) FROM {name} WHERE id = 3000", "last")
    assert rows(c, f"SELECT count(*), min(id), max(id) FROM {name}") == [(3001, 0, 3000)]
    wait_for(c, f"SELECT lag FROM holdfast_sources WHERE name = '{name}'", 0)
    about = f"SELECT partition, rows, position FROM holdfast_sources WHERE name = '{name}'"
    assert rows(c, about) == [(store.path(name), 3001, "c.csv:1")]


def test_new_objects_come_once_each(store: Store, here: Connection) -> None:
    put_feed(store, "feed")
    create_feed(here, store, "feed")
    check_feed(here, store, "feed")
    assert store.keys("feed") == [".hidden.csv", "_SUCCESS", "a.csv", "b.csv", "c.csv", "note.txt"]


@pytest.mark.long
def test_a_killed_server_goes_on_behind_what_was_committed(store: Store) -> None:
    put_feed(store, "crash")
    with connect(store.server) as c:
        create_feed(c, store, "crash")
        wait_for(c, "SELECT count(*) >= 1000 FROM crash", True)
    store.again()
    with connect(store.server) as c:
        check_feed(c, store, "crash")
        c.execute("DROP SOURCE crash CASCADE")


def test_json_and_parquet_are_moved_and_deleted(store: Store, here: Connection) -> None:
    table = io.BytesIO()
    pq.write_table(pa.table({"v": ["one", None], "id": pa.array([1, 2], pa.int32())}), table)
    store.put("wide/t.parquet", table.getvalue())
    create(
        here, "wide", "id bigint, v text", f"path = '{store.path('wide')}', format = parquet, after = delete"
    )
    wait_for(here, "SELECT string_agg(id || coalesce(v, '-'), ',' ORDER BY id) FROM wide", "1one,2-")
    store.put("lines/x", '{"id": 1, "v": "a"}\n{"id": 2}\n')
    create(
        here, "lines", "id int PRIMARY KEY, v text",
        f"path = '{store.path('lines')}', format = json, envelope = upsert, after = move, move_to = '{store.path('done')}'",
    )  # fmt: skip
    wait_for(here, "SELECT count(*) FROM lines", 2)
    wait_for(here, "SELECT acknowledged_position FROM holdfast_sources WHERE name = 'lines'", "x:2")
    assert (store.keys("lines"), store.keys("done")) == ([], ["x"])
    store.put("lines/x", '{"id": 2, "v": "b"}\n')  # a name that is free again
    wait_for(here, "SELECT max(v) FROM lines WHERE id = 2", "b")
    wait_for(here, "SELECT rows FROM holdfast_sources WHERE name = 'lines'", 3)
    wait_for(here, "SELECT acknowledged_position FROM holdfast_sources WHERE name = 'lines'", "x:1")
    assert (store.keys("wide"), store.keys("lines")) == ([], [])
    first, second = store.keys("done")
    assert (first, second.rpartition(".")[0]) == ("x", "x")
    assert store.text(f"done/{second}") == '{"id": 2, "v": "b"}\n'


def test_a_move_that_a_crash_has_cut_in_two_leaves_one_object(store: Store) -> None:
    """Copied and not deleted: the next start deletes it, and makes no second copy."""
    store.put("half/a", "1\n")
    roots = roots_of(store.moto.url(store.bucket, "in"))
    folder = ObjectFolder(store.path("half"), roots)
    [found] = folder.listed("*")
    store.put("halves/a", "1\n")
    folder.put_away(found, store.path("halves"))
    assert (store.keys("half"), store.keys("halves")) == ([], ["a"])
    folder.put_away(found, store.path("halves"))  # once more: nothing is there
    store.put("half/a", "another\n")
    folder.put_away(found, None)  # of that name, but not the one that was read
    assert store.keys("half") == ["a"]
    [other] = folder.listed("*")
    assert folder.is_other(found)
    assert not folder.is_other(other)
    folder.put_away(other, store.path("halves"))
    assert store.keys("halves") == ["a", f"a.{other.mtime_ns}"]
    assert not folder.is_other(Found(0, "none", 0))


def test_a_malformed_object_is_named_and_read_again_when_it_is_right(store: Store, here: Connection) -> None:
    store.put("bad/a.csv", "1\n")
    create(here, "bad", "n int", f"path = '{store.path('bad')}', format = csv")
    wait_for(here, "SELECT count(*) FROM bad", 1)
    store.put("bad/b.csv", "2\nx\n")
    assert state_of(here, "bad", "stopped") == (
        f'22P02: invalid input syntax for type integer: "x"\nCONTEXT: file "{store.path("bad")}/b.csv", line 2, column n: "x"'
    )
    store.put("bad/b.csv", "2\n3\n4\n")
    here.execute("ALTER SOURCE bad RESUME")
    wait_for(here, "SELECT sum(n) FROM bad", 10)
    store.put("bad/b.csv", "2\n3\n4\n5\n")  # its rows are here already
    assert state_of(here, "bad", "stopped").startswith(
        f'55000: file "{store.path("bad")}/b.csv" changed after the source had read from it'
    )
    assert value(here, "SELECT sum(n) FROM bad") == 10


def test_a_store_that_refuses_stops_a_source_and_one_that_breaks_off_is_tried_again(
    store: Store, here: Connection
) -> None:
    here.execute("CREATE TABLE beside (n int)")
    store.put("shut/a", "1\n")
    create(here, "shut", "n int", f"path = '{store.path('shut')}', format = csv")
    wait_for(here, "SELECT count(*) FROM shut", 1)
    store.proxy.fault = lambda method, path: (403, "AccessDenied") if "list-type" in path else None
    error = state_of(here, "shut", "stopped")
    assert error.startswith(f'42501: could not list "{store.path("shut")}": ')
    assert "ACCESS_DENIED" in error
    here.execute("INSERT INTO beside VALUES (1)")  # everything else runs on
    store.proxy.fault = lambda method, path: None
    here.execute("ALTER SOURCE shut RESUME")
    store.put("shut/b", "2\n")
    wait_for(here, "SELECT count(*) FROM shut", 2)
    store.proxy.fault = lambda method, path: (404, "NoSuchKey") if path.endswith("shut/c") else None
    store.put("shut/c", "3\n")
    error = state_of(here, "shut", "retrying")  # gone since it was listed
    assert f"{store.path('shut')}/c" in error
    assert value(here, "SELECT count(*) FROM shut") == 2
    store.proxy.fault = lambda method, path: None
    wait_for(here, "SELECT string_agg(n::text, ',' ORDER BY n) FROM shut", "1,2,3")
    here.execute("DROP TABLE beside")


def test_only_what_server_files_lists(store: Store, here: Connection) -> None:
    store.put("plain", "")
    sql = "CREATE SOURCE out (a int) FROM FILES (path = '{}', format = csv)"
    diag = refused(here, sql.format(f"s3://{store.bucket}/inner"), "42501")
    assert diag.message_primary == f'permission denied for a source to use "s3://{store.bucket}/inner"'
    assert "server_files" in str(diag.message_hint)
    refused(here, sql.format(f"gs://{store.bucket}/in"), "42501")
    refused(here, sql.format(f"s3://{store.bucket}/in/../inner"), "22023")
    refused(here, sql.format(store.path("plain")), "42809")
    diag = refused(here, sql.format("s3://no-such-bucket/in/x"), "58P01")
    assert diag.message_primary == 'bucket "no-such-bucket" does not exist'
    moved = sql.replace("csv)", "csv, after = move, move_to = '{}')")
    refused(here, moved.format(store.path("a"), str(store.server.data_dir.parent)), "22023")
    refused(here, moved.format(store.path("a"), f"s3://{store.bucket}/out"), "42501")
    here.execute("CREATE ROLE no_super LOGIN; SET ROLE no_super")
    refused(here, sql.format(store.path("a")), "42501")
    here.execute("RESET ROLE; DROP ROLE no_super")
    store.proxy.fault = lambda method, path: (403, "AccessDenied")
    diag = refused(here, sql.format(store.path("a")), "42501")
    assert str(diag.message_primary).startswith(f'could not open "{store.path("a")}": ')
