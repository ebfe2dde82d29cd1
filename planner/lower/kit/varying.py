"""Numerics of varying scale (Floating), made fast where they are of usual size.

    value -> key (k, t)        |value| < 10**18 of at most 18 places: k = value * 10**18, and t = ''
                               all others: k = that number rounded down, at most 10**36 either way, and
                               t = a text that orders values of the same k

    1.50 (u 150, s 2)          k 1500000000000000000   t ''
    1e-20                      k 0                     t 'c0981...'
    NaN                        k 10**36                t 'e'

Keys are compared as pairs, so equal numbers are equal and order is PostgreSQL's, NaN on top. What is slow is evaluated
only for rows that need it. Sums are ``sums``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect, Named, Parts
from planner.lower.kit.value import (
    FLOATING,
    INFINITY_SCALE,
    MAX_PRECISION,
    MINUS_INFINITY_SCALE,
    NAN_SCALE,
    Fixed,
    Floating,
    Num,
    Val,
)

WIDE = numeric.UNSCALED
KEY_PLACES = 18
KEY_DIGITS = 36
KEY_TIERS = ((9, 27), (0, 18))  # with 18 places, below 10**36
SCALE_BITS = 64  # a key's room for a scale, 0 .. 18
wide = numeric.wide
Aggregate = Callable[[str, Node], Node]


def sized(u: Node, s: Node, places: tuple[int, int], tiers: Sequence[tuple[int, int]]) -> Node:
    """Return whether ``s`` lies within ``places`` and ``|u|`` below a bound that depends on it; NULL of NULL.

    A tier (scale, digits) means ``|u| < 10**digits`` from that scale on; the largest scale comes first.
    """
    bounds = [(b.op(">=", s, b.integer(scale)), wide(10**digits)) for scale, digits in tiers[:-1]]
    negated = [(test, wide(-(10**digits))) for (test, _), (_, digits) in zip(bounds, tiers, strict=False)]
    least = tiers[-1][1]
    above = b.case(bounds, wide(10**least)) if bounds else wide(10**least)
    below = b.case(negated, wide(-(10**least))) if bounds else wide(-(10**least))
    in_range = b.and_(b.op(">=", s, b.integer(places[0])), b.op("<=", s, b.integer(places[1])))
    return b.and_(in_range, b.op("<", u, above), b.op(">", u, below))


def raised(d: Dialect, u: Node, s: Node, places: int) -> Node:
    """Return ``u * 10**(places - s)`` for ``0 <= s <= places``."""
    return b.cast(b.op("*", u, numeric.power(d, b.op("-", b.integer(places), s), places)), WIDE)


def quotient(d: Dialect, dividend: Node, divisor: Node) -> Node:
    """Return the quotient of two DECIMAL(38, 0), ``divisor`` above zero, cut towards zero."""
    magnitude = d.integer_divide(b.fn("abs", dividend), divisor)
    return b.case([(b.op("<", dividend, wide(0)), b.neg(magnitude))], magnitude)


# --- keys ---------------------------------------------------------------------------------------


def _usual(x: Node) -> Node:
    return sized(b.field(x, "u"), b.field(x, "s"), (0, KEY_PLACES), KEY_TIERS)


def _usual_key(d: Dialect, x: Node) -> Node:
    return raised(d, b.field(x, "u"), b.field(x, "s"), KEY_PLACES)


def _unusual_key(d: Dialect, x: Node) -> Node:
    """Return the key of a value that is not ``_usual``; NULL of NULL."""
    small, zero, top = d.types["int32"], wide(0), 10**KEY_DIGITS

    def opened(v: Named) -> Parts:
        u, s = b.field(v("v"), "u"), b.field(v("v"), "s")
        divided = b.and_(b.op(">", s, b.integer(KEY_PLACES)), b.op("<=", s, b.integer(KEY_PLACES + 37)))
        unit = b.case([(divided, numeric.pow10(d, b.op("-", s, b.integer(KEY_PLACES))))], wide(1))
        magnitude = b.fn("abs", u)
        return [
            ("u", u, WIDE), ("s", s, small), ("m", magnitude, WIDE), ("unit", unit, WIDE),
            ("t", d.to_text(magnitude), d.types["text"]),
        ]  # fmt: skip

    def divided(v: Named) -> Parts:
        return [
            ("u", v("u"), WIDE), ("s", v("s"), small), ("q", d.integer_divide(v("m"), v("unit")), WIDE),
            ("r", b.op("%", v("m"), v("unit")), WIDE), ("m", v("m"), WIDE), ("t", text_key(d, v("u"), v("s"), v("t")), d.types["text"]),
        ]  # fmt: skip

    def last(v: Named) -> Node:
        u, s, rest = v("u"), v("s"), b.op("<>", v("r"), zero)
        below = b.op("<", u, zero)
        carried = b.cast(b.op("+", v("q"), b.case([(rest, b.integer(1))], b.integer(0))), WIDE)
        floor = b.case([(below, b.neg(carried))], v("q"))
        clamped = b.fn("greatest", b.fn("least", floor, wide(top)), wide(-top))
        limit = b.case([(below, wide(-top))], wide(top))
        # Of usual scale, but of more digits than are quick to tell: within 10**18 the key is the same.
        fits = b.op("<", v("m"), numeric.pow10(d, b.op("+", s, b.integer(KEY_DIGITS - KEY_PLACES))))
        fits = b.and_(b.op(">=", s, b.integer(0)), b.op("<=", s, b.integer(KEY_PLACES)), fits)
        k = b.case(
            [
                (b.op("=", s, b.integer(MINUS_INFINITY_SCALE)), wide(-top)),
                (b.op("<", s, b.integer(0)), wide(top)),
                (fits, numeric.shift_up(d, u, b.op("-", b.integer(KEY_PLACES), s))),
                (b.op("<=", s, b.integer(KEY_PLACES)), limit),
                (b.op("<=", s, b.integer(KEY_PLACES + 37)), clamped),
                (below, wide(-1)),
            ],
            zero,
        )
        exact = b.or_(
            b.and_(
                b.op(">", s, b.integer(KEY_PLACES)), b.op("<=", s, b.integer(KEY_PLACES + 37)),
                b.op("=", v("r"), zero), b.op("<", v("q"), wide(top)),
            ),
            b.and_(b.op("=", u, zero), b.op(">=", s, b.integer(0))),
            fits,
        )  # fmt: skip
        made = d.struct(d.types["numeric_key"], ("k", k), ("t", b.case([(exact, b.string(""))], v("t"))))
        return b.case([(b.is_null(u, True), made)], b.null())

    return d.chain([("v", x, d.types["numeric"])], [opened, divided], last)


def text_key(d: Dialect, u: Node, s: Node, digits: Node) -> Node:
    """Return a text that orders as the numbers do: NaN above Infinity; for ``u`` with ``digits`` and scale ``s``.

    A letter for sign and kind, the decimal exponent in five digits, 38 digits; both complemented below zero.
    """

    def padded(text: Node, width: int) -> Node:
        return b.fn("lpad", text, b.integer(width), b.string("0"))

    exponent = b.op("+", b.op("-", d.length(digits), s), b.integer(20000))
    mantissa = b.fn("rpad", digits, b.integer(MAX_PRECISION), b.string("0"))
    complement = b.op("-", wide(10**MAX_PRECISION - 1), b.cast(mantissa, WIDE))
    below = b.op("-", b.integer(99999), exponent)
    return b.case(
        [
            (b.op("=", s, b.integer(NAN_SCALE)), b.string("e")),
            (b.op("=", s, b.integer(INFINITY_SCALE)), b.string("d")),
            (b.op("=", s, b.integer(MINUS_INFINITY_SCALE)), b.string("0")),
            (b.op("=", u, b.integer(0)), b.string("b")),
            (
                b.op("<", u, b.integer(0)),
                b.fn(
                    "concat",
                    b.string("a"),
                    padded(d.to_text(below), 5),
                    padded(d.to_text(complement), MAX_PRECISION),
                ),
            ),
            (
                b.op(">", u, b.integer(0)),
                b.fn("concat", b.string("c"), padded(d.to_text(exponent), 5), mantissa),
            ),
        ],
        b.cast(b.null(), d.types["text"]),
    )


def _text_of(d: Dialect, x: Node) -> Node:
    u, s = b.field(x, "u"), b.field(x, "s")
    return text_key(d, u, s, d.to_text(b.fn("abs", u)))


def _always_usual(num: Num | None) -> bool:
    """Return whether every value of a form has a key without a text."""
    return (
        isinstance(num, Fixed)
        and num.scale <= KEY_PLACES
        and num.precision - num.scale <= KEY_DIGITS - KEY_PLACES
    )


def pair(d: Dialect, value: Val) -> tuple[Node, Node]:
    """Return the parts (k, t) of a numeric's key; both NULL for NULL. The node is used more than once."""
    num = value.num
    if isinstance(num, Fixed) and _always_usual(num):
        unscaled = numeric.unscaled_of(d, value.node, num)
        if num.scale < KEY_PLACES:
            unscaled = b.cast(b.op("*", unscaled, wide(10 ** (KEY_PLACES - num.scale))), WIDE)
        text = b.case([(b.is_null(value.node, True), b.string(""))])
        return unscaled, b.string("") if value.is_constant and value.constant is not None else text
    x = numeric.to_floating(d, value)
    usual, other = _usual(x), _unusual_key(d, x)
    return (
        b.case([(usual, _usual_key(d, x))], b.field(other, "k")),
        b.case([(usual, b.string(""))], b.field(other, "t")),
    )


def key(d: Dialect, value: Val) -> Node:
    """Return the key as one STRUCT(k, t), NULL for NULL: for GROUP BY, DISTINCT, joins."""

    def made(x: Node) -> Node:
        fast = d.struct(d.types["numeric_key"], ("k", _usual_key(d, x)), ("t", b.string("")))
        return b.case([(_usual(x), fast)], _unusual_key(d, x))

    if isinstance(value.num, Floating):
        return d.let([value.node], made)
    if value.num is not None and value.fixed.dynamic is not None:
        return d.let([numeric.to_floating(d, value)], made)

    def split(x: Node) -> Node:
        k, t = pair(d, Val(x, value.type, value.num, value.constant))
        return b.case([(b.is_null(x, True), d.struct(d.types["numeric_key"], ("k", k), ("t", t)))], b.null())

    return d.let([value.node], split)


def sort_keys(d: Dialect, value: Val) -> list[Node]:
    """Return what to order by, most significant first."""
    if b.is_simple(value.node):
        return list(pair(d, value))
    return [key(d, value)]


def compare(d: Dialect, symbol: str, left: Val, right: Val) -> Node:
    """Return ``left symbol right`` of numerics of which one at least is Floating.

    Order is never asked of whole keys: DuckDB makes BETWEEN of such tests and then refuses structs.
    """
    for value, constant, turned in ((left, right, False), (right, left, True)):
        if isinstance(value.num, Floating) and isinstance(constant.constant, Decimal):
            return _compare_constant(d, _MIRRORED[symbol] if turned else symbol, value, constant)
    simple = b.is_simple(left.node) and b.is_simple(right.node)
    if simple and d.name == "spark":
        return _compare_usual_first(d, symbol, left, right)
    if simple:
        return _compare_pairs(symbol, pair(d, left), pair(d, right))
    if symbol in ("=", "<>"):
        return b.op(symbol, key(d, left), key(d, right))
    sides = [(n, key(d, value), d.types["numeric_key"]) for n, value in (("l", left), ("r", right))]
    return d.chain(sides, [], lambda v: _compare_pairs(symbol, _split(v("l")), _split(v("r"))))


def _compare_usual_first(d: Dialect, symbol: str, left: Val, right: Val) -> Node:
    """Return ``left symbol right`` of simple nodes: of usual values by two integers, of others by their digits.

    Spark takes long to analyse long expressions, so what is for unusual values is short; it evaluates that,
    which it does not compile, for those alone.
    """
    usual: list[Node] = []
    numbers: list[Node] = []
    for value in (left, right):
        if _always_usual(value.num):
            numbers.append(pair(d, value)[0])
        else:
            x = numeric.to_floating(d, value)
            usual.append(_usual(x))
            numbers.append(_usual_key(d, x))
    return b.case([(b.and_(*usual), b.op(symbol, *numbers))], _compare_digits(d, symbol, left, right))


def _compare_digits(d: Dialect, symbol: str, left: Val, right: Val) -> Node:
    """Return ``left symbol right`` by rank and digits, for all values.

        -0.05  rank -1  digits   '5'         0.3  rank 1  digits '3'         NaN  rank 3
         1.25  rank  1  digits '125'           2  rank 1  digits '2' '00'    as many places as the other has

    Of one rank, digits are brought to one length and compared as texts; turned round below zero.
    """
    text, small, zero = d.types["text"], d.types["int32"], b.integer(0)
    first: list[tuple[str, Node, str]] = []
    for name, value in (("l", left), ("r", right)):
        if isinstance(value.num, Fixed) and value.num.dynamic is None:
            parts = numeric.unscaled_of(d, value.node, value.num), b.integer(value.num.scale)
        else:
            x = numeric.to_floating(d, value)
            parts = b.field(x, "u"), b.field(x, "s")
        first += [(f"{name}u", parts[0], WIDE), (f"{name}s", parts[1], small)]

    def digits(v: Named) -> Parts:
        made: list[tuple[str, Node, str]] = []
        for own, other in (("l", "r"), ("r", "l")):
            u, s = v(f"{own}u"), v(f"{own}s")
            specials = [(MINUS_INFINITY_SCALE, -2), (INFINITY_SCALE, 2), (NAN_SCALE, 3)]
            arms = [(b.op("=", s, b.integer(scale)), b.integer(rank)) for scale, rank in specials]
            more = b.fn("repeat", b.string("0"), b.op("-", v(f"{other}s"), s))  # none where that is below 1
            made.append((f"{own}k", b.case(arms, b.fn("sign", u)), small))
            made.append((own, b.fn("concat", d.to_text(b.fn("abs", u)), more), text))
        return made

    def last(v: Named) -> Node:
        size = b.fn("greatest", d.length(v("l")), d.length(v("r")))
        ours, theirs = (b.fn("lpad", v(name), size, b.string("0")) for name in ("l", "r"))
        below = b.op("<", v("lk"), zero)
        same = b.case([(below, b.op(symbol, theirs, ours))], b.op(symbol, ours, theirs))
        return b.case([(b.op("<>", v("lk"), v("rk")), b.op(symbol, v("lk"), v("rk")))], same)

    return d.chain(first, [digits], last)


def _split(whole: Node) -> tuple[Node, Node]:
    return b.field(whole, "k"), b.field(whole, "t")


def _compare_pairs(symbol: str, left: tuple[Node, Node], right: tuple[Node, Node]) -> Node:
    (lk, lt), (rk, rt) = left, right
    if symbol == "=":
        return b.and_(b.op("=", lk, rk), b.op("=", lt, rt))
    if symbol == "<>":
        return b.or_(b.op("<>", lk, rk), b.op("<>", lt, rt))
    return b.or_(b.op(symbol[0], lk, rk), b.and_(b.op("=", lk, rk), b.op(symbol, lt, rt)))


_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _compare_constant(d: Dialect, symbol: str, value: Val, constant: Val) -> Node:
    """Return ``value symbol constant``: for usual values a comparison of two integers."""
    if not isinstance(constant.constant, Decimal):
        raise AssertionError(f"a numeric constant is {type(constant.constant).__name__}")
    number, theirs = constant.constant, pair(d, constant)
    exponent = number.as_tuple().exponent
    usual = (
        isinstance(exponent, int) and -exponent <= KEY_PLACES and number.adjusted() < KEY_DIGITS - KEY_PLACES
    )

    def compared(x: Node) -> Node:
        if not usual:
            return _compare_pairs(symbol, pair(d, Val(x, value.type, FLOATING)), theirs)
        bound = wide(numeric.unscaled_integer(number, KEY_PLACES))
        other = d.let(
            [_unusual_key(d, x)], lambda whole: _compare_pairs(symbol, _split(whole), (bound, b.string("")))
        )
        return b.case([(_usual(x), b.op(symbol, _usual_key(d, x), bound))], other)

    return d.let([value.node], compared)


# --- extremes ------------------------------------------------------------------------------------


def extreme(
    d: Dialect, value: Val, greatest: bool, call: Aggregate, by_key: Callable[[Node, Node], Node]
) -> Node:
    """Return the greatest or least value; among equal ones the greatest or least scale.

    Usual values carry their scale below their key in one integer, so the engine's own max or min finds them.

    Args:
        d: the dialect.
        value: a Floating value, evaluated several times.
        greatest: max rather than min.
        call: makes an aggregate call of one argument.
        by_key: makes the aggregate that picks the value with the extreme key.
    """

    def packed(x: Node) -> Node:
        both = b.op("+", b.op("*", _usual_key(d, x), wide(SCALE_BITS)), b.cast(b.field(x, "s"), WIDE))
        return b.case([(_usual(x), b.cast(both, WIDE))])

    def unusual(x: Node) -> Node:
        return b.case([(_usual(x), b.cast(b.null(), d.types["numeric"]))], x)

    def unusual_text(x: Node) -> Node:
        return b.case([(_usual(x), b.cast(b.null(), d.types["text"]))], _text_of(d, x))

    node = [value.node]
    best = call("max" if greatest else "min", d.let(node, packed))
    other = by_key(d.let(node, unusual), d.let(node, unusual_text))

    def scale(v: Named) -> Parts:
        low = b.op("%", b.op("+", b.op("%", v("p"), wide(SCALE_BITS)), wide(SCALE_BITS)), wide(SCALE_BITS))
        return [("p", v("p"), WIDE), ("s", b.cast(low, d.types["int32"]), d.types["int32"]), ("v", v("v"), d.types["numeric"])]  # fmt: skip

    def unpacked(v: Named) -> Parts:
        k = quotient(d, b.cast(b.op("-", v("p"), b.cast(v("s"), WIDE)), WIDE), wide(SCALE_BITS))
        return [("k", k, WIDE), ("s", v("s"), d.types["int32"]), ("v", v("v"), d.types["numeric"])]

    def last(v: Named) -> Node:
        unit = numeric.power(d, b.op("-", b.integer(KEY_PLACES), v("s")))
        found = d.struct(d.types["numeric"], ("u", quotient(d, v("k"), b.cast(unit, WIDE))), ("s", v("s")))
        theirs = b.field(_unusual_key(d, v("v")), "k")
        # Theirs may have the same k only with a text, which is above '': then it is the greater.
        ours_first = b.op(">" if greatest else "<=", v("k"), theirs)
        return b.case(
            [
                (b.and_(b.is_null(v("k")), b.is_null(v("v"))), b.null()),
                (b.is_null(v("k")), v("v")),
                (b.is_null(v("v")), found),
                (ours_first, found),
            ],
            v("v"),
        )

    return d.chain([("p", best, WIDE), ("v", other, d.types["numeric"])], [scale, unpacked], last)


__all__ = ["FLOATING", "compare", "extreme", "key", "pair", "sort_keys"]
