"""A quick pass over files, to know where they can be cut: what each piece of the work is, and what comes of it.

files ──looks_at──> one look per chunk of a large text file, one per Parquet file     ──look──>  surveys, row groups
(anywhere, in any order)
files + what was found ──splits_of──> splits
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.base.server_files import ServerFile, file_error
from engine.base.stored_objects import FilePath, open_bytes, open_parquet, says_store
from engine.changes.bulk.splits import Split, Survey, chunks, cut, survey, whole
from pgwire.codecs.copy import CopyOptions
from planner.base.errors import SqlError

RowGroups = tuple[tuple[int, int], ...]
"""Rows and bytes of each row group of a Parquet file."""


@dataclass(frozen=True, slots=True)
class Look:
    """One piece of the pass: bytes of a file, or (``parquet``) its footer."""

    file: int
    name: str
    path: FilePath
    start: int
    end: int
    parquet: bool


def looks_at(files: Sequence[ServerFile], options: CopyOptions, chunk_bytes: int) -> list[Look]:
    """Return what has to be looked at. Files that are not larger than a chunk are not."""
    if options.format == "parquet":
        return [Look(i, file.name, file.path, 0, file.size, True) for i, file in enumerate(files)]
    if options.format == "binary":
        return []
    return [
        Look(i, file.name, file.path, start, end, False)
        for i, file in enumerate(files)
        if file.size > chunk_bytes
        for start, end in chunks(file.size, chunk_bytes)
    ]


def look(options: CopyOptions, item: Look) -> Survey | RowGroups:
    """Look at one piece. Raises SqlError 58P01, 42501, 58030, 22P04 (not a Parquet file)."""
    if item.parquet:
        return _row_groups(item)
    try:
        begin = max(item.start - 2, 0)
        with open_bytes(item.path, begin, item.end) as file:
            before = file.read(item.start - begin)
            return survey(before, file.read(item.end - item.start), options)
    except OSError as error:
        raise file_error(error, item.name, "reading") from None


def _row_groups(item: Look) -> RowGroups:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata: Any = pq.read_metadata(open_parquet(item.path))
    except OSError as error:
        if type(error) is OSError and error.errno is None and not says_store(item.path, error):
            raise _not_parquet(item.name, error) from None
        raise file_error(error, item.name, "reading") from None
    except pa.ArrowException as error:
        raise _not_parquet(item.name, error) from None
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    return tuple((group.num_rows, group.total_byte_size) for group in groups)


def _not_parquet(name: str, error: Exception) -> SqlError:
    detail = str(error).strip().splitlines()[0] if str(error).strip() else None
    return SqlError("22P04", f'file "{name}" is not a Parquet file', detail=detail)


def splits_of(
    files: Sequence[ServerFile],
    options: CopyOptions,
    looks: Sequence[Look],
    found: Sequence[Survey | RowGroups],
) -> list[Split]:
    """Return all splits in the order of files and rows."""
    by_file: dict[int, list[tuple[Look, Any]]] = {}
    for item, result in zip(looks, found, strict=True):
        by_file.setdefault(item.file, []).append((item, result))
    splits: list[Split] = []
    for i, file in enumerate(files):
        one = whole(i, file.name, file.path, file.size)
        seen = by_file.get(i, [])
        if options.format == "parquet":
            splits += _parquet_splits(one, seen[0][1])
        elif not file.size:
            continue
        else:
            splits += cut(one, [(item.start, item.end) for item, _ in seen], [result for _, result in seen])
    return splits


def _parquet_splits(one: Split, groups: RowGroups) -> list[Split]:
    splits = []
    line = 0
    for at, (rows, size) in enumerate(groups):
        splits.append(Split(0, one.file, one.name, one.path, at, at + 1, at == 0, "", line, rows, size))
        line += rows
    return splits or [Split(0, one.file, one.name, one.path, 0, 0, True, "", 0, 0, 0)]
