"""information_schema.routines and parameters: users' functions and PostgreSQL's own.

pg_proc's built-in rows ──> what the standard shows of them (made once) ──> with the database's name
functions of the catalog ──────────────────────────────────────────────────>
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from engine.catalog.relations.information.schema import type_columns
from engine.catalog.relations.pg_builtins import builtin_procs
from engine.catalog.relations.sources import RowDict, relation
from planner.catalog import ColumnDef
from planner.facts import INFORMATION_SCHEMA_OID, facts, rows
from planner.information.definitions import function_argument_default
from planner.information.functions import function_argument_default as users_argument_default
from planner.types import SqlType
from planner.types.facts import format_type, is_fact

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

_KINDS = {"f": "FUNCTION", "p": "PROCEDURE"}  # others have none
_MODES = {"i": "IN", "v": "IN", "o": "OUT", "t": "OUT", "b": "INOUT"}


_Type: TypeAlias = tuple[str | None, str | None, str | None]  # data_type, schema, name


def _type(session: Reading, oid: int) -> _Type:
    """Return how a type is shown, without its precision: the standard does not show it here."""
    if is_fact(oid):
        return _built_in_type(oid)
    found = type_columns(session, ColumnDef(attnum=1, name="", type=SqlType(oid)))
    return found["data_type"], found["udt_schema"], found["udt_name"]


@functools.cache
def _built_in_type(oid: int) -> _Type:
    fact = facts().types.get(oid)
    if fact is None:
        return format_type(oid), "pg_catalog", None
    shown = "ARRAY" if fact.element and fact.length == -1 else format_type(oid)
    return shown, "pg_catalog", fact.name


def _routine(
    *,
    oid: int,
    schema: str,
    name: str,
    kind: str,
    result: _Type,
    language: str,
    source: str,
    volatility: str,
    strict: bool,
    definer: bool,
) -> RowDict:
    procedure = kind == "p"
    shown, type_schema, type_name = (None, None, None) if procedure else result
    return {
        "specific_schema": schema, "specific_name": f"{name}_{oid}", "routine_schema": schema, "routine_name": name,
        "routine_type": _KINDS.get(kind), "data_type": shown, "type_udt_schema": type_schema, "type_udt_name": type_name,
        "dtd_identifier": None if procedure else "0", "routine_body": "SQL" if language == "SQL" else "EXTERNAL",
        "routine_definition": source, "external_name": source if language == "C" else None, "external_language": language,
        "parameter_style": "GENERAL", "is_deterministic": "YES" if volatility == "i" else "NO",
        "sql_data_access": "MODIFIES", "is_null_call": None if procedure else "YES" if strict else "NO",
        "schema_level_routine": "YES", "max_dynamic_result_sets": 0, "security_type": "DEFINER" if definer else "INVOKER",
        "as_locator": "NO", "is_udt_dependent": "NO",
    }  # fmt: skip


def _parameter(*, schema: str, specific: str, number: int, mode: str, name: str, type_: _Type) -> RowDict:
    shown, type_schema, type_name = type_
    return {
        "specific_schema": schema, "specific_name": specific, "ordinal_position": number, "parameter_mode": _MODES[mode],
        "is_result": "NO", "as_locator": "NO", "parameter_name": name or None, "data_type": shown,
        "udt_schema": type_schema, "udt_name": type_name, "dtd_identifier": str(number),
    }  # fmt: skip


def _schema_of(row: RowDict) -> str:
    return "information_schema" if row["pronamespace"] == INFORMATION_SCHEMA_OID else "pg_catalog"


@functools.cache
def _built_in_routines() -> tuple[RowDict, ...]:
    """Return what PostgreSQL brings, without the columns that name the database."""
    languages = {int(row["oid"]): row["lanname"].upper() for row in rows("language")}
    return tuple(
        _routine(
            oid=row["oid"], schema=_schema_of(row), name=row["proname"], kind=row["prokind"],
            result=_built_in_type(row["prorettype"]), language=languages[row["prolang"]], source=row["prosrc"],
            volatility=row["provolatile"], strict=row["proisstrict"], definer=row["prosecdef"],
        )
        for row in builtin_procs()
    )  # fmt: skip


@functools.cache
def _built_in_parameters() -> tuple[RowDict, ...]:
    """Return those of what PostgreSQL brings, without the columns that name the database."""
    found: list[RowDict] = []
    for row in builtin_procs():
        types = row["proallargtypes"] or row["proargtypes"]
        modes = row["proargmodes"] or "i" * len(types)
        names = row["proargnames"] or ("",) * len(types)
        for number, (oid, mode, name) in enumerate(zip(types, modes, names, strict=True), 1):
            made = _parameter(
                schema=_schema_of(row), specific=f"{row['proname']}_{row['oid']}", number=number, mode=mode,
                name=name, type_=_built_in_type(oid),
            )  # fmt: skip
            default = function_argument_default(row["oid"], number) if row["pronargdefaults"] else None
            found.append({**made, "parameter_default": default})
    return tuple(found)


@relation("information_schema.routines", "catalog")
def routines(session: Reading) -> Iterator[RowDict]:
    """Yield routines, PostgreSQL's own first."""
    users = users_routines(session)
    for row in itertools.chain(_built_in_routines(), users):
        typed = row["type_udt_name"] is not None
        yield {
            **row, "specific_catalog": session.database, "routine_catalog": session.database,
            "type_udt_catalog": session.database if typed else None,
        }  # fmt: skip


def users_routines(session: Reading) -> Iterator[RowDict]:
    """Yield users' functions, without the columns that name the database."""
    for function in session.catalog.functions():
        yield _routine(
            oid=function.oid, schema=function.schema, name=function.name, kind=function.kind,
            result=_type(session, function.result),
            language="INTERNAL" if function.internal or function.kind == "a" else function.language.upper(),
            source=function.source or function.internal, volatility=function.volatility, strict=function.strict,
            definer=function.definer,
        )  # fmt: skip


@relation("information_schema.parameters", "catalog")
def parameters(session: Reading) -> Iterator[RowDict]:
    """Yield parameters of functions, of PostgreSQL's own first."""
    for row in itertools.chain(_built_in_parameters(), users_parameters(session)):
        yield {**row, "specific_catalog": session.database, "udt_catalog": session.database}


def users_parameters(session: Reading) -> Iterator[RowDict]:
    """Yield parameters of users' functions, without the columns that name the database."""
    for function in session.catalog.functions():
        parts = zip(function.types, function.modes, function.names, strict=True)
        for number, (oid, mode, name) in enumerate(parts, 1):
            made = _parameter(
                schema=function.schema, specific=f"{function.name}_{function.oid}", number=number, mode=mode,
                name=name, type_=_type(session, oid),
            )  # fmt: skip
            default = users_argument_default(session, function.oid, number)
            yield {**made, "parameter_default": default}
