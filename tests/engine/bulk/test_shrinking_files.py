"""A file that becomes shorter while COPY FROM reads it is an error: its rows are not all there, wherever it ends."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

import pytest

from engine.base.server_files import Roots, ServerFile, found
from engine.statements import copy
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk

ROWS: Final = 30_000  # past what is staged as an INSERT's
FORMATS: Final = {
    "text": b"".join(b"%d\tabc\n" % i for i in range(ROWS)),
    "csv": b"".join(b'%d,"abc"\n' % i for i in range(ROWS)),
    "json": b"".join(b'{"a": %d, "b": "abc"}\n' % i for i in range(ROWS)),
    "binary": b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"".join(
        struct.pack(">hiii3s", 2, 4, i, 3, b"abc") for i in range(ROWS)
    ) + b"\xff\xff",
}  # fmt: skip
OPTIONS: Final = {
    "text": "text", "csv": "csv", "json": "json", "binary": "binary", "latin1": "text, ENCODING 'latin1'",
}  # fmt: skip


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("options", OPTIONS)
def test_a_file_that_shrinks_is_no_end_of_the_data(
    options: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = FORMATS.get(options, FORMATS["text"])
    whole_row = data.index(b"\n", len(data) // 2) + 1 if options != "binary" else 19 + 17 * (ROWS // 2)
    lengths = {whole_row, whole_row + 3, 0, len(data) - 1}
    left = len(data)

    def found_then_cut(name: str, roots: Roots) -> list[ServerFile]:
        looked_at = found(name, roots)
        os.truncate(str(looked_at[-1].path), left)
        return looked_at

    monkeypatch.setattr(copy, "found", found_then_cut)

    async def main() -> None:
        nonlocal left
        database = await open_database(MemoryDisk(), server_files=str(tmp_path))
        session = Session(database, 1)
        await session.run("SET executor = index")
        await session.run("CREATE TABLE t (a int, b text)")
        load = f"COPY t FROM '{tmp_path}/*.data' (FORMAT {OPTIONS[options]})"
        for left in (*lengths, len(data)):
            for number in range(files):
                (tmp_path / f"{number}.data").write_bytes(data)
            if left == len(data):
                await session.run(load)
                assert await session.run("SELECT count(*) FROM t") == [(str(files * ROWS),)]
                break
            with pytest.raises(Failed) as failed:
                await session.run(load)
            report = failed.value.report
            assert report.sqlstate == "58030"
            assert (
                report.message == f'could not read file "{tmp_path}/{files - 1}.data": it has become shorter'
            )
            assert report.detail == f"It had {len(data)} bytes when COPY began, and ends after {left}."
            assert await session.run("SELECT count(*) FROM t") == [("0",)]
        await database.close()

    run(main)
