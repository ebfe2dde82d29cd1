"""Time zones: offsets at an instant or for a local time, and the abbreviations PostgreSQL knows.

Zone data comes from the IANA database through ``zoneinfo``. Beyond ``datetime``'s years the calendar's
400-year cycle is used (later years) or the first known offset (earlier ones).

    local time that a change of clocks skips    read with the offset before the change
    local time that a change of clocks repeats  read as standard time, the later of the two

Abbreviations are those of PostgreSQL's default set: a fixed offset, or the name of a zone in which the
abbreviation means what it meant at that date.
"""

from __future__ import annotations

import functools
import io
import re
import struct
import zoneinfo
from datetime import UTC as _UTC
from datetime import datetime, timedelta
from typing import Final

from pgwire.codecs.domain import US_PER_DAY
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import quoting
from pgwire.codecs.time.calendar import civil_from_days, days_from_civil
from pgwire.kept import kept

_UTC_NAMES: Final = frozenset({
    "utc", "etc/utc", "gmt", "etc/gmt", "zulu", "etc/zulu", "uct", "etc/uct", "universal", "etc/universal",
    "etc/greenwich", "greenwich", "gmt0", "etc/gmt0", "etc/gmt+0", "etc/gmt-0", "gmt+0", "gmt-0",
})  # fmt: skip
# names are all but these characters, or in angle brackets
_NAME: Final = r"(?:<([^>]*)>|(?!<)([^-+,0-9]*))"
_OFFSET: Final = r"([-+]?)([0-9]++)(?::([0-9]++)(?::([0-9]++))?+)?+(?!:)"
_STANDARD: Final = re.compile(_NAME + _OFFSET)
_SAVING: Final = re.compile(rf"{_NAME}(?:{_OFFSET})?(.*)", re.DOTALL)
_CHANGE: Final = re.compile(rf"(?:(J?)([0-9]+)|M([0-9]+)\.([0-9]+)\.([0-9]+))(?:/{_OFFSET})?")
_RULE: Final = "M3.2.0,M11.1.0"
"""When daylight saving time is, where a POSIX specification does not say."""
_EPOCH: Final = datetime(1970, 1, 1)
_VARIES: Final = 1 << 40
_CACHE_DAYS: Final = 20_000
_FIRST_DAY: Final = days_from_civil(2, 1, 1)
_END_DAY: Final = days_from_civil(9999, 1, 1)
_CYCLE_DAYS: Final = 146097
# Years outside which no zone begins or ends to use an abbreviation.
LONGEST_NAME: Final = 255
_LONGEST_ABBREVIATION: Final = 64
_FIRST_ABBREVIATION, _LAST_ABBREVIATION = 1850, 2100


class Zone:
    """One time zone. ``fixed`` is its offset in seconds east if that never changes, else None."""

    __slots__ = ("_abbreviation", "_days", "_local_days", "_shown", "_tz", "fixed", "name")

    def __init__(
        self,
        name: str,
        *,
        fixed: int | None = None,
        abbreviation: str = "",
        rules: zoneinfo.ZoneInfo | None = None,
        shown: dict[str, str] | None = None,
    ) -> None:
        """Make a zone with a constant offset, with rules of its own, or (neither) one of the IANA database.

        ``shown``: the abbreviations for those that the rules use.
        """
        self.name = name
        self.fixed = fixed
        self._abbreviation = abbreviation
        self._shown = shown or {}
        self._tz = None if fixed is not None else rules or zoneinfo.ZoneInfo(name)
        self._days: dict[int, int] = {}
        self._local_days: dict[int, int] = {}

    def offset_at(self, us: int) -> int:
        """Return seconds east of UTC at the instant ``us``."""
        if self.fixed is not None:
            return self.fixed
        day = us // US_PER_DAY
        offset = self._days.get(day)
        if offset is None:
            first, last = self._exact(day * US_PER_DAY), self._exact((day + 1) * US_PER_DAY - 1)
            offset = first if first == last else _VARIES
            if len(self._days) > _CACHE_DAYS:
                self._days.clear()
            self._days[day] = offset
        return self._exact(us) if offset == _VARIES else offset

    def offset_for_local(self, us: int) -> int:
        """Return seconds east of UTC for a local time (``us`` as if it were UTC); see the table above."""
        if self.fixed is not None:
            return self.fixed
        day = us // US_PER_DAY
        offset = self._local_days.get(day)
        if offset is None:
            first, last = self._exact_local(day * US_PER_DAY), self._exact_local((day + 1) * US_PER_DAY - 1)
            offset = first if first == last else _VARIES
            if len(self._local_days) > _CACHE_DAYS:
                self._local_days.clear()
            self._local_days[day] = offset
        return self._exact_local(us) if offset == _VARIES else offset

    def abbreviation_at(self, us: int) -> str:
        """Return the zone's abbreviation at the instant, such as ``CET``."""
        if self._tz is None:
            return self._abbreviation
        shown = self._aware(us).tzname() or ""
        return self._shown.get(shown, shown)

    def _aware(self, us: int) -> datetime:
        moment = _naive(us).replace(tzinfo=_UTC)
        return moment.astimezone(self._tz)

    def _exact(self, us: int) -> int:
        offset = self._aware(us).utcoffset()
        return offset.days * 86400 + offset.seconds if offset is not None else 0

    def _exact_local(self, us: int) -> int:
        local = _naive(us).replace(tzinfo=self._tz)
        early, late = local.utcoffset(), local.replace(fold=1).utcoffset()
        if early is None or late is None:
            return 0
        offset = min(early, late)
        return offset.days * 86400 + offset.seconds


def _naive(us: int) -> datetime:
    """Return the datetime of ``us``, moved into datetime's range where it is outside."""
    days, rest = divmod(us, US_PER_DAY)
    if days < _FIRST_DAY:
        days = _FIRST_DAY
    elif days >= _END_DAY:
        days -= ((days - _END_DAY) // _CYCLE_DAYS + 1) * _CYCLE_DAYS
    return _EPOCH + timedelta(days=days, microseconds=rest)


UTC: Final = Zone("UTC", fixed=0, abbreviation="UTC")


@functools.cache
def names() -> dict[str, str]:
    """Return the names of all zones by themselves in lower case; the first call reads hundreds of files."""
    return {name.lower(): name for name in zoneinfo.available_timezones()}


@kept(512)
def find_zone(name: str) -> Zone | None:
    """Return the zone called ``name`` (any case), or given as by a POSIX specification like ``UTC+3``; None if unknown.

    A POSIX offset counts hours *west*; ``<+05>-05`` is how a numeric TimeZone setting is written. Its abbreviation may
    be missing: ``+05:30`` is west, too.
    """
    if len(name) > LONGEST_NAME:
        return None
    lower = name.lower()
    if lower in _UTC_NAMES:
        return Zone(name, fixed=0, abbreviation="GMT" if "g" in lower else "UTC")
    known = names().get(lower)
    if known is not None:
        return Zone(known)
    return _posix(name)


def _posix(name: str) -> Zone | None:
    """Return the zone of a POSIX specification (``X+5:30``, ``EST5EDT,M3.2.0,M11.1.0``), read as PostgreSQL
    does, None for another text.
    """
    spec = name.upper()
    match = _STANDARD.match(spec)
    if match is None:
        return None
    standard = _west(*match.groups()[2:])
    abbreviation = match[1] if match[1] is not None else match[2]
    if standard is None or len(abbreviation) > _LONGEST_ABBREVIATION:
        return None
    rest = spec[match.end() :]
    if not rest:
        return Zone(name, fixed=-standard, abbreviation=abbreviation)
    match = _SAVING.fullmatch(rest)
    if match is None:
        return None
    saving = _west(*match.groups()[2:6]) if match[4] is not None else standard - 3600
    other = match[1] if match[1] is not None else match[2]
    changes = (match[7][1:] if match[7][:1] in (",", ";") else _RULE if not match[7] else "").split(",")
    rules = [_change(text) for text in changes]
    if saving is None or not other or len(other) > _LONGEST_ABBREVIATION:
        return None
    if len(rules) != 2 or None in rules:
        return None
    # other names are good in PostgreSQL, not in a file
    spec = f"STD{_written(standard)}DST{_written(saving)},{rules[0]},{rules[1]}"
    nothing = struct.pack(">6llbb", 0, 0, 0, 0, 1, 4, 0, 0, 0) + b"UTC\0"  # all is in the last line
    part = b"TZif2" + bytes(15) + nothing
    try:
        made = zoneinfo.ZoneInfo.from_file(io.BytesIO(part * 2 + f"\n{spec}\n".encode()), key=name)
    except ValueError:
        return None
    return Zone(name, rules=made, shown={"STD": abbreviation, "DST": other})


def _west(sign: str | None, hours: str, minutes: str | None, seconds: str | None) -> int | None:
    """Return the seconds that an offset says, None where it is too large: below 168 hours, 60 minutes, and up
    to 60 seconds.
    """
    parts = [int(part) for part in (hours, minutes or "0", seconds or "0")]
    if parts[0] > 167 or parts[1] > 59 or parts[2] > 60:
        return None
    total = parts[0] * 3600 + parts[1] * 60 + parts[2]
    return -total if sign == "-" else total


def _written(seconds: int) -> str:
    size = abs(seconds)
    return f"{'-' if seconds < 0 else ''}{size // 3600}:{size // 60 % 60:02d}:{size % 60:02d}"


def _change(text: str) -> str | None:
    """Return when the clocks change as Python reads it, None where it is no such text."""
    match = _CHANGE.fullmatch(text)
    if match is None:
        return None
    julian, day, month, week, weekday = match.groups()[:5]
    at = _west(*match.groups()[5:]) if match[7] is not None else 7200
    if at is None:
        return None
    if day is None:
        good = 1 <= int(month) <= 12 and 1 <= int(week) <= 5 and int(weekday) <= 6
        when = f"M{int(month)}.{int(week)}.{int(weekday)}"
    else:
        good = (1 if julian else 0) <= int(day) <= 365
        when = f"J{int(day)}" if julian else str(int(day) + 1)  # which Python counts from 1, POSIX from 0
    return f"{when}/{_written(at)}" if good else None


def zone(name: str) -> Zone:
    """Return the zone called ``name``; 22023 if there is none."""
    found = find_zone(name)
    if found is None:
        raise DataError("22023", quoting("time zone ", name, " not recognized"))
    return found


def abbreviation_offset(word: str, local_us: int) -> int | None:
    """Return seconds east for an abbreviation (lower case) at a local time; None if it is none.

    An abbreviation bound to a zone takes the offset that it last had there at or before that time.
    """
    entry = ABBREVIATIONS.get(word)
    if entry is None:
        return None
    if isinstance(entry, tuple):
        return entry[0]
    return abbreviation_offset_at(word, local_us - zone(entry).offset_for_local(local_us) * 1_000_000)


def abbreviation_offset_at(word: str, us: int) -> int | None:
    """Return seconds east for an abbreviation (lower case) at an instant; None if it is none."""
    entry = ABBREVIATIONS.get(word)
    if entry is None:
        return None
    if isinstance(entry, tuple):
        return entry[0]
    place = zone(entry)
    if place.abbreviation_at(us).lower() == word:
        return place.offset_at(us)
    meant = _abbreviation_in_zone(entry, word, civil_from_days(us // US_PER_DAY)[0])
    return place.offset_at(us) if meant is None else meant


@functools.lru_cache(maxsize=1024)
def _abbreviation_in_zone(name: str, word: str, year: int) -> int | None:
    """Look back (then ahead) half a year at a time for when the zone used the abbreviation."""
    place = zone(name)
    year = min(max(year, _FIRST_ABBREVIATION), _LAST_ABBREVIATION)
    for step in (*range(0, -500, -1), *range(1, 500)):
        us = (days_from_civil(year, 7, 1) + step * 182) * US_PER_DAY
        if place.abbreviation_at(us).lower() == word:
            return place.offset_at(us)
    return None


# word -> (seconds east, is daylight saving), or the name of the zone that says what it means.
_FIXED: Final = """
eat:10800 sast:7200 wat:3600 act:-18000 akdt:-28800D akst:-32400 bot:-14400 bra:-10800 brst:-7200D
brt:-10800 cot:-18000 cdt:-18000D clst:-10800D cst:-21600 edt:-14400D egst:0D egt:-3600 est:-18000
fnt:-7200 fnst:-3600D gft:-10800 mdt:-21600D mst:-25200 ndt:-9000D nft:-12600 nst:-12600 pet:-18000
pdt:-25200D pmdt:-7200D pmst:-10800 pst:-28800 pyst:-10800D uyst:-7200D uyt:-10800 wgst:-7200D wgt:-10800
ddut:36000 aft:16200 almt:21600 almst:25200D amt:-14400 bdt:21600 bnt:28800 bort:28800 btt:21600
cct:28800 hkt:28800 ict:25200 idt:10800D irt:12600 ist:7200 jayt:32400 jst:32400 kdt:36000D kgst:21600D
kst:32400 mmt:23400 myt:28800 npt:20700 pht:28800 pkt:18000 pkst:21600D tjt:18000 ulast:32400D
uzst:21600D uzt:18000 xjt:21600 yekst:21600D adt:-10800D ast:-14400 azost:0D azot:-3600 acsst:37800D
acdt:37800D acst:34200 acwst:31500 aesst:39600D aedt:39600D aest:36000 awsst:32400D awst:28800
cadt:37800D cast:34200 lhst:37800 ligt:36000 nzt:43200 sadt:37800D wadt:28800D wast:25200 wdt:32400D
gmt:0 uct:0 ut:0 utc:0 z:0 zulu:0 bst:3600D bdst:7200D cest:7200D cet:3600 cetdst:7200D eest:10800D
eet:7200 eetdst:10800D fet:10800 mest:7200D mesz:7200D met:3600 metdst:7200D mez:3600 msd:14400D wet:0
wetdst:3600D cxt:25200 mut:14400 must:18000D mvt:18000 ret:14400 sct:14400 tft:18000 chadt:49500D
chast:45900 chut:36000 fjst:46800D fjt:43200 galt:-21600 gamt:-32400 gilt:43200 hst:-36000 mart:-34200
mht:43200 mpt:36000 nzdt:46800D nzst:43200 pgt:36000 pont:39600 pwt:32400 taht:-36000 tot:46800
trut:36000 tvt:43200 vut:39600 wakt:43200 wft:43200 yapt:36000
"""
_BY_ZONE: Final = """
art:America/Argentina/Buenos_Aires arst:America/Argentina/Buenos_Aires clt:America/Santiago
gyt:America/Guyana pyt:America/Asuncion vet:America/Caracas davt:Antarctica/Davis mawt:Antarctica/Mawson
amst:Asia/Yerevan anast:Asia/Anadyr anat:Asia/Anadyr azst:Asia/Baku azt:Asia/Baku gest:Asia/Tbilisi
get:Asia/Tbilisi irkst:Asia/Irkutsk irkt:Asia/Irkutsk kgt:Asia/Bishkek krast:Asia/Krasnoyarsk
krat:Asia/Krasnoyarsk lkt:Asia/Colombo magst:Asia/Magadan magt:Asia/Magadan novst:Asia/Novosibirsk
novt:Asia/Novosibirsk omsst:Asia/Omsk omst:Asia/Omsk petst:Asia/Kamchatka pett:Asia/Kamchatka
sgt:Asia/Singapore tmt:Asia/Ashgabat ulat:Asia/Ulaanbaatar vlast:Asia/Vladivostok vlat:Asia/Vladivostok
yakst:Asia/Yakutsk yakt:Asia/Yakutsk yekt:Asia/Yekaterinburg fkst:Atlantic/Stanley fkt:Atlantic/Stanley
lhdt:Australia/Lord_Howe msk:Europe/Moscow volt:Europe/Volgograd iot:Indian/Chagos ckt:Pacific/Rarotonga
easst:Pacific/Easter east:Pacific/Easter kost:Pacific/Kosrae lint:Pacific/Kiritimati nut:Pacific/Niue
tkt:Pacific/Fakaofo
"""


def _load() -> dict[str, tuple[int, bool] | str]:
    table: dict[str, tuple[int, bool] | str] = {}
    for entry in _FIXED.split():
        word, _, offset = entry.partition(":")
        table[word] = (int(offset.rstrip("D")), offset.endswith("D"))
    for entry in _BY_ZONE.split():
        word, _, name = entry.partition(":")
        table[word] = name
    return table


ABBREVIATIONS: Final = _load()
