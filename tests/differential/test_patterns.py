"""Random regular expressions and LIKE patterns: what PostgreSQL 15 answers. ``HOLDFAST_DIFF=5000`` compares that many of each.

``HOLDFAST_RECORD=1`` writes some of them, with PostgreSQL's answers, where the tests without one find them.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import psycopg

from planner.base.errors import SqlError
from planner.functions.text.regex import ilike, like
from planner.patterns.charset import CLASSES, class_ranges
from tests.planner.patterns.cases import CASES
from tests.support.patterns import ANSWER, Case, Generator, answer, groups
from tests.support.postgres import postgres

__all__ = ["postgres"]

COUNT = int(os.environ.get("HOLDFAST_DIFF", "120"))
CODES = 1_114_111 if "HOLDFAST_DIFF" in os.environ else 0x600
SEED = int(os.environ.get("HOLDFAST_SEEDS", "1").split(",")[0].split("-")[0])
RECORDED = Path(__file__).parents[1] / "planner" / "patterns" / "recorded.json"


def theirs(connection: psycopg.Connection[tuple[str]], cases: list[Case]) -> list[str]:
    connection.execute(ANSWER)
    return [
        row[0]
        for case in cases
        for row in connection.execute("SELECT pg_temp.answer(%s, %s, %s, %s)", (*case, groups(case)))
    ]


def test_regular_expressions_answer_as_postgresql_does(postgres: str) -> None:
    draw = Generator(random.Random(SEED))
    cases = [*CASES, *(draw.case() for _ in range(COUNT))]
    with psycopg.connect(postgres, autocommit=True) as connection:
        found = theirs(connection, cases)
    if os.environ.get("HOLDFAST_RECORD"):
        rows = [json.dumps([*case, text], ensure_ascii=True) for case, text in zip(cases, found, strict=True)]
        RECORDED.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    wrong = [
        f"{case}: PostgreSQL {text!r}, ours {ours!r}"
        for case, text in zip(cases, found, strict=True)
        if (ours := answer(case)) != text
    ]
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:20])


LIKES = """
CREATE OR REPLACE FUNCTION pg_temp.likes(s text, p text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN RETURN (s LIKE p)::text || (s ILIKE p)::text; EXCEPTION WHEN others THEN RETURN SQLSTATE; END $$
"""


def test_like_answers_as_postgresql_does(postgres: str) -> None:
    rng = random.Random(SEED)
    wrong = []
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(LIKES)
        for _ in range(COUNT):
            pattern = "".join(rng.choice("aab%%__\\Aé") for _ in range(rng.randint(0, 8)))
            text = "".join(rng.choice("aabbAé\\%") for _ in range(rng.randint(0, 8)))
            row = connection.execute("SELECT pg_temp.likes(%s, %s)", (text, pattern)).fetchone()
            try:
                ours = f"{like(text, pattern)}{ilike(text, pattern)}".lower()
            except SqlError as error:
                ours = error.sqlstate
            if row is None or row[0] != ours:
                wrong.append((text, pattern, row, ours))
    assert not wrong, wrong[:20]


def test_classes_are_those_of_the_locale(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name in sorted(CLASSES):
            rows = connection.execute(
                "SELECT n FROM generate_series(1, %s) n WHERE n NOT BETWEEN 55296 AND 57343 AND chr(n) ~ %s",
                (CODES, f"[[:{name}:]]"),
            ).fetchall()
            ours = {n for low, high in class_ranges(name) for n in range(max(low, 1), min(high, CODES) + 1)}
            assert {n for (n,) in rows} == ours - set(range(0xD800, 0xE000)), name
