"""PostgreSQL's isolation specs and Hermitage's anomalies come out as ``docs/reference/isolation.md`` says, spec by spec.

``make test`` runs Hermitage and the quick ones; ``make isolation`` runs all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.isolation.tester import SUITES, missing, run_spec, specs
from tests.support.server import ServerProcess

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "isolation.md"
ROW: Final = re.compile(r"^\| `([\w-]+)` \| (equal|stricter|kinder|refused) \| ([^|]*) \|", re.M)

# under a second each
QUICK: Final = (
    "deadlock-hard", "delete-abort-savept", "fk-deadlock", "insert-conflict-do-nothing", "insert-conflict-do-update",
    "nowait-2", "propagate-lock-delete", "read-only-anomaly", "read-only-anomaly-3", "read-write-unique-2",
    "read-write-unique-4", "serializable-parallel-2", "skip-locked", "skip-locked-3", "truncate-conflict",
)  # fmt: skip

LOOKED_AT: Final = {
    # the name of the foreign key, where PostgreSQL has that of its part for the partition
    "detach-partition-concurrently-2": {"s1b s1s s3i1 s2d s1c"},
    "detach-partition-concurrently-4": {"s2snitch s1brr s1declare2 s1fetchone s1updcur s2detach s1c"},
    # a trigger raises its own error for what it reads at present; PostgreSQL refuses the commit (docs/reference/isolation.md, 8)
    "ri-trigger": {"wxry1 r2 c1 wyrx2 c2", "r2 wxry1 c1 wyrx2 c2"},
    # the rows are PostgreSQL's; EXPLAIN has no heap fetches (docs/reference/isolation.md, 9)
    "horizons": {
        "pruner_create_perm ll_start pruner_query_plan pruner_query pruner_query pruner_delete pruner_query pruner_query "
        "ll_commit pruner_drop",
        "pruner_create_temp ll_start pruner_query_plan pruner_query pruner_query pruner_delete pruner_query pruner_query "
        "ll_commit pruner_drop",
        "pruner_create_temp ll_start pruner_query pruner_query pruner_begin pruner_delete pruner_query pruner_query "
        "ll_commit pruner_commit pruner_drop",
        "pruner_create_perm ll_start pruner_query pruner_query pruner_delete pruner_vacuum pruner_query pruner_query "
        "ll_commit pruner_drop",
        "pruner_create_temp ll_start pruner_query pruner_query pruner_delete pruner_vacuum pruner_query pruner_query "
        "ll_commit pruner_drop",
    },
    # the same steps wait and fail; PostgreSQL's errors have the name of the constraint that it makes for the partition
    "fk-partitioned-1": {
        "s1b s2b s2a s1d s2c s1c",
        "s1b s2b s2a s2c s1d s1c",
        "s2b s1b s2a s1d s2c s1c",
        "s2b s1b s2a s2c s1d s1c",
        "s2b s2a s1b s1d s2c s1c",
        "s2b s2a s1b s2c s1d s1c",
        "s2b s2a s2c s1b s1d s1c",
    },
    # VACUUM and ANALYZE lock no table: nothing is skipped, and no warning says so
    "vacuum-concurrent-drop": {
        "lock vac_specified drop_and_commit",
        "lock analyze_specified drop_and_commit",
        "lock vac_analyze_specified drop_and_commit",
    },
    "vacuum-skip-locked": {
        f"lock_{mode} {what}_specified commit"
        for mode in ("share", "access_exclusive")
        for what in ("vac", "analyze", "vac_analyze", "vac_full")
    },
}
"""Permutations whose outcome is neither PostgreSQL's nor a stricter one, and right: the others of their specs are stricter."""

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "-")


def documented() -> dict[str, str]:
    """Return what the page says of each spec."""
    return {name: kind for name, kind, _why in ROW.findall(PAGE.read_text("utf-8"))}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("isolation"))
    yield running
    assert running.stop() == 0


def test_every_spec_is_on_the_page_once() -> None:
    rows = [name for name, _kind, _why in ROW.findall(PAGE.read_text("utf-8"))]
    assert sorted(rows) == sorted(specs("hermitage") + specs("postgres_isolation"))


def check(suite: str, name: str, server: ServerProcess) -> None:
    verdict = run_spec(suite, name, server.port)
    others = {permutation for permutation, kind in verdict.permutations if kind == "other"}
    known = LOOKED_AT.get(name, set())
    assert others == known, f"neither PostgreSQL's outcome nor a stricter one: {others - known}"
    kind = "stricter" if known else verdict.kind
    assert kind == documented()[name], verdict


@pytest.mark.parametrize("name", specs("hermitage"))
def test_hermitage(name: str, server: ServerProcess) -> None:
    check("hermitage", name, server)


@pytest.mark.parametrize("name", QUICK)
def test_quick_specs(name: str, server: ServerProcess) -> None:
    check("postgres_isolation", name, server)


@pytest.mark.long
@pytest.mark.isolation
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [name for name in specs("postgres_isolation") if name not in QUICK])
def test_the_other_specs(name: str, server: ServerProcess) -> None:
    check("postgres_isolation", name, server)


def test_the_suites_are_where_they_are_expected() -> None:
    assert (SUITES / "postgres_isolation" / "SOURCE.md").exists()
