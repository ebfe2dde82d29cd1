"""What queries and changes of rows need: privileges on tables, or on the columns that they name.

A view's owner needs the right to read what the view reads; who reads the view needs only the view (manual
41.5). Of the target of a change the privilege to read is needed for those columns that its expressions name.
What each kind of range and query asks is a table with a row for all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from engine.definitions.needs.needs import Needs, denied
from planner import query as q
from planner.base.errors import SqlError
from planner.base.total import members, total
from planner.bind.stored.readers import invokes
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.catalog.rights import Rights
from planner.partitions.bounds import column_map
from planner.query.exprs import columns_named
from planner.query.walk import children, walk
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from planner import statements as st
    from planner.catalog import RelationDef, RoleDef


class RowNeeds(Needs):
    """What a query or a change needs of a role."""

    def query(self, node: object, role: RoleDef, skip: q.Range | None = None, *, reach: bool = True) -> None:
        """Check everything that a tree reads, as ``role``; inside a view its owner's rights count
        (``planner.bind.stored.readers``).

        ``skip``: is checked elsewhere, but for what a view reads, or a policy. ``reach``: USAGE of schemas,
        too, which what a view or a policy reads does not need: its names were looked up when it was made.
        """
        reading = _Reading(self, role, skip, reach)
        waiting = deque([node])  # so that what stands first, and outside, is told first
        while waiting:
            current = waiting.popleft()
            ask = _ASKS.get(type(current))
            below = children if ask is None else ask(reading, current)
            waiting.extend(below(current))

    def _rights_of(self, role: RoleDef) -> Rights:
        return self.rights if role is self.role else Rights(self.catalog, role)

    def reader(self, range_: q.Range, role: RoleDef) -> RoleDef:
        """Return the role as which a range is read that stands in what ``role`` reads."""
        if range_.invoker:
            return self.role
        return self.as_view(self._relation(range_.within)) if range_.within else role

    def as_view(self, view: RelationDef) -> RoleDef:
        """Return the role as which a view reads, and is changed through."""
        if invokes(view):
            return self.role
        return self.catalog.role_by_oid(view.owner) or self.role

    def relation(self, oid: int) -> RelationDef:
        """Return a relation. Raises Replan for one that is gone."""
        return self._relation(oid)

    def lock(self, oid: int, reader: RoleDef) -> None:
        """UPDATE on some column, for the rows that a SELECT locks."""
        relation = self._relation(oid)
        if not self._rights_of(reader).columns(relation, (), "w"):
            raise denied(RELATION_KINDS[relation.kind].word, relation.name)

    def read(self, oid: int, reader: RoleDef, attnums: Collection[int], *, reach: bool) -> None:
        """SELECT on columns, of ``reader``; with ``reach`` USAGE of the schema where that is who asks."""
        relation, rights = self._relation(oid), self._rights_of(reader)
        if reach and rights is self.rights and not relation.virtual:
            self._reach(relation)
        if not rights.columns(relation, attnums, "r"):
            raise denied(RELATION_KINDS[relation.kind].word, relation.name)

    def query_statement(self, statement: st.QueryStatement) -> None:
        """What its query reads."""
        self.query(statement.query, self.role)

    def declare_cursor(self, statement: st.DeclareCursor) -> None:
        """What its query reads; that it stands in a block comes first, as in PostgreSQL."""
        if self.session.block.is_alone and not statement.hold:
            raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        self.query(statement.query, self.role)

    def change_rows(self, statement: q.Insert | q.Update | q.Delete | q.Merge) -> None:
        """Check what DML changes, and what it reads: of the target only the columns that its expressions name."""
        if isinstance(statement, q.Merge) or statement.through is None:
            target = self._change(statement, self._used(statement.table))
        else:
            target = self._through(statement, statement.through)
        self.query(statement, self.role, target)

    def _change(
        self, statement: q.Insert | q.Update | q.Delete | q.Merge, relation: RelationDef
    ) -> q.Range | None:
        """Check what DML asks of the table that it changes; return the range that this is in its source, if
        it is one.
        """
        target: q.Range | None = None
        read: frozenset[int] | set[int] = frozenset()
        match statement:
            case q.Insert():
                self._have_columns(relation, statement.given, "a")
                if statement.on_conflict is not None and statement.on_conflict.action == "update":
                    assigned = [attnum for attnum, _ in statement.on_conflict.assignments]
                    self._have_columns(relation, assigned, "w")
                    read |= columns_named(statement.on_conflict) | columns_named(statement.on_conflict, 1)
                if statement.on_conflict is not None:
                    read |= statement.on_conflict.asked
            case q.Update():
                self._have_columns(relation, statement.assigned, "w")
                target, read = _target(statement, relation)
            case q.Delete():
                self._have(relation, "d")
                target, read = _target(statement, relation)
            case q.Merge():
                target, read = _target(statement, relation)
                for action in statement.actions:
                    read |= columns_named((action.condition, action.values)) & {
                        c.attnum for c in relation.live
                    }
                    if action.action == "delete":
                        self._have(relation, "d")
                    elif action.action != "nothing":
                        self._have_columns(relation, action.given, "w" if action.action == "update" else "a")
                if not read and all(action.action == "nothing" for action in statement.actions):
                    self._have_columns(relation, (), "r")
        if target is not None and relation.kind == "p":
            read = _of_parent(target, read, relation, self.catalog)
        if not isinstance(statement, q.Merge):
            read |= columns_named(statement.returning)
        if read:
            self._have_columns(relation, read, "r")
        return target

    def _through(self, statement: q.Insert | q.Update | q.Delete, through: q.ThroughViews) -> q.Range | None:
        """As ``_change``, through views: the role needs rights to the first one, who each reads as to what
        that one is over.
        """
        checker: RowNeeds = self
        for number, use in enumerate(through.uses):
            used = checker._used(use.oid) if number == 0 else checker._relation(use.oid)
            if isinstance(statement, q.Insert):
                checker._have_columns(used, use.inserted, "a")
            if isinstance(statement, q.Update) or use.updated:
                checker._have_columns(used, use.updated, "w")
            if isinstance(statement, q.Delete):
                checker._have(used, "d")
            if use.read is not None:
                checker._have_columns(used, use.read, "r")
            if use is not through.uses[-1]:
                checker = RowNeeds(self.session, self.as_view(used), self.catalog)
        return None if isinstance(statement, q.Insert) else statement.source.ranges[0]


_Below: TypeAlias = Callable[[Any], Iterable[Any]]


def _sampling(item: Any) -> Iterable[Any]:
    """What is below a table that has been looked at: sub-selects among what it is sampled by."""
    return () if item.sample is None else (item.sample,)


def _sampling_of_parts(item: Any) -> Iterable[Any]:
    """As ``_sampling``, of a partitioned table, whose parts have all the same."""
    first = next((node for node in walk(item.query) if isinstance(node, q.RelationRange)), None)
    return () if first is None else _sampling(first)


def _nothing(node: object) -> Iterable[Any]:
    """What is below a node that has been looked at with all that is in it."""
    return ()


class _Reading:
    """One walk over what a tree reads; its methods ask what a node asks, and return what is below it that has
    to be looked at, too.
    """

    __slots__ = ("_needs", "_reach", "_role", "_skip", "_used")

    def __init__(self, needs: RowNeeds, role: RoleDef, skip: q.Range | None, reach: bool) -> None:
        self._needs = needs
        self._role = role
        self._skip = skip
        self._reach = reach
        # which columns of a view are named, by the identity of its range
        self._used: dict[int, frozenset[int]] = {}

    def relation(self, item: q.RelationRange) -> _Below:
        """A table: SELECT on the columns that are used of it, or of the partitioned one that it stands for."""
        needs = self._needs
        reader = needs.reader(item, self._role)
        if item is not self._skip:
            oid, named = (item.parent, item.asked) if item.parent else (item.oid, item.used)
            needs.read(oid, reader, named, reach=self._reach and not item.looked_up)
        if item.guard is not None:  # the columns that policies name need no right
            needs.query(item.guard.where, reader, reach=False)
        return _sampling

    def subquery(self, item: q.SubqueryRange) -> _Below:
        """A sub-query asks what is in it, a partitioned table as a table, a view as a view."""
        if item.parent:
            return self._partitioned(item)
        return children if item.view is None else self._view(item, item.view[0])

    def _partitioned(self, item: q.SubqueryRange) -> _Below:
        """SELECT on the partitioned table; what its policies read, which are the same ones in all of its partitions."""
        needs = self._needs
        reader = needs.reader(item, self._role)
        parent = needs.relation(item.parent)
        if item is not self._skip:
            needs.read(item.parent, reader, item.asked, reach=self._reach and not item.looked_up)
        if parent.row_security:
            for node in walk(item.query):
                if isinstance(node, q.RelationRange) and node.guard is not None:
                    needs.query(node.guard.where, reader, reach=False)
                    break
        return _sampling_of_parts

    def _view(self, item: q.SubqueryRange, oid: int) -> _Below:
        """SELECT on the view; of its owner, or of who asks where it is a security_invoker, what it reads."""
        needs = self._needs
        view = needs.relation(oid)
        if item is not self._skip:
            named = self._used.get(id(item), frozenset())
            needs.read(oid, needs.reader(item, self._role), named, reach=self._reach and not item.looked_up)
        owner = needs.as_view(view)
        if oid >= FIRST_USER_OID or not owner.superuser:
            needs.query(item.query, owner, reach=False)
        return _nothing

    def row_check(self, check: q.RowCheck) -> _Below:
        """What a policy or a view asks of new rows reads as those do: its names were looked up when it was made."""
        self._needs.query(check.condition, self._role, reach=False)
        return _nothing

    def select(self, node: q.Select) -> _Below:
        """Which columns of views it names; UPDATE on what it locks."""
        needs = self._needs
        for number, item in enumerate(node.ranges):
            if isinstance(item, q.SubqueryRange) and item.view is not None:
                named = columns_named(node, number)
                whole = frozenset(c.attnum for c in item.columns)
                self._used[id(item)] = named if 0 not in named else whole
        for mark in node.row_marks:
            marked = node.ranges[mark.range]
            oid = _named_by(marked)
            if oid:
                needs.lock(oid, needs.reader(marked, self._role))
        return children

    def below(self, node: object) -> _Below:
        """What is in it asks, if anything does."""
        return children


_ASKS: Final[Mapping[type, Callable[[_Reading, Any], _Below]]] = {
    **total(
        "rights of what stands in FROM",
        dict.fromkeys(vars(q)[kind.__name__] for kind in q.Range.__subclasses__()),
        {
            q.RelationRange: _Reading.relation,
            q.SubqueryRange: _Reading.subquery,
            q.CteRange: _Reading.below,  # the query that it names is among the tree's
            q.StepRange: _Reading.below,  # rows of a statement that was asked by itself, or of a trigger's
            q.FunctionRange: _Reading.below,  # EXECUTE is asked for as of any call
        },
    ),
    **total(
        "rights of queries",
        members(q.QueryExpr),
        {q.Select: _Reading.select, q.SetOp: _Reading.below, q.Values: _Reading.below},
    ),
    q.RowCheck: _Reading.row_check,
}  # fmt: skip
"""What a node of a query asks, by its class; what is in neither table is an expression, which asks by what is in it."""


def _named_by(marked: q.Range) -> int:
    """Return the table or view whose rows a locking clause is about, 0 for a sub-query, which has none of its own."""
    if isinstance(marked, q.RelationRange):
        return marked.parent or marked.oid
    if isinstance(marked, q.SubqueryRange):
        return marked.parent or (0 if marked.view is None else marked.view[0])
    return 0


def _target(
    statement: q.Update | q.Delete | q.Merge, relation: RelationDef
) -> tuple[q.Range, frozenset[int]]:
    """Return the range of what an UPDATE and its kin change, a table or a view, and which of its columns the
    statement itself reads.

    The source outputs the row id, the old row and which partition has it whoever asks, so those targets are
    not counted.
    """
    source = statement.source
    target = source.ranges[0]
    named = source.targets[1 + len(relation.live) : -1 if statement.leaves else None]
    inner = tuple(item for item in source.ranges[1:] if not isinstance(item, q.RelationRange))
    # WHERE CURRENT OF names no column: that a row is found by its key is this server's way
    by_cursor = not isinstance(statement, q.Merge) and statement.current_of
    where = None if by_cursor else source.where
    return target, columns_named((named, where, source.from_, inner, source.ctes))


def _of_parent(
    target: q.Range, attnums: Iterable[int], parent: RelationDef, catalog: CatalogSnapshot
) -> frozenset[int]:
    """Return columns of what a partitioned table is read as (``planner.rules.partitions``) as that table's own."""
    if isinstance(target, q.SubqueryRange):
        live = parent.live
        return frozenset(live[a - 1].attnum if 0 < a <= len(live) else 0 for a in attnums if a <= len(live))
    if isinstance(target, q.RelationRange) and target.parent:
        leaf = catalog.relation_by_oid(target.oid)
        back = {} if leaf is None else {own: above for above, own in column_map(parent, leaf).items()}
        return frozenset(back.get(a, a) for a in attnums)
    return frozenset(attnums)
