"""Regular expressions over long texts, in steps: one search keeps the interpreter from all other threads
until it ends.
"""

from __future__ import annotations

import re
from typing import Final

from pgwire.give_way import give_way, paced
from pgwire.long.values import run_end

STEP: Final = 1 << 16
"""Characters that are searched at once: about a millisecond."""
OVERLAP: Final = 1024
"""Characters that are searched twice, so that no word is cut: more than what is looked for is long."""

_TOKEN: Final = re.compile(
    r"""\w[\w$]*(?:\.\d\w*)?|'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|\$\d+|\.\d\w*|::|:=|=>"""
    r"""|[-+*/<>=~!@#%^&|`?]+|."""
)
_NEAR: Final = 4096
"""Characters within which nearly every token ends."""
_QUOTED: Final = {"'": re.compile(r"(?:[^']+|'')*+"), '"': re.compile(r'(?:[^"]+|"")*+')}
_WORD: Final = re.compile(r"[\w$]*")
_LETTERS: Final = re.compile(r"\w*")
_SIGNS: Final = re.compile(r"[-+*/<>=~!@#%^&|`?]*")
_OF_OPERATORS: Final = frozenset("-+*/<>=~!@#%^&|`?")


def token_end(text: str, start: int) -> int:
    """Return where the token at ``start`` ends, well enough for an error message that blames it."""
    found = _TOKEN.match(text, start, start + _NEAR)
    if found is None:
        return start
    end, first = found.end(), text[start]
    if len(text) <= start + _NEAR:
        return end
    if first in _QUOTED and (end == start + 1 or text.startswith(first, end)):
        return quoted_end(text, start)
    if first in _QUOTED or end < start + _NEAR - 2:
        return end
    if first in _OF_OPERATORS:
        return run_end(_SIGNS, text, start)
    if first != ".":
        end = run_end(_WORD, text, start + 1)
        if re.match(r"\.\d", text[end : end + 2]) is None:
            return end
        start = end
    return run_end(_LETTERS, text, start + 1)


def quoted_end(text: str, start: int) -> int:
    """Return where the literal or quoted name at ``start`` ends; one that does not is its quote alone."""
    quote = text[start]
    inside, at = _QUOTED[quote], start + 1
    while at < len(text):
        found = inside.match(text, at, at + STEP)
        if found is None:
            raise AssertionError("a pattern that matches what is empty, too, has not matched")
        end = found.end()
        if end == len(text):
            break
        if end == at + STEP:
            at = end
        elif text.startswith(quote, end + 1):  # the step ended between the two
            at = end + 2
        else:
            return end + 1
        give_way()
    return start + 1


def next_match(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """Return the next match, from ``at`` on, of a pattern that matches at most ``OVERLAP`` characters."""
    while at < len(text):
        found = pattern.search(text, at, at + STEP + OVERLAP)
        if found is not None:
            return found
        at += STEP
        give_way()
    return None


def occurs(pattern: re.Pattern[str], text: str, words: tuple[str, ...]) -> bool:
    """Tell whether a pattern that matches at most ``OVERLAP`` characters occurs in a text.

    ``words``: what it matches has one of them in it, in whatever case; they are looked for first in a long
    text, twenty times as fast. There a word boundary is also seen where a step ends, so that True may be a
    mistake; False is none.
    """
    if len(text) <= STEP:
        return pattern.search(text) is not None
    for start in paced(range(0, len(text), STEP), 1):
        lowered = text[start : start + STEP + OVERLAP].lower()
        if any(word in lowered for word in words) and pattern.search(text, start, start + STEP + OVERLAP):
            return True
    return False
