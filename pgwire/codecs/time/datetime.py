"""date, time, timetz, timestamp, timestamptz: text and binary forms.

Values are the integers of the value domain (days or microseconds since 1970); text is read by
``datetime_read`` and printed by ``datetime_show``; the common ISO form has a short path of its own. Binary
forms count from 2000-01-01.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta
from typing import Final

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.domain import (
    DATE_INFINITY,
    EPOCH_2000_DAYS,
    EPOCH_2000_US,
    TIMESTAMP_INFINITY,
    US_PER_DAY,
)
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import quoting
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.time.calendar import END_TIMESTAMP_US, MIN_TIMESTAMP_US, in_date_range
from pgwire.codecs.time.fields import Bad, UnknownZone, data_error
from pgwire.codecs.time.reading import Moment, read_clock, read_moment
from pgwire.codecs.time.zone import zone

_EPOCH: Final = datetime(1970, 1, 1)
_US: Final = timedelta(microseconds=1)
_ISO_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_ISO: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?"
    r"(?:([+-])([0-9]{2})(?::?([0-9]{2}))?|(Z))?",
    re.ASCII,
)
_ISO_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?", re.ASCII)
_INT4, _INT8, _INT8_INT4 = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">qi")
_ORDINAL_1970: Final = 719163
_WIRE_INFINITY, _WIRE_MINUS_INFINITY = 2**63 - 1, -(2**63)
_WIRE_DATE_INFINITY, _WIRE_DATE_MINUS_INFINITY = 2**31 - 1, -(2**31)


def parse_date(text: str, settings: CodecSettings) -> int:
    """Read a date: days since 1970-01-01. A time of day in the text is dropped. 22007, 22008."""
    if _ISO_DATE.fullmatch(text):
        try:
            return datetime.fromisoformat(text).toordinal() - _ORDINAL_1970
        except ValueError:
            pass
    try:
        moment = read_moment(text, settings, zoned=False)
    except (Bad, UnknownZone) as error:
        raise data_error(error, text, "date") from None
    if moment.special:
        return {"epoch": 0, "infinity": DATE_INFINITY, "-infinity": -DATE_INFINITY}[moment.special]
    if not in_date_range(moment.days):
        raise DataError("22008", quoting("date out of range: ", text))
    return moment.days


def _fast(text: str) -> tuple[int, int | None] | None:
    """Read the plain ISO form: (local microseconds, offset or None); None if it is anything else."""
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    date, time, fraction, sign, hours, minutes, zulu = match.groups()
    try:
        us = (datetime.fromisoformat(f"{date} {time}") - _EPOCH) // _US
    except ValueError:
        return None
    if fraction:
        us += int(fraction.ljust(6, "0"))
    if sign:
        hour, minute = int(hours), int(minutes or 0)
        if hour > 15 or minute > 59:
            return None
        east = hour * 3600 + minute * 60
        return us, -east if sign == "-" else east
    return us, 0 if zulu else None


def _in_range(us: int, text: str) -> int:
    if MIN_TIMESTAMP_US <= us < END_TIMESTAMP_US:
        return us
    raise DataError("22008", quoting("timestamp out of range: ", text))


def _special(moment: Moment) -> int:
    return {"epoch": 0, "infinity": TIMESTAMP_INFINITY, "-infinity": -TIMESTAMP_INFINITY}[moment.special]


def parse_timestamp(text: str, settings: CodecSettings) -> int:
    """Read a timestamp without time zone: microseconds. A zone in the text is ignored. 22007, 22008."""
    fast = _fast(text)
    if fast is not None:
        return fast[0]
    try:
        moment = read_moment(text, settings, zoned=False)
    except (Bad, UnknownZone) as error:
        raise data_error(error, text, "timestamp") from None
    if moment.special:
        return _special(moment)
    return _in_range(moment.days * US_PER_DAY + moment.time_us, text)


def parse_timestamptz(text: str, settings: CodecSettings) -> int:
    """Read a timestamp with time zone (by default the session's): microseconds UTC. 22007, 22008, 22009."""
    fast = _fast(text)
    if fast is not None:
        us, offset = fast
        if offset is None:
            offset = zone(settings.time_zone).offset_for_local(us)
        return us - offset * 1_000_000
    try:
        moment = read_moment(text, settings, zoned=True)
    except (Bad, UnknownZone) as error:
        raise data_error(error, text, "timestamp with time zone") from None
    if moment.special:
        return _special(moment)
    us = moment.days * US_PER_DAY + moment.time_us
    return _in_range(us - moment.offset * 1_000_000, text)


def parse_time(text: str, settings: CodecSettings) -> int:
    """Read a time of day: microseconds, up to 24:00:00. A zone is accepted and dropped. 22007, 22008."""
    match = _ISO_TIME.fullmatch(text)
    if match is not None:
        hour, minute, second = int(match[1]), int(match[2]), int(match[3])
        if hour < 24 and minute < 60 and second < 60:
            us = ((hour * 60 + minute) * 60 + second) * 1_000_000
            return us + int(match[4].ljust(6, "0")) if match[4] else us
    try:
        return read_clock(text, settings)[0]
    except (Bad, UnknownZone) as error:
        raise data_error(error, text, "time") from None


def parse_timetz(text: str, settings: CodecSettings) -> tuple[int, int]:
    """Read a time of day with zone: (microseconds, seconds west). 22007, 22008, 22009."""
    try:
        us, east = read_clock(text, settings)
    except (Bad, UnknownZone) as error:
        raise data_error(error, text, "time with time zone") from None
    return us, -east


def recv_date(data: bytes) -> int:
    """Read int32 days since 2000; 22008 out of range."""
    if len(data) != 4:
        raise DataError(*wrong_length(data, 4))
    (days,) = _INT4.unpack(data)
    if days == _WIRE_DATE_INFINITY:
        return DATE_INFINITY
    if days == _WIRE_DATE_MINUS_INFINITY:
        return -DATE_INFINITY
    days += EPOCH_2000_DAYS
    if not in_date_range(days):
        raise DataError("22008", "date out of range")
    return int(days)


def send_date(days: int) -> bytes:
    """Return int32 days since 2000."""
    if days == DATE_INFINITY:
        return _INT4.pack(_WIRE_DATE_INFINITY)
    if days == -DATE_INFINITY:
        return _INT4.pack(_WIRE_DATE_MINUS_INFINITY)
    return _INT4.pack(days - EPOCH_2000_DAYS)


def recv_timestamp(data: bytes) -> int:
    """Read int64 microseconds since 2000; 22008 out of range."""
    if len(data) != 8:
        raise DataError(*wrong_length(data, 8))
    (us,) = _INT8.unpack(data)
    if us == _WIRE_INFINITY:
        return TIMESTAMP_INFINITY
    if us == _WIRE_MINUS_INFINITY:
        return -TIMESTAMP_INFINITY
    us += EPOCH_2000_US
    if not MIN_TIMESTAMP_US <= us < END_TIMESTAMP_US:
        raise DataError("22008", "timestamp out of range")
    return int(us)


def send_timestamp(us: int) -> bytes:
    """Return int64 microseconds since 2000."""
    if us == TIMESTAMP_INFINITY:
        return _INT8.pack(_WIRE_INFINITY)
    if us == -TIMESTAMP_INFINITY:
        return _INT8.pack(_WIRE_MINUS_INFINITY)
    return _INT8.pack(us - EPOCH_2000_US)


def recv_time(data: bytes) -> int:
    """Read int64 microseconds; 22008 out of range."""
    if len(data) != 8:
        raise DataError(*wrong_length(data, 8))
    (us,) = _INT8.unpack(data)
    if not 0 <= us <= US_PER_DAY:
        raise DataError("22008", "time out of range")
    return int(us)


send_time = _INT8.pack


def recv_timetz(data: bytes) -> tuple[int, int]:
    """Read int64 microseconds and int32 seconds west; 22008, 22009 out of range."""
    if len(data) != 12:
        raise DataError(*wrong_length(data, 12))
    us, west = _INT8_INT4.unpack(data)
    if not 0 <= us <= US_PER_DAY:
        raise DataError("22008", "time out of range")
    if not -16 * 3600 < west < 16 * 3600:
        raise DataError("22009", "time zone displacement out of range")
    return us, west


def send_timetz(value: tuple[int, int]) -> bytes:
    """Return microseconds and seconds west."""
    return _INT8_INT4.pack(*value)
