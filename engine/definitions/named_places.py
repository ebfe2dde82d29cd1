"""ALTER ... RENAME TO, SET SCHEMA and OWNER TO of what has a name in a schema and nothing that moves with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from engine.definitions.table.temporary import refuse_temporary_move
from engine.session.named_roles import named_role
from planner.base.errors import SqlError
from planner.catalog import TextSearchDef
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
    """Alter it; nothing happens where it is in the schema already. ``check_free``: raises where the schema, given first, has one of the name."""
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
