"""A statement that defines something may be interrupted wherever it gives way, and nothing is left of it then.

    CREATE TABLE v (LIKE w INCLUDING ALL)       ── 1 ── 2 ── 3 ── …  durable ── answered
      a cancel, statement_timeout                  57014, all is as it was         success
      the client vanishes                          all is as it was                it is done
      another session defines, drops and leaves    success, both have what they asked for

All of a statement's loops give way at each step here (a slice of time is over at once), and the interrupt comes at some turns of the loop that the
statement has until it is answered; at each of them, or (where another session goes on) at most of them, with ``-m long``. The script has every class of statements that the server runs as a definition
(``engine.statements.run``).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

import engine.base.slices
import engine.session.interrupts
from engine.server.database import Database
from engine.statements import run
from engine.statements.registry import SPECS
from pgwire import give_way
from pgwire import messages as m
from pgwire.server import Server, ServerConfig
from planner import statements as st
from tests.support.engine import open_database
from tests.support.sessions import Client
from txn.persist.memory import MemoryDisk

COLUMNS: Final = 12


def _list(item: str, n: int = COLUMNS) -> str:
    return ", ".join(item.format(i) for i in range(n))


CHECKED: Final = _list("c{0} int NOT NULL DEFAULT 1 CHECK (c{0} > 0)")

SCRIPT: Final = (
    f"CREATE TABLE w ({CHECKED})",
    "CREATE TABLE v (LIKE w INCLUDING ALL)",
    "CREATE TEMP TABLE tv (LIKE w INCLUDING ALL)",
    "CREATE TABLE pk (a int PRIMARY KEY, b text UNIQUE, c serial, EXCLUDE USING btree (c WITH =))",
    "CREATE TABLE fk (a int REFERENCES pk ON DELETE CASCADE, b int GENERATED ALWAYS AS IDENTITY, d int GENERATED ALWAYS AS (a + 1) STORED)",
    "INSERT INTO pk SELECT g, 'b' || g FROM generate_series(1, 20) g",
    "INSERT INTO fk SELECT g FROM generate_series(1, 20) g",
    "CREATE TABLE ctas AS SELECT g a, g + 1 b FROM generate_series(1, 50) g",
    "SELECT g a INTO made FROM generate_series(1, 50) g",
    "CREATE TABLE parts (a int, b text) PARTITION BY LIST (a)",
    "CREATE TABLE part1 PARTITION OF parts FOR VALUES IN (1)",
    "CREATE TABLE rest PARTITION OF parts DEFAULT",
    "INSERT INTO parts SELECT g % 4 + 2, 'x' FROM generate_series(1, 20) g",
    "CREATE TABLE part9 PARTITION OF parts FOR VALUES IN (9)",
    "CREATE TABLE loose (a int, b text)",
    "ALTER TABLE parts ATTACH PARTITION loose FOR VALUES IN (10)",
    "ALTER TABLE parts DETACH PARTITION loose",
    "CREATE INDEX ON parts (b)",
    "CREATE INDEX fk_lower ON pk (lower(b)) WHERE a > 3",
    "CREATE UNIQUE INDEX CONCURRENTLY fk_b ON fk (b)",
    "CREATE STATISTICS st (dependencies) ON a, b FROM pk",
    "ALTER STATISTICS st SET STATISTICS 100",
    "CREATE SCHEMA s CREATE TABLE one (a int PRIMARY KEY) CREATE VIEW two AS SELECT a FROM one CREATE SEQUENCE three",
    "ALTER TABLE pk ADD x int DEFAULT 7, ADD y text DEFAULT md5('x'), ADD CHECK (x > 0)",
    "ALTER TABLE pk ADD z float8 DEFAULT random()",
    "ALTER TABLE pk ALTER x TYPE bigint, ALTER y SET NOT NULL, ALTER y SET DEFAULT 'u'",
    "ALTER TABLE pk ADD CONSTRAINT later CHECK (x < 100) NOT VALID",
    "ALTER TABLE pk VALIDATE CONSTRAINT later",
    "ALTER TABLE fk ADD CONSTRAINT again FOREIGN KEY (a) REFERENCES pk DEFERRABLE",
    "ALTER TABLE fk ALTER CONSTRAINT again DEFERRABLE INITIALLY DEFERRED",
    "ALTER TABLE pk RENAME y TO yy",
    "ALTER TABLE pk RENAME TO keys",
    "ALTER TABLE keys RENAME TO pk",
    "ALTER TABLE pk DROP z",
    "ALTER TABLE pk ENABLE ROW LEVEL SECURITY",
    "CREATE ROLE r1",
    "CREATE ROLE r2",
    "ALTER ROLE r1 CONNECTION LIMIT 5",
    "ALTER ROLE r1 SET work_mem = '8MB'",
    "GRANT r1 TO r2",
    "GRANT SELECT, UPDATE (a, b) ON pk TO r1",
    "GRANT ALL ON ALL TABLES IN SCHEMA public TO r2 WITH GRANT OPTION",
    "REVOKE UPDATE ON ALL TABLES IN SCHEMA public FROM r2",
    "CREATE POLICY pp ON pk USING (a > 0)",
    "ALTER POLICY pp ON pk TO r1",
    "ALTER POLICY pp ON pk RENAME TO p2",
    "CREATE VIEW vw AS SELECT a, b, (SELECT count(*) FROM fk WHERE fk.a = pk.a) n FROM pk",
    "CREATE OR REPLACE VIEW vw AS SELECT a, b, (SELECT count(*) FROM fk WHERE fk.a = pk.a) n, x FROM pk",
    "ALTER VIEW vw RENAME COLUMN x TO xx",
    "CREATE MATERIALIZED VIEW mv AS SELECT a, b FROM pk",
    "CREATE UNIQUE INDEX mv_a ON mv (a)",
    "REFRESH MATERIALIZED VIEW mv",
    "UPDATE pk SET b = b || '!' WHERE a < 5",
    "REFRESH MATERIALIZED VIEW CONCURRENTLY mv",
    "CREATE SEQUENCE sq",
    "ALTER SEQUENCE sq INCREMENT 5 RESTART 3",
    "ALTER SEQUENCE sq OWNED BY ctas.a",
    "CREATE TYPE mood AS ENUM ('a', 'b')",
    "ALTER TYPE mood ADD VALUE 'c' BEFORE 'b'",
    "ALTER TYPE mood RENAME VALUE 'c' TO 'd'",
    "CREATE TYPE co AS (f int, g mood)",
    "CREATE TABLE uses (c co, m mood, l co[])",
    "INSERT INTO uses SELECT ROW(g, 'a'), 'b', ARRAY[ROW(1, 'd')::co] FROM generate_series(1, 10) g",
    "ALTER TYPE co ADD ATTRIBUTE h text, DROP ATTRIBUTE f CASCADE",
    "ALTER TYPE co RENAME ATTRIBUTE h TO hh CASCADE",
    "CREATE TYPE rng AS RANGE (subtype = float8)",
    "ALTER TYPE rng OWNER TO r1",
    "CREATE DOMAIN d AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN dd AS d NOT NULL",
    "CREATE TABLE domained (x d, y dd)",
    "INSERT INTO domained SELECT g, g FROM generate_series(1, 20) g",
    "ALTER DOMAIN d SET DEFAULT 5",
    "ALTER DOMAIN d SET NOT NULL",
    "ALTER DOMAIN d ADD CONSTRAINT less CHECK (VALUE < 1000) NOT VALID",
    "ALTER DOMAIN d VALIDATE CONSTRAINT less",
    "ALTER DOMAIN d RENAME CONSTRAINT less TO lesser",
    "ALTER DOMAIN d DROP CONSTRAINT lesser",
    "CREATE FUNCTION f(a int, b text DEFAULT 'x') RETURNS int LANGUAGE sql AS 'SELECT a + 1'",
    "CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE PROCEDURE pr() LANGUAGE sql BEGIN ATOMIC INSERT INTO ctas VALUES (f(1), 2); END",
    "ALTER FUNCTION f(int, text) IMMUTABLE COST 5",
    "ALTER FUNCTION f(int, text) RENAME TO g",
    "CREATE AGGREGATE ag (int) (sfunc = int4pl, stype = int, initcond = '0')",
    "CREATE TRIGGER tr BEFORE INSERT ON pk FOR EACH ROW EXECUTE FUNCTION tf()",
    "ALTER TRIGGER tr ON pk RENAME TO tr2",
    "ALTER TABLE pk DISABLE TRIGGER tr2",
    "DROP TRIGGER tr2 ON pk",
    "CREATE TEXT SEARCH CONFIGURATION cfg (COPY = english)",
    "CREATE TEXT SEARCH DICTIONARY dict (TEMPLATE = simple)",
    "ALTER TEXT SEARCH DICTIONARY dict (accept = false)",
    "ALTER TEXT SEARCH CONFIGURATION cfg ALTER MAPPING FOR word WITH dict",
    "ALTER TEXT SEARCH CONFIGURATION cfg RENAME TO cfg2",
    "ALTER TEXT SEARCH CONFIGURATION cfg2 OWNER TO r1",
    "DROP TEXT SEARCH CONFIGURATION cfg2",
    "DROP TEXT SEARCH DICTIONARY dict",
    "CREATE FOREIGN DATA WRAPPER fdw",
    "ALTER FOREIGN DATA WRAPPER fdw OPTIONS (ADD a 'b')",
    "CREATE SERVER sv FOREIGN DATA WRAPPER fdw",
    "CREATE FOREIGN TABLE ft (a int CHECK (a > 0), b text OPTIONS (c 'd')) SERVER sv",
    "ALTER FOREIGN TABLE ft ADD c int, ALTER a SET NOT NULL",
    "ALTER FOREIGN TABLE ft RENAME TO ft2",
    "DROP FOREIGN TABLE ft2",
    "ALTER SERVER sv VERSION '2'",
    "CREATE USER MAPPING FOR r1 SERVER sv",
    "ALTER USER MAPPING FOR r1 SERVER sv OPTIONS (ADD a 'b')",
    "DROP USER MAPPING FOR r1 SERVER sv",
    "ALTER SERVER sv RENAME TO sv2",
    "ALTER SERVER sv2 OWNER TO postgres",
    "DROP SERVER sv2",
    "DROP FOREIGN DATA WRAPPER fdw CASCADE",
    "CREATE CONVERSION cv FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8",
    "ALTER CONVERSION cv RENAME TO cv2",
    "ALTER CONVERSION cv2 OWNER TO r1",
    "DROP CONVERSION cv2",
    'CREATE COLLATION co FROM "C"',
    "CREATE TABLE of_co (a text COLLATE co, b text)",
    "ALTER COLLATION co RENAME TO co2",
    "ALTER COLLATION co2 OWNER TO r1",
    "DROP COLLATION co2 CASCADE",
    "DROP TABLE of_co",
    "CREATE EXTENSION hstore",
    "ALTER EXTENSION hstore SET SCHEMA s",
    "DROP EXTENSION hstore",
    "CREATE OPERATOR FAMILY opf USING btree",
    "ALTER OPERATOR FAMILY opf USING btree ADD FUNCTION 1 (int4, int8) btint48cmp(int4, int8)",
    "ALTER OPERATOR FAMILY opf USING btree RENAME TO opg",
    "CREATE OPERATOR CLASS opc FOR TYPE int4 USING btree FAMILY opg AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int4, int4)",
    "ALTER OPERATOR CLASS opc USING btree RENAME TO opd",
    "DROP OPERATOR CLASS opd USING btree",
    "UPDATE pg_constraint SET convalidated = false WHERE conname = 'again'",
    "CREATE TIMELINE tl",
    "DROP TIMELINE tl",
    "COMMENT ON TABLE pk IS 'keys'",
    "COMMENT ON COLUMN pk.a IS 'key'",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO r1",
    "CREATE TABLE granted (a int)",
    "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM r1",
    "DROP POLICY p2 ON pk",
    "ALTER SCHEMA s OWNER TO r1",
    "REASSIGN OWNED BY r1 TO r2",
    "ALTER TABLE s.one OWNER TO r1",
    "DROP OWNED BY r1 CASCADE",
    "ALTER DATABASE postgres CONNECTION LIMIT 50",
    "ALTER DATABASE postgres SET work_mem = '8MB'",
    "ALTER DATABASE postgres RESET ALL",
    "REVOKE r1 FROM r2",
    "DROP STATISTICS st",
    "ALTER TABLE w SET SCHEMA s",
    "ALTER TABLE s.w SET SCHEMA public",
    "VACUUM",
    "ANALYZE pk",
    "REINDEX TABLE pk",
    "TRUNCATE pk CASCADE",
    "TRUNCATE ctas, parts RESTART IDENTITY",
    "DROP INDEX mv_a",
    "DROP DOMAIN d CASCADE",
    "DROP FUNCTION g CASCADE",
    "DROP AGGREGATE ag (int)",
    "DROP TYPE mood CASCADE",
    "DROP TYPE co, rng CASCADE",
    "DROP MATERIALIZED VIEW mv",
    "DROP TABLE part1",
    "DROP TABLE parts",
    "DROP TABLE pk CASCADE",
    "DISCARD TEMP",
    "DROP SCHEMA s CASCADE",
    "DROP TABLE w, v, fk, ctas, made, uses, domained, granted, loose CASCADE",
)
"""What is interrupted, one after the other: each has what those before it have made."""

ELSEWHERE: Final = (
    f"CREATE TEMP TABLE o ({CHECKED})",
    "CREATE TABLE other (a int PRIMARY KEY, b text DEFAULT 'x' CHECK (b <> ''))",
    "ALTER TABLE other ADD c int",
    "DROP TABLE other",
    "",
)
"""What another session defines meanwhile, of its own; then it leaves."""
ALONE: Final = ("VACUUM", "CREATE UNIQUE INDEX CONCURRENTLY", "DISCARD", "CREATE TIMELINE", "DROP TIMELINE")
"""What begins so cannot be run in a block."""
ELSE: Final = {
    st.AlterLargeObject: "no catalog object",
    st.ImportForeignSchema: "refused",
}
"""Classes that are not in the script."""
ROWS: Final = ("INSERT", "UPDATE", "TRUNCATE", "REFRESH")
"""What begins so defines nothing: of a client that has vanished nobody could tell what became of it."""
FIRST: Final = 6
SOME: Final = 3
MANY: Final = 30
EACH: Final = 1 << 30
MOST: Final = 100_000


def points(share: int) -> Iterator[int]:
    """Yield turns of the loop: the first ones, then one of each ``share``-th part."""
    turn = 0
    while turn < MOST:
        yield turn
        turn += 1 + max(turn - FIRST, 0) // share


def cancel(client: Client) -> None:
    client.session.cancel()


def time_out(client: Client) -> None:
    interrupts: Any = client.session.backend
    interrupts.interrupts._interrupt(engine.session.interrupts.TIMEOUT)


def failed(events: list[Any]) -> str:
    """Return the SQLSTATE that a Query was answered with; empty: none."""
    return next((e.report.sqlstate for e in events if isinstance(e, m.ErrorResponse)), "")


async def answers(client: Client) -> list[Any]:
    """Return all messages up to ReadyForQuery."""
    while client.session.busy:
        await asyncio.sleep(0)
    return await client.answers()


async def asked(client: Client, sql: str) -> str:
    """Run a Query and return the SQLSTATE that it was answered with."""
    client.send(m.Query(sql))
    return failed(await answers(client))


async def met_after(client: Client, turns: int, sql: str, meets: Callable[[Client], None]) -> bool:
    """Send and have something happen some turns later, if it still runs then; tell whether."""
    client.send(m.Query(sql))
    for _ in range(turns):
        if not client.session.busy:
            return False
        await asyncio.sleep(0)
    met = client.session.busy
    if met:
        meets(client)
    return met


async def left_after(database: Database, client: Client, turns: int, sql: str) -> bool:
    """As ``met_after``, of a client that vanishes; returns once nothing is left of its session."""
    pid = client.session.pid
    met = await met_after(client, turns, sql, lambda _: client.session.connection_lost())
    if not met:
        assert not failed(await answers(client)), sql
        client.session.connection_lost()
    while pid in database.sessions:
        await asyncio.sleep(0)
    return met


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each loop give way at each of its steps."""
    monkeypatch.setattr(give_way, "SLICE_S", 0.0)
    monkeypatch.setattr(engine.base.slices, "SLICE_S", 0.0)
    monkeypatch.setattr(engine.session.interrupts, "SLICE_S", 0.0)


async def opened() -> tuple[Database, Server, Client]:
    database = await open_database(MemoryDisk())
    server = Server(database, ServerConfig())
    client = Client(server)
    await client.answers()
    await client.run(m.Query("SET statement_timeout = '1h'"))
    return database, server, client


class State:
    """What is defined, and what is stored."""

    def __init__(self, database: Database) -> None:
        self.catalog = dict(database.spaces.any.catalog.items)
        self.shards = set(database.store.core.shards)

    async def same(self, database: Database) -> bool:
        """Tell whether all is as it was, and nothing under way soon; shards that were dropped before may have been forgotten."""
        core = database.store.core
        for _ in range(100):  # how far a sequence has counted is stored behind
            if not core.active:
                break
            await asyncio.sleep(0)
        return self.defined(database) and set(core.shards) <= self.shards and not core.active

    def defined(self, database: Database) -> bool:
        return dict(database.spaces.any.catalog.items) == self.catalog


def bug(caplog: pytest.LogCaptureFixture) -> str:
    """Return the traceback of a bug that was logged."""
    found = [str(record.exc_text) for record in caplog.records if record.exc_text]
    caplog.clear()
    return "\n".join(found)


LONG: Final = (pytest.mark.long, pytest.mark.timeout(2400))
SHARES: Final = (SOME, pytest.param(EACH, marks=LONG))


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("share", SHARES)
def test_what_is_interrupted_leaves_nothing(
    share: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set[type]()
    runs = run.run

    def noting(session: Any, plan: Any, *args: Any) -> Any:
        seen.add(type(plan.bound.statement))
        return runs(session, plan, *args)

    async def main() -> None:
        database, server, client = await opened()
        for number, sql in enumerate(SCRIPT):
            before = State(database)
            for turns in points(share):
                way = turns % 2 if "TEMP" in sql or sql.startswith(ROWS) else (turns + number) % 3
                where = f"{sql}, after {turns} turns"
                if way == 2:
                    one = Client(server)
                    await one.answers()
                    met = await left_after(database, one, turns, sql)
                    assert not bug(caplog), where
                    if not before.defined(database):
                        break
                else:
                    met = await met_after(client, turns, sql, (cancel, time_out)[way])
                    said = failed(await answers(client))
                    assert said in ("", "57014"), (where, said, bug(caplog))
                    if not said:
                        break
                assert await before.same(database), where
                if not met and way == 2:
                    break  # it is nothing of the catalog
                caplog.clear()
        await database.close()

    monkeypatch.setattr(run, "run", noting)
    asyncio.run(main())
    assert {kind for kind, spec in SPECS.items() if spec.defines} - seen == set(ELSE)


class Neighbour:
    """Another session, that defines things of its own and leaves, and another one after it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._steps = itertools.cycle(ELSEWHERE)
        self.client: Client | None = None

    async def there(self) -> None:
        if self.client is None:
            self.client = Client(self._server)
            await self.client.answers()

    def goes_on(self, _other: Client) -> None:
        """Begin with what comes next."""
        assert self.client is not None
        step = next(self._steps)
        if step:
            self.client.send(m.Query(step))
        else:
            self.client.session.connection_lost()
            self.client = None

    async def done(self) -> str:
        """Return the SQLSTATE that it was answered with."""
        return "" if self.client is None else failed(await answers(self.client))


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("share", [SOME, pytest.param(MANY, marks=LONG)])
def test_what_others_define_meanwhile_changes_nothing(share: int, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        database, server, client = await opened()
        neighbour = Neighbour(server)
        for number, sql in enumerate(SCRIPT):
            some = points(share) if share == MANY else itertools.islice(points(1), number % SOME, None, SOME)
            for turns in some if not sql.startswith(ALONE) else ():
                await neighbour.there()
                await asked(client, "BEGIN")
                met = await met_after(client, turns, sql, neighbour.goes_on)
                said = failed(await answers(client))
                where = f"{sql}, after {turns} turns"
                assert not said, (where, said, bug(caplog))
                await asked(client, "ROLLBACK")
                if not met:
                    break
                said = await neighbour.done()
                assert not said, (where, said, bug(caplog))
                caplog.clear()
            said = await asked(client, sql)
            assert not said, (sql, said, bug(caplog))
        await database.close()

    asyncio.run(main())
