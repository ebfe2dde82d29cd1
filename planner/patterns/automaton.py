r"""A deterministic automaton whose states are made as they are met: a step per character, whatever the pattern.

    state: what the nondeterministic one may have reached  ── character ──> the next state
                                                                            and: was a match complete before it?

Conditions hold at a place, between the character behind and the one ahead; so a state remembers the kind of
the one behind, and whether a match ends at a place is known with the next character. A state is a dictionary
from characters to states; one not met before is looked up by what distinguishes it (its signature: which sets
of the pattern have it, and its kind). An automaton of a reversed ``Nfa`` reads from the end to the beginning.
It keeps ``MAX_KEPT`` states, then forgets them all.

Automata are shared by threads: what a race may do is make a state twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from planner.patterns.charset import CharSet, class_ranges
from planner.patterns.nfa import Condition, Nfa
from planner.patterns.steps import spend
from planner.patterns.tree import Guard

MAX_KEPT: Final = 2_000  # states of one automaton
MAX_MEMBERS: Final = 200_000  # members of all of them
MAX_CHARACTERS: Final = 1_000  # that one state remembers by themselves
STRIDE: Final = 4_096  # characters after which steps are counted

NOTHING, LINE_END, WORD, OTHER = range(4)
"""Kinds of what is beside a place: the border of the text, a line end, a character of a word, any other."""

_HOLDS: Final = {
    Guard.BEGIN: lambda behind, ahead: behind == NOTHING,
    Guard.END: lambda behind, ahead: ahead == NOTHING,
    Guard.LINE_BEGIN: lambda behind, ahead: behind <= LINE_END,
    Guard.LINE_END: lambda behind, ahead: ahead <= LINE_END,
    Guard.WORD_BEGIN: lambda behind, ahead: behind != WORD and ahead == WORD,
    Guard.WORD_END: lambda behind, ahead: behind == WORD and ahead != WORD,
    Guard.BOUNDARY: lambda behind, ahead: (behind == WORD) != (ahead == WORD),
    Guard.NO_BOUNDARY: lambda behind, ahead: (behind == WORD) == (ahead == WORD),
}
if _HOLDS.keys() != set(Guard):
    raise AssertionError(f"guards without a meaning: {set(Guard) - _HOLDS.keys()}")


class Signature(NamedTuple):
    """What an automaton may tell a character by: the sets that have it, and its kind beside a place."""

    sets: frozenset[int]
    kind: int


class Places(Protocol):
    """A text, and what look-arounds say of its places."""

    text: str
    scanned: int  # characters that automata have taken so far

    def look(self, number: int, place: int) -> bool:
        """Tell whether a look-around holds at a place."""


class Alphabet:
    """The characters of one pattern, by signature."""

    def __init__(self, sets: Sequence[CharSet]) -> None:
        self._sets = sets
        self._known: dict[str, Signature] = {}
        self._word = CharSet(class_ranges("word"))

    def signature(self, c: str) -> Signature:
        """Return a character's signature."""
        found = self._known.get(c)
        if found is None:
            if len(self._known) > MAX_CHARACTERS:
                self._known.clear()
            kind = LINE_END if c == "\n" else WORD if c in self._word else OTHER
            found = Signature(frozenset(n for n, chars in enumerate(self._sets) if c in chars), kind)
            self._known[c] = found
        return found

    def kind(self, c: str) -> int:
        """Return what a character is beside a place; "" is the border of the text."""
        return self.signature(c).kind if c else NOTHING


class _State(dict[str, "_State"]):
    """See the module. ``told``: a match was complete before the last character, or nothing can follow."""

    __slots__ = ("accepts", "automaton", "by_signature", "dead", "ends", "kind", "looks", "members", "told")

    def __init__(
        self, automaton: Automaton, members: frozenset[int], kind: int, accepts: bool, looks: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.automaton = automaton
        self.members = members
        self.kind = kind
        self.accepts = accepts
        self.looks = looks  # that what happens at this place may depend on
        self.dead = not members
        self.told = accepts or self.dead
        self.ends: bool | None = None  # whether a match is complete if the text ends here
        self.by_signature: dict[tuple[Signature, tuple[bool, ...]], _State] = {}

    def __missing__(self, c: str) -> _State:
        """Return the state behind a character, and remember it."""
        found = self.after(c, ())
        if len(self) >= MAX_CHARACTERS:
            self.clear()
        self[c] = found
        return found

    def after(self, c: str, held: tuple[bool, ...]) -> _State:
        """Return the state behind a character where these of ``looks`` hold."""
        signature = self.automaton.alphabet.signature(c)
        found = self.by_signature.get((signature, held))
        if found is None:
            found = self.by_signature[signature, held] = self.automaton.step(self, signature, held)
        return found


class Automaton:
    """Runs over texts; ``floating``: a match may begin anywhere, not just where the run does."""

    def __init__(
        self, nfa: Nfa, alphabet: Alphabet, *, floating: bool = False, backwards: bool = False
    ) -> None:
        """``backwards``: ``nfa`` is a reversed one."""
        self._nfa = nfa
        self.alphabet = alphabet
        self._floating = floating
        self._backwards = backwards
        self._looking = nfa.looking
        self._kept: dict[tuple[frozenset[int], int, bool], _State] = {}
        self._members = 0

    # --- states ---------------------------------------------------------------------------------------

    def _state(self, members: frozenset[int], kind: int, accepts: bool) -> _State:
        if not self._nfa.guarded:
            kind = NOTHING
        key = (members, kind, accepts)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= MAX_KEPT or self._members > MAX_MEMBERS:
                self._forget()
            looks: tuple[int, ...] = ()
            if self._looking:
                looks = self._looks(members)
            found = self._kept[key] = _State(self, members, kind, accepts, looks)
            self._members += len(members)
        return found

    def _forget(self) -> None:
        old, self._kept, self._members = self._kept, {}, 0
        for state in old.values():  # they refer to one another
            state.clear()
            state.by_signature.clear()

    def _closure(
        self, members: frozenset[int], behind: int, ahead: int, looks: dict[int, bool] | None
    ) -> set[int]:
        """Return the states that are reached without a character at a place; ``looks`` None: all conditions hold."""
        free, holds = self._nfa.free, self._nfa.holds
        if self._backwards:
            behind, ahead = ahead, behind
        found = set(members)
        stack = list(members)
        while stack:
            state = stack.pop()
            for to in free[state]:
                if to not in found:
                    found.add(to)
                    stack.append(to)
            for condition, to in holds[state]:
                if to not in found and (looks is None or _met(condition, behind, ahead, looks)):
                    found.add(to)
                    stack.append(to)
        spend(len(found) * 4 + 100)
        return found

    def _looks(self, members: frozenset[int]) -> tuple[int, ...]:
        """Return the look-arounds that a place with these states may depend on."""
        found: set[int] = set()
        for state in self._closure(members, NOTHING, NOTHING, None):
            found.update(c for c, _ in self._nfa.holds[state] if isinstance(c, int))
        return tuple(sorted(found))

    def step(self, state: _State, signature: Signature, held: tuple[bool, ...]) -> _State:
        """Return the state behind a character."""
        looks = dict(zip(state.looks, held, strict=True))
        closed = self._closure(state.members, state.kind, signature.kind, looks)
        takes, sets = self._nfa.takes, signature.sets
        members = {to for s in closed for chars, to in takes[s] if chars in sets}
        if self._floating:
            members.add(self._nfa.start)
        return self._state(frozenset(members), signature.kind, self._nfa.final in closed)

    def _ends(self, state: _State, places: Places, place: int) -> bool:
        """Tell whether a match is complete at a border of the text."""
        if state.looks:
            looks = {number: places.look(number, place) for number in state.looks}
            return self._nfa.final in self._closure(state.members, state.kind, NOTHING, looks)
        if state.ends is None:
            state.ends = self._nfa.final in self._closure(state.members, state.kind, NOTHING, {})
        return state.ends

    def first_sets(self) -> set[int] | None:
        """Return the sets of which a match's first character is; None where a match may be empty."""
        closed = self._closure(frozenset((self._nfa.start,)), NOTHING, NOTHING, None)
        if self._nfa.final in closed:
            return None
        return {chars for state in closed for chars, _ in self._nfa.takes[state]}

    # --- runs -----------------------------------------------------------------------------------------

    def reach(self, places: Places, begin: int, stop: int) -> Iterator[int]:
        """Yield the places, in the order of reading, up to which a match from ``begin`` may go, ``stop`` at
        the farthest.

        A floating automaton yields the places where any match ends that begins at or behind ``begin``.
        """
        text, backwards = places.text, self._backwards
        step = -1 if backwards else 1
        state = self._state(frozenset((self._nfa.start,)), self._kind_behind(text, begin), False)
        place = begin
        while place != stop:
            if backwards:
                piece = text[max(place - STRIDE, stop) : place][::-1]
            else:
                piece = text[place : min(place + STRIDE, stop)]
            started = place
            for c in piece:
                if state.looks:
                    state = state.after(c, tuple([places.look(number, place) for number in state.looks]))
                else:
                    state = state[c]
                if state.told:
                    if state.accepts:
                        yield place
                    if state.dead:
                        self._count(places, place + step - started)
                        return
                place += step
            self._count(places, place - started)
        if self._complete(state, places, stop):
            yield stop

    def longest(self, places: Places, begin: int, stop: int) -> int:
        """Return the last of ``reach``, -1 where there is none."""
        if self._looking or self._backwards:
            found = -1
            for found in self.reach(places, begin, stop):  # noqa: B007
                pass
            return found
        text = places.text
        state = self._state(frozenset((self._nfa.start,)), self._kind_behind(text, begin), False)
        place, found = begin, -1
        while place < stop:
            started = place
            for c in text[place : min(place + STRIDE, stop)]:
                state = state[c]
                if state.told:
                    if state.accepts:
                        found = place
                    if state.dead:
                        self._count(places, place + 1 - started)
                        return found
                place += 1
            self._count(places, place - started)
        return stop if self._complete(state, places, stop) else found

    def shortest(self, places: Places, begin: int, least: int, stop: int) -> int:
        """Return the first of ``reach`` that is not before ``least``, -1 where there is none."""
        for found in self.reach(places, begin, stop):
            if found >= least:
                return found
        return -1

    def _kind_behind(self, text: str, place: int) -> int:
        if not self._nfa.guarded:
            return NOTHING
        behind = text[place : place + 1] if self._backwards else text[place - 1 : place] if place else ""
        return self.alphabet.kind(behind)

    def _complete(self, state: _State, places: Places, place: int) -> bool:
        """Tell whether a match is complete at ``place``, where reading stops."""
        text = places.text
        ahead = text[place - 1 : place] if self._backwards and place else text[place : place + 1]
        if self._backwards and place == 0:
            ahead = ""
        if not ahead:
            return self._ends(state, places, place)
        if state.looks:
            held = tuple([places.look(number, place) for number in state.looks])
            return state.after(ahead, held).accepts
        return state[ahead].accepts

    def _count(self, places: Places, characters: int) -> None:
        characters = abs(characters)
        places.scanned += characters
        spend(characters)


def _met(condition: Condition, behind: int, ahead: int, looks: dict[int, bool]) -> bool:
    if isinstance(condition, Guard):
        return bool(_HOLDS[condition](behind, ahead))
    return looks[condition]
