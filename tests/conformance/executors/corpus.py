"""What the executors are asked: set-ups, queries, and the states of the rows they read.

Five corpora, each in a schema of its own:

    own         tables.sql, queries.sql: what the others leave out
    correlated  the same tables, sub-queries that read the query around them: correlated.sql
    altered     the same tables after ALTER TABLE: altered.sql
    rows        the row executor's queries (tests/engine/index)
    lower       the golden scripts of the lowering (tests/golden/lower)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.engine.index.tables import make
from tests.golden.harness import parse
from tests.support.lowered import sample_world

HERE = Path(__file__).parent
ROWS = HERE.parents[1] / "engine" / "index" / "queries.sql"
LOWER = HERE.parents[1] / "golden" / "lower"

EXEMPT = frozenset(
    ("select string_agg(distinct tag, '|') from emp",)  # an aggregate over input without an order
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A schema, the statements that fill it, the queries over it; ``changes`` are applied to some states."""

    name: str
    setup: tuple[str, ...]
    queries: tuple[str, ...]
    changes: tuple[str, ...] = ()


def lines(path: Path) -> tuple[str, ...]:
    """Return a file's lines without comments and blanks."""
    texts = path.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in texts if line.strip() and not line.startswith("--") and line not in EXEMPT)


def corpora(folder: Path) -> list[Corpus]:
    """Return all corpora; ``folder`` is scratch space."""
    scripts = [parse(path.read_text(encoding="utf-8")) for path in sorted(LOWER.glob("*.txt"))]
    lowered = tuple(" ".join(block.commands) for blocks in scripts for block in blocks if block.commands)
    return [
        Corpus(
            name="own",
            setup=lines(HERE / "tables.sql"),
            queries=lines(HERE / "queries.sql"),
            changes=lines(HERE / "changes.sql"),
        ),
        Corpus(
            name="correlated",
            setup=lines(HERE / "tables.sql"),
            queries=lines(HERE / "correlated.sql"),
            changes=lines(HERE / "changes.sql"),
        ),
        Corpus(
            name="altered",
            setup=lines(HERE / "tables.sql"),
            queries=lines(HERE / "altered.sql"),
            changes=lines(HERE / "alter.sql"),
        ),
        Corpus(name="rows", setup=tuple(make().ddl), queries=lines(ROWS)),
        Corpus(name="lower", setup=tuple(sample_world(folder).statements), queries=lowered),
    ]
