"""The merge policy alone: how often rows are written, how many parts there are, what is never touched."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from txn.mvcc.compaction import FANOUT, Size, Written, choose, level, worth_a_job, write_bound


class Table:
    """Parts under the policy: rows arrive by flushes, rows of parts end at random."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self.parts: list[Size] = []
        self.written = Written()

    def flush(self, rows: int) -> None:
        self.parts.append(Size(rows, 0))
        self.written.flushed += rows
        self.compact()

    def compact(self) -> bool:
        chosen = choose(self.parts, self.max_rows)
        if not chosen:
            return False
        live = sum(self.parts[i].live for i in chosen)
        self.written.merged += live
        self.written.lost += sum(self.parts[i].dead for i in chosen)
        self.written.merges += 1
        self.parts = [p for i, p in enumerate(self.parts) if i not in chosen]
        if live:
            self.parts.append(Size(live, 0))
        return True

    def end(self, rows: int, rng: random.Random) -> None:
        for _ in range(rows):
            at = [i for i, p in enumerate(self.parts) if p.live]
            if at:
                i = rng.choice(at)
                rows_, dead = self.parts[i]
                self.parts[i] = Size(rows_, dead + 1)


@settings(max_examples=60, deadline=None)
@given(
    flushes=st.lists(st.tuples(st.integers(1, 400), st.integers(0, 300)), min_size=1, max_size=120),
    max_rows=st.sampled_from([50, 1000, 20_000]),
    seed=st.integers(0, 2**32),
)
def test_rows_are_written_a_bounded_number_of_times(
    flushes: list[tuple[int, int]], max_rows: int, seed: int
) -> None:
    rng = random.Random(seed)
    table = Table(max_rows)
    for rows, ends in flushes:
        table.flush(rows)
        table.end(ends, rng)
        done = table.written
        assert done.flushed + done.merged <= write_bound(done.flushed, done.lost, max_rows)
    for _ in range(len(table.parts)):
        if not table.compact():
            break
    assert not choose(table.parts, max_rows), "merging comes to an end"
    assert not worth_a_job(table.parts, max_rows)
    for number in range(level(max_rows)):
        small = sorted(p.live for p in table.parts if level(p.live) == number)
        assert len(small) < FANOUT or sum(small[:FANOUT]) > max_rows, "so many parts of a level are merged"


def test_ten_million_rows_flushed_in_small_parts_are_written_less_than_four_times() -> None:
    table = Table(2_000_000)
    for _ in range(200):
        table.flush(50_000)
    assert table.written.amplification < 4
    assert len(table.parts) < 40


def test_rows_that_somebody_may_still_read_do_not_make_a_part_worth_merging() -> None:
    assert choose([Size(1000, 0)]) == []
    assert choose([Size(1000, 301)]) == [0]
    assert choose([Size(1000, 0)] * (FANOUT - 1)) == []
    assert choose([Size(1000, 0)] * FANOUT) == list(range(FANOUT))


def test_a_merge_keeps_within_its_bound() -> None:
    sizes = [Size(300, 0)] * 20
    chosen = choose(sizes, 3000)
    assert FANOUT <= len(chosen) <= 10
    assert choose(sizes, 300 * FANOUT - 1) == [], "too large to be merged at all"
    assert choose([Size(10_000, 5000)], 100) == [0], "but what is dead in a large part is let go"


def test_a_part_without_live_rows_goes_without_anything_being_written() -> None:
    assert choose([Size(5, 5), Size(70, 0)]) == [0]


def test_the_cost_of_a_row_grows_with_the_levels_and_not_with_the_table() -> None:
    table = Table(1_000_000_000)
    for _ in range(1000):
        table.flush(10_000)
    assert table.written.amplification < 1 + level(10_000_000) - level(10_000) + 1
