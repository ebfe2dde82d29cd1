"""The lock table, turn by turn: whoever waits is granted, cancelled, timed out or ended in every order, in one turn of the loop or in several.

    owner 0 holds    1, 2, 3 ask in this order: S, X, or S first and then X (upgrade)
    events           0 ends; of each other one: its task is cancelled, its wait times out, its transaction is ended by somebody else
    between two      nothing, or a turn: a lock may be granted and its waiter not have gone on yet

After each event whoever could be served is, counts agree with holders and owners with entries (``validate``), and nobody holds what its
transaction does not have; in the end all have ended one way or the other, and the table is empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice, permutations, product
from typing import Final, NamedTuple

import pytest

from tests.support.durable import run
from txn.base.errors import Deadlock, LockTimeout, TxnError, WaitCancelled
from txn.locks.entry import LockOwner
from txn.locks.mode import S, X
from txn.locks.table import LockTable

GRANULE: Final = "granule"
WAITERS: Final = (1, 2, 3)
KINDS: Final = ("S", "X", "upgrade")
ENDS: Final = ("cancel", "timeout", "end")


class Event(NamedTuple):
    """What happens to an owner."""

    owner: int
    what: str


class Play:
    """One table with its owners. A task does what a transaction does: whatever ends its wait with an error rolls it back."""

    def __init__(self, held: int, kinds: tuple[str, ...]) -> None:
        self.table = LockTable()
        self.owners = [LockOwner(number + 1, session=number + 1) for number in range(4)]
        self.outcomes: dict[int, str] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}
        assert self.table.acquire(self.owners[0], GRANULE, held) is None
        for number, kind in zip(WAITERS, kinds, strict=True):
            if kind == "upgrade":
                assert self.table.acquire(self.owners[number], GRANULE, S) is None
        for number, kind in zip(WAITERS, kinds, strict=True):
            self.tasks[number] = asyncio.ensure_future(self._transaction(number, S if kind == "S" else X))

    async def _transaction(self, number: int, mode: int) -> None:
        owner = self.owners[number]
        try:
            wait = self.table.acquire(owner, GRANULE, mode)
            if wait is not None:
                await wait
        except (asyncio.CancelledError, TxnError) as error:
            self.outcomes[number] = type(error).__name__
            self.table.release_all(owner)
            if not isinstance(error, asyncio.CancelledError | Deadlock | LockTimeout | WaitCancelled):
                raise
        else:
            self.outcomes[number] = "granted"

    def happens(self, event: Event) -> None:
        """Let an event happen, and look at the table."""
        owner = self.owners[event.owner]
        if event.what == "cancel":
            self.tasks[event.owner].cancel()
        elif event.what == "timeout":
            if owner.waiting is not None:
                self.table._time_out(owner.waiting)
        else:
            self.table.release_all(owner)
        self.check()

    def check(self) -> None:
        """Look at the table from both sides."""
        self.table.validate()
        for owner in self.owners:
            entry = self.table.entries.get(GRANULE)
            assert owner.held.get(GRANULE) == (None if entry is None else entry.holders.get(owner))
        assert set(self.table.waiting) == {owner for owner in self.owners if owner.waiting is not None}

    async def ends(self) -> None:
        """Let whoever has got its lock end, one after the other, until nobody is left."""
        ended: set[int] = set()
        while len(ended) < len(self.owners):
            for _turn in range(3):
                await asyncio.sleep(0)
            self.check()
            for number, outcome in self.outcomes.items():
                assert outcome == "granted" or not self.owners[number].held, "it has been rolled back"
            done = {0, *(number for number, task in self.tasks.items() if task.done())} - ended
            assert done, "somebody waits for nobody"
            self.table.release_all(self.owners[min(done)])
            ended.add(min(done))
        assert not len(self.table)
        assert not self.table.waiting
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


def schedules(length: int) -> Iterator[tuple[tuple[Event, ...], tuple[bool, ...]]]:
    """Yield events of different owners in every order, and whether a turn passes behind each."""
    for owners in permutations(range(4), length):
        for whats in product(*(("end",) if owner == 0 else ENDS for owner in owners)):
            events = tuple(Event(*pair) for pair in zip(owners, whats, strict=True))
            for turns in product((False, True), repeat=length - 1):
                yield events, turns


@pytest.mark.parametrize(
    ("length", "every"), [(2, 3), pytest.param(2, 1, marks=pytest.mark.long), pytest.param(3, 7, marks=pytest.mark.long)]
)  # fmt: skip
def test_nobody_is_forgotten_whatever_ends_in_whatever_turn(length: int, every: int) -> None:
    async def play_all() -> None:
        count = 0
        for first, (held, kinds) in enumerate(product((S, X), product(KINDS, repeat=3))):
            if held == X and "upgrade" in kinds:
                continue  # it could not have S
            for events, turns in islice(schedules(length), first % every, None, every):
                play = Play(held, kinds)
                await asyncio.sleep(0)
                play.check()
                for event, turn in zip(events, (*turns, False), strict=True):
                    play.happens(event)
                    if turn:
                        await asyncio.sleep(0)
                        play.check()
                await play.ends()
                count += 1
        assert count >= 35 * 144 // every

    run(play_all)
