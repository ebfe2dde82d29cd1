"""What to do when a lock request would have to wait: the deadlock policies (D17, D58, U15).

A policy sees the request that is about to wait and the transactions it would wait for, and answers which
transactions must give up so that no cycle of waits remains. Age is the transaction id: smaller is older.

    detect      (default) search the wait-for graph; the youngest of a cycle gives up
    wound_wait  an older requester makes younger holders give up; a younger one waits
    wait_die    a younger requester gives up; an older one waits
    no_wait     every requester that would wait gives up
    timeout     nobody gives up; only ``lock_timeout`` ends a wait
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol


class Waiter(Protocol):
    """What a policy knows of a lock owner."""

    @property
    def id(self) -> int:
        """Transaction id; smaller is older."""


class Policy(Protocol):
    """Decides who gives up when ``requester`` is about to wait."""

    name: str

    def victims(
        self, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """Return (victim, cycle) pairs; ``cycle`` lists waiters in order, each waiting for the next.

        ``waits_for(owner)`` lists the owners a waiting owner waits for (empty if it does not wait). The
        requester already counts as waiting. It may itself be a victim.
        """


class Detect:
    """Wait-for-graph search at block time: any new cycle contains the requester, so search from there."""

    name = "detect"

    def victims(
        self, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """Return victims until no cycle through the requester is left."""
        out: list[tuple[Waiter, list[Waiter]]] = []
        dead: set[int] = set()
        while True:
            cycle = self._cycle(requester, waits_for, dead)
            if cycle is None:
                return out
            victim = max(cycle, key=lambda w: w.id)
            out.append((victim, cycle))
            if victim is requester:
                return out
            dead.add(victim.id)

    @staticmethod
    def _cycle(
        start: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]], dead: set[int]
    ) -> list[Waiter] | None:
        """Depth-first search for a path back to ``start`` (iterative: waits may be long chains)."""
        path = [start]
        seen = {start.id}
        stack = [iter(waits_for(start))]
        while stack:
            for other in stack[-1]:
                if other is start:
                    return path
                if other.id in seen or other.id in dead:
                    continue
                seen.add(other.id)
                path.append(other)
                stack.append(iter(waits_for(other)))
                break
            else:
                stack.pop()
                path.pop()
        return None


class WoundWait:
    """Older requesters wound younger holders. No cycle: waits only go from younger to older."""

    name = "wound_wait"

    def victims(
        self, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """Return the younger ones among those waited for."""
        return [(other, [requester, other]) for other in waits_for(requester) if other.id > requester.id]


class WaitDie:
    """Younger requesters give up at once. No cycle: waits only go from older to younger."""

    name = "wait_die"

    def victims(
        self, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """Return the requester if anyone it would wait for is older."""
        for other in waits_for(requester):
            if other.id < requester.id:
                return [(requester, [requester, other])]
        return []


class NoWait:
    """Nobody waits."""

    name = "no_wait"

    def victims(
        self, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """Return the requester."""
        others = list(waits_for(requester))
        return [(requester, [requester, others[0]] if others else [requester])]


class TimeoutOnly:
    """Waits end by ``lock_timeout`` alone."""

    name = "timeout"

    def victims(
        self, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """Return nobody."""
        return []


POLICIES: Final[dict[str, Policy]] = {
    policy.name: policy for policy in (Detect(), WoundWait(), WaitDie(), NoWait(), TimeoutOnly())
}
