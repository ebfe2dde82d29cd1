"""CREATE, ALTER and DROP COLLATION as catalog changes (``planner.catalog.collations``).

DROP COLLATION c CASCADE      columns, indexes, domains, ranges, what is divided by it, and whatever names it in an expression
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import key_of
from engine.definitions import functions
from engine.definitions.dropping.dependency_walk import Address, Told, lines, told
from engine.definitions.dropping.dependents import still_needed
from engine.definitions.dropping.drop import drop_relations
from engine.definitions.dropping.function_uses import drop_parts
from engine.definitions.dropping.notices import kept_about, notice_cascade
from engine.definitions.dropping.uses import uses_of
from engine.definitions.named_places import alter_named, schema_oid
from engine.definitions.types import drop_attribute, drop_types
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.give_way import openly
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.catalog.collations import PG_COLLATION, CollationDef
from planner.facts import rows
from planner.information.describe import describe_object

Params = tuple[Any, ...]

_UTF8 = 6


def collation_of(catalog: CatalogSnapshot, oid: int) -> CollationDef:
    """Return a user's collation. Raises Replan where it has been dropped since the plan was made."""
    found = catalog.collation_by_oid(oid)
    if found is None:
        raise Replan
    return found


def _taken(catalog: CatalogSnapshot, schema: str, name: str) -> int | None:
    """Return the encoding of a schema's collation of a name, which no two have, None where there is none."""
    made = catalog.collation_named(schema, name)
    if made is not None:
        return made.encoding
    if schema == "pg_catalog":
        return next(
            (
                encoding
                for row in rows("collations")
                if row["collname"] == name and (encoding := int(row["collencoding"])) in (-1, _UTF8)
            ),
            None,
        )
    return None


async def create_collation(
    session: Session, plan: Plan, statement: st.CreateCollation, params: Params
) -> Outcome:
    """CREATE COLLATION. Raises SqlError 42710, with IF NOT EXISTS a notice."""
    taken = _taken(session.catalog, statement.schema, statement.name)
    if taken is not None:
        # of any encoding, or of the same one as a new one
        same = ' for encoding "UTF8"' if taken == statement.encoding == _UTF8 else ""
        told_ = f'collation "{statement.name}"{same} already exists'
        if not statement.if_not_exists:
            raise SqlError("42710", told_)
        session.notice(f"{told_}, skipping", sqlstate="42710")
        return Command(plan.bound.tag)
    made = CollationDef(
        oid=session.db.allocate_oids(1),
        schema_oid=schema_oid(session, statement.schema),
        schema=statement.schema,
        name=statement.name,
        owner=session.role_oid,
        encoding=statement.encoding,
        collate=statement.collate,
        ctype=statement.ctype,
        version=statement.version,
    )
    await session.view.change([made])
    return Command(plan.bound.tag)


async def alter_collation(
    session: Session, plan: Plan, statement: st.AlterCollation, params: Params
) -> Outcome:
    """RENAME TO, SET SCHEMA, OWNER TO. Raises SqlError 42710, 42704."""
    found = collation_of(session.catalog, statement.object)

    def check_free(schema: str, name: str) -> None:
        taken = _taken(session.catalog, schema, name)
        if taken is not None:
            same = ' for encoding "UTF8"' if taken == _UTF8 else ""
            raise SqlError("42710", f'collation "{name}"{same} already exists in schema "{schema}"')

    await alter_named(session, found, statement, check_free)
    return Command(plan.bound.tag)


async def drop_collation(
    session: Session, plan: Plan, statement: st.DropCollation, params: Params
) -> Outcome:
    """DROP COLLATION. Raises SqlError 2BP01 where anything needs one, without CASCADE."""
    for notice in statement.missing:
        session.notice(notice)
    gone = [collation_of(session.catalog, oid) for oid in statement.objects]
    asked = [Address(PG_COLLATION, item.oid) for item in gone]
    hanging: list[Told] = openly(told, session, asked) if asked else []
    if hanging and not statement.cascade:
        what = describe_object(session, PG_COLLATION, gone[0].oid, 0) if len(gone) == 1 else None
        raise still_needed(what, lines(hanging))
    notice_cascade(session, [one.what for one in hanging])
    await drop_collations(session, gone)
    return Command(plan.bound.tag)


async def drop_collations(session: Session, gone: Iterable[CollationDef]) -> None:
    """Drop collations with what needs them, and what is said about them; those that have gone already are
    passed over.
    """
    left = {item.oid: item for item in gone if session.catalog.collation_by_oid(item.oid) is not None}
    if not left:
        return
    oids = set(left)
    for type_ in [made for made in session.catalog.user_types() if made.kind == "c"]:
        for column in [c for c in type_.attributes if c.collation in oids and not c.dropped]:
            made = session.catalog.type_by_oid(type_.oid)
            if made is not None and not made.attributes[column.attnum - 1].dropped:
                await drop_attribute(session, made, column.attnum)
    types = [made for made in session.catalog.user_types() if made.kind != "c" and made.collation in oids]
    await drop_types(session, types, cascade=True, quiet=True)
    views, called, _links = functions.dependents(session, oids)
    views += [use.relation for use in openly(uses_of, session, oids) if use.kind == "view"]
    await drop_parts(session, oids)
    await functions.drop_functions(session, called, cascade=True, quiet=True)
    there: dict[int, RelationDef] = {
        view.oid: view for view in views if session.catalog.relation_by_oid(view.oid) is not None
    }
    if there:
        await drop_relations(session, list(there.values()), cascade=True, quiet=True)
    about = openly(kept_about, session.catalog, oids)
    await session.view.change([], [*map(key_of, left.values()), *about])
