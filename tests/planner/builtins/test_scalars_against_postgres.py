"""Scalar functions, operators and casts answer as PostgreSQL's, errors included.

Every seventh case is run; ``HOLDFAST_FULL=1`` (``make proofs``) runs all of them (about five thousand).
"""

from __future__ import annotations

import os

import pytest

from tests.engine.index.compare import differences
from tests.engine.index.tables import make
from tests.planner.builtins.scalar_queries import format_queries, number_queries, text_queries
from tests.support.postgres import postgres

__all__ = ["postgres"]

STEP = 1 if os.environ.get("HOLDFAST_FULL") else 7


@pytest.mark.parametrize("family", ["numbers", "texts"])
def test_scalars_answer_as_postgresql_does(postgres: str, family: str) -> None:
    queries = (number_queries() if family == "numbers" else text_queries())[::STEP]
    found = differences(postgres, make(), queries)
    assert not found, f"{len(found)} of {len(queries)}:\n" + "\n".join(found[:50])


def test_format_answers_as_postgresql_does(postgres: str) -> None:
    found = differences(postgres, make(), format_queries())
    assert not found, "\n".join(found)
