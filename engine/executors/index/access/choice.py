"""Which index serves which range: conjuncts over one range, turned into keys.

    WHERE a = $1 AND b IN (1, 2) AND c < 5          indexes (a, b) and (a, c)

    Point     every key column has one value          (a, b) with b in a list: Keys
    Keys      ... or a list of values: the product
    Prefix    the leading columns have values, the next one perhaps bounds

``find`` looks at conjuncts ``column op value`` whose value side can be computed before the range is read: from
constants, parameters, outer queries and ranges that are joined already. Only comparisons for which Python's order
and equality are the type's count (plus numeric and bpchar equality, which are checked again on the rows found).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from engine.catalog.index_parts import index_parts
from engine.executors.expressions import has_sublink, is_volatile, ranges_used
from engine.executors.index.access.computed_keys import holds_rows_of, key_expressions
from engine.executors.index.access.exact_patterns import exact_match
from pgwire.give_way import paced
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.facts import BOOL, BPCHAR, FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, TID
from planner.indexing.comparisons import FLIP, Operator, key_operators
from planner.query import (
    CTID,
    Aggregate,
    ArrayExpr,
    BoolExpr,
    CoerceTypmod,
    CoerceViaIO,
    Const,
    CteRange,
    DistinctExpr,
    Expr,
    FuncExpr,
    GroupingFunc,
    NullIf,
    OpExpr,
    Param,
    QueryExpr,
    RelabelType,
    RowCompare,
    ScalarArrayOp,
    SqlCall,
    SubLink,
    SubLinkKind,
    Var,
)
from planner.query.walk import children, placed, walk
from planner.types import SqlType

_REFERENCES = frozenset((Var, Aggregate, GroupingFunc, CteRange))
_INTEGERS = frozenset((INT2, INT4, INT8))
_TID = SqlType(TID)
SMALL_SPAN = 10_000  # integers between two constant bounds up to which a range counts as small


def in_order_of_cost(conjuncts: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return conditions with cheap ones before costly ones, by what PostgreSQL counts, as they stand otherwise.

    So ``b / (a - 19) > 0 AND a <> 19`` fails for no row, there and here.
    """
    return tuple(conjuncts) if len(conjuncts) < 2 else tuple(sorted(conjuncts, key=_cost))


_CALL_OF_USER: Final = 100.0
_SUB_SELECT: Final = 1e6
_ELEMENTS_UNKNOWN: Final = 10


def _cost(node: object) -> float:
    """Return what a condition costs for a row: one for each call, half for each element that is compared."""
    own = 0.0
    if isinstance(node, SqlCall):
        own = _CALL_OF_USER
    elif isinstance(node, FuncExpr | OpExpr | CoerceTypmod | DistinctExpr | NullIf):
        own = 1.0
    elif isinstance(node, CoerceViaIO):
        own = 2.0
    elif isinstance(node, ScalarArrayOp):
        array = node.array
        if isinstance(array, ArrayExpr) and not array.nested:
            return _cost(node.scalar) + len(array.elements) / 2 + sum(map(_cost, paced(array.elements)))
        if isinstance(array, Const):
            own = (len(array.value) if isinstance(array.value, tuple | list) else 0) / 2
        else:
            own = _ELEMENTS_UNKNOWN / 2
    elif isinstance(node, RowCompare):
        own = float(len(node.lefts))
    elif isinstance(node, SubLink | Aggregate):
        return _SUB_SELECT
    return own + sum(map(_cost, paced(children(node))))


def is_fixed(condition: Expr) -> bool:
    """Tell whether a condition is the same for all rows of the query: it names no column of it, and calls
    nothing volatile.
    """
    if ranges_used(condition) or is_volatile(condition):
        return False
    return not any(isinstance(node, SqlCall) and node.volatility == "v" for node in walk(condition))


EntryMode: TypeAlias = Literal[
    "all",
    "any",
    "within",
    "equal",
    "one",
    "key",
    "all keys",
    "any keys",
    "match",
    "text",
    "pattern",
    "alike",
    "pairs",
]


IntervalMode: TypeAlias = Literal["overlaps", "holds", "holds element", "inside", "same"]


@dataclass(slots=True)
class ColumnUse:
    """What the conjuncts say about one column."""

    equal: Expr | None = None
    members: Expr | None = None  # an array: column = ANY (array)
    bounds: dict[Operator, Expr] = field(default_factory=dict)
    sources: dict[str, Expr] = field(default_factory=dict)  # which conjunct said it


@dataclass(slots=True)
class Access:
    """How a range is reached: an index with keys, or (virtual relations) a column with values.

    Kinds entries and intervals: a gin or gist index; the one key is what is compared with the column, as
    ``entry`` or ``interval`` says, ``served`` the condition, which is tested again
    (``engine.executors.index.access.inverted``, ``engine.executors.index.access.intervals``). Kind rows: no
    index, but what rows are named by, their ctids; bounds are tested again, too
    (``engine.executors.index.access.by_ctid``).
    """

    kind: Literal["point", "keys", "prefix", "entries", "intervals", "rows"]
    index: IndexDef | None
    attnums: tuple[int, ...]
    keys: tuple[Expr, ...]  # a value per key column; for "keys" an entry may be an array
    lists: tuple[bool, ...]  # which entries are arrays
    lower: tuple[Expr, bool] | None = None  # bound of the column after the prefix, inclusive
    upper: tuple[Expr, bool] | None = None
    served: tuple[Expr, ...] = ()  # conjuncts that need no second look
    unique: bool = False
    pads: tuple[int, ...] = ()  # bpchar length per key column, 0 = none
    guards: tuple[bool, ...] = ()  # key may be NaN: numeric
    limited: bool = False  # read in order, only as far as a LIMIT
    score: int = 9
    entry: EntryMode | None = None
    interval: IntervalMode | None = None

    @property
    def bounded(self) -> bool:
        """Tell whether few rows are expected: keys, a prefix, a limit, or bounds that are close or not yet known."""
        if self.limited or self.kind not in ("prefix", "rows") or self.keys:
            return True
        if self.lower is None or self.upper is None:
            return False
        low, high = self.lower[0], self.upper[0]
        if self.kind == "rows":
            return True
        if isinstance(low, Const) and isinstance(high, Const):
            if isinstance(low.value, int) and isinstance(high.value, int) and low.type.oid in _INTEGERS:
                return high.value - low.value <= SMALL_SPAN
            return False
        return low.type.oid in _INTEGERS


def range_column(expr: Expr, range_: int, key: tuple[Expr, int] | None) -> Var | None:
    """Return the column of ``range_`` that ``expr`` is; with ``key`` the hidden one whose expression it is."""
    if key is not None:
        if expr == key[0]:
            return Var(type=expr.type, range=range_, attnum=key[1])
        return None
    while isinstance(expr, RelabelType):
        expr = expr.arg
    if isinstance(expr, Var) and expr.level == 0 and expr.range == range_ and expr.attnum > 0:
        return expr
    return None


def is_ready(expr: Expr, available: AbstractSet[int]) -> bool:
    """Tell whether an expression can be computed once the ranges ``available`` are joined."""
    if isinstance(expr, Const | Param):
        return True
    return ranges_used(expr) <= available and not is_volatile(expr) and _runs_before(expr)


def _runs_before(node: object) -> bool:
    """Tell whether the sub-selects in ``node`` are values that are known before any row is: they look at
    nothing outside.
    """
    if isinstance(node, Aggregate | GroupingFunc):
        return False
    if isinstance(node, SubLink):
        return node.kind in (SubLinkKind.SCALAR, SubLinkKind.ARRAY) and stands_alone(node.query)
    return all(_runs_before(child) for child in paced(children(node)))


def stands_alone(query: QueryExpr) -> bool:
    """Tell whether a query refers to nothing outside of it."""
    return outer_levels(query) == (set(), 0)


def outer_levels(query: object) -> tuple[set[int], int]:
    """Return what of the queries around ``query`` is read in it.

    First the levels that its columns and aggregates refer to, 1 = directly outside, then the highest level of
    a WITH item (0: none).
    """
    levels: set[int] = set()
    with_level = 0
    for node, depth in placed(query, _REFERENCES):
        outside = node.level - depth
        if outside <= 0 or depth < 0:
            continue
        if node.__class__ is CteRange:
            with_level = max(with_level, outside)
        else:
            levels.add(outside)
    return levels, with_level


def column_uses(
    range_: int,
    conjuncts: Sequence[Expr],
    available: AbstractSet[int],
    computed: Sequence[tuple[Expr, int]] = (),
) -> dict[int, ColumnUse]:
    """Return what ``conjuncts`` say about the columns of ``range_``, and about the expressions of ``computed``."""
    uses = _uses(range_, conjuncts, available, None)
    for expr, attnum in computed:
        found = _uses(range_, conjuncts, available, (expr, attnum))
        if attnum in found:
            uses[attnum] = found[attnum]
    return uses


def _uses(
    range_: int,
    conjuncts: Sequence[Expr],
    available: AbstractSet[int],
    key: tuple[Expr, int] | None,
) -> dict[int, ColumnUse]:
    operators = key_operators()
    uses: dict[int, ColumnUse] = {}
    for conjunct in paced(conjuncts):
        if isinstance(conjunct, BoolExpr):
            _alternatives(conjunct, range_, available, uses, key)
            continue
        if isinstance(conjunct, SubLink):
            _member_of(conjunct, range_, uses, key)
            continue
        if isinstance(conjunct, ScalarArrayOp):
            if conjunct.use_any and operators.get(conjunct.proc) == "=":
                column = range_column(conjunct.scalar, range_, key)
                if column is not None and is_ready(conjunct.array, available):
                    use = uses.setdefault(column.attnum, ColumnUse())
                    if use.members is None:
                        use.members = conjunct.array
                        use.sources["in"] = conjunct
            continue
        if not isinstance(conjunct, OpExpr | FuncExpr) or len(conjunct.args) != 2:
            continue
        operator = operators.get(conjunct.proc)
        if operator is None:
            exact = exact_match(conjunct)
            if exact is not None:
                column = range_column(exact[0], range_, key)
                if column is not None:
                    use = uses.setdefault(column.attnum, ColumnUse())
                    if use.equal is None:
                        use.equal = exact[1]
                        use.sources["="] = exact[1]  # no conjunct: the pattern is tested, too
            continue
        for left, right, op in (
            (conjunct.args[0], conjunct.args[1], operator),
            (conjunct.args[1], conjunct.args[0], FLIP[operator]),
        ):
            column = range_column(left, range_, key)
            if column is None or not is_ready(right, available) or (op != "=" and has_sublink(right)):
                continue
            use = uses.setdefault(column.attnum, ColumnUse())
            if op == "=":
                if use.equal is None:
                    use.equal = right
                    use.sources["="] = conjunct
            elif op not in use.bounds and column.type.oid not in (BPCHAR, NUMERIC):
                use.bounds[op] = right
                use.sources[op] = conjunct
            break
    return uses


def _member_of(link: SubLink, range_: int, uses: dict[int, ColumnUse], key: tuple[Expr, int] | None) -> None:
    """Read ``a IN (SELECT ...)`` as ``a = ANY (ARRAY (SELECT ...))`` where the sub-select stands alone."""
    if link.kind is not SubLinkKind.ANY or len(link.lefts) != 1 or link.row_kind:
        return
    if key_operators().get(link.procs[0]) != "=" or is_volatile(link) or not stands_alone(link.query):
        return
    if any(not isinstance(cast, Var) for cast in link.casts):
        return
    column = range_column(link.lefts[0], range_, key)
    if column is None:
        return
    use = uses.setdefault(column.attnum, ColumnUse())
    if use.members is None:
        use.members = SubLink(type=column.type, kind=SubLinkKind.ARRAY, query=link.query)
        use.sources["in"] = link


def _alternatives(
    conjunct: BoolExpr,
    range_: int,
    available: AbstractSet[int],
    uses: dict[int, ColumnUse],
    key: tuple[Expr, int] | None,
) -> None:
    """Read ``a = 1 OR a = 2`` as ``a IN (1, 2)``."""
    operators = key_operators()
    values: list[Expr] = []
    attnum = 0
    if conjunct.kind != "or":
        return
    for arm in conjunct.args:
        if not isinstance(arm, OpExpr) or len(arm.args) != 2 or operators.get(arm.proc) != "=":
            return
        left, right = arm.args
        column = range_column(left, range_, key)
        if column is None:
            left, right = right, left
            column = range_column(left, range_, key)
        if column is None or (attnum and column.attnum != attnum) or not is_ready(right, available):
            return
        attnum = column.attnum
        values.append(right)
    use = uses.setdefault(attnum, ColumnUse())
    if use.members is None:
        use.members = ArrayExpr(type=values[0].type, elements=tuple(values))
        use.sources["in"] = conjunct


def find(
    range_: int,
    table: RelationDef,
    catalog: Catalog,
    conjuncts: Sequence[Expr],
    available: AbstractSet[int],
) -> Access | None:
    """Return the best access of a base table, or None."""
    named = rows_by_ctid(range_, conjuncts, available)
    if named is not None and named.keys:
        return named
    uses = column_uses(range_, conjuncts, available, key_expressions(table, catalog, range_))
    if not uses:
        return named
    types = {c.attnum: (c.type.oid, c.type.typmod) for c in table.columns}
    best: Access | None = None
    for index in (part for whole in table.indexes for part in index_parts(whole, table)):
        if not index.by_value:
            continue  # ``engine.executors.index.access.inverted``, ``engine.executors.index.access.intervals``
        if index.where_sql and not holds_rows_of(index, table, catalog, range_, conjuncts):
            continue
        found = serve(index, uses, types)
        if found is not None and (best is None or found.score < best.score):
            best = found
    return named if best is None else best


def rows_by_ctid(range_: int, conjuncts: Sequence[Expr], available: AbstractSet[int]) -> Access | None:
    """Return the access of a base table by its rows' ctids, or None."""
    column = Var(type=_TID, range=range_, attnum=CTID)
    if not any(column == side for conjunct in conjuncts for side in _sides(conjunct)):
        return None
    use = _uses(range_, conjuncts, available, (column, CTID)).get(CTID)
    if use is None:
        return None
    value = use.equal if use.equal is not None else use.members
    if value is not None:
        single = use.equal is not None
        said = use.sources["=" if single else "in"]
        return Access(
            "rows",
            None,
            (CTID,),
            (value,),
            (not single,),
            served=(said,),
            unique=single,
            score=0 if single else 1,
        )
    lower = next(((use.bounds[op], op == ">=") for op in (">=", ">") if op in use.bounds), None)
    upper = next(((use.bounds[op], op == "<=") for op in ("<=", "<") if op in use.bounds), None)
    served = tuple(use.sources[op] for op in (">=", ">", "<=", "<") if op in use.sources)
    return Access("rows", None, (), (), (), lower, upper, served, score=5)


def _sides(conjunct: Expr) -> Sequence[Expr]:
    """Return what a comparison compares; of alternatives, what the first one does."""
    while isinstance(conjunct, BoolExpr) and conjunct.kind == "or":
        conjunct = conjunct.args[0]
    if isinstance(conjunct, ScalarArrayOp):
        return (conjunct.scalar,)
    if isinstance(conjunct, SubLink):
        return conjunct.lefts
    return conjunct.args if isinstance(conjunct, OpExpr | FuncExpr) else ()


def serve(index: IndexDef, uses: dict[int, ColumnUse], types: dict[int, tuple[int, int]]) -> Access | None:
    """Return the access that ``index`` offers for these uses, or None."""
    keys: list[Expr] = []
    lists: list[bool] = []
    served: list[Expr] = []
    pads: list[int] = []
    guards: list[bool] = []
    named = [written or kept for written, kept in zip(index.key_columns, index.attnums, strict=True)]
    for attnum in named:
        use = uses.get(attnum)
        value = None if use is None else use.equal if use.equal is not None else use.members
        if use is None or value is None:
            break
        oid, typmod = types[attnum]
        if oid in (FLOAT4, FLOAT8) or (oid == BPCHAR and typmod < 4):
            break
        keys.append(value)
        lists.append(use.equal is None)
        pads.append(typmod - 4 if oid == BPCHAR else 0)
        guards.append(oid == NUMERIC)
        if oid not in (BPCHAR, NUMERIC):
            served.append(use.sources["=" if use.equal is not None else "in"])
    full = len(keys) == len(index.attnums)
    if full:
        kind: Literal["point", "keys"] = "keys" if any(lists) else "point"
        score = (0 if index.unique else 2) + (1 if any(lists) else 0)
        if index.guard:  # a first key that is not NULL is of a row that is in the index
            keys.append(Const(type=SqlType(BOOL), value=True))
            lists.append(False)
            pads.append(0)
            guards.append(False)
        return Access(
            kind, index, index.kept, tuple(keys), tuple(lists), served=tuple(served),
            unique=index.unique and not any(lists), pads=tuple(pads), guards=tuple(guards), score=score,
        )  # fmt: skip
    if index.method == "hash" or any(guards) or any(pads):
        return None
    while lists and lists[-1]:  # a list in the middle of a prefix is left to the filter
        lists.pop()
        keys.pop()
        served.pop()
    if any(lists):
        return None
    lower = upper = None
    following = uses.get(named[len(keys)])
    if following is not None and types[named[len(keys)]][0] not in (FLOAT4, FLOAT8):
        for op, inclusive in ((">=", True), (">", False)):
            if op in following.bounds and lower is None:
                lower = (following.bounds[op], inclusive)
                served.append(following.sources[op])
        for op, inclusive in (("<=", True), ("<", False)):
            if op in following.bounds and upper is None:
                upper = (following.bounds[op], inclusive)
                served.append(following.sources[op])
    if not keys and lower is None and upper is None:
        return None
    score = 4 + (0 if keys else 2) + (0 if lower and upper else 1)
    return Access(
        "prefix", index, index.attnums[: len(keys)], tuple(keys), tuple(lists), lower, upper,
        tuple(served), score=score,
    )  # fmt: skip
