"""Functions of the extension fuzzystrmatch (manual F.17): Levenshtein distances and Soundex; Metaphone is
refused (0A000).
"""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Final

from pgwire.long.values import pieces
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY, PythonForm

MAX_CHARACTERS: Final = 255
_CODES: Final = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230120022455012623010202", strict=True))
_CODE_LENGTH: Final = 4
_PIECE: Final = 1 << 10
"""Characters between two looks at the clock."""


def levenshtein(source: str, target: str, insert: int = 1, delete: int = 1, substitute: int = 1) -> int:
    """Return the least cost of edits that make ``target`` of ``source``. Raises SqlError 22023 for more than
    255 characters.
    """
    if max(len(source), len(target)) > MAX_CHARACTERS:
        raise SqlError("22023", f"levenshtein argument exceeds maximum length of {MAX_CHARACTERS} characters")
    row = [insert * i for i in range(len(target) + 1)]
    for char in source:
        diagonal, row[0] = row[0], row[0] + delete
        for at, other in enumerate(target, 1):
            kept = diagonal if char == other else diagonal + substitute
            diagonal = row[at]
            row[at] = min(kept, diagonal + delete, row[at - 1] + insert)
    return row[-1]


def levenshtein_less_equal(
    source: str, target: str, insert: int, delete: int, substitute: int, bound: int
) -> int:
    """Return the distance where it is at most ``bound``, else one more than that; ``bound`` below 0 is none."""
    found = levenshtein(source, target, insert, delete, substitute)
    return found if bound < 0 else min(found, bound + 1)


def soundex(text: str) -> str:
    """Return a letter and three digits for the sound of an English name; empty where there is no letter of ASCII."""
    out = before = ""
    for char in chain.from_iterable(pieces(text, _PIECE)):
        code = _CODES.get(char.upper()) if char.isascii() else None
        if not out:
            if code is None:
                continue
            out = char.upper()
        elif code is not None and code not in (before, "0"):
            out += code
            if len(out) == _CODE_LENGTH:
                break
        before = char if code is None else code
    return out and out.ljust(_CODE_LENGTH, "0")


def difference(one: str, other: str) -> int:
    """Return how many characters of two Soundex codes are equal: 0 to 4."""
    return sum(a == b for a, b in zip_longest(soundex(one).ljust(4, "\0"), soundex(other).ljust(4, "\0")))


def _register() -> None:
    def python(signature: str, form: PythonForm) -> None:
        REGISTRY.python(f"fuzzystrmatch.{signature}", form)

    python("levenshtein(text,text)", levenshtein)
    python("levenshtein(text,text,int4,int4,int4)", levenshtein)
    python("levenshtein_less_equal(text,text,int4)", lambda a, b, d: levenshtein_less_equal(a, b, 1, 1, 1, d))
    python("levenshtein_less_equal(text,text,int4,int4,int4,int4)", levenshtein_less_equal)
    python("soundex(text)", soundex)
    python("text_soundex(text)", soundex)
    python("difference(text,text)", difference)


_register()
