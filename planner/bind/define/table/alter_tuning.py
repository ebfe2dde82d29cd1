"""ALTER of what would tune PostgreSQL's storage and its outgoing changes: kept and shown, without effect here.

    ALTER COLUMN c SET STATISTICS 50, SET STORAGE external, SET COMPRESSION pglz, SET (n_distinct = 5)    pg_attribute
    ALTER INDEX i ALTER COLUMN 1 SET STATISTICS 50                                                        pg_attribute, of the index
    CLUSTER ON i, SET WITHOUT CLUSTER                                                                     pg_index.indisclustered
    REPLICA IDENTITY DEFAULT | NOTHING | FULL | USING INDEX i                                             pg_class.relreplident

A dump has all of it, and whoever looks at a table expects it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal, cast

from pgwire.voice import notice
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.table.alter_storage import column_named
from planner.bind.define.table.options import check_number, option_text
from planner.bind.define.table.table_parts import check_clusterable, check_compression
from planner.catalog import ColumnDef, IndexDef, RelationDef
from planner.facts import facts
from planner.types.facts import format_type

TUNING_ACTIONS: Final = frozenset(
    ("set statistics", "set storage", "set options", "reset options", "set compression", "cluster on", "drop cluster",
     "replica identity")
)  # fmt: skip
_STORAGES: Final = {"plain": "p", "external": "e", "extended": "x", "main": "m"}
_DISTINCT: Final = (-1.0, 1.7976931348623157e308)
_COLUMN_OPTIONS: Final = ("n_distinct", "n_distinct_inherited")
MAX_STATISTICS: Final = 10_000

Tuning = st.TuneColumn | st.TuneIndexKey | st.MarkClustered | st.SetReplicaIdentity


def bind_tuning(
    context: BindContext, relation: RelationDef, action: ast.AlterAction
) -> tuple[Tuning, RelationDef]:
    """Bind one; returns it and the table as it is afterwards. Raises SqlError 42703, 42704, 22023, 42809, 0A000."""
    if action.kind == "replica identity":
        return _replica_identity(relation, action)
    if action.kind in ("cluster on", "drop cluster"):
        return _clustered(relation, action)
    if relation.kind == "i":
        return _index_statistics(context, relation, action), relation
    if action.kind == "set statistics" and not action.name:
        raise SqlError("0A000", "cannot refer to non-index column by number")
    column = column_named(relation, action.name)
    changes: dict[str, Any]
    if action.kind == "set statistics":
        changes = {"statistics": _target(action.value)}
    elif action.kind == "set storage":
        changes = {"storage": _storage(column, action.word)}
    elif action.kind == "set compression":
        changes = {"compression": check_compression(action.word, column.type.oid)}
    else:
        changes = {"options": _options(column, action)}
    changed = replace(column, **changes)
    columns = tuple(changed if c.attnum == column.attnum else c for c in relation.columns)
    below = action.kind in ("set statistics", "set storage")
    return st.TuneColumn(column=column.name, changes=changes, below=below), replace(relation, columns=columns)


def _target(value: int) -> int:
    if value < -1:
        raise SqlError("22023", f"statistics target {value} is too low")
    if value > MAX_STATISTICS:
        notice(f"lowering statistics target to {MAX_STATISTICS}", severity="WARNING", sqlstate="22023")
        return MAX_STATISTICS
    return value


def _storage(column: ColumnDef, word: str) -> str:
    storage = _STORAGES.get(word.lower())
    if storage is None:
        raise SqlError("22023", f'invalid storage type "{word}"')
    type_ = facts().types.get(column.type.oid)
    if type_ is not None and type_.length != -1 and storage != "p":
        raise SqlError(
            "0A000", f"column data type {format_type(column.type.oid)} can only have storage PLAIN"
        )
    return storage


def _options(column: ColumnDef, action: ast.AlterAction) -> dict[str, str]:
    options = dict(column.options)
    for option in action.options:
        options.pop(option.name, None)
        if action.kind == "reset options":
            if option.value is not None:
                raise SqlError("42601", "RESET must not include values for parameters")
            continue
        if option.name not in _COLUMN_OPTIONS:
            raise SqlError("22023", f'unrecognized parameter "{option.name}"')
        text = option_text(option) or "true"
        check_number(option.name, text, _DISTINCT, real=True)
        options[option.name] = text
    return options


def _index_statistics(context: BindContext, index: RelationDef, action: ast.AlterAction) -> st.TuneIndexKey:
    """Bind ALTER INDEX ... ALTER COLUMN n SET STATISTICS, which a key has that is no column."""
    target = _target(action.value)
    if not 1 <= action.number <= len(index.columns):
        raise SqlError("42703", f'column number {action.number} of relation "{index.name}" does not exist')
    column = index.columns[action.number - 1]
    table = context.catalog.relation_by_oid(index.table_oid)
    definition = (
        next((i for i in table.every_index if i.oid == index.oid), None) if table is not None else None
    )
    if definition is None:
        raise not_supported("SET STATISTICS of this index", span=action.span)
    if action.number > len(definition.attnums):
        raise SqlError(
            "0A000", f'cannot alter statistics on included column "{column.name}" of index "{index.name}"'
        )
    if not column.generated:
        raise SqlError(
            "0A000",
            f'cannot alter statistics on non-expression column "{column.name}" of index "{index.name}"',
            hint="Alter statistics on table column instead.",
        )
    return st.TuneIndexKey(position=action.number - 1, statistics=target)


def _named_index(relation: RelationDef, name: str) -> IndexDef:
    for index in relation.every_index:
        if index.name == name:
            return index
    raise SqlError("42704", f'index "{name}" for table "{relation.name}" does not exist')


def _clustered(relation: RelationDef, action: ast.AlterAction) -> tuple[st.MarkClustered, RelationDef]:
    oid = 0
    if action.kind == "cluster on":
        index = _named_index(relation, action.name)
        check_clusterable(relation, action.name)
        if relation.kind == "p":
            raise SqlError("0A000", "cannot mark index clustered in partitioned table")
        oid = index.oid
    elif relation.kind == "p":
        raise SqlError("0A000", "cannot mark index clustered in partitioned table")
    return st.MarkClustered(index=oid), relation


def _replica_identity(
    relation: RelationDef, action: ast.AlterAction
) -> tuple[st.SetReplicaIdentity, RelationDef]:
    identity = cast(Literal["d", "n", "f", "i"], action.word)
    if identity != "i":
        return st.SetReplicaIdentity(identity=identity), relation
    index = _named_index(relation, action.name)
    if not index.unique:
        raise SqlError("42809", f'cannot use non-unique index "{index.name}" as replica identity')
    if index.deferrable:
        raise SqlError("0A000", f'cannot use non-immediate index "{index.name}" as replica identity')
    if any(index.expressions):
        raise SqlError("0A000", f'cannot use expression index "{index.name}" as replica identity')
    if index.where_sql:
        raise SqlError("0A000", f'cannot use partial index "{index.name}" as replica identity')
    for attnum in index.attnums:
        column = relation.column(attnum)
        if not column.not_null:
            raise SqlError(
                "42809",
                f'index "{index.name}" cannot be used as replica identity because column "{column.name}" is nullable',
            )
    return st.SetReplicaIdentity(identity="i", index=index.oid), relation
