"""Dates and times of jsonpath: what ``.datetime()`` reads, how moments compare, how they are written (manual 9.16.2.3).

    "2017-03-10T12:34:56+03".datetime()      Moment(TIMESTAMPTZ, microseconds since 1970 UTC, 10800)
    "12:35".datetime("HH24:MI")              Moment(TIME, microseconds of the day)

A template is strict (SQL/JSON): separators match exactly, and the whole text is read. What a comparison has
to convert by the session's zone only the functions with ``_tz`` do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgwire.codecs.domain import US_PER_DAY
from pgwire.codecs.invalid import quoting
from pgwire.codecs.registry import text_output
from planner.base.errors import SqlError
from planner.facts import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ
from planner.functions.session import EvalSession
from planner.functions.time.formatting_read import read_moment
from planner.functions.time.operators import time_to_timetz
from planner.functions.time.values import session_zone
from planner.types.facts import format_type

_DAY_TEMPLATES: Final = ("yyyy-mm-dd ", 'yyyy-mm-dd"T"')
_CLOCK: Final = ("HH24:MI:SS.US", "HH24:MI:SS")
_ZONED: Final = tuple(clock + zone for clock in _CLOCK for zone in ("TZH:TZM", "TZH"))
_ISO_TEMPLATES: Final = (
    "yyyy-mm-dd", *_ZONED, *_CLOCK, *(day + clock for clocks in (_ZONED, _CLOCK) for day in _DAY_TEMPLATES for clock in clocks),
)  # fmt: skip
"""What is tried without a template, in this order."""
_SHORT: Final = {
    DATE: "date",
    TIME: "time",
    TIMETZ: "timetz",
    TIMESTAMP: "timestamp",
    TIMESTAMPTZ: "timestamptz",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or time with its type: days or microseconds as the type has them, and the zone it was written in
    (seconds east).
    """

    type: int
    value: int
    zone: int = 0

    @property
    def type_name(self) -> str:
        """What ``.type()`` says."""
        return format_type(self.type)

    def text(self) -> str:
        """Return it as JSON has it: ISO 8601, with the zone that was read."""
        if self.type == TIME:
            return text_output(TIME, self.value)
        if self.type == TIMETZ:
            return text_output(TIME, self.value) + _offset(self.zone)
        if self.type == DATE:
            return text_output(DATE, self.value)
        zoned = self.type == TIMESTAMPTZ
        shown = text_output(TIMESTAMP, self.value + self.zone * 1_000_000)
        day, time, *era = shown.split(" ")
        return " ".join([f"{day}T{time}{_offset(self.zone) if zoned else ''}", *era])


def _offset(zone: int) -> str:
    seconds = abs(zone)
    return f"{'-' if zone < 0 else '+'}{seconds // 3600:02}:{seconds // 60 % 60:02}"


def read(text: str, template: str | None) -> Moment:
    """Return what a text says. SqlError 22007, 22008, 22009; 22031 without a template."""
    if template is not None:
        return Moment(*read_moment(text, template))
    for known in _ISO_TEMPLATES:
        try:
            return Moment(*read_moment(text, known))
        except SqlError:
            continue
    raise SqlError(
        "22031",
        quoting("datetime format is not recognized: ", text),
        hint="Use a datetime template argument to specify the input data format.",
    )


def compared(a: Moment, b: Moment, session: EvalSession | None) -> int | None:
    """Return a number below, at or above 0; None: not comparable. SqlError 0A000 where only a ``session``
    knows the zone.
    """
    if (a.type in (TIME, TIMETZ)) != (b.type in (TIME, TIMETZ)):
        return None
    for kind, convert in _COMMON.items():
        if kind in (a.type, b.type):
            left, right = convert(a, session), convert(b, session)
            return (left > right) - (left < right)
    return a.value - b.value


def _to_timetz(moment: Moment, session: EvalSession | None) -> tuple[int, int]:
    if moment.type == TIME:
        us, west = time_to_timetz(_zoned(moment, TIMETZ, session), moment.value)
    else:
        us, west = moment.value, -moment.zone
    return us + west * 1_000_000, west


def _to_timestamptz(moment: Moment, session: EvalSession | None) -> tuple[int, int]:
    if moment.type == TIMESTAMPTZ:
        return moment.value, 0
    us, _ = _to_timestamp(moment, session)
    return us - session_zone(_zoned(moment, TIMESTAMPTZ, session)).offset_for_local(us) * 1_000_000, 0


def _to_timestamp(moment: Moment, session: EvalSession | None) -> tuple[int, int]:
    return (moment.value * US_PER_DAY if moment.type == DATE else moment.value), 0


_COMMON: Final[dict[int, Callable[[Moment, EvalSession | None], tuple[int, int]]]] = {
    TIMETZ: _to_timetz, TIMESTAMPTZ: _to_timestamptz, TIMESTAMP: _to_timestamp,
}  # fmt: skip
"""The type that two are compared by, and what makes a value of it."""


def _zoned(moment: Moment, kind: int, session: EvalSession | None) -> EvalSession:
    if session is None:
        raise SqlError(
            "0A000",
            f"cannot convert value from {_SHORT[moment.type]} to {_SHORT[kind]} without time zone usage",
            hint="Use *_tz() function for time zone support.",
        )
    return session
