"""Numeric arithmetic in the engines: exact to 38 digits, with PostgreSQL's display scales.

    add, subtract   scale max(s1, s2)          multiply   s1 + s2         sum   the largest scale met
    divide, avg     at least 16 significant digits, by the rule of PostgreSQL's select_div_scale

Fixed operands stay DECIMAL as long as the scale is the same for every row. Quotients are Floating: their scale
depends on the magnitudes. What does not fit 38 digits raises 22003; nothing is ever rounded silently. NaN and the
infinities can be stored, compared, grouped and returned; arithmetic on them in an engine raises 22003.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeAlias

from planner import facts as f
from planner.base.errors import not_supported
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect, Named, Parts
from planner.lower.kit.value import (
    FLOATING,
    INFINITY_SCALE,
    INTEGER_DIGITS,
    MAX_PRECISION,
    MINUS_INFINITY_SCALE,
    NAN_SCALE,
    Fixed,
    Floating,
    Num,
    Val,
    kind_of,
)
from planner.types import SqlType

Piece: TypeAlias = tuple[Node, Node]  # unscaled value and scale

NUMERIC = SqlType(f.NUMERIC)
UNSCALED = "DECIMAL(38, 0)"
USUAL_PLACES = 18  # digits to shift by which powers come from a list
PIECES_NODES = 300  # of an expression that is repeated rather than bound to a variable
FEW_SCALES = 12
OVERFLOW = ("22003", "value overflows numeric format")


def _capped(precision: int, scale: int, dynamic: Node | None = None) -> Fixed:
    if scale > MAX_PRECISION:
        raise not_supported(f"numeric of scale {scale} in this executor")
    return Fixed(min(max(precision, scale, 1), MAX_PRECISION), scale, dynamic)


def numeric(node: Node, num: Num) -> Val:
    """Return a numeric value."""
    return Val(node, NUMERIC, num)


def from_integer(d: Dialect, value: Val) -> Val:
    """Return an integer as numeric."""
    digits = INTEGER_DIGITS[kind_of(value.type.oid)]
    if value.is_constant and isinstance(value.constant, int):
        return constant(d, Decimal(value.constant))
    return numeric(b.cast(value.node, d.decimal(digits, 0)), Fixed(digits, 0))


def unscaled_integer(value: Decimal, scale: int) -> int:
    """Return ``value * 10**scale`` exactly; ``scale`` is at least the value's own."""
    sign, digits, exponent = value.as_tuple()
    magnitude: int = int("".join(map(str, digits))) * 10 ** (int(exponent) + scale)
    return -magnitude if sign else magnitude


def constant(d: Dialect, value: Decimal) -> Val:
    """Return a numeric constant with its own display scale.

    Raises:
        SqlError: 0A000 past 38 digits.
    """
    if not value.is_finite():
        scale = NAN_SCALE if value.is_nan() else INFINITY_SCALE if value > 0 else MINUS_INFINITY_SCALE
        node = d.struct(d.types["numeric"], ("u", b.integer(0)), ("s", b.integer(scale)))
        return Val(node, NUMERIC, FLOATING, value)
    scale = max(-int(value.as_tuple().exponent), 0)
    digits = max(value.adjusted() + 1, 0) + scale
    if digits > MAX_PRECISION:
        raise not_supported("a numeric constant of more than 38 digits in this executor")
    num = Fixed(max(digits, 1), scale)
    return Val(b.cast(b.string(format(value, "f")), d.decimal(num.precision, scale)), NUMERIC, num, value)


def scale_of(num: Fixed) -> Node:
    """Return the display scale of a Fixed value as an expression."""
    return num.dynamic if num.dynamic is not None else b.integer(num.scale)


def pow10(d: Dialect, exponent: Node) -> Node:
    """Return 10**exponent as DECIMAL(38, 0), for 0 <= exponent <= 37."""

    # Powers up to 10**18 are exact as float8, and so are products of two of them as DECIMAL.
    def power(node: Node) -> Node:
        return b.cast(b.fn("pow", d.literal(10.0, "float64"), node), UNSCALED)

    low, high = (
        b.fn("least", exponent, b.integer(19)),
        b.fn("greatest", b.op("-", exponent, b.integer(19)), b.integer(0)),
    )
    return b.cast(b.op("*", power(low), power(high)), UNSCALED)


def wide(value: int) -> Node:
    """Return a DECIMAL(38, 0) literal."""
    return b.cast(b.string(str(value)), UNSCALED)


def power(d: Dialect, exponent: Node, last: int = USUAL_PLACES) -> Node:
    """Return 10**exponent as a DECIMAL, for 0 <= exponent <= last <= USUAL_PLACES: quicker than ``pow10``."""
    items = b.array(*(b.integer(10**n) for n in range(last + 1)))
    powers = b.cast(items, d.list_of(d.decimal(last + 1, 0)))
    return d.list_item(powers, b.op("+", exponent, b.integer(1)))


def shift_up(d: Dialect, unscaled: Node, places: Node) -> Node:
    """Return ``unscaled * 10**places`` (places >= 0); 22003 past 38 digits. Operands must be simple."""
    return b.case(
        [
            (b.op("=", places, b.integer(0)), unscaled),
            (
                b.and_(b.op(">", places, b.integer(0)), b.op("<=", places, b.integer(USUAL_PLACES))),
                b.cast(b.op("*", unscaled, power(d, places)), UNSCALED),
            ),
            (b.op("=", unscaled, b.integer(0)), unscaled),
            (b.op(">", places, b.integer(37)), d.error(*OVERFLOW, unscaled)),
        ],
        b.cast(b.op("*", unscaled, pow10(d, places)), UNSCALED),
    )


def to_floating(d: Dialect, value: Val) -> Node:
    """Return the STRUCT(u, s) of a numeric value; NULL stays NULL."""
    if isinstance(value.num, Floating):
        return value.node
    num = value.fixed
    if value.is_constant and isinstance(value.constant, Decimal) and num.dynamic is None:
        unscaled = unscaled_integer(value.constant, num.scale)
        return d.struct(
            d.types["numeric"], ("u", b.cast(b.string(str(unscaled)), UNSCALED)), ("s", b.integer(num.scale))
        )

    def struct(x: Node, unscaled: Node, scale: Node) -> Node:
        made = d.struct(d.types["numeric"], ("u", unscaled), ("s", b.cast(scale, d.types["int32"])))
        return b.case([(b.is_null(x, True), made)], b.null())

    if num.dynamic is None:
        return d.repeat([value.node], lambda x: struct(x, unscaled_of(d, x, num), b.integer(num.scale)))
    if d.name == "spark" and num.scale <= FEW_SCALES:
        return d.let([value.node, num.dynamic], lambda x, s: struct(x, _at_scale(d, x, s, num.scale), s))
    dynamic = num.dynamic

    def body(x: Node) -> Node:
        unscaled = _drop_zeros(d, unscaled_of(d, x, num), b.op("-", b.integer(num.scale), dynamic))
        return struct(x, unscaled, dynamic)

    return d.repeat([value.node], body)


def _at_scale(d: Dialect, node: Node, scale: Node, most: int) -> Node:
    """Return a DECIMAL's unscaled value at a scale of 0 to ``most`` that has all its places: a cast for each of them.

    Spark takes long to analyse a division, see ``division``.
    """
    arms = [
        (b.op("=", scale, b.integer(s)), unscaled_of(d, b.cast(node, d.decimal(MAX_PRECISION, s)), Fixed(MAX_PRECISION, s)))
        for s in range(most)
    ]  # fmt: skip
    return b.case(arms, unscaled_of(d, b.cast(node, d.decimal(MAX_PRECISION, most)), Fixed(MAX_PRECISION, most)))  # fmt: skip


def unscaled_of(d: Dialect, node: Node, num: Fixed) -> Node:
    """Return ``node * 10**scale`` of a DECIMAL as DECIMAL(38, 0); NULL of NULL."""
    if num.scale == 0:
        return b.cast(node, UNSCALED)
    if num.precision + num.scale <= MAX_PRECISION:
        unit = b.cast(b.string("1" + "0" * num.scale), d.decimal(num.scale + 1, 0))
        if d.name == "duckdb" and num.precision <= 18 < num.precision + num.scale:
            # DuckDB keeps the product of two operands of up to 18 digits at 18 digits.
            node = b.cast(node, d.decimal(num.precision + num.scale, num.scale))
        return b.cast(b.op("*", node, unit), UNSCALED)
    # The product might pass 38 digits although the digits themselves do not: go by text.
    return b.cast(b.fn("replace", d.to_text(node), b.string("."), b.string("")), UNSCALED)


def _drop_zeros(d: Dialect, unscaled: Node, places: Node) -> Node:
    """Return ``unscaled / 10**places`` where that is exact."""
    magnitude = d.integer_divide(b.fn("abs", unscaled), pow10(d, places))
    return b.case([(b.op("<", unscaled, b.integer(0)), b.neg(magnitude))], magnitude)


def floating(d: Dialect, value: Val) -> Val:
    """Return the value in Floating form."""
    return value if isinstance(value.num, Floating) else Val(to_floating(d, value), value.type, FLOATING)


def _finite(d: Dialect, structs: Sequence[Node], result: Node) -> Node:
    """Guard ``result``: NULL if any struct is NULL, 22003 if any is NaN or infinite."""
    return b.case(
        [
            (b.or_(*(b.is_null(s) for s in structs)), b.null()),
            (
                b.or_(*(b.op("<", b.field(s, "s"), b.integer(0)) for s in structs)),
                d.error(*OVERFLOW, b.field(structs[0], "s")),
            ),
        ],
        result,
    )


def make(d: Dialect, unscaled: Node, scale: Node) -> Node:
    """Return the STRUCT(u, s) of two integers."""
    return d.struct(d.types["numeric"], ("u", unscaled), ("s", b.cast(scale, d.types["int32"])))


def _greatest(left: Node, right: Node) -> Node:
    return b.fn("greatest", left, right)


def _both_fixed(left: Val, right: Val) -> bool:
    return isinstance(left.num, Fixed) and isinstance(right.num, Fixed)


def _dynamic(left: Fixed, right: Fixed, combine: str) -> Node | None:
    if left.dynamic is None and right.dynamic is None:
        return None
    if combine == "max":
        return _greatest(scale_of(left), scale_of(right))
    return b.op("+", scale_of(left), scale_of(right))


def add(d: Dialect, left: Val, right: Val, symbol: str = "+") -> Val:
    """Return ``left + right`` (or ``-``)."""
    if _both_fixed(left, right):
        x, y = left.fixed, right.fixed
        scale = max(x.scale, y.scale)
        num = _capped(
            max(x.precision - x.scale, y.precision - y.scale) + scale + 1, scale, _dynamic(x, y, "max")
        )
        return numeric(d.decimal_op(symbol, left, right, num), num)

    def body(p: Node, q: Node) -> Node:
        (pu, ps), (qu, qs) = ((b.field(x, "u"), b.field(x, "s")) for x in (p, q))
        unscaled, scale = _sum_of(d, symbol, (pu, ps), (qu, qs))
        return _finite(d, [p, q], make(d, unscaled, scale))

    return _in_pieces(d, left, right, lambda x, y: _sum_of(d, symbol, x, y), body)


def _sum_of(d: Dialect, symbol: str, left: Piece, right: Piece) -> Piece:
    (pu, ps), (qu, qs) = left, right
    arms = [(b.op("=", ps, qs), b.op(symbol, pu, qu))]
    scales = [(b.op(">=", ps, qs), ps)]
    # Scales are not negative here: what cannot be is left out.
    if not b.is_zero(ps):
        arms.append((b.op(">", ps, qs), b.op(symbol, pu, shift_up(d, qu, b.op("-", ps, qs)))))
    if not b.is_zero(qs):
        arms.append((b.op("<", ps, qs), b.op(symbol, shift_up(d, pu, b.op("-", qs, ps)), qu)))
        scales.append((b.op("<", ps, qs), qs))
    return b.case([(test, b.cast(value, UNSCALED)) for test, value in arms]), b.case(scales)


def _piece(d: Dialect, value: Val) -> tuple[Piece, Node | None, Node | None] | None:
    """Return a value's (u, s) where they cost little, what is NULL if it is, and what tells that it is special."""
    if isinstance(value.num, Floating):
        if value.num.pieces is not None:
            return value.num.pieces, value.node, None
        if not b.is_column(value.node):
            return None
        s = b.field(value.node, "s")
        return (b.field(value.node, "u"), s), value.node, b.op("<", s, b.integer(0))
    num = value.fixed
    if num.dynamic is not None or not b.is_simple(value.node):
        return None
    if isinstance(value.constant, Decimal):
        return (wide(unscaled_integer(value.constant, num.scale)), b.integer(num.scale)), None, None
    return (unscaled_of(d, value.node, num), b.integer(num.scale)), value.node, None


def _in_pieces(
    d: Dialect,
    left: Val,
    right: Val,
    combine: Callable[[Piece, Piece], Piece],
    body: Callable[[Node, Node], Node],
) -> Val:
    """Return an operation on small operands as pieces too, which need no variables; else ``body`` over structs."""
    first, second = _piece(d, left), _piece(d, right)
    if first is not None and second is not None:
        unscaled, scale = combine(first[0], second[0])
        special = [test for _, _, test in (first, second) if test is not None]
        if special:
            unscaled = b.case([(b.or_(*special), d.error(*OVERFLOW, first[0][1] if first[2] else second[0][1]))], unscaled)  # fmt: skip
        if b.size(unscaled, PIECES_NODES) < PIECES_NODES:
            nulls = [b.is_null(node) for _, node, _ in (first, second) if node is not None]
            made = b.case([(b.or_(*nulls), b.null())], make(d, unscaled, scale))
            return numeric(made, Floating((unscaled, scale)))
    return numeric(d.let([to_floating(d, left), to_floating(d, right)], body), FLOATING)


def multiply(d: Dialect, left: Val, right: Val) -> Val:
    """Return ``left * right``."""
    if _both_fixed(left, right):
        x, y = left.fixed, right.fixed
        num = _capped(x.precision + y.precision, x.scale + y.scale, _dynamic(x, y, "+"))
        return numeric(d.decimal_op("*", left, right, num), num)

    def body(p: Node, q: Node) -> Node:
        product = b.cast(b.op("*", b.field(p, "u"), b.field(q, "u")), UNSCALED)
        scale = b.op("+", b.field(p, "s"), b.field(q, "s"))
        return _finite(d, [p, q], make(d, product, scale))

    def combine(p: Piece, q: Piece) -> Piece:
        return b.cast(b.op("*", p[0], q[0]), UNSCALED), b.op("+", p[1], q[1])

    return _in_pieces(d, left, right, combine, body)


def unify(d: Dialect, items: Sequence[Val]) -> tuple[list[Node], Num, list[Node] | None]:
    """Bring numeric values to one form for CASE, VALUES, set operations; each keeps its display scale.

    Returns:
        The converted nodes, their form, and, where the form is Fixed but the scales differ, each value's scale:
        the caller then builds the ``dynamic`` scale from them, or asks ``unify_columns`` for a form without.
    """
    # An untyped NULL has no scale of its own to keep.
    known = [v for v in items if not (v.is_constant and v.constant is None)]
    if all(isinstance(v.num, Fixed) for v in known):
        scale = max((v.fixed.scale for v in known), default=0)
        whole = max((v.fixed.precision - v.fixed.scale for v in known), default=1)
        if whole + scale <= MAX_PRECISION or len({v.fixed.scale for v in known}) <= 1:
            num = Fixed(min(max(whole + scale, 1), MAX_PRECISION), scale)
            nodes = [
                v.node if v.num == num else b.cast(v.node, d.decimal(num.precision, scale)) for v in items
            ]
            if all(v.fixed.scale == scale and v.fixed.dynamic is None for v in known):
                return nodes, num, None
            scales = [scale_of(v.fixed) if isinstance(v.num, Fixed) else b.integer(0) for v in items]
            return nodes, num, scales
    return [to_floating(d, v) for v in items], FLOATING, None


def unify_columns(d: Dialect, items: Sequence[Val]) -> tuple[list[Node], Num]:
    """Like ``unify``, for places where a value is one column: differing scales make it Floating."""
    nodes, num, scales = unify(d, items)
    if scales is None:
        return nodes, num
    return [to_floating(d, v) for v in items], FLOATING


def rescale_floating(d: Dialect, value: Val, scale: int) -> Node:
    """Return the unscaled DECIMAL(38, 0) of a Floating value rounded (half away) to ``scale`` places."""
    small = d.types["int32"]

    def magnitudes(v: Named) -> Parts:
        u, s = b.field(v("v"), "u"), b.field(v("v"), "s")
        places = b.op("-", s, b.integer(scale))
        unit = b.case(
            [
                (
                    b.or_(b.op("<=", places, b.integer(0)), b.op(">", places, b.integer(37))),
                    b.cast(b.integer(1), UNSCALED),
                )
            ],
            pow10(d, places),
        )
        return [("u", _finite(d, [v("v")], u), UNSCALED), ("p", places, small), ("unit", unit, UNSCALED)]

    def divided(v: Named) -> Parts:
        magnitude = b.fn("abs", v("u"))
        return [
            ("u", v("u"), UNSCALED), ("p", v("p"), small), ("unit", v("unit"), UNSCALED),
            ("q", d.integer_divide(magnitude, v("unit")), UNSCALED), ("r", b.op("%", magnitude, v("unit")), UNSCALED),
        ]  # fmt: skip

    def last(v: Named) -> Node:
        up = b.op(">=", v("r"), b.op("-", v("unit"), v("r")))
        away = b.case([(up, b.cast(b.op("+", v("q"), b.integer(1)), UNSCALED))], v("q"))
        signed = b.case([(b.op("<", v("u"), b.integer(0)), b.neg(away))], away)
        return b.case(
            [
                (b.op("<=", v("p"), b.integer(0)), shift_up(d, v("u"), b.neg(v("p")))),
                (b.op(">", v("p"), b.integer(37)), b.cast(b.integer(0), UNSCALED)),
            ],
            signed,
        )

    def rounded(x: Node) -> Node:
        u, s = b.field(x, "u"), b.field(x, "s")
        longer = d.chain([("v", x, d.types["numeric"])], [magnitudes, divided], last)
        kept = b.and_(b.op(">=", s, b.integer(0)), b.op("<=", s, b.integer(scale)))
        return b.case([(kept, shift_up(d, u, b.op("-", b.integer(scale), s)))], longer)

    return d.let([value.node], rounded)


def round_to(d: Dialect, value: Val, places: int) -> Val:
    """Return ``round(value, places)``: half away from zero, display scale ``max(places, 0)``."""
    scale = max(places, 0)
    if scale > MAX_PRECISION:
        raise not_supported(f"numeric of scale {scale} in this executor")
    if isinstance(value.num, Fixed):
        num = value.num
        if places >= 0:
            target = _capped(num.precision - num.scale + places + (1 if places < num.scale else 0), places)
            return numeric(b.cast(value.node, d.decimal(target.precision, places)), target)
        whole = _capped(num.precision - num.scale + 1, 0)
        unit = b.cast(b.string("1" + "0" * -places), UNSCALED)

        def body(x: Node) -> Node:
            half = b.cast(b.string("5" + "0" * (-places - 1)), UNSCALED)
            magnitude = b.cast(b.fn("floor", b.fn("abs", x)), UNSCALED)
            count = d.integer_divide(b.cast(b.op("+", magnitude, half), UNSCALED), unit)
            rounded = b.cast(b.op("*", count, unit), UNSCALED)
            return b.case([(b.op("<", x, b.integer(0)), b.neg(rounded))], rounded)

        return numeric(b.cast(d.repeat([value.node], body), d.decimal(whole.precision, 0)), whole)
    if places < 0:
        raise not_supported("round(numeric) to the left of the point on a varying scale in this executor")
    return numeric(
        _scaled_decimal(d, rescale_floating(d, value, scale), MAX_PRECISION, scale),
        Fixed(MAX_PRECISION, scale),
    )


def _scaled_decimal(d: Dialect, unscaled: Node, precision: int, scale: int) -> Node:
    """Return ``unscaled / 10**scale`` as DECIMAL(precision, scale); 22003 when it does not fit."""
    if scale == 0:
        return b.cast(unscaled, d.decimal(precision, 0))
    unit = b.cast(b.string("0." + "0" * (scale - 1) + "1"), d.decimal(scale, scale))
    return b.cast(b.op("*", unscaled, unit), d.decimal(precision, scale))


def coerce(d: Dialect, value: Val, num: Num) -> Val:
    """Return the value as numeric(p, s) (or as it is, for a Floating target); 22003 when it does not fit."""
    if isinstance(num, Floating) or num == value.num:
        return value
    if isinstance(value.num, Fixed):
        source = value.num
        if source.scale <= num.scale and source.precision - source.scale <= num.precision - num.scale:
            return numeric(b.cast(value.node, d.decimal(num.precision, num.scale)), num)
        return numeric(b.cast(value.node, d.decimal(num.precision, num.scale)), num)
    unscaled = rescale_floating(d, value, num.scale)
    wide = _scaled_decimal(d, unscaled, MAX_PRECISION, num.scale)
    return numeric(b.cast(wide, d.decimal(num.precision, num.scale)), num)


def to_double(d: Dialect, value: Val) -> Node:
    """Return a numeric as float8, rounded once."""
    if isinstance(value.num, Fixed):
        return d.decimal_to_double(value.node, value.num)

    def body(p: Node) -> Node:
        u, s = b.field(p, "u"), b.field(p, "s")
        digits = b.fn("concat", d.to_text(u), b.string("e-"), d.to_text(s))
        return b.case(
            [
                (b.is_null(p), b.null()),
                (b.op("=", s, b.integer(NAN_SCALE)), d.literal(float("nan"), "float64")),
                (b.op("=", s, b.integer(INFINITY_SCALE)), d.literal(float("inf"), "float64")),
                (b.op("=", s, b.integer(MINUS_INFINITY_SCALE)), d.literal(float("-inf"), "float64")),
            ],
            b.cast(digits, d.types["float64"]),
        )

    return d.let([value.node], body)
