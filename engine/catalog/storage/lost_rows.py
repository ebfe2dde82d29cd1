"""What is made of a catalog some of whose rows were lost with a file: ``engine.server.database`` asks while it starts.

rows of which only the key is left    fenced off one by one (``fences``); the first databases and schemas public are assumed
rows of which nothing is left         nothing is written: a definition that is there may be old (``stale``), and tables without
one are listed (``add_tables``)
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress

from engine.catalog.physical import shard_spec
from engine.catalog.storage.fences import Unread, words
from engine.catalog.storage.initial import new_database_items
from engine.catalog.storage.store import Unreadable, split_key
from engine.catalog.storage.stored import Stored, StoredKey, key_of
from planner.base.errors import SqlError
from planner.catalog import DatabaseDef, RelationDef, SchemaDef
from planner.types.facts import FIRST_USER_OID
from txn.base.types import ShardId, ShardSpec

log = logging.getLogger("holdfast")


def assumed(
    unread: dict[StoredKey, Unreadable], databases: Mapping[StoredKey, Stored]
) -> dict[StoredKey, Stored]:
    """Take from ``unread`` the first databases and schemas public of whose rows nothing is left: they are
    what they were at first.

    Everything is in them, and all that can be lost of them is who owns them, and new names. ``databases``:
    what a new server has.
    """
    found: dict[StoredKey, Stored] = {}
    first = {key: item for key, item in databases.items() if isinstance(item, DatabaseDef)}
    public = next(item for item in new_database_items() if isinstance(item, SchemaDef))
    for key, (body, error) in list(unread.items()):
        with suppress(ValueError):  # of no kind that is known
            item = public if split_key(key)[1] == key_of(public) else first.get(key)
            if item is not None and not body:
                log.error("%s is taken for what it was at first: %s", words(item), error.reason)
                found[key] = item
                del unread[key]
    return found


def stale(stored: Mapping[ShardId, ShardSpec], lost: str, item: Stored) -> str:
    """Return why an object must not be believed, "" if it may be: a table whose rows are not of the columns
    and indexes that it says.

    ``stored``: the schemas of all shards; ``lost``: what was lost, as a phrase.
    """
    if not isinstance(item, RelationDef) or item.kind not in ("r", "m"):
        return ""
    there = stored.get(ShardId(item.oid))
    with suppress(KeyError, SqlError):  # of a type that is not there, for which it is fenced off as well
        made = shard_spec(item)
        if there is not None and (there.columns, there.indexes) == (made.columns, made.indexes):
            return ""
    return f"its definition is not that of its rows: {lost}"


def add_tables(
    items: Mapping[StoredKey, Stored],
    unread: dict[StoredKey, Unreadable],
    stored: Mapping[ShardId, ShardSpec],
    damaged: Collection[ShardId],
) -> None:
    """Add to ``unread`` the tables of which the store has rows and the catalog nothing; they are listed in
    the first database.
    """
    known = {oid for _database, (kind, oid, _sub) in map(split_key, items) if kind == "relation"}
    for shard in sorted({*stored, *damaged}):
        key = "relation", int(shard), 0
        if shard >= FIRST_USER_OID and shard not in known and key not in unread:
            columns = f"{len(stored[shard].columns)} columns" if shard in stored else "unknown columns"
            unread[key] = b"", Unread(f"a table of {columns}, of which the catalog is lost")
