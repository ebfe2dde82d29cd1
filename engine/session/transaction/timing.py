"""When deferrable constraints are checked: SET CONSTRAINTS, and the checks that wait.

    statement ──> effects ──> immediate: checked at the statement's end
                          └─> deferred:  Waiting(constraint, side, keys) ──> COMMIT or SET CONSTRAINTS ... IMMEDIATE

A waiting check is a set of keys, not of rows: a foreign key is kept if, for each key, either a referenced row
has it or no referencing row does. So rows that changed again meanwhile, or were undone by ROLLBACK TO, need
no care, and it is enough to forget what was noted since a savepoint. Checks wait in a linked list for that: a
savepoint remembers its head. A constraint trigger that waits is its call, with the rows as they were then, at
its place among the checks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from planner.base.errors import SqlError
from planner.catalog import ConstraintDef, RelationDef
from txn.base.types import Key

Canonical: TypeAlias = tuple[Any, ...]
"""A key in the form that equal values of both columns have, whatever their types and scales (``txn.mvcc.keys``)."""
Keys: TypeAlias = dict[Canonical, Key]
"""Canonical keys with the values to show for them, in the order in which they were met."""

Call = Callable[[], Awaitable[object]]
Side = Literal["child", "parent", "whole table", "parent table", "unique", "exclusion", "trigger"]
_WHOLE = ("whole table", "parent table", "unique", "exclusion")


@dataclass(frozen=True, slots=True)
class Waiting:
    """One check that waits. ``table`` is the one whose change it comes from; ``before`` was noted earlier.
    ``call``: of side trigger.

    ``side`` child: keys that rows now refer to; parent: keys that referred rows no longer have; whole table:
    a bulk load; parent table: as ``parent``, of so many keys that all rows that refer to the table are looked
    at; unique: keys of a deferrable PRIMARY KEY or UNIQUE; exclusion: a deferrable EXCLUDE. ``mixed``: MATCH
    FULL has something to say.
    """

    constraint: int
    table: int
    side: Side
    keys: Keys
    mixed: bool
    before: Waiting | None
    call: Call | None = None


class Mark(NamedTuple):
    """The state at a savepoint."""

    waiting: Waiting | None
    all_deferred: bool | None
    named: Mapping[int, bool]
    whole: frozenset[
        tuple[int, Side]
    ]  # checks without keys that wait: one is enough, however often rows came


_START = Mark(None, None, {}, frozenset())


class Timing:
    """One transaction's SET CONSTRAINTS and waiting checks."""

    __slots__ = ("_state", "in_use")

    def __init__(self) -> None:
        """Start as every transaction does: each constraint as it was declared."""
        self._state = _START
        self.in_use: list[int] = []
        """The tables, by oid, whose triggers run, innermost last."""

    def defer_all(self, deferred: bool) -> None:
        """SET CONSTRAINTS ALL."""
        self._state = self._state._replace(all_deferred=deferred, named={})

    def defer(self, constraints: Mapping[int, bool]) -> None:
        """SET CONSTRAINTS of some, by oid."""
        self._state = self._state._replace(named={**self._state.named, **constraints})

    def keep(self, checks: Sequence[Waiting]) -> None:
        """Let these checks wait, oldest first, and no others."""
        waiting: Waiting | None = None
        for check in checks:
            waiting = replace(check, before=waiting)
        whole = frozenset((c.constraint, c.side) for c in checks if c.side in _WHOLE)
        self._state = self._state._replace(waiting=waiting, whole=whole)

    @property
    def waiting(self) -> Waiting | None:
        """The latest check that waits, or None."""
        return self._state.waiting

    def reset(self) -> None:
        """The transaction has ended."""
        self._state = _START

    def mark(self) -> Mark:
        """Return what ``go_back`` needs."""
        return self._state

    def go_back(self, mark: Mark) -> None:
        """Forget what came after a savepoint."""
        self._state = mark

    def is_deferred(self, constraint: ConstraintDef) -> bool:
        """Tell whether a constraint is checked at commit, as things stand."""
        if not constraint.deferrable:
            return False
        named = self._state.named.get(constraint.oid)
        if named is not None:
            return named
        everything = self._state.all_deferred
        return constraint.deferred if everything is None else everything

    def note(
        self, constraint: ConstraintDef, table: int, side: Side, keys: Keys, *, mixed: bool = False
    ) -> None:
        """Let a check wait."""
        state = self._state
        if side in _WHOLE:
            if (constraint.oid, side) in state.whole:
                return
            state = state._replace(whole=state.whole | {(constraint.oid, side)})
        self._state = state._replace(waiting=Waiting(constraint.oid, table, side, keys, mixed, state.waiting))

    def note_call(self, constraint: ConstraintDef, table: int, call: Call) -> None:
        """Let a constraint trigger wait."""
        waiting = Waiting(constraint.oid, table, "trigger", {}, False, self._state.waiting, call)
        self._state = self._state._replace(waiting=waiting)

    def refuse_pending(self, relation: RelationDef, what: str) -> None:
        """Raise 55006 for a table about to be altered, dropped or truncated from whose changes checks wait."""
        node = self._state.waiting
        while node is not None:
            if node.table == relation.oid:
                raise SqlError(
                    "55006", f'cannot {what} "{relation.name}" because it has pending trigger events'
                )
            node = node.before
