"""DROP and TRUNCATE: what else depends on an object, and goes with it or keeps it.

    views          depend on the tables and views they read
    foreign keys   on the tables and unique indexes they refer to (``engine.definitions.constraints``)

Without CASCADE a dependent object refuses the DROP (2BP01 with a line for each); TRUNCATE refuses tables that
others refer to (0A000).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from engine.base.eager import settle
from engine.catalog.physical import shard_spec
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    StoredKey,
    key_of,
    row_array_oid,
    row_type_oid,
)
from engine.changes.triggers.firing import firing_of
from engine.definitions import constraints as define
from engine.definitions import functions as depends
from engine.definitions.dropping.dependency_walk import Address, lines, told_with
from engine.definitions.dropping.dependents import Dependency, in_report_order, still_needed
from engine.definitions.dropping.notices import kept_about, notice_cascade
from engine.definitions.namings import Namings
from engine.definitions.needs import sourced
from engine.definitions.sequences import check_droppable, drawing_columns, restart_owned
from engine.definitions.table.keys import building_indexes
from engine.definitions.table.policies import drop_policies, policies_over, policy_words
from engine.definitions.table.statistics_parts import drop_statistics_in
from engine.definitions.table.trigger_dependencies import triggers_from
from engine.definitions.table.truncated import refuse_referenced, truncated
from engine.definitions.table.unbuilt import build_unbuilt
from engine.session.catalog.names import described, resolve, schema_called
from engine.session.catalog.wants import views_over
from engine.session.in_use import refuse_change
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.give_way import between, give_way, opening, openly, spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.table.index import without_indexes
from planner.catalog import ColumnDef, ConstraintDef, RelationDef
from planner.catalog.policy import PolicyDef
from planner.catalog.relation_kinds import BY_QUERY, RELATION_KINDS, ROW_TYPED
from planner.partitions.bounds import ancestors, descendants
from txn.api import Transaction
from txn.base.types import ShardId

Params = tuple[Any, ...]


def table_of(session: Session, oid: int) -> RelationDef:
    """Return a table that the statement was bound against; 42P01 if it is gone."""
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        raise SqlError("42P01", f"relation with oid {oid} does not exist")
    return relation


async def replace_table(session: Session, relation: RelationDef) -> None:
    """Store a changed table and change its shard to match."""
    if relation.stored:
        with building_indexes(relation, session):
            await settle(session.block.ensure_txn().alter_shard(shard_spec(relation)))
    await session.view.change([relation])


async def drop(session: Session, plan: Plan, statement: st.Drop, params: Params) -> Outcome:
    """DROP [FOREIGN] TABLE | VIEW | MATERIALIZED VIEW | INDEX | SEQUENCE | SCHEMA."""
    if statement.what == "schema":
        from engine.definitions.dropping.drop_schema import drop_schemas  # it drops relations

        await drop_schemas(session, statement)
        return Command("DROP SCHEMA")
    targets: list[RelationDef] = []
    for schema, name in statement.names:
        await session.cancelled.turn()  # there may be thousands
        relation = resolve(session, schema, name)
        if relation is None:
            if schema and session.catalog.schema(schema_called(session, schema)) is None:
                if not statement.if_exists:
                    raise SqlError("3F000", f'schema "{schema}" does not exist')
                session.notice(f'schema "{schema}" does not exist, skipping')
                continue
            if not statement.if_exists:
                state = "42704" if statement.what in ("index", "foreign table") else "42P01"
                raise SqlError(state, f'{statement.what} "{name}" does not exist')
            session.notice(f'{statement.what} "{name}" does not exist, skipping')
            continue
        kind = "type" if relation.kind == "c" else RELATION_KINDS[relation.kind].word
        if kind != statement.what:
            article = "an" if statement.what == "index" else "a"
            raise SqlError(
                "42809",
                f'"{relation.name}" is not {article} {statement.what}',
                hint=f"Use DROP {kind.upper()} to remove {'an' if kind == 'index' else 'a'} {kind}.",
            )
        if relation.virtual:
            raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
        targets.append(relation)
    if statement.what == "index":
        await _drop_indexes(session, targets, cascade=statement.cascade, concurrently=statement.concurrently)
    else:
        await drop_relations(session, targets, cascade=statement.cascade)
    return Command(plan.bound.tag)


async def _drop_indexes(
    session: Session, targets: Iterable[RelationDef], *, cascade: bool, concurrently: bool
) -> None:
    for target in {target.oid: target for target in targets}.values():
        table = table_of(session, target.table_oid)
        index = next(i for i in table.every_index if i.oid == target.oid)
        words = described(session, target)
        if concurrently and table.kind == "p" and table.persistence != "t":
            raise SqlError("0A000", f'cannot drop partitioned index "{index.name}" concurrently')
        if index.parent:
            above = session.catalog.relation_by_oid(index.parent)
            needs = "" if above is None else described(session, above)
            raise SqlError(
                "2BP01",
                f"cannot drop {words} because {needs} requires it",
                hint=f"You can drop {needs} instead.",
            )
        if index.constraint_oid:
            needs = f"constraint {index.name} on {described(session, table)}"
            raise SqlError(
                "2BP01",
                f"cannot drop {words} because {needs} requires it",
                hint=f"You can drop {needs} instead.",
            )
        refuse_change(session, table, "DROP INDEX")
        below = _constraints_below(session, table, index.oid)
        tables, indexes = [child.oid for child, _ in below], [own.index_oid for _, own in below]
        keys = define.dependents(session, [table.oid, *tables], [index.oid, *indexes])
        texts = [f"constraint {own.name} on {described(session, child)}" for child, own in below]
        texts += define.depends_texts(session, keys)
        if texts and not cascade:
            raise still_needed(words, [f"{text} depends on {words}" for text in texts])
        notice_cascade(session, texts)
        await define.drop_foreign_keys(session, keys)
        table = table_of(session, target.table_oid)
        await replace_table(
            session,
            replace(without_indexes(table, [index.oid]), version=session.db.next_catalog_version()),
        )
        await _drop_parts(session, table, index.oid)


async def _drop_parts(session: Session, parent: RelationDef, oid: int) -> None:
    """Drop the parts that an index of a partitioned table has on its partitions."""
    for child in session.catalog.partitions_of(parent.oid):
        own = next((i for i in child.every_index if i.parent == oid), None)
        if own is not None:
            changed = without_indexes(child, [own.oid])
            kept = tuple(c for c in changed.constraints if c.oid != own.constraint_oid)
            version = session.db.next_catalog_version()
            await replace_table(session, replace(changed, constraints=kept, version=version))
            await _drop_parts(session, child, own.oid)


def _constraints_below(
    session: Session, parent: RelationDef, oid: int
) -> list[tuple[RelationDef, ConstraintDef]]:
    """Return the keys of partitions whose indexes are parts of an index that has no constraint itself."""
    found: list[tuple[RelationDef, ConstraintDef]] = []
    for child in session.catalog.partitions_of(parent.oid):
        own = next((i for i in child.every_index if i.parent == oid), None)
        if own is not None and own.constraint_oid:
            found += [(child, c) for c in child.constraints if c.oid == own.constraint_oid]
        elif own is not None:
            found += _constraints_below(session, child, own.oid)
    return found


@opening
def view_dependents(session: Session, oids: set[int]) -> list[RelationDef]:
    """Return views, materialized ones too, that read any of ``oids``, directly or through other views, in
    creation order.
    """
    found: dict[int, RelationDef] = {}
    todo = list(oids)
    for oid in todo:
        for view in views_over(session.catalog, oid):
            if view.kind in BY_QUERY and view.oid not in found and view.oid not in oids:
                found[view.oid] = view
                todo.append(view.oid)
        give_way()
    return sorted(found.values(), key=lambda r: r.oid)


def default_words(session: Session, table: RelationDef, column: ColumnDef) -> str:
    """Return how messages call a column's default."""
    return f"default value for column {column.name} of {described(session, table)}"


async def drop_defaults(
    session: Session, columns: Sequence[tuple[RelationDef, ColumnDef]], current: RelationDef | None = None
) -> RelationDef | None:
    """Drop the defaults of columns; those of ``current``, which is being changed, in what is returned."""
    tables: dict[int, RelationDef] = {}
    for table, column in spaced(columns):
        if current is not None and current.oid == table.oid:
            changed = current
        else:  # as it is now: a foreign key of it may have been dropped a moment ago
            changed = tables.get(table.oid) or table_of(session, table.oid)
        without = tuple(
            replace(c, default_sql=None) if c.attnum == column.attnum else c for c in changed.columns
        )
        changed = replace(changed, columns=without, version=session.db.next_catalog_version())
        if current is not None and current.oid == table.oid:
            current = changed
        else:
            tables[table.oid] = changed
    if tables:
        await session.view.change(list(tables.values()))
    return current


def view_dependencies(session: Session, views: Sequence[RelationDef]) -> list[Dependency]:
    """Return how views hang on what they read."""
    return [Dependency(v.oid, v.oid, described(session, v), on) for v in spaced(views) for on in v.depends_on]


def key_dependencies(session: Session, keys: Sequence[tuple[RelationDef, ConstraintDef]]) -> list[Dependency]:
    """Return how foreign keys hang on the tables that they refer to."""
    return [
        Dependency(c.oid, c.oid, define.depends_text(session, (child, c)), c.foreign.table)
        for child, c in spaced(keys)
        if c.foreign is not None and not c.parent  # those of partitions go with their table's
    ]


def drawing_dependency(
    session: Session, table: RelationDef, column: ColumnDef, sequence: RelationDef
) -> Dependency:
    """Return how a default hangs on the sequence that it draws from."""
    key, words = ("default", table.oid, column.attnum), default_words(session, table, column)
    within = (table.oid, ("column", table.oid, column.attnum))
    return Dependency(key, table.oid, words, sequence.oid, within=within)


def policy_dependencies(
    session: Session, policies: Sequence[tuple[RelationDef, PolicyDef]]
) -> list[Dependency]:
    """Return how policies hang on what they read."""
    return [
        Dependency(policy.oid, policy.oid, policy_words(session, policy, table), on, within=(table.oid,))
        for table, policy in spaced(policies)
        for on in policy.depends_on
    ]


def tell(
    session: Session,
    asked: Sequence[Address],
    hangs: Sequence[Dependency],
    words: Mapping[Any, str],
    what: str | None,
    *,
    cascade: bool,
) -> None:
    """Tell what CASCADE drops besides what was ``asked`` for; without it 2BP01, by ``still_needed``.
    ``words``: of what ``hangs`` on, where it has no oid.
    """
    told = openly(
        told_with, session, asked, hangs, lambda one: words.get(one.on) or depends.words_of(session, one.on)
    )
    if not cascade:
        raise still_needed(what, lines(told))
    notice_cascade(session, [one.what for one in told])


def part_oids(relation: RelationDef) -> set[int]:
    """Return the oids of a relation's constraints, indexes, triggers, policies and extended statistics."""
    oids = {constraint.oid for constraint in relation.constraints} | {
        index.oid for index in relation.every_index
    }
    oids |= {trigger.oid for trigger in relation.triggers} | {policy.oid for policy in relation.policies}
    return oids | {one.oid for one in relation.statistics}


async def drop_relations(
    session: Session,
    targets: Sequence[RelationDef],
    *,
    cascade: bool,
    quiet: bool = False,
    of_source: int = 0,
    ending: bool = False,
    above: AbstractSet[int] = frozenset(),
) -> None:
    """Drop tables and views; with ``cascade`` also the views that read them and the foreign keys that refer to them.

    Tables of a source are dropped with it (``of_source``), else refused. ``ending``: at the end of a
    transaction or session, when nothing reads them any more. ``above``: what whoever asks for it drops next.
    """
    from engine.definitions.dropping.function_uses import (  # it drops relations
        drop_naming,
        links_to_relations,
    )
    from engine.definitions.triggers import drop_triggers  # they look for tables here
    from engine.definitions.types import (  # they drop columns and views
        drop_uses_of_rows,
        functions_using,
        row_type_of,
        type_dependencies,
    )

    several = len(targets) > 1  # the same one twice, too
    named = list({target.oid: target for target in targets}.values())
    if not named:
        return
    given = {t.oid for t in named}
    below = {p.oid: p for t in named for p in descendants(t, session.catalog)}
    targets = [*named, *(p for oid, p in below.items() if oid not in given)]
    oids = {t.oid for t in targets}
    for target in spaced(targets):
        if target.source_oid != of_source:
            sourced.refuse_drop(session.catalog, target)
    dependents, functions, found = openly(depends.dependents, session, oids)
    keys = openly(define.dependents, session, oids)
    policies = openly(policies_over, session.catalog, {*oids, *(view.oid for view in dependents)})
    for target in spaced(targets):
        if target.sequence is not None and target.sequence.owner_table not in oids:
            check_droppable(session, target)
    owned = [s for oid in sorted(oids) for s in session.catalog.sequences_of(oid) if s.oid not in oids]
    inner = {*oids, *(s.oid for s in owned)}
    drawing = [each for each in openly(drawing_columns, session, inner) if each[1].oid not in oids]
    found += key_dependencies(session, keys)
    found += policy_dependencies(session, policies)
    going = {*inner, *(view.oid for view in dependents)}
    found += openly(links_to_relations, session, going)
    found += [drawing_dependency(session, t, c, s) for s, t, c in spaced(drawing)]
    namings = openly(Namings, session.catalog)
    typed = [
        gone
        for gone in spaced((*targets, *dependents))
        if gone.kind in ROW_TYPED
        and (namings.uses_type(row_type_oid(gone.oid)) or namings.uses_type(row_array_oid(gone.oid)))
    ]
    row_types = [row_type_of(target) for target in spaced(typed)]
    of_rows, words = openly(type_dependencies, session, row_types, namings)
    within = (
        oids
        | {view.oid for view in dependents}
        | {part for target in spaced(targets) for part in part_oids(target)}
    )
    of_rows = [one for one in of_rows if one.oid not in within]
    found += of_rows
    of_targets = {type_.oid for type_ in row_types}
    over_rows = [t for t in openly(namings.with_types_over, row_types) if t.oid not in of_targets]
    called = openly(functions_using, session, over_rows, found, words)
    found += [
        Dependency(("type", type_.oid), type_.oid, "", r.oid)
        for r, type_ in zip(typed, row_types, strict=True)
        if r.oid not in oids
    ]
    roots: list[Any] = [r.oid for r in (*targets, *owned)]
    roots += [("type", type_.oid) for r, type_ in zip(typed, row_types, strict=True) if r.oid in oids]
    hangs = [one for one in openly(in_report_order, roots, found) if one.what]
    if hangs and not (cascade and quiet):
        asked = [Address(PG_CLASS_OID, target.oid) for target in named]
        tell(session, asked, hangs, words, None if several else described(session, named[0]), cascade=cascade)
    if not ending:
        # the latest first, as they go in PostgreSQL
        for gone in sorted((*targets, *dependents), key=lambda r: -r.oid):
            refuse_change(session, gone, "DROP TABLE")
            between()
    if any(one.what for one in of_rows):
        await depends.drop_functions(session, called, cascade=True, quiet=True)
        dropped = {relation.oid for relation in (*targets, *owned, *dependents)}
        await drop_uses_of_rows(session, typed, above | dropped)
    await drop_naming(session, going)
    await define.drop_foreign_keys(session, keys)
    for table, trigger in triggers_from(session.catalog, oids):
        await drop_triggers(session, table_of(session, table.oid), [trigger.name])
    for table, policy in policies:
        await drop_policies(session, table_of(session, table.oid), [policy])
    every = [c for relation in targets for c in relation.constraints]
    await define.touch(session, define.referenced_oids(every, oids))
    txn = session.block.ensure_txn()
    deletes: list[StoredKey] = []
    if drawing:
        await drop_defaults(session, [(t, c) for _s, t, c in drawing])
    taken: set[int] = set()
    for relation in (*targets, *owned, *dependents):
        if session.catalog.relation_by_oid(relation.oid) is None:
            continue  # it went with the type of another's rows
        await drop_rows(session.catalog, txn, relation)
        deletes.append(key_of(relation))
        taken.add(relation.oid)
        taken.update(part_oids(relation))
        between()
    deletes += openly(kept_about, session.catalog, taken)
    await session.view.change([], deletes)
    await _tell_parents(session, targets)
    await depends.forget_functions(session, functions)


async def drop_rows(catalog: CatalogSnapshot, txn: Transaction, relation: RelationDef) -> None:
    """Drop what is stored of a relation, if anything is; of one that cannot be read it is not known."""
    if not relation.stored:
        return
    if relation.oid in catalog.fenced:
        try:
            txn.spec(ShardId(relation.oid))
        except KeyError:
            return
    await settle(txn.drop_shard(ShardId(relation.oid)))


async def _tell_parents(session: Session, gone: Iterable[RelationDef]) -> None:
    """Tables whose partitions have been dropped, and the default ones among the others, get new versions:
    their plans are made anew.
    """
    for oid in sorted({t.partition_of for t in gone if t.partition_of}):
        parent = session.catalog.relation_by_oid(oid)
        if parent is None:
            continue
        beside = session.catalog.partitions_of(oid)
        default = [p for p in beside if p.bound is not None and p.bound.strategy == "d"]
        version = session.db.next_catalog_version
        changed = [parent, *default, *ancestors(parent, session.catalog)]
        await session.view.change([replace(table, version=version()) for table in changed])


async def drop_temporary(session: Session) -> None:
    """Drop all that is in the session's temporary schema, and what hangs on it (DISCARD TEMP, end of session)."""
    from engine.definitions.types import drop_types  # they drop relations

    mine = [r for r in session.catalog.user_relations() if r.schema == session.temp_schema]
    between()
    if mine:
        await drop_relations(session, mine, cascade=True, quiet=True, ending=True)
    functions = list(session.catalog.functions_in(session.temp_schema))
    await depends.drop_functions(session, functions, cascade=True, quiet=True)
    types = [t for t in session.catalog.user_types() if t.schema == session.temp_schema]
    await drop_types(session, types, cascade=True, quiet=True)
    schema = session.catalog.schema(session.temp_schema)
    if schema is not None:
        await drop_statistics_in(session, {schema.oid})  # of tables that stay


async def truncate(session: Session, plan: Plan, statement: st.Truncate, params: Params) -> Outcome:
    """TRUNCATE: each table starts a new, empty generation.

    Raises SqlError 0A000 for a table that a foreign key of a table left out refers to; CASCADE takes that one too.
    """
    tables, cascaded = openly(truncated, session.catalog, statement)
    told = {table.oid for table in cascaded}
    for table in spaced(tables):
        if table.oid in told:
            session.notice(f'truncate cascades to table "{table.name}"')
        refuse_change(session, table, "TRUNCATE")
    openly(refuse_referenced, session.catalog, tables)
    firings = [firing_of(session, table, "TRUNCATE") for table in spaced(tables)]
    for firing in firings:
        if firing is not None:
            await firing.before_statement(session)
    for table in tables:
        between()
        await settle(session.block.ensure_txn().truncate(ShardId(table.oid)))
        session.block.new_storage.note(table.oid, len(session.block.savepoints))
        await build_unbuilt(session, table, [index.oid for index in table.unbuilt if not index.unique])
        if statement.restart_identity:
            await restart_owned(session, table.oid)
    for firing in firings:
        if firing is not None:
            await firing.after_statement(session)
    return Command("TRUNCATE TABLE")
