"""The catalog shard: how catalog objects are stored as rows of an ordinary shard.

    (kind text, oid int8, sub int8, body bytea)   primary key (kind, oid, sub)

``kind`` of what belongs to one database ends with its oid, ``relation@16500``, but for the first one's (oid
5); that of shared objects never does.

``body`` is one format byte and the object in msgpack. Because they are rows, catalog changes commit in the
same log entry as data and schema registrations (U10), and recover the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from engine.base.eager import settle
from engine.catalog.references import stored_texts
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.fences import Unread
from engine.catalog.storage.stored import (
    CATALOG_SHARD,
    DATABASE_OID,
    PG_AUTHID_OID,
    PG_DATABASE_OID,
    CommentDef,
    Stored,
    StoredKey,
    key_of,
    row_array_oid,
    row_type_oid,
)
from engine.catalog.user_types import register, register_rows_of
from pgwire.codecs.registry import text_input, text_output
from pgwire.codecs.settings import STORED_TEXT
from pgwire.give_way import between, openly
from pgwire.long.values import joined_bytes
from planner.catalog import (
    AclDef,
    ColumnDef,
    ConfigurationDef,
    DatabaseDef,
    DefaultsDef,
    DictionaryDef,
    ExtensionDef,
    FunctionDef,
    RelationDef,
    RoleDef,
    SchemaDef,
    SourceDef,
    TimelineDef,
    TypeDef,
)
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import MappingDef, ServerDef, WrapperDef
from planner.catalog.opclasses import OperatorClassDef, OperatorFamilyDef
from planner.catalog.parameters import PG_PARAMETER_ACL
from planner.catalog.relation_kinds import ROW_TYPED
from planner.parse import is_sql
from txn.api import Transaction
from txn.base.types import IndexId, PhysicalType, RowId, ShardColumn, ShardId, ShardIndex, ShardSpec
from txn.upkeep.changes import Change

T = TypeVar("T")

FORMAT = 1
INDEX = IndexId(2)
_STAGED: Final = 64

Unreadable: TypeAlias = tuple[bytes, Unread]
"""The body of a row that cannot be read, and why."""

SPEC = ShardSpec(
    shard=ShardId(CATALOG_SHARD),
    version=1,
    columns=(
        ShardColumn(attnum=1, type=PhysicalType(kind="text")),
        ShardColumn(attnum=2, type=PhysicalType(kind="int64")),
        ShardColumn(attnum=3, type=PhysicalType(kind="int64")),
        ShardColumn(attnum=4, type=PhysicalType(kind="bytes")),
    ),
    indexes=(ShardIndex(index=INDEX, attnums=(1, 2, 3), unique=True, primary=True),),
)

_TYPES: dict[str, type[Any]] = {
    "comment": CommentDef, "acl": AclDef, "schema": SchemaDef, "relation": RelationDef, "role": RoleDef, "timeline": TimelineDef,
    "source": SourceDef, "database": DatabaseDef, "defaults": DefaultsDef, "type": TypeDef,
    "function": FunctionDef, "extension": ExtensionDef, "text configuration": ConfigurationDef,
    "text dictionary": DictionaryDef, "foreign wrapper": WrapperDef, "foreign server": ServerDef, "user mapping": MappingDef,
    "operator family": OperatorFamilyDef, "operator class": OperatorClassDef,
    "conversion": ConversionDef, "collation": CollationDef,
}  # fmt: skip

_SHARED: Final = frozenset(
    (
        "role", "timeline", "database", "defaults", f"comment/{PG_AUTHID_OID}", f"comment/{PG_DATABASE_OID}",
        f"acl/{PG_DATABASE_OID}", f"acl/{PG_PARAMETER_ACL}",
    )
)  # fmt: skip


def is_shared(kind: str) -> bool:
    """Tell whether objects of a kind are in the catalogs of all databases."""
    return kind in _SHARED


def stored_key(database: int, key: StoredKey) -> StoredKey:
    """Return the key in the catalog shard of an object that a database's catalog has under ``key``."""
    kind, oid, sub = key
    if database == DATABASE_OID or kind in _SHARED:
        return key
    return f"{kind}@{database}", oid, sub


def split_key(stored: StoredKey) -> tuple[int, StoredKey]:
    """Return what ``stored_key`` was made of; database 0 for shared objects. Raises ValueError for a kind
    that is none.
    """
    kind, oid, sub = stored
    if kind in _SHARED:
        return 0, stored
    local, at, database = kind.rpartition("@")
    return (int(database), (local, oid, sub)) if at else (DATABASE_OID, stored)


# Missing values are stored in the canonical text form, so that settings never change what they mean.
_CANONICAL = STORED_TEXT


def _portable(column: ColumnDef) -> ColumnDef:
    if column.missing_value is None:
        return column
    if column.dropped:
        return replace(column, missing_value=None)
    text = text_output(column.type.oid, column.missing_value, _CANONICAL)
    return replace(column, missing_value=text)


def _restored(column: ColumnDef) -> ColumnDef:
    if column.missing_value is None:
        return column
    if column.dropped:  # its type may have gone with it, and nobody can say what the text means
        return replace(column, missing_value=None)
    value = text_input(column.type.oid, str(column.missing_value), column.type.typmod, _CANONICAL)
    return replace(column, missing_value=value)


def encode(item: Stored) -> bytes:
    """Return an object's body."""
    if isinstance(item, RelationDef):
        item = replace(item, columns=tuple(_portable(c) for c in item.columns))
    elif isinstance(item, TypeDef) and len(item.labels) > MANY:
        return _with_many_labels(item)
    return bytes([FORMAT]) + msgspec.msgpack.encode(item)


MANY: Final = 512
"""Labels of an enum that are encoded in one call of C."""


def _with_many_labels(item: TypeDef) -> bytes:
    """As ``encode``, of an enum of many labels, which are encoded some at a time and put in, letting others
    run where it may.
    """
    pieces: list[bytes] = []
    for mark in (number.to_bytes(8, "big") for number in count()):  # stands for them
        pieces = msgspec.msgpack.encode(replace(item, labels=cast(Any, msgspec.Raw(mark)))).split(mark)
        if len(pieces) == 2:
            break
    before, after = pieces
    parts = [bytes([FORMAT]), before, b"\xdd", len(item.labels).to_bytes(4, "big")]  # msgpack's array 32
    for at in range(0, len(item.labels), MANY):
        parts.append(b"".join(map(_encode, item.labels[at : at + MANY])))
        between()
    return openly(joined_bytes, [*parts, after])


_encode: Final = msgspec.msgpack.Encoder().encode


def decode(key: StoredKey, body: bytes) -> Stored:
    """Read a row; ``key``: as the catalog shard has it. Raises Unread where that cannot be, whatever its bytes are."""
    kind, oid, sub = key
    if not body or body[0] != FORMAT:
        number = f"{body[0]}" if body else "none"
        raise Unread(f"its row is of format {number}; this server knows {FORMAT}")
    target = _TYPES.get(kind.partition("@")[0].partition("/")[0])
    if target is None:
        raise Unread(f'this server knows no "{kind}"')
    try:
        item: Stored = msgspec.msgpack.decode(body[1:], type=target)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unread(f"its row: {error}") from error
    if key_of(item) != (kind.partition("@")[0], oid, sub):
        raise Unread(f"its row is filed under {oid}, but is another object's")
    if isinstance(item, RelationDef) and any(column.missing_value is not None for column in item.columns):
        try:
            return replace(item, columns=tuple(_restored(c) for c in item.columns))
        except (
            Exception
        ) as error:  # what reads values of types that are not there, or other texts, may raise anything
            raise Unread(f"a value of rows that are older than a column: {error!r}", item) from error
    return item


def read_row(key: StoredKey, body: bytes) -> Stored:
    """As ``decode``, and see that the texts of the object are SQL."""
    item = decode(key, body)
    for where, text in stored_texts(item):
        if not is_sql(text):
            raise Unread(f"its {where or 'definition'} is no SQL: {text[:100]}", item)
    return item


class Read(NamedTuple):
    """What was read of the catalog: objects, the bytes of what cannot be read, with the reasons, and how many
    rows have not even a key.
    """

    items: dict[StoredKey, Stored]
    unread: dict[StoredKey, Unreadable]
    nameless: int = 0


LOST: Final = "a data file that held its row is damaged"


async def read_items(txn: Transaction, lost: str = LOST) -> Read:
    """Read the whole catalog as of the transaction. None stands where a value was lost with its file
    (``TxnOptions.salvaged_shards``).

    ``lost``: the reason of these.
    """
    every = [row.values async for chunk in txn.scan(ShardId(CATALOG_SHARD)) for row in chunk]
    rows = [row for row in every if None not in row[:3]]
    know_types(row for row in rows if row[3] is not None)
    found: dict[StoredKey, Stored] = {}
    unread: dict[StoredKey, Unreadable] = {}
    for kind, oid, sub, body in rows:
        key = kind, oid, sub
        if body is None:
            unread[key] = b"", Unread(lost)
            continue
        try:
            split_key(key)
            found[key] = read_row(key, body)
        except ValueError:
            unread[key] = body, Unread(f'this server knows no "{kind}"')
        except Unread as error:
            unread[key] = body, error
    return Read(found, unread, len(every) - len(rows))


def know_types(rows: Iterable[Sequence[Any]]) -> None:
    """Make the types among catalog rows known, as far as they can be read: missing values of columns are of them.

    What a domain is over was made before it, so its oid is lower.
    """
    types: list[Stored] = []
    for row in rows:
        if None in row:  # lost with a damaged file: nothing is known of it
            continue
        kind, oid, sub, body = row
        local = kind.partition("@")[0]
        try:
            if local == "type":
                types.append(decode((kind, oid, sub), body))
            elif local == "relation" and _kind_of(body) in ROW_TYPED:
                register_rows_of(row_type_oid(oid), row_array_oid(oid))
        except Unread:
            continue  # who reads the row says so
    for type_ in sorted((t for t in types if isinstance(t, TypeDef)), key=lambda t: t.oid):
        with suppress(
            KeyError
        ):  # what it is over is not there, which is found where references are looked at
            register(type_)


class _OfKind(msgspec.Struct):
    """What is read of a relation before its columns can be."""

    kind: str


def _kind_of(body: bytes) -> str:
    try:
        return msgspec.msgpack.decode(body[1:], type=_OfKind).kind
    except msgspec.MsgspecError:
        return "r"


def read_undo(rows: Iterable[Change], undo: dict[StoredKey, Stored | None]) -> None:
    """Add to ``undo`` what takes back changes of the catalog shard: the object before, None if there was none.

    The types of all that is read have to be known (``know_types``). Raises Unread.
    """
    for change in rows:
        kind, oid, sub, body = change.row
        if None in change.row:
            raise Unread(LOST)
        if change.diff < 0:
            undo[kind, oid, sub] = decode((kind, oid, sub), body)
        else:
            undo.setdefault((kind, oid, sub), None)


async def write_changes(
    txn: Transaction, base: CatalogSnapshot, puts: Iterable[Stored], deletes: Iterable[StoredKey]
) -> None:
    """Stage changes of a database's catalog as row changes. ``base`` tells which database, and which keys exist."""
    shard = ShardId(CATALOG_SHARD)
    inserts: list[tuple[Any, ...]] = []
    updates: list[tuple[RowId, tuple[Any, ...]]] = []
    removed: list[RowId] = []
    for item in puts:
        key = key_of(item)
        row = (*stored_key(base.database, key), encode(item))
        if key in base.items:
            found = await _lookup(txn, stored_key(base.database, key))
            updates.append((found, row))
        else:
            inserts.append(row)
        between()
    for key in deletes:
        if key in base.items:
            removed.append(await _lookup(txn, stored_key(base.database, key)))
            between()
    for rows in _slices(inserts):
        await settle(txn.insert(shard, rows))
        between()
    for changed in _slices(updates):
        await settle(txn.update(shard, changed))
        between()
    for gone in _slices(removed):
        await settle(txn.delete(shard, gone))
        between()


def _slices(items: list[T]) -> Iterator[list[T]]:
    """Yield items by so many as are staged in one turn: a statement may change thousands."""
    for start in range(0, len(items), _STAGED):
        yield items[start : start + _STAGED]


async def _lookup(txn: Transaction, key: StoredKey) -> Any:
    rows = await settle(txn.lookup(ShardId(CATALOG_SHARD), INDEX, [key], for_update=True))
    if len(rows) != 1:
        raise RuntimeError(f"catalog row {key} is in the snapshot but not in the catalog shard")
    return rows[0].row_id
