"""What queries and changes of rows need: privileges on tables, or on the columns that they name.

A view's owner needs the right to read what the view reads; who reads the view needs only the view (manual 41.5). Of the target of a
change the privilege to read is needed for those columns that its expressions name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from engine.ddl.kinds import KIND_WORDS
from engine.ddl.needs import Needs, denied
from planner import query as q
from planner.bind.readers import invokes
from planner.errors import SqlError
from planner.exprs import columns_named
from planner.partition import column_map
from planner.rights import Rights
from planner.typefacts import FIRST_USER_OID
from planner.walk import children, walk

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from planner import statements as st
    from planner.catalog import RelationDef, RoleDef


class RowNeeds(Needs):
    """What a query or a change needs of a role."""

    def query(self, node: Any, role: RoleDef, skip: q.Range | None = None) -> None:
        """Check everything that a tree reads, as ``role``; inside a view its owner's rights count (``planner.bind.readers``).

        ``skip``: is checked elsewhere, but for what a view reads, or a policy.
        """
        stack = [node]
        used: dict[
            int, frozenset[int]
        ] = {}  # which columns of a view are named, by the identity of its range
        while stack:
            current = stack.pop()
            if isinstance(current, q.RelationRange):
                reader = self._reader(current, role)
                if current is not skip:
                    of_parent = current.parent != 0
                    oid = current.parent if of_parent else current.oid
                    named = current.asked if of_parent else current.used
                    self._read(self._relation(oid), self._rights_of(reader), named)
                if current.guard is not None:  # the columns that policies name need no right
                    if reader is role:
                        stack.append(current.guard.where)
                    else:
                        self.query(current.guard.where, reader)
                continue
            if isinstance(current, q.SubqueryRange) and current.parent:
                reader = self._reader(current, role)
                parent = self._relation(current.parent)
                if current is not skip:
                    self._read(parent, self._rights_of(reader), current.asked)
                if parent.row_security:
                    self._guards(current.query, reader)
                continue
            if isinstance(current, q.SubqueryRange) and current.view is not None:
                view = self._relation(current.view[0])
                if current is not skip:
                    asked = self._rights_of(self._reader(current, role))
                    self._read(view, asked, used.get(id(current), frozenset()))
                owner = self._as_view(view)
                if view.oid >= FIRST_USER_OID or not owner.superuser:
                    self.query(current.query, owner)
                continue
            if isinstance(current, q.Select):
                for number, item in enumerate(current.ranges):
                    if isinstance(item, q.SubqueryRange) and item.view is not None:
                        named = columns_named(current, number)
                        used[id(item)] = (
                            named if 0 not in named else frozenset(c.attnum for c in item.columns)
                        )
                for mark in current.row_marks:
                    marked = current.ranges[mark.range]
                    oid = _named_by(marked)
                    if oid:
                        rights = self._rights_of(self._reader(marked, role))
                        relation = self._relation(oid)
                        if not rights.columns(relation, (), "w"):
                            raise denied(KIND_WORDS[relation.kind], relation.name)
            stack.extend(children(current))

    def _guards(self, query: q.QueryExpr, reader: RoleDef) -> None:
        """Check what the policies of a partitioned table read, which are the same ones in all of its partitions."""
        for node in walk(query):
            if isinstance(node, q.RelationRange) and node.guard is not None:
                self.query(node.guard.where, reader)
                return

    def _rights_of(self, role: RoleDef) -> Rights:
        return self.rights if role is self.role else Rights(self.catalog, role)

    def _reader(self, range_: q.Range, role: RoleDef) -> RoleDef:
        """Return the role as which a range is read that stands in what ``role`` reads."""
        if range_.invoker:
            return self.role
        return self._as_view(self._relation(range_.within)) if range_.within else role

    def _as_view(self, view: RelationDef) -> RoleDef:
        """Return the role as which a view reads, and is changed through."""
        if invokes(view):
            return self.role
        return self.catalog.role_by_oid(view.owner) or self.role

    def _read(self, relation: RelationDef, rights: Rights, attnums: Collection[int]) -> None:
        if rights is self.rights and not relation.virtual:
            self._reach(relation)
        if not rights.columns(relation, attnums, "r"):
            raise denied(KIND_WORDS[relation.kind], relation.name)

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
        """Check what DML asks of the table that it changes; return the range that this is in its source, if it is one."""
        target: q.Range | None = None
        read: frozenset[int] | set[int] = frozenset()
        match statement:
            case q.Insert():
                self._have_columns(relation, statement.given, "a")
                if statement.on_conflict is not None and statement.on_conflict.action == "update":
                    assigned = [attnum for attnum, _ in statement.on_conflict.assignments]
                    self._have_columns(relation, assigned, "w")
                    read |= columns_named(statement.on_conflict) | columns_named(statement.on_conflict, 1)
                for arbiter in statement.on_conflict.arbiters if statement.on_conflict else ():
                    read |= {a for i in relation.indexes if i.oid == arbiter for a in i.attnums}
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
                read = read or {c.attnum for c in relation.live}
        if target is not None and relation.kind == "p":
            read = _of_parent(target, read, relation, self.catalog)
        if not isinstance(statement, q.Merge):
            read |= columns_named(statement.returning)
        if read:
            self._have_columns(relation, read, "r")
        return target

    def _through(self, statement: q.Insert | q.Update | q.Delete, through: q.ThroughViews) -> q.Range | None:
        """As ``_change``, through views: the role needs rights to the first one, who each reads as to what that one is over."""
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
                checker = RowNeeds(self.session, self._as_view(used), self.catalog)
        return None if isinstance(statement, q.Insert) else statement.source.ranges[0]


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
    """Return the range of what an UPDATE and its kin change, a table or a view, and which of its columns the statement itself reads.

    The source outputs the row id, the old row and which partition has it whoever asks, so those targets are not counted.
    """
    source = statement.source
    target = source.ranges[0]
    named = source.targets[1 + len(relation.live) : -1 if statement.leaves else None]
    inner = tuple(item for item in source.ranges[1:] if not isinstance(item, q.RelationRange))
    return target, columns_named((named, source.where, source.from_, inner, source.ctes))


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
