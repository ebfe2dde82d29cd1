"""What is asked of expressions and calls before source is made of them (``planner.evaluate.unit``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from planner.base.arrays import flat
from planner.facts import facts, of_types
from planner.functions import load
from planner.functions.registry import Builtin
from planner.query import Const, Expr, FuncExpr, OpExpr, QueryBase, RelabelType, SqlCall
from planner.query.walk import children

MOST_NODES: Final = 64


@of_types
def of_fixed_length(oid: int) -> bool:
    """Tell whether all values of a type have the same length."""
    fact = facts().types.get(oid)
    return fact is not None and fact.length > 0


def typed(function: Callable[..., Any], types: tuple[int, ...]) -> Callable[..., Any]:
    """Return the call of a function that is told the types of its arguments."""

    def call(*args: Any) -> Any:
        return function(*args, types=types)

    return call


class SpreadTypes(tuple[int, ...]):
    """The types of a call's arguments, of which the last are the items of one array, of the type ``element``."""

    element: int

    def __new__(cls, before: tuple[int, ...], element: int, count: int) -> SpreadTypes:
        """``before``: those of the other arguments."""
        made = super().__new__(cls, before + (element,) * count)
        made.element = element
        return made


def spread(builtin: Builtin, function: Callable[..., Any], types: tuple[int, ...]) -> Callable[..., Any]:
    """Return the call for ``VARIADIC array`` of a function that takes VARIADIC "any"."""
    fact = facts().types.get(types[-1])
    formats = builtin.signature.startswith(
        "format("
    )  # without an array it has no arguments, others are NULL then
    tells = builtin.signature.startswith("satisfies_hash_partition(")  # no row of such a partition
    element = fact.element if fact is not None else 0

    def call(*args: Any) -> Any:
        array = args[-1]
        if array is None and not formats:
            return False if tells else None
        items = () if array is None else flat(array)
        if builtin.needs_types:
            return function(*args[:-1], *items, types=SpreadTypes(types[:-1], element, len(items)))
        return function(*args[:-1], *items)

    return call


def walk(node: object) -> Iterator[Expr]:
    """Yield every expression from ``node`` down; does not enter the bodies of sub-selects."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Expr):
            yield current
        stack.extend(child for child in children(current) if not isinstance(child, QueryBase))


def is_fixed(expr: Expr) -> bool:
    """Tell whether an expression is made of constants and immutable functions alone, of which none asks for
    the session.

    One of very many nodes is not, so that asking is cheap.
    """
    for number, node in enumerate(walk(expr)):
        if number > MOST_NODES:
            return False
        if isinstance(node, Const):
            continue
        if isinstance(node, SqlCall) or not isinstance(node, FuncExpr | OpExpr | RelabelType):
            return False
        if not isinstance(node, RelabelType):
            fact = facts().procs.get(node.proc)
            row = load().functions.get(node.proc)
            if fact is None or fact.volatility != "i" or fact.returns_set or row is None:
                return False
            if row.form_for(node.args)[1]:
                return False
    return True
