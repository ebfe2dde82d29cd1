"""``x op ANY (sub-select)`` and ``x op ALL (sub-select)`` by EXISTS, with their NULLs.

    x < ANY (SELECT v FROM t WHERE c)      EXISTS (SELECT TRUE FROM t WHERE c AND x < v) OR EXISTS (… AND (x < v) IS NULL) AND NULL

The comparison goes into the sub-select's own WHERE where that is the same; else the sub-select becomes a FROM
item of the EXISTS, and what it reads outside is read from one level further in. In the tree that is plain to
see, which ``sublinks`` would only write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from planner import query as q
from planner.lower.decorrelate.dependent import is_volatile, map_at, output
from planner.lower.kit.correlations import is_plain_in
from planner.lower.kit.from_items import BOOL, as_range, conjunction, terms
from planner.query.rewrite import replace_children, shift_levels, shift_query
from planner.query.walk import children, walk

_NULL = q.Const(type=BOOL, value=None)
_FOUND = (q.Target(expr=q.Const(type=BOOL, value=True), name="found"),)


def written_as_exists(node: object, *, every: bool) -> Any:
    """Return a tree with EXISTS for comparisons with ANY and ALL, but for plain IN; ``every``: not only of
    those that read a query around their own.
    """
    if isinstance(node, q.Select) and node.where is not None:
        found = [
            as_exists(term, truth=True) if _is_meant(term, every) else term for term in terms(node.where)
        ]
        node = replace(node, where=conjunction(found))
    elif _is_meant(node, every):
        node = as_exists(node)
    return replace_children(node, lambda child: written_as_exists(child, every=every))


def _is_meant(node: object, every: bool) -> TypeGuard[q.SubLink]:
    return (
        isinstance(node, q.SubLink)
        and node.kind in (q.SubLinkKind.ANY, q.SubLinkKind.ALL)
        and not is_plain_in(node)
        and can_be_exists(node)
        and (every or _reads_outside(node.query, 0) or any(_reads_outside(left, 1) for left in node.lefts))
    )


def _reads_outside(node: object, depth: int) -> bool:
    """Return whether something reads a query ``depth`` levels out or further."""
    if isinstance(node, q.Var | q.Aggregate) and node.level >= depth > 0 and getattr(node, "range", 0) >= 0:
        return True
    inner = depth + isinstance(node, q.QueryBase)
    return any(_reads_outside(child, inner) for child in children(node))


def can_be_exists(link: q.SubLink) -> bool:
    """Return whether what is compared may be evaluated within the sub-select: it has none of its own, and is
    the same each time.
    """
    return not any(isinstance(n, q.SubLink) or is_volatile(n) for left in link.lefts for n in walk(left))


def as_exists(link: q.SubLink, *, truth: bool = False) -> q.Expr:
    """Return a comparison with ANY or ALL by EXISTS; ``truth``: only TRUE matters, so FALSE may stand for NULL."""
    inside, rights = _opened(link.query)
    test = _test(link, rights)

    def exists(condition: q.Expr) -> q.Expr:
        asked = replace(inside, where=conjunction((*terms(inside.where), condition)))
        return q.SubLink(type=BOOL, kind=q.SubLinkKind.EXISTS, query=asked)

    def boolean(kind: Any, *args: q.Expr) -> q.Expr:
        return q.BoolExpr(type=BOOL, kind=kind, args=args)

    if link.kind is q.SubLinkKind.ANY:
        found = exists(test)
        unknown = exists(q.NullTest(type=BOOL, arg=test))
        return found if truth else boolean("or", found, boolean("and", unknown, _NULL))
    if truth:
        return boolean("not", exists(q.BooleanTest(type=BOOL, arg=test, test="true", negated=True)))
    refuted = exists(boolean("not", test))
    unknown = exists(q.NullTest(type=BOOL, arg=test))
    return boolean("and", boolean("not", refuted), boolean("or", boolean("not", unknown), _NULL))


def _opened(query: q.QueryExpr) -> tuple[q.Select, list[q.Expr]]:
    """Return a SELECT over a query's rows, and its columns there."""
    if isinstance(query, q.Select) and _is_plain(query):
        rights = [target.expr for target in query.targets if not target.junk]
        return replace(query, targets=_FOUND, columns=output(_FOUND), order=()), rights
    rows = as_range(shift_query(query, 1), "r")
    asked = q.Select(targets=_FOUND, columns=output(_FOUND), ranges=(rows,), from_=(q.RangeRef(range=0),))
    return asked, [q.Var(type=c.type, range=0, attnum=c.attnum, name=c.name) for c in rows.columns]


def _is_plain(select: q.Select) -> bool:
    """Return whether a row of a query's FROM that meets its WHERE is a row of it, whose values may be
    computed more than once or never.
    """
    return not (
        select.grouped or select.distinct or select.windows or select.ctes or select.having or select.row_marks
        or select.limit is not None or select.offset is not None
        or any(
            is_volatile(n) or isinstance(n, q.SubLink) or (isinstance(n, q.FuncExpr) and n.returns_set)
            for target in select.targets for n in walk(target)
        )
    )  # fmt: skip


def _test(link: q.SubLink, columns: Sequence[q.Expr]) -> q.Expr:
    """Return the comparison with a row of the sub-select, whose columns are those of a query inside."""

    def filled(node: object, depth: int) -> Any:
        if isinstance(node, q.Var) and node.range == -1:
            return shift_levels(columns[node.attnum - 1], depth)
        return None

    rights = list(columns[: len(link.lefts)])
    for n, cast in enumerate(link.casts):
        rights[n] = map_at(cast, 0, filled)
    lefts = [shift_levels(left, 1) for left in link.lefts]
    if link.row_kind:
        return q.RowCompare(
            type=BOOL, kind=link.row_kind, lefts=tuple(lefts), rights=tuple(rights), lt_procs=link.procs,
            eq_procs=link.eq_procs,
        )  # fmt: skip
    tests = [
        q.OpExpr(type=BOOL, op=op, proc=proc, args=pair)
        for op, proc, pair in zip(link.ops, link.procs, zip(lefts, rights, strict=True), strict=True)
    ]
    if len(tests) == 1:
        return tests[0]
    return q.BoolExpr(type=BOOL, kind="or" if link.join_or else "and", args=tuple(tests))
