"""SQL column types to the physical types of ``txn``: how a table's schema becomes a shard's.

    RelationDef (columns, indexes; SQL)  ──shard_spec──>  ShardSpec (physical columns and keys; what txn stores)

``txn`` knows nothing of SQL types: an enum is an integer to it, a domain is what it is over, and so is their
order in a key.
"""

from __future__ import annotations

from engine.catalog.index_parts import index_parts
from pgwire.codecs.domain import BOX, CIRCLE, LINE, LSEG, PATH, POINT, POLYGON
from pgwire.codecs.users.ranges import range_type
from planner.base.errors import not_supported
from planner.catalog import ColumnDef, IndexDef, RelationDef
from planner.facts import BIT as BIT_OID
from planner.facts import (
    BOOL,
    BPCHAR,
    BYTEA,
    CHAR,
    CID,
    CITEXT,
    DATE,
    FLOAT4,
    FLOAT8,
    HSTORE,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSON,
    JSONB,
    NAME,
    NUMERIC,
    OID,
    REGCLASS,
    REGCOLLATION,
    REGCONFIG,
    REGDICTIONARY,
    REGNAMESPACE,
    REGOPER,
    REGOPERATOR,
    REGPROC,
    REGPROCEDURE,
    REGROLE,
    REGTYPE,
    TEXT,
    TID,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    TSVECTOR,
    UUID,
    VARBIT,
    VARCHAR,
    XID,
    facts,
)
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import decimal_of
from txn.base.types import IndexId, IndexKind, Kind, PhysicalType, ShardColumn, ShardId, ShardIndex, ShardSpec

_KINDS: dict[int, Kind] = {
    BOOL: "bool", INT2: "int16", INT4: "int32", INT8: "int64", FLOAT4: "float32", FLOAT8: "float64",
    TEXT: "text", VARCHAR: "text", BPCHAR: "text", NAME: "text", CHAR: "text", JSON: "text", JSONB: "text",
    BIT_OID: "text", VARBIT: "text", BYTEA: "bytes", UUID: "uuid", DATE: "date", TIME: "time",
    TIMETZ: "timetz", TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamptz", INTERVAL: "interval",
}  # fmt: skip
# txid_snapshot, pg_snapshot; cidr, macaddr8, money, macaddr, inet, pg_lsn, tsvector, xid8, jsonpath
# (``pgwire.codecs.network``): their values order as they stand
_KINDS.update(
    {
        650: "bytes",
        774: "bytes",
        790: "int64",
        829: "bytes",
        869: "bytes",
        1033: "text",
        3220: "bytes",
        3614: "bytes",
        3615: "tailed",
        2970: "text",
        4072: "text",
        5038: "text",
        5069: "int64",
        CITEXT: "tailed",
        HSTORE: "bytes",
    }
)
_KINDS.update(dict.fromkeys((POINT, LSEG, PATH, BOX, POLYGON, LINE, CIRCLE), "bytes"))
# unsigned 32-bit identifiers need 64 bits
_KINDS.update(
    dict.fromkeys(
        (
            OID,
            TID,
            XID,
            CID,
            REGCLASS,
            REGCOLLATION,
            REGCONFIG,
            REGDICTIONARY,
            REGTYPE,
            REGNAMESPACE,
            REGROLE,
            REGPROC,
            REGPROCEDURE,
            REGOPER,
            REGOPERATOR,
        ),
        "int64",
    )
)


def physical_type(type_: SqlType) -> PhysicalType:
    """Return the physical type of a column type; 0A000 when it cannot be stored yet."""
    if type_.oid == NUMERIC:
        # NaN is legal in numeric(p,s) and decimal128 has none: only the struct form can hold it,
        # so constrained columns refuse NaN with 22003 when stored (docs/reference/differences.md).
        decimal = decimal_of(type_)
        if decimal is not None:
            return PhysicalType(kind="decimal", precision=decimal[0], scale=decimal[1])
        return PhysicalType(kind="numeric")
    kind = _KINDS.get(type_.oid)
    if kind is not None:
        return PhysicalType(kind=kind)
    fact = facts().types.get(type_.oid)
    if fact is not None and fact.kind == "e":
        return PhysicalType(kind="int64")
    if fact is not None and fact.kind in ("r", "m"):
        return PhysicalType(kind="tailed" if range_type(type_.oid).tailed else "bytes")
    if fact is not None and fact.kind == "c":
        return PhysicalType(kind="tailed")
    if fact is not None and fact.category == "A" and fact.element and fact.length == -1:
        return PhysicalType(kind="list", element=physical_type(SqlType(fact.element, type_.typmod)))
    name = fact.name if fact is not None else str(type_.oid)
    raise not_supported(f"a table column of type {name}")


def shard_column(column: ColumnDef) -> ShardColumn:
    """Return the shard's side of a column."""
    if column.dropped:
        return ShardColumn(attnum=column.attnum, type=PhysicalType(kind="bool"), dropped=True)
    return ShardColumn(
        attnum=column.attnum, type=physical_type(column.type), missing_value=column.missing_value
    )


def _index_kind(relation: RelationDef, index: IndexDef) -> IndexKind:
    """Return how the shard keeps an index (``txn.values.entries`` has those of gin, ``txn.values.intervals``
    those of gist).
    """
    if index.method == "gin":
        column_type = base_oid(relation.columns[index.attnums[0] - 1].type.oid)
        if column_type == TSVECTOR:
            return "lexemes"
        if column_type != JSONB:
            return "elements"
        return "json_paths" if index.opclasses == ("jsonb_path_ops",) else "json"
    if index.method in ("gist", "spgist") and not index.constraint_oid:
        return "intervals"
    return "hash" if index.method == "hash" else "sorted"


def shard_spec(relation: RelationDef) -> ShardSpec:
    """Return the shard of a table."""
    return ShardSpec(
        shard=ShardId(relation.oid),
        version=relation.version,
        columns=tuple(shard_column(c) for c in relation.columns),
        indexes=tuple(
            ShardIndex(
                index=IndexId(part.oid),
                attnums=part.kept,
                unique=part.unique,
                kind=_index_kind(relation, part),
                primary=part.primary,
                nulls_distinct=not part.nulls_not_distinct,
                guarded=bool(part.guard),
            )
            for index in relation.indexes
            if index.stored
            for part in index_parts(index, relation)
        ),
        timeline=relation.timeline,
    )
