"""Engine forms of date, time and interval arithmetic, EXTRACT and date_trunc.

Everything here is independent of the session's time zone; what depends on it has no engine form. Results for the
infinities raise 22008 where an engine would answer NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.builtins.registry import REGISTRY, SqlForm
from planner.errors import not_supported
from planner.lower import build as b
from planner.lower import numeric
from planner.lower.build import Node
from planner.lower.dialect import Dialect
from planner.lower.value import Fixed, Val, kind_of
from planner.types import SqlType

INFINITE = ("22008", "an infinite date or timestamp has no fields")
_DATE_FIELDS = ("year", "quarter", "month", "week", "day", "dow", "doy", "isodow", "isoyear", "decade", "century",
                "millennium")  # fmt: skip
_TIME_FIELDS = ("hour", "minute")
_SCALES = {"second": 6, "milliseconds": 3, "microseconds": 0, "epoch": 6}
_ALIASES = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "sec": "second", "min": "minute", "mon": "month", "y": "year", "d": "day", "h": "hour", "m": "minute", "s": "second",
    "millisecond": "milliseconds", "ms": "milliseconds", "msec": "milliseconds", "microsecond": "microseconds",
    "us": "microseconds", "qtr": "quarter", "weeks": "week", "w": "week", "mons": "month", "yr": "year", "yrs": "year",
}  # fmt: skip


def _plus_interval(subtract: bool) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        moment, interval = args
        if isinstance(interval.constant, tuple) and subtract:
            months, days, us = interval.constant
            interval = Val(interval.node, interval.type, None, (-months, -days, -us))
            return d.as_kind(
                b.op("+", d.as_kind(moment.node, kind_of(result.oid)), d.interval_value(interval)),
                kind_of(result.oid),
            )
        made = b.op(
            "-" if subtract else "+", d.as_kind(moment.node, kind_of(result.oid)), d.interval_value(interval)
        )
        return d.as_kind(made, kind_of(result.oid))

    return form


def _interval_plus(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return _plus_interval(False)(d, [args[1], args[0]], result)


def _date_plus_days(sign: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        return d.add_days(args[0].node, args[1].node if sign == "+" else b.neg(args[1].node))

    return form


def _date_difference(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    if d.name != "duckdb":
        return d.as_kind(d.days_between(args[1].node, args[0].node), "int32")

    def body(x: Node, y: Node) -> Node:
        infinite = b.or_(b.fn("isinf", x), b.fn("isinf", y))
        failure = d.error("22008", "cannot subtract infinite dates", x)
        return b.case([(infinite, failure)], d.as_kind(d.days_between(y, x), "int32"))

    return d.let([a.node for a in args], body)


def _timestamp_difference(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """Days and the rest, as timestamp_mi justifies hours."""

    def body(us: Node) -> Node:
        day = b.cast(b.string("86400000000"), d.types["int64"])
        days = b.cast(b.op("//", us, day), d.types["int32"])
        made = d.struct(d.types["interval"], ("m", b.integer(0)), ("d", days), ("u", b.op("%", us, day)))
        return b.case([(b.is_null(us, True), made)], b.null())

    return d.let([b.op("-", d.epoch_us(args[0].node), d.epoch_us(args[1].node))], body)


def _interval_arithmetic(symbol: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        def body(x: Node, y: Node) -> Node:
            parts = [(p, b.op(symbol, b.field(x, p), b.field(y, p))) for p in "mdu"]
            made = d.struct(d.types["interval"], *parts)
            return b.case([(b.or_(b.is_null(x), b.is_null(y)), b.null())], made)

        return d.let([a.node for a in args], body)

    return form


def _interval_negate(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    def body(x: Node) -> Node:
        made = d.struct(d.types["interval"], *((p, b.neg(b.field(x, p))) for p in "mdu"))
        return b.case([(b.is_null(x), b.null())], made)

    return d.let([args[0].node], body)


def field_name(value: Val, what: str) -> str:
    """Return the canonical name of a constant field argument; 0A000 if it varies."""
    if not isinstance(value.constant, str):
        raise not_supported(f"{what} of a varying field in this executor")
    word = value.constant.lower()
    return _ALIASES.get(word, word)


def _part(d: Dialect, value: Val, name: str) -> tuple[Node, int]:
    """Return a field as an integer scaled by 10**scale, and the scale."""
    kind = kind_of(value.type.oid)
    if kind in ("date", "timestamp") and name in _DATE_FIELDS:
        return d.date_part(name, value.node, INFINITE), 0
    if kind == "date" and name == "epoch":
        seconds = b.op(
            "*", d.as_kind(d.days_between(d.literal(0, "date"), value.node), "int64"), b.integer(86400)
        )
        return seconds, 0
    if kind in ("timestamp", "time") and name in (*_TIME_FIELDS, *_SCALES):
        if kind == "timestamp" and name == "epoch":
            return d.epoch_us(value.node), 6
        return _time_part(d, d.time_us(value.node, kind), name)
    if kind == "timestamptz" and name == "epoch":
        return d.epoch_us(value.node), 6
    if kind == "interval":
        return _interval_part(d, value.node, name)
    raise not_supported(f'extract("{name}") from {kind} in this executor')


def _time_part(d: Dialect, us: Node, name: str) -> tuple[Node, int]:
    minute = b.cast(b.integer(60_000_000), d.types["int64"])
    if name == "hour":
        return b.op("//", us, b.cast(b.string("3600000000"), d.types["int64"])), 0
    if name == "minute":
        return b.op("%", b.op("//", us, minute), b.integer(60)), 0
    if name == "epoch":
        return us, 6
    return b.op("%", us, minute), _SCALES[name]


def _interval_part(d: Dialect, node: Node, name: str) -> tuple[Node, int]:
    months, days, us = (b.field(node, p) for p in "mdu")
    match name:
        case "year":
            return b.op("//", months, b.integer(12)), 0
        case "month":
            return b.op("%", months, b.integer(12)), 0
        case "quarter":
            return b.op("+", b.op("//", b.op("%", months, b.integer(12)), b.integer(3)), b.integer(1)), 0
        case "day":
            return days, 0
        case "hour" | "minute" | "second" | "milliseconds" | "microseconds":
            return _time_part(d, us, name)
    raise not_supported(f'extract("{name}") from interval in this executor')


def _extract(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    name = field_name(args[0], "extract")
    node, scale = _part(d, args[1], name)
    whole = b.cast(b.cast(node, d.types["int64"]), d.decimal(19, 0))
    if scale == 0:
        return numeric.numeric(whole, Fixed(19, 0))
    unit = b.cast(b.string("0." + "0" * (scale - 1) + "1"), d.decimal(scale, scale))
    num = Fixed(19 + scale, scale)
    return numeric.numeric(b.cast(b.op("*", whole, unit), d.decimal(num.precision, scale)), num)


def _date_part(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    name = field_name(args[0], "date_part")
    node, scale = _part(d, args[1], name)
    value = b.cast(node, d.types["float64"])
    return value if scale == 0 else b.op("/", value, d.literal(float(10**scale), "float64"))


def _truncate(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    name = field_name(args[0], "date_trunc")
    if name not in (
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "milliseconds",
        "microseconds",
    ):
        raise not_supported(f'date_trunc("{name}") in this executor')
    return d.as_kind(b.fn("date_trunc", b.string(name.removesuffix("s")), args[1].node), "timestamp")


def _convert(kind: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        return d.as_kind(args[0].node, kind)

    return form


def _make_date(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    year = args[0].node
    made = b.fn("make_date", *(a.node for a in args))
    return b.case([(b.op("<=", year, b.integer(0)), d.error("22008", "date field value out of range"))], made)


def _both(signature: str, form: SqlForm) -> None:
    REGISTRY.sql(signature, duckdb=form, spark=form)


_both("date_pl_interval(date,interval)", _plus_interval(False))
_both("date_mi_interval(date,interval)", _plus_interval(True))
_both("timestamp_pl_interval(timestamp,interval)", _plus_interval(False))
_both("timestamp_mi_interval(timestamp,interval)", _plus_interval(True))
_both("interval_pl_date(interval,date)", _interval_plus)
_both("interval_pl_timestamp(interval,timestamp)", _interval_plus)
_both("date_pli(date,int4)", _date_plus_days("+"))
_both("date_mii(date,int4)", _date_plus_days("-"))
_both("date_mi(date,date)", _date_difference)
_both("timestamp_mi(timestamp,timestamp)", _timestamp_difference)
_both("interval_pl(interval,interval)", _interval_arithmetic("+"))
_both("interval_mi(interval,interval)", _interval_arithmetic("-"))
_both("interval_um(interval)", _interval_negate)
for _type in ("date", "time", "timestamp", "timestamptz", "interval"):
    _both(f"extract(text,{_type})", _extract)
    if _type != "date":
        _both(f"date_part(text,{_type})", _date_part)
_both("date_part(text,date)", _date_part)
_both("date_trunc(text,timestamp)", _truncate)
_both("timestamp(date)", _convert("timestamp"))
_both("date(timestamp)", _convert("date"))
_both("make_date(int4,int4,int4)", _make_date)
