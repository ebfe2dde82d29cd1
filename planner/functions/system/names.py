r"""System functions about names: who owns it, is it visible, what is it called, what was said about it.

    \\d  ──>  pg_table_is_visible(oid)   pg_get_userbyid(owner)   obj_description(oid, 'pg_class')

They answer from the catalog the statement sees. Built-in functions, operators and the like are facts, live in
pg_catalog and are visible wherever pg_catalog is searched first, which is always unless search_path lists it later.
An oid that names nothing gives NULL, as PostgreSQL does. Definitions are in ``system_definitions``, privileges in
``system_privileges``, sizes and sessions in ``system_monitor``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from typing import Any, Final

from pgwire.codecs.invalid import quoting
from pgwire.codecs.text.encodings import NAMES, NUMBERS, canonical
from planner.base.errors import SqlError
from planner.base.quoting import quote_ident
from planner.catalog import FunctionDef, RelationDef, SystemCatalog
from planner.catalog.extensions import TEMPLATES
from planner.catalog.relation_kinds import ROW_TYPED
from planner.conversion.collations import is_visible as is_found
from planner.facts import REGCONFIG, REGDICTIONARY, facts, rows
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values.reg import find_relation
from planner.textsearch.descriptions import PG_TS_CONFIG, PG_TS_DICT
from planner.textsearch.descriptions import descriptions as own_descriptions
from planner.textsearch.names import by_oid, is_visible
from planner.types.facts import format_type, is_fact

PG_CLASS, PG_NAMESPACE, PG_CONSTRAINT, PG_TYPE = 1259, 2615, 2606, 1247
PG_PROC, PG_TRIGGER, PG_POLICY, PG_EXTENSION, PG_LARGEOBJECT = 1255, 2620, 3256, 3079, 2613
_DESCRIBED = (
    PG_CLASS, PG_NAMESPACE, PG_CONSTRAINT, PG_TYPE, PG_PROC, PG_TRIGGER, PG_POLICY, PG_EXTENSION, PG_LARGEOBJECT,
    PG_TS_CONFIG, PG_TS_DICT,
)  # fmt: skip


# --- visibility -----------------------------------------------------------------------------------


def table_is_visible(session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_table_is_visible``: would the bare name find this relation?"""
    return visible_tables(session)(oid)


def visible_tables(session: EvalSession) -> Callable[[int], bool | None]:
    """Return ``pg_table_is_visible`` for many rows."""
    catalog, path = session.catalog, session.search_path
    relation_by_oid = catalog.relation_by_oid

    def is_visible(oid: int) -> bool | None:
        relation = relation_by_oid(oid)
        return None if relation is None else _found_first(catalog, path, relation)

    return is_visible


def relation_visible(session: EvalSession, relation: RelationDef) -> bool:
    """Tell whether the first relation of that name along the search path is this one."""
    return _found_first(session.catalog, session.search_path, relation)


def _found_first(catalog: SystemCatalog, path: Sequence[str], relation: RelationDef) -> bool:
    if relation.schema not in path:
        return False
    for schema in path:
        if schema == relation.schema:
            return True
        if catalog.relation(schema, relation.name) is not None:
            return False
    return False


def qualifier(session: EvalSession) -> Callable[[str, str], bool]:
    """Return the function that says whether ``schema.name`` must be written with its schema."""

    def qualify(schema: str, name: str) -> bool:
        for searched in session.search_path:
            if session.catalog.relation(searched, name) is not None:
                return searched != schema
        return True

    return qualify


def type_is_visible(session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_type_is_visible``."""
    return visible_types(session)(oid)


def visible_types(session: EvalSession) -> Callable[[int], bool | None]:
    """Return ``pg_type_is_visible`` for many rows."""
    catalog, path = session.catalog, session.search_path
    built_in = facts().types
    type_by_oid, row_type_relation = catalog.type_by_oid, catalog.row_type_relation

    def is_visible(oid: int) -> bool | None:
        if is_fact(oid):
            schema, name = "pg_catalog", built_in[oid].name
        elif (made := type_by_oid(oid)) is not None:
            schema, name = made.schema, made.names[oid]
        else:
            found = row_type_relation(oid)
            if found is None:
                return None
            schema, name = found[0].schema, ("_" if found[1] else "") + found[0].name
        if schema not in path:
            return False
        for searched in path:
            if searched == schema:
                return True
            if _has_type(catalog, searched, name):
                return False
        return False

    return is_visible


def _has_type(catalog: SystemCatalog, schema: str, name: str) -> bool:
    if schema == "pg_catalog" and name in facts().types_by_name:
        return True
    if catalog.type_oid(schema, name) is not None:
        return True
    for candidate in (name, name[1:]) if name.startswith("_") else (name,):
        relation = catalog.relation(schema, candidate)
        if relation is not None and relation.kind in ROW_TYPED:
            return True
    return False


@functools.cache
def _fact_oids(file: str) -> frozenset[int]:
    return frozenset(int(row["oid"]) for row in rows(file))


def _builtin_is_visible(known: Callable[[], Container[int]]) -> Callable[[EvalSession, int], bool | None]:
    """Return pg_*_is_visible for a kind of object that exists in pg_catalog alone."""

    def is_visible(session: EvalSession, oid: int) -> bool | None:
        return ("pg_catalog" in session.search_path) if oid in known() else None

    return is_visible


def _search_is_visible(named_by: int, session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_ts_config_is_visible`` and ``pg_ts_dict_is_visible``."""
    found = by_oid(session.catalog, named_by, oid)
    return None if found is None else is_visible(session.catalog, session.search_path, found)


def _template_is_visible(session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_ts_template_is_visible``; names of templates are unique."""
    for of, (template, _) in TEMPLATES.items():
        extension = session.catalog.extension(of)
        if template == oid and extension is not None:
            schema = session.catalog.schema_by_oid(extension.schema_oid)
            return schema is not None and schema.name in session.search_path
    return _builtin_is_visible(lambda: _fact_oids("ts_templates"))(session, oid)


def _function_is_visible(session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_function_is_visible``."""
    function = session.catalog.function_by_oid(oid)
    if function is not None:
        return function_is_visible(session, function)
    return _builtin_is_visible(lambda: facts().procs)(session, oid)


# --- names ----------------------------------------------------------------------------------------


def user_by_id(session: EvalSession, oid: int) -> str:
    """SQL's ``pg_get_userbyid``."""
    role = session.catalog.role_by_oid(oid)
    return role.name if role is not None else f"unknown (OID={oid})"


class _UserNames(dict[int, str]):
    """Names of roles by oid, looked up when they are asked for first."""

    __slots__ = ("_session",)

    def __init__(self, session: EvalSession) -> None:
        super().__init__()
        self._session = session

    def __missing__(self, oid: int) -> str:
        """Look up."""
        name = self[oid] = user_by_id(self._session, oid)
        return name


def user_names(session: EvalSession) -> Callable[[int], str]:
    """Return ``pg_get_userbyid`` for many rows."""
    return _UserNames(session).__getitem__


def type_name(session: EvalSession, oid: int | None, typmod: int | None) -> str | None:
    """SQL's ``format_type``: built-in types, users' types, and the row types of tables and views."""
    if oid is None:
        return None
    if oid and not is_fact(oid):
        shown = other_type_name(session, oid)
        return "???" if shown is None else shown
    return format_type(oid, typmod)


def shown_schema(session: EvalSession, schema: str) -> str:
    """Return a schema's name as definitions have it: the session's own one for temporary objects is called pg_temp."""
    return "pg_temp" if schema == f"pg_temp_{session.pid}" else quote_ident(schema)


def other_type_name(session: EvalSession, oid: int) -> str | None:
    """Return how a type prints that is no built-in of pg_catalog: domains, row types and arrays over them."""
    made = session.catalog.type_by_oid(oid)
    if made is not None:
        of = made.multirange if made.kind == "r" and oid >= made.multirange else made.oid
        name = quote_ident(made.names[of])
        if not type_is_visible(session, of):
            name = f"{shown_schema(session, made.schema)}.{name}"
        return name + ("" if oid == of else "[]")
    found = session.catalog.row_type_relation(oid)
    if found is None:
        return None
    relation, array = found
    name = quote_ident(relation.name)
    if not type_is_visible(session, relation.row_type):
        name = f"{shown_schema(session, relation.schema)}.{name}"
    return name + ("[]" if array else "")


def encoding_name(number: int) -> str:
    """SQL's ``pg_encoding_to_char``: empty for an unknown number."""
    return NAMES[number] if 0 <= number < len(NAMES) else ""


def encoding_number(name: str) -> int:
    """SQL's ``pg_char_to_encoding``: -1 for an unknown name; case and punctuation do not matter."""
    found = canonical(name)
    return -1 if found is None else NUMBERS[found]


def conversion_is_visible(session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_conversion_is_visible``; NULL for what is not there."""
    made = session.catalog.conversion_by_oid(oid)
    if made is None:
        return True if oid in _fact_oids("conversions") else None
    for schema in session.search_path:
        if schema == made.schema:
            return True
        if session.catalog.conversion_named(schema, made.name) is not None:
            return False
    return False


def collation_is_visible(session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_collation_is_visible``; NULL for what is not there."""
    made = session.catalog.collation_by_oid(oid)
    if made is None:
        return True if oid in _fact_oids("collations") else None
    return is_found(made, session.catalog, session.search_path)


# --- comments -------------------------------------------------------------------------------------


def obj_description(session: EvalSession, oid: int, catalog: str) -> str | None:
    """SQL's ``obj_description(oid, catalog)`` and ``shobj_description``."""
    return descriptions(session, catalog)(oid)


def descriptions(session: EvalSession, catalog: str) -> Callable[[int], str | None]:
    """Return ``obj_description`` for many objects of one catalog."""
    relation = session.catalog.relation("pg_catalog", catalog)
    class_ = 0 if relation is None else relation.oid
    comment = session.catalog.comments_on(class_)
    own = own_descriptions().get(class_)
    return comment if own is None else lambda oid: own.get(oid) or comment(oid)


def any_description(session: EvalSession, oid: int) -> str | None:
    """SQL's ``obj_description(oid)``: whichever kind of object has that oid."""
    for class_oid in _DESCRIBED:
        text = session.catalog.comment(class_oid, oid)
        if text is not None:
            return text
    return None


def col_description(session: EvalSession, oid: int, number: int) -> str | None:
    """SQL's ``col_description``."""
    relation = session.catalog.relation_by_oid(oid)
    attnum = 0 if relation is None else relation.numbered(number)
    return session.catalog.comment(PG_CLASS, oid, attnum) if attnum else None


def serial_sequence(session: EvalSession, table: str, column: str) -> str | None:
    """SQL's ``pg_get_serial_sequence``: the sequence that a column owns; 42P01, 42703."""
    relation = find_relation(session, table)
    if relation is None:
        raise SqlError("42P01", quoting("relation ", table, " does not exist"))
    found = next((c for c in relation.live if c.name == column), None)
    if found is None:
        raise SqlError("42703", f'column "{column}" of relation "{relation.name}" does not exist')
    for sequence in session.catalog.sequences_of(relation.oid):
        if sequence.sequence is not None and sequence.sequence.owner_attnum == found.attnum:
            return f"{shown_schema(session, sequence.schema)}.{quote_ident(sequence.name)}"
    return None


def temp_schema(session: EvalSession) -> int:
    """SQL's ``pg_my_temp_schema``: 0 until the session has temporary tables."""
    schema = session.catalog.schema(f"pg_temp_{session.pid}")
    return schema.oid if schema is not None else 0


def is_other_temp_schema(session: EvalSession, oid: int) -> bool:
    """SQL's ``pg_is_other_temp_schema``."""
    schema = session.catalog.schema_by_oid(oid)
    return schema is not None and schema.name.startswith("pg_temp_") and oid != temp_schema(session)


def opclass_is_visible(file: str, session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pgopclass_is_visible`` and ``pg_opfamily_is_visible``."""
    found = session.catalog.opclass_by_oid(oid)
    if found is None:
        return _builtin_is_visible(lambda: _fact_oids(file))(session, oid)
    for schema in session.search_path:
        if schema == found.schema:
            return True
        if schema == "pg_catalog" and any(
            row[_OF_FILES[file]] == found.name
            and int(row[_OF_FILES[file].replace("name", "method")]) == found.method
            for row in rows(file)
        ):
            return False
        if session.catalog.opclass_named(found.class_oid, found.method, schema, found.name) is not None:
            return False
    return False


_OF_FILES: Final = {"opclass": "opcname", "opfamily": "opfname"}


def _register() -> None:
    def session_form(
        signature: str, form: Callable[..., Any], for_rows: Callable[..., Any] | None = None
    ) -> None:
        REGISTRY.python(signature, form, needs_session=True, for_rows=for_rows)

    session_form("pg_table_is_visible(oid)", table_is_visible, visible_tables)
    session_form("pg_type_is_visible(oid)", type_is_visible, visible_types)
    fact = _builtin_is_visible
    session_form("pg_function_is_visible(oid)", _function_is_visible)
    session_form("pg_operator_is_visible(oid)", fact(lambda: facts().operators))
    for file in ("opclass", "opfamily"):
        session_form(f"pg_{file}_is_visible(oid)", functools.partial(opclass_is_visible, file))
    session_form("pg_collation_is_visible(oid)", collation_is_visible)
    session_form("pg_conversion_is_visible(oid)", conversion_is_visible)
    session_form("pg_ts_parser_is_visible(oid)", fact(functools.partial(_fact_oids, "ts_parsers")))
    session_form("pg_ts_template_is_visible(oid)", _template_is_visible)
    for kind, named_by in (("ts_dict", REGDICTIONARY), ("ts_config", REGCONFIG)):
        session_form(f"pg_{kind}_is_visible(oid)", functools.partial(_search_is_visible, named_by))
    session_form("pg_get_userbyid(oid)", user_by_id, user_names)
    session_form("format_type(oid,int4)", type_name)
    session_form("obj_description(oid,name)", obj_description, descriptions)
    session_form("shobj_description(oid,name)", obj_description, descriptions)
    session_form("obj_description(oid)", any_description)
    session_form("col_description(oid,int4)", col_description)
    session_form("pg_get_serial_sequence(text,text)", serial_sequence)
    session_form("pg_my_temp_schema()", temp_schema)
    session_form("pg_is_other_temp_schema(oid)", is_other_temp_schema)
    REGISTRY.python("pg_encoding_to_char(int4)", encoding_name)
    REGISTRY.python("pg_char_to_encoding(name)", encoding_number)


_register()


def function_is_visible(session: EvalSession, function: FunctionDef) -> bool:
    """Tell whether a call by name alone, with its argument types, finds a user's function; it never finds a
    temporary one.
    """
    if function.schema.startswith("pg_temp_"):
        return False
    for schema in session.search_path:
        if schema.startswith("pg_temp"):
            continue  # functions are never looked for there
        if schema == function.schema:
            return True
        if schema == "pg_catalog":
            procs = facts().procs_by_name.get(function.name, ())
            if any(proc.arg_types == function.inputs for proc in procs):
                return False
            continue
        for other in session.catalog.functions_named(function.name):
            if other.schema == schema and other.inputs == function.inputs:
                return False
    return False
