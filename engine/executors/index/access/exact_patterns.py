r"""Patterns that one text alone matches, so that a key finds it: what psql and JDBC send for a name.

relname ~ '^(orders)$'        relname LIKE 'orders'        relname LIKE 'my\_orders'
"""

from __future__ import annotations

import functools
import re
from typing import Literal

from planner.facts import TEXT, facts
from planner.query import Const, Expr, FuncExpr, OpExpr
from planner.types import SqlType

# a text between ^ and $, perhaps in brackets: no character that means something, or one with a backslash
_PLAIN = r"(?:[^\\.*+?|()\[\]{}^$\n]|\\[^0-9A-Za-z\n])*"
_REGEX = re.compile(rf"\^(?:\(({_PLAIN})\)|({_PLAIN}))\$")
_LIKE = re.compile(r"(?:[^\\%_]|\\.)*", re.DOTALL)


@functools.cache
def _procs() -> dict[int, Literal["regex", "like"]]:
    signatures = facts().proc_by_signature
    return {
        signatures["textregexeq(text,text)"]: "regex",
        signatures["nameregexeq(name,text)"]: "regex",
        signatures["textlike(text,text)"]: "like",
        signatures["namelike(name,text)"]: "like",
    }


def exact_text(kind: Literal["regex", "like"], pattern: str) -> str | None:
    """Return the one text that a pattern matches, None if there may be others."""
    if kind == "like":
        return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL) if _LIKE.fullmatch(pattern) else None
    found = _REGEX.fullmatch(pattern)
    if found is None:
        return None
    inner = found[1] if found[1] is not None else found[2]
    return re.sub(r"\\(.)", r"\1", inner)


def exact_match(conjunct: Expr) -> tuple[Expr, Const] | None:
    """Return (what is compared, the text it must equal) where ``conjunct`` is a match of such a pattern.

    The condition is to be tested all the same.
    """
    if not isinstance(conjunct, OpExpr | FuncExpr) or len(conjunct.args) != 2:
        return None
    kind = _procs().get(conjunct.proc)
    pattern = conjunct.args[1]
    if kind is None or not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        return None
    text = exact_text(kind, pattern.value)
    return None if text is None else (conjunct.args[0], Const(type=SqlType(TEXT), value=text))
