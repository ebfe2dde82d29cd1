"""Arithmetic of double precision that says where a result is out of range (22003) and what is divided by zero
(22012).
"""

from __future__ import annotations

import math
from typing import NoReturn

from planner.base.errors import SqlError

INF = math.inf


NAN = math.nan


def _overflow() -> NoReturn:
    raise SqlError("22003", "value out of range: overflow")


def _underflow() -> NoReturn:
    raise SqlError("22003", "value out of range: underflow")


def add(a: float, b: float) -> float:
    """Return a + b."""
    r = a + b
    if r in (INF, -INF) and not (math.isinf(a) or math.isinf(b)):
        _overflow()
    return r


def sub(a: float, b: float) -> float:
    """Return a - b."""
    r = a - b
    if r in (INF, -INF) and not (math.isinf(a) or math.isinf(b)):
        _overflow()
    return r


def mul(a: float, b: float) -> float:
    """Return a * b."""
    r = a * b
    if r in (INF, -INF) and not (math.isinf(a) or math.isinf(b)):
        _overflow()
    if r == 0.0 and a != 0.0 and b != 0.0:
        _underflow()
    return r


def div(a: float, b: float) -> float:
    """Return a / b; 22012 for a zero divisor unless a is NaN."""
    if b == 0.0 and a == a:
        raise SqlError("22012", "division by zero")
    if b == 0.0:
        return NAN
    r = a / b
    if r in (INF, -INF) and not math.isinf(a):
        _overflow()
    if r == 0.0 and a != 0.0 and not math.isinf(b):
        _underflow()
    return r
