"""The tables of a publication: what they are called and made of upstream, and the tables that are made for them here.

    upstream   public.item (id integer, v text), publication p        CREATE SOURCE ... FROM POSTGRES (publication = p)
    here       item (id integer NOT NULL, v text, PRIMARY KEY (id))   SourceDef.tables_from: what upstream's table was then

What upstream's table was is kept, and compared with every description that the slot sends: a change stops the source.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from engine.feeds.sources.pgoutput import Relation
from engine.feeds.sources.postgres_client import Upstream, listed, quoted
from planner.base.errors import SqlError, not_supported

OLDEST_VERSION: Final = 150000  # column lists and row filters of publications

_TABLES: Final = """
SELECT c.oid::int8 AS oid, p.schemaname::text AS schema, p.tablename::text AS name, c.relreplident::text AS identity,
       p.attnames::text[] AS columns, p.rowfilter AS filter
FROM pg_publication_tables p
JOIN pg_namespace n ON n.nspname = p.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
WHERE p.pubname = $1 ORDER BY 2, 3
"""
_COLUMNS: Final = """
SELECT a.attname::text AS name, a.atttypid::int8 AS type, a.atttypmod AS typmod, a.attnotnull AS not_null,
       format_type(a.atttypid, a.atttypmod) AS shown, t.typtype::text AS kind
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""
_KEY: Final = """
SELECT a.attname::text AS name FROM pg_index i
CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = $1::int8::oid AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY k.place
"""


class UpstreamColumn(msgspec.Struct, frozen=True):
    """A column upstream. ``shown``: its type as it is declared there."""

    name: str
    type: int
    typmod: int
    shown: str
    not_null: bool
    kind: str = "b"


class UpstreamTable(msgspec.Struct, frozen=True):
    """A table upstream, when the source was created. ``key``: its primary key, empty if it has none."""

    oid: int
    schema: str
    name: str
    columns: tuple[UpstreamColumn, ...]
    key: tuple[str, ...]
    filter: str | None = None

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return f"{self.schema}.{self.name}"

    def definition(self) -> str:
        """Return its columns as CREATE TABLE writes them here: enums are text."""
        parts = [
            f"{quoted(c.name)} {'text' if c.kind == 'e' else c.shown}{' NOT NULL' if c.not_null else ''}"
            for c in self.columns
        ]
        if self.key:
            parts.append(f"PRIMARY KEY ({listed(self.key)})")
        return ", ".join(parts)

    def select(self) -> str:
        """Return the query for all its rows that are published."""
        columns = listed([c.name for c in self.columns])
        where = f" WHERE {self.filter}" if self.filter else ""
        return f"SELECT {columns} FROM {quoted(self.schema)}.{quoted(self.name)}{where}"

    def check_same(self, said: Relation) -> None:
        """Raise SqlError 55000 if upstream's table is not any more what it was."""
        differences = []
        before = {c.name: c for c in self.columns}
        now = {c.name: c for c in said.columns}
        differences += [f'column "{name}" was added' for name in now if name not in before]
        differences += [f'column "{name}" was removed or renamed' for name in before if name not in now]
        differences += [
            f'the type of column "{name}" was changed from {column.shown}'
            for name, column in before.items()
            if name in now and (now[name].type_oid, now[name].typmod) != (column.type, column.typmod)
        ]
        if said.identity in ("d", "f") and self.key:
            keyed = {c.name for c in said.columns if c.key}
            if not set(self.key) <= keyed or (said.identity == "d" and keyed != set(self.key)):
                differences.append("its primary key was changed")
        elif self.key and said.identity == "i":
            differences.append("its replica identity was changed to an index")
        if (said.schema, said.name) != (self.schema, self.name):
            differences.append(f"it was renamed to {said.schema}.{said.name}")
        if differences:
            raise SqlError(
                "55000",
                f"table {self.shown} has changed upstream",
                detail=f"{'; '.join(differences)[:1].upper()}{'; '.join(differences)[1:]}.",
                hint="Drop the source and create it again.",
            )


async def described(upstream: Upstream, publication: str) -> list[UpstreamTable]:
    """Return the tables of a publication.

    Raises SqlError 42704 if there is no such publication, 42P01 if it has no tables, 0A000 for tables that
    cannot be followed.
    """
    [[version]] = await upstream.rows("SELECT current_setting('server_version_num')::int")
    if version < OLDEST_VERSION:
        raise not_supported(f"a POSTGRES source of version {version // 10000}; it needs 15 or newer")
    [[level]] = await upstream.rows("SELECT current_setting('wal_level')")
    if level != "logical":
        raise SqlError(
            "55000", f'wal_level of the upstream server is "{level}"', hint='It has to be set to "logical".'
        )
    if not await upstream.rows("SELECT 1 FROM pg_publication WHERE pubname = $1", publication):
        raise SqlError("42704", f'publication "{publication}" does not exist upstream')
    found = [await _described(upstream, row) for row in await upstream.rows(_TABLES, publication)]
    if not found:
        raise SqlError("42P01", f'publication "{publication}" has no tables')
    return found


async def _described(upstream: Upstream, row: Any) -> UpstreamTable:
    chosen = set(row["columns"])
    columns = tuple(
        UpstreamColumn(c["name"], c["type"], c["typmod"], c["shown"], c["not_null"], c["kind"])
        for c in await upstream.rows(_COLUMNS, row["oid"])
        if c["name"] in chosen
    )
    key = tuple(k["name"] for k in await upstream.rows(_KEY, row["oid"]))
    shown = f"{row['schema']}.{row['name']}"
    if not set(key) <= {c.name for c in columns}:
        key = ()
    if row["identity"] == "i":
        raise not_supported(f"a table ({shown}) whose replica identity is an index")
    if row["identity"] == "f" and not key:
        raise not_supported(f"a table ({shown}) with REPLICA IDENTITY FULL and no primary key")
    for column in columns:
        if column.kind not in ("b", "e"):
            raise not_supported(f'column "{column.name}" of {shown}, whose type is {column.shown}')
    return UpstreamTable(row["oid"], row["schema"], row["name"], columns, key, row["filter"])


def encoded(table: UpstreamTable) -> str:
    """Return a table as the catalog keeps it."""
    return msgspec.json.encode(table).decode()


def decoded(text: str) -> UpstreamTable:
    """Return what ``encoded`` made a text of."""
    return msgspec.json.decode(text, type=UpstreamTable)
