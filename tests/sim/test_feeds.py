"""The checker of subscriptions: a stream for each thing that may go wrong, and some that are right."""

from __future__ import annotations

import pytest

from tests.sim.checker import Event, Fact, Stream, check
from tests.sim.checker.feeds import NAMES
from tests.sim.test_checker import history


def stream(text: str, number: int = 1, resumes: Stream | None = None) -> Stream:
    """Read a stream written as ``start[ listen][ <until][ ended]: event; event``.

    Events: ``12 +x=1 -y=2`` changes of registers at 12, ``12 +l=[1,2]`` of lists, ``12!`` progress.
    """
    head, _, body = text.partition(":")
    words = head.split()
    events = []
    for part in filter(None, map(str.strip, body.split(";"))):
        if part.endswith("!"):
            events.append(Event("progress", int(part[:-1])))
            continue
        ts, *changes = part.split()
        events.append(Event("changes", int(ts), tuple(map(_fact, changes))))
    return Stream(
        id=number,
        families=("x", "y", "l"),
        start=int(words[0]),
        snapshot=resumes is None and "listen" not in words,
        resumes=resumes,
        until=next((int(w[1:]) for w in words if w.startswith("<")), None),
        rows="listen" not in words,
        ended="ended" in words,
        events=events,
    )


def _fact(text: str) -> Fact:
    key, _, value = text[1:].partition("=")
    diff = 1 if text[0] == "+" else -1
    if value.startswith("["):
        return Fact((key,), tuple(int(v) for v in value.strip("[]").split(",")), diff)
    return Fact((key,), int(value), diff)


WRITES = [
    "1-2 @10: x=-; x:=1",
    "3-4 @20: x=1; x:=2; y=-; y:=3",
    "5-6 @30: l=[]; l+4",
    "7-8 @40: x=2; x:=-; l+5",
    "9-10 unknown: y=3; y:=6",
    "11-12 fail: y=3; y:=7",
]
WHOLE = "5: 5!; 10 +x=1; 20 -x=1 +x=2 +y=3; 25!; 30 +l=[4]; 40 -x=2 -l=[4] +l=[4,5]; 50!"


def found(*streams: Stream, lines: list[str] | None = None) -> list[str]:
    """Return the anomalies' names; keys of families are tuples here, as they are in the simulation."""
    txns = history(*(lines or WRITES))
    txns = [
        type(txn)(
            id=txn.id, session=txn.session, began=txn.began, ended=txn.ended, outcome=txn.outcome, fresh=txn.fresh,
            ts=txn.ts, ops=tuple(op if op.kind == "clear" else op._replace(key=(op.key,)) for op in txn.ops),
        )
        for txn in txns
    ]  # fmt: skip
    return [anomaly.name for anomaly in check(txns, streams)]


def test_what_was_committed_and_nothing_else() -> None:
    assert found(stream(WHOLE)) == []
    assert found(stream("15: 15 +x=1; 15!; 20 -x=1 +x=2 +y=3; 40!; 40!", 1), lines=WRITES[:2]) == []
    assert found(stream(WHOLE + "; 55 -y=3 +y=6; 60!")) == [], "an unknown outcome may turn out well"


def test_what_was_cut_off_does_not_count_and_comes_again() -> None:
    first = stream("5: 5!; 10 +x=1; 15!; 20 -x=1 +x=2")
    second = stream("15: 20 -x=1 +x=2; 20 +y=3; 25!; 30 +l=[4]; 40 -x=2 -l=[4] +l=[4,5]; 41!", 2, first)
    assert found(first, second) == []


def test_one_without_rows_is_told_when() -> None:
    assert found(stream(WHOLE), stream("5 listen: 5!; 10; 20; 30; 40; 50!", 2)) == []
    assert set(found(stream(WHOLE), stream("5 listen: 5!; 10; 30; 40; 50!", 2))) == {"lost change"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("subscription out of order", "5: 5!; 20 -x=1 +x=2 +y=3; 10 +x=1; 25!"),
        ("subscription out of order", "5: 5!; 10 +x=1; 15!; 12 +y=3; 25!"),
        ("subscription out of order", "5: 5!; 10 +x=1; 15!; 14!"),
        ("subscription out of order", "5: 10 +x=1; 10!"),
        ("subscription out of order", "5 <20: 5!; 10 +x=1; 20 -x=1 +x=2 +y=3; 25!"),
        ("change does not fit", "5: 5!; 10 +x=1; 20 +x=2 +y=3; 25!"),
        ("change does not fit", "5: 5 +x=1; 5!; 10 +x=1; 15!"),
        ("change does not fit", "5: 5!; 10 +x=1; 20 -x=9 +x=2 +y=3; 25!"),
        ("change nobody committed", "5: 5!; 10 +x=1; 12 +y=7; 15!"),
        ("change nobody committed", "5: 5!; 10 +x=1; 12 +y=99; 15!"),
        ("subscription splits a commit", "5: 5!; 10 +x=1; 20 -x=1 +x=2; 22!"),
        ("subscription splits a commit", "5: 5!; 10 +x=1; 20 -x=1 +x=2; 21 +y=3; 22!"),
        ("subscription splits a commit", "5: 5!; 20 +x=2 +y=3 +l=[4]; 25!"),
        ("subscription splits a commit", "5: 5!; 11 +x=1; 15!"),
        ("lost change", "5: 5!; 15!"),
        ("lost change", "5 <40 ended: 5!; 10 +x=1; 20 -x=1 +x=2 +y=3; 30 +l=[4]; 35!"),
    ],
)
def test_each_anomaly_is_named(name: str, text: str) -> None:
    assert name in NAMES
    assert name in found(stream(text))


def test_streams_must_agree() -> None:
    other = stream("5 : 5!; 10 +x=1; 20 -x=1 +x=2 +y=3; 30 +l=[4]; 40 -l=[4] +l=[4,5]; 50!", 2)
    assert found(stream(WHOLE), other) == ["subscription splits a commit"], "the removal of x is missing"
    other = stream("5: 5!; 10 +x=1; 50!", 2)
    assert "lost change" in found(stream(WHOLE), other)


def test_what_was_truncated_in_the_same_transaction_is_not_missed() -> None:
    lines = ["1-2 @10: x=-; x:=1; y:=2"]
    assert "subscription splits a commit" in found(stream("5: 5!; 10 +x=1; 15!"), lines=lines)
    assert found(stream("5: 5!; 10 +y=2; 15!"), lines=["1-2 @10: x=-; x:=1; x cleared; y:=2"]) == []
