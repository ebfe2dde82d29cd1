"""Spark SQL: types, literals and the functions it spells its own way.

The session runs in ANSI mode with time zone UTC and ``spark.sql.decimalOperations.allowPrecisionLoss`` off, so
integers and decimals overflow with an error and no digit is dropped. Parameters are literals: a statement is lowered
for the values at hand. Times are microseconds (Spark's TIME is not on by default), intervals structs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pgwire.codecs.domain import DATE_INFINITY, TIMESTAMP_INFINITY
from planner.base.errors import not_supported
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.constants import constant
from planner.lower.kit.correlations import SPARK
from planner.lower.kit.dialect import ERROR_MARK, JSON_ZEROS, Dialect, Loop, Named, Parts, Step
from planner.lower.kit.duckdb import iso_date, iso_timestamp
from planner.lower.kit.value import Fixed, Val, kind_of
from planner.patterns.pattern import compiled
from planner.types import SqlType

_TEN19 = "1" + "0" * 19
_LONG_SERIES = 10_000  # numbers; fewer are an array in the plan, which needs no task of its own
_SERIES_PARTITION = 500_000  # numbers of a task; rows of a result leave as soon as the first tasks are done


class SparkDialect(Dialect):
    """Spark 4.3."""

    name = "spark"
    correlations = SPARK
    types = {  # noqa: RUF012 - a constant table
        "bool": "BOOLEAN",
        "int16": "SMALLINT",
        "int32": "INT",
        "int64": "BIGINT",
        "float32": "FLOAT",
        "float64": "DOUBLE",
        "numeric": "STRUCT<u: DECIMAL(38, 0), s: INT>",
        "numeric_key": "STRUCT<k: DECIMAL(38, 0), t: STRING>",
        "text": "STRING",
        "bytes": "BINARY",
        "tailed": "BINARY",
        "uuid": "BINARY",
        "date": "DATE",
        "time": "BIGINT",
        "timetz": "STRUCT<t: BIGINT, z: INT>",
        "timestamp": "TIMESTAMP_NTZ",
        "timestamptz": "TIMESTAMP",
        "interval": "STRUCT<m: INT, d: INT, u: BIGINT>",
    }

    def __init__(self, *, notes_integers: bool = False) -> None:
        """Start numbering. ``notes_integers``: keep the operations whose overflow is an integer type's."""
        super().__init__()
        self._integers: list[tuple[Node, str]] | None = [] if notes_integers else None

    def may_overflow(self, node: Node, kind: str) -> Node:
        """Note the operation if so wanted: Spark's own error does not name the type."""
        if self._integers is not None:
            self._integers.append((node, kind))
        return node

    def integers(self) -> list[tuple[str, str]]:
        """Return the text, without parentheses around it, and the kind of each operation that was noted."""
        return [(self.text(b.bared(node)), kind) for node, kind in self._integers or ()]

    def list_of(self, element: str) -> str:
        """Return the array type."""
        return f"ARRAY<{element}>"

    def error(self, sqlstate: str, message: str, witness: Node | None = None) -> Node:
        """Return a failing expression."""
        return b.fn("raise_error", b.string(f"{ERROR_MARK}{sqlstate}:{message}"))

    def same_document(self, node: Node) -> Node:
        """Never try a part of a string again: Java would keep each try on its stack."""
        pattern = JSON_ZEROS.replace("]*", "]*+", 2).replace(")*", ")*+")

        def shortened(x: Node) -> Node:
            made = b.fn("regexp_replace", x, b.string(pattern), b.string("$1$2"))
            return b.case([(b.fn("contains", x, b.string(".")), made)], x)

        return self.repeat([node], shortened)

    def failing(self, sqlstate: str, message: Node) -> Node:
        """Return an expression that fails with a computed message."""
        return b.fn("raise_error", b.fn("concat", b.string(f"{ERROR_MARK}{sqlstate}:"), message))

    def one(self, node: Node) -> Node:
        """Return an array of one."""
        return b.fn("array", node)

    def mapped(self, items: Node, variable: str, body: Node) -> Node:
        """Return transform with a lambda."""
        return b.fn("transform", items, b.lambda_(variable, body))

    def struct_type(self, fields: Sequence[tuple[str, str]]) -> str:
        """Return ``STRUCT<a: T, b: U>``."""
        return f"STRUCT<{', '.join(f'{name}: {type_}' for name, type_ in fields)}>"

    def struct(self, engine_type: str, *parts: tuple[str, Node]) -> Node:
        """Return a typed named_struct."""
        items: list[Node] = []
        # Casts of the fields: one of the whole struct would make another struct of each.
        for (name, node), (_, type_) in zip(parts, _fields(engine_type), strict=True):
            items += [b.string(name), node if b.is_cast_to(node, type_) else b.cast(node, type_)]
        return b.fn("named_struct", *items)

    def record(self, parts: Parts) -> Node:
        """Return a named_struct; a part without a type is a value of the step before, which has one."""
        items: list[Node] = []
        for name, node, type_ in parts:
            items += [b.string(name), node if not type_ or b.is_cast_to(node, type_) else b.cast(node, type_)]
        return b.fn("named_struct", *items)

    def let(self, nodes: Sequence[Node], body: Callable[..., Node]) -> Node:
        """Spark takes no sub-select inside a lambda: one among the nodes becomes a FROM item.

        ``f((SELECT q))`` is written ``(SELECT f(y.v) FROM (SELECT q) AS y(v))``.
        """
        for position, node in enumerate(nodes):
            if b.has_query(node):
                label = self.fresh("y")
                rest = [*nodes[:position], b.col(label, "v"), *nodes[position + 1 :]]
                return self._over(node, label, self.let(rest, body))
        return super().let(nodes, body)

    def chain(self, first: Parts, steps: Sequence[Step], last: Callable[[Named], Node]) -> Node:
        """As ``let``."""
        moved = [position for position, (_, node, _) in enumerate(first) if b.has_query(node)]
        if not moved:
            return super().chain(first, steps, last)

        def body(*values: Node) -> Node:
            parts = list(first)
            for position, value in zip(moved, values, strict=True):
                parts[position] = (parts[position][0], value, parts[position][2])
            return super(SparkDialect, self).chain(parts, steps, last)

        return self.let([first[position][1] for position in moved], body)

    def looped(self, items: Node, loop: Loop) -> Node:
        """Return aggregate() over as many numbers: the steps are there once, however often they are gone through."""
        record, state = self.fresh("x"), self.fresh("x")
        body = self.one(b.bare(state))
        for step in loop.steps:
            body = self._through(body, step)
        body = b.lambda_(state, self.list_item(body, b.integer(1)), self.fresh("x"))
        turns = b.fn("sequence", b.integer(1), b.integer(loop.times))
        return self.mapped(items, record, b.fn("aggregate", turns, b.bare(record), body))

    def _over(self, node: Node, label: str, inner: Node) -> Node:
        """Return ``inner`` where ``label.v`` is the value of ``node``, which holds a sub-select."""
        query = b.one_row_query(node)
        if b.has_call_of_query(node):  # it would be about the rows of the query that is made here
            raise not_supported("this expression over an aggregate with a sub-select in this executor")
        if query is None:
            # A level more, so that no row stays NULL; Spark resolves references across one level only.
            if b.has_correlated_query(node):
                raise not_supported("this expression over a correlated sub-select in this executor")
            query = b.select([node])
        made = b.select([inner], source=b.derived(query, label, columns=["v"]))
        return b.scalar(made, one_row=True, correlated=b.has_correlated_query(node))

    def integer_divide(self, left: Node, right: Node) -> Node:
        """Divide exactly: a quotient of DECIMALs keeps 20 whole digits, so a long dividend goes in two halves."""
        wide = self.decimal(38, 0)
        unit = b.cast(b.string(_TEN19), wide)

        def quotient(x: Node, y: Node) -> Node:
            return b.cast(b.op("/", b.cast(b.op("-", x, b.op("%", x, y)), wide), y), wide)

        def body(x: Node, y: Node) -> Node:
            high, low = quotient(x, unit), b.op("%", x, unit)
            rest = b.cast(b.op("+", b.op("*", b.op("%", high, y), unit), low), wide)
            halves = b.op("+", b.cast(b.op("*", quotient(high, y), unit), wide), quotient(rest, y))
            return b.case([(b.op("<", y, unit), b.cast(halves, wide))], quotient(x, y))

        return self.let([left, right], body)

    def decimal_op(self, symbol: str, left: Val, right: Val, num: Fixed) -> Node:
        """Spark widens by itself."""
        return b.op(symbol, left.node, right.node)

    def decimal_to_double(self, node: Node, num: Fixed) -> Node:
        """Cast (rounded once)."""
        return b.cast(node, "DOUBLE")

    def list_item(self, items: Node, index: Node) -> Node:
        """element_at, by position."""
        return b.fn("element_at", items, index)

    def to_text(self, node: Node) -> Node:
        """Cast; ANSI mode prints decimals without exponents."""
        return b.cast(node, "STRING")

    def length(self, node: Node) -> Node:
        """Count code points."""
        return b.fn("char_length", node)

    def is_infinite(self, node: Node) -> Node:
        """Compare the magnitude with infinity."""
        return b.op("=", b.cast(b.fn("abs", node), "DOUBLE"), self.literal(math.inf, "float64"))

    def is_nan(self, node: Node) -> Node:
        """Test for NaN."""
        return b.fn("isnan", node)

    def by_key(self, value: Node, key: Node, greatest: bool) -> tuple[str, tuple[Node, ...]]:
        """max_by and min_by."""
        return ("max_by" if greatest else "min_by"), (value, key)

    def limit(self, node: Node) -> Node:
        """LIMIT takes an integer constant."""
        return b.cast(node, "INT")

    @property
    def explode(self) -> str:
        """Return the generator of rows."""
        return "explode"

    def series(self, args: Sequence[Val], result: SqlType) -> Node:
        """Return sequence(), which goes down by itself and refuses an unreachable end."""
        kind = self.types[kind_of(result.oid)]
        start, stop = (b.cast(a.node, kind) for a in args[:2])
        step = b.cast(args[2].node, kind) if len(args) == 3 else b.cast(b.integer(1), kind)

        def body(x: Node, y: Node, z: Node) -> Node:
            zero = b.integer(0)
            empty = b.or_(
                b.and_(b.op(">", z, zero), b.op(">", x, y)),
                b.and_(b.op("<", z, zero), b.op("<", x, y)),
                b.is_null(x), b.is_null(y), b.is_null(z),
            )  # fmt: skip
            return b.case(
                [
                    (b.op("=", z, zero), self.error("22023", "step size cannot equal zero")),
                    (empty, b.cast(b.fn("array"), self.list_of(kind))),
                ],
                b.fn("sequence", x, y, z),
            )

        return body(start, stop, step)

    def series_rows(self, args: Sequence[Val], label: str, column: str, result: SqlType) -> Node | None:
        """Return range(), which runs in parallel, holds no array and looks whether its query was cancelled."""
        values = [a.constant for a in args if isinstance(a.constant, int)]
        if len(values) < len(args):
            return None
        start, stop, step = (*values, 1)[:3]
        end = stop + (1 if step > 0 else -1)  # the end is left out
        if step == 0 or (end - start) // step <= _LONG_SERIES or not -(2**63) <= end < 2**63:
            return None
        numbers = [self.literal(v, "int64") for v in (start, end, step)]
        if (end - start) // step >= 4 * _SERIES_PARTITION:  # else as many partitions as there are cores
            numbers.append(b.integer((end - start) // step // _SERIES_PARTITION + 1))
        value = b.cast(b.col(label, "id"), self.types[kind_of(result.oid)])
        return b.select([b.alias(value, column)], source=b.rows_of("range", numbers, label))

    def unless_infinite(
        self, node: Node, kind: str, body: Callable[[Node], Node], infinite: Callable[[Node, int], Node]
    ) -> Node:
        """Infinities are the far values that parts hold for them."""
        far = DATE_INFINITY if kind == "date" else TIMESTAMP_INFINITY

        def choose(x: Node) -> Node:
            arms = [(b.op("=", x, self.literal(sign * far, kind)), infinite(x, sign)) for sign in (1, -1)]
            return b.case(arms, body(x))

        return self.let([node], choose)

    def groups_as_is(self, kind: str) -> bool:
        """Keys of groups have no minus zero."""
        return kind not in ("float32", "float64")

    def orders_lists(self) -> bool:
        """NULL elements come first."""
        return False

    def list_key(self, node: Node) -> Node:
        """Pair each element with whether it is NULL."""
        variable = self.fresh("e")
        item = b.bare(variable)
        pair = b.fn("named_struct", b.string("n"), b.is_null(item), b.string("v"), item)
        return b.fn("transform", node, b.lambda_(variable, pair))

    def any_order(self) -> list[Node]:
        """Windows need an order."""
        return [b.ordered(b.string(""), False, False)]

    def interval_value(self, value: Val) -> Node:
        """Return make_interval of months, days and seconds."""

        def body(x: Node) -> Node:
            micros = b.cast(b.field(x, "u"), self.decimal(18, 0))
            seconds = b.cast(
                b.op("*", micros, b.cast(b.string("0.000001"), self.decimal(6, 6))), self.decimal(18, 6)
            )
            zero = b.integer(0)
            return b.fn("make_interval", zero, b.field(x, "m"), zero, b.field(x, "d"), zero, zero, seconds)

        if value.is_constant and isinstance(value.constant, tuple):
            months, days, us = value.constant
            seconds = b.cast(b.string(f"{us // 1_000_000}.{us % 1_000_000:06d}"), self.decimal(18, 6))
            if us < 0:
                seconds = b.cast(b.string(f"-{-us // 1_000_000}.{-us % 1_000_000:06d}"), self.decimal(18, 6))
            zero = b.integer(0)
            return b.fn("make_interval", zero, b.integer(months), zero, b.integer(days), zero, zero, seconds)
        return self.repeat([value.node], body)

    def try_cast(self, node: Node, engine_type: str) -> Node:
        """Return the cast, or NULL where it fails."""
        return b.try_cast(node, engine_type)

    def matches(self, node: Node, pattern: str) -> Node:
        """Match the whole text (Java's regular expressions)."""
        return b.fn("regexp_like", node, b.string(f"\\A(?:{pattern})\\z"))

    def contains_match(self, node: Node, pattern: str) -> Node:
        """Search; ``$`` is the very end only. 0A000 for patterns that Java, which tries all ways, may be busy
        with for ever.
        """
        if not compiled(pattern).tame:
            raise not_supported("this regular expression in this executor")
        text = pattern[:-1] + "\\z" if pattern.endswith("$") and not pattern.endswith("\\$") else pattern
        return b.fn("regexp_like", node, b.string(f"(?s){text}"))

    def like(self, node: Node, pattern: Val) -> Node:
        """Spark refuses an escape before an ordinary character: those escapes are dropped."""
        if pattern.constant is None:  # or a parameter whose value is not there yet
            return b.cast(b.null(), self.types["bool"])
        if not isinstance(pattern.constant, str):
            raise not_supported("LIKE with a varying pattern in this executor")
        out, position, text = [], 0, pattern.constant
        while position < len(text):
            if text[position] == "\\":
                if position + 1 == len(text):
                    return self.error("22025", "LIKE pattern must not end with escape character")
                following = text[position + 1]
                out.append("\\" + following if following in "%_\\" else following)
                position += 2
            else:
                out.append(text[position])
                position += 1
        return b.like(node, b.string("".join(out)))

    def add_days(self, node: Node, days: Node) -> Node:
        """Return date_add."""
        return b.fn("date_add", node, b.cast(days, "INT"))

    def days_between(self, start: Node, stop: Node) -> Node:
        """Return datediff."""
        return b.fn("datediff", stop, start)

    def epoch_us(self, node: Node) -> Node:
        """Return unix_micros."""
        return b.fn("unix_micros", b.cast(node, "TIMESTAMP"))

    def time_us(self, node: Node, kind: str) -> Node:
        """A time is its microseconds already."""
        if kind == "time":
            return node
        return b.fn("pmod", self.epoch_us(node), b.cast(b.string("86400000000"), "BIGINT"))

    def date_part(self, name: str, node: Node, kind: str, infinite: tuple[str, str]) -> Node:
        """Fields that come round are NULL for the infinities, those that only grow are refused."""
        grows = name in ("year", "isoyear", "decade", "century", "millennium")
        special = self.error(*infinite) if grows else b.null()
        return self.unless_infinite(node, kind, lambda x: self._part(name, x), lambda x, sign: special)

    def _part(self, name: str, x: Node) -> Node:
        year = b.fn("year", x)
        one, zero = b.integer(1), b.integer(0)
        match name:
            case "dow":
                return b.op("-", b.fn("dayofweek", x), one)
            case "isodow":
                return b.op("+", b.fn("weekday", x), one)
            case "doy":
                return b.fn("dayofyear", x)
            case "week":
                return b.fn("weekofyear", x)
            case "year" | "isoyear":
                made = year if name == "year" else b.fn("date_part", b.string("YEAROFWEEK"), x)
                return b.case([(b.op("<=", made, zero), b.op("-", made, one))], made)
            case "decade":
                down = b.neg(b.op("//", b.op("-", b.integer(9), year), b.integer(10)))
                return b.case([(b.op(">=", year, zero), b.op("//", year, b.integer(10)))], down)
            case "century" | "millennium":
                span = b.integer(100 if name == "century" else 1000)
                up = b.op("//", b.op("+", year, b.op("-", span, one)), span)
                return b.case([(b.op(">", year, zero), up)], b.neg(b.op("//", b.op("-", span, year), span)))
        return b.fn(name, x)

    # -- values ------------------------------------------------------------------------------------

    def literal(self, value: object, kind: str) -> Node:
        """Return a typed literal."""
        match kind:
            case "bool":
                return b.boolean(bool(value))
            case "int32" if isinstance(value, int) and abs(value) < 2**31:
                return b.integer(value)
            case "int16" | "int32" | "int64" | "time":
                return b.cast(b.string(str(value)), self.types[kind])
            case "float32" | "float64":
                number = float(value)  # type: ignore[arg-type]
                text = repr(number) if math.isfinite(number) else str(number).replace("inf", "Infinity")
                return b.cast(b.string(text.replace("nan", "NaN")), self.types[kind])
            case "text":
                return b.string(str(value))
            case "bytes" | "tailed" | "uuid" if isinstance(value, bytes):
                return b.fn("unhex", b.string(value.hex()))
            case "date" if isinstance(value, int):
                day = iso_date(value)
                return b.cast(b.string(day), "DATE") if day else b.fn("date_from_unix_date", b.integer(value))
            case "timestamp" | "timestamptz" if isinstance(value, int):
                moment = iso_timestamp(value)
                if moment is not None:
                    return b.cast(b.string(moment if kind == "timestamp" else moment + "Z"), self.types[kind])
                return b.cast(
                    b.fn("timestamp_micros", b.cast(b.string(str(value)), "BIGINT")), self.types[kind]
                )
            case "timetz" if isinstance(value, tuple):
                parts = zip("tz", value, strict=True)
                return self.struct(self.types[kind], *((n, self.literal(v, "int64")) for n, v in parts))
            case "interval" if isinstance(value, tuple):
                parts = zip("mdu", value, strict=True)
                return self.struct(self.types[kind], *((n, self.literal(v, "int64")) for n, v in parts))
        raise not_supported(f"a constant of kind {kind} in this executor")

    def parameter(self, number: int, type_: SqlType, values: Sequence[object] | None) -> Val:
        """Return the parameter's value as a literal; before values are known, a NULL of its type."""
        return constant(self, None if values is None else values[number - 1], type_)


def _fields(struct: str) -> list[tuple[str, str]]:
    """Return names and types of a struct type's fields.

    STRUCT<u: DECIMAL(38, 0), s: INT>    [("u", "DECIMAL(38, 0)"), ("s", "INT")]
    """
    words, depth = [""], 0
    for ch in struct.removeprefix("STRUCT<").removesuffix(">"):
        depth += (ch in "<(") - (ch in ">)")
        if ch == "," and not depth:
            words.append("")
        else:
            words[-1] += ch
    pairs = (word.split(":", 1) for word in words)
    return [(name.strip(), type_.strip()) for name, type_ in pairs]
