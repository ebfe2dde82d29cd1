"""Typed tables: CREATE TABLE ... OF a composite type, and ALTER TABLE ... OF and NOT OF.

    CREATE TYPE t AS (a int, b text)
    CREATE TABLE x OF t (PRIMARY KEY (a), b DEFAULT '')        columns  a int not null, b text default ''::text

The type says which columns there are, the table what is asked of them. So columns are added, dropped, retyped
and renamed with the type's attributes (ALTER TYPE ... CASCADE), never by ALTER TABLE.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.catalog import ColumnDef, RelationDef, TypeDef
from planner.catalog.relation_kinds import TABLES
from planner.types.facts import format_type

_REFUSED = {
    "add column": "cannot add column to typed table",
    "drop column": "cannot drop column from typed table",
    "alter column type": "cannot alter column type of typed table",
}


def attributes_of(made: TypeDef) -> list[ColumnDef]:
    """Return the attributes that a composite type has now."""
    return [column for column in made.attributes if not column.dropped]


def type_of_table(context: BindContext, name: ast.TypeName) -> TypeDef:
    """Return the composite type of OF. Raises SqlError 42704; 42809 for any other type, a table's rows included."""
    try:
        oid = context.type_of(name).oid
    except SqlError as error:
        error.span = None  # PostgreSQL looks it up without the statement's text
        raise
    made = context.catalog.type_by_oid(oid)
    if made is None or made.oid != oid or made.kind != "c":
        raise SqlError("42809", f"type {format_type(oid)} is not a composite type")
    return made


def typed_columns(made: TypeDef) -> list[st.ColumnSpec]:
    """Return the columns of a new table of a composite type."""
    return [
        st.ColumnSpec(name=column.name, type=column.declared, not_null=False, collation=column.collation)
        for column in attributes_of(made)
    ]


def refuse_for_typed(relation: RelationDef, kind: str) -> None:
    """Raise SqlError 42809 for an action of ALTER TABLE that would take a typed table away from its type."""
    if relation.of_type and kind in _REFUSED:
        raise SqlError("42809", _REFUSED[kind])


def refuse_of_typed(made: TypeDef, tables: Sequence[RelationDef], *, cascade: bool) -> None:
    """Raise SqlError 2BP01 for a change of a type's attributes that leaves typed tables behind."""
    if tables and not cascade:
        raise SqlError(
            "2BP01",
            f'cannot alter type "{made.name}" because it is the type of a typed table',
            hint="Use ALTER ... CASCADE to alter the typed tables too.",
        )


def bind_of(context: BindContext, relation: RelationDef, name: ast.TypeName | None) -> st.SetOfType:
    """OF: the table has just the attributes of the type, in their order; NOT OF. Raises SqlError 42704,
    42804, 42809.
    """
    if name is None:
        if not relation.of_type:
            raise SqlError("42809", f'"{relation.name}" is not a typed table')
        return st.SetOfType(type=0)
    if relation.kind not in TABLES:
        raise not_supported(f'OF for "{relation.name}"')
    made = type_of_table(context, name)
    if relation.partition_of:
        raise SqlError("42809", "typed tables cannot inherit")
    columns = list(relation.live)
    for wanted in attributes_of(made):
        if not columns:
            raise SqlError("42804", f'table is missing column "{wanted.name}"')
        column = columns.pop(0)
        if column.name != wanted.name:
            raise SqlError("42804", f'table has column "{column.name}" where type requires "{wanted.name}"')
        if (column.declared, column.collation) != (wanted.declared, wanted.collation):
            raise SqlError("42804", f'table "{relation.name}" has different type for column "{column.name}"')
    if columns:
        raise SqlError("42804", f'table has extra column "{columns[0].name}"')
    return st.SetOfType(type=made.oid)
