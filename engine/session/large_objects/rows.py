"""The rows of pg_largeobject_metadata and pg_largeobject, some at a time, as queries read them
(``engine.executors.index.access.large_objects``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.base.eager import settle
from engine.catalog.acl_texts import acl_of
from engine.catalog.reading import Reading
from engine.catalog.storage.stored import PG_LARGEOBJECT_OID
from engine.session.large_objects.shards import CHUNK_ROWS, OBJECTS, OBJECTS_INDEX, PAGES, PAGES_INDEX
from txn.base.types import KeyRange

if TYPE_CHECKING:
    from engine.session.transaction.block import Block

PG_LARGEOBJECT_METADATA_OID: Final = 2995
RELATIONS: Final = frozenset((PG_LARGEOBJECT_OID, PG_LARGEOBJECT_METADATA_OID))
FEW: Final = CHUNK_ROWS
"""So many rows come at once; fewer are the last."""

Row = tuple[Any, ...]


class ObjectsSession(Reading, Protocol):
    """The session that reads large objects: those of its database, in its transaction."""

    @property
    def database_oid(self) -> int:
        """Oid of its database."""

    @property
    def block(self) -> Block:
        """Its transaction."""


async def objects(session: ObjectsSession, start: int) -> list[Row]:
    """Return (oid, lomowner, lomacl) of ``FEW`` large objects from number ``start`` on."""
    wanted = KeyRange(prefix=(session.database_oid,), lower=start, has_lower=True)
    txn = session.block.ensure_txn()
    found = await settle(txn.range(OBJECTS, OBJECTS_INDEX, wanted, limit=FEW))
    return [_object(session, row.values) for row in found]


async def one_object(session: ObjectsSession, number: int) -> list[Row]:
    """Return the row of one large object, if it is there."""
    key = (session.database_oid, number)
    found = await settle(session.block.ensure_txn().lookup(OBJECTS, OBJECTS_INDEX, [key]))
    return [_object(session, row.values) for row in found]


def _object(session: ObjectsSession, values: Row) -> Row:
    _database, number, owner = values
    return number, owner, acl_of(session, PG_LARGEOBJECT_OID, number)


async def pages(session: ObjectsSession, number: int, start: int) -> list[Row]:
    """Return (loid, pageno, data) of ``FEW`` pages of a large object from page ``start`` on."""
    wanted = KeyRange(prefix=(session.database_oid, number), lower=start, has_lower=True)
    found = await settle(session.block.ensure_txn().range(PAGES, PAGES_INDEX, wanted, limit=FEW))
    return [row.values[1:] for row in found]
