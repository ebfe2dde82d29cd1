"""The settings that change what a value reads or prints as.

A frozen value, so that codecs are pure functions and encoders can be cached per settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pgwire.codecs.users.types import STORED, UserTypes

DateStyle: TypeAlias = Literal["ISO", "SQL", "Postgres", "German"]
DateOrder: TypeAlias = Literal["MDY", "DMY", "YMD"]
IntervalStyle: TypeAlias = Literal["postgres", "postgres_verbose", "sql_standard", "iso_8601"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecSettings:
    """Session settings as codecs need them.

    ``time_zone`` is the TimeZone setting's text. ``now_us`` is the transaction's time (microseconds since
    1970, UTC), used only by input of 'now', 'today', 'tomorrow' and 'yesterday' and by zone abbreviations in
    times without a date; it takes no part in equality, since no output depends on it.

    ``encoding`` is the client's, by its canonical name (SQL_ASCII counts as UTF8): what texts look like in binary forms
    and in rows that are sent. Text forms are ``str`` and know none.

    ``array_nulls``: NULL without quotes in an array's text is no text. ``null_equals``: ``x = NULL`` in a
    statement means ``x IS NULL``.

    ``types``: what values of users' types are called, as one state of the catalog has it; None: the latest.

    ``demand``: raises what a domain, or an array of domains, has against a value (None: NULL) of an attribute
    of a composite type, by the domain's oid; None: nobody can tell here, and such types are not read. It
    takes no part in equality, since no output depends on it.
    """

    date_style: DateStyle = "ISO"
    date_order: DateOrder = "MDY"
    interval_style: IntervalStyle = "postgres"
    time_zone: str = "UTC"
    bytea_output: Literal["hex", "escape"] = "hex"
    extra_float_digits: int = 1
    encoding: str = "UTF8"
    array_nulls: bool = True
    null_equals: bool = False
    types: UserTypes | None = None
    demand: Callable[[int, Any], None] | None = field(default=None, compare=False)
    now_us: int = field(default=0, compare=False)

    @property
    def styles(self) -> tuple[str | int, ...]:
        """What text forms of built-in types depend on."""
        return (
            self.date_style, self.date_order, self.interval_style, self.time_zone, self.bytea_output,
            self.extra_float_digits,
        )  # fmt: skip


DEFAULT = CodecSettings()
STORED_TEXT = CodecSettings(types=STORED)
"""Under which texts are kept that mean the same for ever: whatever the session's settings, and what is renamed."""

_STYLES: dict[str, DateStyle] = {"iso": "ISO", "sql": "SQL", "german": "German"}
_ORDERS: dict[str, DateOrder] = {
    "ymd": "YMD", "dmy": "DMY", "euro": "DMY", "mdy": "MDY", "us": "MDY", "noneuro": "MDY",
}  # fmt: skip
