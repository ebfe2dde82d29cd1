"""Exact sums of numerics of varying scale (Floating), cheap where the values are of usual size.

Rows are told apart by the places they need. Each class is summed with its own places, and they are joined once a group:

    class   places   scales     values below          whose
    1       8        0 .. 8     10**20                columns, products, quotients of large numbers
    2       18       9 .. 18    10**10                quotients from 10**3 on
    3       20       19, 20     10**8                 quotients of similar numbers
    4       28       21 .. 28   1                     quotients of small numbers by large ones
    rest             0 .. 36                          exact in three parts: whole, two limbs of 18 decimal places

A sum with its places is below 10**28 for one row, which leaves room for 10**10 rows. Spark, which takes long to analyse
long expressions, has the two classes of 6 and 18 places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect, Named, Parts
from planner.lower.kit.numeric import wide
from planner.lower.kit.value import Floating, Val
from planner.lower.kit.varying import Aggregate, quotient, raised, sized

WIDE: Final = numeric.UNSCALED
LIMB: Final = 18
"""Decimal places of a limb."""
LAST_PLACE: Final = 2 * LIMB
Class = tuple[int, int, Sequence[tuple[int, int]]]
"""The least scale, the places to sum with (no scale is larger), and tiers (``sized``) that keep values below 10**28."""
CLASSES: Final[dict[str, Sequence[Class]]] = {
    "duckdb": (
        (0, 8, ((4, 24), (0, 20))),
        (9, 18, ((14, 24), (10, 20), (9, 19))),
        (19, 20, ((19, 27),)),
        (21, 28, ((24, 24), (21, 21))),
    ),
    "spark": ((0, 6, ((0, 22),)), (7, 18, ((14, 24), (10, 20), (7, 17)))),
}
Stage = Callable[[Node], Node]
"""Makes a value a column of the rows that are aggregated, so that several aggregates compute it once."""


def total(d: Dialect, value: Val, call: Aggregate, stage: Stage | None = None) -> Node:
    """Return the exact sum as STRUCT(u, s) with the largest scale met; 22003 past 38 digits, for NaN and infinities.

    Args:
        d: the dialect.
        value: a Floating value, evaluated several times.
        call: makes an aggregate call of one argument.
        stage: where there is one, it holds each row's class.
    """
    classes = CLASSES[d.name]
    over = _over(d, value)
    number = None if stage is None else stage(over(lambda u, s: _class(classes, u, s)))

    def member(index: int) -> Node:
        def body(u: Node, s: Node) -> Node:
            _, places, _ = classes[index]
            value = raised(d, u, s, places)
            if number is not None:
                return b.case([(b.op("=", number, b.integer(index + 1)), value)])
            before = [(_is_in(c, u, s), b.cast(b.null(), WIDE)) for c in classes[:index]]
            return b.case([*before, (_is_in(classes[index], u, s), value)])

        return over(body)

    def rest(part: str) -> Node:
        def body(u: Node, s: Node) -> Node:
            if number is not None:
                return b.case([(b.op("=", number, b.integer(0)), _part(d, part, u, s))])
            usual = [(_is_in(c, u, s), b.cast(b.null(), WIDE)) for c in classes]
            return b.case(usual, _part(d, part, u, s))

        return over(body)

    small = d.types["int32"]
    first = [
        *((f"a{index}", call("sum", member(index)), WIDE) for index in range(len(classes))),
        # of what is there: NULL may have a scale, too
        ("s", call("max", over(lambda u, s: b.case([(b.is_null(u, negated=True), s)]))), small),
        *((part, call("sum", rest(part)), WIDE) for part in "whl"),
    ]  # fmt: skip

    def last(v: Named) -> Node:
        most = classes[-1][1]
        parts = [
            _moved(d, v(f"a{index}"), v("s"), places, most=most)
            for index, (_, places, _) in enumerate(classes)
        ]
        summed = parts[0]
        for part in parts[1:]:
            summed = b.cast(b.op("+", summed, part), WIDE)
        return b.case(
            [
                (b.is_null(v("s")), b.null()),
                (b.is_null(v("w")), d.struct(d.types["numeric"], ("u", summed), ("s", v("s")))),
            ],
            _joined(d, v, [places for _, places, _ in classes]),
        )

    return d.chain(first, [], last)


def _over(d: Dialect, value: Val) -> Callable[[Callable[[Node, Node], Node]], Node]:
    def over(body: Callable[[Node, Node], Node]) -> Node:
        if isinstance(value.num, Floating) and value.num.pieces is not None:
            return body(*value.num.pieces)
        return d.let([value.node], lambda x: body(b.field(x, "u"), b.field(x, "s")))

    return over


def _is_in(members: Class, u: Node, s: Node) -> Node:
    least, places, tiers = members
    return sized(u, s, (least, places), tiers)


def _class(classes: Sequence[Class], u: Node, s: Node) -> Node:
    """Return the number of a value's class, from 1; 0: none of them; NULL of NULL."""
    arms = [(_is_in(members, u, s), b.integer(index)) for index, members in enumerate(classes, 1)]
    return b.case([(b.is_null(u), b.null()), *arms], b.integer(0))


def _moved(d: Dialect, sum_: Node, scale: Node, places: int, *, most: int) -> Node:
    """Return a class's sum at the scale of the whole sum, ``most`` at most; 0 of NULL. No row of it had more places."""
    unit = b.cast(numeric.power(d, b.op("-", b.integer(places), scale), places), WIDE)
    arms = [(b.is_null(sum_), wide(0)), (b.op("=", scale, b.integer(places)), sum_)]
    if places < most:
        more = b.op("-", scale, b.integer(places))
        arms.append((b.op(">", scale, b.integer(places)), numeric.shift_up(d, sum_, more)))
    return b.case(arms, quotient(d, sum_, unit))


def _part(d: Dialect, part: str, u: Node, s: Node) -> Node:
    """Return the whole part (w) or a limb (h, l) of a value; 22003 where LAST_PLACE places do not hold it."""
    # NaN and the infinities have scales beyond these. The whole part is what refuses them, but an engine may ask for
    # another part first, and must not find a division by zero there.
    scale = b.fn("greatest", b.fn("least", s, b.integer(LAST_PLACE)), b.integer(0))
    limb, unit = wide(10**LIMB), numeric.pow10(d, scale)
    if part == "w":
        bad = b.or_(b.op("<", s, b.integer(0)), b.op(">", s, b.integer(LAST_PLACE)))
        return b.case([(bad, d.error(*numeric.OVERFLOW, s))], quotient(d, u, unit))
    fraction = b.op("*", b.op("%", u, unit), numeric.pow10(d, b.op("-", b.integer(LAST_PLACE), scale)))
    fraction = b.cast(fraction, WIDE)
    return quotient(d, fraction, limb) if part == "h" else b.cast(b.op("%", fraction, limb), WIDE)


def _joined(d: Dialect, totals: Named, classes: Sequence[int]) -> Node:
    """Return the sum of the parts w, h, l and of the classes' sums, given their places, at scale s.

    The parts may differ in sign: carries are cut towards zero, and what remains divides exactly.
    """
    limb, small = wide(10**LIMB), d.types["int32"]

    def sum_of(terms: Sequence[Node]) -> Node:
        made = terms[0]
        for term in terms[1:]:
            made = b.op("+", made, term)
        return b.cast(made, WIDE)

    def opened(_: Named) -> Parts:
        wholes, highs, lows = [totals("w")], [totals("h")], [b.cast(b.op("%", totals("l"), limb), WIDE)]
        highs.append(quotient(d, totals("l"), limb))
        for index, places in enumerate(classes):
            usual, unit = b.fn("coalesce", totals(f"a{index}"), wide(0)), wide(10**places)
            wholes.append(quotient(d, usual, unit))
            fraction = b.cast(b.op("%", usual, unit), WIDE)
            if places <= LIMB:
                highs.append(b.cast(b.op("*", fraction, wide(10 ** (LIMB - places))), WIDE))
            else:
                below = wide(10 ** (places - LIMB))
                highs.append(quotient(d, fraction, below))
                rest = b.cast(b.op("%", fraction, below), WIDE)
                lows.append(b.cast(b.op("*", rest, wide(10 ** (LAST_PLACE - places))), WIDE))
        return [
            *((name, sum_of(terms), WIDE) for name, terms in (("w", wholes), ("h", highs), ("l", lows))),
            ("s", totals("s"), small),
        ]  # fmt: skip

    def carry(v: Named) -> Parts:
        fraction = b.op("+", b.op("*", b.cast(b.op("%", v("h"), limb), WIDE), limb), v("l"))
        whole = b.op("+", v("w"), quotient(d, v("h"), limb))
        return [("w", b.cast(whole, WIDE), WIDE), ("f", b.cast(fraction, WIDE), WIDE), ("s", v("s"), small)]

    def join(v: Named) -> Node:
        shown = quotient(d, v("f"), numeric.pow10(d, b.op("-", b.integer(LAST_PLACE), v("s"))))
        summed = b.op("+", numeric.shift_up(d, v("w"), v("s")), shown)
        return d.struct(d.types["numeric"], ("u", b.cast(summed, WIDE)), ("s", v("s")))

    return d.chain([("z", b.integer(0), small)], [opened, carry], join)
