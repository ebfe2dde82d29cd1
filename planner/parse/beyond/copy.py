"""COPY ... (FORMAT json): the grammar of version 18 takes FORMAT JSON for a clause of SQL/JSON, and refuses it here.

    COPY t FROM '/in' (FORMAT json)      ->  COPY t FROM '/in' (FORMAT jso_)        the same length, parsed, and put back

As ``FORMAT 'json'`` the grammar takes it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from planner import ast

POSSIBLE: Final = re.compile(r"\bformat\s+json\b", re.IGNORECASE)
"""A text that does not match holds no such option."""

_STAND_IN: Final = "jso_"


def masked(text: str, tokens: Sequence[tuple[str, int, int]]) -> str:
    """Return ``text`` with a stand-in for the format in options of COPY; the text itself where there is none.

    ``tokens``: in upper case, with where they begin and end.
    """
    found = text
    first = ";"
    for i, (word, _start, _end) in enumerate(tokens):
        if first == ";":
            first = word
        if word == ";":
            first = ";"
        if (
            first == "COPY"
            and word == "JSON"
            and i >= 2
            and tokens[i - 1][0] == "FORMAT"
            and tokens[i - 2][0] in "(,"
        ):
            found = found[: tokens[i][1]] + _STAND_IN + found[tokens[i][2] :]
    return found


def unmasked(node: ast.StatementNode) -> ast.StatementNode:
    """Put the format back into a statement that was read from a masked text."""
    if not isinstance(node, ast.Copy):
        return node
    options = tuple(
        replace(option, value="json") if option.name == "format" and option.value == _STAND_IN else option
        for option in node.options
    )
    return replace(node, options=options)
