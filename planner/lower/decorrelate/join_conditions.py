"""Correlated sub-selects in conditions of joins, for engines that take them in WHERE and select lists only.

    a JOIN b ON p AND (SELECT …)            a JOIN b ON p WHERE (SELECT …)      an inner join, its rows not made NULL further out

    a LEFT JOIN b ON p AND q(SELECT … b.y)      a LEFT JOIN (b LEFT JOIN r ON r.d1 = b.y) ON p AND q(r.v)
    a LEFT JOIN b ON p AND q(SELECT … a.x)      (a LEFT JOIN r ON r.d1 = a.x) LEFT JOIN b ON p AND q(r.v)
    a LEFT JOIN b ON p AND q(SELECT … a.x, b.y)     a LEFT JOIN (b JOIN r ON r.d2 = b.y) ON p AND r.d1 = a.x AND q(r.v)

r has a row for each of the values that the sub-select is asked for (``dependent``): the value v, or whether
rows exist. IN, ANY and ALL become EXISTS first.
"""

from __future__ import annotations

from dataclasses import replace

from planner import query as q
from planner.lower.decorrelate.dependent import (
    Domain,
    Unsuited,
    attach,
    domain_of,
    is_volatile,
    map_at,
    output,
)
from planner.lower.decorrelate.quantified import as_exists, can_be_exists
from planner.lower.kit.correlations import Correlations
from planner.lower.kit.from_items import BOOL, as_range, conjunction, ranges_in, ranges_of, same, terms
from planner.query.rewrite import shift_query
from planner.query.walk import children, walk


def settled(select: q.Select, engine: Correlations) -> q.Select:
    """Return a query without correlated sub-selects in conditions of joins that the engine does not take."""
    if not any(_has_link(item) for item in select.from_):
        return select
    work = _Work(select, engine)
    from_ = tuple(work.item(item, True) for item in select.from_)
    where = conjunction((*terms(select.where), *work.moved))
    return replace(select, from_=from_, ranges=tuple(work.ranges), where=where)


def are_refused(select: q.Select, engine: Correlations) -> bool:
    """Return whether conditions of joins have correlated sub-selects that the engine does not take."""
    return any(_is_refused(item, engine) for item in select.from_)


def _is_refused(item: q.FromItem, engine: Correlations) -> bool:
    if isinstance(item, q.RangeRef):
        return False
    own = any(not engine.takes_in_join(item, t, link) for t in terms(item.on) for link in _links(t))
    return own or _is_refused(item.left, engine) or _is_refused(item.right, engine)


def _has_link(item: q.FromItem) -> bool:
    return isinstance(item, q.Join) and (
        bool(_links(item.on)) or _has_link(item.left) or _has_link(item.right)
    )


def _links(node: object) -> list[q.SubLink]:
    """Return the correlated sub-selects of an expression."""
    if node is None or isinstance(node, q.QueryBase):
        return []
    own = [node] if isinstance(node, q.SubLink) and ranges_of(node.query) else []
    return own + [link for child in children(node) for link in _links(child)]


class _Work:
    """The FROM list of one query."""

    def __init__(self, select: q.Select, engine: Correlations) -> None:
        self.select = select
        self.engine = engine
        self.ranges = list(select.ranges)
        self.moved: list[q.Expr] = []

    def item(self, item: q.FromItem, stays: bool) -> q.FromItem:
        """Return a FROM item; ``stays``: its rows are not made NULL by a join around it."""
        if isinstance(item, q.RangeRef):
            return item
        left = self.item(item.left, stays and item.kind in (q.JoinKind.INNER, q.JoinKind.LEFT))
        right = self.item(item.right, stays and item.kind in (q.JoinKind.INNER, q.JoinKind.RIGHT))
        item = replace(item, left=left, right=right)
        if item.kind is q.JoinKind.INNER and stays:
            kept: list[q.Expr] = []
            for term in terms(item.on):
                (self.moved if _links(term) else kept).append(term)
            return replace(item, on=conjunction(kept))
        before = list(self.ranges)
        try:
            return self._without(item)
        except Unsuited:
            self.ranges = before
            return item

    def _without(self, join: q.Join) -> q.Join:
        """Return a join whose condition has no correlated sub-selects but those that the engine takes."""
        while True:
            found = next(
                ((t, link) for t in terms(join.on) for link in _links(t) if not self.engine.takes_in_join(join, t, link)), None
            )  # fmt: skip
            if found is None:
                return join
            term, link = found
            rest = [t for t in terms(join.on) if t is not term]
            if link.kind in (q.SubLinkKind.ANY, q.SubLinkKind.ALL):
                if not can_be_exists(link):
                    raise Unsuited
                join = replace(join, on=conjunction((*rest, _put(term, link, as_exists(link)))))
            else:
                join = self._joined(join, rest, term, link)

    def _joined(self, join: q.Join, rest: list[q.Expr], term: q.Expr, link: q.SubLink) -> q.Join:
        from planner.lower.decorrelate.unnest import (
            at_most_one_row,
            links_in,
            values_of,
        )  # which begins with these

        guards = next(g for found, g in links_in(term) if found is link)
        plain = [t for t in rest if not any(isinstance(n, q.SubLink) for n in walk(t))]
        if any(isinstance(n, q.SubLink) for guard in guards for n in walk(guard)):
            raise Unsuited
        if any(map(is_volatile, walk(link.query))):
            raise Unsuited
        if link.kind is not q.SubLinkKind.EXISTS and not (
            link.kind is q.SubLinkKind.SCALAR and at_most_one_row(link.query)
        ):
            raise Unsuited
        values = list(values_of(link.query))
        used = {n.range for value in values for n in walk(value) if isinstance(n, q.Var)}
        left, right = ranges_in(join.left), ranges_in(join.right)
        both = not (used <= left or used <= right)
        if not used <= left | right or (both and join.kind is q.JoinKind.FULL):
            raise Unsuited
        sides = (join.left, join.right) if both else (join.left,) if used <= left else (join.right,)
        there = set().union(*map(ranges_in, sides))
        if any(ranges_of(self.ranges[n]) - there for n in there):
            raise Unsuited  # LATERAL, of a range outside
        where = conjunction([t for t in (*plain, *guards) if ranges_of(t) <= there])
        source = replace(self.select, ranges=tuple(self.ranges), from_=sides, where=where)
        domain = domain_of(values, source)
        values = list(domain.places)
        rows = _rows(link, domain, both)
        index = len(self.ranges)
        self.ranges.append(rows)
        keys = [
            q.Var(type=c.type, range=index, attnum=c.attnum, name=c.name) for c in rows.columns[: len(values)]
        ]
        last = rows.columns[-1]
        value: q.Expr = q.Var(type=last.type, range=index, attnum=last.attnum, name=last.name)
        if link.kind is q.SubLinkKind.EXISTS:
            value = q.NullTest(type=BOOL, arg=value, negated=True)
        equal = [(ranges_of(v) <= left, same(key, v)) for key, v in zip(keys, values, strict=True)]
        ours = [test for of_left, test in equal if of_left]
        theirs = [test for of_left, test in equal if not of_left]
        on = [*rest, _put(term, link, value)]
        # The side whose rows need not all stay takes the rows in; with one side's values any takes them in by itself.
        to_left = join.kind is q.JoinKind.RIGHT if both else used <= left
        kind = q.JoinKind.INNER if both else q.JoinKind.LEFT
        inner, outer = (ours, theirs) if to_left else (theirs, ours)
        side = q.Join(
            kind=kind, left=join.left if to_left else join.right, right=q.RangeRef(range=index), on=conjunction(inner)
        )  # fmt: skip
        made = replace(join, left=side) if to_left else replace(join, right=side)
        return replace(made, on=conjunction((*on, *outer)))


def _rows(link: q.SubLink, domain: Domain, total: bool) -> q.SubqueryRange:
    """Return the values, and in the last column what the sub-select is for them; EXISTS is TRUE or NULL.

    ``total``: each of the values has a row.
    """
    # an aggregate of nothing is a row for EXISTS, and NULL or nothing for a value
    made = attach(link.query, domain, nothing_is_null=link.kind is q.SubLinkKind.SCALAR)
    width = len(domain.places)
    if link.kind is q.SubLinkKind.EXISTS:
        range_ = as_range(shift_query(made, 1), "r")
        columns = [q.Target(expr=_var(range_, 0, n), name=f"d{n}") for n in range(1, width + 1)]
        columns.append(q.Target(expr=q.Const(type=BOOL, value=True), name="found"))
        made = q.Select(
            targets=tuple(columns), columns=output(columns), ranges=(range_,), from_=(q.RangeRef(range=0),), distinct=True
        )  # fmt: skip
    if not total:
        return as_range(made, "r")
    values, rows = domain.range(1), as_range(shift_query(made, 1), "r")
    pairs = [(_var(values, 0, n), _var(rows, 1, n)) for n in range(1, width + 1)]
    on = conjunction([same(x, y) for x, y in pairs])
    joined = q.Join(kind=q.JoinKind.LEFT, left=q.RangeRef(range=0), right=q.RangeRef(range=1), on=on)
    targets = [q.Target(expr=x, name=x.name) for x, _ in pairs]
    targets.append(q.Target(expr=_var(rows, 1, len(rows.columns)), name="v"))
    whole = q.Select(targets=tuple(targets), columns=output(targets), ranges=(values, rows), from_=(joined,))
    return as_range(whole, "r")


def _var(range_: q.SubqueryRange, index: int, attnum: int) -> q.Var:
    column = range_.columns[attnum - 1]
    return q.Var(type=column.type, range=index, attnum=attnum, name=column.name)


def _put(term: q.Expr, link: q.SubLink, value: q.Expr) -> q.Expr:
    made: q.Expr = map_at(term, 0, lambda node, depth: value if depth == 0 and node is link else None)
    return made
