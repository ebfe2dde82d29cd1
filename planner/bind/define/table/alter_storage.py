"""ALTER ... SET and RESET of options, and actions that say where PostgreSQL would keep rows.

    t (fillfactor=70)   SET (fillfactor=80, parallel_workers=2), RESET (fillfactor)   ->   t (parallel_workers=2)

Options are kept as they were written (pg_class.reloptions), those of TOAST tables, which nobody sees here,
beside them as ``toast.x``. Other actions are checked and have no effect.
"""

from __future__ import annotations

from dataclasses import replace

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.relations import check_checkable, view_options
from planner.bind.define.table.options import check_storage_options, full_name
from planner.bind.define.table.table_parts import check_access_method, check_tablespace
from planner.bind.query.select import bind_view
from planner.bind.scope import SYSTEM_COLUMNS
from planner.catalog import ColumnDef, RelationDef

OPTION_ACTIONS = frozenset(("set rel options", "reset rel options"))
HARMLESS_ACTIONS = frozenset(("set table space", "drop oids", "set access method"))


def column_named(relation: RelationDef, name: str) -> ColumnDef:
    """Return the column that an action is about. Raises SqlError 42703; 0A000 for a system column."""
    for column in relation.live:
        if column.name == name:
            return column
    if name in SYSTEM_COLUMNS:
        raise SqlError("0A000", f'cannot alter system column "{name}"')
    raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')


def bind_options(
    context: BindContext, relation: RelationDef, action: ast.AlterAction
) -> tuple[st.SetOptions, RelationDef]:
    """Bind SET (...) and RESET (...) of a table, index or view.

    Raises SqlError 22023, 42601; 0A000 for the timeline of a table, and a check_option that a view cannot have.
    """
    if relation.stored and any(o.name == "timeline" and not o.namespace for o in action.options):
        raise not_supported("ALTER TABLE that changes the timeline of a table", span=action.span)
    options = dict(relation.options)
    for option in action.options:
        options.pop(full_name(option), None)
    if action.kind == "reset rel options":
        if any(option.value is not None for option in action.options):
            raise SqlError("42601", "RESET must not include values for parameters")
    elif relation.kind == "v":
        options |= view_options(action.options)
    else:
        options |= check_storage_options(action.options, _kind(context, relation))
    if "check_option" in options:
        check_checkable(bind_view(context, relation))
    return st.SetOptions(options=options), replace(relation, options=options)


def _kind(context: BindContext, relation: RelationDef) -> str:
    table = context.catalog.relation_by_oid(relation.table_oid) if relation.kind == "i" else None
    if table is None:
        return "partitioned" if relation.kind == "p" else "table"
    return next(index.method for index in table.every_index if index.oid == relation.oid)


def check_harmless(action: ast.AlterAction, relation: RelationDef) -> None:
    """Check an action that says where or how rows are kept; it has no effect. Raises SqlError 42704, 55000,
    42809 for a partitioned table.
    """
    if action.kind == "set table space":
        check_tablespace(action.name)
    elif action.kind == "set access method":
        if relation.kind == "p":
            raise SqlError("42809", "cannot change access method of a partitioned table")
        check_access_method(action.name)
