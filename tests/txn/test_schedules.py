"""The schedules that the theory discusses (D12, D13, D15, D74), driven step by step: what comes out is serializable.

A schedule is text: ``r1(x) w2(x) c2 w1(x) c1``. Each transaction runs its steps in order; one that has to wait delays
its own later steps only. Every write is a value of its own, so that reads say whose write they saw; an order of the
committed transactions that explains all reads and the final state is a serialization (D12's topological order).
"""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store, settle
from txn.base.errors import Deadlock, WriteConflict
from txn.store import ShardStore

KEYS = {"x": 1, "y": 2, "z": 3}
Outcome = dict[int, list[tuple[str, str, str]] | None]


class Actor:
    """One transaction of a schedule. ``done``: its steps with the values read or written; None: refused."""

    def __init__(self, store: ShardStore, name: int, *, reads_only: bool, eager: bool) -> None:
        self.name = name
        self.eager = eager and not reads_only
        self.txn: Any = store.begin(read_only=reads_only, session=name)
        self.done: list[tuple[str, str, str]] | None = []
        self.waiting: asyncio.Task[None] | None = None

    async def step(self, what: str, key: str) -> None:
        """Do one step after those before it."""
        self.waiting = asyncio.ensure_future(self._step(self.waiting, what, key))
        await settle()

    async def _step(self, before: asyncio.Task[None] | None, what: str, key: str) -> None:
        if before is not None:
            await before
        if self.done is None:
            return
        try:
            if (self.eager or what == "w") and not self.txn.writing and what != "c":
                await now(self.txn.begin_write([SHARD]))
            if what == "c":
                await now(self.txn.commit())
                return
            self.txn.next_statement()
            (row,) = await now(self.txn.lookup(SHARD, BY_K, [(KEYS[key],)], for_update=what == "w"))
            value = row.values[2]
            if what == "w":
                value = f"{self.name}{key}{len(self.done)}"
                await now(self.txn.update(SHARD, [(row.row_id, (KEYS[key], 0, value))]))
            self.done.append((what, key, value))
        except (Deadlock, WriteConflict):
            self.txn.rollback()
            self.done = None


async def play(schedule: str, *, eager: bool) -> tuple[Outcome, dict[str, str], list[int]]:
    """Run a schedule; returns what each transaction did, the final state, and the order of the commits."""
    store = await open_memory_store()
    await make_table(store, [(k, 0, "") for k in KEYS.values()])
    steps = re.findall(r"([rwc])(\d)(?:\((\w)\))?", schedule)
    actors: dict[int, Actor] = {}
    committed: list[int] = []
    for what, name, key in steps:
        number = int(name)
        if number not in actors:
            reads_only = not any(w == "w" and n == name for w, n, _k in steps)
            actors[number] = Actor(store, number, reads_only=reads_only, eager=eager)
            actors[number].txn.on_applied(lambda _ts, n=number: committed.append(n))
        await actors[number].step(what, key)
    for actor in actors.values():
        assert actor.waiting is not None
        await actor.waiting
    final = store.begin(read_only=True)
    rows = await now(final.lookup(SHARD, BY_K, [(k,) for k in KEYS.values()]))
    state = {name: next(r.values[2] for r in rows if r.values[0] == k) for name, k in KEYS.items()}
    final.rollback()
    store.validate()
    assert len(store.core.locks) == 0
    await store.close()
    return {n: a.done for n, a in actors.items()}, state, committed


def explains(order: tuple[int, ...], outcome: Outcome, final: dict[str, str]) -> bool:
    """Tell whether running the transactions one after the other gives what they have seen, and the final state."""
    state = dict.fromkeys(KEYS, "")
    for number in order:
        for what, key, value in outcome[number] or ():
            if what == "w":
                state[key] = value
            elif state[key] != value:
                return False
    return state == final


EAGER = pytest.mark.parametrize("eager", [False, True], ids=["reads-first", "locks-from-the-start"])


@EAGER
@pytest.mark.parametrize(
    ("schedule", "commits"),
    [
        # D13: the serial one; the one equivalent to T3, T2, T1; a lost update; a double increment.
        ("w3(x) r3(y) w3(z) c3 r2(y) r2(z) w2(y) c2 r1(x) r1(z) w1(x) c1", (3, 3)),
        ("w3(x) r1(x) r3(y) r2(y) w3(z) r2(z) r1(z) w2(y) w1(x) c3 c2 c1", (1, 3)),
        ("r1(x) w2(x) c2 w1(x) c1", (1, 2)),
        ("r2(x) r1(x) w2(x) w1(x) c2 c1", (1, 1)),
        ("r1(x) r2(x) w1(x) c1 w2(x) c2", (1, 1)),
        # An unrepeatable read; a read of what is not committed (D15); write skew.
        ("r1(x) w2(x) r1(x) c1 c2", (2, 2)),
        ("w1(x) r2(x) w2(y) c2 c1", (1, 2)),
        ("r1(x) r2(y) w1(y) w2(x) c1 c2", (1, 1)),
        # D74: between the release of r1's lock and c1, S2PL lets a reader see T2 but not T1.
        ("r1(x) w1(y) w2(x) c2 r3(x) r3(y) c1", (3, 3)),
    ],
    ids=[
        "serial", "S2", "overtaken", "increments", "increments-2", "unrepeatable", "dirty", "skew", "H1",
    ],
)  # fmt: skip
def test_what_comes_out_is_serializable(schedule: str, commits: tuple[int, int], eager: bool) -> None:
    async def go() -> None:
        outcome, final, order = await play(schedule, eager=eager)
        done = [n for n, steps in outcome.items() if steps is not None]
        assert commits[0] <= len(done) <= commits[1], outcome
        orders = [o for o in itertools.permutations(done) if explains(o, outcome, final)]
        assert orders, f"no serial order explains {outcome} and {final}"
        # The order of the commits is one of them, readers apart: they come right after what they have read (D16).
        writers = tuple(n for n in order if any(s[0] == "w" for s in outcome[n] or ()))
        assert any(tuple(n for n in o if n in writers) == writers for o in orders)

    run(go)


def test_h1_makes_the_writer_wait() -> None:
    """T2 cannot commit before T1, whose read it overwrites; the reader sees neither."""

    async def go() -> None:
        outcome, final, order = await play("r1(x) w1(y) w2(x) c2 r3(x) r3(y) c1", eager=False)
        assert order == [1, 2] or order == [3, 1, 2]
        assert outcome[3] == [("r", "x", ""), ("r", "y", "")]
        assert (final["x"][0], final["y"][0]) == ("2", "1")

    run(go)


def test_the_check_refuses_what_is_not_serializable() -> None:
    lost = {1: [("r", "x", ""), ("w", "x", "1x")], 2: [("r", "x", ""), ("w", "x", "2x")]}
    h1 = {
        1: [("r", "x", ""), ("w", "y", "1y")],
        2: [("w", "x", "2x")],
        3: [("r", "x", "2x"), ("r", "y", "")],
    }
    for outcome, final in ((lost, {"x": "2x", "y": "", "z": ""}), (h1, {"x": "2x", "y": "1y", "z": ""})):
        orders = itertools.permutations(outcome)
        assert not any(explains(o, outcome, final) for o in orders)  # type: ignore[arg-type]
