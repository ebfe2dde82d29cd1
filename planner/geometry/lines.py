"""Points, lines and segments: distances, where two of them meet, and the nearest point of one to another.

    near        a = b +- EPSILON
    meeting     the point of both lines (None: parallel, or the same line)
    nearest     (distance, point of the first that is nearest to the second)

A segment is on the line through its ends; whether a point of that line is on the segment is decided by the
triangle inequality.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pgwire.codecs.geometric import EPSILON, Line, Lseg, Point, less, line_through, near, same_point, slope
from pgwire.give_way import paced_iter
from planner.base.errors import SqlError
from planner.base.floats import add, div, mul, sub

Nearest = tuple[float, Point]


def is_zero(a: float) -> bool:
    """Whether a number is near 0."""
    return abs(a) <= EPSILON


def below(a: float, b: float) -> bool:
    """Whether ``a`` is less than ``b`` by more than EPSILON."""
    return a + EPSILON < b


def at_most(a: float, b: float) -> bool:
    """Whether ``a`` is less than ``b`` or near it."""
    return a <= b + EPSILON


def above(a: float, b: float) -> bool:
    """Whether ``a`` is greater than ``b`` by more than EPSILON."""
    return a > b + EPSILON


def at_least(a: float, b: float) -> bool:
    """Whether ``a`` is greater than ``b`` or near it."""
    return a + EPSILON >= b


def lesser(a: float, b: float) -> float:
    """Return the lesser number, NaN being the greatest."""
    return a if less(a, b) else b


def greater(a: float, b: float) -> float:
    """Return the greater number, NaN being the greatest."""
    return a if less(b, a) else b


def hypotenuse(x: float, y: float) -> float:
    """Return the square root of x*x + y*y. SqlError 22003."""
    if math.isinf(x) or math.isinf(y):
        return math.inf
    if x != x or y != y:
        return math.nan
    x, y = abs(x), abs(y)
    if x < y:
        x, y = y, x
    if y == 0.0:
        return x
    ratio = y / x
    result = x * math.sqrt(1.0 + ratio * ratio)
    if math.isinf(result):
        raise SqlError("22003", "value out of range: overflow")
    return result


# -- points ------------------------------------------------------------------------------------------------


def distance(a: Point, b: Point) -> float:
    """Return the distance of two points. SqlError 22003."""
    return hypotenuse(sub(a[0], b[0]), sub(a[1], b[1]))


def plus(a: Point, b: Point) -> Point:
    """Return the sum of two vectors."""
    return add(a[0], b[0]), add(a[1], b[1])


def minus(a: Point, b: Point) -> Point:
    """Return the difference of two vectors."""
    return sub(a[0], b[0]), sub(a[1], b[1])


def times(a: Point, b: Point) -> Point:
    """Return the product of two complex numbers."""
    return sub(mul(a[0], b[0]), mul(a[1], b[1])), add(mul(a[0], b[1]), mul(a[1], b[0]))


def over(a: Point, b: Point) -> Point:
    """Return the quotient of two complex numbers. SqlError 22012."""
    norm = add(mul(b[0], b[0]), mul(b[1], b[1]))
    return (
        div(add(mul(a[0], b[0]), mul(a[1], b[1])), norm),
        div(sub(mul(a[1], b[0]), mul(a[0], b[1])), norm),
    )


def middle(a: Point, b: Point) -> Point:
    """Return the point half way."""
    return div(add(a[0], b[0]), 2.0), div(add(a[1], b[1]), 2.0)


def crosswise(a: Point, b: Point) -> float:
    """Return the slope of what is at right angles to the line through two points; 0 where they are the same."""
    if near(a[0], b[0]):
        return 0.0
    if near(a[1], b[1]):
        return math.inf
    return div(sub(a[0], b[0]), sub(b[1], a[1]))


# -- lines -------------------------------------------------------------------------------------------------


def line_of(a: Point, b: Point) -> Line:
    """Return the line through two points. SqlError 22023 where they are the same."""
    if same_point(a, b):
        raise SqlError("22023", "invalid line specification: must be two distinct points")
    return line_through(a, slope(a, b))


def line_slope(line: Line) -> float:
    """Return the slope of a line, infinite for an upright one."""
    a, b, _ = line
    if is_zero(a):
        return 0.0
    return math.inf if is_zero(b) else div(a, -b)


def line_crosswise(line: Line) -> float:
    """Return the slope of what is at right angles to a line."""
    a, b, _ = line
    if is_zero(a):
        return math.inf
    return 0.0 if is_zero(b) else div(b, a)


def same_line(one: Line, other: Line) -> bool:
    """Whether the numbers of two lines are proportional; with NaN among them, whether they are equal."""
    if any(c != c for c in (*one, *other)):
        return all(p == q or (p != p and q != q) for p, q in zip(one, other, strict=True))
    ratio = next((div(p, q) for p, q in zip(one, other, strict=True) if not is_zero(q)), 1.0)
    return all(near(p, mul(ratio, q)) for p, q in zip(one, other, strict=True))


def upright_to(one: Line, other: Line) -> bool:
    """Whether two lines are at right angles."""
    (a, b, _), (c, d, _) = one, other
    if is_zero(a):
        return is_zero(d)
    if is_zero(c):
        return is_zero(b)
    if is_zero(b):
        return is_zero(c)
    if is_zero(d):
        return is_zero(a)
    return near(div(mul(a, c), mul(b, d)), -1.0)


def meeting(one: Line, other: Line) -> Point | None:
    """Return the point of two lines, None for parallel ones."""
    if is_zero(one[1]):
        if is_zero(other[1]):
            return None
        one, other = other, one
    (a, b, c), (d, e, f) = one, other
    if near(d, mul(a, div(e, b))):
        return None
    x = div(sub(mul(b, f), mul(e, c)), sub(mul(a, e), mul(d, b)))
    y = div(-add(mul(a, x), c), b)
    return x + 0.0, y + 0.0


def line_distance(one: Line, other: Line) -> float:
    """Return the distance of two lines, 0 where they meet."""
    if meeting(one, other) is not None:
        return 0.0
    ratio = 1.0
    for p, q in zip(one[:2], other[:2], strict=True):
        if not is_zero(p) and p == p and not is_zero(q) and q == q:
            ratio = div(p, q)
            break
    return div(abs(sub(one[2], mul(ratio, other[2]))), hypotenuse(one[0], one[1]))


def on_line(line: Line, point: Point) -> bool:
    """Whether a point is on a line."""
    a, b, c = line
    return is_zero(add(add(mul(a, point[0]), mul(b, point[1])), c))


def line_nearest(line: Line, point: Point) -> Nearest:
    """Return the point of a line nearest to another; the distance is NaN, and the point that other one, where
    there is none.
    """
    foot = meeting(line_through(point, line_crosswise(line)), line)
    if foot is None:
        return math.nan, point
    return distance(foot, point), foot


# -- segments ----------------------------------------------------------------------------------------------


def line_along(lseg: Lseg) -> Line:
    """Return the line that a segment is on."""
    return line_through(lseg[0], slope(*lseg))


def on_lseg(lseg: Lseg, point: Point) -> bool:
    """Whether a point is on a segment."""
    a, b = lseg
    return near(distance(point, a) + distance(point, b), distance(a, b))


def crossing(lseg: Lseg, line: Line) -> Point | None:
    """Return the point in which a segment meets a line; an end of the segment exactly where it is near."""
    found = meeting(line_along(lseg), line)
    if found is None or not on_lseg(lseg, found):
        return None
    return next((end for end in lseg if same_point(end, found)), found)


def lseg_meeting(one: Lseg, other: Lseg) -> Point | None:
    """Return the point in which two segments meet, None for parallel ones."""
    found = crossing(one, line_along(other))
    return found if found is not None and on_lseg(other, found) else None


def lseg_nearest_to_line(lseg: Lseg, line: Line) -> Nearest:
    """Return the point of a segment nearest to a line."""
    found = crossing(lseg, line)
    if found is not None:
        return 0.0, found
    first, second = line_nearest(line, lseg[0])[0], line_nearest(line, lseg[1])[0]
    return (first, lseg[0]) if first < second else (second, lseg[1])


def lseg_nearest(lseg: Lseg, point: Point) -> Nearest:
    """Return the point of a segment nearest to a point."""
    _, found = lseg_nearest_to_line(lseg, line_through(point, crosswise(*lseg)))
    return distance(found, point), found


def lseg_nearest_to_lseg(lseg: Lseg, other: Lseg) -> Nearest:
    """Return the point of a segment nearest to another segment."""
    found = lseg_meeting(lseg, other)
    if found is not None:
        return 0.0, found
    feet = (lseg_nearest(lseg, end) for end in other)
    ends = ((lseg_nearest(other, end)[0], end) for end in lseg)
    return nearest_of((*feet, *ends))


def nearest_of(found: Iterable[Nearest]) -> Nearest:
    """Return the first with the least distance; NaN is the greatest."""
    items = iter(found)
    best = next(items)
    for item in paced_iter(items):
        if less(item[0], best[0]):
            best = item
    return best
