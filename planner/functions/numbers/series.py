"""generate_series over integers and numerics."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from planner.base.errors import SqlError
from planner.functions.numbers.numeric import EXACT
from planner.functions.registry import REGISTRY


def series(start: int, stop: int, step: int = 1) -> range:
    """SQL's ``generate_series``; 22023 for a zero step. The end is included; overflow ends it."""
    if step == 0:
        raise SqlError("22023", "step size cannot equal zero")
    return range(start, stop + (1 if step > 0 else -1), step)


def numeric_series(start: Decimal, stop: Decimal, step: Decimal = Decimal(1)) -> Iterator[Any]:
    """SQL's ``generate_series``."""
    for what, value in (("start value", start), ("stop value", stop), ("step size", step)):
        if value.is_nan():
            raise SqlError("22023", f"{what} cannot be NaN")
        if value.is_infinite():
            raise SqlError("22023", f"{what} cannot be infinity")
    if not step:
        raise SqlError("22023", "step size cannot equal zero")

    def rows() -> Iterator[Decimal]:
        value = start
        while value <= stop if step > 0 else value >= stop:
            yield value
            value = EXACT.add(value, step)

    return rows()


def _register() -> None:
    python = REGISTRY.python
    for t in ("int4", "int8"):
        python(f"generate_series({t},{t})", series)
        python(f"generate_series({t},{t},{t})", series)
    python("generate_series(numeric,numeric)", numeric_series)
    python("generate_series(numeric,numeric,numeric)", numeric_series)


_register()
