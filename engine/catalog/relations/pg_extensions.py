"""What extensions bring beside functions, in pg_catalog: types, operators, casts, aggregates, operator
classes; all are members of theirs.

Rows are facts (``planner.facts``, ``extension_*.csv``), shown in databases that have the extension, in its
schema. Functions are named there by the oids of the built-in ones that they stand for; the rows have those of
the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.catalog.acl_texts import acl_of
from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_EXTENSION_OID, PG_PROC_OID, PG_TYPE_OID, SUPERUSER_OID
from planner import facts as f
from planner.catalog import ExtensionDef
from planner.indexing.opclass import METHOD_OIDS
from planner.indexing.opclass_extensions import BLOOM, BLOOM_METHOD_OID, ExtensionClass, extension_classes

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

PG_OPERATOR_OID, PG_CAST_OID, PG_OPCLASS_OID, PG_OPFAMILY_OID, PG_AM_OID = 2617, 2605, 2616, 2753, 2601
_TYPE_FUNCTIONS: Final = ("typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout")
_SUBSCRIPT_HANDLER: Final = {"A": 6179}


def _rows(session: Reading, file: str) -> Iterator[tuple[ExtensionDef, dict[str, str]]]:
    """Yield the rows of a fact file of extensions that are there."""
    if session.catalog.extensions:
        for row in f.rows(file):
            extension = session.catalog.extension(row["extension"])
            if extension is not None:
                yield extension, row


def _functions(session: Reading) -> dict[int, int]:
    """Return the oids of extensions' functions in this database by those of the built-in ones that they stand for."""
    signatures = f.facts().proc_by_signature
    return {
        signatures[function.internal]: function.oid
        for function in session.catalog.functions()
        if function.extension and function.internal in signatures
    }


@relation("pg_type", "catalog")
def extension_types(session: Reading) -> Iterator[RowDict]:
    """Yield pg_type of extensions' types and the array types over them, called what they are called now."""
    made = {t.oid: t for t in session.catalog.user_types() if t.kind == "b"}
    functions = _functions(session) if made else {}
    for _extension, row in _rows(session, "extension_types"):
        oid = int(row["oid"])
        type_ = made.get(oid) or made.get(int(row["typelem"]))
        if type_ is None:
            continue
        yield {
            "oid": oid, "typname": type_.names[oid], "typnamespace": type_.schema_oid, "typowner": type_.owner,
            "typlen": int(row["typlen"]), "typbyval": row["typbyval"] == "t", "typtype": row["typtype"],
            "typcategory": row["typcategory"], "typispreferred": row["typispreferred"] == "t", "typisdefined": True,
            "typdelim": row["typdelim"], "typrelid": 0, "typelem": int(row["typelem"]), "typarray": int(row["typarray"]),
            "typalign": row["typalign"], "typstorage": row["typstorage"], "typtypmod": int(row["typtypmod"]),
            "typcollation": int(row["typcollation"]), "typsubscript": _SUBSCRIPT_HANDLER.get(row["typcategory"], 0),
            "typacl": acl_of(session, PG_TYPE_OID, oid),
            **{name: functions.get(int(row[name]), int(row[name])) for name in _TYPE_FUNCTIONS},
        }  # fmt: skip


@relation("pg_operator", "catalog")
def extension_operators(session: Reading) -> Iterator[RowDict]:
    """Yield pg_operator of extensions' operators."""
    functions = _functions(session) if session.catalog.extensions else {}
    for extension, row in _rows(session, "extension_operators"):
        code = int(row["oprcode"])
        yield {
            "oid": int(row["oid"]), "oprname": row["oprname"], "oprnamespace": extension.schema_oid,
            "oprowner": SUPERUSER_OID, "oprkind": row["oprkind"], "oprcanmerge": row["oprcanmerge"] == "t",
            "oprcanhash": row["oprcanhash"] == "t", "oprleft": int(row["oprleft"]), "oprright": int(row["oprright"]),
            "oprresult": int(row["oprresult"]), "oprcom": int(row["oprcom"]), "oprnegate": int(row["oprnegate"]),
            "oprcode": functions.get(code, code), "oprrest": int(row["oprrest"]), "oprjoin": int(row["oprjoin"]),
        }  # fmt: skip


@relation("pg_cast", "catalog")
def extension_casts(session: Reading) -> Iterator[RowDict]:
    """Yield pg_cast of extensions' casts, as PostgreSQL has them."""
    functions = _functions(session) if session.catalog.extensions else {}
    for _extension, row in _rows(session, "extension_casts"):
        function = int(row["castfunc"])
        yield {
            "oid": int(row["oid"]), "castsource": int(row["castsource"]), "casttarget": int(row["casttarget"]),
            "castfunc": functions.get(function, function), "castcontext": row["castcontext"], "castmethod": row["castmethod"],
        }  # fmt: skip


@relation("pg_proc", "catalog")
def extension_aggregates(session: Reading) -> Iterator[RowDict]:
    """Yield pg_proc of extensions' aggregates; other functions are of the catalog."""
    for extension, row in _rows(session, "extension_functions"):
        if row["prokind"] == "a":
            yield {
                "oid": int(row["oid"]), "proname": row["proname"], "pronamespace": extension.schema_oid,
                "proowner": SUPERUSER_OID, "prolang": 12, "procost": float(row["procost"]), "prorows": 0.0, "provariadic": 0,
                "prokind": "a", "prosecdef": False, "proleakproof": False, "proisstrict": row["proisstrict"] == "t",
                "proretset": False, "provolatile": row["provolatile"], "proparallel": row["proparallel"],
                "pronargs": len(row["proargtypes"].split()), "pronargdefaults": 0, "prorettype": int(row["prorettype"]),
                "proargtypes": tuple(map(int, row["proargtypes"].split())), "prosrc": row["prosrc"],
            }  # fmt: skip


@relation("pg_aggregate", "catalog")
def extension_pg_aggregate(session: Reading) -> Iterator[RowDict]:
    """Yield pg_aggregate of those."""
    for _extension, row in _rows(session, "extension_aggregates"):
        yield {
            "aggfnoid": int(row["aggfnoid"]), "aggkind": row["aggkind"], "aggnumdirectargs": int(row["aggnumdirectargs"]),
            "aggsortop": int(row["aggsortop"]), "aggtranstype": int(row["aggtranstype"]),
            "aggfinalextra": row["aggfinalextra"] == "t", "aggfinalmodify": "r", "aggmfinalmodify": "r",
            "agginitval": row["agginitval"] or None,
        }  # fmt: skip


@relation("pg_amop", "catalog")
def extension_amop(session: Reading) -> Iterator[RowDict]:
    """Yield pg_amop of extensions' operator classes."""
    for _extension, row in _rows(session, "extension_amop"):
        yield {
            name: text if name == "amoppurpose" else int(text)
            for name, text in row.items()
            if name != "extension"
        }


@relation("pg_am", "catalog")
def extension_methods(session: Reading) -> Iterator[RowDict]:
    """Yield pg_am of the index access method that an extension brings; its handler, which nobody can call, is
    not there.
    """
    if session.catalog.extension(BLOOM) is not None:
        yield {"oid": BLOOM_METHOD_OID, "amname": BLOOM, "amhandler": 0, "amtype": "i"}


@relation("pg_opclass", "catalog")
def extension_opclasses(session: Reading) -> Iterator[RowDict]:
    """Yield pg_opclass of the operator classes that extensions bring."""
    for extension, brought in _classes(session):
        yield {
            "oid": brought.oid, "opcmethod": METHOD_OIDS[brought.method], "opcname": brought.name,
            "opcnamespace": extension.schema_oid, "opcowner": extension.owner, "opcfamily": brought.family,
            "opcintype": brought.input_type, "opcdefault": brought.default, "opckeytype": brought.key_type,
        }  # fmt: skip


@relation("pg_opfamily", "catalog")
def extension_opfamilies(session: Reading) -> Iterator[RowDict]:
    """Yield pg_opfamily of those."""
    for extension, brought in _classes(session):
        yield {
            "oid": brought.family, "opfmethod": METHOD_OIDS[brought.method], "opfname": brought.family_name,
            "opfnamespace": extension.schema_oid, "opfowner": extension.owner,
        }  # fmt: skip


def _classes(session: Reading) -> Iterator[tuple[ExtensionDef, ExtensionClass]]:
    for brought in extension_classes():
        extension = session.catalog.extension(brought.extension)
        if extension is not None:
            yield extension, brought


@relation("pg_depend", "catalog")
def members_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend: members, functions apart, on their extensions."""
    if not session.catalog.extensions:
        return
    for made in session.catalog.user_types():
        if made.extension:
            yield depends(PG_TYPE_OID, made.oid, PG_EXTENSION_OID, made.extension, "e")
    for extension, row in _rows(session, "extension_types"):
        if row["typcategory"] != "A":
            yield depends(PG_TYPE_OID, int(row["oid"]), PG_EXTENSION_OID, extension.oid, "e")
    for file, class_oid, column in (
        ("extension_operators", PG_OPERATOR_OID, "oid"),
        ("extension_casts", PG_CAST_OID, "oid"),
        ("extension_aggregates", PG_PROC_OID, "aggfnoid"),
    ):
        for extension, row in _rows(session, file):
            yield depends(class_oid, int(row[column]), PG_EXTENSION_OID, extension.oid, "e")
    bloom = session.catalog.extension(BLOOM)
    if bloom is not None:
        yield depends(PG_AM_OID, BLOOM_METHOD_OID, PG_EXTENSION_OID, bloom.oid, "e")
    for extension, brought in _classes(session):
        yield depends(PG_OPCLASS_OID, brought.oid, PG_EXTENSION_OID, extension.oid, "e")
        yield depends(PG_OPFAMILY_OID, brought.family, PG_EXTENSION_OID, extension.oid, "e")
