r"""pg_describe_object: what an object is called in messages, by its catalog and oid.

    pg_describe_object('pg_class'::regclass, 16384, 2)      column b of table t
    pg_describe_object('pg_operator'::regclass, 96, 0)      operator =(integer,integer)

psql asks for the members of extensions (``\dx+``), and whoever reads ``pg_depend``. Names carry their schema
where the search path does not find them. An oid that names nothing gives NULL, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple

from planner.base.quoting import quote_ident
from planner.catalog import ExtensionDef, RelationDef, SystemCatalog
from planner.catalog.collations import PG_COLLATION
from planner.catalog.conversions import PG_CONVERSION
from planner.catalog.extensions import PLPGSQL, TEMPLATES
from planner.catalog.foreign import FOREIGN_WORDS, PG_USER_MAPPING, MappingDef, ServerDef
from planner.catalog.opclasses import PG_OPCLASS, PG_OPFAMILY, FamilyMember, OperatorFamilyDef
from planner.catalog.relation_kinds import DESCRIBED
from planner.conversion.collations import shown_collation
from planner.facts import REGCONFIG, REGDICTIONARY, facts, rows
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.function_names import constructor_name, shown_function
from planner.functions.system.names import (
    conversion_is_visible,
    opclass_is_visible,
    relation_visible,
    type_name,
)
from planner.functions.values.reg import search_object_name
from planner.indexing.opclass_extensions import extension_classes
from planner.information.statistics import statistics_name
from planner.textsearch.names import SEARCH_NAMES, by_oid
from planner.types.facts import format_type


def describe_object(session: EvalSession, class_oid: int, oid: int, sub_id: int) -> str | None:
    """SQL's ``pg_describe_object``; NULL for what is not there, and for kinds of objects that nobody can have here."""
    if class_oid == _PG_CLASS:
        return _relation(session, oid, sub_id)
    describe = _DESCRIBED.get(class_oid)
    return None if describe is None else describe(session, oid)


def _relation(session: EvalSession, oid: int, number: int) -> str | None:
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        return None
    shown = relation_words(session, relation)
    if not number:
        return shown
    column = next((c for c in relation.columns if c.attnum == relation.numbered(number)), None)
    return None if column is None else f"column {column.name} of {shown}"


def relation_words(session: EvalSession, relation: RelationDef) -> str:
    """Return what a relation is and is called."""
    name = quote_ident(relation.name)
    if not relation_visible(session, relation):
        name = f"{quote_ident(relation.schema)}.{name}"
    return f"{DESCRIBED[relation.kind]} {name}"


def _constraint(session: EvalSession, oid: int) -> str | None:
    found = session.catalog.constraint_by_oid(oid)
    if found is not None:
        return f"constraint {found[1].name} on {relation_words(session, found[0])}"
    of_domain = session.catalog.domain_constraint(oid)
    return None if of_domain is None else f"constraint {of_domain[1].name}"


def _rule(session: EvalSession, oid: int) -> str | None:
    view = session.catalog.relation_by_oid(
        oid & 0x3FFF_FFFF
    )  # engine.catalog.relations.dependency_rows.rewrite_oid
    return None if view is None else f"rule _RETURN on {relation_words(session, view)}"


def default_column(session: EvalSession, oid: int) -> tuple[RelationDef, str] | None:
    """Return the table and the column that a default is of, by the default's oid."""
    # engine.catalog.relations.dependency_rows.attrdef_oid keeps 31 bits: which table it is of, from the
    # 1,341,354th oid on, is found by trying
    for whole in range(oid & 0x7FFF_FFFF, 1601 << 30, 1 << 31):
        owner, number = divmod(whole, 1601)
        table = session.catalog.relation_by_oid(owner)
        if table is not None:
            column = next((c for c in table.live if table.number(c.attnum) == number), None)
            if column is not None:
                return table, column.name
    return None


def _default(session: EvalSession, oid: int) -> str | None:
    found = default_column(session, oid)
    return (
        None
        if found is None
        else f"default value for column {found[1]} of {relation_words(session, found[0])}"
    )


_NEW: Final = {"r": "relations", "S": "sequences", "f": "functions", "T": "types", "n": "schemas"}


def _default_rights(session: EvalSession, oid: int) -> str | None:
    """Describe what ALTER DEFAULT PRIVILEGES has said."""
    for row in session.system.catalog_rows("pg_default_acl"):
        if row[0] == oid:
            role, schema = session.catalog.role_by_oid(row[1]), session.catalog.schema_by_oid(row[2])
            who = str(row[1]) if role is None else role.name
            place = "" if schema is None else f" in schema {schema.name}"
            return f"default privileges on new {_NEW[row[3]]} belonging to role {who}{place}"
    return None


class _Toast(NamedTuple):
    name: str = "pg_toast"


def schema_by_oid(session: EvalSession, oid: int) -> Any:
    """Return what has the name of a schema, by its oid; of that of TOAST tables, too, in which nothing is."""
    return _Toast() if oid == _TOAST else session.catalog.schema_by_oid(oid)


def _schema(session: EvalSession, oid: int) -> str | None:
    schema = schema_by_oid(session, oid)
    return None if schema is None else f"schema {schema.name}"


def _tablespace(_session: EvalSession, oid: int) -> str | None:
    name = {1663: "pg_default", 1664: "pg_global"}.get(oid)
    return None if name is None else f"tablespace {name}"


def _member(session: EvalSession, oid: int) -> int:
    """Return the function that a row of pg_amproc is about."""
    return next(int(row[5]) for row in session.system.catalog_rows("pg_amproc") if row[0] == oid)


def _in_family(
    word: str, file: str, number: str, what: Callable[[EvalSession, int], str | None]
) -> Callable[[EvalSession, int], str | None]:
    """Return what describes operators, or functions, of families; ``what`` describes the operator or function
    itself.
    """

    def describe(session: EvalSession, oid: int) -> str | None:
        row = next((row for row in rows(file) if int(row["oid"]) == oid), None)
        if row is None:
            found = member_by_oid(session.catalog, oid)
            if found is None or found[1].function != (word == "function"):
                return None
            own, one = found
            sides = ", ".join(str(type_name(session, side, None)) for side in (one.left, one.right))
            called = (what(session, one.object) or "").removeprefix(f"{word} ")
            return f"{word} {one.number} ({sides}) of {_DESCRIBED[2753](session, own.oid)}: {called}"
        family = _DESCRIBED[2753](session, int(row[f"{file}family"]))
        sides = ", ".join(
            str(type_name(session, int(row[f"{file}{side}type"]), None)) for side in ("left", "right")
        )
        member = int(row["amopopr"]) if word == "operator" else _member(session, oid)
        called = (what(session, member) or "").removeprefix(f"{word} ")
        return f"{word} {row[number]} ({sides}) of {family}: {called}"

    return describe


def member_by_oid(catalog: SystemCatalog, oid: int) -> tuple[OperatorFamilyDef, FamilyMember] | None:
    """Return the operator or function of a users' family with this oid, and the family."""
    for family in catalog.opclasses():
        if isinstance(family, OperatorFamilyDef):
            for one in family.members:
                if one.oid == oid:
                    return family, one
    return None


def _role(session: EvalSession, oid: int) -> str | None:
    role = session.catalog.role_by_oid(oid)
    return None if role is None else f"role {role.name}"


def _database(session: EvalSession, oid: int) -> str | None:
    database = session.catalog.database_by_oid(oid)
    return None if database is None else f"database {database.name}"


def _type(session: EvalSession, oid: int) -> str | None:
    name = type_name(session, oid, None) if oid else None
    return None if name is None or name == "???" else f"type {name}"


def _function(session: EvalSession, oid: int) -> str | None:
    function = session.catalog.function_by_oid(oid)
    if function is not None:
        return f"function {shown_function(session, function)}"
    constructor = constructor_name(session, oid, with_types=True)
    if constructor is not None:
        return f"function {constructor}"
    proc = facts().procs.get(oid)
    if proc is None:
        return None
    schema = "information_schema." if oid in information_functions() else ""
    return f"function {schema}{quote_ident(proc.name)}({','.join(format_type(t) for t in proc.arg_types)})"


@cache
def information_functions() -> frozenset[int]:
    """Return the functions of information_schema, by oid."""
    return frozenset(int(row["oid"]) for row in rows("information_functions"))


def _trigger(session: EvalSession, oid: int) -> str | None:
    found = session.catalog.trigger_by_oid(oid)
    return None if found is None else f"trigger {found[1].name} on {relation_words(session, found[0])}"


def _policy(session: EvalSession, oid: int) -> str | None:
    found = session.catalog.policy_by_oid(oid)
    return None if found is None else f"policy {found[1].name} on {relation_words(session, found[0])}"


def extension_by_oid(session: EvalSession, oid: int) -> ExtensionDef | None:
    """Return the extension that has an oid, if it is installed."""
    names = (PLPGSQL.name, *facts().extensions)
    found = (session.catalog.extension(name) for name in names)
    return next((e for e in found if e is not None and e.oid == oid), None)


def _extension(session: EvalSession, oid: int) -> str | None:
    found = extension_by_oid(session, oid)
    return None if found is None else f"extension {found.name}"


def _operator(session: EvalSession, oid: int) -> str | None:
    found = facts().operators.get(oid)
    if found is None:
        return None
    left = type_name(session, found.left, None) if found.left else "NONE"
    text = f"{found.name}({left},{type_name(session, found.right, None)})"
    extension = _bringer(session, "extension_operators", oid)
    return f"operator {_of_extension(session, extension, text)}"


def _cast(session: EvalSession, oid: int) -> str | None:
    found = casts_by_oid().get(oid)
    if found is None:
        return None
    source, target = (type_name(session, of, None) for of in found)
    return f"cast from {source} to {target}"


@cache
def casts_by_oid() -> Mapping[int, tuple[int, int]]:
    """Return the source and the target of each cast, by oid."""
    return {
        int(row["oid"]): (int(row["castsource"]), int(row["casttarget"]))
        for file in ("casts", "extension_casts")
        for row in rows(file)
    }


def _of_method(word: str, file: str, name: str, method: str) -> Callable[[EvalSession, int], str | None]:
    """Return what describes operator classes, or families, called by their column ``name`` in a file of facts."""

    def describe(session: EvalSession, oid: int) -> str | None:
        for row in rows(file):
            if int(row["oid"]) == oid:
                return f"{word} {quote_ident(row[name])} for access method {methods()[int(row[method])]}"
        for brought in extension_classes():
            number, called = (
                (brought.oid, brought.name) if file == "opclass" else (brought.family, brought.family_name)
            )
            if number == oid:
                extension = session.catalog.extension(brought.extension)
                shown = _of_extension(session, extension, quote_ident(called))
                return f"{word} {shown} for access method {brought.method}"
        made = session.catalog.opclass_by_oid(oid)
        if made is not None and made.class_oid == (PG_OPCLASS if file == "opclass" else PG_OPFAMILY):
            called = quote_ident(made.name)
            if not opclass_is_visible(file, session, oid):
                called = f"{quote_ident(made.schema)}.{called}"
            return f"{word} {called} for access method {methods()[made.method]}"
        return None

    return describe


@cache
def methods() -> Mapping[int, str]:
    """Return the access methods, by oid."""
    return {int(row["oid"]): row["amname"] for row in rows("am")}


def _bringer(session: EvalSession, file: str, oid: int) -> ExtensionDef | None:
    """Return the extension that brings an object, None for one of PostgreSQL's own."""
    brought = next((row["extension"] for row in rows(file) if int(row["oid"]) == oid), None)
    return None if brought is None else session.catalog.extension(brought)


def _of_extension(session: EvalSession, extension: ExtensionDef | None, text: str) -> str:
    """Return a name with its schema where that is an extension's and not in the search path."""
    schema = None if extension is None else session.catalog.schema_by_oid(extension.schema_oid)
    if schema is None or schema.name in session.search_path:
        return text
    return f"{quote_ident(schema.name)}.{text}"


def _own(word: str, file: str, name: str) -> Callable[[EvalSession, int], str | None]:
    """Return what describes objects of a kind of which there are PostgreSQL's own alone."""

    def describe(session: EvalSession, oid: int) -> str | None:
        found = next((row[name] for row in rows(file) if int(row["oid"]) == oid), None)
        return None if found is None else f"{word} {quote_ident(found)}"

    return describe


def _conversion(session: EvalSession, oid: int) -> str | None:
    made = session.catalog.conversion_by_oid(oid)
    if made is None:
        return _own("conversion", "conversions", "conname")(session, oid)
    name = quote_ident(made.name)
    if not conversion_is_visible(session, oid):
        name = f"{quote_ident(made.schema)}.{name}"
    return f"conversion {name}"


def _collation(session: EvalSession, oid: int) -> str | None:
    if session.catalog.collation_by_oid(oid) is None:
        return _own("collation", "collations", "collname")(session, oid)
    return f"collation {shown_collation(oid, session.catalog, session.search_path)}"


def _text_search(named_by: int, session: EvalSession, oid: int) -> str | None:
    found = by_oid(session.catalog, named_by, oid)
    return None if found is None else f"{SEARCH_NAMES[named_by]} {search_object_name(session, found)}"


def _statistics(session: EvalSession, oid: int) -> str | None:
    found = session.catalog.statistics_by_oid(oid)
    return None if found is None else f"statistics object {statistics_name(session, found[1])}"


def _foreign(class_oid: int, session: EvalSession, oid: int) -> str | None:
    found = session.catalog.foreign_by_oid(oid)
    if found is None or found.class_oid != class_oid:
        return None
    if not isinstance(found, MappingDef):
        return f"{FOREIGN_WORDS[class_oid]} {found.name}"
    role, server = mapping_names(session.catalog, found)
    return f"user mapping for {role} on server {server}"


def mapping_names(catalog: SystemCatalog, mapping: MappingDef) -> tuple[str, str]:
    """Return for whom a user mapping is ("public" for everybody), and at which server."""
    role, server = catalog.role_by_oid(mapping.owner), catalog.foreign_by_oid(mapping.server)
    name = server.name if isinstance(server, ServerDef) else ""  # of a lost row
    return "public" if role is None else role.name, name


def _template(session: EvalSession, oid: int) -> str | None:
    for of, (template, name) in TEMPLATES.items():
        extension = session.catalog.extension(of)
        if template == oid and extension is not None:
            return f"text search template {_of_extension(session, extension, quote_ident(name))}"
    return _own("text search template", "ts_templates", "tmplname")(session, oid)


_PG_CLASS: Final = 1259
_TOAST: Final = 99
_DESCRIBED: Final[Mapping[int, Callable[[EvalSession, int], str | None]]] = {
    826: _default_rights,
    1247: _type,
    1255: _function,
    1260: _role,
    1262: _database,
    1213: _tablespace,
    **{class_oid: partial(_foreign, class_oid) for class_oid in (*FOREIGN_WORDS, PG_USER_MAPPING)},
    2601: _own("access method", "am", "amname"),
    2602: _in_family("operator", "amop", "amopstrategy", _operator),
    2603: _in_family("function", "amproc", "amprocnum", _function),
    2604: _default,
    2605: _cast,
    2606: _constraint,
    PG_CONVERSION: _conversion,
    2612: _own("language", "language", "lanname"),
    2615: _schema,
    2616: _of_method("operator class", "opclass", "opcname", "opcmethod"),
    2617: _operator,
    2618: _rule,
    2620: _trigger,
    2753: _of_method("operator family", "opfamily", "opfname", "opfmethod"),
    3079: _extension,
    3256: _policy,
    3381: _statistics,
    PG_COLLATION: _collation,
    3600: partial(_text_search, REGDICTIONARY),
    3601: _own("text search parser", "ts_parsers", "prsname"),
    3602: partial(_text_search, REGCONFIG),
    3764: _template,
}
"""By the oid of the catalog, pg_class apart."""


def _register() -> None:
    REGISTRY.python("pg_describe_object(oid,oid,int4)", describe_object, needs_session=True)


_register()
