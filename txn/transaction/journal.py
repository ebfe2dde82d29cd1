"""Taking back what a transaction has done: a savepoint, a statement that failed, all of it.

``TransactionState.journal`` has an entry for each thing done, latest last: an intent to take back, as (own
writes, row id), or a function to call (``note``; ``TransactionState.calls`` has their places). A place in it
is a *mark*: how long it was then. Of things that come by the hundred thousand a function is an ``OneOfMany``,
whose kind knows how to take all of them back at once when the transaction ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Protocol

from txn.base.slices import Slice
from txn.transaction.lifetime import ACTIVE

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState
    from txn.transaction.view import Steps

UNDO_ROWS: Final = 2000  # taken back in one turn of the loop, at most
AT_ONCE: Final = 64  # taken back without a look at the clock


class Many(Protocol):
    """Things that one transaction has done, each taken back by itself or all together."""

    def undo(self, what: Any, /) -> None:
        """Take one back."""

    def undo_all(self) -> None:
        """Take all of the transaction's back, in a time that does not grow with their number. Idempotent."""


class OneOfMany:
    """Undoes one of many things of a kind."""

    __slots__ = ("kind", "what")

    def __init__(self, kind: Many, what: Any) -> None:
        self.kind = kind
        self.what = what

    def __call__(self) -> None:
        """Take it back."""
        self.kind.undo(self.what)


def note(txn: TransactionState, undo: Callable[[], object]) -> None:
    """Note how to take back what has been done and is no intent."""
    if txn.calls is None:
        txn.calls = []
    txn.calls.append(len(txn.journal))
    txn.journal.append(undo)


def undo_to(txn: TransactionState, mark: int) -> None:
    """Undo everything the journal holds beyond ``mark``, latest first."""
    while len(txn.journal) > mark:
        _undo_one(txn)


def _undo_one(txn: TransactionState) -> None:
    entry = txn.journal.pop()
    if isinstance(entry, tuple):
        own, row_id = entry
        own.pop(row_id)
    else:
        if txn.calls is None:
            raise AssertionError("a call is undone in a transaction that has none")
        txn.calls.pop()
        entry()


def _undo_some(txn: TransactionState, mark: int) -> Iterator[None]:
    """Undo much, a slice between two yields."""
    pause = Slice(UNDO_ROWS)
    while len(txn.journal) > mark:
        _undo_one(txn)
        if pause.over():
            yield


async def undo_slowly(txn: TransactionState, mark: int) -> None:
    """Undo much, a slice per turn of the loop; who gives up in between finds what is left in the journal."""
    txn.life.busy += 1
    try:
        for _ in _undo_some(txn, mark):
            await asyncio.sleep(0)
            if txn.life.state is not ACTIVE:
                raise txn.life.ended()
    finally:
        txn.life.busy -= 1


def undo_failed(txn: TransactionState, mark: int, error: BaseException) -> Steps[None]:
    """Undo what an operation had done before ``error``, in steps where that is much; whoever is impatient
    meanwhile gets the rest at once.

    Nobody sees half of it: intents are their transaction's alone, whose next operation waits for this one.
    """
    try:
        if not isinstance(error, GeneratorExit):  # of one that is given up nobody takes a step
            for _ in _undo_some(txn, mark):
                yield asyncio.sleep(0)
    finally:
        undo_to(txn, mark)


async def undo_load(txn: TransactionState, mark: int, error: BaseException) -> None:
    """As ``undo_failed``, for what is a coroutine itself."""
    with closing(undo_failed(txn, mark, error)) as steps:
        for waiting in steps:
            await waiting


def undo_all(txn: TransactionState) -> None:
    """Undo everything, of a transaction that ends: many intents go with what holds them
    (``txn.transaction.ending``), and are not looked at.
    """
    if len(txn.journal) <= AT_ONCE:
        undo_to(txn, 0)
        return
    last: Many | None = None
    calls, txn.calls = txn.calls, None
    for place in reversed(calls or ()):
        entry = txn.journal[place]
        if isinstance(entry, OneOfMany):
            if entry.kind is not last:
                last = entry.kind
                last.undo_all()
        else:
            if isinstance(entry, tuple):
                raise AssertionError("an entry of many is undone as a call")
            entry()
