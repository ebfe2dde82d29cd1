"""What of tables uses a type or a function: columns, defaults, constraints, indexes; and dropping it.

    CREATE TABLE t (a mood, b text DEFAULT f(), c int GENERATED ALWAYS AS (g(b)) STORED, CHECK (h(a)))

    DROP TYPE mood    column a        DROP FUNCTION f    the default of b    g    column c    h    the constraint

Stored texts name types and functions by oid (``planner.types.facts.stored_type``,
``planner.deparse.expr.stored_function``).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import replace
from typing import NamedTuple

from engine.catalog.graph import relations_naming
from engine.definitions.dropping.dependents import Dependency
from engine.definitions.dropping.drop import (
    default_words,
    drop_defaults,
    drop_relations,
    replace_table,
    table_of,
)
from engine.definitions.table.alter_columns import drop_column
from engine.definitions.table.policies import drop_policies, policy_words
from engine.definitions.table.statistics_parts import drop_statistics_of, statistics_words
from engine.definitions.table.trigger_dependencies import trigger_words
from engine.definitions.triggers import drop_triggers, trigger_of
from engine.session.catalog.names import described
from engine.session.session import Session
from pgwire.give_way import opening, paced
from planner import statements as st
from planner.bind.define.policy import of_table
from planner.bind.define.statistics import columns_of
from planner.bind.define.table.generated import columns_used
from planner.bind.define.table.index import index_keys, without_indexes
from planner.catalog import IndexDef, RelationDef
from planner.catalog.named_oids import named_oids, used_oids
from planner.catalog.relation_kinds import BY_QUERY
from planner.partitions.bounds import ancestors, key_exprs


class Use(NamedTuple):
    """What of a relation uses something: ``kind`` table (by a column of its partition key), column or default
    (``what``: attnum), check, trigger, policy (its name), index, statistics (oid), view.
    """

    kind: str
    relation: RelationDef
    what: int | str
    of: int = 0  # which of what was asked for it uses


@opening
def uses_of(
    session: Session, family: Collection[int], relations: Iterable[RelationDef] | None = None
) -> list[Use]:
    """Return what uses types, functions or relations directly, oldest relation first; not what goes with a
    column that does.

    ``family``: their oids, those of array types and whatever else comes with a type included. Of relations it
    is told what names them by constants of regclass, defaults and views apart (``drawing_columns``,
    ``functions.dependents``). ``relations``: to look through, None: all.
    """
    family = set(family)
    found: list[Use] = []
    if relations is None:
        relations = relations_naming(session.catalog, family)
    for relation in paced(sorted(relations, key=lambda r: r.oid), 1):
        named = named_oids(relation.view_sql) & family if relation.kind in BY_QUERY else set()
        gone: set[int] = set()
        if relation.kind in BY_QUERY:
            named |= {column.collation for column in relation.live} & family
        for column in relation.live:
            called = (used_oids if column.generated else named_oids)(column.default_sql) & family
            declared = column.collation if column.collation in family else column.declared.oid
            if (declared in family or (column.generated and called)) and not named:
                gone.add(column.attnum)
                of = declared if declared in family else min(called)
                found.append(Use("column", relation, column.attnum, of))
            elif called:
                found.append(Use("default", relation, column.attnum, min(called)))
        for constraint in relation.constraints:
            called = used_oids(constraint.check_sql) & family
            if called and not gone & set(constraint.attnums):
                found.append(Use("check", relation, constraint.name, min(called)))
        for index in relation.every_index:
            kept = (relation.column(a).default_sql or "" for a in index.kept if relation.column(a).hidden)
            called = used_oids(" ".join((*index.expressions, index.where_sql, *kept))) & family
            called |= family.intersection(index.collations)
            if called and not gone & _columns_of(session, index, relation):
                served = next((c for c in relation.exclusions if c.index_oid == index.oid), None)
                if served is None:
                    found.append(Use("index", relation, index.oid, min(called)))
                elif not used_oids(served.check_sql) & family:  # else it has been found
                    found.append(Use("check", relation, served.name, min(called)))
        for trigger in relation.triggers:
            called = (used_oids(trigger.when_sql) | {trigger.function}) & family
            if called:
                found.append(Use("trigger", relation, trigger.name, min(called)))
        for policy in relation.policies:
            called = used_oids(f"{policy.using_sql} {policy.check_sql}") & family
            if called:
                found.append(Use("policy", relation, policy.name, min(called)))
        for statistics in relation.statistics:
            called = used_oids(" ".join(statistics.expressions)) & family
            if called and (not gone or gone.isdisjoint(columns_of(statistics, relation, session.catalog))):
                found.append(Use("statistics", relation, statistics.oid, min(called)))
        keys = _key_uses(session, relation, family, gone) | ({relation.of_type} & family)
        if keys:
            found = [use for use in found if use.relation.oid != relation.oid]
            found.append(Use("table", relation, 0, min(keys)))
        if named:
            found.append(Use("view", relation, 0, min(named)))
    whole = {use.relation.oid for use in found if use.kind == "table"}
    if whole:
        above = {use.relation.oid: ancestors(use.relation, session.catalog) for use in found}
        found = [use for use in found if whole.isdisjoint(r.oid for r in above[use.relation.oid])]
    return found


def _key_uses(
    session: Session, relation: RelationDef, family: Collection[int], gone: Collection[int]
) -> set[int]:
    """Return which of ``family`` a partition key needs: by its expressions, and by the types of columns,
    which are ``gone``.
    """
    key = relation.partition_key
    if key is None:
        return set()
    called = used_oids(" ".join(key.expressions)).intersection(family)
    called.update(collation for collation in key.collations if collation in family)
    if not gone:
        return called
    columns = {attnum for expr in key_exprs(relation, session.catalog) for attnum in columns_used(expr)}
    return called | {relation.column(attnum).declared.oid for attnum in columns.intersection(gone)}


def _columns_of(session: Session, index: IndexDef, relation: RelationDef) -> set[int]:
    """Return the columns that an index's expressions and its condition read."""
    keys, where = index_keys(index, relation, session.catalog)
    exprs = keys if where is None else [*keys, where]
    return {attnum for expr in exprs for attnum in columns_used(expr)}


def dependency(session: Session, use: Use, on: Hashable) -> Dependency:
    """Return the line that DROP tells of a use."""
    relation = use.relation
    oid, table = relation.oid, described(session, relation)
    if use.kind in ("view", "table"):
        return Dependency(oid, oid, table, on)
    if use.kind == "check":
        constraint = next(c for c in relation.constraints if c.name == use.what)
        text = f"constraint {constraint.name} on {table}"
        within = (oid, *(("column", oid, attnum) for attnum in constraint.attnums))
        return Dependency(("check", oid, use.what), constraint.oid, text, on, within=within)
    if use.kind == "index":
        index = next(i for i in relation.every_index if i.oid == use.what)
        # a partition's goes with that of its parent, which is told
        text = (
            ""
            if index.parent
            else described(session, replace(relation, kind="i", oid=index.oid, name=index.name))
        )
        return Dependency(index.oid, index.oid, text, on, within=(oid,))
    if use.kind == "trigger":
        trigger = trigger_of(relation, str(use.what))
        text = trigger_words(session, trigger, relation)
        return Dependency(("trigger", oid, use.what), trigger.oid, text, on, within=(oid,))
    if use.kind == "policy":
        policy = of_table(relation, str(use.what))
        return Dependency(policy.oid, policy.oid, policy_words(session, policy, relation), on, within=(oid,))
    if use.kind == "statistics":
        one = next(s for s in relation.statistics if s.oid == use.what)
        return Dependency(one.oid, one.oid, statistics_words(session, one), on, within=(oid,))
    column = relation.column(int(use.what))
    if use.kind == "default":
        text = default_words(session, relation, column)
        return Dependency(
            ("default", oid, use.what), oid, text, on, within=(oid, ("column", oid, column.attnum))
        )
    # a generated column's expression, which goes before it, is an object of its own
    part = column.attnum if column.declared.oid == use.of else 0
    return Dependency(
        ("column", oid, use.what), oid, f"column {column.name} of {table}", on, part, within=(oid,)
    )


async def drop_use(session: Session, use: Use) -> None:
    """Drop what uses something, unless it has gone with a column; views apart, which are dropped whole."""
    table = table_of(session, use.relation.oid)
    parts: dict[str, set[int | str]] = {
        "trigger": {trigger.name for trigger in table.triggers},
        "policy": {policy.name for policy in table.policies},
        "statistics": {one.oid for one in table.statistics},
        "check": {constraint.name for constraint in table.constraints},
    }
    if use.kind in parts and use.what not in parts[use.kind]:
        return
    if use.kind == "table":
        await drop_relations(session, [table], cascade=True, quiet=True)
    elif use.kind == "column":
        name = table.column(int(use.what)).name
        await drop_column(session, table, st.DropColumn(name=name, cascade=True), quiet=True)
    elif use.kind == "index":
        if any(index.oid == use.what for index in table.every_index):
            without = without_indexes(table, [int(use.what)])
            await replace_table(session, replace(without, version=session.db.next_catalog_version()))
    elif use.kind == "trigger":
        await drop_triggers(session, table, [str(use.what)])
    elif use.kind == "policy":
        await drop_policies(session, table, [of_table(table, str(use.what))])
    elif use.kind == "statistics":
        await drop_statistics_of(session, table, [int(use.what)])
    elif use.kind == "default":
        await drop_defaults(session, [(table, table.column(int(use.what)))])
    elif use.kind == "check":
        gone = next(c for c in table.constraints if c.name == use.what)
        kept = tuple(c for c in table.constraints if c is not gone)
        changed = replace(table, constraints=kept, version=session.db.next_catalog_version())
        if gone.kind == "x":  # with its index
            await replace_table(session, without_indexes(changed, [gone.index_oid]))
        else:
            await session.view.change([changed])
