r"""Compiled regular expressions, and searching with them.

    compiled(r'(\d+)-(\w*?)', ADVANCED).search('tel. 12-ab')     Match: span 5..8, groups '12', ''

A search goes by the characters a match can begin with, tries the places where it may, and gives that up for
one run from the end of the text, which finds all places where a match begins, once the tries have cost more
than such a run: so it is linear. Look-aheads are answered the same way, look-behinds by one run from the
beginning.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from planner.patterns.automaton import Alphabet, Automaton
from planner.patterns.charset import CharSet, union
from planner.patterns.dissect import ABSENT, Dissection, Span
from planner.patterns.nfa import build
from planner.patterns.options import ADVANCED, IGNORE_CASE, TOO_COMPLEX, invalid
from planner.patterns.parser import parse
from planner.patterns.shape import Node, shape
from planner.patterns.shortcut import Shortcut, shortcut, trimmed, written
from planner.patterns.steps import spend
from planner.patterns.tree import Branch, Chars, Expression, Group, Guard, Item, Look

TRIES: Final = 4  # how often a text may be gone over before one run answers for all its places
SLACK: Final = 4_096  # characters of short tries that do not count
_LEADING: Final = 8  # characters of a match's beginning that are looked for at once


class Subject:
    """A text being searched: its places, and what look-arounds say of them (``automaton.Places``)."""

    __slots__ = ("_begins", "_behind", "_cost", "_tables", "regex", "scanned", "text")

    def __init__(self, regex: Regex, text: str) -> None:
        self.regex = regex
        self.text = text
        self.scanned = 0
        self._tables: dict[int, bytearray] = {}
        self._cost: dict[int, int] = {}
        self._behind: dict[int, _Behind] = {}
        self._begins: bytearray | None = None

    def look(self, number: int, place: int) -> bool:
        """Tell whether a look-around holds at a place."""
        look = self.regex.looks[number]
        if not look.ahead:
            behind = self._behind.get(number)
            if behind is None:
                behind = self._behind[number] = _Behind(
                    self.regex.behind(number).reach(self, 0, len(self.text))
                )
            return behind.ends_at(place) is look.positive
        table = self._tables.get(number)
        if table is None and self._cost.get(number, 0) <= self._patience():
            before = self.scanned
            found = self.regex.ahead(number).shortest(self, place, place, len(self.text)) >= 0
            self._cost[number] = self._cost.get(number, 0) + self.scanned - before
            return found is look.positive
        if table is None:
            table = self._tables[number] = self._table(self.regex.ahead_table(number))
        return bool(table[place]) is look.positive

    def begins(self, cost: int) -> bytearray | None:
        """Return where matches begin, by a byte for each place, once tries have cost as much; None before."""
        if self._begins is None and cost > self._patience():
            self._begins = self._table(self.regex.begin_table())
        return self._begins

    def _patience(self) -> int:
        return TRIES * len(self.text) + SLACK

    def _table(self, automaton: Automaton) -> bytearray:
        found = bytearray(len(self.text) + 1)
        for place in automaton.reach(self, len(self.text), 0):
            found[place] = 1
        return found


class _Behind:
    """Where a look-behind's matches end, found from the beginning on as far as was asked."""

    def __init__(self, ends: Iterator[int]) -> None:
        self._ends = ends
        self._seen: set[int] = set()
        self._until = -1

    def ends_at(self, place: int) -> bool:
        while self._until < place:
            self._until = next(self._ends, 1 << 62)
            self._seen.add(self._until)
        return place in self._seen


class Found:
    """A match; ``group`` and its kin as of ``re.Match``."""

    __slots__ = ("_spans", "_subject", "begin", "finish")

    def __init__(self, subject: Subject, begin: int, finish: int, spans: list[Span] | None) -> None:
        self._subject = subject
        self.begin = begin
        self.finish = finish
        self._spans = spans

    def _span(self, number: int) -> Span:
        if number == 0:
            return self.begin, self.finish
        if self._spans is None:
            spans = self._subject.regex.dissect(self._subject, self.begin, self.finish)
            self._spans = spans if spans is not None else [ABSENT] * (self._subject.regex.groups + 1)
        return self._spans[number]

    def group(self, number: int = 0, /) -> str | None:
        """Return the text of a group, None where it took no part."""
        start, end = self._span(number)
        return None if start < 0 else self._subject.text[start:end]

    def groups(self) -> tuple[str | None, ...]:
        """Return the texts of all groups but the whole."""
        return tuple(self.group(number) for number in range(1, self._subject.regex.groups + 1))

    def start(self, number: int = 0, /) -> int:
        """Return where a group begins, -1 where it took no part."""
        return self._span(number)[0]

    def end(self, number: int = 0, /) -> int:
        """Return where a group ends."""
        return self._span(number)[1]


Match: TypeAlias = Found | re.Match[str]


class _ByRe:
    """The patterns of a ``Shortcut`` for ``re``, compiled when they are first used."""

    __slots__ = ("_limit", "_patterns", "_shortcut")

    def __init__(self, found: Shortcut | None) -> None:
        self._shortcut = found
        self._limit = found.limit if found is not None else -1
        self._patterns: dict[bool, re.Pattern[str] | None] = {}

    @property
    def tame(self) -> bool:
        """Tell whether there is a pattern for ``re`` at all, if not for long texts."""
        return self._shortcut is not None

    def suited(self, text: str) -> re.Pattern[str] | None:
        """Return the pattern for a text, None where ``re`` might take long over it."""
        if len(text) > self._limit or self._shortcut is None:
            return None
        plain = text.isascii()
        if plain not in self._patterns:
            self._patterns[plain] = self._shortcut.compile(ascii_only=plain)
        return self._patterns[plain]


class Regex:
    """A compiled regular expression; ``groups`` is the number of its capturing groups."""

    def __init__(self, pattern: str, bits: int) -> None:
        """Raises 2201B for a pattern that is malformed or too complex."""
        parsed = parse(pattern, bits)
        self.groups = parsed.groups
        self.looks: list[Look] = []
        self._ignore_case = bool(parsed.bits & IGNORE_CASE)
        self._expression = parsed.expression
        whole = shortcut(parsed.expression, parsed.groups)
        self._whole = _ByRe(whole)
        self._exact = whole is not None and whole.exact
        core = trimmed(parsed.expression)
        self._core = self._whole if core == parsed.expression else _ByRe(shortcut(core, parsed.groups))
        self._machine: _Machine | None = None

    @property
    def tame(self) -> bool:
        """Tell whether a library that tries all ways is sure to have tried them soon: no loops in overlapping loops."""
        return self._core.tame

    @property
    def machine(self) -> _Machine:
        """The automata."""
        if self._machine is None:
            built = _Machine(self._expression)
            if self._machine is None:  # another statement may have been let in, and built it
                self._machine, self.looks = built, built.looks
        return self._machine

    # --- searching ------------------------------------------------------------------------------------

    def test(self, text: str) -> bool:
        """Tell whether a text has a match."""
        by_re = self._core.suited(text)
        if by_re is not None:
            return by_re.search(text) is not None
        machine = self.machine
        if machine.root.refers:
            return self.search(text) is not None
        subject = Subject(self, text)
        place = machine.candidate(text, 0)
        return place >= 0 and machine.floating.shortest(subject, place, place, len(text)) >= 0

    def search(self, text: str, position: int = 0) -> Match | None:
        """Return the first match at or behind ``position``."""
        by_re = self._whole.suited(text)
        if by_re is not None and self._exact:
            return by_re.search(text, position)
        return self._find(Subject(self, text), position, by_re)

    def finditer(self, text: str, position: int = 0) -> Iterator[Match]:
        """Yield matches as PostgreSQL does: after an empty one it moves on by one character."""
        by_re = self._whole.suited(text)
        subject = Subject(self, text)
        while position <= len(text):
            match: Match | None
            if by_re is not None and self._exact:
                match = by_re.search(text, position)
            else:
                match = self._find(subject, position, by_re)
            if match is None:
                return
            spend(20)
            yield match
            position = match.end() if match.end() > match.start() else match.end() + 1

    def _find(self, subject: Subject, position: int, by_re: re.Pattern[str] | None = None) -> Found | None:
        """Return the first match at or behind a position; ``by_re`` finds where it begins, if there is one."""
        if by_re is not None:
            found_by_re = by_re.search(subject.text, position)
            return None if found_by_re is None else self._match_from(subject, found_by_re.start())
        machine, text = self.machine, subject.text
        cost = 0
        begin = position
        while True:
            begin = machine.candidate(text, begin)
            if begin < 0:
                return None
            table = subject.begins(cost)
            if table is not None:
                begin = table.find(1, begin)
                if begin < 0:
                    return None
            before = subject.scanned
            found = self._match_from(subject, begin)
            if found is not None:
                return found
            begin += 1
            cost += subject.scanned - before + 1
            spend(10)

    def _match_from(self, subject: Subject, begin: int) -> Found | None:
        root, length = self.machine.root, len(subject.text)
        automaton = self.machine.forward(root)
        if not root.refers:
            if root.shorter:
                end = automaton.shortest(subject, begin, begin, length)
            else:
                end = automaton.longest(subject, begin, length)
            return None if end < 0 else Found(subject, begin, end, None)
        ends = list(automaton.reach(subject, begin, length))
        for end in ends if root.shorter else reversed(ends):
            spans = self.dissect(subject, begin, end)
            if spans is not None:
                return Found(subject, begin, end, spans)
        return None

    def dissect(self, subject: Subject, begin: int, end: int) -> list[Span] | None:
        """Return the spans of the groups of a match; None where back references disagree with it."""
        machine = self.machine
        dissection = Dissection(subject, self.groups, machine.forward, machine.backward, self._ignore_case)
        try:
            return dissection.groups if dissection.cut(machine.root, begin, end) else None
        except RecursionError:
            raise invalid(TOO_COMPLEX) from None

    # --- automata of parts ----------------------------------------------------------------------------

    def ahead(self, number: int) -> Automaton:
        """Return the automaton of a look-ahead."""
        return self.machine.of_look(number, "ahead")

    def ahead_table(self, number: int) -> Automaton:
        """Return the automaton that runs from the end and stops where a look-ahead's matches begin."""
        return self.machine.of_look(number, "table")

    def behind(self, number: int) -> Automaton:
        """Return the automaton that stops wherever a look-behind's matches end."""
        return self.machine.of_look(number, "behind")

    def begin_table(self) -> Automaton:
        """Return the automaton that runs from the end and stops where matches begin."""
        return self.machine.begins


class _Machine:
    """All automata of one pattern, made when they are first asked for."""

    def __init__(self, expression: Expression) -> None:
        try:
            self.root = shape(expression)
            self._sets: dict[CharSet, int] = {}
            self.looks: list[Look] = []
            nfa = build((Item(Group(0, expression)),), self._sets, self.looks)
            number = 0
            bodies = []
            while number < len(self.looks):  # looks within looks are added on the way
                bodies.append(build((Item(Group(0, self.looks[number].body)),), self._sets, self.looks))
                number += 1
        except RecursionError:
            raise invalid(TOO_COMPLEX) from None
        _WEIGHT.add(len(nfa.free) + sum(len(body.free) for body in bodies))
        self._alphabet = Alphabet(list(self._sets))
        self._bodies = bodies
        self._nfa = nfa
        self._nodes: dict[tuple[int, bool], Automaton] = {}
        self._looked: dict[tuple[int, str], Automaton] = {}
        self._begins: Automaton | None = None
        self.floating = Automaton(nfa, self._alphabet, floating=True)
        self._nodes[id(self.root), False] = Automaton(nfa, self._alphabet)
        self._anchored = all(branch and branch[0].atom is Guard.BEGIN for branch in expression)
        self._leading = self._leading_pattern(expression)

    def _leading_pattern(self, expression: Expression) -> re.Pattern[str] | None:
        """Return a pattern for what any match begins with; None where it may be empty."""
        first = self._nodes[id(self.root), False].first_sets()
        if first is None:
            return None
        leading = _leading_chars(expression)
        if not leading:
            sets = list(self._sets)
            leading = [CharSet(union([sets[number].ranges for number in first]))]
        return re.compile("".join(map(written, leading)), re.DOTALL)

    def candidate(self, text: str, position: int) -> int:
        """Return the first place at or behind ``position`` where a match may begin, -1 where there is none."""
        if self._anchored:
            return 0 if position == 0 else -1
        if self._leading is None:
            return position if position <= len(text) else -1
        found = self._leading.search(text, position)
        return found.start() if found is not None else -1

    @property
    def begins(self) -> Automaton:
        """Runs from the end of a text and stops where matches begin."""
        if self._begins is None:
            self._begins = Automaton(self._nfa.reversed(), self._alphabet, floating=True, backwards=True)
        return self._begins

    def forward(self, node: Node) -> Automaton:
        """Return a node's automaton."""
        return self._of_node(node, False)

    def backward(self, node: Node) -> Automaton:
        """Return a node's automaton from the end to the beginning."""
        return self._of_node(node, True)

    def _of_node(self, node: Node, backwards: bool) -> Automaton:
        key = (id(node), backwards)
        found = self._nodes.get(key)
        if found is None:
            nfa = build(node.items, self._sets, self.looks)
            _WEIGHT.add(len(nfa.free))
            if backwards:
                nfa = nfa.reversed()
            found = self._nodes[key] = Automaton(nfa, self._alphabet, backwards=backwards)
        return found

    def of_look(self, number: int, use: str) -> Automaton:
        """Return a look-around's automaton: "ahead" and "behind" as they read, "table" from the end."""
        found = self._looked.get((number, use))
        if found is None:
            nfa = self._bodies[number]
            if use == "table":
                found = Automaton(nfa.reversed(), self._alphabet, floating=True, backwards=True)
            else:
                found = Automaton(nfa, self._alphabet, floating=use == "behind")
            self._looked[number, use] = found
        return found


def _leading_chars(expression: Expression) -> list[CharSet]:
    """Return the sets that the first characters of every match are of."""
    found: list[CharSet] = []
    branch: Branch = expression[0] if len(expression) == 1 else ()
    for item in branch:
        if isinstance(item.atom, Guard | Look):
            continue
        if not isinstance(item.atom, Chars) or item.low == 0:
            break
        found += [item.atom.chars] * min(item.low, _LEADING - len(found))
        if item.low != item.high or len(found) >= _LEADING:
            break
    return found


class _Weight:
    """What all kept patterns hold, in states; beyond ``MAX`` all are forgotten."""

    MAX: Final = 400_000

    def __init__(self) -> None:
        self.total = 0

    def add(self, states: int) -> None:
        self.total += states
        if self.total > self.MAX:
            self.total = 0
            compiled.cache_clear()


_WEIGHT: Final = _Weight()


@functools.lru_cache(maxsize=1000)
def compiled(pattern: str, bits: int = ADVANCED) -> Regex:
    """Return a compiled pattern; ``bits`` are those of ``options``. Raises 2201B."""
    try:
        return Regex(pattern, bits)
    except RecursionError:
        raise invalid(TOO_COMPLEX) from None
