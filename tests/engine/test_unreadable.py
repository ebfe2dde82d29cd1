"""Catalog rows that cannot be read: the server starts, names them, refuses to use them, drops them, and serves everything else.

``KINDS`` has an object of every kind that is stored; a kind without one fails ``test_every_kind_is_planted``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec
import pytest

from engine.catalog.store import _TYPES, SPEC
from engine.catalog.stored import StoredKey
from engine.database import Database
from engine.eager import settle
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.store import tear_away
from txn.persist.memory import MemoryDisk


class Kind(NamedTuple):
    """An object: how it is made, which row of the catalog it is, what uses it ("": nothing can be said), and what drops it.

    ``replaced``: it is not dropped but said anew; ``needed``: what else is fenced with it, and ``first`` dropped.
    """

    make: str
    find: str
    use: str
    drop: str
    replaced: bool = False
    needed: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


KINDS: Final[Mapping[str, Kind]] = {
    "relation": Kind(
        "CREATE TABLE bad_table (a int, b text DEFAULT 'x' CHECK (b <> '')); CREATE INDEX bad_index ON bad_table (a)",
        "SELECT 'bad_table'::regclass::oid", "SELECT * FROM bad_table", "DROP TABLE bad_table",
    ),
    "view": Kind(
        "CREATE VIEW bad_view AS SELECT 1 AS a", "SELECT 'bad_view'::regclass::oid", "SELECT * FROM bad_view",
        "DROP VIEW bad_view",
    ),
    "sequence": Kind(
        "CREATE SEQUENCE bad_seq; CREATE TABLE of_seq (a int)", "SELECT 'bad_seq'::regclass::oid",
        "SELECT last_value FROM bad_seq", "DROP SEQUENCE bad_seq",
    ),
    "type": Kind(
        "CREATE DOMAIN bad_domain AS int CHECK (VALUE > 0); CREATE TABLE of_domain (a bad_domain)",
        "SELECT 'bad_domain'::regtype::oid", "SELECT 1::bad_domain", "DROP DOMAIN bad_domain CASCADE", needed=("of_domain",), first=("TABLE of_domain",),
    ),
    "enum": Kind(
        "CREATE TYPE bad_enum AS ENUM ('a'); CREATE TYPE of_enum AS (a bad_enum); CREATE TABLE of_of_enum (a of_enum[])",
        "SELECT 'bad_enum'::regtype::oid", "SELECT 'a'::bad_enum", "DROP TYPE bad_enum CASCADE",
        needed=("of_enum", "of_of_enum"),
        first=("TABLE of_of_enum", "TYPE of_enum"),
    ),
    "function": Kind(
        "CREATE FUNCTION bad_function(int) RETURNS int LANGUAGE sql RETURN $1 + 1; CREATE VIEW of_function AS SELECT bad_function(1)",
        "SELECT 'bad_function(int)'::regprocedure::oid", "SELECT bad_function(1)",
        "DROP FUNCTION bad_function CASCADE", needed=("of_function",), first=("VIEW of_function",),
    ),
    "schema": Kind(
        "CREATE SCHEMA bad_schema CREATE TABLE of_schema (a int)", "SELECT 'bad_schema'::regnamespace::oid",
        "SELECT * FROM bad_schema.of_schema", "DROP SCHEMA bad_schema CASCADE", needed=("of_schema",),
    ),
    "role": Kind("CREATE ROLE bad_role", "SELECT 'bad_role'::regrole::oid", "ALTER ROLE bad_role LOGIN", "DROP ROLE bad_role"),
    "database": Kind(
        "CREATE DATABASE bad_database", "SELECT oid FROM pg_database WHERE datname = 'bad_database'",
        "ALTER DATABASE bad_database CONNECTION LIMIT 5", "DROP DATABASE bad_database",
    ),
    "timeline": Kind(
        "CREATE TIMELINE bad_timeline; CREATE TABLE of_timeline (a int) WITH (timeline = bad_timeline)", "timeline",
        "SELECT * FROM of_timeline", "DROP TABLE of_timeline; DROP TIMELINE bad_timeline", needed=("of_timeline",),
    ),
    "source": Kind(
        "CREATE SOURCE bad_source INTO of_source FROM RATE (rows_per_second = 1)", "source", "ALTER SOURCE bad_source RESUME",
        "DROP SOURCE bad_source",
    ),
    "extension": Kind(
        "CREATE EXTENSION citext; CREATE TABLE of_extension (a citext)", "extension", "SELECT * FROM of_extension",
        "DROP TABLE of_extension; DROP EXTENSION citext CASCADE", needed=("of_extension",),
    ),
    "text configuration": Kind(
        "CREATE TEXT SEARCH CONFIGURATION bad_configuration (COPY = simple)", "SELECT 'bad_configuration'::regconfig::oid",
        "SELECT to_tsvector('bad_configuration', 'a')", "DROP TEXT SEARCH CONFIGURATION bad_configuration",
    ),
    "text dictionary": Kind(
        "CREATE TEXT SEARCH DICTIONARY bad_dictionary (TEMPLATE = simple)", "SELECT 'bad_dictionary'::regdictionary::oid",
        "SELECT ts_lexize('bad_dictionary', 'a')", "DROP TEXT SEARCH DICTIONARY bad_dictionary",
    ),
    "comment": Kind(
        "CREATE TABLE commented (a int); COMMENT ON TABLE commented IS 'c'", "SELECT 'commented'::regclass::oid", "",
        "COMMENT ON TABLE commented IS 'other'", replaced=True,
    ),
    "acl": Kind(
        "CREATE TABLE granted (a int); CREATE ROLE grantee; GRANT SELECT ON granted TO grantee",
        "SELECT 'granted'::regclass::oid", "", "GRANT INSERT ON granted TO grantee", replaced=True,
    ),
    "defaults": Kind(
        "CREATE ROLE of_defaults; ALTER ROLE of_defaults SET work_mem = '5MB'", "SELECT 'of_defaults'::regrole::oid", "",
        "ALTER ROLE of_defaults SET work_mem = '6MB'", replaced=True,
    ),
}  # fmt: skip
"""By kind of row, and more of some."""

STORED: Final = {"view": "relation", "sequence": "relation", "enum": "type"}


def _damage(body: bytes, fault: str) -> bytes:
    if fault == "version":
        return bytes([99]) + body[1:]
    if fault == "bytes":
        return body[:1] + b"\xff\xc1" * 8
    if fault == "cut":
        return body[: len(body) * 2 // 3]
    if fault == "empty":
        return b""
    assert fault == "other fields"
    return body[:1] + msgspec.msgpack.encode(
        {**msgspec.msgpack.decode(body[1:]), "oid": "no number", "items": 7, "text": 5, "role": "x"}
    )


FAULTS: Final = ("version", "bytes", "cut", "empty", "other fields")


def test_every_kind_is_planted() -> None:
    assert {STORED.get(kind, kind) for kind in KINDS} == set(_TYPES)


async def plant(database: Database, change: Callable[[StoredKey, bytes], bytes | None]) -> list[StoredKey]:
    """Change bodies of catalog rows behind the server's back; return which."""
    txn = database.store.begin()
    changes, keys = [], []
    async for chunk in txn.scan(SPEC.shard):
        for row in chunk:
            kind, oid, sub, body = row.values
            after = change((kind, oid, sub), body)
            if after is not None:
                changes.append((row.row_id, (kind, oid, sub, after)))
                keys.append((kind, oid, sub))
    await settle(txn.begin_write([SPEC.shard]))
    await settle(txn.update(SPEC.shard, changes))
    await settle(txn.commit())
    return keys


def _is(kind: str, found: str, key: StoredKey) -> bool:
    stored, oid, sub = key
    local = STORED.get(kind, kind)
    if kind == "defaults":
        return stored == "defaults" and str(sub) == found
    return stored.partition("/")[0] == local and str(oid) == found


def _finding(kind: str) -> str:
    find = KINDS[kind].find
    return "SELECT oid FROM pg_extension WHERE extname = 'citext'" if find == "extension" else find


async def _made(session: Session, kind: str) -> str:
    made = KINDS[kind]
    for statement in made.make.split("; "):
        await session.run(statement)
    if made.find in ("timeline", "source"):
        items = session.connection.session.catalog.items
        return str(next(oid for name, oid, _ in items if name == made.find))
    found = await session.run(_finding(kind))
    return str(found[0][0])


async def _refused(session: Session, statement: str) -> None:
    with pytest.raises(Failed) as caught:
        await session.run(statement)
    assert caught.value.report.sqlstate == "XX001", f"{statement}: {caught.value}"
    assert "cannot be read" in caught.value.report.message


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_read_is_fenced_off_and_dropped(fault: str) -> None:
    run(lambda: _walk(tuple(KINDS), fault))


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_alone_is_fenced_off_and_dropped(kind: str, fault: str) -> None:
    run(lambda: _walk((kind,), fault))


async def _opened(disk: MemoryDisk) -> tuple[Database, Session]:
    database = await open_database(disk)
    session = Session(database, 1)
    assert await session.run("SELECT * FROM good") == [("1",)]
    return database, session


async def _listed(session: Session) -> dict[tuple[str | None, str | None], str | None]:
    rows = await session.run("SELECT kind, oid, name FROM holdfast_unreadable_objects")
    return {(kind, oid): name for kind, oid, name in rows}


async def _walk(kinds: tuple[str, ...], fault: str) -> None:
    """Make objects, damage their rows, start, use them and drop them, start again."""
    disk = MemoryDisk()
    database = await open_database(disk)
    session = Session(database, 1)
    await session.run("CREATE TABLE good (a int PRIMARY KEY); INSERT INTO good VALUES (1)")
    oids = {kind: await _made(session, kind) for kind in kinds}
    keys = await plant(
        database,
        lambda key, body: _damage(body, fault) if any(_is(kind, oids[kind], key) for kind in kinds) else None,
    )
    assert len(keys) == len(kinds)
    await tear_away(database.store, disk)

    database, session = await _opened(disk)
    listed = await _listed(session)
    own = {kind: (STORED.get(kind, kind), "0" if kind == "defaults" else oid) for kind, oid in oids.items()}
    assert set(own.values()) <= set(listed)
    known = fault in ("version", "other fields")  # its name can be told
    names = set(listed.values())
    for relation in (
        "pg_class",
        "pg_type",
        "pg_attribute",
        "pg_proc",
        "pg_description",
        "pg_views",
        "pg_depend",
    ):
        await session.run(f"SELECT * FROM {relation}")
    await session.run("SELECT * FROM information_schema.columns")
    dropped = set()
    for kind in kinds:
        made = KINDS[kind]
        if known:
            assert set(made.needed) <= names
            if made.use:
                await _refused(session, made.use)
        elif not made.replaced and listed[own[kind]] != _named(made):
            continue
        for statement in (*(f"DROP {one}" for one in made.first if known), *made.drop.split("; ")):
            await session.run(statement)
        dropped.add(own[kind])
    assert dropped == set(own.values()) or not known
    assert dropped.isdisjoint(await _listed(session))
    await session.run("CREATE TABLE later (a int)")
    await tear_away(database.store, disk)

    database, session = await _opened(disk)
    left = await _listed(session)
    assert dropped.isdisjoint(left)
    assert left == {} or not known
    await database.store.close()


def _named(made: Kind) -> str:
    return next(word for word in made.drop.split() if word.startswith("bad_")) if "bad_" in made.drop else ""
