r"""pg_identify_object and pg_identify_object_as_address: an object by its kind and a name that every session
reads alike.

    pg_identify_object('pg_class'::regclass, 16384, 2)                (table column,public,t,public.t.b)
    pg_identify_object_as_address('pg_proc'::regclass, 16390, 0)      (function,"{public,f}","{integer}")

The second is what ``pg_get_object_address`` reads. Of an object that is not there the kind alone is told, as
far as its catalog says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pgwire.codecs.system import RecordValue
from planner.base.errors import SqlError, not_supported
from planner.base.quoting import quote_ident
from planner.catalog import RelationDef
from planner.catalog.collations import PG_COLLATION
from planner.catalog.conversions import PG_CONVERSION
from planner.catalog.foreign import FOREIGN_WORDS, PG_USER_MAPPING, ForeignDef, MappingDef
from planner.catalog.opclasses import PG_OPCLASS, PG_OPFAMILY
from planner.catalog.relation_kinds import DESCRIBED
from planner.facts import BIT, INTERVAL, NUMERIC, REGCONFIG, REGDICTIONARY, facts, rows
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.names import other_type_name, shown_schema
from planner.functions.system.server import record_of
from planner.indexing.opclass_extensions import extension_classes
from planner.information.describe import (
    casts_by_oid,
    default_column,
    extension_by_oid,
    information_functions,
    mapping_names,
    member_by_oid,
    methods,
    schema_by_oid,
)
from planner.textsearch.names import by_oid
from planner.types.facts import element_of, format_type, is_fact

_PG_CATALOG: Final = "pg_catalog"


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells an object from all others.

    ``names``, ``args``: its address, as ``pg_get_object_address`` takes it. ``schema``, ``name``: quoted,
    None where its kind has none, or its name alone does not tell it from others of the schema.
    """

    kind: str
    identity: str
    names: tuple[str, ...]
    args: tuple[str, ...] = ()
    schema: str | None = None
    name: str | None = None


def _dotted(*names: str) -> str:
    return ".".join(map(quote_ident, names))


class _Nowhere:
    """A session that sees nothing without its schema."""

    search_path = explicit_search_path = ()

    def __init__(self, session: EvalSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


_SQL_NAMES: Final = frozenset((BIT, INTERVAL, NUMERIC))
"""Types whose names in SQL are those in pg_type."""


def _type(session: EvalSession, oid: int) -> str:
    """Return a type with its schema, SQL's own names apart."""
    if not is_fact(oid):
        return other_type_name(session, oid) or "???"
    fact, element = facts().types[oid], element_of(oid)
    if element and facts().types[element].array == oid:
        return f"{_type(session, element)}[]"
    name = quote_ident(fact.name)
    if oid in _SQL_NAMES or format_type(oid) != name:
        return format_type(oid)
    brought = next((row["extension"] for row in rows("extension_types") if int(row["oid"]) == oid), None)
    return f"{quote_ident(_schema_of(session, brought))}.{name}"


def _schema_of(session: EvalSession, extension: str | None) -> str:
    """Return the schema of what an extension brings; None: of PostgreSQL's own."""
    made = None if extension is None else session.catalog.extension(extension)
    schema = None if made is None else session.catalog.schema_by_oid(made.schema_oid)
    return _PG_CATALOG if schema is None else str(schema.name)


# --- relations and what is on them -----------------------------------------------------------------


def _relation(session: EvalSession, oid: int, number: int) -> Identity | str:
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        return "relation"
    kind = DESCRIBED[relation.kind]
    if number:
        kind += " column"
        column = next((c for c in relation.live if c.attnum == relation.numbered(number)), None)
        if column is None:
            return kind
        return replace(_of_relation(session, relation, kind), **_column(session, relation, column.name))
    return _of_relation(session, relation, kind)


def _of_relation(session: EvalSession, relation: RelationDef, kind: str) -> Identity:
    names = (relation.schema, relation.name)
    return Identity(
        kind, _shown(session, *names), names, (), quote_ident(relation.schema), quote_ident(relation.name)
    )


def _shown(session: EvalSession, schema: str, *names: str) -> str:
    """Return a name behind that of its schema, which is pg_temp for the session's own."""
    return f"{shown_schema(session, schema)}.{_dotted(*names)}"


def _column(session: EvalSession, relation: RelationDef, name: str) -> dict[str, Any]:
    names = (relation.schema, relation.name, name)
    return {"identity": _shown(session, *names), "names": names}


def _on(
    session: EvalSession, kind: str, relation: RelationDef, name: str, schema: str | None = None
) -> Identity:
    where = (relation.schema, relation.name)
    return Identity(kind, f"{quote_ident(name)} on {_shown(session, *where)}", (*where, name), (), schema)


def _constraint(session: EvalSession, oid: int) -> Identity | str:
    found = session.catalog.constraint_by_oid(oid)
    if found is not None:
        relation, constraint = found
        return _on(session, "table constraint", relation, constraint.name, quote_ident(relation.schema))
    of_domain = session.catalog.domain_constraint(oid)
    if of_domain is None:
        return "constraint"
    domain, check = of_domain
    shown = _type(session, domain.oid)
    schema = quote_ident(domain.schema)
    return Identity(
        "domain constraint", f"{quote_ident(check.name)} on {shown}", (shown,), (check.name,), schema
    )


def _rule(session: EvalSession, oid: int) -> Identity | str:
    view = session.catalog.relation_by_oid(
        oid & 0x3FFF_FFFF
    )  # engine.catalog.relations.dependency_rows.rewrite_oid
    return "rule" if view is None else _on(session, "rule", view, "_RETURN")


def _trigger(session: EvalSession, oid: int) -> Identity | str:
    found = session.catalog.trigger_by_oid(oid)
    return "trigger" if found is None else _on(session, "trigger", found[0], found[1].name)


def _policy(session: EvalSession, oid: int) -> Identity | str:
    found = session.catalog.policy_by_oid(oid)
    return "policy" if found is None else _on(session, "policy", found[0], found[1].name)


def _default(session: EvalSession, oid: int) -> Identity | str:
    found = default_column(session, oid)
    if found is None:
        return "default value"
    of = _column(session, *found)
    return Identity("default value", f"for {of['identity']}", of["names"])


# --- functions, types, operators -------------------------------------------------------------------


def _routine(session: EvalSession, oid: int) -> Identity | str:
    function = session.catalog.function_by_oid(oid)
    proc = facts().procs.get(oid)
    if function is not None:
        kind: str = function.kind
        schema, name, inputs = function.schema, function.name, function.inputs
    elif proc is not None:
        schema = "information_schema" if oid in information_functions() else _PG_CATALOG
        name, kind, inputs = proc.name, proc.kind, proc.arg_types
        made = session.catalog.type_by_oid(proc.result)
        if made is not None:  # the constructor of a user's range
            schema = made.schema
    else:
        return "routine"
    args = tuple(_type(session, of) for of in inputs)
    word = {"a": "aggregate", "p": "procedure"}.get(kind, "function")
    return Identity(
        word, f"{_dotted(schema, name)}({','.join(args)})", (schema, name), args, quote_ident(schema)
    )


def _type_identity(session: EvalSession, oid: int) -> Identity | str:
    shown = _type(session, oid)
    if shown == "???":
        return "type"
    if is_fact(oid):
        schema, name = _PG_CATALOG, facts().types[oid].name
    else:
        row = next((r for r in session.system.catalog_rows("pg_type") if r[0] == oid), None)
        if row is None:
            return "type"
        space = session.catalog.schema_by_oid(row[2])
        schema, name = "" if space is None else space.name, row[1]
    return Identity("type", shown, (shown,), (), quote_ident(schema), quote_ident(name))


def _cast(session: EvalSession, oid: int) -> Identity | str:
    found = casts_by_oid().get(oid)
    if found is None:
        return "cast"
    source, target = (_type(session, of) for of in found)
    return Identity("cast", f"({source} AS {target})", (source,), (target,))


def _operator(session: EvalSession, oid: int) -> Identity | str:
    found = facts().operators.get(oid)
    if found is None:
        return "operator"
    brought = next((row["extension"] for row in rows("extension_operators") if int(row["oid"]) == oid), None)
    schema = _schema_of(session, brought)
    left = _type(session, found.left) if found.left else "NONE"
    right = _type(session, found.right)
    args = (left, right) if found.left else (right,)
    return Identity(
        "operator",
        f"{quote_ident(schema)}.{found.name}({left},{right})",
        (schema, found.name),
        args,
        quote_ident(schema),
    )


def _of_method(kind: str, file: str, prefix: str, session: EvalSession, oid: int) -> Identity | str:
    """Identify an operator class or family."""
    for row in rows(file):
        if int(row["oid"]) == oid:
            return _named_of_method(
                kind, methods()[int(row[f"{prefix}method"])], _PG_CATALOG, row[f"{prefix}name"]
            )
    for brought in extension_classes():
        own = (brought.oid, brought.name) if file == "opclass" else (brought.family, brought.family_name)
        if own[0] == oid:
            return _named_of_method(kind, brought.method, _schema_of(session, brought.extension), own[1])
    made = session.catalog.opclass_by_oid(oid)
    if made is not None and made.class_oid == (PG_OPCLASS if file == "opclass" else PG_OPFAMILY):
        return _named_of_method(kind, methods()[made.method], made.schema, made.name)
    return kind


def _named_of_method(kind: str, method: str, schema: str, name: str) -> Identity:
    shown = f"{_dotted(schema, name)} USING {quote_ident(method)}"
    return Identity(kind, shown, (method, schema, name), (), quote_ident(schema), quote_ident(name))


def _in_family(word: str, file: str, number: str, session: EvalSession, oid: int) -> Identity | str:
    """Identify an operator or a function of a family."""
    kind = f"{word} of access method"
    row = next((row for row in rows(file) if int(row["oid"]) == oid), None)
    if row is None:
        found = member_by_oid(session.catalog, oid)
        if found is None or found[1].function != (word == "function"):
            return kind
        row = {
            number: str(found[1].number), f"{file}family": str(found[0].oid), f"{file}lefttype": str(found[1].left),
            f"{file}righttype": str(found[1].right),
        }  # fmt: skip
    family = _of_method("operator family", "opfamily", "opf", session, int(row[f"{file}family"]))
    if not isinstance(family, Identity):
        raise AssertionError(f"an operator family is {type(family).__name__}")
    left, right = (_type(session, int(row[f"{file}{side}type"])) for side in ("left", "right"))
    told = f"{word} {row[number]} ({left}, {right}) of {family.identity}"
    return Identity(kind, told, (*family.names, row[number]), (left, right))


# --- objects by name alone -------------------------------------------------------------------------


def _own(
    kind: str, file: str, column: str, schema: str | None, session: EvalSession, oid: int
) -> Identity | str:
    """Identify an object of a kind of which there are PostgreSQL's own alone."""
    name = next((row[column] for row in rows(file) if int(row["oid"]) == oid), None)
    return kind if name is None else _named(kind, name, schema)


def _conversion(session: EvalSession, oid: int) -> Identity | str:
    made = session.catalog.conversion_by_oid(oid)
    if made is not None:
        return _named("conversion", made.name, made.schema)
    return _own("conversion", "conversions", "conname", _PG_CATALOG, session, oid)


def _collation(session: EvalSession, oid: int) -> Identity | str:
    made = session.catalog.collation_by_oid(oid)
    if made is not None:
        return _named("collation", made.name, made.schema)
    return _own("collation", "collations", "collname", _PG_CATALOG, session, oid)


def _named(kind: str, name: str, schema: str | None = None) -> Identity:
    names = (name,) if schema is None else (schema, name)
    shown = None if schema is None else quote_ident(schema)
    return Identity(kind, _dotted(*names), names, (), shown, quote_ident(name))


def _text_search(named_by: int, kind: str, session: EvalSession, oid: int) -> Identity | str:
    found = by_oid(session.catalog, named_by, oid)
    return kind if found is None else _named(kind, found.name, found.schema)


def _statistics(session: EvalSession, oid: int) -> Identity | str:
    found = session.catalog.statistics_by_oid(oid)
    schema = None if found is None else session.catalog.schema_by_oid(found[1].schema_oid)
    if found is None or schema is None:
        return "statistics object"
    made = _named("statistics object", found[1].name, schema.name)
    return replace(made, identity=_shown(session, schema.name, found[1].name))


def _global(kind: str, find: Callable[[Any, int], Any], session: EvalSession, oid: int) -> Identity | str:
    found = find(session, oid)
    return kind if found is None else _named(kind, found.name)


def _foreign(class_oid: int, session: EvalSession, oid: int) -> ForeignDef | None:
    found: ForeignDef | None = session.catalog.foreign_by_oid(oid)
    return found if found is not None and found.class_oid == class_oid else None


def _user_mapping(session: EvalSession, oid: int) -> Identity | str:
    found = _foreign(PG_USER_MAPPING, session, oid)
    if not isinstance(found, MappingDef):
        return "user mapping"
    role, server = mapping_names(session.catalog, found)
    return Identity("user mapping", f"{quote_ident(role)} on server {server}", (role,), (server,))


def _tablespace(_session: Any, oid: int) -> Identity | str:
    name = {1663: "pg_default", 1664: "pg_global"}.get(oid)
    return "tablespace" if name is None else _named("tablespace", name)


def _large_object(_session: Any, _oid: int) -> Identity | str:
    """Refuse: whether one is there is told by stored rows, for which a function that tells it would have to wait."""
    raise not_supported("the identity of a large object")


_NEW: Final = {"r": "tables", "S": "sequences", "f": "functions", "T": "types", "n": "schemas"}


def _default_acl(session: EvalSession, oid: int) -> Identity | str:
    row = next((r for r in session.system.catalog_rows("pg_default_acl") if r[0] == oid), None)
    role = None if row is None else session.catalog.role_by_oid(row[1])
    if row is None or role is None:
        return "default acl"
    schema = session.catalog.schema_by_oid(row[2])
    place = "" if schema is None else f" in schema {quote_ident(schema.name)}"
    names = (role.name,) if schema is None else (role.name, schema.name)
    told = f"for role {quote_ident(role.name)}{place} on {_NEW[row[3]]}"
    return Identity("default acl", told, names, (row[3],))


def _absent(kind: str, _session: Any, _oid: int) -> str:
    return kind


_Identify = Callable[[Any, int], "Identity | str"]
_PG_CLASS: Final = 1259
_BY_CATALOG: Final[Mapping[int, _Identify]] = {
    826: _default_acl,
    1213: _tablespace,
    1247: _type_identity,
    1255: _routine,
    1260: partial(_global, "role", lambda session, oid: session.catalog.role_by_oid(oid)),
    **{
        class_oid: partial(_global, word, partial(_foreign, class_oid)) for class_oid, word in FOREIGN_WORDS.items()
    },
    PG_USER_MAPPING: _user_mapping,
    1262: partial(_global, "database", lambda session, oid: session.catalog.database_by_oid(oid)),
    2601: partial(_own, "access method", "am", "amname", None),
    2602: partial(_in_family, "operator", "amop", "amopstrategy"),
    2603: partial(_in_family, "function", "amproc", "amprocnum"),
    2604: _default,
    2605: _cast,
    2606: _constraint,
    PG_CONVERSION: _conversion,
    2612: partial(_own, "language", "language", "lanname", None),
    2613: _large_object,
    2615: partial(_global, "schema", schema_by_oid),
    2616: partial(_of_method, "operator class", "opclass", "opc"),
    2617: _operator,
    2618: _rule,
    2620: _trigger,
    2753: partial(_of_method, "operator family", "opfamily", "opf"),
    3079: partial(_global, "extension", extension_by_oid),
    3256: _policy,
    3381: _statistics,
    PG_COLLATION: _collation,
    3600: partial(_text_search, REGDICTIONARY, "text search dictionary"),
    3601: partial(_own, "text search parser", "ts_parsers", "prsname", _PG_CATALOG),
    3602: partial(_text_search, REGCONFIG, "text search configuration"),
    3764: partial(_own, "text search template", "ts_templates", "tmplname", _PG_CATALOG),
    **{
        oid: partial(_absent, kind)
        for oid, kind in (
            (3466, "event trigger"), (3576, "transform"), (6100, "subscription"), (6104, "publication"),
            (6106, "publication relation"), (6237, "publication namespace"), (6243, "parameter ACL"),
        )
    },
}  # fmt: skip
"""By the oid of the catalog, pg_class apart; those at the end are of kinds of which nobody can have any here."""


def _identify(session: EvalSession, class_oid: int, oid: int, number: int) -> Identity | str:
    """Return what an object is, or the kind of one that is not there. Raises SqlError XX000 for a catalog
    that has no objects, as PostgreSQL.
    """
    plain: Any = _Nowhere(session)
    if class_oid == _PG_CLASS:
        return _relation(plain, oid, number)
    find = _BY_CATALOG.get(class_oid)
    if find is None:
        raise SqlError("XX000", f"unrecognized object class: {class_oid}")
    if number:
        raise SqlError("XX000", f"invalid non-zero objectSubId for object class {class_oid}")
    return find(plain, oid)


def identify_object(session: EvalSession, class_oid: int, oid: int, number: int) -> RecordValue:
    """SQL's ``pg_identify_object``."""
    found = _identify(session, class_oid, oid, number)
    values: Sequence[Any] = (found, None, None, None)
    if isinstance(found, Identity):
        values = (found.kind, found.schema, found.name, found.identity)
    return record_of("pg_identify_object(oid,oid,int4)", *values)


def identify_as_address(session: EvalSession, class_oid: int, oid: int, number: int) -> RecordValue:
    """SQL's ``pg_identify_object_as_address``."""
    found = _identify(session, class_oid, oid, number)
    values: Sequence[Any] = (found, None, None)
    if isinstance(found, Identity):
        values = (found.kind, found.names, found.args)
    return record_of("pg_identify_object_as_address(oid,oid,int4)", *values)


def _register() -> None:
    REGISTRY.python("pg_identify_object(oid,oid,int4)", identify_object, needs_session=True)
    REGISTRY.python("pg_identify_object_as_address(oid,oid,int4)", identify_as_address, needs_session=True)


_register()
