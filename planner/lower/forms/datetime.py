"""Engine forms of date, time and interval arithmetic, EXTRACT and date_trunc.

Everything here is independent of the session's time zone; what depends on it has no engine form. Results for the
infinities raise 22008 where an engine would answer NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pgwire.codecs.domain import DATE_INFINITY, TIMESTAMP_INFINITY
from pgwire.codecs.time.calendar import END_DATE_DAYS, MIN_DAYS, MIN_TIMESTAMP_US
from planner.base.errors import not_supported
from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import NOT_CONSTANT, Fixed, Val, kind_of
from planner.types import SqlType

INFINITE = ("0A000", "a field of an infinite date or timestamp in this executor is not supported")
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


def _finite(
    d: Dialect, value: Val, body: Callable[[Node], Node], infinite: Callable[[Node, int], Node]
) -> Node:
    """Return ``body`` over a date or timestamp, and ``infinite`` over infinities where the engine has none."""
    if isinstance(value.constant, int) and abs(value.constant) not in (DATE_INFINITY, TIMESTAMP_INFINITY):
        return body(value.node)
    return d.unless_infinite(value.node, kind_of(value.type.oid), body, infinite)


def to_timestamp(d: Dialect, value: Val) -> Node:
    """Return a date or timestamp as a timestamp; a date's infinities become the timestamp's."""
    if kind_of(value.type.oid) == "timestamp":
        return value.node
    return _finite(
        d,
        value,
        lambda x: d.as_kind(x, "timestamp"),
        lambda x, sign: d.literal(sign * TIMESTAMP_INFINITY, "timestamp"),
    )


def _to_date(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return _finite(
        d, args[0], lambda x: d.as_kind(x, "date"), lambda x, sign: d.literal(sign * DATE_INFINITY, "date")
    )


def _plus_interval(subtract: bool) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        if d.name == "spark":
            moved = Val(to_timestamp(d, args[0]), result, None, args[0].constant)
            if kind_of(args[0].type.oid) == "date":
                moved = replace(moved, constant=NOT_CONSTANT)
            return _finite(d, moved, lambda x: _moved(d, x, args[1], result, subtract), lambda x, sign: x)
        moment, interval = args
        if isinstance(interval.constant, tuple) and subtract:
            months, days, us = interval.constant
            interval = Val(interval.node, interval.type, None, (-months, -days, -us))
        minus = subtract and not isinstance(interval.constant, tuple)
        kind = kind_of(result.oid)
        sum_ = b.op("-" if minus else "+", d.as_kind(moment.node, kind), d.interval_value(interval))
        made = d.as_kind(sum_, kind)
        if moment.is_constant:  # stays a constant, which skips row groups
            return made

        def body(x: Node) -> Node:
            early = b.and_(b.op("<", x, d.literal(MIN_TIMESTAMP_US, kind)), b.fn("isfinite", x))
            return b.case([(early, d.error("22008", "timestamp out of range", x))], x)

        return d.let([made], body)

    return form


def _moved(d: Dialect, moment: Node, interval: Val, result: SqlType, subtract: bool) -> Node:
    """Return a finite timestamp moved by an interval; 22008 where that is none."""
    if subtract and isinstance(interval.constant, tuple):
        months, days, us = interval.constant
        interval, subtract = Val(interval.node, interval.type, None, (-months, -days, -us)), False
    kind = kind_of(result.oid)
    made = d.as_kind(
        b.fn("try_subtract" if subtract else "try_add", moment, d.interval_value(interval)), kind
    )
    failure = d.error("22008", "timestamp out of range")
    unknown = b.or_(b.is_null(moment), b.is_null(interval.node))
    early = d.literal(MIN_TIMESTAMP_US, kind)

    def body(x: Node) -> Node:
        arms = [(unknown, b.null()), (b.or_(b.is_null(x), b.op("<", x, early)), failure)]
        return b.case(arms, x)

    return d.let([made], body)


def _interval_plus(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return _plus_interval(False)(d, [args[1], args[0]], result)


def _date_plus_days(sign: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        if d.name == "duckdb":
            return d.add_days(args[0].node, args[1].node if sign == "+" else b.neg(args[1].node))

        def body(x: Node, n: Node) -> Node:
            first = Val(x, args[0].type, None, args[0].constant)
            return _finite(d, first, lambda x: _moved_days(d, x, sign, n), lambda x, _: x)

        return d.let([a.node for a in args], body)

    return form


def _moved_days(d: Dialect, date: Node, sign: str, days: Node) -> Node:
    """Return a finite date some days later or earlier; 22008 where that is no date (date_add would wrap)."""

    def body(total: Node) -> Node:
        low, high = (d.literal(bound, "int64") for bound in (MIN_DAYS, END_DATE_DAYS - 1))
        outside = b.or_(b.op("<", total, low), b.op(">", total, high))
        made = b.fn("date_from_unix_date", b.cast(total, d.types["int32"]))
        return b.case([(outside, d.error("22008", "date out of range"))], made)

    whole = (b.cast(n, d.types["int64"]) for n in (b.fn("unix_date", date), days))
    return d.let([b.op(sign, *whole)], body)


def _date_difference(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    if d.name != "duckdb":
        return _spark_difference(d, args, "dates", lambda x, y: d.as_kind(d.days_between(y, x), "int32"))

    def body(x: Node, y: Node) -> Node:
        infinite = b.or_(b.fn("isinf", x), b.fn("isinf", y))
        failure = d.error("22008", "cannot subtract infinite dates", x)
        return b.case([(infinite, failure)], d.as_kind(d.days_between(y, x), "int32"))

    return d.let([a.node for a in args], body)


def _spark_difference(d: Dialect, args: Sequence[Val], what: str, body: Callable[[Node, Node], Node]) -> Node:
    def failure(x: Node, sign: int) -> Node:
        return d.error("22008", f"cannot subtract infinite {what}")

    def outer(x: Node, y: Node) -> Node:
        first, second = (Val(n, a.type, None, a.constant) for n, a in zip((x, y), args, strict=True))
        return _finite(d, first, lambda x: _finite(d, second, lambda y: body(x, y), failure), failure)

    return d.let([a.node for a in args], outer)


def _timestamp_difference(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """Days and the rest, as timestamp_mi justifies hours."""

    def body(us: Node) -> Node:
        day = b.cast(b.string("86400000000"), d.types["int64"])
        days = b.cast(b.op("//", us, day), d.types["int32"])
        made = d.struct(d.types["interval"], ("m", b.integer(0)), ("d", days), ("u", b.op("%", us, day)))
        return b.case([(b.is_null(us, True), made)], b.null())

    def difference(x: Node, y: Node) -> Node:
        return b.op("-", d.epoch_us(x), d.epoch_us(y))

    if d.name == "spark":
        return d.let([_spark_difference(d, args, "timestamps", difference)], body)

    def outer(x: Node, y: Node) -> Node:
        infinite = b.or_(b.fn("isinf", x), b.fn("isinf", y))
        failure = d.error("22008", "cannot subtract infinite timestamps", x)
        return b.case([(infinite, failure)], difference(x, y))

    return d.let([d.let([a.node for a in args], outer)], body)


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

    def refused(x: Node, sign: int) -> Node:
        return d.error(*INFINITE)

    def epoch(body: Callable[[Node], Node]) -> Node:
        if d.name != "duckdb":
            return _finite(d, value, body, refused)
        # NULL to DuckDB, an infinite number to PostgreSQL, which no DECIMAL holds
        return d.repeat(
            [value.node],
            lambda x: b.case([(b.not_(b.fn("isfinite", x)), d.error(*INFINITE, x))], body(x)),
        )

    if kind in ("date", "timestamp") and name in _DATE_FIELDS:
        return d.date_part(name, value.node, kind, INFINITE), 0
    if kind == "date" and name == "epoch":
        return epoch(lambda x: _seconds(d, x)), 0
    if kind in ("timestamp", "time") and name in (*_TIME_FIELDS, *_SCALES):
        if kind == "timestamp" and name == "epoch":
            return epoch(d.epoch_us), 6
        scale = 0 if name in _TIME_FIELDS else _SCALES[name]
        if kind == "time":
            return _time_part(d, d.time_us(value.node, kind), name), scale
        field = _finite(d, value, lambda x: _time_part(d, d.time_us(x, kind), name), lambda x, sign: b.null())
        return field, scale
    if kind == "timestamptz" and name == "epoch":
        return epoch(d.epoch_us), 6
    if kind == "interval" and name == "epoch" and d.name == "duckdb":
        return d.let([value.node], lambda x: _interval_us(d, x)), 6
    if kind == "interval":
        return _interval_part(d, value.node, name)
    raise not_supported(f'extract("{name}") from {kind} in this executor')


def _seconds(d: Dialect, date: Node) -> Node:
    return b.op("*", d.as_kind(d.days_between(d.literal(0, "date"), date), "int64"), b.integer(86400))


def _time_part(d: Dialect, us: Node, name: str) -> Node:
    minute = b.cast(b.integer(60_000_000), d.types["int64"])
    if name == "hour":
        return b.op("//", us, b.cast(b.string("3600000000"), d.types["int64"]))
    if name == "minute":
        return b.op("%", b.op("//", us, minute), b.integer(60))
    return us if name == "epoch" else b.op("%", us, minute)


def _interval_us(d: Dialect, x: Node) -> Node:
    """Return an interval's microseconds, with years of 365.25 days and months of 30; 0A000 where a bigint may
    not hold them.
    """
    months, days, us = (b.cast(b.field(x, p), d.types["int64"]) for p in "mdu")

    def is_far(part: Node, most: int) -> Node:
        return b.or_(b.op(">", part, b.integer(most)), b.op("<", part, b.neg(b.integer(most))))

    far = b.or_(is_far(months, 1_200_000), is_far(days, 36_500_000), is_far(us, 2 * 10**18))
    years, rest = b.op("//", months, b.integer(12)), b.op("%", months, b.integer(12))
    seconds = b.op(
        "+",
        b.op("*", years, b.integer(31_557_600)),
        b.op("+", b.op("*", rest, b.integer(2_592_000)), b.op("*", days, b.integer(86_400))),
    )
    total = b.op("+", b.op("*", seconds, b.integer(1_000_000)), us)
    return b.case(
        [(far, d.error("0A000", "an interval of so many years in this executor is not supported", x))], total
    )


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
            return _time_part(d, us, name), _SCALES.get(name, 0)
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
    if name == "epoch" and kind_of(args[1].type.oid) == "interval":
        raise not_supported('date_part("epoch") from interval in this executor')  # rounded at every step
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

    def body(x: Node) -> Node:
        return d.as_kind(b.fn("date_trunc", b.string(name.removesuffix("s")), x), "timestamp")

    return _finite(d, args[1], body, lambda x, sign: x)


def _to_timestamp(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return to_timestamp(d, args[0])


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
_both("timestamp(date)", _to_timestamp)
_both("date(timestamp)", _to_date)
_both("make_date(int4,int4,int4)", _make_date)
