r"""Cutting files into splits that can be read on their own, each from the beginning of a row to the end of one.

    file    |-------- chunk 0 --------|-------- chunk 1 --------|--- chunk 2 ---|
    survey   line ends, quotes, and the first row end in each      (one quick pass, chunks in any order, anywhere)
    splits  |-------- split 0 -----------|------ split 1 ---------|-- split 2 --|

Whether a line end is inside quotes depends on everything before it, so a chunk is surveyed for both cases,
and adding up the chunks' quotes tells which one holds. Line numbers come the same way. PostgreSQL's rules
decide: a quote character opens or closes wherever it stands. What makes rows depend on more than that keeps a
file in one split:

    escape other than quote, carriage returns as line ends, ``\.`` (ends the data), escaped line ends, line ends inside
    quotes in the very first row (PostgreSQL does not count those)

Pure, but for what ``read`` does that is handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.base.stored_objects import FilePath
from pgwire.codecs.copy import CopyOptions

CHUNK_BYTES: Final = 32 << 20
HEAD_BYTES: Final = 64 << 10
SEARCH_BYTES: Final = 256 << 10
"""How far into a chunk a row end is looked for; without one, the chunk goes with the one before it."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a pass over one chunk found.

    ``outside``, ``inside``: the first row end if the chunk begins outside (inside) quotes, as the number of
    bytes up to and with it, and the line ends among these; None: none was found. ``eol``: see ``line_end``;
    only a file's first chunk tells.
    """

    lines: int
    quotes: int
    tied: bool
    outside: tuple[int, int] | None
    inside: tuple[int, int] | None
    eol: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to be read together.

    Attributes:
        number: the task that reads it.
        file: its place among the files; ``name`` and ``path``: see ``ServerFile``.
        start, end: bytes of the file; of Parquet files, row groups.
        first: whether the file's header is to be passed.
        eol: how lines end, "" where that is to be found out.
        line: lines (Parquet: rows) of the file before ``start``.
        rows: no more rows than that.
        size: bytes of the file that it stands for.
    """

    number: int
    file: int
    name: str
    path: FilePath
    start: int
    end: int
    first: bool
    eol: str
    line: int
    rows: int
    size: int


def line_end(head: bytes, options: CopyOptions) -> str:
    r"""Return "\n" or "\r\n" if the rows of a file that begins with ``head`` end so and it may be cut, else ""."""
    if options.format == "json":
        return "\n"
    if options.format == "csv" and options.effective_escape != options.effective_quote:
        return ""
    at = head.find(b"\n")
    if at < 0:
        return ""
    line = head[:at]
    if options.format == "csv" and line.count(options.effective_quote.encode("utf-8")) % 2:
        return ""
    if line.endswith(b"\r"):
        line, eol = line[:-1], "\r\n"
    else:
        eol = "\n"
    return "" if b"\r" in line or (options.format == "text" and line.endswith(b"\\")) else eol


def survey(before: bytes, data: bytes, options: CopyOptions) -> Survey:
    """Look over one chunk; ``before``: the two bytes that precede it (fewer at the beginning of the file)."""
    lines = data.count(b"\n")
    quotes = 0
    tied = False
    eol = "" if before else line_end(data[:HEAD_BYTES], options)
    joined = before + data[:2]
    if options.format == "csv":
        quote = options.effective_quote.encode("utf-8")
        quotes = data.count(quote)
        # One byte is found twenty times as fast as three.
        tied = (b"\\" in before or b"\\" in data) and (
            b"\n\\." in data or b"\n\\." in joined + data[2:3] or (not before and data.startswith(b"\\."))
        )
        outside, inside = _row_ends(data, quote, quotes)
        return Survey(lines, quotes, tied, outside, inside, eol)
    if options.format == "text":
        tied = any(mark in data or mark in joined for mark in (b"\\\n", b"\\\r", b"\\."))
    end = data.find(b"\n", 0, SEARCH_BYTES)
    return Survey(lines, 0, tied, None if end < 0 else (end + 1, 1), None, eol)


def _row_ends(
    data: bytes, quote: bytes, quotes: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Return the first line ends behind an even and behind an odd number of quotes."""
    found: list[tuple[int, int] | None] = [None, None]
    at, parity, lines = 0, 0, 0
    limit = min(len(data), SEARCH_BYTES)
    while at < limit:
        following = data.find(quote, at, limit) if quotes else -1
        stop = limit if following < 0 else following
        if found[parity] is None:
            end = data.find(b"\n", at, stop)
            if end >= 0:
                found[parity] = (end + 1, lines + 1)
                if found[1 - parity] is not None:
                    break
        if following < 0:
            break
        lines += data.count(b"\n", at, stop)
        parity ^= 1
        at = following + 1
    return found[0], found[1]


def chunks(size: int, chunk_bytes: int = CHUNK_BYTES) -> list[tuple[int, int]]:
    """Return the bounds of a file's chunks."""
    return [(at, min(at + chunk_bytes, size)) for at in range(0, size, chunk_bytes)]


def whole(file: int, name: str, path: FilePath, size: int) -> Split:
    """Return a file as one split. Its rows are not more than its bytes."""
    return Split(0, file, name, path, 0, size, True, "", 0, size + 1, size)


def cut(whole_file: Split, bounds: Sequence[tuple[int, int]], surveys: Sequence[Survey]) -> list[Split]:
    """Return the splits of one file from the surveys of its chunks; their numbers are given later."""
    eol = surveys[0].eol if surveys else ""
    if not eol or any(s.tied for s in surveys):
        return [whole_file]
    starts: list[tuple[int, int]] = [(0, 0)]  # byte, lines before it
    lines = quotes = 0
    for (begin, _end), found in zip(bounds, surveys, strict=True):
        if begin:
            row_end = found.inside if quotes % 2 else found.outside
            if row_end is not None and begin + row_end[0] < whole_file.end:
                starts.append((begin + row_end[0], lines + row_end[1]))
        lines += found.lines
        quotes += found.quotes
    ends = [*starts[1:], (whole_file.end, lines)]
    return [
        _part(whole_file, start, end, not start, eol if start else "", line, line_after - line + 1)
        for (start, line), (end, line_after) in zip(starts, ends, strict=True)
    ]


def numbered(tasks_bytes: int, splits: Sequence[Split]) -> list[tuple[Split, ...]]:
    """Return splits as tasks of about ``tasks_bytes`` bytes, in order; the numbers of the splits count their tasks."""
    tasks: list[tuple[Split, ...]] = []
    gathered: list[Split] = []
    size = 0
    for split in splits:
        if gathered and size + split.size > tasks_bytes:
            tasks.append(tuple(gathered))
            gathered, size = [], 0
        gathered.append(replace(split, number=len(tasks)))
        size += split.size
    if gathered:
        tasks.append(tuple(gathered))
    return tasks


def _part(of: Split, start: int, end: int, first: bool, eol: str, line: int, rows: int) -> Split:
    return Split(0, of.file, of.name, of.path, start, end, first, eol, line, rows, end - start)
