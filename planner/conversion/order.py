"""How values of a type are compared where nobody names an operator: ORDER BY, GROUP BY, DISTINCT, btree and
hash indexes.

    type -> default operator class of the access method -> its family -> the family's operator for a strategy

Strategies are those of btree (1 ``<``, 2 ``<=``, 3 ``=``, 4 ``>=``, 5 ``>``) and of hash (1 ``=``).
Everything is read from PostgreSQL's own tables (``planner.facts``), so every answer is fixed and cached, but
for what fields users' composite types have.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from planner.base.errors import Span, SqlError
from planner.conversion.composite import FindRow
from planner.conversion.pathways import is_binary_coercible
from planner.facts import ANYARRAY, BOOL, OperatorFact, facts, rows
from planner.types.domains import base_oid
from planner.types.facts import category, element_of, format_type, is_preferred

_BTREE, _HASH = 403, 405


# Compares the bytes of whole rows. Every other family orders as its type's default one: the pattern classes
# by bytes, which is how text is ordered under each collation that there is.
_RECORD_IMAGE_OPS = 3194


@dataclass(slots=True)
class _Families:
    default_class: dict[tuple[int, int], int] = field(default_factory=dict)  # (am, type) -> family
    btree: set[int] = field(default_factory=set)  # families that tell an order
    operators: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    procs: dict[tuple[int, int, int, int], str] = field(default_factory=dict)


@functools.cache
def _families() -> _Families:
    families = _Families()
    for row in rows("opclass"):
        if row["opcdefault"] == "t" and int(row["opcmethod"]) in (_BTREE, _HASH):
            key = (int(row["opcmethod"]), int(row["opcintype"]))
            families.default_class[key] = int(row["opcfamily"])
    for row in rows("extension_opclasses"):
        if row["opcdefault"] == "t" and row["opcmethod"] in ("btree", "hash"):
            method = _BTREE if row["opcmethod"] == "btree" else _HASH
            families.default_class[method, int(row["opcintype"])] = int(row["opcfamily"])
    for row in (*rows("amop"), *rows("extension_amop")):
        if row["amoppurpose"] == "s" and int(row["amopmethod"]) in (_BTREE, _HASH):
            family = int(row["amopfamily"])
            if int(row["amopmethod"]) == _BTREE and family != _RECORD_IMAGE_OPS:
                families.btree.add(family)
            families.operators[
                family, int(row["amoplefttype"]), int(row["amoprighttype"]),
                int(row["amopstrategy"]),
            ] = int(row["amopopr"])  # fmt: skip
    for row in rows("amproc"):
        families.procs[
            int(row["amprocfamily"]), int(row["amproclefttype"]), int(row["amprocrighttype"]),
            int(row["amprocnum"]),
        ] = row["amproc"]  # fmt: skip
    return families


@functools.lru_cache(maxsize=4096)
def default_opclass(oid: int, method: int = _BTREE) -> tuple[int, int] | None:
    """Return (operator family, its input type) of the type's default operator class, or None.

    As GetDefaultOpClass: the type itself, else the only (or a preferred) one it is binary coercible to;
    arrays use ``anyarray``'s, records ``record``'s.
    """
    table = _families().default_class
    oid = base_oid(oid)
    if (method, oid) in table:
        return table[method, oid], oid
    fits = [t for (m, t) in table if m == method and is_binary_coercible(oid, t)]
    preferred = [t for t in fits if is_preferred(t) and category(t) == category(oid)]
    for pool in (preferred, fits):
        if len(pool) == 1:
            return table[method, pool[0]], pool[0]
    return None


@functools.lru_cache(maxsize=4096)
def _family_operator(oid: int, strategy: int, method: int = _BTREE) -> OperatorFact | None:
    """Return the operator of a btree (1 <, 3 =, 5 >) or hash (1 =) strategy for equal operand types."""
    found = default_opclass(oid, method)
    if found is None:
        return None
    element = element_of(base_oid(oid))
    if oid == ANYARRAY or (element and _family_operator(element, strategy, method) is None):
        return None
    family, input_type = found
    op = _families().operators.get((family, input_type, input_type, strategy))
    return facts().operators[op] if op else None


def family_equality(family: int, left: int, right: int) -> int:
    """Return the oid of a btree family's ``=`` for two operand types, 0 if it has none."""
    return _families().operators.get((family, left, right, 3), 0)


def is_ordered(oid: int) -> bool:
    """Tell whether values of a type can be sorted; of a composite one, its fields apart (``unordered_field``)."""
    return _family_operator(oid, 1) is not None


def find_equality(oid: int) -> OperatorFact | None:
    """Return the type's default ``=`` (btree class, else hash class), or None."""
    return _family_operator(oid, 3) or find_hash(oid)


def find_hash(oid: int) -> OperatorFact | None:
    """Return the type's ``=`` of the default operator class of hash indexes, or None."""
    return _family_operator(oid, 1, _HASH)


def can_hash(oid: int, find: FindRow) -> bool:
    """Tell whether values of a type, or all fields of a composite one, can be hashed; those of a range always
    count as such.
    """
    return _can_hash(oid, find, set())


def _can_hash(oid: int, find: FindRow, seen: set[int]) -> bool:
    if find_hash(oid) is None:
        return False
    row_oid = base_oid(element_of(base_oid(oid)) or base_oid(oid))
    if row_oid in seen:
        return True
    seen.add(row_oid)
    row = find(row_oid)
    return row is None or all(_can_hash(column.type.oid, find, seen) for column in row.live)


def unordered_field(oid: int, find: FindRow, strategy: int) -> int:
    """Return the type of the first field of a composite type (or of an array or domain over one) that has no
    btree operator of ``strategy`` (3: nor a hash one), 0 where all have, and for every other type.
    """
    return _unordered(oid, find, strategy, set())


def _unordered(oid: int, find: FindRow, strategy: int, seen: set[int]) -> int:
    oid = base_oid(oid)
    row_oid = base_oid(element_of(oid) or oid)
    if row_oid in seen:  # each type once, however many fields are of it
        return 0
    seen.add(row_oid)
    row = find(row_oid)
    for column in () if row is None else row.live:
        field = column.type.oid
        lacks = find_equality(field) if strategy == 3 else _family_operator(field, strategy)
        if lacks is None:
            return field
        inner = _unordered(field, find, strategy, seen)
        if inner:
            return inner
    return 0


def comparable(name: str, oid: int, find: FindRow) -> bool:
    """Tell whether the comparison ``name`` of two values of a composite type can compare all columns,
    whatever is in them.
    """
    return name.startswith("*") or not unordered_field(oid, find, 3 if name in ("=", "<>") else 1)


def default_equality(oid: int, span: Span | None = None, find: FindRow | None = None) -> OperatorFact:
    """Return the type's default ``=`` operator; 42883 where there is none (json, point, with ``find`` rows of such)."""
    op = find_equality(oid)
    if op is None or (find is not None and unordered_field(oid, find, 3)):
        raise SqlError(
            "42883", f"could not identify an equality operator for type {format_type(oid)}", span=span
        )
    return op


def default_less(oid: int, span: Span | None = None, find: FindRow | None = None) -> OperatorFact:
    """Return the type's default ``<`` operator; 42883 where there is none (with ``find``: rows of such fields, too)."""
    op = _family_operator(oid, 1)
    if op is None or (find is not None and unordered_field(oid, find, 1)):
        raise SqlError(
            "42883",
            f"could not identify an ordering operator for type {format_type(oid)}",
            hint="Use an explicit ordering operator or modify the query.",
            span=span,
        )
    return op


def find_less(oid: int) -> OperatorFact | None:
    """Return the type's default ``<`` operator or None."""
    return _family_operator(oid, 1)


def family_operator(family: int, left: int, right: int, strategy: int) -> OperatorFact | None:
    """Return the member operator of a btree family, or None."""
    op = _families().operators.get((family, left, right, strategy))
    return facts().operators[op] if op else None


@functools.cache
def operator_strategies(op: int) -> tuple[tuple[int, int], ...]:
    """Return the (btree family, strategy 1..5) pairs the operator is a member of, by family oid."""
    families = _families()
    return tuple(
        sorted(
            (family, strategy)
            for (family, _, _, strategy), member in families.operators.items()
            if member == op and family in families.btree
        )
    )


@functools.lru_cache(maxsize=4096)
def in_range_proc(order_type: int, offset_type: int) -> int:
    """Return the pg_proc oid of the in_range function for RANGE offset frames, or 0.

    ``offset_type`` must be exact; callers try the types the written offset can become.
    """
    found = default_opclass(order_type)
    if found is None:
        return 0
    family, input_type = found
    name = _families().procs.get((family, input_type, offset_type, 3))
    if name is None or not name.endswith("in_range"):
        return 0
    wanted = (input_type, input_type, offset_type, BOOL, BOOL)
    return next((p.oid for p in facts().procs_by_name.get("in_range", ()) if p.arg_types == wanted), 0)
