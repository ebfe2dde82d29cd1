"""Constants as engine text, for SQL that executors compose themselves."""

from __future__ import annotations

from planner.lower.kit import numeric
from planner.lower.kit.constants import constant
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import Floating, Num
from planner.types import SqlType


def missing(d: Dialect, value: object, type_: SqlType, num: Num | None) -> str:
    """Return a column's missing value as an expression of the column's engine type."""
    made = constant(d, value, type_)
    node = numeric.to_floating(d, made) if isinstance(num, Floating) and value is not None else made.node
    return d.text(node)
