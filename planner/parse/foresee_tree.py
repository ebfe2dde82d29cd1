r"""What the syntax tree of a long text will take, told before the grammar makes it: its calls of C neither
give way nor look at a bound.

    text ──► copies of it (UTF-8, tokens, JSON)  more than a statement may have?  53200
         ──► commas that no constant has in it   more objects than fit?           53200, where a tenth of the text has been read

The grammar itself takes up to ``parse.GRAMMAR_BYTES`` for each character, in one call: where there is no room
for that it runs in a process that is lent some (``pgwire.give_way.outside``).

Each comma of a list, of targets, rows, arguments or names, comes with an item of two objects or more. What is
counted is as the grammar counts, but for texts with ``\'`` (E'' and standard_conforming_strings = off), whose
constants end elsewhere: their commas are not counted, and the tree is counted while it is read, as every tree
is (``planner.parse``).
"""

from __future__ import annotations

import re
from typing import Final

from pgwire.give_way import give_way
from planner.base.errors import SqlError
from planner.base.large import METER
from planner.base.long_search import STEP, next_match, occurs, quoted_end

OBJECT_BYTES: Final = 200
"""About what an object of the tree takes, its share of lists and values included."""
_COPIES: Final = 4
"""How often a long text is there at once while it is read, its message apart."""
_OF_AN_ITEM: Final = 2
"""Objects that an item of a list is at least."""
_OPENING: Final = re.compile(r"""['"]|--|/\*|\$(?:[^\W\d]\w{0,62})?\$""")
_ESCAPED: Final = re.compile(r"\\'")
_LINE_END: Final = re.compile(r"[\r\n]")


def too_large() -> SqlError:
    """Return the error for a tree of more objects than a statement may have memory for."""
    return SqlError(
        "53200",
        "out of memory",
        detail=f"The syntax tree of the statement takes more than {METER.each >> 20} MB, as much as a statement may have.",
        hint='A statement may have a quarter of the setting "memory" (docs/guide/operate/memory.md). Pass many values as one array, or with COPY.',
    )


def foresee_tree(text: str) -> None:
    """Refuse a text that takes more memory to read than its statement may have. Raises SqlError 53200; gives way."""
    if not METER.each:
        return
    size = _COPIES * len(text)
    if size > METER.each:
        raise SqlError(
            "53200",
            "out of memory",
            detail=f"To read a statement of {len(text) >> 20} MB takes {size >> 20} MB; {METER.each >> 20} MB are allowed.",
            hint='A statement may have a quarter of the setting "memory" (docs/guide/operate/memory.md). Pass long values as parameters.',
        )
    if METER.charge is not None:
        METER.charge(size, True)
    most = METER.each // (OBJECT_BYTES * _OF_AN_ITEM)
    if len(text) > 2 * most and not occurs(_ESCAPED, text, ("\\'",)) and _has_items(text, most):
        raise too_large()


def _has_items(text: str, most: int) -> bool:
    """Tell whether there are more commas than ``most`` outside constants, quoted names and comments."""
    count = at = 0
    while count <= most:
        opening = next_match(_OPENING, text, at)
        end = len(text) if opening is None else opening.start()
        while at < end and count <= most:
            count += text.count(",", at, min(at + STEP, end))
            at = min(at + STEP, end)
            give_way()
        if opening is None:
            break
        at = _past(text, opening)
    return count > most


def _past(text: str, opening: re.Match[str]) -> int:
    """Return where what an opening mark begins has ended; where that is nowhere, the text's end."""
    mark = opening[0]
    if mark in ("'", '"'):
        end = quoted_end(text, opening.start())
        return end if end > opening.end() else len(text)
    if mark == "--":
        line_end = next_match(_LINE_END, text, opening.end())
        return len(text) if line_end is None else line_end.end()
    closing = "*/" if mark == "/*" else mark
    at = opening.end()
    while at < len(text):
        found = text.find(closing, at, at + STEP + len(closing))
        if found >= 0:
            return found + len(closing)
        at += STEP
        give_way()
    return len(text)
