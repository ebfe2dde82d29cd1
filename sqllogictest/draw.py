"""A random sample of the queries of many files: a function of a seed, of the files' names and of what they contain.

--sample 5000 --seed 1    5,000 of the queries of all files together; statements run in any case
--part 2/20               of the files that were drawn from, the 2nd, 22nd, 42nd ...: twenty runs make the whole sample
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from sqllogictest.records import Dialect, Query, read


def draw(
    paths: Sequence[Path], count: int, seed: int, engine: str, dialect: Dialect | None
) -> dict[Path, frozenset[int]]:
    """Return the lines of ``count`` queries by file; files of which none was drawn are left out.

    The files' places do not matter, only their order. Raises ValueError for
    no count, ParseError.
    """
    if count < 1:
        raise ValueError("a seed goes with --sample N")
    queries: list[tuple[Path, int]] = []
    for path in paths:
        _dialect, records = read(path, engine, dialect)
        queries += [(path, r.line) for r in records if isinstance(r, Query) and not r.skip]
    drawn = random.Random(seed).sample(queries, min(count, len(queries)))
    lines: dict[Path, set[int]] = {}
    for path, line in drawn:
        lines.setdefault(path, set()).add(line)
    return {path: frozenset(lines[path]) for path in paths if path in lines}


def part(paths: Sequence[Path], which: str) -> list[Path]:
    """Return every Nth path from the Kth on; ``which``: K/N, from 1. Raises ValueError."""
    first, _, every = which.partition("/")
    if not (first.isdigit() and every.isdigit() and 1 <= int(first) <= int(every)):
        raise ValueError(f"a part is K/N with 1 <= K <= N, not {which!r}")
    return list(paths)[int(first) - 1 :: int(every)]
