"""What selects a field of rows that is about to go: stored texts that can no longer be bound without it.

    CREATE TABLE a (k int, c int)      CREATE TABLE b (r a CHECK ((r).c > 0))      CREATE VIEW v AS SELECT (r).c FROM b

    ALTER TABLE a DROP COLUMN c CASCADE      the constraint of b, the view v

Texts have fields by name (``engine.ddl.field_names``), so each one that has the name, or the type itself, is bound against a catalog in
which the field is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from engine.catalog.state import CatalogSnapshot
from engine.connection.session import Session
from engine.ddl.dependents import Dependency
from engine.ddl.field_names import mentions
from engine.ddl.uses import Use, dependency, drop_use
from planner.bind import bind_check
from planner.bind.domain import stored_check
from planner.bind.functions import rebase_body, rebase_default
from planner.bind.generated import stored_generation
from planner.bind.index import index_keys
from planner.bind.policy import rebound_policies
from planner.bind.stored import rebase_default_text, rebase_view
from planner.bind.trigger import stored_condition
from planner.catalog import ConstraintDef, FunctionDef, RelationDef, TypeDef
from planner.errors import SqlError
from planner.named_oids import named_oids
from planner.partition import key_exprs


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
        from engine.ddl.types import drop_domain_checks  # it drops columns

        for use in self.parts:
            if session.catalog.relation_by_oid(use.relation.oid) is not None:
                await drop_use(session, use)
        await drop_domain_checks(session, self.checks)


def field_uses(
    catalog: CatalogSnapshot, trial: CatalogSnapshot, name: str, family: Collection[int], table: int = 0
) -> FieldUses:
    """Return what selects the field ``name`` of the type whose oids ``family`` is; ``trial`` is ``catalog`` without it.

    ``table``: the table that the field is a column of, whose own texts, and those of views and functions that read it, are looked at
    by who drops the column.
    """
    has = mentions(name)

    def breaks(text: str | None, bind: Callable[[], Any]) -> bool:
        if text is None or not (has(text) or named_oids(text).intersection(family)):
            return False
        try:
            bind()
        except SqlError:
            return True
        return False

    found = FieldUses([], [], [], [])
    broken: set[int] = set()  # views, those of who drops the column included
    for relation in catalog.user_relations():
        if relation.oid == table:
            continue
        if relation.kind in "vm" and breaks(relation.view_sql, partial(rebase_view, relation, trial, trial)):
            broken.add(relation.oid)
            if table not in relation.depends_on:
                found.views.append(relation)
                continue
        if relation.kind in "rmp":
            found.parts.extend(_parts(relation, trial, breaks))
    for made in catalog.user_types():
        for check in made.checks:
            bind = partial(stored_check, trial, made, check.check_sql, plain=False)
            if breaks(check.check_sql, bind):
                found.checks.append((made, check))
    for function in catalog.functions():
        if table not in function.depends_on and _function_breaks(function, trial, breaks):
            found.functions.append(function)
    # Others go with these.
    found.views[:] = [view for view in found.views if broken.isdisjoint(view.depends_on)]
    found.functions[:] = [function for function in found.functions if broken.isdisjoint(function.depends_on)]
    return found


_Breaks = Callable[[str | None, Callable[[], Any]], bool]


def _parts(table: RelationDef, trial: CatalogSnapshot, breaks: _Breaks) -> Iterator[Use]:
    key = table.partition_key
    if key is not None and breaks(" ".join(key.expressions), lambda: key_exprs(table, trial)):
        yield Use("table", table, 0)
        return
    for column in table.live:
        if column.hidden:
            continue
        sql, declared, attnum = column.default_sql, column.declared, column.attnum
        if column.generated:
            if breaks(sql, lambda at=attnum: stored_generation(table, at, trial)):  # type: ignore[misc]
                yield Use("column", table, attnum)
        elif breaks(sql, lambda s=sql, d=declared: rebase_default_text(s, d, trial, trial)):  # type: ignore[misc]
            yield Use("default", table, attnum)
    for constraint in table.constraints:
        if constraint.kind != "x" and breaks(
            constraint.check_sql,
            lambda c=constraint: bind_check(c.check_sql, table, trial),  # type: ignore[misc]
        ):
            yield Use("check", table, constraint.name)
    for index in table.indexes:
        text = " ".join((*index.expressions, index.where_sql))
        if index.computed and breaks(text, lambda i=index: index_keys(i, table, trial)):  # type: ignore[misc]
            served = next((c for c in table.exclusions if c.index_oid == index.oid), None)
            yield Use("index", table, index.oid) if served is None else Use("check", table, served.name)
    for trigger in table.triggers:
        if breaks(trigger.when_sql, lambda t=trigger: stored_condition(t, table, trial)):  # type: ignore[misc]
            yield Use("trigger", table, trigger.name)
    for policy in table.policies:
        alone = replace(table, policies=(policy,))
        if breaks(
            f"{policy.using_sql} {policy.check_sql}",
            lambda t=alone: rebound_policies(t, t, trial, lambda expr: expr),  # type: ignore[misc]
        ):
            yield Use("policy", table, policy.name)


def _function_breaks(function: FunctionDef, trial: CatalogSnapshot, breaks: _Breaks) -> bool:
    if function.body_sql and breaks(function.body_sql, lambda: rebase_body(function, trial, trial)):
        return True
    inputs = function.inputs[len(function.inputs) - len(function.defaults) :]
    return any(
        breaks(text, lambda t=text, o=oid: rebase_default(t, o, trial, trial))  # type: ignore[misc]
        for text, oid in zip(function.defaults, inputs, strict=True)
    )
