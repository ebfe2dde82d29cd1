"""JSON texts of any length read a window at a time, so that others run in between: a decoder of C reads what
is within one.

    [ {…}, {…}, … {…} | {…}, …        each item that ends in the window: one call of C
                  [ 1, 2, … | …       one that does not end in a window that begins with it: its own items one by one
                  "abc … |            so with strings

Texts are known to be JSON. What is read has containers that nobody has to let go of: long ones are minded
(``pgwire.release``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from pgwire.give_way import give_way
from pgwire.long import dicts as long_dicts
from pgwire.long.values import cut, joined, run_end
from pgwire.release import mind, mind_long

WINDOW: Final = 1 << 16
"""Characters of one call of C: less than a millisecond."""
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_ATOM: Final = re.compile(r"[^,:\[\]{} \t\n\r]*")
_PLAIN: Final = re.compile(r'[^"\[\]{}]*')
_INSIDE: Final = re.compile(r'(?:[^"\\]+|\\u[0-9a-fA-F]{4}|\\[^u])*')
_HIGH: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_CLOSING: Final = frozenset('"]}')
_BEHIND: Final = frozenset((*",]} \t\n\r", ""))
"""What may stand behind a number."""
_PACE: Final = 64


def past_blanks(text: str, at: int) -> int:
    """Return where something stands, from ``at`` on."""
    return run_end(_BLANK, text, at) if text[at : at + 1] in " \t\n\r" else at


def past_atom(text: str, at: int) -> int:
    """Return the end of a number or word that begins at ``at``."""
    return run_end(_ATOM, text, at)


def string(text: str, at: int) -> tuple[str, int]:
    """Return what the string holds whose quote is at ``at``, and where it ends."""
    parts: list[str] = []
    at += 1
    while True:
        found = _INSIDE.match(text, at, at + WINDOW)
        if found is None:
            raise AssertionError("a pattern that matches what is empty, too, has not matched")
        end = found.end()
        last = end - 6
        if last >= at and not text.startswith('"', end) and _HIGH.match(text, last) is not None:
            low = _INSIDE.match(text, end, end + 6)  # half a character, with what may be the other half
            end = end if low is None else low.end()
        piece = text[at:end]
        parts.append(json.loads(f'"{piece}"', strict=False) if "\\" in piece else piece)
        at = end
        if text.startswith('"', at):
            return joined(parts), at + 1
        give_way()


class Reader:
    """Reads values of one text, each in turn."""

    def __init__(
        self, text: str, scan: Callable[[str, int], tuple[Any, int]], atom: Callable[[str], Any]
    ) -> None:
        """``scan``: a decoder's ``raw_decode``; ``atom``: reads numbers of more than a window."""
        self._text = text
        self._scan = scan
        self._atom = atom
        self._base = 0  # of the window
        self._window = text[:WINDOW]
        self._left = _PACE

    def value(self, at: int) -> tuple[Any, int]:
        """Return the value that begins at ``at``, and where it ends."""
        return self._short(at) or self._descend(at)

    def end(self, at: int) -> int:
        """Return where the value ends that begins at ``at``."""
        found = self._short(at)
        return value_end(self._text, at) if found is None else found[1]

    def _short(self, at: int) -> tuple[Any, int] | None:
        """Return a value that is no longer than a window, and where it ends."""
        self._left -= 1
        if not self._left:
            self._left = _PACE
            give_way()
        offset = at - self._base
        if 0 <= offset < len(self._window):
            found = self._within(offset)
            if found is not None or not offset:
                return found
        self._base, self._window = at, self._text[at : at + WINDOW]
        give_way()
        return self._within(0)

    def _within(self, offset: int) -> tuple[Any, int] | None:
        """Return a value that ends within the window."""
        text = self._text
        try:
            value, end = self._scan(self._window, offset)
        except json.JSONDecodeError:
            return None
        end += self._base
        if text[end - 1] not in _CLOSING and text[end : end + 1] not in _BEHIND:
            return None  # a number goes on
        return value, end

    def _descend(self, at: int) -> tuple[Any, int]:
        text = self._text
        char = text[at]
        if char == '"':
            return string(text, at)
        if char == "[":
            return self._array(at)
        if char == "{":
            return self._object(at)
        end = past_atom(text, at)
        return self._atom(text[at:end]), end

    def _array(self, at: int) -> tuple[list[Any], int]:
        text = self._text
        found: list[Any] = []
        at = past_blanks(text, at + 1)
        while text[at] != "]":
            item, at = self.value(at)
            found.append(item)
            at = past_blanks(text, at)
            if text[at] == ",":
                at = past_blanks(text, at + 1)
        return mind_long(found), at + 1

    def _object(self, at: int) -> tuple[dict[str, Any], int]:
        text = self._text
        found: dict[str, Any] = {}
        at = past_blanks(text, at + 1)
        while text[at] != "}":
            key, at = self.value(at)
            at = past_blanks(text, past_blanks(text, at) + 1)
            found[key], at = self.value(at)
            at = past_blanks(text, at)
            if text[at] == ",":
                at = past_blanks(text, at + 1)
            if len(found) == long_dicts.MANY:
                found = long_dicts.grown(found)
        return mind_long(found), at + 1


def decoded(decoder: json.JSONDecoder, text: str, atom: Callable[[str], Any]) -> Any:
    """Return what ``decoder.decode`` does of a text that is JSON; ``atom``: reads numbers of more than a window."""
    if len(text) <= WINDOW:
        return decoder.decode(text)
    return minded(text, Reader(text, decoder.raw_decode, atom).value(past_blanks(text, 0))[0])


def minded(text: str, value: Any) -> Any:
    """Return what was made of a JSON text; of a long one it is freed in slices once nobody has it, also where
    no container in it is large.
    """
    return mind(value) if len(text) > WINDOW and isinstance(value, (dict, list, tuple)) else value


_WHOLE: Final = re.compile(r'(?:[^"]+|"(?:[^"\\]|\\.)*")+')
_NUMBER: Final = re.compile(r"[-+.0-9eE]*")


def whole_parts(text: str) -> Iterator[str]:
    """Yield a text in parts of about a window in which no string and no number is cut off; a string longer
    than one is a part.
    """
    at = 0
    while at < len(text):
        found = _WHOLE.match(text, at, at + WINDOW)
        if found is None:
            end = _past_string(text, at)
        else:
            end = run_end(_NUMBER, text, found.end())
        yield cut(text, at, end)
        at = end
        give_way()


def value_end(text: str, at: int) -> int:
    """Return where the value ends that begins at ``at``."""
    char = text[at]
    if char == '"':
        return _past_string(text, at)
    if char not in "[{":
        return past_atom(text, at)
    depth = 0
    while True:
        if char == '"':
            at = _past_string(text, at)
        else:
            depth += 1 if char in "[{" else -1
            at += 1
            if not depth:
                return at
        at = run_end(_PLAIN, text, at)
        char = text[at]
        give_way()


def _past_string(text: str, at: int) -> int:
    at += 1
    while True:
        found = _INSIDE.match(text, at, at + WINDOW)
        if found is None:
            raise AssertionError("a pattern that matches what is empty, too, has not matched")
        at = found.end()
        if text.startswith('"', at):
            return at + 1
        give_way()
