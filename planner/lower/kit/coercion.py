"""Coercions that PostgreSQL does by typmod or by printing and reading a value.

Reading text is strict as PostgreSQL is: the text is matched first, because the engines accept more (``0x1``,
``1_000``, ``1.5`` as an integer) and round where PostgreSQL refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner import facts as f
from planner.base.errors import not_supported
from planner.catalog import EnumLabel
from planner.facts import facts
from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import (
    FLOATING,
    INFINITY_SCALE,
    MAX_PRECISION,
    MINUS_INFINITY_SCALE,
    NAN_SCALE,
    Fixed,
    Floating,
    Val,
    declared_num,
    kind_of,
)
from planner.types import SqlType
from planner.types.facts import format_type, type_kind

_INTEGER_NAMES = {"int16": "smallint", "int32": "integer", "int64": "bigint"}
_BLANK = "[ \\t\\n\\r\\f]*"
INTEGER_TEXT = f"{_BLANK}[+-]?[0-9]+{_BLANK}"
HEXADECIMAL_TEXT = r"[ \t\n\r\f]*[+-]?0[xX].*"
FLOAT_TEXT = (
    f"{_BLANK}[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
    f"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN]){_BLANK}"
)


def via_text(d: Dialect, value: Val, target: SqlType) -> Val:
    """Return the value printed and read again as ``target``.

    Raises:
        SqlError: 0A000 for pairs without an engine form.
    """
    if value.type.oid == f.CITEXT and target.oid in (f.TEXT, f.VARCHAR):
        return Val(d.let([value.node], lambda x: _text_of_citext(d, x)), target)
    source_kind, target_kind = kind_of(value.type.oid), kind_of(target.oid)
    if source_kind == "text" and target_kind == "text":
        if target.oid in (f.TEXT, f.VARCHAR, f.BPCHAR) and value.type.oid != f.CHAR:
            return Val(value.node, target)
    elif target_kind == "text" and target.oid in (f.TEXT, f.VARCHAR, f.BPCHAR):
        return Val(to_text(d, value), target)
    elif source_kind == "text" and type_kind(target.oid) == "e":
        return Val(_read_enum(d, value.node, target.oid), target)
    elif source_kind == "text" and target_kind in _INTEGER_NAMES and target.oid in (f.INT2, f.INT4, f.INT8):
        return Val(_read_integer(d, value.node, target_kind), target)
    elif source_kind == "text" and target_kind in ("float32", "float64"):
        return Val(_read_float(d, value.node, target_kind), target)
    elif source_kind == "text" and target_kind == "bool":
        return Val(_read_bool(d, value.node), target)
    source_name = facts().types[value.type.oid].name
    raise not_supported(f"a cast from {source_name} to {facts().types[target.oid].name} in this executor")


def _invalid(d: Dialect, type_name: str, text: Node) -> Node:
    message = b.fn("concat", b.string(f'invalid input syntax for type {type_name}: "'), text, b.string('"'))
    return d.failing("22P02", message)


MOST_LABELS = 2000
"""Labels of an enum that is read or printed by a CASE with an arm for each."""


def _labels(d: Dialect, oid: int) -> Sequence[EnumLabel]:
    """Return the labels of an enum. Raises SqlError 0A000 where there are too many to be looked through for
    each value.
    """
    found = d.labels(oid)
    if len(found) > MOST_LABELS:
        raise not_supported(f"the text of an enum of more than {MOST_LABELS} labels in this executor")
    return found


def _read_enum(d: Dialect, node: Node, oid: int) -> Node:
    def body(x: Node) -> Node:
        quoted = b.fn(
            "concat", b.string(f'invalid input value for enum {format_type(oid)}: "'), x, b.string('"')
        )
        arms = [(b.op("=", x, b.string(i.label)), d.literal(i.rank, "int64")) for i in _labels(d, oid)]
        return b.case([(b.is_null(x), b.null()), *arms], d.failing("22P02", quoted))

    return d.let([node], body)


def _read_integer(d: Dialect, node: Node, kind: str) -> Node:
    def body(x: Node) -> Node:
        name = _INTEGER_NAMES[kind]
        message = b.fn("concat", b.string('value "'), x, b.string(f'" is out of range for type {name}'))
        trimmed = b.fn("trim", b.fn("translate", x, b.string("\t\n\r\f+"), b.string("    ")))
        read = b.fn("coalesce", d.try_cast(trimmed, d.types[kind]), d.failing("22003", message))
        return b.case(
            [(b.is_null(x), b.null()), (b.not_(d.matches(x, INTEGER_TEXT)), _invalid(d, name, x))], read
        )

    return d.let([node], body)


def _read_float(d: Dialect, node: Node, kind: str) -> Node:
    name = "double precision" if kind == "float64" else "real"

    def body(x: Node) -> Node:
        trimmed = b.fn("trim", b.fn("translate", x, b.string("\t\n\r\f"), b.string("    ")))
        message = b.fn("concat", b.string('"'), x, b.string(f'" is out of range for type {name}'))

        def checked(read: Node) -> Node:
            overflow = b.and_(d.is_infinite(read), b.not_(d.matches(x, ".*[iI][nN][fF].*")))
            # Underflow: only zero digits before the exponent may read as zero.
            underflow = b.and_(b.op("=", read, b.integer(0)), d.matches(x, "[^1-9eE]*[1-9].*"))
            return b.case([(b.or_(overflow, underflow), d.failing("22003", message))], read)

        hexadecimal = d.error("0A000", "a hexadecimal number as a text in this executor is not supported", x)
        return b.case(
            [
                (b.is_null(x), b.null()),
                (d.matches(x, HEXADECIMAL_TEXT), hexadecimal),
                (b.not_(d.matches(x, FLOAT_TEXT)), _invalid(d, name, x)),
            ],
            d.let([d.try_cast(trimmed, d.types[kind])], checked),
        )

    return d.let([node], body)


def _read_bool(d: Dialect, node: Node) -> Node:
    trues = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
    falses = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")

    def body(x: Node) -> Node:
        word = b.fn("lower", b.fn("trim", b.fn("translate", x, b.string("\t\n\r\f"), b.string("    "))))
        return b.case(
            [
                (b.is_null(x), b.null()),
                (b.in_(word, [b.string(t) for t in trues]), b.boolean(True)),
                (b.in_(word, [b.string(t) for t in falses]), b.boolean(False)),
            ],
            _invalid(d, "boolean", x),
        )

    return d.let([node], body)


def _text_of_citext(d: Dialect, x: Node) -> Node:
    """Return the text of a citext: as long as its last four bytes say, right before them; 0: all before them
    (``pgwire.codecs.text.citext``).
    """
    size = b.op("-", b.fn("octet_length", x), b.integer(4))
    count = d.number_of_hex(b.fn("hex", d.bytes_of(x, b.op("+", size, b.integer(1)), b.integer(4))))

    def body(size: Node, count: Node) -> Node:
        length = b.case([(b.op("=", count, b.integer(0)), size), (b.boolean(True), count)])
        found = d.bytes_of(x, b.op("+", b.op("-", size, length), b.integer(1)), length)
        return b.fn("decode", found) if d.name == "duckdb" else b.fn("decode", found, b.string("UTF-8"))

    return d.let([size, count], body)


def to_text(d: Dialect, value: Val) -> Node:
    """Return PostgreSQL's output text of a boolean, integer, enum or numeric.

    Raises:
        SqlError: 0A000 for other types.
    """
    kind = kind_of(value.type.oid)
    if kind == "bool":
        return b.case([(value.node, b.string("true")), (b.not_(value.node), b.string("false"))])
    if kind in _INTEGER_NAMES and value.type.oid in (f.INT2, f.INT4, f.INT8, f.OID):
        return d.to_text(value.node)
    if type_kind(value.type.oid) == "e":

        def label(x: Node) -> Node:
            arms = [
                (b.op("=", x, d.literal(i.rank, "int64")), b.string(i.label))
                for i in _labels(d, value.type.oid)
            ]
            return b.case([(b.is_null(x), b.null()), *arms])

        return d.let([value.node], label)
    if isinstance(value.num, Fixed) and value.num.dynamic is None:
        scale = value.num.scale
        if (
            d.name == "duckdb" and value.num.precision == scale
        ):  # it prints .5, and 0.5 where there is room for a digit
            if scale == MAX_PRECISION:
                raise not_supported("the text of a numeric of 38 places in this executor")
            return d.to_text(b.cast(value.node, d.decimal(scale + 1, scale)))
        return d.to_text(value.node)
    if value.num is not None:
        return _floating_text(d, numeric.to_floating(d, value))
    raise not_supported(f"the text of a {facts().types[value.type.oid].name} in this executor")


def _floating_text(d: Dialect, node: Node) -> Node:
    def body(p: Node) -> Node:
        s = b.field(p, "s")

        def digits(text: Node) -> Node:
            whole = b.op("-", d.length(text), s)
            point = b.fn(
                "concat",
                b.fn("substr", text, b.integer(1), whole),
                b.string("."),
                b.fn("substr", text, b.op("+", whole, b.integer(1))),
            )
            return b.case([(b.op("=", s, b.integer(0)), text)], point)

        magnitude = d.to_text(b.fn("abs", b.field(p, "u")))
        padded = b.fn(
            "lpad",
            magnitude,
            b.fn("greatest", b.op("+", s, b.integer(1)), d.length(magnitude)),
            b.string("0"),
        )
        sign = b.case([(b.op("<", b.field(p, "u"), b.integer(0)), b.string("-"))], b.string(""))
        return b.case(
            [
                (b.is_null(p), b.null()),
                (b.op("=", s, b.integer(NAN_SCALE)), b.string("NaN")),
                (b.op("=", s, b.integer(INFINITY_SCALE)), b.string("Infinity")),
                (b.op("=", s, b.integer(MINUS_INFINITY_SCALE)), b.string("-Infinity")),
            ],
            b.fn("concat", sign, d.let([padded], digits)),
        )

    return d.let([node], body)


def typmod(d: Dialect, value: Val, target: SqlType, explicit: bool) -> Val:
    """Apply ``target``'s typmod.

    Raises:
        SqlError: 0A000 for typmods without an engine form. At run time 22001 or 22003 as PostgreSQL raises.
    """
    if target.oid == f.NUMERIC:
        num = declared_num(target)
        if target.typmod >= 4 and isinstance(num, Floating):
            raise not_supported("numeric of more than 38 digits or a negative scale in this executor")
        made = numeric.coerce(d, value, num or FLOATING)
        return Val(made.node, target, made.num)
    if target.typmod < 0:
        return Val(value.node, target, value.num, value.constant)
    if target.oid in (f.VARCHAR, f.BPCHAR) and target.typmod >= 4:
        length = target.typmod - 4
        if target.oid == f.VARCHAR:
            return Val(_cut(d, value.node, length, "character varying", explicit), target)
        cut = _cut(d, value.node, length, "character", explicit)
        return Val(b.fn("rpad", cut, b.integer(length), b.string(" ")), target, padded=length)
    if target.oid in (f.TIMESTAMP, f.TIMESTAMPTZ, f.TIME) and target.typmod >= 6:
        return Val(value.node, target)
    raise not_supported(f"the length or precision of a {facts().types[target.oid].name} in this executor")


def _cut(d: Dialect, node: Node, length: int, name: str, explicit: bool) -> Node:
    if explicit:
        return b.fn("substr", node, b.integer(1), b.integer(length))

    def body(x: Node) -> Node:
        rest = b.fn("substr", x, b.integer(length + 1))
        excess = b.op("<>", b.fn("trim", rest), b.string(""))
        return b.case(
            [(excess, d.error("22001", f"value too long for type {name}({length})", x))],
            b.fn("substr", x, b.integer(1), b.integer(length)),
        )

    return d.repeat([node], body)
