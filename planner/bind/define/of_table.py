"""Objects that belong to a table and are named within it, policies and triggers: ``what`` is PostgreSQL's
word for their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.catalog import RelationDef
from planner.catalog.policy import PolicyDef
from planner.catalog.trigger import TriggerDef

_Part = TypeVar("_Part", PolicyDef, TriggerDef)


def named_part(what: str, parts: Iterable[_Part], table: RelationDef, name: str) -> _Part:
    """Return the one of ``table``'s ``parts`` that is called ``name``. Raises SqlError 42704."""
    found = next((part for part in parts if part.name == name), None)
    if found is None:
        raise SqlError("42704", f'{what} "{name}" for table "{table.name}" does not exist')
    return found


def bind_drop(
    context: BindContext,
    node: ast.DropPolicy | ast.DropTrigger,
    what: str,
    parts: Callable[[RelationDef], Iterable[PolicyDef | TriggerDef]],
) -> RelationDef | st.Skip:
    """DROP ... ON table: return the table that has it. Raises SqlError 42704, 42P01, 3F000; with IF EXISTS
    these are notices.
    """
    schema = node.table[-2] if len(node.table) > 1 else ""
    written, notice = ".".join(node.table), ""
    if not context.has_schema(schema):
        missing = SqlError("3F000", f'schema "{schema}" does not exist')
    else:
        relation = context.find_relation(schema, node.table[-1])
        if relation is None:
            missing = SqlError("42P01", f'relation "{written}" does not exist')
        elif any(part.name == node.name for part in parts(relation)):
            return relation
        else:
            missing = SqlError("42704", f'{what} "{node.name}" for table "{relation.name}" does not exist')
            notice = f'{what} "{node.name}" for relation "{written}" does not exist'
    if not node.if_exists:
        raise missing.copy()
    return st.Skip(notice=f"{notice or missing.message}, skipping")
