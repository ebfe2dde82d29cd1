"""RENAME ATTRIBUTE and RENAME COLUMN: stored texts that select the field by its name are written anew.

    CHECK ((at).x > 0)      CREATE VIEW v AS SELECT (p.one).x      FROM spots(3) s   s.x

    ALTER TYPE spot RENAME ATTRIBUTE x TO east       CHECK ((at).east > 0), (p.one).east AS x, s.east AS x

PostgreSQL's stored expressions have fields by number. Here a text is bound as of before the change and
printed with the names of after it (``planner.bind.stored.renamed``). Every text in which the old name stands
is looked at; most come out as they were. Functions whose body is a text are left alone, as in PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import Stored
from engine.session.session import Session
from planner.base.quoting import quote_identifier
from planner.bind import bind_check
from planner.bind.define.functions import rebase_body, rebase_default
from planner.bind.define.policy import rebound_policies
from planner.bind.define.statistics import rebound_statistics
from planner.bind.define.table.generated import stored_generation
from planner.bind.define.table.index import rebound_indexes
from planner.bind.define.trigger import rebound_triggers
from planner.bind.stored import rebase_default_text, rebase_readable_view
from planner.bind.stored.domain_checks import stored_check
from planner.bind.stored.renaming import renamed
from planner.catalog import FunctionDef, RelationDef, TypeDef
from planner.catalog.relation_kinds import BY_QUERY, WITH_EXPRESSIONS
from planner.deparse import deparse_expr
from planner.query import Expr

Mentions = Callable[[str | None], bool]


def mentions(name: str) -> Mentions:
    """Return the function that tells whether a stored text may select a field of this name."""
    field = re.compile(r"\." + re.escape(quote_identifier(name)) + r"(?![\w$])")
    return lambda text: text is not None and field.search(text) is not None


async def rename_fields(
    session: Session, before: CatalogSnapshot, name: str, *, renamed_table: int = 0
) -> None:
    """Write texts anew in which a field was called ``name`` in ``before``; the session's catalog has its new name.

    ``renamed_table``: the oid of the table that the column is of; its texts, and those of views that read it,
    have been written anew.
    """
    has = mentions(name)
    after = session.catalog
    changed: list[Stored] = []
    for relation in before.user_relations():
        if relation.oid == renamed_table:
            continue
        if relation.kind in BY_QUERY and renamed_table not in relation.depends_on and has(relation.view_sql):
            text = rebase_readable_view(relation, before, after)
            if text != relation.view_sql:
                version = session.db.next_catalog_version()
                changed.append(replace(relation, view_sql=text, version=version))
        made = _table(relation, before, after, has)
        if made != relation:
            changed.append(replace(made, version=session.db.next_catalog_version()))
    for type_ in before.user_types():
        domain = _domain(type_, before, after, has)
        if domain != type_:
            changed.append(domain)
    for function in before.functions():
        rewritten = _function(function, before, after, has, renamed_table)
        if rewritten != function:
            changed.append(rewritten)
    if changed:
        await session.view.change(changed)


def _table(table: RelationDef, before: CatalogSnapshot, after: CatalogSnapshot, has: Mentions) -> RelationDef:
    """Return a table with its defaults, checks, generated columns and indexes under new names."""
    if table.kind not in WITH_EXPRESSIONS:
        return table

    def change(expr: Expr) -> Expr:
        made: Expr = renamed(expr, after)
        return made

    def text(expr: Expr) -> str:
        return deparse_expr(change(expr), table)

    columns = []
    for column in table.columns:
        sql = column.default_sql
        if sql is not None and has(sql) and not column.dropped and not column.hidden:
            if column.generated:
                sql = text(stored_generation(table, column.attnum, before))
            else:
                sql = rebase_default_text(sql, column.declared, before, after)
            column = replace(column, default_sql=sql)
        columns.append(column)
    constraints = tuple(
        replace(c, check_sql=text(bind_check(c.check_sql, table, before))) if has(c.check_sql) else c
        for c in table.constraints
    )
    table = replace(table, columns=tuple(columns), constraints=constraints)
    if any(has(trigger.when_sql) for trigger in table.triggers):
        table = replace(table, triggers=rebound_triggers(table, table, before, change))
    if any(has(sql) for policy in table.policies for sql in (policy.using_sql, policy.check_sql)):
        table = replace(table, policies=rebound_policies(table, table, before, change))
    if any(has(sql) for statistics in table.statistics for sql in statistics.expressions):
        table = replace(table, statistics=rebound_statistics(table, table, before, change))
    if any(has(sql) for index in table.every_index for sql in (*index.expressions, index.where_sql)):
        table = rebound_indexes(table, table, before, change)
    return table


def _domain(type_: TypeDef, before: CatalogSnapshot, after: CatalogSnapshot, has: Mentions) -> TypeDef:
    if not type_.is_domain:
        return type_
    checks = tuple(
        replace(
            check,
            check_sql=deparse_expr(renamed(stored_check(before, type_, check.check_sql, plain=False), after)),
        )
        if has(check.check_sql)
        else check
        for check in type_.checks
    )
    default = type_.default_sql
    if default is not None and has(default):
        default = rebase_default_text(default, type_.base_type, before, after)
    return replace(type_, checks=checks, default_sql=default)


def _function(
    function: FunctionDef, before: CatalogSnapshot, after: CatalogSnapshot, has: Mentions, renamed_table: int
) -> FunctionDef:
    body = function.body_sql
    if has(body) and renamed_table not in function.depends_on:
        body = rebase_body(function, before, after)
    defaults = tuple(
        rebase_default(text, oid, before, after) if has(text) else text
        for text, oid in zip(
            function.defaults, function.inputs[len(function.inputs) - len(function.defaults) :], strict=True
        )
    )
    return replace(function, body_sql=body, defaults=defaults)
