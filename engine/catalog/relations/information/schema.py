"""information_schema: the standard's views over the same catalog (manual, chapter 37)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from engine.catalog.relations.sources import RowDict, by_name, of_each, relation
from engine.catalog.state import CatalogSnapshot
from planner import facts as f
from planner.bind.change.updatable import updatable_columns
from planner.bind.define.table.sequence import drawn_from
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.named_oids import relations_in_text
from planner.catalog.relation_kinds import STANDARD_TABLES, TABLES
from planner.conversion.collations import collation_names, collation_of
from planner.information.definitions import shown_expression, view_text
from planner.information.named_constants import as_literals_are, with_names
from planner.types.facts import DEFAULT_COLLATION, format_type, is_fact, numeric_precision_scale

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

_INTEGER_BITS = {f.INT2: 16, f.INT4: 32, f.INT8: 64}
_FLOAT_BITS = {f.FLOAT4: 24, f.FLOAT8: 53}
_DATETIME = (f.TIME, f.TIMETZ, f.TIMESTAMP, f.TIMESTAMPTZ)
_CHECK_OPTIONS = {
    "local": "LOCAL",
    "cascaded": "CASCADED",
}  # as they are written: others that mean the same are not seen
MAX_OCTETS = 1 << 30
UTF8_ENCODING = 6


def _yes(flag: bool) -> str:
    return "YES" if flag else "NO"


def _owner(session: Reading, oid: int) -> str:
    role = session.catalog.role_by_oid(oid)
    return role.name if role is not None else ""


def _relations(session: Reading, kinds: str = "rv") -> Iterator[RelationDef]:
    return (r for r in session.catalog.all_relations() if r.kind in kinds)


def relations_read(catalog: CatalogSnapshot, item: RelationDef) -> list[int]:
    """Return what a view reads, through other views as well."""
    found: dict[int, None] = {}
    left = list(item.depends_on)
    while left:
        oid = left.pop()
        if oid not in found:
            found[oid] = None
            other = catalog.relation_by_oid(oid)
            left += other.depends_on if other is not None else ()
    return list(found)


def _named_by_columns(catalog: CatalogSnapshot, item: RelationDef) -> list[int]:
    """Return the relations that defaults name, and what a view reads."""
    named = [
        oid
        for column in item.columns
        if column.default_sql is not None
        for oid in relations_in_text(column.default_sql)
    ]
    return [*named, *relations_read(catalog, item)]


_TABLE_TYPES: Final = {"v": "VIEW", "f": "FOREIGN"}


@relation("information_schema.schemata", "catalog")
def schemata(session: Reading) -> Iterator[RowDict]:
    """Yield schemata."""
    for schema in session.catalog.schemas():
        yield {
            "catalog_name": session.database, "schema_name": schema.name,
            "schema_owner": _owner(session, schema.owner),
        }  # fmt: skip


@of_each("information_schema.tables", keys={"table_name": by_name}, needs=relations_read, builtin=True)
def tables(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield tables and views."""
    if item.kind in STANDARD_TABLES:
        kind = _TABLE_TYPES.get(item.kind, "BASE TABLE") if item.persistence != "t" else "LOCAL TEMPORARY"
        of = session.catalog.type_by_oid(item.of_type) if item.of_type else None
        yield {
            "table_catalog": session.database, "table_schema": item.schema, "table_name": item.name,
            "table_type": kind, "is_insertable_into": _yes(item.kind in TABLES or (item.kind == "v" and bool(updatable(session, item)))),
            "is_typed": _yes(of is not None),
            "user_defined_type_catalog": None if of is None else session.database,
            "user_defined_type_schema": None if of is None else of.schema,
            "user_defined_type_name": None if of is None else of.name,
        }  # fmt: skip


def updatable(session: Reading, view: RelationDef) -> frozenset[int] | None:
    """Return the columns of a view that can be assigned to, kept with the catalog; None: nothing goes through it."""
    key = ("updatable", view.oid)
    if key not in session.catalog.derived:
        session.catalog.derived[key] = None if view.virtual else updatable_columns(session.catalog, view)
    found: Any = session.catalog.derived[key]
    return cast("frozenset[int] | None", found)


def collation_columns(session: Reading, column: ColumnDef) -> RowDict:
    """Return the columns that name a column's collation; the default one, and that of what has none, are NULL."""
    oid = collation_of(column)
    if oid in (0, DEFAULT_COLLATION):
        return {}
    made = session.catalog.collation_by_oid(oid)
    schema, name = ("pg_catalog", collation_names()[oid]) if made is None else (made.schema, made.name)
    return {"collation_catalog": session.database, "collation_schema": schema, "collation_name": name}


def type_columns(session: Reading, column: ColumnDef) -> RowDict:
    """Return the columns that describe a type, as the standard splits them."""
    oid, typmod = column.type
    fact = f.facts().types.get(oid)
    array = fact is not None and fact.category == "A" and fact.length == -1
    values: dict[str, object] = {
        "udt_name": fact.name if fact is not None else None, "udt_schema": "pg_catalog",
    }  # fmt: skip
    made = session.catalog.type_by_oid(oid)
    if made is not None:
        values["udt_name"] = made.names[oid]
        values["udt_schema"] = made.schema
    elif not is_fact(oid):
        rows = session.catalog.row_type_relation(oid)
        if rows is not None:
            values["udt_schema"] = rows[0].schema
    others = values["udt_schema"] != "pg_catalog"
    values["data_type"] = "ARRAY" if array else "USER-DEFINED" if others else format_type(oid)
    if oid in (f.VARCHAR, f.BPCHAR, f.BIT, f.VARBIT) and typmod > 0:
        values["character_maximum_length"] = typmod - (4 if oid in (f.VARCHAR, f.BPCHAR) else 0)
    if oid in (f.TEXT, f.VARCHAR, f.BPCHAR):
        length = values.get("character_maximum_length")
        values["character_octet_length"] = length * 4 if isinstance(length, int) else MAX_OCTETS
    if oid in _INTEGER_BITS:
        values |= {"numeric_precision": _INTEGER_BITS[oid], "numeric_precision_radix": 2, "numeric_scale": 0}
    elif oid in _FLOAT_BITS:
        values |= {"numeric_precision": _FLOAT_BITS[oid], "numeric_precision_radix": 2}
    elif oid == f.NUMERIC:
        values["numeric_precision_radix"] = 10
        declared = numeric_precision_scale(typmod)
        if declared is not None:
            values |= {"numeric_precision": declared[0], "numeric_scale": declared[1]}
    elif oid == f.DATE:
        values["datetime_precision"] = 0
    elif oid in _DATETIME or oid == f.INTERVAL:
        precision = typmod & 0xFFFF if oid == f.INTERVAL and typmod >= 0 else typmod
        values["datetime_precision"] = 6 if precision < 0 or precision == 0xFFFF else precision
    return values


@of_each("information_schema.columns", keys={"table_name": by_name}, needs=_named_by_columns, builtin=True)
def columns(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield columns of tables and views."""
    if item.kind in STANDARD_TABLES:
        assignable = (updatable(session, item) or ()) if item.kind == "v" else ()
        for column in item.live:
            yield {
                "table_catalog": session.database, "table_schema": item.schema, "table_name": item.name,
                "column_name": column.name, "ordinal_position": item.number(column.attnum),
                "column_default": None if column.generated else _default(session, item, column), "is_nullable": _yes(not (column.not_null or _domain_refuses_null(session, column))),
                "udt_catalog": session.database, "dtd_identifier": str(item.number(column.attnum)),
                "is_self_referencing": "NO", "is_generated": "ALWAYS" if column.generated else "NEVER",
                "generation_expression": _default(session, item, column) if column.generated else None, "is_updatable": _yes(item.kind in TABLES or column.attnum in assignable),
                **_identity(session, column), **_of_domain(session, column), **collation_columns(session, column),
            }  # fmt: skip


def _domain_refuses_null(session: Reading, column: ColumnDef) -> bool:
    """Tell whether the domain of a column is NOT NULL, itself: those under it do not count (PostgreSQL's view)."""
    made = session.catalog.type_by_oid(column.domain) if column.domain else None
    return made is not None and made.oid == column.domain and made.not_null


def _of_domain(session: Reading, column: ColumnDef) -> RowDict:
    """Return what describes a column's type; where that is a domain: what the domain is directly over, and its name."""
    if not column.domain:
        return type_columns(session, column)
    made = session.catalog.type_by_oid(column.domain)
    if made is None or made.oid != column.domain:
        return type_columns(session, replace(column, type=column.declared))
    return {
        **type_columns(session, replace(column, type=made.base_type)), "domain_catalog": session.database,
        "domain_schema": made.schema, "domain_name": made.name,
    }  # fmt: skip


def _default(session: Reading, relation: RelationDef, column: ColumnDef) -> str | None:
    """Return a default as text; what is not in public is named with their schema, whoever asks."""
    if column.default_sql is None or column.identity:
        return None
    text = shown_expression(session, column.default_sql, relation)
    return as_literals_are(session, with_names(text, session.catalog))


def _identity(session: Reading, column: ColumnDef) -> RowDict:
    if not column.identity:
        return {"is_identity": "NO", "identity_cycle": "NO"}
    drawn = session.catalog.relation_by_oid(drawn_from(column) or 0)
    made = None if drawn is None else drawn.sequence
    how = {"is_identity": "YES", "identity_generation": "ALWAYS" if column.identity == "a" else "BY DEFAULT"}
    if made is None:
        return how
    return how | {
        "identity_start": str(made.start), "identity_increment": str(made.increment),
        "identity_maximum": str(made.maximum), "identity_minimum": str(made.minimum),
        "identity_cycle": _yes(made.cycle),
    }  # fmt: skip


@of_each("information_schema.sequences", keys={"sequence_name": by_name})
def sequences(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield sequences, without those of identity columns."""
    if item.kind == "S":
        made = item.sequence
        if made is not None and not made.internal:
            bits = {f.INT2: 16, f.INT4: 32, f.INT8: 64}[made.type_oid]
            yield {
                "sequence_catalog": session.database, "sequence_schema": item.schema, "sequence_name": item.name,
                "data_type": format_type(made.type_oid), "numeric_precision": bits,
                "numeric_precision_radix": 2, "numeric_scale": 0, "start_value": str(made.start),
                "minimum_value": str(made.minimum), "maximum_value": str(made.maximum),
                "increment": str(made.increment), "cycle_option": _yes(made.cycle),
            }  # fmt: skip


@relation("information_schema.views", "session")
def views(session: Reading) -> Iterator[RowDict]:
    """Yield views."""
    for item in _relations(session, "v"):
        yield {
            "table_catalog": session.database, "table_schema": item.schema, "table_name": item.name,
            "view_definition": view_text(session, item, pretty=False),
            "check_option": _CHECK_OPTIONS.get(item.options.get("check_option", ""), "NONE"),
            "is_updatable": _yes(updatable(session, item) is not None),
            "is_insertable_into": _yes(bool(updatable(session, item))),
            "is_trigger_updatable": _yes(item.has_instead("u")),
            "is_trigger_deletable": _yes(item.has_instead("d")),
            "is_trigger_insertable_into": _yes(item.has_instead("i")),
        }  # fmt: skip


@relation("information_schema.collations", "catalog")
def collations(session: Reading) -> Iterator[RowDict]:
    """Yield the collations this server compares by."""
    for row in f.rows("collations"):
        if int(row["collencoding"]) in (-1, UTF8_ENCODING):
            yield {
                "collation_catalog": session.database, "collation_schema": "pg_catalog",
                "collation_name": row["collname"], "pad_attribute": "NO PAD",
            }  # fmt: skip
    for made in session.catalog.collations():
        yield {
            "collation_catalog": session.database, "collation_schema": made.schema, "collation_name": made.name,
            "pad_attribute": "NO PAD",
        }  # fmt: skip


@relation("information_schema.information_schema_catalog_name", "catalog")
def catalog_name(session: Reading) -> Iterator[RowDict]:
    """Yield the one catalog's name."""
    yield {"catalog_name": session.database}


@relation("information_schema.character_sets", "catalog")
def character_sets(session: Reading) -> Iterator[RowDict]:
    """Yield the one character set."""
    yield {
        "character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
        "default_collate_catalog": session.database, "default_collate_schema": "pg_catalog",
        "default_collate_name": "default",
    }  # fmt: skip
