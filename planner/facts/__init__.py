"""PostgreSQL 15's built-in types, functions, operators and casts, as data.

The CSV files in ``data/`` are facts read off a stock server (``data/SOURCE.md``). This module loads the ones
the binder needs into frozen rows with indexes; the served ``pg_catalog`` shows the same rows. Loading is
done once, at first use of ``facts()``, and takes some tens of milliseconds.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, TypeVar

DATA = resources.files(__name__) / "data"
"""Also where the package is imported from an archive."""

# Oids the code names often.
BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT2VECTOR, INT4, REGPROC, TEXT, OID, TID, XID, CID, OIDVECTOR = (
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
)  # fmt: skip
JSON, FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, TIMETZ = (
    114, 700, 701, 705, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1266,
)  # fmt: skip
BIT, VARBIT, NUMERIC, UUID, JSONB, RECORD, VOID = 1560, 1562, 1700, 2950, 3802, 2249, 2278
REGCONFIG, REGDICTIONARY, TSVECTOR, TSQUERY, REGCOLLATION = 3734, 3769, 3614, 3615, 4191
CITEXT, HSTORE = 2_000_000_010, 2_000_000_020  # of extensions (``pgwire.codecs.domain``)
REGCLASS, REGTYPE, REGNAMESPACE, REGROLE, REGPROCEDURE, REGOPER, REGOPERATOR = (
    2205, 2206, 4089, 4096, 2202, 2203, 2204,
)  # fmt: skip
CSTRING, ANY, ANYARRAY, ANYELEMENT, ANYNONARRAY, ANYENUM, INTERNAL, TRIGGER = (
    2275, 2276, 2277, 2283, 2776, 3500, 2281, 2279,
)  # fmt: skip
ANYRANGE, ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY, ANYCOMPATIBLERANGE = (
    3831, 5077, 5078, 5079, 5080,
)  # fmt: skip
ANYMULTIRANGE, ANYCOMPATIBLEMULTIRANGE = 4537, 4538
PG_CATALOG_OID, PUBLIC_OID, INFORMATION_SCHEMA_OID = 11, 2200, 13161


@dataclass(frozen=True, slots=True)
class TypeFact:
    """A pg_type row (the columns the code uses)."""

    oid: int
    name: str
    length: int
    by_value: bool
    kind: str  # typtype: b base, p pseudo, r range, m multirange, e enum, d domain, c composite
    category: str
    preferred: bool
    delimiter: str
    element: int  # typelem: not 0 for arrays and for vectors/name/point ...
    array: int  # typarray


@dataclass(frozen=True, slots=True)
class ProcFact:
    """A pg_proc row."""

    oid: int
    name: str
    kind: str  # f function, a aggregate, w window, p procedure
    strict: bool
    returns_set: bool
    volatility: str  # i s v
    arg_types: tuple[int, ...]
    result: int
    defaults: int  # number of trailing arguments with a default
    variadic: int  # element type of the variadic argument, or 0
    all_arg_types: tuple[int, ...] | None
    arg_modes: tuple[str, ...] | None
    arg_names: tuple[str, ...] | None
    default_types: tuple[
        int, ...
    ] = ()  # of defaults of polymorphic parameters what they are; () where none is polymorphic


@dataclass(frozen=True, slots=True)
class ExtensionFact:
    """A row of pg_available_extension_versions, and what the extension consists of.

    All oids are ours. Those of functions nobody sees: CREATE EXTENSION makes a function of the catalog for
    each (``planner.catalog.FunctionDef.internal``); aggregates are not among them, they are found as built-in
    ones are. ``types``: base types, no arrays; CREATE EXTENSION makes a ``TypeDef`` of each. ``operators``:
    by name, found where the extension's schema is.
    """

    name: str
    version: str
    trusted: bool
    relocatable: bool
    functions: tuple[ProcFact, ...]
    types: tuple[TypeFact, ...]
    operators: Mapping[str, tuple[OperatorFact, ...]]


@dataclass(frozen=True, slots=True)
class OperatorFact:
    """A pg_operator row; ``left`` 0 for prefix operators."""

    oid: int
    name: str
    left: int
    right: int
    result: int
    commutator: int
    negator: int
    proc: int
    can_hash: bool


@dataclass(frozen=True, slots=True)
class CastFact:
    """A pg_cast row: context i(mplicit) a(ssignment) e(xplicit); method f(unction) i(nout) b(inary)."""

    source: int
    target: int
    func: int
    context: str
    method: str


@dataclass(frozen=True, slots=True)
class AggregateFact:
    """A pg_aggregate row: kind n(ormal) o(rdered-set) h(ypothetical); 0 for functions of an extension's, and
    where there is none.
    """

    proc: int
    kind: str
    direct_args: int
    transition: int = 0
    final: int = 0


def rows(file: str) -> Iterator[dict[str, str]]:
    """Yield the rows of ``data/<file>.csv`` as dictionaries of text."""
    with io.TextIOWrapper((DATA / f"{file}.csv").open("rb"), encoding="utf-8", newline="") as handle:
        yield from csv.DictReader(handle)


def _oid_list(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.strip("{}").replace(",", " ").split())


def _text_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip('"') for part in text.strip("{}").split(","))


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts with their indexes."""

    types: dict[int, TypeFact]
    types_by_name: Mapping[str, TypeFact]
    procs: dict[int, ProcFact]
    procs_by_name: Mapping[str, tuple[ProcFact, ...]]
    operators: Mapping[int, OperatorFact]
    operators_by_name: Mapping[str, tuple[OperatorFact, ...]]
    casts: dict[tuple[int, int], CastFact]
    aggregates: Mapping[int, AggregateFact]
    proc_by_signature: Mapping[str, int]
    extensions: Mapping[str, ExtensionFact]
    prefixes: Mapping[int, str]

    def signature(self, oid: int) -> str:
        """Return ``name(argtype,argtype)`` of a function, with pg_type names; of an extension's function with
        its name and a dot before it.
        """
        proc = self.procs[oid]
        return (
            f"{self.prefixes.get(oid, '')}{proc.name}({','.join(self.types[t].name for t in proc.arg_types)})"
        )


T = TypeVar("T")


_kept: list[dict[int, Any]] = []
"""All that is kept of types, by oid."""


class _OfTypes(dict[int, T]):
    """What a function says of types, by oid."""

    def __init__(self, function: Callable[[int], T]) -> None:
        super().__init__()
        self._function = function
        _kept.append(self)

    def __missing__(self, oid: int) -> T:
        made = self._function(oid)
        if oid in facts().types:
            self[oid] = made
        return made


def of_types(function: Callable[[int], T]) -> Callable[[int], T]:
    """Keep what ``function`` says of types, but not of those that are not known.

    Clients may ask for any number (the types of parameters come with Parse), and a type of it may be made later.
    """
    return _OfTypes(function).__getitem__


def register_type(fact: TypeFact) -> None:
    """Make a user's type known beside the built-in ones: by oid, as its names are a matter of the catalog.

    Its structure is its oid's for ever; ``fact.name`` is only what error messages call it.
    """
    types = facts().types
    types[fact.oid] = fact


def forget_type(oid: int) -> None:
    """Take back ``register_type``, with all that was kept of the type."""
    types = facts().types
    types.pop(oid, None)
    for kept in _kept:
        kept.pop(oid, None)


def _type(row: Mapping[str, str]) -> TypeFact:
    return TypeFact(
        oid=int(row["oid"]), name=row["typname"], length=int(row["typlen"]),
        by_value=row["typbyval"] == "t", kind=row["typtype"], category=row["typcategory"],
        preferred=row["typispreferred"] == "t", delimiter=row["typdelim"],
        element=int(row["typelem"]), array=int(row["typarray"]),
    )  # fmt: skip


def _operator(row: Mapping[str, str], proc_names: Mapping[str, int]) -> OperatorFact:
    code = row["oprcode"]
    return OperatorFact(
        oid=int(row["oid"]), name=row["oprname"], left=int(row["oprleft"]),
        right=int(row["oprright"]), result=int(row["oprresult"]), commutator=int(row["oprcom"]),
        negator=int(row["oprnegate"]),
        proc=int(code) if code.isdigit() else proc_names.get(code, 0),
        can_hash=row["oprcanhash"] == "t",
    )  # fmt: skip


def _cast(row: Mapping[str, str]) -> CastFact:
    return CastFact(
        int(row["castsource"]), int(row["casttarget"]), int(row["castfunc"]),
        row["castcontext"], row["castmethod"],
    )  # fmt: skip


def _proc(row: Mapping[str, str]) -> ProcFact:
    return ProcFact(
        oid=int(row["oid"]), name=row["proname"], kind=row["prokind"],
        strict=row["proisstrict"] == "t", returns_set=row["proretset"] == "t",
        volatility=row["provolatile"], arg_types=_oid_list(row["proargtypes"]),
        result=int(row["prorettype"]), defaults=int(row["pronargdefaults"]),
        variadic=int(row["provariadic"]),
        all_arg_types=_oid_list(row["proallargtypes"]) if row["proallargtypes"] else None,
        arg_modes=_text_list(row["proargmodes"]) if row["proargmodes"] else None,
        arg_names=_text_list(row["proargnames"]) if row["proargnames"] else None,
    )  # fmt: skip


def register_proc(fact: ProcFact) -> None:
    """Make a function known by its oid that comes with a user's type: a constructor of ranges."""
    procs = facts().procs
    procs[fact.oid] = fact


def forget_proc(oid: int) -> bool:
    """Take back ``register_proc``; tells whether there was anything to take back."""
    procs = facts().procs
    return procs.pop(oid, None) is not None


def register_cast(fact: CastFact) -> None:
    """Make a cast known that comes with a user's type."""
    casts = facts().casts
    casts[fact.source, fact.target] = fact


def forget_cast(source: int, target: int) -> None:
    """Take back ``register_cast``."""
    casts = facts().casts
    casts.pop((source, target), None)


@functools.cache
def facts() -> Facts:
    """Return the facts (loaded once)."""
    types = {fact.oid: fact for fact in map(_type, rows("types"))}
    types_by_name = {fact.name: fact for fact in types.values()}
    own_types: dict[str, list[TypeFact]] = {}
    for row in rows("extension_types"):
        fact = types[int(row["oid"])] = _type(row)
        own_types.setdefault(row["extension"], []).append(fact)
    procs: dict[int, ProcFact] = {}
    by_name: dict[str, list[ProcFact]] = {}
    # functions of information_schema are found by their qualified name
    in_schemas = [("", row) for row in rows("functions")]
    in_schemas += [("information_schema.", row) for row in rows("information_functions")]
    for schema, row in in_schemas:
        proc = _proc(row)
        procs[proc.oid] = proc
        by_name.setdefault(schema + proc.name, []).append(proc)
    operators: dict[int, OperatorFact] = {}
    ops_by_name: dict[str, list[OperatorFact]] = {}
    proc_names = {proc.name: proc.oid for proc in procs.values()}
    for row in rows("operators"):
        op = _operator(row, proc_names)
        operators[op.oid] = op
        ops_by_name.setdefault(op.name, []).append(op)
    brought: dict[str, dict[str, list[OperatorFact]]] = {}
    for row in rows("extension_operators"):
        op = operators[int(row["oid"])] = _operator(row, proc_names)
        brought.setdefault(row["extension"], {}).setdefault(op.name, []).append(op)
    casts = {(cast.source, cast.target): cast for cast in map(_cast, rows("casts"))}
    for row in rows("extension_casts"):
        cast = _cast(row)
        # what PostgreSQL keeps as text is kept as something else here (``pgwire.codecs.text.citext``)
        casts[cast.source, cast.target] = replace(cast, method="i") if cast.method == "b" else cast
    aggregates = {
        int(row["aggfnoid"]): AggregateFact(
            int(row["aggfnoid"]),
            row["aggkind"],
            int(row["aggnumdirectargs"]),
            int(row.get("aggtransfn", "0")),
            int(row.get("aggfinalfn", "0")),
        )
        for row in (*rows("aggregates"), *rows("extension_aggregates"))
    }
    signatures = {
        f"{proc.name}({','.join(types[t].name for t in proc.arg_types)})": proc.oid
        for proc in procs.values()
        if all(t in types for t in proc.arg_types)
    }
    parts: dict[str, list[ProcFact]] = {}
    prefixes: dict[int, str] = {}
    for row in rows("extension_functions"):
        proc = procs[int(row["oid"])] = _proc(row)
        signature = f"{proc.name}({','.join(types[t].name for t in proc.arg_types)})"
        if proc.kind == "a":
            by_name.setdefault(proc.name, []).append(proc)
            signatures[signature] = proc.oid
        else:
            parts.setdefault(row["extension"], []).append(proc)
            prefixes[proc.oid] = f"{row['extension']}."
            signatures[prefixes[proc.oid] + signature] = proc.oid
    extensions = {
        row["name"]: ExtensionFact(
            row["name"],
            row["version"],
            row["trusted"] == "t",
            row["relocatable"] == "t",
            tuple(parts.get(row["name"], ())),
            tuple(fact for fact in own_types.get(row["name"], ()) if fact.array),
            {name: tuple(found) for name, found in brought.get(row["name"], {}).items()},
        )
        for row in rows("extensions")
    }
    return Facts(
        types=types,
        types_by_name=types_by_name,
        procs=procs,
        procs_by_name={name: tuple(group) for name, group in by_name.items()},
        operators=operators,
        operators_by_name={name: tuple(group) for name, group in ops_by_name.items()},
        casts=casts,
        aggregates=aggregates,
        proc_by_signature=signatures,
        extensions=extensions,
        prefixes=prefixes,
    )
