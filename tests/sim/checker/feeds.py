"""Checks what subscriptions delivered: against itself, against each other, and against the transactions.

    stream 4   start 40 | +a -b at 57 | +c at 60 | progress 60 | +d at 71 | (cut: the server died)
    stream 9   resumes 4, start 60               | +d at 71 | +e at 71 | progress 75
               '-- covers (60, 75]: everything that was committed there, once, and nothing else

A stream is one subscription as its client saw it. What comes after its last progress may have been cut off half-way
and counts for nothing. One that resumes another goes on with the state that the other had at its last progress.

    subscription out of order       timestamps fall, or a change comes at or below what progress has passed
    change does not fit             a row goes that was not there, or comes where one is (delivered twice, or missed)
    change nobody committed         of a transaction that failed, or at another timestamp than its own
    subscription splits a commit    part of a transaction, two in one, or one at two timestamps
    lost change                     a commit, or what another stream tells of it, is missing below progress
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from tests.sim.checker.history import Anomaly, Observed

NAMES: Final = (
    "subscription out of order", "change does not fit", "change nobody committed",
    "subscription splits a commit", "lost change",
)  # fmt: skip
"""The most telling first."""


class Fact(NamedTuple):
    """A register or list that a row shows. ``diff``: 1 it came, -1 it went. ``key[0]`` names the family of keys."""

    key: tuple[Hashable, ...]
    value: Any
    diff: int


class Event(NamedTuple):
    """What arrived. Progress has no facts; neither have changes of a stream without ``rows``."""

    kind: Literal["changes", "progress"]
    ts: int
    facts: tuple[Fact, ...] = ()


@dataclass(slots=True, kw_only=True)
class Stream:
    """One subscription from its start to its end.

    families  first components of the keys whose changes it delivers
    start     all at or below it was delivered before, or comes first as rows that came at ``start`` (``snapshot``)
    resumes   the stream whose client went on with this one
    until     nothing at or above is delivered; ``ended``: it said that it has come to its end
    """

    id: int
    families: tuple[Hashable, ...]
    start: int
    snapshot: bool = True
    resumes: Stream | None = None
    until: int | None = None
    rows: bool = True
    ended: bool = False
    events: list[Event] = field(default_factory=list)

    @property
    def progress(self) -> int:
        """Up to where it is complete."""
        return next((e.ts for e in reversed(self.events) if e.kind == "progress"), self.start)


State = dict[Hashable, Any]
Commit = frozenset[tuple[Hashable, Any, int]]


class _Reader:
    """Reads streams one after the other; ``commits[stream id]``: ts -> net changes, as far as progress went."""

    def __init__(self) -> None:
        self.anomalies: list[Anomaly] = []
        self.states: dict[int, State] = {}
        self.commits: dict[int, dict[int, Commit]] = {}

    def found(self, name: str, stream: Stream, why: str) -> None:
        self.anomalies.append(Anomaly(name, (), (f"subscription {stream.id}: {why}",)))

    def read(self, stream: Stream) -> None:
        """Check order and fit of one stream."""
        resumed = None if stream.resumes is None else self.states.get(stream.resumes.id)
        known = stream.rows and (stream.snapshot or resumed is not None)
        state: State = dict(resumed or {})
        commits: dict[int, Commit] = {}
        pending: list[tuple[int, list[Fact]]] = []
        progress: int | None = None
        for event in stream.events:
            ts = event.ts
            below = stream.start if progress is None else progress
            first = progress is None and stream.snapshot and event.kind == "changes"
            if ts < below or (ts == below and event.kind == "changes" and not first):
                self.found(
                    "subscription out of order", stream, f"{event.kind} at {ts} after progress {below}"
                )
            if pending and ts < pending[-1][0]:
                self.found("subscription out of order", stream, f"{ts} after changes at {pending[-1][0]}")
            if first and ts != stream.start:
                self.found("subscription out of order", stream, f"rows at {ts}, not at {stream.start}")
            if stream.until is not None and ts >= stream.until and ts > stream.start:
                self.found("subscription out of order", stream, f"{ts} is not below {stream.until}")
            if event.kind == "changes":
                if not pending or pending[-1][0] != ts:
                    pending.append((ts, []))
                pending[-1][1].extend(event.facts)
                continue
            for at, facts in pending:
                if known:
                    self._apply(stream, state, at, facts)
                if at > stream.start:
                    commits[at] = _net(facts)
            pending.clear()
            progress = ts
            self.states[stream.id] = dict(state)
        if progress is None:
            self.states[stream.id] = dict(resumed or {})
        if stream.ended and stream.until is not None and stream.progress < stream.until - 1:
            self.found("lost change", stream, f"ends at {stream.progress}, not just below {stream.until}")
        self.commits[stream.id] = commits

    def _apply(self, stream: Stream, state: State, ts: int, facts: list[Fact]) -> None:
        for fact in facts:
            if fact.diff < 0:
                if state.get(fact.key) != fact.value:
                    why = f"{fact.key} = {fact.value} goes at {ts}, where it was {state.get(fact.key)}"
                    self.found("change does not fit", stream, why)
                state.pop(fact.key, None)
        for fact in facts:
            if fact.diff > 0:
                if fact.key in state:
                    why = f"{fact.key} = {fact.value} comes at {ts}, where it was {state[fact.key]}"
                    self.found("change does not fit", stream, why)
                state[fact.key] = fact.value


def _net(facts: list[Fact]) -> Commit:
    """Return what remains when the same value goes and comes."""
    count: dict[tuple[Hashable, Any], int] = {}
    for fact in facts:
        count[fact.key, fact.value] = count.get((fact.key, fact.value), 0) + fact.diff
    return frozenset((key, value, diff) for (key, value), diff in count.items() if diff)


def _news(commit: Commit, lists: set[Hashable]) -> set[tuple[Hashable, Any]]:
    """Return the registers' new values and the lists' new elements."""
    gone = {key: value for key, value, diff in commit if diff < 0}
    news: set[tuple[Hashable, Any]] = set()
    for key, value, diff in commit:
        if diff > 0 and key in lists:
            before = gone.get(key, ())
            news.update((key, element) for element in value if element not in before)
        elif diff > 0:
            news.add((key, value))
    return news


def _wrote(txn: Observed) -> dict[Hashable, set[Any]]:
    """Return what a transaction leaves: values of registers, elements of lists."""
    left: dict[Hashable, set[Any]] = {}
    for op in txn.ops:
        if op.kind == "append":
            left.setdefault(op.key, set()).add(op.value)
        elif op.kind == "write":
            left[op.key] = set() if op.value is None else {op.value}
        elif op.kind == "clear":
            for key in [k for k in left if k[0] == op.key]:  # type: ignore[index]
                del left[key]
    return left


def check_feeds(streams: Sequence[Stream], history: Sequence[Observed]) -> list[Anomaly]:
    """Return what is wrong with the streams; they are in the order in which they began."""
    if not streams:
        return []
    reader = _Reader()
    for stream in streams:
        reader.read(stream)
    truth = _truth(streams, reader)
    for stream in streams:
        _compare(stream, reader, truth)
    _against_transactions(streams, history, reader, truth)
    return reader.anomalies


Truth = dict[tuple[int, Hashable], set[tuple[Hashable, Any, int]]]
"""(ts, family) -> the changes that any stream tells of."""


def _truth(streams: Sequence[Stream], reader: _Reader) -> Truth:
    truth: Truth = {}
    for stream in streams:
        for ts, commit in reader.commits[stream.id].items():
            for change in commit:
                truth.setdefault((ts, change[0][0]), set()).add(change)  # type: ignore[index]
    return truth


def _covers(stream: Stream, ts: int, family: Hashable) -> bool:
    return stream.start < ts <= stream.progress and family in stream.families


def _compare(stream: Stream, reader: _Reader, truth: Truth) -> None:
    """What one stream tells of a commit, all that cover it must tell; one without rows tells that there was one."""
    commits = reader.commits[stream.id]
    for (ts, family), changes in truth.items():
        if not _covers(stream, ts, family):
            continue
        if ts not in commits:
            reader.found(
                "lost change", stream, f"nothing at {ts}, where others have {sorted(map(str, changes))}"
            )
        elif stream.rows:
            mine = {change for change in commits[ts] if change[0][0] == family}  # type: ignore[index]
            if mine != changes:
                missing = sorted(map(str, changes - mine))
                reader.found("subscription splits a commit", stream, f"at {ts} it lacks {missing}")


def _against_transactions(
    streams: Sequence[Stream], history: Sequence[Observed], reader: _Reader, truth: Truth
) -> None:
    writer: dict[tuple[Hashable, Any], Observed] = {}
    lists: set[Hashable] = {op.key for txn in history for op in txn.ops if op.kind == "append"}
    for txn in history:
        for op in txn.ops:
            if op.kind in ("append", "write") and op.value is not None:
                writer[op.key, op.value] = txn
    at: dict[int, int] = {txn.id: txn.ts for txn in history if txn.ts is not None and txn.outcome == "ok"}
    owner: dict[int, Observed] = {}
    new_at: dict[int, set[tuple[Hashable, Any]]] = {}
    for (ts, _family), changes in sorted(truth.items(), key=lambda item: item[0][0]):
        for key, value in sorted(_news(frozenset(changes), lists), key=str):
            new_at.setdefault(ts, set()).add((key, value))
            found = writer.get((key, value))
            if found is None or found.outcome == "fail":
                reader.found("change nobody committed", streams[0], f"{key} := {value} at {ts}, by {found}")
                continue
            if at.setdefault(found.id, ts) != ts:
                why = f"{key} := {value} at {ts}, but T{found.id} is at {at[found.id]}"
                reader.found("subscription splits a commit", streams[0], why)
            if owner.setdefault(ts, found) is not found:
                why = f"at {ts} there are both T{owner[ts].id} and T{found.id}"
                reader.found("subscription splits a commit", streams[0], why)
    for txn in history:
        ts = at.get(txn.id)
        if ts is None or txn.outcome == "fail":
            continue
        for key, values in _wrote(txn).items():
            family = key[0]  # type: ignore[index]
            missing = [value for value in values if (key, value) not in new_at.get(ts, ())]
            stream = next(_watching(streams, ts, family), None) if missing else None
            if stream is not None:
                name = "subscription splits a commit" if ts in new_at else "lost change"
                reader.found(name, stream, f"{key} := {missing} at {ts} is missing, of {txn}")


def _watching(streams: Sequence[Stream], ts: int, family: Hashable) -> Iterator[Stream]:
    return (stream for stream in streams if stream.rows and _covers(stream, ts, family))
