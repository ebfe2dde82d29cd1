"""Where new objects go, and ALTER ... RENAME TO, SET SCHEMA and OWNER TO of what has a name in a schema and
nothing that moves with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from engine.catalog.storage.fences import refusal
from engine.session.named_roles import named_role
from engine.session.session import Session
from planner.base.errors import SqlError
from planner.catalog import SchemaDef, TextSearchDef
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.opclasses import OpclassDef

if TYPE_CHECKING:
    from engine.session.session import Session

Placed: TypeAlias = TextSearchDef | OpclassDef | ConversionDef | CollationDef
T = TypeVar("T", bound=Placed)


class Altered(Protocol):
    """What is to be altered of it: whichever is there."""

    @property
    def name(self) -> str | None:
        """RENAME TO."""

    @property
    def schema(self) -> str | None:
        """SET SCHEMA."""

    @property
    def owner(self) -> str | None:
        """OWNER TO."""


def schema_oid(session: Session, name: str) -> int:
    """Return the oid of a schema. Raises SqlError 3F000."""
    schema = session.catalog.schema(name)
    if schema is None:
        raise SqlError("3F000", f'schema "{name}" does not exist')
    return schema.oid


async def alter_named(
    session: Session, found: T, altered: Altered, check_free: Callable[[str, str], None]
) -> None:
    """Alter it; nothing happens where it is in the schema already. ``check_free``: raises where the schema,
    given first, has one of the name.
    """
    if altered.owner is not None:
        await session.view.change([replace(found, owner=named_role(session, altered.owner).oid)])
        return
    if altered.schema == found.schema:
        return
    name, schema = altered.name or found.name, altered.schema or found.schema
    if schema != found.schema:
        refuse_temporary_move(schema)
    check_free(schema, name)
    await session.view.change(
        [replace(found, name=name, schema=schema, schema_oid=schema_oid(session, schema))]
    )


def _schema_oid(session: Session, name: str) -> int:
    schema = session.catalog.schema(name)
    if schema is None:
        raise SqlError("3F000", f'schema "{name}" does not exist')
    if name in ("pg_catalog", "information_schema"):
        raise SqlError(
            "42501",
            f"permission denied to create in schema {name}",
            detail="System catalog modifications are currently disallowed.",
        )
    fence = session.catalog.fenced.get(schema.oid)
    if fence is not None:
        raise refusal(fence)
    return schema.oid


async def target_schema(session: Session, name: str, persistence: str) -> tuple[str, int]:
    """Return the schema to create in; the session's temporary one is made at first use."""
    if persistence != "t":
        return name, _schema_oid(session, name)
    name = session.temp_schema
    session.has_temporaries = True
    schema = session.catalog.schema(name)
    if schema is None:
        schema = SchemaDef(oid=session.db.allocate_oids(1), name=name)
        await session.view.change([schema])
    return name, schema.oid


def refuse_type_name(session: Session, schema: str, name: str) -> None:
    """Raise SqlError 42710 for a relation that would be called as a type is: it has a row type of its own name."""
    if session.catalog.type_oid(schema, name) is not None:
        raise SqlError(
            "42710",
            f'type "{name}" already exists',
            hint="A relation has an associated type of the same name, so you must use a name that doesn't conflict "
            "with any existing type.",
        )


def exists_already(session: Session, schema: str, name: str, if_not_exists: bool) -> bool:
    """Tell whether to skip a CREATE; 42P07 when the name is taken and nothing was said."""
    if session.catalog.relation(schema, name) is None:
        refuse_type_name(session, schema, name)
        return False
    if not if_not_exists:
        raise SqlError("42P07", f'relation "{name}" already exists')
    session.notice(f'relation "{name}" already exists, skipping', sqlstate="42P07")
    return True


def refuse_temporary_move(*schemas: str) -> None:
    """Raise SqlError 0A000 where one of the schemas of a SET SCHEMA, where from and where to, is a session's
    temporary one.
    """
    if any(schema.startswith("pg_temp") for schema in schemas):
        raise SqlError("0A000", "cannot move objects into or out of temporary schemas")
