"""Values that are fixed for a statement or transaction leave the tree and become parameters.

    WHERE at > now() - interval '1 day'      ->   WHERE at > $n        stable = [now() - interval '1 day']

A *stable* expression calls a function of volatility ``s`` (or is CURRENT_USER and its kin, or prints or reads
a type whose text depends on settings or catalog, or looks up a text search configuration that users made),
reads no column and calls nothing volatile. The largest such expressions are taken out. Behind a guard (CASE
arms, COALESCE, AND, OR after their first argument) only those are taken that cannot fail: values without
arguments. Sets and aggregates are never taken.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from planner.facts import (
    DATE,
    INTERVAL,
    RECORD,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNKNOWN,
    VOID,
    facts,
    rows,
)
from planner.functions import looks_up
from planner.functions.values.acl_items import ACLITEM
from planner.functions.values.reg import NAMED
from planner.query import (
    Aggregate,
    ArrayCoerce,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    CoerceToDomain,
    CoerceViaIO,
    Const,
    CurrentSetting,
    CursorValue,
    DistinctExpr,
    Expr,
    FuncExpr,
    FunctionRange,
    GroupingFunc,
    MergeAction,
    NullIf,
    OpExpr,
    Param,
    RelabelType,
    RowCheck,
    SampleKey,
    ScalarArrayOp,
    SqlCall,
    SubLink,
    Target,
    Values,
    Var,
    WindowFunc,
)
from planner.query.rewrite import replace_children
from planner.query.walk import children, walk
from planner.types.domains import base_oid
from planner.types.facts import element_of

_T = TypeVar("_T")

# Types whose text form depends on settings or on the catalog.
_SESSION_TYPES = NAMED | {ACLITEM, DATE, TIMESTAMP, TIMESTAMPTZ, TIMETZ, INTERVAL}
_SESSION_TYPES |= {facts().types[oid].array for oid in _SESSION_TYPES if facts().types[oid].array}

_SET_CONFIG = facts().proc_by_signature["set_config(text,text,bool)"]

# Values of these types cannot be handed over as parameters.
_NO_PARAMETER = frozenset((RECORD, 2287, VOID, UNKNOWN))

# What an expression is: without stable parts, stable as a whole, or tied to rows or to each evaluation.
_PLAIN, _STABLE, _BOUND = 0, 1, 2
_VOLATILITIES = {"i": _PLAIN, "s": _STABLE, "v": _BOUND}


def extract_stable(node: _T, params: int) -> tuple[_T, tuple[Expr, ...]]:
    """Return ``node`` (query or statement) without stable expressions, and those expressions.

    Entry i of the second is the value of ``Param(params + 1 + i)``; it may use the client's parameters. What
    stands beside calls of users' volatile functions in a select list or VALUES stays: they may change
    settings, which is seen from there on.
    """
    taken = _Extraction(params, any(_may_change_settings(item) for item in walk(node)))
    return taken.visit(node, False), tuple(taken.found)


def changes_settings(node: object) -> bool:
    """Tell whether a statement changes settings as it runs: then its stable values have to be evaluated in
    their turn.
    """
    return any(isinstance(item, FuncExpr) and item.proc == _SET_CONFIG for item in walk(node))


def _may_change_settings(node: object) -> bool:
    return isinstance(node, SqlCall) and node.stays and node.volatility == "v"


def is_immutable(node: object) -> bool:
    """Tell whether an expression over a row always gives the same for the same row: it calls nothing stable
    or volatile.
    """
    return all(computes_immutably(item) for item in walk(node))


def computes_immutably(item: Any) -> bool:
    """Tell whether a node, what is below it apart, always gives the same for the same operands."""
    if isinstance(item, SqlCall):
        return bool(item.volatility == "i")
    if isinstance(item, DistinctExpr | NullIf):
        proc = facts().procs.get(item.proc)
        if proc is None or proc.volatility != "i":
            return False
    if isinstance(item, CoerceViaIO) and not (_io_is_fixed(item.arg.type.oid, 1) and _io_is_fixed(item.type.oid, 0)):  # fmt: skip
        return False
    # what a domain demands counts as fixed, as in PostgreSQL
    fixed = not isinstance(item, Expr) or isinstance(item, Var | CoerceToDomain)
    return fixed or _own_kind(item) == _PLAIN


@functools.cache
def _built_in_io() -> Mapping[int, tuple[bool, bool]]:
    """Return of built-in types whether their input functions, and their output functions, are immutable."""
    procs = facts().procs
    found: dict[int, tuple[bool, bool]] = {}
    for row in rows("types"):
        given, told = (procs.get(int(row[name])) for name in ("typinput", "typoutput"))
        found[int(row["oid"])] = (
            given is not None and given.volatility == "i",
            told is not None and told.volatility == "i",
        )
    return found


def _io_is_fixed(oid: int, side: int) -> bool:
    """Tell whether values of a type are read (side 0) or printed (1) the same way for ever: not enums,
    arrays, rows, ranges; domains are read by what they demand.
    """
    if side:
        oid = base_oid(oid)
    known = _built_in_io().get(oid)
    if known is not None:
        return known[side]
    fact = facts().types.get(oid)
    return fact is not None and fact.kind == "b" and not element_of(oid)


class _Extraction:
    def __init__(self, params: int, in_turn: bool = False) -> None:
        self.params = params
        self.in_turn = in_turn  # whether values that come out are computed one after another
        self.found: list[Expr] = []
        # what was found out about each node: expressions are asked about at every level they nest
        self.kinds: dict[int, int] = {}

    def kind(self, expr: Any) -> int:
        """Return _PLAIN, _STABLE or _BOUND for an expression and everything below it."""
        if isinstance(expr, Const | Param):
            return _PLAIN
        known = self.kinds.get(id(expr))
        if known is None:
            known = _own_kind(expr)
            if known == _PLAIN and looks_up(expr):
                known = _STABLE  # what it looks up may be another one by the next statement
            if known != _BOUND:
                for child in children(expr):
                    known = max(known, self.kind(child))
                    if known == _BOUND:
                        break
            self.kinds[id(expr)] = known
        return known

    def visit(self, node: object, guarded: bool) -> Any:
        if isinstance(node, Var | Const | Param) or (self.in_turn and isinstance(node, Target | Values)):
            return node
        if isinstance(node, FunctionRange):
            # a FROM item stays a call: what it returns may be a row; its arguments are values
            functions = tuple(
                [replace_children(call, lambda child: self.visit(child, guarded)) for call in node.functions]
            )
            return node if functions == node.functions else replace(node, functions=functions)
        if isinstance(node, MergeAction | RowCheck):
            # they are asked for where a row comes to them
            return replace_children(node, lambda child: self.visit(child, True))
        if isinstance(node, Expr):
            if (
                node.type.oid not in _NO_PARAMETER
                and self.kind(node) == _STABLE
                and (not guarded or _cannot_fail(node))
                and _worth(node)
            ):
                return self._param(node)
            if isinstance(node, CaseExpr | CoalesceExpr | BoolExpr) and not guarded:
                return self._guard(node)
            if isinstance(node, SubLink):
                # likewise what converts an output column for the comparison
                lefts = tuple([self.visit(left, guarded) for left in node.lefts])
                return replace(node, query=self.visit(node.query, guarded), lefts=lefts)
            if isinstance(node, ArrayCoerce):
                # what converts an element stays as it is: it is evaluated for each of them
                return replace(node, arg=self.visit(node.arg, guarded))
        return replace_children(node, lambda child: self.visit(child, guarded))

    def _guard(self, node: CaseExpr | CoalesceExpr | BoolExpr) -> Any:
        """Only the first thing evaluated is certain to be."""
        first: list[Any] = []
        if isinstance(node, CaseExpr):
            if node.whens:
                first = [node.whens[0].condition]
        elif node.args:
            first = [node.args[0]]

        def change(child: Any) -> Any:
            if isinstance(node, CaseExpr) and not isinstance(child, Expr):
                return replace_children(child, lambda part: self.visit(part, part is not first[0]))
            return self.visit(child, not any(child is item for item in first))

        return replace_children(node, change)

    def _param(self, expr: Expr) -> Param:
        alone = isinstance(expr, SampleKey) and expr.seed is None  # each draws a number of its own
        if alone or expr not in self.found:
            self.found.append(expr)
        index = len(self.found) - 1 if alone else self.found.index(expr)
        return Param(type=expr.type, number=self.params + 1 + index, span=expr.span)


def _worth(expr: Expr) -> bool:
    """A relabelled constant needs no parameter; anything that computes does."""
    return not (isinstance(expr, RelabelType) and isinstance(expr.arg, Const))


def _cannot_fail(expr: Expr) -> bool:
    while isinstance(expr, RelabelType):
        expr = expr.arg
    return isinstance(expr, CurrentSetting | CursorValue) or (isinstance(expr, FuncExpr) and not expr.args)


def _own_kind(expr: Any) -> int:
    """Return what an expression is, its operands apart."""
    if isinstance(expr, CurrentSetting | CursorValue | SampleKey):
        return _STABLE
    if isinstance(expr, Var):
        return _PLAIN if expr.range == -1 else _BOUND
    if isinstance(expr, Aggregate | WindowFunc | GroupingFunc | SubLink | CoerceToDomain):
        return _BOUND
    if isinstance(expr, FuncExpr | OpExpr | ScalarArrayOp):
        if isinstance(expr, FuncExpr) and expr.returns_set:
            return _BOUND
        proc = facts().procs.get(expr.proc)
        return _VOLATILITIES[proc.volatility if proc is not None else "v"]
    if isinstance(expr, CoerceViaIO | ArrayCoerce) and (
        expr.type.oid in _SESSION_TYPES or expr.arg.type.oid in _SESSION_TYPES
    ):
        return _STABLE
    return _PLAIN
