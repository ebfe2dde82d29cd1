"""Sort and hash keys of a type agree with its comparison functions."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pytest

from pgwire.bounded import bounded
from pgwire.long import arrays as long_arrays
from planner.facts import facts
from planner.functions import load
from planner.functions.values.compare import hash_key, sort_key

NAN, INF = float("nan"), float("inf")
_INT4S = facts().types_by_name["_int4"].oid
CASES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "float8": ("float8%s", (0.0, -0.0, 1.5, -INF, INF, NAN, float("nan"))),
    "numeric": ("numeric_%s", (Decimal("1.0"), Decimal(1), Decimal("NaN"), Decimal("-Infinity"), Decimal("2.50"))),
    "bpchar": ("bpchar%s", ("a", "a  ", "", "   ", "b", "a\t")),
    "text": ("text_%s", ("a", "a ", "", "B", "ä", "\U0001f600", "\uffff")),
    "interval": ("interval_%s", ((1, 0, 0), (0, 30, 0), (0, 0, 86_400_000_000), (0, 1, 0), (-1, 5, 0))),
    "timetz": ("timetz_%s", ((0, 0), (3_600_000_000, -3600), (0, 3600))),
    "int4": ("int4%s", (1, 2, -5)),
    "jsonb": ("jsonb_%s", ("1", "1.0", '"a"', "null", "[]", "[1]", "{}", '{"a": 1}', '{"a": 1.0}', "true", "false")),
}  # fmt: skip


def function(signature: str) -> Any:
    row = load().functions.get(facts().proc_by_signature.get(signature, 0))
    if row is None or row.python is None:
        pytest.skip(f"no Python form of {signature}")
    return row.python


@pytest.mark.parametrize("name", CASES)
def test_keys_agree_with_the_comparison_functions(name: str) -> None:
    stem, values = CASES[name]
    oid = facts().types_by_name[name].oid
    equal_name = "texteq(text,text)" if name == "text" else f"{stem % 'eq'}({name},{name})"
    equal, less = function(equal_name), function(f"{stem % 'lt'}({name},{name})")
    order, identity = sort_key(oid) or (lambda x: x), hash_key(oid) or (lambda x: x)
    for a, b in itertools.product(values, repeat=2):
        assert (identity(a) == identity(b)) is bool(equal(a, b)), (a, b)
        if equal(a, b):
            assert hash(identity(a)) == hash(identity(b))
        assert (order(a) < order(b)) is bool(less(a, b)), (a, b)


def test_arrays_compare_by_elements_nulls_last_then_by_length() -> None:
    key = sort_key(facts().types_by_name["_int4"].oid)
    assert key is not None
    values = [(), (1,), (1, 2), (1, None), (2,), (None,)]
    backwards = list(reversed(values))
    assert sorted(backwards, key=key) == values


def test_long_arrays_are_keys_by_their_items_and_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 512
    monkeypatch.setattr(long_arrays, "LONG", n)
    flat, nested = tuple(range(n)), tuple([tuple(range(at, at + 64)) for at in range(0, n, 64)])
    values = (
        flat,
        tuple(range(n)),
        (*flat[:-1], 0),
        nested,
        bounded(flat, (5,)),
        (*flat[:-1], None),
        flat[:3],
        (),
    )
    sorts, hashes = sort_key(_INT4S), hash_key(_INT4S)
    assert sorts is not None
    assert hashes is not None
    for a, b in itertools.product(values, repeat=2):
        assert (sorts(a) == sorts(b)) is (a == b)
        assert (hashes(a) == hashes(b)) is (a == b)
        assert a != b or hash(hashes(a)) == hash(hashes(b))
    assert sorts(values[2]) < sorts(flat) < sorts(values[4]) < sorts(nested) < sorts(values[5])
    assert hashes(flat) is not flat
    assert hashes(flat[:3]) == flat[:3]
