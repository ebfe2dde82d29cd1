"""ALTER TABLE's actions. Stored rows are touched only where their values must change (docs/storage.md).

ADD COLUMN with a constant default is a catalog entry (the missing value); with a volatile default the rows are
rewritten. DROP COLUMN leaves the slot in old rows. New constraints are checked against the rows there are. Whatever looks
at every row does so a slice at a time, under the table's lock; many rewritten rows become parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from engine.catalog.physical import physical_type, shard_column, shard_spec
from engine.catalog.state import PG_CLASS_OID, Stored, key_of
from engine.constraints import define
from engine.constraints.setwise import check_table
from engine.ddl.drop import default_words, described, drop_defaults, drop_relations, notice_cascade
from engine.ddl.keys import add_checks, add_keys, building_indexes
from engine.ddl.roles import named_role, shown_name
from engine.eager import settle
from engine.reads.plans import Plan
from engine.reads.query import context
from engine.sequences.define import (
    add_identity,
    drawing_columns,
    drop_identity,
    owned_by,
    set_identity,
    with_sequences,
)
from engine.slices import SLICE_ROWS
from engine.transaction.block_state import BlockState
from engine.writes.dml import BULK_ROWS
from engine.writes.returning import make_env
from engine.writes.shape import TableShape, table_layout
from engine.writes.storable import refusal
from planner import statements as st
from planner.acl import reowned
from planner.bind import bind_check, deparse_check, rebase_view
from planner.bind.stored import stored_default
from planner.catalog import ColumnDef, ConstraintDef, RelationDef
from planner.classify import is_volatile
from planner.errors import SqlError, not_supported
from planner.evaluate import Env, Shared, compile_expr
from planner.query import Var
from planner.walk import walk
from txn.api import Transaction
from txn.columns import column_arrays, column_fields
from txn.types import Row, ShardId

if TYPE_CHECKING:
    from engine.connection.backend import Connection
    from engine.connection.session import Session

MAX_COLUMNS = 1600


async def apply_actions(conn: Connection, plan: Plan, statement: st.AlterTable) -> None:
    """Run all actions of one ALTER TABLE, in order."""
    session = conn.session
    for action in statement.actions:
        relation = session.catalog.relation_by_oid(statement.table)
        if relation is None:
            raise RuntimeError("the altered relation is gone")
        session.timing.refuse_change(relation, "ALTER TABLE")
        match action:
            case st.AddColumn():
                await _add_column(session, plan, relation, action)
            case st.DropColumn():
                await _drop_column(session, relation, action)
            case st.AddKey():
                await _add_key(session, relation, action)
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
                await _change_column(session, relation, action.column, default_sql=action.default_sql)
            case st.AddIdentity():
                await _store(session, await add_identity(session, relation, action))
            case st.SetIdentity():
                await _store(session, await set_identity(session, relation, action))
            case st.DropIdentity():
                await _store(session, await drop_identity(session, relation, action))
            case st.AlterColumnType():
                await _alter_type(session, plan, relation, action)
            case st.SetNotNull():
                await _set_not_null(session, relation, action)
            case st.AlterOwner():
                await _change_owner(session, relation, named_role(session, action.role).oid)
            case st.SetSchema():
                await _set_schema(session, relation, action.schema)
            case _:
                raise not_supported(f"ALTER TABLE {type(action).__name__}")


async def _store(session: Session, relation: RelationDef) -> None:
    changed = replace(relation, version=session.db.next_catalog_version())
    if relation.stored:
        with building_indexes(changed):
            await settle(session.block.ensure_txn().alter_shard(shard_spec(changed)))
    await session.view.change([changed])


async def _change_owner(session: Session, relation: RelationDef, owner: int) -> None:
    """OWNER TO; the sequences of a table's columns follow it. Raises SqlError 0A000 for one that follows a table."""
    _refuse_if_owned(session, relation, "cannot change owner of sequence")
    await _store(session, replace(relation, owner=owner))
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


async def _rows(session: Session, relation: RelationDef) -> AsyncIterator[list[Row]]:
    """Yield the values of every row, own changes included, in chunks; nobody changes any from here on."""
    txn = session.block.ensure_txn()
    await settle(txn.lock_table(ShardId(relation.oid), "X"))
    txn.next_statement()
    async for chunk in txn.scan(ShardId(relation.oid)):
        yield [row.values for row in chunk]


async def _rewrite(session: Session, relation: RelationDef, rows: Sequence[Row]) -> None:
    """Put ``rows`` in the place of a table's rows. Raises SqlError 23505."""
    txn, shard = session.block.ensure_txn(), ShardId(relation.oid)
    with building_indexes(relation):
        if len(rows) <= BULK_ROWS:
            await settle(txn.rewrite(shard, rows))
        else:
            await settle(txn.truncate(shard))
            await txn.bulk_insert(shard, _batches(relation, rows))


async def _batches(relation: RelationDef, rows: Sequence[Row]) -> AsyncIterator[Any]:
    """Yield rows as Arrow batches of the table's live columns."""
    columns = [shard_column(column) for column in relation.live]
    schema = pa.schema([field for column in columns for field in column_fields(column)])
    for start in range(0, len(rows), SLICE_ROWS):
        some = rows[start : start + SLICE_ROWS]
        arrays: list[Any] = []
        for column in columns:
            arrays += column_arrays([row[column.attnum - 1] for row in some], column)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        await asyncio.sleep(0)


async def _add_column(session: Session, plan: Plan, relation: RelationDef, action: st.AddColumn) -> None:
    spec = action.column
    if any(c.name == spec.name for c in relation.live):
        message = f'column "{spec.name}" of relation "{relation.name}" already exists'
        if not action.if_not_exists:
            raise SqlError("42701", message)
        session.notice(f"{message}, skipping", sqlstate="42701")
        return
    if len(relation.columns) >= MAX_COLUMNS:
        raise SqlError("54011", f"tables can have at most {MAX_COLUMNS} columns")
    session.block.ensure_txn()
    slot = ColumnDef(
        attnum=len(relation.columns) + 1, name=spec.name, type=spec.type, collation=spec.collation
    )
    drawing, sequences = with_sequences(session, replace(relation, columns=(*relation.columns, slot)), [spec])
    if sequences:
        sql = drawing.columns[-1].default_sql
        assert sql is not None
        spec = replace(spec, default_sql=sql, default=stored_default(sql, spec.type))
        await session.view.change(sequences)
    missing: Any = None
    volatile = spec.default is not None and is_volatile(spec.default)
    env = make_env(context(session, plan, ()))
    if spec.default is not None and not volatile:
        missing = compile_expr(spec.default)((), env)
    column = ColumnDef(
        attnum=len(relation.columns) + 1,
        name=spec.name,
        type=spec.type,
        not_null=spec.not_null,
        default_sql=spec.default_sql,
        missing_value=missing,
        collation=spec.collation,
        identity=spec.identity,
    )
    changed = replace(relation, columns=(*relation.columns, column))
    changed = add_keys(session, changed, action.keys)
    changed = add_checks(session, changed, action.checks)
    changed = await define.add_foreign_keys(session, changed, action.foreign_keys, validated=True)
    if volatile:
        assert spec.default is not None
        make = compile_expr(spec.default)
        shape = TableShape.of(changed, session)
        rows: list[Row] = []
        async for chunk in _rows(session, relation):
            longer = [(*row, make((), env)) for row in chunk]
            shape.check(longer, env)
            rows += longer
        await _store(session, changed)
        await _rewrite(session, changed, rows)
        await define.validate(session, changed, changed.constraints[len(relation.constraints) :])
        return
    if missing is None and (column.not_null or changed.columns[-1].not_null):
        await _require_no_rows_null(session, relation, changed.columns[-1])
    await _store(session, changed)
    added = changed.constraints[len(relation.constraints) :]
    if action.checks:
        await _validate_checks(session, changed, [c for c in added if c.kind == "c"])
    if missing is not None:  # NULL refers to nothing
        await define.validate(session, changed, added)


async def _require_no_rows_null(session: Session, relation: RelationDef, column: ColumnDef) -> None:
    """Raise 23502 if any row has NULL in ``column`` (absent in rows older than it)."""
    position = column.attnum - 1
    async for chunk in _rows(session, relation):
        for row in chunk:
            if position >= len(row) or row[position] is None:
                raise _has_nulls(relation, column)


def _has_nulls(relation: RelationDef, column: ColumnDef) -> SqlError:
    return SqlError(
        "23502",
        f'column "{column.name}" of relation "{relation.name}" contains null values',
        schema=relation.schema,
        table=relation.name,
        column=column.name,
    )


async def _validate_checks(session: Session, relation: RelationDef, constraints: Any) -> None:
    """Raise 23514 if any row breaks one of the new CHECK constraints."""
    check = RowCheck(session, relation, constraints)
    async for chunk in _rows(session, relation):
        check(chunk)


class RowCheck:
    """CHECK constraints of a table, for rows that are there already."""

    def __init__(self, session: Session, relation: RelationDef, constraints: Iterable[ConstraintDef]) -> None:
        """Compile the constraints. Raises SqlError 42883 and others where one has no meaning."""
        self._relation = relation
        self._env = Env((), session, shared=Shared())
        layout = table_layout(relation)
        self._checks = [
            (
                constraint.name,
                compile_expr(
                    bind_check(
                        constraint.check_sql, relation, session.catalog, settings=session.bind_settings
                    ),
                    layout,
                ),
            )
            for constraint in constraints
        ]

    def __call__(self, rows: Sequence[Row]) -> None:
        """Raise 23514 if a row breaks one."""
        relation, env = self._relation, self._env
        for name, predicate in self._checks:
            for row in rows:
                if predicate((*row, relation.oid), env) is False:
                    raise SqlError(
                        "23514",
                        f'check constraint "{name}" of relation "{relation.name}" is violated by some row',
                        schema=relation.schema,
                        table=relation.name,
                        constraint=name,
                    )


async def _drop_column(session: Session, relation: RelationDef, action: st.DropColumn) -> None:
    column = next((c for c in relation.live if c.name == action.name), None)
    if column is None:
        message = f'column "{action.name}" of relation "{relation.name}" does not exist'
        if not action.if_exists:
            raise SqlError("42703", message)
        session.notice(f"{message}, skipping", sqlstate="00000")
        return
    attnum = column.attnum
    checks = [
        c for c in relation.constraints if c.kind == "c" and attnum in _check_columns(session, relation, c)
    ]
    indexes = tuple(i for i in relation.indexes if attnum not in i.attnums and attnum not in i.include)
    kept = {i.oid for i in indexes}
    constraints = tuple(
        c
        for c in relation.constraints
        if (c.kind == "c" and c not in checks)
        or (c.kind in "pu" and c.index_oid in kept)
        or (c.kind == "f" and attnum not in c.attnums)
    )
    keys = [
        (child, c)
        for child, c in session.catalog.foreign_keys_to(relation.oid)
        if c.foreign is not None and attnum in c.foreign.attnums
        if child.oid != relation.oid or c in constraints
    ]
    columns = tuple(
        replace(
            c,
            name=f"........pg.dropped.{attnum}........",
            dropped=True,
            not_null=False,
            default_sql=None,
            identity="",
        )
        if c.attnum == attnum
        else c
        for c in relation.columns
    )
    changed = replace(relation, columns=columns, indexes=indexes, constraints=constraints)
    broken = _views_that_break(session, relation, changed)
    others = [described(session, v) for v in broken] + [define.depends_text(session, key) for key in keys]
    sequences = owned_by(session, relation.oid, attnum)
    drawing = [
        (table, column)
        for sequence in sequences
        for table, column in drawing_columns(session, sequence.oid)
        if (table.oid, column.attnum) != (relation.oid, attnum)
    ]
    drawn = [default_words(session, *pair) for pair in drawing]
    if (others or drawn) and not action.cascade:
        lines = [f"{other} depends on column {action.name} of table {relation.name}" for other in others]
        lines += [f"{words} depends on sequence {shown_name(session, sequences[0])}" for words in drawn]
        raise SqlError(
            "2BP01",
            f"cannot drop column {action.name} of table {relation.name} because other objects depend on it",
            detail="\n".join(lines),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    if others or drawn:
        notice_cascade(session, others + drawn)
        await drop_relations(session, broken, cascade=True, quiet=True)
        await define.drop_foreign_keys(session, [key for key in keys if key[0].oid != relation.oid])
        dropped = {c.oid for _child, c in keys}
        constraints = tuple(c for c in constraints if c.oid not in dropped)
        changed = replace(changed, constraints=constraints)
    gone = [c for c in relation.constraints if c not in constraints]
    if drawing:
        changed = await drop_defaults(session, drawing, changed) or changed
    if sequences:
        await session.view.change([], [key_of(sequence) for sequence in sequences])
    await define.touch(session, define.referenced_oids(gone, [relation.oid]))
    await _store(session, changed)


def _check_columns(session: Session, relation: RelationDef, constraint: Any) -> set[int]:
    expr = bind_check(constraint.check_sql, relation, session.catalog, settings=session.bind_settings)
    return {node.attnum for node in walk(expr) if isinstance(node, Var)}


def _views_that_break(session: Session, before: RelationDef, after: RelationDef) -> list[RelationDef]:
    """Return the views that can no longer be bound once ``after`` replaces ``before``."""
    trial = session.catalog.with_changes([after], [], session.db.next_catalog_version())
    broken = []
    for view in session.catalog.user_relations():
        if view.kind in "vm" and before.oid in view.depends_on:
            try:
                rebase_view(view, trial, trial, settings=session.bind_settings)
            except SqlError:
                broken.append(view)
    return broken


async def _add_key(session: Session, relation: RelationDef, action: st.AddKey) -> None:
    changed = add_keys(session, relation, [action.key])
    if action.key.primary:
        for column in changed.live:
            if column.not_null and not relation.columns[column.attnum - 1].not_null:
                await _require_no_rows_null(session, relation, column)
    await _store(session, changed)


async def _add_check(session: Session, relation: RelationDef, action: st.AddCheck) -> None:
    changed = add_checks(session, relation, [action.check], validated=not action.not_valid)
    if not action.not_valid:
        await _validate_checks(session, changed, changed.constraints[-1:])
    await _store(session, changed)


async def _add_foreign_key(session: Session, relation: RelationDef, action: st.AddForeignKey) -> None:
    changed = await define.add_foreign_keys(session, relation, [action.key])
    await _store(session, changed)
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
        if session.block.state is not BlockState.BLOCK:
            raise
        # the block may have mended what is committed: its own view decides, under locks
        await _check_existing(session, relation, constraint, None)
    finally:
        reader.rollback()


async def _check_existing(
    session: Session, relation: RelationDef, constraint: ConstraintDef, reader: Transaction | None
) -> None:
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
    await _store(session, _with_constraint(relation, changed))


async def _drop_constraint(session: Session, relation: RelationDef, action: st.DropConstraint) -> None:
    constraint = next((c for c in relation.constraints if c.name == action.name), None)
    if constraint is None:
        message = f'constraint "{action.name}" of relation "{relation.name}" does not exist'
        if not action.if_exists:
            raise SqlError("42704", message)
        session.notice(f"{message}, skipping")
        return
    if constraint.kind == "f":
        await define.touch(session, define.referenced_oids([constraint], [relation.oid]))
    elif constraint.kind in "pu":
        await _drop_keys_on(session, relation, constraint, cascade=action.cascade)
    latest = session.catalog.relation_by_oid(relation.oid) or relation
    index_oid = constraint.index_oid if constraint.kind in "pu" else 0
    await _store(
        session,
        replace(
            latest,
            constraints=tuple(c for c in latest.constraints if c.oid != constraint.oid),
            indexes=tuple(i for i in latest.indexes if i.oid != index_oid),
        ),
    )


async def _drop_keys_on(
    session: Session, relation: RelationDef, constraint: ConstraintDef, *, cascade: bool
) -> None:
    """Drop the foreign keys that refer to a key about to be dropped, or refuse (2BP01)."""
    keys = define.dependents(session, [relation.oid], [constraint.index_oid])
    names = [define.depends_text(session, key) for key in keys]
    if names and not cascade:
        raise SqlError(
            "2BP01",
            f"cannot drop constraint {constraint.name} on table {relation.name} "
            "because other objects depend on it",
            detail="\n".join(f"{name} depends on index {constraint.name}" for name in names),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    notice_cascade(session, names)
    await define.drop_foreign_keys(session, keys)


async def _set_schema(session: Session, relation: RelationDef, name: str) -> None:
    """SET SCHEMA: the relation with its indexes moves; views that read it name it anew."""
    from engine.ddl.create import rebase_views

    schema = session.catalog.schema(name)
    if schema is None:
        raise SqlError("3F000", f'schema "{name}" does not exist')
    if name in ("pg_catalog", "information_schema") or "pg_temp" in (name[:7], relation.schema[:7]):
        raise SqlError("0A000", "cannot move objects into or out of temporary schemas"
                       if "pg_temp" in (name[:7], relation.schema[:7])
                       else f"cannot move objects into schema {name}")  # fmt: skip
    if schema.name == relation.schema:
        return
    _refuse_if_owned(session, relation, "cannot move an owned sequence into another schema")
    owned = session.catalog.sequences_of(relation.oid)
    for taken in (relation.name, *(index.name for index in relation.indexes), *(s.name for s in owned)):
        if session.catalog.relation(name, taken) is not None:
            raise SqlError("42P07", f'relation "{taken}" already exists in schema "{name}"')
    before = session.catalog
    await _store(session, replace(relation, schema=name, schema_oid=schema.oid))
    if owned:
        await session.view.change([replace(s, schema=name, schema_oid=schema.oid) for s in owned])
    await rebase_views(session, relation.oid, before)


def _find_column(relation: RelationDef, name: str) -> ColumnDef:
    for column in relation.live:
        if column.name == name:
            return column
    raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')


async def _change_column(session: Session, relation: RelationDef, name: str, **changes: Any) -> None:
    column = _find_column(relation, name)
    columns = tuple(replace(c, **changes) if c.attnum == column.attnum else c for c in relation.columns)
    await _store(session, replace(relation, columns=columns))


async def _alter_type(
    session: Session, plan: Plan, relation: RelationDef, action: st.AlterColumnType
) -> None:
    """ALTER COLUMN TYPE: rows change where their values, or the form they are stored in, change.

    Raises SqlError 0A000 where a view reads the column, what USING raises, 23502, 23514, 23505.
    """
    column = _find_column(relation, action.column)
    _refuse_if_viewed(session, relation, column)
    after = replace(
        column,
        type=action.type,
        default_sql=action.default_sql,
        collation=action.collation,
    )
    rewrites = action.rewrites or physical_type(column.type) != physical_type(action.type)
    if rewrites:
        after = replace(after, missing_value=None)  # every row now holds a value of its own
    columns = tuple(after if c.attnum == column.attnum else c for c in relation.columns)
    changed = _with_checks_rebound(session, replace(relation, columns=columns))
    if not rewrites:
        await _store(session, changed)
        await define.rebuild(session, changed, column.attnum)
        return
    env = make_env(context(session, plan, ()))
    make = compile_expr(action.using, table_layout(relation))
    position = column.attnum - 1
    check = RowCheck(session, changed, [c for c in changed.constraints if c.kind == "c"])
    refuse = refusal(after)
    rows: list[Row] = []
    async for chunk in _rows(session, relation):
        new: list[Row] = []
        for row in chunk:
            value = make((*row, relation.oid), env)
            if value is None and after.not_null:
                raise _has_nulls(relation, after)
            if refuse is not None:
                refuse(value)
            new.append((*row[:position], value, *row[position + 1 :]))
        check(new)
        rows += new
    await _store(session, changed)
    await _rewrite(session, changed, rows)
    await define.rebuild(session, changed, column.attnum)


def _refuse_if_viewed(session: Session, relation: RelationDef, column: ColumnDef) -> None:
    """Raise 0A000 if a view reads the column: it cannot be bound without it."""
    without = tuple(replace(c, dropped=True) if c.attnum == column.attnum else c for c in relation.columns)
    broken = _views_that_break(session, relation, replace(relation, columns=without))
    if broken:
        raise SqlError(
            "0A000",
            "cannot alter type of a column used by a view or rule",
            detail=f'rule _RETURN on {described(session, broken[0])} depends on column "{column.name}"',
        )


def _with_checks_rebound(session: Session, relation: RelationDef) -> RelationDef:
    """Return a table with its CHECKs bound under its new column types; 42883 where one has no meaning."""
    constraints = []
    for constraint in relation.constraints:
        if constraint.kind == "c":
            try:
                expr = bind_check(
                    constraint.check_sql, relation, session.catalog, settings=session.bind_settings
                )
            except SqlError as error:
                error.span = None  # it would point into another text
                raise
            constraint = replace(constraint, check_sql=deparse_check(expr, relation))
        constraints.append(constraint)
    return replace(relation, constraints=tuple(constraints))


async def _set_not_null(session: Session, relation: RelationDef, action: st.SetNotNull) -> None:
    column = _find_column(relation, action.column)
    if action.not_null:
        await _require_no_rows_null(session, relation, column)
    elif any(i.primary and column.attnum in i.attnums for i in relation.indexes):
        raise SqlError("42P16", f'column "{action.column}" is in a primary key')
    await _change_column(session, relation, action.column, not_null=action.not_null)
