"""What a statement's changes cause: foreign key checks and referential actions, first in, first out.

    DELETE FROM p ──> Change(p, old rows) ─┬─> NO ACTION, RESTRICT   any referencing row left? 23503
                                           ├─> CASCADE               DELETE ──> Change(child, old rows) ──> ...
                                           └─> SET NULL, DEFAULT     UPDATE ──> Change(child, old, new rows) ──> ...
    INSERT, UPDATE child ──> Change(child, new rows) ──> is the key there? else 23503

A change is handled as a whole: each foreign key once for all its rows. As PostgreSQL's triggers, those of the
referenced side come first, each side's in the order in which they were defined, and what an action changes
queues behind. AFTER triggers of users follow the foreign keys of their change
(``engine.changes.triggers.firing``). Cycles end because a deleted row is not found again, and an update that
changes no key causes nothing. All belongs to the statement that began it: an error undoes everything, and
counts and RETURNING know nothing of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import settle
from engine.base.slices import pause
from engine.catalog.reference_checks import references_to, with_partitions
from engine.changes.constraints.checks import check_referenced, check_referencing
from engine.changes.constraints.exclusion import check_new
from engine.changes.constraints.foreign_key import ForeignKey, incoming, outgoing
from engine.changes.constraints.owners import ask_to_act
from engine.changes.constraints.reference_texts import delete_text, reset_columns, update_text
from engine.changes.constraints.setwise import check_one, check_one_released
from engine.changes.constraints.values import same_image
from engine.changes.triggers.firing import Firing, Held, Operation, Transitions, firing_of, updated_columns
from engine.changes.triggers.rows import delete_each, update_each
from engine.changes.writes.shape import TableShape
from engine.changes.writes.spilling import Spilling
from engine.changes.writes.spooled import Gathering, gathered
from engine.session.acting import acting_as
from engine.session.plans.plan import Replan
from engine.session.transaction.timing import Canonical, Keys
from pgwire.codecs.errors import DataError
from pgwire.give_way import openly
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.bind import generated_from
from planner.bind.stored.evaluated import column_default
from planner.catalog import ColumnDef, RelationDef
from planner.evaluate import Env, Shared, compile_expr
from txn.base.types import IndexId, Row, RowId, ShardId, StoredRow

if TYPE_CHECKING:
    from engine.session.session import Session


@dataclass(slots=True, eq=False)
class Change:
    """Rows of one table that one statement, or one action, inserted (no ``old``), deleted (no ``new``) or updated.

    ``firing``: the triggers of it, if any; ``ends``: those of its statement fire behind it; ``tables``: what
    REFERENCING names, made of ``shown``, old rows and new ones, where these are not its own. ``moves``:
    deleted rows that come to another partition of a table, of which foreign keys to that table hear as of an
    update. ``held``: for which rows the conditions of ``firing`` hold, once asked.
    """

    relation: RelationDef
    old: Sequence[Row] | None
    new: Sequence[Row] | None
    firing: Firing | None = None
    ends: bool = True
    tables: Transitions | None = None
    moves: bool = False
    shown: tuple[Sequence[Row], Sequence[Row]] | None = None
    held: Held | None = None

    def let_go(self) -> None:
        """Have its rows freed in slices, once nobody else has them; those in a file go with what has it."""
        let_go(self.old or (), self.new or (), *(self.shown or ()))
        if self.tables is not None:
            let_go(self.tables.old, self.tables.new)


class Mixed:
    """The changes of a statement that inserts, updates and deletes rows of one table.

    Where triggers fire the rows stay in the order in which they were changed, as a change for each run of one kind.
    """

    def __init__(
        self,
        relation: RelationDef,
        firings: Mapping[Operation, Firing | None],
        make: Callable[[], Gathering] = list,
    ) -> None:
        """``firings``: what each kind of change that the statement may make fires, in the order of their
        AFTER STATEMENT triggers; ``make``: what rows are gathered in.
        """
        self._make = make
        self._relation = relation
        self._firings = firings
        self._ordered = any(firings.values())
        self._changes: list[tuple[Operation, Gathering, Gathering]] = []

    def add(self, op: Operation, old: Row | None, new: Row | None) -> None:
        """Note a row."""
        last = self._changes[-1] if self._changes else None
        if last is None or last[0] != op:
            last = None if self._ordered else next((c for c in self._changes if c[0] == op), None)
            if last is None:
                last = (op, self._make(), self._make())
                self._changes.append(last)
        if old is not None:
            last[1].append(old)
        if new is not None:
            last[2].append(new)

    def let_go(self) -> None:
        """Have all of it freed in slices, unless it waits for other parts of its statement."""
        for _op, old, new in self._changes:
            let_go(old, new)

    async def follow(self, session: Session) -> None:
        """Check and follow up all of it, as ``after``."""
        changes = [
            Change(
                self._relation,
                None if op == "INSERT" else old,
                None if op == "DELETE" else new,
                self._firings.get(op),
                ends=False,
            )
            for op, old, new in self._changes
        ]
        ends = [Change(self._relation, None, (), firing) for firing in self._firings.values() if firing]
        await after(session, *changes, *ends)


async def inserted(
    session: Session, relation: RelationDef, rows: Sequence[Row], firing: Firing | None = None
) -> None:
    """Check new rows, fire AFTER triggers. Raises SqlError 23503, and what functions raise."""
    await after(session, Change(relation, None, rows, firing))


async def updated(
    session: Session,
    relation: RelationDef,
    old: Sequence[Row],
    new: Sequence[Row],
    firing: Firing | None = None,
) -> None:
    """Check and follow up updated rows. Raises SqlError 23503, and what actions (23502, 23514, 23505) and
    triggers raise.
    """
    await after(session, Change(relation, old, new, firing))


async def deleted(
    session: Session, relation: RelationDef, old: Sequence[Row], firing: Firing | None = None
) -> None:
    """Check and follow up deleted rows. Raises as ``updated``."""
    await after(session, Change(relation, old, None, firing))


async def after(session: Session, *changes: Change) -> None:
    """Check and follow up changes of one statement; those of a part of a statement when all its parts have run."""
    if session.parts is not None:
        session.parts.changes += changes
    else:
        await follow(session, changes)


async def follow(session: Session, changes: Sequence[Change]) -> None:
    """Check and follow up the changes of a whole statement now. Raises as ``updated``."""
    queue = _Queue(changes)
    firsts = set(changes)
    queue.ask(session)
    while queue.waiting:
        change = queue.waiting.popleft()
        firing = change.firing
        if change.new if change.old is None else change.old:
            held = change.held or {}
            if firing is not None:
                queue.close(change, firing.shows_rows(early=True))
                await firing.after(session, change.old, change.new, change.tables, held, early=True)
            await _check(session, change, queue)
            queue.ask(session)
            if firing is not None:
                queue.close(change, firing.shows_rows(early=False))
                await firing.after(session, change.old, change.new, change.tables, held, early=False)
        if firing is not None and change.ends:
            queue.close(change, True)
            await firing.after_statement(session, change.tables)
        if change not in firsts:
            change.let_go()
    for change in changes:
        change.let_go()


class _Queue:
    """The changes that wait, and which tables' statement triggers have fired: once for each table and kind of
    change.
    """

    def __init__(self, changes: Sequence[Change]) -> None:
        self.waiting = deque[Change]()
        self._ends: dict[tuple[int, str], Change] = {}
        self._tables: dict[tuple[int, str], Transitions] = {}
        for change in changes:
            self.put(change)

    def put(self, change: Change) -> None:
        """Let a change wait behind the others."""
        self.waiting.append(change)
        if change.firing is None:
            return
        key = (change.relation.oid, change.firing.op)
        if change.firing.transitions:
            change.tables = self._tables.setdefault(key, Transitions(change.relation))
            openly(change.tables.add, *(change.shown or (change.old, change.new)))
        if not change.ends:
            return
        before = self._ends.get(key)
        if before is not None:  # its statement triggers fire behind this one
            before.ends = False
        self._ends[key] = change

    def ask(self, session: Session) -> None:
        """Ask the conditions of the AFTER ROW triggers of changes that have come. Raises what they raise."""
        for change in reversed(self.waiting):
            if change.held is not None:
                break  # those before it have been asked, too
            change.held = (
                {} if change.firing is None else change.firing.holding(session, change.old, change.new)
            )

    def close(self, change: Change, shown: bool) -> None:
        """Close the transition tables of a change if functions are now ``shown`` them: what comes later is as
        of another statement.
        """
        if not shown or change.tables is None or change.firing is None:
            return
        key = (change.relation.oid, change.firing.op)
        if self._tables.get(key) is change.tables:
            del self._tables[key]
            self._ends.pop(key, None)

    async def begin(self, session: Session, firing: Firing) -> None:
        """Fire BEFORE STATEMENT, unless it has fired."""
        if (firing.relation.oid, firing.op) not in self._ends:
            await firing.before_statement(session)


async def _check(session: Session, change: Change, queue: _Queue) -> None:
    """Check the foreign keys that a change concerns and do their actions; check what was put off to the
    statement's end.
    """
    txn = session.block.ensure_txn()
    keys_off = change.relation.keys_off or session.derived.replica
    if change.old is not None and not keys_off:
        keys = incoming(session, change.relation.oid, above=not change.moves)
        for key in keys:
            if key.constraint.parent and _action(key, change) in _ACTS:
                continue  # that of the partitioned table is done, for all its partitions
            leaves = _leaves(key, keys) if key.child.kind == "p" else ()
            txn.next_statement()  # what the action before has changed is to be seen
            await _referenced(session, key, change, queue, leaves)
    if change.new is not None:
        txn.next_statement()
        for key in () if keys_off else outgoing(session, change.relation):
            await _referencing(session, key, change)
        note_unique(session, change.relation)
        await check_new(session, change.relation, change.new)


# --- the referencing side ---------------------------------------------------------------------------


async def _referencing(session: Session, key: ForeignKey, change: Change) -> None:
    if change.new is None:
        raise AssertionError("a referencing row is checked that a DELETE took away")
    whole = len(change.new) > KEYS_AT_ONCE and key.constraint.validated
    keys: Keys = {}
    mixed = False
    for before, row in _pairs(change.old, change.new):
        pause()
        canonical = key.child_key(row)
        if canonical is None:
            mixed = mixed or (key.full and key.is_mixed(row))
        elif before is None or key.child_key(before) != canonical:
            keys.setdefault(canonical, key.child_values(row))
        if len(keys) >= KEYS_AT_ONCE:
            if whole:
                break
            if not session.timing.is_deferred(key.constraint):
                await check_referencing(session, key, keys)
                let_go(keys)
                keys = {}
    if not keys and not mixed:
        return
    if whole and len(keys) >= KEYS_AT_ONCE:
        await check_one(session, change.relation, key.constraint)
        return
    if session.timing.is_deferred(key.constraint):
        session.timing.note(key.constraint, change.relation.oid, "child", keys, mixed=mixed)
        return
    if mixed:
        raise key.mixed_nulls()
    await check_referencing(session, key, keys)
    let_go(keys)


def note_unique(session: Session, relation: RelationDef) -> None:
    """Let the checks of keys that are deferred now wait for the commit."""
    for constraint in relation.constraints:
        if constraint.kind in "pu" and session.timing.is_deferred(constraint):
            session.timing.note(constraint, relation.oid, "unique", {})


# --- the referenced side ----------------------------------------------------------------------------


KEYS_AT_ONCE: Final = 20_000
"""Of a change that has more, foreign keys are looked at for so many at a time, or for the whole table."""
CHANGED: Final = "the rows that a statement changes"

_ACTS: Final = "cnd"
"""CASCADE, SET NULL, SET DEFAULT: actions that change rows."""


def _action(key: ForeignKey, change: Change) -> str:
    return key.definition.on_delete if change.new is None else key.definition.on_update


def _leaves(key: ForeignKey, keys: Sequence[ForeignKey]) -> list[ForeignKey]:
    """Return of ``keys`` those that a partitioned table's partitions have from its own, ``key``."""
    return [
        one
        for one in keys
        if one.child.kind != "p" and one.named[1].oid == key.constraint.oid and one is not key
    ]


async def _referenced(
    session: Session, key: ForeignKey, change: Change, queue: _Queue, leaves: Sequence[ForeignKey]
) -> None:
    if change.old is None:
        raise AssertionError("a referenced row is checked that an INSERT brought")
    whole = len(change.old) > KEYS_AT_ONCE and _goes_whole(key, change)
    deferred = session.timing.is_deferred(key.constraint) and _action(key, change) == "a"
    gone: Keys = {}
    renamed: dict[Canonical, Row] = {}
    for row, after in _pairs(change.old, change.new):
        pause()
        canonical = key.parent_key(row)
        if canonical is None:
            continue
        if after is not None:
            values, now = key.parent_values(row), key.parent_values(after)
            if all(map(same_image, values, now)):
                continue
            renamed[canonical] = now
        gone.setdefault(canonical, key.parent_values(row))
        if len(gone) >= KEYS_AT_ONCE:
            if whole:
                await check_one_released(session, key)
                return
            if not deferred:
                await _follow_gone(session, key, change, queue, leaves, gone, renamed)
                let_go(gone, renamed)
                gone, renamed = {}, {}
    if not gone:
        return
    await _follow_gone(session, key, change, queue, leaves, gone, renamed)
    let_go(gone, renamed)


def _goes_whole(key: ForeignKey, change: Change) -> bool:
    """Tell whether it says all of many keys that are gone that no row refers to one that is not there: there
    is nothing to do, and rows that were there before hold.
    """
    action = _action(key, change)
    return (
        (action == "a" or (action == "r" and change.new is None))
        and key.constraint.validated
        and not (change.relation.partition_of or key.constraint.parent or key.child.kind == "p")
    )


def _pairs(first: Sequence[Row] | None, second: Sequence[Row] | None) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of a change side by side, None for those it does not have."""
    return zip(
        repeat(None) if first is None else first, repeat(None) if second is None else second, strict=False
    )


async def _follow_gone(
    session: Session,
    key: ForeignKey,
    change: Change,
    queue: _Queue,
    leaves: Sequence[ForeignKey],
    gone: Keys,
    renamed: dict[Canonical, Row],
) -> None:
    """Do what is to be done about keys that no row has any more, or that rows have under another name."""
    action = _action(key, change)
    if action == "a" and session.timing.is_deferred(key.constraint):
        session.timing.note(key.constraint, change.relation.oid, "parent", gone)
    elif action in "ar":
        await check_referenced(session, key, gone, restrict=action == "r")
    else:
        _ask_to_act(session, key, action, None if change.new is None else renamed)
        in_use = session.timing.in_use
        in_use.append(change.relation.oid)  # the action is a trigger to PostgreSQL, and to what it fires
        try:
            with _as_owner(session, key.child):
                await _act(session, key, action, gone, None if change.new is None else renamed, queue, leaves)
        finally:
            in_use.pop()
        if action == "d":
            # the default may be the very key that went
            session.block.ensure_txn().next_statement()
            for one in leaves or (key,):
                await check_referenced(session, one, gone)


def _ask_to_act(session: Session, key: ForeignKey, action: str, renamed: dict[Canonical, Row] | None) -> None:
    deletes = action == "c" and renamed is None
    try:
        ask_to_act(session, key, None if deletes else _assigned(key, action, renamed))
    except SqlError as error:
        _within(error, delete_text(key) if deletes else update_text(key, action, of_delete=renamed is None))
        raise


def _as_owner(session: Session, child: RelationDef) -> AbstractContextManager[None]:
    """Be the owner of a table that an action changes: defaults, checks and BEFORE triggers run as it, AFTER
    triggers as the user, as in PostgreSQL.
    """
    if session.identity.current == child.owner:
        return nullcontext()
    return acting_as(session, child.owner, restricted=False)


async def _act(
    session: Session,
    key: ForeignKey,
    action: str,
    gone: Keys,
    renamed: dict[Canonical, Row] | None,
    queue: _Queue,
    leaves: Sequence[ForeignKey],
) -> None:
    """CASCADE, SET NULL, SET DEFAULT on the rows that refer to ``gone``; ``renamed`` None: it was deleted.

    Statement triggers of the table fire where no row refers to it, too, as the statement that PostgreSQL runs is run.
    """
    txn = session.block.ensure_txn()
    child = key.child
    if child.kind == "p":
        await _act_on_partitions(session, key, action, gone, renamed, queue, leaves)
        return
    children = key.children_in_pieces(txn, gone, of_parent=True, for_update=True)
    rows: list[StoredRow] = await anext(children, [])
    if not rows and not child.triggers:
        return
    deletes = action == "c" and renamed is None
    firing = None
    if child.triggers:
        assigned = _assigned(key, action, renamed)
        columns = () if deletes else updated_columns(session, child, assigned)
        firing = firing_of(session, child, "DELETE" if deletes else "UPDATE", columns)
    if firing is not None:
        await queue.begin(session, firing)
    if not rows:
        if firing is not None:
            queue.put(Change(child, [], None if deletes else [], firing))
        return
    if not deletes:
        prepare_unique(session, child)
    old: Gathering = []
    new: Gathering = []
    spilling = Spilling(session)
    try:
        async with aclosing(children):
            while rows:
                if deletes:
                    before = await _delete_children(session, child, rows, firing)
                else:
                    changes = await _new_rows(session, key, action, rows, renamed)
                    before, made = await _update_children(session, child, rows, changes, firing)
                    new = gathered(session, new, made, CHANGED)
                    let_go(changes, made)
                old = gathered(session, old, before, CHANGED)
                let_go(rows, before)
                if spilling.due:
                    await spilling.spill()
                rows = await anext(children, [])
    except (SqlError, DataError) as error:
        _within(error, delete_text(key) if deletes else update_text(key, action, of_delete=renamed is None))
        raise
    queue.put(Change(child, old, None if deletes else new, firing))


async def _update_children(
    session: Session,
    child: RelationDef,
    rows: Sequence[StoredRow],
    changes: Sequence[tuple[RowId, Row]],
    firing: Firing | None,
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Store what an action makes of rows; return what they were and are, but for those that triggers left as
    they were.
    """
    env = Env((), session, shared=Shared())
    shape = shape_of(session, child)
    if firing is not None and firing.before_row:
        wanted = [(row.row_id, row.values, new) for row, (_id, new) in zip(rows, changes, strict=True)]
        done = await update_each(session, firing, shape, wanted, env)
        return [row.old for row in done], [row.new for row in done]
    made = openly(shape.made, [row for _id, row in changes], env)
    updating = [(row.row_id, new) for row, new in zip(rows, made, strict=True)]
    await settle(session.block.ensure_txn().update(ShardId(child.oid), updating))
    return [row.values for row in rows], made


async def _act_on_partitions(
    session: Session,
    key: ForeignKey,
    action: str,
    gone: Keys,
    renamed: dict[Canonical, Row] | None,
    queue: _Queue,
    leaves: Sequence[ForeignKey],
) -> None:
    from engine.changes.constraints.routed_actions import (  # what follows its changes is here
        act_on_partitions,  # which changes rows as statements do
    )

    deletes = action == "c" and renamed is None
    try:
        changes = await act_on_partitions(
            session, key, leaves, gone, None if deletes else _assigned(key, action, renamed),
            lambda root, rows: _new_rows(session, root, action, rows, renamed), queue.begin,
        )  # fmt: skip
    except (SqlError, DataError) as error:
        _within(error, delete_text(key) if deletes else update_text(key, action, of_delete=renamed is None))
        raise
    for change in changes:
        queue.put(change)


def _assigned(key: ForeignKey, action: str, renamed: dict[Canonical, Row] | None) -> Sequence[int]:
    """Return the columns that an action sets."""
    return (
        key.constraint.attnums
        if action == "c"
        else [i + 1 for i in reset_columns(key, of_delete=renamed is None)]
    )


def _within(error: DataError, where: str) -> None:
    """Add the action to the CONTEXT of an error."""
    error.where = where if error.where is None else f"{error.where}\n{where}"


async def _delete_children(
    session: Session, child: RelationDef, rows: Sequence[StoredRow], firing: Firing | None
) -> Sequence[Row]:
    """CASCADE of a DELETE; returns the rows that are gone. One that a trigger keeps stays, and refers to
    nothing, as in PostgreSQL.
    """
    if firing is not None and firing.before_row:
        wanted = [(row.row_id, row.values) for row in rows]
        return [row.old for row in await delete_each(session, firing, shape_of(session, child), wanted)]
    await settle(session.block.ensure_txn().delete(ShardId(child.oid), [row.row_id for row in rows]))
    return [row.values for row in rows]


async def _new_rows(
    session: Session,
    key: ForeignKey,
    action: str,
    rows: Sequence[StoredRow],
    renamed: dict[Canonical, Row] | None,
) -> list[tuple[RowId, Row]]:
    changes = []
    if action == "c":
        if renamed is None:
            raise AssertionError("a change of keys cascades without the new key")
        for row in rows:
            pause()
            canonical = key.child_key(row.values)
            if canonical is None:
                raise AssertionError("a referencing row has a NULL in its key")
            cells = list(row.values)
            for i, assign, value in zip(key.child_at, key.assign, renamed[canonical], strict=True):
                cells[i] = None if value is None else assign(value)
            changes.append((row.row_id, tuple(cells)))
        return changes
    values = {
        i: _reset_value(session, key.child.columns[i], action)
        for i in reset_columns(key, of_delete=renamed is None)
    }
    for row in rows:
        pause()
        changes.append((row.row_id, tuple(values.get(i, cell) for i, cell in enumerate(row.values))))
    return changes


def _reset_value(session: Session, column: ColumnDef, action: str) -> Any:
    default = None if action == "n" else column_default(column, session.catalog)
    if default is None:
        return None
    make = compile_expr(default)
    return make((), Env((), session, shared=Shared()))


def shape_of(session: Session, relation: RelationDef) -> TableShape:
    """Return the compiled row checks of a table, kept with the catalog for sessions of one setting and one user."""
    kept: dict[Any, Any] = session.catalog.derived
    key = ("shape", relation.oid, session.output_settings, session.derived.user, session.derived.row_security)
    shape = kept.get(key)
    if shape is None:
        shape = kept[key] = TableShape.of(relation, session)
    found: TableShape = shape
    return found


# --- before the statement ---------------------------------------------------------------------------


class Reach:
    """Which tables a statement's effects may read or write, found before it starts, so that they can be locked.

    Locking them first keeps their definitions as they are: who alters a table takes it exclusively.
    """

    __slots__ = ("_causes", "_version", "reads", "writes")

    def __init__(self, session: Session, relation: RelationDef, what: str, assigned: frozenset[int]) -> None:
        """See ``add``."""
        self.reads: set[int] = set()
        self.writes: set[int] = set()
        self._version = session.catalog.version
        self._causes: list[tuple[str, frozenset[int]]] = []
        self.add(session, relation, what, assigned)

    def add(self, session: Session, relation: RelationDef, what: str, assigned: frozenset[int]) -> None:
        """``what``: insert, update (of the columns ``assigned``) or delete rows of ``relation``."""
        self._causes.append((what, assigned))
        self._find(session, relation, what, assigned)

    def renew(self, session: Session, relation: RelationDef) -> None:
        """Find the tables again if definitions have changed since; ``relation``'s has not."""
        if self._version != session.catalog.version:
            self.reads.clear()
            self.writes.clear()
            self._version = session.catalog.version
            for what, assigned in self._causes:
                self._find(session, relation, what, assigned)

    def _find(self, session: Session, relation: RelationDef, what: str, assigned: frozenset[int]) -> None:
        todo: list[tuple[RelationDef, str, frozenset[int]]] = [(relation, what, assigned)]
        seen: set[tuple[int, str, frozenset[int]]] = set()
        while todo:
            table, how, columns = todo.pop()
            if (table.oid, how, columns) in seen:
                continue
            seen.add((table.oid, how, columns))
            if how != "delete":
                for constraint in table.foreign_keys:
                    if how == "insert" or columns.intersection(constraint.attnums):
                        if constraint.foreign is None:
                            raise AssertionError(f"constraint {constraint.name} is no foreign key")
                        self.reads.update(with_partitions(session.catalog, constraint.foreign.table))
            if how == "insert":
                continue
            for child, constraint in references_to(session.catalog, table):
                foreign = constraint.foreign
                if foreign is None:
                    raise AssertionError(f"constraint {constraint.name} is no foreign key")
                if how == "update" and not columns.intersection(foreign.attnums):
                    continue
                action = foreign.on_delete if how == "delete" else foreign.on_update
                if action in "ar":
                    self.reads.add(child.oid)
                    continue
                self.writes.add(child.oid)
                if action == "c" and how == "delete":
                    todo.append((child, "delete", frozenset()))
                else:
                    computed = generated_from(child, constraint.attnums, session.catalog)
                    todo.append((child, "update", frozenset((*constraint.attnums, *computed))))

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes)


async def prepare(session: Session, relation: RelationDef, reach: Reach) -> None:
    """Lock the tables of ``reach`` by intention; ``relation``, which is about to change, is locked already.

    Raises Replan when a definition changed before its table was locked.
    """
    txn = session.block.ensure_txn()
    prepare_unique(session, relation)
    reach.renew(session, relation)
    if not reach:
        return
    before = session.catalog
    writes = [ShardId(oid) for oid in sorted(reach.writes)]
    await settle(txn.begin_write(writes, before.written_alone(writes)))
    for oid in sorted(reach.reads - reach.writes):
        await settle(txn.lock_table(ShardId(oid), "IS"))
    session.view.adopt_latest()
    after = session.catalog
    if after is before:
        return
    for oid in (relation.oid, *reach.reads, *reach.writes):
        old, new = before.relation_by_oid(oid), after.relation_by_oid(oid)
        if old is None or new is None or old.version != new.version:
            raise Replan


def may_bulk_load(session: Session, relation: RelationDef) -> bool:
    """Tell whether rows may be loaded as parts: that finds duplicate keys at once, also deferred ones,
    excludes nothing and fires nothing.

    Foreign keys are then checked for the whole table, in which rows that were there before one that is NOT
    VALID need not have it.
    """
    if relation.exclusions or firing_of(session, relation, "INSERT") is not None:
        return False
    if not all(constraint.validated for constraint in relation.foreign_keys):
        return False
    return not any(c.kind in "pu" and session.timing.is_deferred(c) for c in relation.constraints)


def prepare_unique(session: Session, relation: RelationDef) -> None:
    """Tell the transaction which keys of a table may hold duplicates until the commit."""
    deferrable = [c for c in relation.constraints if c.kind in "pu" and c.deferrable]
    if deferrable:
        txn = session.block.ensure_txn()
        for constraint in deferrable:
            txn.defer_unique(IndexId(constraint.index_oid), session.timing.is_deferred(constraint))
