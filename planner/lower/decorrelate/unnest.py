"""Sub-queries that an engine does not take, written so that it does.

    SELECT a, (SELECT sum(y.b * x.b) FROM y WHERE y.a < x.a) FROM x         an outer value inside an aggregate

    SELECT x.a, r.s FROM x LEFT JOIN r ON r.d1 IS NOT DISTINCT FROM x.a AND r.d2 IS NOT DISTINCT FROM x.b
      where r = for all values of (a, b) at once, see ``dependent``

What engines take themselves: ``correlations``. Of what they do not,

    a scalar one of one row    becomes a join                                          x.a < (SELECT …)      x.a < r.v
    EXISTS, IN, ANY, ALL …     asks the uncorrelated query by equality, as engines like it    EXISTS (SELECT 1 FROM r WHERE r.d1 = x.a)
    LATERAL                    becomes a FROM item that is joined by equality
    one in ON                  goes to WHERE where that is the same, else its values are joined to a side (``join_conditions``)

What has no such form stays as it is, and ``remaining`` says what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner import query as q
from planner.lower.decorrelate import join_conditions
from planner.lower.decorrelate.dependent import (
    Unsuited,
    attach,
    below,
    count_of,
    domain_of,
    is_volatile,
    map_at,
    output,
)
from planner.lower.decorrelate.grafting import Grafting, equalities
from planner.lower.decorrelate.hoisting import MADE, hoisted
from planner.lower.decorrelate.quantified import written_as_exists
from planner.lower.kit.correlations import Correlations
from planner.lower.kit.from_items import (
    BOOL,
    as_range,
    chained,
    conjunction,
    ranges_in,
    ranges_of,
    same,
    terms,
)
from planner.query.exprs import free_levels
from planner.query.rewrite import replace_children, shift_levels, shift_query
from planner.query.walk import children, walk


def unnest(query: q.QueryExpr, engine: Correlations) -> q.QueryExpr:
    """Return the query with the sub-queries that an engine does not take in forms that it takes."""
    if not any(
        isinstance(n, q.SubLink) or (isinstance(n, q.SubqueryRange) and n.lateral) for n in walk(query)
    ):
        return query
    return hoisted(_unnested(written_as_exists(query, every=engine.is_asked_by_exists), engine))


def remaining(query: q.QueryExpr, engine: Correlations) -> str:
    """Return what of a query the engine does not take, '' if nothing is known."""
    for node in walk(query):
        correlated = isinstance(node, q.SubLink) or (isinstance(node, q.SubqueryRange) and node.lateral)
        if correlated and engine.refuses(node.query):
            return engine.named
        if isinstance(node, q.Select):
            if join_conditions.are_refused(node, engine):
                return "a correlated sub-select in this condition of a join"
            if engine.refuses_place(node):
                return "LATERAL in this place of a join"
    return ""


def _unnested(node: object, engine: Correlations) -> Any:
    if isinstance(node, q.Select):
        node = _select(node, engine)
    return replace_children(node, lambda child: _unnested(child, engine))


def _select(select: q.Select, engine: Correlations) -> q.Select:
    select = join_conditions.settled(select, engine)
    if engine.refuses_place(select):
        for position in range(len(select.from_)):
            select = _placed(select, position)
    for index, range_ in enumerate(select.ranges):
        if isinstance(range_, q.SubqueryRange) and range_.lateral:
            select = _lateral(select, index, range_, engine)
    tried: set[q.SubLink] = set()
    while True:
        of_groups = select.grouped and _next(_of_groups(select), tried, engine) is not None
        found = _next(_of_rows(select), tried, engine)
        if found is None and of_groups:
            try:
                select = _groups_below(select)
            except Unsuited:
                return select
            continue
        if found is None:
            return select
        link, guards = found
        tried.add(link)
        try:
            select = _rewritten(select, link, guards)
        except Unsuited:
            continue


# --- which ----------------------------------------------------------------------------------------


def values_of(query: q.QueryExpr) -> dict[q.Expr, None]:
    """Return what a sub-query reads of the query around it, as that query's expressions.

    Raises:
        Unsuited: it reads queries further out.
    """
    found: dict[q.Expr, None] = {}
    _read_outside(query, 0, found)
    return found


def _read_outside(node: object, depth: int, found: dict[q.Expr, None]) -> None:
    if isinstance(node, q.Var | q.Aggregate) and node.level >= depth and getattr(node, "range", 0) >= 0:
        if node.level > depth:
            raise Unsuited
        found[shift_levels(node, -depth)] = None
        return
    inner = depth + isinstance(node, q.QueryBase)
    for child in children(node):
        _read_outside(child, inner, found)


Guarded = tuple[q.SubLink, tuple[q.Expr, ...]]
"""A sub-select, and what has to be true for it to be evaluated at all."""


def _next(links: Iterator[Guarded], tried: set[q.SubLink], engine: Correlations) -> Guarded | None:
    return next(((link, g) for link, g in links if link not in tried and engine.refuses(link.query)), None)


def _of_rows(select: q.Select) -> Iterator[Guarded]:
    """Yield the sub-selects over single rows of FROM."""
    yield from links_in(select.where)
    if not select.grouped:
        for node in (*select.targets, *select.windows):
            yield from links_in(node)
        return
    for group in select.group:
        yield from links_in(group)
    for aggregate in _aggregates(select):
        guards = () if aggregate.filter is None else (aggregate.filter,)
        for node in (*aggregate.args, *aggregate.order):
            yield from links_in(node, guards)
        yield from links_in(aggregate.filter)


def _of_groups(select: q.Select) -> Iterator[Guarded]:
    known = set(select.group)

    def outside(node: object) -> Iterator[Guarded]:
        yield from links_in(node, (), lambda n: isinstance(n, q.Aggregate) or n in known)

    for node in (*select.targets, *select.windows):
        yield from outside(node)
    if select.having is not None:
        yield from outside(select.having)


def _aggregates(select: q.Select) -> Iterator[q.Aggregate]:
    for node in (*select.targets, *select.windows, *([] if select.having is None else [select.having])):
        yield from _aggregates_in(node)


def _aggregates_in(node: object) -> Iterator[q.Aggregate]:
    if isinstance(node, q.Aggregate):
        if node.level == 0:
            yield node
        return
    for child in children(node):
        if not isinstance(child, q.QueryBase):
            yield from _aggregates_in(child)


def links_in(
    node: object, guards: tuple[q.Expr, ...] = (), stop: Callable[[Any], bool] = lambda _: False
) -> Iterator[Guarded]:
    """Yield the sub-selects below a node that belong to its own query level."""
    if node is None or isinstance(node, q.QueryBase) or stop(node):
        return
    if isinstance(node, q.SubLink):
        yield node, guards
    if isinstance(node, q.CaseExpr):
        for when in node.whens:
            yield from links_in(when.condition, guards, stop)
            yield from links_in(when.result, (*guards, when.condition), stop)
            guards = (*guards, q.BooleanTest(type=BOOL, arg=when.condition, test="true", negated=True))
        yield from links_in(node.default, guards, stop)
    elif isinstance(node, q.CoalesceExpr):
        for arg in node.args:
            yield from links_in(arg, guards, stop)
            guards = (*guards, q.NullTest(type=BOOL, arg=arg))
    else:
        for child in children(node):
            yield from links_in(child, guards, stop)


# --- how ------------------------------------------------------------------------------------------


def _rewritten(select: q.Select, link: q.SubLink, guards: tuple[q.Expr, ...]) -> q.Select:
    """Return the query without a sub-select over rows of its FROM that the engine does not take."""
    if any(isinstance(n, q.SubLink) for guard in guards for n in walk(guard)):
        raise Unsuited  # it would be evaluated where it must not be
    if any(map(is_volatile, walk(link.query))):
        raise Unsuited
    where = [t for t in terms(select.where) if not any(isinstance(n, q.SubLink) for n in walk(t))]
    source = replace(select, where=conjunction((*(t for t in where if _is_own(t)), *guards)))
    domain = domain_of(list(values_of(link.query)), source)
    if link.kind is q.SubLinkKind.SCALAR and at_most_one_row(link.query):
        rows = as_range(attach(link.query, domain, nothing_is_null=True), "r")
        return joined(select, rows, domain.places, link)
    # In WITH: DuckDB loses rows of what an IN reads where sub-selects of that are correlated among themselves.
    found = attach(link.query, domain)
    cte = q.Cte(name=f"{MADE}{len(select.ctes)}", query=found, columns=found.columns)
    width = len(domain.places)
    columns = [q.Var(type=c.type, range=0, attnum=n, name=c.name) for n, c in enumerate(found.columns, 1)]
    seen = tuple(q.RangeColumn(name=c.name, type=c.type, attnum=c.attnum) for c in columns)
    range_ = q.CteRange(alias="r", columns=seen, name=cte.name, level=1)
    where = [
        same(column, shift_levels(value, 1)) for value, column in zip(domain.places, columns, strict=False)
    ]
    targets = tuple(q.Target(expr=c, name=c.name) for c in columns[width:] or columns[:1])
    asked = q.Select(
        targets=targets, columns=output(targets), ranges=(range_,), from_=(q.RangeRef(range=0),), where=conjunction(where)
    )  # fmt: skip
    return _with(replace(select, ctes=(*select.ctes, cte)), link, replace(link, query=asked))


def _is_own(expr: q.Expr) -> bool:
    """Return whether an expression reads no query around its own."""
    columns, aggregates = free_levels(expr)
    return not any(columns) and not aggregates


def joined(
    select: q.Select, rows: q.SubqueryRange, values: Mapping[q.Expr, int], link: q.SubLink
) -> q.Select:
    """Return the query LEFT JOINed with ``rows``, a row at most for each of the values, its last column in
    place of ``link``.
    """
    index = len(select.ranges)
    source = chained(select.from_)
    on = conjunction([same(_column(rows, index, place), value) for value, place in values.items()])
    source = q.Join(kind=q.JoinKind.LEFT, left=source, right=q.RangeRef(range=index), on=on)
    made = replace(select, ranges=(*select.ranges, rows), from_=(source,))
    return _with(made, link, _column(rows, index, len(rows.columns)))


def _column(rows: q.SubqueryRange, index: int, attnum: int) -> q.Var:
    column = rows.columns[attnum - 1]
    return q.Var(type=column.type, range=index, attnum=attnum, name=column.name)


def _with(select: q.Select, link: q.SubLink, made: q.Expr) -> q.Select:
    def change(node: object, depth: int) -> Any:
        if isinstance(node, q.QueryBase):
            return node
        return made if isinstance(node, q.SubLink) and node == link else None

    return replace_children(select, lambda child: map_at(child, 0, change))


def at_most_one_row(query: q.QueryExpr) -> bool:
    """Return whether a query certainly yields no more than one row."""
    try:
        if count_of(query.limit) in (0, 1) and not query.with_ties:
            return True
    except Unsuited:
        pass
    if isinstance(query, q.Values):
        return len(query.rows) == 1
    return (
        isinstance(query, q.Select)
        and query.grouped
        and not (query.group or query.grouping_sets)
        and not any(isinstance(t.expr, q.FuncExpr) and t.expr.returns_set for t in query.targets)
    )


def _groups_below(select: q.Select) -> q.Select:
    """Return a grouped query as one over its groups, which are a FROM item: what is asked of groups is asked
    of rows.
    """
    if select.grouping_sets is not None or any(isinstance(n, q.GroupingFunc) for n in walk(select)):
        raise Unsuited
    places: dict[q.Expr, int] = {expr: n for n, expr in enumerate(select.group, 1)}

    def change(node: object, depth: int) -> Any:
        if not isinstance(node, q.Expr):
            return None
        own = None
        if depth == 0 and node in places:
            own = node
        elif isinstance(node, q.Aggregate) and node.level == depth:
            own = shift_levels(node, -depth)
        elif isinstance(node, q.Var) and node.level == depth and node.range >= 0:
            own = replace(node, level=0)  # in no group only where a key fixes it
        if own is None:
            return None
        place = places.setdefault(own, len(places) + 1)
        return q.Var(type=own.type, range=0, attnum=place, level=depth)

    targets = tuple(map_at(t, 0, change) for t in select.targets)
    windows = tuple(map_at(w, 0, change) for w in select.windows)
    having = None if select.having is None else map_at(select.having, 0, change)
    fixed = tuple(e for e in places if isinstance(e, q.Var) and e not in select.group)
    inner = tuple(q.Target(expr=expr, name=f"g{n}") for expr, n in places.items())
    groups = replace(
        select, targets=inner, columns=output(inner), group=(*select.group, *fixed) if select.group else (),
        having=None, windows=(), distinct=False, order=(), limit=None, offset=None, with_ties=False, ctes=(),
    )  # fmt: skip
    if not select.group and fixed:
        raise Unsuited
    return replace(
        select, targets=targets, windows=windows, where=having, having=None, grouped=False, group=(),
        ranges=(as_range(below(groups), "g"),), from_=(q.RangeRef(range=0),),
    )  # fmt: skip


# --- LATERAL --------------------------------------------------------------------------------------


def _lateral(select: q.Select, index: int, range_: q.SubqueryRange, engine: Correlations) -> q.Select:
    """Return the query with a LATERAL sub-query that the engine does not take as one that is not."""
    try:
        values = list(values_of(range_.query))
        if not values:
            return _with_range(select, index, replace(range_, lateral=False))
        if not engine.refuses(range_.query) or any(map(is_volatile, walk(range_.query))):
            return select
        source = _before(select, index)
        domain = domain_of(values, source)
        made = attach(range_.query, domain)
    except Unsuited:
        return select
    width = len(domain.places)
    found = as_range(shift_query(made, 1), range_.alias)
    columns = [_column(found, 0, c.attnum) for c in found.columns]
    targets = tuple(q.Target(expr=c, name=c.name) for c in (*columns[width:], *columns[:width]))
    turned = q.Select(targets=targets, columns=output(targets), ranges=(found,), from_=(q.RangeRef(range=0),))
    last = max((c.attnum for c in range_.columns), default=0)
    keys = tuple(
        q.RangeColumn(name=c.name, type=c.type, attnum=last + n) for n, c in enumerate(columns[:width], 1)
    )
    plain = replace(range_, query=turned, columns=(*range_.columns, *keys), lateral=False)
    equal = [
        same(q.Var(type=key.type, range=index, attnum=key.attnum, name=key.name), value)
        for key, value in zip(keys, domain.places, strict=True)
    ]
    select = _with_range(select, index, plain)
    if q.RangeRef(range=index) in select.from_:
        return replace(select, where=conjunction((*terms(select.where), *equal)))

    def joined_by(node: object, depth: int) -> Any:
        if isinstance(node, q.Join) and not depth and node.right == q.RangeRef(range=index):
            return replace(node, on=conjunction((*terms(node.on), *equal)))
        return None

    return replace(select, from_=tuple(map_at(item, 0, joined_by) for item in select.from_))


def _placed(select: q.Select, position: int) -> q.Select:
    """Return the query with a join in its FROM list whose LATERAL items read what stands before it, as one
    that reads copies of that.
    """
    item = select.from_[position]
    before = select.from_[:position]
    there = frozenset().union(*map(ranges_in, before))
    places: dict[q.Expr, None] = {}
    for n in ranges_in(item):
        for var in _read_at(select.ranges[n], 0):
            if var.range in there:
                places[var] = None
    if not places or isinstance(item, q.RangeRef):
        return select
    try:
        domain = domain_of(list(places), replace(select, from_=before, where=_terms_over(select, there)))

        def own(node: object, keys: Sequence[q.Expr]) -> Any:
            def change(part: Any, level: int) -> Any:
                if not isinstance(part, q.Var) or part.level != level:
                    return None
                place = domain.places.get(shift_levels(part, -level))
                return None if place is None else shift_levels(keys[place - 1], level)

            return map_at(node, 0, change)

        ranges = list(select.ranges)
        made, keys = Grafting(ranges, domain.range(0), own).copied(item)
    except Unsuited:
        return select
    if keys is None:
        raise AssertionError("the sub-query has no keys")
    equal = equalities(keys, list(domain.places))
    from_ = (*before, made, *select.from_[position + 1 :])
    return replace(
        select, ranges=tuple(ranges), from_=from_, where=conjunction((*terms(select.where), *equal))
    )


def _read_at(node: object, depth: int) -> Iterator[q.Var]:
    """Yield the columns that a range reads of the query in whose FROM it is, as that query's."""
    if isinstance(node, q.Var):
        if node.level == depth and node.range >= 0:
            yield replace(node, level=0)
        return
    inner = depth + isinstance(node, q.QueryBase)
    for child in children(node):
        yield from _read_at(child, inner)


def _terms_over(select: q.Select, there: frozenset[int]) -> q.Expr | None:
    """Return the terms of WHERE that read some ranges and nothing else."""
    return conjunction(
        [
            t
            for t in terms(select.where)
            if not any(isinstance(n, q.SubLink) for n in walk(t)) and _is_own(t) and ranges_of(t) <= there
        ]
    )


def _before(select: q.Select, index: int) -> q.Select:
    """Return the query whose rows a LATERAL range is evaluated for.

    Raises:
        Unsuited: it is not the right side of a join.
    """
    for position, item in enumerate(select.from_):
        if item == q.RangeRef(range=index):
            before = select.from_[:position]
            there = frozenset().union(*map(ranges_in, before))
            return replace(select, from_=before, where=_terms_over(select, there))
    for join in (n for item in select.from_ for n in walk(item) if isinstance(n, q.Join)):
        if join.right == q.RangeRef(range=index) and join.kind in (q.JoinKind.INNER, q.JoinKind.LEFT):
            there = ranges_in(join.left)
            if not any(ranges_of(select.ranges[n]) - there for n in (*there, index)):
                # Not WHERE: rows that it drops may be what keeps a join further out from making NULLs.
                return replace(select, from_=(join.left,), where=None)
    raise Unsuited


def _with_range(select: q.Select, index: int, range_: q.Range) -> q.Select:
    return replace(select, ranges=(*select.ranges[:index], range_, *select.ranges[index + 1 :]))
