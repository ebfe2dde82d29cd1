"""Figures in files: another version's, and damaged ones, are none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from engine.base.statistics_records import (
    ColumnRecord,
    ExpressionRecord,
    ExtendedRecord,
    McvItem,
    TableRecord,
)
from engine.executors.statistics.figures import ColumnFigures, PartFigures
from engine.executors.statistics.files import StatisticsFiles

PARTS = {
    "7/1-a": PartFigures(3, {1: ColumnFigures(2, bytes(range(64)) * 16, -5, 2**62), 2: ColumnFigures(0)}),
    "7/1-b": PartFigures(1, {1: ColumnFigures(1, bytes(1024), 0.5, 1.5, 9, 4)}),
}
RECORDS = {7: TableRecord(4, {1: ColumnRecord("int64", 0.25, 8, -0.5)}, 1, None)}
EXTENDED = {
    9: ExtendedRecord(
        (23, 25),
        False,
        '{"1, 2": 3}',
        None,
        (McvItem(("1", None), 0.5, 0.25),),
        (ExpressionRecord(0.0, 4, -1.0),),
    )
}


def files(folder: Path, sketches: str = "some 1") -> StatisticsFiles:
    return StatisticsFiles(folder / "statistics", sketches)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert files(tmp_path).parts(7) == {}
    assert files(tmp_path).records() == {}
    files(tmp_path).write_parts(7, PARTS)
    files(tmp_path).write_records(RECORDS)
    files(tmp_path).write_extended(EXTENDED)
    assert files(tmp_path).extended() == EXTENDED
    assert files(tmp_path).parts(7) == PARTS
    assert files(tmp_path).records() == RECORDS
    assert files(tmp_path).parts(8) == {}


def test_sketches_of_another_version_are_not_read(tmp_path: Path) -> None:
    files(tmp_path).write_parts(7, PARTS)
    assert files(tmp_path, "some 2").parts(7) == {}


def test_damage_is_told_and_counted_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files(tmp_path).write_parts(7, PARTS)
    path = tmp_path / "statistics" / "7.parts"
    whole = path.read_bytes()
    for data in (whole[:-1], whole[:60], whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]):
        path.write_bytes(data)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "holdfast"):
            assert files(tmp_path).parts(7) == {}
        assert "7.parts is damaged" in caplog.text
    path.write_bytes(whole)
    assert files(tmp_path).parts(7) == PARTS


def test_files_of_dropped_tables_go(tmp_path: Path) -> None:
    files(tmp_path).sweep({7})  # there is no folder yet
    for shard in (7, 8):
        files(tmp_path).write_parts(shard, PARTS)
    files(tmp_path).write_records(RECORDS)
    files(tmp_path).sweep({7})
    assert sorted(p.name for p in (tmp_path / "statistics").iterdir()) == ["7.parts", "analyzed"]
