"""in_range over dates and times: how RANGE frames with an interval offset compare order values.

``in_range(value, base, offset, sub, less)`` is ``value <= base - offset`` (or ``+``, or ``>=``). A date counts as its
midnight; a time does not wrap at midnight and looks only at the offset's time of day.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.base.errors import SqlError, not_supported
from planner.facts import facts
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values.compare import interval_length
from planner.types import DATE_INFINITY, TIMESTAMP_INFINITY

Interval = tuple[int, int, int]
US_PER_DAY = 86_400_000_000


def _refuse_negative(size: int) -> None:
    if size < 0:
        raise SqlError("22013", "invalid preceding or following size in window function")


def _moved(signature: str, session: EvalSession | None, base: Any, offset: Interval) -> Any:
    row = REGISTRY.functions.get(facts().proc_by_signature[signature])
    if row is None or row.python is None:
        raise not_supported(f"function {signature} in the row executor")
    return row.python(session, base, offset) if row.needs_session else row.python(base, offset)


def _decide(value: Any, bound: Any, less: bool) -> bool:
    return bool(value <= bound) if less else bool(value >= bound)


def _midnight(days: int) -> int:
    if abs(days) == DATE_INFINITY:
        return TIMESTAMP_INFINITY if days > 0 else -TIMESTAMP_INFINITY
    return days * US_PER_DAY


def timestamps(value: int, base: int, offset: Interval, sub: bool, less: bool) -> bool:
    """Tell whether a timestamp is in range."""
    _refuse_negative(interval_length(offset))
    sign = "mi" if sub else "pl"
    return _decide(value, _moved(f"timestamp_{sign}_interval(timestamp,interval)", None, base, offset), less)


def dates(value: int, base: int, offset: Interval, sub: bool, less: bool) -> bool:
    """Tell whether a date is in range."""
    return timestamps(_midnight(value), _midnight(base), offset, sub, less)


def zoned(session: EvalSession, value: int, base: int, offset: Interval, sub: bool, less: bool) -> bool:
    """Tell whether a timestamptz is in range: days and months are the session's."""
    _refuse_negative(interval_length(offset))
    sign = "mi" if sub else "pl"
    signature = f"timestamptz_{sign}_interval(timestamptz,interval)"
    return _decide(value, _moved(signature, session, base, offset), less)


def intervals(value: Interval, base: Interval, offset: Interval, sub: bool, less: bool) -> bool:
    """Tell whether a interval is in range."""
    _refuse_negative(interval_length(offset))
    bound = _moved(f"interval_{'mi' if sub else 'pl'}(interval,interval)", None, base, offset)
    return _decide(interval_length(value), interval_length(bound), less)


def times(value: int, base: int, offset: Interval, sub: bool, less: bool) -> bool:
    """Tell whether a time is in range."""
    _refuse_negative(offset[2])
    return _decide(value, base - offset[2] if sub else base + offset[2], less)


def zoned_times(value: Any, base: Any, offset: Interval, sub: bool, less: bool) -> bool:
    """Tell whether a timetz is in range: compares moments of the day in UTC, then zones."""
    _refuse_negative(offset[2])
    moved = base[0] - offset[2] if sub else base[0] + offset[2]

    def key(t: int, zone: int) -> tuple[int, int]:
        return t + zone * 1_000_000, zone

    return _decide(key(*value), key(moved, base[1]), less)


def _register() -> None:
    forms: dict[str, Callable[..., bool]] = {
        "date": dates, "timestamp": timestamps, "interval": intervals, "time": times, "timetz": zoned_times,
    }  # fmt: skip
    for name, form in forms.items():
        REGISTRY.python(f"in_range({name},{name},interval,bool,bool)", form)
    REGISTRY.python("in_range(timestamptz,timestamptz,interval,bool,bool)", zoned, needs_session=True)


_register()
