"""Boxes and circles: where they are to each other, what they have in common, distances."""

from __future__ import annotations

import math

from pgwire.codecs.geometric import Box, Circle, Line, Lseg, Point, Points, box_of, near, same_point
from pgwire.give_way import paced
from planner.base.errors import SqlError
from planner.base.floats import add, div, mul, sub
from planner.geometry.lines import (
    Nearest,
    at_least,
    at_most,
    crossing,
    distance,
    greater,
    hypotenuse,
    is_zero,
    lesser,
    lseg_meeting,
    lseg_nearest,
    lseg_nearest_to_lseg,
    middle,
    minus,
    nearest_of,
    over,
    plus,
    times,
)

# -- boxes -------------------------------------------------------------------------------------------------


def width(box: Box) -> float:
    """Return the horizontal size."""
    return sub(box[0][0], box[1][0])


def height(box: Box) -> float:
    """Return the vertical size."""
    return sub(box[0][1], box[1][1])


def area(box: Box) -> float:
    """Return the area of a box."""
    return mul(width(box), height(box))


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes have a point in common."""
    (ah, al), (bh, bl) = a, b
    return at_most(al[0], bh[0]) and at_most(bl[0], ah[0]) and at_most(al[1], bh[1]) and at_most(bl[1], ah[1])


def contains(a: Box, b: Box) -> bool:
    """Whether all of ``b`` is in ``a``."""
    (ah, al), (bh, bl) = a, b
    return (
        at_least(ah[0], bh[0]) and at_most(al[0], bl[0]) and at_least(ah[1], bh[1]) and at_most(al[1], bl[1])
    )


def in_box(box: Box, point: Point) -> bool:
    """Whether a point is in a box or on its border, exactly."""
    (right, top), (left, bottom) = box
    return right >= point[0] >= left and top >= point[1] >= bottom


def common(a: Box, b: Box) -> Box | None:
    """Return the box of what is in both."""
    if not overlap(a, b):
        return None
    (ah, al), (bh, bl) = a, b
    return (lesser(ah[0], bh[0]), lesser(ah[1], bh[1])), (greater(al[0], bl[0]), greater(al[1], bl[1]))


def hull(a: Box, b: Box) -> Box:
    """Return the least box that both are in."""
    (ah, al), (bh, bl) = a, b
    return (greater(ah[0], bh[0]), greater(ah[1], bh[1])), (lesser(al[0], bl[0]), lesser(al[1], bl[1]))


def turned(box: Box, point: Point) -> Box:
    """Return a box whose corners are multiplied as complex numbers."""
    return box_of(times(box[0], point), times(box[1], point))


def turned_back(box: Box, point: Point) -> Box:
    """Return a box whose corners are divided as complex numbers."""
    return box_of(over(box[0], point), over(box[1], point))


def corners(box: Box) -> Points:
    """Return the corners of a box as those of a polygon."""
    (right, top), (left, bottom) = box
    return (left, bottom), (left, top), (right, top), (right, bottom)


def _sides(box: Box) -> tuple[Lseg, ...]:
    high, low = box
    upper_left, lower_right = (low[0], high[1]), (high[0], low[1])
    return (low, upper_left), (high, upper_left), (low, lower_right), (high, lower_right)


def box_nearest(box: Box, point: Point) -> Nearest:
    """Return the point of a box nearest to a point, that itself if it is inside."""
    if in_box(box, point):
        return 0.0, point
    return nearest_of(lseg_nearest(side, point) for side in _sides(box))


def meets_lseg(box: Box, lseg: Lseg) -> bool:
    """Whether a segment is inside a box or meets its border."""
    (x, y), (u, v) = lseg
    around = (greater(x, u), greater(y, v)), (lesser(x, u), lesser(y, v))
    if not overlap(around, box):
        return False
    if in_box(box, lseg[0]) or in_box(box, lseg[1]):
        return True
    return any(lseg_meeting(side, lseg) is not None for side in _sides(box))


def box_nearest_to_lseg(box: Box, lseg: Lseg) -> Nearest:
    """Return the point of a box nearest to a segment; of one that meets it the point nearest to the box's center."""
    if meets_lseg(box, lseg):
        return 0.0, lseg_nearest(lseg, middle(*box))[1]
    return _nearest_side(box, lseg)


def box_to_lseg(box: Box, lseg: Lseg) -> float:
    """Return the distance of a box and a segment, 0 where they meet."""
    return 0.0 if meets_lseg(box, lseg) else _nearest_side(box, lseg)[0]


def _nearest_side(box: Box, lseg: Lseg) -> Nearest:
    return nearest_of(lseg_nearest_to_lseg(side, lseg) for side in _sides(box))


def meets_line(line: Line, box: Box) -> bool:
    """Whether a line goes through a box."""
    lower_left, upper_left, upper_right, lower_right = corners(box)
    sides = (
        (lower_left, upper_left),
        (upper_right, upper_left),
        (upper_right, lower_right),
        (lower_left, lower_right),
    )
    return any(crossing(side, line) is not None for side in sides)


# -- circles -----------------------------------------------------------------------------------------------


def circle_area(circle: Circle) -> float:
    """Return the area of a circle."""
    return mul(mul(circle[1], circle[1]), math.pi)


def same_circle(a: Circle, b: Circle) -> bool:
    """Whether two circles are the same."""
    return ((a[1] != a[1] and b[1] != b[1]) or near(a[1], b[1])) and same_point(a[0], b[0])


def circles_overlap(a: Circle, b: Circle) -> bool:
    """Whether two circles have a point in common."""
    return at_most(distance(a[0], b[0]), add(a[1], b[1]))


def circle_contains(a: Circle, b: Circle) -> bool:
    """Whether all of ``b`` is in ``a``."""
    return at_most(distance(a[0], b[0]), sub(a[1], b[1]))


def in_circle(circle: Circle, point: Point) -> bool:
    """Whether a point is in a circle, exactly."""
    return distance(circle[0], point) <= circle[1]


def beyond(length: float, radius: float) -> float:
    """Return how far something at ``length`` from a center is from the circle, 0 within it."""
    result = sub(length, radius)
    return 0.0 if result < 0.0 else result


def circle_distance(a: Circle, b: Circle) -> float:
    """Return the distance of two circles, 0 where they overlap."""
    return beyond(distance(a[0], b[0]), add(a[1], b[1]))


def moved(circle: Circle, point: Point) -> Circle:
    """Return a circle elsewhere."""
    return plus(circle[0], point), circle[1]


def moved_back(circle: Circle, point: Point) -> Circle:
    """Return a circle elsewhere, in the other direction."""
    return minus(circle[0], point), circle[1]


def scaled(circle: Circle, point: Point) -> Circle:
    """Return a circle turned and scaled by a complex number."""
    return times(circle[0], point), mul(circle[1], hypotenuse(*point))


def scaled_back(circle: Circle, point: Point) -> Circle:
    """Return a circle turned and scaled by the inverse of a complex number."""
    return over(circle[0], point), div(circle[1], hypotenuse(*point))


def square_in(circle: Circle) -> Box:
    """Return the box whose corners are on a circle."""
    (x, y), radius = circle
    half = div(radius, math.sqrt(2.0))
    return (add(x, half), add(y, half)), (sub(x, half), sub(y, half))


def circle_around(box: Box) -> Circle:
    """Return the circle through a box's corners."""
    center = middle(*box)
    return center, distance(center, box[0])


MAX_CIRCLE_POINTS = 1_000_000
"""So many points of a circle are made at once."""


def circle_points(count: int, circle: Circle) -> Points:
    """Return points of a circle, evenly spaced. SqlError 0A000 for radius 0, 22023 for less than two, 54000."""
    (x, y), radius = circle
    if is_zero(radius):
        raise SqlError("0A000", "cannot convert circle with radius zero to polygon")
    if count < 2:
        raise SqlError("22023", "must request at least 2 points")
    if count > MAX_CIRCLE_POINTS:
        raise SqlError("54000", "too many points requested")
    step = div(2.0 * math.pi, float(count))
    angles = [mul(step, float(i)) for i in paced(range(count))]
    return tuple(
        [
            (sub(x, mul(radius, math.cos(angle))), add(y, mul(radius, math.sin(angle))))
            for angle in paced(angles)
        ]
    )
