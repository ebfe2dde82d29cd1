"""What a transaction's DDL locks in the catalog, so that DDL on different objects goes on side by side (D77, U10).

The catalog is a shard; its locks are those of any shard:

    object     the key and row of a stored object (kind, oid, sub): X to change it, S to rely on it
    name       a key that no row has, ("name/schema/relation", 0, 0): X to take the name
    database   a key that no row has, WHOLE: X for statements that look at more than a few objects of their database, S for
               all others there
    everything X on the shard, for statements about what databases share

    before it looks      what the statement is about, as ``engine.definitions.locks`` says: first the tables whose rows
                         change, then keys of the catalog in one order for all; it looks again where it had to wait
    before it changes    whatever it comes to change or to refer to besides; that has to be as it was found
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.base.eager import settle
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.store import INDEX, stored_key
from engine.catalog.storage.stored import CATALOG_SHARD, Stored, StoredKey, key_of
from engine.session.catalog.wants import ROLE_NAME, WHOLE, Wants, name_key, references, role_name_key
from engine.session.plans.plan import Plan
from pgwire.give_way import between, openly, paced_sorted, spaced
from planner.base.errors import SqlError
from planner.catalog import RelationDef, RoleDef, SchemaDef, TypeDef
from txn.base.errors import Cause, SchemaChanged
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

SHARD: Final = ShardId(CATALOG_SHARD)


class CatalogLocks:
    """The catalog locks of one session's transaction. They go with the transaction."""

    __slots__ = ("_everything", "_held", "_session", "_tables")

    def __init__(self, session: Session) -> None:
        """Start with none."""
        self._session = session
        self._held: dict[StoredKey, bool] = {}
        self._tables: set[int] = set()  # whose rows are locked X
        self._everything = False

    @property
    def any(self) -> bool:
        """Tell whether there are any."""
        return self._everything or bool(self._held or self._tables)

    def clear(self) -> None:
        """The transaction is over."""
        self._held = {}
        self._tables = set()
        self._everything = False

    async def take_for(self, plan: Plan) -> None:
        """Lock what a statement is about, and move the session to the latest catalog.

        Raises txn's errors of lock waits; SchemaChanged when what the transaction has read before is no
        longer so; TypeError for what is no definition.
        """
        session, statement = self._session, plan.bound.statement
        locks = session.db.ports.specs[type(statement)].locks
        if locks is None:
            raise TypeError(f"{type(statement).__name__} locks nothing of the catalog")
        await settle(session.block.ensure_txn().begin_write([SHARD]))
        while not self._everything:
            session.view.adopt_latest()  # while it waited, it may have got to want more
            wants = Wants(session.catalog)
            openly(locks, wants, session, statement)
            if wants.everything:
                await self.take_everything()
            elif not await self.take(wants):
                return  # at the catalog that was looked at: others may have made what has no lock since
        session.view.adopt_latest()

    async def take_schema(self, name: str) -> None:
        """Lock a schema with all that is in it, in order to drop them, and move the session to the latest catalog."""
        session = self._session
        await settle(session.block.ensure_txn().begin_write([SHARD]))
        while True:
            session.view.adopt_latest()
            wants = Wants(session.catalog)
            openly(wants.whole_schema, name, cascade=True)
            if not await self.take(wants):
                return

    async def take_relation(self, oid: int) -> None:
        """Lock a relation and its rows, in order to change what is stored, with what its indexes name; move
        the session to the latest catalog.
        """
        session = self._session
        await settle(session.block.ensure_txn().begin_write([SHARD]))
        while True:
            session.view.adopt_latest()
            wants = Wants(session.catalog)
            relation = wants.relation(oid)
            if relation is not None:
                wants.text(*(column.default_sql for column in relation.stored_columns if column.hidden))
            if not await self.take(wants):
                return

    async def take_everything(self) -> None:
        """Lock the whole catalog."""
        txn = self._session.block.ensure_txn()
        await settle(txn.begin_write([SHARD]))
        await settle(txn.lock_table(SHARD, "X"))
        self._everything = True

    async def take(self, wants: Wants) -> bool:
        """Lock what is wanted; return whether something was not locked yet."""
        missing = sorted(wants.tables - self._tables)
        for oid in missing:
            between()
            await settle(self._session.block.ensure_txn().lock_table(ShardId(oid), "X"))
            self._tables.add(oid)
        return await self._take(wants.keys) or bool(missing)

    async def _take(self, wanted: Mapping[StoredKey, bool]) -> bool:
        """Lock keys, in one order for all; return whether some were not locked yet."""
        txn = self._session.block.ensure_txn()
        held = self._held
        wanted = {WHOLE: False, **wanted}
        missing = [
            (key, wanted[key])
            for key in spaced(openly(paced_sorted, wanted))
            if key not in held or (wanted[key] and not held[key])
        ]
        for key, exclusive in missing:
            stored = key if key[0].startswith(ROLE_NAME) else stored_key(self._session.database_oid, key)
            await settle(txn.lookup(SHARD, INDEX, [stored], for_update=exclusive))
            held[key] = exclusive
            between()
        return bool(missing)

    async def cover(self, puts: Sequence[Stored], deletes: Iterable[StoredKey]) -> None:
        """Lock what is about to be changed, and what it refers to, as far as ``take_for`` did not foresee it.

        Raises SqlError 42P07 for a name that has been taken, 42710 for that of a type or role, 42P06 of a schema;
        SchemaChanged for an object that is not as the statement found it.
        """
        session = self._session
        if self._everything:
            return
        before = session.catalog
        own = session.view.own_changes
        changed = [key for key in spaced((*map(key_of, spaced(puts)), *deletes)) if key in before.items]
        wanted = dict.fromkeys(_referred_to(before, spaced(puts)), False)
        wanted |= dict.fromkeys(changed, True)
        wanted = {key: x for key, x in spaced(wanted.items()) if key not in own}
        names = new_names(before, spaced(puts))
        if not await self._take({**wanted, **dict.fromkeys(names, True)}):
            return
        session.view.adopt_latest()
        after = session.catalog
        if after is before:
            return
        for refuse in spaced(names.values()):
            refuse(after)
        for key in spaced(wanted):
            if after.items.get(key) != before.items[key]:
                raise SchemaChanged(ShardId(key[1]))


def _referred_to(catalog: CatalogSnapshot, puts: Iterable[Stored]) -> set[StoredKey]:
    """Return what ``puts`` refer to that is in ``catalog`` and was not referred to by what they replace."""
    found: set[StoredKey] = set()
    for item in puts:
        old = catalog.items.get(key_of(item))
        found |= references(catalog, item) - (set() if old is None else references(catalog, old))
    return {key for key in spaced(found) if key in catalog.items}


_Refuse = Callable[[CatalogSnapshot], None]


def new_names(catalog: CatalogSnapshot, puts: Iterable[Stored]) -> dict[StoredKey, _Refuse]:
    """Return the keys of the names among ``puts`` that ``catalog`` does not have.

    With each comes what raises SqlError, or SchemaChanged for a name that was chosen, if a later catalog has it.
    """
    found: dict[StoredKey, _Refuse] = {}
    for item in puts:
        match item:
            case RelationDef():
                for name in (item.name, *(index.name for index in item.every_index)):
                    if catalog.relation(item.schema, name) is None:
                        made_room = (
                            catalog.type_oid(item.schema, name) is not None
                        )  # it is an array's, locked and renamed
                        found[name_key(item.schema, name)] = partial(
                            _refuse_relation, item.schema, name, made_room
                        )
            case TypeDef():
                for name in item.names.values():
                    if catalog.type_oid(item.schema, name) is None:
                        found[name_key(item.schema, name)] = partial(_refuse_type, item, name)
            case SchemaDef() if catalog.schema(item.name) is None:
                found[name_key("", item.name)] = partial(_refuse_schema, item.name)
            case RoleDef() if catalog.role(item.name) is None:
                found[role_name_key(item.name)] = partial(_refuse_role, item.name)
    return found


def _refuse_relation(schema: str, name: str, made_room: bool, catalog: CatalogSnapshot) -> None:
    if catalog.relation(schema, name) is not None:
        raise SqlError("42P07", f'relation "{name}" already exists')
    oid = catalog.type_oid(schema, name)
    made = catalog.type_by_oid(oid) if oid is not None and not made_room else None
    if made is not None and made.chose(name):
        raise SchemaChanged(ShardId(made.oid), Cause.NAME_TAKEN)  # once more: it will make room
    if made is not None:
        raise SqlError("42710", f'type "{name}" already exists')


def _refuse_type(item: TypeDef, name: str, catalog: CatalogSnapshot) -> None:
    if catalog.type_oid(item.schema, name) is None and catalog.relation(item.schema, name) is None:
        return
    if name == item.name:
        raise SqlError("42710", f'type "{name}" already exists')
    raise SchemaChanged(ShardId(item.oid), Cause.NAME_TAKEN)  # another name for the array type will do


def _refuse_schema(name: str, catalog: CatalogSnapshot) -> None:
    if catalog.schema(name) is not None:
        raise SqlError("42P06", f'schema "{name}" already exists')


def _refuse_role(name: str, catalog: CatalogSnapshot) -> None:
    if catalog.role(name) is not None:
        raise SqlError("42710", f'role "{name}" already exists')
