"""The settings that change what a value reads or prints as.

A frozen value, so that codecs are pure functions and encoders can be cached per settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pgwire.codecs.errors import DataError

DateStyle: TypeAlias = Literal["ISO", "SQL", "Postgres", "German"]
DateOrder: TypeAlias = Literal["MDY", "DMY", "YMD"]
IntervalStyle: TypeAlias = Literal["postgres", "postgres_verbose", "sql_standard", "iso_8601"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecSettings:
    """Session settings as codecs need them.

    ``time_zone`` is the TimeZone setting's text. ``now_us`` is the transaction's time (microseconds since
    1970, UTC), used only by input of 'now', 'today', 'tomorrow' and 'yesterday' and by zone abbreviations in
    times without a date; it takes no part in equality, since no output depends on it.
    """

    date_style: DateStyle = "ISO"
    date_order: DateOrder = "MDY"
    interval_style: IntervalStyle = "postgres"
    time_zone: str = "UTC"
    bytea_output: Literal["hex", "escape"] = "hex"
    extra_float_digits: int = 1
    now_us: int = field(default=0, compare=False)


DEFAULT = CodecSettings()

_STYLES: dict[str, DateStyle] = {"iso": "ISO", "sql": "SQL", "german": "German"}
_ORDERS: dict[str, DateOrder] = {
    "ymd": "YMD", "dmy": "DMY", "euro": "DMY", "mdy": "MDY", "us": "MDY", "noneuro": "MDY",
}  # fmt: skip


def parse_date_style(text: str, current: tuple[DateStyle, DateOrder]) -> tuple[DateStyle, DateOrder]:
    """Read a DateStyle setting such as ``ISO, DMY``; what it does not name stays ``current``.

    Raises:
        DataError: 22023 for unknown words and contradictions.
    """
    style, order = current
    have_style = have_order = False

    def bad(detail: str) -> DataError:
        return DataError("22023", f'invalid value for parameter "DateStyle": "{text}"', detail=detail)

    for raw in text.split(","):
        word = raw.strip().strip('"').lower()
        if not word and len(text.split(",")) > 1:
            raise bad("List syntax is invalid.")
        if word in _STYLES or word.startswith("postgres"):
            chosen: DateStyle = _STYLES.get(word, "Postgres")
            if have_style and chosen != style:
                raise bad('Conflicting "datestyle" specifications.')
            style, have_style = chosen, True
            if chosen == "German" and not have_order:
                order = "DMY"
        elif word in _ORDERS or word.startswith(("euro", "noneuro")):
            chosen_order = _ORDERS.get(word, "DMY" if word.startswith("euro") else "MDY")
            if have_order and chosen_order != order:
                raise bad('Conflicting "datestyle" specifications.')
            order, have_order = chosen_order, True
        elif word == "default":
            if not have_style:
                style = "ISO"
            if not have_order:
                order = "MDY"
        else:
            raise bad(f'Unrecognized key word: "{word}".')
    return style, order


def show_date_style(style: DateStyle, order: DateOrder) -> str:
    """Return the setting's canonical text, e.g. ``ISO, MDY``."""
    return f"{style}, {order}"
