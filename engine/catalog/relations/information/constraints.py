"""information_schema's views of constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.relations.sources import RowDict, by_name, of_each, relation
from engine.catalog.state import CatalogSnapshot
from planner.catalog import ColumnDef, ConstraintDef, RelationDef
from planner.catalog.relation_kinds import TABLES
from planner.catalog.rights import Rights
from planner.information.definitions import constraint_text

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


def _yes(flag: bool) -> str:
    return "YES" if flag else "NO"


def _referred_to(catalog: CatalogSnapshot, item: RelationDef) -> list[int]:
    """Return the tables that foreign keys refer to."""
    return [constraint.foreign.table for constraint in item.constraints if constraint.foreign is not None]


_KIND = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK", "f": "FOREIGN KEY"}
_ACTION = {
    "a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT",
}  # fmt: skip


@of_each("information_schema.table_constraints", keys={"table_name": by_name})
def table_constraints(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield constraints; NOT NULL columns appear as CHECK constraints, as the standard has it."""
    if item.kind not in TABLES:
        return
    common = {
        "constraint_catalog": session.database, "constraint_schema": item.schema,
        "table_catalog": session.database, "table_schema": item.schema, "table_name": item.name,
        "is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES",
    }  # fmt: skip
    for constraint in item.constraints:
        if constraint.kind in "tx":
            continue  # to the standard no constraints
        extra = {"nulls_distinct": "YES"} if constraint.kind == "u" else {}
        yield {
            **common, "constraint_name": constraint.name, "constraint_type": _KIND[constraint.kind],
            "is_deferrable": _yes(constraint.deferrable), "initially_deferred": _yes(constraint.deferred),
            **extra,
        }  # fmt: skip
    for column in item.live:
        if column.not_null:
            yield {
                **common, "constraint_name": _not_null_name(item, column), "constraint_type": "CHECK",
            }  # fmt: skip


def _not_null_name(item: RelationDef, column: ColumnDef) -> str:
    return f"{item.schema_oid}_{item.oid}_{column.attnum}_not_null"


@relation("information_schema.check_constraints", "session")
def check_constraints(session: Reading) -> Iterator[RowDict]:
    """Yield CHECK constraints of the tables that the user owns, as the reader's search path has them printed."""
    rights = Rights(session.rights_catalog, session.role)
    for item in session.catalog.user_relations():
        for constraint in item.constraints:
            if constraint.kind == "c" and rights.owns(item.owner):
                text = constraint_text(session, item, constraint, pretty=False)
                yield {
                    "constraint_catalog": session.database, "constraint_schema": item.schema,
                    "constraint_name": constraint.name, "check_clause": text.removeprefix("CHECK "),
                }  # fmt: skip


@of_each("information_schema.check_constraints")
def not_null_constraints(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield NOT NULL constraints."""
    if item.kind in TABLES:
        for column in item.live:
            if column.not_null:
                yield {
                    "constraint_catalog": session.database, "constraint_schema": item.schema,
                    "constraint_name": _not_null_name(item, column),
                    "check_clause": f"{column.name} IS NOT NULL",
                }  # fmt: skip


@of_each("information_schema.key_column_usage", keys={"table_name": by_name}, needs=_referred_to)
def key_column_usage(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield the columns of primary keys, unique constraints and foreign keys."""
    names = {c.attnum: c.name for c in item.columns}
    for constraint in item.constraints:
        if constraint.kind in "puf":
            places = _places_in_key(session, constraint)
            for position, attnum in enumerate(constraint.attnums, 1):
                yield {
                    "constraint_catalog": session.database, "constraint_schema": item.schema,
                    "constraint_name": constraint.name, "table_catalog": session.database,
                    "table_schema": item.schema, "table_name": item.name,
                    "column_name": names[attnum], "ordinal_position": position,
                    "position_in_unique_constraint": places[position - 1] if places else None,
                }  # fmt: skip


def _referenced_key(
    session: Reading, constraint: ConstraintDef
) -> tuple[RelationDef, ConstraintDef | None, tuple[int, ...]]:
    """Return what a foreign key refers to: the table, the constraint of its unique index if any, its columns."""
    if constraint.foreign is None:
        raise AssertionError(f"constraint {constraint.name} is no foreign key")
    table = session.catalog.relation_by_oid(constraint.foreign.table)
    if table is None:
        raise RuntimeError(f"foreign key {constraint.name} refers to a table that is gone")
    key = next((c for c in table.constraints if c.kind in "pu" and c.index_oid == constraint.index_oid), None)
    index = next(i for i in table.indexes if i.oid == constraint.index_oid)
    return table, key, index.attnums


def _places_in_key(session: Reading, constraint: ConstraintDef) -> list[int] | None:
    """Return for each column of a foreign key which column of the unique constraint it refers to, from 1."""
    if constraint.foreign is None:
        return None
    _table, _key, attnums = _referenced_key(session, constraint)
    return [attnums.index(a) + 1 for a in constraint.foreign.attnums]


def _used_columns(
    session: Reading, item: RelationDef, constraint: ConstraintDef
) -> tuple[RelationDef, tuple[int, ...]]:
    if constraint.foreign is None:
        return item, constraint.attnums
    return _referenced_key(session, constraint)[0], constraint.foreign.attnums


@of_each("information_schema.referential_constraints", needs=_referred_to)
def referential_constraints(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield foreign keys; the unique constraint is NULL where they refer to a mere unique index."""
    for constraint in item.foreign_keys:
        if constraint.foreign is None:
            raise AssertionError(f"constraint {constraint.name} is no foreign key")
        table, key, _attnums = _referenced_key(session, constraint)
        yield {
            "constraint_catalog": session.database, "constraint_schema": item.schema,
            "constraint_name": constraint.name,
            "unique_constraint_catalog": session.database if key else None,
            "unique_constraint_schema": table.schema if key else None,
            "unique_constraint_name": key.name if key else None,
            "match_option": "FULL" if constraint.foreign.match == "f" else "NONE",
            "update_rule": _ACTION[constraint.foreign.on_update],
            "delete_rule": _ACTION[constraint.foreign.on_delete],
        }  # fmt: skip


@of_each("information_schema.constraint_column_usage", needs=_referred_to)
def constraint_column_usage(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield the columns that constraints use; of a foreign key, those it refers to."""
    for constraint in item.constraints:
        if constraint.kind in "tx":
            continue
        used, attnums = _used_columns(session, item, constraint)
        for attnum in attnums:
            yield {
                "table_catalog": session.database, "table_schema": used.schema,
                "table_name": used.name, "column_name": used.column(attnum).name,
                "constraint_catalog": session.database, "constraint_schema": item.schema,
                "constraint_name": constraint.name,
            }  # fmt: skip


@of_each("information_schema.constraint_table_usage", needs=_referred_to)
def constraint_table_usage(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield the tables of primary keys and unique constraints, and those that foreign keys refer to."""
    for constraint in item.constraints:
        if constraint.kind in "puf":
            used, _attnums = _used_columns(session, item, constraint)
            yield {
                "table_catalog": session.database, "table_schema": used.schema, "table_name": used.name,
                "constraint_catalog": session.database, "constraint_schema": item.schema,
                "constraint_name": constraint.name,
            }  # fmt: skip
