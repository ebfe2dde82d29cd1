"""Which statements surely compute little: those need no strand (``pgwire.give_way``), nor can they need one.

What is not listed here is not short, so that what is forgotten costs a fraction of a microsecond and no more:
operators that generated code spells out (``evaluate_inline``), comparisons, additions, the clock, sequences;
over at most ``MOST_NODES`` nodes, none of them a query in a query.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from pgwire.codecs import domain
from pgwire.codecs.sizes import SMALL
from planner.facts import (
    BPCHAR,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    facts,
)
from planner.functions.inline import inline_templates
from planner.query import (
    BooleanTest,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    CoerceTypmod,
    Const,
    CteRange,
    CurrentSetting,
    DistinctExpr,
    Expr,
    FuncExpr,
    FunctionRange,
    NullTest,
    OpExpr,
    Param,
    QueryBase,
    RelabelType,
    SqlCall,
    SubqueryRange,
    Var,
)
from planner.query.walk import children

MOST_NODES: Final = 200

_EXPRS: Final = frozenset(
    (BoolExpr, BooleanTest, CaseExpr, CoalesceExpr, Const, CurrentSetting, DistinctExpr, FuncExpr, NullTest, OpExpr, Param, RelabelType, Var)
)  # fmt: skip
_LEAVES: Final = frozenset((Const, CurrentSetting, Param, Var))
_FUNCTIONS: Final = (
    *("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "nextval", "currval"),
    *(f"numeric_{what}" for what in ("add", "sub", "eq", "ne", "lt", "le", "gt", "ge")),
    *(f"float8{what}" for what in ("pl", "mi", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")),
    *("int4div", "int4mod", "int8div", "int8mod", "int84div", "int48div", "int4um", "int8um", "int4abs", "int8abs"),
    *(f"{of}_{what}_interval" for of in ("timestamptz", "timestamp") for what in ("pl", "mi")),
    *("date_pli", "date_mii", "date_mi"),
)  # fmt: skip
"""By pg_proc.proname; each must be there."""

_CONVERTED: Final = (
    INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, VARCHAR, BPCHAR, TEXT,
)  # fmt: skip
"""Types whose casts to one another, and to their own with a length or precision, take one step over a value."""


_PRINTED_AT_ONCE: Final = SMALL | {
    *(domain.VARCHAR, domain.BPCHAR, domain.TEXT, domain.JSON, domain.JSONB, domain.UNKNOWN, domain.NUMERIC, domain.POINT, domain.XID8, domain.TID),
    *domain.REG_TYPES,
}  # fmt: skip
"""Types whose values go to the client in one step, however long: of others (arrays, bytea, text search,
polygons …) printing alone may take seconds."""


@functools.cache
def _procs() -> frozenset[int]:
    """Return what may be called, by pg_proc oid. Raises KeyError for a name that no function has."""
    known = facts()
    named: dict[str, list[int]] = {name: [] for name in _FUNCTIONS}
    for oid, fact in known.procs.items():
        if fact.name in named:
            named[fact.name].append(oid)
    missing = [name for name, oids in named.items() if not oids]
    if missing:
        raise KeyError(f"no function is called {', '.join(missing)}")
    casts = {
        cast.func
        for cast in known.casts.values()
        if cast.method == "f" and cast.source in _CONVERTED and cast.target in _CONVERTED
    }
    return frozenset(casts.union(*named.values()) | inline_templates().keys())


_PLAIN, _LEAF, _LONG, _QUERY, _COERCED, _CALLED = range(6)


class _Kinds(dict[type, int]):
    """Class of a node -> what has to be looked at."""

    def __missing__(self, kind: type) -> int:
        """Look once."""
        if issubclass(kind, FunctionRange | SubqueryRange | CteRange | SqlCall):
            found = _LONG
        elif issubclass(kind, QueryBase):
            found = _QUERY
        elif issubclass(kind, CoerceTypmod):
            found = _COERCED
        elif issubclass(kind, Expr) and kind not in _EXPRS:
            found = _LONG
        elif issubclass(kind, FuncExpr | OpExpr):
            found = _CALLED
        else:
            found = _LEAF if kind in _LEAVES else _PLAIN
        self[kind] = found
        return found


_KINDS: Final = _Kinds()


def is_short(*nodes: object, but: object = None) -> bool:
    """Tell whether queries and expressions, those below them included, surely compute little for each row.

    ``but``: the query among them that is known to.
    """
    left = MOST_NODES
    stack = list(nodes)
    outermost = True
    procs = _procs()
    kinds = _KINDS
    while stack:
        node: Any = stack.pop()
        left -= 1
        if left < 0:
            return False
        kind = kinds[node.__class__]
        if kind:
            if kind == _LEAF:
                if node.type.oid not in _PRINTED_AT_ONCE:
                    return False
                continue
            if kind == _LONG:
                return False
            if kind == _QUERY:
                if not outermost:
                    return False
                outermost = False
                if node is but:
                    continue
            elif kind == _COERCED:
                if node.type.oid not in _CONVERTED:
                    return False
            elif node.proc not in procs or (isinstance(node, FuncExpr) and node.returns_set):
                return False
        stack += children(node)
    return True
