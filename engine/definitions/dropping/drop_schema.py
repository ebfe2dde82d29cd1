"""DROP SCHEMA: all that is in schemas, and what hangs on that from outside.

    s  <── table s.t  <── view public.v             told: table s.t, view v
       <── sequence s.q  <── default of public.x.id       sequence s.q, default value for column id of table x
       <── type s.e  <── column public.x.e                 type s.e, column e of table x

Several schemas of one statement are dropped as one: what is in any of them is no dependent of another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from engine.catalog.default_acls import PG_DEFAULT_ACL_OID, split
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_NAMESPACE_OID, key_of
from engine.definitions import functions as depends
from engine.definitions.collations import drop_collations
from engine.definitions.conversions import drop_conversions
from engine.definitions.dropping.dependency_walk import Address, lines
from engine.definitions.dropping.dependency_walk import told as told_with
from engine.definitions.dropping.dependents import still_needed
from engine.definitions.dropping.drop import drop_relations
from engine.definitions.dropping.function_uses import drop_parts
from engine.definitions.dropping.notices import kept_about, notice_cascade
from engine.definitions.extensions import forget_extensions, in_schema
from engine.definitions.opclasses import drop_objects as drop_opclasses
from engine.definitions.table.statistics_parts import drop_statistics_in
from engine.definitions.text_search import asked_by, drop_objects
from engine.definitions.types import drop_types
from pgwire.give_way import openly, paced_iter, paced_sorted, spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import ExtensionDef, FunctionDef, RelationDef, SchemaDef, TextSearchDef, TypeDef
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.opclasses import OpclassDef
from planner.catalog.statistics import StatisticsDef

if TYPE_CHECKING:
    from engine.session.session import Session


async def drop_schemas(session: Session, statement: st.Drop) -> None:
    """Run DROP SCHEMA. Raises SqlError 3F000 (no such schema), 2BP01 (what the system needs; what is not
    empty without CASCADE).
    """
    schemas: list[SchemaDef] = []
    for _, name in spaced(statement.names):
        schema = session.catalog.schema(name)
        if schema is None:
            if not statement.if_exists:
                raise SqlError("3F000", f'schema "{name}" does not exist')
            session.notice(f'schema "{name}" does not exist, skipping')
        elif name in ("pg_catalog", "information_schema"):
            raise SqlError(
                "2BP01", f"cannot drop schema {name} because it is required by the database system"
            )
        elif schema not in schemas:
            schemas.append(schema)
    if schemas:
        await _drop(session, schemas, cascade=statement.cascade)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What schemas hold, relations and types by oid."""

    relations: Sequence[RelationDef]
    types: Sequence[TypeDef]
    called: Sequence[FunctionDef]
    extensions: Sequence[ExtensionDef]
    searching: Sequence[TextSearchDef]
    ordering: Sequence[OpclassDef]
    converting: Sequence[ConversionDef]
    collating: Sequence[CollationDef]
    statistics: Sequence[StatisticsDef]

    @property
    def anything(self) -> bool:
        """Whether they hold anything at all."""
        return any(getattr(self, part.name) for part in fields(self))


def _held_by(catalog: CatalogSnapshot, names: Collection[str], oids: Collection[int]) -> _Held:
    """Return what schemas hold, giving way over catalogs of any size."""
    return _Held(
        relations=paced_sorted(
            (r for r in paced_iter(catalog.user_relations()) if r.schema in names), _oid_of
        ),
        types=paced_sorted((t for t in paced_iter(catalog.user_types()) if t.schema in names), _oid_of),
        called=[function for name in sorted(names) for function in paced_iter(catalog.functions_in(name))],
        extensions=[one for oid in sorted(oids) for one in in_schema(catalog, oid)],
        searching=[item for item in paced_iter(catalog.text_search()) if item.schema in names],
        ordering=[item for item in paced_iter(catalog.opclasses()) if item.schema in names],
        converting=[item for item in paced_iter(catalog.conversions()) if item.schema in names],
        collating=[item for item in paced_iter(catalog.collations()) if item.schema in names],
        statistics=[one for _, one in paced_iter(catalog.statistics().values()) if one.schema_oid in oids],
    )


_oid_of: Final = attrgetter("oid")


async def _drop(session: Session, schemas: Sequence[SchemaDef], *, cascade: bool) -> None:
    catalog = session.catalog
    oids = {schema.oid for schema in schemas}
    found = openly(_held_by, catalog, {schema.name for schema in schemas}, oids)
    asking, _links = asked_by(session, found.searching)
    named = [*oids, *(i.oid for i in (*found.called, *found.searching, *asking))]
    views, hanging, _links = openly(depends.dependents, session, {*(r.oid for r in found.relations), *named})
    told = openly(told_with, session, [Address(PG_NAMESPACE_OID, schema.oid) for schema in schemas])
    # also where pg_depend has no row of it: a schema that holds something never goes alone
    holds = bool(found.anything or told or views or hanging)
    if holds and not cascade:
        what = f"schema {schemas[0].name}" if len(schemas) == 1 else None
        raise still_needed(what, lines(told))
    if holds:
        notice_cascade(session, [one.what for one in spaced(told)])
        await drop_relations(session, [*found.relations, *views], cascade=True, quiet=True)
        await drop_parts(session, oids)
        await drop_statistics_in(session, oids)
        await depends.drop_functions(session, [*found.called, *hanging], cascade=True, quiet=True)
        left = [t for t in map(session.catalog.type_by_oid, [t.oid for t in found.types]) if t is not None]
        await drop_types(session, left, cascade=True, quiet=True)
        await drop_objects(session, found.searching, cascade=True, quiet=True)
        await drop_opclasses(session, found.ordering)
        await drop_conversions(session, found.converting)
        await drop_collations(session, found.collating)
        await forget_extensions(session, found.extensions)
    gone = openly(kept_about, session.catalog, oids)
    gone += [
        key_of(acl)
        for acl in spaced(session.catalog.acls())
        if acl.class_oid == PG_DEFAULT_ACL_OID and split(acl.sub_id)[0] in oids
    ]
    await session.view.change([], [*map(key_of, schemas), *gone])
