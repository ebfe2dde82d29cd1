"""Partitions: how a table becomes one, what it then has from its parent, and how it is one no longer.

    CREATE TABLE ... PARTITION OF   ─┐  bound fits beside the others      rows of the default partition still fit it
    ALTER TABLE ... ATTACH PARTITION ┴> ``inherit``: CHECKs, indexes and keys, foreign keys, row triggers of the parent
    ALTER TABLE parent ADD ...       ──> ``inherit`` for each partition, and theirs

A parent has a shard without rows. Its lock is the one that counts: whoever uses the parent holds it by
intention, so a partition comes or goes only when nobody does, and plans of the parent are made anew then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.base.eager import settle
from engine.catalog.reference_checks import references_above
from engine.changes.constraints.setwise import check_unreferenced
from engine.changes.writes.returning import make_env
from engine.changes.writes.shape import runnable_check, table_layout
from engine.definitions import constraints as define
from engine.definitions.dropping.drop import table_of
from engine.definitions.table.alter_columns import require_no_nulls
from engine.definitions.table.keys import add_checks, unused_name
from engine.definitions.table.partition_bounds import with_values
from engine.definitions.table.rewrite import locked_rows, store_definition, store_with_hidden, validate_checks
from engine.plans.query import context
from engine.session.in_use import refuse_change
from engine.session.plans.plan import Plan
from pgwire.give_way import between, openly
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.define.table.generated import columns_used
from planner.bind.define.table.index import computed_index, index_keys, key_names, lacks_hidden, with_hidden
from planner.bind.define.table.naming import choose_name
from planner.bind.define.table.partition import partition_check
from planner.catalog import ConstraintDef, IndexDef, PartitionKey, RelationDef, with_index_changed
from planner.catalog.relation_kinds import PARTITIONS
from planner.evaluate import Env, Shared, compile_expr
from planner.partitions.bounds import ancestors, check_bound, column_map, descendants, key_exprs, leaves
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session


def check_key(relation: RelationDef, key: PartitionKey) -> None:
    """Raise SqlError 0A000 for a unique index of a partitioned table that does not have all of its key."""
    for index in relation.indexes:
        if not index.unique:
            continue
        word = "PRIMARY KEY" if index.primary else "UNIQUE"
        for attnum in key.attnums:
            if not attnum:
                raise SqlError(
                    "0A000",
                    f"unsupported {word} constraint with partition key definition",
                    detail=f"{word} constraints cannot be used when partition keys include expressions.",
                )
            if attnum not in index.key_columns:
                raise SqlError(
                    "0A000",
                    "unique constraint on partitioned table must include all partitioning columns",
                    detail=f'{word} constraint on table "{relation.name}" lacks column '
                    f'"{relation.column(attnum).name}" which is part of the partition key.',
                )


def refuse_keys_over_foreign(session: Session, table: RelationDef, *, key: bool) -> None:
    """Raise SqlError 42809 for a partitioned table that is to have a unique index though foreign tables are
    among its partitions.

    Of a constraint's (``key``) the table right above is told, of another one's that which the statement names.
    """
    below = session.catalog.partitions_of(table.oid) if key else descendants(table, session.catalog)
    for child in below:
        if child.kind == "f":
            raise SqlError(
                "42809",
                f'cannot create unique index on partitioned table "{table.name}"',
                detail=f'Table "{table.name}" contains partitions that are foreign tables.',
            )
        if key and child.kind == "p":
            refuse_keys_over_foreign(session, child, key=True)


def _refuse_foreign(child: RelationDef, parent: RelationDef, *, made: bool) -> None:
    """Raise SqlError 42809 for a foreign table that is to be a partition of a table with unique indexes,
    which only who has the rows could keep.
    """
    if not any(index.unique for index in parent.indexes):
        return
    if made:
        raise SqlError(
            "42809",
            f'cannot create foreign partition of partitioned table "{parent.name}"',
            detail=f'Table "{parent.name}" contains indexes that are unique.',
        )
    raise SqlError(
        "42809",
        f'cannot attach foreign table "{child.name}" as partition of partitioned table "{parent.name}"',
        detail=f'Partitioned table "{parent.name}" contains unique indexes.',
    )


def check_keys(relation: RelationDef) -> None:
    """``check_key`` for a partitioned table, and what else it cannot have."""
    if relation.partition_key is None:
        return
    if relation.exclusions:
        raise SqlError("0A000", "exclusion constraints are not supported on partitioned tables")
    check_key(relation, relation.partition_key)


def joined(session: Session, plan: Plan, relation: RelationDef, statement: st.CreateTable) -> RelationDef:
    """Return a new table as the partition that it is to be, without what it has from its parent. Raises
    SqlError 42P17.
    """
    parent = table_of(session, statement.parent)
    if statement.bound is None:
        raise AssertionError("a partition is attached without a bound")
    env = make_env(context(session, plan, ()))
    bound, spans = with_values(
        env, session.ask_calls, statement.bound, statement.bound_spans, statement.bound_computed
    )
    check_bound(relation.name, bound, parent, session.catalog.partitions_of(parent.oid), spans)
    if relation.options.get("timeline", parent.timeline) != parent.timeline:
        raise not_supported("a partition in another timeline than its table")
    options = dict(relation.options)
    if "timeline" in parent.options:
        options["timeline"] = parent.options["timeline"]
    return replace(relation, partition_of=parent.oid, bound=bound, options=options)


async def parent_changed(session: Session, parent: RelationDef, default: RelationDef | None) -> None:
    """The partitions of a table have changed: plans of it, and of its default partition, are made anew."""
    version = session.db.next_catalog_version
    changed = [replace(parent, version=version())]
    if default is not None:
        changed.append(replace(table_of(session, default.oid), version=version()))
    await session.view.change(changed)
    for above in ancestors(parent, session.catalog):
        await session.view.change([replace(table_of(session, above.oid), version=version())])


def default_of(session: Session, parent: RelationDef) -> RelationDef | None:
    """Return a table's default partition."""
    found = session.catalog.partitions_of(parent.oid)
    return next((p for p in found if p.bound is not None and p.bound.strategy == "d"), None)


async def lock_rows(session: Session, table: RelationDef) -> None:
    """Have nobody read or change the rows of a table until the transaction ends; a foreign one has none here."""
    if table.stored:
        await settle(session.block.ensure_txn().lock_table(ShardId(table.oid), "X"))


async def check_rows(session: Session, partition: RelationDef, *, default: bool = False) -> None:
    """Raise SqlError 23514 for a row of a partition, or of those below it, that its bound does not let in."""
    tables = leaves(partition, session.catalog) if partition.kind == "p" else [partition]
    for table in tables:
        expr = partition_check(table, session.catalog)
        if expr is None:
            continue
        test = compile_expr(runnable_check(expr, session), table_layout(table))
        env = Env((), session, shared=Shared())
        async for chunk in locked_rows(session, table):
            for row in chunk:
                if openly(test, (*row, table.oid), env) is not True:
                    what = (
                        f'updated partition constraint for default partition "{table.name}" would be'
                        if default
                        else f'partition constraint of relation "{table.name}" is'
                    )
                    raise SqlError(
                        "23514", f"{what} violated by some row", schema=table.schema, table=table.name
                    )


# --- what a partition has from its parent ------------------------------------------------------------


async def inherit(
    session: Session, child: RelationDef, parent: RelationDef, *, made: bool, every: bool = True
) -> RelationDef:
    """Return ``child`` with all of ``parent`` that it has not yet, to be stored. ``made``: it is new, or the
    parent has just got it.

    Where not, it has to have the parent's CHECKs already (42804). Not ``every``: indexes that the parent has
    ONLY stay out. Raises what adding raises.
    """
    child = _with_checks(session, child, parent, made=made)
    if child.kind == "f" and every:
        _refuse_foreign(child, parent, made=made)
    for index in parent.indexes if child.kind != "f" else ():
        if not (every or index.valid):
            continue
        child = _with_index(session, child, parent, index, new=made)
    child = await _with_foreign_keys(session, child, parent)
    return _with_triggers(session, child, parent)


def _with_checks(session: Session, child: RelationDef, parent: RelationDef, *, made: bool) -> RelationDef:
    constraints = list(child.constraints)
    attnums = column_map(parent, child)
    for check in parent.constraints:
        if check.kind != "c" or check.no_inherit:
            continue
        at = next((i for i, c in enumerate(constraints) if c.name == check.name), None)
        if at is None:
            if not made:
                raise SqlError("42804", f'child table is missing constraint "{check.name}"')
            mapped = tuple(attnums[a] for a in check.attnums)
            new = replace(check, oid=session.db.allocate_oids(1), attnums=mapped, parent=check.oid)
            constraints.append(new)
            continue
        own = constraints[at]
        if own.kind != "c" or own.check_sql != check.check_sql:
            raise SqlError(
                "42804",
                f'child table "{child.name}" has different definition for check constraint "{check.name}"',
            )
        if own.no_inherit:
            raise SqlError(
                "42P17",
                f'constraint "{check.name}" conflicts with non-inherited constraint on child table "{child.name}"',
            )
        constraints[at] = replace(own, parent=check.oid)
    return replace(child, constraints=tuple(constraints))


def _same_index(child: IndexDef, parent: IndexDef, attnums: dict[int, int]) -> bool:
    """Tell whether an index of a partition may be the one of its parent there (CompareIndexInfo).

    One of a constraint may be that of an index, too, but not the other way round.
    """
    return (
        not child.parent
        and child.unique == parent.unique
        and bool(child.constraint_oid) >= bool(parent.constraint_oid)
        and child.method == parent.method
        and child.nulls_not_distinct == parent.nulls_not_distinct
        and child.opclasses == parent.opclasses
        and child.collations == parent.collations
        and child.expressions == parent.expressions
        and child.where_sql == parent.where_sql
        and child.key_columns == tuple(attnums.get(a, 0) for a in parent.key_columns)
        and child.include == tuple(attnums.get(a, 0) for a in parent.include)
    )


def _with_index(
    session: Session, child: RelationDef, parent: RelationDef, index: IndexDef, *, new: bool
) -> RelationDef:
    """Return ``child`` with its part of an index of ``parent``: one that it has, or a new one.

    ``new``: the index is, and may have a part that is not valid, which makes it not valid either (``_invalidate``).
    """
    if any(i.parent == index.oid for i in child.every_index):
        return child
    attnums = column_map(parent, child)
    constraint = next((c for c in parent.constraints if c.oid == index.constraint_oid), None)
    for own in child.indexes:
        if (own.valid or new) and _same_index(own, index, attnums):
            taken = replace(own, parent=index.oid)
            constraints = tuple(
                replace(c, parent=index.constraint_oid)
                if c.oid == own.constraint_oid and index.constraint_oid
                else c
                for c in child.constraints
            )
            return replace(
                child,
                indexes=tuple(taken if i is own else i for i in child.indexes),
                constraints=constraints,
            )
    if child.partition_key is not None and index.unique:
        mapped = tuple(attnums.get(a, 0) for a in index.attnums)
        check_key(replace(child, indexes=(replace(index, attnums=mapped),)), child.partition_key)
    names = list(index.key_names) or [
        child.column(attnums[a]).name for a in (*index.key_columns, *index.include)
    ]
    label = "pkey" if index.primary else "key" if constraint is not None else "idx"
    others = [child.name, *(i.name for i in child.every_index), *(c.name for c in child.constraints)]
    called = () if index.primary else key_names(names)  # each by itself, as the parent's
    name = unused_name(session, child.schema, child.name, called, label, others)
    made = replace(
        index,
        oid=session.db.allocate_oids(1),
        name=name,
        include=tuple(attnums[a] for a in index.include),
        parent=index.oid,
        constraint_oid=0,
    )
    if index.computed:
        written = tuple(attnums.get(a, 0) for a in index.written)
        keys, where = index_keys(replace(index, written=written), child, session.catalog)
        made, hidden = computed_index(made, child, keys, where, session.catalog)
        child = with_hidden(child, hidden)
    else:
        made = replace(made, attnums=tuple(attnums[a] for a in index.attnums))
    constraints = child.constraints
    if constraint is not None:
        oid = session.db.allocate_oids(1)
        made = replace(made, constraint_oid=oid)
        own_constraint = replace(
            constraint, oid=oid, name=name, attnums=made.attnums, index_oid=made.oid, parent=constraint.oid
        )
        constraints = (*constraints, own_constraint)
    columns = child.columns
    if index.primary:
        if any(c.kind == "p" for c in child.constraints):
            raise SqlError("42P16", f'multiple primary keys for table "{child.name}" are not allowed')
        columns = tuple(replace(c, not_null=True) if c.attnum in made.attnums else c for c in columns)
    return replace(child, columns=columns, indexes=(*child.indexes, made), constraints=constraints)


async def _with_foreign_keys(session: Session, child: RelationDef, parent: RelationDef) -> RelationDef:
    attnums = column_map(parent, child)
    for key in parent.foreign_keys:
        if any(c.parent == key.oid for c in child.constraints) or key.foreign is None:
            continue
        if child.kind == "f":
            raise SqlError("42809", "foreign key constraints are not supported on foreign tables")
        mapped = tuple(attnums[a] for a in key.attnums)
        foreign = replace(key.foreign, delete_attnums=tuple(attnums[a] for a in key.foreign.delete_attnums))
        same = next(
            (c for c in child.foreign_keys if not c.parent and c.validated and c.attnums == mapped and c.foreign == foreign
             and (c.deferrable, c.deferred) == (key.deferrable, key.deferred)), None,
        )  # fmt: skip
        if same is not None:
            changed = replace(same, parent=key.oid)
            constraints = tuple(changed if c is same else c for c in child.constraints)
            child = replace(child, constraints=constraints)
            continue
        taken = {c.name for c in child.constraints}
        name = key.name
        if name in taken:
            columns = [child.column(a).name for a in mapped]
            name = choose_name(child.name, columns, "fkey", taken.__contains__)
        made = replace(
            key, oid=session.db.allocate_oids(1), name=name, attnums=mapped, foreign=foreign, parent=key.oid
        )
        child = replace(child, constraints=(*child.constraints, made))
        await define.touch(session, define.referenced_oids([made], [child.oid]))
    return child


def _with_triggers(session: Session, child: RelationDef, parent: RelationDef) -> RelationDef:
    attnums = column_map(parent, child)
    triggers = list(child.triggers)
    constraints = list(child.constraints)
    for trigger in parent.triggers:
        if not trigger.row or any(t.parent == trigger.oid for t in triggers):
            continue
        if any(t.name == trigger.name for t in triggers):
            raise SqlError("42710", f'trigger "{trigger.name}" for relation "{child.name}" already exists')
        constraint = next((c for c in parent.constraints if c.oid == trigger.constraint), None)
        made = replace(
            trigger,
            oid=session.db.allocate_oids(1),
            attnums=tuple(attnums[a] for a in trigger.attnums),
            parent=trigger.oid,
        )
        if constraint is not None:
            own = replace(constraint, oid=session.db.allocate_oids(1), parent=constraint.oid)
            constraints.append(own)
            made = replace(made, constraint=own.oid)
        triggers.append(made)
    triggers.sort(key=lambda t: t.name)
    return replace(child, triggers=tuple(triggers), constraints=tuple(constraints))


async def inherit_below(session: Session, parent: RelationDef, unused_for: str = "") -> None:
    """Give the partitions of a table, and theirs, what it has got.

    ``unused_for``: the command (ALTER TABLE, CREATE INDEX) that wants partitions which no query of the
    session reads; CREATE INDEX passes by those that have such an index. Raises SqlError 55006, and what
    adding raises for their rows.
    """
    for child in session.catalog.partitions_of(parent.oid):
        between()
        changed = await inherit(session, child, parent, made=True, every=False)
        if unused_for and (unused_for != "CREATE INDEX" or len(changed.indexes) > len(child.indexes)):
            refuse_change(session, child, unused_for)
        if changed == child:
            continue
        new = [c for c in changed.constraints if c not in child.constraints]
        if child.kind == "r":
            checks = [c for c in new if c.kind == "c" and c.validated and c.parent]
            checks = [c for c in checks if not any(o.name == c.name for o in child.constraints)]
            if checks:
                await validate_checks(session, changed, checks)
            nulls = [c for c in changed.live if c.not_null and not child.column(c.attnum).not_null]
            for column in nulls:
                await require_no_nulls(session, child, column)
        await _store(session, child, changed)
        await define.validate(session, changed, [c for c in new if c.kind == "f"])
        if changed.kind == "p":
            await inherit_below(session, table_of(session, changed.oid), unused_for)
    await _invalidate(session, table_of(session, parent.oid))


async def _invalidate(session: Session, parent: RelationDef) -> None:
    """Mark those indexes of a partitioned table as not valid that have a part in a partition which is not."""
    below = [index for child in session.catalog.partitions_of(parent.oid) for index in child.every_index]
    broken = {index.parent for index in below if not index.valid}
    indexes = tuple(replace(i, valid=i.valid and i.oid not in broken) for i in parent.indexes)
    if indexes != parent.indexes:
        version = session.db.next_catalog_version()
        await session.view.change([replace(parent, indexes=indexes, version=version)])


async def _store(session: Session, child: RelationDef, changed: RelationDef) -> None:
    """Store what a partition has become; its rows get the hidden columns of the indexes that it has from its parent."""
    if child.kind != "r" or not lacks_hidden(child, changed):
        await store_definition(session, changed)
        return
    await store_with_hidden(session, child, changed)


# --- ATTACH, DETACH ----------------------------------------------------------------------------------


async def attach(session: Session, plan: Plan, parent: RelationDef, action: st.AttachPartition) -> None:
    """ATTACH PARTITION. Raises SqlError 42809, 42804, 42P07, 42P17, 23514, 23505, 23503, 0A000."""
    child = table_of(session, action.partition)
    if child.partition_of:
        raise SqlError("42809", f'"{child.name}" is already a partition')
    if child.kind not in PARTITIONS:
        raise SqlError("42809", f'"{child.name}" is not a table')
    if child.of_type:
        raise SqlError("42809", "cannot attach a typed table as partition")
    if child.oid == parent.oid or child.oid in [a.oid for a in ancestors(parent, session.catalog)]:
        raise SqlError(
            "42P07",
            "circular inheritance not allowed",
            detail=f'"{parent.name}" is already a child of "{child.name}".',
        )
    if child.source_oid:
        raise not_supported("a table of a source as a partition")
    if child.timeline != parent.timeline:
        raise not_supported("a partition in another timeline than its table")
    if (child.persistence == "t") != (parent.persistence == "t"):
        which = ("temporary", "permanent") if parent.persistence == "t" else ("permanent", "temporary")
        raise SqlError(
            "42809",
            f'cannot attach a {which[1]} relation as partition of {which[0]} relation "{parent.name}"',
        )
    for trigger in child.triggers:
        if trigger.row and (trigger.old_table or trigger.new_table):
            raise SqlError(
                "55000",
                f'trigger "{trigger.name}" prevents table "{child.name}" from becoming a partition',
                detail="ROW triggers with transition tables are not supported on partitions.",
            )
    env = make_env(context(session, plan, ()))
    bound, spans = with_values(env, session.ask_calls, action.bound, action.spans, action.computed)
    check_bound(child.name, bound, parent, session.catalog.partitions_of(parent.oid), spans)
    _check_columns(child, parent)
    await lock_rows(session, child)
    changed = replace(child, partition_of=parent.oid, bound=bound)
    changed = await inherit(session, changed, parent, made=False)
    before = default_of(session, parent)
    new_keys = [c for c in changed.foreign_keys if c not in child.constraints]
    for column in changed.live:
        if column.not_null and not child.column(column.attnum).not_null and child.kind == "r":
            await require_no_nulls(session, child, column)
    await _store(session, child, changed)
    await parent_changed(session, table_of(session, parent.oid), before)
    session.block.ensure_txn().next_statement()
    if changed.kind == "p":
        await inherit_below(session, table_of(session, changed.oid))
    await check_rows(session, table_of(session, changed.oid))
    if before is not None:
        await check_rows(session, table_of(session, before.oid), default=True)
    await define.validate(session, changed, new_keys)


def _check_columns(child: RelationDef, parent: RelationDef) -> None:
    """Raise SqlError 42804 where the columns of a table are not those of the one it is to be a partition of."""
    known = {c.name for c in parent.live}
    for column in child.live:
        if column.name not in known:
            raise SqlError(
                "42804",
                f'table "{child.name}" contains column "{column.name}" not found in parent "{parent.name}"',
                detail="The new partition may contain only the columns present in parent.",
            )
    own = {c.name: c for c in child.live}
    for column in parent.live:
        mine = own.get(column.name)
        if mine is None:
            raise SqlError("42804", f'child table is missing column "{column.name}"')
        if mine.declared != column.declared:
            raise SqlError(
                "42804", f'child table "{child.name}" has different type for column "{column.name}"'
            )
        if mine.collation != column.collation:
            raise SqlError(
                "42P21", f'child table "{child.name}" has different collation for column "{column.name}"'
            )
        if column.not_null and not mine.not_null:
            raise SqlError("42804", f'column "{column.name}" in child table must be marked NOT NULL')
        if bool(column.generated) != bool(mine.generated):
            raise SqlError(
                "42804",
                f'column "{column.name}" in child table must {"" if column.generated else "not "}be a generated column',
            )
        if column.generated and column.default_sql != mine.default_sql:
            raise SqlError(
                "42804", f'column "{column.name}" in child table has a conflicting generation expression'
            )


async def detach(session: Session, parent: RelationDef, action: st.DetachPartition) -> None:
    """DETACH PARTITION: the table keeps its rows, indexes, CHECKs and foreign keys.

    CONCURRENTLY does it at once, too, as nobody who only reads waits for it; it is asked what PostgreSQL
    asks, and the table keeps the condition of its rows as a CHECK. So none is ever pending, for FINALIZE.
    Raises SqlError 42P01, 55000, 25001 (CONCURRENTLY in a block); 23503 where rows refer to its own by a
    foreign key to the table.
    """
    if action.concurrently:
        session.block.must_be_alone("ALTER TABLE ... DETACH CONCURRENTLY")
        if default_of(session, parent) is not None:
            raise SqlError("55000", "cannot detach partitions concurrently when a default partition exists")
    child = table_of(session, action.partition)
    if child.partition_of != parent.oid:
        raise SqlError("42P01", f'relation "{child.name}" is not a partition of relation "{parent.name}"')
    if action.finalize:
        raise SqlError(
            "55000",
            f'cannot complete detaching partition "{child.name}"',
            detail="There's no pending concurrent detach.",
        )
    await lock_rows(session, child)
    for other, key in references_above(session.catalog, child):
        if not key.parent:
            await settle(session.block.ensure_txn().lock_table(ShardId(other.oid), "S"))
            await check_unreferenced(session, other, key)
    default = default_of(session, parent)
    changed = replace(forget_parent(child), partition_of=0, bound=None)
    if action.check is not None:
        changed = add_checks(session, changed, [action.check])
    await store_definition(session, changed)
    await parent_changed(
        session,
        table_of(session, parent.oid),
        default if default is not None and default.oid != child.oid else None,
    )
    if changed.kind == "p":
        await _forget_below(session, changed, child)


async def _forget_below(session: Session, parent: RelationDef, before: RelationDef) -> None:
    """A sub-partitioned table stands for itself: the triggers that went down through it are gone."""
    gone = {t.oid for t in before.triggers} - {t.oid for t in parent.triggers}
    for child in session.catalog.partitions_of(parent.oid):
        kept = tuple(t for t in child.triggers if t.parent not in gone)
        changed = replace(child, triggers=kept, version=session.db.next_catalog_version())
        await session.view.change([changed])
        if child.kind == "p":
            await _forget_below(session, changed, child)


def forget_parent(child: RelationDef) -> RelationDef:
    """Return a partition without what ties it to its parent; triggers that came from there go."""
    gone = {t.constraint for t in child.triggers if t.parent and t.constraint}
    return replace(
        child,
        indexes=tuple(replace(i, parent=0) for i in child.indexes),
        unbuilt=tuple(replace(i, parent=0) for i in child.unbuilt),
        constraints=tuple(replace(c, parent=0) for c in child.constraints if c.oid not in gone),
        triggers=tuple(t for t in child.triggers if not t.parent),
    )


async def attach_index(session: Session, index: RelationDef, action: st.AttachIndex) -> None:
    """ALTER INDEX ... ATTACH PARTITION. Raises SqlError 42P17 where the two do not fit each other."""
    parent, other = table_of(session, index.table_oid), table_of(session, action.index)
    child = table_of(session, other.table_oid)
    above = next(i for i in parent.indexes if i.oid == index.oid)
    below = next(i for i in child.every_index if i.oid == other.oid)
    refused = f'cannot attach index "{other.name}" as a partition of index "{index.name}"'
    if below.parent == above.oid:
        await _validate_index(session, parent, above)  # it may have been built since
        return
    if any(i.parent == above.oid for i in child.every_index) and child.partition_of == parent.oid:
        raise SqlError(
            "55000", refused, detail=f'Another index is already attached for partition "{child.name}".'
        )
    if below.parent:
        raise SqlError("55000", refused, detail=f'Index "{other.name}" is already attached to another index.')
    if child.partition_of != parent.oid:
        raise SqlError(
            "55000",
            refused,
            detail=f'Index "{other.name}" is not an index on any partition of table "{parent.name}".',
        )
    if above.constraint_oid and not below.constraint_oid:
        raise SqlError(
            "42P17",
            refused,
            detail=f'The index "{index.name}" belongs to a constraint in table "{parent.name}" but no constraint exists '
            f'for index "{other.name}".',
        )
    if not _same_index(below, above, column_map(parent, child)):
        raise SqlError("42P17", refused, detail="The index definitions do not match.")
    constraints = tuple(
        replace(c, parent=above.constraint_oid)
        if above.constraint_oid and c.oid == below.constraint_oid
        else c
        for c in child.constraints
    )
    version = session.db.next_catalog_version
    changed = with_index_changed(child, below.oid, lambda i: replace(i, parent=above.oid))
    await session.view.change([replace(changed, constraints=constraints, version=version())])
    await _validate_index(session, parent, above)


async def stands_alone(session: Session, before: RelationDef) -> None:
    """An index was added to a partitioned table ONLY: it is no valid one until every partition has its part of it."""
    parent = table_of(session, before.oid)
    if not session.catalog.partitions_of(parent.oid):
        return
    known = {index.oid for index in before.indexes}
    indexes = tuple(i if i.oid in known else replace(i, valid=False) for i in parent.indexes)
    version = session.db.next_catalog_version()
    await session.view.change([replace(parent, indexes=indexes, version=version)])


async def _validate_index(session: Session, parent: RelationDef, index: IndexDef) -> None:
    """Mark an index as valid once all partitions have one that belongs to it, and the one above it likewise."""
    parts = session.catalog.partitions_of(parent.oid)
    below = [next((i for i in p.every_index if i.parent == index.oid), None) for p in parts]
    if index.valid or any(i is None or not i.valid for i in below):
        return
    indexes = tuple(replace(i, valid=True) if i.oid == index.oid else i for i in parent.indexes)
    changed = replace(parent, indexes=indexes, version=session.db.next_catalog_version())
    await session.view.change([changed])
    if index.parent:
        above = table_of(session, parent.partition_of)
        await _validate_index(session, above, next(i for i in above.indexes if i.oid == index.parent))


def refuse_alone(constraint: ConstraintDef, relation: RelationDef) -> None:
    """Raise SqlError 42P16 for a constraint that a partition has from its parent."""
    if constraint.parent:
        raise SqlError(
            "42P16", f'cannot drop inherited constraint "{constraint.name}" of relation "{relation.name}"'
        )


def key_columns(relation: RelationDef, session: Session) -> Sequence[int]:
    """Return the columns that the key of a partitioned table names, in its expressions, too."""
    if relation.partition_key is None:
        return ()
    return [a for expr in key_exprs(relation, session.catalog) for a in columns_used(expr)]
