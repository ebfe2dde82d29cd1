"""pg_get_object_address: from a kind of object, its names and its arguments to the catalog, oid and column
that are its address.

    pg_get_object_address('table column', '{public,t,b}', '{}')      (1259,16384,2)
    pg_get_object_address('function', '{f}', '{integer}')            (1255,16390,0)
    pg_get_object_address('operator', '{+}', '{int4,int4}')          (2617,551,0)

The inverse of ``pg_describe_object``. Kinds of which nobody can have an object here (servers, publications,
event triggers ...) are known, too: none of theirs is there, and the error is PostgreSQL's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pgwire.codecs.array import dimensions, flatten
from pgwire.codecs.int import parse_oid
from pgwire.codecs.invalid import quoting
from pgwire.codecs.system import RecordValue
from planner.base.errors import SqlError
from planner.base.quoting import quote_ident
from planner.catalog import RANGE_CONSTRUCTORS, RelationDef
from planner.catalog.acl import EVERYBODY
from planner.catalog.collations import PG_COLLATION
from planner.catalog.conversions import PG_CONVERSION
from planner.catalog.foreign import FOREIGN_WORDS, PG_FOREIGN_SERVER, PG_USER_MAPPING, PUBLIC_MAPPING
from planner.catalog.opclasses import PG_OPCLASS, PG_OPFAMILY, OperatorFamilyDef
from planner.catalog.relation_kinds import CALLED, called
from planner.facts import REGCONFIG, REGDICTIONARY, ProcFact, facts, rows
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.server import record_of
from planner.functions.values.reg import find_relation, find_type, object_schemas
from planner.textsearch.names import find_named
from planner.types.facts import format_type

Names = Sequence[str]
Address = tuple[int, int]
"""Of an object: its oid, and the number of its column, 0 for a whole one."""

_UNSUPPORTED: Final = frozenset(
    ("toast table", "index column", "sequence column", "toast table column", "view column", "materialized view column",
     "composite type", "composite type column", "parameter ACL")
)  # fmt: skip
"""Kinds that objects are described by, and not found by."""
_ACL_KINDS: Final = {"r": "tables", "S": "sequences", "f": "functions", "T": "types", "n": "schemas"}


def _texts(
    value: tuple[Any, ...], *, what: str = "name or argument lists may not contain nulls"
) -> list[str]:
    items = flatten(value, len(dimensions(value)))
    if None in items:
        raise SqlError("22023", what)
    return items


def _exactly(items: Names, count: int, which: str) -> None:
    if len(items) != count:
        raise SqlError("22023", f"{which} list length must be exactly {count}")


def _at_least(items: Names, count: int) -> None:
    if len(items) < count:
        raise SqlError("22023", f"name list length must be at least {count}")


def _dotted(names: Names) -> str:
    return ".".join(map(quote_ident, names))


def _type(session: EvalSession, text: str) -> int:
    found = find_type(text, session)
    if found is None:
        raise SqlError("42704", f'type "{text}" does not exist')
    return found


def _missing(what: str, names: Names) -> SqlError:
    return SqlError("42704", f'{what} "{".".join(names)}" does not exist')


# --- relations and what is on them -----------------------------------------------------------------


def _relation(session: EvalSession, names: Names) -> RelationDef:
    found = find_relation(session, _dotted(names))
    if found is None:
        raise SqlError("42P01", quoting("relation ", ".".join(names), " does not exist"))
    return found


def _of_kind(what: str, session: EvalSession, names: Names, _args: Names) -> Address:
    found = _relation(session, names)
    if found.kind not in CALLED[what]:
        raise SqlError("42809", f'"{found.name}" is not {called(what)}')
    return found.oid, 0


def _column_of(session: EvalSession, names: Names) -> tuple[RelationDef, int | None]:
    """Return a relation and the number of its column, None where it has none of the name."""
    if len(names) < 2:
        raise SqlError("42601", "column name must be qualified")
    relation = _relation(session, names[:-1])
    column = next((c for c in relation.live if c.name == names[-1]), None)
    return relation, None if column is None else column.attnum


def _column(session: EvalSession, names: Names, _args: Names) -> Address:
    relation, attnum = _column_of(session, names)
    if attnum is None:
        shown = ".".join(names[:-1])
        raise SqlError("42703", f'column "{names[-1]}" of relation "{shown}" does not exist')
    return relation.oid, relation.number(attnum)


def _default(session: EvalSession, names: Names, _args: Names) -> Address:
    relation, attnum = _column_of(session, names)
    found = next(
        (
            int(row[0])
            for row in session.system.catalog_rows("pg_attrdef")
            if attnum is not None and (row[1], row[2]) == (relation.oid, relation.number(attnum))
        ),
        None,
    )
    if found is None:
        shown = ".".join(names[:-1])
        raise SqlError(
            "42703", f'default value for column "{names[-1]}" of relation "{shown}" does not exist'
        )
    return found, 0


def _on_relation(what: str, session: EvalSession, names: Names, _args: Names) -> Address:
    """Find a constraint, rule, trigger or policy."""
    if len(names) < 2:
        raise SqlError("42601", "must specify relation and object name")
    relation, name = _relation(session, names[:-1]), names[-1]
    made: Sequence[Any] = {
        "table constraint": relation.constraints, "trigger": relation.triggers, "policy": relation.policies, "rule": (),
    }[what]  # fmt: skip
    oid = next((int(one.oid) for one in made if one.name == name), None)
    if what == "rule":
        oid = next(
            (
                int(r[0])
                for r in session.system.catalog_rows("pg_rewrite")
                if (r[1], r[2]) == (name, relation.oid)
            ),
            None,
        )
    elif what == "table constraint" and oid is None:  # a key's
        oid = next((i.constraint_oid for i in relation.indexes if i.constraint_oid and i.name == name), None)
    if oid is None:
        word = "relation" if what == "rule" else "table"
        called = "constraint" if what == "table constraint" else what
        raise SqlError("42704", f'{called} "{name}" for {word} "{relation.name}" does not exist')
    return oid, 0


# --- functions, types, operators -------------------------------------------------------------------


def _routine(what: str, session: EvalSession, names: Names, args: Names) -> Address:
    types = tuple(_type(session, text) for text in args)
    _check_schema(session, names)
    shown, listed = ".".join(names), ", ".join(map(format_type, types))
    oid, kind = _routine_of(session, names, types)
    if oid is None:
        listed = listed or ("*" if what == "aggregate" else "")
        raise SqlError("42883", f"{what} {shown}({listed}) does not exist")
    if what == "aggregate" and kind != "a":
        raise SqlError("42809", f"function {shown}({listed}) is not an aggregate")
    if (what == "procedure") != (kind == "p"):
        raise SqlError("42809", f"{shown}({listed}) is not a {what}")
    return oid, 0


def _routine_of(session: EvalSession, names: Names, types: tuple[int, ...]) -> tuple[int | None, str]:
    """Return the oid and the kind of what a call with these argument types would find."""
    for schema in object_schemas(session, names):
        own = facts().procs_by_name.get(names[-1], ()) if schema == "pg_catalog" else ()
        for proc in (*own, *_constructors(session, schema, names[-1])):
            if proc.arg_types == types:
                return proc.oid, proc.kind
        for function in session.catalog.functions_named(names[-1]):
            if function.schema == schema and function.inputs == types:
                return function.oid, function.kind
    return None, ""


def _constructors(session: EvalSession, schema: str, name: str) -> list[ProcFact]:
    """Return the functions that make values of a user's range or multirange of that name."""
    oid = find_type(_dotted((schema, name)), session)
    made = None if oid is None else session.catalog.type_by_oid(oid)
    if made is None or made.kind != "r":
        return []
    first = made.first_constructor
    found = (facts().procs.get(number) for number in range(first, first + RANGE_CONSTRUCTORS))
    return [proc for proc in found if proc is not None and proc.name == name]


def _check_schema(session: EvalSession, names: Names) -> None:
    schemas = object_schemas(session, names)
    if len(names) > 1 and session.catalog.schema(schemas[0]) is None:
        raise SqlError("3F000", f'schema "{names[-2]}" does not exist')


def _type_address(session: EvalSession, names: Names, _args: Names) -> Address:
    return _type(session, names[0]), 0


def _domain_constraint(session: EvalSession, names: Names, args: Names) -> Address:
    oid = _type(session, names[0])
    made = session.catalog.type_by_oid(oid)
    found = next((c.oid for c in made.checks if c.name == args[0]), None) if made is not None else None
    if found is None:
        raise SqlError(
            "42704", f'constraint "{args[0]}" for domain {quote_ident(format_type(oid))} does not exist'
        )
    return found, 0


def _cast(session: EvalSession, names: Names, args: Names) -> Address:
    source, target = _type(session, names[0]), _type(session, args[0])
    for row in rows("casts"):
        if (int(row["castsource"]), int(row["casttarget"])) == (source, target):
            return int(row["oid"]), 0
    raise SqlError(
        "42704", f"cast from type {format_type(source)} to type {format_type(target)} does not exist"
    )


def _operator(session: EvalSession, names: Names, args: Names) -> Address:
    left, right = (0 if text.lower() == "none" else _type(session, text) for text in args)
    if "pg_catalog" in object_schemas(session, names):
        for op in facts().operators_by_name.get(names[-1], ()):
            if (op.left, op.right) == (left, right):
                return op.oid, 0
    shown = [".".join(names), format_type(right)]
    raise SqlError(
        "42883", f"operator does not exist: {' '.join([format_type(left), *shown] if left else shown)}"
    )


def _method(name: str) -> int:
    found = next((int(row["oid"]) for row in rows("am") if row["amname"] == name), None)
    if found is None:
        raise SqlError("42704", f'access method "{name}" does not exist')
    return found


def _of_method(what: str, session: EvalSession, names: Names, _args: Names) -> Address:
    """Find an operator class or family: its method, then its name."""
    file, prefix = ("opclass", "opc") if what == "operator class" else ("opfamily", "opf")
    method, name = _method(names[0]), names[1:]
    _check_schema(session, name)
    if "pg_catalog" in object_schemas(session, name):
        for row in rows(file):
            if int(row[f"{prefix}method"]) == method and row[f"{prefix}name"] == name[-1]:
                return int(row["oid"]), 0
    class_oid = PG_OPCLASS if file == "opclass" else PG_OPFAMILY
    for schema in object_schemas(session, name):
        found = session.catalog.opclass_named(class_oid, method, schema, name[-1])
        if found is not None:
            return found.oid, 0
    shown = ".".join(name)
    raise SqlError("42704", f'{what} "{shown}" does not exist for access method "{names[0]}"')


def _in_family(what: str, session: EvalSession, names: Names, args: Names) -> Address:
    """Find an operator or a function of a family by its number and its types."""
    family, _ = _of_method("operator family", session, names[:-1], ())
    file, column = ("amop", "strategy") if what == "operator" else ("amproc", "num")
    digits = re.match(r"\s*(-?\d{1,9})", names[-1])
    number, types = int(digits[1]) if digits else 0, tuple(_type(session, text) for text in args)
    for row in rows(file):
        sides = tuple(int(row[f"{file}{side}type"]) for side in ("left", "right"))
        if int(row[f"{file}family"]) == family and int(row[f"{file}{column}"]) == number and sides == types:
            return int(row["oid"]), 0
    made = session.catalog.opclass_by_oid(family)
    for one in made.members if isinstance(made, OperatorFamilyDef) else ():
        if one.place == (what == "function", number, *types):
            return one.oid, 0
    shown = f"{number} ({', '.join(args)})"
    raise SqlError(
        "42704",
        f"{what} {shown} of operator family {names[-2]} for access method {names[0]} does not exist",
    )


# --- objects by name alone -------------------------------------------------------------------------


def _own(what: str, file: str, column: str, session: EvalSession, names: Names, _args: Names) -> Address:
    """Find an object in a schema of a kind of which there are PostgreSQL's own alone."""
    _check_schema(session, names)
    if "pg_catalog" in object_schemas(session, names):
        for row in rows(file):
            if row[column] == names[-1]:
                return int(row["oid"]), 0
    if what == "collation":
        raise SqlError("42704", f'collation "{".".join(names)}" for encoding "UTF8" does not exist')
    raise _missing(what, names)


def _conversion(session: EvalSession, names: Names, args: Names) -> Address:
    _check_schema(session, names)
    for schema in object_schemas(session, names):
        found = session.catalog.conversion_named(schema, names[-1])
        if found is not None:
            return found.oid, 0
    return _own("conversion", "conversions", "conname", session, names, args)


def _collation(session: EvalSession, names: Names, args: Names) -> Address:
    _check_schema(session, names)
    for schema in object_schemas(session, names):
        found = session.catalog.collation_named(schema, names[-1])
        if found is not None:
            return found.oid, 0
    return _own("collation", "collations", "collname", session, names, args)


def _search(named_by: int, what: str, session: EvalSession, names: Names, _args: Names) -> Address:
    _check_schema(session, names)
    found = find_named(named_by, _dotted(names), session.catalog, session.search_path, session.database)
    if found is None:
        raise _missing(what, names)
    return found.oid, 0


def _statistics(session: EvalSession, names: Names, _args: Names) -> Address:
    _check_schema(session, names)
    searched = names[-2:-1] or [s for s in session.search_path if not s.startswith("pg_temp")]
    for schema in filter(None, map(session.catalog.schema, searched)):
        found = session.catalog.statistics_named(schema.oid, names[-1])
        if found is not None:
            return found[1].oid, 0
    raise _missing("statistics object", names)


_FOREIGN: Final = {word: class_oid for class_oid, word in FOREIGN_WORDS.items()}


def _global(what: str, session: EvalSession, names: Names, _args: Names) -> Address:
    _exactly(names, 1, "name")
    name, catalog = names[0], session.catalog
    found: Any = None
    if what == "schema":
        found = catalog.schema(name)
    elif what == "role":
        found = catalog.role(name)
    elif what == "database":
        found = catalog.database_named(name)
    elif what == "extension":
        found = catalog.extension(name)
    elif what in _FOREIGN:
        found = catalog.foreign_named(_FOREIGN[what], name)
    else:
        file, column = {"language": ("language", "lanname"), "access method": ("am", "amname")}[what]
        oid = next((int(row["oid"]) for row in rows(file) if row[column] == name), None)
        if oid is not None:
            return oid, 0
    if found is None:
        state = {"schema": "3F000", "database": "3D000"}.get(what, "42704")
        raise SqlError(state, f'{what} "{name}" does not exist')
    return int(found.oid), 0


def _tablespace(_session: EvalSession, names: Names, _args: Names) -> Address:
    _exactly(names, 1, "name")
    found = {"pg_default": 1663, "pg_global": 1664}.get(names[0])
    if found is None:
        raise _missing("tablespace", names)
    return found, 0


def _absent(what: str, _session: EvalSession, names: Names, _args: Names) -> Address:
    _exactly(names, 1, "name")
    raise _missing(what, names)


def _large_object(session: EvalSession, names: Names, _args: Names) -> Address:
    oid = parse_oid(names[0])
    if all(row[0] != oid for row in session.system.catalog_rows("pg_largeobject_metadata")):
        raise SqlError("42704", f"large object {oid} does not exist")
    return oid, 0


def _user_mapping(session: EvalSession, names: Names, args: Names) -> Address:
    catalog = session.catalog
    role = None if names[0] == "public" else catalog.role(names[0])
    owner = PUBLIC_MAPPING if names[0] == "public" else -1 if role is None else role.oid
    server = catalog.foreign_named(PG_FOREIGN_SERVER, args[0])
    if owner != -1 and server is None:
        raise _missing("server", args)
    found = None if server is None else catalog.foreign_named(PG_USER_MAPPING, (owner, server.oid))
    if found is not None:
        return found.oid, 0
    raise SqlError("42704", f'user mapping for user "{names[0]}" on server "{args[0]}" does not exist')


def _default_acl(session: EvalSession, names: Names, args: Names) -> Address:
    kind = args[0][:1]
    if kind not in _ACL_KINDS:
        kinds = ", ".join(f'"{letter}"' for letter in _ACL_KINDS)
        raise SqlError(
            "22023", f'unrecognized default ACL object type "{kind}"', hint=f"Valid object types are {kinds}."
        )
    schema = names[1] if len(names) > 1 else None
    place = f' in schema "{schema}"' if schema is not None else ""
    role = session.catalog.role(names[0])
    space = None if schema is None else session.catalog.schema(schema)
    if role is not None and (schema is None or space is not None):
        wanted = (role.oid, EVERYBODY if space is None else space.oid, kind)
        for row in session.system.catalog_rows("pg_default_acl"):
            if (row[1], row[2], row[3]) == wanted:
                return int(row[0]), 0
    raise SqlError("42704", f'default ACL for user "{names[0]}"{place} on {_ACL_KINDS[kind]} does not exist')


def _published(session: EvalSession, names: Names, args: Names) -> Address:
    _relation(session, names)
    raise _missing("publication", args)


def _published_schema(session: EvalSession, names: Names, args: Names) -> Address:
    _global("schema", session, names, ())
    raise _missing("publication", args)


def _transform(session: EvalSession, names: Names, args: Names) -> Address:
    oid = _type(session, names[0])
    _global("language", session, args, ())
    raise SqlError("42704", f'transform for type {format_type(oid)} language "{args[0]}" does not exist')


_Find = Callable[[EvalSession, Names, Names], Address]
_FIND: Final[Mapping[str, tuple[int, _Find]]] = {
    **{what: (1259, partial(_of_kind, what)) for what in CALLED},
    "table column": (1259, _column),
    "foreign table column": (1259, _column),
    "default value": (2604, _default),
    "table constraint": (2606, partial(_on_relation, "table constraint")),
    "rule": (2618, partial(_on_relation, "rule")),
    "trigger": (2620, partial(_on_relation, "trigger")),
    "policy": (3256, partial(_on_relation, "policy")),
    **{what: (1255, partial(_routine, what)) for what in ("aggregate", "function", "procedure")},
    "type": (1247, _type_address),
    "domain constraint": (2606, _domain_constraint),
    "cast": (2605, _cast),
    "transform": (3576, _transform),
    "operator": (2617, _operator),
    "operator class": (2616, partial(_of_method, "operator class")),
    "operator family": (2753, partial(_of_method, "operator family")),
    "operator of access method": (2602, partial(_in_family, "operator")),
    "function of access method": (2603, partial(_in_family, "function")),
    "collation": (PG_COLLATION, _collation),
    "conversion": (PG_CONVERSION, _conversion),
    "text search parser": (3601, partial(_own, "text search parser", "ts_parsers", "prsname")),
    "text search template": (3764, partial(_own, "text search template", "ts_templates", "tmplname")),
    "text search dictionary": (3600, partial(_search, REGDICTIONARY, "text search dictionary")),
    "text search configuration": (3602, partial(_search, REGCONFIG, "text search configuration")),
    "statistics object": (3381, _statistics),
    "large object": (2613, _large_object),
    **{
        what: (oid, partial(_global, what))
        for what, oid in (
            ("schema", 2615), ("role", 1260), ("database", 1262), ("extension", 3079), ("language", 2612), ("access method", 2601),
            ("foreign-data wrapper", 2328), ("server", 1417),
        )
    },
    "tablespace": (1213, _tablespace),
    "user mapping": (1418, _user_mapping),
    "default acl": (826, _default_acl),
    "publication relation": (6106, _published),
    "publication namespace": (6237, _published_schema),
    **{
        what: (oid, partial(_absent, what))
        for what, oid in (
            ("event trigger", 3466), ("publication", 6104), ("subscription", 6100),
        )
    },
}  # fmt: skip
"""By the kind: the catalog of its objects, and what finds one."""
_BY_TYPE: Final = frozenset(("type", "domain constraint", "cast", "transform"))
_TYPED_ARGS: Final = frozenset(
    ("aggregate", "function", "procedure", "operator", "cast", "operator of access method", "function of access method")
)  # fmt: skip
_ONE_ARGUMENT: Final = frozenset(
    ("domain constraint", "cast", "publication relation", "default acl", "transform", "user mapping", "publication namespace")
)  # fmt: skip


def object_address(
    session: EvalSession, kind: str, names: tuple[Any, ...], args: tuple[Any, ...]
) -> RecordValue:
    """SQL's ``pg_get_object_address``: 22023 for lists that do not fit the kind, and what looking up raises."""
    if kind in _UNSUPPORTED:
        raise SqlError("22023", f'unsupported object type "{kind}"')
    if kind not in _FIND:
        raise SqlError("22023", quoting("unrecognized object type ", kind))
    catalog, find = _FIND[kind]
    if kind in _BY_TYPE:
        _exactly(flatten(names, len(dimensions(names))), 1, "name")
        listed = _texts(names)
    elif kind == "large object":
        _exactly(flatten(names, len(dimensions(names))), 1, "name")
        listed = _texts(names, what="large object OID may not be null")
    else:
        listed = _texts(names)
        _at_least(listed, 1)
    given = _texts(args)
    if kind in ("user mapping", "publication namespace"):
        _exactly(listed, 1, "name")
    if kind in _ONE_ARGUMENT:
        _exactly(given, 1, "argument")
    if kind in ("operator class", "operator family"):
        _at_least(listed, 2)
    if kind.endswith("of access method"):
        _at_least(listed, 3)
    if kind == "operator" or kind.endswith("of access method"):
        _exactly(given, 2, "argument")
    oid, column = find(session, listed, given)
    return record_of("pg_get_object_address(text,_text,_text)", catalog, oid, column)


def _register() -> None:
    REGISTRY.python("pg_get_object_address(text,_text,_text)", object_address, needs_session=True)


_register()
