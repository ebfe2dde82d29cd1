"""The rows of pg_largeobject_metadata and pg_largeobject, some at a time, as queries read them (``engine.executors.index.access.large_objects``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import settle
from engine.catalog.acl_texts import acl_of
from engine.catalog.storage.stored import PG_LARGEOBJECT_OID
from engine.session.large_objects.shards import CHUNK_ROWS, OBJECTS, OBJECTS_INDEX, PAGES, PAGES_INDEX
from txn.base.types import KeyRange

if TYPE_CHECKING:
    from engine.session.session import Session

PG_LARGEOBJECT_METADATA_OID: Final = 2995
RELATIONS: Final = frozenset((PG_LARGEOBJECT_OID, PG_LARGEOBJECT_METADATA_OID))
FEW: Final = CHUNK_ROWS
"""So many rows come at once; fewer are the last."""

Row = tuple[Any, ...]


async def objects(session: Session, start: int) -> list[Row]:
    """Return (oid, lomowner, lomacl) of ``FEW`` large objects from number ``start`` on."""
    wanted = KeyRange(prefix=(session.database_oid,), lower=start, has_lower=True)
    txn = session.block.ensure_txn()
    found = await settle(txn.range(OBJECTS, OBJECTS_INDEX, wanted, limit=FEW))
    return [_object(session, row.values) for row in found]


async def one_object(session: Session, number: int) -> list[Row]:
    """Return the row of one large object, if it is there."""
    key = (session.database_oid, number)
    found = await settle(session.block.ensure_txn().lookup(OBJECTS, OBJECTS_INDEX, [key]))
    return [_object(session, row.values) for row in found]


def _object(session: Session, values: Row) -> Row:
    _database, number, owner = values
    return number, owner, acl_of(session, PG_LARGEOBJECT_OID, number)


async def pages(session: Session, number: int, start: int) -> list[Row]:
    """Return (loid, pageno, data) of ``FEW`` pages of a large object from page ``start`` on."""
    wanted = KeyRange(prefix=(session.database_oid, number), lower=start, has_lower=True)
    found = await settle(session.block.ensure_txn().range(PAGES, PAGES_INDEX, wanted, limit=FEW))
    return [row.values[1:] for row in found]
