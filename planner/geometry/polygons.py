"""Paths and polygons: lengths, areas, what is inside, what meets.

A polygon's inside is decided by a ray to the right: every edge that crosses it adds +2 or -2, one that ends
on it +1 or -1, and the sum is 0 outside. What compares every edge with every other gives way to other
sessions in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from pgwire.codecs.geometric import Box, Circle, Lseg, Path, Point, Points, less, near, same_point
from pgwire.give_way import give_way, paced, paced_iter
from pgwire.long.arrays import gathered
from pgwire.release import mind_long
from planner.base.errors import SqlError
from planner.base.floats import add, div, mul, sub
from planner.geometry import areas
from planner.geometry.lines import (
    above,
    at_least,
    at_most,
    below,
    distance,
    is_zero,
    lseg_meeting,
    lseg_nearest,
    lseg_nearest_to_lseg,
    middle,
    nearest_of,
    on_lseg,
    plus,
)

_ON: None = None
"""What ``_crossing`` returns for an edge that the point is on."""


def segments(path: Path) -> Iterator[Lseg]:
    """Yield the segments of a path; of a closed one that from the last point to the first comes first."""
    closed, points = path
    if closed:
        yield points[-1], points[0]
    yield from pairwise(points)


def edges(polygon: Points) -> Iterator[Lseg]:
    """Yield the edges of a polygon."""
    return segments((True, polygon))


def bounds(points: Points) -> Box:
    """Return the least box around points."""
    (left, bottom) = (right, top) = points[0]
    for x, y in paced(points[1:]):
        left, right = (x if less(x, left) else left), (x if less(right, x) else right)
        bottom, top = (y if less(y, bottom) else bottom), (y if less(top, y) else top)
    return (right, top), (left, bottom)


# -- paths -------------------------------------------------------------------------------------------------


def path_area(path: Path) -> float | None:
    """Return the area of a closed path, None for an open one."""
    closed, points = path
    if not closed:
        return None
    total = 0.0
    for (x, y), (u, v) in paced_iter(zip(points, (*points[1:], points[0]), strict=True)):
        total = add(total, mul(x, v))
        total = sub(total, mul(y, u))
    return div(abs(total), 2.0)


def path_length(path: Path) -> float:
    """Return the sum of the lengths of a path's segments."""
    total = 0.0
    for a, b in paced_iter(segments(path)):
        total = add(total, distance(a, b))
    return total


def paths_meet(one: Path, other: Path) -> bool:
    """Whether two paths have a point in common."""
    if not areas.overlap(bounds(one[1]), bounds(other[1])):
        return False
    return _any_meet(segments(one), list(segments(other)))


def _any_meet(ones: Iterable[Lseg], others: Sequence[Lseg]) -> bool:
    """Whether any of some segments meets any of the others."""
    for a in ones:
        for b in others:
            if lseg_meeting(a, b) is not None:
                return True
            give_way()
    return False


def path_distance(one: Path, other: Path) -> float | None:
    """Return the distance of two paths, None where one is a single open point."""
    others = gathered(paced_iter(segments(other)))
    found = (lseg_nearest_to_lseg(a, b) for a in _giving_way(segments(one)) for b in _giving_way(others))
    first = next(found, None)
    return nearest_of(chain((first,), found))[0] if first is not None else None


def _giving_way(lsegs: Iterable[Lseg]) -> Iterator[Lseg]:
    for lseg in lsegs:
        give_way()
        yield lseg


def distance_to_path(path: Path, point: Point) -> float:
    """Return the distance of a point from a path, 0 from a single open point."""
    found = mind_long([lseg_nearest(segment, point) for segment in _giving_way(segments(path))])
    return nearest_of(found)[0] if found else 0.0


def on_path(point: Point, path: Path) -> bool:
    """Whether a point is on an open path, or inside a closed one."""
    closed, points = path
    if closed:
        return inside(point, points)
    lengths = [distance(point, end) for end in paced(points)]
    return any(
        near(add(lengths[i], lengths[i + 1]), distance(a, b))
        for i, (a, b) in enumerate(_giving_way(segments(path)))
    )


def joined(one: Path, other: Path) -> Path | None:
    """Return two open paths as one, None where one is closed."""
    return None if one[0] or other[0] else (False, one[1] + other[1])


def polygon_of(path: Path) -> Points:
    """Return a closed path as a polygon. SqlError 22023 for an open one."""
    if not path[0]:
        raise SqlError("22023", "open path cannot be converted to polygon")
    return path[1]


# -- polygons ----------------------------------------------------------------------------------------------


def inside(point: Point, polygon: Points) -> bool:
    """Whether a point is in a polygon or on its border."""
    around = mind_long([(sub(x, point[0]), sub(y, point[1])) for x, y in paced(polygon)])
    total = 0
    for number in paced(range(len(around))):
        x, y = around[number + 1 - len(around)]  # of the last one the first
        crossed = _crossing(x, y, *around[number])
        if crossed is _ON:
            return True
        total += crossed
    return total != 0


def _crossing(x: float, y: float, before_x: float, before_y: float) -> int | None:
    """Return what an edge adds to the sum for the point (0, 0), None where that is on the edge."""
    if is_zero(y):
        if is_zero(x):
            return _ON
        if above(x, 0.0):
            if is_zero(before_y):
                return 0 if above(before_x, 0.0) else _ON
            return 1 if below(before_y, 0.0) else -1
        if is_zero(before_y):
            return 0 if below(before_x, 0.0) else _ON
        return 0
    sign = 1 if above(y, 0.0) else -1
    if is_zero(before_y):
        return 0 if below(before_x, 0.0) else sign
    if (sign < 0 and below(before_y, 0.0)) or (sign > 0 and above(before_y, 0.0)):
        return 0
    if at_least(x, 0.0) and above(before_x, 0.0):
        return 2 * sign
    if below(x, 0.0) and at_most(before_x, 0.0):
        return 0
    side = sub(mul(sub(x, before_x), y), mul(sub(y, before_y), x))
    if is_zero(side):
        return _ON
    if (sign < 0 and below(side, 0.0)) or (sign > 0 and above(side, 0.0)):
        return 0
    return 2 * sign


def same_polygon(one: Points, other: Points) -> bool:
    """Whether two polygons have the same points in the same order, from whichever they begin and in either
    direction.
    """
    count = len(one)
    if count != len(other):
        return False
    for start in range(count):
        if same_point(other[start], one[0]):
            for step in (1, -1):
                give_way()
                if all(same_point(other[(start + step * i) % count], one[i]) for i in paced(range(1, count))):
                    return True
    return False


def polygons_overlap(one: Points, other: Points) -> bool:
    """Whether two polygons have a point in common."""
    if not areas.overlap(bounds(one), bounds(other)):
        return False
    if _any_meet(edges(one), gathered(paced_iter(edges(other)))):
        return True
    return inside(one[0], other) or inside(other[0], one)


def contains(one: Points, other: Points) -> bool:
    """Whether all of ``other`` is in ``one``."""
    if not areas.contains(bounds(one), bounds(other)):
        return False
    return all(_lseg_inside(a, b, one, 0) for a, b in edges(other))


def _lseg_inside(a: Point, b: Point, polygon: Points, start: int) -> bool:
    """Whether a segment is in a polygon as far as its edges from the one numbered ``start`` on tell."""
    lseg = a, b
    crossed = False
    for i in range(start, len(polygon)):
        give_way()
        edge = polygon[i - 1], polygon[i]
        if on_lseg(edge, a):
            if on_lseg(edge, b):
                return True
            if not _touching_inside(a, b, edge, polygon, i + 1):
                return False
        elif on_lseg(edge, b):
            if not _touching_inside(b, a, edge, polygon, i + 1):
                return False
        elif (found := lseg_meeting(lseg, edge)) is not None:
            crossed = True
            if not _lseg_inside(a, found, polygon, i + 1) or not _lseg_inside(b, found, polygon, i + 1):
                return False
    return crossed or inside(middle(a, b), polygon)


def _touching_inside(a: Point, b: Point, edge: Lseg, polygon: Points, start: int) -> bool:
    """The same where ``a`` is on an edge and ``b`` is not: what is left of the segment beyond the edge."""
    lseg = a, b
    first, second = edge
    rest: Point | None = None
    if same_point(a, first):
        rest = second if on_lseg(lseg, second) else None
    elif same_point(a, second):
        rest = first if on_lseg(lseg, first) else None
    elif on_lseg(lseg, first):
        rest = first
    elif on_lseg(lseg, second):
        rest = second
    return rest is None or _lseg_inside(b, rest, polygon, start)


def distance_to_polygon(polygon: Points, point: Point) -> float:
    """Return the distance of a point from a polygon, 0 inside it."""
    if inside(point, polygon):
        return 0.0
    around = chain(((polygon[0], polygon[-1]),), pairwise(polygon))
    return nearest_of(lseg_nearest(edge, point) for edge in _giving_way(around))[0]


def polygon_distance(one: Points, other: Points) -> float | None:
    """Return the distance of two polygons, 0 where they overlap."""
    return 0.0 if polygons_overlap(one, other) else path_distance((True, one), (True, other))


def circle_of(polygon: Points) -> Circle:
    """Return the circle around the mean of a polygon's points with their mean distance from it."""
    count = float(len(polygon))
    total: Point = (0.0, 0.0)
    for point in paced(polygon):
        total = plus(total, point)
    center = div(total[0], count), div(total[1], count)
    radius = 0.0
    for point in paced(polygon):
        radius = add(radius, distance(point, center))
    return center, div(radius, count)
