"""The scripts that ``make restart`` runs: the project's own, those of the suites beside it, random DDL.

differential  tests/differential/scripts           temporary      permanent objects over temporary ones
golden        statements of tests/golden/sql       random         random DDL, a seed each
regress       PostgreSQL's regression scripts, each after the set-up it wants
isolation     steps of isolation specs (PostgreSQL's, Hermitage's) session by session, without what cleans up after them
sqlite, duckdb, risingwave    statements of sqllogictest files: neither queries, which change nothing, nor DROP at the end
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sqllogictest.records import Dialect, Statement, read
from tests.differential.temporaries import lives
from tests.golden.harness import parse

ROOT = Path(__file__).resolve().parents[1]
SUITES = ROOT.parent / "shared" / "suites"
RANDOM = 40
_RANDOM_SIZE = 20_000  # of the text of random DDL, about
_LOGIC = {
    "sqllogictest": ("sqlite", None),
    "duckdb": ("duckdb", Dialect.DUCKDB),
    "risingwave": ("risingwave", Dialect.RS),
}
_STEP = re.compile(r'^\s*(setup|step)\b\s*(?:"[^"]*"|\w+)?\s*\{([^}]*)\}', re.MULTILINE)


class Script(NamedTuple):
    """SQL for psql; errors in it are no matter. ``kind``: where it is from. Of random DDL ``name`` is the seed, and there is no text.

    ``setup``: SQL that is run before it.
    """

    kind: str
    name: str
    text: str
    setup: str = ""


def scripts(suites: Path) -> list[Script]:
    """Return all scripts, sqllogictest last, the shortest of each part first; those of suites that are absent are left out."""
    parts = [
        [*_own(), *_regress(suites / "postgres_regress"), *_isolation(suites)],
        list(_logic(suites)),
    ]
    return [
        script
        for part in parts
        for script in sorted(part, key=lambda s: (len(s.text) or _RANDOM_SIZE, s.kind, s.name))
    ]


def regress_variables(suites: Path, built: Path) -> dict[str, str]:
    """Return what PostgreSQL's regression scripts ask of the environment; ``built``: where they write."""
    return {
        "PG_ABS_SRCDIR": str(suites / "postgres_regress"),
        "PG_ABS_BUILDDIR": str(built),
        "PG_LIBDIR": "",
        "PG_DLSUFFIX": ".so",
    }


def _own() -> Iterator[Script]:
    for path in sorted((ROOT / "tests" / "differential" / "scripts").glob("*/*.sql")):
        yield Script("differential", f"{path.parent.name}/{path.name}", path.read_text())
    for path in sorted((ROOT / "tests" / "golden" / "sql").glob("*.txt")):
        commands = [c for block in parse(path.read_text()) for c in block.commands]
        yield Script(
            "golden",
            path.name,
            _ended(
                c.partition(" ")[2] if c.startswith(("one ", "two ", "a ", "b ")) else c for c in commands
            ),
        )
    for life in lives("t"):
        text = [*life.make, *(s for script in life.scripts for s in script.statements)]
        yield Script("temporary", life.name, _ended(text))
    for seed in range(1, RANDOM + 1):
        yield Script("random", str(seed), "")


def _regress(folder: Path) -> Iterator[Script]:
    if not folder.exists():
        return
    needs = json.loads((folder / "suite.json").read_text())["deps"]
    for path in sorted((folder / "sql").glob("*.sql")):
        setup = [
            next(at for at in (folder / "support", folder / "sql") if (at / f"{name}.sql").exists())
            / f"{name}.sql"
            for name in ("test_setup", *needs.get(path.stem, []))
        ]
        yield Script("regress", path.name, _read(path), "".join(f"{_read(each)}\n" for each in setup))


def _isolation(suites: Path) -> Iterator[Script]:
    for suite in ("postgres_isolation", "hermitage"):
        for path in sorted((suites / suite / "specs").glob("*.spec")):
            text = re.sub(r"^\s*#.*$", "", _read(path), flags=re.MULTILINE)
            yield Script("isolation", f"{suite}/{path.name}", _ended(m[2] for m in _STEP.finditer(text)))


def _logic(suites: Path) -> Iterator[Script]:
    for folder, (kind, dialect) in _LOGIC.items():
        for path in sorted((suites / folder).rglob("*.test*")) + sorted((suites / folder).rglob("*.slt*")):
            _dialect, records = read(path, dialect=dialect)
            statements = [r.sql for r in records if isinstance(r, Statement) and not r.skip]
            while statements and statements[-1].lower().startswith("drop "):
                statements.pop()
            if statements:
                yield Script(kind, str(path.relative_to(suites / folder)), _ended(statements))


def _read(path: Path) -> str:
    return path.read_text(errors="replace")


def _ended(statements: Iterable[str]) -> str:
    """Return statements as psql takes them."""
    return "".join(f"{s.strip().rstrip(';')}\n;\n" for s in statements if s.strip())
