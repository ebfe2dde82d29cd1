"""No pattern keeps the server busy: steps are counted, bounded by the text where they can be, and others are let in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planner.base.errors import SqlError
from planner.functions.text.regex import like, regexp_match, regexp_replace
from planner.patterns import steps
from planner.patterns.pattern import compiled

N = 5_000


class Stopped(Exception):
    """What interrupts a statement."""


def counted(monkeypatch: pytest.MonkeyPatch, most: int, run: Callable[[], object]) -> object:
    """Run something; Stopped once it has let others in more than ``most`` times."""
    times = 0

    def give_way() -> None:
        nonlocal times
        times += 1
        if times > most:
            raise Stopped

    monkeypatch.setattr(steps, "give_way", give_way)
    return run()


LINEAR = [
    (r"(a+)+$b", "a" * N, False), (r"^(a+)+b$", "a" * N, False), (r"^(a|aa)+c", "a" * N, False),
    (r"(a*)*b", "a" * N + "b", True), (r"(?i)^(a|A)*A?b", "aA" * N, False), (r"^([[:alpha:]]+\s?)*$", "é" * N + "!", False),
    (r"(\w+\s*)+=", "word " * N, False), (r".*a.*a.*a.*a.*a.*a.*=", "a" * N, False), (r"(a|aa)+$", "a" * N, True),
    (r"(a+)+(?=b)", "a" * N, False), (r"x(?=x*x*x*x*x*x*x*y)z", "x" * N, False), (r"(?<=x.*x.*)y", "x" * N + "y", True),
    (r"(?!(a|a)*c)b", "a" * N, False), (r"x*y", "x" * N, False), (r"(x*)(x*)(x*)y", "x" * N, False),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "found"), LINEAR, ids=[pattern for pattern, _, _ in LINEAR])
def test_searches_are_linear(monkeypatch: pytest.MonkeyPatch, pattern: str, text: str, found: bool) -> None:
    most = 20 * len(text) // steps.QUANTUM + 5
    assert counted(monkeypatch, most, lambda: compiled(pattern).test(text)) is found
    assert (counted(monkeypatch, most, lambda: compiled(pattern).search(text)) is not None) is found


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(.*)(x.*)", "x" * N),
        ("(.*?)(x+)(.*)", "x" * N),
        ("((x)|y)*", "xy" * N),
        ("(x|xx)+", "x" * N),
        ("(x*)+", "x" * N),
    ],
)
def test_groups_are_found_in_linear_time(monkeypatch: pytest.MonkeyPatch, pattern: str, text: str) -> None:
    most = 120 * len(text) // steps.QUANTUM + 5
    assert counted(monkeypatch, most, lambda: regexp_match(text, pattern)) is not None


def test_all_matches_are_found_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x " * N
    most = 100 * len(text) // steps.QUANTUM + 5
    assert counted(monkeypatch, most, lambda: regexp_replace(text, "(x|xx)+", "y", "g")) == "y " * N


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(.*)(.*)\1\2z", "ab" * 500 + "z"),
        (r"^((a+)\2)+$", "a" * 201),
        (r"(x{0,200}x{0,200}){0,200}y", "x" * 2000),
    ],
)
def test_what_takes_long_can_be_stopped(monkeypatch: pytest.MonkeyPatch, pattern: str, text: str) -> None:
    """Steps are counted wherever it spends its time; so the statement ends when it is told to."""
    with pytest.raises(Stopped):
        counted(monkeypatch, 20, lambda: compiled(pattern).search(text))


@pytest.mark.parametrize(
    "pattern",
    ["(" * 1000 + "a" + ")" * 1000, "((((x{255}){255}){255}){255})", "(?=" * 1000 + "a" + ")" * 1000],
)
def test_what_is_too_complex_is_refused(pattern: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(pattern).test("a" * 5)
    assert (caught.value.sqlstate, str(caught.value)) == (
        "2201B",
        "invalid regular expression: regular expression is too complex",
    )


def test_an_automaton_forgets_its_states_rather_than_grow() -> None:
    regex = compiled("(a|b)*a(a|b){14}c")
    text = "".join("ab"[(n * n // 3 + n // 7) % 2] for n in range(30_000))
    assert not regex.test(text)
    assert len(regex.machine.floating._kept) <= 2_000


def test_like_is_linear_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 5
    assert not counted(monkeypatch, most, lambda: like("a" * N, "%a" * 20 + "%b"))
    assert counted(monkeypatch, most, lambda: like("a" * N + "b", "%_" * 200 + "%b"))
    with pytest.raises(Stopped):
        counted(monkeypatch, most, lambda: like("ab" * N, "%" + "a_" * 2000 + "c%"))


def test_long_patterns_are_read_and_built_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for pattern in ("a" * 90_000, "[" + "ab" * 90_000 + "]", "(ab|c)" * 3_000, "a|" * 30_000):
        with pytest.raises(Stopped):
            counted(monkeypatch, 10, lambda pattern=pattern: compiled(pattern))
