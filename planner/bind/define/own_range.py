"""CREATE TYPE ... AS RANGE: attributes checked in PostgreSQL's order (typecmds.c, DefineRange).

CREATE TYPE floatrange AS RANGE (subtype = float8, subtype_diff = float8mi)      multirange type floatmultirange
CREATE TYPE intspan    AS RANGE (subtype = int4)                                 multirange type intspan_multirange
"""

from __future__ import annotations

from collections.abc import Sequence

from pgwire.codecs.users.range_elements import SUBTYPES
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.named_functions import signature
from planner.bind.define.table.table_parts import column_collation
from planner.bind.define.types import MAX_NAME_BYTES, creation_schema_of, is_taken
from planner.conversion.order import default_opclass, unordered_field
from planner.facts import BIT, BOOL, BPCHAR, CHAR, FLOAT8, INTERVAL, JSONB, NAME, TIMETZ, VARBIT, facts
from planner.indexing.opclass import check_class
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import array_of, element_of, format_type

_LESS = 1  # the strategy of btree's operator <
_ATTRIBUTES = (
    "subtype",
    "subtype_opclass",
    "collation",
    "canonical",
    "subtype_diff",
    "multirange_type_name",
)

_ORDERED = SUBTYPES | {BOOL, BPCHAR, NAME, CHAR, INTERVAL, TIMETZ, BIT, VARBIT, JSONB}
"""Types of PostgreSQL that ranges, and those over arrays, are over; enums and composite types are others."""


def bind_create_range(context: BindContext, node: ast.CreateRange) -> st.CreateRange:
    """CREATE TYPE ... AS RANGE.

    Raises SqlError 3F000, 42601 (attributes), 42704, 42804 (a pseudo-type), 42809 (a collation where there is
    none), 42883 and 42P17 (subtype_diff); 0A000 by name: ``canonical``, other operator classes than the
    default one, other subtypes.
    """
    schema = creation_schema_of(context, node.name)
    if is_taken(context, schema, node.name[-1]):
        raise SqlError("42710", f'type "{node.name[-1]}" already exists')
    found: dict[str, ast.Name] = {}
    subtype = 0
    for option in node.options:
        if option.name in found:
            raise SqlError("42601", "conflicting or redundant options", span=option.span)
        if option.name not in _ATTRIBUTES:
            raise SqlError("42601", f'type attribute "{option.name}" not recognized')
        if option.name == "subtype":
            subtype = _type_of(context, option)
        found[option.name] = _name_of(option)
    if not subtype:
        raise SqlError("42601", 'type attribute "subtype" is required')
    fact = facts().types.get(subtype)
    if fact is not None and fact.kind == "p":
        raise SqlError("42804", f"range subtype cannot be {format_type(subtype)}")
    _check_opclass(subtype, found.get("subtype_opclass"))
    collation = _collation(context, subtype, found.get("collation", ()))
    if "canonical" in found:
        raise not_supported("a range type with CANONICAL", hint="Canonical functions are written in C.")
    if not _is_ordered(context, subtype):
        raise not_supported(f"a range type over {format_type(subtype)}")
    difference = found.get("subtype_diff")
    schema_of_multirange, multirange = _multirange(context, schema, found.get("multirange_type_name", ()))
    if multirange and schema_of_multirange != schema:
        raise not_supported("a multirange type in another schema than its range type")
    return st.CreateRange(
        schema=schema,
        name=node.name[-1],
        subtype=subtype,
        collation=collation,
        subtype_diff=0 if difference is None else _difference(context, difference, subtype),
        multirange=multirange,
    )


def _is_ordered(context: BindContext, subtype: int) -> bool:
    """Tell whether ranges can be over a type: one whose values have their order in bytes."""
    subtype = base_oid(subtype)
    element = element_of(subtype)
    plain = base_oid(element) if element and array_of(element) == subtype else subtype
    made = context.catalog.type_by_oid(plain)
    if made is None or plain != made.oid:
        return plain in _ORDERED
    return made.kind == "e" or (
        made.kind == "c" and not unordered_field(plain, context.catalog.row_type, _LESS)
    )


def default_multirange_name(name: str) -> str:
    """Return what the multirange type of a range type is called where nothing is said (makeMultirangeTypeName)."""
    if "range" in name:
        made = name.replace("range", "multirange", 1)
        return made.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    ending = "_multirange"
    return name.encode()[: MAX_NAME_BYTES - len(ending)].decode(errors="ignore") + ending


def _type_of(context: BindContext, option: ast.Option) -> int:
    value = option.value
    if isinstance(value, str):
        value = ast.TypeName(names=(value,))
    if not isinstance(value, ast.TypeName):
        raise SqlError("42601", f"argument of {option.name} must be a type name", span=option.span)
    try:
        return context.type_of(value).oid
    except SqlError as error:
        error.span = None
        raise


def _name_of(option: ast.Option) -> ast.Name:
    value = option.value
    if isinstance(value, ast.TypeName):
        return value.names
    if isinstance(value, str):
        return (value,)
    raise SqlError("42601", f"argument of {option.name} must be a name", span=option.span)


def _check_opclass(subtype: int, name: ast.Name | None) -> None:
    if name is None and default_opclass(base_oid(subtype)) is None:
        raise SqlError(
            "42704",
            f'data type {format_type(subtype)} has no default operator class for access method "btree"',
            hint="You must specify an operator class for the range type or define a default operator class for the subtype.",
        )
    if name is not None and check_class(SqlType(subtype), "btree", name, None):
        raise not_supported(f'operator class "{name[-1]}" of a range type')


def _collation(context: BindContext, subtype: int, name: ast.Name) -> int:
    if name and not column_collation(context, (), SqlType(subtype), None):
        raise SqlError("42809", "range collation specified but subtype does not support collation")
    made = context.catalog.type_by_oid(subtype)
    if not name and made is not None and made.is_domain and subtype == made.oid:
        return made.collation
    return column_collation(context, name, SqlType(subtype), None)


def _multirange(context: BindContext, schema: str, name: ast.Name) -> tuple[str, str]:
    if not name:
        return schema, ""
    return (creation_schema_of(context, name) if len(name) > 1 else schema), name[-1]


def _difference(context: BindContext, name: ast.Name, subtype: int) -> int:
    """Return the function for distances: of two elements, to float8, immutable."""
    wanted = (subtype, subtype)
    for oid, result, volatility in _candidates(context, name, wanted):
        shown = signature(".".join(name), wanted, ", ")
        if result != FLOAT8:
            raise SqlError("42P17", f"range subtype diff function {shown} must return type double precision")
        if volatility != "i":
            raise SqlError("42P17", f"range subtype diff function {shown} must be immutable")
        return oid
    raise SqlError("42883", f"function {signature('.'.join(name), wanted, ', ')} does not exist")


def _candidates(context: BindContext, name: ast.Name, wanted: Sequence[int]) -> list[tuple[int, int, str]]:
    schemas = (name[-2],) if len(name) > 1 else context.search_path
    found: list[tuple[int, int, str]] = []
    for schema in schemas:
        if schema == "pg_catalog":
            procs = facts().procs_by_name.get(name[-1], ())
            found += [(p.oid, p.result, p.volatility) for p in procs if p.arg_types == tuple(wanted)]
        functions = context.catalog.functions_named(name[-1])
        found += [
            (f.oid, f.result, f.volatility)
            for f in functions
            if f.schema == schema and f.inputs == tuple(wanted)
        ]
    return found
