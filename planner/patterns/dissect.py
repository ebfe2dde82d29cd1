"""Which part of a match each group took: the match's span cut along the tree of nodes.

Without back references every cut is sure to succeed: where a concatenation is cut is the last (or first)
place that its first part reaches from the left and the rest from the right, one run of an automaton each.
With them the cuts are tried one after the other, in that order, until all references agree with their groups;
that may take long, is counted, and can be stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from planner.base.letters import lower_char
from planner.patterns.automaton import Automaton, Places
from planner.patterns.shape import Kind, Node
from planner.patterns.steps import spend

Span = tuple[int, int]
ABSENT: Span = (-1, -1)


class Dissection:
    """One attempt to cut a match; ``groups`` are the spans found, ABSENT for those that took no part."""

    def __init__(
        self,
        places: Places,
        groups: int,
        forward: Callable[[Node], Automaton],
        backward: Callable[[Node], Automaton],
        ignore_case: bool,
    ) -> None:
        """``forward`` and ``backward`` give a node's automata."""
        self._places = places
        self._forward = forward
        self._backward = backward
        self._ignore_case = ignore_case
        self.groups: list[Span] = [ABSENT] * (groups + 1)

    def cut(self, node: Node, begin: int, end: int) -> bool:
        """Find the groups below a node that its automaton lets match this span; False where back references
        disagree.
        """
        spend(20)
        kind = node.kind
        if kind is Kind.PLAIN:
            agrees = True
        elif kind is Kind.CONCAT:
            agrees = self._concat(node, begin, end)
        elif kind is Kind.EITHER:
            agrees = any(
                self._forward(child).longest(self._places, begin, end) == end and self.cut(child, begin, end)
                for child in node.children
            )
        elif kind is Kind.REPEAT:
            agrees = _Rounds(self, self._places, self._forward(node.children[0]), node, begin, end).find()
        elif kind is Kind.BACK:
            agrees = self._same_text(node, begin, end)
        else:
            agrees = self.cut(node.children[0], begin, end)
        if agrees and node.capture:
            self.groups[node.capture] = (begin, end)
        return agrees

    def forget(self, node: Node) -> None:
        """Forget what the groups below a node took."""
        if node.capture:
            self.groups[node.capture] = ABSENT
        for child in node.children:
            self.forget(child)

    def _concat(self, node: Node, begin: int, end: int) -> bool:
        first, rest = node.children
        places = self._places
        middles: Iterable[int]
        reached = set(self._forward(first).reach(places, begin, end))
        from_right = self._backward(rest).reach(places, end, begin)
        if first.shorter:
            middles = [p for p in from_right if p in reached][::-1]
        else:
            middles = (p for p in from_right if p in reached)
        for number, middle in enumerate(middles):
            if number:
                self.forget(first)
                self.forget(rest)
            if self.cut(first, begin, middle) and self.cut(rest, middle, end):
                return True
        return False

    def _same_text(self, node: Node, begin: int, end: int) -> bool:
        """Tell whether a span is what a group took, as often as its reference may come."""
        start, stop = self.groups[node.group]
        if start < 0:
            return False
        text = self._places.text
        size, length = stop - start, end - begin
        if size == 0:
            return length == 0
        if length == 0:
            return node.low == 0
        rounds, left = divmod(length, size)
        if left or rounds < node.low or (node.high is not None and rounds > node.high):
            return False
        spend(length // 8)
        wanted, found = text[start:stop], text[begin:end]
        if self._ignore_case:
            wanted, found = _small(wanted), _small(found)
        return found == wanted * rounds


def _small(text: str) -> str:
    return text.lower() if text.isascii() else "".join(map(lower_char, text))


class _Rounds:
    """Cuts a span into rounds of a repetition: each as long (or short) as it can be, the first before the
    second and so on.

    Rounds of no length are taken only where the least number would not be reached else. What is known to lead
    nowhere is not tried again, where no back reference can make it different.
    """

    def __init__(
        self, dissection: Dissection, places: Places, automaton: Automaton, node: Node, begin: int, end: int
    ) -> None:
        self._dissection = dissection
        self._places = places
        self._automaton = automaton
        self._node = node
        self._child = node.children[0]
        self._shorter = self._child.shorter
        self._end = end
        self._least = max(node.low, 1)
        self._counted = node.high is not None or node.low > 1
        most = end - begin if node.high is None else min(node.high, end - begin)
        self._most = max(most, self._least)
        self._ends = [begin]  # of the rounds so far, after where the first begins
        self._known_dead: set[Span] = set()

    def find(self) -> bool:
        """Find the rounds and cut each of them.

        A round of no length is taken rather than none, so that its groups are set, but not by one that
        prefers to be short.
        """
        may_be_none = self._node.low == 0 and self._ends[0] == self._end
        return (may_be_none and self._shorter) or self._search() or may_be_none

    def _search(self) -> bool:
        ends, end = self._ends, self._end
        cut = 0  # rounds that have been cut as they stand
        limit = ends[0] if self._shorter else end
        while True:
            spend(20)
            found = self._next_end(limit)
            if found < 0:
                self._give_up()
            else:
                ends.append(found)
                cut = min(cut, len(ends) - 2)
                if found != end:
                    if self._may_go_on():
                        limit = found if self._shorter else end
                        continue
                    if len(ends) - 1 >= self._most and not self._shorter:
                        ends.pop()  # a shorter last round would not do either
                elif len(ends) - 1 >= self._least:
                    cut = self._cut(cut)
                    if cut == len(ends) - 1:
                        return True
            limit = self._step_back()
            if limit < 0:
                return False

    def _next_end(self, limit: int) -> int:
        """Return where the next round ends: at most (or, if the shortest are preferred, at least) at ``limit``."""
        start, number = self._ends[-1], len(self._ends)
        if self._dead(number, start):
            return -1
        if not self._shorter:
            return self._automaton.longest(self._places, start, limit)
        if limit == start and limit != self._end and not self._needs_empty(number, start):
            limit += 1
        return self._automaton.shortest(self._places, start, limit, self._end)

    def _needs_empty(self, number: int, place: int) -> bool:
        """Tell whether round ``number`` has to be empty for all the rounds that must come."""
        return number < self._least and self._least - number >= self._end - place

    def _may_go_on(self) -> bool:
        """Tell whether another round may follow the last one, which did not reach the end."""
        ends = self._ends
        number = len(ends) - 1
        if number >= self._most:
            return False
        return self._shorter or ends[-1] != ends[-2] or self._needs_empty(number, ends[-1])

    def _cut(self, done: int) -> int:
        """Cut rounds behind the first ``done``; return how many are."""
        ends = self._ends
        for number in range(done + 1, len(ends)):
            self._dissection.forget(self._child)
            if not self._dissection.cut(self._child, ends[number - 1], ends[number]):
                return number - 1
        return len(ends) - 1

    def _step_back(self) -> int:
        """Take back the last round that could end elsewhere; return the next limit for its end, -1 where
        there is none.
        """
        ends = self._ends
        while len(ends) > 1:
            last = ends.pop()
            start, number = ends[-1], len(ends)
            if self._shorter:
                if last < self._end:
                    return last + 1
            elif last > start:
                limit = last - 1
                if limit > start or self._needs_empty(number, start):
                    return limit
            self._give_up()
        return -1

    def _dead(self, number: int, start: int) -> bool:
        return (number if self._counted else 0, start) in self._known_dead

    def _give_up(self) -> None:
        """Remember that no round from here leads to the end."""
        if not self._child.refers:
            number = len(self._ends) if self._counted else 0
            self._known_dead.add((number, self._ends[-1]))
