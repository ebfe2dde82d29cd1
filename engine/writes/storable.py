"""Values that a type has but a stored column has not: numerics of more than 38 digits, and NaN in numeric(p, s).

A column's values go to Parquet decimals when they are flushed, so they are refused when a statement stores them, never
found out later and never rounded (docs/sql.md).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from engine.catalog.physical import physical_type
from pgwire.give_way import paced
from planner.catalog import ColumnDef
from planner.errors import SqlError
from planner.typefacts import MAX_DECIMAL_PRECISION
from txn.types import PhysicalType

Refuse = Callable[[Any], None]


def refusal(column: ColumnDef) -> Refuse | None:
    """Return a function that raises SqlError 22003 for values the column cannot keep; None if it keeps all."""
    return _of(physical_type(column.type), column.name)


def _of(physical: PhysicalType, name: str) -> Refuse | None:
    if physical.kind == "decimal":

        def finite(value: Decimal | None) -> None:
            if value is not None and not value.is_finite():
                raise SqlError(
                    "22003",
                    f'column "{name}" cannot store {value}',
                    detail="A column with a declared precision stores finite values only.",
                    hint="Declare the column numeric, without precision.",
                )

        return finite
    if physical.kind == "numeric":

        def few_digits(value: Decimal | None) -> None:
            if value is None:
                return
            _, digits, exponent = value.as_tuple()
            if not isinstance(exponent, int):
                return  # NaN and the infinities have a place of their own
            count = len(digits) + max(exponent, 0)
            if count > MAX_DECIMAL_PRECISION:
                raise SqlError(
                    "22003",
                    f'value of {count} digits is out of range for column "{name}"',
                    detail=f"Stored numerics have at most {MAX_DECIMAL_PRECISION} digits.",
                )

        return few_digits
    if physical.kind == "list" and physical.element is not None:
        element = _of(physical.element, name)
        if element is None:
            return None

        return partial(_all_elements, element)
    return None


def _all_elements(element: Refuse, value: Any) -> None:
    if isinstance(value, tuple):
        for item in paced(value):
            _all_elements(element, item)
    else:
        element(value)
