"""Turns that have to be whole, and the debug mode that sees to it (docs/internals/invariants.md has the list,
with reasons).

    StoreTransaction.run    each step of an operation: checked, locked, staged     next step
                       └── nothing of a user's runs here: TurnBroken ──┘

Production runs as it is: these functions are closed code, in which nothing gives way. In debug mode
(``pgwire.give_way.DEBUG``) they are wrapped, so that whatever of a user's is evaluated within one fails
there, whether its slice is over or not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any, Final

from pgwire.give_way import whole_turn
from txn.log.group_commit import Committer
from txn.transaction.transaction import StoreTransaction

TURNS: Final[tuple[tuple[type, str], ...]] = (
    (StoreTransaction, "run"),
    (StoreTransaction, "rollback"),
    (Committer, "_form"),
    (Committer, "_apply"),
)
"""Classes and their methods. Of ``StoreTransaction.run`` each step of the operation that it is given is a turn."""


def check_turns() -> None:
    """Have turns fail that are not whole, from now on; for the debug mode. Idempotent."""
    for owner, name in TURNS:
        found = getattr(owner, name)
        if not hasattr(found, "__wrapped__"):
            setattr(owner, name, _of_steps(found) if name == "run" else _whole(found))


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def turn(*args: Any, **kwargs: Any) -> Any:
        with whole_turn():
            return function(*args, **kwargs)

    return turn


def _of_steps(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def turns(self: Any, steps: Generator[Any, Any, Any]) -> Any:
        return run(self, _each_whole(steps))

    return turns


def _each_whole(steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    resume: Callable[[], Any] = functools.partial(next, steps)
    while True:
        try:
            with whole_turn():
                waiting = resume()
        except StopIteration as done:
            return done.value
        try:
            answer = yield waiting
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:
            resume = functools.partial(steps.throw, error)
        else:
            resume = functools.partial(steps.send, answer)
