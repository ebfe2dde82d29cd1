"""The graph of dependencies between transactions, and the cycles in it.

    A --ww--> B   B overwrote a version that A wrote
    A --wr--> B   B read a version that A wrote
    A --rw--> B   B overwrote a version that A had read
    A --rt--> B   A was acknowledged before B was asked for (reduced: what follows from others is left out)

A history is strictly serializable only if there is no cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from tests.sim.checker.history import Observed

KINDS = ("ww", "wr", "rw", "rt")


class Edge(NamedTuple):
    """One dependency; ``predicate``: the read looked for whatever satisfies a condition."""

    kind: str
    source: int
    target: int
    key: Hashable
    predicate: bool = False
    missed: bool = False  # rw: the reader lacks a version that was acknowledged and that nobody ever saw


class Graph:
    """Edges between transaction ids; of several between two transactions one of each kind and key is kept."""

    def __init__(self) -> None:
        self.out: dict[int, dict[tuple[int, str, Hashable], Edge]] = {}

    def add(self, edge: Edge) -> None:
        """Add an edge; edges of a transaction to itself say nothing."""
        if edge.source != edge.target:
            known = self.out.setdefault(edge.source, {})
            known.setdefault((edge.target, edge.kind, edge.key), edge)

    def between(self, source: int, target: int) -> list[Edge]:
        """Return the edges from one transaction to another."""
        return [e for e in self.out.get(source, {}).values() if e.target == target]

    def components(self) -> list[set[int]]:
        """Return the strongly connected components of more than one transaction (Tarjan, iterative)."""
        number: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        on_stack: set[int] = set()
        found: list[set[int]] = []
        targets = {node: list({e.target: None for e in edges.values()}) for node, edges in self.out.items()}
        for root in list(targets):
            if root in number:
                continue
            number[root] = low[root] = len(number)
            stack.append(root)
            on_stack.add(root)
            work = [(root, iter(targets[root]))]
            while work:
                node, rest = work[-1]
                for other in rest:
                    if other not in number:
                        number[other] = low[other] = len(number)
                        stack.append(other)
                        on_stack.add(other)
                        work.append((other, iter(targets.get(other, ()))))
                        break
                    if other in on_stack:
                        low[node] = min(low[node], number[other])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == number[node]:
                        component: set[int] = set()
                        while True:
                            member = stack.pop()
                            on_stack.discard(member)
                            component.add(member)
                            if member == node:
                                break
                        if len(component) > 1:
                            found.append(component)
        return found

    def cycle(
        self, within: set[int], first: Callable[[Edge], bool], others: Callable[[Edge], bool]
    ) -> list[Edge] | None:
        """Return a shortest cycle that starts with an edge ``first`` allows and goes on with ``others``."""
        best: list[Edge] | None = None
        for node in sorted(within):
            for edge in self.out.get(node, {}).values():
                if edge.target in within and first(edge):
                    path = self._path(edge.target, node, within, others)
                    if path is not None and (best is None or len(path) + 1 < len(best)):
                        best = [edge, *path]
                        if len(best) == 2:
                            return best
        return best

    def _path(
        self, source: int, target: int, within: set[int], allowed: Callable[[Edge], bool]
    ) -> list[Edge] | None:
        """Return a shortest path (breadth first)."""
        came: dict[int, Edge | None] = {source: None}
        queue = deque((source,))
        while queue:
            node = queue.popleft()
            for edge in self.out.get(node, {}).values():
                if edge.target in came or edge.target not in within or not allowed(edge):
                    continue
                came[edge.target] = edge
                if edge.target == target:
                    path = [edge]
                    while (before := came[path[-1].source]) is not None:
                        path.append(before)
                    return path[::-1]
                queue.append(edge.target)
        return None


def add_real_time(graph: Graph, transactions: Iterable[Observed]) -> None:
    """Add the reduced real-time edges: only to those not implied by a chain of others.

    ``frontier`` holds the acknowledged transactions that no other acknowledged one of it is known to follow.
    """
    events: list[tuple[int, bool, Observed]] = []
    for txn in transactions:
        if txn.fresh:
            events.append((txn.began, True, txn))
        if txn.outcome == "ok":
            events.append((txn.ended, False, txn))
    events.sort(key=lambda event: event[0])
    frontier: dict[int, None] = {}
    before: dict[int, tuple[int, ...]] = {}
    for _time, begins, txn in events:
        if begins:
            before[txn.id] = tuple(frontier)
            for earlier in frontier:
                graph.add(Edge("rt", earlier, txn.id, "time"))
        else:
            for earlier in before.get(txn.id, ()):
                frontier.pop(earlier, None)
            frontier[txn.id] = None
