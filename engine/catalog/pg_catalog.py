"""pg_catalog's tables: what PostgreSQL 15 stores about relations, types, functions and roles."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from engine.catalog.counted import Figures
from engine.catalog.pg_row_types import row_types
from engine.catalog.state import (
    PG_AUTHID_OID,
    PG_CLASS_OID,
    PG_CONSTRAINT_OID,
    PG_DATABASE_OID,
    PG_NAMESPACE_OID,
    SUPERUSER_OID,
    column_domains,
    virtual_relations,
)
from engine.catalog.virtual import (
    RowDict,
    by_constraint_oid,
    by_index_oid,
    by_name,
    by_oid,
    by_row_type,
    of_each,
    relation,
)
from planner import facts as f
from planner.acl import AclItem, default_acl, item_text
from planner.bind.sequence import relations_of_default
from planner.builtins.reg import quote_ident
from planner.builtins.system_definitions import entry_points
from planner.catalog import ColumnDef, DefaultsDef, ExtensionDef, RelationDef, SchemaDef
from planner.classify import setting_spelling
from planner.deparse import deparse_expr
from planner.opclass import METHOD_OIDS, class_oid
from planner.opclass_extensions import ExtensionClass, extension_classes
from planner.resolve import default_arguments
from planner.rights import is_public, schema_acl

if TYPE_CHECKING:
    from engine.connection.session import Session

HEAP_AM = 2
DEFAULT_TABLESPACE, GLOBAL_TABLESPACE = 1663, 1664
UTF8_ENCODING = 6
C_COLLATION, DEFAULT_COLLATION = 950, 100
PG_ATTRDEF_OID, PG_REWRITE_OID, PG_TYPE_OID, PG_PROC_OID = 2604, 2618, 1247, 1255


def _shared(name: str) -> bool:
    return name in (
        "pg_authid", "pg_auth_members", "pg_database", "pg_tablespace", "pg_shdepend", "pg_shdescription",
        "pg_parameter_acl", "pg_replication_origin", "pg_shseclabel", "pg_subscription",
    )  # fmt: skip


@relation("pg_class", "static")
def builtin_classes(session: Session) -> Iterator[RowDict]:
    """Yield pg_class of the catalog relations."""
    return (_class_row(session, item) for item in virtual_relations())


def _pages(rows: float) -> int:
    return max(1, int(rows) // 100) if rows > 0 else 0


def _counted_table(item: RelationDef) -> int:
    return item.oid if item.kind in "rm" else item.table_oid


def _counts(rows: float) -> RowDict:
    return {"reltuples": rows, "relpages": _pages(rows)}


@of_each(
    "pg_class",
    keys={"oid": by_oid, "relname": by_name, "reltype": by_row_type},
    figures=Figures(table=_counted_table, columns=_counts),
)
def pg_class(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_class of a user's relation, with the number of its rows of lately.

    It tells whether others refer to a table: who begins or ends to do so gives that a new version.
    """
    yield _class_row(session, item)


def _class_row(session: Session, item: RelationDef) -> RowDict:
    is_index = item.kind == "i"
    is_table = item.kind in "rm"
    rows = 0.0 if is_index or (is_table and not item.virtual) else -1.0  # counted by ``CountedRows``
    table = session.catalog.relation_by_oid(item.table_oid) if is_index else None
    method = None
    if table is not None:
        method = next(i.method for i in table.indexes if i.oid == item.oid)
    options = [f"{key}={value}" for key, value in item.options.items()]
    return {
        "oid": item.oid, "relname": item.name, "relnamespace": item.schema_oid,
        "reltype": row_types(item)[0], "relowner": item.owner,
        "relam": METHOD_OIDS.get(method or "", HEAP_AM if is_table else 0),
        "relfilenode": 0 if item.kind in "vc" else item.oid, "reltuples": rows,
        "relpages": _pages(rows),
        "relhasindex": bool(item.indexes), "relisshared": item.virtual and _shared(item.name),
        "relhastriggers": has_triggers(session, item),
        "relpersistence": item.persistence, "relkind": item.kind, "relnatts": len(item.columns),
        "relchecks": sum(c.kind == "c" for c in item.constraints), "relhasrules": item.kind in "vm",
        "relispopulated": item.populated, "relreplident": "d" if is_table and not item.virtual else "n",
        "relfrozenxid": 3 if is_table else 0, "relminmxid": 1 if is_table else 0,
        "reloptions": tuple(options) or None,
        "relacl": None if item.virtual else acl_texts(session, session.catalog.acl(PG_CLASS_OID, item.oid)),
    }  # fmt: skip


def has_triggers(session: Session, item: RelationDef) -> bool:
    """Tell whether a table has triggers; in PostgreSQL foreign keys are triggers, too."""
    return bool(item.triggers or item.foreign_keys or session.catalog.foreign_keys_to(item.oid))


_ALIGN: dict[int, tuple[str, str]] = {}


def _storage_of(type_oid: int) -> tuple[int, bool, str, str]:
    """Return (length, by value, alignment, storage) of a type."""
    if not _ALIGN:
        for row in f.rows("types"):
            _ALIGN[int(row["oid"])] = (row["typalign"], row["typstorage"])
    fact = f.facts().types.get(type_oid)
    if fact is None:
        return -1, False, "d", "x"
    if type_oid not in _ALIGN:
        return fact.length, fact.by_value, "d" if _of_rows(fact) else "i", "x" if fact.length < 0 else "p"
    align, storage = _ALIGN[type_oid]
    return fact.length, fact.by_value, align, storage


def _of_rows(fact: f.TypeFact) -> bool:
    """Whether a type is composite, or an array of such."""
    element = f.facts().types.get(fact.element)
    return fact.kind == "c" or (element is not None and element.kind == "c")


def _collation(column: ColumnDef) -> int:
    if column.collation:
        return column.collation
    fact = f.facts().types.get(column.type.oid)
    if fact is None:
        return 0
    if fact.name in ("name", "_name"):
        return C_COLLATION
    if fact.category == "S" and fact.name != '"char"' and fact.oid != f.CHAR:
        return DEFAULT_COLLATION
    if fact.category == "A" and fact.element in (f.TEXT, f.VARCHAR, f.BPCHAR):
        return DEFAULT_COLLATION
    return 0


_SYSTEM_COLUMNS = (
    ("tableoid", f.OID, -6), ("cmax", f.CID, -5), ("xmax", f.XID, -4), ("cmin", f.CID, -3),
    ("xmin", f.XID, -2), ("ctid", f.TID, -1),
)  # fmt: skip


@relation("pg_attribute", "static")
def builtin_attributes(session: Session) -> Iterator[RowDict]:
    """Yield pg_attribute of the catalog relations."""
    return _attribute_rows(virtual_relations())


@of_each("pg_attribute", keys={"attrelid": by_oid})
def pg_attribute(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_attribute of a user's relation, system columns of a table included."""
    return _attribute_rows([item], session)


def _attribute_rows(relations: Iterable[RelationDef], acls: Session | None = None) -> Iterator[RowDict]:
    domains = column_domains()
    for item in relations:
        if item.kind in "rm":
            for name, oid, number in _SYSTEM_COLUMNS:
                length, by_value, align, storage = _storage_of(oid)
                yield {
                    "attrelid": item.oid, "attname": name, "atttypid": oid, "attlen": length,
                    "attnum": number, "attcacheoff": -1, "atttypmod": -1, "attbyval": by_value,
                    "attalign": align, "attstorage": storage, "attnotnull": True, "attislocal": True,
                }  # fmt: skip
        for column in item.columns:
            dropped = column.dropped or column.hidden
            length, by_value, align, storage = _storage_of(column.type.oid)
            domain = domains.get((item.oid, column.attnum), 0) if item.virtual else column.domain
            fact = f.facts().types.get(column.type.oid)
            yield {
                "attrelid": item.oid, "attname": column.name,
                "atttypid": 0 if dropped else domain or column.type.oid,
                "attstattarget": -1, "attlen": length, "attnum": column.attnum,
                "attndims": 1 if fact is not None and fact.category == "A" and fact.length == -1 else 0,
                "attcacheoff": -1, "atttypmod": -1 if domain else column.type.typmod, "attbyval": by_value, "attalign": align,
                "attstorage": storage, "attnotnull": column.not_null,
                "atthasdef": column.default_sql is not None and not column.identity and not dropped,
                "atthasmissing": column.missing_value is not None,
                "attisdropped": dropped, "attislocal": True, "attcollation": _collation(column),
                "attidentity": column.identity, "attgenerated": "" if dropped or item.kind == "i" else column.generated,
                "attacl": acl_texts(acls, acls.catalog.acl(PG_CLASS_OID, item.oid, column.attnum) or None) if acls else None,
            }  # fmt: skip


@of_each("pg_attrdef", keys={"adrelid": by_oid})
def pg_attrdef(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_attrdef; the oid is made of the relation and column (defaults have no other identity)."""
    for column in item.live:
        if column.default_sql is not None and not column.identity:
            yield {
                "oid": attrdef_oid(item.oid, column.attnum), "adrelid": item.oid,
                "adnum": column.attnum, "adbin": column.default_sql,
            }  # fmt: skip


def attrdef_oid(relation_oid: int, attnum: int) -> int:
    """Return the oid of a column default: above all allocated oids, unique per column."""
    return 0x8000_0000 | (relation_oid * 1601 + attnum) & 0x7FFF_FFFF


@of_each("pg_sequence", keys={"seqrelid": by_oid})
def pg_sequence(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_sequence."""
    made = item.sequence
    if made is not None:
        yield {
            "seqrelid": item.oid, "seqtypid": made.type_oid, "seqstart": made.start,
            "seqincrement": made.increment, "seqmax": made.maximum, "seqmin": made.minimum,
            "seqcache": made.cache, "seqcycle": made.cycle,
        }  # fmt: skip


@relation("pg_namespace", "catalog")
def pg_namespace(session: Session) -> Iterator[RowDict]:
    """Yield pg_namespace."""
    yield {"oid": 99, "nspname": "pg_toast", "nspowner": SUPERUSER_OID}
    for schema in session.catalog.schemas():
        yield {
            "oid": schema.oid, "nspname": schema.name, "nspowner": schema.owner,
            "nspacl": _schema_acl(session, schema),
        }  # fmt: skip


def acl_texts(session: Session, items: tuple[AclItem, ...] | None) -> tuple[str, ...] | None:
    """Return a list as aclitem[] shows it, None where there is none."""
    if items is None:
        return None

    def name(oid: int) -> str:
        role = session.catalog.role_by_oid(oid)
        return quote_ident(role.name) if role is not None else str(oid)

    return tuple(item_text(item, name) for item in items)


def _schema_acl(session: Session, schema: SchemaDef) -> tuple[str, ...] | None:
    """Return the privileges on a schema, None where they are the default ones."""
    given = session.catalog.acl(PG_NAMESPACE_OID, schema.oid)
    if given is None and is_public(schema):
        given = schema_acl(session.catalog, schema)
    return acl_texts(session, given)


@relation("pg_init_privs", "catalog")
def pg_init_privs(session: Session) -> Iterator[RowDict]:
    """Yield pg_init_privs: what everybody may do from the start, so that dumps leave it out."""
    for schema in session.catalog.schemas():
        if is_public(schema):
            acl = acl_texts(session, default_acl("schema", schema.owner, public=True))
            yield {"objoid": schema.oid, "classoid": PG_NAMESPACE_OID, "privtype": "i", "initprivs": acl}


@of_each("pg_index", keys={"indrelid": by_oid, "indexrelid": by_index_oid})
def pg_index(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_index."""
    by_attnum = {c.attnum: c for c in item.columns}
    for index in item.indexes:
        descending = index.descending or (False,) * len(index.attnums)
        nulls_first = index.nulls_first or descending
        keys = [by_attnum[a] for a in index.attnums]
        yield {
            "indexrelid": index.oid, "indrelid": item.oid,
            "indnatts": len(index.attnums) + len(index.include), "indnkeyatts": len(index.attnums),
            "indisunique": index.unique, "indnullsnotdistinct": index.nulls_not_distinct,
            "indisprimary": index.primary, "indimmediate": not index.deferrable, "indisvalid": True,
            "indisready": True, "indislive": True,
            "indisexclusion": any(c.kind == "x" and c.index_oid == index.oid for c in item.constraints),
            "indkey": index.key_columns + index.include,
            "indexprs": ", ".join(text for text in index.expressions if text) or None,
            "indpred": index.where_sql or None,
            "indcollation": tuple(_collation(c) for c in keys),
            "indclass": tuple(
                class_oid(c.type.oid, index.method, name)
                for c, name in zip(keys, index.opclasses or ("",) * len(keys), strict=True)
            ),
            "indoption": tuple(
                int(d) | (int(n) << 1) for d, n in zip(descending, nulls_first, strict=True)
            ),
        }  # fmt: skip


@of_each("pg_constraint", keys={"oid": by_constraint_oid, "conrelid": by_oid})
def pg_constraint(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_constraint."""
    for constraint in item.constraints:
        foreign = constraint.foreign
        yield {
            "oid": constraint.oid, "conname": constraint.name, "connamespace": item.schema_oid,
            "contype": constraint.kind, "convalidated": constraint.validated, "conrelid": item.oid,
            "condeferrable": constraint.deferrable, "condeferred": constraint.deferred,
            "conindid": constraint.index_oid, "conislocal": True,
            "connoinherit": constraint.no_inherit or constraint.kind != "c",
            "conkey": constraint.attnums or None,
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


DOMAIN_IN, DOMAIN_RECV = 2597, 2598
_PROC_COLUMNS = ("typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout")


@relation("pg_type", "static")
def builtin_types(session: Session) -> Iterator[RowDict]:
    """Yield pg_type of built-in types."""
    for row in f.rows("types"):
        oid = int(row["oid"])
        yield {
            "oid": oid, "typname": row["typname"],
            "typnamespace": f.PG_CATALOG_OID,
            "typowner": SUPERUSER_OID, "typlen": int(row["typlen"]), "typbyval": row["typbyval"] == "t",
            "typtype": row["typtype"], "typcategory": row["typcategory"],
            "typispreferred": row["typispreferred"] == "t", "typisdefined": True,
            "typdelim": row["typdelim"], "typrelid": int(row["typrelid"]), "typelem": int(row["typelem"]),
            "typarray": int(row["typarray"]), "typalign": row["typalign"], "typstorage": row["typstorage"],
            "typnotnull": row["typnotnull"] == "t", "typbasetype": int(row["typbasetype"]),
            "typtypmod": int(row["typtypmod"]), "typndims": int(row["typndims"]),
            "typcollation": int(row["typcollation"]), **{c: int(row[c]) for c in _PROC_COLUMNS},
        }  # fmt: skip


@relation("pg_type", "static")
def builtin_domains(session: Session) -> Iterator[RowDict]:
    """Yield pg_type of information_schema's domains and their arrays."""
    by_oid = {row["oid"]: row for row in f.rows("types")}
    for row in f.rows("domains"):
        base = by_oid[row["typbasetype"]]
        common = {
            "typnamespace": f.INFORMATION_SCHEMA_OID, "typowner": SUPERUSER_OID, "typisdefined": True,
            "typdelim": ",", "typcollation": C_COLLATION if base["typcollation"] != "0" else 0, "typalign": base["typalign"],
        }  # fmt: skip
        yield {
            **common, "oid": int(row["oid"]), "typname": row["typname"], "typtype": "d",
            "typlen": int(base["typlen"]), "typbyval": base["typbyval"] == "t", "typarray": int(row["typarray"]),
            "typcategory": base["typcategory"], "typstorage": base["typstorage"], "typinput": DOMAIN_IN,
            "typreceive": DOMAIN_RECV, "typoutput": int(base["typoutput"]), "typsend": int(base["typsend"]),
            "typbasetype": int(row["typbasetype"]), "typtypmod": int(row["typtypmod"]),
        }  # fmt: skip
        yield {
            **common, "oid": int(row["typarray"]), "typname": "_" + row["typname"], "typtype": "b", "typlen": -1,
            "typcategory": "A", "typelem": int(row["oid"]), "typstorage": "x", "typinput": 750, "typoutput": 751,
            "typreceive": 2400, "typsend": 2401, "typtypmod": -1,
        }  # fmt: skip


@relation("pg_proc", "static")
def pg_proc(session: Session) -> Iterator[RowDict]:
    """Yield pg_proc: PostgreSQL's built-in functions."""
    yield from _proc_rows("functions", f.PG_CATALOG_OID)
    yield from _proc_rows("information_functions", f.INFORMATION_SCHEMA_OID)


def _proc_rows(file: str, schema_oid: int) -> Iterator[RowDict]:
    defaults = _argument_defaults()
    for row in f.rows(file):
        names = row["proargnames"]
        yield {
            "oid": int(row["oid"]), "proname": row["proname"], "pronamespace": schema_oid,
            "proowner": SUPERUSER_OID, "prolang": int(row["prolang"]), "procost": float(row["procost"]),
            "prorows": float(row["prorows"]), "provariadic": int(row["provariadic"]),
            "prokind": row["prokind"], "prosecdef": row["prosecdef"] == "t",
            "proleakproof": row["proleakproof"] == "t", "proisstrict": row["proisstrict"] == "t",
            "proretset": row["proretset"] == "t", "provolatile": row["provolatile"],
            "proparallel": row["proparallel"], "pronargs": int(row["pronargs"]),
            "pronargdefaults": int(row["pronargdefaults"]), "prorettype": int(row["prorettype"]),
            "proargtypes": tuple(map(int, row["proargtypes"].split())),
            "proallargtypes": _oids(row["proallargtypes"]),
            "proargmodes": tuple(row["proargmodes"].strip("{}").split(",")) if row["proargmodes"] else None,
            "proargnames": tuple(n.strip('"') for n in names.strip("{}").split(",")) if names else None,
            "proargdefaults": defaults.get(int(row["oid"])),
            "prosrc": entry_points().get(int(row["oid"]), row["proname"]),
        }  # fmt: skip


@functools.cache
def _argument_defaults() -> dict[int, str]:
    """Return pg_proc.proargdefaults as pg_get_expr shows it."""
    found: dict[int, str] = {}
    for proc in f.facts().procs.values():
        values = default_arguments(proc)
        if values:
            found[proc.oid] = ", ".join(deparse_expr(value) for value in values)
    return found


def _oids(text: str) -> tuple[int, ...] | None:
    return tuple(map(int, text.strip("{}").split(","))) if text else None


@relation("pg_aggregate", "static")
def pg_aggregate(session: Session) -> Iterator[RowDict]:
    """Yield pg_aggregate (identity and kind; transition functions are not ours)."""
    for row in f.rows("aggregates"):
        yield {
            "aggfnoid": int(row["aggfnoid"]), "aggkind": row["aggkind"],
            "aggnumdirectargs": int(row["aggnumdirectargs"]), "aggsortop": int(row["aggsortop"]),
            "aggtranstype": int(row["aggtranstype"]), "aggfinalextra": row["aggfinalextra"] == "t",
            "aggfinalmodify": "r", "aggmfinalmodify": "r", "agginitval": row["agginitval"] or None,
        }  # fmt: skip


@relation("pg_operator", "static")
def pg_operator(session: Session) -> Iterator[RowDict]:
    """Yield pg_operator."""
    operators = f.facts().operators
    for row in f.rows("operators"):
        oid = int(row["oid"])
        yield {
            "oid": oid, "oprname": row["oprname"], "oprnamespace": f.PG_CATALOG_OID,
            "oprowner": SUPERUSER_OID, "oprkind": row["oprkind"], "oprcanmerge": row["oprcanmerge"] == "t",
            "oprcanhash": row["oprcanhash"] == "t", "oprleft": int(row["oprleft"]),
            "oprright": int(row["oprright"]), "oprresult": int(row["oprresult"]),
            "oprcom": int(row["oprcom"]), "oprnegate": int(row["oprnegate"]),
            "oprcode": operators[oid].proc, "oprrest": int(row["oprrest"]), "oprjoin": int(row["oprjoin"]),
        }  # fmt: skip


@relation("pg_cast", "static")
def pg_cast(session: Session) -> Iterator[RowDict]:
    """Yield pg_cast."""
    for row in f.rows("casts"):
        yield {
            "oid": int(row["oid"]), "castsource": int(row["castsource"]),
            "casttarget": int(row["casttarget"]), "castfunc": int(row["castfunc"]),
            "castcontext": row["castcontext"], "castmethod": row["castmethod"],
        }  # fmt: skip


def _typed(file: str, integers: str, booleans: str = "") -> Iterator[dict[str, Any]]:
    """Yield a fact file's rows with the named columns converted."""
    numbers, flags = set(integers.split()), set(booleans.split())
    for row in f.rows(file):
        yield {
            name: int(text) if name in numbers else text == "t" if name in flags else text
            for name, text in row.items()
        }


@relation("pg_am", "static")
def pg_am(session: Session) -> Iterator[RowDict]:
    """Yield pg_am."""
    handlers = {p.name: p.oid for p in f.facts().procs.values()}
    for row in _typed("am", "oid"):
        yield {**row, "amhandler": handlers.get(row["amhandler"], 0)}


@relation("pg_opclass", "static")
def pg_opclass(session: Session) -> Iterator[RowDict]:
    """Yield pg_opclass."""
    yield from _typed(
        "opclass", "oid opcmethod opcnamespace opcowner opcfamily opcintype opckeytype", "opcdefault"
    )


@relation("pg_opclass", "catalog")
def extension_opclasses(session: Session) -> Iterator[RowDict]:
    """Yield pg_opclass of the operator classes that extensions bring."""
    for extension, brought in _extension_classes(session):
        yield {
            "oid": brought.oid, "opcmethod": METHOD_OIDS[brought.method], "opcname": brought.name,
            "opcnamespace": extension.schema_oid, "opcowner": extension.owner, "opcfamily": brought.family,
            "opcintype": brought.input_type, "opcdefault": brought.default, "opckeytype": brought.key_type,
        }  # fmt: skip


@relation("pg_opfamily", "catalog")
def extension_opfamilies(session: Session) -> Iterator[RowDict]:
    """Yield pg_opfamily of those."""
    for extension, brought in _extension_classes(session):
        yield {
            "oid": brought.family, "opfmethod": METHOD_OIDS[brought.method], "opfname": brought.family_name,
            "opfnamespace": extension.schema_oid, "opfowner": extension.owner,
        }  # fmt: skip


def _extension_classes(session: Session) -> Iterator[tuple[ExtensionDef, ExtensionClass]]:
    for brought in extension_classes():
        extension = session.catalog.extension(brought.extension)
        if extension is not None:
            yield extension, brought


@relation("pg_opfamily", "static")
def pg_opfamily(session: Session) -> Iterator[RowDict]:
    """Yield pg_opfamily."""
    yield from _typed("opfamily", "oid opfmethod opfnamespace opfowner")


@relation("pg_amop", "static")
def pg_amop(session: Session) -> Iterator[RowDict]:
    """Yield pg_amop."""
    yield from _typed(
        "amop",
        "oid amopfamily amoplefttype amoprighttype amopstrategy amopopr amopmethod amopsortfamily",
    )


@relation("pg_amproc", "static")
def pg_amproc(session: Session) -> Iterator[RowDict]:
    """Yield pg_amproc."""
    by_name = f.facts().procs_by_name
    for row in _typed("amproc", "oid amprocfamily amproclefttype amprocrighttype amprocnum"):
        candidates = by_name.get(row["amproc"].removeprefix("pg_catalog."), ())
        left, right = row["amproclefttype"], row["amprocrighttype"]
        # in_range is overloaded; the others are told by their names
        fitting = [p for p in candidates if p.arg_types[:3] == (left, left, right)]
        found = (fitting or candidates)[0].oid if candidates else 0
        yield {**row, "amproc": found}


@relation("pg_language", "static")
def pg_language(session: Session) -> Iterator[RowDict]:
    """Yield pg_language."""
    for row in _typed(
        "language", "oid lanowner lanplcallfoid laninline lanvalidator", "lanispl lanpltrusted"
    ):
        yield {**row, "lanacl": None}


@relation("pg_collation", "static")
def pg_collation(session: Session) -> Iterator[RowDict]:
    """Yield pg_collation: those this server compares by, all bytewise."""
    for row in f.rows("collations"):
        yield {
            "oid": int(row["oid"]), "collname": row["collname"], "collnamespace": f.PG_CATALOG_OID,
            "collowner": SUPERUSER_OID, "collprovider": row["collprovider"],
            "collisdeterministic": row["collisdeterministic"] == "t",
            "collencoding": int(row["collencoding"]), "collcollate": row["collcollate"] or None,
            "collctype": row["collctype"] or None,
        }  # fmt: skip


@relation("pg_conversion", "static")
def pg_conversion(session: Session) -> Iterator[RowDict]:
    """Yield pg_conversion: PostgreSQL's own; no others can be made."""
    for row in f.rows("conversions"):
        yield {
            "oid": int(row["oid"]), "conname": row["conname"], "connamespace": f.PG_CATALOG_OID,
            "conowner": SUPERUSER_OID, "conforencoding": int(row["conforencoding"]),
            "contoencoding": int(row["contoencoding"]), "conproc": int(row["conproc"]),
            "condefault": row["condefault"] == "t",
        }  # fmt: skip


@relation("pg_range", "static")
def pg_range(session: Session) -> Iterator[RowDict]:
    """Yield pg_range."""
    procs = {p.name: p.oid for p in f.facts().procs.values()}
    for row in _typed("range", "rngtypid rngsubtype rngmultitypid rngcollation rngsubopc"):
        yield {
            **row, "rngcanonical": procs.get(row["rngcanonical"], 0),
            "rngsubdiff": procs.get(row["rngsubdiff"], 0),
        }  # fmt: skip


@relation("pg_database", "catalog")
def pg_database(session: Session) -> Iterator[RowDict]:
    """Yield pg_database."""
    for database in session.catalog.databases.values():
        yield {
            "oid": database.oid, "datname": database.name, "datdba": database.owner,
            "encoding": UTF8_ENCODING, "datlocprovider": "c", "datistemplate": database.is_template,
            "datallowconn": database.allow_connections, "datconnlimit": database.connection_limit,
            "datfrozenxid": 3, "datminmxid": 1, "dattablespace": DEFAULT_TABLESPACE, "datcollate": database.collate,
            "datctype": database.ctype,
            "datacl": acl_texts(session, session.catalog.acl(PG_DATABASE_OID, database.oid)),
        }  # fmt: skip


@relation("pg_db_role_setting", "catalog")
def pg_db_role_setting(session: Session) -> Iterator[RowDict]:
    """Yield pg_db_role_setting: what ALTER DATABASE and ALTER ROLE ... SET have said."""
    for item in session.catalog.defaults():
        yield {"setdatabase": item.database, "setrole": item.role, "setconfig": _settings_text(item)}


def _settings_text(item: DefaultsDef | None) -> list[str] | None:
    return (
        None
        if item is None
        else [f"{setting_spelling(name)}={value}" for name, value in item.settings.items()]
    )


def _role_settings(session: Session, role: int) -> list[str] | None:
    return _settings_text(session.catalog.defaults_of(0, role))


@relation("pg_tablespace", "static")
def pg_tablespace(session: Session) -> Iterator[RowDict]:
    """Yield pg_tablespace."""
    for oid, name in ((DEFAULT_TABLESPACE, "pg_default"), (GLOBAL_TABLESPACE, "pg_global")):
        yield {"oid": oid, "spcname": name, "spcowner": SUPERUSER_OID}


@relation("pg_authid", "catalog")
def pg_authid(session: Session) -> Iterator[RowDict]:
    """Yield pg_authid; verifiers are shown to superusers only (through pg_shadow and here)."""
    for role in session.catalog.roles.values():
        yield {
            "oid": role.oid, "rolname": role.name, "rolsuper": role.superuser, "rolinherit": role.inherit,
            "rolcreaterole": role.create_role, "rolcreatedb": role.create_db,
            "rolcanlogin": role.can_login, "rolreplication": role.replication,
            "rolbypassrls": role.bypass_rls, "rolconnlimit": role.connection_limit,
            "rolpassword": role.verifier, "rolvaliduntil": role.valid_until,
        }  # fmt: skip


@relation("pg_auth_members", "catalog")
def pg_auth_members(session: Session) -> Iterator[RowDict]:
    """Yield pg_auth_members."""
    for role in session.catalog.roles.values():
        for membership in role.member_of:
            yield {
                "roleid": membership.role, "member": role.oid, "grantor": membership.grantor,
                "admin_option": membership.admin,
            }  # fmt: skip


@relation("pg_roles", "catalog")
def pg_roles(session: Session) -> Iterator[RowDict]:
    """Yield pg_roles."""
    for row in pg_authid(session):
        yield {**row, "rolpassword": "********", "rolconfig": _role_settings(session, row["oid"])}


@relation("pg_shadow", "catalog")
def pg_shadow(session: Session) -> Iterator[RowDict]:
    """Yield pg_shadow."""
    for row in pg_authid(session):
        if row["rolcanlogin"]:
            yield {
                "usename": row["rolname"], "usesysid": row["oid"], "usecreatedb": row["rolcreatedb"],
                "usesuper": row["rolsuper"], "userepl": row["rolreplication"],
                "usebypassrls": row["rolbypassrls"], "passwd": row["rolpassword"],
                "valuntil": row["rolvaliduntil"], "useconfig": _role_settings(session, row["oid"]),
            }  # fmt: skip


@relation("pg_user", "catalog")
def pg_user(session: Session) -> Iterator[RowDict]:
    """Yield pg_user."""
    for row in pg_shadow(session):
        yield {**row, "passwd": "********"}


@relation("pg_description", "catalog")
def pg_description(session: Session) -> Iterator[RowDict]:
    """Yield pg_description: comments on relations, columns, constraints and schemas."""
    for item in session.catalog.comments():
        if item.class_oid not in (PG_DATABASE_OID, PG_AUTHID_OID):
            yield {
                "objoid": item.object_oid, "classoid": item.class_oid, "objsubid": item.sub_id,
                "description": item.text,
            }  # fmt: skip


@relation("pg_shdescription", "catalog")
def pg_shdescription(session: Session) -> Iterator[RowDict]:
    """Yield pg_shdescription: comments on databases and roles."""
    for item in session.catalog.comments():
        if item.class_oid in (PG_DATABASE_OID, PG_AUTHID_OID):
            yield {
                "objoid": item.object_oid, "classoid": item.class_oid, "description": item.text,
            }  # fmt: skip


@of_each("pg_depend")
def pg_depend(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend: constraints on tables, indexes on constraints, views on what they read."""
    if item.kind == "i":
        return  # with its table
    for constraint in item.constraints:
        for attnum in constraint.attnums or (0,):
            yield _depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, item.oid, attnum, "a")
        if constraint.foreign is not None:
            referenced = constraint.foreign
            for attnum in referenced.attnums:
                yield _depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, referenced.table, attnum, "n")
            yield _depends(PG_CONSTRAINT_OID, constraint.oid, PG_CLASS_OID, constraint.index_oid, 0, "n")
    for index in item.indexes:
        if index.constraint_oid:
            yield _depends(PG_CLASS_OID, index.oid, PG_CONSTRAINT_OID, index.constraint_oid, 0, "i")
        else:
            for attnum in index.key_columns:
                yield _depends(PG_CLASS_OID, index.oid, PG_CLASS_OID, item.oid, attnum, "a")
    if item.kind in "vm":
        rule = rewrite_oid(item.oid)
        yield _depends(PG_REWRITE_OID, rule, PG_CLASS_OID, item.oid, 0, "i")
        for oid in item.depends_on:
            yield _depends(PG_REWRITE_OID, rule, PG_CLASS_OID, oid, 0, "n")
    for column in item.live:
        if column.default_sql is not None and not column.identity:
            default = attrdef_oid(item.oid, column.attnum)
            yield _depends(PG_ATTRDEF_OID, default, PG_CLASS_OID, item.oid, column.attnum, "a")
            for oid in relations_of_default(column):
                yield _depends(PG_ATTRDEF_OID, default, PG_CLASS_OID, oid, 0, "n")
    owner = item.sequence
    if owner is not None and owner.owner_table:
        how = "i" if owner.internal else "a"
        yield _depends(PG_CLASS_OID, item.oid, PG_CLASS_OID, owner.owner_table, owner.owner_attnum, how)
    yield _depends(PG_CLASS_OID, item.oid, PG_NAMESPACE_OID, item.schema_oid, 0, "n")


def _depends(class_: int, oid: int, ref_class: int, ref: int, sub: int, kind: str) -> RowDict:
    return {
        "classid": class_, "objid": oid, "refclassid": ref_class, "refobjid": ref, "refobjsubid": sub,
        "deptype": kind,
    }  # fmt: skip


def rewrite_oid(view_oid: int) -> int:
    """Return the oid of a view's _RETURN rule: the third oid of the relation's block is its array type,
    so the rule takes a number above all allocated oids.
    """
    return 0xC000_0000 | view_oid


@of_each("pg_rewrite", keys={"ev_class": by_oid})
def pg_rewrite(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_rewrite: the _RETURN rule of each view."""
    if item.kind in "vm":
        yield {
            "oid": rewrite_oid(item.oid), "rulename": "_RETURN", "ev_class": item.oid, "ev_type": "1",
            "ev_enabled": "O", "is_instead": True, "ev_qual": "<>", "ev_action": "<>",
        }  # fmt: skip
