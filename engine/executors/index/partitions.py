"""Partitioned tables in the row executor: partitions side by side, of which an execution reads those that its
values leave.

FROM (SELECT ... FROM m_02 UNION ALL SELECT ... FROM m_03 ...) m     as ``planner.rules.partitions`` has made it

m.day = $1, m.day = f.day     partitions that cannot have such rows are passed by, for each execution or row joined so far
m.id = f.id                   where each partition has a key for it: looked up for each row joined so far, as in one table
ORDER BY m.id LIMIT 5         where indexes give that order, five rows are read of each, and sorted (FOR UPDATE, too)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from engine.catalog.index_parts import OID_MASK
from engine.executors.expressions import has_sublink, is_volatile, ranges_used, returns_set
from engine.executors.index.access.choice import Access, find
from engine.executors.index.computed import ComputedSource
from engine.executors.index.nodes import Filter, Node, Project
from engine.executors.index.sources import IndexSource, SourceNode, TableScan, twin
from engine.executors.index.state import Pipe, evaluate
from planner.catalog import Catalog, ColumnDef, IndexDef, RelationDef
from planner.evaluate import Env, Layout, compile_row
from planner.facts import BOOL
from planner.indexing.comparisons import conjuncts_of
from planner.partitions.bounds import Divided, divided
from planner.query import (
    BoolExpr,
    Const,
    Expr,
    Leaf,
    OpExpr,
    Param,
    QueryExpr,
    RangeRef,
    RelabelType,
    RelationRange,
    ScalarArrayOp,
    Select,
    SetOp,
    SubqueryRange,
    Target,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.rules.arms import of_tables, side_by_side
from planner.rules.partitions import prune
from planner.types import SqlType

if TYPE_CHECKING:
    from engine.executors.index.plan import Planning


@dataclass(slots=True)
class Parts:
    """What planning the partitions of a table, each by itself, tells about them to the query that reads them.

    ``around``: that query, where its ORDER BY and LIMIT say how far each partition has to be read.
    ``scouts``: scans of tables whose rows are locked. ``ordered``: the sources that read in order to the
    limit.
    """

    around: Select | None = None
    scouts: list[TableScan] = field(default_factory=list)
    ordered: list[IndexSource] = field(default_factory=list)


def reads_ahead(query: Select) -> bool:
    """Tell whether of each of the tables side by side that are all of FROM no more rows are needed than of
    the whole.
    """
    if query.limit is None or query.with_ties or query.grouped or query.distinct or not query.order:
        return False
    if len(query.from_) != 1 or not isinstance(query.from_[0], RangeRef) or query.windows:
        return False
    return not any(returns_set(target.expr) for target in query.targets)


def asked_in_order(part: Select, around: Select) -> Select:
    """Return one partition's part with the ORDER BY and LIMIT of the query that reads it, where these are of
    its columns.
    """
    targets: list[Target] = []
    for key in around.order:
        column = _column(around.targets[key.target].expr)
        if column is None or column.level or column.attnum <= 0:
            return part
        targets.append(part.targets[column.attnum - 1])
    order = tuple(replace(key, target=place) for place, key in enumerate(around.order))
    return replace(part, targets=tuple(targets), order=order, limit=around.limit, offset=around.offset)


def arms_of(query: QueryExpr) -> list[Select]:
    """Return the parts of a query that stands for a partitioned table, one for each partition."""
    if isinstance(query, SetOp):
        return [*arms_of(query.left), *arms_of(query.right)]
    if not isinstance(query, Select):
        raise AssertionError(f"an arm of a set operation is {type(query).__name__}")
    return [query]


def _range(arm: Select) -> RelationRange:
    item = arm.ranges[0]
    if not isinstance(item, RelationRange):
        raise AssertionError(f"the first range is {type(item).__name__}, not a relation")
    return item


def _leaf(arm: Select) -> int:
    """Return the oid of the partition that a part reads, or of the first of them."""
    return _range(arm).oid


def _tables(arm: Select) -> tuple[Leaf, ...]:
    item = _range(arm)
    return item.leaves or (Leaf(item.oid, item.schema, item.name),)


def _column(node: Expr) -> Var | None:
    while isinstance(node, RelabelType):
        node = node.arg
    return node if isinstance(node, Var) else None


# --- one plan for partitions that are alike ------------------------------------------------------------


def with_alike(query: Select, catalog: Catalog) -> Select:
    """Return a query whose partitioned tables are read in parts of which all tables have the same columns and
    indexes.
    """
    ranges = tuple(
        _alike(item, catalog) if isinstance(item, SubqueryRange) and item.parent else item
        for item in query.ranges
    )
    same = all(new is old for new, old in zip(ranges, query.ranges, strict=True))
    return query if same else replace(query, ranges=ranges)


def _alike(item: SubqueryRange, catalog: Catalog) -> SubqueryRange:
    before = arms_of(item.query)
    arms = [part for arm in before for part in _cut(arm, catalog)]
    if len(arms) == len(before):
        return item
    return replace(item, query=side_by_side(item.query.columns, arms))


def _cut(arm: Select, catalog: Catalog) -> list[Select]:
    runs: list[list[Leaf]] = []
    first: RelationDef | None = None
    for leaf in _tables(arm):
        relation = catalog.relation_by_oid(leaf.oid)
        if relation is None or first is None or not _same_form(first, relation):
            first = relation
            runs.append([])
        runs[-1].append(leaf)
    return [arm] if len(runs) == 1 else [of_tables(arm, run) for run in runs]


def _same_form(a: RelationDef, b: RelationDef) -> bool:
    """Tell whether a plan for one table is one for the other, but for the numbers and names of tables and indexes."""
    if len(a.columns) != len(b.columns) or len(a.indexes) != len(b.indexes):
        return False
    return all(map(_same_column, a.columns, b.columns)) and all(map(_same_index, a.indexes, b.indexes))


def _same_column(a: ColumnDef, b: ColumnDef) -> bool:
    return (a.attnum, a.type, a.not_null, a.dropped, a.hidden, a.collation) == (
        b.attnum, b.type, b.not_null, b.dropped, b.hidden, b.collation,
    )  # fmt: skip


def _same_index(a: IndexDef, b: IndexDef) -> bool:
    return all(getattr(a, name) == getattr(b, name) for name in _INDEX_FORM) and (
        bool(a.constraint_oid) == bool(b.constraint_oid)
    )


_INDEX_FORM: Final = tuple(
    item.name
    for item in fields(IndexDef)
    if item.name not in ("oid", "name", "parent", "constraint_oid", "key_names")
)


def plans_of(planning: Planning, arm: Select, layout: Layout, parts: Parts) -> list[tuple[Leaf, Node]]:
    """Return a plan for each table of a part, whose tables are alike: planned once, where it is of a kind
    that can be had again.
    """
    first, *others = _tables(arm)
    known = len(planning.accesses)
    plan = planning.query(of_tables(arm, (first,)), layout, parts)
    noted = planning.accesses[known:]
    made = [(first, plan)]
    table = planning.catalog.relation_by_oid(first.oid)
    for leaf in others:
        relation = planning.catalog.relation_by_oid(leaf.oid)
        again: Node | None = None
        if table is not None and relation is not None and len(noted) == 1:
            again = _again(plan, leaf, table, relation, parts)
            if again is not None:
                index = _index_there(noted[0].index, table, relation)[0] if noted[0].index else 0
                planning.accesses.append(noted[0].of(leaf.oid, leaf.name, index))
        made.append((leaf, again or planning.query(of_tables(arm, (leaf,)), layout, parts)))
    return made


def _index_there(oid: int, table: RelationDef, other: RelationDef) -> tuple[int, str]:
    """Return number and name that an index, or a part of one, of a table has in another that is alike."""
    for mine, its in zip(table.indexes, other.indexes, strict=True):
        if mine.oid == oid & OID_MASK:
            return its.oid + oid - mine.oid, its.name
    raise LookupError(f"no index {oid} of {table.name}")


def _again(node: Node, leaf: Leaf, table: RelationDef, other: RelationDef, parts: Parts) -> Node | None:
    """Return a plan for another table, None where it is of another kind than rows of one table, tested and computed."""
    made = twin(node)
    if isinstance(node, Project | Filter):
        below = _again(node.inputs[0], leaf, table, other, parts)
        if below is None:
            return None
        made.inputs = (below,)
        return made
    if not isinstance(node, SourceNode) or not isinstance(made, SourceNode):
        return None
    source = node.source
    if type(source) is TableScan:
        made.source = scan = source.for_table(leaf)
        if source in parts.scouts:
            parts.scouts.append(scan)
        return made
    if type(source) is IndexSource:
        made.source = keyed = source.for_table(leaf, *_index_there(source.index, table, other))
        if source in parts.ordered:
            parts.ordered.append(keyed)
        return made
    return None


# --- keys from the rows joined so far ------------------------------------------------------------------


def _inside(node: object, index: int, arm: Select) -> Any:
    """Return a condition without sub-selects on range ``index`` and others as one inside a part, which these
    are around.
    """
    if isinstance(node, Var):
        if node.range == index and not node.level:
            return arm.targets[node.attnum - 1].expr
        return replace(node, level=node.level + 1) if node.range >= 0 else node
    return replace_children(node, lambda child: _inside(child, index, arm))


def narrowed(arm: Select, index: int, conditions: Sequence[Expr]) -> Select:
    """Return a part that tests conditions on range ``index``, which it belongs to, and on the ranges around it."""
    if not conditions:
        return arm
    tests = (*conjuncts_of(arm.where), *(_inside(c, index, arm) for c in conditions))
    return replace(arm, where=BoolExpr(type=SqlType(BOOL), kind="and", args=tests))


def accesses(arms: Sequence[Select], catalog: Catalog) -> list[Access] | None:
    """Return by which keys the partitions are reached; None where one of them has to be scanned."""
    found: list[Access] = []
    for arm in arms:
        relation = catalog.relation_by_oid(_leaf(arm))
        access = (
            None if relation is None else find(0, relation, catalog, conjuncts_of(arm.where), frozenset())
        )
        if access is None or not access.bounded:
            return None
        found.append(access)
    return found


def keys_from_outside(
    arms: Sequence[Select], index: int, conjuncts: Sequence[Expr], bound: AbstractSet[int], catalog: Catalog
) -> list[Expr]:
    """Return the conditions by which every partition is reached by key for a row of the ranges ``bound``;
    none if one is not.
    """
    found = [
        c
        for c in conjuncts
        if index in (used := ranges_used(c))
        and used & bound
        and used <= bound | {index}
        and not is_volatile(c)
        and not has_sublink(c)
        and not any(isinstance(v, Var) and v.range == index and v.attnum <= 0 for v in walk(c))
    ]
    if not found:
        return []
    reached = accesses([narrowed(arm, index, found) for arm in arms], catalog)
    if reached is None or not any(_is_outside(key) for access in reached for key in access.keys):
        return []
    return found


def _is_outside(key: Any) -> bool:
    return any(isinstance(node, Var) and node.level == 1 for node in walk(key))


# --- partitions that an execution's values leave --------------------------------------------------------


@dataclass(slots=True)
class Gate:
    """Conditions on a partitioned table whose values are known when they are needed: ``tests`` make them of ``values``.

    ``parts``: how it and the partitioned tables below it are divided, by oid.
    """

    parent: RelationDef
    parts: Mapping[int, Divided]
    known: tuple[Expr, ...]
    tests: tuple[Callable[[Any], Expr], ...]
    values: tuple[Expr, ...]
    _last: tuple[Sequence[Any], list[int]] | None = None

    def kept(self, values: Sequence[Any]) -> list[int]:
        """Return the partitions that may have rows, by oid, in their order.

        The router asks and then the execution, with the same objects for values: what was found for the last
        ones is kept.
        """
        last = self._last
        if last is not None and all(new is old for new, old in zip(values, last[0], strict=True)):
            return last[1]
        tests = [make(value) for make, value in zip(self.tests, values, strict=True)]
        left = prune(self.parent, (*self.known, *tests), lambda table: self.parts[table.oid])
        found = [leaf.oid for leaf in left]
        self._last = values, found
        return found


def gate_of(
    item: SubqueryRange, index: int, conjuncts: Sequence[Expr], outside: AbstractSet[int], catalog: Catalog
) -> Gate | None:
    """Return what tells an execution which partitions it need not read, if any of ``conjuncts`` does.

    ``outside``: the ranges whose row is known then.
    """
    parent = catalog.relation_by_oid(item.parent)
    if parent is None:
        return None
    attnums = {place: column.attnum for place, column in enumerate(parent.live, 1)}
    parts = _divisions(parent, catalog)
    keyed = _key_columns(parent, parts)
    known: list[Expr] = []
    tests: list[Callable[[Any], Expr]] = []
    values: list[Expr] = []
    for test in conjuncts:
        found = _comparison(test, index, attnums, keyed)
        if found is None:
            continue
        value, make = found
        if isinstance(value, Const):
            known.append(make(value.value))
        elif _is_known(value, outside):
            values.append(value)
            tests.append(make)
    return Gate(parent, parts, tuple(known), tuple(tests), tuple(values)) if values else None


def _divisions(parent: RelationDef, catalog: Catalog) -> dict[int, Divided]:
    parts = divided(parent, catalog)
    found = {parent.oid: parts}
    for table in parts.order:
        if table.kind == "p":
            found.update(_divisions(table, catalog))
    return found


def _key_columns(parent: RelationDef, parts: Mapping[int, Divided]) -> set[int]:
    """Return the columns of a table by which it and partitions below it are divided, as its own."""
    found = {attnum for attnum in parts[parent.oid].key.attnums if attnum}
    names = {column.name: column.attnum for column in parent.live}
    for table in parts[parent.oid].order:
        if table.kind == "p":
            own = {column.attnum: column.name for column in table.live}
            found |= {names[own[attnum]] for attnum in _key_columns(table, parts)}
    return found


def _comparison(
    test: Expr, index: int, attnums: Mapping[int, int], keyed: AbstractSet[int]
) -> tuple[Expr, Callable[[Any], Expr]] | None:
    """Return what a key column is compared with, and what makes the condition on the table of a value of it."""

    def column(node: Expr) -> Var | None:
        found = _column(node)
        if found is None or found.range != index or found.level or attnums.get(found.attnum) not in keyed:
            return None
        return replace(found, range=0, attnum=attnums[found.attnum])

    if isinstance(test, ScalarArrayOp) and test.use_any:
        member, array = column(test.scalar), test.array
        if member is None:
            return None
        return array, lambda value: replace(
            test, scalar=member, array=Const(type=array.type, value=_elements(value))
        )
    if not isinstance(test, OpExpr) or len(test.args) != 2:
        return None
    left, right = test.args
    if (var := column(left)) is not None:
        return right, lambda value: replace(test, args=(var, Const(type=right.type, value=value)))
    if (other := column(right)) is not None:
        return left, lambda value: replace(test, args=(Const(type=left.type, value=value), other))
    return None


def _elements(array: Any) -> Any:
    """Return an array of one dimension as it is; None, which leaves out nothing, for others."""
    return None if array is None or any(type(element) is tuple for element in array) else array


def _is_known(value: Expr, outside: AbstractSet[int]) -> bool:
    """Tell whether a value is known before the partitions are read."""
    return not is_volatile(value) and not has_sublink(value) and ranges_used(value) <= outside


class PartitionsSource(ComputedSource):
    """Partitions one after the other, each by a plan of its own; ``gate`` passes by those that cannot have the rows."""

    def __init__(
        self,
        item: SubqueryRange,
        index: int,
        needed: Sequence[int],
        plans: Sequence[tuple[Leaf, Node]],
        gate: Gate | None,
        around: Layout,
        *,
        dependent: bool,
    ) -> None:
        super().__init__(item, index, needed)
        self.item = item
        self.dependent = dependent
        self.names = [leaf.name for leaf, _plan in plans]
        self.plans = {leaf.oid: plan for leaf, plan in plans}
        self.gate = gate
        self.values = None if gate is None else compile_row(gate.values, around)

    def passed_by(self, params: Sequence[Any]) -> AbstractSet[int]:
        """Return the partitions, by oid, that an execution with these parameters will not read, as far as
        they alone tell.
        """
        known: list[Any] = []
        if self.gate is None or self.dependent:
            return frozenset()
        for value in self.gate.values:
            if not isinstance(value, Param) or value.number > len(params):
                return frozenset()
            known.append(params[value.number - 1])
        return self.plans.keys() - self.gate.kept(known)

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Read the partitions that may have rows."""
        kept: Iterable[int] = self.plans
        if self.gate is not None and self.values is not None:
            function = self.values
            values = (yield from evaluate(function, outer, e)) if function.may_suspend else function(outer, e)
            kept = self.gate.kept(values)
        for oid in kept:
            plan = self.plans.get(oid)  # the conditions on the table alone have left out some
            if plan is not None:
                yield from self._whole(plan.pipe(e.child(outer)))

    def _whole(self, pipe: Pipe) -> Pipe:
        whole = self.whole
        if whole is None:
            yield from pipe
            return
        for item in pipe:
            yield [(*row, whole(row)) for row in item] if item.__class__ is list else item
