"""What a history is: transactions as their clients saw them.

    kind       key        value
    append     list       element added at its end (elements of one list are unique)
    list       list       tuple of the elements read
    write      register   new value (values of one register are unique), None: removed
    read       register   value read, None: nothing there
    unique     index      tuple of all keys that one read returned, duplicates included
    total      what       (expected, seen): a sum that no transaction may change
    clear      table      None: what it wrote there before is gone

A range or a scan is a read of every key it covers, those included that were not there. Ops are in program order.
A read of a key after the transaction's own write to it says nothing about others beyond that.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Outcome = Literal["ok", "fail", "unknown"]

PREDICATE = ("range", "scan", "index")
"""``via`` of reads that looked for whatever satisfies a condition."""


class Op(NamedTuple):
    """One operation and its result. ``via``: how it was done ("key", "unique", or one of PREDICATE)."""

    kind: Literal["append", "list", "write", "read", "unique", "total", "clear"]
    key: Hashable
    value: Any
    via: str = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A transaction. ``began`` and ``ended`` are numbers of one clock that all clients share, each used once.

    outcome  ok: acknowledged at ``ended``; fail: it was told that nothing has happened; unknown: neither
    fresh    False: it asked to read the past, so it may miss what was acknowledged before it began
    ts       the timestamp it was told: of its commit, or of what it read; None: it was told none
    timeline whose timestamp that is; those of different ones have nothing to do with each other
    """

    id: int
    session: int
    began: int
    ended: int
    outcome: Outcome
    ops: tuple[Op, ...]
    fresh: bool = True
    note: str = ""
    ts: int | None = None
    timeline: str = ""

    def __str__(self) -> str:
        """One line: who, when, what."""
        ops = ", ".join(_text(op) for op in self.ops)
        note = f" ({self.note})" if self.note else ""
        at = "" if self.ts is None else f" at {self.ts}"
        return (
            f"T{self.id} session {self.session} [{self.began}, {self.ended}] {self.outcome}{at}{note}: {ops}"
        )


def _text(op: Op) -> str:
    how = "" if op.via == "key" else f" by {op.via}"
    key = "/".join(map(str, op.key)) if isinstance(op.key, tuple) else op.key
    match op.kind:
        case "append":
            return f"append {op.value} to {key}"
        case "list":
            return f"list {key} = {list(op.value)}{how}"
        case "write":
            return f"write {key} := {op.value}{how}"
        case "read":
            return f"read {key} = {op.value}{how}"
    return f"{op.kind} {key}: {op.value}"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What is wrong. ``transactions``: ids, in the order of the cycle if there is one; ``why``: one line per step."""

    name: str
    transactions: tuple[int, ...]
    why: tuple[str, ...]

    def __str__(self) -> str:
        """Name and steps."""
        return "\n  ".join((self.name, *self.why))
