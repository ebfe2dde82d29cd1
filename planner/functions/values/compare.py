"""Comparison: the functions behind = <> < <= > >=, and keys by which Python sorts and hashes values.

    sort_key(oid)   a function to a value that ``<`` orders as the type's btree does, or None: the value itself
    hash_key(oid)   a function to a value whose ``==`` and hash are the type's equality, or None: the value itself

NULLs are not given to them. Strings compare by bytes, which for UTF-8 is the order of code points, Python's own.
bpchar ignores trailing blanks; a float's or numeric's NaN equals itself and is above everything; intervals compare
by their length of 30-day months; arrays element by element, then by dimensions; records as ``record_keys`` says.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from pgwire.bounded import lower_bounds
from pgwire.codecs.array import dimensions, flatten
from pgwire.codecs.json import key_order
from pgwire.codecs.json import long as json_long
from pgwire.codecs.system import RecordValue
from pgwire.codecs.users.composite import values_of
from pgwire.codecs.users.ranges import comparable, range_type
from pgwire.codecs.users.types import row_shape
from pgwire.give_way import give_way, paced, paced_iter
from pgwire.long import arrays as long_arrays
from pgwire.long.arrays import gathered, tupled
from pgwire.long.values import in_order, joined_up, stripped
from pgwire.release import mind_long, release
from planner.base.errors import SqlError
from planner.conversion.row_parts import can_equate, can_order
from planner.facts import (
    BPCHAR,
    BYTEA,
    CITEXT,
    FLOAT4,
    FLOAT8,
    INTERVAL,
    JSONB,
    NUMERIC,
    RECORD,
    TEXT,
    TIMETZ,
    TSQUERY,
    TSVECTOR,
    VARCHAR,
    TypeFact,
    facts,
    of_types,
)  # fmt: skip
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values.record_keys import RecordKey, anyhow, equated, ordered
from planner.types.domains import base_oid
from planner.types.facts import type_kind

Key = Callable[[Any], Any]

US_PER_DAY = 86_400_000_000
NAN_KEY = ("NaN",)


def _nan_sort(value: float | Decimal) -> tuple[int, Any]:
    return (1, 0) if value != value else (0, value)


def _nan_hash(value: float | Decimal) -> Any:
    return NAN_KEY if value != value else value


def _strip(value: str) -> str:
    return stripped(value, " ", False, True)


def interval_length(value: tuple[int, int, int]) -> int:
    """Return the microseconds an interval counts for in comparisons."""
    return (value[0] * 30 + value[1]) * US_PER_DAY + value[2]


def _timetz(value: tuple[int, int]) -> tuple[int, int]:
    return value[0] + value[1] * 1_000_000, value[1]


def _array_key(element: Key | None, tuples: bool) -> Key:
    """NULL elements equal each other and come last; then the number of dimensions, their sizes and lower bounds."""

    def key(value: tuple[Any, ...]) -> Any:
        shape = dimensions(value, tuples)
        items = flatten(value, len(shape)) if len(shape) > 1 else value
        keyed = tupled(
            gathered((1, 0) if x is None else (0, x if element is None else element(x)) for x in paced(items))
        )
        return long_arrays.ordered(keyed), len(shape), shape, lower_bounds(value, len(shape))

    return key


def _plain_array_key(tuples: bool) -> Key:
    """Return the equality key of arrays of what is its own key: the value itself, if it has few elements."""
    keyed = _array_key(None, tuples)

    def key(value: tuple[Any, ...]) -> Any:
        if not value or (len(value) < long_arrays.LONG and (tuples or value[0].__class__ is not tuple)):
            return value
        return keyed(value) if math.prod(dimensions(value, tuples)) >= long_arrays.LONG else value

    return key


def dynamic_key(value: Any) -> Any:
    """Return a key for a value whose type is only known from its Python class (fields of records)."""
    if value is None:
        return (1, 0)
    if isinstance(value, float | Decimal):
        return (0, _nan_sort(value))
    if isinstance(value, tuple):
        return (0, tuple(dynamic_key(x) for x in value))
    return (0, value)


def _record(value: tuple[Any, ...]) -> Any:
    if isinstance(value, RecordValue):
        fields = [None if x is None else _field(oid, x) for x, oid in zip(value, value.types, strict=True)]
        return RecordKey(value, fields, hash_key)
    return tuple(dynamic_key(x) for x in value)


def _field(oid: int, value: Any) -> Any:
    key = sort_key(oid)
    return value if key is None else key(value)


_OBJECT_RANK: Final = 5
_WITH_MEMBERS: Final = 3
"""Items of the ranks of objects and arrays."""


# jsonb orders Object > Array > Boolean > Number > String > Null.
def _json_rank(value: Any) -> Any:
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, bool):
        return (3, value)
    give_way()
    if isinstance(value, list):
        return (4, len(value), mind_long([_json_rank(x) for x in paced(value)]))
    if isinstance(value, dict):
        items = gathered(paced_iter(value.items()))
        pairs = mind_long(in_order(items, lambda item: key_order(item[0])))
        return (_OBJECT_RANK, len(pairs), mind_long([(key, _json_rank(item)) for key, item in paced(pairs)]))
    return (2, value)


def _number(text: str) -> Decimal:
    give_way()
    return Decimal(text)


def _object(value: dict[str, Any]) -> dict[str, Any]:
    give_way()
    return value


_DECODER: Final = json.JSONDecoder(parse_float=_number, parse_int=_number, object_hook=_object)


def _json_load(text: str) -> Any:
    return json_long.decoded(_DECODER, text, _number)


def _jsonb_sort(text: str) -> Any:
    value = _json_load(text)
    # A whole value that is an empty array is below all: PostgreSQL takes a whole scalar for an array of one.
    found = (-1,) if value == [] else _json_rank(value)
    if isinstance(value, list | dict):
        release(value)
    return json_long.minded(text, found)


def jsonb_order(a: str, b: str) -> int:
    """Return -1, 0 or 1 as one jsonb is before, equal to or behind another."""
    return _rank_order(_jsonb_sort(a), _jsonb_sort(b))


def _rank_order(a: Any, b: Any) -> int:
    """Compare what ``_json_rank`` makes, members one by one."""
    give_way()
    if len(a) < _WITH_MEMBERS or a[:2] != b[:2]:
        return -1 if a < b else int(a > b)
    named = a[0] == _OBJECT_RANK
    for x, y in paced_iter(zip(a[2], b[2], strict=True)):
        if named:
            (key, x), (other, y) = x, y
            if key != other:
                return -1 if key < other else 1
        if found := _rank_order(x, y):
            return found
    return 0


_FRACTION: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9]+\.[0-9]+')
_ZERO_AT_END: Final = re.compile(r"\.[0-9]*0(?![0-9])")


def _without_zeros(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] == '"':
        return text
    text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _jsonb_hash(text: str) -> str:
    """Return the canonical text without what numbers have beyond their value: zeros at the end of a fraction."""
    if len(text) > json_long.WINDOW:
        return joined_up([_plain_numbers(part) for part in json_long.whole_parts(text)])
    return _plain_numbers(text)


def _plain_numbers(text: str) -> str:
    if len(text) > 2 * json_long.WINDOW or _ZERO_AT_END.search(text) is None:  # one long string, or all are
        return text
    return _FRACTION.sub(_without_zeros, text)


_SORT: dict[int, Key] = {
    BPCHAR: _strip, FLOAT4: _nan_sort, FLOAT8: _nan_sort, NUMERIC: _nan_sort, INTERVAL: interval_length,
    TIMETZ: _timetz, RECORD: _record, JSONB: _jsonb_sort,
}  # fmt: skip
_HASH: dict[int, Key] = {
    BPCHAR: _strip, FLOAT4: _nan_hash, FLOAT8: _nan_hash, NUMERIC: _nan_hash, INTERVAL: interval_length,
    RECORD: _record, JSONB: _jsonb_hash,
}  # fmt: skip


@of_types
def sort_key(oid: int) -> Key | None:
    """Return the sort key of a type, or None when values order themselves."""
    found = _SORT.get(oid)
    if found is not None:
        return found
    fact = facts().types.get(oid)
    if fact is not None and fact.element and (fact.category == "A" or fact.element == RECORD):
        element = facts().types.get(fact.element)
        tuples = element is not None and element.name in ("interval", "timetz", "record")
        return _array_key(sort_key(fact.element), tuples)
    return _key_by_kind(oid, fact)


def _key_by_kind(oid: int, fact: TypeFact | None) -> Key | None:
    if fact is not None and fact.kind == "c":
        return comparable
    if fact is not None and fact.kind in ("r", "m") and range_type(oid).tailed:
        return comparable  # a part of the values of some ranges
    if oid in (TSQUERY, CITEXT):
        return comparable
    if fact is None:
        return _record
    return None


@of_types
def hash_key(oid: int) -> Key | None:
    """Return the equality key of a type, or None when ``==`` and ``hash`` of values are its equality."""
    found = _HASH.get(oid)
    if found is not None:
        return found
    fact = facts().types.get(oid)
    if fact is not None and fact.element and (fact.category == "A" or fact.element == RECORD):
        element = hash_key(fact.element)
        kind = facts().types.get(fact.element)
        tuples = kind is not None and kind.name in ("interval", "timetz", "record")
        return _plain_array_key(tuples) if element is None else _array_key(element, tuples)
    return _key_by_kind(oid, fact)


@of_types
def may_be_long(oid: int) -> bool:
    """Tell whether equality keys of a type are texts or bytea of any length, whose hash may take long
    (``pgwire.long.hashes``).
    """
    return base_oid(oid) in (TEXT, VARCHAR, BPCHAR, BYTEA, JSONB, TSVECTOR)


# --- the functions ------------------------------------------------------------------------------

_PLAIN: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _by_key(key: Key) -> dict[str, Callable[[Any, Any], Any]]:
    return {
        "eq": lambda a, b: key(a) == key(b),
        "ne": lambda a, b: key(a) != key(b),
        "lt": lambda a, b: key(a) < key(b),
        "le": lambda a, b: key(a) <= key(b),
        "gt": lambda a, b: key(a) > key(b),
        "ge": lambda a, b: key(a) >= key(b),
    }


def _nan_compare() -> dict[str, Callable[[Any, Any], bool]]:
    """Return comparisons of floats and numerics: NaN is the largest value."""

    def eq(a: Any, b: Any) -> bool:
        return bool(a == b or (a != a and b != b))

    def lt(a: Any, b: Any) -> bool:
        if a != a:
            return False
        return b != b or bool(a < b)

    return {
        "eq": eq,
        "ne": lambda a, b: not eq(a, b),
        "lt": lt,
        "le": lambda a, b: not lt(b, a),
        "gt": lambda a, b: lt(b, a),
        "ge": lambda a, b: not lt(a, b),
    }


def _three_way(functions: dict[str, Callable[[Any, Any], bool]]) -> Callable[[Any, Any], int]:
    lt, eq = functions["lt"], functions["eq"]
    return lambda a, b: -1 if lt(a, b) else 0 if eq(a, b) else 1


def register_comparisons(
    functions: dict[str, Callable[[Any, Any], bool]], names: str, left: str, right: str, cmp: str = ""
) -> None:
    """Register the six comparisons of a type pair; ``names`` holds ``%s`` for eq, ne ...; skips absent rows."""
    by_signature = facts().proc_by_signature
    for suffix, function in functions.items():
        signature = f"{names % suffix}({left},{right})"
        if signature in by_signature and not _present(signature):
            REGISTRY.python(signature, function)
    if cmp and f"{cmp}({left},{right})" in by_signature and not _present(f"{cmp}({left},{right})"):
        REGISTRY.python(f"{cmp}({left},{right})", _three_way(functions))


def _present(signature: str) -> bool:
    row = REGISTRY.functions.get(facts().proc_by_signature[signature])
    return row is not None and row.python is not None


def _record_order(a: Any, b: Any, known: Callable[[int], None]) -> int:
    if isinstance(a, RecordValue) and isinstance(b, RecordValue):
        return int(_record(a).order(_record(b), known))
    if isinstance(a, bytes):  # both of one composite type
        x, y = comparable(a), comparable(b)
    elif len(a) != len(b):
        raise SqlError("42804", "cannot compare record types with different numbers of columns")
    else:
        x, y = _record(tuple(a)), _record(tuple(b))
    return -1 if x < y else int(x != y)


def compare_rows(proc: int, types: Sequence[int]) -> Callable[[EvalSession, Any, Any], Any] | None:
    """Return what compares two values of a composite type column by column; None where the values can be
    compared as they stand.

    It raises SqlError 42883 where the two are equal up to a column that cannot be compared.
    """
    found = _OF_ROWS.get(proc)
    oid = base_oid(types[0])
    if found is None or type_kind(oid) != "c" or oid != base_oid(types[-1]):
        return None
    plain, known = found
    if known is anyhow or (can_equate(oid) if known is equated else can_order(oid)):
        return None

    def function(session: EvalSession, a: bytes, b: bytes) -> Any:
        shape = row_shape(oid, session.codec_settings)
        x, y = (_record(RecordValue(values_of(v, shape), shape.types, shape.names)) for v in (a, b))
        return plain(x.order(y, known), 0)

    return function


_OF_ROWS: Final[dict[int, tuple[Callable[[Any, Any], Any], Callable[[int], None]]]] = {}
"""Functions that compare records."""


def _by_order(plain: Callable[[Any, Any], bool], known: Callable[[int], None]) -> Callable[[Any, Any], bool]:
    return lambda a, b: plain(_record_order(a, b, known), 0)


def _register() -> None:
    ints = {"int2": "2", "int4": "4", "int8": "8"}
    for left, a in ints.items():
        for right, b in ints.items():
            stem = left if left == right else f"int{a}{b}"
            cmp = f"btint{a}cmp" if left == right else f"btint{a}{b}cmp"
            register_comparisons(_PLAIN, f"{stem}%s", left, right, cmp)
    nan = _nan_compare()
    for left, right, stem in (
        ("float4", "float4", "float4"), ("float8", "float8", "float8"),
        ("float4", "float8", "float48"), ("float8", "float4", "float84"),
    ):  # fmt: skip
        register_comparisons(nan, f"{stem}%s", left, right, f"bt{stem}cmp")
    register_comparisons(nan, "numeric_%s", "numeric", "numeric", "numeric_cmp")
    for t, cmp in (("bool", "btboolcmp"), ("oid", "btoidcmp"), ("char", "btcharcmp"), ("name", "btnamecmp"),
                   ("bytea", "byteacmp"), ("tid", "bttidcmp"), ("oidvector", "btoidvectorcmp")):  # fmt: skip
        register_comparisons(_PLAIN, f"{t}%s", t, t, cmp)
    for t in ("bit", "varbit"):
        register_comparisons(_PLAIN, f"{t}%s", t, t, f"{t}cmp")
    text = {k: v for k, v in _PLAIN.items() if k not in ("eq", "ne")}
    register_comparisons(text, "text_%s", "text", "text")
    REGISTRY.python("bttextcmp(text,text)", _three_way(_PLAIN))
    register_comparisons({"eq": _PLAIN["eq"], "ne": _PLAIN["ne"]}, "text%s", "text", "text")
    register_comparisons(_PLAIN, "text_pattern_%s", "text", "text", "bttext_pattern_cmp")
    for left, right in (("name", "text"), ("text", "name")):
        register_comparisons(_PLAIN, f"{left}%s{right}", left, right, f"bt{left}{right}cmp")
    blank = _by_key(_strip)
    register_comparisons(blank, "bpchar%s", "bpchar", "bpchar", "bpcharcmp")
    register_comparisons(blank, "bpchar_pattern_%s", "bpchar", "bpchar", "btbpchar_pattern_cmp")
    for t in ("xid", "cid"):
        register_comparisons({"eq": _PLAIN["eq"]}, f"{t}%s", t, t)
    python = REGISTRY.python
    python("xidneq(xid,xid)", _PLAIN["ne"])
    python("xideqint4(xid,int4)", _PLAIN["eq"])
    python("xidneqint4(xid,int4)", _PLAIN["ne"])
    for suffix, plain in _PLAIN.items():
        known = equated if suffix in ("eq", "ne") else ordered
        python(f"record_{suffix}(record,record)", _by_order(plain, known))
        _OF_ROWS[facts().proc_by_signature[f"record_{suffix}(record,record)"]] = (plain, known)
        python(f"record_image_{suffix}(record,record)", _by_order(plain, anyhow))
    _OF_ROWS[facts().proc_by_signature["btrecordcmp(record,record)"]] = (lambda order, _: order, ordered)
    python("btrecordcmp(record,record)", lambda a, b: _record_order(a, b, ordered))
    python("btrecordimagecmp(record,record)", lambda a, b: _record_order(a, b, anyhow))
    for t, stem in (("text", "text_"), ("bpchar", "bpchar_"), ("tid", "tid")):
        strip = _strip if t == "bpchar" else None
        python(f"{stem}larger({t},{t})", _pick(True, strip))
        python(f"{stem}smaller({t},{t})", _pick(False, strip))


def _pick(larger: bool, key: Key | None) -> Callable[[Any, Any], Any]:
    def choose(a: Any, b: Any) -> Any:
        x, y = (a, b) if key is None else (key(a), key(b))
        return a if (x > y if larger else x < y) else b

    return choose


_register()
