"""money: arithmetic in cents (manual 8.2)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from pgwire.codecs.money import LIMIT
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY

_CONTEXT = Context(prec=1000)


def _checked(cents: int) -> int:
    if not -LIMIT <= cents < LIMIT:
        raise SqlError("22003", "money out of range")
    return cents


def _rounded(value: float) -> int:
    """Return the nearest integer, the even one between two, as rint; 22003."""
    if value != value or abs(value) >= LIMIT:
        raise SqlError("22003", "money out of range")
    return _checked(round(value))


def _zero() -> SqlError:
    return SqlError("22012", "division by zero")


def _divided(cents: int, by: int) -> int:
    if by == 0:
        raise _zero()
    quotient = abs(cents) // abs(by)
    return _checked(-quotient if (cents < 0) != (by < 0) else quotient)


def _divided_by_float(cents: int, by: float) -> int:
    if by == 0:
        raise _zero()
    return _rounded(cents / by)


def ratio(a: int, b: int) -> float:
    """Return money / money."""
    if b == 0:
        raise _zero()
    return a / b


def of_numeric(value: Decimal) -> int:
    """Return an amount in cents, rounded half away from zero; 22003."""
    if not value.is_finite():
        word = "NaN" if value.is_nan() else "infinity"
        raise SqlError("0A000", f"cannot convert {word} to bigint")
    cents = value.scaleb(2, _CONTEXT).to_integral_value(ROUND_HALF_UP, _CONTEXT)
    if not -LIMIT <= cents < LIMIT:
        raise SqlError("22003", "bigint out of range")
    return int(cents)


_ONES: Final = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS: Final = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_GROUPS: Final = ("quadrillion", "trillion", "billion", "million", "thousand")
"""Of three digits each, from the first on; before the last three."""


def _spelled(value: int) -> str:
    """Spell a number below 1000; ``and`` stands between hundreds and what is below twenty alone."""
    hundreds, rest = divmod(value, 100)
    tens, ones = divmod(rest, 10)
    if rest < 20:
        below = _ONES[rest]
    else:
        below = _TENS[tens] + (f" {_ONES[ones]}" if ones else "")
    if not hundreds:
        return below
    said = f"{_ONES[hundreds]} hundred"
    if not rest:
        return said
    return f"{said} {below}" if rest >= 20 else f"{said} and {below}"


def in_words(cents: int) -> str:
    """SQL's ``cash_words``: dollars and cents spelled out."""
    whole, part = divmod(abs(cents), 100)
    groups = [whole // 1000**power % 1000 for power in range(len(_GROUPS), -1, -1)]
    said = "".join([f"{_spelled(n)} {name} " for n, name in zip(groups[:-1], _GROUPS, strict=True) if n])
    said += _spelled(groups[-1]) if groups[-1] or not said else ""
    text = f"{'minus ' if cents < 0 else ''}{said} dollar{'s' * (whole != 1)} and {_spelled(part)} cent{'s' * (part != 1)}"
    return text[0].upper() + text[1:]


class Total:
    """sum(money)."""

    def __init__(self) -> None:
        """Start without a value."""
        self.total: int | None = None

    def step(self, cents: int) -> None:
        """Add an amount."""
        self.total = cents if self.total is None else _checked(self.total + cents)

    def result(self) -> int | None:
        """Return the sum, NULL for no amounts."""
        return self.total


def _register() -> None:
    python = REGISTRY.python
    python("cash_pl(money,money)", lambda a, b: _checked(a + b))
    python("cash_mi(money,money)", lambda a, b: _checked(a - b))
    python("cash_div_cash(money,money)", ratio)
    integers: dict[str, str] = {"int2": "int2", "int4": "int4", "int8": "int8"}
    multiply: Callable[[int, int], int] = lambda a, b: _checked(a * b)  # noqa: E731
    for name in integers:
        python(f"cash_mul_{name}(money,{name})", multiply)
        python(f"{name}_mul_cash({name},money)", multiply)
        python(f"cash_div_{name}(money,{name})", _divided)
    for short, name in (("flt4", "float4"), ("flt8", "float8")):
        python(f"cash_mul_{short}(money,{name})", lambda c, f: _rounded(c * f))
        python(f"{short}_mul_cash({name},money)", lambda f, c: _rounded(c * f))
        python(f"cash_div_{short}(money,{name})", _divided_by_float)
    python("numeric(money)", lambda cents: Decimal(cents).scaleb(-2, _CONTEXT))
    python("money(numeric)", of_numeric)
    for name in ("int4", "int8"):
        python(f"money({name})", lambda n: _checked(n * 100))
    python("cash_words(money)", in_words)
    REGISTRY.aggregate_python("sum(money)", Total)


_register()
