"""The row executor answers as PostgreSQL does, whether its reads answer at once or have to be awaited."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.index.compare import differences
from tests.engine.index.tables import make
from tests.support.postgres import postgres

__all__ = ["postgres"]

QUERIES = [
    line
    for line in Path(__file__).with_name("queries.sql").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("--")
]


@pytest.mark.parametrize("cold", [False, True], ids=["at once", "awaited"])
def test_queries_answer_as_postgresql_does(postgres: str, cold: bool) -> None:
    found = differences(postgres, make(), QUERIES, cold=cold)
    assert not found, f"{len(found)} of {len(QUERIES)}:\n" + "\n".join(found)
