"""CREATE, ALTER and DROP SOURCE: the table a source writes is bound as CREATE TABLE's."""

from __future__ import annotations

from dataclasses import replace

from planner import ast
from planner import statements as st
from planner.base.errors import not_supported
from planner.bind.context import BindContext
from planner.bind.define.table.options import TIMELINE
from planner.bind.define.table.table import bind_create_table
from planner.types.domains import names_domain


def bind_create_source(context: BindContext, node: ast.CreateSource) -> st.CreateSource:
    """CREATE SOURCE. Raises as CREATE TABLE does, and SqlError 0A000 for what its table cannot have.

    That is what a row could fail or need besides its columns' types, NOT NULL and the primary key: nobody is there to
    be told.
    """
    for element in node.table.elements:
        if isinstance(element, ast.TableLike):
            raise not_supported("LIKE in CREATE SOURCE", span=element.span)
    table = bind_create_table(context, node.table)
    if table.persistence != "p":
        raise not_supported("CREATE SOURCE into a temporary or unlogged table", span=node.table.relation.span)
    for column in table.columns:
        if column.identity or column.sequence is not None:
            raise not_supported("a serial or identity column in CREATE SOURCE", span=node.span)
        if column.generated:
            raise not_supported("a generated column in CREATE SOURCE", span=node.span)
        if names_domain(column.type.oid):
            raise not_supported("a column of a domain in CREATE SOURCE", span=node.span)
        if column.default_sql is not None:
            raise not_supported("DEFAULT in CREATE SOURCE", span=node.span)
    if table.checks:
        raise not_supported("CHECK in CREATE SOURCE", span=node.span)
    if table.foreign_keys:
        raise not_supported("REFERENCES in CREATE SOURCE", span=node.span)
    for key in table.keys:
        if not key.primary:
            raise not_supported("UNIQUE in CREATE SOURCE", span=node.span)
        if key.deferrable:
            raise not_supported("DEFERRABLE in CREATE SOURCE", span=node.span)
    if node.timeline:
        table = replace(table, options={**table.options, TIMELINE: node.timeline})
    return st.CreateSource(
        name=node.name,
        kind=node.kind,
        options=node.options,
        table=table,
        has_columns=node.has_columns,
        timeline=node.timeline,
        if_not_exists=node.if_not_exists,
    )


def bind_alter_source(context: BindContext, node: ast.AlterSource) -> st.AlterSource:
    """ALTER SOURCE ... PAUSE or RESUME."""
    return st.AlterSource(name=node.name, pause=node.pause, if_exists=node.if_exists)


def bind_drop_source(context: BindContext, node: ast.DropSource) -> st.DropSource:
    """DROP SOURCE."""
    return st.DropSource(names=node.names, if_exists=node.if_exists, cascade=node.cascade)
