"""What stored expressions name by constants of regclass they depend on, as in PostgreSQL 15, from which the answers are."""

from __future__ import annotations

from typing import Final

from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk

MADE: Final = (
    "CREATE SEQUENCE s", "CREATE TABLE r (x int)",
    "CREATE TABLE checked (a int CONSTRAINT c CHECK (a < nextval('s')))",
    "CREATE TABLE other (a oid CONSTRAINT o CHECK (a <> 'r'::regclass::oid))",
    "CREATE DOMAIN d AS int CONSTRAINT dc CHECK (VALUE < nextval('s'))",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE TABLE fired (a int)",
    "CREATE TRIGGER t BEFORE INSERT ON fired FOR EACH ROW WHEN (NEW.a < nextval('s')) EXECUTE FUNCTION f()",
    "CREATE TABLE seen (a int)", "CREATE POLICY p ON seen USING (a < currval('s'))",
)  # fmt: skip
HANG_ON_S: Final = (
    "constraint c on table checked", "constraint dc", "trigger t on table fired", "policy p on table seen",
)  # fmt: skip


async def made(*statements: str) -> tuple[object, Session]:
    database = await open_database(MemoryDisk())
    session = Session(database, 1)
    for statement in statements:
        await session.run(statement)
    return database, session


async def refused(session: Session, sql: str) -> tuple[str, str]:
    try:
        await session.run(sql)
    except Failed as failed:
        return failed.report.sqlstate, failed.report.detail or ""
    return "", ""


def test_what_a_stored_expression_names_is_needed_and_goes_with_it() -> None:
    async def main() -> None:
        _, session = await made(*MADE)
        state, detail = await refused(session, "DROP SEQUENCE s")
        assert state == "2BP01"
        assert all(f"{words} depends on sequence s" in detail for words in HANG_ON_S), detail
        assert await refused(session, "DROP TABLE r") == (
            "2BP01",
            "constraint o on table other depends on table r",
        )
        await session.run("ALTER SEQUENCE s RENAME TO s2")
        await session.run("ALTER TABLE r RENAME TO r2")
        ask = "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname IN ('c', 'dc') ORDER BY 1"
        assert await session.run(ask) == [
            ("c", "CHECK ((a < nextval('s2'::regclass)))"),
            ("dc", "CHECK ((VALUE < nextval('s2'::regclass)))"),
        ]
        [(trigger,)] = await session.run("SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 't'")
        assert "WHEN ((new.a < nextval('s2'::regclass)))" in str(trigger)
        inserts = (
            "INSERT INTO checked VALUES (-1)", "INSERT INTO other VALUES (5)", "INSERT INTO fired VALUES (-1)", "SELECT (-1)::d",
        )  # fmt: skip
        for sql in inserts:
            await session.run(sql)
        await session.run("DROP SEQUENCE s2 CASCADE")
        await session.run("DROP TABLE r2 CASCADE")
        for sql in (*inserts, "INSERT INTO checked VALUES (1000000)"):
            await session.run(sql)
        assert await session.run("SELECT 1 FROM pg_constraint WHERE conname IN ('c', 'o', 'dc')") == []
        assert await session.run("SELECT 1 FROM pg_trigger WHERE tgname = 't'") == []
        assert await session.run("SELECT 1 FROM pg_policies WHERE policyname = 'p'") == []

    run(main)


def test_a_sequence_that_goes_with_its_column_schema_or_session_takes_along_what_names_it() -> None:
    async def main() -> None:
        database, session = await made(
            "CREATE TABLE t (id serial)",
            "ALTER TABLE t ADD x int CHECK (x < nextval('t_id_seq'))",
            "CREATE TABLE u (a int CHECK (a < nextval('t_id_seq')))",
            "CREATE SCHEMA sc",
            "CREATE SEQUENCE sc.q",
            "CREATE TABLE v (a int CHECK (a < nextval('sc.q')))",
            "CREATE TABLE own (a oid)",
            "ALTER TABLE own ADD CHECK (a <> 'own'::regclass::oid)",
        )
        assert (await refused(session, "ALTER TABLE t DROP COLUMN id"))[0] == "2BP01"
        assert (await refused(session, "DROP TABLE t"))[0] == "2BP01"
        await session.run("ALTER TABLE t DROP COLUMN id CASCADE")
        await session.run("INSERT INTO u VALUES (7)")
        assert (await refused(session, "DROP SCHEMA sc"))[0] == "2BP01"
        await session.run("DROP SCHEMA sc CASCADE")
        await session.run("INSERT INTO v VALUES (7)")
        await session.run("INSERT INTO own VALUES (1)")
        await session.run("DROP TABLE own")
        other = Session(database, 2)  # type: ignore[arg-type]
        await other.run("CREATE TEMP SEQUENCE rs")
        await other.run("CREATE TABLE w (a int CHECK (a < nextval('rs')))")
        await other.run("DISCARD TEMP")
        await session.run("INSERT INTO w VALUES (7)")

    run(main)
