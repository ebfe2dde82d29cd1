"""Every builtin costs what it says: a walk over all of them with arguments that grow (``tests.planner.builtins.costs``).

One part of ``PARTS`` runs with ``make test``, all with ``long`` tests; what is counted are lines of Python, so that no clock counts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from planner import functions as builtins
from planner.facts import facts
from planner.functions import costs
from planner.functions.aggregates.ordered import Percentile
from planner.functions.costs import DATA, Cost
from planner.functions.registry import Builtin, Registry
from tests.planner.builtins.costs import Measured, Stopped, counting, grows, measured, sample
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk

PARTS = 40
FEW = 2_500
"""Lines of a call that is one pass of C, whatever its arguments are."""
SLICE = 70_000
"""Lines between two looks at the clock: some milliseconds, less than a slice."""
ROWS = sorted(
    ((oid, row) for oid, row in builtins.load().functions.items() if row.python is not None and oid in facts().procs),
    key=lambda item: item[1].signature,
)  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A session of an empty database, of which functions may ask what they like."""

    async def opened() -> Any:
        database = await open_database(MemoryDisk())
        found = Session(database, 1)
        await found.run("SELECT 1")
        return found.connection.session

    loop = asyncio.new_event_loop()
    yield loop.run_until_complete(opened())
    loop.close()


def test_the_table_is_in_order_and_complete() -> None:
    lines = DATA.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(lines, key=lambda line: line.partition(" ")[2])
    assert all(row.cost is not None for _, row in ROWS)


def test_what_has_no_cost_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    registry.python("int4pl(int4,int4)", lambda a, b: a + b)
    assert registry.functions[facts().proc_by_signature["int4pl(int4,int4)"]].cost is Cost.CONSTANT
    known = {signature: cost for signature, cost in costs.read().items() if signature != "int4mi(int4,int4)"}
    monkeypatch.setattr(costs, "_known", lambda: known)
    with pytest.raises(LookupError, match=r"int4mi\(int4,int4\) has no cost"):
        registry.python("int4mi(int4,int4)", lambda a, b: a - b)


def problem(oid: int, row: Builtin, found: Measured) -> str:
    """What a builtin does that its cost does not say."""
    said = f"{row.signature} is {row.cost}: {found}"
    if row.cost is Cost.LINEAR:
        return said if found.lines > FEW or found.outside else ""
    if row.cost is Cost.PROCESS:
        return "" if found.outside else said
    if row.cost is Cost.BOUNDED and not found.failed and found.looks and found.lines > SLICE:
        return said
    return said if found.longest > SLICE else ""


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.long] if part else []) for part in range(PARTS)]
)
def test_builtins_cost_what_they_say(session: Any, part: int) -> None:
    problems = []
    for oid, row in ROWS[part::PARTS]:
        if not grows(oid):
            assert row.cost in (Cost.CONSTANT, Cost.BOUNDED), row.signature
            continue
        try:
            found = measured(oid, row, session)
        except LookupError:
            continue  # there are values of its argument's type in catalogs alone
        problems += filter(None, [problem(oid, row, found)])
    assert not problems, "\n".join(problems)


def _tree(opening: str, key: str, closing: str) -> str:
    """Return a jsonb of three levels of containers, none of which has many items."""
    text = "1"
    for _ in range(3):
        text = f"{opening}{', '.join([key.format(i) + text for i in range(10, 36)])}{closing}"
    return text


TREES = (_tree("[", "", "]"), _tree("{", '"k{}": ', "}"))
MANY = 5_000
"""Items of which each takes some lines."""


@pytest.mark.parametrize(
    ("signature", "args"),
    [
        *[
            (f"{name}({','.join([name.partition('_')[0]] * count)})", (tree,) * count)
            for tree in TREES
            for name, count in (
                ("jsonb_strip_nulls", 1), ("json_strip_nulls", 1), ("jsonb_pretty", 1), ("jsonb_hash", 1), ("jsonb_concat", 2),
                ("jsonb_cmp", 2), ("jsonb_contains", 2),
            )
        ],
        ("fuzzystrmatch.soundex(text)", ("." * 2 * MANY,)),
        ("dist_polyp(polygon,point)", (sample("polygon", MANY), sample("point", 1))),
    ],
)  # fmt: skip
def test_what_has_no_many_of_anything_gives_way(signature: str, args: tuple[Any, ...]) -> None:
    row = next(row for _, row in ROWS if row.signature == signature)
    assert row.python is not None
    found = Measured()
    with counting(found), contextlib.suppress(Stopped):
        row.python(*args)
    assert found.lines > SLICE / 2
    assert found.longest < SLICE / 10, found


def test_fractions_give_way() -> None:
    fractions = (tuple([i / MANY for i in range(MANY)]), None)
    found = Measured()
    with counting(found):
        state = Percentile(True, (fractions,))
        for value in (1.0, 2.0):
            state.step(value)
        assert len(state.result()[0]) == MANY
    assert found.lines > SLICE
    assert found.longest < SLICE / 10, found


def test_costs_are_read_once_each() -> None:
    assert set(costs.read()) == {row.signature for _, row in ROWS}
