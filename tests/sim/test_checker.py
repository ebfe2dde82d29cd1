"""The checker names each anomaly of a history made by hand, and finds nothing where nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.checker import Observed, Op, check
from tests.sim.checker.check import ORDER
from tests.sim.checker.feeds import NAMES as OF_FEEDS


def history(*lines: str) -> list[Observed]:
    """Read transactions written as ``began-ended [outcome] [@timestamp]: op; op``; ids are line numbers from 1.

    Ops: ``x+1`` append, ``x=[1,2]`` list read, ``x:=1`` write (``x:=-`` removes), ``x=1`` read (``x=-`` nothing),
    ``?`` after the key marks a read by range; ``u{1,1}`` keys of a unique index; ``sum 10/9`` expected and seen; ``x cleared``.
    """
    out = []
    for number, line in enumerate(lines, 1):
        head, _, body = line.partition(":")
        times, _, outcome = head.strip().partition(" ")
        began, _, ended = times.partition("-")
        words = outcome.split()
        out.append(
            Observed(
                id=number,
                session=number,
                began=int(began),
                ended=int(ended),
                outcome=next((w for w in words if w in ("fail", "unknown")), "ok"),  # type: ignore[arg-type]
                fresh="past" not in words,
                ts=next((int(w[1:]) for w in words if w.startswith("@")), None),
                ops=tuple(_op(text.strip()) for text in body.split(";")),
            )
        )
    return out


def _op(text: str) -> Op:
    if text.endswith(" cleared"):
        return Op("clear", text.removesuffix(" cleared"), None)
    if text.startswith("sum"):
        expected, _, seen = text.removeprefix("sum ").partition("/")
        return Op("total", "sum", (int(expected), int(seen)))
    if "{" in text:
        key, _, values = text.rstrip("}").partition("{")
        return Op("unique", key, tuple(int(v) for v in values.split(",")))
    if ":=" in text:
        key, _, value = text.partition(":=")
        return Op("write", key, _value(value))
    if "+" in text:
        key, _, value = text.partition("+")
        return Op("append", key, int(value))
    key, _, value = text.partition("=")
    via = "range" if key.endswith("?") else "key"
    key = key.rstrip("?")
    if value.startswith("["):
        return Op("list", key, tuple(int(v) for v in value.strip("[]").split(",") if v), via)
    return Op("read", key, _value(value), via)


def _value(text: str) -> Any:
    return None if text == "-" else int(text)


CASES = {
    "garbage read": ["1-2: x=[7]"],
    "write applied twice": ["1-2: x+1", "3-4: x=[1,1]"],
    "G1a aborted read": ["1-2 fail: x+1", "3-4: x=[1]"],
    "G1b intermediate read": ["1-4: x=-; x:=1; x:=2", "2-3: x=1"],
    "incompatible order": ["1-8: x+1", "2-7: x+2", "3-5: x=[1,2]", "4-6: x=[2,1]"],
    "duplicate unique key": ["1-2: u{1,2,1}"],
    # Each overwrites the other on one of two keys.
    "G0 dirty write": ["1-5: x+1; y+1", "2-6: x+2; y+2", "7-8: x=[1,2]; y=[2,1]"],
    "G1c circular information flow": ["1-5: x+1; y=[2]", "2-6: y+2; x=[1]"],
    "lost update": ["1-2: x=-; x:=1", "3-6: x=1; x:=2", "4-7: x=1; x:=3"],
    "lost acknowledged write": ["1-2: x+1", "3-4: x+2", "5-6: x=[1]"],
    # Half of the first transaction is seen.
    "split transaction": ["1-4: x+1; y+1", "2-3: x=[1]; y=[]"],
    # Three transactions: what was read lies on both sides of a chain of two commits.
    "G-single read skew": ["1-6: x=[]; y=[2]", "2-4: x+1", "3-5: x=[1]; y+2"],
    "phantom (G2)": ["1-3: a?=-; b=-; b:=1", "2-4: b?=-; a=-; a:=2", "5-6: a=2; b=1"],
    "write skew (G2-item)": ["1-3: x=[]; y+1", "2-4: y=[]; x+2", "5-6: x=[2]; y=[1]"],
    "G2 anti-dependency cycle": ["1-5: x=[]; y+1", "2-6: y=[]; z+2", "3-7: z=[]; x+3", "8-9: x=[3]; y=[1]; z=[2]"],
    "stale read": ["1-2: x+1", "3-4: x=[]", "5-6: x=[1]"],
    # A value was read before it was written.
    "out of real-time order": ["1-2: x=[1]", "3-4: x+1", "5-6: x=[1]"],
    "internal: own write not seen": ["1-2: x=-; x:=1; x=-"],
    "non-repeatable read": ["1-4: x=-; x=1", "2-3: x=-; x:=1"],
    "against timestamps": ["1-4 @20: x=-; x:=1", "2-5 @10: x=1"],
    "broken invariant": ["1-2: sum 10/9"],
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in ORDER if name not in OF_FEEDS])
def test_each_anomaly_is_named(name: str) -> None:
    found = check(history(*CASES[name]))
    assert found, "nothing found"
    assert found[0].name == name, "\n".join(map(str, found))
    assert found[0].transactions
    assert str(found[0]).count("T") >= len(found[0].transactions)


@pytest.mark.parametrize(
    "lines",
    [
        ["1-2: x+1", "3-4: x=[1]; x+2", "5-6: x=[1,2]"],
        # Concurrent: either order will do.
        ["1-4: x=[]", "2-3: x+1"],
        ["1-4: x=[1]", "2-3: x+1"],
        # Nobody knows whether it happened, and nobody saw it.
        ["1-2 unknown: x+1", "3-4: x=[]", "5-6: x+2", "7-8: x=[2]"],
        # It did, late: what is unknown may happen any time after it began.
        ["1-2 unknown: x+1", "3-4: x=[]", "5-6: x=[1]"],
        ["1-2 fail: x+1; y+1", "3-4: x=[]; y=[]"],
        # A read of the past misses what was acknowledged.
        ["1-2: x+1", "3-4 past: x=[]", "5-6: x=[1]"],
        # Removed and put there again: which absence was seen is open.
        ["1-2: x=-; x:=1", "3-9: x=1; x:=-", "4-8: x=-", "10-11: x=-; x:=2", "12-13: x=2"],
        # Its client gave up, and it went on: it read after the removal that began later.
        ["1-2: x=-; x:=1", "3-4 unknown: x=-; z=2; y+1", "5-6: x=1; x:=-; z=-; z:=2", "7-8: y=[1]"],
        ["1-2: x=-; x:=1; x:=2; x=2", "3-4: x=2; x:=3; x=3"],
        ["1-2: x+1; x=[1]; x+2; x=[1,2]", "3-4: x=[1,2]; x=[1,2]"],
        ["1-2: u{1,2}; sum 10/10"],
        # Whoever only reads does so at the timestamp of the commit that it sees.
        ["1-2 @10: x=-; x:=1", "3-4 @10: x=1", "5-6 @12: x=1; x:=2", "7-8 past @11: x=1"],
        # Nothing was written in the end, so there was no commit.
        ["1-2 @10: x=-; x:=1", "3-4 @10: y=-; y:=5; y:=-", "5-6 @10: x=1"],
    ],
)
def test_serializable_histories_pass(lines: list[str]) -> None:
    assert check(history(*lines)) == []


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        # A crash tore the transaction: its outcome is unknown, but half of it is there.
        ("split transaction", ["1-2: y=-; y:=9", "3-4 unknown: x+1; y=9; y:=1", "5-6: x=[1]; y=9"]),
        ("lost acknowledged write", ["1-2: x=-; x:=1", "3-4: x=1; x:=2", "5-6: x=1"]),
        ("stale read", ["1-2: x=-; x:=1", "3-4: x=1; x:=2", "5-6: x=1", "7-8: x=2"]),
        # Two inserted the same new key.
        ("lost update", ["1-3: x=-; x:=1", "2-4: x=-; x:=2"]),
        # A list as read-modify-write: one append is overwritten.
        ("lost update", ["1-3: x=[]; x+1", "2-4: x=[]; x+2", "5-6: x=[1]"]),
        ("G1a aborted read", ["1-2 fail: x=-; x:=1", "3-4: x=1"]),
        ("internal: own write not seen", ["1-2: x+1; x=[]"]),
        # The row was there and nobody removed it before the reader was answered.
        ("stale read", ["1-2: x=-; x:=1", "3-4: x=-", "5-6: x=1; x:=-"]),
        ("lost acknowledged write", ["1-2: x=-; x:=1", "3-4: x=-"]),
        # Two commits at one timestamp; a read that misses a commit at its timestamp; one that sees a later one.
        ("against timestamps", ["1-4 @10: x=-; x:=1", "2-5 @10: y=-; y:=2"]),
        ("against timestamps", ["1-2 @10: x=-; x:=1", "3-4 past @10: x=-", "5-6: x=1"]),
        ("against timestamps", ["1-2 @10: x=-; x:=1", "3-4 past @9: x=1"]),
        # Real time and timestamps differ.
        ("against timestamps", ["1-2 @10: x=-; x:=1", "3-4 @9: y=-; y:=2"]),
    ],
)  # fmt: skip
def test_variants(name: str, lines: list[str]) -> None:
    assert [a.name for a in check(history(*lines))][:1] == [name]


def test_the_cycle_is_told_with_its_transactions() -> None:
    found = check(history("1-3: x=[]; y+1", "2-4: y=[]; x+2", "5-6: x=[2]; y=[1]"))
    text = str(found[0])
    assert "rw: T1 read x as it was before T2 wrote it" in text
    assert "T2 session 2 [2, 4] ok: list y = [], append 2 to x" in text


def test_versions_must_be_unique() -> None:
    with pytest.raises(ValueError, match="twice"):
        check(history("1-2: x+1", "3-4: x+1"))


def test_a_chain_of_acknowledgements_orders_all_of_it() -> None:
    lines = [f"{2 * i + 1}-{2 * i + 2}: y{i}=[]" for i in range(30)]
    assert (
        check(history("1-2: x+1", *[f"{2 * i + 3}-{2 * i + 4}: y{i}=[]" for i in range(30)], "70-71: x=[1]"))
        == []
    )
    found = check(
        history("100-101: x=[1]", "1-2: x+1", *[line.replace("y", "z") for line in lines[1:]], "80-81: x=[]")
    )
    assert [a.name for a in found] == ["stale read"]
