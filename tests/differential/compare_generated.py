"""Generated statements (``generated`` and its kin) on two servers: rows, tags, types and SQLSTATEs, on every executor in turn."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Protocol

import psycopg

from tests.differential.generated import Generator

EXECUTORS = ("auto", "index", "local")
FLOATS = (700, 701)
FIRST_USER_OID = 16384
NUMERIC = 1700
REFUSED = "refused by a pinned executor"
BROKEN = tuple(
    f"{engine} cannot {does} this query"
    for engine in ("Spark", "the local executor")
    for does in ("parse", "bind")
)
"""Refusals that are no limits of an engine's, but SQL that we should not have sent."""
MOST = 40
"""Differences after which a run is ended: what follows tells nothing new."""
_Field = psycopg.pq.DiagnosticField


class Source(Protocol):
    """What makes statements of one kind: a function of its seed."""

    @property
    def schema(self) -> str:
        """What makes the objects that statements name, and first removes what a run before has left."""

    @property
    def remove(self) -> str:
        """What removes them."""

    @property
    def stateful(self) -> bool:
        """Whether statements change what later ones find: after a difference both servers begin again."""

    def begin(self) -> None:
        """Take note that the objects are as ``schema`` makes them."""

    def query(self) -> str:
        """Return the next statement."""


@dataclass
class Answer:
    """``state`` of an error, or a tag, and rows with the types of their columns."""

    state: str = ""
    message: str = ""
    tag: str = ""
    types: tuple[int, ...] = ()
    rows: list[tuple[str | None, ...]] = field(default_factory=list)


@dataclass
class Found:
    """What came of a run: differences as texts, how statements ended, what pinned executors refused, by message.

    A statement has one end; one that was refused is asked again with ``executor = auto``, and ends as that answer does, or
    is not counted (``compare``).
    """

    differences: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    explained: int = 0

    def summary(self) -> str:
        return f"{len(self.differences)} differences; " + ", ".join(
            f"{n} {e}" for e, n in [*sorted(self.ends.items()), (REFUSED, self.refused.total())]
        )

    def too_little(self, count: int) -> str:
        """Return why a run without differences shows too little of ``count`` statements, "" if it does not.

        Most have to give rows, and the same ones: where both sides fail, little is compared. Few may be explained away. An
        executor may refuse nine of ten: a query has several expressions, over arrays, ranges, json and times of day among others, and one
        that it lacks is enough (Spark takes one in six).
        """
        if self.ends["equal"] <= count // 2:
            return f"only {self.ends['equal']} of {count} gave rows"
        if self.explained > count // 20:
            return f"{self.explained} of {count} differ in ways that are allowed"
        if self.refused.total() > 9 * count:
            return f"{self.refused.total()} were refused for {count}"
        return ""


def ask(connection: psycopg.Connection[Any], sql: str) -> Answer:
    """Run a statement."""
    return answer_of(connection.pgconn.exec_(sql.encode()))


def answer_of(done: psycopg.pq.abc.PGresult) -> Answer:
    """Return what a statement gave."""
    if done.status == psycopg.pq.ExecStatus.FATAL_ERROR:
        state, message = (done.error_field(f) or b"" for f in (_Field.SQLSTATE, _Field.MESSAGE_PRIMARY))
        return Answer(state=state.decode(), message=message.decode())
    values = [[done.get_value(r, c) for c in range(done.nfields)] for r in range(done.ntuples)]
    return Answer(
        tag=(done.command_status or b"").decode(),
        types=tuple(map(_type_of, (done.ftype(c) for c in range(done.nfields)))),
        rows=[tuple(None if v is None else v.decode() for v in row) for row in values],
    )


def _type_of(oid: int) -> int:
    """Return a type's oid; those of types that users make are of no account."""
    return oid if oid < FIRST_USER_OID else FIRST_USER_OID


def same(ours: Answer, theirs: Answer) -> bool:
    """Tell whether two answers are the same; floats to twelve digits, near zero (a covariance, say) to twelve places."""
    if ours.state or theirs.state:
        return ours.state == theirs.state
    if ours.tag != theirs.tag or ours.types != theirs.types or len(ours.rows) != len(theirs.rows):
        return False
    return all(
        a == b
        or (
            kind in FLOATS
            and a is not None
            and b is not None
            and math.isclose(float(a), float(b), rel_tol=1e-12, abs_tol=1e-12)
        )
        for mine, other in zip(ours.rows, theirs.rows, strict=True)
        for a, b, kind in zip(mine, other, ours.types, strict=True)
    )


def _by_value(answer: Answer) -> Answer:
    """Return an answer whose numerics have no trailing zeros."""
    rows = [
        tuple(
            format(Decimal(v).normalize(), "f") if kind == NUMERIC and v is not None else v
            for v, kind in zip(row, answer.types, strict=True)
        )
        for row in answer.rows
    ]
    return replace(answer, rows=rows)


def explained(ours: Answer, theirs: Answer, sql: str = "") -> str:
    """Return why two answers may differ, "" where nothing explains it (docs/reference/differences.md)."""
    chosen = any(word in sql for word in ("GROUP BY", "DISTINCT", "UNION", "INTERSECT", "OVER"))
    if not ours.state and not theirs.state and same(_by_value(ours), _by_value(theirs)):
        if chosen:
            return "which of equal numerics a group shows"
        if Counter(ours.rows) == Counter(theirs.rows):
            return "the order of equal numerics"
    one = ours if not theirs.state else theirs if not ours.state else Answer()
    of_value = one.state.startswith("22") or one.message.startswith("cannot convert NaN to")
    return "an error in a value that the other side leaves unevaluated" if of_value else ""


def compare(
    ours: psycopg.Connection[Any],
    theirs: psycopg.Connection[Any],
    seed: int,
    count: int,
    executors: Sequence[str] = EXECUTORS,
    *,
    insist: bool = False,
    every: int = 0,
    say: Callable[[str], None] = partial(print, flush=True),
    source: Callable[[int], Source] = Generator,
) -> Found:
    """Ask both ``count`` queries, ours on each of ``executors`` in turn; ``say`` how far it is ``every`` so many.

    ``insist``: as many that the executors take; what they refuse is counted and left out, up to ten times as many queries.
    """
    generator = source(seed)

    def begin() -> None:
        ours.execute("SET executor = auto")
        for connection in (ours, theirs):
            connection.execute(generator.schema.encode())
        generator.begin()

    for connection in (ours, theirs):
        connection.execute("SET timezone = 'UTC'; SET client_min_messages = error")
    begin()
    found = Found()
    started = time.monotonic()
    number = 0
    while number < count and found.refused.total() <= 10 * count and len(found.differences) < MOST:
        sql = generator.query()
        executor = executors[number % len(executors)]
        ours.execute(f"SET executor = {executor}")
        mine = ask(ours, sql)
        if insist and mine.state == "0A000" and not mine.message.startswith(BROKEN):
            found.refused[mine.message] += 1
            continue
        other = ask(theirs, sql)
        number += 1
        broken = mine.message.startswith(BROKEN)
        if executor != "auto" and mine.state == "0A000" and not broken and other.state != "0A000":
            found.refused[mine.message] += 1
            executor = "auto"
            ours.execute(f"SET executor = {executor}")
            mine = ask(ours, sql)
        if same(mine, other):
            found.ends[f"error {other.state}" if other.state else "equal"] += 1
        elif reason := explained(mine, other, sql):
            found.ends[reason] += 1
            found.explained += 1
        else:
            found.ends["different"] += 1
            found.differences.append(f"{executor}: {sql}\n  ours   {mine}\n  theirs {other}"[:3000])
            if generator.stateful:
                begin()
        if every and number % every == 0:
            rate = number / (time.monotonic() - started)
            left = (count - number) / rate / 60
            say(f"{number} of {count}, {rate:.1f}/s, {left:.0f} min left: {found.summary()}")
    ours.execute("SET executor = auto")
    for connection in (ours, theirs):
        connection.execute(generator.remove.encode())
    return found
