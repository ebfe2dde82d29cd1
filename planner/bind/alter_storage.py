"""ALTER ... SET and RESET of options, and actions that only tune PostgreSQL's storage.

    t (fillfactor=70)   SET (fillfactor=80, parallel_workers=2), RESET (fillfactor)   ->   t (parallel_workers=2)

Options are kept as they were written (pg_class.reloptions), those of TOAST tables, which nobody sees here, beside them as ``toast.x``.
Other actions are checked and have no effect.
"""

from __future__ import annotations

from dataclasses import replace

from planner import ast
from planner import statements as st
from planner.bind.context import BindContext
from planner.bind.ddl import check_checkable, view_options
from planner.bind.options import check_storage_options, full_name
from planner.bind.query import bind_view
from planner.bind.table_parts import check_access_method, check_clusterable, check_tablespace
from planner.catalog import ColumnDef, RelationDef
from planner.errors import SqlError, not_supported
from planner.facts import facts
from planner.scope import SYSTEM_COLUMNS
from planner.typefacts import format_type

OPTION_ACTIONS = frozenset(("set rel options", "reset rel options"))
HARMLESS_ACTIONS = frozenset(
    ("set statistics", "set storage", "set options", "reset options", "cluster on", "drop cluster", "set compression",
     "set table space", "replica identity", "drop oids", "set access method")
)  # fmt: skip
_COLUMN_TUNING = frozenset(
    ("set statistics", "set storage", "set options", "reset options", "set compression")
)


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
    return next(index.method for index in table.indexes if index.oid == relation.oid)


def check_harmless(relation: RelationDef, action: ast.AlterAction) -> None:
    """Check an action that only tunes storage; it has no effect. Raises SqlError 42703, 42704, 22023, 0A000."""
    if action.kind == "set table space":
        check_tablespace(action.name)
    elif action.kind == "cluster on":
        if all(i.name != action.name for i in relation.indexes):
            raise SqlError("42704", f'index "{action.name}" for table "{relation.name}" does not exist')
        check_clusterable(relation, action.name)
    elif action.kind == "set access method":
        check_access_method(action.name)
    elif relation.kind == "i" and action.kind == "set statistics":
        _index_statistics(relation, action)
    elif action.name and action.kind in _COLUMN_TUNING:
        _column_tuning(column_named(relation, action.name), action)


def _index_statistics(index: RelationDef, action: ast.AlterAction) -> None:
    """Check ALTER INDEX ... ALTER COLUMN n SET STATISTICS. Raises SqlError 42703; 0A000 for a key that is a column."""
    if not 1 <= action.number <= len(index.columns):
        raise SqlError("42703", f'column number {action.number} of relation "{index.name}" does not exist')
    column = index.columns[action.number - 1]
    if not column.generated:
        raise SqlError(
            "0A000",
            f'cannot alter statistics on non-expression column "{column.name}" of index "{index.name}"',
            hint="Alter statistics on table column instead.",
        )


_STORAGES = ("plain", "external", "extended", "main")
_COMPRESSIONS = ("", "pglz", "lz4", "default")
_COLUMN_OPTIONS = ("n_distinct", "n_distinct_inherited")


def _column_tuning(column: ColumnDef, action: ast.AlterAction) -> None:
    """Check SET STORAGE, SET COMPRESSION and column options. Raises SqlError 22023, 0A000."""
    type_ = facts().types.get(column.type.oid)
    varying = type_ is None or type_.length == -1
    if action.kind == "set storage":
        if action.word.lower() not in _STORAGES:
            raise SqlError("22023", f'invalid storage type "{action.word}"')
        if not varying and action.word.lower() != "plain":
            raise SqlError(
                "0A000",
                f"column data type {format_type(column.type.oid)} can only have storage PLAIN",
            )
    elif action.kind == "set compression":
        if action.word not in _COMPRESSIONS:
            raise SqlError("22023", f'invalid compression method "{action.word}"')
        if not varying and action.word not in ("", "default"):
            raise SqlError(
                "0A000",
                f"column data type {format_type(column.type.oid)} does not support compression",
            )
    elif action.kind in ("set options", "reset options"):
        for option in action.options:
            if option.name not in _COLUMN_OPTIONS:
                raise SqlError("22023", f'unrecognized parameter "{option.name}"')
