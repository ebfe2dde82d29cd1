"""Nodes on their own: sorting in runs, top rows, lockstep sets."""

from __future__ import annotations

import random
from typing import Any

from engine.executors.index.nodes import Node, Sort, lockstep
from engine.executors.index.sorting import RUN, sort_rows
from engine.executors.index.state import Pipe
from planner.evaluate import Env, Layout, Shared
from planner.facts import INT4, INT8, TEXT
from planner.query import Const
from planner.types import SqlType


class Rows(Node):
    """Given rows in batches of 1000."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        super().__init__(Layout(), len(rows[0]))
        self.rows = rows

    def pipe(self, e: Env) -> Pipe:
        for i in range(0, len(self.rows), 1000):
            yield self.rows[i : i + 1000]


def rows_of(node: Node) -> list[tuple[Any, ...]]:
    return [row for batch in node.pipe(Env(shared=Shared())) if isinstance(batch, list) for row in batch]


def some_rows(count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(7)
    words = (None, "a", "b", "ä", "")
    return [(rng.choice((None, *range(50))), rng.choice(words), n) for n in range(count)]


ITEMS = [(0, INT4, True, True), (1, TEXT, False, False)]


def test_sorting_in_merged_runs_is_the_same_stable_sort() -> None:
    rows = some_rows(3 * RUN)
    assert rows_of(Sort(Rows(rows), ITEMS)) == sort_rows(list(rows), ITEMS)


def test_a_sort_below_a_limit_keeps_only_the_top_rows_and_the_same_ones() -> None:
    rows = some_rows(20_000)
    counts = [Const(type=SqlType(INT8), value=n) for n in (10, 5)]
    kept = rows_of(Sort(Rows(rows), ITEMS, counts))
    assert len(kept) < 10_000
    assert kept[:15] == sort_rows(list(rows), ITEMS)[:15]


def test_sets_of_different_length_are_filled_with_nulls() -> None:
    assert list(lockstep([range(2), (), None, "abc"])) == [
        (0, None, None, "a"),
        (1, None, None, "b"),
        (None, None, None, "c"),
    ]
