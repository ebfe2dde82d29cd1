"""Division of numerics in the engines, with PostgreSQL's result scale (select_div_scale) to the last digit.

    operands -> magnitudes -> leading groups of four digits -> scale -> long division -> rounded half away from zero

Python divides what stands in a select list (``finishing``); this is for quotients inside a query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect, Loop, Named, Parts, Step
from planner.lower.kit.estimated import usual_quotient
from planner.lower.kit.numeric import Piece
from planner.lower.kit.value import FLOATING, MAX_PRECISION, Fixed, Val

SHORT_DIGITS: Final = 15
"""Dividends and divisors of no more digits are divided in one go."""
BOUNDED_DIGITS: Final = 17
"""Divisors of no more digits leave a quotient of 21 digits room among 38."""
WHOLE_DIGITS: Final = 28
"""Digits before the point of Spark's quotient of a DECIMAL(38, 0) by a DECIMAL of no more than BOUNDED_DIGITS."""


def _digits(d: Dialect, magnitude: Node) -> Node:
    """Return the number of decimal digits of a non-negative DECIMAL(38, 0)."""
    return d.length(d.to_text(magnitude))


def _floor4(value: Node, d: Dialect) -> Node:
    """Return floor(value / 4) of a small integer, also below zero."""
    return b.op("-", _int_div(d, b.op("+", value, b.integer(400)), 4), b.integer(100))


def _int_div(d: Dialect, value: Node, by: int) -> Node:
    """Return the truncated quotient of a small non-negative integer."""
    return b.cast(
        b.fn("floor", b.op("/", b.cast(value, d.types["float64"]), b.integer(by))), d.types["int32"]
    )


def _operand(
    d: Dialect, name: str, value: Val
) -> tuple[tuple[str, Node, str], Callable[[Named], tuple[Node, Node]]]:
    """Return a chain's first part for a numeric, and how to get (unscaled, scale) from it."""
    if isinstance(value.num, Fixed) and value.num.dynamic is None:
        num = value.num
        return (name, numeric.unscaled_of(d, value.node, num), numeric.UNSCALED), lambda v: (
            v(name),
            b.integer(num.scale),
        )
    part = (name, numeric.to_floating(d, value), d.types["numeric"])
    return part, lambda v: (b.field(v(name), "u"), b.field(v(name), "s"))


def divide(d: Dialect, left: Val, right: Val, *, digits: int | None = None) -> Val:
    """Return ``left / right`` with PostgreSQL's result scale; 22012 when ``right`` is zero.

    The scale is 16 - 4 * (weight difference in groups of four digits), at least either operand's scale.

    Args:
        d: the dialect.
        left: the dividend.
        right: the divisor.
        digits: so many digits has the quotient at most with the scale of ``left``, where that is known.
    """
    whole = _bounded(d, left, right, digits)
    if whole is not None:
        return numeric.numeric(whole, FLOATING)
    if d.name == "duckdb":
        return numeric.numeric(_estimated(d, left, right), FLOATING)
    usual = _short(d, left, right)
    quotient = _long(d, left, right)
    return numeric.numeric(quotient if usual is None else b.case([usual], quotient), FLOATING)


def _estimated(d: Dialect, left: Val, right: Val) -> Node:
    """Return the struct of DuckDB's quotient: by estimates where operands are of usual size, see ``estimated``."""
    operands = [
        v if isinstance(v.num, Fixed) and v.num.dynamic is None else numeric.floating(d, v)
        for v in (left, right)
    ]

    def body(*nodes: Node) -> Node:
        first, second = (replace(v, node=node) for v, node in zip(operands, nodes, strict=True))
        usual, quotient = usual_quotient(d, first, second), _long(d, first, second)
        return quotient if usual is None else b.case([usual], quotient)

    return d.let([v.node for v in operands], body)


def _bounded(d: Dialect, left: Val, right: Val, digits: int | None) -> Node | None:
    """Return the struct of a quotient whose types alone say that it and all on the way to it fit 38 digits;
    None: they do not.

    A quotient of PostgreSQL's scale has at most 21 digits unless an operand's scale is longer, so a dividend
    with all places has no more than those and the divisor's. Spark plans a long expression slowly, and text
    makes this one short:

        x = 783, y = 30, scale of x 2           7.83 / 30
        texts '783', '30'                       leading groups of four 7 and 30, both of weight 0: scale 20
        m = '783' and 18 zeros                  m / y, rounded half away from zero: u = 26100000000000000000
    """
    if d.name != "spark" or not isinstance(left.num, Fixed) or not isinstance(right.num, Fixed):
        return None
    x, y = left.num, right.num
    known = x.precision if digits is None else digits
    if x.dynamic is not None or y.dynamic is not None or y.precision > BOUNDED_DIGITS:
        return None
    if (
        known + 2 * y.scale > WHOLE_DIGITS
        or x.precision + 2 * y.scale - min(x.scale, y.scale) > MAX_PRECISION
    ):
        return None
    if b.has_query(left.node) or b.has_query(right.node):
        return None
    small, zero, kept = d.types["int32"], b.integer(0), ""
    units = numeric.unscaled_of(d, right.node, y)
    by_zero = b.and_(b.op("=", right.node, zero), b.is_null(left.node, True))
    divisor = b.case([(by_zero, d.error("22012", "division by zero"))], b.fn("abs", units))
    negative = b.op("<>", b.op("<", left.node, zero), b.op("<", right.node, zero))
    first = [
        ("x", numeric.unscaled_of(d, b.fn("abs", left.node), x), numeric.UNSCALED), ("y", divisor, d.decimal(y.precision, 0)),
        ("n", negative, d.types["bool"]),
    ]  # fmt: skip

    def texts(v: Named) -> Parts:
        return [
            *((name, v(name), kept) for name in ("y", "n")),
            ("a", d.to_text(v("x")), d.types["text"]), ("c", d.to_text(v("y")), d.types["text"]),
        ]  # fmt: skip

    def scale(v: Named) -> Parts:
        (wx, fx), (wy, fy) = _leading(d, v("a"), x.scale), _leading(d, v("c"), y.scale)
        difference = b.op("-", b.op("-", wx, wy), b.case([(b.op("<=", fx, fy), b.integer(1))], zero))
        wanted = b.op("-", b.integer(16), b.op("*", difference, b.integer(4)))
        places = b.fn("greatest", wanted, b.integer(max(x.scale, y.scale)))
        return [*((name, v(name), kept) for name in ("y", "n", "a")), ("s", places, small)]

    def shifted(v: Named) -> Parts:
        length = b.op("+", b.op("+", d.length(v("a")), v("s")), b.integer(y.scale - x.scale))
        dividend = b.fn("rpad", v("a"), length, b.string("0"))
        return [*((name, v(name), kept) for name in ("y", "n", "s")), ("m", dividend, numeric.UNSCALED)]

    def last(v: Named) -> Node:
        rest = b.op("%", v("m"), v("y"))
        # Exact, so however many places Spark gives the quotient: WHOLE_DIGITS before the point it always has.
        whole = b.op("/", b.cast(b.op("-", v("m"), rest), numeric.UNSCALED), v("y"))
        up = b.case([(b.op(">=", rest, b.op("-", v("y"), rest)), b.integer(1))], zero)
        rounded = b.op("+", b.cast(whole, d.decimal(MAX_PRECISION - 1, 0)), up)
        signed = b.op("*", rounded, b.case([(v("n"), b.integer(-1))], b.integer(1)))
        there = b.and_(b.is_null(v("m"), True), b.is_null(v("y"), True))
        return b.case([(there, numeric.make(d, signed, v("s")))])

    return d.chain(first, [texts, scale, shifted], last)


def _leading(d: Dialect, text: Node, scale: int) -> Piece:
    """Return weight and value of the leading group of four digits of a number >= 0, from its digits; 0 and 0
    for zero.
    """
    weight = _floor4(b.op("-", d.length(text), b.integer(scale + 1)), d)
    nothing = b.op("=", text, b.string("0"))
    width = b.op("-", b.op("-", d.length(text), b.integer(scale)), b.op("*", weight, b.integer(4)))  # 1 .. 4
    group = b.cast(
        b.fn("rpad", b.fn("substr", text, b.integer(1), width), width, b.string("0")), d.types["int32"]
    )
    return b.case([(nothing, b.integer(0))], weight), group


def _short(d: Dialect, left: Val, right: Val) -> tuple[Node, Node] | None:
    """Return when a quotient by a positive integer is of usual size, and its struct; None: not known to be ever.

    For 1 <= |left| < 10**15 units of its last digit and 1 <= right < 10**15 the dividend with all its places fits 38
    digits, and 64-bit numbers and floats tell exact leading groups. Spark evaluates a step of a chain without
    compiling it, so their number counts: four instead of fourteen.
    """
    if d.name != "spark" or not isinstance(left.num, Fixed) or not isinstance(right.num, Fixed):
        return None
    scale = left.num.scale
    if (
        left.num.dynamic is not None
        or right.num.dynamic is not None
        or right.num.scale
        or scale >= SHORT_DIGITS
    ):
        return None
    if b.has_query(left.node) or b.has_query(right.node):
        return None
    big, small, boolean = d.types["int64"], d.types["int32"], d.types["bool"]
    zero = b.integer(0)
    magnitude = b.fn("abs", left.node)
    guard = b.and_(
        b.op(">=", magnitude, b.integer(1)),
        b.op(
            "<",
            magnitude,
            b.cast(b.string("1" + "0" * (SHORT_DIGITS - scale)), d.decimal(SHORT_DIGITS + 1, 0)),
        ),
        b.op(">=", right.node, b.integer(1)),
        b.op("<", right.node, b.cast(b.string("1" + "0" * SHORT_DIGITS), d.decimal(SHORT_DIGITS + 1, 0))),
    )
    digits = Fixed(SHORT_DIGITS, scale)
    units = numeric.unscaled_of(d, b.cast(magnitude, d.decimal(SHORT_DIGITS, scale)), digits)
    first = [
        ("x", b.cast(units, big), big), ("y", b.cast(right.node, big), big),
        ("n", b.op("<", left.node, zero), boolean),
    ]  # fmt: skip

    def weights(v: Named) -> Parts:
        (wx, fx), (wy, fy) = _group(d, v("x"), scale), _group(d, v("y"), 0)
        difference = b.op("-", b.op("-", wx, wy), b.case([(b.op("<=", fx, fy), b.integer(1))], zero))
        wanted = b.op("-", b.integer(16), b.op("*", difference, b.integer(4)))
        places = b.fn("greatest", wanted, b.integer(scale))
        return [("x", v("x"), big), ("y", v("y"), big), ("n", v("n"), boolean), ("s", places, small)]

    def shifted(v: Named) -> Parts:
        places = b.op("-", v("s"), b.integer(scale))  # 32 at most
        last = b.integer(numeric.USUAL_PLACES)
        low = numeric.power(d, b.fn("least", places, last))
        high = numeric.power(d, b.fn("greatest", b.op("-", places, last), zero))
        m = b.cast(b.op("*", b.cast(b.op("*", v("x"), low), numeric.UNSCALED), high), numeric.UNSCALED)
        divisor = d.decimal(SHORT_DIGITS, 0)
        return [
            ("m", m, numeric.UNSCALED),
            ("y", v("y"), divisor),
            ("n", v("n"), boolean),
            ("s", v("s"), small),
        ]

    def last(v: Named) -> Node:
        rest = b.op("%", v("m"), v("y"))
        # Exact, so however many places Spark gives the quotient: 31 digits before the point are enough.
        whole = b.cast(b.op("/", b.cast(b.op("-", v("m"), rest), numeric.UNSCALED), v("y")), numeric.UNSCALED)
        up = b.op(">=", rest, b.op("-", v("y"), rest))
        rounded = b.case([(up, b.cast(b.op("+", whole, b.integer(1)), numeric.UNSCALED))], whole)
        return numeric.make(d, b.case([(v("n"), b.neg(rounded))], rounded), v("s"))

    return guard, d.chain(first, [weights, shifted], last)


def _group(d: Dialect, x: Node, scale: int) -> Piece:
    """Return weight and value of the leading group of four decimal digits of ``x / 10**scale``, at least 1.

    ``x`` is a BIGINT below ``10**SHORT_DIGITS``: it is exact as a float, and no quotient by a power of ten is rounded
    up to a whole number.
    """
    arms = [(weight, 4 * weight + scale) for weight in range((SHORT_DIGITS - 1 - scale) // 4, -1, -1)]
    weights = [(b.op(">=", x, b.integer(10**low)), b.integer(weight)) for weight, low in arms]
    values = [
        (b.op(">=", x, b.integer(10**low)), b.fn("floor", b.op("/", x, d.literal(float(10**low), "float64"))))
        for _, low in arms
    ]
    return b.case(weights), b.case(values)


def _long(d: Dialect, left: Val, right: Val) -> Node:
    """Return the struct of a quotient: long division in chunks that fit 38 digits, rounded half away from zero."""
    first_left, get_left = _operand(d, "l", left)
    first_right, get_right = _operand(d, "r", right)
    small, zero = d.types["int32"], b.integer(0)

    def parts(v: Named) -> Parts:
        (lu, ls), (ru, rs) = get_left(v), get_right(v)
        arms = [(b.op("<", n, zero), d.error(*numeric.OVERFLOW, n)) for n in (ls, rs) if b.has_column(n)]
        arms.append(
            (b.and_(b.op("=", ru, zero), b.is_null(lu, True)), d.error("22012", "division by zero", ru))
        )
        divisor = b.case(arms, b.fn("abs", ru))
        negative = b.op("<>", b.op("<", lu, zero), b.op("<", ru, zero))
        return [
            ("x", b.fn("abs", lu), numeric.UNSCALED), ("sx", ls, small), ("y", divisor, numeric.UNSCALED), ("sy", rs, small),
            ("n", negative, d.types["bool"]),
        ]  # fmt: skip

    def keep(v: Named, *names: str) -> list[tuple[str, Node, str]]:
        return [(n, v(n), _STEP_TYPES[n] or d.types["bool"]) for n in names]

    def digits(v: Named) -> Parts:
        return [
            *keep(v, "x", "sx", "y", "sy", "n"),
            ("nx", _digits(d, v("x")), small), ("ny", _digits(d, v("y")), small),
        ]  # fmt: skip

    def weights(v: Named) -> Parts:
        return [
            *keep(v, "x", "sx", "y", "sy", "n", "nx", "ny"),
            ("wx", _weight(v("nx"), v("sx"), v("x"), d), small), ("wy", _weight(v("ny"), v("sy"), v("y"), d), small),
        ]  # fmt: skip

    def scale(v: Named) -> Parts:
        found = _division_scale(d, v)
        return [*keep(v, "x", "sx", "y", "sy", "n", "nx", "ny"), ("s", found, small)]

    def places(v: Named) -> Parts:
        wanted = b.op("-", b.op("+", v("s"), v("sy")), v("sx"))
        return [*keep(v, "x", "y", "n", "nx", "ny", "s"), ("p", wanted, small)]

    def begin(v: Named) -> Parts:
        fits = b.op("<=", b.op("+", v("nx"), v("p")), b.integer(38))
        numerator = b.case([(fits, numeric.shift_up(d, v("x"), v("p")))], v("x"))
        chunk = b.fn("least", b.integer(18), b.op("-", b.integer(38), v("ny")))
        return [
            ("m", numerator, numeric.UNSCALED), ("q", b.cast(zero, numeric.UNSCALED), numeric.UNSCALED), *keep(v, "y", "n", "s"),
            ("p", b.case([(fits, zero)], v("p")), small), ("c", chunk, small), ("t", zero, small),
        ]  # fmt: skip

    def quotient(v: Named) -> Parts:
        more = b.op("+", numeric.shift_up(d, v("q"), v("t")), d.integer_divide(v("m"), v("y")))
        return [
            ("m", b.op("%", v("m"), v("y")), numeric.UNSCALED), ("q", b.cast(more, numeric.UNSCALED), numeric.UNSCALED),
            *keep(v, "y", "n", "s"), ("p", b.op("-", v("p"), v("t")), small), *keep(v, "c"),
        ]  # fmt: skip

    def bring_down(v: Named) -> Parts:
        size = b.fn("least", v("c"), v("p"))
        return [
            ("m", numeric.shift_up(d, v("m"), size), numeric.UNSCALED), *keep(v, "q", "y", "n", "s", "p", "c"), ("t", size, small),
        ]  # fmt: skip

    def last(v: Named) -> Node:
        # After the last quotient all places are there (p is 0, and nothing was brought down), or they are too many.
        up = b.op(">=", v("m"), b.op("-", v("y"), v("m")))
        rounded = b.case([(up, b.cast(b.op("+", v("q"), b.integer(1)), numeric.UNSCALED))], v("q"))
        signed = b.case([(v("n"), b.neg(rounded))], rounded)
        return b.case(
            [(b.is_null(v("n")), b.null()), (b.op(">", v("p"), zero), d.error(*numeric.OVERFLOW, v("p")))],
            numeric.make(d, signed, v("s")),
        )

    steps: list[Step] = [parts, digits, weights, scale, places, begin, Loop(4, (quotient, bring_down))]
    return d.chain([first_left, first_right], steps, last)


_STEP_TYPES = {
    "x": numeric.UNSCALED, "y": numeric.UNSCALED, "q": numeric.UNSCALED, "m": numeric.UNSCALED, "n": "",
    **dict.fromkeys(("sx", "sy", "nx", "ny", "wx", "wy", "s", "p", "c", "t"), "INTEGER"),
}  # fmt: skip


def _weight(digits: Node, scale: Node, magnitude: Node, d: Dialect) -> Node:
    """Return the weight of the leading group of four decimal digits; 0 for zero."""
    leading = b.op("-", b.op("-", digits, scale), b.integer(1))
    return b.case([(b.op("=", magnitude, b.integer(0)), b.integer(0))], _floor4(leading, d))


def _first_group(d: Dialect, magnitude: Node, digits: Node, weight: Node, scale: Node) -> Node:
    """Return the value of the leading group of digits, 1 .. 9999; 0 for zero."""
    width = b.op("-", b.op("-", digits, scale), b.op("*", weight, b.integer(4)))  # 1 .. 4 digits
    text = b.fn("substr", d.to_text(magnitude), b.integer(1), width)
    padded = b.fn("rpad", text, width, b.string("0"))
    return b.case([(b.op("=", magnitude, b.integer(0)), b.integer(0))], b.cast(padded, d.types["int32"]))


def _division_scale(d: Dialect, v: Named) -> Node:
    left = _first_group(d, v("x"), v("nx"), v("wx"), v("sx"))
    right = _first_group(d, v("y"), v("ny"), v("wy"), v("sy"))
    borrowed = b.case([(b.op("<=", left, right), b.integer(1))], b.integer(0))
    difference = b.op("-", b.op("-", v("wx"), v("wy")), borrowed)
    wanted = b.op("-", b.integer(16), b.op("*", difference, b.integer(4)))
    return b.fn("greatest", wanted, v("sx"), v("sy"), b.integer(0))
