"""Paths that COPY may touch: only below the directories of server_files, whatever links and .. say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.bulk.server_files import found, roots_of, target
from planner.errors import SqlError


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
        path.write_text("1\n")
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


def test_targets(place: Path) -> None:
    roots = roots_of(str(place / "in"))
    assert target(f"{place}/in/new.csv", roots) == str(place / "in/new.csv")
    (place / "in/away").symlink_to(place / "out")
    for path in ("out/new.csv", "in/away/new.csv", "in/../new.csv"):
        with pytest.raises(SqlError) as caught:
            target(f"{place}/{path}", roots)
        assert caught.value.sqlstate == "42501"
