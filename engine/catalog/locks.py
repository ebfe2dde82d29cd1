"""What a transaction's DDL locks in the catalog, so that DDL on different objects goes on side by side (D77, U10).

The catalog is a shard; its locks are those of any shard:

    object     the key and row of a stored object (kind, oid, sub): X to change it, S to rely on it
    name       a key that no row has, ("name/schema/relation", 0, 0): X to take the name
    everything X on the shard, for statements that look at more than a few objects

    CREATE TABLE                       name X, schema and timeline S         Statements on tables that views read, or
    ALTER TABLE, RENAME, CREATE INDEX  table X, new names X                  with foreign keys from or to them, lock
    DROP TABLE, DROP INDEX             tables X, their names X               everything, and so does all other DDL.
    CREATE MATERIALIZED VIEW           name X, schema and what it reads S
    REFRESH MATERIALIZED VIEW          view X
    TRUNCATE                           tables S

Locks are taken before the statement looks at the catalog; what they protect is looked at afterwards, in the latest one.
Whatever a statement comes to change besides is locked then, and has to be as it was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.catalog.state import CATALOG_SHARD, CatalogSnapshot, Stored, StoredKey, key_of
from engine.catalog.store import INDEX, stored_key
from engine.eager import settle
from engine.reads.plans import Plan
from planner import statements as st
from planner.bind.options import TIMELINE
from planner.catalog import RelationDef
from planner.errors import SqlError
from planner.typefacts import FIRST_USER_OID
from txn.errors import SchemaChanged
from txn.types import ShardId

if TYPE_CHECKING:
    from engine.connection.session import Session

SHARD: Final = ShardId(CATALOG_SHARD)
NAME: Final = "name/"

Wanted = dict[StoredKey, bool]
"""Keys of the catalog's primary key, with True for X."""


def name_key(schema: str, name: str) -> StoredKey:
    """Return the key that stands for the name of a relation."""
    return (f"{NAME}{schema}/{name}", 0, 0)


class CatalogLocks:
    """The catalog locks of one session's transaction. They go with the transaction."""

    __slots__ = ("_everything", "_held", "_session")

    def __init__(self, session: Session) -> None:
        """Start with none."""
        self._session = session
        self._held: Wanted = {}
        self._everything = False

    @property
    def any(self) -> bool:
        """Tell whether there are any."""
        return self._everything or bool(self._held)

    def clear(self) -> None:
        """The transaction is over."""
        self._held = {}
        self._everything = False

    async def take_for(self, plan: Plan) -> None:
        """Lock what a statement is about, and move the session to the latest catalog.

        Raises txn's errors of lock waits; SchemaChanged when what the transaction has read before is no longer so.
        """
        session = self._session
        await settle(session.block.ensure_txn().begin_write([SHARD]))
        while not self._everything:
            wanted = wanted_by(session, plan)
            if wanted is None:
                await self.take_everything()
            elif not await self._take(wanted):
                break
            session.view.adopt_latest()  # while it waited, it may have got to want more
        session.view.adopt_latest()

    async def take_everything(self) -> None:
        """Lock the whole catalog."""
        txn = self._session.block.ensure_txn()
        await settle(txn.begin_write([SHARD]))
        await settle(txn.lock_table(SHARD, "X"))
        self._everything = True

    async def _take(self, wanted: Mapping[StoredKey, bool]) -> bool:
        """Lock keys, in one order for all; return whether some were not locked yet."""
        txn = self._session.block.ensure_txn()
        held = self._held
        missing = [(key, x) for key, x in sorted(wanted.items()) if key not in held or (x and not held[key])]
        for key, exclusive in missing:
            stored = stored_key(self._session.database_oid, key)
            await settle(txn.lookup(SHARD, INDEX, [stored], for_update=exclusive))
            self._held[key] = exclusive
        return bool(missing)

    async def cover(self, puts: Sequence[Stored], deletes: Iterable[StoredKey]) -> None:
        """Lock what is about to be changed, as far as ``take_for`` did not foresee it.

        Raises SqlError 42P07 for a name that has been taken; SchemaChanged for an object that is not as the statement
        found it.
        """
        session = self._session
        if self._everything:
            return
        before = session.catalog
        changed = [key for key in (*map(key_of, puts), *deletes) if key in before.items]
        names = new_names(before, puts)
        wanted: Wanted = {key: True for key in changed if key not in session.view.own_changes}
        wanted |= {name_key(schema, name): True for schema, name in names}
        if not await self._take(wanted):
            return
        session.view.adopt_latest()
        after = session.catalog
        if after is before:
            return
        for schema, name in names:
            if after.relation(schema, name) is not None:
                raise SqlError("42P07", f'relation "{name}" already exists')
        for key in changed:
            if after.items.get(key) != before.items[key]:
                raise SchemaChanged(ShardId(key[1]))


def new_names(catalog: CatalogSnapshot, puts: Iterable[Stored]) -> list[tuple[str, str]]:
    """Return (schema, name) of the relations among ``puts``, indexes included, that ``catalog`` does not have."""
    return [
        (item.schema, name)
        for item in puts
        if isinstance(item, RelationDef)
        for name in (item.name, *(index.name for index in item.indexes))
        if catalog.relation(item.schema, name) is None
    ]


def wanted_by(session: Session, plan: Plan) -> Wanted | None:
    """Return the keys that a DDL statement locks, None for the whole catalog."""
    statement = plan.bound.statement
    catalog = session.catalog
    match statement:
        case st.CreateTable() if not statement.foreign_keys:
            name = session.temp_schema if statement.persistence == "t" else statement.schema
            schema = catalog.schema(name)
            wanted: Wanted = {name_key(name, statement.name): True}
            if schema is not None:
                wanted[key_of(schema)] = False
            timeline = catalog.timelines.get((statement.options or {}).get(TIMELINE, ""))
            if timeline is not None:
                wanted[key_of(timeline)] = False
            for column in statement.columns:  # sequences that defaults draw from, and types, stay
                if _relies_on_others(column.type.oid, column.default_sql):
                    return None
            if any(_relies_on_others(0, check.sql) for check in statement.checks):
                return None
            return wanted
        case st.CreateMaterializedView():
            schema = catalog.schema(statement.schema)
            wanted = {name_key(statement.schema, statement.name): True}
            if schema is not None:
                wanted[key_of(schema)] = False
            wanted |= {("relation", oid, 0): False for oid in statement.depends_on}
            return wanted
        case st.RefreshMaterializedView():
            return {("relation", statement.table, 0): True}
        case st.CreateIndex():
            table = catalog.relation_by_oid(statement.table)
            if any(_relies_on_others(c.type.oid, c.default_sql) for c in statement.hidden):
                return None
            wanted = {("relation", statement.table, 0): True}
            if table is not None and statement.name is not None:
                wanted[name_key(table.schema, statement.name)] = True
            return wanted
        case st.AlterTable():
            apart = not any(isinstance(a, st.AddForeignKey | st.SetSchema) for a in statement.actions)
            apart &= not any(isinstance(a, st.AddColumn) and a.foreign_keys for a in statement.actions)
            apart &= not any(isinstance(a, st.SetDefault) and a.default_sql for a in statement.actions)
            apart &= not any(_names_type(a) for a in statement.actions)
            return _tables(catalog, [statement.table], exclusive=True) if apart else None
        case st.Rename():
            return _renamed(catalog, statement)
        case st.Truncate():
            return _tables(catalog, statement.tables, exclusive=False)
        case st.Drop():
            return _dropped(session, statement)
        case st.AlterSource():
            source = catalog.sources.get(statement.name)
            return {} if source is None else {key_of(source): True}
    return None


def _relies_on_others(type_oid: int, sql: str | None) -> bool:
    """Tell whether a column or a stored text names a sequence or a user's type."""
    return type_oid >= FIRST_USER_OID or (sql is not None and ("::regclass" in sql or '"#' in sql))


def _names_type(action: st.AlterAction) -> bool:
    match action:
        case st.AddColumn():
            return _relies_on_others(action.column.type.oid, action.column.default_sql)
        case st.AlterColumnType():
            return _relies_on_others(action.type.oid, None)
        case st.AddCheck():
            return _relies_on_others(0, action.check.sql)
    return False


def _tables(catalog: CatalogSnapshot, oids: Iterable[int], *, exclusive: bool) -> Wanted | None:
    """Return the keys of tables that nothing else hangs on, None if something does."""
    oids = list(oids)
    for oid in oids:
        relation = catalog.relation_by_oid(oid)
        if relation is None or relation.kind != "r" or relation.foreign_keys or catalog.foreign_keys_to(oid):
            return None
        if any(oid in item.depends_on for item in catalog.user_relations()):
            return None
    return {("relation", oid, 0): exclusive for oid in oids}


def _renamed(catalog: CatalogSnapshot, statement: st.Rename) -> Wanted | None:
    relation = catalog.relation_by_oid(statement.relation)
    if relation is None or statement.what not in ("relation", "column", "constraint"):
        return None
    oid = relation.table_oid if relation.kind == "i" else relation.oid
    wanted = _tables(catalog, [oid], exclusive=True)
    if wanted is not None and statement.what != "column":
        wanted[name_key(relation.schema, statement.new)] = True
        if statement.what == "relation":
            wanted[name_key(relation.schema, relation.name)] = True
    return wanted


def _dropped(session: Session, statement: st.Drop) -> Wanted | None:
    from engine.ddl.drop import resolve

    if statement.what not in ("table", "index"):
        return None
    kind = "r" if statement.what == "table" else "i"
    found = [resolve(session, schema, name) for schema, name in statement.names]
    relations = [relation for relation in found if relation is not None]
    if any(relation.kind != kind or relation.virtual for relation in relations):
        return None  # refused
    wanted = _tables(
        session.catalog, [r.table_oid if kind == "i" else r.oid for r in relations], exclusive=True
    )
    if wanted is None:
        return None
    for relation in relations:  # whoever wants to take a name waits to see whether it is free
        wanted[name_key(relation.schema, relation.name)] = True
    return wanted
