"""CREATE and ALTER DOMAIN as catalog changes, and looking at the values that columns of a domain have already.

    ALTER DOMAIN price ADD CHECK (VALUE < 100)
      columns of price, and of domains over it ──X locks──> every row looked at ──> the new definition

A type that changes makes every plan stale, so what is stored later keeps the new constraints. While a
transaction adds one, nobody else writes to the tables that have columns of the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.definitions.named_places import target_schema
from engine.definitions.table.rewrite import locked_rows
from engine.definitions.type_names import check_free, make_room
from engine.definitions.types import changed_type, new_type
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.stored.domain_checks import check_function, stored_check
from planner.catalog import ColumnDef, ConstraintDef, RelationDef, TypeDef
from planner.catalog.row_parts import parts_of
from planner.information.definitions import shown_value
from planner.types.facts import element_of, format_type

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot

Params = tuple[Any, ...]
MAX_NAME_BYTES = 63


async def create_domain(session: Session, plan: Plan, statement: st.CreateDomain, params: Params) -> Outcome:
    """CREATE DOMAIN. Raises SqlError 42710."""
    schema, schema_oid = await target_schema(
        session, statement.schema, "t" if statement.schema == "pg_temp" else "p"
    )
    await make_room(session, schema, statement.name)
    check_free(session.catalog, schema, statement.name)
    first = session.db.allocate_oids(2)
    made = new_type(
        session,
        (schema, schema_oid),
        statement.name,
        "d",
        first,
        base=statement.base.oid,
        base_typmod=statement.base.typmod,
        dims=statement.dims,
        not_null=statement.not_null,
        default_sql=statement.default_sql,
        default_shown=_shown(session, statement.default_sql),
        default_inherited=statement.default_inherited,
        collation=statement.collation,
    )
    for check in statement.checks:
        made = _with_check(session, made, check, validated=True)
    await session.view.change([made])
    return Command("CREATE DOMAIN")


def _shown(session: Session, sql: str | None) -> str | None:
    return None if sql is None else shown_value(session, sql)


def _with_check(session: Session, made: TypeDef, check: st.DomainCheck, *, validated: bool) -> TypeDef:
    """Return a domain with one more CHECK. Raises SqlError 42710."""
    name = check.name
    if name is None:
        name = _free_name(made)
    elif any(c.name == name for c in made.checks):
        raise SqlError("42710", f'constraint "{name}" for domain "{made.name}" already exists')
    added = ConstraintDef(
        oid=session.db.allocate_oids(1), name=name, kind="c", check_sql=check.sql, validated=validated
    )
    return replace(made, checks=(*made.checks, added))


def _free_name(made: TypeDef) -> str:
    """Return <domain>_check, numbered where that is taken (ChooseConstraintName)."""
    taken = {check.name for check in made.checks}
    number = 0
    while True:
        ending = "_check" + (str(number) if number else "")
        name = made.name.encode()[: MAX_NAME_BYTES - len(ending)].decode(errors="ignore") + ending
        if name not in taken:
            return name
        number += 1


async def set_default(
    session: Session, plan: Plan, statement: st.SetDomainDefault, params: Params
) -> Outcome:
    """SET DEFAULT, DROP DEFAULT: rows that are there keep their values."""
    made = changed_type(session, statement.type)
    sql = statement.default_sql
    shown = _shown(session, sql)
    await session.view.change([replace(made, default_sql=sql, default_shown=shown, default_inherited=False)])
    return Command(plan.bound.tag)


async def set_not_null(
    session: Session, plan: Plan, statement: st.SetDomainNotNull, params: Params
) -> Outcome:
    """SET NOT NULL, DROP NOT NULL. Raises SqlError 23502; 0A000 where an array of the domain is stored."""
    made = changed_type(session, statement.type)
    if statement.not_null and not made.not_null:
        for relation, column in list(_columns_of(session, made)):
            await _look_at(session, relation, column, lambda value: value is not None, _contains_nulls)
    await session.view.change([replace(made, not_null=statement.not_null)])
    return Command(plan.bound.tag)


async def add_check(session: Session, plan: Plan, statement: st.AddDomainCheck, params: Params) -> Outcome:
    """ADD CHECK. Raises SqlError 42710, 23514; 0A000 where an array of the domain is stored."""
    made = changed_type(session, statement.type)
    changed = _with_check(session, made, statement.check, validated=not statement.not_valid)
    if not statement.not_valid:
        await _validate(session, made, changed.checks[-1])
    await session.view.change([changed])
    return Command(plan.bound.tag)


async def validate_constraint(
    session: Session, plan: Plan, statement: st.ValidateDomainConstraint, params: Params
) -> Outcome:
    """VALIDATE CONSTRAINT. Raises SqlError 42704, 23514."""
    made = changed_type(session, statement.type)
    check = next((c for c in made.checks if c.name == statement.name), None)
    if check is None:
        raise SqlError("42704", f'constraint "{statement.name}" of domain "{statement.shown}" does not exist')
    await _validate(session, made, check)
    await session.view.change([_with_changed(made, replace(check, validated=True))])
    return Command(plan.bound.tag)


def _with_changed(made: TypeDef, check: ConstraintDef) -> TypeDef:
    return replace(made, checks=tuple(check if c.oid == check.oid else c for c in made.checks))


async def drop_constraint(
    session: Session, plan: Plan, statement: st.DropDomainConstraint, params: Params
) -> Outcome:
    """DROP CONSTRAINT [IF EXISTS]. Raises SqlError 42704."""
    made = changed_type(session, statement.type)
    kept = tuple(c for c in made.checks if c.name != statement.name)
    if len(kept) == len(made.checks):
        message = f'constraint "{statement.name}" of domain "{statement.shown}" does not exist'
        if not statement.if_exists:
            raise SqlError("42704", message)
        session.notice(f"{message}, skipping")
        return Command(plan.bound.tag)
    await session.view.change([replace(made, checks=kept)])
    return Command(plan.bound.tag)


async def rename_constraint(
    session: Session, plan: Plan, statement: st.RenameDomainConstraint, params: Params
) -> Outcome:
    """RENAME CONSTRAINT. Raises SqlError 42704, 42710."""
    made = changed_type(session, statement.type)
    check = next((c for c in made.checks if c.name == statement.old), None)
    shown = format_type(made.oid)
    if check is None:
        raise SqlError("42704", f'constraint "{statement.old}" for domain {shown} does not exist')
    if any(c.name == statement.new for c in made.checks):
        raise SqlError("42710", f'constraint "{statement.new}" for domain {shown} already exists')
    await session.view.change([_with_changed(made, replace(check, name=statement.new))])
    return Command(plan.bound.tag)


# --- values that are there already ----------------------------------------------------------------

_Error = Callable[[RelationDef, ColumnDef], SqlError]


async def _validate(session: Session, made: TypeDef, check: ConstraintDef) -> None:
    """Raise 23514 if a stored value breaks a CHECK, 42501 for functions in it that the user may not call."""
    called: set[int] = set()
    stored_check(session.catalog, made, check.check_sql, called)
    session.ask_calls(called)
    holds = check_function(session.catalog, made, check.check_sql)
    for relation, column in list(_columns_of(session, made)):
        await _look_at(session, relation, column, lambda value: holds(value, session), _violates)


async def _look_at(
    session: Session, relation: RelationDef, column: ColumnDef, holds: Callable[[Any], bool], error: _Error
) -> None:
    at = column.attnum - 1
    async for chunk in locked_rows(session, relation):
        if not all(holds(row[at]) for row in chunk):
            raise error(relation, column)


def _contains_nulls(relation: RelationDef, column: ColumnDef) -> SqlError:
    return SqlError(
        "23502",
        f'column "{column.name}" of table "{relation.name}" contains null values',
        schema=relation.schema,
        table=relation.name,
        column=column.name,
    )


def _violates(relation: RelationDef, column: ColumnDef) -> SqlError:
    return SqlError(
        "23514",
        f'column "{column.name}" of table "{relation.name}" contains values that violate the new constraint',
        schema=relation.schema,
        table=relation.name,
        column=column.name,
    )


def domains_over(session: Session, oid: int) -> set[int]:
    """Return a domain and all domains that are over it, arrays apart."""
    found = {oid}
    for made in sorted(session.catalog.user_types(), key=lambda t: t.oid):
        if made.is_domain and made.base in found:
            found.add(made.oid)
    return found


def _columns_of(session: Session, made: TypeDef) -> Iterator[tuple[RelationDef, ColumnDef]]:
    """Yield the stored columns of a domain, or of one over it.

    Raises SqlError 0A000 for a column of an array of one, or of rows that have a field of it.
    """
    family = domains_over(session, made.oid)
    containers = {oid: _containers(session, oid) for oid in sorted(family)}
    for relation in sorted(session.catalog.user_relations(), key=lambda r: r.oid):
        if not relation.stored and not relation.server:
            continue
        for column in relation.live:
            if column.domain in family:
                if relation.stored:
                    yield relation, column
                continue
            inside = next((oid for oid, types in containers.items() if _has(session, column, oid, types)), 0)
            if inside:
                raise SqlError(
                    "0A000",
                    f'cannot alter type "{format_type(inside)}" because column "{relation.name}.{column.name}" '
                    "uses it",
                )


def _containers(session: Session, oid: int) -> set[int]:
    """Return the domains over arrays of a type, the range types over it or those, and the domains over these."""
    found = {t.oid for t in session.catalog.user_types() if t.is_domain and element_of(t.base) == oid}
    found |= {other for one in found for other in domains_over(session, one)}
    return found | _ranges_over(session, {oid} | found)


def _has(session: Session, column: ColumnDef, oid: int, containers: Collection[int]) -> bool:
    """Tell whether values of a column have some of a domain within them."""
    inside = (column.type.oid, element_of(column.type.oid), column.domain, element_of(column.domain))
    return (
        oid == element_of(column.domain)
        or any(one in containers for one in inside)
        or _has_field(session.catalog, column, {oid, *containers})
    )


def _ranges_over(session: Session, types: Collection[int]) -> set[int]:
    """Return the range and multirange types that are over some types, and the domains over those."""
    made = [t for t in session.catalog.user_types() if t.kind == "r" and t.base in types]
    found = {oid for one in made for oid in (one.oid, one.multirange)}
    return found | {other for oid in found for other in domains_over(session, oid)}


def _has_field(catalog: CatalogSnapshot, column: ColumnDef, types: Collection[int]) -> bool:
    """Tell whether rows within a column's values have a field of one of some types, or of an array of it."""
    rows = [catalog.row_type(oid) for oid in parts_of(catalog, column.declared.oid)]
    fields = [field.declared.oid for row in rows if row is not None for field in row.live]
    return any(oid in types or element_of(oid) in types for oid in fields)
