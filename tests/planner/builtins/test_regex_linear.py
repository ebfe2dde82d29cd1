"""No pattern keeps the server busy for ever: what ``re`` would try in 2^n or n^k ways is matched in linear time."""

from __future__ import annotations

import re
from functools import cache
from random import Random
from re import _parser  # type: ignore[attr-defined]

import pytest

from planner.builtins.regex import like, regexp_match, regexp_replace
from planner.builtins.regex_linear import LinearPattern
from planner.builtins.regex_translate import compiled
from planner.errors import SqlError

# Each would run for longer than a test may last, were it left to ``re``.
ENDLESS = [
    (r"(a+)+$b", "a" * 400, False),
    (r"^(a+)+b$", "a" * 400, False),
    (r"^(a|aa)+c", "a" * 400, False),
    (r"(a*)*b", "a" * 400 + "b", True),
    (r"(?i)^(a|A)*A?b", "aA" * 200, False),
    (r"^([[:alpha:]]+\s?)*$", "é" * 400 + "!", False),
    (r"(\w+\s*)+=", "word " * 200, False),
    (r".*a.*a.*a.*a.*a.*a.*=", "a" * 3000, False),
    (r"(x{0,20}x{0,20}){0,20}y", "x" * 2000, False),
]


@pytest.mark.parametrize(("pattern", "text", "found"), ENDLESS, ids=[pattern for pattern, _, _ in ENDLESS])
def test_a_pattern_with_many_ways_ends(pattern: str, text: str, found: bool) -> None:
    assert (compiled(pattern).search(text) is not None) is found


@pytest.mark.parametrize(
    "pattern", [r"(a+)+(?=b)", r"(x{0,200}x{0,200}){0,200}y", r"((a*)*)\1b", r"(?!(a|a)*c)a"]
)
def test_what_no_automaton_can_do_is_refused(pattern: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(pattern)
    assert (caught.value.sqlstate, str(caught.value)) == (
        "2201B",
        "invalid regular expression: regular expression is too complex",
    )


@pytest.mark.parametrize(
    "pattern", ["abc", "[a-z]+[0-9]x", r"(?:\w+,)*x", "(foo|bar)*", r"(\.[0-9]{1,3})*$", "(?=a)a+", r"(a)\1"]
)
def test_harmless_patterns_stay_with_re(pattern: str) -> None:
    assert isinstance(compiled(pattern), re.Pattern)


ATOMS = ("a", "b", "é", ".", "[ab]", "[^a]", r"\w", r"\s", "[[:alpha:]]", "[[:alnum:]_]", ",", "[b-é]", r"\d")


def pattern_of(rng: Random, depth: int = 0) -> str:
    """Return a pattern whose loops never go round without taking a character: there the two agree in all."""
    choice = rng.randrange(8)
    if depth > 3 or choice < 3:
        return rng.choice(ATOMS)
    if choice < 5:
        return pattern_of(rng, depth + 1) + pattern_of(rng, depth + 1)
    if choice < 6:
        return f"({pattern_of(rng, depth + 1)}|{pattern_of(rng, depth + 1)})"
    if choice < 7:
        return f"({rng.choice(ATOMS)}{rng.choice(ATOMS)}?)" + rng.choice(["*", "+", "*?", "+?", "{1,3}", "?"])
    return rng.choice(["^", ""]) + pattern_of(rng, depth + 1) + rng.choice(["$", ""])


def test_both_find_the_same_match() -> None:
    rng = Random(20261122)
    compared = 0
    for _ in range(600):
        plain = compiled(pattern := pattern_of(rng))
        if not isinstance(plain, re.Pattern):
            plain = plain._pattern  # type: ignore[attr-defined]
        linear = LinearPattern(plain, _parser.parse(plain.pattern, plain.flags), 0)
        for _ in range(3):
            text = "".join(rng.choice("ab é,\nc7") for _ in range(rng.randrange(9)))
            position = rng.randrange(len(text) + 1)
            one, other = plain.search(text, position), linear.search(text, position)
            assert (one is None) is (other is None), (pattern, text, position)
            if one is not None and other is not None:
                assert (one.span(), one.groups()) == (
                    (other.start(), other.end()),
                    other.groups(),
                ), (pattern, text, position)
                compared += 1
    assert compared > 300


def test_functions_see_groups_and_positions_in_characters() -> None:
    assert regexp_match("xé aab", r"((é|\s)+(a|aa)+)b") == ("é aa", " ", "aa")
    assert regexp_replace("é-aab-aac-ab", r"(a+a*)+b", r"<\1>", "g") == "é-<aa>-aac-<a>"


def test_like_takes_no_second_try() -> None:
    assert not like("a" * 5000, "%a" * 20 + "%b")
    assert like("a" * 5000 + "b", "%a" * 20 + "%b")

    @cache
    def plainly(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "%":
            return any(plainly(pattern[1:], text[i:]) for i in range(len(text) + 1))
        return bool(text) and pattern[0] in ("_", text[0]) and plainly(pattern[1:], text[1:])

    rng = Random(1)
    for _ in range(3000):
        pattern = "".join(rng.choice("ab%_") for _ in range(rng.randrange(8)))
        text = "".join(rng.choice("ab") for _ in range(rng.randrange(9)))
        assert like(text, pattern) is plainly(pattern, text), (pattern, text)
