"""Partitioned tables are read as their partitions: those that the conditions leave, side by side.

    SELECT v FROM m WHERE day >= '2024-03-01' AND day < '2024-03-08'            m by months

    one partition left      FROM m_03 WHERE ...
    several                 FROM (SELECT day, v FROM m_02 [m_02, m_03] WHERE ...) m     one part for all with the same columns (``arms``)
    none                    FROM ONLY m, which has no rows

So every executor, index, lock and watched scan sees tables as it knows them. A condition on the table alone
is tested in every arm. Rows that a locking clause asks for come with their table, id and version: they are
locked where the clause stands, behind joins and ORDER BY. What prunes: comparisons of key columns with
constants of the column's type, IN, IS NULL. The values of parameters and of rows joined before, which are not
known here, prune in the row executor (``engine.executors.index.partitions``).

UPDATE, DELETE and MERGE read their target in the same way; behind all other outputs of ``source`` then comes
the table that each row is in (``tableoid``), and ``leaves`` of the statement says which these may be
(``engine.changes.writes.partitioned``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from planner.base.errors import not_supported
from planner.catalog import Catalog, RelationDef
from planner.facts import BOOL, INT2, INT4, INT8, OID, TEXT, VARCHAR, facts
from planner.functions.values.compare import hash_key, sort_key
from planner.indexing.comparisons import conjuncts_of
from planner.indexing.deciding import deciding
from planner.partitions.bounds import Divided, column_map, divided, leaves
from planner.query import (
    ROW_ID,
    ROW_VERSION,
    TABLEOID,
    WHOLE_ROW,
    ArrayExpr,
    BoolExpr,
    Const,
    Delete,
    Expr,
    Leaf,
    Merge,
    NullTest,
    OpExpr,
    OutputColumn,
    QueryBase,
    RangeColumn,
    RangeRef,
    RelabelType,
    RelationRange,
    RowExpr,
    RowMark,
    Sample,
    ScalarArrayOp,
    Select,
    SubLink,
    SubqueryRange,
    Target,
    Update,
    Var,
)
from planner.query.exprs import free_levels
from planner.query.rewrite import replace_children
from planner.query.walk import children, walk
from planner.rules.arms import of_tables, side_by_side
from planner.statements.classify import is_volatile
from planner.types import SqlType
from planner.types.domains import base_oid

MOST_POINTS: Final = 10_000
"""Keys that IN may name for them to be looked up one by one; more prune nothing."""

_INTEGERS = frozenset((INT2, INT4, INT8))
_TEXTS = frozenset((TEXT, VARCHAR))
_IDENTITY: Final = (TABLEOID, ROW_ID, ROW_VERSION)


def reads_partitioned(tree: Any, catalog: Catalog) -> bool:
    """Tell whether a tree reads a partitioned table other than by ONLY."""
    return any(
        isinstance(node, RelationRange) and not node.only and _partitioned(node, catalog) is not None
        for node in walk(tree)
    )


def without_partitioned(statement: Any, catalog: Catalog) -> Any:
    """Return a statement, or a query, that reads partitions where it read partitioned tables."""
    if isinstance(statement, Update | Delete | Merge):
        statement = _with_origin(statement, catalog)
    return _expanded(statement, catalog)


def _partitioned(item: RelationRange, catalog: Catalog) -> RelationDef | None:
    if item.virtual:
        return None
    found = catalog.relation_by_oid(item.oid)
    return found if found is not None and found.kind == "p" else None


def _expanded(node: Any, catalog: Catalog) -> Any:
    if hasattr(node, "steps") and hasattr(node, "body"):  # a statement whose WITH changes data
        steps = tuple(
            replace(step, statement=without_partitioned(step.statement, catalog)) for step in node.steps
        )
        return replace(node, steps=steps, body=without_partitioned(node.body, catalog))
    node = replace_children(node, lambda child: _expanded(child, catalog))
    if not isinstance(node, Select):
        return node
    for index, item in enumerate(node.ranges):
        if isinstance(item, RelationRange) and not item.only:
            parent = _partitioned(item, catalog)
            if parent is not None:
                node = _divide(node, index, item, parent, catalog)
    return node


def _with_origin(statement: Any, catalog: Catalog) -> Any:
    """Return DML on a partitioned table whose source tells where each row is, and which tables these may be."""
    target = catalog.relation_by_oid(statement.table)
    source = statement.source
    first = source.ranges[0] if source.ranges else None
    if target is None or target.kind != "p" or not isinstance(first, RelationRange):
        return statement
    type_ = SqlType(OID)
    origin = Var(type=type_, range=0, attnum=TABLEOID, name="tableoid")
    ranges = (replace(first, used=first.used | {TABLEOID}), *source.ranges[1:])
    source = replace(
        source,
        targets=(*source.targets, Target(expr=origin, name="tableoid")),
        columns=(*source.columns, OutputColumn(name="tableoid", type=type_)),
        ranges=ranges,
    )
    below = () if first.only else tuple(leaf.oid for leaf in leaves(target, catalog))
    return replace(statement, source=source, leaves=below)


# --- one range ----------------------------------------------------------------------------------------


def _divide(query: Select, index: int, item: RelationRange, parent: RelationDef, catalog: Catalog) -> Select:
    alone = _conditions(query, index)
    never = any(isinstance(test, Const) and test.value is not True for test in conjuncts_of(query.where))
    kept = [] if never else prune(parent, alone, lambda table: divided(table, catalog))
    used = _used(query, index)
    if not kept:
        ranges = [*query.ranges]
        ranges[index] = replace(item, only=True, used=item.used | frozenset(used))
        return replace(query, ranges=tuple(ranges))
    if len(kept) == 1 and _same_rows(parent, kept[0], used):
        return _one(query, index, item, parent, kept[0])
    if item.sample is not None and free_levels(item.sample)[0]:  # the parts stand at levels of their own
        raise not_supported("TABLESAMPLE of a partitioned table by a column of an outer query")
    return _several(query, index, item, parent, kept, used, alone)


def _used(query: Select, index: int) -> dict[int, SqlType]:
    """Return the attnums of a range that the query names, at any depth, with their types."""
    found: dict[int, SqlType] = {}
    stack: list[tuple[Any, int]] = [(query, -1)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, QueryBase):
            depth += 1
        if isinstance(node, Var):
            if node.level == depth and node.range == index:
                found[node.attnum] = node.type
            continue
        stack.extend((child, depth) for child in children(node))
    return found


def _same_rows(parent: RelationDef, leaf: RelationDef, used: Collection[int]) -> bool:
    """Tell whether a partition may stand in its parent's place: where whole rows are asked for, they have to
    be alike.
    """
    return WHOLE_ROW not in used or [c.name for c in parent.live] == [c.name for c in leaf.live]


def _one(query: Select, index: int, item: RelationRange, parent: RelationDef, leaf: RelationDef) -> Select:
    attnums = column_map(parent, leaf)
    made = replace(
        item,
        oid=leaf.oid,
        schema=leaf.schema,
        name=leaf.name,
        columns=tuple(
            sorted((replace(c, attnum=attnums[c.attnum]) for c in item.columns), key=lambda c: c.attnum)
        ),
        used=frozenset(attnums.get(a, a) for a in item.used),
        guard=_guard_of(item.guard, parent, leaf),
        parent=item.oid,
        asked=item.used,
    )
    if any(a != b for a, b in attnums.items()):
        query = _remapped(query, index, lambda attnum: attnums.get(attnum, attnum))
    ranges = [*query.ranges]
    ranges[index] = made
    return replace(query, ranges=tuple(ranges))


def _several(
    query: Select,
    index: int,
    item: RelationRange,
    parent: RelationDef,
    kept: Sequence[RelationDef],
    used: Mapping[int, SqlType],
    movable: Sequence[Expr],
) -> Select:
    columns = list(item.columns)
    places = {column.attnum: place for place, column in enumerate(columns, 1)}
    types = {column.attnum: column.type for column in columns}
    mark = next((m for m in query.row_marks if m.range == index), None)
    found = {attnum: type_ for attnum, type_ in used.items() if attnum <= 0}
    if mark is not None:
        found |= {attnum: SqlType(OID if attnum == TABLEOID else INT8) for attnum in _IDENTITY}
    system = sorted(found, reverse=True)
    for attnum in system:
        places[attnum] = len(places) + 1
    outputs = tuple(
        OutputColumn(name=c.name, type=types[c.attnum], table_oid=0, attnum=0) for c in columns
    ) + tuple(OutputColumn(name=f"system{-a}", type=found[a]) for a in system)
    arms = []
    for _, alike in itertools.groupby(kept, _columns_of):
        tables = list(alike)
        some = [Leaf(leaf.oid, leaf.schema, leaf.name) for leaf in tables]
        arm = _arm(item, parent, tables[0], outputs, system, found, movable, index, mark)
        arms.append(of_tables(arm, some))
    query = _remapped(query, index, lambda attnum: places.get(attnum, attnum))
    if mark is not None:
        told = replace(mark, row=(places[TABLEOID], places[ROW_ID], places[ROW_VERSION]))
        query = replace(query, row_marks=tuple(told if m is mark else m for m in query.row_marks))
    ranges = [*query.ranges]
    ranges[index] = SubqueryRange(
        alias=item.alias,
        columns=tuple(
            RangeColumn(name=o.name, type=o.type, attnum=place) for place, o in enumerate(outputs, 1)
        ),
        query=side_by_side(outputs, arms),
        parent=item.oid,
        asked=item.used,
        invoker=item.invoker,
        looked_up=item.looked_up,
        within=item.within,
    )
    return replace(query, ranges=tuple(ranges))


def _columns_of(leaf: RelationDef) -> list[tuple[str, SqlType, int]]:
    return [(c.name, c.type, c.attnum) for c in leaf.live]


def _arm(
    item: RelationRange,
    parent: RelationDef,
    leaf: RelationDef,
    outputs: tuple[OutputColumn, ...],
    system: Sequence[int],
    types: Mapping[int, SqlType],
    movable: Sequence[Expr],
    index: int,
    mark: RowMark | None,
) -> Select:
    """Return the rows of one partition as the parent's columns, system columns and the whole row, which outer
    joins make NULL, behind them.
    """
    attnums = column_map(parent, leaf)
    exprs: list[Expr] = [
        Var(type=c.type, range=0, attnum=attnums[c.attnum], name=c.name) for c in item.columns
    ]
    whole = tuple(exprs)
    exprs += [
        Var(type=types[a], range=0, attnum=a)
        if a != WHOLE_ROW
        else RowExpr(type=types[a], fields=whole, names=tuple(c.name for c in parent.live))
        for a in system
    ]
    tests = [_over(test, index, attnums) for test in movable]
    where: Expr | None = None
    if tests:
        where = tests[0] if len(tests) == 1 else BoolExpr(type=SqlType(BOOL), kind="and", args=tuple(tests))
    read = {v.attnum for expr in (*exprs, *tests) for v in walk(expr) if isinstance(v, Var)}
    range_ = _range_of(leaf, read, _guard_of(item.guard, parent, leaf), item.sample)
    return Select(
        columns=outputs,
        targets=tuple(Target(expr=e, name=o.name) for e, o in zip(exprs, outputs, strict=True)),
        ranges=(range_,),
        from_=(RangeRef(range=0),),
        where=where,
        row_marks=() if mark is None else (replace(mark, range=0, pushed=True, above=True),),
    )


def _range_of(
    leaf: RelationDef, used: Iterable[int], guard: Select | None = None, sample: Sample | None = None
) -> RelationRange:
    return RelationRange(
        alias=leaf.name,
        columns=tuple(RangeColumn(name=c.name, type=c.type, attnum=c.attnum) for c in leaf.live),
        oid=leaf.oid,
        schema=leaf.schema,
        name=leaf.name,
        used=frozenset(used),
        guard=guard,
        sample=sample,
    )


def _guard_of(guard: Select | None, parent: RelationDef, leaf: RelationDef) -> Select | None:
    """Return what row-level security of a partitioned table asks of its rows as it is asked of those of a partition."""
    if guard is None:
        return None
    attnums = column_map(parent, leaf)
    first = guard.ranges[0]
    used = first.used if isinstance(first, RelationRange) else frozenset[int]()
    read = attnums.values() if WHOLE_ROW in used else [attnums.get(a, a) for a in used]
    where = None if guard.where is None else _of_leaf(guard.where, 0, parent, attnums)
    return replace(guard, ranges=(_range_of(leaf, read),), where=where)


def _of_leaf(node: object, depth: int, parent: RelationDef, attnums: Mapping[int, int]) -> Any:
    """Return a condition on rows of a partitioned table, ``depth`` levels out, as one on those of a partition."""
    if isinstance(node, Var):
        if node.level != depth or node.range or node.attnum < 0:
            return node
        if node.attnum != WHOLE_ROW:
            return replace(node, attnum=attnums[node.attnum])
        cells = tuple(
            Var(type=c.type, range=0, level=depth, attnum=attnums[c.attnum], name=c.name) for c in parent.live
        )
        return RowExpr(type=node.type, fields=cells, names=tuple(c.name for c in parent.live))
    inside = depth + isinstance(node, QueryBase)
    return replace_children(node, lambda child: _of_leaf(child, inside, parent, attnums))


def _over(node: object, index: int, attnums: Mapping[int, int]) -> Any:
    """Return a condition on range ``index`` as one on range 0 of a partition."""
    if isinstance(node, Var):
        return replace(node, range=0, attnum=attnums[node.attnum]) if node.range == index else node
    return replace_children(node, lambda child: _over(child, index, attnums))


def _remapped(query: Select, index: int, new: Callable[[int], int]) -> Select:
    """Return a query in which the columns of a range have other numbers."""
    return replace_children(query, lambda child: _renumbered(child, 0, index, new))


def _renumbered(node: object, depth: int, index: int, new: Callable[[int], int]) -> Any:
    if isinstance(node, Var):
        if node.range == index and node.level == depth and new(node.attnum) != node.attnum:
            return replace(node, attnum=new(node.attnum))
        return node
    inside = depth + isinstance(node, QueryBase)
    return replace_children(node, lambda child: _renumbered(child, inside, index, new))


# --- conditions ----------------------------------------------------------------------------------------


def _conditions(query: Select, index: int) -> list[Expr]:
    """Return the conditions on one range alone that a row of it has to meet to matter."""
    return [test for test, ranges in deciding(query) if index in ranges and _is_about(test, index)]


def _is_about(test: Expr, index: int) -> bool:
    """Tell whether a condition looks at plain columns of one range alone, and may be tested anywhere."""
    if is_volatile(test):
        return False
    seen = False
    for node in walk(test):
        if isinstance(node, SubLink):
            return False
        if isinstance(node, Var):
            if node.range != index or node.level or node.attnum <= 0:
                return False
            seen = True
    return seen


@dataclass(slots=True)
class _Wanted:
    """What is asked of one column: one of ``points``, if given; from ``lower``, up to ``upper``; NULL.

    ``has``: which of the two there are ("lower", "upper"), and whether they are excluded themselves ("above", "below").
    """

    points: list[Any] | None = None
    lower: Any = None
    upper: Any = None
    null: bool = False
    has: set[str] = field(default_factory=set)


def prune(
    parent: RelationDef, conditions: Iterable[Expr], parts_of: Callable[[RelationDef], Divided]
) -> list[RelationDef]:
    """Return the tables below a partitioned one that may have rows for which all ``conditions`` hold, in the
    order of bounds.

    ``parts_of`` gives the partitions of it and of those below.
    """
    wanted: dict[int, _Wanted] = {}
    for test in conditions:
        _learn(test, parent, wanted)
    return _below(parent, wanted, parts_of)


def _below(
    parent: RelationDef, wanted: Mapping[int, _Wanted], parts_of: Callable[[RelationDef], Divided]
) -> list[RelationDef]:
    parts = parts_of(parent)
    chosen = _chosen(parts, wanted)
    found: list[RelationDef] = []
    for item in parts.order if chosen is None else parts.sorted(chosen):
        if item.kind == "p":
            attnums = column_map(parent, item)
            found += _below(item, {attnums[a]: w for a, w in wanted.items()}, parts_of)
        else:
            found.append(item)
    return found


def _chosen(parts: Divided, wanted: Mapping[int, _Wanted]) -> set[int] | None:
    """Return which partitions may have rows, by oid; None: any may."""
    asked = [wanted.get(attnum) if attnum else None for attnum in parts.key.attnums]
    first = asked[0]
    default = {parts.default.oid} if parts.default is not None else set[int]()
    points = [w.points for w in asked if w is not None and w.points is not None]
    if len(points) == len(asked):
        keys: list[tuple[Any, ...]] = [()]
        for values in points:
            keys = [(*key, value) for key in keys for value in values]
            if len(keys) > MOST_POINTS:
                return None
        return {found.oid for key in keys if (found := parts.find(key)) is not None}
    if parts.key.strategy == "h" or first is None:
        return None
    if first.null:
        if parts.key.strategy == "l":
            return {found.oid} if (found := parts.find((None,))) is not None else set()
        return default
    if parts.key.strategy == "l":
        return None
    return _in_range(parts, asked, default)


def _in_range(parts: Divided, asked: Sequence[_Wanted | None], default: set[int]) -> set[int] | None:
    lower: list[Any] = []
    upper: list[Any] = []
    above = below = False
    for want, type_ in zip(asked, parts.key.types, strict=True):
        if want is None:
            break
        sort = sort_key(base_oid(type_.oid)) or (lambda value: value)
        if want.points is not None:
            if not want.points:
                return set()
            values = sorted(sort(v) for v in want.points if v is not None)
            if not values:
                return default
            lower.append((0, values[0]))
            upper.append((0, values[-1]))
            if values[0] != values[-1]:
                break
            continue
        if "lower" in want.has:
            lower.append((0, sort(want.lower)))
            above = "above" in want.has
        if "upper" in want.has:
            upper.append((0, sort(want.upper)))
            below = "below" in want.has
        break
    if not lower and not upper:
        return None
    found = parts.overlapping(tuple(lower) or None, tuple(upper) or None, above=above, below=below)
    return {item.oid for item in found}


def _learn(test: Expr, parent: RelationDef, wanted: dict[int, _Wanted]) -> None:
    """Note what a condition asks of a column."""
    if isinstance(test, Var) and test.type.oid == BOOL:
        _points(wanted.setdefault(test.attnum, _Wanted()), [True], BOOL)
    elif isinstance(test, BoolExpr) and test.kind == "not" and isinstance(test.args[0], Var):
        _points(wanted.setdefault(test.args[0].attnum, _Wanted()), [False], BOOL)
    elif isinstance(test, NullTest) and not test.negated and isinstance(test.arg, Var):
        want = wanted.setdefault(test.arg.attnum, _Wanted())
        want.null = True
        _points(want, [None], test.arg.type.oid)
    elif isinstance(test, OpExpr) and len(test.args) == 2:
        _learn_comparison(test, parent, wanted)
    elif isinstance(test, ScalarArrayOp) and test.use_any:
        operator = facts().operators.get(test.op)
        column = _column(test.scalar)
        if operator is None or operator.name != "=" or column is None:
            return
        values = _elements(test.array, parent.column(column.attnum).type)
        if values is not None and len(values) <= MOST_POINTS:
            _points(
                wanted.setdefault(column.attnum, _Wanted()),
                [v for v in values if v is not None],
                column.type.oid,
            )


_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _learn_comparison(test: OpExpr, parent: RelationDef, wanted: dict[int, _Wanted]) -> None:
    operator = facts().operators.get(test.op)
    name = "" if operator is None else operator.name
    left, right = test.args
    if _column(left) is None:
        left, right, name = right, left, _TURNED.get(name, "")
    column = _column(left)
    while isinstance(right, RelabelType):
        right = right.arg
    if column is None or not isinstance(right, Const) or name not in _TURNED:
        return
    if not _alike(parent.column(column.attnum).type, right.type):
        return
    want = wanted.setdefault(column.attnum, _Wanted())
    oid = base_oid(parent.column(column.attnum).type.oid)
    if right.value is None:
        _points(want, [], oid)
        return
    sort = sort_key(oid) or (lambda value: value)
    if name == "=":
        _points(want, [right.value], oid)
    elif name in (">", ">="):
        if "lower" not in want.has or sort(right.value) > sort(want.lower):
            want.lower = right.value
            want.has.discard("above")
        want.has.add("lower")
        if name == ">" and sort(right.value) == sort(want.lower):
            want.has.add("above")
    else:
        if "upper" not in want.has or sort(right.value) < sort(want.upper):
            want.upper = right.value
            want.has.discard("below")
        want.has.add("upper")
        if name == "<" and sort(right.value) == sort(want.upper):
            want.has.add("below")


def _points(want: _Wanted, values: list[Any], oid: int) -> None:
    if want.points is None:
        want.points = values
        return
    made = hash_key(base_oid(oid)) or (lambda value: value)
    have = {None if v is None else made(v) for v in values}
    want.points = [v for v in want.points if (None if v is None else made(v)) in have]


def _column(node: Expr) -> Var | None:
    while isinstance(node, RelabelType):
        node = node.arg
    return node if isinstance(node, Var) and node.attnum > 0 else None


def _alike(column: SqlType, value: SqlType) -> bool:
    """Tell whether values of two types are compared as they stand."""
    a, b = base_oid(column.oid), base_oid(value.oid)
    return a == b or {a, b} <= _INTEGERS or {a, b} <= _TEXTS


def _elements(array: Expr, type_: SqlType) -> list[Any] | None:
    """Return the values of IN's list, None where they are not all constants of the column's type."""
    while isinstance(array, RelabelType):
        array = array.arg
    if isinstance(array, Const) and isinstance(array.value, tuple):
        if any(type(element) is tuple for element in array.value):
            return None  # of several dimensions
        fact = facts().types.get(array.type.oid)
        if fact is None or not _alike(type_, SqlType(fact.element)):
            return None
        return list(array.value)
    if not isinstance(array, ArrayExpr) or array.nested:
        return None
    values = []
    for element in array.elements:
        while isinstance(element, RelabelType):
            element = element.arg
        if not isinstance(element, Const) or not _alike(type_, element.type):
            return None
        values.append(element.value)
    return values
