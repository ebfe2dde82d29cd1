"""ALTER TABLE and partitions: ATTACH and DETACH, and what a partition or a partitioned table does not allow."""

from __future__ import annotations

from collections.abc import Sequence

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.table.generated import columns_used
from planner.bind.define.table.partition import bind_bound, partition_check
from planner.bind.stored import deparse_check
from planner.catalog import RelationDef
from planner.catalog.relation_kinds import PARTITIONS
from planner.partitions.bounds import key_exprs


def bind_partition_action(
    context: BindContext, relation: RelationDef, action: ast.AlterAction, node: ast.PartitionAction
) -> st.AlterAction:
    """Bind ATTACH or DETACH PARTITION of a table, or ATTACH PARTITION of an index. Raises SqlError 42P01,
    42P17, 42809; 0A000.
    """
    reference = node.relation
    bounds = None
    if relation.kind == "p" and action.kind == "attach partition" and node.bound is not None:
        bounds = bind_bound(context, node.bound, relation)  # before the partition is looked for
    other = context.relation(reference.schema, reference.name, catalog=reference.catalog)
    if relation.kind == "i":
        table = context.catalog.relation_by_oid(relation.table_oid)
        divided = table is not None and table.kind == "p"
        if not divided or action.kind != "attach partition":
            raise SqlError(
                "42809",
                f'ALTER action {action.kind.upper()} cannot be performed on relation "{relation.name}"',
                detail=f"This operation is not supported for {'partitioned ' if divided else ''}indexes.",
            )
        if node.bound is not None:
            raise SqlError("42P17", f'"{relation.name}" is not a partitioned table')
        if other.kind != "i":
            raise SqlError("42P17", f'"{other.name}" is not an index')
        return st.AttachIndex(index=other.oid)
    if relation.kind != "p":
        raise SqlError("42P17", f'table "{relation.name}" is not partitioned')
    if action.kind != "attach partition":
        return st.DetachPartition(
            partition=other.oid,
            concurrently=node.concurrently,
            finalize=action.kind != "detach partition",
            check=_condition(context, relation, other) if node.concurrently else None,
        )
    if other.virtual or other.kind not in PARTITIONS:
        raise SqlError("42809", f'"{other.name}" is not a table')
    if bounds is None:
        raise not_supported("ATTACH PARTITION without a bound", span=action.span)
    bound, spans, computed = bounds
    return st.AttachPartition(partition=other.oid, bound=bound, spans=spans, computed=computed)


def _condition(context: BindContext, parent: RelationDef, partition: RelationDef) -> st.CheckSpec | None:
    """Return the CHECK that says what a partition's rows had in common, None where there is one like it or
    nothing to say.

    Of a hash that is a condition over the parent, which a table of its own does not keep.
    """
    key = parent.partition_key
    if partition.partition_of != parent.oid or key is None or key.strategy == "h":
        return None
    expr = partition_check(partition, context.catalog)
    if expr is None:
        return None
    sql = deparse_check(expr, partition)
    if any(c.kind == "c" and c.validated and c.check_sql == sql for c in partition.constraints):
        return None
    used = columns_used(expr)
    names = tuple(c.name for c in partition.live if c.attnum in used)
    return st.CheckSpec(name=None, expr=expr, sql=sql, columns=names)


def refuse_for_partitions(
    context: BindContext, relation: RelationDef, action: ast.AlterAction, *, only: bool
) -> None:
    """Raise SqlError for what cannot be done to a partition, or to a partitioned table, alone: 42P16, 42809."""
    kind = action.kind
    if relation.partition_of:
        _of_partition(context, relation, action)
    if relation.kind != "p":
        return
    if kind in ("drop column", "alter column type"):
        _refuse_keys(context, relation, action.name, "drop" if kind == "drop column" else "alter")
    if kind == "add constraint" and isinstance(action.definition, ast.Constraint):
        _constraint_of_partitioned(relation, action.definition, only=only)
    if not only or not context.catalog.partitions_of(relation.oid):
        return
    if kind == "add column":
        raise SqlError("42P16", "column must be added to child tables too")
    if kind == "drop column":
        raise SqlError(
            "42P16",
            "cannot drop column from only the partitioned table when partitions exist",
            hint="Do not specify the ONLY keyword.",
        )
    _of_one_alone(context, relation, action)
    if kind == "add constraint" and isinstance(action.definition, ast.Constraint):
        what = action.definition.kind
        if what == "check":
            raise SqlError("42P16", "constraint must be added to child tables too")
        if what == "primary key":
            _demand_not_null(context, relation, action.definition.columns)


def _refuse_keys(context: BindContext, relation: RelationDef, name: str, verb: str) -> None:
    """Raise SqlError 42P16 for a column that the key of a partitioned table, or of a partition below it, has."""
    if relation.partition_key is None:
        return
    attnum = next((c.attnum for c in relation.live if c.name == name), 0)
    if attnum in {a for expr in key_exprs(relation, context.catalog) for a in columns_used(expr)}:
        raise SqlError(
            "42P16",
            f'cannot {verb} column "{name}" because it is part of the partition key of relation '
            f'"{relation.name}"',
        )
    for partition in context.catalog.partitions_of(relation.oid):
        _refuse_keys(context, partition, name, verb)


def _of_one_alone(context: BindContext, relation: RelationDef, action: ast.AlterAction) -> None:
    """Raise SqlError 42P16, 0A000 for what ALTER TABLE ONLY may not change in a table whose partitions would
    then differ from it.
    """
    column = next((c for c in relation.live if c.name == action.name), None)
    removed = "cannot remove constraint from only the partitioned table when partitions exist"
    hint = "Do not specify the ONLY keyword."
    if action.kind == "drop constraint":
        checks = [c.name for c in relation.constraints if c.kind == "c"]
        if action.name in checks:
            raise SqlError("42P16", removed, hint=hint)
    elif column is None:
        return
    elif action.kind == "alter column type":
        raise SqlError(
            "42P16", f'type of inherited column "{column.name}" must be changed in child tables too'
        )
    elif action.kind == "set not null" and not column.not_null:
        _demand_not_null(context, relation, (column.name,))
    elif action.kind == "drop not null" and column.not_null:
        raise SqlError("42P16", removed, hint=hint)
    elif action.kind == "drop expression":
        raise SqlError("0A000", "ALTER TABLE / DROP EXPRESSION must be applied to child tables too")


def refuse_rename_alone(context: BindContext, relation: RelationDef, what: str, name: str) -> None:
    """Raise SqlError 42P16 for ALTER TABLE ONLY ... RENAME of a column or CHECK that partitions have, too."""
    if relation.kind != "p" or not context.catalog.partitions_of(relation.oid):
        return
    if what == "column" or any(c.name == name and c.kind == "c" for c in relation.constraints):
        raise SqlError("42P16", f'inherited {what} "{name}" must be renamed in child tables too')


def _constraint_of_partitioned(relation: RelationDef, made: ast.Constraint, *, only: bool) -> None:
    if made.kind == "check" and made.no_inherit:
        raise SqlError("42P16", f'cannot add NO INHERIT constraint to partitioned table "{relation.name}"')
    if made.kind != "foreign key" or made.references is None:
        return
    if only:
        raise SqlError(
            "42809",
            f'cannot use ONLY for foreign key on partitioned table "{relation.name}" referencing relation "{made.references.name}"',
        )
    if made.not_valid:
        raise SqlError(
            "42809",
            f'cannot add NOT VALID foreign key on partitioned table "{relation.name}" referencing relation '
            f'"{made.references.name}"',
            detail="This feature is not yet supported on partitioned tables.",
        )


def _demand_not_null(context: BindContext, relation: RelationDef, names: Sequence[str]) -> None:
    """Raise SqlError 42P16 where a column that a partitioned table alone is to have NOT NULL may be NULL in a
    partition.
    """
    for name in names:
        column = next((c for c in relation.live if c.name == name), None)
        if column is None or column.not_null:
            continue
        for child in context.catalog.partitions_of(relation.oid):
            if not next(c for c in child.live if c.name == name).not_null:
                raise SqlError(
                    "42P16",
                    "constraint must be added to child tables too",
                    detail=f'Column "{name}" of relation "{child.name}" is not already NOT NULL.',
                    hint="Do not specify the ONLY keyword.",
                )


def _of_partition(context: BindContext, relation: RelationDef, action: ast.AlterAction) -> None:
    kind = action.kind
    if kind == "add column":
        raise SqlError("42809", "cannot add column to a partition")
    if kind == "drop column" and any(c.name == action.name for c in relation.live):
        raise SqlError("42P16", f'cannot drop inherited column "{action.name}"')
    if kind == "alter column type" and any(c.name == action.name for c in relation.live):
        raise SqlError("42P16", f'cannot alter inherited column "{action.name}"')
    parent = context.catalog.relation_by_oid(relation.partition_of)
    demanded = () if parent is None else [c.name for c in parent.live if c.not_null]
    if kind == "drop not null" and action.name in demanded:
        raise SqlError("42P16", f'column "{action.name}" is marked NOT NULL in parent table')
    if kind == "drop constraint" and any(c.name == action.name and c.parent for c in relation.constraints):
        raise SqlError(
            "42P16", f'cannot drop inherited constraint "{action.name}" of relation "{relation.name}"'
        )
    if kind == "drop expression" and any(c.name == action.name for c in relation.live):
        raise SqlError("42P16", "cannot drop generation expression from inherited column")
