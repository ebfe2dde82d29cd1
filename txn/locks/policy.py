"""What to do when a lock request would have to wait: the deadlock policies (D17, D58, U15).

A policy sees the request that is about to wait and the transactions it would wait for, and answers which
transactions must give up so that no cycle of waits remains. Age is the transaction id: smaller is older.

    detect      (default) search the wait-for graph; the one of a cycle that has lost least gives up, of those the youngest
    wound_wait  an older requester makes younger holders give up; a younger one waits
    wait_die    a younger requester gives up; an older one waits
    no_wait     every requester that would wait gives up
    timeout     nobody gives up; only ``lock_timeout`` ends a wait

Age alone leaves cycles where locks are upgraded: who waits already has not been asked about a holder that has since got
a stronger mode, nor about an upgrade that was put before it. So those two search for cycles as well. Whichever
way a cycle comes about, its last step is a request that waits, and is found from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol


class Waiter(Protocol):
    """What a policy knows of a lock owner."""

    @property
    def id(self) -> int:
        """Transaction id; smaller is older."""

    @property
    def losses(self) -> int:
        """How often its session has lost lately."""


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
        return self.beyond(requester, waits_for, set())

    @classmethod
    def beyond(
        cls, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]], dead: set[int]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """The same, where the transactions ``dead`` (ids) give up already. ``dead`` gets more."""
        out: list[tuple[Waiter, list[Waiter]]] = []
        while True:
            cycle = cls._cycle(requester, waits_for, dead)
            if cycle is None:
                return out
            victim = max(cycle, key=lambda w: (-w.losses, w.id))
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
    """Older requesters wound younger holders: waits go from younger to older, but for upgrades."""

    name = "wound_wait"

    def victims(
        self, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """Return the younger ones among those waited for, and whom cycles beyond them call for."""
        younger = {other.id: other for other in waits_for(requester) if other.id > requester.id}
        wounded = [(other, [requester, other]) for other in younger.values()]
        return wounded + Detect.beyond(requester, waits_for, set(younger))


class WaitDie:
    """Younger requesters give up at once: waits go from older to younger, but for upgrades."""

    name = "wait_die"

    def victims(
        self, requester: Waiter, waits_for: Callable[[Waiter], Iterable[Waiter]]
    ) -> list[tuple[Waiter, list[Waiter]]]:
        """Return the requester if anyone it would wait for is older, else whom cycles call for."""
        for other in waits_for(requester):
            if other.id < requester.id:
                return [(requester, [requester, other])]
        return Detect.beyond(requester, waits_for, set())


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
