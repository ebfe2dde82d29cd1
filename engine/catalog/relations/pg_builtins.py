"""pg_catalog of what PostgreSQL brings: types, functions, operators, casts, access methods, collations.

    planner/facts (PostgreSQL 15's own tables, as text) ──> rows with their columns' types, the same for every session

Users' types and functions add theirs elsewhere (``pg_types``, ``pg_functions``); extensions' operator classes are here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.catalog.acl_texts import acl_of, builtin_acl_texts
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_LANGUAGE_OID, SUPERUSER_OID
from planner import facts as f
from planner.catalog.information_domains import information_domains
from planner.catalog.rights import restricted_functions
from planner.conversion.resolve import default_arguments
from planner.deparse import deparse_expr
from planner.functions.system.function_names import entry_points
from planner.types.facts import C_COLLATION

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

DOMAIN_IN, DOMAIN_RECV = 2597, 2598
_PROC_COLUMNS = ("typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout")


@relation("pg_type", "static")
def builtin_types(session: Reading) -> Iterator[RowDict]:
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
def builtin_domains(session: Reading) -> Iterator[RowDict]:
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
            "typdefault": (default := information_domains()[int(row["oid"])].default_sql), "typdefaultbin": default,
        }  # fmt: skip
        yield {
            **common, "oid": int(row["typarray"]), "typname": "_" + row["typname"], "typtype": "b", "typlen": -1,
            "typcategory": "A", "typelem": int(row["oid"]), "typstorage": "x", "typinput": 750, "typoutput": 751,
            "typreceive": 2400, "typsend": 2401, "typtypmod": -1,
        }  # fmt: skip


@relation("pg_proc", "static")
def pg_proc(session: Reading) -> Iterator[RowDict]:
    """Yield pg_proc: PostgreSQL's built-in functions."""
    lists = restricted_functions()
    for row in builtin_procs():
        yield {**row, "proacl": builtin_acl_texts(lists.get(row["oid"]))}


def builtin_procs() -> Iterator[RowDict]:
    """Yield rows of pg_proc, the same for every session."""
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
    for proc in list(f.facts().procs.values()):
        values = default_arguments(proc)
        if values:
            found[proc.oid] = ", ".join(deparse_expr(value) for value in values)
    return found


def _oids(text: str) -> tuple[int, ...] | None:
    return tuple(map(int, text.strip("{}").split(","))) if text else None


@relation("pg_aggregate", "static")
def pg_aggregate(session: Reading) -> Iterator[RowDict]:
    """Yield pg_aggregate."""
    numbers = (
        "aggfnoid aggnumdirectargs aggtranstype aggsortop aggtransfn aggfinalfn aggcombinefn aggserialfn aggdeserialfn aggmtransfn "
        "aggminvtransfn aggmfinalfn aggtransspace aggmtranstype aggmtransspace"
    )
    for row in _typed("aggregates", numbers, "aggfinalextra aggmfinalextra"):
        yield {**row, "agginitval": row["agginitval"] or None, "aggminitval": row["aggminitval"] or None}


@relation("pg_operator", "static")
def pg_operator(session: Reading) -> Iterator[RowDict]:
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
def pg_cast(session: Reading) -> Iterator[RowDict]:
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
def pg_am(session: Reading) -> Iterator[RowDict]:
    """Yield pg_am."""
    handlers = {p.name: p.oid for p in list(f.facts().procs.values())}
    for row in _typed("am", "oid"):
        yield {**row, "amhandler": handlers.get(row["amhandler"], 0)}


@relation("pg_opclass", "static")
def pg_opclass(session: Reading) -> Iterator[RowDict]:
    """Yield pg_opclass."""
    yield from _typed(
        "opclass", "oid opcmethod opcnamespace opcowner opcfamily opcintype opckeytype", "opcdefault"
    )


@relation("pg_opfamily", "static")
def pg_opfamily(session: Reading) -> Iterator[RowDict]:
    """Yield pg_opfamily."""
    yield from _typed("opfamily", "oid opfmethod opfnamespace opfowner")


@relation("pg_amop", "static")
def pg_amop(session: Reading) -> Iterator[RowDict]:
    """Yield pg_amop."""
    yield from _typed(
        "amop",
        "oid amopfamily amoplefttype amoprighttype amopstrategy amopopr amopmethod amopsortfamily",
    )


@relation("pg_amproc", "static")
def pg_amproc(session: Reading) -> Iterator[RowDict]:
    """Yield pg_amproc."""
    by_name = f.facts().procs_by_name
    for row in _typed("amproc", "oid amprocfamily amproclefttype amprocrighttype amprocnum"):
        candidates = by_name.get(row["amproc"].removeprefix("pg_catalog."), ())
        left, right = row["amproclefttype"], row["amprocrighttype"]
        # in_range is overloaded; of gin's functions for tsvector there are those of before, too, with fewer arguments
        fitting = [p for p in candidates if p.arg_types[:3] == (left, left, right)]
        found = max(fitting or candidates, key=lambda p: len(p.arg_types)).oid if candidates else 0
        yield {**row, "amproc": found}


@relation("pg_language", "catalog")
def pg_language(session: Reading) -> Iterator[RowDict]:
    """Yield pg_language."""
    for row in _typed(
        "language", "oid lanowner lanplcallfoid laninline lanvalidator", "lanispl lanpltrusted"
    ):
        yield {**row, "lanacl": acl_of(session, PG_LANGUAGE_OID, row["oid"])}


@relation("pg_collation", "static")
def pg_collation(session: Reading) -> Iterator[RowDict]:
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
def pg_conversion(session: Reading) -> Iterator[RowDict]:
    """Yield pg_conversion: PostgreSQL's own."""
    for row in f.rows("conversions"):
        yield {
            "oid": int(row["oid"]), "conname": row["conname"], "connamespace": f.PG_CATALOG_OID,
            "conowner": SUPERUSER_OID, "conforencoding": int(row["conforencoding"]),
            "contoencoding": int(row["contoencoding"]), "conproc": int(row["conproc"]),
            "condefault": row["condefault"] == "t",
        }  # fmt: skip


@relation("pg_range", "static")
def pg_range(session: Reading) -> Iterator[RowDict]:
    """Yield pg_range."""
    procs = {p.name: p.oid for p in list(f.facts().procs.values())}
    for row in _typed("range", "rngtypid rngsubtype rngmultitypid rngcollation rngsubopc"):
        yield {
            **row, "rngcanonical": procs.get(row["rngcanonical"], 0),
            "rngsubdiff": procs.get(row["rngsubdiff"], 0),
        }  # fmt: skip
