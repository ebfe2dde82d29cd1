"""What queries and changes of rows need: privileges on tables, or on the columns that they name.

A view's owner needs the right to read what the view reads; who reads the view needs only the view (manual 41.5). Of the target of a
change the privilege to read is needed for those columns that its expressions name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.ddl.kinds import KIND_WORDS
from engine.ddl.needs import Needs, denied
from planner import query as q
from planner.partition import column_map
from planner.rights import Rights
from planner.walk import children

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.connection.session import Session
    from planner import statements as st
    from planner.catalog import RelationDef, RoleDef


def invokes(view: RelationDef) -> bool:
    """Tell whether rights to what a view reads are asked of whoever uses it (security_invoker)."""
    return view.options.get("security_invoker") in ("true", "on", "yes", "1")


class RowNeeds(Needs):
    """What a query or a change needs of a role.

    Attributes:
        calls: the statement holds bodies of users' functions, which read with the caller's rights.
    """

    def __init__(self, session: Session, role: RoleDef, catalog: CatalogSnapshot) -> None:
        """As ``Needs``; no bodies of functions."""
        super().__init__(session, role, catalog)
        self.calls = False

    def query(self, node: Any, role: RoleDef, skip: q.Range | None = None) -> None:
        """Check everything that a tree reads; inside a view its owner's rights count. ``skip``: is checked elsewhere, but for what a view reads."""
        rights = self.rights if role is self.role else Rights(self.catalog, role)
        stack = [node]
        used: dict[
            int, frozenset[int]
        ] = {}  # which columns of a view are named, by the identity of its range
        while stack:
            current = stack.pop()
            if isinstance(current, q.RelationRange):
                if current is not skip:
                    asked = self._caller() if current.invoker else rights
                    of_parent = current.parent != 0
                    oid = current.parent if of_parent else current.oid
                    self._read(self._relation(oid), asked, current.asked if of_parent else current.used)
                if current.guard is not None:  # the columns that policies name need no right
                    stack.append(current.guard.where)
                continue
            if isinstance(current, q.SubqueryRange) and current.parent:
                if current is not skip:
                    asked = self._caller() if current.invoker else rights
                    self._read(self._relation(current.parent), asked, current.asked)
                continue
            if isinstance(current, q.SubqueryRange) and current.view is not None:
                view = self._relation(current.view[0])
                asked = self._caller() if current.invoker else rights
                if current is not skip:
                    self._read(view, asked, used.get(id(current), frozenset()))
                reader = self._caller_role() if current.invoker else role
                owner = reader if invokes(view) else self.catalog.role_by_oid(view.owner)
                if owner is not None and (self.calls or not owner.superuser):
                    self.query(current.query, owner)
                continue
            if isinstance(current, q.Select):
                for number, item in enumerate(current.ranges):
                    if isinstance(item, q.SubqueryRange) and item.view is not None:
                        named = columns_of(current, number)
                        used[id(item)] = (
                            named if 0 not in named else frozenset(c.attnum for c in item.columns)
                        )
                for mark in current.row_marks:
                    marked = current.ranges[mark.range]
                    oid = marked.parent if isinstance(marked, q.RelationRange | q.SubqueryRange) else 0
                    if isinstance(marked, q.RelationRange) and not oid:
                        oid = marked.oid
                    if oid:
                        relation = self._relation(oid)
                        if not rights.columns(relation, (), "w"):
                            raise denied(KIND_WORDS[relation.kind], relation.name)
            stack.extend(children(current))

    def _caller_role(self) -> RoleDef:
        """Return the role of the session, with whose rights the bodies of functions run, those in views too."""
        return self.catalog.role(self.session.derived.user) or self.role

    def _caller(self) -> Rights:
        caller = self._caller_role()
        return self.rights if caller is self.role else Rights(self.catalog, caller)

    def _read(self, relation: RelationDef, rights: Rights, attnums: Collection[int]) -> None:
        if rights is self.rights and not relation.virtual:
            self._use(relation.schema)
        if not rights.columns(relation, attnums, "r"):
            raise denied(KIND_WORDS[relation.kind], relation.name)

    def _write(self, statement: q.Insert | q.Update | q.Delete | q.Merge) -> None:
        """Check what DML changes, and what it reads: of the target only the columns that its expressions name."""
        if not isinstance(statement, q.Merge) and statement.through is not None:
            self._through(statement, statement.through)
            return
        relation = self._used(statement.table)
        target: q.Range | None = None
        read: frozenset[int] | set[int] = frozenset()
        match statement:
            case q.Insert():
                self._have_columns(relation, [a for a in statement.attnums if a not in statement.filled], "a")
                if statement.on_conflict is not None and statement.on_conflict.action == "update":
                    assigned = [attnum for attnum, _ in statement.on_conflict.assignments]
                    self._have_columns(relation, assigned, "w")
                    read |= columns_of(statement.on_conflict) | columns_of(statement.on_conflict, 1)
                for arbiter in statement.on_conflict.arbiters if statement.on_conflict else ():
                    read |= {a for i in relation.indexes if i.oid == arbiter for a in i.attnums}
            case q.Update():
                self._have_columns(relation, statement.assigned, "w")
                target, read = _target(statement.source, relation)
            case q.Delete():
                self._have(relation, "d")
                target, read = _target(statement.source, relation)
            case q.Merge():
                target, read = _target(statement.source, relation)
                for action in statement.actions:
                    read |= columns_of((action.condition, action.values)) & {c.attnum for c in relation.live}
                    if action.action == "delete":
                        self._have(relation, "d")
                    elif action.action != "nothing":
                        self._have_columns(
                            relation, action.assigned, "w" if action.action == "update" else "a"
                        )
                read = read or {c.attnum for c in relation.live}
        if target is not None and relation.kind == "p":
            read = _of_parent(target, read, relation, self.catalog)
        if not isinstance(statement, q.Merge):
            read |= columns_of(statement.returning)
        if read:
            self._have_columns(relation, read, "r")
        self.query(statement, self.role, target)

    def _through(self, statement: q.Insert | q.Update | q.Delete, through: q.ThroughViews) -> None:
        """Check DML through views: the role needs rights to the first one, the owner of each to what that one is over."""
        letter = {q.Insert: "a", q.Update: "w", q.Delete: "d"}[type(statement)]
        checker: RowNeeds = self
        for number, use in enumerate(through.views):
            view = checker._used(use.oid) if number == 0 else checker._relation(use.oid)
            if letter == "d":
                checker._have(view, letter)
            else:
                checker._have_columns(view, use.assigned, letter)
            if use.read:
                checker._have_columns(view, use.read, "r")
            if not invokes(view):
                owner = self.catalog.role_by_oid(view.owner)
                if owner is None or owner.superuser:
                    if owner is not None and self.calls:  # what functions read is the caller's affair
                        self.query(statement, owner)
                    break
                calls = checker.calls
                checker = RowNeeds(self.session, owner, self.catalog)
                checker.calls = calls
        else:
            checker._write(replace(statement, through=None))
            return
        target = None if isinstance(statement, q.Insert) else statement.source.ranges[0]
        self.query(statement, self.role, target if isinstance(target, q.RelationRange) else None)

    def _copy(self, statement: st.Copy) -> None:
        if statement.query is not None:
            self.query(statement.query, self.role)
        else:
            letter = "a" if statement.is_from else "r"
            self._have_columns(self._used(statement.table), statement.attnums, letter)


def _target(source: q.Select, relation: RelationDef) -> tuple[q.Range, frozenset[int]]:
    """Return the range of an UPDATE's target, a table or a view, and which of its columns the statement itself reads.

    The source outputs the row id and the old row whoever asks, so those targets are not counted.
    """
    target = source.ranges[0]
    named = source.targets[1 + len(relation.live) :]
    inner = tuple(item for item in source.ranges[1:] if not isinstance(item, q.RelationRange))
    return target, columns_of((named, source.where, source.from_, inner, source.ctes))


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


def columns_of(node: Any, range_: int = 0) -> frozenset[int]:
    """Return the columns of a range that a query or its parts name, be it from within its sub-queries; 0: the whole row."""
    found: set[int] = set()
    stack: list[tuple[Any, int]] = [
        (part, 0) for part in (children(node) if isinstance(node, q.QueryBase) else (node,))
    ]
    while stack:
        current, level = stack.pop()
        if isinstance(current, tuple):
            stack.extend((item, level) for item in current if item is not None)
            continue
        if isinstance(current, q.Var):
            if current.range == range_ and current.level == level and current.attnum >= 0:
                found.add(current.attnum)
            continue
        inside = level + isinstance(current, q.Select | q.SetOp | q.Values)
        stack.extend((child, inside) for child in children(current))
    return frozenset(found)
