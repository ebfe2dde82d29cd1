"""Paths that COPY may touch: only below the directories of server_files, whatever links and .. say."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest

from engine.base.regular_files import NotRegularFile, open_regular
from engine.base.server_files import file_error, found, roots_of, target
from engine.base.stored_objects import open_bytes, open_parquet
from planner.base.errors import SqlError
from tests.support.server import ServerProcess

CONTENTS = "1\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return in/ (allowed) beside out/ (not)."""
    for name in (
        "in/a.csv",
        "in/b.csv",
        "in/sub/c.csv",
        "in/_SUCCESS",
        "in/.hidden",
        "out/secret.csv",
        "inner/x.csv",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CONTENTS)
    return tmp_path


def names(place: Path, name: str) -> list[str]:
    return [os.path.relpath(file.path, place) for file in found(name, roots_of(str(place / "in")))]


def refused(place: Path, name: str, setting: str | None = None) -> SqlError:
    with pytest.raises(SqlError) as caught:
        found(name, roots_of(str(place / "in") if setting is None else setting))
    return caught.value


def test_files_directories_patterns_and_urls(place: Path) -> None:
    assert names(place, f"{place}/in/b.csv") == ["in/b.csv"]
    assert names(place, f"file://{place}/in/b.csv") == ["in/b.csv"]
    assert names(place, f"{place}/in") == ["in/a.csv", "in/b.csv"]
    assert names(place, f"{place}/in/*.csv") == ["in/a.csv", "in/b.csv"]
    assert names(place, f"{place}/in/*/?.csv") == ["in/sub/c.csv"]
    assert names(place, f"{place}/in/sub/../a.csv") == ["in/a.csv"]
    (place / "in/odd[1].csv").write_text("1\n")
    assert names(place, f"{place}/in/odd[1].csv") == ["in/odd[1].csv"]
    assert names(place, f"file://{place}/in/odd%5B1%5D.csv") == ["in/odd[1].csv"]
    assert found(f"{place}/in/a.csv", roots_of(str(place)))[0].size == 2


@pytest.mark.parametrize(
    "path",
    ["out/secret.csv", "in/../out/secret.csv", "inner/x.csv", "out", "out/*", "in/../out/*", "*/secret.csv"],
)
def test_nothing_outside_is_read(place: Path, path: str) -> None:
    error = refused(place, f"{place}/{path}")
    assert error.sqlstate == "42501"
    assert error.hint is not None
    assert "server_files" in error.hint


@pytest.mark.parametrize("asked", ["in/link.csv", "in/*.csv", "in", "in/away/secret.csv", "in/away/*"])
def test_links_do_not_lead_out(place: Path, asked: str) -> None:
    (place / "in/link.csv").symlink_to(place / "out/secret.csv")
    (place / "in/away").symlink_to(place / "out")
    assert refused(place, f"{place}/{asked}").sqlstate == "42501"


def test_a_root_may_be_a_link(place: Path) -> None:
    (place / "way").symlink_to(place / "in")
    assert len(found(f"{place}/way/a.csv", roots_of(str(place / "way")))) == 1


def test_what_is_wrong_is_named(place: Path) -> None:
    assert refused(place, f"{place}/in/none.csv").sqlstate == "58P01"
    assert refused(place, f"{place}/in/*.none").sqlstate == "58P01"
    assert refused(place, "a.csv").sqlstate == "42602"
    assert refused(place, "http://host/a.csv").sqlstate == "0A000"
    assert refused(place, f"file://host{place}/in/a.csv").sqlstate == "22023"
    assert refused(place, f"{place}/in/a.csv", "").detail == "The server_files setting lists no directory."
    os.mkfifo(place / "in/pipe")
    assert refused(place, f"{place}/in/pipe").sqlstate == "42809"
    with pytest.raises(ValueError, match="not an absolute path"):
        roots_of("/a,b")


ODD = ("pipe", "socket", "device", "link", "directory")


def odd(folder: Path, kind: str) -> Path:
    """Make what is no regular file."""
    path = folder / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(str(path))
    elif kind == "device":
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
        except PermissionError:
            pytest.skip("needs root")
    elif kind == "link":
        path.symlink_to(folder / "a.csv")
    else:
        path.mkdir()
    return path


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_not_opened_even_where_it_was_one(place: Path, kind: str) -> None:
    path = str(odd(place / "in", kind))
    for open_it in (open_bytes, open_parquet, partial(open_regular, flags=os.O_WRONLY | os.O_CREAT)):
        with pytest.raises(NotRegularFile) as caught:
            open_it(path)
        assert file_error(caught.value, path, "reading").sqlstate == "42809"
    assert os.lstat(path).st_size == 0 or kind in ("link", "directory")
    assert (place / "in/a.csv").read_text() == CONTENTS


def test_a_folder_that_became_a_link_leads_nowhere(place: Path) -> None:
    resolved = found(f"{place}/in/a.csv", roots_of(str(place)))[0].path
    assert isinstance(resolved, str)
    with open_bytes(resolved) as file:
        assert file.read().decode() == CONTENTS
    (place / "in").rename(place / "was")
    (place / "in").symlink_to(place / "was")
    with pytest.raises(PermissionError):
        open_bytes(resolved)


def test_targets(place: Path) -> None:
    roots = roots_of(str(place / "in"))
    assert target(f"{place}/in/new.csv", roots) == str(place / "in/new.csv")
    (place / "in/away").symlink_to(place / "out")
    for path in ("out/new.csv", "in/away/new.csv", "in/../new.csv"):
        with pytest.raises(SqlError) as caught:
            target(f"{place}/{path}", roots)
        assert caught.value.sqlstate == "42501"


def test_pipes_and_devices_keep_no_thread_of_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text(CONTENTS)
    server = ServerProcess(tmp_path / "data", "--server-files", str(folder))
    paths = [odd(folder, kind) for kind in ("pipe", "socket")]
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a int); SELECT lo_create(77)")
        for path in paths:
            for statement in (
                f"COPY t FROM '{path}'", f"COPY t FROM '{path}' (FORMAT parquet)", f"COPY t FROM '{folder}/{path.name[:3]}*'",
                f"COPY t TO '{path}'", f"COPY t TO '{path}' (FORMAT parquet)", f"COPY t TO '{path}/'",
                f"SELECT lo_import('{path}')", f"SELECT lo_export(77, '{path}')",
            ):  # fmt: skip
                with pytest.raises(psycopg.Error) as caught:
                    connection.execute(statement)
                assert caught.value.sqlstate == ("58P02" if statement.endswith("/'") else "42809"), statement
        for path in paths:
            path.unlink()
        connection.execute(f"COPY t FROM '{folder}'")
    server.stop()
