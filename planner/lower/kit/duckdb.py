"""DuckDB's SQL: types, literals, parameters and the few functions it spells its own way.

Parameters are named placeholders (``$p1``); a numeric one is lowered for the precision and scale of the value at
hand, so one statement may have a few SQL texts. Structured values arrive in parts (``$p1_m`` months ...).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from pgwire.bounded import BoundedArray
from planner.base.errors import not_supported
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.correlations import DUCKDB
from planner.lower.kit.dialect import ERROR_END, ERROR_MARK, JSON_ZEROS, Dialect
from planner.lower.kit.numeric import unscaled_integer
from planner.lower.kit.value import (
    FLOATING,
    INFINITY_SCALE,
    MAX_PRECISION,
    MINUS_INFINITY_SCALE,
    NAN_SCALE,
    Fixed,
    Num,
    Val,
    declared_padding,
    element_of,
    kind_of,
)
from planner.types import DATE_INFINITY, TIMESTAMP_INFINITY, SqlType

_EPOCH = date(1970, 1, 1)
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Slot:
    """A placeholder to fill: ``convert`` takes the parameter's value (not None) to what is bound."""

    name: str
    number: int
    convert: Callable[[Any], object]


def iso_date(days: int) -> str | None:
    """Return a date as ISO text where the proleptic calendar of years 1 to 9999 has it."""
    try:
        return (_EPOCH + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def iso_timestamp(us: int) -> str | None:
    """Return a timestamp as ISO text, for years 1 to 9999."""
    day = iso_date(us // _DAY_US)
    if day is None:
        return None
    rest = us % _DAY_US
    return f"{day} {iso_time(rest)}"


def iso_time(us: int) -> str:
    """Return a time of day as ISO text."""
    seconds, micros = divmod(us, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}" if micros else text


def numeric_shape(value: object) -> Fixed | None:
    """Return the form in which a numeric parameter is passed; None: in parts (NULL, NaN, infinities).

    Precisions are rounded up to a few steps, so that few SQL texts arise.

    Raises:
        SqlError: 0A000 past 38 digits.
    """
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    scale = max(-int(value.as_tuple().exponent), 0)
    digits = max(value.adjusted() + 1, 0) + scale
    for precision in (9, 18, MAX_PRECISION):
        if digits <= precision:
            return Fixed(precision, scale)
    raise not_supported("a numeric parameter of more than 38 digits in this executor")


class DuckDialect(Dialect):
    """DuckDB 2.0."""

    name = "duckdb"
    correlations = DUCKDB
    calls_python = True
    series_in_order = True
    types = {  # noqa: RUF012 - a constant table
        "bool": "BOOLEAN",
        "int16": "SMALLINT",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "float32": "REAL",
        "float64": "DOUBLE",
        "numeric": "STRUCT(u DECIMAL(38, 0), s INTEGER)",
        "numeric_key": "STRUCT(k DECIMAL(38, 0), t VARCHAR)",
        "text": "VARCHAR",
        "bytes": "BLOB",
        "tailed": "BLOB",
        "uuid": "BLOB",
        "date": "DATE",
        "time": "TIME",
        "timetz": "STRUCT(t BIGINT, z INTEGER)",
        "timestamp": "TIMESTAMP",
        "timestamptz": "TIMESTAMPTZ",
        "interval": "STRUCT(m INTEGER, d INTEGER, u BIGINT)",
    }

    def __init__(self, shapes: Mapping[int, Fixed] | None = None) -> None:
        """``shapes``: the forms of the numeric parameters whose values are known."""
        super().__init__()
        self._shapes = shapes or {}
        self.slots: dict[str, Slot] = {}

    def list_of(self, element: str) -> str:
        """Return the array type."""
        return f"{element}[]"

    def error(self, sqlstate: str, message: str, witness: Node | None = None) -> Node:
        """Fail by a cast of a text that no BOOLEAN reads; a constant one would be evaluated when planning."""
        text = b.string(f"{ERROR_MARK}{sqlstate}:{message}")
        if witness is None or not b.has_column(witness):
            return b.fn("error", text)
        return self._cast_error(b.fn("concat", text, b.string(ERROR_END), b.cast(witness, "VARCHAR")))

    def _cast_error(self, text: Node) -> Node:
        return b.case([(b.cast(text, "BOOLEAN"), b.null())])

    def one(self, node: Node) -> Node:
        """Return a list of one."""
        return b.fn("list_value", node)

    def let(self, nodes: Sequence[Node], body: Callable[..., Node]) -> Node:
        """Bind several in one struct: a node inside the lambda of the one before might be an aggregate.

        DuckDB fails where the arguments, FILTER or ORDER BY of an aggregate in a lambda hold another lambda,
        and takes no sub-select there.
        """
        parts = [(f"v{i}", node) for i, node in enumerate(nodes) if not b.is_simple(node)]
        if len(parts) < 2:
            return super().let(nodes, body)
        variable = self.fresh("x")
        values = [
            node if b.is_simple(node) else b.field(b.bare(variable), f"v{i}") for i, node in enumerate(nodes)
        ]
        items = self.mapped(self.one(b.record(parts)), variable, body(*values))
        return self.list_item(items, b.integer(1))

    def mapped(self, items: Node, variable: str, body: Node) -> Node:
        """Return list_transform with a lambda."""
        return b.fn("list_transform", items, b.lambda_(variable, body))

    def struct_type(self, fields: Sequence[tuple[str, str]]) -> str:
        """Return ``STRUCT(a T, b U)``."""
        return f"STRUCT({', '.join(f'{name} {type_}' for name, type_ in fields)})"

    def struct(self, engine_type: str, *parts: tuple[str, Node]) -> Node:
        """Return ``CAST(row(...) AS STRUCT(...))``."""
        return b.cast(b.fn("row", *(node for _, node in parts)), engine_type)

    def integer_divide(self, left: Node, right: Node) -> Node:
        """Divide as HUGEINT."""
        quotient = b.op("//", b.cast(left, "HUGEINT"), b.cast(right, "HUGEINT"))
        return b.cast(quotient, self.decimal(38, 0))

    def decimal_op(self, symbol: str, left: Val, right: Val, num: Fixed) -> Node:
        """Widen first: DuckDB keeps the result of two operands of up to 18 digits at 18 digits."""
        x = left.node
        if num.precision > 18 and left.fixed.precision <= 18 and right.fixed.precision <= 18:
            x = b.cast(x, self.decimal(19, left.fixed.scale))
        return b.op(symbol, x, right.node)

    def decimal_to_double(self, node: Node, num: Fixed) -> Node:
        """Go through text where the unscaled value may have more than 15 digits: one rounding only."""
        if num.precision <= 15 and num.scale <= 22:
            return b.cast(node, "DOUBLE")
        return b.cast(b.cast(node, "VARCHAR"), "DOUBLE")

    def list_item(self, items: Node, index: Node) -> Node:
        """Return an item."""
        return b.fn("list_extract", items, index)

    def to_text(self, node: Node) -> Node:
        """Cast."""
        return b.cast(node, "VARCHAR")

    def length(self, node: Node) -> Node:
        """Count code points."""
        return b.cast(b.fn("length", node), "INTEGER")

    def is_infinite(self, node: Node) -> Node:
        """Test for an infinity."""
        return b.fn("isinf", node)

    def is_nan(self, node: Node) -> Node:
        """Test for NaN."""
        return b.fn("isnan", node)

    def by_key(self, value: Node, key: Node, greatest: bool) -> tuple[str, tuple[Node, ...]]:
        """arg_max and arg_min."""
        return ("arg_max" if greatest else "arg_min"), (value, key)

    @property
    def explode(self) -> str:
        """Unnest."""
        return "unnest"

    def series(self, args: Sequence[Val], result: SqlType) -> Node:
        """generate_series, whose step must not be 0."""
        made = b.fn("generate_series", *self._bounds_of_series(args))
        return b.cast(made, self.list_of(self.engine_type(result)))

    def series_rows(self, args: Sequence[Val], label: str, column: str, result: SqlType) -> Node | None:
        """Return the function of FROM: an array takes memory that no limit counts, and its unnest looks for
        no interrupt.
        """
        bounds = self._bounds_of_series(args)
        if any(b.has_column(bound) for bound in bounds):
            return None
        value = b.cast(b.col(label, "generate_series"), self.engine_type(result))
        return b.select([b.alias(value, column)], source=b.rows_of("generate_series", bounds, label))

    def _bounds_of_series(self, args: Sequence[Val]) -> list[Node]:
        items = [b.cast(a.node, "BIGINT") for a in args]
        if len(items) == 3:
            items[2] = b.case(
                [(b.op("=", items[2], b.integer(0)), self.error("22023", "step size cannot equal zero"))],
                items[2],
            )
        return items

    def interval_value(self, value: Val) -> Node:
        """Add up months, days and microseconds."""
        if value.is_constant and isinstance(value.constant, tuple):
            months, days, us = value.constant
            parts = [
                b.fn(maker, self.literal(amount, kind))
                for maker, amount, kind in (
                    ("to_months", months, "int32"), ("to_days", days, "int32"), ("to_microseconds", us, "int64"),
                )
                if amount
            ] or [b.fn("to_days", b.integer(0))]  # fmt: skip
            total = parts[0]
            for part in parts[1:]:
                total = b.op("+", total, part)
            return total
        return self.repeat([value.node], self._interval_of)

    def _interval_of(self, x: Node) -> Node:
        days = b.op("+", b.fn("to_months", b.field(x, "m")), b.fn("to_days", b.field(x, "d")))
        return b.op("+", days, b.fn("to_microseconds", b.field(x, "u")))

    def frame_interval(self, value: Val, ordered: Val) -> Node:
        """Use the interval as it is."""
        return self.interval_value(value)

    def try_cast(self, node: Node, engine_type: str) -> Node:
        """TRY_CAST."""
        return b.try_cast(node, engine_type)

    def matches(self, node: Node, pattern: str) -> Node:
        """regexp_full_match (RE2)."""
        return b.fn("regexp_full_match", node, b.string(pattern))

    def contains_match(self, node: Node, pattern: str) -> Node:
        """regexp_matches with the option s."""
        return b.fn("regexp_matches", node, b.string(pattern), b.string("s"))

    def same_document(self, node: Node) -> Node:
        """Search the text with RE2, which a long string costs no stack."""

        def shortened(x: Node) -> Node:
            made = b.fn("regexp_replace", x, b.string(JSON_ZEROS), b.string(r"\1\2"), b.string("g"))
            return b.case([(b.fn("contains", x, b.string(".")), made)], x)

        return self.repeat([node], shortened)

    def failing(self, sqlstate: str, message: Node) -> Node:
        """error()."""
        text = b.fn("concat", b.string(f"{ERROR_MARK}{sqlstate}:"), message, b.string(ERROR_END))
        return self._cast_error(text) if b.has_column(message) else b.fn("error", text)

    def add_days(self, node: Node, days: Node) -> Node:
        """Date plus integer."""
        return b.op("+", node, b.cast(days, "INTEGER"))

    def days_between(self, start: Node, stop: Node) -> Node:
        """Date minus date."""
        return b.op("-", stop, start)

    def epoch_us(self, node: Node) -> Node:
        """Ask for the microseconds."""
        return b.fn("epoch_us", node)

    def time_us(self, node: Node, kind: str) -> Node:
        """Through the time of day; NULL for the infinities."""
        if kind == "time":
            return b.fn("epoch_us", node)
        return self.repeat(
            [node], lambda x: b.case([(b.fn("isfinite", x), b.fn("epoch_us", b.cast(x, "TIME")))])
        )

    def date_part(self, name: str, node: Node, kind: str, infinite: tuple[str, str]) -> Node:
        """DuckDB counts years with a year 0 and answers NULL for the infinities, as PostgreSQL does for the rest."""
        field = {"dow": "dayofweek", "doy": "dayofyear", "day": "dayofmonth"}.get(name, name)
        if name in ("year", "decade", "century", "millennium", "isoyear"):
            return self.repeat([node], lambda x: self._year_part(name, x, infinite))
        return b.fn(field, node)

    def _year_part(self, name: str, x: Node, infinite: tuple[str, str]) -> Node:
        made = b.fn(name, x)
        missing = b.case([(b.is_null(x, True), self.error(*infinite, x))])
        if name in ("year", "isoyear"):
            made = b.case([(b.op("<=", made, b.integer(0)), b.op("-", made, b.integer(1)))], made)
        elif name == "decade":
            year = b.fn("year", x)
            made = b.case(
                [(b.op(">=", year, b.integer(0)), b.op("//", year, b.integer(10)))],
                b.neg(b.op("//", b.op("-", b.integer(9), year), b.integer(10))),
            )
        else:
            span = b.integer(100 if name == "century" else 1000)
            year = b.fn("year", x)
            made = b.case(
                [
                    (
                        b.op(">", year, b.integer(0)),
                        b.op("//", b.op("+", year, b.op("-", span, b.integer(1))), span),
                    )
                ],
                b.neg(b.op("//", b.op("-", span, year), span)),
            )
        return b.fn("coalesce", made, missing)

    def like(self, node: Node, pattern: Val) -> Node:
        """LIKE has no default escape; without one it is faster, and so it stays where the pattern needs none."""
        if isinstance(pattern.constant, str) and "\\" not in pattern.constant:
            return b.like(node, pattern.node)
        return b.like(node, pattern.node, b.string("\\"))

    def limit(self, node: Node) -> Node:
        """LIMIT takes an expression; NULL is no limit; a negative count is the engine's error."""
        return node

    def bytes_of(self, node: Node, start: Node, count: Node) -> Node:
        """Slice: substring is there for texts only."""
        return b.fn("array_slice", node, start, b.op("-", b.op("+", start, count), b.integer(1)))

    def number_of_hex(self, digits: Node) -> Node:
        """Read it as a literal."""
        return self.try_cast(b.op("||", b.string("0x"), digits), "BIGINT")

    def literal(self, value: object, kind: str) -> Node:
        """Return a typed literal."""
        match kind:
            case "bool":
                return b.boolean(bool(value))
            case "int32" if isinstance(value, int) and abs(value) < 2**31:
                return b.integer(value) if value >= 0 else b.cast(b.integer(value), "INTEGER")
            case "int16" | "int32" | "int64":
                return b.cast(b.string(str(value)), self.types[kind])
            case "float32" | "float64":
                number = float(value)  # type: ignore[arg-type]
                text = repr(number) if math.isfinite(number) else str(number)
                return b.cast(b.string(text), self.types[kind])
            case "text":
                return b.cast(b.string(str(value)), "VARCHAR")
            case "bytes" | "tailed" | "uuid" if isinstance(value, bytes):
                return b.fn("unhex", b.string(value.hex()))
            case "date" if isinstance(value, int):
                day = iso_date(value)
                if day is not None:
                    return b.cast(b.string(day), "DATE")
                if abs(value) == DATE_INFINITY:
                    return b.cast(b.string("infinity" if value > 0 else "-infinity"), "DATE")
                return b.fn("make_date", b.integer(value))
            case "timestamp" | "timestamptz" if isinstance(value, int):
                moment = iso_timestamp(value)
                engine_type = self.types[kind]
                if abs(value) == TIMESTAMP_INFINITY:
                    return b.cast(b.string("infinity" if value > 0 else "-infinity"), engine_type)
                if moment is not None:
                    return b.cast(b.string(moment if kind == "timestamp" else moment + "+00"), engine_type)
                maker = "make_timestamp" if kind == "timestamp" else "make_timestamptz"
                return b.fn(maker, b.cast(b.string(str(value)), "BIGINT"))
            case "time" if isinstance(value, int):
                return b.cast(b.string(iso_time(value)), "TIME")
            case "timetz" if isinstance(value, tuple):
                return self.struct(self.types[kind], ("t", b.integer(value[0])), ("z", b.integer(value[1])))
            case "interval" if isinstance(value, tuple):
                months, days, us = value
                return self.struct(
                    self.types[kind],
                    ("m", b.integer(months)),
                    ("d", b.integer(days)),
                    ("u", self.literal(us, "int64")),
                )
        raise not_supported(f"a constant of kind {kind} in this executor")

    # -- parameters --------------------------------------------------------------------------------

    def _slot(self, number: int, part: str, convert: Callable[[Any], object]) -> Node:
        label = f"p{number}{part}"
        self.slots[label] = Slot(label, number, convert)
        return b.placeholder(label)

    def parameter(self, number: int, type_: SqlType, values: Sequence[object] | None) -> Val:
        """Return ``$number`` as typed placeholders."""
        kind = kind_of(type_.oid)
        num: Num | None = None
        if kind == "numeric":
            shape = self._shapes.get(number)
            if shape is not None:
                num = shape
                text = self._slot(number, "", lambda v: format(v, "f"))
                node = b.cast(b.cast(text, "VARCHAR"), self.decimal(shape.precision, shape.scale))
            else:
                num = FLOATING
                node = self._parts(
                    number, kind, (("u", _unscaled, "DECIMAL(38, 0)"), ("s", _scale, "INTEGER"))
                )
        elif kind == "interval":
            node = self._parts(
                number,
                kind,
                (
                    ("m", lambda v: v[0], "INTEGER"),
                    ("d", lambda v: v[1], "INTEGER"),
                    ("u", lambda v: v[2], "BIGINT"),
                ),
            )
        elif kind == "timetz":
            node = self._parts(
                number, kind, (("t", lambda v: v[0], "BIGINT"), ("z", lambda v: v[1], "INTEGER"))
            )
        elif kind == "date":
            node = b.fn("make_date", b.cast(self._slot(number, "", _same), "INTEGER"))
        elif kind in ("timestamp", "timestamptz"):
            maker = "make_timestamp" if kind == "timestamp" else "make_timestamptz"
            moment = b.cast(self._slot(number, "", _same), "BIGINT")
            infinities = [
                (b.op("=", moment, self.literal(value, "int64")), self.literal(value, kind))
                for value in (TIMESTAMP_INFINITY, -TIMESTAMP_INFINITY)
            ]
            node = b.case(infinities, b.fn(maker, moment))
        elif kind == "time":
            node = b.cast(b.cast(self._slot(number, "", iso_time), "VARCHAR"), "TIME")
        elif kind == "list":
            element = kind_of(element_of(type_.oid))
            if element in ("bool", "int16", "int32", "int64", "float32", "float64", "text"):
                convert: Callable[[Any], object] = _flat_list
                node = b.cast(self._slot(number, "", convert), self.engine_type(type_))
            else:
                raise not_supported("an array parameter of this element type in this executor")
        else:
            node = b.cast(self._slot(number, "", _same), self.types[kind])
        return Val(node, type_, num, padded=declared_padding(type_))

    def _parts(
        self, number: int, kind: str, parts: Sequence[tuple[str, Callable[[Any], object], str]]
    ) -> Node:
        fields = [
            (part, b.cast(self._slot(number, f"_{part}", convert), engine_type))
            for part, convert, engine_type in parts
        ]
        made = self.struct(self.types[kind], *fields)
        return b.case([(b.is_null(fields[0][1], True), made)], b.null())


def _same(value: Any) -> object:
    return value


def _flat_list(value: Any) -> object:
    if any(isinstance(item, tuple) for item in value):
        raise not_supported("an array parameter of several dimensions in this executor")
    if type(value) is BoundedArray:
        raise not_supported("an array parameter with other lower bounds than 1 in this executor")
    return list(value)


def _unscaled(value: Decimal) -> str:
    if not value.is_finite():
        return "0"
    return str(unscaled_integer(value, max(-int(value.as_tuple().exponent), 0)))


def _scale(value: Decimal) -> int:
    if value.is_nan():
        return NAN_SCALE
    if value.is_infinite():
        return INFINITY_SCALE if value > 0 else MINUS_INFINITY_SCALE
    return max(-int(value.as_tuple().exponent), 0)
