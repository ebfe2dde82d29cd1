"""ALTER TABLE: its actions, in order, and those on constraints, owners and schemas (columns:
``engine.definitions.table.alter_columns``).

New constraints are checked against the rows there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from engine.base.eager import settle
from engine.catalog.reference_checks import references_to
from engine.catalog.storage.stored import PG_CLASS_OID, Stored
from engine.changes.constraints.exclusion import check_whole
from engine.changes.constraints.setwise import check_table
from engine.definitions import constraints as define
from engine.definitions import functions
from engine.definitions.dropping.dependency_walk import Address, lines, told
from engine.definitions.dropping.dependents import still_needed
from engine.definitions.dropping.drop import drop_relations, table_of
from engine.definitions.dropping.notices import notice_cascade
from engine.definitions.foreign_parts import with_options
from engine.definitions.named_places import refuse_temporary_move
from engine.definitions.sequences import add_identity, drop_identity, set_identity
from engine.definitions.stored_queries import rebase_queries
from engine.definitions.table.alter_columns import (
    add_column,
    alter_types,
    change_column,
    drop_column,
    drop_expression,
    fill_hidden,
    require_no_nulls,
    set_not_null,
    views_that_break,
)
from engine.definitions.table.keys import add_checks, add_keys
from engine.definitions.table.partitions import (
    attach,
    attach_index,
    check_keys,
    detach,
    inherit_below,
    refuse_keys_over_foreign,
    stands_alone,
)
from engine.definitions.table.policies import set_row_security
from engine.definitions.table.rewrite import RowCheck, store_definition, validate_checks
from engine.definitions.table.trigger_dependencies import trigger_words
from engine.definitions.table.tuning import tune
from engine.definitions.triggers import enable_triggers
from engine.session.catalog.names import described, shown_name
from engine.session.in_use import refuse_change
from engine.session.named_roles import named_role
from engine.session.plans.plan import Plan
from engine.session.transaction.block_state import BLOCK
from pgwire.give_way import between, openly, paced_iter
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.define.functions import body_statements
from planner.bind.define.table.index import lacks_hidden
from planner.bind.stored import rebase_default_text
from planner.bind.stored.evaluated import stored_default
from planner.catalog import ConstraintDef, FunctionDef, RelationDef, with_index_changed
from planner.catalog.acl import reowned
from planner.partitions.bounds import column_map
from planner.partitions.changes import over_columns
from planner.query import Expr
from txn.api import Transaction
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session


async def apply_actions(session: Session, plan: Plan, statement: st.AlterTable) -> None:
    """Run all actions of one ALTER TABLE, in order."""
    for number, action in enumerate(statement.actions):
        if number:
            session.block.ensure_txn().next_statement()  # each sees what those before it have made
        between()
        relation = session.catalog.relation_by_oid(statement.table)
        if relation is None:
            raise RuntimeError("the altered relation is gone")
        if not isinstance(action, st.SetSchema):  # which changes a name
            refuse_change(session, relation, "ALTER TABLE")
        if relation.kind == "p" and isinstance(action, st.AddKey) and not statement.only:
            refuse_keys_over_foreign(session, relation, key=True)
        await _apply(session, plan, relation, action)
        # what is not a CHECK goes from partitions by what depends on it; a CHECK is refused to go from one alone
        if relation.kind == "p" and (not statement.only or isinstance(action, st.DropConstraint)):
            await _below(session, plan, relation, action)
        elif relation.kind == "p" and isinstance(action, st.AddKey):
            await stands_alone(session, relation)
    if statement.fails is not None:
        raise statement.fails.copy()


async def _below(session: Session, plan: Plan, before: RelationDef, action: st.AlterAction) -> None:
    """Do to the partitions of a table what has been done to it, ``before`` as it was then."""
    parent = table_of(session, before.oid)
    if isinstance(action, st.AddKey | st.AddCheck | st.AddForeignKey):
        check_keys(parent)
        # a unique key alone is an index; a primary one makes columns NOT NULL
        index_only = isinstance(action, st.AddKey) and _not_null(parent) == _not_null(before)
        await inherit_below(session, parent, "" if index_only else "ALTER TABLE")
        return
    if isinstance(action, st.AddColumn):
        if len(parent.columns) == len(before.columns):
            return
        alone = replace(
            action, keys=(), checks=(), foreign_keys=(),
            column=replace(action.column, identity="", sequence=None, default=_default_now(session, parent, action),
                           default_sql=None if action.column.identity else parent.columns[-1].default_sql),
        )  # fmt: skip
        for child in session.catalog.partitions_of(parent.oid):
            between()
            refuse_change(session, child, "ALTER TABLE")
            await add_column(session, plan, child, alone)
            if child.kind == "p":
                await _below(session, plan, child, alone)
        check_keys(parent)
        await inherit_below(session, parent)
        return
    if not isinstance(
        action,
        st.DropColumn | st.DropConstraint | st.SetDefault | st.AlterColumnTypes | st.SetNotNull | st.EnableTriggers
        | st.ValidateConstraint | st.AlterConstraint | st.DropExpression | st.TuneColumn,
    ):  # fmt: skip
        return
    if isinstance(action, st.TuneColumn) and not action.below:
        return
    for child in session.catalog.partitions_of(parent.oid):
        between()
        refuse_change(session, child, "ALTER TABLE")
        below = action
        if isinstance(action, st.DropConstraint | st.AlterConstraint | st.ValidateConstraint):
            gone = next((c for c in before.constraints if c.name == action.name), None)
            own = None if gone is None else next((c for c in child.constraints if c.parent == gone.oid), None)
            if own is None:
                continue
            below = replace(action, name=own.name)
        elif isinstance(action, st.EnableTriggers) and action.name is not None:
            if not any(t.name == action.name for t in child.triggers):
                continue
        elif isinstance(action, st.DropColumn):
            below = replace(action, if_exists=True)
            if not any(c.name == action.name for c in child.live):
                continue
        elif isinstance(action, st.AlterColumnTypes):
            below = replace(
                action, columns=tuple(_retyped(session, before, child, column) for column in action.columns)
            )
        await _apply(session, plan, child, below)
        if child.kind == "p":
            await _below(session, plan, child, below)


def _not_null(relation: RelationDef) -> list[int]:
    return [column.attnum for column in relation.live if column.not_null]


def _retyped(
    session: Session, parent: RelationDef, child: RelationDef, action: st.ColumnRetype
) -> st.ColumnRetype:
    """Return ALTER COLUMN TYPE of a partitioned table as one of a partition: over its columns, with its own default."""
    attnums = column_map(parent, child)
    was = next(c for c in parent.live if c.name == action.column)
    own = child.column(attnums[was.attnum])
    default = action.default_sql
    if own.default_sql != was.default_sql:
        default = own.default_sql
        if default is not None and not own.generated:
            default = rebase_default_text(default, action.type, session.catalog, session.catalog)
    return replace(action, using=over_columns(action.using, attnums), default_sql=default)


def _default_now(session: Session, parent: RelationDef, action: st.AddColumn) -> Expr | None:
    """Return the default that a column added to a partitioned table has in its partitions: not that of an identity."""
    column = parent.columns[-1]
    if action.column.identity or column.generated or column.default_sql is None:
        return None
    return stored_default(column.default_sql, column.declared, session.catalog)


async def _apply(session: Session, plan: Plan, relation: RelationDef, action: st.AlterAction) -> None:
    """Run one action on one table."""
    match action:
        case st.AttachPartition():
            await attach(session, plan, relation, action)
        case st.DetachPartition():
            await detach(session, relation, action)
        case st.AttachIndex():
            await attach_index(session, relation, action)
        case st.AddColumn():
            await add_column(session, plan, relation, action)
        case st.DropColumn():
            await drop_column(session, relation, action)
        case st.AddKey():
            await _add_key(session, plan, relation, action)
        case st.AddCheck():
            await _add_check(session, relation, action)
        case st.AddForeignKey():
            await _add_foreign_key(session, relation, action)
        case st.ValidateConstraint():
            await _validate(session, relation, action.name)
        case st.AlterConstraint():
            await _alter_constraint(session, relation, action)
        case st.DropConstraint():
            await _drop_constraint(session, relation, action)
        case st.SetDefault():
            await change_column(session, relation, action.column, default_sql=action.default_sql)
        case st.DropExpression():
            await drop_expression(session, relation, action)
        case st.AddIdentity():
            await store_definition(session, await add_identity(session, relation, action))
        case st.SetIdentity():
            await store_definition(session, await set_identity(session, relation, action))
        case st.DropIdentity():
            await store_definition(session, await drop_identity(session, relation, action))
        case st.AlterColumnTypes():
            await alter_types(session, plan, relation, action.columns)
        case st.SetRowSecurity():
            await set_row_security(session, relation, action)
        case st.EnableTriggers():
            await enable_triggers(session, relation, action)
        case st.SetNotNull():
            await set_not_null(session, relation, action)
        case st.AlterOwner():
            await _change_owner(session, relation, named_role(session, action.role).oid)
        case st.SetOptions():
            await _set_options(session, relation, action.options)
        case st.TuneColumn() | st.TuneIndexKey() | st.MarkClustered() | st.SetReplicaIdentity():
            await tune(session, relation, action)
        case st.SetPersistence():
            await _set_persistence(session, relation, action.persistence)
        case st.SetSchema():
            await _set_schema(session, relation, action.schema)
        case st.SetForeignOptions():
            await store_definition(session, with_options(session, relation, action))
        case st.SetOfType():
            await session.view.change(
                [replace(relation, of_type=action.type, version=session.db.next_catalog_version())]
            )
        case _:
            raise not_supported(f"ALTER TABLE {type(action).__name__}")


async def _set_options(session: Session, relation: RelationDef, options: Mapping[str, str]) -> None:
    """SET (...) and RESET (...); those of an index are kept with its table."""
    if relation.kind != "i":
        await store_definition(session, replace(relation, options=options))
        return
    table = table_of(session, relation.table_oid)
    await store_definition(
        session, with_index_changed(table, relation.oid, lambda i: replace(i, options=options))
    )


async def _set_persistence(session: Session, relation: RelationDef, persistence: Literal["p", "u"]) -> None:
    """SET LOGGED and UNLOGGED; sequences of a table's columns follow it. Raises SqlError 42P16 where a key
    would lead from a logged table to one that is not.
    """
    if persistence == "p":
        links = [(key.foreign.table, key) for key in relation.foreign_keys if key.foreign is not None]
    else:
        links = [(table.oid, key) for table, key in references_to(session.catalog, relation)]
    for oid, key in links:
        other = session.catalog.relation_by_oid(oid)
        if other is not None and oid != relation.oid and other.persistence != persistence:
            now, then = ("unlogged", "logged") if persistence == "p" else ("logged", "unlogged")
            raise SqlError(
                "42P16",
                f'could not change table "{relation.name}" to {then} because it references {now} table "{other.name}"',
                schema=relation.schema,
                table=relation.name,
                constraint=key.name,
            )
    for item in (relation, *session.catalog.sequences_of(relation.oid)):
        await store_definition(session, replace(item, persistence=persistence))


async def _change_owner(session: Session, relation: RelationDef, owner: int) -> None:
    """OWNER TO; the sequences of a table's columns follow it. Raises SqlError 0A000 for one that follows a table."""
    _refuse_if_owned(session, relation, "cannot change owner of sequence")
    await store_definition(session, replace(relation, owner=owner))
    lists: list[Stored] = [
        replace(acl, items=reowned(acl.items, relation.owner, owner))
        for acl in session.catalog.acls()
        if acl.class_oid == PG_CLASS_OID and acl.object_oid == relation.oid
    ]
    if lists:
        await session.view.change(lists)
    owned = [replace(sequence, owner=owner) for sequence in session.catalog.sequences_of(relation.oid)]
    if owned:
        await session.view.change(owned)


def _refuse_if_owned(session: Session, relation: RelationDef, what: str) -> None:
    """Raise SqlError 0A000 for a sequence that a column owns: it goes with that column's table."""
    if relation.sequence is not None and relation.sequence.owner_table:
        table = session.catalog.relation_by_oid(relation.sequence.owner_table)
        name = "" if table is None else table.name
        raise SqlError(
            "0A000",
            f'{what} "{relation.name}"' if what.startswith("cannot change") else what,
            detail=f'Sequence "{relation.name}" is linked to table "{name}".',
        )


async def _add_key(session: Session, plan: Plan, relation: RelationDef, action: st.AddKey) -> None:
    changed = add_keys(session, relation, [action.key])
    check_keys(changed)
    if action.key.primary:
        for column in changed.live:
            if column.not_null and not relation.columns[column.attnum - 1].not_null:
                await require_no_nulls(session, relation, column)
    if lacks_hidden(relation, changed):
        await fill_hidden(session, plan, relation, changed)
    else:
        await store_definition(session, changed)
    if action.key.operators:
        session.block.ensure_txn().next_statement()
        await check_whole(session, changed, changed.constraints[-1], defining=True)


async def _add_check(session: Session, relation: RelationDef, action: st.AddCheck) -> None:
    changed = add_checks(session, relation, [action.check], validated=not action.not_valid)
    if not action.not_valid:
        await validate_checks(session, changed, changed.constraints[-1:])
    await store_definition(session, changed)


async def _add_foreign_key(session: Session, relation: RelationDef, action: st.AddForeignKey) -> None:
    changed = await define.add_foreign_keys(session, relation, [action.key])
    await store_definition(session, changed)
    if relation.kind != "p":  # else in each partition, when it has got it
        await define.validate(session, changed, changed.constraints[-1:])


def _constraint(relation: RelationDef, name: str) -> ConstraintDef:
    for constraint in relation.constraints:
        if constraint.name == name:
            return constraint
    raise SqlError("42704", f'constraint "{name}" of relation "{relation.name}" does not exist')


def _with_constraint(relation: RelationDef, constraint: ConstraintDef) -> RelationDef:
    constraints = tuple(constraint if c.oid == constraint.oid else c for c in relation.constraints)
    return replace(relation, constraints=constraints)


async def _validate(session: Session, relation: RelationDef, name: str) -> None:
    """VALIDATE CONSTRAINT. Raises SqlError 42704, 42809, 23514, 23503."""
    constraint = _constraint(relation, name)
    if constraint.kind not in "cf":
        raise SqlError(
            "42809",
            f'constraint "{name}" of relation "{relation.name}" is not a foreign key or check constraint',
        )
    if constraint.validated:
        return
    valid = replace(constraint, validated=True)
    if session.view.is_private:
        await _check_existing(session, relation, valid, None)
    else:
        await _check_committed(session, relation, valid)
    # neither rows nor plans depend on it, so the table's version stays
    await session.view.change([_with_constraint(relation, valid)])


async def _check_committed(session: Session, relation: RelationDef, constraint: ConstraintDef) -> None:
    """Look at committed rows past all locks: those written since the constraint was added keep it anyway."""
    reader = session.db.store.begin(read_only=True, session=session.pid, timeline=relation.timeline)
    try:
        await _check_existing(session, relation, constraint, reader)
    except SqlError:
        if session.block.state is not BLOCK:
            raise
        # the block may have mended what is committed: its own view decides, under locks
        await _check_existing(session, relation, constraint, None)
    finally:
        reader.rollback()


async def _check_existing(
    session: Session, relation: RelationDef, constraint: ConstraintDef, reader: Transaction | None
) -> None:
    if not relation.stored:
        return
    if reader is None:  # what is found must stay so until the commit
        await settle(session.block.ensure_txn().lock_table(ShardId(relation.oid), "S"))
        session.block.ensure_txn().next_statement()
    if constraint.kind == "f":
        await check_table(session, relation, constraint, reader)
        return
    check = RowCheck(session, relation, [constraint])
    txn = reader or session.block.ensure_txn()
    async for chunk in txn.scan(ShardId(relation.oid)):
        check([row.values for row in chunk])


async def _alter_constraint(session: Session, relation: RelationDef, action: st.AlterConstraint) -> None:
    """ALTER CONSTRAINT ... DEFERRABLE. Raises SqlError 42704, 42809 (no foreign key)."""
    constraint = next((c for c in relation.constraints if c.name == action.name), None)
    if constraint is None:
        raise SqlError("42704", f'constraint "{action.name}" of relation "{relation.name}" does not exist')
    if constraint.kind != "f":
        raise SqlError(
            "42809",
            f'constraint "{action.name}" of relation "{relation.name}" is not a foreign key constraint',
        )
    changed = replace(constraint, deferrable=action.deferrable, deferred=action.deferred)
    await define.touch(session, define.referenced_oids([changed], [relation.oid]))
    await store_definition(session, _with_constraint(relation, changed))


async def _drop_constraint(session: Session, relation: RelationDef, action: st.DropConstraint) -> None:
    constraint = next((c for c in relation.constraints if c.name == action.name), None)
    if constraint is None:
        message = f'constraint "{action.name}" of relation "{relation.name}" does not exist'
        if not action.if_exists:
            raise SqlError("42704", message)
        session.notice(f"{message}, skipping")
        return
    if constraint.kind == "t":
        trigger = next(t for t in relation.triggers if t.constraint == constraint.oid)
        words = trigger_words(session, trigger, relation)
        raise SqlError(
            "2BP01",
            f"cannot drop constraint {constraint.name} on {described(session, relation)} because {words} requires it",
            hint=f"You can drop {words} instead.",
        )
    if constraint.kind == "f":
        await define.touch(session, define.referenced_oids([constraint], [relation.oid]))
    elif constraint.kind in "pux":
        _refuse_part_of_index(session, relation, constraint)
        await _drop_keys_on(session, relation, constraint, cascade=action.cascade)
        await _drop_views_on(session, relation, constraint, cascade=action.cascade)
    latest = session.catalog.relation_by_oid(relation.oid) or relation
    index_oid = constraint.index_oid if constraint.kind in "pux" else 0
    await store_definition(
        session,
        replace(
            latest,
            constraints=tuple(c for c in latest.constraints if c.oid != constraint.oid),
            indexes=tuple(i for i in latest.indexes if i.oid != index_oid),
        ),
    )


def _refuse_part_of_index(session: Session, relation: RelationDef, constraint: ConstraintDef) -> None:
    """Raise SqlError 2BP01 for a key of a partition whose index is that of an index of the table above it,
    which has no constraint.
    """
    index = next(i for i in relation.indexes if i.oid == constraint.index_oid)
    above = session.catalog.relation_by_oid(index.parent) if index.parent and not constraint.parent else None
    if above is not None:
        own = shown_name(session, replace(relation, oid=index.oid, name=index.name))
        raise SqlError(
            "2BP01",
            f"cannot drop index {own} because {described(session, above)} requires it",
            hint=f"You can drop {described(session, above)} instead.",
        )


async def _drop_keys_on(
    session: Session, relation: RelationDef, constraint: ConstraintDef, *, cascade: bool
) -> None:
    """Drop the foreign keys that refer to a key about to be dropped, or refuse (2BP01)."""
    keys = define.dependents(session, [relation.oid], [constraint.index_oid])
    names = define.depends_texts(session, keys)
    index = shown_name(session, replace(relation, oid=constraint.index_oid, name=constraint.name))
    if names and not cascade:
        raise still_needed(
            f"constraint {constraint.name} on {described(session, relation)}",
            (f"{name} depends on index {index}" for name in names),
        )
    notice_cascade(session, names)
    await define.drop_foreign_keys(session, keys)


async def _drop_views_on(
    session: Session, relation: RelationDef, constraint: ConstraintDef, *, cascade: bool
) -> None:
    """Drop the views that group by a primary key and show other columns of its table, or refuse (2BP01)."""
    without = tuple(c for c in relation.constraints if c.oid != constraint.oid)
    indexes = tuple(i for i in relation.indexes if i.oid != constraint.index_oid)
    views = views_that_break(session, relation, replace(relation, constraints=without, indexes=indexes))
    called = openly(_relying_functions, session, relation, constraint)
    names = [described(session, view) for view in views]
    names += [functions.words_of(session, function.oid) for function in called]
    what = f"constraint {constraint.name} on {described(session, relation)}"
    hanging = openly(told, session, [Address(PG_CLASS_OID, view.oid) for view in views]) if views else []
    hanging = [one for one in hanging if one.what not in names]
    if names and not cascade:
        raise still_needed(what, [*(f"{name} depends on {what}" for name in names), *lines(hanging)])
    notice_cascade(session, [*names, *(one.what for one in hanging)])
    await drop_relations(session, views, cascade=True, quiet=True)
    left = [one for one in called if session.catalog.function_by_oid(one.oid) is not None]
    await functions.drop_functions(session, left, cascade=True, quiet=True)


def _relying_functions(
    session: Session, relation: RelationDef, constraint: ConstraintDef
) -> list[FunctionDef]:
    """Return the functions whose bodies by BEGIN ATOMIC name a key (ON CONFLICT), or group by it, oldest first."""
    found: list[FunctionDef] = []
    for function in paced_iter(session.catalog.functions()):
        if relation.oid not in function.depends_on or not function.body_sql:
            continue
        keys: set[tuple[int, int]] = set()
        with suppress(SqlError):  # it reads what is not there any more, or in another form
            body_statements(function, session.catalog, keys)
        if (1, constraint.oid) in keys:
            found.append(function)
    return sorted(found, key=lambda function: function.oid)


async def _set_schema(session: Session, relation: RelationDef, name: str) -> None:
    """SET SCHEMA: the relation with its indexes moves; views that read it name it anew."""
    schema = session.catalog.schema(name)
    _refuse_if_owned(session, relation, "cannot move an owned sequence into another schema")
    if schema is None and name != "pg_temp":
        raise SqlError("3F000", f'schema "{name}" does not exist')
    refuse_temporary_move(name, relation.schema)
    if name in ("pg_catalog", "information_schema"):
        raise SqlError("0A000", f"cannot move objects into schema {name}")
    if schema is None:
        raise AssertionError(f"there is no schema {name}")
    if schema.name == relation.schema:
        return
    owned = session.catalog.sequences_of(relation.oid)
    for taken in (relation.name, *(index.name for index in relation.every_index), *(s.name for s in owned)):
        if session.catalog.relation(name, taken) is not None:
            raise SqlError("42P07", f'relation "{taken}" already exists in schema "{name}"')
    before = session.catalog
    await store_definition(session, replace(relation, schema=name, schema_oid=schema.oid))
    if owned:
        await session.view.change([replace(s, schema=name, schema_oid=schema.oid) for s in owned])
    await rebase_queries(session, {relation.oid}, before)
