"""The relations that are there before anything is made: pg_catalog's, information_schema's, and views of our own.

    planner/facts (PostgreSQL 15's own columns) ─┐
    OWN_RELATIONS (holdfast_*)                  ─┴──> RelationDefs, virtual ──> every CatalogSnapshot

Their rows are made when somebody asks (``engine.session.catalog.virtual``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from planner.catalog import ColumnDef, RelationDef
from planner.facts import (
    BOOL,
    FLOAT8,
    INFORMATION_SCHEMA_OID,
    INT4,
    INT8,
    NAME,
    OID,
    PG_CATALOG_OID,
    TEXT,
    TIMESTAMPTZ,
    rows,
)
from planner.types import SqlType

OWN_RELATIONS: Mapping[str, tuple[int, tuple[tuple[str, int], ...]]] = {
    "holdfast_shards": (
        9900,
        (
            ("shard", OID), ("timeline", TEXT), ("schemaname", NAME), ("relname", NAME), ("since", INT8),
            ("physical_upper", INT8), ("logical_upper", INT8), ("generation", INT4), ("live_rows", INT8),
            ("hot_rows", INT8), ("parts", INT4), ("bytes", INT8),
        ),
    ),
    "holdfast_holds": (
        9901,
        (
            ("hold", INT8), ("ts", INT8), ("at", TIMESTAMPTZ), ("holder", TEXT), ("pid", INT4),
            ("transaction", INT8), ("timeline", TEXT),
        ),
    ),
    "holdfast_timelines": (
        9902,
        (
            ("timeline", TEXT), ("since", INT8), ("read_ts", INT8), ("read_at", TIMESTAMPTZ), ("shards", INT4),
            ("holds", INT4),
        ),
    ),
    "holdfast_oracle": (
        9903,
        (
            ("timeline", TEXT), ("read_ts", INT8), ("write_ts", INT8), ("bound", INT8),
            ("bound_at", TIMESTAMPTZ), ("epoch", INT8), ("clock_skew_ms", INT8),
        ),
    ),
    "holdfast_transactions": (
        9904,
        (
            ("transaction", INT8), ("pid", INT4), ("state", TEXT), ("read_only", BOOL), ("read_ts", INT8),
            ("read_at", TIMESTAMPTZ), ("locks", INT4), ("rows", INT8), ("waiting", BOOL),
            ("timeline", TEXT),
        ),
    ),
    "holdfast_subscriptions": (
        9906,
        (
            ("name", NAME), ("owner", NAME), ("definition", TEXT), ("position", INT8),
            ("position_at", TIMESTAMPTZ), ("snapshot", BOOL), ("state", TEXT), ("pid", INT4),
            ("created_at", TIMESTAMPTZ),
        ),
    ),
    "holdfast_sources": (
        9907,
        (
            ("name", NAME), ("kind", TEXT), ("owner", NAME), ("timeline", TEXT), ("state", TEXT),
            ("partition", TEXT), ("position", TEXT), ("rows", INT8), ("ts", INT8), ("committed_at", TIMESTAMPTZ),
            ("acknowledged_position", TEXT), ("acknowledged_ts", INT8), ("acknowledged_at", TIMESTAMPTZ),
            ("lag", INT8), ("lag_unit", TEXT), ("tables", TEXT), ("last_error", TEXT),
            ("last_error_at", TIMESTAMPTZ),
        ),
    ),
    "holdfast_unreadable_objects": (
        9909,
        (("object", TEXT), ("kind", TEXT), ("oid", OID), ("schemaname", NAME), ("name", NAME), ("reason", TEXT), ("cause", TEXT)),
    ),
    "holdfast_conflicts": (
        9910,
        (
            ("cause", TEXT), ("sqlstate", TEXT), ("relid", OID), ("schemaname", NAME), ("relname", NAME), ("retried", INT8),
            ("failed", INT8), ("last_at", TIMESTAMPTZ), ("meaning", TEXT),
        ),
    ),
    "holdfast_storage": (
        9905,
        (
            ("hot_bytes", INT8), ("hot_limit", INT8), ("superseded", INT8), ("cached_bytes", INT8),
            ("log_bytes", INT8), ("rows_flushed", INT8), ("rows_merged", INT8), ("rows_lost", INT8),
            ("rows_history", INT8), ("merges", INT8), ("part_bytes_written", INT8),
            ("write_amplification", FLOAT8), ("waiting_to_delete", INT4), ("damaged", TEXT),
        ),
    ),
    "holdfast_memory": (
        9908,
        (
            ("owner", TEXT), ("pid", INT4), ("bytes", INT8), ("limit_bytes", INT8), ("most_bytes", INT8),
        ),
    ),
}  # fmt: skip
"""Views of pg_catalog that PostgreSQL does not have: oid and columns (name, type)."""
FIRST_OWN_RELATION = 9900
FIRST_OWN_ROW_TYPE = 9940
"""Oids that PostgreSQL uses for nothing; two for each of these."""


@functools.cache
def virtual_relations() -> tuple[RelationDef, ...]:
    """Return pg_catalog's and information_schema's relations, from the facts, and the views of our own.

    Columns of information_schema's domains are like those that users declare: executors see the types under them.
    """
    bases = {row["oid"]: SqlType(int(row["typbasetype"]), int(row["typtypmod"])) for row in rows("domains")}
    known = {row["oid"] for row in rows("types")}
    arrays = {
        row["typname"].removeprefix("_"): (int(row["typelem"]), int(row["oid"]))
        for row in rows("types")
        if row["typelem"] != "0" and row["typelem"] not in known
    }
    columns: dict[int, list[ColumnDef]] = {}
    head: dict[int, tuple[str, str, str]] = {}
    for row in rows("catalog_columns"):
        oid = int(row["reloid"])
        attnum = int(row["attnum"])
        head[oid] = (row["schema"], row["relation"], row["relkind"])
        if attnum > 0:
            columns.setdefault(oid, []).append(
                ColumnDef(
                    attnum=attnum,
                    name=row["attname"],
                    type=bases.get(row["atttypid"]) or SqlType(int(row["atttypid"]), int(row["atttypmod"])),
                    not_null=row["attnotnull"] == "t",
                    collation=int(row["attcollation"]),
                    domain=int(row["atttypid"]) if row["atttypid"] in bases else 0,
                )
            )
    schema_oids = {"pg_catalog": PG_CATALOG_OID, "information_schema": INFORMATION_SCHEMA_OID}
    return tuple(
        RelationDef(
            oid=oid,
            schema_oid=schema_oids[schema],
            schema=schema,
            name=name,
            kind="v" if kind == "v" else "r",
            columns=tuple(sorted(columns.get(oid, ()), key=lambda c: c.attnum)),
            virtual=True,
            # those of information_schema's, which are no facts, follow the oid of their relation
            row_oids=(oid + 2, oid + 1) if schema == "information_schema" else arrays[name],
        )
        for oid, (schema, name, kind) in head.items()
    ) + tuple(
        RelationDef(
            oid=oid,
            schema_oid=PG_CATALOG_OID,
            schema="pg_catalog",
            name=name,
            kind="v",
            columns=tuple(
                ColumnDef(attnum=i, name=column, type=SqlType(type_))
                for i, (column, type_) in enumerate(described, 1)
            ),
            virtual=True,
            row_oids=(place := FIRST_OWN_ROW_TYPE + 2 * (oid - FIRST_OWN_RELATION), place + 1),
        )
        for name, (oid, described) in OWN_RELATIONS.items()
    )


@functools.cache
def catalog_row_types() -> Mapping[int, tuple[RelationDef, bool]]:
    """Return the relation of each type of a catalog relation's rows, by oid; True with it for the array type
    over that.
    """
    found: dict[int, tuple[RelationDef, bool]] = {}
    for item in virtual_relations():
        found[item.row_type] = item, False
        found[item.row_array] = item, True
    return found


@functools.cache
def column_domains() -> Mapping[tuple[int, int], int]:
    """Return the domain of each catalog column that has one, by (relation oid, attnum)."""
    domains = {row["oid"] for row in rows("domains")}
    return {
        (int(row["reloid"]), int(row["attnum"])): int(row["atttypid"])
        for row in rows("catalog_columns")
        if row["atttypid"] in domains
    }
