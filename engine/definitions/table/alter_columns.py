"""ALTER TABLE's actions on columns. Stored rows are touched only where their values must change
(docs/internals/storage.md).

ADD COLUMN with a constant default is a catalog entry (the missing value); with a volatile default, or a
generated column, the rows are rewritten. DROP COLUMN leaves the slot in old rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.catalog.graph import is_named
from engine.catalog.physical import physical_type
from engine.catalog.references import identities
from engine.catalog.row_parts import columns_holding
from engine.catalog.storage.stored import PG_CLASS_OID, key_of, row_array_oid, row_type_oid
from engine.changes.writes.returning import make_env
from engine.changes.writes.shape import TableShape, table_layout
from engine.definitions import constraints as define
from engine.definitions import functions
from engine.definitions.dropping.dependency_walk import Address, lines, told_with
from engine.definitions.dropping.dependents import Dependency, in_report_order, still_needed
from engine.definitions.dropping.drop import drop_defaults, drop_relations, table_of
from engine.definitions.dropping.notices import notice_cascade
from engine.definitions.roles import function_words
from engine.definitions.sequences import drawing_columns, owned_by, retype_identity, with_sequences
from engine.definitions.stored_queries import rebase_queries
from engine.definitions.table.column_dependents import Losses, dependencies
from engine.definitions.table.held_rows import refuse_held_rows, renew_holders, repack_rows
from engine.definitions.table.keys import add_checks, add_keys
from engine.definitions.table.policies import comments_of as policy_comments
from engine.definitions.table.policies import drop_policies, policies_on, policy_words
from engine.definitions.table.rewrite import (
    RowCheck,
    completing,
    locked_rows,
    rewrite_rows,
    store_definition,
    store_with_hidden,
    to_be_rewritten,
    validate_checks,
)
from engine.definitions.table.row_readers import readers_of
from engine.definitions.table.statistics_parts import without_statistics_on
from engine.definitions.table.trigger_dependencies import (
    columns_of,
    comments_of,
    trigger_words,
    without_triggers,
)
from engine.definitions.table.unbuilt import build_unbuilt
from engine.plans.query import context
from engine.session.catalog.names import described
from engine.session.in_use import refuse_change
from engine.session.plans.plan import Plan
from pgwire.give_way import opening, openly, paced_iter
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind import bind_check, deparse_check, generated_from, rebase_view
from planner.bind.define.statistics import retyped_statistics
from planner.bind.define.table.generated import columns_used
from planner.bind.define.table.index import (
    dropped_column,
    named_anew,
    rebound_indexes,
    with_hidden,
    without_indexes,
)
from planner.bind.stored.domain_checks import demand
from planner.bind.stored.evaluated import column_default, stored_default
from planner.catalog import ColumnDef, IndexDef, RelationDef
from planner.catalog.relation_kinds import BY_QUERY
from planner.catalog.row_parts import refuse_member
from planner.evaluate import compile_expr
from planner.query import Expr
from planner.statements.classify import is_volatile
from planner.types.domains import domain_named, plain_type
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session

MAX_COLUMNS = 1600


async def add_column(session: Session, plan: Plan, relation: RelationDef, action: st.AddColumn) -> None:
    """ADD COLUMN. Raises SqlError 42701, 54011, and what its default, keys and constraints raise for the rows
    there are.
    """
    spec = action.column
    if any(c.name == spec.name for c in relation.live):
        message = f'column "{spec.name}" of relation "{relation.name}" already exists'
        if not action.if_not_exists:
            raise SqlError("42701", message)
        session.notice(f"{message}, skipping", sqlstate="42701")
        return
    if len(relation.numbers) >= MAX_COLUMNS:
        raise SqlError("54011", f"tables can have at most {MAX_COLUMNS} columns")
    refuse_member(session.catalog, row_type_oid(relation.oid), spec.type.oid)
    session.block.ensure_txn()
    slot = ColumnDef(
        attnum=len(relation.columns) + 1, name=spec.name, type=spec.type, collation=spec.collation
    )
    drawing, sequences = with_sequences(session, replace(relation, columns=(*relation.columns, slot)), [spec])
    if sequences:
        sql = drawing.columns[-1].default_sql
        if sql is None:
            raise AssertionError("the added column has no default")
        spec = replace(spec, default_sql=sql, default=stored_default(sql, spec.type, session.catalog))
        await session.view.change(sequences)
    if spec.default is None and not spec.generated:
        slot = replace(slot, type=plain_type(spec.type), domain=domain_named(spec.type))
        spec = replace(spec, default=column_default(slot, session.catalog))  # that of its domain, if any
    if relation.stored and (spec.default is not None or spec.generated):
        refuse_held_rows(session.catalog, relation)
    missing: Any = None
    volatile = spec.default is not None and is_volatile(spec.default)
    env = make_env(context(session, plan, ()))
    if spec.default is not None:
        session.ask_calls(_called_by(session, spec))
    if spec.default is not None and not volatile:
        missing = compile_expr(spec.default)((), env)
    column = ColumnDef(
        attnum=len(relation.columns) + 1,
        name=spec.name,
        type=plain_type(spec.type),
        not_null=spec.not_null,
        default_sql=spec.default_sql,
        missing_value=missing,
        collation=spec.collation,
        identity=spec.identity,
        generated=spec.generated,
        domain=domain_named(spec.type),
        dims=spec.dims,
        compression=spec.compression,
        foreign_options=spec.foreign_options,
    )
    before = session.catalog
    changed = replace(relation, columns=(*relation.columns, column))
    changed = add_keys(session, changed, action.keys)
    changed = add_checks(session, changed, action.checks)
    changed = await define.add_foreign_keys(session, changed, action.foreign_keys, validated=True)
    if volatile or column.generated:
        make = None if spec.default is None else compile_expr(spec.default)
        shape = TableShape.of(changed, session)
        complete = completing(session, shape, env)
        check = RowCheck(session, changed, [c for c in changed.constraints if c.kind == "c"])

        def longer(rows: Sequence[Row]) -> Sequence[Row]:
            made = complete([(*row, None if make is None else openly(make, (), env)) for row in rows])
            if column.not_null and any(row[-1] is None for row in made):
                raise _has_nulls(relation, column)
            check(made)
            openly(shape.check_stored, made, session)
            return made

        changed = to_be_rewritten(changed)
        await rewrite_rows(session, relation, changed, longer)
        await define.validate(session, changed, changed.constraints[len(relation.constraints) :])
        await rebase_queries(session, {relation.oid}, before)
        return
    if missing is None and (column.not_null or changed.columns[-1].not_null):
        await require_no_nulls(session, relation, changed.columns[-1])
    demanded = demand(session.catalog, column.domain)
    if demanded is not None:
        async for chunk in locked_rows(session, relation):
            if chunk:  # every row has the same value
                demanded(missing, session)
                break
    await store_definition(session, changed)
    added = changed.constraints[len(relation.constraints) :]
    if action.checks:
        await validate_checks(session, changed, [c for c in added if c.kind == "c"])
    if missing is not None:  # NULL refers to nothing
        await define.validate(session, changed, added)
    await rebase_queries(session, {relation.oid}, before)
    await renew_holders(session, changed)


async def require_no_nulls(session: Session, relation: RelationDef, column: ColumnDef) -> None:
    """Raise 23502 if any row has NULL in ``column`` (absent in rows older than it)."""
    position = column.attnum - 1
    async for chunk in locked_rows(session, relation):
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


async def drop_column(
    session: Session, relation: RelationDef, action: st.DropColumn, *, quiet: bool = False
) -> None:
    """DROP COLUMN, with what stands on it alone. Raises SqlError 42703; 2BP01 for what needs CASCADE.

    ``quiet``: what CASCADE drops has been told.
    """
    from engine.definitions.dropping.field_uses import selecting  # it drops columns of other tables
    from engine.definitions.dropping.function_uses import drop_naming, links_to_relations  # as this

    column = next((c for c in relation.live if c.name == action.name), None)
    if column is None:
        message = f'column "{action.name}" of relation "{relation.name}" does not exist'
        if not action.if_exists:
            raise SqlError("42703", message)
        session.notice(f"{message}, skipping", sqlstate="00000")
        return
    row_type = row_type_oid(relation.oid)
    holding = list(columns_holding(session.catalog, row_type, row_array_oid(relation.oid)))
    computed = generated_from(relation, (column.attnum,), session.catalog)
    generated = [relation.column(a) for a in computed if not relation.column(a).hidden]
    gone_too = {column.attnum, *computed}
    checks = [
        c
        for c in relation.constraints
        if c.kind == "c" and not gone_too.isdisjoint(_check_columns(session, relation, c))
    ]
    lost = {i.oid for i in relation.every_index if not gone_too.isdisjoint(i.kept + i.include + i.written)}
    # an exclusion constraint goes with its columns, but depends on what its expressions and WHERE read
    named = {i.oid for i in relation.every_index if not gone_too.isdisjoint(i.key_columns + i.include)}
    reading = [
        c
        for c in relation.exclusions
        if c.index_oid not in named
        and (
            c.index_oid in lost
            or (c.check_sql and not gone_too.isdisjoint(_check_columns(session, relation, c)))
        )
    ]
    lost |= {c.index_oid for c in reading}
    remaining = without_indexes(relation, lost)
    indexes = remaining.indexes
    unbuilt = remaining.unbuilt
    kept = {i.oid for i in indexes}
    constraints = tuple(
        c
        for c in relation.constraints
        if (c.kind == "c" and c not in checks)
        or (c.kind in "pux" and c.index_oid in kept)
        or (c.kind == "f" and gone_too.isdisjoint(c.attnums))
        or c.kind == "t"
    )
    keys = [
        (child, c)
        for child, c in session.catalog.foreign_keys_to(relation.oid)
        if c.foreign is not None and not gone_too.isdisjoint(c.foreign.attnums)
        if child.oid != relation.oid or c in constraints
    ]
    changed = replace(relation, columns=remaining.columns)
    changed = without_columns(without_statistics_on(changed, gone_too, session.catalog), gone_too)
    changed = replace(changed, indexes=indexes, unbuilt=unbuilt, constraints=constraints)
    broken = views_that_break(session, relation, changed)
    fired = [
        t for t in relation.triggers if not gone_too.isdisjoint(columns_of(t, relation, session.catalog))
    ]
    changed = without_triggers(changed, fired)
    lost_policies = policies_on(session.catalog, relation, gone_too)
    own_lost = [policy for table, policy in lost_policies if table.oid == relation.oid]
    changed = replace(changed, policies=tuple(p for p in changed.policies if p not in own_lost))
    called = functions.functions_that_break(session, relation, changed)
    uses = selecting(session, changed, column.name, {row_type, row_array_oid(relation.oid)})
    by_rows = {use.what for use in uses.parts if use.kind == "policy" and use.relation.oid == relation.oid}
    own_lost += [policy for policy in changed.policies if policy.name in by_rows]
    changed = replace(changed, policies=tuple(p for p in changed.policies if p not in own_lost))
    broken += uses.views
    called += uses.functions
    views_too, _, links = functions.dependents(session, [f.oid for f in called])
    broken += [v for v in views_too if v not in broken]
    sequences = owned_by(session, relation.oid, column.attnum)
    drawing = [
        (table, other)
        for _sequence, table, other in drawing_columns(session, {sequence.oid for sequence in sequences})
        if (table.oid, other.attnum) != (relation.oid, column.attnum)
    ]
    shown = [column, *generated]
    losses = Losses(
        relation=relation, column=column, generated=generated, broken=[v for v in broken if v not in views_too],
        views={c.attnum: views_that_break(session, relation, without_columns(relation, {c.attnum})) for c in shown},
        triggers=fired, keys=keys, functions=called, links=links, sequences=sequences, drawing=drawing,
    )  # fmt: skip
    hanging = dependencies(session, losses) + uses.dependencies(session, losses.root)
    owned = {sequence.oid for sequence in sequences}
    naming = links_to_relations(session, owned) if owned else []
    hanging += [Dependency(oid, oid, "", losses.root) for oid in owned] + naming
    hanging += [
        Dependency(c.oid, c.oid, f"constraint {c.name} on {described(session, relation)}", losses.root)
        for c in reading
    ]
    hangs = [one for one in in_report_order([losses.root], hanging) if one.what]
    if hangs and not (action.cascade and quiet):
        asked = Address(PG_CLASS_OID, relation.oid, relation.number(column.attnum))
        told = openly(told_with, session, [asked], hangs, lambda one: functions.words_of(session, one.on))
        if not action.cascade:
            raise still_needed(functions.words_of(session, losses.root), lines(told))
        notice_cascade(session, [one.what for one in told])
    if hangs:
        if naming:  # of this table, too, perhaps
            await drop_naming(session, owned)
            await drop_column(session, table_of(session, relation.oid), action, quiet=True)
            return
        await functions.drop_functions(session, called, cascade=True, quiet=True)
        await uses.drop_parts(session)
        broken = [v for v in broken if session.catalog.relation_by_oid(v.oid) is not None]
        await drop_relations(session, broken, cascade=True, quiet=True)
        await define.drop_foreign_keys(session, [key for key in keys if key[0].oid != relation.oid])
        if (
            table_of(session, relation.oid).columns != relation.columns
        ):  # what hangs on it was of this table, too
            await drop_column(session, table_of(session, relation.oid), action, quiet=True)
            return
        dropped = {c.oid for _child, c in keys}
        constraints = tuple(c for c in constraints if c.oid not in dropped)
        changed = replace(changed, constraints=constraints)
    gone = [c for c in relation.constraints if c not in constraints]
    if drawing:
        changed = await drop_defaults(session, drawing, changed) or changed
    if sequences:
        await session.view.change([], [key_of(sequence) for sequence in sequences])
    if fired:
        await session.view.change([], comments_of(fired))
    for table, policy in lost_policies:
        if table.oid != relation.oid:
            await drop_policies(session, table_of(session, table.oid), [policy])
    await session.view.change([], policy_comments(own_lost))
    await define.touch(session, define.referenced_oids(gone, [relation.oid]))
    before = session.catalog
    await store_definition(session, changed)
    await rebase_queries(session, {relation.oid}, before)
    await renew_holders(session, changed)
    await repack_rows(session, row_type, holding)


def _called_by(session: Session, spec: st.ColumnSpec) -> set[int]:
    """Return the functions that the default of a new column calls, be it its domain's."""
    called: set[int] = set()
    column = ColumnDef(
        attnum=1,
        name=spec.name,
        type=plain_type(spec.type),
        default_sql=spec.default_sql,
        domain=domain_named(spec.type),
    )
    column_default(column, session.catalog, called, calls=True)
    return called


async def add_computed_index(
    session: Session, plan: Plan, table: RelationDef, index: IndexDef, hidden: Sequence[ColumnDef]
) -> None:
    """Add an expression or partial index with its columns: every row gets a value of them. Raises SqlError 23505."""
    refuse_change(session, table, "CREATE INDEX")
    changed = replace(with_hidden(table, hidden), indexes=(*table.indexes, index))
    await fill_hidden(session, plan, table, changed)


async def fill_hidden(session: Session, plan: Plan, table: RelationDef, changed: RelationDef) -> None:
    """Store a definition that has more hidden columns than ``table``, and their value in every row. Raises
    SqlError 23505.
    """
    await store_with_hidden(session, table, changed, make_env(context(session, plan, ())))


def without_columns(relation: RelationDef, attnums: Collection[int]) -> RelationDef:
    """Return a table as it is when columns of it are dropped, the constraints and indexes left as they are."""
    columns = tuple(dropped_column(c) if c.attnum in attnums else c for c in relation.columns)
    return replace(relation, columns=columns)


async def drop_expression(session: Session, relation: RelationDef, action: st.DropExpression) -> None:
    """ALTER COLUMN DROP EXPRESSION: rows keep what was computed."""
    if action.notice:
        session.notice(action.notice)
        return
    await change_column(session, relation, action.column, generated="", default_sql=None)


def _check_columns(session: Session, relation: RelationDef, constraint: Any) -> set[int]:
    expr = bind_check(constraint.check_sql, relation, session.catalog, settings=session.bind_settings)
    return set(columns_used(expr))


@opening
def views_that_break(session: Session, before: RelationDef, after: RelationDef) -> list[RelationDef]:
    """Return the views that can be bound, but no longer once ``after`` replaces ``before``: as they would be
    written then.
    """
    if not is_named(session.catalog, identities(before)):
        return []
    trial = session.catalog.with_changes([after], [], session.db.next_catalog_version())
    broken = []
    readers = readers_of(session.catalog, {before.oid})
    for view in paced_iter(readers.relations(session.catalog)):
        if view.kind in BY_QUERY and readers.reads(view.depends_on, view.view_sql):
            try:
                text = rebase_view(view, session.catalog, trial, settings=session.bind_settings)
                if before.kind != "v":  # a view has all columns of its query as long as it is there
                    rebase_view(replace(view, view_sql=text), trial, trial, settings=session.bind_settings)
            except SqlError as error:
                if error.ends_statement:
                    raise
                if _can_be_bound(session, view):
                    broken.append(view)
    return broken


def _can_be_bound(session: Session, view: RelationDef) -> bool:
    catalog = session.catalog
    try:
        rebase_view(view, catalog, catalog, settings=session.bind_settings)
    except SqlError as error:
        if error.ends_statement:
            raise
        return False
    return True


def _find_column(relation: RelationDef, name: str) -> ColumnDef:
    for column in relation.live:
        if column.name == name:
            return column
    raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')


async def change_column(session: Session, relation: RelationDef, name: str, **changes: Any) -> None:
    """Store other attributes of one column. Raises SqlError 42703."""
    column = _find_column(relation, name)
    columns = tuple(replace(c, **changes) if c.attnum == column.attnum else c for c in relation.columns)
    await store_definition(session, replace(relation, columns=columns))


async def alter_types(
    session: Session, plan: Plan, relation: RelationDef, retypes: Sequence[st.ColumnRetype]
) -> None:
    """All ALTER COLUMN TYPE of a statement: rows change where their values, or the form they are stored in, change.

    Raises SqlError 0A000 where a view, a trigger or an exclusion constraint reads a column, what USING
    raises, 23502, 23514, 23505.
    """
    retyped = [await _retyped(session, relation, action) for action in retypes]
    by_attnum = {one.after.attnum: one.after for one in retyped}
    columns = tuple(by_attnum.get(c.attnum, c) for c in relation.columns)
    changed = _with_checks_rebound(session, replace(relation, columns=columns))
    changed = named_anew(changed, {*by_attnum, *generated_from(relation, tuple(by_attnum), session.catalog)})
    if any(index.computed for index in changed.every_index):
        try:
            changed = rebound_indexes(changed, changed, session.catalog)
        except SqlError as error:
            error.span = None  # it would point into another text
            raise
    for attnum in by_attnum if changed.statistics else ():
        changed = _with_statistics_rebound(session, changed, attnum)
    rewritten = [one for one in retyped if one.rewrites]
    if rewritten:
        changed = to_be_rewritten(changed)
        rows = _retyping(session, plan, relation, changed, rewritten)
        await rewrite_rows(session, relation, changed, rows)
    else:
        await store_definition(session, changed)
    for attnum in by_attnum:
        await define.rebuild(session, changed, attnum)
    over = [i.oid for i in changed.unbuilt if not by_attnum.keys().isdisjoint(i.key_columns + i.include)]
    await build_unbuilt(session, changed, over)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Retyped:
    """A column as it will be; ``rewrites``: its values, or the form they are stored in, change."""

    after: ColumnDef
    using: Expr
    rewrites: bool


async def _retyped(session: Session, relation: RelationDef, action: st.ColumnRetype) -> _Retyped:
    """Return what a column will be, once nothing is found that forbids it; the sequence of an identity column
    follows it.
    """
    column = _find_column(relation, action.column)
    _refuse_if_viewed(session, relation, column)
    refuse_member(session.catalog, row_type_oid(relation.oid), action.type.oid)
    if column.identity and column.type != action.type:
        await retype_identity(session, relation, column, action.type.oid)
    after = replace(
        column,
        type=plain_type(action.type),
        domain=domain_named(action.type),
        dims=action.dims,
        default_sql=column.default_sql if column.identity else action.default_sql,
        collation=action.collation,
        storage="",  # the new type's
        compression="",
    )
    rewrites = bool(
        action.rewrites or column.generated or physical_type(column.type) != physical_type(after.type)
    )
    if rewrites or after.type.oid != column.type.oid:
        refuse_held_rows(session.catalog, relation)
    touched = {column.attnum, *generated_from(relation, (column.attnum,), session.catalog)}
    for exclusion in relation.exclusions:
        looked_at = set(exclusion.attnums)
        if exclusion.check_sql:
            looked_at |= _check_columns(session, relation, exclusion)
        if rewrites and not touched.isdisjoint(looked_at):
            raise not_supported(f'ALTER COLUMN TYPE of a column in exclusion constraint "{exclusion.name}"')
    return _Retyped(after=after, using=action.using, rewrites=rewrites)


def _retyping(
    session: Session, plan: Plan, before: RelationDef, after: RelationDef, retyped: Sequence[_Retyped]
) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Return what makes rows of a table as it was into rows of what it will be, checked."""
    env = make_env(context(session, plan, ()))
    layout = table_layout(before)
    makers = [(one.after, compile_expr(one.using, layout)) for one in retyped]
    check = RowCheck(session, after, [c for c in after.constraints if c.kind == "c"])
    complete = completing(session, TableShape.of(after, session), env)

    def made(rows: Sequence[Row]) -> Sequence[Row]:
        new: list[Row] = []
        for row in rows:
            values = list(row)
            for column, make in makers:
                value = openly(make, (*row, before.oid), env)
                if value is None and column.not_null:
                    raise _has_nulls(before, column)
                values[column.attnum - 1] = value
            new.append(tuple(values))
        check(new)
        return complete(new)

    return made


def _with_statistics_rebound(session: Session, relation: RelationDef, attnum: int) -> RelationDef:
    """Return a table with its extended statistics bound under the new type of a column. Raises SqlError as
    ``retyped_statistics``.
    """
    try:
        return replace(relation, statistics=retyped_statistics(relation, attnum, session.catalog))
    except SqlError as error:
        error.span = None  # it would point into another text
        raise


def _refuse_if_viewed(session: Session, relation: RelationDef, column: ColumnDef) -> None:
    """Raise 0A000 if a view reads the column, which cannot be bound without it, or a trigger names it."""
    without = tuple(replace(c, dropped=True) if c.attnum == column.attnum else c for c in relation.columns)
    broken = views_that_break(session, relation, replace(relation, columns=without))
    if broken:
        reading_it = [view for view in broken if relation.oid in view.depends_on]  # not only views of views
        shown = described(session, (reading_it or broken)[0])
        raise SqlError(
            "0A000",
            "cannot alter type of a column used by a view or rule",
            detail=f'rule _RETURN on {shown} depends on column "{column.name}"',
        )
    for trigger in relation.triggers:
        if column.attnum in columns_of(trigger, relation, session.catalog):
            raise SqlError(
                "0A000",
                "cannot alter type of a column used in a trigger definition",
                detail=f'{trigger_words(session, trigger, relation)} depends on column "{column.name}"',
            )
    for table, policy in policies_on(session.catalog, relation, [column.attnum]):
        raise SqlError(
            "0A000",
            "cannot alter type of a column used in a policy definition",
            detail=f'{policy_words(session, policy, table)} depends on column "{column.name}"',
        )
    called = functions.functions_that_break(session, relation, replace(relation, columns=without))
    if called:
        raise SqlError(
            "0A000",
            "cannot alter type of a column used by a function or procedure",
            detail=f'{function_words(session, called[0])} depends on column "{column.name}"',
        )


def _with_checks_rebound(session: Session, relation: RelationDef) -> RelationDef:
    """Return a table with its CHECKs bound under its new column types; 42883 where one has no meaning."""
    constraints = []
    for constraint in relation.constraints:
        if constraint.check_sql:
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


async def set_not_null(session: Session, relation: RelationDef, action: st.SetNotNull) -> None:
    """SET and DROP NOT NULL. Raises SqlError 42703, 23502, 42P16."""
    column = _find_column(relation, action.column)
    if action.not_null:
        await require_no_nulls(session, relation, column)
    elif any(i.primary and column.attnum in i.attnums for i in relation.indexes):
        raise SqlError("42P16", f'column "{action.column}" is in a primary key')
    await change_column(session, relation, action.column, not_null=action.not_null)
