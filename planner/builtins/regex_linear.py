r"""Regular expressions in linear time, for patterns on which ``re`` could be busy for ever.

    pattern ──┬── harmless                       re
              ├── (a+)+  (a|ab)*                 RE2: ``re`` may try 2^n ways, and nobody can interrupt it
              ├── .*x.*y.*z on a long text       RE2: ``re`` may try n^3
              └── the first kind with what RE2 does not know (look-around, back references)   2201B, too complex

PostgreSQL's own matcher is an automaton, like RE2, which Arrow brings along. RE2 finds the same match as ``re`` (leftmost,
first alternative first, greedy or not), so that which of the two runs makes no difference to an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

MANY = 8  # repetitions up to which a loop within a loop stays harmless
MAX_STEPS = 10_000_000  # that ``re`` may need in the worst case: a fraction of a second
_UNENDING = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_RARE = "éßΩя中\u2028\u00a0٣"
_PROBES = "".join(map(chr, range(128))) + _RARE
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\p{Nd}",
    sre.CATEGORY_NOT_DIGIT: r"\P{Nd}",
    sre.CATEGORY_WORD: r"\p{L}\p{N}_",
    sre.CATEGORY_SPACE: r"\t-\r\x1c-\x20\x{85}\p{Z}",
}
_WORD = (sre.CATEGORY, sre.CATEGORY_NOT_WORD)
_EVERYTHING = {(sre.CATEGORY, sre.CATEGORY_SPACE), (sre.CATEGORY, sre.CATEGORY_NOT_SPACE)}  # [\s\S]
_WHOLE = {
    (
        (sre.NEGATE, None),
        _WORD,
        (sre.CATEGORY, sre.CATEGORY_DIGIT),
        (sre.LITERAL, ord("_")),
    ): r"[\p{L}\p{Nl}\p{No}]",
    ((sre.NEGATE, None), _WORD, (sre.LITERAL, ord("_"))): r"[\p{L}\p{N}]",
}
"""Sets that RE2 writes another way: [:alpha:] and [:alnum:]."""
_NEVER = r"[^\x00-\x{10FFFF}]"


class TooComplex(Exception):
    """A pattern that neither ``re`` nor RE2 can be trusted with."""


class NotLinear(Exception):
    """The pattern has something that RE2 does not know."""


def watched(pattern: re.Pattern[str]) -> Pattern:
    """Return a pattern that is sure to end, ``pattern`` itself where it always does. Raises TooComplex."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    ambiguous = _ambiguous(tree)
    degree = _degree(tree)
    if not ambiguous and degree < 2:
        return pattern
    try:
        return LinearPattern(pattern, tree, 0 if ambiguous else degree)
    except NotLinear:
        if ambiguous:
            raise TooComplex from None
        return pattern  # slow on a long text, but it ends


class LinearPattern:
    """A pattern for RE2, and for ``re`` while a text is so short that it cannot take long."""

    def __init__(self, pattern: re.Pattern[str], tree: Any, degree: int) -> None:
        """Translate ``pattern``; ``degree`` 0: never use ``re``. Raises NotLinear."""
        self.groups = pattern.groups
        self._pattern = pattern
        self._short = int(MAX_STEPS ** (1 / degree)) if degree else -1
        flags = "i" if pattern.flags & re.IGNORECASE else ""
        self._first = _wrapped(_Printer(first=True).sequence(tree), flags)
        self._later = _wrapped(_Printer(first=False).sequence(tree), flags)
        try:
            pc.extract_regex_span(pa.scalar(""), self._first)
            pc.extract_regex_span(pa.scalar(""), self._later)
        except pa.ArrowInvalid:
            raise NotLinear from None  # too large, or a repetition above its limit

    def search(self, text: str, position: int = 0, /) -> Match | None:
        """Find the first match at or behind ``position``."""
        if len(text) <= self._short:
            return self._pattern.search(text, position)
        rest = text[position:] if position else text
        found = pc.extract_regex_span(
            pa.scalar(rest, pa.large_string()), self._later if position else self._first
        )
        spans: dict[str, list[int]] | None = found.as_py()
        if spans is None:
            return None
        data = None if rest.isascii() else rest.encode()
        return LinearMatch(
            self, text, [_span(spans[f"g{n}"], data, position) for n in range(self.groups + 1)]
        )


class LinearMatch:
    """A match of ``LinearPattern``, with the methods of ``re.Match`` that are in use."""

    def __init__(self, pattern: LinearPattern, text: str, spans: Sequence[tuple[int, int]]) -> None:
        """Keep the spans of the whole and of each group, (-1, -1) for those that took no part."""
        self.re = pattern
        self._text = text
        self._spans = spans

    def group(self, number: int = 0, /) -> str | None:
        """Return the text of a group, None where it took no part."""
        start, end = self._spans[number]
        return None if start < 0 else self._text[start:end]

    def groups(self) -> tuple[str | None, ...]:
        """Return the texts of all groups but the whole."""
        return tuple(self.group(number) for number in range(1, len(self._spans)))

    def start(self, number: int = 0, /) -> int:
        """Return where a group begins."""
        return self._spans[number][0]

    def end(self, number: int = 0, /) -> int:
        """Return where a group ends."""
        return self._spans[number][1]


Pattern: TypeAlias = re.Pattern[str] | LinearPattern
Match: TypeAlias = re.Match[str] | LinearMatch


def _span(found: list[int] | None, data: bytes | None, position: int) -> tuple[int, int]:
    """Turn a start and a length in bytes into characters of the whole text."""
    if found is None or found[0] < 0:
        return -1, -1
    start, end = found[0], found[0] + found[1]
    if data is not None:
        start, end = len(data[:start].decode()), len(data[:end].decode())
    return position + start, position + end


def _wrapped(body: str, flags: str) -> str:
    return f"(?s{flags})(?P<g0>{body})"


# --- RE2's form ---------------------------------------------------------------------------------


class _Printer:
    """Prints the tree of a pattern as RE2 reads it; ``first``: the text begins where the search does."""

    def __init__(self, *, first: bool) -> None:
        self._first = first

    def sequence(self, tree: Any) -> str:
        return "".join(self._one(kind, value) for kind, value in tree)

    def _one(self, kind: Any, value: Any) -> str:
        if kind is sre.LITERAL:
            return _character(value)
        if kind is sre.NOT_LITERAL:
            return f"[^{_character(value)}]"
        if kind is sre.ANY:
            return "."  # the translator writes [^\n] where a dot stops at line ends
        if kind is sre.IN:
            return _set(value)
        if kind is sre.BRANCH:
            return f"(?:{'|'.join(self.sequence(branch) for branch in value[1])})"
        if kind is sre.SUBPATTERN:
            number, added, removed, body = value
            if added or removed:
                raise NotLinear
            opening = "(?:" if number is None else f"(?P<g{number}>"
            return f"{opening}{self.sequence(body)})"
        if kind in _UNENDING:
            low, high, body = value
            bounds = f"{{{low},}}" if high is sre.MAXREPEAT else f"{{{low},{high}}}"
            return f"(?:{self.sequence(body)}){bounds}{'?' if kind is sre.MIN_REPEAT else ''}"
        if kind is sre.AT and value is sre.AT_BEGINNING_STRING:
            return r"\A" if self._first else _NEVER
        if kind is sre.AT and value is sre.AT_END_STRING:
            return r"\z"
        raise NotLinear


def _set(items: Any) -> str:
    whole = _WHOLE.get(tuple(items))
    if whole is not None:
        return whole
    negated = items and items[0][0] is sre.NEGATE
    if not negated and set(items) >= _EVERYTHING:
        return "."
    parts = []
    for kind, value in items[1:] if negated else items:
        if kind is sre.LITERAL:
            parts.append(_character(value))
        elif kind is sre.RANGE:
            parts.append(f"{_character(value[0])}-{_character(value[1])}")
        elif kind is sre.CATEGORY and value in _CATEGORIES:
            parts.append(_CATEGORIES[value])
        else:
            raise NotLinear
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _character(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{{{code:X}}}"


# --- what could take for ever -------------------------------------------------------------------


def _degree(tree: Any) -> int:
    """Return how many loops follow one another at most: ``re`` tries every way to share a text among them."""
    total = 0
    for kind, value in tree:
        if kind in _UNENDING:
            total += 1 if _varies(value) else 0
        else:
            total += max((_degree(inner) for inner in _within(kind, value)), default=0)
    return total


def _ambiguous(tree: Any) -> bool:
    """Tell whether a loop may go over the same text in more than one way, so that ways multiply."""
    for kind, value in tree:
        if kind in _UNENDING:
            _low, high, body = value
            many = high is sre.MAXREPEAT or high > MANY
            if (many and not _unmistakable(body)) or _ambiguous(body):
                return True
        elif any(_ambiguous(inner) for inner in _within(kind, value)):
            return True
    return False


def _within(kind: Any, value: Any) -> Sequence[Any]:
    """Return what a group, a branch or a look-around is made of."""
    if kind is sre.SUBPATTERN:
        return [value[3]]
    if kind is sre.BRANCH:
        return list(value[1])
    return [value[1]] if kind in (sre.ASSERT, sre.ASSERT_NOT) else []


def _unmistakable(body: Any) -> bool:
    r"""Tell whether it is plain from a text where each round of a loop over ``body`` ends.

    That is so where all rounds have one form without choices, or where one character in each is sure to be there and
    occurs nowhere else in it: ``(?:\w+,)*``.
    """
    items = _flat(body)
    if items is None:
        return _forks_at_once(body)
    loose = [chars for chars, fixed in items if not fixed]
    if not loose:
        return True
    certain = [chars for chars, fixed in items if fixed]
    return any(all(chars.isdisjoint(other) for other in loose) for chars in certain)


def _forks_at_once(body: Any) -> bool:
    """Tell whether the first character says which of several plain forms follows: ``(?:foo|bar)*``."""
    while len(body) == 1 and body[0][0] is sre.SUBPATTERN:
        body = body[0][1][3]
    if len(body) != 1 or body[0][0] is not sre.BRANCH:
        return False
    seen: set[str] = set()
    for branch in body[0][1][1]:
        items = _flat(branch)
        if not items or not all(fixed for _chars, fixed in items) or not seen.isdisjoint(items[0][0]):
            return False
        seen |= items[0][0]
    return True


def _flat(body: Any) -> list[tuple[frozenset[str], bool]] | None:
    """Return a sequence's elements: the probes each takes, and whether it takes exactly one; None for anything deeper."""
    found: list[tuple[frozenset[str], bool]] = []
    for kind, value in body:
        if kind in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            found.append((_probes(kind, value), True))
        elif kind is sre.SUBPATTERN:
            inner = _flat(value[3])
            if inner is None:
                return None
            found += inner
        elif kind in _UNENDING:
            inner = _flat(value[2])
            if inner is None:
                return None
            varies = _varies(value)
            found += [(chars, fixed and not varies) for chars, fixed in inner]
            if varies and len(inner) > 1:
                return None
        else:
            return None
    return found


def _varies(value: Any) -> bool:
    return bool(value[0] != value[1])


def _probes(kind: Any, value: Any) -> frozenset[str]:
    """Return which characters of a sample an element takes, in either case; at least those, where it names rare ones."""
    if kind is sre.ANY:
        return frozenset(_PROBES)
    if kind is sre.LITERAL:
        return _either_case([chr(value)])
    negated = kind is sre.NOT_LITERAL
    found: list[str] = [chr(value)] if negated else []
    for what, item in () if negated else value:
        if what is sre.NEGATE:
            negated = True
        elif what is sre.LITERAL:
            found.append(chr(item))
        elif what is sre.RANGE:
            found += [c for c in _PROBES if item[0] <= ord(c) <= item[1]]
            found += _RARE if item[1] > 127 else ""
        else:
            found += [c for c in _PROBES if _in_category(item, c)]
    if negated:
        return _either_case(set(_PROBES) - set(found)) | frozenset(_RARE)
    return _either_case(found)


def _either_case(characters: Iterable[str]) -> frozenset[str]:
    """Return characters in both cases; for what is not in the sample, all of it that is not ASCII."""
    found = {form for c in characters for form in (c.lower(), c.upper(), c)}
    return frozenset(found | set(_RARE)) if any(not c.isascii() for c in found) else frozenset(found)


def _in_category(category: Any, c: str) -> bool:
    letter = {
        sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
        sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
    }[category]  # fmt: skip
    return re.match(letter, c) is not None
