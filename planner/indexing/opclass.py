"""Operator classes: what an index method does with a type, and which of that indexes here can.

method       types and classes
btree, hash  every type with a default class; of other classes those of its family (varchar_ops, cidr_ops), and those that order
             text bytewise, as all text is ordered
gin          arrays of plain elements (array_ops), jsonb (jsonb_ops, jsonb_path_ops), tsvector (tsvector_ops), texts by their
             trigrams (gin_trgm_ops, with pg_trgm), plain types by their values (with btree_gin)
gist, spgist ranges (range_ops) whose bounds are eight bytes: not of numeric, texts ...; point, box, polygon,
circle by their extents;
             gist: tsvector as gin keeps it, plain types by their values (with btree_gist); spgist: text by its values
bloom        int4 and text by their values, as btree keeps them (with bloom)
brin         every type with a class, whichever (minmax, minmax_multi, bloom, inclusion) is written: nothing is kept for it, the bounds in parts
             tell what to leave out, of types that have them there (docs/reference/accepted-options.md)
"""

from __future__ import annotations

from functools import cache
from typing import Final

from pgwire.codecs.domain import BOX, CIRCLE, POINT, POLYGON
from pgwire.codecs.users.ranges import RANGES
from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.catalog import Catalog, ColumnDef, IndexMethod, PartitionKey, RelationDef
from planner.conversion.order import default_opclass
from planner.conversion.pathways import is_binary_coercible
from planner.facts import (
    ANYARRAY,
    ANYENUM,
    ANYMULTIRANGE,
    ANYRANGE,
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    HSTORE,
    INT2,
    INT4,
    INT8,
    JSONB,
    NAME,
    NUMERIC,
    OID,
    RECORD,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TSVECTOR,
    UUID,
    VARCHAR,
    facts,
    rows,
)
from planner.indexing.opclass_extensions import (
    AS_OTHERS,
    BLOOM,
    BLOOM_METHOD_OID,
    HSTORE_CLASS,
    KEPT_BY,
    class_named,
    default_class,
    keeps_values,
)
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import element_of, format_type

METHOD_OIDS: Final = {
    "btree": 403, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580, BLOOM: BLOOM_METHOD_OID,
}  # fmt: skip

METHODS: Final[tuple[IndexMethod, ...]] = ("btree", "hash", "gin", "gist", "spgist", "brin", "bloom")
"""Those of which there are indexes; bloom with its extension."""

ELEMENTS: Final = frozenset(
    (
        BOOL, HSTORE, INT2, INT4, INT8, OID, FLOAT4, FLOAT8, NUMERIC, TEXT, VARCHAR, NAME, BYTEA, UUID, DATE, TIME,
        TIMESTAMP, TIMESTAMPTZ,
    )
)  # fmt: skip
"""Types of array elements that gin indexes take beside enums: equal values are one key."""


@cache
def _classes() -> dict[tuple[int, str], tuple[int, int, bool]]:
    """Return operator classes by (method oid, name, not unique in PostgreSQL either): the first default one,
    else the first.
    """
    found: dict[tuple[int, str], tuple[int, int, bool]] = {}
    for row in rows("opclass"):
        key = int(row["opcmethod"]), str(row["opcname"])
        made = int(row["oid"]), int(row["opcintype"]), row["opcdefault"] == "t"
        if key not in found or (made[2] and not found[key][2]):
            found[key] = made
    return found


@cache
def _default_oids() -> dict[tuple[int, int], int]:
    return {
        (int(row["opcmethod"]), int(row["opcintype"])): int(row["oid"])
        for row in rows("opclass")
        if row["opcdefault"] == "t"
    }


def has_own_class(method: str, name: str) -> bool:
    """Tell whether PostgreSQL has an operator class of a method and a name."""
    return (METHOD_OIDS[method], name) in _classes()


def class_oid(type_oid: int, method: str, name: str = "") -> int:
    """Return the oid of an operator class: the one called ``name``, else the type's default one, 0 if it has none."""
    am = METHOD_OIDS[method]
    if name:
        brought = class_named(method, name)
        return brought.oid if brought is not None else _classes()[am, name][0]
    found = _default_oids().get((am, _input_type(type_oid)), 0)
    brought = None if found else default_class(method, type_oid)
    return brought.oid if brought is not None else found


@cache
def _key_types() -> dict[int, int]:
    """Return the key types of the operator classes that keep something else than their input."""
    return {int(row["oid"]): int(row["opckeytype"]) for row in rows("opclass") if int(row["opckeytype"])}


def key_type(type_oid: int, method: str, name: str = "") -> int:
    """Return the type that an operator class keeps of a column's values instead of theirs (opckeytype):
    ANYELEMENT for the elements of arrays, 0 where an index keeps them as they are.
    """
    made = class_oid(type_oid, method, name)
    brought = class_named(method, name) if name else default_class(method, type_oid)
    kept = brought.key_type if brought is not None and brought.oid == made else _key_types().get(made, 0)
    return kept or (INT4 if method == "hash" else 0)


def partition_classes(key: PartitionKey, method: str) -> tuple[int, ...]:
    """Return the oids of the operator classes of a partition key."""
    names = key.opclasses or ("",) * len(key.types)
    own = key.own_classes or (0,) * len(key.types)
    return tuple(
        made or class_oid(type_.oid, method, name)
        for type_, name, made in zip(key.types, names, own, strict=True)
    )


def has_default_class(type_oid: int, method: str) -> bool:
    """Tell whether a type, or the one under a domain, has a default operator class of a method."""
    return bool(class_oid(base_oid(type_oid), method))


def _input_type(type_oid: int) -> int:
    """Return the type that the operator classes for a type are declared for."""
    if type_oid in AS_OTHERS:
        return AS_OTHERS[type_oid]
    fact = facts().types.get(type_oid)
    if fact is None:
        return type_oid
    if fact.category == "A":
        return ANYARRAY
    return {"e": ANYENUM, "r": ANYRANGE, "m": ANYMULTIRANGE, "c": RECORD}.get(fact.kind, type_oid)


def check_class(type_: SqlType, method: str, written: ast.Name, span: Span | None) -> str:
    """Return the name of the operator class of an index key, "" for the type's default one.

    Raises SqlError 42704 (no such class, no default one), 42804 (not of this type); 0A000 for a class, and
    for a type, of which no index is kept here.
    """
    type_oid = type_.oid
    name = ""
    if written:
        name = named_class(type_oid, method, written, span)
        if class_named(method, written[-1]) is not None:
            return name
    else:
        check_indexable(type_oid, method)
    if not name and keeps_values(method, type_oid):
        return name
    if method == "gin":
        element = element_of(base_oid(type_oid))
        fact = facts().types.get(element) if element else None
        if element and element not in ELEMENTS and (fact is None or fact.kind != "e"):
            raise not_supported(f"a gin index over {format_type(type_oid)}", span=span)
        if base_oid(type_oid) == HSTORE:
            return HSTORE_CLASS
        if not element and base_oid(type_oid) not in (JSONB, TSVECTOR):
            raise not_supported(f"a gin index over {format_type(type_oid)}", span=span)
    elif method in ("gist", "spgist"):
        _check_gist(type_oid, span, method)
    return name


def named_class(type_oid: int, method: str, written: ast.Name, span: Span | None) -> str:
    """Return the name of an operator class that is written, "" where it is the type's default one. Raises as
    ``check_class``.
    """
    brought = class_named(method, written[-1])
    if brought is None:
        return _written_class(type_oid, method, written, span)
    check_accepts(brought.name, type_oid, brought.input_type)
    is_default = default_class(method, type_oid) is brought and brought.name not in KEPT_BY
    return "" if is_default else brought.name


def _check_gist(type_oid: int, span: Span | None, method: str) -> None:
    """Raise 0A000 unless a gist or spgist index, not of a constraint, can be over a type here."""
    base = base_oid(type_oid)
    found = RANGES.get(base)
    if base in (POINT, BOX, POLYGON, CIRCLE) or (base == TSVECTOR and method == "gist"):
        return
    if found is None or not found.fixed:
        raise not_supported(f"a {method} index over {format_type(type_oid)}", span=span)


def _written_class(type_oid: int, method: str, written: ast.Name, span: Span | None) -> str:
    name = written[-1]
    found = _classes().get((METHOD_OIDS[method], name))
    if found is None:
        shown = ".".join(written)
        raise SqlError(
            "42704", f'operator class "{shown}" does not exist for access method "{method}"', span=span
        )
    _oid, input_type, is_default = found
    check_accepts(name, type_oid, input_type)
    if is_default:
        return ""
    if method in ("btree", "hash") and not _orders_alike(method, name, input_type):
        raise not_supported(f'operator class "{name}"', span=span)
    return name


def _orders_alike(method: str, name: str, input_type: int) -> bool:
    """Tell whether a class orders as the default one of its input type: it is of that one's family, or bytewise."""
    if name.endswith("_pattern_ops"):
        return True
    families = {
        int(row["oid"]): row["opcfamily"]
        for row in rows("opclass")
        if int(row["opcmethod"]) == METHOD_OIDS[method]
    }
    own, default = class_oid(input_type, method, name), class_oid(input_type, method)
    return own in families and families[own] == families.get(default)


def check_accepts(name: str, type_oid: int, input_type: int) -> None:
    """Raise SqlError 42804 where an operator class for a type does not take another one."""
    base = base_oid(type_oid)
    if _input_type(base) != input_type and not is_binary_coercible(base, input_type):
        raise SqlError("42804", f'operator class "{name}" does not accept data type {format_type(type_oid)}')


def check_default_made(catalog: Catalog, method: str, type_oid: int) -> None:
    """Check that the extension is there that brings a type's default class, if one does. Raises SqlError 42704."""
    brought = default_class(method, base_oid(type_oid))
    if brought is not None and catalog.extension(brought.extension) is None:
        raise no_default_class(type_oid, method)


def check_retyped(relation: RelationDef, column: ColumnDef, type_: SqlType, catalog: Catalog) -> None:
    """Check that the indexes over a column can be over another type. Raises SqlError 42704, 42804, 0A000."""
    for index in relation.every_index:
        method = "btree" if index.constraint_oid else index.method
        for position, attnum in enumerate(index.key_columns):
            if attnum == column.attnum:
                name = index.opclasses[position] if index.opclasses else ""
                if not name:
                    check_default_made(catalog, method, type_.oid)
                check_class(type_, method, (name,) if name else (), None)


def check_indexable(oid: int, method: str, *, told: str = "") -> None:
    """Raise 42704 when the type has no default operator class for an index method; ``told``: the one that the
    message names.
    """
    base = base_oid(oid)
    if method in ("btree", "hash"):
        has_one = default_opclass(base, METHOD_OIDS[method]) is not None
    else:
        has_one = class_oid(base, method) != 0
    if not has_one or (element_of(base) and default_opclass(element_of(base)) is None):
        raise no_default_class(oid, told or method)


def no_default_class(oid: int, method: str) -> SqlError:
    """Return 42704 for a type that an index method can have no key of."""
    return SqlError(
        "42704",
        f'data type {format_type(oid)} has no default operator class for access method "{method}"',
        hint="You must specify an operator class for the index or define a default operator class for "
        "the data type.",
    )
