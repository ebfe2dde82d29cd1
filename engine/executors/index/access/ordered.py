"""ORDER BY ... LIMIT answered by reading an index in order, as far as the limit; LIMIT alone by reading a
range as far as that.

    SELECT * FROM t WHERE a = $1 AND b > $2 ORDER BY b LIMIT 20      index (a, b): prefix a, bound on b, 20 rows

Only where that is the whole query: one stored table, every condition served by the index, no grouping, DISTINCT,
windows or set-returning functions. Index order has NULLs last, so descending reads have them first.

Without ORDER BY any rows of the range will do. Batches live by that: ``DELETE … WHERE ctid IN (SELECT ctid …
WHERE a < $1 LIMIT 1000)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.executors.index.access.choice import Access, column_uses, serve
from planner.catalog import Catalog, RelationDef
from planner.facts import (
    BOOL,
    BYTEA,
    DATE,
    INT2,
    INT4,
    INT8,
    NAME,
    OID,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
    facts,
)  # fmt: skip
from planner.query import (
    Const,
    Expr,
    FuncExpr,
    Param,
    RangeRef,
    RelabelType,
    RelationRange,
    Select,
    SortKey,
    Var,
    WindowFunc,
)
from planner.query.walk import walk

ORDERED_TYPES = frozenset(
    (BOOL, BYTEA, DATE, INT2, INT4, INT8, NAME, OID, TEXT, TIMESTAMP, TIMESTAMPTZ, UUID, VARCHAR)
)
SMALL_LIMIT = 10_000  # rows up to which such a read counts as small


@dataclass(frozen=True, slots=True)
class Ordered:
    """An access that gives rows in the query's order; ``counts`` are LIMIT and OFFSET, whose sum bounds the read."""

    access: Access
    reverse: bool
    counts: tuple[Expr, ...]


def ordered_access(query: Select, catalog: Catalog, conjuncts: list[Expr]) -> Ordered | None:
    """Return how an index answers ORDER BY and LIMIT of ``query``, or None."""
    counts = limits_of(query) if query.order else None
    if counts is None:
        return None
    (ref,) = query.from_
    if not isinstance(ref, RangeRef):
        raise AssertionError(f"the only item of FROM is {type(ref).__name__}, not a range")
    item = query.ranges[ref.range]
    relation = catalog.relation_by_oid(item.oid) if isinstance(item, RelationRange) else None
    if relation is None:
        return None
    keys = [_order_column(query, key, ref.range) for key in query.order]
    if any(k is None for k in keys):
        return None
    columns = [k for k in keys if k is not None]
    return _search(relation, ref.range, conjuncts, columns, list(query.order), counts)


def limits_of(query: Select) -> tuple[Expr, ...] | None:
    """Return LIMIT and OFFSET of a query whose rows are those of one stored table, one for one; None of others."""
    if query.limit is None or query.with_ties or query.grouped or query.distinct:
        return None
    if len(query.from_) != 1 or not isinstance(query.from_[0], RangeRef):
        return None
    item = query.ranges[query.from_[0].range]
    if (
        not isinstance(item, RelationRange)
        or item.virtual
        or item.guard is not None
        or item.sample is not None
    ):
        return None  # of a guarded table, or of a sample, it is not known how many rows the limit takes
    counts = tuple(x for x in (query.limit, query.offset) if x is not None)
    if not all(isinstance(_bare(x), Const | Param) for x in counts):
        return None
    for node in (n for t in query.targets for n in walk(t.expr)):
        if isinstance(node, WindowFunc) or (isinstance(node, FuncExpr) and node.returns_set):
            return None
    return counts


def enough(query: Select, access: Access, conjuncts: list[Expr]) -> tuple[Expr, ...] | None:
    """Return the counts that bound a read of any rows of a range that serves all conditions; None where more
    may be needed.
    """
    if access.kind != "prefix" or query.order or any(mark.wait == "skip" for mark in query.row_marks):
        return None
    if any(not any(c is s for s in access.served) for c in conjuncts):
        return None
    return limits_of(query)


def is_small(counts: tuple[Expr, ...]) -> bool:
    """Tell whether counts are few rows, as far as the query says."""
    return all(not isinstance(_bare(x), Const) or _small(_bare(x)) for x in counts)


def _search(
    relation: RelationDef,
    range_: int,
    conjuncts: list[Expr],
    columns: list[int],
    order: list[SortKey],
    counts: tuple[Expr, ...],
) -> Ordered | None:
    types = {c.attnum: (c.type.oid, c.type.typmod) for c in relation.columns}
    not_null = {c.attnum for c in relation.columns if c.not_null}
    uses = column_uses(range_, conjuncts, frozenset())
    for index in relation.indexes:
        if index.method != "btree" or index.where_sql:
            continue
        access = serve(index, uses, types) if uses else None
        if access is None:
            access = Access("prefix", index, (), (), ())
        if access.kind != "prefix" or any(not any(c is s for s in access.served) for c in conjuncts):
            continue
        fixed = set(access.attnums)
        wanted = [(c, k) for c, k in zip(columns, order, strict=True) if c not in fixed]
        rest = index.attnums[len(access.keys) :]
        if not wanted or tuple(c for c, _ in wanted) != rest[: len(wanted)]:
            continue
        if any(types[c][0] not in ORDERED_TYPES for c, _ in wanted):
            continue
        reverse = wanted[0][1].descending
        if any(
            k.descending != reverse or (k.nulls_first != reverse and c not in not_null) for c, k in wanted
        ):
            continue
        return Ordered(replace(access, limited=is_small(counts)), reverse, counts)
    return None


def _bare(expr: Expr) -> Expr:
    """Return the expression below casts of a LIMIT ($1::int8 and the like)."""
    while isinstance(expr, RelabelType) or (
        isinstance(expr, FuncExpr) and expr.cast != "call" and len(expr.args) == 1
    ):
        expr = expr.arg if isinstance(expr, RelabelType) else expr.args[0]
    return expr


def _small(expr: Expr) -> bool:
    value = expr.value if isinstance(expr, Const) else None
    return isinstance(value, int) and value <= SMALL_LIMIT


def _order_column(query: Select, key: SortKey, range_: int) -> int | None:
    """Return the attnum an ORDER BY item sorts by, if it is a column in its type's default order."""
    expr = query.targets[key.target].expr
    while isinstance(expr, RelabelType):
        expr = expr.arg
    if isinstance(expr, Var) and expr.level == 0 and expr.range == range_ and expr.attnum > 0:
        fact = facts().types.get(expr.type.oid)
        return expr.attnum if fact is not None else None
    return None
