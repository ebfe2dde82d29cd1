"""Engine forms of float4 and float8: arithmetic with PostgreSQL's range errors, functions, casts.

The engines return infinity where PostgreSQL raises 22003, so results are looked at: an infinite result of finite
operands is an overflow, a zero product of non-zero operands an underflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.forms.integer import same
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import Val, kind_of
from planner.types import SqlType

OVERFLOW = ("22003", "value out of range: overflow")
UNDERFLOW = ("22003", "value out of range: underflow")
ZERO_DIVIDE = ("22012", "division by zero")


def _finite(d: Dialect, node: Node) -> Node:
    return b.not_(d.is_infinite(node))


def _arithmetic(symbol: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        kind = kind_of(result.oid)
        operands = [a.node if kind_of(a.type.oid) == kind else d.as_kind(a.node, kind) for a in args]
        zero = d.literal(0.0, kind)
        constant = args[1].constant
        known = isinstance(constant, float) and math.isfinite(constant) and constant != 0

        def body(x: Node, y: Node) -> Node:
            made = b.op(symbol, x, y)
            w = x if b.has_column(x) else y
            overflow = [d.is_infinite(made), _finite(d, x)]
            if not known and symbol != "/":
                overflow.append(_finite(d, y))
            arms = [(b.and_(*overflow), d.error(*OVERFLOW, w))]
            if symbol == "/":
                if not known:
                    divisor = b.and_(b.op("=", y, zero), b.not_(d.is_nan(x)))
                    arms.insert(0, (divisor, d.error(*ZERO_DIVIDE, w)))
                arms.append(
                    (
                        b.and_(b.op("=", made, zero), b.op("<>", x, zero), _finite(d, y)),
                        d.error(*UNDERFLOW, w),
                    )
                )
            if symbol == "*":
                arms.append(
                    (
                        b.and_(b.op("=", made, zero), b.op("<>", x, zero), b.op("<>", y, zero)),
                        d.error(*UNDERFLOW, w),
                    )
                )
            return b.case(arms, made)

        return d.repeat(operands, body)

    return form


def _negate(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return b.neg(args[0].node)


def _absolute(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return b.fn("abs", args[0].node)


def _widen(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return d.as_kind(args[0].node, kind_of(result.oid))


def _narrow(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    def body(x: Node) -> Node:
        made = d.as_kind(x, "float32") if d.name == "spark" else b.cast(x, "REAL")
        safe = b.case([(b.op(">", b.fn("abs", x), d.literal(3.4028235677973366e38, "float64")), b.null())], x)
        if d.name == "duckdb":
            made = b.cast(safe, "REAL")
        overflow = b.and_(
            _finite(d, x),
            b.not_(d.is_nan(x)),
            b.op(">=", b.fn("abs", x), d.literal(3.4028235677973366e38, "float64")),
        )
        underflow = b.and_(
            b.op("=", made, d.literal(0.0, "float32")), b.op("<>", x, d.literal(0.0, "float64"))
        )
        infinite = b.case(
            [
                (
                    d.is_infinite(x),
                    b.case(
                        [(b.op(">", x, d.literal(0.0, "float64")), d.literal(math.inf, "float32"))],
                        d.literal(-math.inf, "float32"),
                    ),
                )
            ],
            made,
        )
        nan = b.case([(d.is_nan(x), d.literal(math.nan, "float32"))], infinite)
        return b.case([(overflow, d.error(*OVERFLOW, x)), (underflow, d.error(*UNDERFLOW, x))], nan)

    return d.repeat([args[0].node], body)


def _function(name: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        return b.fn(name, *(a.node for a in args))

    return form


def _guarded(name: str, bad: Callable[[Dialect, Node], tuple[Node, str, str]]) -> SqlForm:
    """Return a one-argument function whose domain is checked first."""

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        def body(x: Node) -> Node:
            condition, sqlstate, message = bad(d, x)
            return b.case([(condition, d.error(sqlstate, message, x))], b.fn(name, x))

        return d.repeat([args[0].node], body)

    return form


def _negative_root(d: Dialect, x: Node) -> tuple[Node, str, str]:
    bad = b.and_(b.op("<", x, d.literal(0.0, "float64")))
    return bad, "2201F", "cannot take square root of a negative number"


def _log_arms(d: Dialect, x: Node) -> list[tuple[Node, Node]]:
    zero = d.literal(0.0, "float64")
    return [
        (b.op("=", x, zero), d.error("2201E", "cannot take logarithm of zero", x)),
        (b.op("<", x, zero), d.error("2201E", "cannot take logarithm of a negative number", x)),
    ]


def _logarithm(name: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        return d.repeat([args[0].node], lambda x: b.case(_log_arms(d, x), b.fn(name, x)))

    return form


def _exponential(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    def body(x: Node) -> Node:
        made = b.fn("exp", x)
        return b.case(
            [
                (b.and_(d.is_infinite(made), _finite(d, x)), d.error(*OVERFLOW, x)),
                (b.and_(b.op("=", made, d.literal(0.0, "float64")), _finite(d, x)), d.error(*UNDERFLOW, x)),
            ],
            made,
        )

    return d.repeat([args[0].node], body)


def _power(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    zero = d.literal(0.0, "float64")

    def body(x: Node, y: Node) -> Node:
        made = b.fn("pow", x, y)
        return b.case(
            [
                (
                    b.and_(b.op("=", x, zero), b.op("<", y, zero)),
                    d.error("2201F", "zero raised to a negative power is undefined"),
                ),
                (
                    b.and_(
                        b.op("<", x, zero),
                        b.op("<>", b.fn("floor", y), y),
                        b.not_(d.is_infinite(x)),
                        b.not_(d.is_nan(y)),
                    ),
                    d.error(
                        "2201F", "a negative number raised to a non-integer power yields a complex result"
                    ),
                ),
                (b.and_(d.is_infinite(made), _finite(d, x), _finite(d, y)), d.error(*OVERFLOW, x)),
                (
                    b.and_(b.op("=", made, zero), b.op("<>", x, zero), _finite(d, x), _finite(d, y)),
                    d.error(*UNDERFLOW, x),
                ),
            ],
            made,
        )

    return d.repeat([a.node for a in args], body)


def _as_double(function: str) -> SqlForm:
    """Floor, ceiling, sign: some engines return an integer type."""

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        if d.name == "duckdb":
            return b.cast(b.fn(function, args[0].node), "DOUBLE")
        # Spark's floor and ceil of doubles are bigints: they would overflow; built from the remainder instead.
        return _spark_whole(d, function, args[0].node)

    return form


def _spark_whole(d: Dialect, function: str, node: Node) -> Node:
    if function == "sign":
        return b.fn("signum", node)
    limit = d.literal(4503599627370496.0, "float64")

    def body(x: Node) -> Node:
        large = b.or_(b.op(">=", b.fn("abs", x), limit), d.is_nan(x))
        zero = d.literal(0.0, "float64")
        arms = [(b.or_(large, b.op("=", x, zero)), x)]  # a zero keeps its sign
        if function == "ceil":
            small = b.and_(b.op("<", x, zero), b.op(">", x, d.literal(-1.0, "float64")))
            arms.append((small, d.literal(-0.0, "float64")))
        return b.case(arms, b.cast(b.fn(function, x), "DOUBLE"))

    return d.repeat([node], body)


def _round(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return b.fn(
        "round_even" if d.name == "duckdb" else "rint",
        args[0].node,
        *([b.integer(0)] if d.name == "duckdb" else []),
    )


def _truncate(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    def body(x: Node) -> Node:
        negative = b.op("<", x, d.literal(0.0, "float64"))
        low, high = (_as_double(name)(d, [Val(x, result)], result) for name in ("floor", "ceil"))
        return b.case([(negative, high)], low)

    return d.repeat([args[0].node], body)


def _both(signature: str, form: SqlForm) -> None:
    REGISTRY.sql(signature, duckdb=form, spark=form)


for _name, _symbol in (("pl", "+"), ("mi", "-"), ("mul", "*"), ("div", "/")):
    for _tag, _left, _right in (
        ("4", "float4", "float4"), ("8", "float8", "float8"), ("48", "float4", "float8"), ("84", "float8", "float4"),
    ):  # fmt: skip
        _both(f"float{_tag}{_name}({_left},{_right})", _arithmetic(_symbol))
for _tag in ("4", "8"):
    _both(f"float{_tag}um(float{_tag})", _negate)
    _both(f"float{_tag}up(float{_tag})", same)
    _both(f"float{_tag}abs(float{_tag})", _absolute)
    _both(f"abs(float{_tag})", _absolute)
    for _int in ("int2", "int4", "int8"):
        _both(f"float{_tag}({_int})", _widen)
_both("float8(float4)", _widen)
_both("float4(float8)", _narrow)
for _name in ("dsqrt", "sqrt"):
    _both(f"{_name}(float8)", _guarded("sqrt", _negative_root))
for _name in ("dlog1", "ln"):
    _both(f"{_name}(float8)", _logarithm("ln"))
for _name in ("dlog10", "log", "log10"):
    _both(f"{_name}(float8)", _logarithm("log10"))
for _name in ("dexp", "exp"):
    _both(f"{_name}(float8)", _exponential)
for _name in ("dpow", "pow", "power"):
    _both(f"{_name}(float8,float8)", _power)
for _name in ("floor", "ceil", "ceiling", "sign"):
    _both(f"{_name}(float8)", _as_double("ceil" if _name == "ceiling" else _name))
for _name in ("dround", "round"):
    _both(f"{_name}(float8)", _round)
for _name in ("dtrunc", "trunc"):
    _both(f"{_name}(float8)", _truncate)
for _name in ("cbrt", "atan", "atan2", "degrees", "radians", "sinh", "cosh", "tanh", "asinh"):
    _both(f"{_name}(float8{',float8' if _name == 'atan2' else ''})", _function(_name))


def _random(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """Return DuckDB's; a session that has called setseed() is not served so (``Dialect.draws``)."""
    d.draws = True
    return b.fn("random")


REGISTRY.sql("random()", duckdb=_random)
