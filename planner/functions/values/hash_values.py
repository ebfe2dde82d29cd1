"""Hashes of any type, as its default hash class computes them; those of types made of parts.

    numeric     its digits by four, without zeros at either end      xor the power of 10000 of the first
    interval    the 64-bit number that it compares as
    array       31 * (hash so far) + hash of an element, from 1
    record      31 * (hash so far) + hash of a column, from 0
    range       its flags xor lower, turned by a bit, xor upper      a multirange: of those as of elements
    jsonb       all scalars and keys in order, turned by a bit each

``planner.partitions.bounds`` divides tables by them, so that a row is in the partition in which PostgreSQL 15
has it. Of enums, whose hash is that of an oid, there are none, and tables are not divided by rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from pgwire.codecs import json, numeric
from pgwire.codecs.array import dimensions, flatten
from pgwire.codecs.domain import CITEXT, REG_TYPES, TUPLE_TYPES, XID8
from pgwire.codecs.network import send_inet
from pgwire.codecs.system import RecordValue
from pgwire.codecs.text.citext import key as citext_key
from pgwire.codecs.users.composite import values_of
from pgwire.codecs.users.composite_keys import is_row
from pgwire.codecs.users.ranges import Span, element, range_type, unpack_multirange, unpack_range
from pgwire.codecs.users.types import row_shape
from pgwire.give_way import give_way, paced_iter
from pgwire.long.arrays import PIECE
from planner.base.errors import SqlError
from planner.conversion.row_parts import can_hash
from planner.facts import (
    BOOL,
    BPCHAR,
    BYTEA,
    CHAR,
    CID,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    NAME,
    NUMERIC,
    OID,
    OIDVECTOR,
    RECORD,
    TEXT,
    TID,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UUID,
    VARCHAR,
    XID,
    facts,
    of_types,
)
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values.compare import interval_length
from planner.functions.values.hash import (
    COMPUTED,
    Compute,
    Halves,
    add,
    day_of,
    folded_int8,
    hash_bytes,
    hash_uint32,
    of_bytes,
    of_number,
    pair,
    signed,
)
from planner.types.domains import base_oid
from planner.types.facts import format_type

_MASK: Final = 0xFFFFFFFF
_WHOLE: Final = (1 << 64) - 1
_ARRAY, _OBJECT = 0x40000000, 0x20000000  # the flags of a jsonb container
_EMPTY, _LOWER_IN, _UPPER_IN, _NO_LOWER, _NO_UPPER = 1, 2, 4, 8, 16  # the flags of a range


def _whole(halves: Halves) -> int:
    return halves[0] << 32 | halves[1]


def _halves(value: int) -> Halves:
    return value >> 32 & _MASK, value & _MASK


def _turned(value: int) -> int:
    """Return both halves rotated by a bit, each by itself."""
    return (value << 1 & 0xFFFFFFFEFFFFFFFE) | (value >> 31 & 0x100000001)


def _numeric(value: Decimal, seed: int) -> Halves:
    if not value.is_finite():
        return _halves(seed)
    if not value:
        return _halves(seed - 1)
    sent = numeric.send(value)
    count, weight = struct.unpack_from(">hh", sent)
    digits = struct.pack(f"<{count}h", *struct.unpack_from(f">{count}h", sent, 8))
    return _halves(_whole(hash_bytes(digits, seed)) ^ (weight & _WHOLE))


def _timetz(value: tuple[int, int], seed: int) -> Halves:
    time, zone = hash_uint32(folded_int8(value[0]), seed), hash_uint32(value[1] & _MASK, seed)
    return time[0] ^ zone[0], time[1] ^ zone[1]


def _inet(value: bytes) -> bytes:
    sent = send_inet(value)
    return sent[:2] + sent[4:]


def _tid(value: int) -> bytes:
    return struct.pack("<HHH", value >> 32, value >> 16 & 0xFFFF, value & 0xFFFF)


def _int8_of(value: int) -> int:
    return folded_int8(signed(value & _WHOLE, 64))


def _jsonb(text: str, seed: int) -> Halves:
    root = json.load(text)
    if root in ([], {}):
        return _halves(seed)
    found = 0
    todo: list[Any] = [root if isinstance(root, list | dict) else [root]]
    while todo:
        give_way()
        node = todo.pop()
        if isinstance(node, list):
            found ^= _ARRAY << 32 | _ARRAY
            for at in range(len(node), 0, -PIECE):
                todo += reversed(node[max(at - PIECE, 0) : at])
                give_way()
        elif isinstance(node, dict):
            found ^= _OBJECT << 32 | _OBJECT
            for name in paced_iter(reversed(node)):
                todo += (node[name], name)
        else:
            found = _turned(found) ^ _whole(_scalar(node, seed))
    return _halves(found)


def _scalar(value: Any, seed: int) -> Halves:
    if value is None:
        return _halves(seed + 1)
    if isinstance(value, str):
        return hash_bytes(value.encode(), seed)
    if isinstance(value, bool):
        return hash_uint32(int(value), seed) if seed else (0, 2 if value else 4)
    return _numeric(Decimal(value), seed)


def _joined(hashes: Iterable[int]) -> Halves:
    found = 1
    for one in paced_iter(hashes):
        found = (found * 31 + one) & _WHOLE
    return _halves(found)


def _array_of(member: int) -> Compute | None:
    compute = hash_of(member)
    if compute is None:
        return None
    leaf_is_tuple = member in TUPLE_TYPES

    def hash_array(value: tuple[Any, ...], seed: int) -> Halves:
        items = flatten(value, len(dimensions(value, leaf_is_tuple)))
        return _joined(0 if item is None else _whole(compute(item, seed)) for item in items)

    return hash_array


def _range_of(oid: int, *, many: bool) -> Compute | None:
    compute = hash_of(range_type(oid).subtype)
    if compute is None:
        return None

    def hash_span(span: Span | None, seed: int) -> int:
        if span is None:
            flags, ends = _EMPTY, [0, 0]
        else:
            low, high = span
            flags = _NO_LOWER if low.infinite else _LOWER_IN if low.inclusive else 0
            flags |= _NO_UPPER if high.infinite else _UPPER_IN if high.inclusive else 0
            ends = [0 if b.infinite else _whole(compute(element(b), seed)) for b in span]
        return _turned(_whole(hash_uint32(flags, seed)) ^ ends[0]) ^ ends[1]

    if many:
        return lambda value, seed: _joined(hash_span(span, seed) for span in unpack_multirange(value))
    return lambda value, seed: _halves(hash_span(unpack_range(value), seed))


_BY_SIGNATURE: Final = {
    INT2: "hashint2(int2)", INT4: "hashint4(int4)", INT8: "hashint8(int8)", OID: "hashoid(oid)", TEXT: "hashtext(text)",
    VARCHAR: "hashtext(text)", BPCHAR: "hashbpchar(bpchar)", NAME: "hashname(name)", CHAR: "hashchar(char)",
    FLOAT4: "hashfloat4(float4)", FLOAT8: "hashfloat8(float8)", TIME: "time_hash(time)", UUID: "uuid_hash(uuid)",
    TIMESTAMP: "timestamp_hash(timestamp)", TIMESTAMPTZ: "timestamp_hash(timestamp)", XID: "hashint4(int4)",
    CID: "hashint4(int4)", OIDVECTOR: "hashoidvector(oidvector)", NUMERIC: "hash_numeric(numeric)",
    INTERVAL: "interval_hash(interval)", TIMETZ: "timetz_hash(timetz)", 869: "hashinet(inet)", 650: "hashinet(inet)",
    829: "hashmacaddr(macaddr)", 774: "hashmacaddr8(macaddr8)", 3220: "pg_lsn_hash(pg_lsn)", TID: "hashtid(tid)",
    JSONB: "jsonb_hash(jsonb)", **dict.fromkeys(REG_TYPES, "hashoid(oid)"),
}  # fmt: skip
_OTHERS: Final[dict[int, Compute]] = {
    DATE: of_number(lambda value: day_of(value) & _MASK),
    BOOL: of_number(int),
    BYTEA: of_bytes(bytes),
    XID8: of_number(lambda value: _int8_of(value + (1 << 63))),
    CITEXT: of_bytes(citext_key),
}


@of_types
def hash_of(oid: int) -> Compute | None:
    """Return the hash function of a type, or of the one under a domain; None where there is none, or not the
    same one here.
    """
    oid = base_oid(oid)
    signature = _BY_SIGNATURE.get(oid)
    if signature is not None:
        return COMPUTED[signature]
    fact = facts().types.get(oid)
    if fact is not None and fact.element and fact.category == "A":
        return _array_of(base_oid(fact.element))
    if fact is not None and fact.kind in ("r", "m"):
        return _range_of(oid, many=fact.kind == "m")
    return _OTHERS.get(oid)


def _add_polymorphic(signature: str, *, of_element: bool) -> None:
    """Register a hash function of any array or range. ``of_element``: its error names what is in it."""

    def computed(types: tuple[int, ...], word: str) -> Compute:
        compute = hash_of(types[0])
        if compute is None:
            fact = facts().types.get(types[0])
            name = format_type(fact.element if of_element and fact is not None else types[0])
            raise SqlError("42883", f"could not identify {word} hash function for type {name}")
        return compute

    def plain(value: Any, types: tuple[int, ...]) -> int:
        return signed(computed(types, "a")(value, 0)[1], 32)

    def extended(value: Any, seed: int, types: tuple[int, ...]) -> int:
        return signed(_whole(computed(types, "an extended")(value, seed & _WHOLE)), 64)

    without, with_seed = pair(signature)
    REGISTRY.python(without, plain, needs_types=True)
    REGISTRY.python(with_seed, extended, needs_types=True)


def _record(session: EvalSession, value: Any, seed: int, oid: int) -> int:
    """Return the hash of a record, or of a value of the composite type ``oid``. Raises SqlError 42883 for a
    column that has none.
    """
    if isinstance(value, RecordValue):
        types, fields = value.types, list(value)
    else:
        shape = row_shape(base_oid(oid), session.codec_settings)
        types, fields = shape.types, values_of(value, shape)
    found = 0
    for type_, item in zip(types, fields, strict=True):
        give_way()
        found = (found * 31 + _column(session, item, seed, type_)) & _WHOLE
    return found


def _column(session: EvalSession, item: Any, seed: int, type_: int) -> int:
    if not can_hash(type_) and type_ != RECORD:
        raise SqlError("42883", f"could not identify a hash function for type {format_type(type_)}")
    compute = hash_of(type_)
    if compute is not None:
        return 0 if item is None else _whole(compute(item, seed))
    if type_ != RECORD and not is_row(base_oid(type_)):
        raise SqlError("42883", f"could not identify a hash function for type {format_type(type_)}")
    return 0 if item is None else _record(session, item, seed, type_)


def _register() -> None:
    add("hash_numeric(numeric)", _numeric)
    add("interval_hash(interval)", of_number(lambda value: _int8_of(interval_length(value))))
    add("timetz_hash(timetz)", _timetz)
    add("hashinet(inet)", of_bytes(_inet))
    add("hashmacaddr(macaddr)", of_bytes(bytes))
    add("hashmacaddr8(macaddr8)", of_bytes(bytes))
    add("pg_lsn_hash(pg_lsn)", of_number(lambda value: _int8_of(int.from_bytes(value, "big"))))
    add("hashtid(tid)", of_bytes(_tid))
    add("jsonb_hash(jsonb)", _jsonb)
    _add_polymorphic("hash_array(anyarray)", of_element=True)
    _add_polymorphic("hash_range(anyrange)", of_element=False)
    _add_polymorphic("hash_multirange(anymultirange)", of_element=False)

    def hash_record(session: EvalSession, value: Any, types: tuple[int, ...]) -> int:
        return signed(_record(session, value, 0, types[0]) & _MASK, 32)

    def hash_record_extended(session: EvalSession, value: Any, seed: int, types: tuple[int, ...]) -> int:
        return signed(_record(session, value, seed & _WHOLE, types[0]), 64)

    REGISTRY.python("hash_record(record)", hash_record, needs_session=True, needs_types=True)
    REGISTRY.python(
        "hash_record_extended(record,int8)", hash_record_extended, needs_session=True, needs_types=True
    )


_register()
