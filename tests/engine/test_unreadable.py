"""Catalog rows that cannot be read: the server starts, names them, refuses to use them, drops them, and serves everything else.

``KINDS`` has an object of every kind that is stored; a kind without one fails ``test_every_kind_is_planted``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import psycopg
import pytest

from engine.base.config import load
from engine.base.eager import settle
from engine.catalog.storage.store import _TYPES, SPEC
from engine.catalog.storage.stored import StoredKey
from engine.server import doctor
from engine.server.database import Database
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.server import ServerProcess
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
    "foreign table": Kind(
        "CREATE FOREIGN DATA WRAPPER of_bad; CREATE SERVER of_bad FOREIGN DATA WRAPPER of_bad; CREATE FOREIGN TABLE bad_foreign (a int) SERVER of_bad",
        "SELECT 'bad_foreign'::regclass::oid", "ALTER FOREIGN TABLE bad_foreign OPTIONS (a 'b')", "DROP FOREIGN TABLE bad_foreign",
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
    "foreign wrapper": Kind(
        "CREATE FOREIGN DATA WRAPPER bad_wrapper; CREATE SERVER of_wrapper FOREIGN DATA WRAPPER bad_wrapper",
        "SELECT oid FROM pg_foreign_data_wrapper WHERE fdwname = 'bad_wrapper'",
        "CREATE SERVER x FOREIGN DATA WRAPPER bad_wrapper", "DROP FOREIGN DATA WRAPPER bad_wrapper CASCADE",
        needed=("of_wrapper",), first=("SERVER of_wrapper",),
    ),
    "foreign server": Kind(
        "CREATE FOREIGN DATA WRAPPER of_servers; CREATE SERVER bad_server FOREIGN DATA WRAPPER of_servers; CREATE FOREIGN TABLE of_server (a int) SERVER bad_server",
        "SELECT oid FROM pg_foreign_server WHERE srvname = 'bad_server'", "CREATE USER MAPPING FOR PUBLIC SERVER bad_server",
        "DROP SERVER bad_server CASCADE", needed=("of_server",), first=("FOREIGN TABLE of_server",),
    ),
    "user mapping": Kind(
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE USER MAPPING FOR postgres SERVER s",
        "SELECT oid FROM pg_user_mapping", "ALTER USER MAPPING FOR postgres SERVER s OPTIONS (a 'b')",
        "DROP USER MAPPING FOR postgres SERVER s",
    ),
    "conversion": Kind(
        "CREATE CONVERSION bad_conversion FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8",
        "SELECT oid FROM pg_conversion WHERE conname = 'bad_conversion'", "ALTER CONVERSION bad_conversion RENAME TO x",
        "DROP CONVERSION bad_conversion",
    ),
    "collation": Kind(
        'CREATE COLLATION bad_collation FROM "C"; CREATE TABLE of_collation (a text COLLATE bad_collation, b text)',
        "SELECT oid FROM pg_collation WHERE collname = 'bad_collation'", "ALTER COLLATION bad_collation RENAME TO x",
        "DROP COLLATION bad_collation CASCADE", needed=("of_collation",), first=("TABLE of_collation",),
    ),
    "operator family": Kind(
        "CREATE OPERATOR FAMILY bad_family USING btree", "SELECT oid FROM pg_opfamily WHERE opfname = 'bad_family'",
        "ALTER OPERATOR FAMILY bad_family USING btree ADD OPERATOR 1 < (int4, int2)",
        "DROP OPERATOR FAMILY bad_family USING btree",
    ),
    "operator class": Kind(
        "CREATE OPERATOR CLASS bad_class FOR TYPE int4 USING btree AS OPERATOR 1 <",
        "SELECT oid FROM pg_opclass WHERE opcname = 'bad_class'", "ALTER OPERATOR CLASS bad_class USING btree RENAME TO x",
        "DROP OPERATOR CLASS bad_class USING btree",
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

STORED: Final = {"view": "relation", "sequence": "relation", "foreign table": "relation", "enum": "type"}


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


class Broken(NamedTuple):
    """Objects, and a change of one row that leaves it readable but makes no sense. ``use`` is refused, ``good`` is not."""

    make: str
    name: str
    change: Callable[[Any], None]
    use: str
    drop: str
    good: str = "SELECT 1"


def _set(*path: str | int, to: object) -> Callable[[Any], None]:
    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = to

    return change


NOWHERE: Final = 999_999
BROKEN: Final[Mapping[str, Broken]] = {
    "domain over nothing": Broken(
        "CREATE DOMAIN d AS int; CREATE TABLE t (a d)", "d", _set("base", to=NOWHERE), "SELECT * FROM t", "DROP TABLE t; DROP DOMAIN d",
    ),
    "column of no type": Broken(
        "CREATE TYPE e AS ENUM ('x'); CREATE TABLE t (a int, b e)", "t", _set("columns", 1, "type", 0, to=NOWHERE),
        "INSERT INTO t VALUES (1)", "DROP TABLE t",
    ),
    "value of no type": Broken(
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN b date DEFAULT '2026-01-01'", "t",
        _set("columns", 1, "missing_value", to="never"), "SELECT * FROM t", "DROP TABLE t",
    ),
    "function of no type": Broken(
        "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "f", _set("result", to=NOWHERE), "SELECT f(1)",
        "DROP FUNCTION f(int)",
    ),
    "aggregate of no function": Broken(
        "CREATE FUNCTION s(int, int) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE AGGREGATE g(int) (sfunc = s, stype = int)",
        "g", _set("aggregate", "transition", to=NOWHERE), "SELECT g(1)", "DROP AGGREGATE g(int)", "SELECT s(1, 1)",
    ),
    "key to nothing": Broken(
        "CREATE TABLE o (a int PRIMARY KEY); CREATE TABLE t (a int REFERENCES o)", "t",
        _set("constraints", 0, "foreign", "table", to=NOWHERE), "SELECT * FROM t", "DROP TABLE t", "SELECT * FROM o",
    ),
    "trigger of nothing": Broken(
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TABLE t (a int); "
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()", "t", _set("triggers", 0, "function", to=NOWHERE),
        "INSERT INTO t VALUES (1)", "DROP TABLE t",
    ),
    "policy over nothing": Broken(
        "CREATE TABLE o (a int); CREATE TABLE t (a int); CREATE POLICY p ON t USING (EXISTS (SELECT FROM o))", "t",
        _set("policies", 0, "depends_on", to=[NOWHERE]), "SELECT * FROM t", "DROP TABLE t", "SELECT * FROM o",
    ),
    "view over nothing": Broken(
        "CREATE TABLE o (a int); CREATE VIEW t AS SELECT a FROM o; CREATE VIEW u AS SELECT a FROM t", "t",
        _set("depends_on", to=[NOWHERE]), "SELECT * FROM u", "DROP VIEW u; DROP VIEW t", "SELECT * FROM o",
    ),
    "table in no schema": Broken(
        "CREATE TABLE t (a int)", "t", _set("schema_oid", to=NOWHERE), "SELECT * FROM t", "DROP TABLE t"
    ),
    "text of a view": Broken("CREATE VIEW t AS SELECT 1 AS a", "t", _set("view_sql", to="SELEC 1"), "SELECT * FROM t", "DROP VIEW t"),
    "text of a default": Broken(
        "CREATE TABLE t (a int DEFAULT 7)", "t", _set("columns", 0, "default_sql", to="7 +"), "INSERT INTO t DEFAULT VALUES",
        "DROP TABLE t",
    ),
    "text of a check": Broken(
        "CREATE TABLE t (a int CHECK (a > 0))", "t", _set("constraints", 0, "check_sql", to="a >"), "TRUNCATE t", "DROP TABLE t",
    ),
    "text of a domain": Broken(
        "CREATE DOMAIN d AS int CHECK (VALUE > 0)", "d", _set("checks", 0, "check_sql", to=")"), "CREATE TABLE u (a d)", "DROP DOMAIN d",
    ),
    "text of a body": Broken(
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN 1", "f", _set("body_sql", to="1 1 1"), "SELECT f()", "DROP FUNCTION f()",
    ),
    "partition": Broken(
        "CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE t PARTITION OF p DEFAULT", "t", _set("columns", 0, "type", 0, to=NOWHERE),
        "SELECT * FROM p", "DROP TABLE p; DROP TABLE t",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_makes_no_sense_is_fenced_off(name: str) -> None:
    case = BROKEN[name]

    def broken(key: StoredKey, body: bytes) -> bytes | None:
        if key[0] not in ("relation", "type", "function"):
            return None
        found = msgspec.msgpack.decode(body[1:])
        if found["name"] != case.name:
            return None
        case.change(found)
        return body[:1] + msgspec.msgpack.encode(found)

    async def go() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE TABLE good (a int PRIMARY KEY); INSERT INTO good VALUES (1)")
        for statement in _SPLIT.split(case.make):
            await session.run(statement)
        assert len(await plant(database, broken)) == 1
        await tear_away(database.store, disk)
        database, session = await _opened(disk)
        assert case.name in (await _listed(session)).values()
        await _refused(session, case.use)
        await session.run(case.good)
        for statement in case.drop.split("; "):
            await session.run(statement)
        assert await _listed(session) == {}
        await tear_away(database.store, disk)
        database, session = await _opened(disk)
        assert await _listed(session) == {}
        await database.store.close()

    run(go)


_SPLIT: Final = re.compile("; (?=CREATE|INSERT|ALTER)")


def test_nothing_is_stored_in_the_place_of_what_cannot_be_read_and_rights_stay_closed() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE TABLE good (a int PRIMARY KEY); INSERT INTO good VALUES (1)")
        await session.run("CREATE ROLE reader; CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        await session.run("REVOKE EXECUTE ON FUNCTION f() FROM PUBLIC; CREATE TABLE t (a int)")
        await plant(
            database,
            lambda key, body: (
                b"\x63" + body[1:] if key[0].startswith("acl/1255") or _is_table(key, body, "t") else None
            ),
        )
        await tear_away(database.store, disk)
        database, session = await _opened(disk)
        for statement in (
            "ALTER TABLE t ADD COLUMN b int", "ALTER TABLE t RENAME TO u", "ALTER TABLE t OWNER TO reader",
            "CREATE INDEX ON t (a)", "CREATE VIEW v AS SELECT * FROM t", "TRUNCATE t", "COMMENT ON TABLE t IS 'x'", "COPY t TO STDOUT",
            "CREATE TABLE u (LIKE t)", "CREATE FUNCTION g(t) RETURNS int LANGUAGE sql AS 'SELECT 1'", "PREPARE p AS SELECT * FROM t",
            "EXPLAIN SELECT * FROM t", "CREATE TABLE u (a int REFERENCES t)", "DELETE FROM t", "SELECT NULL::t", "ANALYZE t",
        ):  # fmt: skip
            await _refused(session, statement)
        for statement in (
            "PERFORM 1 FROM t",
            "DELETE FROM t",
            "LOCK TABLE t",
            "ALTER TABLE t ADD x int",
            "EXECUTE ''TABLE t''",
        ):
            await _refused(session, f"DO 'BEGIN {statement}; END'")
        body = "DECLARE r t; BEGIN RETURN 1; END"
        await _refused(session, f"CREATE FUNCTION late() RETURNS int LANGUAGE plpgsql AS '{body}'")
        await _refused(session, "BEGIN; LOCK TABLE t")
        await session.run("ROLLBACK; SET ROLE reader")
        with pytest.raises(Failed) as caught:
            await session.run("SELECT f()")
        assert caught.value.report.sqlstate == "42501"
        await session.run("RESET ROLE; GRANT EXECUTE ON FUNCTION f() TO reader; SET ROLE reader")
        assert await session.run("SELECT f()") == [("1",)]
        await database.store.close()

    run(go)


def _is_table(key: StoredKey, body: bytes, name: str) -> bool:
    return key[0] == "relation" and msgspec.msgpack.decode(body[1:])["name"] == name


def test_a_server_starts_whatever_cannot_be_read_and_the_doctor_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ServerProcess(tmp_path)
    with psycopg.connect(server.url, autocommit=True) as client:
        client.execute("CREATE TABLE good (a int); CREATE TABLE rt (a int)")
        client.execute("CREATE DOMAIN pd AS rt[]")
        client.execute("CREATE DATABASE other")
    server.stop()

    def cut(key: StoredKey, body: bytes) -> bytes | None:
        return body[:20] if _is_table(key, body, "rt") or key[0].startswith("comment") else None

    async def damage() -> None:
        database = await Database.open(config)
        assert len(await plant(database, cut)) > 2
        await database.close()

    config = load(
        argparse.Namespace(config=None, spark_start="off", data_dir=str(tmp_path), memory=1 << 28), {}
    )
    run(damage)
    server = ServerProcess(tmp_path)
    assert server.sql("SELECT count(*) FROM good") == [("0",)]
    assert "cannot be read" in server.log()
    for name in ("other", "template1"):
        with psycopg.connect(server.url.removesuffix("postgres") + name) as client:
            assert client.execute("SELECT 1").fetchall() == [(1,)]
    doctor.run(config)
    assert "type public.pd of database postgres" in capsys.readouterr().out
    server.sql("DROP DOMAIN pd")
    server.stop()
