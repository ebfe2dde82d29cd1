"""Tables and options for tests of reading files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.changes.bulk.read_split import Reading, read_split, worker_env
from engine.changes.bulk.splits import Split, chunks, cut, survey, whole
from engine.changes.writes.copy_rows import LoadSpec
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.errors import DataError
from pgwire.codecs.settings import DEFAULT
from planner.catalog import ColumnDef, RelationDef
from planner.types import SqlType

INT4, TEXT, NUMERIC, INT4S = 23, 25, 1700, 1007


def spec(options: CopyOptions, *types: int, not_null: tuple[int, ...] = (), **more: Any) -> LoadSpec:
    """Return what loads a table t(a, b, ...) of these types."""
    columns = tuple(
        ColumnDef(attnum=i, name="abcdefgh"[i - 1], type=SqlType(oid, -1), not_null=i in not_null)
        for i, oid in enumerate(types, 1)
    )
    relation = RelationDef(oid=1, schema_oid=1, schema="public", name="t", kind="r", columns=columns)
    given: dict[str, Any] = {
        "relation": relation, "attnums": tuple(c.attnum for c in columns), "options": options,
        "settings": DEFAULT, "defaults": (), "where": None, "checks": (), "generated": (),
    }  # fmt: skip
    return LoadSpec(**(given | more))


def splits_of(path: Path, options: CopyOptions, chunk_bytes: int) -> list[Split]:
    """Return a file's splits, as they are made where chunks have ``chunk_bytes`` bytes."""
    data = path.read_bytes()
    one = whole(0, str(path), str(path), len(data))
    bounds = chunks(len(data), chunk_bytes)
    found = [survey(data[max(start - 2, 0) : start], data[start:end], options) for start, end in bounds]
    return cut(one, bounds, found)


def outcome(load: LoadSpec, splits: list[Split]) -> tuple[list[Any], str | None, list[str]]:
    """Return the rows before the first error, that error with its CONTEXT, and the notices about rows left out."""
    rows: list[Any] = []
    said: list[str] = []
    for split in splits:
        reading = Reading()
        try:
            for batch in read_split(load, worker_env(), split, reading, keep=100):
                rows += batch.to_pylist()
                assert reading.rows <= split.rows
        except DataError as error:
            return [], f"{error.sqlstate} {error.message} {error.where}", []
        said += [reject.message() for reject in reading.rejects.first]
        assert reading.read == split.end - split.start
    return rows, None, said
