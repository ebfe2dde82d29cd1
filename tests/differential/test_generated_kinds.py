"""Random statements of one kind beside PostgreSQL 15, on each executor in turn: casts, windows, DML with all that hangs on rows, views.

``HOLDFAST_DIFF=2000`` asks so many of each kind, a fifth of them of DML and views, ``HOLDFAST_SEEDS`` other ones (``make diff``).
"""

from __future__ import annotations

import psycopg
import pytest

from tests.differential.compare_generated import EXECUTORS, Source, compare
from tests.differential.generated_casts import Casts
from tests.differential.generated_prepared import Asked, Prepared, answers, explained
from tests.differential.generated_rows import Rows
from tests.differential.generated_views import Views
from tests.differential.generated_windows import Windows
from tests.differential.test_generated import COUNT, SEEDS
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

KINDS = (Casts, Windows, Rows, Views)
SHORT = 24
"""Statements of each kind in ``make test``."""
EQUAL = {Casts: 0.3, Windows: 0.6, Rows: 0.5, Views: 0.4}
"""How many statements of a kind have to give rows at least: the others are refused by both."""


@pytest.mark.timeout(0 if COUNT > 100 else 300)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.lower())
def test_random_statements_have_the_same_answers(
    kind: type[Casts | Windows | Rows | Views], seed: int, postgres: str, server: ServerProcess
) -> None:
    count = SHORT if COUNT <= 100 else COUNT // 5 if kind.stateful else COUNT
    with (
        psycopg.connect(server.url, autocommit=True) as ours,
        psycopg.connect(postgres, autocommit=True) as theirs,
    ):
        found = compare(ours, theirs, seed, count, EXECUTORS, source=kind)
    print(f"{kind.__name__} {seed}: {found.summary()}")
    assert not found.differences, "\n\n".join(found.differences)
    assert found.ends["equal"] >= EQUAL[kind] * count
    assert found.explained <= max(2, count // 20)


@pytest.mark.timeout(0 if COUNT > 100 else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_parameters_have_the_same_answers(seed: int, postgres: str, server: ServerProcess) -> None:
    made = Prepared(seed)
    with (
        psycopg.connect(server.url, autocommit=True) as ours,
        psycopg.connect(postgres, autocommit=True) as theirs,
    ):
        for connection in (ours, theirs):
            connection.execute(f"SET timezone = 'UTC'; {made.schema}".encode())
        differences, equal, unevaluated = [], 0, 0
        for number in range(SHORT if COUNT <= 100 else COUNT):
            asked = made.asked()
            ours.execute(f"SET executor = {EXECUTORS[number % len(EXECUTORS)]}".encode())
            mine, other = answers(ours, asked), answers(theirs, asked)
            if (
                "0A000" in mine and "0A000" not in other
            ):  # what the executor refuses the router gives to another
                ours.execute(b"SET executor = auto")
                mine = answers(ours, asked)
            equal += mine == other
            if mine != other and explained(mine, other):
                unevaluated += 1
            elif mine != other:
                differences.append(f"{asked}\n  ours   {mine}\n  theirs {other}")
        ours.execute("SET executor = auto")
        for connection in (ours, theirs):
            connection.execute(made.remove.encode())
    print(
        f"Prepared {seed}: {len(differences)} differences; {equal} equal, {unevaluated} an error in a value that one side leaves unevaluated"
    )
    assert not differences, "\n\n".join(differences)
    assert equal
    assert unevaluated <= max(2, COUNT // 20)


@pytest.mark.parametrize("kind", [*KINDS, Prepared])
def test_a_seed_gives_the_same_statements(kind: type[Source] | type[Prepared]) -> None:
    one, two = kind(7), kind(7)

    def some(made: Source | Prepared) -> list[str | Asked]:
        return [made.asked() if isinstance(made, Prepared) else made.query() for _ in range(50)]

    assert one.schema == two.schema
    assert some(one) == some(two)
