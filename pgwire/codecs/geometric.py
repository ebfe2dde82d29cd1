"""Geometric types (manual 8.8): values are ``bytes``, the binary form of the wire, and how PostgreSQL reads
and prints them.

    point    x y                        '(1,2)'                      line     A B C           '{1,-1,0}'
    lseg     x y x y                    '[(0,0),(1,2)]'              circle   x y radius      '<(1,2),3>'
    box      high x y, low x y          '(1,2),(0,0)'                polygon  count, x y ...  '((0,0),(1,2))'
    path     closed, count, x y ...     '[(0,0),(1,2)]' open, '((0,0),(1,2))' closed

Coordinates are doubles of eight bytes, counts of four, ``closed`` is one byte. The bytes are not in any order
of the type: none of them has one. Functions of this module see shapes as tuples: a Point is ``(x, y)``, an
Lseg two Points, a Box its upper right and lower left corner, a Circle ``(center, radius)``.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pgwire.codecs.errors import DataError
from pgwire.codecs.float import float8_printer, parse_float8
from pgwire.codecs.invalid import invalid_syntax
from pgwire.codecs.settings import CodecSettings
from pgwire.give_way import give_way, paced
from pgwire.long.arrays import tupled
from pgwire.long.values import cut_bytes, joined, joined_bytes, joined_up, run_end
from pgwire.release import mind_long

Point: TypeAlias = tuple[float, float]
Lseg: TypeAlias = tuple[Point, Point]
Box: TypeAlias = tuple[Point, Point]
Line: TypeAlias = tuple[float, float, float]
Circle: TypeAlias = tuple[Point, float]
Points: TypeAlias = tuple[Point, ...]
Path: TypeAlias = tuple[bool, Points]
"""Whether it is closed, and its points."""

EPSILON: Final = 1e-6
"""What is not farther apart counts as equal (PostgreSQL's geo_decls.h)."""
MAX_POINTS: Final = (2**31 - 1 - 40) // 16

_TWO: Final = struct.Struct(">2d")
_THREE: Final = struct.Struct(">3d")
_FOUR: Final = struct.Struct(">4d")
_COUNT: Final = struct.Struct(">i")
_PATH_HEAD: Final = struct.Struct(">Bi")

_SPACES: Final = re.compile(r"[ \t\n\v\f\r]*")
_NUMBER: Final = re.compile(
    r"[+-]?(?:0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?"
    r"|inf(?:inity)?|nan(?:\([0-9a-z_]*\))?)",
    re.ASCII | re.IGNORECASE,
)

# What most texts are: decimals that a double cannot miss, no blanks, one way of writing points.
_DECIMAL: Final = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"
_DECIMALS: Final = re.compile(_DECIMAL, re.ASCII)
_PLAIN_POINTS: Final = re.compile(
    rf"(?P<open>[\[(]?)\({_DECIMAL},{_DECIMAL}\)(?:,\({_DECIMAL},{_DECIMAL}\))*(?P<close>[\])]?)", re.ASCII
)
_SHORT: Final = 1 << 14
"""Characters of a text that is looked through as a whole."""
_RUN: Final = 1024
"""Points, or their numbers, that are handled in one call."""
_PLAIN_RUN: Final = re.compile(
    rf"\({_DECIMAL},{_DECIMAL}\)(?:,\({_DECIMAL},{_DECIMAL}\)){{0,{_RUN - 1}}}", re.ASCII
)

# -- bytes and tuples ------------------------------------------------------------------------------------


def pack_point(point: Point) -> bytes:
    """Return the value of a point."""
    return _TWO.pack(*point)


def unpack_point(value: bytes) -> Point:
    """Return the point of a value."""
    x, y = _TWO.unpack(value)
    return x, y


def pack_two(points: tuple[Point, Point]) -> bytes:
    """Return the value of an lseg, or of a box whose corners are in their places."""
    return _FOUR.pack(*points[0], *points[1])


def unpack_two(value: bytes) -> tuple[Point, Point]:
    """Return the two points of an lseg or box."""
    a, b, c, d = _FOUR.unpack(value)
    return (a, b), (c, d)


def pack_line(line: Line) -> bytes:
    """Return the value of a line."""
    return _THREE.pack(*line)


def unpack_line(value: bytes) -> Line:
    """Return the line of a value."""
    a, b, c = _THREE.unpack(value)
    return a, b, c


def pack_circle(circle: Circle) -> bytes:
    """Return the value of a circle."""
    return _THREE.pack(*circle[0], circle[1])


def unpack_circle(value: bytes) -> Circle:
    """Return the circle of a value."""
    x, y, radius = _THREE.unpack(value)
    return (x, y), radius


def _pack_points(points: Sequence[Point]) -> bytes:
    return _flat(mind_long([c for point in paced(points) for c in point]))


def _flat(numbers: Sequence[float]) -> bytes:
    return joined_bytes(
        [
            struct.pack(f">{len(piece)}d", *piece)
            for at in paced(range(0, len(numbers), _RUN), 1)
            for piece in (numbers[at : at + _RUN],)
        ]
    )


def _unpack_points(data: bytes, start: int = 0) -> Points:
    step = _RUN * _TWO.size
    if len(data) <= step:
        return tuple(_TWO.iter_unpack(data[start:]))
    found: list[Point] = []
    for at in paced(range(start, len(data), step), 1):
        found += _TWO.iter_unpack(data[at : at + step])
    return mind_long(tupled(found))


def pack_path(path: Path) -> bytes:
    """Return the value of a path."""
    closed, points = path
    return joined_bytes((_PATH_HEAD.pack(closed, len(points)), _pack_points(points)))


def unpack_path(value: bytes) -> Path:
    """Return the path of a value."""
    return value[0] != 0, _unpack_points(value, _PATH_HEAD.size)


def pack_polygon(points: Sequence[Point]) -> bytes:
    """Return the value of a polygon."""
    return joined_bytes((_COUNT.pack(len(points)), _pack_points(points)))


def unpack_polygon(value: bytes) -> Points:
    """Return the points of a polygon."""
    return _unpack_points(value, _COUNT.size)


def less(a: float, b: float) -> bool:
    """Whether ``a`` comes before ``b`` in the order of floats, in which NaN is above all."""
    return a < b or (b != b and a == a)


def box_of(one: Point, other: Point) -> Box:
    """Return the box with two opposite corners; of equal coordinates the other's is the upper one."""
    (x, y), (u, v) = one, other
    right, left = (x, u) if less(u, x) else (u, x)
    top, bottom = (y, v) if less(v, y) else (v, y)
    return (right, top), (left, bottom)


# -- lines through points ----------------------------------------------------------------------------------


def near(a: float, b: float) -> bool:
    """Whether two numbers are equal but for EPSILON; NaN is near nothing."""
    return a == b or abs(a - b) <= EPSILON


def same_point(one: Point, other: Point) -> bool:
    """Whether two points are the same; NaN is equal to itself."""
    (x, y), (u, v) = one, other
    if near(x, u) and near(y, v):
        return True
    return (x == u or (x != x and u != u)) and (y == v or (y != y and v != v))


# -- text ------------------------------------------------------------------------------------------------


class _Reader:
    """Reads a text from the left; what does not fit is 22P02, with the type's name and the whole text."""

    def __init__(self, text: str, type_name: str) -> None:
        self.text = text
        self.type_name = type_name
        self.at = 0

    def error(self) -> DataError:
        return invalid_syntax(self.type_name, self.text)

    def skip(self) -> str:
        """Go over blanks; return the character after them, "" at the end."""
        self.at = run_end(_SPACES, self.text, self.at)
        return self.here()

    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def after_spaces(self, at: int) -> int:
        return run_end(_SPACES, self.text, at)

    def take(self, wanted: str) -> None:
        if self.here() != wanted:
            raise self.error()
        self.at += 1

    def end(self) -> None:
        if self.at != len(self.text):
            raise self.error()

    def number(self) -> float:
        """Read a number and the blanks around it. DataError 22P02, 22003."""
        self.skip()
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self.error()
        self.at = match.end()
        self.skip()
        return math.nan if match[0].endswith(")") else parse_float8(match[0])

    def pair(self) -> Point:
        """Read ``x,y`` or ``(x,y)``."""
        enclosed = self.skip() == "("
        if enclosed:
            self.at += 1
        x = self.number()
        self.take(",")
        y = self.number()
        if enclosed:
            self.take(")")
            self.skip()
        return x, y

    def is_last(self, char: str) -> bool:
        """Whether the character here does not come again."""
        return self.text.rfind(char) == self.at

    def points(self, count: int, *, may_be_open: bool) -> tuple[bool, Points]:
        """Read points, with or without delimiters around all of them; return whether these were brackets."""
        is_open = self.skip() == "["
        depth = 0
        if is_open:
            if not may_be_open:
                raise self.error()
            depth = 1
            self.at += 1
        elif self.here() == "(":
            inner = self.after_spaces(self.at + 1)
            if self.text[inner : inner + 1] == "(" or self.is_last("("):
                depth = 1
                self.at = inner
        found: list[Point] = []
        for _ in range(count):
            found.append(self.pair())
            give_way()
            if self.here() == ",":
                self.at += 1
        if depth:
            if self.here() != ")" and not (is_open and self.here() == "]"):
                raise self.error()
            self.at += 1
            self.skip()
        return is_open, tuple(found)

    def count_pairs(self) -> int:
        """Return how many points the whole text has, by its commas. DataError 22P02 for half a point."""
        commas = self.text.count(",")
        if not commas % 2:
            raise self.error()
        return (commas + 1) // 2


def _plain(text: str, around: str) -> tuple[float, ...] | None:
    """Return the numbers of points that are written the plain way between two delimiters (or none), None for
    other texts.
    """
    if len(text) > _SHORT:
        return _plain_long(text, around)
    match = _PLAIN_POINTS.fullmatch(text)
    if match is None or match["open"] + match["close"] != around:
        return None
    return tuple(map(float, _DECIMALS.findall(text)))


def _plain_long(text: str, around: str) -> tuple[float, ...] | None:
    """Do what ``_plain`` does, some points at a time."""
    opening, closing = around[:1], around[1:]
    if not (text.startswith(opening + "(") and text.endswith(")" + closing)):
        return None
    numbers: list[float] = []
    at, end = len(opening), len(text) - len(closing)
    while True:
        run = _PLAIN_RUN.match(text, at, end)
        if run is None:
            return None
        numbers += map(float, _DECIMALS.findall(run[0]))
        at = run.end()
        if at == end:
            return tuple(numbers)
        if text[at] != ",":
            return None
        at += 1
        give_way()


def parse_point(text: str) -> bytes:
    """Read ``(x,y)``. DataError 22P02, 22003, as from all functions here."""
    numbers = _plain(text, "")
    if numbers is not None and len(numbers) == 2:
        return _TWO.pack(*numbers)
    reader = _Reader(text, "point")
    point = reader.pair()
    reader.end()
    return pack_point(point)


def parse_lseg(text: str) -> bytes:
    """Read ``[(x,y),(x,y)]``."""
    numbers = _plain(text, "[]")
    if numbers is not None and len(numbers) == 4:
        return _FOUR.pack(*numbers)
    reader = _Reader(text, "lseg")
    _, points = reader.points(2, may_be_open=True)
    reader.end()
    return _pack_points(points)


def parse_box(text: str) -> bytes:
    """Read ``(x,y),(x,y)``: two opposite corners."""
    numbers = _plain(text, "")
    if numbers is not None and len(numbers) == 4:
        return pack_two(_in_place((numbers[:2], numbers[2:])))
    reader = _Reader(text, "box")
    _, (one, other) = reader.points(2, may_be_open=False)
    reader.end()
    return pack_two(_in_place((one, other)))


def _in_place(corners: tuple[Point, Point]) -> Box:
    """Return a box of its two corners, each coordinate where it belongs."""
    (x, y), (u, v) = corners
    right, left = (u, x) if less(x, u) else (x, u)
    top, bottom = (v, y) if less(y, v) else (y, v)
    return (right, top), (left, bottom)


def parse_path(text: str) -> bytes:
    """Read ``[(x,y), ...]`` (open) or ``((x,y), ...)`` (closed)."""
    closed = not text.startswith("[")
    numbers = _plain(text, "()" if closed else "[]")
    if numbers is not None:
        return _PATH_HEAD.pack(closed, len(numbers) // 2) + _flat(numbers)
    reader = _Reader(text, "path")
    count = reader.count_pairs()
    enclosed = reader.skip() == "(" and reader.is_last("(")
    if enclosed:
        reader.at += 1
    is_open, points = reader.points(count, may_be_open=True)
    if enclosed:
        reader.take(")")
        reader.skip()
    reader.end()
    return pack_path((not is_open, points))


def parse_polygon(text: str) -> bytes:
    """Read ``((x,y), ...)``."""
    numbers = _plain(text, "()")
    if numbers is not None:
        return _COUNT.pack(len(numbers) // 2) + _flat(numbers)
    reader = _Reader(text, "polygon")
    _, points = reader.points(reader.count_pairs(), may_be_open=False)
    reader.end()
    return pack_polygon(points)


def parse_circle(text: str) -> bytes:
    """Read ``<(x,y),r>``; a radius below zero is 22P02."""
    reader = _Reader(text, "circle")
    depth = 0
    if reader.skip() == "<":
        depth = 1
        reader.at += 1
    elif reader.here() == "(":
        inner = reader.after_spaces(reader.at + 1)
        if text[inner : inner + 1] == "(":
            depth = 1
            reader.at = inner
    center = reader.pair()
    if reader.here() == ",":
        reader.at += 1
    radius = reader.number()
    if radius < 0.0:
        raise reader.error()
    if depth:
        if reader.here() not in (")", ">"):
            raise reader.error()
        reader.at += 1
        reader.skip()
    reader.end()
    return pack_circle((center, radius))


def parse_line(text: str) -> bytes:
    """Read ``{A,B,C}`` of Ax + By + C = 0, or two points of a line. DataError 22P02 also for what is no line."""
    reader = _Reader(text, "line")
    if reader.skip() == "{":
        reader.at += 1
        a = reader.number()
        reader.take(",")
        b = reader.number()
        reader.take(",")
        c = reader.number()
        reader.take("}")
        reader.skip()
        reader.end()
        if abs(a) <= EPSILON and abs(b) <= EPSILON:
            raise DataError("22P02", "invalid line specification: A and B cannot both be zero")
        return pack_line((a, b, c))
    _, (one, other) = reader.points(2, may_be_open=True)
    reader.end()
    if same_point(one, other):
        raise DataError("22P02", "invalid line specification: must be two distinct points")
    return pack_line(line_through(one, slope(one, other)))


# -- lines by point and slope: what parse_line and the functions of lines share ------------------------------


def _checked(result: float, *operands: float) -> float:
    if math.isinf(result) and not any(map(math.isinf, operands)):
        raise DataError("22003", "value out of range: overflow")
    return result


def slope(one: Point, other: Point) -> float:
    """Return the slope of the line through two points: infinite where it is upright, or they are the same. 22003."""
    (x, y), (u, v) = one, other
    if near(x, u):
        return math.inf
    if near(y, v):
        return 0.0
    return quotient(_checked(y - v, y, v), _checked(x - u, x, u))


def quotient(a: float, b: float) -> float:
    """Return a / b of floats. DataError 22012, 22003 for what overflows or vanishes."""
    if b == 0.0:
        if a == a:
            raise DataError("22012", "division by zero")
        return math.nan
    result = a / b
    if result == 0.0 and a != 0.0 and not math.isinf(b):
        raise DataError("22003", "value out of range: underflow")
    return _checked(result, a)


def product(a: float, b: float) -> float:
    """Return a * b of floats. DataError 22003 for what overflows or vanishes."""
    result = a * b
    if result == 0.0 and a != 0.0 and b != 0.0:
        raise DataError("22003", "value out of range: underflow")
    return _checked(result, a, b)


def line_through(point: Point, m: float) -> Line:
    """Return the line through a point with a slope; x = C where that is infinite. 22003."""
    x, y = point
    if math.isinf(m):
        return -1.0, 0.0, x
    if m == 0.0:
        return 0.0, -1.0, y
    shift = product(m, x)
    return m, -1.0, _checked(y - shift, y, shift) + 0.0


# -- printing ----------------------------------------------------------------------------------------------

Show: TypeAlias = Callable[[bytes], str]


def _pairs(settings: CodecSettings) -> Callable[[Sequence[Point]], str]:
    show = float8_printer(settings.extra_float_digits)
    return lambda points: joined_up([f"({show(x)},{show(y)})" for x, y in paced(points)], ",")


def point_printer(settings: CodecSettings) -> Show:
    """Return the printer of points: ``(x,y)``."""
    show = float8_printer(settings.extra_float_digits)

    def print_point(value: bytes) -> str:
        x, y = _TWO.unpack(value)
        return f"({show(x)},{show(y)})"

    return print_point


def lseg_printer(settings: CodecSettings) -> Show:
    """Return the printer of segments: ``[(x,y),(x,y)]``."""
    pairs = _pairs(settings)
    return lambda value: f"[{pairs(_unpack_points(value))}]"


def box_printer(settings: CodecSettings) -> Show:
    """Return the printer of boxes: ``(x,y),(x,y)``, the upper right corner first."""
    pairs = _pairs(settings)
    return lambda value: pairs(_unpack_points(value))


def path_printer(settings: CodecSettings) -> Show:
    """Return the printer of paths: brackets for open ones."""
    pairs = _pairs(settings)

    def print_path(value: bytes) -> str:
        closed, points = unpack_path(value)
        opening, closing = "()" if closed else "[]"
        return joined((opening, pairs(points), closing))

    return print_path


def polygon_printer(settings: CodecSettings) -> Show:
    """Return the printer of polygons: ``((x,y),...)``."""
    pairs = _pairs(settings)
    return lambda value: joined(("(", pairs(unpack_polygon(value)), ")"))


def line_printer(settings: CodecSettings) -> Show:
    """Return the printer of lines: ``{A,B,C}``."""
    show = float8_printer(settings.extra_float_digits)
    return lambda value: "{" + ",".join([show(c) for c in _THREE.unpack(value)]) + "}"


def circle_printer(settings: CodecSettings) -> Show:
    """Return the printer of circles: ``<(x,y),r>``."""
    show = float8_printer(settings.extra_float_digits)

    def print_circle(value: bytes) -> str:
        x, y, radius = _THREE.unpack(value)
        return f"<({show(x)},{show(y)}),{show(radius)}>"

    return print_circle


# -- binary ------------------------------------------------------------------------------------------------


def _of_length(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise DataError("08P01", "insufficient data left in message")
    if len(data) > size:
        raise DataError("22P03", "incorrect binary data format")
    return bytes(data)


def receive_point(data: bytes) -> bytes:
    """Read two doubles. DataError 08P01, 22P03."""
    return _of_length(data, 16)


def receive_lseg(data: bytes) -> bytes:
    """Read four doubles."""
    return _of_length(data, 32)


def receive_box(data: bytes) -> bytes:
    """Read two opposite corners."""
    return pack_two(_in_place(unpack_two(_of_length(data, 32))))


def receive_line(data: bytes) -> bytes:
    """Read three doubles; 22P03 for what is no line."""
    line = unpack_line(_of_length(data, 24))
    if abs(line[0]) <= EPSILON and abs(line[1]) <= EPSILON:
        raise DataError("22P03", "invalid line specification: A and B cannot both be zero")
    return bytes(data)


def receive_circle(data: bytes) -> bytes:
    """Read three doubles; 22P03 for a radius below zero."""
    if unpack_circle(_of_length(data, 24))[1] < 0.0:
        raise DataError("22P03", 'invalid radius in external "circle" value')
    return bytes(data)


def _count_of(data: bytes, at: int, type_name: str) -> int:
    if len(data) < at + 4:
        raise DataError("08P01", "insufficient data left in message")
    (count,) = _COUNT.unpack_from(data, at)
    if not 0 < count < MAX_POINTS:
        raise DataError("22P03", f'invalid number of points in external "{type_name}" value')
    return int(count)


def receive_path(data: bytes) -> bytes:
    """Read whether it is closed, a count and points."""
    count = _count_of(data, 1, "path")
    checked = _of_length(data, _PATH_HEAD.size + 16 * count)
    return joined_bytes((bytes((checked[0] != 0,)), cut_bytes(checked, 1)))


def receive_polygon(data: bytes) -> bytes:
    """Read a count and points."""
    return _of_length(data, _COUNT.size + 16 * _count_of(data, 0, "polygon"))
