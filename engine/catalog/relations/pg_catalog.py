"""pg_catalog of relations: classes, columns and their defaults, indexes, constraints; schemas, sequences, comments.

    pg_catalog     relations                pg_types, pg_domains, pg_composites, pg_ranges    users' types
    pg_builtins    PostgreSQL's own facts   pg_functions, pg_triggers                         users' routines
    pg_shared      databases, roles         pg_depend, pg_monitor, pg_activity ...            what depends on what; what goes on

Each function makes rows of one relation (``engine.session.catalog.virtual``), as dictionaries by column name;
columns left out are NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.acl_texts import acl_texts, builtin_acl_texts
from engine.catalog.reference_checks import references_to
from engine.catalog.relations.builtin_relations import column_domains, virtual_relations
from engine.catalog.relations.counted import Figures
from engine.catalog.relations.dependency_rows import attrdef_oid
from engine.catalog.relations.pg_foreign import shown
from engine.catalog.relations.pg_row_types import row_types
from engine.catalog.relations.sources import (
    RowDict,
    by_constraint_oid,
    by_index_oid,
    by_name,
    by_oid,
    by_row_type,
    of_each,
    relation,
)
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    PG_AUTHID_OID,
    PG_CLASS_OID,
    PG_DATABASE_OID,
    PG_NAMESPACE_OID,
    PG_PROC_OID,
    SUPERUSER_OID,
)
from engine.catalog.tids import blocks
from pgwire.codecs.array import delimiter_of, quote
from pgwire.codecs.registry import text_output
from planner import facts as f
from planner.catalog import ColumnDef, ConstraintDef, IndexDef, RelationDef, SchemaDef
from planner.catalog.acl import default_acl
from planner.catalog.relation_kinds import BY_QUERY, FILED, STORING, SYSTEM_COLUMNED, TABLES
from planner.catalog.rights import builtin_relation_acl, is_public, restricted_functions, schema_acl
from planner.conversion.collations import collation_of
from planner.conversion.composite import is_composite
from planner.facts import ANYELEMENT, INFORMATION_SCHEMA_OID, PG_CATALOG_OID
from planner.indexing.opclass import METHOD_OIDS, class_oid, key_type, partition_classes
from planner.partitions.bounds import bound_text
from planner.types import SqlType
from planner.types.domains import base_oid, names_domain, plain_type
from planner.types.facts import element_of, range_of, range_subtype

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

HEAP_AM = 2


def _shared(name: str) -> bool:
    return name in (
        "pg_authid", "pg_auth_members", "pg_database", "pg_tablespace", "pg_shdepend", "pg_shdescription",
        "pg_parameter_acl", "pg_replication_origin", "pg_shseclabel", "pg_subscription",
    )  # fmt: skip


@relation("pg_class", "static")
def builtin_classes(session: Reading) -> Iterator[RowDict]:
    """Yield pg_class of the catalog relations."""
    return (_class_row(session, item) for item in virtual_relations())


def _counted_table(item: RelationDef) -> int:
    return item.oid if item.kind in STORING else item.table_oid


def _counts(rows: int, row_ids: int) -> RowDict:
    return {"reltuples": float(rows), "relpages": blocks(row_ids)}


@of_each(
    "pg_class",
    keys={"oid": by_oid, "relname": by_name, "reltype": by_row_type},
    figures=Figures(table=_counted_table, columns=_counts),
)
def pg_class(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_class of a user's relation, with the number of its rows of lately.

    It tells whether others refer to a table: who begins or ends to do so gives that a new version.
    """
    yield _class_row(session, item)


def _class_row(session: Reading, item: RelationDef) -> RowDict:
    is_index = item.kind == "i"
    is_table = item.kind in STORING
    rows = 0.0 if is_index or (is_table and not item.virtual) else -1.0  # counted by ``CountedRows``
    table = session.catalog.relation_by_oid(item.table_oid) if is_index else None
    index = None if table is None else next(i for i in table.every_index if i.oid == item.oid)
    method = None if index is None else index.method
    is_part = index is not None and index.parent != 0
    divided = table if table is not None else item
    parts = session.catalog.partitions_of(divided.oid) if divided.kind == "p" else ()
    has_parts = (
        bool(parts) if index is None else any(i.parent == item.oid for p in parts for i in p.every_index)
    )
    options = [f"{key}={value}" for key, value in item.options.items() if not key.startswith("toast.")]
    return {
        "oid": item.oid, "relname": item.name, "relnamespace": item.schema_oid,
        "reltype": row_types(item)[0], "reloftype": item.of_type, "relowner": item.owner,
        "relam": METHOD_OIDS.get(method or "", HEAP_AM if is_table and item.kind != "p" else 0),
        "relfilenode": item.oid if item.kind in FILED else 0, "reltuples": rows,
        "relispartition": bool(item.partition_of) or is_part,
        "relpartbound": _bound_text(session, item), "relhassubclass": has_parts,
        "relhasindex": bool(item.every_index), "relisshared": item.virtual and _shared(item.name),
        "relhastriggers": has_triggers(session, item),
        "relrowsecurity": item.row_security, "relforcerowsecurity": item.force_row_security,
        "relpersistence": item.persistence, "relkind": "I" if table is not None and table.kind == "p" else item.kind, "relnatts": len(item.numbers),
        "relchecks": sum(c.kind == "c" for c in item.constraints), "relhasrules": item.kind in BY_QUERY,
        "relispopulated": item.populated, "relreplident": item.replica_identity if is_table and not item.virtual else "n",
        "relfrozenxid": session.system.first_transaction_id if is_table and item.kind != "p" else 0,
        "relminmxid": 1 if is_table and item.kind != "p" else 0,
        "reloptions": tuple(options) or None,
        "relacl": builtin_acl_texts(builtin_relation_acl(item)) if item.virtual
        else acl_texts(session, session.catalog.acl(PG_CLASS_OID, item.oid)),
    }  # fmt: skip


def _bound_text(session: Reading, item: RelationDef) -> str | None:
    """Return a partition's bound as ``pg_get_expr`` shows it."""
    parent = session.catalog.relation_by_oid(item.partition_of) if item.bound is not None else None
    if parent is None or parent.partition_key is None or item.bound is None:
        return None
    return bound_text(item.bound, parent)


@of_each("pg_partitioned_table", keys={"partrelid": by_oid})
def pg_partitioned_table(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_partitioned_table."""
    key = item.partition_key
    if key is None:
        return
    parts = session.catalog.partitions_of(item.oid)
    default = next((p.oid for p in parts if p.bound is not None and p.bound.strategy == "d"), 0)
    method = "hash" if key.strategy == "h" else "btree"
    yield {
        "partrelid": item.oid, "partstrat": key.strategy, "partnatts": len(key.attnums), "partdefid": default,
        "partattrs": key.attnums, "partclass": partition_classes(key, method),
        "partcollation": key.collations, "partexprs": ", ".join(text for text in key.expressions if text) or None,
    }  # fmt: skip


@of_each("pg_inherits")
def pg_inherits(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_inherits of a partition and its indexes."""
    if item.partition_of:
        yield {"inhrelid": item.oid, "inhparent": item.partition_of, "inhseqno": 1, "inhdetachpending": False}
    for index in item.every_index:
        if index.parent:
            yield {"inhrelid": index.oid, "inhparent": index.parent, "inhseqno": 1, "inhdetachpending": False}


def has_triggers(session: Reading, item: RelationDef) -> bool:
    """Tell whether a table has triggers; in PostgreSQL foreign keys are triggers, too."""
    if item.kind not in TABLES:
        return bool(item.triggers)
    return bool(item.triggers or item.foreign_keys or references_to(session.catalog, item))


_ALIGN: dict[int, tuple[str, str]] = {}


def storage_of(type_oid: int) -> tuple[int, bool, str, str]:
    """Return (length, by value, alignment, storage) of a type."""
    if not _ALIGN:
        for row in f.rows("types"):
            _ALIGN[int(row["oid"])] = (row["typalign"], row["typstorage"])
    fact = f.facts().types.get(type_oid)
    if fact is None:
        return -1, False, "d", "x"
    if type_oid not in _ALIGN:
        return fact.length, fact.by_value, alignment(type_oid), "x" if fact.length < 0 else "p"
    align, storage = _ALIGN[type_oid]
    return fact.length, fact.by_value, align, storage


def alignment(type_oid: int) -> str:
    """Return pg_type.typalign of any type: arrays and ranges, of domains, too, have that of what is in them, an
    integer's at least.
    """
    under = base_oid(type_oid)
    if under in _ALIGN or not _ALIGN:
        return storage_of(under)[2]
    if is_composite(under):
        return "d"
    within = element_of(under) or range_subtype(under) or range_subtype(range_of(under))
    return "d" if within and alignment(within) == "d" else "i"


_SYSTEM_COLUMNS = (
    ("tableoid", f.OID, -6), ("cmax", f.CID, -5), ("xmax", f.XID, -4), ("cmin", f.CID, -3),
    ("xmin", f.XID, -2), ("ctid", f.TID, -1),
)  # fmt: skip


@relation("pg_attribute", "static")
def builtin_attributes(session: Reading) -> Iterator[RowDict]:
    """Yield pg_attribute of the catalog relations."""
    return _attribute_rows(virtual_relations())


@of_each("pg_attribute", keys={"attrelid": by_oid})
def pg_attribute(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_attribute of a user's relation, system columns of a table included."""
    return _attribute_rows([item], session)


def _column_acl(item: RelationDef, attnum: int, acls: Reading | None) -> tuple[str, ...] | None:
    return acl_texts(acls, acls.catalog.acl(PG_CLASS_OID, item.oid, attnum) or None) if acls else None


def _has_missing(item: RelationDef, column: ColumnDef) -> bool:
    """Tell whether rows of before a column was added have a value in it: partitioned tables have no rows."""
    return column.missing_value is not None and item.kind == "r" and not column.dropped


def _missing(item: RelationDef, column: ColumnDef, session: Reading | None) -> str | None:
    """Return that value, as an array of it."""
    if session is None or not _has_missing(item, column):
        return None
    oid = column.type.oid
    return (
        "{" + quote(text_output(oid, column.missing_value, session.output_settings), delimiter_of(oid)) + "}"
    )


def _attribute_rows(relations: Iterable[RelationDef], acls: Reading | None = None) -> Iterator[RowDict]:
    domains = column_domains()
    for item in relations:
        if item.kind in SYSTEM_COLUMNED:
            for name, oid, number in _SYSTEM_COLUMNS:
                length, by_value, align, storage = storage_of(oid)
                yield {
                    "attrelid": item.oid, "attname": name, "atttypid": oid, "attlen": length,
                    "attnum": number, "attcacheoff": -1, "atttypmod": -1, "attbyval": by_value,
                    "attalign": align, "attstorage": storage, "attnotnull": True, "attislocal": True,
                    "attacl": _column_acl(item, number, acls),
                }  # fmt: skip
        index = _index_of(item, acls.catalog) if item.kind == "i" and acls is not None else None
        kept = {} if index is None or acls is None else _kept_types(item, index, acls.catalog)
        targets = () if index is None else index.statistics
        for column in item.columns:
            if column.hidden:
                continue
            included = index is not None and column.attnum > len(index.key_columns)  # carried, not compared
            collation = 0 if included else collation_of(column)
            if column.attnum in kept:
                made = kept[column.attnum]
                column = replace(
                    column, type=plain_type(SqlType(made)), domain=made if names_domain(made) else 0
                )
            dropped = column.dropped
            length, by_value, align, storage = storage_of(column.type.oid)
            domain = domains.get((item.oid, column.attnum), 0) if item.virtual else column.domain
            fact = f.facts().types.get(column.type.oid)
            is_array = fact is not None and fact.category == "A" and fact.length == -1
            yield {
                "attrelid": item.oid, "attname": column.name,
                "atttypid": 0 if dropped else domain or column.type.oid,
                "attstattarget": targets[column.attnum - 1] if column.attnum <= len(targets) else column.statistics,
                "attlen": length, "attnum": column.attnum,
                "attndims": column.dims if column.dims >= 0 else int(is_array),
                "attcacheoff": -1, "atttypmod": -1 if domain else column.type.typmod, "attbyval": by_value, "attalign": align,
                "attstorage": column.storage or storage, "attcompression": column.compression, "attnotnull": column.not_null,
                "atthasdef": column.default_sql is not None and not column.identity and not dropped,
                "atthasmissing": _has_missing(item, column), "attmissingval": _missing(item, column, acls),
                "attisdropped": dropped, "attislocal": dropped or not item.partition_of,
                "attinhcount": int(bool(item.partition_of) and not dropped), "attcollation": collation,
                "attidentity": column.identity, "attgenerated": "" if dropped or item.kind == "i" else column.generated,
                "attacl": _column_acl(item, column.attnum, acls),
                "attoptions": tuple([f"{name}={text}" for name, text in column.options.items()]) or None,
                "attfdwoptions": shown(column.foreign_options),
            }  # fmt: skip


def _index_of(item: RelationDef, catalog: CatalogSnapshot) -> IndexDef | None:
    """Return the index that a relation of pg_class is."""
    table = catalog.relation_by_oid(item.table_oid)
    return None if table is None else next((i for i in table.every_index if i.oid == item.oid), None)


def _kept_types(item: RelationDef, index: IndexDef, catalog: CatalogSnapshot) -> dict[int, int]:
    """Return the columns of an index that are of another type than what they are of, and which."""
    table = catalog.relation_by_oid(item.table_oid)
    if table is None:
        return {}
    names = index.opclasses or ("",) * len(index.attnums)
    found: dict[int, int] = {}
    for number, (written, attnum, name) in enumerate(
        zip(index.key_columns, index.attnums, names, strict=True), 1
    ):
        column = table.column(written or attnum)
        kept = key_type(column.type.oid, index.method, name)
        if kept == ANYELEMENT:
            kept = element_of(base_oid(column.domain or column.type.oid))
        if kept:
            found[number] = kept
    return found


@of_each("pg_attrdef", keys={"adrelid": by_oid})
def pg_attrdef(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_attrdef; the oid is made of the relation and column (defaults have no other identity)."""
    for column in item.live:
        if column.default_sql is not None and not column.identity:
            yield {
                "oid": attrdef_oid(item, column.attnum), "adrelid": item.oid,
                "adnum": column.attnum, "adbin": column.default_sql,
            }  # fmt: skip


@of_each("pg_sequence", keys={"seqrelid": by_oid})
def pg_sequence(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_sequence."""
    made = item.sequence
    if made is not None:
        yield {
            "seqrelid": item.oid, "seqtypid": made.type_oid, "seqstart": made.start,
            "seqincrement": made.increment, "seqmax": made.maximum, "seqmin": made.minimum,
            "seqcache": made.cache, "seqcycle": made.cycle,
        }  # fmt: skip


@relation("pg_namespace", "catalog")
def pg_namespace(session: Reading) -> Iterator[RowDict]:
    """Yield pg_namespace."""
    yield {"oid": 99, "nspname": "pg_toast", "nspowner": SUPERUSER_OID}
    for schema in session.catalog.schemas():
        yield {
            "oid": schema.oid, "nspname": schema.name, "nspowner": schema.owner,
            "nspacl": _schema_acl(session, schema),
        }  # fmt: skip


def _schema_acl(session: Reading, schema: SchemaDef) -> tuple[str, ...] | None:
    """Return the privileges on a schema, None where they are the default ones."""
    given = session.catalog.acl(PG_NAMESPACE_OID, schema.oid)
    if given is None and is_public(schema):
        given = schema_acl(session.catalog, schema)
    return acl_texts(session, given)


@relation("pg_init_privs", "catalog")
def pg_init_privs(session: Reading) -> Iterator[RowDict]:
    """Yield pg_init_privs: what everybody may do from the start, so that dumps leave it out."""
    for schema in session.catalog.schemas():
        if is_public(schema) and schema.oid != INFORMATION_SCHEMA_OID:
            acl = acl_texts(session, default_acl("schema", schema.owner, public=True))
            yield {"objoid": schema.oid, "classoid": PG_NAMESPACE_OID, "privtype": "i", "initprivs": acl}
    for relation_ in virtual_relations():
        if relation_.schema_oid != PG_CATALOG_OID:
            continue
        acl = builtin_acl_texts(builtin_relation_acl(relation_))
        yield {"objoid": relation_.oid, "classoid": PG_CLASS_OID, "privtype": "i", "initprivs": acl}
    for oid, items in restricted_functions().items():
        acl = builtin_acl_texts(items)
        yield {"objoid": oid, "classoid": PG_PROC_OID, "privtype": "i", "initprivs": acl}


@of_each("pg_index", keys={"indrelid": by_oid, "indexrelid": by_index_oid})
def pg_index(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_index."""
    by_attnum = {c.attnum: c for c in item.columns}
    for index in item.every_index:
        descending = index.descending or (False,) * len(index.attnums)
        nulls_first = index.nulls_first or descending
        keys = [by_attnum[a] for a in index.attnums]
        # of a key that is a column the type is that column's, whatever a hidden one keeps of it
        types = [by_attnum[w or a].type.oid for w, a in zip(index.key_columns, index.attnums, strict=True)]
        yield {
            "indexrelid": index.oid, "indrelid": item.oid,
            "indnatts": len(index.attnums) + len(index.include), "indnkeyatts": len(index.attnums),
            "indisunique": index.unique, "indnullsnotdistinct": index.nulls_not_distinct,
            "indisprimary": index.primary, "indimmediate": not index.deferrable, "indisvalid": index.valid,
            "indisready": index not in item.unbuilt, "indislive": True, "indisclustered": index.clustered,
            "indisreplident": index.replica_identity,
            "indisexclusion": any(c.kind == "x" and c.index_oid == index.oid for c in item.constraints),
            "indkey": index.key_columns + index.include,
            "indexprs": ", ".join(text for text in index.expressions if text) or None,
            "indpred": item.predicate_of(index) or None,
            "indcollation": tuple(
                own or collation_of(c)
                for c, own in zip(keys, index.collations or (0,) * len(keys), strict=True)
            ),
            "indclass": tuple(
                class_oid(type_, index.method, name)
                for type_, name in zip(types, index.opclasses or ("",) * len(types), strict=True)
            ),
            "indoption": tuple(
                int(d) | (int(n) << 1) for d, n in zip(descending, nulls_first, strict=True)
            ),
        }  # fmt: skip


def _no_inherit(table: RelationDef, constraint: ConstraintDef) -> bool:
    """Return connoinherit: but for CHECKs it tells where PostgreSQL made a constraint rather than what
    becomes of it.
    """
    if constraint.kind in "ct":
        return constraint.no_inherit or constraint.kind == "t"
    return not constraint.parent and (constraint.kind != "f" or table.kind != "p")


@of_each("pg_constraint", keys={"oid": by_constraint_oid, "conrelid": by_oid})
def pg_constraint(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_constraint."""
    for constraint in item.constraints:
        foreign = constraint.foreign
        inherited = bool(constraint.parent) and constraint.kind != "t"
        yield {
            "oid": constraint.oid, "conname": constraint.name, "connamespace": item.schema_oid,
            "contype": constraint.kind, "convalidated": constraint.validated, "conrelid": item.oid,
            "condeferrable": constraint.deferrable, "condeferred": constraint.deferred,
            "conindid": constraint.index_oid, "conislocal": not inherited,
            "coninhcount": int(inherited), "conparentid": 0 if constraint.kind == "c" else constraint.parent,
            "connoinherit": _no_inherit(item, constraint),
            "conkey": item.written_columns(constraint) or None,
            "conbin": (constraint.check_sql or None) if constraint.kind == "c" else None,
            "conexclop": constraint.operators or None,
            "confupdtype": foreign.on_update if foreign else " ",
            "confdeltype": foreign.on_delete if foreign else " ",
            "confmatchtype": foreign.match if foreign else " ",
            "confrelid": foreign.table if foreign else 0,
            "confkey": foreign.attnums if foreign else None,
            "conpfeqop": foreign.pf_operators if foreign else None,
            "conppeqop": foreign.pp_operators if foreign else None,
            "conffeqop": foreign.ff_operators if foreign else None,
            "confdelsetcols": (foreign.delete_attnums or None) if foreign else None,
        }  # fmt: skip


@relation("pg_description", "catalog")
def pg_description(session: Reading) -> Iterator[RowDict]:
    """Yield pg_description: comments on relations, columns, constraints and schemas."""
    for item in session.catalog.comments():
        if item.class_oid not in (PG_DATABASE_OID, PG_AUTHID_OID):
            yield {
                "objoid": item.object_oid, "classoid": item.class_oid, "objsubid": item.sub_id,
                "description": item.text,
            }  # fmt: skip


@relation("pg_shdescription", "catalog")
def pg_shdescription(session: Reading) -> Iterator[RowDict]:
    """Yield pg_shdescription: comments on databases and roles."""
    for item in session.catalog.comments():
        if item.class_oid in (PG_DATABASE_OID, PG_AUTHID_OID):
            yield {
                "objoid": item.object_oid, "classoid": item.class_oid, "description": item.text,
            }  # fmt: skip
