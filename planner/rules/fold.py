"""Constant folding: a call of an immutable function on constants becomes its value, and what constants decide
is decided.

    aid = 40 + 2            ->  aid = 42
    price > numeric(100)    ->  price > 100
    1 / 0                   left alone: a call that raises stays where it stands
    aid / 0 > NULL          ->  NULL        a strict function is not called for NULL, nor are its other arguments evaluated
    aid / 0 > 1 AND false   ->  false       what falls away is not evaluated (``planner.rules.decided``)

Only functions with a Python form that needs neither session nor argument types are folded, and, but for NULL,
only what is immutable: what depends on settings is a stable value (``planner.rules.stable``). Nor is what may
take long (``planner.rules.foldable``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pgwire.codecs.errors import DataError
from pgwire.codecs.users.composite import pack_row, record_of
from planner.facts import BIT, BPCHAR, INTERVAL, RECORD, facts
from planner.functions import load
from planner.functions.values.casts import relabelled, typmod_cast
from planner.query import (
    CoerceTypmod,
    CoerceViaIO,
    ComposeRow,
    Const,
    DecomposeRow,
    Expr,
    FieldSelect,
    FuncExpr,
    FunctionRange,
    Join,
    OpExpr,
    Param,
    RelabelType,
    RowExpr,
    Select,
    Subscript,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.rules.decided import DECIDED, condition, error_of_text
from planner.rules.foldable import LEFT, MOST_PADDED, Met, computed

_T = TypeVar("_T")


def fold(node: _T) -> _T:
    """Return ``node`` (expression, query or statement) with constant calls replaced by their values."""
    folded: _T = _fold(node)
    return folded


def fold_and_tell(node: _T) -> tuple[_T, bool]:
    """Return what ``fold`` does, and whether a call may have been met that raises (``planner.rules.failing``)."""
    before = Met.errors
    folded = fold(node)
    return folded, Met.errors != before


def error_of(node: object) -> DataError | None:
    """Return the error of a call of constants that was left because it raises; None for all other nodes."""
    if isinstance(node, FuncExpr | OpExpr):
        constants = [arg for arg in node.args if isinstance(arg, Const)]
        made = _call(node, constants) if len(constants) == len(node.args) else node
    elif isinstance(node, CoerceTypmod) and isinstance(node.arg, Const):
        made = _typmod(node, node.arg)
    elif isinstance(node, CoerceViaIO):
        return error_of_text(node)
    else:
        return None
    return made if isinstance(made, DataError) else None


def _fold(node: Any) -> Any:
    if isinstance(node, Var | Const | Param):
        return node
    if isinstance(node, FunctionRange):
        # a FROM item stays a call; only its arguments are folded
        functions = tuple([replace_children(call, _fold) for call in node.functions])
        return node if functions == node.functions else replace(node, functions=functions)
    kind = type(node)
    if kind is Select and node.grouping_sets is not None:
        node = _told_apart(node)
    made: Any = replace_children(node, _fold)
    if kind is Select:
        where = None if made.where is None else condition(made.where)
        having = None if made.having is None else condition(made.having)
        if where is not made.where or having is not made.having:
            return replace(made, where=where, having=having)
        return made
    if kind is Join:
        on = None if made.on is None else condition(made.on)
        return made if on is made.on else replace(made, on=on)
    return fold_node(made)


def _told_apart(query: Select) -> Select:
    """Return a query whose grouping expressions that become constants differ from constants beside them.

    Where a grouping set is without the expression it is NULL, as the constants are not.
    """
    keys = [key for key in query.group if not isinstance(key, Const) and isinstance(_fold(key), Const)]
    if not keys:
        return query

    visit = partial(_relabeled, keys)
    return replace(
        query,
        targets=tuple(map(visit, query.targets)),
        group=tuple(map(visit, query.group)),
        having=None if query.having is None else visit(query.having),
        windows=tuple(map(visit, query.windows)),
    )


def _relabeled(keys: Sequence[Expr], node: object) -> Any:
    if isinstance(node, Expr) and node in keys:
        return RelabelType(type=node.type, arg=node, span=node.span)
    return replace_children(node, partial(_relabeled, keys))


def is_conversion(node: object) -> bool:
    """Tell whether a literal is converted so: read without regard to a typmod, then cast, or cut and rounded
    to the typmod.

    Not a cast to a kind of interval, which says how its literal is read ('3' is three days to ``interval day``).
    """
    if isinstance(node, CoerceTypmod):
        return node.type.oid != INTERVAL
    return isinstance(node, RelabelType | CoerceViaIO) or (
        isinstance(node, FuncExpr) and node.cast in ("explicit", "implicit")
    )


def fold_node(node: object) -> Any:
    """Return a node whose arguments are folded already as a constant if it is one, else as it is."""
    if isinstance(node, FuncExpr | OpExpr):
        constants = [arg for arg in node.args if isinstance(arg, Const)]
        if len(constants) == len(node.args) or any(arg.value is None for arg in constants):
            return _left(node, _call(node, constants))
    elif isinstance(node, RelabelType):
        if isinstance(node.arg, Const) and node.arg.type != node.type:
            value = relabelled(node.arg.value, node.arg.type.oid, node.type.oid)
            return Const(type=node.type, value=value, span=node.span)
    elif isinstance(node, DecomposeRow) and isinstance(node.arg, ComposeRow):
        return node if node.arg.named else node.arg.arg
    elif isinstance(node, ComposeRow):
        row = node.arg
        if isinstance(row, RowExpr) and all(isinstance(field, Const) for field in row.fields):
            values = [field.value for field in row.fields if isinstance(field, Const)]
            value = pack_row(values, node.slots, node.types, node.width)
            return Const(type=node.type, value=value, span=node.span)
    elif isinstance(node, FieldSelect):
        return _field(node)
    elif isinstance(node, Subscript):
        constant = all(isinstance(index, Const | None) for pair in node.indexes for index in pair)
        if constant and isinstance(node.arg, Const) and node.arg.value is None:
            return Const(type=node.type, value=None, span=node.span)
    elif isinstance(node, CoerceTypmod):
        if isinstance(node.arg, Const):
            return _left(node, _typmod(node, node.arg))
    else:
        decide = DECIDED.get(type(node))
        if decide is not None:
            return decide(node)
    return node


def _left(node: Expr, made: Expr | DataError) -> Expr:
    """Return ``made``, or the node where that raises: it may stand behind a guard, and raises when it is
    evaluated, if ever.
    """
    if isinstance(made, DataError):
        Met.errors += 1
        return node
    return made


def _field(node: FieldSelect) -> Expr:
    """Return a field of a row that is made here, or that is a constant; of the others only what is constant
    is computed, and raises.
    """
    row = node.arg
    if isinstance(row, RowExpr):
        field = row.fields[node.index]
        return field if field.type == node.type and not any(map(_raises, row.fields)) else node
    if isinstance(row, DecomposeRow) and isinstance(row.arg, Const):
        value = row.arg.value
        fields = record_of(value, row.slots, row.types, row.names) if isinstance(value, bytes) else None
        return Const(type=node.type, value=None if fields is None else fields[node.index], span=node.span)
    return node


def _raises(node: object) -> bool:
    """Tell whether a folded expression has constant calls left, which raise when they are computed."""
    for part in walk(node):
        if isinstance(part, FuncExpr | OpExpr) and all(isinstance(arg, Const) for arg in part.args):
            proc = facts().procs.get(part.proc)
            if proc is not None and proc.volatility == "i":
                return True
    return False


def _call(node: FuncExpr | OpExpr, constants: Sequence[Const]) -> Expr | DataError:
    proc = facts().procs.get(node.proc)
    if proc is None or proc.kind != "f" or proc.returns_set or proc.result == RECORD:
        return node
    if isinstance(node, FuncExpr) and node.variadic:
        return node
    values = [arg.value for arg in constants]
    if proc.strict and any(value is None for value in values):
        return Const(type=node.type, value=None, span=node.span)
    if proc.volatility != "i" or len(values) < len(node.args):
        return node
    row = load().functions.get(node.proc)
    if row is None or row.needs_types:
        return node
    form, needs_session = row.form_for(node.args)
    if form is None or needs_session:
        return node
    function = form
    try:
        value = computed(node.proc, values, lambda: function(*values))
    except DataError as error:
        return error.with_traceback(None)
    if value is LEFT:
        return node
    return Const(type=node.type, value=value, span=node.span)


def _typmod(node: CoerceTypmod, arg: Const) -> Expr | DataError:
    if arg.value is None:
        return Const(type=node.type, value=None, span=node.span)

    if node.type.typmod > MOST_PADDED and node.type.oid in (BPCHAR, BIT):
        return node
    try:
        value = typmod_cast(node.type.oid, node.type.typmod, node.explicit)(arg.value)
    except DataError as error:
        return error.with_traceback(None)
    return Const(type=node.type, value=value, span=node.span)
