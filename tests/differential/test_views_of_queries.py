"""Queries of all scripts, as views, beside PostgreSQL 15 (``views_of_queries`` tells what is compared).

``HOLDFAST_DIFF=5000`` asks about that many, of PostgreSQL's own regression scripts too where they lie beside the repository;
``HOLDFAST_SEEDS`` as in ``test_generated`` chooses which. ``make views`` asks about all queries of the regression scripts and keeps the
figures (``HOLDFAST_EVIDENCE``); ``HOLDFAST_SUITES`` is where the suites lie.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import psycopg
import pytest

from tests.differential.compare_generated import ask
from tests.differential.test_generated import seeds_of
from tests.differential.test_scripts import SCHEMAS, SCRIPTS, statements
from tests.differential.views_of_queries import Found, cut, load, walk
from tests.support.postgres import postgres
from tests.support.server import ServerProcess
from tests.support.suites import ROOT

__all__ = ["postgres"]

COUNT = int(os.environ.get("HOLDFAST_DIFF", "8"))
SEEDS = seeds_of(os.environ.get("HOLDFAST_SEEDS", "1"))
MOST = max(5, COUNT // len(SCRIPTS))
DIFFERENT = {
    "functions-texts_of_values": "domains are shown as their base types beside || of any type",
    "types-domain_changes": "its query reads information_schema.columns, where the view that is made of it is, too",
    "functions-record_views": "an alias of ROWS FROM hides what a definition list calls a column: the text would ask for another key",
}
SUITES = Path(os.environ.get("HOLDFAST_SUITES", ROOT.parent / "shared" / "suites"))
REGRESSION = SUITES / "postgres_regress"
EVIDENCE = os.environ.get("HOLDFAST_EVIDENCE", "")


@pytest.mark.timeout(0 if COUNT > 100 else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_queries_as_views(seed: int, postgres: str, server: ServerProcess) -> None:
    some = random.Random(seed)
    found = Found()
    ours_at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    for path in some.sample(SCRIPTS, len(SCRIPTS)):
        with (
            psycopg.connect(ours_at, autocommit=True, prepare_threshold=None) as ours,
            psycopg.connect(postgres, autocommit=True, prepare_threshold=None) as theirs,
        ):
            drops = [f'DROP SCHEMA IF EXISTS "{name}" CASCADE' for (name,) in theirs.execute(SCHEMAS)]
            for setup in (
                *drops,
                "CREATE SCHEMA public",
                "SET timezone = 'UTC'",
                "SET statement_timeout = '30s'",
            ):
                for connection in (ours, theirs):
                    ask(connection, setup)
            more = walk(ours, theirs, f"{path.parent.name}-{path.stem}", statements(path), some, MOST)
        found.differences += [one for one in more.differences if one[1] not in DIFFERENT]
        found.ends += more.ends
        if found.ends["equal"] + found.ends["different"] >= COUNT:
            break
    print(f"seed {seed}: {dict(found.ends)}")
    assert not found.differences, "\n\n".join("\n".join(each) for each in found.differences[:10])
    assert found.ends["equal"] >= COUNT // 2, found.ends


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", SEEDS)
def test_queries_of_postgresqls_own_scripts_as_views(seed: int, postgres: str, server: ServerProcess) -> None:
    """The scripts one after another in a database, as they are meant to be run; some queries of each."""
    if not REGRESSION.exists():
        pytest.skip(f"no suites at {SUITES}")
    suite = json.loads((REGRESSION / "suite.json").read_text())
    some = random.Random(seed)
    most = max(5, COUNT // len(suite["order"])) if EVIDENCE else MOST
    found = Found()
    loaded: set[str] = set()
    ours_at = f"host=127.0.0.1 port={server.port} user=postgres dbname="
    theirs_at = postgres.replace("dbname=postgres", "dbname=")
    for dsn in (ours_at, theirs_at):
        with psycopg.connect(f"{dsn}postgres", autocommit=True) as root:
            root.execute("DROP DATABASE IF EXISTS kept_views")
            root.execute("CREATE DATABASE kept_views")
    for name in suite["order"]:
        with (
            psycopg.connect(f"{ours_at}kept_views", autocommit=True, prepare_threshold=None) as ours,
            psycopg.connect(f"{theirs_at}kept_views", autocommit=True, prepare_threshold=None) as theirs,
        ):
            for needed in ("test_setup", *suite["deps"].get(name, [])):
                if needed not in loaded and (REGRESSION / "support" / f"{needed}.sql").exists():
                    load((ours, theirs), REGRESSION, needed)
                loaded.add(needed)
            for connection in (ours, theirs):
                ask(connection, "SET statement_timeout = '30s'")
            script = (REGRESSION / "sql" / f"{name}.sql").read_text(encoding="latin1")
            more = walk(ours, theirs, name, cut(script), some, most)
        found.differences += more.differences
        found.ends += more.ends
    print(f"seed {seed}: {dict(found.ends)}")
    if EVIDENCE:
        figures = {
            "what": "queries of PostgreSQL's regression scripts as views and in other ways, beside PostgreSQL 15 (make views)",
            "scripts": len(suite["order"]),
            "queries of a script, at most": most,
            "seed": seed,
            "queries": found.ends["equal"] + found.ends["different"],
            "ends": dict(sorted(found.ends.items())),
            "different": [list(each) for each in found.differences],
        }
        Path(EVIDENCE).write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    assert not found.differences, "\n\n".join("\n".join(each) for each in found.differences[:20])
