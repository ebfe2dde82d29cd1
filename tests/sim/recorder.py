"""Notes what clients see, as the checker wants it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from tests.sim.checker.feeds import Stream
from tests.sim.checker.history import Observed, Op, Outcome


@dataclass(slots=True)
class Record:
    """A transaction while it runs. ``committing``: a commit that writes has been asked for; ``ts``: the answer."""

    id: int
    session: int
    began: int
    note: str
    fresh: bool = True
    committing: bool = False
    ended: int = 0
    outcome: Outcome = "unknown"
    ts: int | None = None
    timeline: str = ""
    ops: list[Op] = field(default_factory=list)
    undone: list[Op] = field(default_factory=list)

    def read(self, key: Hashable, value: Any, via: str = "key") -> None:
        """Note a register's value."""
        self.ops.append(Op("read", key, value, via))

    def write(self, key: Hashable, value: Any, via: str = "key") -> None:
        """Note a register's new value."""
        self.ops.append(Op("write", key, value, via))

    def undo_to(self, mark: int) -> None:
        """A savepoint was rolled back: what was written since must never be seen by anybody."""
        self.undone += [
            op for op in self.ops[mark:] if op.kind in ("append", "write") and op.value is not None
        ]
        del self.ops[mark:]


class Recorder:
    """All transactions of a run, and one clock for all clients."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.time = 0
        self.finished = 0
        self.states: list[Record] = []
        """What subscribers knew at some timestamp: reads of the past, which are no transactions of clients."""
        self.streams: list[Stream] = []
        self.claimed: list[int] = []
        """Ids of rows of ``names`` that were inserted, whatever became of them."""
        self._value = 0

    def tick(self) -> int:
        """Return the next moment."""
        self.time += 1
        return self.time

    def value(self) -> int:
        """Return a value never written before."""
        self._value += 1
        return self._value

    def begin(self, session: int, note: str) -> Record:
        """A client asks for a transaction."""
        record = Record(len(self.records) + 1, session, self.tick(), note)
        self.records.append(record)
        return record

    def state(self, note: str, began: int, ts: int, *, fresh: bool) -> Record:
        """A subscriber knows all of some tables at ``ts``; ``fresh``: as of the moment ``began``."""
        record = Record(0, 0, began, note, fresh=fresh, ts=ts, outcome="ok", ended=self.tick())
        self.states.append(record)
        return record

    def finish(self, record: Record, outcome: Outcome) -> None:
        """The client has its answer."""
        record.outcome = outcome
        record.ended = self.tick()
        self.finished += 1

    def history(self) -> list[Observed]:
        """Return what the checker gets. Undone writes count as a transaction that failed."""
        out = []
        ids = len(self.records)
        for record in self.states:
            ids = record.id = ids + 1
        for record in (*self.records, *self.states):
            ended = record.ended or self.tick()
            common = {
                "session": record.session,
                "began": record.began,
                "note": record.note,
                "timeline": record.timeline,
            }
            out.append(
                Observed(
                    id=record.id, ended=ended, outcome=record.outcome, ops=tuple(record.ops), fresh=record.fresh,
                    ts=record.ts if record.outcome == "ok" else None,
                    **common,  # type: ignore[arg-type]
                )
            )  # fmt: skip
            if record.undone:
                ids += 1
                undone = Observed(id=ids, ended=ended, outcome="fail", ops=tuple(record.undone), **common)  # type: ignore[arg-type]
                out.append(undone)
        return out
