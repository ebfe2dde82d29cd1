"""information_schema's views of what uses what: functions, views, CHECK constraints, generated columns,
columns of types.

    CREATE VIEW v AS SELECT a, f(b) FROM t        view_table_usage t, view_column_usage a and b, view_routine_usage f
    CREATE FUNCTION g() ... RETURN (SELECT ...)   routine_table_usage and its kin; a body that is a text uses nothing

What is meant is what is named, not what views read in their turn. As in PostgreSQL a row is there for those
who own what is used, and pg_catalog, which nobody can drop, is used by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from engine.catalog.relations.information.schema import relations_read
from engine.catalog.relations.pg_row_types import row_types
from engine.catalog.relations.sources import RowDict, by_name, of_each, relation
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import SUPERUSER_OID
from planner.bind.define.functions import CHANGES, Kept, body_statements
from planner.bind.define.table.generated import columns_used, generations
from planner.bind.query.select import bind_view
from planner.bind.stored import stored_context
from planner.bind.stored.named_columns import column_named
from planner.catalog import Catalog, FunctionDef, RelationDef, TypeDef
from planner.catalog.named_oids import named_oids, relations_in_text
from planner.catalog.relation_kinds import CHECKED, STANDARD_TABLES
from planner.catalog.rights import Rights
from planner.facts import facts
from planner.query import (
    Insert,
    KeptChange,
    KeptMerge,
    RelationRange,
    Select,
    SetOp,
    SubqueryRange,
    Values,
    Var,
)
from planner.query.tables import table_range
from planner.query.walk import children

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


def _rights(session: Reading) -> Rights:
    return Rights(session.rights_catalog, session.role)


def _specific(session: Reading, function: FunctionDef) -> RowDict:
    return {
        "specific_catalog": session.database, "specific_schema": function.schema,
        "specific_name": f"{function.name}_{function.oid}",
    }  # fmt: skip


def _routine(session: Reading, function: FunctionDef) -> RowDict:
    return {
        **_specific(session, function), "routine_catalog": session.database, "routine_schema": function.schema,
        "routine_name": function.name,
    }  # fmt: skip


def _table(session: Reading, item: RelationDef) -> RowDict:
    return {"table_catalog": session.database, "table_schema": item.schema, "table_name": item.name}


def _view(session: Reading, item: RelationDef) -> RowDict:
    return {"view_catalog": session.database, "view_schema": item.schema, "view_name": item.name}


def _counts(item: RelationDef) -> bool:
    return item.kind in STANDARD_TABLES and item.schema != "pg_catalog"


# --- which columns a query names --------------------------------------------------------------------


def columns_named(query: Kept, catalog: Catalog) -> dict[int, frozenset[int]]:
    """Return by oid of a table or view which of its columns a query or a change of rows names; whole rows
    name none, views are not looked into.
    """
    found: dict[int, set[int]] = {}
    stack: list[tuple[Any, tuple[tuple[Any, ...], ...]]] = [(query, ())]
    while stack:
        node, levels = stack.pop()
        if isinstance(node, Var):
            if node.range >= 0:
                oid, attnum = column_named(levels[node.level][node.range], node.attnum, catalog)
                if oid:
                    found.setdefault(oid, set()).add(attnum)
        elif isinstance(node, CHANGES):
            found.setdefault(node.table, set()).update(_assigned(node))
            stack += _parts(node, levels, catalog)
        elif isinstance(node, RelationRange):
            stack += [] if node.sample is None else [(node.sample, levels)]
        elif not (isinstance(node, SubqueryRange) and node.view):
            if isinstance(node, Select):
                levels = (node.ranges, *levels)
            elif isinstance(node, SetOp | Values):
                levels = ((), *levels)
            stack.extend((child, levels) for child in children(node))
    return {oid: frozenset(attnums) for oid, attnums in found.items()}


def _assigned(change: Insert | KeptChange | KeptMerge) -> set[int]:
    """Return the columns of its table that a change gives values, but for those of MERGE, and those that
    EXCLUDED has, a whole row of the table.
    """
    if isinstance(change, KeptChange):
        return {attnum for attnums in change.assigned for attnum in attnums}
    if isinstance(change, KeptMerge):
        return set()  # as in PostgreSQL
    update = None if change.kept is None else change.kept.change
    excluded = () if update is None else update.shown.ranges[1].columns
    return {*change.given, *(column.attnum for column in excluded)}


def _parts(
    change: Insert | KeptChange | KeptMerge, levels: tuple[tuple[Any, ...], ...], catalog: Catalog
) -> list[tuple[Any, tuple[tuple[Any, ...], ...]]]:
    """Return what of a change names columns, each with the ranges of the query levels around it."""
    if isinstance(change, KeptChange):
        return [(change.shown, levels)]
    if isinstance(change, KeptMerge):
        inside = (change.shown.ranges, *levels)
        return [(change.shown, levels), *((action, inside) for action in change.actions)]
    table = catalog.relation_by_oid(change.table)
    inside = ((None if table is None else table_range(table),), *levels)
    parts: list[Any] = [*change.returning]
    parts += [] if change.source is None else [change.source]
    found = [(part, inside) for part in parts]
    if change.kept is not None:
        found += [(key, inside) for key in change.kept.keys]
        found += [] if change.kept.key_where is None else [(change.kept.key_where, inside)]
        found += [] if change.kept.change is None else [(change.kept.change.shown, levels)]
    return found


def _columns_of_view(catalog: CatalogSnapshot, view: RelationDef) -> dict[int, frozenset[int]]:
    """Return what ``columns_named`` finds in a view, kept with the catalog."""
    key = ("columns named", view.oid)
    if key not in catalog.derived:
        context = stored_context(catalog, view.view_sql, view.view_path)
        catalog.derived[key] = columns_named(bind_view(context, view), catalog)
    found: Any = catalog.derived[key]
    return cast("dict[int, frozenset[int]]", found)


def _columns_of_body(catalog: CatalogSnapshot, function: FunctionDef) -> dict[int, frozenset[int]]:
    """Return what ``columns_named`` finds in a body by BEGIN ATOMIC or RETURN, kept with the catalog."""
    key = ("columns named", function.oid)
    if key not in catalog.derived:
        named: dict[int, frozenset[int]] = {}
        for kept in body_statements(function, catalog) if function.body_sql else ():
            for oid, attnums in columns_named(kept, catalog).items():
                named[oid] = named.get(oid, frozenset()) | attnums
        catalog.derived[key] = named
    found: Any = catalog.derived[key]
    return cast("dict[int, frozenset[int]]", found)


# --- functions --------------------------------------------------------------------------------------


def _relations_of(session: Reading, function: FunctionDef) -> Iterator[RelationDef]:
    """Yield the relations that a function names in its body or a default of a parameter, which the user owns."""
    rights = _rights(session)
    texts = " ".join((function.body_sql, *function.defaults))
    oids = {*function.depends_on, *relations_in_text(texts)}
    for oid in sorted(oids):
        item = session.catalog.relation_by_oid(oid)
        if item is not None and rights.owns(item.owner):
            yield item


@relation("information_schema.routine_table_usage", "session")
def routine_table_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the tables and views that functions name."""
    for function in session.catalog.functions():
        for item in _relations_of(session, function):
            if _counts(item):
                yield {**_routine(session, function), **_table(session, item)}


@relation("information_schema.routine_sequence_usage", "session")
def routine_sequence_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the sequences that functions name."""
    for function in session.catalog.functions():
        for item in _relations_of(session, function):
            if item.kind == "S":
                yield {
                    **_routine(session, function), "sequence_catalog": session.database,
                    "sequence_schema": item.schema, "sequence_name": item.name,
                }  # fmt: skip


@relation("information_schema.routine_column_usage", "session")
def routine_column_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the columns that functions name."""
    rights = _rights(session)
    for function in session.catalog.functions():
        for oid, attnums in sorted(_columns_of_body(session.catalog, function).items()):
            item = session.catalog.relation_by_oid(oid)
            if item is not None and _counts(item) and rights.owns(item.owner):
                for attnum in sorted(attnums):
                    yield {
                        **_routine(session, function), **_table(session, item), "column_name": item.column(attnum).name,
                    }  # fmt: skip


@relation("information_schema.routine_routine_usage", "session")
def routine_routine_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the users' functions that functions call."""
    rights = _rights(session)
    for function in session.catalog.functions():
        for oid in sorted(named_oids(" ".join((function.body_sql, *function.defaults)))):
            called = session.catalog.function_by_oid(oid)
            if called is not None and rights.owns(called.owner):
                yield {
                    **_specific(session, function), "routine_catalog": session.database,
                    "routine_schema": called.schema, "routine_name": f"{called.name}_{called.oid}",
                }  # fmt: skip


# --- views ------------------------------------------------------------------------------------------


@of_each("information_schema.view_table_usage", keys={"view_name": by_name}, needs=relations_read)
def view_table_usage(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield the tables and views that views name, to who owns these."""
    rights = _rights(session)
    for oid in item.depends_on if item.kind == "v" else ():
        read = session.catalog.relation_by_oid(oid)
        if read is not None and _counts(read) and rights.owns(read.owner):
            yield {**_view(session, item), **_table(session, read)}


@relation("information_schema.view_column_usage", "session")
def view_column_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the columns that views name."""
    rights = _rights(session)
    for view in session.catalog.user_relations():
        if view.kind != "v":
            continue
        for oid, attnums in sorted(_columns_of_view(session.catalog, view).items()):
            item = session.catalog.relation_by_oid(oid)
            if item is not None and _counts(item) and rights.owns(item.owner):
                for attnum in sorted(attnums):
                    yield {
                        **_view(session, view), **_table(session, item), "column_name": item.column(attnum).name,
                    }  # fmt: skip


@relation("information_schema.view_routine_usage", "session")
def view_routine_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the users' functions that views call."""
    rights = _rights(session)
    for view in session.catalog.user_relations():
        for oid in sorted(named_oids(view.view_sql)) if view.kind == "v" else ():
            called = session.catalog.function_by_oid(oid)
            if called is not None and rights.owns(called.owner):
                yield {**_table(session, view), **_specific(session, called)}


# --- constraints, columns ---------------------------------------------------------------------------


@relation("information_schema.check_constraint_routine_usage", "session")
def check_constraint_routine_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the users' functions that CHECK constraints of tables and domains call."""
    rights = _rights(session)
    checked: list[RelationDef | TypeDef] = [*session.catalog.user_relations()]
    checked += [made for made in session.catalog.user_types() if made.is_domain]
    for item in checked:
        constraints = item.constraints if isinstance(item, RelationDef) else item.checks
        for constraint in constraints:
            for oid in sorted(named_oids(constraint.check_sql)) if constraint.kind == "c" else ():
                called = session.catalog.function_by_oid(oid)
                if called is not None and rights.owns(called.owner):
                    yield {
                        "constraint_catalog": session.database, "constraint_schema": item.schema,
                        "constraint_name": constraint.name, **_specific(session, called),
                    }  # fmt: skip


@relation("information_schema.column_column_usage", "session")
def column_column_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the columns from which generated columns are computed."""
    rights = _rights(session)
    for item in session.catalog.user_relations():
        if item.kind not in CHECKED or not any(c.generated for c in item.live) or not rights.owns(item.owner):
            continue
        names = {
            column.attnum: column.name for column in item.live
        }  # an index's hidden columns are not among them
        for generated, expr in generations(item, session.catalog):
            for attnum in sorted(columns_used(expr)) if generated in names else ():
                if attnum > 0:
                    yield {
                        **_table(session, item), "column_name": names[attnum], "dependent_column": names[generated],
                    }  # fmt: skip


@relation("information_schema.column_udt_usage", "session")
def column_udt_usage(session: Reading) -> Iterator[RowDict]:
    """Yield the types of columns that the user owns; of a domain what it is over."""
    rights = _rights(session)
    for item in session.catalog.all_relations():
        for column in item.live if item.kind in STANDARD_TABLES else ():
            made = session.catalog.type_by_oid(column.domain) if column.domain else None
            is_domain = made is not None and made.oid == column.domain  # else it is an array of one
            schema, name, owner = named_type(
                session, made.base if made is not None and is_domain else column.declared.oid
            )
            if rights.owns(owner):
                yield {
                    "udt_catalog": session.database, "udt_schema": schema, "udt_name": name,
                    **_table(session, item), "column_name": column.name,
                }  # fmt: skip


def named_type(session: Reading, oid: int) -> tuple[str, str, int]:
    """Return schema, name and owner of a type, be it the row type of a relation."""
    made = session.catalog.type_by_oid(oid)
    if made is not None:
        return made.schema, made.names[oid], made.owner
    fact = facts().types.get(oid)
    if fact is not None:
        return "pg_catalog", fact.name, SUPERUSER_OID
    found = session.catalog.row_type_relation(oid)
    if found is None:
        of_catalog = next(r for r in session.catalog.all_relations() if r.virtual and oid in row_types(r))
        found = of_catalog, oid == row_types(of_catalog)[1]
    table, is_array = found
    return table.schema, f"_{table.name}" if is_array else table.name, table.owner
