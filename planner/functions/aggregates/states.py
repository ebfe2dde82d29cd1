"""Aggregates: one state object per group, stepped with each row's arguments.

Exact types accumulate exactly (integers as Python integers, numeric at full precision) and finish with
PostgreSQL's scale rules; floats use its Youngs-Cramer update, so that the digits agree for the same row order.
Ordered-set aggregates are stepped in WITHIN GROUP order and get their direct arguments at creation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pgwire.codecs.array import around, array_shape
from pgwire.codecs.domain import TUPLE_TYPES
from pgwire.codecs.json import key_order, quote
from pgwire.give_way import give_way, paced
from pgwire.long import dicts as long_dicts
from pgwire.long.arrays import tupled
from pgwire.long.values import in_order, joined, joined_bytes
from pgwire.release import release
from planner.base import floats
from planner.base.errors import SqlError
from planner.base.large import foresee
from planner.facts import ANYARRAY, BPCHAR, facts
from planner.functions.json.values import key_text
from planner.functions.numbers import floating, numeric
from planner.functions.numbers.bits import bit_and, bit_or, bit_xor
from planner.functions.numbers.integer import check8
from planner.functions.registry import REGISTRY, AggregateState
from planner.functions.session import EvalSession
from planner.functions.values.compare import sort_key
from planner.functions.values.record_keys import ordered
from planner.types.facts import element_of


class Count:
    """SQL's ``count`` and count(x)."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def step(self, *args: Any) -> None:
        """Count."""
        self.n += 1

    def many(self, values: list[Any]) -> None:
        """Count a batch."""
        self.n += len(values)

    def result(self) -> int:
        """Return the number of rows."""
        return self.n


class SumInt:
    """SQL's ``sum``, sum(int4): bigint."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total: int | None = None

    def step(self, value: int) -> None:
        """Add."""
        self.total = value if self.total is None else self.total + value

    def many(self, values: list[int]) -> None:
        """Add a batch."""
        self.total = sum(values) + (self.total or 0)

    def result(self) -> int | None:
        """Return the sum; 22003 past bigint."""
        return None if self.total is None else check8(self.total)


class SumBigint(SumInt):
    """SQL's ``sum``: numeric."""

    __slots__ = ()

    def result(self) -> Any:
        """Return the sum as numeric."""
        return None if self.total is None else Decimal(self.total)


class SumNumeric:
    """SQL's ``sum``."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total: Decimal | None = None

    def step(self, value: Decimal) -> None:
        """Add exactly."""
        self.total = value if self.total is None else numeric.EXACT.add(self.total, value)

    def result(self) -> Decimal | None:
        """Return the sum; 22003 when too large."""
        return None if self.total is None else numeric.checked(self.total)


class SumFloat:
    """SQL's ``sum``, sum(float8)."""

    __slots__ = ("add", "total")

    def __init__(self, add: Callable[[float, float], float] = floats.add) -> None:
        self.add = add
        self.total: float | None = None

    def step(self, value: float) -> None:
        """Add."""
        self.total = value if self.total is None else self.add(self.total, value)

    def result(self) -> float | None:
        """Return the sum."""
        return self.total


class ExactMoments:
    """avg, variance and stddev of integers and numerics from N, sum and sum of squares."""

    __slots__ = ("finish", "n", "squares", "total", "want_squares")

    def __init__(self, finish: Callable[[int, Decimal, Decimal], Decimal | None], want_squares: bool) -> None:
        self.finish = finish
        self.want_squares = want_squares
        self.n = 0
        self.total: Any = 0
        self.squares: Any = 0

    def step(self, value: Any) -> None:
        """Take a value."""
        self.n += 1
        if value.__class__ is int:
            self.total += value
            if self.want_squares:
                self.squares += value * value
            return
        context = numeric.EXACT
        self.total = context.add(Decimal(self.total) if self.total.__class__ is int else self.total, value)
        if self.want_squares:
            squares = Decimal(self.squares) if self.squares.__class__ is int else self.squares
            if value.__sizeof__() > numeric.FEW_BYTES:
                give_way()
            self.squares = context.add(squares, numeric.product(value, value))

    def many(self, values: list[Any]) -> None:
        """Take a batch: integers are summed at once."""
        if values[0].__class__ is not int:
            for value in paced(values, 16):
                self.step(value)
            return
        self.n += len(values)
        self.total += sum(values)
        if self.want_squares:
            self.squares += sum([v * v for v in values])

    def result(self) -> Decimal | None:
        """Return the statistic; NULL for too few values."""
        if not self.n:
            return None
        return self.finish(self.n, Decimal(self.total), Decimal(self.squares))


def _average(n: int, total: Decimal, squares: Decimal) -> Decimal:
    return numeric.div(total, Decimal(n))


def _spread(sample: bool, root: bool) -> Callable[[int, Decimal, Decimal], Decimal | None]:
    """Return variance or standard deviation (numeric_stddev_internal)."""

    def finish(n: int, total: Decimal, squares: Decimal) -> Decimal | None:
        if sample and n < 2:
            return None
        if not total.is_finite() or not squares.is_finite():
            return numeric.NAN
        context = numeric.EXACT
        top = context.subtract(context.multiply(Decimal(n), squares), numeric.product(total, total))
        if top <= 0:
            return Decimal(0)
        bottom = Decimal(n * (n - 1) if sample else n * n)
        scale = numeric.div_scale(top, bottom)
        variance = numeric.divided(top, bottom, scale)
        return numeric.checked(numeric.sqrt_at(variance, scale) if root else variance)

    return finish


class FloatMoments:
    """avg, variance, stddev of floats (Youngs and Cramer's update)."""

    __slots__ = ("finish", "n", "sum", "sxx")

    def __init__(self, finish: Callable[[float, float, float], float | None]) -> None:
        self.finish = finish
        self.n = 0.0
        self.sum = 0.0
        self.sxx = 0.0

    def step(self, value: float) -> None:
        """Take a value; 22003 on overflow."""
        before, old_sum = self.n, self.sum
        self.n = n = before + 1.0
        self.sum = total = old_sum + value
        if before > 0.0:
            delta = value * n - total
            self.sxx += delta * delta / (n * before)
            if math.isinf(total) or math.isinf(self.sxx):
                if not math.isinf(old_sum) and not math.isinf(value):
                    raise SqlError("22003", "value out of range: overflow")
                self.sxx = math.nan
        elif value != value or math.isinf(value):
            self.sxx = math.nan

    def result(self) -> float | None:
        """Return the statistic; NULL for too few values."""
        return self.finish(self.n, self.sum, self.sxx)


def float_average(n: float, total: float, sxx: float) -> float | None:
    """Return the mean; NULL for no values."""
    return total / n if n else None


def float_spread(sample: bool, root: bool) -> Callable[[float, float, float], float | None]:
    """Return what makes a variance of (count, sum, sum of squared differences), or with ``root`` a standard
    deviation.
    """

    def finish(n: float, total: float, sxx: float) -> float | None:
        count = n - 1.0 if sample else n
        if count < 1.0:
            return None
        variance = sxx / count
        return math.sqrt(variance) if root else variance

    return finish


class Regression:
    """The two-argument statistics over (Y, X)."""

    __slots__ = ("finish", "n", "sx", "sxx", "sxy", "sy", "syy")

    def __init__(self, finish: Callable[[Regression], Any]) -> None:
        self.finish = finish
        self.n = self.sx = self.sxx = self.sy = self.syy = self.sxy = 0.0

    def step(self, y: float, x: float) -> None:
        """Take a pair; 22003 on overflow."""
        before = self.n
        old_x, old_y = self.sx, self.sy
        self.n = n = before + 1.0
        self.sx += x
        self.sy += y
        if before > 0.0:
            dx = x * n - self.sx
            dy = y * n - self.sy
            scale = 1.0 / (n * before)
            self.sxx += dx * dx * scale
            self.syy += dy * dy * scale
            self.sxy += dx * dy * scale
            if any(map(math.isinf, (self.sx, self.sxx, self.sy, self.syy, self.sxy))):
                if (
                    (
                        (math.isinf(self.sx) or math.isinf(self.sxx))
                        and not math.isinf(old_x)
                        and not math.isinf(x)
                    )
                    or (
                        (math.isinf(self.sy) or math.isinf(self.syy))
                        and not math.isinf(old_y)
                        and not math.isinf(y)
                    )
                    or (math.isinf(self.sxy) and not any(map(math.isinf, (old_x, x, old_y, y))))
                ):
                    raise SqlError("22003", "value out of range: overflow")
                self.sxx = math.nan if math.isinf(self.sxx) else self.sxx
                self.syy = math.nan if math.isinf(self.syy) else self.syy
                self.sxy = math.nan if math.isinf(self.sxy) else self.sxy
        else:
            if x != x or math.isinf(x):
                self.sxx = self.sxy = math.nan
            if y != y or math.isinf(y):
                self.syy = self.sxy = math.nan

    def result(self) -> Any:
        """Return the statistic."""
        return self.finish(self)


def _corr(s: Regression) -> float | None:
    if s.n < 1.0 or s.sxx == 0 or s.syy == 0:
        return None
    return s.sxy / math.sqrt(s.sxx * s.syy)


def _r2(s: Regression) -> float | None:
    if s.n < 1.0 or s.sxx == 0:
        return None
    return 1.0 if s.syy == 0 else (s.sxy * s.sxy) / (s.sxx * s.syy)


REGRESSIONS: dict[str, Callable[[Regression], Any]] = {
    "corr": _corr,
    "covar_pop": lambda s: s.sxy / s.n if s.n >= 1.0 else None,
    "covar_samp": lambda s: s.sxy / (s.n - 1.0) if s.n >= 2.0 else None,
    "regr_avgx": lambda s: s.sx / s.n if s.n >= 1.0 else None,
    "regr_avgy": lambda s: s.sy / s.n if s.n >= 1.0 else None,
    "regr_sxx": lambda s: s.sxx if s.n >= 1.0 else None,
    "regr_syy": lambda s: s.syy if s.n >= 1.0 else None,
    "regr_sxy": lambda s: s.sxy if s.n >= 1.0 else None,
    "regr_slope": lambda s: s.sxy / s.sxx if s.n >= 1.0 and s.sxx != 0 else None,
    "regr_intercept": lambda s: (s.sy - s.sx * s.sxy / s.sxx) / s.n if s.n >= 1.0 and s.sxx != 0 else None,
    "regr_r2": _r2,
    "regr_count": lambda s: int(s.n),
}


class Extreme:
    """min and max by a type's sort key; of values that compare as equal (intervals, numerics of other scales)
    the last, of bpchar the first.
    """

    __slots__ = ("best", "element", "first", "key", "larger", "value")

    def __init__(self, larger: bool, types: tuple[int, ...]) -> None:
        self.larger = larger
        self.element = element_of(types[0])  # two arrays are compared, or not, by what elements are
        self.first = types[0] == BPCHAR
        self.key = sort_key(types[0])
        self.best: Any = None
        self.value: Any = None

    def step(self, value: Any) -> None:
        """Keep the extreme one. Raises SqlError 42883 for a second array of elements that have no order."""
        if self.element and self.value is not None:
            ordered(self.element)
        key = value if self.key is None else self.key(value)
        better = self.value is None or (key > self.best if self.larger else key < self.best)
        if better or (not self.first and key == self.best):
            self.best, self.value = key, value

    def many(self, values: list[Any]) -> None:
        """Keep the extreme one of a batch."""
        if self.element and len(values) > 1:
            ordered(self.element)
        choose = max if self.larger else min
        found = values if self.first else reversed(values)
        self.step(choose(found) if self.key is None else choose(found, key=self.key))

    def result(self) -> Any:
        """Return it; NULL for no values."""
        return self.value


class Fold:
    """Aggregates that combine two values into one: bool_and, bit_or ..."""

    __slots__ = ("combine", "value")

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self.combine = combine
        self.value: Any = None

    def step(self, value: Any) -> None:
        """Combine."""
        self.value = value if self.value is None else self.combine(self.value, value)

    def result(self) -> Any:
        """Return the combination; NULL for no values."""
        return self.value


class StringAgg:
    """string_agg over text or bytea: a value's own delimiter goes before it."""

    __slots__ = ("empty", "parts")

    def __init__(self, empty: Any) -> None:
        self.empty = empty
        self.parts: list[Any] = []

    def step(self, value: Any, delimiter: Any) -> None:
        """Append, unless the value is NULL."""
        if value is None:
            return
        if self.parts and delimiter is not None:
            self.parts.append(delimiter)
        self.parts.append(value)

    def result(self) -> Any:
        """Return the concatenation; NULL for no values."""
        if not self.parts:
            return None
        foresee(sum(map(len, paced(self.parts, 4096))))
        return joined_bytes(self.parts) if self.empty == b"" else joined(self.parts)


class ArrayAgg:
    """array_agg: values, NULLs included; arrays of equal shape become one of a further dimension."""

    __slots__ = ("arrays", "items", "leaf", "shape", "unknown")

    def __init__(self, types: tuple[int, ...]) -> None:
        fact = facts().types.get(types[0])
        self.unknown = types[0] == ANYARRAY
        self.arrays = fact is not None and fact.category == "A"
        self.leaf = fact is not None and fact.element in TUPLE_TYPES
        self.shape: Any = None
        self.items: list[Any] = []

    def step(self, value: Any) -> None:
        """Append."""
        if self.unknown:
            raise SqlError("42804", "data type anyarray is not an array type")
        if self.arrays:
            if value is None:
                raise SqlError("22004", "cannot accumulate null arrays")
            if not value and not self.items:
                raise SqlError("2202E", "cannot accumulate empty arrays")
            shape = array_shape(value, self.leaf)
            if not self.items:
                self.shape = shape
            elif shape != self.shape:
                raise SqlError("2202E", "cannot accumulate arrays of different dimensionality")
        self.items.append(value)

    def result(self) -> tuple[Any, ...] | None:
        """Return the array; NULL for no rows."""
        if not self.items:
            return None
        foresee(8 * len(self.items))  # as often as it is asked for: a window asks for each row
        made = tupled(self.items)
        return around(made) if self.arrays else made


class JsonAgg:
    """json_agg and jsonb_agg."""

    __slots__ = ("binary", "convert", "items", "structured")

    def __init__(self, session: EvalSession, types: tuple[int, ...], binary: bool) -> None:
        self.binary = binary
        self.convert = _to_json(session, types[0], binary)
        fact = facts().types.get(types[0])
        self.structured = fact is None or fact.category == "A" or fact.kind == "c" or fact.name == "record"
        self.items: list[str] = []

    def step(self, value: Any) -> None:
        """Append the value as JSON."""
        text = self.convert(value)
        if not self.binary and self.structured and value is not None and self.items:
            text = "\n " + text
        self.items.append(text)

    def result(self) -> str | None:
        """Return the array; NULL for no rows."""
        if not self.items:
            return None
        foresee(sum(map(len, paced(self.items, 4096))) + 2 * len(self.items))
        return joined(("[", joined(self.items, ", "), "]"))


class JsonObjectAgg:
    """json_object_agg and jsonb_object_agg."""

    __slots__ = ("binary", "convert", "items", "key_text", "session")

    def __init__(self, session: EvalSession, types: tuple[int, ...], binary: bool) -> None:
        self.session = session
        self.binary = binary
        self.key_text = functools.partial(_key_text, types[0], session)
        self.convert = _to_json(session, types[1], binary)
        self.items: list[tuple[str, str]] = []

    def step(self, key: Any, value: Any) -> None:
        """Add a member; 22023 for a NULL key."""
        if key is None:
            raise SqlError("22023", "field name must not be null")
        self.items.append((self.key_text(key), self.convert(value)))

    def result(self) -> str | None:
        """Return the object; NULL for no rows. jsonb keeps the last of equal keys."""
        if not self.items:
            return None
        members, begin, colon, end = self.items, "{ ", " : ", " }"
        if self.binary:
            last = long_dicts.gathered(self.items)
            keys = in_order(list(last), key=key_order)
            members, begin, colon, end = [(k, last[k]) for k in paced(keys)], "{", ": ", "}"
            release(keys)
        foresee(sum(len(k) + len(v) + 6 for k, v in paced(members)))
        parts = [begin]
        try:
            for key, value in paced(members):
                if len(parts) > 1:
                    parts.append(", ")
                parts += (quote(key), colon, value)
            parts.append(end)
            return joined(parts)
        finally:
            release(parts)
            if self.binary:
                release(members)


def _key_text(oid: int, session: EvalSession, key: Any) -> str:
    return key_text(key, oid, session)


def _to_json(session: EvalSession, oid: int, binary: bool) -> Callable[[Any], str]:
    """Return the conversion of values of ``oid`` through to_json / to_jsonb."""
    signature = "to_jsonb(anyelement)" if binary else "to_json(anyelement)"
    row = REGISTRY.functions.get(facts().proc_by_signature[signature])
    if row is None or row.python is None:
        raise SqlError("0A000", f"{signature} is not supported")
    form, needs_session, needs_types = row.python, row.needs_session, row.needs_types
    keywords: dict[str, Any] = {"types": (oid,)} if needs_types else {}
    first = (session,) if needs_session else ()

    def convert(value: Any) -> str:
        return "null" if value is None else str(form(*first, value, **keywords))

    return convert


class IntervalSum:
    """sum and avg of intervals."""

    __slots__ = ("average", "n", "total")

    def __init__(self, average: bool) -> None:
        self.average = average
        self.n = 0
        self.total: Any = None

    def step(self, value: tuple[int, int, int]) -> None:
        """Add field by field."""
        self.n += 1
        if self.total is None:
            self.total = value
        else:
            self.total = python_form("interval_pl(interval,interval)")(self.total, value)

    def result(self) -> Any:
        """Return the sum or its n-th part."""
        if self.total is None or not self.average:
            return self.total
        return python_form("interval_div(interval,float8)")(self.total, float(self.n))


def python_form(signature: str) -> Callable[..., Any]:
    """Return the Python form of a function; 0A000 if it has none."""
    row = REGISTRY.functions[facts().proc_by_signature[signature]]
    if row.python is None:
        raise SqlError("0A000", f"{signature} is not supported")
    return row.python


def _register() -> None:
    register = REGISTRY.aggregate_python
    known = facts().proc_by_signature
    register("count()", Count, skip_nulls=False)
    register("count(any)", Count)
    register("sum(int2)", SumInt)
    register("sum(int4)", SumInt)
    register("sum(int8)", SumBigint)
    register("sum(numeric)", SumNumeric)
    register("sum(float8)", SumFloat)
    register("sum(float4)", lambda: SumFloat(floating.add4))
    spreads = (
        ("variance", True, False), ("var_samp", True, False), ("var_pop", False, False),
        ("stddev", True, True), ("stddev_samp", True, True), ("stddev_pop", False, True),
    )  # fmt: skip
    for t in ("int2", "int4", "int8", "numeric"):
        register(f"avg({t})", lambda: ExactMoments(_average, False))
        for name, sample, root in spreads:
            finish = _spread(sample, root)
            register(f"{name}({t})", lambda finish=finish: ExactMoments(finish, True))
    for t in ("float4", "float8"):
        register(f"avg({t})", lambda: FloatMoments(float_average))
        for name, sample, root in spreads:
            done = float_spread(sample, root)
            register(f"{name}({t})", lambda done=done: FloatMoments(done))
    for name, statistic in REGRESSIONS.items():
        register(f"{name}(float8,float8)", lambda statistic=statistic: Regression(statistic))
    for proc in list(facts().procs.values()):
        if proc.kind == "a" and proc.name in ("min", "max"):
            larger = proc.name == "max"
            signature = facts().signature(proc.oid)
            if known.get(signature) == proc.oid:
                register(
                    signature,
                    lambda types, larger=larger: Extreme(larger, types),
                    needs_types=True,
                )
    folds: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
        ("bool_and", lambda a, b: a and b), ("every", lambda a, b: a and b), ("bool_or", lambda a, b: a or b),
    )  # fmt: skip
    for name, combine in folds:
        register(f"{name}(bool)", lambda combine=combine: Fold(combine))
    bits: tuple[tuple[str, Callable[[int, int], int]], ...] = (
        ("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b),
    )  # fmt: skip

    for (name, combine), on_bits in zip(bits, (bit_and, bit_or, bit_xor), strict=True):
        for t in ("int2", "int4", "int8"):
            register(f"bit_{name}({t})", lambda combine=combine: Fold(combine))
        register(f"bit_{name}(bit)", lambda on_bits=on_bits: Fold(on_bits))
    register("string_agg(text,text)", lambda: StringAgg(""), skip_nulls=False)
    register("string_agg(bytea,bytea)", lambda: StringAgg(b""), skip_nulls=False)
    register("array_agg(anynonarray)", ArrayAgg, skip_nulls=False, needs_types=True)
    register("array_agg(anyarray)", ArrayAgg, skip_nulls=False, needs_types=True)
    for prefix, binary in (("json", False), ("jsonb", True)):
        options: dict[str, Any] = {"skip_nulls": False, "needs_session": True, "needs_types": True}

        def agg(session: EvalSession, types: tuple[int, ...], binary: bool = binary) -> AggregateState:
            return JsonAgg(session, types, binary)

        def object_agg(session: EvalSession, types: tuple[int, ...], binary: bool = binary) -> AggregateState:
            return JsonObjectAgg(session, types, binary)

        register(f"{prefix}_agg(anyelement)", agg, **options)
        register(f"{prefix}_object_agg(any,any)", object_agg, **options)
    register("sum(interval)", lambda: IntervalSum(False))
    register("avg(interval)", lambda: IntervalSum(True))


_register()
