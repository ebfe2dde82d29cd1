"""pg_proc and pg_depend of users' functions; pg_extension."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.catalog.acl_texts import acl_of
from engine.catalog.referred import by_referred_function
from engine.catalog.relations.dependency_rows import (
    PG_ATTRDEF_OID,
    PG_LANGUAGE_OID,
    PG_REWRITE_OID,
    attrdef_oid,
    depends,
    rewrite_oid,
)
from engine.catalog.relations.information.usage import columns_named
from engine.catalog.relations.sources import RowDict, of_each, relation
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    PG_CONSTRAINT_OID,
    PG_EXTENSION_OID,
    PG_NAMESPACE_OID,
    PG_OPCLASS_OID,
    PG_PROC_OID,
    PG_TYPE_OID,
)
from pgwire.give_way import paced_iter
from planner.base.errors import SqlError
from planner.bind.define.functions import body_statements
from planner.bind.define.text_search import CLASSES
from planner.bind.expression.calls import proc_fact
from planner.catalog import ColumnDef, FunctionDef, RelationDef
from planner.catalog.collations import PG_COLLATION
from planner.catalog.extensions import COMMENTS, PLPGSQL, PLPGSQL_COMMENT
from planner.catalog.named_oids import array_elements, named_oids, relations_in_text
from planner.catalog.relation_kinds import BY_QUERY
from planner.facts import facts, rows
from planner.query import DecomposeRow, FieldSelect, Param
from planner.query.walk import walk
from planner.types.domains import base_oid, is_domain
from planner.types.facts import FIRST_UNPINNED, FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

INTERNAL_LANGUAGE, SQL_LANGUAGE = 12, 14
PLPGSQL_LANGUAGE = 13563


@relation("pg_proc", "catalog")
def users_functions(session: Reading) -> Iterator[RowDict]:
    """Yield pg_proc of users' functions."""
    for function in session.catalog.functions():
        plain = all(mode == "i" for mode in function.modes)
        yield {
            "oid": function.oid, "proname": function.name, "pronamespace": function.schema_oid,
            "proowner": function.owner, "prolang": _language(function), "procost": function.cost, "prorows": function.rows,
            "provariadic": proc_fact(function).variadic, "prokind": function.kind, "prosecdef": function.definer,
            "proleakproof": function.leakproof, "proisstrict": function.strict, "proretset": function.returns_set,
            "provolatile": function.volatility, "proparallel": function.parallel, "pronargs": len(function.inputs),
            "pronargdefaults": len(function.defaults), "prorettype": function.result,
            "proargtypes": function.inputs, "proallargtypes": None if plain else function.types,
            "proargmodes": None if plain else function.modes,
            "proargnames": function.names if any(function.names) else None,
            "proargdefaults": ", ".join(function.defaults) or None, "prosrc": function.source or function.internal,
            "prosqlbody": function.body_sql or ("" if function.path and not function.source else None),
            "proacl": acl_of(session, PG_PROC_OID, function.oid),
            "proconfig": tuple(f"{name}={value}" for name, value in function.settings) or None,
        }  # fmt: skip


def _language(function: FunctionDef) -> int:
    if function.internal or function.kind == "a":
        return INTERNAL_LANGUAGE
    return PLPGSQL_LANGUAGE if function.language == "plpgsql" else SQL_LANGUAGE


@relation("pg_aggregate", "catalog")
def users_aggregates(session: Reading) -> Iterator[RowDict]:
    """Yield pg_aggregate of users' aggregates."""
    for function in session.catalog.functions():
        made = function.aggregate
        if made is None:
            continue
        yield {
            "aggfnoid": function.oid, "aggkind": made.kind, "aggnumdirectargs": made.direct, "aggtransfn": made.transition,
            "aggfinalfn": made.final, "aggcombinefn": made.combine, "aggserialfn": made.serial, "aggdeserialfn": made.deserial,
            "aggmtransfn": made.moving_transition, "aggminvtransfn": made.moving_inverse, "aggmfinalfn": made.moving_final,
            "aggfinalextra": made.final_extra, "aggmfinalextra": made.moving_final_extra, "aggfinalmodify": made.final_modify,
            "aggmfinalmodify": made.moving_final_modify, "aggsortop": made.sort_operator, "aggtranstype": made.state,
            "aggtransspace": made.state_space, "aggmtranstype": made.moving_state, "aggmtransspace": made.moving_state_space,
            "agginitval": made.initial, "aggminitval": made.moving_initial,
        }  # fmt: skip


def _named(session: Reading, text: str | None) -> list[tuple[int, int]]:
    """Return the users' functions that a stored text calls, and the types, schemas and text search objects
    that it names: catalog and oid, oldest first.
    """
    found: list[tuple[int, int]] = []
    arrays, plain = array_elements(text)
    for oid in sorted(oid for oid in named_oids(text) if oid >= FIRST_UNPINNED):
        search = session.catalog.text_search_by_oid(oid)
        if search is not None:
            found.append((CLASSES[search.named_by], oid))
        elif session.catalog.function_by_oid(oid) is not None:
            found.append((PG_PROC_OID, oid))
        elif (named := session.catalog.type_by_oid(oid)) is not None:
            found += [(PG_TYPE_OID, oid)] * (oid in plain or oid not in arrays)
            found += [(PG_TYPE_OID, named.array_oid)] * (oid in arrays)
        elif (of_row := session.catalog.row_type_relation(oid)) is not None:
            found += [(PG_TYPE_OID, oid)] * (oid in plain)
            found += [(PG_TYPE_OID, of_row[0].row_array)] * (oid in arrays)
        elif session.catalog.collation_by_oid(oid) is not None:
            found.append((PG_COLLATION, oid))
        elif session.catalog.schema_by_oid(oid) is not None:
            found.append((PG_NAMESPACE_OID, oid))
    return found


def objects_named(session: Reading, text: str | None) -> list[tuple[int, int]]:
    """Return all that a stored text names: what ``_named`` does, and the relations that constants name."""
    there = sorted({oid for oid in relations_in_text(text) if oid >= FIRST_USER_OID})
    relations = [oid for oid in there if session.catalog.relation_by_oid(oid) is not None]
    return [*((PG_CLASS_OID, oid) for oid in relations), *_named(session, text)]


def _named_in_default(session: Reading, column: ColumnDef) -> list[tuple[int, int]]:
    """Return what a default names; it is converted to the domain that its column is declared as, which is not
    written.
    """
    found = _named(session, column.default_sql)
    under, declared = column.type.oid, column.declared.oid
    if column.default_sql is None or declared == under:
        return found
    return sorted({*found, (PG_TYPE_OID, declared)}, key=lambda each: each[1])


@of_each("pg_depend", keys={"refobjid": by_referred_function})
def relations_depend(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend of views, defaults, generated columns, constraints, indexes and keys of partitions: on
    functions and on what they name.
    """
    if item.kind == "i":
        return  # with its table
    if item.kind in BY_QUERY:
        for of, oid in _named(session, item.view_sql):
            yield depends(PG_REWRITE_OID, rewrite_oid(item.oid), of, oid)
    for column in item.live:
        for of, oid in _named_in_default(session, column):
            yield depends(PG_ATTRDEF_OID, attrdef_oid(item, column.attnum), of, oid)
    for constraint in item.constraints:
        class_, made = PG_CONSTRAINT_OID, constraint.oid
        if constraint.kind == "x":
            class_, made = PG_CLASS_OID, constraint.index_oid
        for of, oid in objects_named(session, constraint.check_sql):
            yield depends(class_, made, of, oid)
    for index in item.every_index:
        for text in (" ".join(index.expressions), index.where_sql):  # each by itself
            for of, oid in objects_named(session, text):
                yield depends(PG_CLASS_OID, index.oid, of, oid)
    if item.partition_key is not None:
        for of, oid in objects_named(session, " ".join(item.partition_key.expressions)):
            yield depends(PG_CLASS_OID, item.oid, of, oid)
        for oid in sorted(set(item.partition_key.own_classes) - {0}):
            yield depends(PG_CLASS_OID, item.oid, PG_OPCLASS_OID, oid)


@relation("pg_depend", "catalog")
def domains_depend_on_functions(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of domains and their constraints: on functions and on what they name."""
    for made in paced_iter(session.catalog.user_types()):  # of most there is nothing to yield
        found = objects_named(session, made.default_sql)
        converted = made.default_sql is not None and not made.default_inherited and is_domain(made.base)
        if converted and (PG_TYPE_OID, made.base) not in found:
            found.append((PG_TYPE_OID, made.base))  # to which it is converted, which is not written
        for of, oid in found:
            yield depends(PG_TYPE_OID, made.oid, of, oid)
        for check in made.checks:
            for of, oid in objects_named(session, check.check_sql):
                yield depends(PG_CONSTRAINT_OID, check.oid, of, oid)


@functools.cache
def _plpgsql_language() -> int:
    """Return the oid of the language; the others are pinned."""
    return next(int(row["oid"]) for row in rows("language") if row["lanname"] == PLPGSQL.name)


def _read_by_body(
    session: Reading, function: FunctionDef
) -> tuple[Mapping[int, frozenset[int]], Sequence[int], frozenset[int]]:
    """Return the columns that a body by BEGIN ATOMIC or RETURN names, those of composite types too, the
    constraints of the primary keys that its groups rely on, and the types of the inputs that it uses.
    """
    keys: set[tuple[int, int]] = set()
    columns: dict[int, frozenset[int]] = {}
    inputs: set[int] = set()
    of_users = any(oid >= FIRST_UNPINNED for oid in function.inputs)
    if function.body_sql and (function.depends_on or of_users):
        with suppress(SqlError):  # it reads what is not there any more, or in another form
            made = body_statements(function, session.catalog, keys)
            for query in made:
                for oid, read in columns_named(query, session.catalog).items():
                    columns[oid] = columns.get(oid, frozenset()) | read
                for node in walk(query) if of_users else ():
                    if isinstance(node, Param) and node.type.oid >= FIRST_UNPINNED:
                        inputs.add(node.type.oid)
                    elif isinstance(node, FieldSelect) and (field := _field(session, node)):
                        columns[field[0]] = columns.get(field[0], frozenset()) | {field[1]}
    # else those of views and functions that it names
    return columns, sorted(oid for depth, oid in keys if depth == 1), frozenset(inputs)


def _field(session: Reading, node: FieldSelect) -> tuple[int, int] | None:
    """Return the relation that a composite type is, and its column; None for fields of other rows."""
    row = node.arg.arg if isinstance(node.arg, DecomposeRow) else node.arg
    made = session.catalog.type_by_oid(base_oid(row.type.oid))
    if made is None or not made.relation_oid:
        return None
    return made.relation_oid, [one.attnum for one in made.attributes if not one.dropped][node.index]


@relation("pg_depend", "catalog")
def functions_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of functions: on their schema, on what their bodies and types need."""
    for function in session.catalog.functions():
        yield depends(PG_PROC_OID, function.oid, PG_NAMESPACE_OID, function.schema_oid)
        if function.language == PLPGSQL.name and function.aggregate is None:
            yield depends(PG_PROC_OID, function.oid, PG_LANGUAGE_OID, _plpgsql_language())
        if function.extension:
            member = depends(PG_PROC_OID, function.oid, PG_EXTENSION_OID, function.extension)
            yield {**member, "deptype": "e"}
        texts = " ".join((function.body_sql, *function.defaults))
        columns, keys, inputs = _read_by_body(session, function)
        find = session.catalog.relation_by_oid
        fields = {
            oid for oid in columns if (found := find(oid)) is None or found.kind == "c"
        }  # of composite types
        for oid in sorted({*function.depends_on, *relations_in_text(texts), *fields}):
            for attnum in sorted(columns.get(oid, ())) or (0,):
                yield depends(PG_PROC_OID, function.oid, PG_CLASS_OID, oid, ref_sub=attnum)
        for oid in keys:
            yield depends(PG_PROC_OID, function.oid, PG_CONSTRAINT_OID, oid)
        with_default = function.inputs[len(function.inputs) - len(function.defaults) :]
        converted = {oid for oid in with_default if is_domain(oid)}  # which is not written
        for text, types in ((function.body_sql, inputs), (" ".join(function.defaults), converted)):
            of_types = ((PG_TYPE_OID, oid) for oid in sorted(types))
            for of, oid in dict.fromkeys((*_named(session, text), *of_types)):
                yield depends(PG_PROC_OID, function.oid, of, oid)
        for oid in () if function.aggregate is None else sorted(set(function.aggregate.functions)):
            if oid >= FIRST_USER_OID:
                yield depends(PG_PROC_OID, function.oid, PG_PROC_OID, oid)
        for oid in sorted({*function.types, function.result}):
            if oid >= FIRST_UNPINNED:
                yield depends(PG_PROC_OID, function.oid, PG_TYPE_OID, oid)


@relation("pg_extension", "catalog")
def extensions(session: Reading) -> Iterator[RowDict]:
    """Yield pg_extension."""
    for extension in (PLPGSQL, *session.catalog.extensions.values()):
        yield {
            "oid": extension.oid, "extname": extension.name, "extowner": extension.owner,
            "extnamespace": extension.schema_oid, "extrelocatable": extension is not PLPGSQL, "extversion": extension.version,
        }  # fmt: skip


@relation("pg_description", "catalog")
def plpgsql_description(session: Reading) -> Iterator[RowDict]:
    """Yield pg_description of the extension that is there from the beginning, until there is another comment on it."""
    if all(
        (c.class_oid, c.object_oid) != (PG_EXTENSION_OID, PLPGSQL.oid) for c in session.catalog.comments()
    ):
        yield {
            "objoid": PLPGSQL.oid, "classoid": PG_EXTENSION_OID, "objsubid": 0, "description": PLPGSQL_COMMENT,
        }  # fmt: skip


@relation("pg_depend", "catalog")
def extensions_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of extensions: on their schemas; and of plpgsql's members, its language and what
    PostgreSQL runs that by.
    """
    for row in rows("language"):
        if row["lanname"] == PLPGSQL.name:
            yield depends(PG_LANGUAGE_OID, int(row["oid"]), PG_EXTENSION_OID, PLPGSQL.oid, "e")
            for handler in ("lanplcallfoid", "laninline", "lanvalidator"):
                yield depends(PG_PROC_OID, int(row[handler]), PG_EXTENSION_OID, PLPGSQL.oid, "e")
    for extension in session.catalog.extensions.values():
        yield depends(PG_EXTENSION_OID, extension.oid, PG_NAMESPACE_OID, extension.schema_oid)


@relation("pg_available_extensions", "catalog")
def available_extensions(session: Reading) -> Iterator[RowDict]:
    """Yield pg_available_extensions."""
    yield {
        "name": PLPGSQL.name, "default_version": PLPGSQL.version, "installed_version": PLPGSQL.version,
        "comment": PLPGSQL_COMMENT,
    }  # fmt: skip
    for fact in facts().extensions.values():
        made = session.catalog.extension(fact.name)
        yield {
            "name": fact.name, "default_version": fact.version, "installed_version": made and made.version,
            "comment": COMMENTS[fact.name],
        }  # fmt: skip


@relation("pg_available_extension_versions", "catalog")
def available_versions(session: Reading) -> Iterator[RowDict]:
    """Yield pg_available_extension_versions: one of each."""
    yield {
        "name": PLPGSQL.name, "version": PLPGSQL.version, "installed": True, "superuser": True, "trusted": True,
        "relocatable": False, "schema": "pg_catalog", "requires": None, "comment": PLPGSQL_COMMENT,
    }  # fmt: skip
    for fact in facts().extensions.values():
        made = session.catalog.extension(fact.name)
        yield {
            "name": fact.name, "version": fact.version, "installed": made is not None and made.version == fact.version,
            "superuser": True, "trusted": fact.trusted, "relocatable": fact.relocatable, "schema": None, "requires": None,
            "comment": COMMENTS[fact.name],
        }  # fmt: skip
