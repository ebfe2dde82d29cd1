"""What constants decide: conditions, CASE, COALESCE and their kin without what can never be evaluated.

    b / 0 > 1 AND false             ->  false               c OR NULL OR false              ->  c OR NULL
    CASE WHEN false THEN x END      ->  NULL                COALESCE(NULL, a, 1, b / 0)     ->  COALESCE(a, 1)
    (1, b / 0) IS NULL              ->  false               WHERE c AND NULL                ->  WHERE false
    b / 0 > 1 AND $1                ->  $1 AND b / 0 > 1    what parameters decide is looked at first

As in PostgreSQL, what falls away is not evaluated, called or aggregated, whatever it is: sub-selects,
volatile functions and sets too. An error that PostgreSQL meets as it plans stays one: behind a call of
constants that raises, an AND or OR is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from operator import is_, not_
from typing import Any, Final

from pgwire.codecs.errors import DataError
from pgwire.give_way import paced
from planner.evaluate import evaluate_constant
from planner.facts import FLOAT8, RECORD, facts
from planner.functions import load
from planner.functions.inline import inline_templates
from planner.query import (
    ArrayExpr,
    BooleanTest,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    CoerceViaIO,
    Const,
    DistinctExpr,
    Expr,
    FuncExpr,
    MinMaxExpr,
    NullIf,
    NullTest,
    OpExpr,
    Param,
    QueryBase,
    RelabelType,
    RowExpr,
    ScalarArrayOp,
)
from planner.query.walk import children
from planner.rules.foldable import LEFT, Met, computed, immutable_text
from planner.types import SqlType

_FEW: Final = 100
"""Elements of an array that a constant is compared with here."""


def condition(expr: Expr) -> Expr:
    """Return what rows have to meet, decided already but for its NULLs, which count as false here."""
    if isinstance(expr, Const):
        return expr if expr.value is not None else replace(expr, value=False)
    if isinstance(expr, BoolExpr) and expr.kind != "not":
        args = [condition(arg) for arg in paced(expr.args)]
        if any(new is not old for new, old in zip(args, expr.args, strict=True)):
            return _boolean(replace(expr, args=tuple(args)))
    return expr


def _constant(node: Expr, value: object) -> Const:
    return Const(type=node.type, value=value, span=node.span)


def _of_type(expr: Expr, type_: SqlType) -> Expr:
    """Return the one value that is left of several as one of their common type."""
    if expr.type == type_:
        return expr
    if isinstance(expr, Const):
        return replace(expr, type=type_)
    return RelabelType(type=type_, arg=expr, span=expr.span)


# --- AND, OR, NOT, IS -----------------------------------------------------------------------------


def _boolean(node: BoolExpr) -> Expr:
    if node.kind == "not":
        arg = node.args[0]
        if isinstance(arg, Const):
            return _constant(node, None if arg.value is None else not arg.value)
        return node
    decides = node.kind == "or"
    kept: list[Expr] = []
    unknown: Const | None = None
    for arg in paced(node.args):
        if type(arg) is not Const:
            kept.append(arg)
        elif arg.value is decides:
            return node if any(map(_raises, kept)) else _constant(node, decides)
        elif arg.value is None:
            unknown = arg
    if len(kept) < len(node.args):
        if unknown is not None:
            kept.append(unknown)
        if not kept:
            return _constant(node, not decides)
        if len(kept) == 1:
            return kept[0]
    known = [_is_known(arg) for arg in paced(kept)]
    if any(known):
        kept = [*compress(kept, known), *compress(kept, map(not_, known))]
    same = len(kept) == len(node.args) and all(map(is_, kept, node.args))
    return node if same else replace(node, args=tuple(kept))


def _raises(node: object) -> bool:
    """Tell whether a call of constants is left in an expression, which PostgreSQL would have made, and
    failed, while it plans.
    """
    if isinstance(node, QueryBase):
        return False
    if isinstance(node, FuncExpr | OpExpr):
        fact = facts().procs.get(node.proc)
        if fact is not None and fact.volatility == "i" and all(isinstance(arg, Const) for arg in node.args):
            return True
    return any(map(_raises, paced(children(node))))


def _is_known(node: Expr) -> bool:
    """Tell whether a condition needs nothing but parameters, at least one, and cannot fail."""
    if isinstance(node, Param):
        return True
    if isinstance(node, OpExpr):
        if inline_templates().get(node.proc) not in _COMPARISONS:
            return False
    elif not isinstance(node, BoolExpr | NullTest | BooleanTest):
        return False
    below = [child for child in children(node) if not isinstance(child, Const)]
    return bool(below) and all(map(_is_known, below))


_COMPARISONS: Final = frozenset(
    ("{0} == {1}", "{0} != {1}", "{0} < {1}", "{0} <= {1}", "{0} > {1}", "{0} >= {1}")
)


def _null_test(node: NullTest) -> Expr:
    arg = node.arg
    if isinstance(arg, Const):
        if arg.value is None or node.whole or not _is_row(arg.type):
            return _constant(node, (arg.value is None) is not node.negated)
    elif isinstance(arg, RowExpr) and not node.whole:
        tests = [
            (field.value is None) is not node.negated for field in arg.fields if isinstance(field, Const)
        ]
        if False in tests:
            return _constant(node, False)
        if len(tests) == len(arg.fields):
            return _constant(node, True)
    return node


def _is_row(type_: SqlType) -> bool:
    fact = facts().types.get(type_.oid)
    return fact is None or fact.kind == "c" or type_.oid == RECORD


def _boolean_test(node: BooleanTest) -> Expr:
    if not isinstance(node.arg, Const):
        return node
    wanted = {"true": True, "false": False, "unknown": None}[node.test]
    return _constant(node, (node.arg.value is wanted) is not node.negated)


# --- CASE, COALESCE, NULLIF -----------------------------------------------------------------------


def _case(node: CaseExpr) -> Expr:
    if not any(isinstance(when.condition, Const) for when in paced(node.whens)):
        return node
    whens = []
    default = node.default
    for when in paced(node.whens):
        if not isinstance(when.condition, Const):
            whens.append(when)
        elif when.condition.value is True:
            default = when.result
            break
    if not whens:
        return _of_type(default, node.type)
    return replace(node, whens=tuple(whens), default=default)


def _coalesce(node: CoalesceExpr) -> Expr:
    kept: list[Expr] = []
    for arg in paced(node.args):
        if not isinstance(arg, Const):
            kept.append(arg)
        elif arg.value is not None:
            kept.append(arg)
            break
    if not kept:
        return _constant(node, None)
    if len(kept) == 1:
        return _of_type(kept[0], node.type)
    return node if len(kept) == len(node.args) else replace(node, args=tuple(kept))


def _null_if(node: NullIf) -> Expr:
    sides = (node.left, node.right)
    if any(isinstance(side, Const) and side.value is None for side in sides):
        return _of_type(node.left, node.type)
    return _evaluated(node, node.proc, sides)


# --- what is computed -----------------------------------------------------------------------------


def _evaluated(node: Expr, proc: int, operands: Sequence[Expr]) -> Expr:
    """Return a node whose operands, all constants, are compared by ``proc`` as its value; as it is where that
    has to wait.
    """
    values: list[object] = []
    for operand in operands:
        if isinstance(operand, Const):
            values.append(operand.value)
        elif isinstance(operand, ArrayExpr) and len(operand.elements) <= _FEW and not operand.nested:
            for element in operand.elements:
                if not isinstance(element, Const):
                    return node
                values.append(element.value)
        else:
            return node
    fact, row = facts().procs.get(proc), load().functions.get(proc)
    if fact is None or fact.volatility != "i" or row is None or row.needs_types or row.needs_session:
        return node
    return _made(node, proc, values)


def _made(node: Expr, proc: int, values: Sequence[object]) -> Expr:
    try:
        value = computed(proc, values, lambda: evaluate_constant(node))
    except DataError:
        Met.errors += 1
        return node  # it may stand behind a guard: raise when it is evaluated, if ever
    return node if value is LEFT else _constant(node, value)


def _distinct(node: DistinctExpr) -> Expr:
    return _evaluated(node, node.proc, (node.left, node.right))


def _scalar_array(node: ScalarArrayOp) -> Expr:
    return _evaluated(node, node.proc, (node.scalar, node.array))


def _min_max(node: MinMaxExpr) -> Expr:
    return _evaluated(node, node.lt, node.args)


def _via_text(node: CoerceViaIO) -> Expr:
    if not isinstance(node.arg, Const):
        return node
    if node.arg.value is None:
        return _constant(node, None)
    return _made(node, 0, (node.arg.value,)) if _text_is_fixed(node) else node


def _text_is_fixed(node: CoerceViaIO) -> bool:
    # how many digits a float8 has in a text, is a setting
    return immutable_text(node) and FLOAT8 not in (node.type.oid, node.arg.type.oid)


def error_of_text(node: CoerceViaIO) -> DataError | None:
    """Return the error of a constant that cannot be read as another type, None where it can be or is not
    looked at ahead.
    """
    if isinstance(node.arg, Const) and node.arg.value is not None and _text_is_fixed(node):
        try:
            computed(0, (node.arg.value,), lambda: evaluate_constant(node))
        except DataError as error:
            return error.with_traceback(None)
    return None


DECIDED: Final[dict[type, Callable[[Any], Expr]]] = {
    BoolExpr: _boolean,
    NullTest: _null_test,
    BooleanTest: _boolean_test,
    CaseExpr: _case,
    CoalesceExpr: _coalesce,
    NullIf: _null_if,
    DistinctExpr: _distinct,
    ScalarArrayOp: _scalar_array,
    MinMaxExpr: _min_max,
    CoerceViaIO: _via_text,
}
"""What a node whose operands are folded already becomes, by its class."""
