"""What of tables and domains calls users' functions: what DROP FUNCTION tells and takes along, what CREATE OR
REPLACE has to keep right.

    t.a DEFAULT f()     CHECK (g(a))     CREATE INDEX ON t (h(b))     CREATE DOMAIN d CHECK (g(VALUE))

    DROP FUNCTION g CASCADE                  both constraints go, t and d stay
    CREATE OR REPLACE FUNCTION h ...         rows of t keep what they are; the index gets the values of the new body where t is one's own
    CREATE OR REPLACE FUNCTION g ...         rows are checked by the new body from here on, those that are there are not looked at

A body that is a text depends on nothing, but tables do, so what such bodies name counts here.

Rows of others are not gone through: what the new body tells of them, by a notice, an error or a duplicate
key, would be told to who changes it. The index keeps what it has until REINDEX, as in PostgreSQL. What is
computed runs as the table's owner.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from engine.base.eager import settle
from engine.catalog.graph import relations_naming, types_naming
from engine.catalog.state import CatalogSnapshot
from engine.changes.writes.shape import TableShape
from engine.definitions.dropping.dependents import Dependency
from engine.definitions.dropping.drop import view_dependents
from engine.definitions.dropping.uses import Use, dependency, drop_use, uses_of
from engine.definitions.namings import Namings, check_dependencies
from engine.definitions.table.alter_columns import views_that_break, without_columns
from engine.definitions.table.rewrite import rewrite_rows
from engine.definitions.table.unbuilt import again_beside, leaves
from engine.definitions.types import drop_types, type_dependencies, type_words
from engine.session.acting import acting_as
from engine.session.catalog.names import described
from engine.session.session import Session
from pgwire.give_way import give_way, opening, openly, paced_iter
from planner.base.errors import SqlError
from planner.bind.stored.domain_checks import stored_check
from planner.bind.stored.evaluated import column_default, stored_default
from planner.catalog import RelationDef, TypeDef
from planner.catalog.named_oids import named_oids, relations_in_text
from planner.catalog.relation_kinds import WITH_EXPRESSIONS
from planner.catalog.rights import Rights
from planner.evaluate import Env, Shared
from txn.base.types import Row, ShardId


def _domains(catalog: CatalogSnapshot, functions: Collection[int]) -> list[TypeDef]:
    """Return the domains whose default or constraints call any of ``functions``, oldest first."""
    called, found = set(functions), []
    for made in paced_iter(types_naming(catalog, called)):
        texts = " ".join((made.default_sql or "", *(c.check_sql for c in made.checks)))
        if made.is_domain and not called.isdisjoint(named_oids(texts)):
            found.append(made)
    return found


def links_to(session: Session, functions: Collection[int], roots: Collection[Any]) -> list[Dependency]:
    """Return how tables and domains hang on functions; parts of the relations among ``roots`` are left out."""
    found: list[Dependency] = []
    if not functions:
        return found
    namings = Namings(session.catalog)
    for oid in sorted(functions):
        give_way()
        for use in uses_of(session, {oid}, namings.relations_naming({oid})):
            give_way()
            if use.kind == "view" or use.relation.oid in roots:
                continue
            one = dependency(session, use, oid)
            found.append(one)
            if use.kind == "column":
                found += _views_without(session, use, one)
        lost = [made for made in namings.over(oid) if made.is_domain]
        for made in (*namings.distances(oid), *lost):
            found.append(Dependency(("type", made.oid), made.oid, type_words(session, made), oid))
            found += type_dependencies(session, [made], namings)[0]
        goes = {made.oid for made in lost}
        checks = [each for each in namings.domain_checks({oid}) if each[0].oid not in goes]
        found += check_dependencies(checks, {oid})
    return found


def _views_without(session: Session, use: Use, column: Dependency) -> list[Dependency]:
    """Return how views, and views of views, hang on a column that goes."""
    broken = views_that_break(session, use.relation, without_columns(use.relation, {int(use.what)}))
    found = [Dependency(view.oid, view.oid, described(session, view), column.key) for view in broken]
    for view in view_dependents(session, {view.oid for view in broken}):
        found += [Dependency(view.oid, view.oid, described(session, view), oid) for oid in view.depends_on]
    return found


async def drop_parts(session: Session, functions: Collection[int]) -> None:
    """Drop what of tables and domains calls functions that are about to go."""
    called = set(functions)
    await _drop_uses(session, openly(uses_of, session, called))
    lost = [
        made.oid
        for made in types_naming(session.catalog, called)
        if made.kind == "r" and made.subtype_diff in called
    ]
    for domain in openly(_domains, session.catalog, called):
        kept = tuple(c for c in domain.checks if called.isdisjoint(named_oids(c.check_sql)))
        default = domain.default_sql
        if not called.isdisjoint(named_oids(default)):
            lost.append(domain.oid)
            default = None
        await session.view.change([replace(domain, checks=kept, default_sql=default)])
    types = [found for oid in lost if (found := session.catalog.type_by_oid(oid)) is not None]
    await drop_types(session, types, cascade=True, quiet=True)


async def _drop_uses(session: Session, uses: Iterable[Use]) -> None:
    for use in uses:
        if use.kind != "view" and _is_there(session, use):
            await drop_use(session, use)


# --- constants of regclass ------------------------------------------------------------------------


@opening
def _naming(session: Session, relations: Collection[int]) -> tuple[list[RelationDef], list[TypeDef]]:
    """Return the tables and domains that may name any of ``relations`` by a constant: few do, so that few
    texts are looked through.
    """
    oids = set(relations)
    catalog = session.catalog
    tables = [t for t in paced_iter(relations_naming(catalog, oids)) if not oids.isdisjoint(_constants(t))]
    domains = [
        made
        for made in paced_iter(types_naming(catalog, oids))
        if any(
            not oids.isdisjoint(relations_in_text(text))
            for text in (made.default_sql, *(check.check_sql for check in made.checks))
        )
    ]
    return tables, domains


def _constants(table: RelationDef) -> Iterator[int]:
    for column in table.columns:
        if column.generated:
            yield from relations_in_text(column.default_sql)
    for constraint in table.constraints:
        yield from relations_in_text(constraint.check_sql)
    for index in table.every_index:
        yield from relations_in_text(" ".join((*index.expressions, index.where_sql or "")))
    for trigger in table.triggers:
        yield from relations_in_text(trigger.when_sql)
    for statistics in table.statistics:
        yield from relations_in_text(" ".join(statistics.expressions))
    for policy in table.policies:
        yield from relations_in_text(f"{policy.using_sql} {policy.check_sql}")
    if table.partition_key is not None:
        yield from relations_in_text(" ".join(table.partition_key.expressions))


def links_to_relations(session: Session, relations: Collection[int]) -> list[Dependency]:
    """Return how tables and domains hang on relations that they name by constants of regclass; what of these
    relations does is left out.
    """
    found: list[Dependency] = []
    tables, domains = _naming(session, relations)
    for use in uses_of(session, relations, tables) if tables else ():
        if use.relation.oid in relations:
            continue
        one = dependency(session, use, use.of)
        found.append(one)
        if use.kind == "column":
            found += _views_without(session, use, one)
    namings = Namings(session.catalog) if domains else None
    for made in domains:
        on = set(relations_in_text(made.default_sql)).intersection(relations)
        if on and namings is not None:
            found.append(Dependency(("type", made.oid), made.oid, type_words(session, made), min(on)))
            found += type_dependencies(session, [made], namings)[0]
            continue
        for check in made.checks:
            on = set(relations_in_text(check.check_sql)).intersection(relations)
            if on:
                key = ("check", made.oid, check.name)
                found.append(Dependency(key, check.oid, f"constraint {check.name}", min(on)))
    return found


async def drop_naming(session: Session, relations: Collection[int]) -> None:
    """Drop what of tables and domains names relations that are about to go by constants of regclass."""
    tables, domains = _naming(session, relations)
    if tables:
        uses = uses_of(session, relations, tables)
        await _drop_uses(session, [use for use in uses if use.relation.oid not in relations])
    lost = [
        made.oid for made in domains if not set(relations_in_text(made.default_sql)).isdisjoint(relations)
    ]
    for made in domains:
        kept = tuple(c for c in made.checks if set(relations_in_text(c.check_sql)).isdisjoint(relations))
        default = None if made.oid in lost else made.default_sql
        await session.view.change([replace(made, checks=kept, default_sql=default)])
    types = [found for oid in lost if (found := session.catalog.type_by_oid(oid)) is not None]
    await drop_types(session, types, cascade=True, quiet=True)


def _is_there(session: Session, use: Use) -> bool:
    """Tell whether a use is left when others have been dropped, a generated column for instance with its checks."""
    relation = session.catalog.relation_by_oid(use.relation.oid)
    if relation is None:
        return False
    if use.kind == "check":
        return any(c.name == use.what for c in relation.constraints)
    if use.kind == "index":
        return any(i.oid == use.what for i in relation.every_index)
    if use.kind == "policy":
        return any(p.name == use.what for p in relation.policies)
    if use.kind == "trigger":
        return any(t.name == use.what for t in relation.triggers)
    if use.kind == "statistics":
        return any(one.oid == use.what for one in relation.statistics)
    return not relation.column(int(use.what)).dropped


# --- CREATE OR REPLACE ----------------------------------------------------------------------------


@opening
def callers(catalog: CatalogSnapshot, functions: Iterable[int]) -> set[int]:
    """Return functions and those that may call them, directly or not; bodies that are texts are searched for
    their names.
    """
    found = set(functions)
    called: dict[
        int | str, list[int]
    ] = {}  # who calls an oid, or has a word of a name in a body that is a text
    for function in catalog.functions() if found else ():
        texts = " ".join((function.body_sql, *function.defaults))
        words = () if function.body_sql else _words(function.source)
        for key in {*named_oids(texts), *words}:
            called.setdefault(key, []).append(function.oid)
        give_way()
    todo = list(found)
    for oid in todo:
        callee = catalog.function_by_oid(oid)
        for caller in called.get(oid, ()):
            if caller not in found:
                found.add(caller)
                todo.append(caller)
        for caller in () if callee is None else _with_name(catalog, callee.name, called):
            if caller not in found:
                found.add(caller)
                todo.append(caller)
        give_way()
    return found


_WORD: Final = re.compile(r"\w+")


def _words(source: str) -> set[str]:
    return {match[0].lower() for match in paced_iter(_WORD.finditer(source), 1024)}


def _with_name(catalog: CatalogSnapshot, name: str, called: Mapping[int | str, Sequence[int]]) -> list[int]:
    """Return the functions whose bodies are texts that have a name in them."""
    words = _WORD.findall(name.lower())
    if not words:  # nothing but signs
        pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        return [f.oid for f in catalog.functions() if not f.body_sql and pattern.search(f.source)]
    having = called.get(words[0], ())
    if words == [name.lower()]:
        return list(having)
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    there = [catalog.function_by_oid(oid) for oid in having]
    return [f.oid for f in there if f is not None and pattern.search(f.source)]


_GONE: Final = ("42883", "42725")
"""A body that is a text names a function that is not there any more, or not the only one."""


async def refit(session: Session, functions: Collection[int]) -> None:
    """Have tables and domains that call functions go on with what these mean now: with new bodies, properties or names.

    ``functions``: ``callers`` of what has changed. Transactions that have changed rows under what was before
    are waited for. Where a body names what is gone, that is told when it is evaluated. Raises SqlError 0A000
    where a new body is no expression (``planner.bind.stored.runnable``), 23505 where keys of an index are no
    longer unique, and what computing them raises.
    """
    if not functions:
        return
    catalog = session.catalog
    for made in openly(_domains, catalog, functions):
        with _telling_later():
            for check in made.checks:
                stored_check(catalog, made, check.check_sql)
            if made.default_sql is not None:
                stored_default(made.default_sql, made.base_type, catalog)
    uses = [use for use in uses_of(session, functions) if not _only_fires(use, functions)]
    for relation in {use.relation.oid: use.relation for use in uses}.values():
        if relation.kind in WITH_EXPRESSIONS:
            with _telling_later():
                await _refit_table(session, relation, functions)


def _only_fires(use: Use, functions: Collection[int]) -> bool:
    """Tell whether a use is a trigger that finds its function when it fires, and calls none in its condition."""
    return use.kind == "trigger" and not any(
        trigger.name == use.what and named_oids(trigger.when_sql) & set(functions)
        for trigger in use.relation.triggers
    )


@contextmanager
def _telling_later() -> Iterator[None]:
    try:
        yield
    except SqlError as error:
        if error.sqlstate not in _GONE:
            raise


async def _refit_table(session: Session, relation: RelationDef, functions: Collection[int]) -> None:
    TableShape.of(relation, session)  # what cannot be evaluated any more is refused before anything waits
    for column in relation.live:
        column_default(column, session.catalog, calls=True)
    if relation.stored:
        await settle(session.block.ensure_txn().lock_table(ShardId(relation.oid), "X"))
    changed = replace(relation, version=session.db.next_catalog_version())
    await session.view.change([changed])
    computed = {
        column.attnum
        for column in relation.stored_columns
        if column.hidden and named_oids(column.default_sql) & set(functions)
    }
    if computed and Rights(session.rights_catalog, session.role).owns(relation.owner):
        await _compute_anew(session, changed, computed)


async def remake_indexes(session: Session, tables: Iterable[int], *, concurrently: bool) -> None:
    """REINDEX: compute anew what indexes keep of expressions that call functions or name text search
    configurations of users.

    ``concurrently``: where that fails, indexes that are not built are left beside them. Raises SqlError
    25006, 23505 where keys of an index are no longer unique, and what computing them raises.
    """
    for oid in tables:
        relation = session.catalog.relation_by_oid(oid)
        if relation is None or not _expressions_of(relation):
            continue
        txn = session.block.ensure_txn()
        if txn.read_only:
            raise SqlError("25006", "cannot execute REINDEX in a read-only transaction")
        session.block.wrote = True
        await session.view.locks.take_relation(oid)
        latest = session.catalog.relation_by_oid(oid)
        if latest is not None:
            if concurrently:
                leaves(
                    session, latest, [again_beside(session, latest, i) for i in latest.indexes if i.computed]
                )
            await _compute_anew(session, latest, _expressions_of(latest))
    session.ahead.left = ()


def _expressions_of(relation: RelationDef) -> set[int]:
    """Return the columns in which indexes keep what is made of users' objects."""
    return {c.attnum for c in relation.stored_columns if c.hidden and named_oids(c.default_sql)}


async def _compute_anew(session: Session, changed: RelationDef, computed: Collection[int]) -> None:
    """Compute hidden columns of all rows of a table, which is locked."""
    with acting_as(session, changed.owner, restricted=True):
        shape = TableShape.of(changed, session)
        shape.generated = [(position, make) for position, make in shape.generated if position + 1 in computed]
        env = Env((), session, shared=Shared())

    def computed_anew(rows: Sequence[Row]) -> Sequence[Row]:
        with acting_as(session, changed.owner, restricted=True):
            return openly(shape.complete, rows, env)

    await rewrite_rows(session, changed, changed, computed_anew)
