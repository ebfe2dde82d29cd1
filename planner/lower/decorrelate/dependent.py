"""Dependent joins: a query that reads columns of the query around it, as one that does not (Neumann and Kemper, 2015).

    (SELECT sum(y.b * x.b) FROM y WHERE y.a < x.a)                for one row of x

    SELECT d.d1, d.d2, sum(y.b * d.d2)                            for all values (d1, d2) of (x.a, x.b) at once
      FROM (SELECT DISTINCT a AS d1, b AS d2 FROM x) AS d, y
     WHERE y.a < d.d1 GROUP BY d.d1, d.d2

The *domain* d has what the query is asked for, each value once. It joins every FROM list below the query that
reads it, and from there takes part in what is done with rows: in GROUP BY, DISTINCT, PARTITION BY and both
sides of UNION, INTERSECT and EXCEPT. LIMIT becomes a number of rows per value; an aggregate of everything
gets back the values for which it has no row.

Values of the domain stand for all rows that are equal to them, so their types have to be those of which equal
values are the same; a numeric has its display scale beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, TypeVar

from planner import facts as f
from planner import query as q
from planner.conversion.order import default_equality, default_less
from planner.evaluate import evaluate_constant
from planner.facts import facts
from planner.lower.decorrelate.grafting import Grafting, equalities
from planner.lower.kit.from_items import BOOL, as_range, chained, conjunction, ranges_in, same, terms
from planner.lower.query.lifting import null_of_nothing
from planner.query.exprs import free_levels
from planner.query.rewrite import replace_children, shift_levels, shift_query
from planner.query.walk import walk
from planner.types import SqlType

MAX_SOURCE_NODES: Final = 400
"""Of what a domain is taken from: it stands wherever the domain is read, and domains of domains double with
each level."""
ROW_NUMBER: Final = 3100
RANK: Final = 3101
INT8: Final = SqlType(f.INT8)
_SAME: Final = frozenset(
    (f.BOOL, f.INT2, f.INT4, f.INT8, f.TEXT, f.VARCHAR, f.DATE, f.TIMESTAMP, f.TIMESTAMPTZ, f.UUID, f.NUMERIC)
)
"""Types of which equal values are the same."""


_WithItems = TypeVar("_WithItems", q.Select, q.SetOp)


class Unsuited(Exception):
    """The query has no form without references to the query around it here."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a query is asked for.

    Attributes:
        query: yields each once, as seen from right below the query that has them.
        places: expression of that query -> attnum, from 1.
    """

    query: q.Select
    places: Mapping[q.Expr, int]

    def range(self, levels: int) -> q.SubqueryRange:
        """Return the values as a FROM entry of a query ``levels`` below the one that has them."""
        return as_range(shift_query(self.query, levels), "d")

    def columns(self, range_: int) -> tuple[q.Var, ...]:
        """Return its columns where it is range ``range_``."""
        return tuple(
            q.Var(type=c.type, range=range_, attnum=n, name=c.name)
            for n, c in enumerate(self.query.columns, 1)
        )


def domain_of(values: Sequence[q.Expr], source: q.Select) -> Domain:
    """Return the domain of some values over the rows of ``source``: its FROM and WHERE.

    Raises:
        Unsuited: equal values of a type need not be the same (1.0 and 1.00), it depends on when it is
        computed, or ``source`` is too large.
    """
    scales = [_scale_of(value) for value in values if value.type.oid == f.NUMERIC and value.type.typmod < 4]
    values = (*values, *scales)
    if any(not _is_one_value(value.type) for value in values) or any(map(is_volatile, walk(source))):
        raise Unsuited
    if next(islice(walk(source), MAX_SOURCE_NODES, None), None) is not None:
        raise Unsuited
    targets = tuple(q.Target(expr=value, name=f"d{n}") for n, value in enumerate(values, 1))
    made = q.Select(
        targets=targets, columns=output(targets), ranges=source.ranges, from_=source.from_, where=source.where,
        distinct=True,
    )  # fmt: skip
    if free_levels(made) != ([], []):
        raise Unsuited  # the query around it is itself inside another that it reads
    return Domain(below(_compact(made)), {value: n for n, value in enumerate(values, 1)})


def _compact(select: q.Select) -> q.Select:
    """Return a query without the ranges that its FROM does not have."""
    places = {old: new for new, old in enumerate(sorted(frozenset().union(*map(ranges_in, select.from_))))}

    def change(node: object, depth: int) -> Any:
        if isinstance(node, q.Var) and node.level == depth and node.range >= 0:
            return replace(node, range=places[node.range])
        return replace(node, range=places[node.range]) if isinstance(node, q.RangeRef) and not depth else None

    kept = replace(select, ranges=tuple(select.ranges[old] for old in places))
    return replace_children(kept, lambda child: map_at(child, 0, change))


def _scale_of(value: q.Expr) -> q.Expr:
    [proc] = facts().procs_by_name["scale"]
    return q.FuncExpr(type=SqlType(f.INT4), proc=proc.oid, args=(value,))


def _is_one_value(type_: SqlType) -> bool:
    return type_.oid in _SAME or (type_.oid == f.BPCHAR and type_.typmod >= 4)


def is_volatile(node: object) -> bool:
    """Return whether a node calls what may answer otherwise each time, or makes rows in a select list."""
    if not isinstance(node, q.FuncExpr | q.OpExpr):
        return False
    fact = facts().procs.get(node.proc)
    return fact is None or fact.volatility == "v"


def output(targets: Sequence[q.Target]) -> tuple[q.OutputColumn, ...]:
    """Return the columns of a query with these targets."""
    return tuple(q.OutputColumn(name=t.name, type=t.expr.type) for t in targets if not t.junk)


def below(query: q.Select) -> q.Select:
    """Return a query as it reads one level further in, where its WITH items stay behind; its own columns stay
    its own.
    """
    return replace_children(query, lambda child: _further_in(child, 0))


def _further_in(node: object, depth: int) -> Any:
    if isinstance(node, q.CteRange):
        return replace(node, level=node.level + 1) if node.level >= depth else node
    inner = depth + isinstance(node, q.QueryBase)
    return replace_children(node, lambda child: _further_in(child, inner))


def map_at(node: object, depth: int, change: Callable[[Any, int], Any]) -> Any:
    """Return a tree with ``change(node, query levels entered)`` in place of what it does not return None for."""
    found = change(node, depth)
    if found is not None:
        return found
    inner = depth + isinstance(node, q.QueryBase)
    return replace_children(node, lambda child: map_at(child, inner, change))


def attach(
    query: q.QueryExpr, domain: Domain, base: int = 1, *, nothing_is_null: bool = False
) -> q.QueryExpr:
    """Return a query that yields for each value of the domain the value's columns, then the rows of ``query`` for it.

    Args:
        query: reads the query of the domain, which is ``base`` levels out.
        domain: the values.
        base: see ``query``.
        nothing_is_null: the caller takes no row for a row of NULL.

    Raises:
        Unsuited: there is no such form.
    """
    return _Attaching(domain, base).query(query, nothing_is_null)


class _Attaching:
    """One query level."""

    def __init__(self, domain: Domain, base: int) -> None:
        self.domain = domain
        self.base = base
        self.width = len(domain.places)

    def query(self, query: q.QueryExpr, nothing_is_null: bool = False) -> q.QueryExpr:
        if query.limit is not None or query.offset is not None:
            return self._limited(query)
        match query:
            case q.Select():
                return self._select(query, nothing_is_null)
            case q.SetOp():
                query = self._with_inlined(query)
                sides = _Attaching(self.domain, self.base + 1)
                left, right = sides.query(query.left), sides.query(query.right)
                columns = (*left.columns[: self.width], *query.columns)
                return replace(query, left=left, right=right, columns=columns, order=())
            case q.Values():
                return self.query(_selects(query))

    def _is_read(self, nodes: Sequence[Any]) -> bool:
        keys = self.domain.columns(0)
        return any(self._own(node, keys) is not node for node in nodes)

    def _own(self, node: object, keys: Sequence[q.Expr]) -> Any:
        """Return a node of this query with the domain's columns for what they hold."""

        def change(item: Any, level: int) -> Any:
            if isinstance(item, q.Var | q.Aggregate) and item.level == level + self.base:
                place = self.domain.places.get(shift_levels(item, -item.level))
                if place is None:
                    raise Unsuited
                return shift_levels(keys[place - 1], level)
            return None

        return map_at(node, 0, change)

    # -- SELECT --------------------------------------------------------------------------------------

    def _select(self, select: q.Select, nothing_is_null: bool) -> q.QueryExpr:
        if select.row_marks or any(
            isinstance(t.expr, q.FuncExpr) and t.expr.returns_set for t in select.targets
        ):
            raise Unsuited
        if select.grouping_sets is not None and () in select.grouping_sets:
            return self.query(_without_empty_sets(select))
        here = len(select.ranges)
        keys = self.domain.columns(here)
        select = self._with_inlined(select)
        ranges = [*select.ranges, self.domain.range(self.base)]
        grafting = Grafting(ranges, self.domain.range(self.base), self._own)
        items: list[q.FromItem] = [q.RangeRef(range=here)]
        equal: list[q.Expr] = []
        for item in select.from_:
            there = frozenset().union(*map(ranges_in, items))
            if isinstance(item, q.Join) and not grafting.is_spine(item, there):
                made, theirs = grafting.copied(item)
                if theirs is None:
                    raise AssertionError("a range that depends on the outer query has no copy of its own")
                items.append(made)
                equal += equalities(keys, theirs)
            elif isinstance(item, q.Join) and grafting.reads(item):
                items = [grafting.on_spine(chained(items), item, keys)]
            else:
                items = [*items, grafting.beside(item, keys)]
        rest = replace(select, ranges=(), from_=())
        owned = replace_children(rest, lambda child: self._own(child, keys))
        where = conjunction([*terms(owned.where), *equal])
        owned = replace(owned, ranges=tuple(ranges), from_=tuple(items), where=where)
        if owned.grouped and not owned.group and owned.grouping_sets is None:
            return self._aggregate(owned, keys, nothing_is_null)
        return self._keyed(owned, keys)

    def _with_inlined(self, select: _WithItems) -> _WithItems:
        """Return the query with the WITH items that read the domain in place of their names."""
        for cte in select.ctes:
            current: q.Cte = next(c for c in select.ctes if c.name == cte.name)
            # Seen from the item's query, this one is a level out.
            if not self._is_read([current.query]):
                continue
            if current.recursive:
                raise Unsuited

            def inlined(node: object, depth: int, cte: q.Cte = current) -> Any:
                if not isinstance(node, q.CteRange) or node.level != depth or node.name != cte.name:
                    return None
                body = shift_query(cte.query, depth)
                return q.SubqueryRange(alias=node.alias, columns=node.columns, query=body, lateral=True)

            rest = replace(select, ctes=tuple(c for c in select.ctes if c.name != cte.name))
            select = replace_children(rest, lambda child: map_at(child, 0, inlined))
        return select

    def _keyed(self, select: q.Select, keys: Sequence[q.Var]) -> q.Select:
        """Return the query with the domain's columns among its rows' keys wherever it has keys."""
        shift = len(keys)
        first = tuple(q.Target(expr=key, name=key.name) for key in keys)
        sorted_ = tuple(map(_sort_by, keys))
        windows = tuple(replace(w, partition=(*sorted_, *w.partition)) for w in select.windows)
        distinct, order, targets = select.distinct, select.order, select.targets
        if isinstance(distinct, tuple):
            order = (
                *(q.SortKey(target=n, lt=by.lt, eq=by.eq) for n, by in enumerate(sorted_)),
                *(replace(key, target=key.target + shift) for key in order),
            )
            distinct = (*range(shift), *(n + shift for n in distinct))
        else:
            order, targets = (), tuple(t for t in targets if not t.junk)
        group, sets = select.group, select.grouping_sets
        if select.grouped:
            if sets is not None and () in sets:
                raise Unsuited  # it has a row for values without any
            group = (*keys, *group)
            if sets is not None:
                sets = tuple((*range(shift), *(n + shift for n in chosen)) for chosen in sets)
        made = replace(
            select, targets=(*first, *targets), windows=windows, distinct=distinct, order=order, group=group,
            grouping_sets=sets,
        )  # fmt: skip
        if sets is not None or group != select.group:
            made = _regrouped(made, shift)
        return replace(made, columns=output(made.targets))

    def _aggregate(self, select: q.Select, keys: Sequence[q.Var], nothing_is_null: bool) -> q.Select:
        """Return an aggregate of everything: one row for every value, those without rows included."""
        [target] = select.targets if len(select.targets) == 1 else [None]
        plain = not (select.having or select.windows or select.distinct)
        if nothing_is_null and plain and target is not None and null_of_nothing(target.expr):
            return self._keyed(replace(select, grouped=True), keys)
        found: dict[q.Aggregate, int] = {}
        here, there = 0, 1
        place = keys[0].range

        def outer(node: object, depth: int) -> Any:
            if isinstance(node, q.Aggregate) and node.level == depth:
                own = shift_levels(node, -depth)
                if not isinstance(own, q.Aggregate):
                    raise AssertionError(f"an outer aggregate is {type(own).__name__}")
                if own.direct:
                    raise Unsuited
                attnum = found.setdefault(own, len(found) + len(keys) + 1)
                value = q.Var(type=own.type, range=there, attnum=attnum, level=depth)
                if facts().procs[own.proc].name not in _ZERO_OF_NOTHING:
                    return value
                return q.CoalesceExpr(type=own.type, args=(value, q.Const(type=own.type, value=0)))
            if isinstance(node, q.Var) and node.level == depth and node.range >= 0:
                if node.range != place:
                    raise Unsuited
                return replace(node, range=here)
            if isinstance(node, q.GroupingFunc) and depth == 0:
                raise Unsuited
            return None

        targets = tuple(map_at(t, 0, outer) for t in select.targets if not t.junk)
        windows = tuple(map_at(w, 0, outer) for w in select.windows)
        having = None if select.having is None else map_at(select.having, 0, outer)
        values = [q.Target(expr=k, name=k.name) for k in keys]
        values += [q.Target(expr=aggregate, name=f"a{n}") for aggregate, n in found.items()]
        groups = replace(
            select, targets=tuple(values), columns=output(values), group=tuple(keys), having=None, windows=(),
            distinct=False, order=(), ctes=(),
        )  # fmt: skip
        inner = as_range(below(groups), "g")
        ours, theirs = self.domain.columns(here), self.domain.columns(there)
        on = conjunction([same(x, y) for x, y in zip(ours, theirs, strict=True)])
        joined = q.Join(
            kind=q.JoinKind.LEFT, left=q.RangeRef(range=here), right=q.RangeRef(range=there), on=on
        )
        whole = q.Select(
            targets=targets, columns=output(targets), ctes=select.ctes, ranges=(self.domain.range(self.base), inner),
            from_=(joined,), where=having, windows=windows, distinct=bool(select.distinct),
        )  # fmt: skip
        return self._keyed(whole, ours)

    # -- LIMIT ---------------------------------------------------------------------------------------

    def _limited(self, query: q.QueryExpr) -> q.Select:
        """Return so many rows for each value: by their numbers."""
        limit, offset = count_of(query.limit), count_of(query.offset) or 0
        order = query.order
        chooses = isinstance(query, q.Select) and isinstance(query.distinct, tuple)
        whole = replace(query, limit=None, offset=None, order=order if chooses else (), with_ties=False)
        kept = len(query.columns)
        if isinstance(whole, q.Select):
            # What is sorted by is needed outside; columns to keep come first.
            own = whole.targets
            places = sorted(range(len(own)), key=lambda n: own[n].junk)
            targets = tuple(replace(own[n], junk=False) for n in places)
            now = {old: new for new, old in enumerate(places)}
            order = tuple(replace(k, target=now[k.target]) for k in order)
            again = tuple(replace(k, target=now[k.target]) for k in whole.order)
            distinct = whole.distinct
            if isinstance(distinct, tuple):
                distinct = tuple(now[n] for n in distinct)
            whole = replace(whole, targets=targets, columns=output(targets), order=again, distinct=distinct)
        rows = as_range(shift_query(self.query(whole), 1), "r")
        columns = [q.Var(type=c.type, range=0, attnum=c.attnum, name=c.name) for c in rows.columns]
        keys = tuple(map(_sort_by, columns[: self.width]))
        by = tuple(
            q.SortBy(
                expr=columns[k.target + self.width], descending=k.descending, nulls_first=k.nulls_first, lt=k.lt, eq=k.eq
            )
            for k in order
        )  # fmt: skip
        window = q.Window(partition=keys, order=by or keys)
        numbers = (ROW_NUMBER, RANK) if query.with_ties else (ROW_NUMBER,)
        shown = columns[: self.width + kept]
        numbered = [q.Target(expr=c, name=c.name) for c in shown]
        numbered += [
            q.Target(expr=q.WindowFunc(type=INT8, proc=proc, args=(), window=0), name=f"n{n}")
            for n, proc in enumerate(numbers, 1)
        ]
        middle = q.Select(
            targets=tuple(numbered), columns=output(numbered), ranges=(rows,), from_=(q.RangeRef(range=0),),
            windows=(window,),
        )  # fmt: skip
        number = q.Var(type=INT8, range=0, attnum=len(shown) + 1)
        terms = [_compare(">", number, offset)] if offset else []
        if limit is not None:
            # no row has no peers: what is told by its number then
            last = replace(number, attnum=len(shown) + len(numbers)) if limit else number
            terms.append(_compare("<=", last, offset + limit))
        targets = tuple(numbered[: len(shown)])
        return q.Select(
            targets=targets, columns=output(targets), ranges=(as_range(shift_query(middle, 1), "n"),),
            from_=(q.RangeRef(range=0),), where=conjunction(terms),
        )  # fmt: skip


_ZERO_OF_NOTHING: Final = ("count", "regr_count")


def _sort_by(expr: q.Expr) -> q.SortBy:
    oid = expr.type.oid
    return q.SortBy(expr=expr, lt=default_less(oid).proc, eq=default_equality(oid).proc)


def count_of(expr: q.Expr | None) -> int | None:
    """Return a LIMIT or OFFSET; None where it is none.

    Raises:
        Unsuited: it is not a constant, or negative.
    """
    if expr is None:
        return None
    if any(isinstance(n, q.Var | q.Param | q.SubLink) or is_volatile(n) for n in walk(expr)):
        raise Unsuited
    value = evaluate_constant(expr)
    if not (value is None or (isinstance(value, int) and value >= 0)):
        raise Unsuited
    return value


def _compare(symbol: str, left: q.Expr, right: int) -> q.Expr:
    op = next(o for o in facts().operators_by_name[symbol] if o.left == o.right == f.INT8)
    return q.OpExpr(type=BOOL, op=op.oid, proc=op.proc, args=(left, q.Const(type=INT8, value=right)))


def _selects(values: q.Values) -> q.QueryExpr:
    """Return VALUES as SELECTs."""
    parts: list[q.QueryExpr] = []
    for row in values.rows:
        targets = tuple(q.Target(expr=cell, name=c.name) for cell, c in zip(row, values.columns, strict=True))
        parts.append(q.Select(targets=targets, columns=values.columns))
    if values.ctes:
        raise Unsuited
    made, *rest = parts
    for part in rest:
        sides = (shift_query(made, 1), shift_query(part, 1))
        made = q.SetOp(columns=values.columns, op="union", all=True, left=sides[0], right=sides[1])
    return made


def _regrouped(select: q.Select, shift: int) -> q.Select:
    """Return a query with ``shift`` keys more at the start of GROUP BY."""

    def change(node: object, depth: int) -> Any:
        if isinstance(node, q.GroupingFunc) and depth == 0:
            return replace(node, indexes=tuple(n + shift for n in node.indexes))
        return node if isinstance(node, q.QueryBase) else None

    return replace_children(select, lambda child: map_at(child, 0, change))


def _without_empty_sets(select: q.Select) -> q.QueryExpr:
    """Return a query over grouping sets as a union that has an aggregate of everything for each empty one.

    Raises:
        Unsuited: what is done with all rows of it together would be done with those of one side.
    """
    if select.windows or isinstance(select.distinct, tuple) or select.grouping_sets is None:
        raise Unsuited
    nulls = {expr: q.Const(type=expr.type, value=None) for expr in select.group}

    def change(node: object, depth: int) -> Any:
        if isinstance(node, q.Aggregate) and node.level == depth:
            return node
        if isinstance(node, q.GroupingFunc) and not depth:
            return q.Const(type=node.type, value=(1 << len(node.indexes)) - 1)
        if not isinstance(node, q.Expr):
            return None
        own = isinstance(node, q.Var) and node.level == depth and node.range >= 0
        known = nulls.get(shift_levels(node, -depth)) if own or not depth else None
        if known is not None:
            return known
        if own:
            raise Unsuited  # a key of the group fixes it
        return None

    targets = tuple(map_at(t, 0, change) for t in select.targets if not t.junk)
    having = None if select.having is None else map_at(select.having, 0, change)
    whole = replace(select, targets=targets, having=having, group=(), grouping_sets=None, order=())
    sets = tuple(chosen for chosen in select.grouping_sets if chosen)
    sides: list[q.QueryExpr] = [whole] * (len(select.grouping_sets) - len(sets))
    if sets:
        kept = tuple(t for t in select.targets if not t.junk)
        sides.insert(0, replace(select, targets=kept, grouping_sets=sets, order=()))
    made, *rest = sides  # one where there are no other sets
    for side in rest:
        pair = (shift_query(made, 1), shift_query(side, 1))
        made = q.SetOp(
            columns=select.columns, op="union", all=not select.distinct, left=pair[0], right=pair[1]
        )
    return made


__all__ = ["Domain", "Unsuited", "attach", "domain_of"]
