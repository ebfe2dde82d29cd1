"""What gives way while it does the work of one call."""

from __future__ import annotations

from random import Random

import pytest

from pgwire import give_way
from pgwire.give_way import RUN, paced_sorted


@pytest.mark.parametrize("count", [0, 1, RUN, RUN + 1, 3 * RUN + 7])
def test_many_items_are_sorted_as_in_one_call(count: int) -> None:
    random = Random(count)
    items = [(random.randrange(50), at) for at in range(count)]
    assert paced_sorted(items) == sorted(items)
    assert paced_sorted(iter(items), lambda item: item[0]) == sorted(items, key=lambda item: item[0])


def test_sorting_many_items_gives_way_between_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(give_way, "give_way", lambda: looks.append(1))
    computed: list[int] = []

    def key(item: int) -> int:
        computed.append(item)
        return -item

    paced_sorted(range(4 * RUN), key)
    assert len(computed) == 4 * RUN
    assert len(looks) >= 3 * 4 * RUN // give_way.PACE
