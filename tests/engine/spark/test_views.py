"""Views that stay in a session: found again while nothing has changed, made anew otherwise, bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.executors.spark import views
from engine.executors.spark.views import Entry, TableViews, place_of


class Session:
    """What ``TableViews`` asks of a session, and of a frame."""

    def __init__(self) -> None:
        self.views: set[str] = set()
        self.catalog = self

    def createOrReplaceTempView(self, name: str) -> None:
        self.views.add(name)

    def dropTempView(self, name: str) -> None:
        self.views.remove(name)


def ask(kept: TableViews, session: Session, key: str, size: int = 0, file: Path | None = None) -> Entry:
    def make(name: str) -> tuple[Any, Path | None]:
        if file is not None:
            file.write_text(name)
        return session, file

    return kept.enter(key, make, None, size)


def test_a_key_has_one_view_and_another_key_another() -> None:
    session = Session()
    kept = TableViews(session, "v")
    assert [ask(kept, session, key).view for key in "abab"] == ["v_1", "v_2", "v_1", "v_2"]
    assert session.views == {"v_1", "v_2"}


def test_what_a_query_reads_stays_and_the_least_recently_used_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(views, "KEPT_VIEWS", 2)
    session = Session()
    kept = TableViews(session, "v")
    first, second = (ask(kept, session, key, file=tmp_path / key) for key in "ab")
    ask(kept, session, "c")
    assert session.views == {"v_1", "v_2", "v_3"}  # all are being read
    kept.leave(first)
    kept.leave(second)
    kept.leave(ask(kept, session, "a"))  # b is the one that was used longest ago
    assert session.views == {"v_1", "v_3"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    kept.discard()
    assert list(tmp_path.iterdir()) == []


def test_data_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "KEPT_BYTES", 100)
    session = Session()
    kept = TableViews(session, "v")
    for key in "abc":
        kept.leave(ask(kept, session, key, 60))
    assert session.views == {"v_3"}
    kept.leave(ask(kept, session, "large", 101))
    assert session.views == {"v_4"}  # read until now; the next one finds it left
    kept.leave(ask(kept, session, "d"))
    assert session.views == {"v_5"}


def test_a_frame_that_cannot_be_made_leaves_nothing() -> None:
    def make(_name: str) -> tuple[Any, Path | None]:
        raise OSError("full")

    session = Session()
    kept = TableViews(session, "v")
    with pytest.raises(OSError, match="full"):
        kept.enter("a", make, None, 0)
    assert ask(kept, session, "a").view == "v_2"


def test_rows_are_the_same_where_they_lie_and_how_they_are_cut() -> None:
    column = pa.array([1, 2, 3, None])
    table = pa.table({"a": column, "b": pa.array(["x", "y", "z", ""])})
    assert place_of(table) == place_of(pa.table({"a": column, "b": table.column("b")}))
    assert place_of(table.select(["a"])) != place_of(table)
    assert place_of(table.slice(1)) != place_of(table)
    assert place_of(table.slice(0, 3)) != place_of(table)
    assert place_of(table) != place_of(pa.table({"a": pa.array([1, 2, 3, None]), "b": table.column("b")}))
    assert place_of(table.rename_columns(["b", "a"])) != place_of(table)
    assert place_of(None) is None


def test_a_table_of_very_many_pieces_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MAX_CHUNKS", 1)
    table = pa.table({"a": pa.chunked_array([[1], [2]])})
    assert place_of(table) != place_of(table)
