"""Expressions in definitions beside PostgreSQL 15: taken by both or by neither, and printed alike (``kept_expressions``).

In ``make test`` some of them, drawn by ``HOLDFAST_SEEDS``; ``make diff`` (``HOLDFAST_DIFF``) asks all.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import psycopg
import pytest

from tests.differential.compare_generated import ask
from tests.differential.kept_expressions import EXPRESSIONS, FORMS, SETUP, definition, known
from tests.differential.test_generated import seeds_of
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

COUNT = int(os.environ.get("HOLDFAST_DIFF", "6"))
SEEDS = seeds_of(os.environ.get("HOLDFAST_SEEDS", "1"))


@pytest.mark.timeout(0 if COUNT > 100 else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_expressions_are_printed_alike(seed: int, postgres: str, server: ServerProcess) -> None:
    asked = random.Random(seed).sample(EXPRESSIONS, min(COUNT, len(EXPRESSIONS)))
    ours_at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with (
        psycopg.connect(ours_at, autocommit=True) as ours,
        psycopg.connect(postgres, autocommit=True) as theirs,
    ):
        differences, ends = compared(ours, theirs, asked)
    print(f"seed {seed}: {dict(ends)}")
    assert not differences, "\n\n".join("\n".join(each) for each in differences[:10])
    assert ends["equal"] > len(asked) * len(FORMS) // 2, ends


def compared(
    ours: psycopg.Connection[Any], theirs: psycopg.Connection[Any], expressions: list[str]
) -> tuple[list[tuple[str, ...]], Counter[str]]:
    """Return differences as form, expression and both answers, and how the definitions ended. Nothing is left behind."""
    both = (ours, theirs)
    for connection in both:
        for sql in (
            "BEGIN",
            "SET LOCAL timezone = 'UTC'",
            "CREATE SCHEMA kept_expressions",
            "SET LOCAL search_path = kept_expressions",
            *SETUP,
        ):
            connection.execute(sql.encode())  # fmt: skip
    differences: list[tuple[str, ...]] = []
    ends: Counter[str] = Counter()
    for expression in expressions:
        for form, (_, shown) in FORMS.items():
            answers = []
            for connection in both:
                ask(connection, "SAVEPOINT kept")
                made = ask(connection, definition(form, expression))
                text = ask(connection, shown)
                answers.append(made.state or text.rows or f"{text.state} nothing")
                ask(connection, "ROLLBACK TO kept")
                ask(connection, "RELEASE kept")
            if answers[0] == answers[1]:
                ends[f"error {answers[0]}" if isinstance(answers[0], str) else "equal"] += 1
            elif answers[0] == "0A000":
                ends["refused"] += 1
            elif why := known(form, expression, (answers[0], answers[1])):
                ends[why] += 1
            else:
                differences.append((form, expression, str(answers[0]), str(answers[1])))
    for connection in both:
        ask(connection, "ROLLBACK")
    return differences, ends
