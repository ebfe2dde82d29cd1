"""Functions and operators of the geometric types (manual 9.11), over the values of ``pgwire.codecs.geometric``.

``planner.geometry`` computes with tuples; here its functions are given the types that pg_proc declares.
Everything runs in Python: none of the types has an order, so there is nothing that an engine could do with
their bytes.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

from pgwire.codecs.domain import BOX, CIRCLE, LINE, LSEG, PATH, POINT, POLYGON
from pgwire.codecs.geometric import (
    EPSILON,
    Box,
    Circle,
    Line,
    Lseg,
    Point,
    box_of,
    near,
    pack_circle,
    pack_line,
    pack_path,
    pack_point,
    pack_polygon,
    pack_two,
    same_point,
    slope,
    unpack_circle,
    unpack_line,
    unpack_path,
    unpack_point,
    unpack_polygon,
    unpack_two,
)
from pgwire.codecs.registry import text_input, text_output
from pgwire.give_way import paced
from pgwire.long.arrays import gathered, tupled
from planner.base.floats import add, mul, sub
from planner.facts import facts
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.geometry import areas, lines, polygons
from planner.geometry.lines import above, at_least, at_most, below

Form = Callable[..., Any]

_UNPACK: Final[dict[int, Form]] = {
    POINT: unpack_point, LSEG: unpack_two, PATH: unpack_path, BOX: unpack_two, POLYGON: unpack_polygon,
    LINE: unpack_line, CIRCLE: unpack_circle,
}  # fmt: skip
_PACK: Final[dict[int, Form]] = {
    POINT: pack_point, LSEG: pack_two, PATH: pack_path, BOX: pack_two, POLYGON: pack_polygon, LINE: pack_line,
    CIRCLE: pack_circle,
}  # fmt: skip
_NUMBERED: Final[dict[str, Form]] = {
    "lt": operator.lt, "gt": operator.gt, "eq": operator.eq, "le": operator.le, "ge": operator.ge,
}  # fmt: skip
_NEAR: Final[dict[str, Form]] = {"lt": below, "gt": above, "eq": near, "le": at_most, "ge": at_least}


def _far(a: float, b: float) -> bool:
    """Whether two numbers differ by more than EPSILON; NaN differs from nothing and is near nothing."""
    return a != b and abs(a - b) > EPSILON


def _by(measure: Form, test: Form) -> Form:
    """Return the test of two shapes by a number of each; the second's errors come first, as in PostgreSQL."""

    def compare(a: Any, b: Any) -> bool:
        other = measure(b)
        return bool(test(measure(a), other))

    return compare


def _at(found: lines.Nearest) -> Point | None:
    """Return the point of a nearest point, None where the distance is NaN."""
    return found[1] if found[0] == found[0] else None


def _flipped(function: Form) -> Form:
    return lambda a, b: function(b, a)


def _each(function: Form) -> Form:
    """Return a function of the points of a path and a point."""
    return lambda path, point: (path[0], tupled(gathered(function(p, point) for p in paced(path[1]))))


def _lseg_nearest_to_lseg(a: Lseg, b: Lseg) -> Point | None:
    return None if slope(*a) == slope(*b) else _at(lines.lseg_nearest_to_lseg(b, a))


def _lseg_nearest_to_line(line: Line, lseg: Lseg) -> Point | None:
    if slope(*lseg) == lines.line_slope(line):
        return None
    return _at(lines.lseg_nearest_to_line(lseg, line))


def _circle(center: Point, radius: float) -> Circle:
    return center, radius


_POINTS: Final[dict[str, Form]] = {
    "point_above(point,point)": _by(lambda p: p[1], above),
    "point_below(point,point)": _by(lambda p: p[1], below),
    "point_left(point,point)": _by(lambda p: p[0], below),
    "point_right(point,point)": _by(lambda p: p[0], above),
    "point_vert(point,point)": _by(lambda p: p[0], near),
    "isvertical(point,point)": _by(lambda p: p[0], near),
    "point_horiz(point,point)": _by(lambda p: p[1], near),
    "ishorizontal(point,point)": _by(lambda p: p[1], near),
    "point_eq(point,point)": same_point,
    "point_ne(point,point)": lambda a, b: not same_point(a, b),
    "point_distance(point,point)": lines.distance,
    "slope(point,point)": slope,
    "point(float8,float8)": lambda x, y: (x, y),
    "point_add(point,point)": lines.plus,
    "point_sub(point,point)": lines.minus,
    "point_mul(point,point)": lines.times,
    "point_div(point,point)": lines.over,
    "on_pb(point,box)": _flipped(areas.in_box),
    "on_ppath(point,path)": polygons.on_path,
    "on_ps(point,lseg)": _flipped(lines.on_lseg),
    "on_pl(point,line)": _flipped(lines.on_line),
    "dist_ps(point,lseg)": lambda p, s: lines.lseg_nearest(s, p)[0],
    "dist_sp(lseg,point)": lambda s, p: lines.lseg_nearest(s, p)[0],
    "dist_pb(point,box)": lambda p, b: areas.box_nearest(b, p)[0],
    "dist_bp(box,point)": lambda b, p: areas.box_nearest(b, p)[0],
    "dist_ppath(point,path)": _flipped(polygons.distance_to_path),
    "dist_pathp(path,point)": polygons.distance_to_path,
    "dist_pl(point,line)": lambda p, g: lines.line_nearest(g, p)[0],
    "dist_lp(line,point)": lambda g, p: lines.line_nearest(g, p)[0],
    "dist_pc(point,circle)": lambda p, c: areas.beyond(lines.distance(p, c[0]), c[1]),
    "dist_cpoint(circle,point)": lambda c, p: areas.beyond(lines.distance(p, c[0]), c[1]),
    "dist_ppoly(point,polygon)": _flipped(polygons.distance_to_polygon),
    "dist_polyp(polygon,point)": polygons.distance_to_polygon,
    "close_ps(point,lseg)": lambda p, s: _at(lines.lseg_nearest(s, p)),
    "close_pb(point,box)": lambda p, b: _at(areas.box_nearest(b, p)),
    "close_pl(point,line)": lambda p, g: _at(lines.line_nearest(g, p)),
}
_LINES: Final[dict[str, Form]] = {
    "line(point,point)": lines.line_of,
    "line_eq(line,line)": lines.same_line,
    "line_interpt(line,line)": lines.meeting,
    "line_intersect(line,line)": lambda a, b: lines.meeting(a, b) is not None,
    "line_parallel(line,line)": lambda a, b: lines.meeting(a, b) is None,
    "isparallel(line,line)": lambda a, b: lines.meeting(a, b) is None,
    "line_perp(line,line)": lines.upright_to,
    "isperp(line,line)": lines.upright_to,
    "line_vertical(line)": lambda g: lines.is_zero(g[1]),
    "isvertical(line)": lambda g: lines.is_zero(g[1]),
    "line_horizontal(line)": lambda g: lines.is_zero(g[0]),
    "ishorizontal(line)": lambda g: lines.is_zero(g[0]),
    "line_distance(line,line)": lines.line_distance,
    "inter_lb(line,box)": areas.meets_line,
    "inter_sl(lseg,line)": lambda s, g: lines.crossing(s, g) is not None,
    "dist_sl(lseg,line)": lambda s, g: lines.lseg_nearest_to_line(s, g)[0],
    "dist_ls(line,lseg)": lambda g, s: lines.lseg_nearest_to_line(s, g)[0],
    "on_sl(lseg,line)": lambda s, g: lines.on_line(g, s[0]) and lines.on_line(g, s[1]),
    "close_ls(line,lseg)": _lseg_nearest_to_line,
}
_LSEGS: Final[dict[str, Form]] = {
    "lseg(point,point)": lambda a, b: (a, b),
    "lseg(box)": lambda b: b,
    "diagonal(box)": lambda b: b,
    "lseg_eq(lseg,lseg)": lambda a, b: same_point(a[0], b[0]) and same_point(a[1], b[1]),
    "lseg_ne(lseg,lseg)": lambda a, b: not (same_point(a[0], b[0]) and same_point(a[1], b[1])),
    "lseg_length(lseg)": lambda s: lines.distance(*s),
    "length(lseg)": lambda s: lines.distance(*s),
    "lseg_center(lseg)": lambda s: lines.middle(*s),
    "point(lseg)": lambda s: lines.middle(*s),
    "lseg_intersect(lseg,lseg)": lambda a, b: lines.lseg_meeting(a, b) is not None,
    "lseg_interpt(lseg,lseg)": lines.lseg_meeting,
    "lseg_parallel(lseg,lseg)": lambda a, b: near(slope(*a), slope(*b)),
    "isparallel(lseg,lseg)": lambda a, b: near(slope(*a), slope(*b)),
    "lseg_perp(lseg,lseg)": lambda a, b: near(slope(*a), lines.crosswise(*b)),
    "isperp(lseg,lseg)": lambda a, b: near(slope(*a), lines.crosswise(*b)),
    "lseg_vertical(lseg)": lambda s: near(s[0][0], s[1][0]),
    "isvertical(lseg)": lambda s: near(s[0][0], s[1][0]),
    "lseg_horizontal(lseg)": lambda s: near(s[0][1], s[1][1]),
    "ishorizontal(lseg)": lambda s: near(s[0][1], s[1][1]),
    "lseg_distance(lseg,lseg)": lambda a, b: lines.lseg_nearest_to_lseg(a, b)[0],
    "close_lseg(lseg,lseg)": _lseg_nearest_to_lseg,
    "dist_sb(lseg,box)": _flipped(areas.box_to_lseg),
    "dist_bs(box,lseg)": areas.box_to_lseg,
    "close_sb(lseg,box)": lambda s, b: _at(areas.box_nearest_to_lseg(b, s)),
    "on_sb(lseg,box)": lambda s, b: areas.in_box(b, s[0]) and areas.in_box(b, s[1]),
    "inter_sb(lseg,box)": _flipped(areas.meets_lseg),
}
_BOXES: Final[dict[str, Form]] = {
    "box(point,point)": box_of,
    "box(point)": lambda p: (p, p),
    "box(polygon)": polygons.bounds,
    "box(circle)": areas.square_in,
    "bound_box(box,box)": areas.hull,
    "box_same(box,box)": lambda a, b: same_point(a[0], b[0]) and same_point(a[1], b[1]),
    "box_overlap(box,box)": areas.overlap,
    "box_contain(box,box)": areas.contains,
    "box_contained(box,box)": _flipped(areas.contains),
    "box_contain_pt(box,point)": areas.in_box,
    "box_above_eq(box,box)": lambda a, b: at_least(a[1][1], b[0][1]),
    "box_below_eq(box,box)": lambda a, b: at_most(a[0][1], b[1][1]),
    "box_center(box)": lambda b: lines.middle(*b),
    "center(box)": lambda b: lines.middle(*b),
    "point(box)": lambda b: lines.middle(*b),
    "area(box)": areas.area,
    "width(box)": areas.width,
    "height(box)": areas.height,
    "box_distance(box,box)": lambda a, b: lines.distance(lines.middle(*a), lines.middle(*b)),
    "box_intersect(box,box)": areas.common,
    "box_add(box,point)": lambda b, p: (lines.plus(b[0], p), lines.plus(b[1], p)),
    "box_sub(box,point)": lambda b, p: (lines.minus(b[0], p), lines.minus(b[1], p)),
    "box_mul(box,point)": areas.turned,
    "box_div(box,point)": areas.turned_back,
}
_PATHS: Final[dict[str, Form]] = {
    "path(polygon)": lambda g: (True, g),
    "area(path)": polygons.path_area,
    "path_length(path)": polygons.path_length,
    "length(path)": polygons.path_length,
    "path_npoints(path)": lambda p: len(p[1]),
    "npoints(path)": lambda p: len(p[1]),
    "isclosed(path)": lambda p: p[0],
    "isopen(path)": lambda p: not p[0],
    "pclose(path)": lambda p: (True, p[1]),
    "popen(path)": lambda p: (False, p[1]),
    "path_inter(path,path)": polygons.paths_meet,
    "path_distance(path,path)": polygons.path_distance,
    "path_contain_pt(path,point)": _flipped(polygons.on_path),
    "path_add(path,path)": polygons.joined,
    "path_add_pt(path,point)": _each(lines.plus),
    "path_sub_pt(path,point)": _each(lines.minus),
    "path_mul_pt(path,point)": _each(lines.times),
    "path_div_pt(path,point)": _each(lines.over),
}
_POLYGONS: Final[dict[str, Form]] = {
    "polygon(box)": areas.corners,
    "polygon(path)": polygons.polygon_of,
    "polygon(circle)": lambda c: areas.circle_points(12, c),
    "polygon(int4,circle)": areas.circle_points,
    "poly_npoints(polygon)": len,
    "npoints(polygon)": len,
    "poly_center(polygon)": lambda g: polygons.circle_of(g)[0],
    "point(polygon)": lambda g: polygons.circle_of(g)[0],
    "poly_same(polygon,polygon)": polygons.same_polygon,
    "poly_overlap(polygon,polygon)": polygons.polygons_overlap,
    "poly_contain(polygon,polygon)": polygons.contains,
    "poly_contained(polygon,polygon)": _flipped(polygons.contains),
    "poly_contain_pt(polygon,point)": _flipped(polygons.inside),
    "pt_contained_poly(point,polygon)": polygons.inside,
    "poly_distance(polygon,polygon)": polygons.polygon_distance,
}
_CIRCLES: Final[dict[str, Form]] = {
    "circle(point,float8)": _circle,
    "circle(polygon)": polygons.circle_of,
    "circle(box)": areas.circle_around,
    "area(circle)": areas.circle_area,
    "diameter(circle)": lambda c: mul(c[1], 2.0),
    "radius(circle)": lambda c: c[1],
    "center(circle)": lambda c: c[0],
    "circle_center(circle)": lambda c: c[0],
    "point(circle)": lambda c: c[0],
    "circle_same(circle,circle)": areas.same_circle,
    "circle_ne(circle,circle)": _by(areas.circle_area, _far),
    "circle_overlap(circle,circle)": areas.circles_overlap,
    "circle_contain(circle,circle)": areas.circle_contains,
    "circle_contained(circle,circle)": _flipped(areas.circle_contains),
    "circle_contain_pt(circle,point)": areas.in_circle,
    "pt_contained_circle(point,circle)": _flipped(areas.in_circle),
    "circle_distance(circle,circle)": areas.circle_distance,
    "circle_add_pt(circle,point)": areas.moved,
    "circle_sub_pt(circle,point)": areas.moved_back,
    "circle_mul_pt(circle,point)": areas.scaled,
    "circle_div_pt(circle,point)": areas.scaled_back,
    "dist_cpoly(circle,polygon)": lambda c, g: areas.beyond(polygons.distance_to_polygon(g, c[0]), c[1]),
    "dist_polyc(polygon,circle)": lambda g, c: areas.beyond(polygons.distance_to_polygon(g, c[0]), c[1]),
}


def _sides() -> dict[str, Form]:
    """Return the tests of where two shapes are to each other, by the bounds of both on one axis.

    Polygons compare exactly, the others with EPSILON.
    """
    found: dict[str, Form] = {}

    def box_low(axis: int, box: Box) -> float:
        return box[1][axis]

    def box_high(axis: int, box: Box) -> float:
        return box[0][axis]

    def circle_low(axis: int, circle: Circle) -> float:
        return sub(circle[0][axis], circle[1])

    def circle_high(axis: int, circle: Circle) -> float:
        return add(circle[0][axis], circle[1])

    def polygon_low(axis: int, polygon: Any) -> float:
        return polygons.bounds(polygon)[1][axis]

    def polygon_high(axis: int, polygon: Any) -> float:
        return polygons.bounds(polygon)[0][axis]

    kinds: tuple[tuple[str, str, Form, Form, dict[str, Form]], ...] = (
        ("box", "box", box_low, box_high, _NEAR),
        ("circle", "circle", circle_low, circle_high, _NEAR),
        ("poly", "polygon", polygon_low, polygon_high, _NUMBERED),
    )
    for prefix, name, low, high, tests in kinds:
        for axis, (less_word, more_word) in enumerate((("left", "right"), ("below", "above"))):
            first, last = _on_axis(low, axis), _on_axis(high, axis)
            arguments = f"({name},{name})"
            found[f"{prefix}_{less_word}{arguments}"] = _between(last, first, tests["lt"])
            found[f"{prefix}_{more_word}{arguments}"] = _between(first, last, tests["gt"])
            found[f"{prefix}_over{less_word}{arguments}"] = _between(last, last, tests["le"])
            found[f"{prefix}_over{more_word}{arguments}"] = _between(first, first, tests["ge"])
    return found


def _on_axis(bound: Form, axis: int) -> Form:
    return lambda shape: bound(axis, shape)


def _between(of_one: Form, of_other: Form, test: Form) -> Form:
    return lambda a, b: test(of_one(a), of_other(b))


def _sizes() -> dict[str, Form]:
    """Return the comparisons: boxes and circles by area, segments by length, paths by the number of points."""
    found: dict[str, Form] = {}
    for word, test in _NEAR.items():
        found[f"box_{word}(box,box)"] = _by(areas.area, test)
        found[f"circle_{word}(circle,circle)"] = _by(areas.circle_area, test)
        if word != "eq":
            found[f"lseg_{word}(lseg,lseg)"] = _by(lambda s: lines.distance(*s), test)
    for word, test in _NUMBERED.items():
        found[f"path_n_{word}(path,path)"] = _by(lambda p: len(p[1]), test)
    return found


def _over_values(signature: str, function: Form) -> Form:
    """Return a function of shapes as one of values, by the types that pg_proc has for it."""
    proc = facts().procs[facts().proc_by_signature[signature]]
    unpackers: list[Form] = [_UNPACK.get(oid, _as_is) for oid in proc.arg_types]
    pack: Form = _PACK.get(proc.result, _as_is)
    if len(unpackers) == 1:
        (read,) = unpackers

        def of_one(a: Any) -> Any:
            result = function(read(a))
            return None if result is None else pack(result)

        return of_one
    first, second = unpackers

    def of_two(a: Any, b: Any) -> Any:
        result = function(first(a), second(b))
        return None if result is None else pack(result)

    return of_two


def _as_is(value: Any) -> Any:
    return value


def _printer(oid: int) -> Form:
    def show(session: EvalSession, value: bytes) -> str:
        return text_output(oid, value, session.codec_settings)

    return show


def _register() -> None:
    for table in (_POINTS, _LINES, _LSEGS, _BOXES, _PATHS, _POLYGONS, _CIRCLES, _sides(), _sizes()):
        for signature, function in table.items():
            REGISTRY.python(signature, _over_values(signature, function))
    for oid in _UNPACK:
        name = facts().types[oid].name
        prefix = "poly" if oid == POLYGON else name
        REGISTRY.python(f"{prefix}_in(cstring)", functools.partial(text_input, oid))
        REGISTRY.python(f"{prefix}_out({name})", _printer(oid), needs_session=True)


_register()
