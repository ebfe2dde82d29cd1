"""Exact quotients of DuckDB's DECIMALs without its division, which costs about a microsecond (128 bits, digit
by digit).

Casts to DOUBLE and back, products and differences of DECIMAL(38, 0) cost some ten nanoseconds each. So a quotient is
estimated in floating point, and what remains of the dividend, which is exact, is divided in the same way:

    m = 123456789012345678901234567890, y = 7      q  = 17636684144620811000000000000   m / y as a DOUBLE
                                                   r  = m - q * y, exact, of either sign
                                                   q += r / y as a DOUBLE, and so on

An estimate's relative error is below 2**-50 (two casts and one division), so each one leaves a rest of at most
``|m| * 2**-50 + y``: two of them are exact but for one unit while the quotient is below 10**28, three for 37 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect, Named, Parts, Step
from planner.lower.kit.numeric import Piece, wide
from planner.lower.kit.value import Fixed, Val

EXACT_DIGITS: Final = 15
"""Integers of no more digits are exact as DOUBLE, and floor(x / y) of two of them is their quotient."""
LAST_PLACE: Final = 18
"""The largest scale of an operand that is divided here."""
ROOM: Final = 37
"""Digits of a dividend: one less than a DECIMAL has, so that no estimate times the divisor overflows."""

Kept = Sequence[tuple[str, str]]
"""Names and engine types of values that steps pass on."""


def quotient_steps(d: Dialect, kept: Kept, *, estimates: int) -> list[Step]:
    """Return the steps of a chain that divide its ``m`` by its ``y``; they leave ``q`` and ``r``: m = q * y + r.

    Args:
        d: DuckDB's dialect.
        kept: what else the chain passes on; without m, y, q and r.
        estimates: 2 for quotients below 10**28, 3 for all.

    ``m`` and ``y`` are DECIMAL(38, 0), 0 <= m < 10**ROOM and y > 0. Then -y <= r <= y: the quotient may be one off.
    """

    def keep(v: Named) -> Parts:
        return [*((name, v(name), type_) for name, type_ in kept), ("y", v("y"), numeric.UNSCALED)]

    def first(v: Named) -> Parts:
        return [
            *keep(v),
            ("m", v("m"), numeric.UNSCALED),
            ("q", _estimate(d, v("m"), v("y")), numeric.UNSCALED),
        ]

    def rest(v: Named) -> Parts:
        return [
            *keep(v),
            ("q", v("q"), numeric.UNSCALED),
            ("r", _rest(v("m"), v("q"), v("y")), numeric.UNSCALED),
        ]

    def more(v: Named) -> Parts:
        estimate = _estimate(d, v("r"), v("y"))
        return [
            *keep(v),
            *((name, v(name), numeric.UNSCALED) for name in ("q", "r")),
            ("e", estimate, numeric.UNSCALED),
        ]

    def added(v: Named) -> Parts:
        q = b.cast(b.op("+", v("q"), v("e")), numeric.UNSCALED)
        return [*keep(v), ("q", q, numeric.UNSCALED), ("r", _rest(v("r"), v("e"), v("y")), numeric.UNSCALED)]

    steps: list[Step] = [first, rest]
    for _ in range(estimates - 1):
        steps += [more, added]
    return steps


def _estimate(d: Dialect, dividend: Node, divisor: Node) -> Node:
    floats = (b.cast(node, d.types["float64"]) for node in (dividend, divisor))
    return b.cast(b.fn("trunc", b.op("/", *floats)), numeric.UNSCALED)


def _rest(dividend: Node, quotient: Node, divisor: Node) -> Node:
    return b.cast(
        b.op("-", dividend, b.cast(b.op("*", quotient, divisor), numeric.UNSCALED)), numeric.UNSCALED
    )


def rounded(v: Named) -> Node:
    """Return the quotient of ``quotient_steps`` rounded half up."""
    q, r, y = v("q"), v("r"), v("y")
    arms = [
        (b.op(">=", r, b.op("-", y, r)), b.op("+", q, b.integer(1))),
        (b.op("<", b.op("+", r, r), b.neg(y)), b.op("-", q, b.integer(1))),
    ]
    return b.cast(b.case(arms, q), numeric.UNSCALED)


def power(d: Dialect, exponent: Node) -> Node:
    """Return 10**exponent as DECIMAL(38, 0) from a list, for 0 <= exponent <= ROOM."""
    items = b.array(*(b.integer(10**n) for n in range(ROOM + 1)))
    powers = b.cast(items, d.list_of(numeric.UNSCALED))
    return d.list_item(powers, b.op("+", exponent, b.integer(1)))


def usual_quotient(d: Dialect, left: Val, right: Val) -> tuple[Node, Node] | None:
    """Return when a quotient is of usual size, and then its struct (u, s) with PostgreSQL's scale; None: it never is.

    Usual are operands below 10**15 units of their last digit, of at most LAST_PLACE places, and divisors other than 0:
    a quotient has at most 21 digits, unless an operand has more places than that, so the dividend with all places has
    no more than 37.

    Args:
        d: DuckDB's dialect.
        left: the dividend: evaluated more than once.
        right: the divisor: the same.
    """
    parts = [_parts(d, value) for value in (left, right)]
    (lu, ls, left_usual), (ru, rs, right_usual) = parts
    most = [v.num.scale if isinstance(v.num, Fixed) else None for v in (left, right)]
    if any(scale is not None and scale > LAST_PLACE for scale in most):
        return None
    tests = [b.is_null(lu, True), *left_usual, *right_usual, b.op("<>", ru, b.integer(0))]
    # With the divisor's places the dividend has 2 * sy - sx more than before.
    longer = b.op("-", b.op("*", rs, b.integer(2)), ls)
    if most[0] is not None and most[1] is not None:
        if 2 * most[1] - most[0] > ROOM - EXACT_DIGITS:
            return None
    else:
        tests.append(b.op("<=", longer, b.integer(ROOM - EXACT_DIGITS)))
    small, boolean = d.types["int32"], d.types["bool"]
    zero = b.integer(0)
    negative = b.op("<>", b.op("<", lu, zero), b.op("<", ru, zero))
    first = [
        ("x", b.fn("abs", lu), numeric.UNSCALED), ("sx", ls, small), ("y", b.fn("abs", ru), numeric.UNSCALED),
        ("sy", rs, small), ("n", negative, boolean),
    ]  # fmt: skip
    varies = [_digits_step(d)] if None in most else []

    def scale(v: Named) -> Parts:
        groups = [
            _fixed_group(d, v(name), places)
            if places is not None
            else _group(d, v(name), v("n" + name), v("s" + name))
            for name, places in zip("xy", most, strict=True)
        ]
        (wx, fx), (wy, fy) = groups
        difference = b.op("-", b.op("-", wx, wy), b.case([(b.op("<=", fx, fy), b.integer(1))], zero))
        wanted = b.op("-", b.integer(16), b.op("*", difference, b.integer(4)))
        found = b.fn("greatest", wanted, v("sx"), v("sy"))
        more = b.op("-", v("sy"), v("sx"))
        return [
            ("x", v("x"), numeric.UNSCALED), ("y", v("y"), numeric.UNSCALED), ("n", v("n"), boolean),
            ("s", found, small), ("p", more, small),
        ]  # fmt: skip

    def raised(v: Named) -> Parts:
        m = b.cast(b.op("*", v("x"), power(d, b.op("+", v("s"), v("p")))), numeric.UNSCALED)
        return [
            ("m", m, numeric.UNSCALED), ("y", v("y"), numeric.UNSCALED), ("n", v("n"), boolean), ("s", v("s"), small),
        ]  # fmt: skip

    def last(v: Named) -> Node:
        q = rounded(v)
        return numeric.make(d, b.cast(b.case([(v("n"), b.neg(q))], q), numeric.UNSCALED), v("s"))

    steps = [*varies, scale, raised, *quotient_steps(d, [("n", boolean), ("s", small)], estimates=2)]
    return b.and_(*tests), d.chain(first, steps, last)


def _parts(d: Dialect, value: Val) -> tuple[Node, Node, list[Node]]:
    """Return unscaled value and scale of an operand, and what has to hold for it to be usual."""
    tests: list[Node] = []
    if isinstance(value.num, Fixed):
        unscaled, scale = numeric.unscaled_of(d, value.node, value.num), b.integer(value.num.scale)
        digits = value.num.precision
    else:
        unscaled, scale, digits = b.field(value.node, "u"), b.field(value.node, "s"), ROOM
        tests += [b.op(">=", scale, b.integer(0)), b.op("<=", scale, b.integer(LAST_PLACE))]
    if digits > EXACT_DIGITS:
        bound = 10**EXACT_DIGITS
        tests += [b.op("<", unscaled, wide(bound)), b.op(">", unscaled, wide(-bound))]
    return unscaled, scale, tests


def _fixed_group(d: Dialect, x: Node, scale: int) -> Piece:
    """Return weight and value of the leading group of four digits of ``x / 10**scale``, 0 and 0 of zero."""
    weights: list[tuple[Node, Node]] = []
    values: list[tuple[Node, Node]] = []
    number = b.cast(x, d.types["float64"])
    top, bottom = (EXACT_DIGITS - 1 - scale) // 4, -scale // 4
    for weight in range(top, bottom - 1, -1):
        low = 4 * weight + scale
        test = b.op(">=", x, b.integer(10 ** max(low, 0)))
        unit = d.literal(float(10 ** abs(low)), "float64")
        value = (
            b.fn("floor", b.op("/", number, unit)) if low > 0 else b.op("*", number, unit) if low else number
        )
        weights.append((test, b.integer(weight)))
        values.append((test, value))
    return b.case(weights, b.integer(0)), b.case(values, d.literal(0.0, "float64"))


def _digits_step(d: Dialect) -> Step:
    """Return the step that counts both operands' decimal digits (nx, ny)."""
    small = d.types["int32"]

    def step(v: Named) -> Parts:
        counts = [
            ("n" + name, d.length(d.to_text(b.cast(v(name), d.decimal(18, 0)))), small) for name in "xy"
        ]
        return [
            ("x", v("x"), numeric.UNSCALED), ("sx", v("sx"), small), ("y", v("y"), numeric.UNSCALED),
            ("sy", v("sy"), small), ("n", v("n"), d.types["bool"]), *counts,
        ]  # fmt: skip

    return step


def _group(d: Dialect, x: Node, digits: Node, scale: Node) -> Piece:
    """Return the same as ``_fixed_group`` where the scale varies."""
    # 100 * 4 more, so that a whole quotient is rounded down below zero as well.
    weight = b.op(
        "-", b.op("//", b.op("+", b.op("-", digits, scale), b.integer(399)), b.integer(4)), b.integer(100)
    )
    low = b.op("+", b.op("*", weight, b.integer(4)), scale)
    ten, number = d.literal(10.0, "float64"), b.cast(x, d.types["float64"])
    value = b.case(
        [(b.op(">=", low, b.integer(0)), b.fn("floor", b.op("/", number, b.fn("pow", ten, low))))],
        b.op("*", number, b.fn("pow", ten, b.neg(low))),
    )
    nothing = b.op("=", x, b.integer(0))
    return b.case([(nothing, b.integer(0))], weight), b.case([(nothing, d.literal(0.0, "float64"))], value)
