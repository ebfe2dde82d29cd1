"""What AS OF and UP TO name: a value of SQL as a timestamp of the store.

12345678901234567             the hybrid value itself (Unix milliseconds << 16 | counter), also as text or numeric
timestamptz '2026-01-01 ...'  the first timestamp of that millisecond, also as text
interval '-5 seconds'         so long before (or after) now, also as text; a month counts 30 days

``now() - interval '1 month'`` is a timestamptz, and counts by the calendar.
"""

from __future__ import annotations

from typing import Any, Final

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_input
from pgwire.codecs.settings import CodecSettings
from planner.base.errors import SqlError
from planner.facts import INT2, INT4, INT8, INTERVAL, NUMERIC, TIMESTAMPTZ
from txn.base.time import MAX_TIMESTAMP, make_timestamp
from txn.base.types import Timestamp

_NUMBERS: Final = frozenset((INT2, INT4, INT8, NUMERIC))
_DAY_US: Final = 86_400_000_000


def moment(value: Any, oid: int, clause: str, now_us: int, settings: CodecSettings) -> Timestamp:
    """Return the timestamp that ``value`` of type ``oid`` names; ``clause`` is for messages.

    Raises SqlError 22004 for NULL, 22023 for what is no timestamp or out of range.
    """
    if value is None:
        raise SqlError("22004", f"{clause} must not be null")
    if oid in _NUMBERS:
        return (
            _checked(int(value) if value == value.to_integral_value() else -1, clause)
            if oid == NUMERIC
            else (_checked(value, clause))
        )
    if oid == TIMESTAMPTZ:
        return _of_us(value, clause)
    if oid == INTERVAL:
        return _of_us(now_us + interval_us(value), clause)
    text = str(value).strip()
    if text.isdigit():
        return _checked(int(text), clause)
    for other in (TIMESTAMPTZ, INTERVAL):
        try:
            return moment(text_input(other, text, -1, settings), other, clause, now_us, settings)
        except DataError:
            continue
    raise SqlError(
        "22023",
        f'{clause}: "{text}" is no timestamp',
        hint="Give a point in time, an interval from now such as '-5 seconds', or a value of holdfast_timestamp.",
    )


def interval_us(value: tuple[int, int, int]) -> int:
    """Return an interval's length in microseconds; a month counts 30 days."""
    months, days, us = value
    return (months * 30 + days) * _DAY_US + us


def _of_us(us: Any, clause: str) -> Timestamp:
    if not isinstance(us, int) or not 0 < us < 1 << 57:
        raise SqlError("22023", f"{clause} is out of range")
    return make_timestamp(us // 1000)


def _checked(value: int, clause: str) -> Timestamp:
    if not 0 < value <= MAX_TIMESTAMP:
        raise SqlError("22023", f"{clause}: {value} is no timestamp")
    return Timestamp(value)
