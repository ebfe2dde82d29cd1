"""Row-level security: what policies make of a statement that is about to run (manual 5.8).

    SELECT v FROM t WHERE f(v)         range 0: t, guard: SELECT FROM t WHERE owner = CURRENT_USER
    UPDATE t SET v = 1 WHERE f(v)      likewise, and row_checks: what the new rows have to keep to

A *guard* (``RelationRange.guard``) is a condition that a row has to meet before anything else of the
statement may look at it: executors test it where they read the table. It stands as a query of its own, so
that walks over a tree take its columns for what they are, those of another level. A *row check* is what a row
to be stored, or to be changed by ON CONFLICT and MERGE, has to meet; else 42501.

Whose policies count: of a statement's own ranges the current user's, of those within a view its owner's, of
those in the body of a function that takes the place of its call, and within a security_invoker view, the
current user's. Superusers and roles with BYPASSRLS are exempt, and a table's owner unless it is FORCEd. Which
policies make which part is PostgreSQL's (``get_row_security_policies``). Referential actions and checks,
triggers on the way and TRUNCATE see all rows.

It is done after bodies of functions have taken the place of calls, for every plan anew; a plan that it has
looked at a table with row security for is thrown away with the next change of the catalog
(``BoundStatement.row_security``), for roles count too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext, RowSecurity
from planner.bind.define.policy import stored_policy
from planner.bind.query.guarding import guard_of, own_vars
from planner.bind.stored import table_query
from planner.bind.stored.inline import inline_calls
from planner.bind.stored.readers import as_view, invokes
from planner.catalog import Catalog, RelationDef, RoleDef
from planner.catalog.policy import PolicyCommand, PolicyDef
from planner.catalog.relation_kinds import TABLES
from planner.catalog.rights import Rights
from planner.facts import BOOL
from planner.query import (
    BoolExpr,
    Const,
    Delete,
    Expr,
    Insert,
    Merge,
    Param,
    RelationRange,
    RowCheck,
    RowCheckKind,
    Select,
    SubLink,
    SubqueryRange,
    ThroughViews,
    Update,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.walk import children, walk
from planner.types import SqlType

_Changing = TypeVar("_Changing", Update, Delete, Merge)
_BOOL: Final = SqlType(BOOL)


def secured(context: BindContext, statement: Any) -> Any:
    """Return a statement, or a query, as the policies of what it reads and writes let it run.

    Raises SqlError 42501 where ``row_security`` is off and policies would count, 42P17 for policies that need
    themselves, 0A000 for COPY FROM and SUBSCRIBE of such tables.
    """
    if context.defines:
        return statement
    # versions has every relation that was looked at: plans rest on that
    if not any(_is_secured(context, oid) for oid in (*context.versions, *context.reads)):
        return statement
    context.flags.add("row security")
    if context.security is None:
        raise RuntimeError("a table with row-level security is read for nobody")
    return _Securing(context, context.security).statement(statement)


def applies(security: RowSecurity, relation: RelationDef, role: RoleDef) -> bool:
    """Tell whether policies of a relation count for a role, whatever ``row_security`` says."""
    if not relation.row_security or role.superuser or role.bypass_rls:
        return False
    return relation.force_row_security or not Rights(security.catalog, role).owns(relation.owner)


def _is_secured(context: BindContext, oid: int) -> bool:
    relation = context.catalog.relation_by_oid(oid) if oid else None
    return relation is not None and relation.row_security


def secured_table(node: object, catalog: Catalog, security: RowSecurity) -> RelationDef | None:
    """Return a table that a SUBSCRIBE reads and whose policies count, None where there is none.

    They count for whoever reads it, the owner of the view that it stands in or the user; and, where such an
    owner is exempt, for the user all the same.
    """
    stack: list[tuple[Any, RoleDef]] = [(node, security.role)]
    while stack:
        item, role = stack.pop()
        if isinstance(item, RelationRange):
            relation = catalog.relation_by_oid(item.oid)
            reader = security.role if item.invoker else role
            if item.within:
                reader = _reader_of(item.within, catalog, security, security.role)
            if relation is not None and any(
                applies(security, relation, one) for one in (reader, security.role)
            ):
                return relation
        elif isinstance(item, SubqueryRange) and item.view is not None:
            role = _reader_of(item.view[0], catalog, security, security.role)
        stack.extend((child, role) for child in children(item))
    return None


def _reader_of(oid: int, catalog: Catalog, security: RowSecurity, caller: RoleDef) -> RoleDef:
    """Return the role as which a view reads that ``caller`` uses."""
    view = catalog.relation_by_oid(oid)
    if view is None or invokes(view):
        return caller
    return security.catalog.role_by_oid(view.owner) or caller


@dataclass(frozen=True, slots=True)
class _Policies:
    """The policies of a table that count for a role and a kind of access, by name."""

    permissive: Sequence[PolicyDef]
    restrictive: Sequence[PolicyDef]


@dataclass(frozen=True, slots=True)
class _Target:
    """A table that is changed, and the role whose policies count for it: that of ``view``, through which it
    is changed (0: through none).
    """

    relation: RelationDef
    role: RoleDef
    view: int


class _Securing:
    """Puts guards and row checks into a tree."""

    def __init__(self, context: BindContext, security: RowSecurity) -> None:
        self.context = context
        self.security = security
        self.caller = security.role
        self.role = security.role  # whose policies count in what is visited
        self.open: list[int] = []  # the tables whose policies are being visited

    # -- statements --------------------------------------------------------------------------------

    def statement(self, node: object) -> Any:
        match node:
            case st.Copy() if node.query is None and node.table:
                return self._copy(node)
            case st.Subscribe() | st.DeclareSubscribe() | st.CreateSubscription():
                self._refuse_subscription(node)
                return node
            case st.Copy() if node.subscribe is not None:
                self._refuse_subscription(node)
                return node
            case st.RefreshMaterializedView():
                view = self.context.catalog.relation_by_oid(node.table)
                owner = None if view is None else self.security.catalog.role_by_oid(view.owner)
                self.role = self.caller = owner or self.role
        return self.visit(node)

    def _copy(self, node: st.Copy) -> st.Copy:
        relation = self.context.catalog.relation_by_oid(node.table)
        if relation is None:
            raise AssertionError(f"relation {node.table} is gone")
        if not self._counts(relation, self.role):
            return node
        if node.is_from:
            raise SqlError(
                "0A000",
                "COPY FROM not supported with row-level security",
                hint="Use INSERT statements instead.",
            )
        return replace(node, query=self.visit(table_query(relation, node.attnums)))

    def _refuse_subscription(self, node: object) -> None:
        found = secured_table(node, self.context.catalog, self.security)
        if found is not None:
            raise not_supported(f'SUBSCRIBE of table "{found.name}", which has row-level security')

    def _as(self, role: RoleDef, node: object) -> Any:
        before, self.role = self.role, role
        try:
            return self.visit(node)
        finally:
            self.role = before

    # -- trees -------------------------------------------------------------------------------------

    def visit(self, node: object) -> Any:
        """Return a node with what it reads guarded."""
        match node:
            case Const() | Param() | Var():
                return node
            case Insert():
                return self._insert(node)
            case Update() | Delete() | Merge():
                return self._change(node)
            case Select():
                return self._select(node)
            case SubqueryRange() if node.view is not None:
                return self._view(node)
        return replace_children(node, self.visit)

    def _view(self, node: SubqueryRange) -> SubqueryRange:
        if node.view is None:
            raise AssertionError("a sub-query is no view")
        made: SubqueryRange = self._as(self._reader(node.view[0]), replace(node, view=None))
        return replace(made, view=node.view)

    def _reader(self, oid: int) -> RoleDef:
        """Return the role as which a view reads."""
        return _reader_of(oid, self.context.catalog, self.security, self.caller)

    def _select(self, node: Select, target: RelationRange | None = None) -> Select:
        """``target``: range 0 of a statement that changes it, guarded already."""
        marked = {mark.range for mark in node.row_marks}
        ranges = []
        for number, item in enumerate(node.ranges):
            if number == 0 and target is not None:
                ranges.append(target)
            elif isinstance(item, RelationRange):
                ranges.append(self._relation(item, ("w", "r") if number in marked else ("r",)))
            else:
                ranges.append(self.visit(item))
        made = replace_children(replace(node, ranges=()), self.visit)
        return replace(made, ranges=tuple(ranges))

    # -- ranges ------------------------------------------------------------------------------------

    def _relation(self, node: RelationRange, commands: Sequence[PolicyCommand]) -> RelationRange:
        if node.sample is not None:
            node = replace(node, sample=self.visit(node.sample))
        relation = self.context.catalog.relation_by_oid(node.oid)
        role = self.role
        if node.invoker:
            role = self.caller
        elif node.within:
            role = self._reader(node.within)
        if relation is None or node.virtual or not self._counts(relation, role):
            return node
        return replace(node, guard=self._guard(relation, role, commands))

    def _counts(self, relation: RelationDef, role: RoleDef) -> bool:
        """Tell whether policies of a relation count for a role. Raises SqlError 42501 where they may not."""
        if not applies(self.security, relation, role):
            return False
        if not self.security.enforced:
            owner = Rights(self.security.catalog, role).owns(relation.owner)
            raise SqlError(
                "42501",
                f'query would be affected by row-level security policy for table "{relation.name}"',
                hint="To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY."
                if owner
                else None,
            )
        return True

    def _guard(self, relation: RelationDef, role: RoleDef, commands: Sequence[PolicyCommand]) -> Select:
        quals: list[Expr] = []
        for command in commands:
            quals += self._using(relation, self._policies(relation, role, command))
        quals = list(dict.fromkeys(self._visited(relation, role, quals)))
        return guard_of(relation, _all_of(quals))

    def _policies(self, relation: RelationDef, role: RoleDef, command: PolicyCommand) -> _Policies:
        roles = Rights(self.security.catalog, role).roles
        found = [policy for policy in relation.policies if policy.is_about(command, roles)]
        return _Policies(
            [policy for policy in found if policy.permissive],
            [policy for policy in found if not policy.permissive],
        )

    def _using(self, relation: RelationDef, policies: _Policies) -> list[Expr]:
        """Return what a row that is read has to meet, all of it."""
        allowed = [self._bound(relation, p.using_sql) for p in policies.permissive if p.using_sql]
        if not allowed:
            return [_FALSE]
        return [
            *(self._bound(relation, p.using_sql) for p in policies.restrictive if p.using_sql),
            _any_of(allowed),
        ]

    def _bound(self, relation: RelationDef, sql: str) -> Expr:
        expr: Expr = stored_policy(self.context.for_stored(sql), sql, relation)
        return expr

    def _visited(self, relation: RelationDef, role: RoleDef, exprs: Iterable[Expr]) -> list[Expr]:
        """Return expressions of policies with calls inlined, and what they read guarded in its turn. Raises
        SqlError 42P17.
        """
        made: list[Expr] = [inline_calls(self.context, expr) for expr in exprs]
        if not any(isinstance(node, SubLink) for expr in made for node in walk(expr)):
            return made
        if relation.oid in self.open:
            raise SqlError("42P17", f'infinite recursion detected in policy for relation "{relation.name}"')
        self.open.append(relation.oid)
        try:
            return [self._as(role, expr) for expr in made]
        finally:
            self.open.pop()

    # -- changes -----------------------------------------------------------------------------------

    def _target(self, oid: int, through: ThroughViews | None) -> _Target | None:
        """Return the table that is changed and whose policies count, None where there are none."""
        relation = self.context.catalog.relation_by_oid(oid)
        view = 0 if through is None else through.uses[-2].oid
        role = self._reader(view) if view else self.role
        if relation is None or relation.kind not in TABLES or not self._counts(relation, role):
            return None
        return _Target(relation, role, view)

    def _insert(self, node: Insert) -> Insert:
        target = self._target(node.table, node.through)
        made = replace_children(node, self.visit)
        if target is None:
            return made
        checks = _Checks(self, target)
        conflict = node.on_conflict
        reads = bool(_named((node.returning, conflict))) or (conflict is not None and bool(conflict.arbiters))
        if node.through is not None:
            reads = node.through.uses[0].read is not None
        checks.add("insert", "a")
        if reads:
            checks.add("insert", "r", using=True)
        if conflict is not None and conflict.action == "update":
            checks.add("conflict", "w", using=True)
            if reads:
                checks.add("conflict", "r", using=True)
            checks.add("update", "w")
            if reads:
                checks.add("update", "r", using=True)
        return replace(made, row_checks=(*checks.made(), *made.row_checks))

    def _change(self, node: Update | Delete | Merge) -> Update | Delete | Merge:
        target = self._target(node.table, None if isinstance(node, Merge) else node.through)
        match node:
            case Update():
                return self._changed(node, None) if target is None else self._update(node, target)
            case Delete():
                return self._changed(node, None) if target is None else self._delete(node, target)
            case Merge():
                return self._changed(node, None) if target is None else self._merge(node, target)

    def _update(self, node: Update, target: _Target) -> Update:
        reads = self._reads(node, target.relation)
        made = self._changed(node, self._guarded(node.source, target, ("w", "r") if reads else ("w",)))
        checks = _Checks(self, target)
        checks.add("update", "w")
        if reads:
            checks.add("update", "r", using=True)
        return replace(made, row_checks=(*checks.made(), *made.row_checks))

    def _delete(self, node: Delete, target: _Target) -> Delete:
        commands: Sequence[PolicyCommand] = ("d", "r") if self._reads(node, target.relation) else ("d",)
        return self._changed(node, self._guarded(node.source, target, commands))

    def _merge(self, node: Merge, target: _Target) -> Merge:
        made = self._changed(node, self._guarded(node.source, target, ("r",)))
        checks = _Checks(self, target)
        checks.add("merge update", "w", using=True)
        checks.add("update", "w")
        checks.add("update", "r", using=True)
        checks.add("merge delete", "d", using=True)
        checks.add("insert", "a")
        return replace(made, row_checks=checks.made())

    def _changed(self, node: _Changing, guarded: RelationRange | None) -> _Changing:
        """Return a statement that changes rows, its target guarded; None: as it is."""
        first = node.source.ranges[0]
        target = guarded or (first if isinstance(first, RelationRange) else None)
        if target is not None and isinstance(first, RelationRange) and first.guard is not None:
            target = self._behind(target, first.guard)
        source = self._select(node.source, target)
        made = replace_children(replace(node, source=_NOTHING), self.visit)
        changed: _Changing = replace(made, source=source)
        return changed

    def _behind(self, target: RelationRange, guard: Select) -> RelationRange:
        """Return a target with what security_barrier views ask of its rows behind what its policies do."""
        conditions = [self.visit(guard.where)]
        if target.guard is not None and target.guard is not guard:
            conditions.insert(0, target.guard.where)
        relation = self.context.catalog.relation_by_oid(target.oid)
        if relation is None:
            raise AssertionError(f"relation {target.oid} is gone")
        return replace(target, guard=guard_of(relation, _all_of(conditions)))

    def _guarded(self, source: Select, target: _Target, commands: Sequence[PolicyCommand]) -> RelationRange:
        first = source.ranges[0]
        if not isinstance(first, RelationRange) or first.oid != target.relation.oid:
            raise RuntimeError("the first range of a statement that changes rows is not its target")
        guard = self._guard(target.relation, target.role, commands)
        return replace(first, guard=guard, within=target.view)

    def _reads(self, node: Update | Delete, relation: RelationDef) -> bool:
        """Tell whether a statement needs the right to read its target: it names columns of it."""
        if node.through is not None:
            return node.through.uses[0].read is not None
        source = node.source
        named = source.targets[1 + len(relation.live) :]
        others = tuple(item for item in source.ranges[1:] if not isinstance(item, RelationRange))
        read = _named((named, source.where, source.from_, others, source.ctes))
        return bool(read or _named(node.returning))


class _Checks:
    """Gathers the row checks of a statement: of each kind one for all permissive policies, and one for each
    restrictive one.
    """

    def __init__(self, securing: _Securing, target: _Target) -> None:
        self._securing = securing
        self._relation = target.relation
        self._role = target.role
        self._view = target.view
        self._found: list[tuple[RowCheckKind, str, Expr]] = []

    def add(self, kind: RowCheckKind, command: PolicyCommand, *, using: bool = False) -> None:
        """Add what policies for a command ask; ``using``: by USING, whatever WITH CHECK says."""
        policies = self._securing._policies(self._relation, self._role, command)

        def text(policy: PolicyDef) -> str:
            return policy.using_sql if using else policy.check_sql or policy.using_sql

        def bound(policy: PolicyDef) -> Expr:
            return self._securing._bound(self._relation, text(policy))

        allowed = [bound(policy) for policy in policies.permissive if text(policy)]
        if not allowed:
            self._found.append((kind, "", _FALSE))
            return
        self._found.append((kind, "", _any_of(allowed)))
        self._found += [(kind, p.name, bound(p)) for p in policies.restrictive if text(p)]

    def made(self) -> tuple[RowCheck, ...]:
        """Return them in the order in which they are made."""
        exprs = self._securing._visited(self._relation, self._role, [expr for _, _, expr in self._found])
        made = [
            RowCheck(kind=kind, policy=policy, condition=as_view(expr, self._view))
            for (kind, policy, _), expr in zip(self._found, exprs, strict=True)
        ]
        return tuple(dict.fromkeys(made))


_FALSE: Final = Const(type=_BOOL, value=False)
_NOTHING: Final = Select(columns=(), targets=())


def _all_of(exprs: Sequence[Expr]) -> Expr:
    return exprs[0] if len(exprs) == 1 else BoolExpr(type=_BOOL, kind="and", args=tuple(exprs))


def _any_of(exprs: Sequence[Expr]) -> Expr:
    return exprs[0] if len(exprs) == 1 else BoolExpr(type=_BOOL, kind="or", args=tuple(exprs))


def _named(node: Any) -> set[int]:
    """Return the columns of range 0 that parts of a statement name."""
    if node is None:
        return set()
    if isinstance(node, tuple):
        return {attnum for item in node for attnum in _named(item)}
    return {var.attnum for var in own_vars(node) if not var.rest}
