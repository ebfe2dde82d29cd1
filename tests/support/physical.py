"""Hypothesis strategies for values of every physical type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from txn.base.types import PhysicalType, bounded
from txn.values.columns import flatten_list

P = PhysicalType

_ints = {"int16": 16, "int32": 32, "int64": 64}
_DATE_INF = 2**31 - 1
_TS_INF = 2**63 - 1


def _numeric() -> st.SearchStrategy[Decimal]:
    finite = st.builds(
        lambda sign, digits, scale: Decimal((sign, tuple(map(int, str(digits))), -scale)),
        st.integers(0, 1),
        st.integers(0, 10**38 - 1) | st.integers(0, 2000) | st.integers(10**38, 10**100),
        st.integers(0, 60),
    ).map(lambda d: abs(d) if d == 0 else d)  # PostgreSQL has no negative zero
    specials = st.sampled_from([Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")])
    return finite | specials


def _decimal(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    finite = st.integers(-limit, limit).map(
        lambda n: Decimal((0 if n >= 0 else 1, tuple(map(int, str(abs(n)))), -scale))
    )
    return finite | st.just(Decimal("NaN"))


def _lists(element: PhysicalType) -> st.SearchStrategy[tuple[Any, ...]]:
    one = st.none() | values(element)
    flat = st.lists(one, max_size=4).map(tuple)

    def rectangle(sizes: tuple[int, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
        if len(sizes) == 1:
            return st.tuples(*[one] * sizes[0])
        return st.tuples(*[rectangle(sizes[1:])] * sizes[0])

    shapes = st.lists(st.integers(1, 3), min_size=2, max_size=3).map(tuple)
    plain = flat | shapes.flatmap(rectangle)
    lows = st.lists(st.sampled_from([1, 0, 2, -3, -(2**31), 2**31 - 4]), min_size=3, max_size=3)
    return plain | st.builds(
        lambda value, drawn: bounded(value, tuple(drawn[: len(flatten_list(value, element)[0])])), plain, lows
    )


def values(type_: PhysicalType) -> st.SearchStrategy[Any]:
    """Non-NULL values of a type."""
    kind = type_.kind
    if kind in _ints:
        bits = _ints[kind]
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) | st.integers(-3, 3)
    if kind == "decimal":
        return _decimal(type_.precision, type_.scale)
    if kind == "list":
        assert type_.element is not None
        return _lists(type_.element)
    strategies: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "float32": st.floats(width=32),
        "float64": st.floats(),
        "numeric": _numeric(),
        "text": st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        "bytes": st.binary(),
        "uuid": st.binary(min_size=16, max_size=16),
        "date": st.integers(-_DATE_INF, _DATE_INF) | st.sampled_from([_DATE_INF, -_DATE_INF]),
        "time": st.integers(0, 86_400_000_000),
        "timetz": st.tuples(st.integers(0, 86_400_000_000), st.integers(-57_599, 57_599)),
        "timestamp": st.integers(-_TS_INF, _TS_INF) | st.sampled_from([_TS_INF, -_TS_INF]),
        "timestamptz": st.integers(-_TS_INF, _TS_INF),
        "interval": st.tuples(
            st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 2),
            st.integers(-(2**31), 2**31 - 1) | st.integers(-60, 60),
            st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2).map(lambda d: d * 86_400_000_000),
        ),
    }
    return strategies[kind]


SCALARS = (
    *(
        P(kind=k)  # type: ignore[arg-type]
        for k in (
            "bool", "int16", "int32", "int64", "float32", "float64", "numeric", "text", "bytes", "uuid",
            "date", "time", "timetz", "timestamp", "timestamptz", "interval",
        )
    ),
    P(kind="decimal", precision=10, scale=2),
    P(kind="decimal", precision=38, scale=0),
    P(kind="decimal", precision=38, scale=38),
)  # fmt: skip
_ELEMENTS = ("int32", "text", "numeric", "float64", "interval", "timetz")
TYPES = (
    *SCALARS,
    *(P(kind="list", element=P(kind=k)) for k in _ELEMENTS),  # type: ignore[arg-type]
    P(kind="list", element=P(kind="decimal", precision=10, scale=2)),
)


def name_of(type_: PhysicalType) -> str:
    """A test id."""
    if type_.element is not None:
        return f"list-{name_of(type_.element)}"
    return f"{type_.kind}{type_.precision or ''}"


def same(a: Any, b: Any) -> bool:
    """Equality to the last digit: Decimal scales, NaN, negative zero."""
    return repr(a) == repr(b)
