"""Which triggers of a table a change fires, in PostgreSQL's order (manual, CREATE TRIGGER): by name, within each kind.

    BEFORE STATEMENT
      for each row:   BEFORE ROW ──> the row goes on, changed or not, or is left out
                      generated columns, NOT NULL, CHECK, keys ──> staged (``engine.changes.triggers.rows``)
    conditions of AFTER ROW triggers, for all rows
    foreign keys and their actions, AFTER ROW for all rows         ┐ at the statement's end
    AFTER STATEMENT                                                ┘ (``engine.changes.constraints.effects``)

Row triggers of a view are INSTEAD OF: they are called as BEFORE ROW ones, and nothing is stored behind them.
What is compiled is kept with the catalog. A row is here as it is stored, indexed by ``attnum - 1``; functions
get ``table.live``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from engine.base.slices import pause
from engine.changes.triggers.call import call
from engine.changes.writes.shape import row_record
from engine.changes.writes.spilling import Spilling
from engine.changes.writes.spooled import Gathering, SpooledRows
from engine.session.trigger_event import TriggerEvent
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.bind.define.table.generated import generated_from
from planner.bind.define.trigger import NEW, OLD, stored_condition
from planner.bind.stored.runnable import runnable
from planner.catalog import ConstraintDef, RelationDef
from planner.catalog.trigger import NO_TRANSITIONS, TriggerDef
from planner.evaluate import Env, Layout, RowFunction, Shared, compile_predicate
from planner.query import TABLEOID
from planner.rules.fold import fold
from planner.rules.plain import without_domains
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session

Operation = Literal["INSERT", "UPDATE", "DELETE", "TRUNCATE"]

_LETTERS: Final[dict[str, str]] = {"INSERT": "i", "UPDATE": "u", "DELETE": "d", "TRUNCATE": "t"}
_CONSTRAINTS: Final = "RI_ConstraintTrigger"
"""What PostgreSQL's triggers of foreign keys are called: triggers whose names come before it fire before
foreign keys are looked at."""


ROWS_A_TURN: Final = 50
"""Rows, with what their triggers do, between two turns of the event loop."""


Held: TypeAlias = Mapping[int, bytearray]
"""Of AFTER ROW triggers with conditions, by oid: for each row of a change 1 where its condition holds, else 0."""


class Compiled(NamedTuple):
    """A trigger that is on, with its condition over the old row and the new one side by side, and the
    constraint that it is.
    """

    trigger: TriggerDef
    when: RowFunction | None
    constraint: ConstraintDef | None = None


class Transitions:
    """The rows that a statement changes in one way in one table, as REFERENCING names them: values of
    ``table.live``.
    """

    __slots__ = ("_live", "_others", "new", "old")

    def __init__(self, relation: RelationDef) -> None:
        """Start with no rows."""
        self.old: Gathering = []
        self.new: Gathering = []
        self._others: list[SpooledRows] = []  # that are a change's, and not to be added to
        live = [column.attnum - 1 for column in relation.live]
        self._live = None if len(live) == len(relation.columns) else live

    def add(self, old: Sequence[Row] | None, new: Sequence[Row] | None) -> None:
        """Add rows as they are stored; many of them are in a file, where they come from one. May give way."""
        self.old = self._joined(self.old, old or ())
        self.new = self._joined(self.new, new or ())

    def _joined(self, mine: Gathering, rows: Sequence[Row]) -> Gathering:
        live = self._live
        if isinstance(rows, SpooledRows):
            if live is None and not mine:
                self._others.append(rows)
                return rows
            if isinstance(mine, list):
                first, mine = mine, rows.another()
                mine.extend(first)
        if isinstance(mine, SpooledRows) and any(mine is one for one in self._others):
            others, mine = mine, mine.another()
            mine.extend(others)
        mine.extend(rows if live is None else (tuple([row[i] for i in live]) for row in rows))
        return mine


class Firing:
    """The triggers of one table that fire for one kind of change."""

    __slots__ = (
        "_after", "_before", "_live", "_whole", "_width", "after_row", "before_row", "changed", "generated", "instead", "op", "relation",
        "transitions",
    )  # fmt: skip

    def __init__(
        self,
        relation: RelationDef,
        op: Operation,
        triggers: Sequence[Compiled],
        changed: Collection[int] = (),
    ) -> None:
        """``triggers``: those of ``op``, by name; ``changed``: the columns that an UPDATE counts as changing."""
        self.relation = relation
        self.changed = frozenset(changed)
        self.op: Operation = op
        self._before = [t for t in triggers if t.trigger.timing == "b" and not t.trigger.row]
        self._after = [t for t in triggers if t.trigger.timing == "a" and not t.trigger.row]
        self.instead = relation.kind == "v"  # then its row triggers are INSTEAD OF, and nothing is stored
        self.before_row = [t for t in triggers if t.trigger.timing in "bi" and t.trigger.row]
        self.after_row = [t for t in triggers if t.trigger.timing == "a" and t.trigger.row]
        self._live = [column.attnum - 1 for column in relation.live]
        self._width = len(relation.columns)
        self._whole = row_record(relation)
        self.transitions = any(t.trigger.transitions != NO_TRANSITIONS for t in triggers)
        self.generated = [column.attnum - 1 for column in relation.generated]

    def rows_only(self) -> Firing | None:
        """Return its row triggers alone, None for none: what fires in a partition when the statement names
        its parent.
        """
        made = copy(self)
        made._before, made._after = [], []
        made.transitions = False
        return made if made.before_row or made.after_row else None

    def statements_only(self) -> Firing | None:
        """Return its statement triggers alone, None for none: row triggers of a partitioned table fire in its
        partitions.
        """
        made = copy(self)
        made.before_row, made.after_row = [], []
        return made if made.around else None

    def one_by_one(self) -> Iterator[Firing]:
        """Yield it with each of its BEFORE ROW triggers alone."""
        for trigger in self.before_row:
            made = copy(self)
            made.before_row = [trigger]
            yield made

    @property
    def around(self) -> bool:
        """Whether statement triggers fire, be there rows or not."""
        return bool(self._before or self._after)

    async def before_statement(self, session: Session) -> None:
        """Fire BEFORE STATEMENT. Raises what the functions raise."""
        for one in self._before:
            await self._statement(session, one, "BEFORE")

    def shows_rows(self, *, early: bool) -> bool:
        """Whether AFTER ROW triggers, those of ``after`` with the same ``early``, have transition tables."""
        return self.transitions and any(
            one.trigger.transitions != NO_TRANSITIONS and (one.trigger.name < _CONSTRAINTS) == early
            for one in self.after_row
        )

    async def after_statement(self, session: Session, tables: Transitions | None = None) -> None:
        """Fire AFTER STATEMENT. Raises what the functions raise."""
        for one in self._after:
            await self._statement(session, one, "AFTER", tables)

    async def before(
        self, session: Session, old: Row | None, new: Row | None, *, computed: bool = False
    ) -> Row | None:
        """Fire BEFORE ROW, or INSTEAD OF; return the row as it goes on (of a DELETE: the old one), None where
        a function leaves it out.

        Generated columns of the new row are NULL to functions, for they are computed afterwards; but not
        where they are ``computed``, as those of a row are that an UPDATE moves to another partition.
        """
        if new is not None and self.generated and not computed:
            cells = list(new)
            for position in self.generated:
                cells[position] = None
            new = tuple(cells)
        for one in self.before_row:
            if not self._holds(session, one, old, new):
                continue
            found = await call(
                one.trigger, self._event(session, one, "INSTEAD OF" if self.instead else "BEFORE", old, new)
            )
            if found is None:
                return None
            if new is not None:
                new = self._stored(found)
        return old if new is None else new

    def holding(self, session: Session, old: Sequence[Row] | None, new: Sequence[Row] | None) -> Held:
        """Return for which rows of a change the conditions of AFTER ROW triggers hold, before any of these fires.

        So PostgreSQL does, which keeps no row for a trigger whose condition it fails. Raises what conditions raise.
        """
        asked = [one for one in self.after_row if one.when is not None]
        held = {one.trigger.oid: bytearray() for one in asked}
        if asked:
            for before, now in _versions(old, new):
                pause()
                for one in asked:
                    held[one.trigger.oid].append(self._holds(session, one, before, now))
        return held

    async def after(
        self,
        session: Session,
        old: Sequence[Row] | None,
        new: Sequence[Row] | None,
        tables: Transitions | None,
        held: Held,
        *,
        early: bool,
    ) -> None:
        """Fire AFTER ROW for rows of one change; ``early``: those that come before foreign keys, else the others.

        ``tables``: what of the statement REFERENCING names; there for triggers that have it. ``held``: what
        ``holding`` returned.
        """
        firing = [
            (one, held.get(one.trigger.oid))
            for one in self.after_row
            if (one.trigger.name < _CONSTRAINTS) == early
        ]
        if not firing:
            return
        spilling = Spilling(session)
        for at, (before, now) in enumerate(_versions(old, new)):
            pause()
            for one, holds in firing:
                if holds is None or holds[at]:
                    event = self._event(session, one, "AFTER", before, now, tables)
                    if one.constraint is not None and session.timing.is_deferred(one.constraint):
                        later = partial(_call_later, one.trigger.oid, event)
                        session.timing.note_call(one.constraint, self.relation.oid, later)
                    else:
                        await call(one.trigger, event)
                        if spilling.due:
                            await spilling.spill()

    # -- what a function is told -------------------------------------------------------------------

    async def _statement(
        self,
        session: Session,
        one: Compiled,
        when: Literal["BEFORE", "AFTER"],
        tables: Transitions | None = None,
    ) -> None:
        if one.when is None or openly(one.when, (), Env((), session, shared=Shared())):
            await call(one.trigger, self._event(session, one, when, None, None, tables))

    def _event(
        self,
        session: Session,
        one: Compiled,
        when: Literal["BEFORE", "AFTER", "INSTEAD OF"],
        old: Row | None,
        new: Row | None,
        tables: Transitions | None = None,
    ) -> TriggerEvent:
        names = one.trigger.transitions
        return TriggerEvent(
            op=self.op,
            when=when,
            level="ROW" if one.trigger.row else "STATEMENT",
            name=one.trigger.name,
            table=self.relation,
            session=session,
            args=one.trigger.args,
            updated=self.changed,
            old=None if old is None else self._seen(old),
            new=None if new is None else self._seen(new),
            transitions=names,
            old_rows=tables.old if tables is not None and names[0] else (),
            new_rows=tables.new if tables is not None and names[1] else (),
        )

    def _seen(self, row: Row) -> Row:
        return row if len(self._live) == self._width else tuple([row[i] for i in self._live])

    def _stored(self, row: Row) -> Row:
        if len(self._live) == self._width:
            return row
        cells: list[Any] = [None] * self._width
        for position, value in zip(self._live, row, strict=True):
            cells[position] = value
        return tuple(cells)

    def _holds(self, session: Session, one: Compiled, old: Row | None, new: Row | None) -> bool:
        if one.when is None:
            return True
        both = (*self._half(old), *self._half(new))
        return openly(one.when, both, Env((), session, shared=Shared())) is True

    def _half(self, row: Row | None) -> Row:
        if row is None:
            return (None,) * (self._width + 2)
        return (*row, self._whole(row), self.relation.oid)


async def _call_later(trigger_oid: int, event: TriggerEvent) -> None:
    """Call a trigger that has waited, with the rows of then. It may have been renamed since, or be gone."""
    found = event.session.catalog.trigger_by_oid(trigger_oid)
    if found is not None:
        await call(found[1], replace(event, name=found[1].name))


def _versions(
    old: Sequence[Row] | None, new: Sequence[Row] | None
) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield each row of a change as it was and as it is, None where it was not, or is no more."""
    if old is None:
        yield from ((None, row) for row in new or ())
    elif new is None:
        yield from ((row, None) for row in old)
    else:
        yield from zip(old, new, strict=True)


def firing_of(
    session: Session, relation: RelationDef, op: Operation, changed: Collection[int] = ()
) -> Firing | None:
    """Return what fires when rows of a table change, None where nothing does.

    ``changed``: the attnums that an UPDATE assigns, and those that are generated from them. Raises SqlError
    42501 for a function in a condition that the role may not call.
    """
    if not relation.triggers:
        return None
    letter = _LETTERS[op]
    found = [
        one
        for one in compiled(session, relation)
        if letter in one.trigger.events
        and (op != "UPDATE" or not one.trigger.attnums or not set(one.trigger.attnums).isdisjoint(changed))
    ]
    return Firing(relation, op, found, changed) if found else None


def updated_columns(session: Session, relation: RelationDef, assigned: Collection[int]) -> frozenset[int]:
    """Return the columns that an UPDATE counts as changing: those it assigns, and those that are generated from them.

    Where a table has BEFORE UPDATE ROW triggers, on or off, all generated columns count, as in PostgreSQL.
    """
    if any(t.timing == "b" and t.row and "u" in t.events for t in relation.triggers):
        return frozenset((*assigned, *(column.attnum for column in relation.generated)))
    return frozenset((*assigned, *generated_from(relation, assigned, session.catalog)))


def compiled(session: Session, relation: RelationDef) -> Sequence[Compiled]:
    """Return a table's triggers that are on, by name, kept with the catalog. Raises SqlError 42501 as ``firing_of``."""
    kept: dict[Any, Any] = session.catalog.derived
    replica = session.derived.replica
    key = ("triggers", relation.oid, relation.version, replica)
    known = kept.get(key)
    if known is None:
        called: set[int] = set()
        found = [
            _compile(session, relation, t, called) for t in relation.triggers if t.fires(replica=replica)
        ]
        known = kept[key] = (tuple(found), called)
    triggers: Sequence[Compiled] = known[0]
    if known[1]:
        session.ask_calls(known[1])
    return triggers


class _Failing:
    """A condition that cannot be bound any more: what is wrong is told where it is asked, by the events that
    it stands for.
    """

    may_suspend = False
    grows = False

    def __init__(self, error: SqlError) -> None:
        """Keep what is wrong."""
        self._error = error

    def __call__(self, r: Any, e: Env) -> Any:
        """Raise it."""
        raise self._error.with_traceback(None)


def _compile(session: Session, relation: RelationDef, trigger: TriggerDef, called: set[int]) -> Compiled:
    constraint = next((c for c in relation.constraints if c.oid == trigger.constraint), None)
    condition = stored_condition(trigger, relation, session.catalog)
    if condition is None:
        return Compiled(trigger, None, constraint)
    try:
        expr = fold(without_domains(runnable(condition, session.catalog, called)))
    except SqlError as error:
        if error.sqlstate == "0A000" or error.ends_statement:
            raise  # what cannot be evaluated is refused when the trigger is made
        return Compiled(trigger, _Failing(error), constraint)
    width = len(relation.columns)
    columns: dict[tuple[int, int], int] = {}
    for range_, start in ((OLD, 0), (NEW, width + 2)):
        columns.update({(range_, c.attnum): start + c.attnum - 1 for c in relation.live})
        columns[range_, 0] = start + width
        columns[range_, TABLEOID] = start + width + 1
    return Compiled(trigger, compile_predicate([expr], Layout(columns=columns)), constraint)
