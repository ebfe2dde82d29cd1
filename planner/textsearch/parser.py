"""The default parser (manual 12.5): a text cut into tokens of 23 types, URLs and hyphenated words both whole
and in parts.

    'a well-known site: example.com/x'
      asciiword a · blank · asciihword well-known · hword_asciipart well · blank - · hword_asciipart known ·
      blank · asciiword site · blank · url example.com/x · host example.com · url_path /x

The automaton is PostgreSQL's (``states``): a text gives the same tokens there. What counts as a letter is
what a database with UTF-8 and the locale C.UTF-8 takes for one (``ts_characters.csv``).
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from pgwire.give_way import give_way
from pgwire.long.values import run_end
from planner.facts import rows
from planner.textsearch.states import states

WORD_TYPES: Final = {
    name: number
    for number, name in enumerate(
        ("asciiword", "word", "numword", "email", "url", "host", "sfloat", "version", "hword_numpart", "hword_part",
         "hword_asciipart", "blank", "tag", "protocol", "numhword", "asciihword", "hword", "url_path", "file",
         "float", "int", "uint", "entity"), start=1,
    )
}  # fmt: skip
"""Token types by name."""

# -- characters: a set of classes each, as bits ---------------------------------------------------------

_ASCII, _LETTER, _DIGIT, _MARK, _SPACE, _HEX, _URL, _OTHER, _ANY, _END = (1 << i for i in range(10))
_IGNORE, _STOP_HOST, _HOST, _URL_PATH = (1 << i for i in range(10, 14))
_CLASSES: Final = {
    "ascii": _ASCII, "letter": _LETTER, "digit": _DIGIT, "mark": _MARK, "space": _SPACE, "hex": _HEX, "url": _URL,
    "other": _OTHER, "any": _ANY, "end": _END, "ignore": _IGNORE, "stop-host": _STOP_HOST, "host": _HOST,
    "url-path": _URL_PATH,
}  # fmt: skip
_NOT_IN_URLS: Final = frozenset('"<>\\^`{|}')


def _ascii_class(char: str) -> int:
    found = _ANY
    if char.isalpha():
        found |= _ASCII | _LETTER
    if char.isdigit():
        found |= _DIGIT
    if char in "0123456789abcdefABCDEF":
        found |= _HEX
    if char in " \t\n\v\f\r":
        found |= _SPACE
    if not char.isalnum():
        found |= _OTHER
    if " " < char < "\x7f" and char not in _NOT_IN_URLS:
        found |= _URL
    return found


_ASCII_CLASSES: Final = {chr(code): _ascii_class(chr(code)) for code in range(128)}
_BY_NAME: Final = {"letter": _LETTER | _ANY, "mark": _MARK | _OTHER | _ANY, "space": _SPACE | _OTHER | _ANY}


@functools.cache
def _ranges() -> tuple[list[int], list[tuple[int, int]]]:
    found = sorted((int(r["first"]), int(r["last"]), _BY_NAME[r["class"]]) for r in rows("ts_characters"))
    return [first for first, _, _ in found], [(last, bits) for _, last, bits in found]


@functools.lru_cache(maxsize=4096)
def _wide_class(char: str) -> int:
    firsts, rest = _ranges()
    at = bisect_right(firsts, ord(char)) - 1
    if at >= 0 and ord(char) <= rest[at][0]:
        return rest[at][1]
    return _OTHER | _ANY


# -- the automaton --------------------------------------------------------------------------------------

_POP, _PUSH, _RERUN, _MERGE, _KEEP, _KEEP_ALL, _FOUND = (1 << i for i in range(7))
_FLAGS: Final = {
    "next": 0, "push": _PUSH, "pop": _POP, "keep": _KEEP, "merge": _MERGE, "rerun": _RERUN, "found": _FOUND,
    "found1": _FOUND | _KEEP, "found*": _FOUND | _KEEP_ALL,
}  # fmt: skip

# test as bits, or as a character; flags; next state or -1; token type; what is done before
_Line = tuple[int, str, int, int, int, str]
_DYNAMIC: Final = _IGNORE | _STOP_HOST | _HOST | _URL_PATH


@functools.cache
def _automaton() -> tuple[list[tuple[_Line, ...]], dict[str, int]]:
    table = states()
    numbers = {name: number for number, name in enumerate(table)}
    compiled = [
        tuple(
            (
                0 if rule.test[0] == "'" else _CLASSES[rule.test],
                rule.test[1] if rule.test[0] == "'" else "",
                _FLAGS[rule.action],
                numbers[rule.state] if rule.state else -1,
                WORD_TYPES[rule.token] if rule.token else 0,
                rule.special,
            )
            for rule in rules
        )
        for rules in table.values()
    ]
    return compiled, numbers


class _Place:
    """Where the automaton is, and in which state; ``pushed``: the line that was left from here, -1 for none."""

    __slots__ = ("at", "length", "pushed", "state", "under")

    def __init__(self, at: int, state: int, length: int = 0, under: _Place | None = None) -> None:
        self.at = at
        self.state = state
        self.length = length  # of the token so far
        self.pushed = -1
        self.under = under


# what a text mostly consists of: words and blanks that nothing but a plain end follows
_PLAIN_WORD: Final = re.compile(r"[A-Za-z]+(?=[ \t\n\r,;!?()\"']|\Z)")
_PLAIN_BLANK: Final = re.compile(r"[ \t\n\r,;!?()\"']+(?=[A-Za-z0-9]|\Z)")
_LETTERS: Final = re.compile(r"[A-Za-z]*")
_BLANKS: Final = re.compile(r"[ \t\n\r,;!?()\"']*")
_WINDOW: Final = 1 << 16
"""Characters of a plain token that are looked at in one call."""


def _plain_end(text: str, at: int, plain: re.Pattern[str], characters: re.Pattern[str]) -> int | None:
    """Return where a plain token ends, of ``characters``, None where none begins here."""
    stop = at + _WINDOW
    found = plain.match(text, at, stop)
    if found is None or found.end() < stop:
        return None if found is None else found.end()
    end = run_end(characters, text, stop)
    return end if plain.match(text, end - 1) is not None else None


def _forget(place: _Place) -> None:
    """Forget the places that are remembered: each hyphen of a text may have left one, and a chain of them
    would go in one step.
    """
    under, place.under = place.under, None
    while under is not None:
        under.under, under = None, under.under
        give_way()


class _Parser:
    def __init__(self, text: str, start: int = 0) -> None:
        self.text = text
        self.table, self.numbers = _automaton()
        self.base = self.numbers["Base"]
        self.place = _Place(start, self.base)
        self.ignore = False  # within <script> or <style>
        self.want_host = False  # a URL was found, its host and path come next
        self.start = self.length = self.type = 0

    def get(self) -> bool:
        """Find the next token: its ``start``, ``length`` and ``type``. False at the end."""
        place, text = self.place, self.text
        end = len(text)
        if place.at >= end:
            return False
        self.start = place.at
        place.pushed = -1
        if place.state == self.base and not self.ignore and not self.want_host:
            last = _plain_end(text, place.at, _PLAIN_WORD, _LETTERS)
            kind = 1
            if last is None:
                last = _plain_end(text, place.at, _PLAIN_BLANK, _BLANKS)
                kind = 12
            if last is not None:
                self.length, self.type = last - place.at, kind
                place.at = last
                return True
        while True:
            give_way()
            place = self.place
            char = text[place.at] if place.at < end else ""
            flags, state, token, special = self.line(place, char)
            if special:
                self.do(special, place)
            if flags & _FOUND:
                self.length, self.type = place.length, token
                place.length = 0
            if flags & _POP:
                if place.under is None:
                    raise AssertionError("the parser's stack of states is empty")
                self.place = place.under
            elif flags & _PUSH:
                self.place = _Place(place.at, place.state, place.length, place)
            elif flags & _KEEP:
                if place.under is None:
                    raise AssertionError("the parser's stack of states is empty")
                place.under = place.under.under
            elif flags & _KEEP_ALL:
                _forget(place)
            elif flags & _MERGE:
                if place.under is None:
                    raise AssertionError("the parser's stack of states is empty")
                self.place = place.under
                self.place.at, self.place.length = place.at, place.length
            place = self.place
            if state >= 0:
                place.state = state
            if flags & _FOUND:
                return True
            if place.at >= end and not flags & _RERUN:
                return False
            if flags & (_RERUN | _POP):
                continue
            if char:
                place.at += 1
                place.length += 1

    def line(self, place: _Place, char: str) -> tuple[int, int, int, str]:
        """Return flags, next state, token and special of the line to take."""
        lines = self.table[place.state]
        if not char:
            classes = _END | _ANY
        elif char < "\x80":
            classes = _ASCII_CLASSES[char]
        else:
            classes = _wide_class(char)
        first, place.pushed = place.pushed + 1, -1
        for number in range(first, len(lines)):
            wanted, literal, flags, state, token, special = lines[number]
            if literal:
                if literal != char:
                    continue
            elif not classes & wanted and not (wanted & _DYNAMIC and self.holds(wanted, place)):
                continue
            if flags & _PUSH:
                place.pushed = number
            return flags, state, token, special
        raise AssertionError("the last line of a state always holds")

    def holds(self, wanted: int, place: _Place) -> bool:
        """Whether a test holds that is not about the next character alone."""
        if wanted == _IGNORE:
            return self.ignore
        if wanted == _STOP_HOST:
            found, self.want_host = self.want_host, False
            return found
        inner = _Parser(self.text, place.at)
        if wanted == _HOST:
            inner.want_host = True
        else:
            inner.place = _Place(place.at, self.numbers["UrlPathFirst"], 0, inner.place)
        if not inner.get() or inner.type != WORD_TYPES["host" if wanted == _HOST else "url_path"]:
            return False
        place.at += inner.length
        place.length += inner.length
        return True

    def do(self, special: str, place: _Place) -> None:
        """Do what a line asks before its action: look at a tag's name, or go back to the token's begin."""
        if special == "tag":
            name = self.text[self.start : self.start + place.length].lower()
            if name in ("<script", "<style"):
                self.ignore = True
            elif name in ("</script", "</style"):
                self.ignore = False
            return
        place.at -= place.length
        if special == "again-host":
            self.want_host = True
        elif special == "restart":
            place.length = 0


def tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield type and text of each token; those of hyphenated words and URLs are there twice, whole and in parts."""
    parser = _Parser(text)
    while parser.get():
        give_way()
        yield parser.type, text[parser.start : parser.start + parser.length]
