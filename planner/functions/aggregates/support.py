"""Transition, combine and final functions of built-in aggregates whose state is a value of SQL: an array, a number.

    int4_avg_accum('{2,10}', 5)  ->  {3,15}          int8_avg('{3,15}')  ->  5.0000000000000000
    float8_accum('{1,2,0}', 4)   ->  {2,6,2}         (count, sum, sum of squared differences)

Built-in aggregates do not run by them (``planner.functions.aggregates.states``); aggregates of one's own can
be made of them, and they can be called.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from planner.base.errors import SqlError
from planner.functions.aggregates.states import (
    REGRESSIONS,
    FloatMoments,
    Regression,
    float_average,
    float_spread,
    python_form,
)
from planner.functions.numbers import numeric
from planner.functions.registry import REGISTRY

State = tuple[Any, ...]


def _parts(caller: str, state: State, count: int, of: str = "float8") -> State:
    if len(state) != count or any(part is None or type(part) is tuple for part in state):
        raise SqlError("XX000", f"{caller}: expected {count}-element {of} array")
    return state


# --- integers -------------------------------------------------------------------------------------


def _wrapped(value: int) -> int:
    """Return a sum as PostgreSQL's unchecked int8 has it."""
    return (value + 2**63) % 2**64 - 2**63


def _counted(sign: int) -> Callable[[State, int], State]:
    def step(state: State, value: int) -> State:
        if len(state) != 2:
            raise SqlError("XX000", "expected 2-element int8 array")
        return _wrapped(state[0] + sign), _wrapped(state[1] + sign * value)

    return step


def _average(state: State) -> Decimal | None:
    if len(state) != 2:
        raise SqlError("XX000", "expected 2-element int8 array")
    count, total = state
    return numeric.div(Decimal(total), Decimal(count)) if count else None


def _total(state: State) -> int | None:
    if len(state) != 2:
        raise SqlError("XX000", "expected 2-element int8 array")
    return int(state[1]) if state[0] else None


def _sum(state: int | None, value: int | None) -> int | None:
    if state is None or value is None:
        return value if state is None else state
    return _wrapped(state + value)


def _sum_of_bigints(state: Decimal | None, value: int | None) -> Decimal | None:
    if state is None:
        return None if value is None else Decimal(value)
    return state if value is None else numeric.add(state, Decimal(value))


def _one_more(state: int, *values: Any) -> int:
    found = python_form("int8inc(int8)")(state)
    return int(found)


def _one_less(state: int, *values: Any) -> int:
    found = python_form("int8dec(int8)")(state)
    return int(found)


# --- floats ---------------------------------------------------------------------------------------


def _accumulated(caller: str) -> Callable[[State, float], State]:
    def step(state: State, value: float) -> State:
        moments = FloatMoments(float_average)
        moments.n, moments.sum, moments.sxx = _parts(caller, state, 3)
        moments.step(value)
        return moments.n, moments.sum, moments.sxx

    return step


def _checked(value: float, *inputs: float) -> float:
    from math import isinf

    if isinf(value) and not any(map(isinf, inputs)):
        raise SqlError("22003", "value out of range: overflow")
    return value


def _float_combined(one: State, other: State) -> State:
    n1, sum1, squares1 = _parts("float8_combine", one, 3)
    n2, sum2, squares2 = _parts("float8_combine", other, 3)
    if n1 == 0.0 or n2 == 0.0:
        return other if n1 == 0.0 else one
    n = n1 + n2
    apart = sum1 / n1 - sum2 / n2
    squares = _checked(squares1 + squares2 + n1 * n2 * apart * apart / n, squares1, squares2)
    return n, _checked(sum1 + sum2, sum1, sum2), squares


def _float_final(
    caller: str, finish: Callable[[float, float, float], float | None]
) -> Callable[[State], Any]:
    return lambda state: finish(*_parts(caller, state, 3))


def _regression(caller: str, state: State, finish: Callable[[Regression], Any]) -> Regression:
    found = Regression(finish)
    found.n, found.sx, found.sxx, found.sy, found.syy, found.sxy = _parts(caller, state, 6)
    return found


def _regression_step(state: State, y: float, x: float) -> State:
    found = _regression("float8_regr_accum", state, REGRESSIONS["regr_count"])
    found.step(y, x)
    return found.n, found.sx, found.sxx, found.sy, found.syy, found.sxy


def _regression_combined(one: State, other: State) -> State:
    n1, sx1, sxx1, sy1, syy1, sxy1 = _parts("float8_regr_combine", one, 6)
    n2, sx2, sxx2, sy2, syy2, sxy2 = _parts("float8_regr_combine", other, 6)
    if n1 == 0.0 or n2 == 0.0:
        return other if n1 == 0.0 else one
    n = n1 + n2
    x, y = sx1 / n1 - sx2 / n2, sy1 / n1 - sy2 / n2
    return (
        n,
        _checked(sx1 + sx2, sx1, sx2),
        _checked(sxx1 + sxx2 + n1 * n2 * x * x / n, sxx1, sxx2),
        _checked(sy1 + sy2, sy1, sy2),
        _checked(syy1 + syy2 + n1 * n2 * y * y / n, syy1, syy2),
        _checked(sxy1 + sxy2 + n1 * n2 * x * y / n, sxy1, sxy2),
    )


def _regression_final(caller: str, finish: Callable[[Regression], Any]) -> Callable[[State], Any]:
    return lambda state: _regression(caller, state, finish).result()


# --- intervals ------------------------------------------------------------------------------------


def _interval_counted(operation: str, sign: int) -> Callable[[State, Any], State]:
    def step(state: State, value: Any) -> State:
        if len(state) != 2:
            raise SqlError("XX000", "expected 2-element interval array")
        total, (months, days, count) = state
        return python_form(operation)(total, value), (months, days, count + sign)

    return step


def _interval_combined(one: State, other: State) -> State:
    if len(one) != 2 or len(other) != 2:
        raise SqlError("XX000", "expected 2-element interval array")
    total = python_form("interval_pl(interval,interval)")(one[0], other[0])
    return total, (0, 0, one[1][2] + other[1][2])


def _interval_average(state: State) -> Any:
    if len(state) != 2:
        raise SqlError("XX000", "expected 2-element interval array")
    total, (_, _, count) = state
    return python_form("interval_div(interval,float8)")(total, float(count)) if count else None


def _register() -> None:
    python = REGISTRY.python
    for t in ("int2", "int4"):
        python(f"{t}_avg_accum(_int8,{t})", _counted(1))
        python(f"{t}_avg_accum_inv(_int8,{t})", _counted(-1))
        python(f"{t}_sum(int8,{t})", _sum)
    python("int8_avg(_int8)", _average)
    python("int2int4_sum(_int8)", _total)
    python("int8_sum(numeric,int8)", _sum_of_bigints)
    python("int8inc_any(int8,any)", _one_more)
    python("int8dec_any(int8,any)", _one_less)
    python("int8inc_float8_float8(int8,float8,float8)", _one_more)
    python("float8_accum(_float8,float8)", _accumulated("float8_accum"))
    python("float4_accum(_float8,float4)", _accumulated("float4_accum"))
    python("float8_combine(_float8,_float8)", _float_combined)
    python("float8_avg(_float8)", _float_final("float8_avg", float_average))
    for name, sample, root in (
        ("var_pop", False, False), ("var_samp", True, False), ("stddev_pop", False, True), ("stddev_samp", True, True),
    ):  # fmt: skip
        python(f"float8_{name}(_float8)", _float_final(f"float8_{name}", float_spread(sample, root)))
    python("float8_regr_accum(_float8,float8,float8)", _regression_step)
    python("float8_regr_combine(_float8,_float8)", _regression_combined)
    for name, finish in REGRESSIONS.items():
        if name != "regr_count":
            python(f"float8_{name}(_float8)", _regression_final(f"float8_{name}", finish))
    python("interval_accum(_interval,interval)", _interval_counted("interval_pl(interval,interval)", 1))
    python("interval_accum_inv(_interval,interval)", _interval_counted("interval_mi(interval,interval)", -1))
    python("interval_combine(_interval,_interval)", _interval_combined)
    python("interval_avg(_interval)", _interval_average)


_register()
