"""Regular expressions to compare with PostgreSQL: random ones, and one text for all that its functions answer about them."""

from __future__ import annotations

import random

from planner.base.errors import SqlError
from planner.functions.text.regex import (
    regexp_count,
    regexp_instr,
    regexp_like,
    regexp_match,
    regexp_replace,
    regexp_split,
)
from planner.patterns.options import parse_flags
from planner.patterns.pattern import compiled

Case = tuple[str, str, str]
"""Text, pattern, flags."""

ANSWER = r"""
CREATE OR REPLACE FUNCTION pg_temp.answer(s text, p text, f text, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  r := regexp_like(s, p, f)::text || coalesce(regexp_match(s, p, f)::text, '-');
  FOR k IN 0..n LOOP
    r := r || ' ' || regexp_instr(s, p, 1, 1, 0, f, k) || '-' || regexp_instr(s, p, 1, 1, 1, f, k);
  END LOOP;
  RETURN r || ' ' || regexp_count(s, p, 1, f) || ' ' || regexp_replace(s, p, '<\1\&>', f || 'g')
    || ' ' || array_to_string(regexp_split_to_array(s, p, f), '/');
EXCEPTION WHEN others THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$
"""
"""The same as ``answer``, as a function of PostgreSQL."""


def groups(case: Case) -> int:
    """Return how many groups the pattern of a case has, 0 if it is none."""
    try:
        return compiled(case[1], parse_flags(case[2])[0]).groups
    except SqlError:
        return 0


def answer(case: Case) -> str:
    """Return what the functions say: matches, groups and their places, all matches, pieces; or the error."""
    s, p, f = case
    try:
        found = regexp_match(s, p, f)
        like = "true" if regexp_like(s, p, f) else "false"
        spans = [
            f"{regexp_instr(s, p, 1, 1, 0, f, k)}-{regexp_instr(s, p, 1, 1, 1, f, k)}"
            for k in range(groups(case) + 1)
        ]
        return " ".join(
            [
                like + ("-" if found is None else array_text(found)), *spans, str(regexp_count(s, p, 1, f)),
                regexp_replace(s, p, r"<\1\&>", f + "g"), "/".join(regexp_split(s, p, f)),
            ]
        )  # fmt: skip
    except SqlError as error:
        return f"{error.sqlstate} {error.message}"


def array_text(values: tuple[str | None, ...]) -> str:
    """Return PostgreSQL's text of an array."""
    special = set('"\\{}, \t\n\v\f\r')

    def one(value: str | None) -> str:
        if value is None:
            return "NULL"
        if value and not special & set(value) and value.upper() != "NULL":
            return value
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return "{" + ",".join(map(one, values)) + "}"


_ATOMS = (
    "a", "b", "c", ".", "[ab]", "[^a]", r"\w", r"\d", r"\s", "[[:alpha:]]", "x", "é", " ", r"\W", "[a-c]", "()", "a", "b", "ab",
)  # fmt: skip
_CONSTRAINTS = ("^", "$", r"\y", r"\Y", r"\m", r"\M", r"\A", r"\Z")
_QUANTIFIERS = (
    "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}", "{0,2}?", "{1,1}?", "{1,1}", "{2,}", "{0}", "{1,3}?", "{0,}?",
)  # fmt: skip
_ODD = ("[", "]", "(", ")", "{", "}", "{1", "\\", "|", "*", "(?", "[[:x:]]", "[b-a]", r"\9", r"\c", "{2,1}", "[[.a.]]",
        "(?#x)", "[^]", r"\u00e9", r"\x61", r"\07", "{,2}", "[[=a=]]", "***", "(?i)", r"\q", "--")  # fmt: skip
_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")


class Generator:
    """Draws cases; ``odd``: also patterns that are no patterns."""

    def __init__(self, rng: random.Random, *, odd: bool = True) -> None:
        self._rng = rng
        self._odd = odd
        self._groups = 0
        self._back = False

    def case(self) -> Case:
        """Return a text, a pattern and flags."""
        rng = self._rng
        self._groups, self._back = 0, rng.random() < 0.35
        pattern = "".join(self._part(rng.choice((1, 2, 3)), True) for _ in range(rng.randint(1, 4)))
        if self._odd and rng.random() < 0.15:
            at = rng.randrange(len(pattern) + 1)
            pattern = pattern[:at] + rng.choice(_ODD) + pattern[at:]
        text = "".join(rng.choice("aaabbbc xAé\n1") for _ in range(rng.randint(0, 10)))
        return text, pattern, rng.choice(("", "", "", "", "i", "n", "p", "w", "x", "s", "e", "b"))

    def _part(self, depth: int, captures: bool) -> str:
        rng, kind = self._rng, self._rng.random()
        if depth <= 0 or kind < 0.30:
            return rng.choice(_ATOMS)
        if kind < 0.36:
            return rng.choice(_CONSTRAINTS)
        if kind < 0.50:
            return self._part(depth - 1, captures) + self._part(depth - 1, captures)
        if kind < 0.62:
            return f"{self._part(depth - 1, captures)}|{self._part(depth - 1, captures) if rng.random() < 0.8 else ''}"
        if kind < 0.78:
            body = self._part(depth - 1, captures)
            captured = captures and rng.random() < 0.75
            self._groups += captured
            group = f"({'' if captured else '?:'}{body})"
            return group + (rng.choice(_QUANTIFIERS) if rng.random() < 0.6 else "")
        if kind < 0.9:
            return rng.choice(_ATOMS) + rng.choice(_QUANTIFIERS)
        if kind < 0.94:
            return f"{rng.choice(_LOOKS)}{self._part(depth - 1, False)})"
        if self._back and captures and self._groups:
            return f"\\{rng.randint(1, min(self._groups, 9))}" + (
                rng.choice(_QUANTIFIERS) if rng.random() < 0.3 else ""
            )
        return self._part(depth - 1, captures) + self._part(depth - 1, captures)
