"""What selects a field of rows that is about to go: stored texts that can no longer be bound without it.

    CREATE TABLE a (k int, c int)      CREATE TABLE b (r a CHECK ((r).c > 0))      CREATE VIEW v AS SELECT (r).c FROM b

    ALTER TABLE a DROP COLUMN c CASCADE      the constraint of b, the view v

Texts have fields by name (``engine.definitions.field_names``), so each one that may select it is bound
against a catalog in which the field is gone: one that has the type itself, or the field's name, and that of
the type, too, where no column or function has values of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from engine.catalog.graph import is_named
from engine.catalog.row_parts import holds
from engine.catalog.state import CatalogSnapshot
from engine.definitions.dropping.dependents import Dependency
from engine.definitions.dropping.drop import drop_relations
from engine.definitions.dropping.uses import Use, dependency, drop_use
from engine.definitions.field_names import mentions
from engine.definitions.functions import drop_functions
from engine.definitions.table.row_readers import readers_of
from engine.definitions.types import drop_domain_checks
from engine.session.session import Session
from pgwire.give_way import give_way, openly, paced_iter
from planner.base.errors import SqlError
from planner.bind import bind_check
from planner.bind.define.functions import rebase_body, rebase_default
from planner.bind.define.policy import rebound_policies
from planner.bind.define.statistics import stored_expressions
from planner.bind.define.table.generated import stored_generation
from planner.bind.define.table.index import index_keys
from planner.bind.define.trigger import stored_condition
from planner.bind.stored import rebase_default_text, rebase_view
from planner.bind.stored.domain_checks import stored_check
from planner.bind.stored.renaming import renamed
from planner.catalog import ConstraintDef, FunctionDef, RelationDef, TypeDef
from planner.catalog.relation_kinds import BY_QUERY, WITH_EXPRESSIONS
from planner.partitions.bounds import key_exprs


@dataclass(frozen=True, slots=True)
class FieldUses:
    """What of tables, which views, functions and constraints of domains select a field."""

    parts: list[Use]
    views: list[RelationDef]
    functions: list[FunctionDef]
    checks: list[tuple[TypeDef, ConstraintDef]]

    def dependencies(self, session: Session, on: Any) -> list[Dependency]:
        """Return what DROP tells of parts of tables and constraints of domains."""
        return [dependency(session, use, on) for use in self.parts] + [
            Dependency(("check", made.oid, check.name), check.oid, f"constraint {check.name}", on)
            for made, check in self.checks
        ]

    async def drop_parts(self, session: Session) -> None:
        """Drop what selects the field in tables and domains, as far as it is still there."""
        for use in self.parts:
            if session.catalog.relation_by_oid(use.relation.oid) is not None:
                await drop_use(session, use)
        await drop_domain_checks(session, self.checks)

    async def drop(self, session: Session) -> None:
        """Drop all of it, with what hangs on it, as far as it is still there."""
        await drop_functions(session, self.functions, cascade=True, quiet=True)
        await self.drop_parts(session)
        views = [view for view in self.views if session.catalog.relation_by_oid(view.oid) is not None]
        await drop_relations(session, views, cascade=True, quiet=True)


def selecting(
    session: Session, changed: RelationDef | TypeDef, name: str, family: Collection[int]
) -> FieldUses:
    """As ``field_uses``, of a table or composite type that is ``changed`` and has lost the field; others have
    their turn in between.
    """
    table = changed.oid if isinstance(changed, RelationDef) else 0
    if not is_named(session.catalog, (table, *family)) and not getattr(changed, "policies", ()):
        return FieldUses([], [], [], [])  # as of each of thousands of partitions
    trial = session.catalog.with_changes([changed], [], session.db.next_catalog_version())
    return openly(field_uses, session.catalog, trial, name, family, table)


def field_uses(
    catalog: CatalogSnapshot, trial: CatalogSnapshot, name: str, family: Collection[int], table: int = 0
) -> FieldUses:
    """Return what selects the field ``name`` of the type whose oids ``family`` is; ``trial`` is ``catalog`` without it.

    ``table``: the table that the field is a column of, whose own texts, and those of views and functions that
    read it, are looked at by who drops the column.
    """
    has = mentions(name)
    types = () if _reached(catalog, family) else _names(catalog, family)

    of_rows = readers_of(catalog, frozenset(), frozenset(family)).reads

    def breaks(text: str | None, bind: Callable[[], Any], depends_on: Collection[int] = ()) -> bool:
        give_way()
        if text is None:
            return False
        selects = has(text) and (not types or any(one in text for one in types))
        if not selects and not of_rows(depends_on, text):
            return False
        try:
            bind()
        except SqlError as error:
            if error.ends_statement:
                raise
            return True
        return False

    found = FieldUses([], [], [], [])
    reads = readers_of(catalog, {table} if table else set()).reads
    broken: set[int] = set()  # views, those of who drops the column included
    for relation in paced_iter(catalog.user_relations()):
        if relation.oid == table:
            found.parts.extend(_policies(relation, catalog, trial, breaks))
            continue
        if relation.kind in BY_QUERY and breaks(
            relation.view_sql, partial(_view_without, relation, catalog, trial), relation.depends_on
        ):
            broken.add(relation.oid)
            if not reads(relation.depends_on, relation.view_sql):
                found.views.append(relation)
                continue
        if relation.kind in WITH_EXPRESSIONS:
            found.parts.extend(_parts(relation, catalog, trial, breaks))
    for made in catalog.user_types():
        for check in made.checks:
            bind = partial(stored_check, trial, made, check.check_sql, plain=False)
            if breaks(check.check_sql, bind):
                found.checks.append((made, check))
    for function in catalog.functions():
        depends_on = (function.oid, *function.depends_on)
        handled = function.body_sql and reads(depends_on, function.body_sql)
        if not handled and _function_breaks(function, catalog, trial, breaks):
            found.functions.append(function)
    # Others go with these.
    found.views[:] = [view for view in found.views if broken.isdisjoint(view.depends_on)]
    found.functions[:] = [function for function in found.functions if broken.isdisjoint(function.depends_on)]
    return found


def _reached(catalog: CatalogSnapshot, family: Collection[int]) -> bool:
    """Tell whether a column, or what a function takes or returns, has values of the type, be it within others."""
    types = {column.declared.oid for relation in catalog.user_relations() for column in relation.live}
    for function in catalog.functions():
        types.update((*function.types, function.result))
    return any(holds(catalog, oid, family) for oid in types)


def _names(catalog: CatalogSnapshot, family: Collection[int]) -> tuple[str, ...]:
    """Return what stands in a text that names the type, in quotes or not."""
    found = {made.name for oid in family if (made := catalog.type_by_oid(oid)) is not None}
    found |= {item[0].name for oid in family if (item := catalog.row_type_relation(oid)) is not None}
    return tuple(name.replace('"', '""') for name in found)


class _Breaks(Protocol):
    def __call__(
        self, text: str | None, bind: Callable[[], Any], depends_on: Collection[int] = ()
    ) -> bool: ...


# Lists of columns that queries have go on without a column that is gone, so they are bound as they would be
# written then.


def _view_without(view: RelationDef, catalog: CatalogSnapshot, trial: CatalogSnapshot) -> None:
    rebase_view(replace(view, view_sql=rebase_view(view, catalog, trial)), trial, trial)


def _body_without(function: FunctionDef, catalog: CatalogSnapshot, trial: CatalogSnapshot) -> None:
    rebase_body(replace(function, body_sql=rebase_body(function, catalog, trial)), trial, trial)


def _policy_without(table: RelationDef, catalog: CatalogSnapshot, trial: CatalogSnapshot) -> None:
    after = trial.relation_by_oid(table.oid) or table
    policies = rebound_policies(
        table, replace(after, policies=table.policies), catalog, lambda expr: renamed(expr, trial)
    )
    rebound_policies(after, replace(after, policies=policies), trial, lambda expr: expr)


def _parts(
    table: RelationDef, catalog: CatalogSnapshot, trial: CatalogSnapshot, breaks: _Breaks
) -> Iterator[Use]:
    key = table.partition_key
    if key is not None and breaks(" ".join(key.expressions), partial(key_exprs, table, trial)):
        yield Use("table", table, 0)
        return
    for column in table.live:
        if column.hidden:
            continue
        sql, declared, attnum = column.default_sql, column.declared, column.attnum
        if column.generated:
            if breaks(sql, partial(stored_generation, table, attnum, trial)):
                yield Use("column", table, attnum)
        elif sql is not None and breaks(sql, partial(rebase_default_text, sql, declared, trial, trial)):
            yield Use("default", table, attnum)
    for constraint in table.constraints:
        if constraint.kind != "x" and breaks(
            constraint.check_sql,
            partial(bind_check, constraint.check_sql, table, trial),
        ):
            yield Use("check", table, constraint.name)
    for index in table.every_index:
        text = " ".join((*index.expressions, index.where_sql))
        if index.computed and breaks(text, partial(index_keys, index, table, trial)):
            served = next((c for c in table.exclusions if c.index_oid == index.oid), None)
            yield Use("index", table, index.oid) if served is None else Use("check", table, served.name)
    for trigger in table.triggers:
        if breaks(trigger.when_sql, partial(stored_condition, trigger, table, trial)):
            yield Use("trigger", table, trigger.name)
    for statistics in table.statistics:
        text = " ".join(statistics.expressions)
        if text and breaks(text, partial(stored_expressions, statistics, table, trial)):
            yield Use("statistics", table, statistics.oid)
    yield from _policies(table, catalog, trial, breaks)


def _policies(
    table: RelationDef, catalog: CatalogSnapshot, trial: CatalogSnapshot, breaks: _Breaks
) -> Iterator[Use]:
    for policy in table.policies:
        alone = replace(table, policies=(policy,))
        if breaks(
            f"{policy.using_sql} {policy.check_sql}",
            partial(_policy_without, alone, catalog, trial),
            (table.oid, *policy.depends_on),
        ):
            yield Use("policy", table, policy.name)


def _function_breaks(
    function: FunctionDef, catalog: CatalogSnapshot, trial: CatalogSnapshot, breaks: _Breaks
) -> bool:
    if function.body_sql and breaks(
        function.body_sql,
        partial(_body_without, function, catalog, trial),
        (function.oid, *function.depends_on),
    ):
        return True
    inputs = function.inputs[len(function.inputs) - len(function.defaults) :]
    return any(
        breaks(text, partial(rebase_default, text, oid, trial, trial))
        for text, oid in zip(function.defaults, inputs, strict=True)
    )
