"""CREATE TYPE ... AS RANGE: a range type comes with its multirange type, the array types over both, and their
constructors.
"""

from __future__ import annotations

from typing import Any

from engine.catalog.type_names import array_name
from engine.definitions.named_places import target_schema
from engine.definitions.type_names import check_free, make_room
from engine.definitions.types import new_type
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.own_range import default_multirange_name
from planner.catalog import RANGE_CONSTRUCTORS


async def create_range(
    session: Session, plan: Plan, statement: st.CreateRange, params: tuple[Any, ...]
) -> Outcome:
    """CREATE TYPE ... AS RANGE. Raises SqlError 42710 where one of the names is taken."""
    schema, schema_oid = await target_schema(
        session, statement.schema, "t" if statement.schema == "pg_temp" else "p"
    )
    name = statement.name
    await make_room(session, schema, name)
    catalog = session.catalog
    check_free(catalog, schema, name)
    multirange = statement.multirange or default_multirange_name(name)
    try:
        check_free(catalog, schema, multirange)
        if multirange == name:
            raise SqlError("42710", f'type "{name}" already exists')
    except SqlError as error:
        if not statement.multirange:
            error.detail = f'Failed while creating a multirange type for type "{name}".'
            error.hint = (
                'You can manually specify a multirange type name using the "multirange_type_name" attribute.'
            )
        raise
    first = session.db.allocate_oids(4 + RANGE_CONSTRUCTORS)
    made = new_type(
        session,
        (schema, schema_oid),
        name,
        "r",
        first,
        base=statement.subtype,
        collation=statement.collation,
        multirange_name=multirange,
        multirange_array_name=array_name(catalog, schema, multirange),
        constructors=(name, multirange),
        subtype_diff=statement.subtype_diff,
    )
    await session.view.change([made])
    return Command("CREATE TYPE")
