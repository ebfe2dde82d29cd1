"""CREATE, ALTER and DROP CONVERSION as catalog changes (``planner.catalog.conversions``), and what they need
of a role. Nothing depends on one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import key_of
from engine.definitions.dropping.notices import kept_about
from engine.definitions.named_places import alter_named, schema_oid
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.codecs.text.encodings import NAMES
from pgwire.give_way import openly
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog.conversions import ConversionDef

Params = tuple[Any, ...]


def conversion_of(catalog: CatalogSnapshot, oid: int) -> ConversionDef:
    """Return a conversion. Raises Replan where it has been dropped since the plan was made."""
    found = catalog.conversion_by_oid(oid)
    if found is None:
        raise Replan
    return found


async def create_conversion(
    session: Session, plan: Plan, statement: st.CreateConversion, params: Params
) -> Outcome:
    """CREATE CONVERSION. Raises SqlError 42710 (there is one of the name, or a default one for the encodings)."""
    if session.catalog.conversion_named(statement.schema, statement.name) is not None:
        raise SqlError("42710", f'conversion "{statement.name}" already exists')
    if statement.default:
        for other in session.catalog.conversions():
            same = (other.schema, other.source, other.target) == (
                statement.schema,
                statement.source,
                statement.target,
            )
            if other.default and same:
                pair = f"{NAMES[statement.source]} to {NAMES[statement.target]}"
                raise SqlError("42710", f"default conversion for {pair} already exists")
    made = ConversionDef(
        oid=session.db.allocate_oids(1),
        schema_oid=schema_oid(session, statement.schema),
        schema=statement.schema,
        name=statement.name,
        owner=session.role_oid,
        source=statement.source,
        target=statement.target,
        function=statement.function,
        default=statement.default,
    )
    await session.view.change([made])
    return Command(plan.bound.tag)


async def alter_conversion(
    session: Session, plan: Plan, statement: st.AlterConversion, params: Params
) -> Outcome:
    """RENAME TO, SET SCHEMA, OWNER TO. Raises SqlError 42710, 42704."""
    found = conversion_of(session.catalog, statement.object)

    def check_free(schema: str, name: str) -> None:
        if session.catalog.conversion_named(schema, name) is not None:
            raise SqlError("42710", f'conversion "{name}" already exists in schema "{schema}"')

    await alter_named(session, found, statement, check_free)
    return Command(plan.bound.tag)


async def drop_conversion(
    session: Session, plan: Plan, statement: st.DropConversion, params: Params
) -> Outcome:
    """DROP CONVERSION."""
    for notice in statement.missing:
        session.notice(notice)
    await drop_conversions(session, [conversion_of(session.catalog, oid) for oid in statement.objects])
    return Command(plan.bound.tag)


async def drop_conversions(session: Session, gone: Iterable[ConversionDef]) -> None:
    """Drop conversions with what is said about them; those that have gone already are passed over."""
    left = {item.oid: item for item in gone if session.catalog.conversion_by_oid(item.oid) is not None}
    if left:
        about = openly(kept_about, session.catalog, set(left))
        await session.view.change([], [*map(key_of, left.values()), *about])
